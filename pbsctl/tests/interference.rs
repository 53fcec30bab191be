// SPDX-License-Identifier: GPL-2.0
//! `pbsctl interference`: what is measured is told; how large it is depends on the
//! machine and is not looked at.

mod common;

use common::{pbsctl, scratch};
use pbs_interference::slowdowns_from_toml;

const SHORT: [&str; 8] = [
    "interference",
    "measure",
    "--rounds",
    "2",
    "--seconds-per-round",
    "5ms",
    "--cache",
    "64KiB",
];

#[test]
fn f32_measure_tells_each_pair_in_both_directions() {
    let file = scratch("measured.toml");
    let hogs = [
        "--hogs",
        "compute,cache",
        "--output",
        file.to_str().unwrap(),
    ];
    let ran = pbsctl(&[&["--json"], &SHORT[..], &hogs].concat(), "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    let json = ran.json();
    let pairs = json["pairs"].as_array().unwrap();
    let names = pairs.iter().map(|pair| {
        let name = |key: &str| pair[key].as_str().unwrap().to_string();
        (name("victim"), name("aggressor"))
    });
    let names: Vec<_> = names.collect();
    let (cache, compute) = ("cache".to_string(), "compute".to_string());
    let all = [&cache, &compute];
    let all = all
        .iter()
        .flat_map(|&one| all.map(|other| (one.clone(), other.clone())));
    assert_eq!(names, all.collect::<Vec<_>>());
    let told = &json["makespans"];
    assert_eq!(told.as_array().map(Vec::len), Some(3));
    assert_eq!(json["cache_bytes"], 65536);

    // The file has the same figures.
    let text = std::fs::read_to_string(&file).unwrap();
    let entries = slowdowns_from_toml(&text).unwrap();
    assert_eq!(entries.len(), 4);
    for (entry, pair) in entries.iter().zip(pairs) {
        assert_eq!(entry.victim, pair["victim"].as_str().unwrap());
        let slowdown = pair["slowdown"].as_f64().unwrap();
        let bounded = slowdown.clamp(0.1, 1000.0);
        assert!((entry.slowdown - bounded).abs() < 0.001, "{entry:?} {pair}");
    }
}

#[test]
fn f32_measure_prints_tables() {
    let ran = pbsctl(&[&SHORT[..], &["--hogs", "compute"]].concat(), "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    for part in [
        "VICTIM",
        "compute + compute",
        "MEASURED/PREDICTED",
        "2 rounds of 5 ms",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
    for (arguments, words) in [
        (&["--cpus", "0"][..], "write two different CPUs"),
        (&["--cpus", "0,0"], "write two different CPUs"),
        (&["--cpus", "0,4000"], "may not use CPU 4000"),
        (&["--hogs", "disk"], "there are memory, cache, compute"),
        (&["--rounds", "0"], "0 is not in 1..=10000"),
        (&["--output", "/nonexistent/s.toml"], "/nonexistent/s.toml"),
    ] {
        let quick = ["--hogs", "compute"];
        let quick = match arguments[0] {
            "--output" => &quick[..],
            _ => &[],
        };
        let all = match arguments[0] {
            "--rounds" => [&["interference", "measure"], arguments].concat(),
            _ => [&SHORT[..], quick, arguments].concat(),
        };
        let ran = pbsctl(&all, "");
        assert_ne!(ran.status, 0, "{arguments:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        // What took long to measure is told all the same.
        let told = ran.stdout.contains("compute + compute");
        assert_eq!(told, arguments[0] == "--output", "{arguments:?}");
    }
}
