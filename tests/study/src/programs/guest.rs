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

/// Where the guest finds what the host has cut, and where it puts what programs read.
const TEXT: &str = "/mnt/text";
const DIR: &str = "/tmp/programs";

/// More than any run takes.
const PLANNED_INSNS: u64 = 4_000_000_000;

/// How each program is called; it reads `input`, in [`DIR`].
const PROGRAMS: [(&str, &[&str]); 10] = [
    ("sha256sum", &["sha256sum", "input"]),
    ("cksum", &["cksum", "input"]),
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

/// The first bytes of the text, and a copy in which every fiftieth line differs.
fn prepare(text: &[u8], input_bytes: u64) -> Verdict {
    let input = text.get(..input_bytes as usize);
    let input = input.ok_or_else(|| format!("{TEXT} has less than {input_bytes} bytes"))?;
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
    let plan = Plan::new(1)
        .config(config)
        .lead_in()
        .slot(1, 0, PLANNED_INSNS);
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        let open = |file: &str| fs::File::open(file);
        let Ok(input) = open(&format!("{DIR}/input")) else {
            return;
        };
        let error = Command::new(words[0])
            .args(&words[1..])
            .current_dir(DIR)
            .stdin(input)
            .stdout(Stdio::null())
            .exec();
        eprintln!("{}: {error}", words[0]);
    })?;
    let mut scene = scene.start(&plan)?;
    let status = scene.children[0].wait()?;
    // diff(1) exits with 1 where there are differences.
    check!(
        status == 0 || status == 1 << 8,
        "{} ended with status {status}",
        words[0]
    );
    scene.node.read_until(pbs_uapi::EventKind::PlanEnded, 1)?;
    Ok(scene.node.task_ended(1, 0)?.retired_insns)
}

/// `pbs-vmstudy programs [SIZES [REPEATS]]`: one line of JSON for each run.
pub fn measure(mut words: impl Iterator<Item = String>) -> Verdict {
    let sizes = words.next().unwrap_or_else(|| "64,512".into());
    let sizes: Vec<u64> = sizes
        .split(',')
        .map(|kib| kib.parse().context(kib))
        .collect::<Result<_, _>>()?;
    let repeats: u32 = words
        .next()
        .map_or(Ok(3), |text| text.parse().context(&text))?;
    let text = fs::read(TEXT).context(TEXT)?;
    fs::create_dir_all(DIR).context(DIR)?;
    // Of what is run again and again, the middle size is as good as any.
    let repeated = sizes[sizes.len() / 2];
    for &kib in &sizes {
        prepare(&text, kib * 1024)?;
        for (program, words) in PROGRAMS {
            for repeat in 0..if kib == repeated { repeats } else { 1 } {
                let run = Run {
                    program: program.into(),
                    input_bytes: kib * 1024,
                    repeat,
                    retired_insns: run(words).map_err(|why| format!("{program}: {why}"))?,
                };
                let line = serde_json::to_string(&run).map_err(|error| error.to_string())?;
                println!("{line}");
                std::io::stdout().flush().context("standard output")?;
            }
        }
    }
    Ok(())
}
