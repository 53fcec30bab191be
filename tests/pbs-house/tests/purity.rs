// SPDX-License-Identifier: GPL-2.0
//! Decisions have no clock, no input and no output, so that a simulator and a service run the
//! same lines.

use pbs_house::tree;

/// Folders whose files hold decisions.
const PURE: [&str; 12] = [
    "rust/pbs_core/src",
    "node/pbs-profile/src",
    "node/pbs-planner/src",
    "node/pbs-control/src",
    "node/pbs-interference/src",
    "cluster/pbs-resources/src",
    "cluster/pbs-cluster-planner/src",
    "rms/pbs-rms/src",
    "rms/pbs-rms-apps/src/models",
    "slurm/pbs-slurm/src/steer",
    "cosched/pbs-cosched/src",
    "node/pbs-gen/src",
];

/// Names that only code with a clock, files, sockets or processes needs. Threads that search in
/// parallel are allowed: their results do not depend on time.
const IMPURE: [&str; 12] = [
    "std::time::Instant",
    "SystemTime",
    "Instant::now",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::env",
    "libc::",
    "rustix::",
    "pbs_uapi::clock",
    "println!",
];

#[test]
fn decisions_have_no_clock_and_no_files() {
    let mut wrong = Vec::new();
    for folder in PURE {
        let files = tree::files(folder);
        assert!(!files.is_empty(), "{folder}: no files");
        let is_code = |path: &String| path.ends_with(".rs") && !path.ends_with("/tests.rs");
        for path in files.into_iter().filter(is_code) {
            let text = tree::text(&path);
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().enumerate();
            for (number, line) in lines.filter(|(_, line)| !line.trim_start().starts_with("//")) {
                if let Some(word) = IMPURE.iter().find(|word| line.contains(**word)) {
                    wrong.push(format!("{path}:{}: {word}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not pure:\n{}", wrong.join("\n"));
}
