// SPDX-License-Identifier: GPL-2.0
//! Plans, jobs and machines in JSON are the same as those in TOML.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, pbsctl};
use pbs_text::json::json_of_toml;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");

#[test]
fn samples_in_json_are_what_they_are_in_toml() {
    let directory = directory("json-files", &[]);
    let json = directory.join("file.json");
    let json = json.to_str().unwrap();
    let mut number = 0;
    for folder in ["plans", "jobs", "machines", "cosched"] {
        for entry in fs::read_dir(Path::new(SAMPLES).join(folder)).unwrap() {
            let file = entry.unwrap().path();
            let text = fs::read_to_string(&file).unwrap_or_default();
            let Some(value) =
                json_of_toml(&text).filter(|_| file.extension().is_some_and(|it| it == "toml"))
            else {
                continue;
            };
            let of_toml = pbsctl(&["--json", "check", file.to_str().unwrap()], "");
            for text in [value.to_string(), format!("{value:#}\n")] {
                fs::write(json, &text).unwrap();
                let of_json = pbsctl(&["--json", "check", json], "");
                assert_eq!(of_json.status, of_toml.status, "{text}\n{}", of_json.stderr);
                assert_eq!(of_json.stdout, of_toml.stdout, "{text}");
            }
            number += 1;
        }
    }
    assert!(number >= 10, "only {number} samples");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_job_in_json_is_planned_and_its_problems_have_lines() {
    let directory = directory("json-job", &[]);
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let toml = fs::read_to_string(format!("{SAMPLES}/jobs/first.toml")).unwrap();
    let value = json_of_toml(&toml).unwrap();
    fs::write(file("job.json"), format!("{value:#}")).unwrap();
    let machine = format!("{SAMPLES}/machines/vm.toml");
    let planned = file("plan.toml");
    let plan = |job: &str| {
        let options = ["--machine", &machine, "--output", &planned];
        let ran = pbsctl(&[&["plan", "show", job], &options[..]].concat(), "");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        fs::read_to_string(&planned).unwrap()
    };
    assert_eq!(plan(&file("job.json")), plan(&format!("{SAMPLES}/jobs/first.toml")));
    fs::write(
        file("job.json"),
        "{\n\"name\": \"a\",\n\"deadline_ns\": 5,\n\"process\": [{\n\"idd\": 1 }]}\n",
    )
    .unwrap();
    let ran = pbsctl(&["check", &file("job.json")], "");
    assert!(ran.stderr.contains("job.json:5: "), "{}", ran.stderr);
    fs::remove_dir_all(&directory).unwrap();
}
