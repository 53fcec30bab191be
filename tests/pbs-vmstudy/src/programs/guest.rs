// SPDX-License-Identifier: GPL-2.0
//! Runs the programs.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use pbs_core::{Config, Threshold};
use pbs_vmtest::check;
use pbs_vmtest::harness::{Context, Plan, Scene, Verdict};

use super::Run;

/// Directory of the texts that the host has cut, and of the input of programs.
const TEXT: &str = "/mnt/text";
const DIR: &str = "/tmp/programs";

/// Exit status of a shell for a program that it does not find.
const NOT_THERE: i32 = 127;

/// More than any run takes.
const PLANNED_INSNS: u64 = 4_000_000_000;

/// Command line of each program; it reads `input`, in [`DIR`].
const PROGRAMS: [(&str, &[&str]); 10] = [
    ("sha256sum", &["sha256sum", "input"]),
    ("md5sum", &["md5sum", "input"]),
    ("gzip", &["gzip", "-c", "input"]),
    ("sort", &["sort", "input"]),
    ("wc", &["wc", "input"]),
    ("grep", &["grep", "-c", "return [a-z]*;", "input"]),
    ("tr", &["tr", "a-z", "A-Z"]),
    ("sed", &["sed", "s/struct/union/g", "input"]),
    ("diff", &["diff", "input", "changed"]),
    (
        "awk",
        &[
            "awk",
            "{ for (i = 1; i <= NF; i++) seen[$i]++ } END { for (word in seen) n++; print n }",
            "input",
        ],
    ),
];

/// Prepares that many bytes of the text, and a copy in which every fiftieth line differs. Parts of
/// one size follow one another.
fn prepare(text: &[u8], input_bytes: u64, part: u32) -> Verdict {
    let mut parts = text.chunks_exact(input_bytes as usize);
    let input = parts.nth(part as usize);
    let input = input.ok_or_else(|| format!("{TEXT} has no part {part} of {input_bytes} bytes"))?;
    fs::write(format!("{DIR}/input"), input).context("input")?;
    let mut changed = Vec::new();
    for (number, line) in input.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if number % 50 == 49 {
            changed.extend(b"changed: ");
        }
        changed.extend(line);
    }
    fs::write(format!("{DIR}/changed"), changed).context("changed")
}

/// Runs it once as the one process of a plan, and says what it has retired.
fn run(words: &[&str]) -> Result<u64, String> {
    // Nothing is to cut its slot: what programs do in the kernel takes long.
    let config = Config {
        thresholds: Threshold::T2Memory as u64,
        ceiling_factor_permille: 100_000,
        ..Config::DEFAULT
    };
    let plan = Plan::new(1).config(config).lead_in().slot(1, 0, PLANNED_INSNS);
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        let open = |file: &str| fs::File::open(file);
        let input = open(&format!("{DIR}/input")).expect("what was written before");
        let error = Command::new(words[0])
            .args(&words[1..])
            .current_dir(DIR)
            .stdin(input)
            .stdout(Stdio::null())
            .exec();
        eprintln!("{}: {error}", words[0]);
        std::process::exit(NOT_THERE);
    })?;
    let mut scene = scene.start(&plan)?;
    let status = scene.children[0].wait()?;
    // diff(1) exits with 1 where there are differences.
    let expected = if words[0] == "diff" { 1 << 8 } else { 0 };
    check!(status == expected, "{} ended with status {status}", words[0]);
    scene.node.read_until(pbs_uapi::EventKind::PlanEnded, 1)?;
    Ok(scene.node.task_ended(1, 0)?.retired_insns)
}

/// `pbs-vmstudy programs SIZES REPEATS PARTS`: one line of JSON for each run. Sizes are in KiB;
/// the one in their middle is run so often on the same input, and on so many parts of the text.
pub fn measure(mut words: impl Iterator<Item = String>) -> Verdict {
    let sizes = words.next().ok_or("programs wants sizes")?;
    let sizes: Vec<u64> =
        sizes.split(',').map(|kib| kib.parse().context(kib)).collect::<Result<_, _>>()?;
    let mut number = |what: &str| {
        let word = words.next().ok_or_else(|| format!("programs wants {what}"))?;
        word.parse::<u32>().context(&word)
    };
    let (repeats, parts) = (number("repeats")?, number("parts")?);
    let text = fs::read(TEXT).context(TEXT)?;
    fs::create_dir_all(DIR).context(DIR)?;
    let often = sizes[sizes.len() / 2];
    for &kib in &sizes {
        for part in 0..if kib == often { parts } else { 1 } {
            prepare(&text, kib * 1024, part)?;
            for (program, words) in PROGRAMS {
                let repeats = if kib == often && part == 0 { repeats } else { 1 };
                for repeat in 0..repeats {
                    let run = Run {
                        program: program.into(),
                        input_bytes: kib * 1024,
                        part,
                        repeat,
                        retired_insns: run(words).map_err(|why| format!("{program}: {why}"))?,
                    };
                    let line = serde_json::to_string(&run).map_err(|error| error.to_string())?;
                    println!("{line}");
                    std::io::stdout().flush().context("standard output")?;
                }
            }
        }
    }
    Ok(())
}
