// SPDX-License-Identifier: GPL-2.0
//! Marks of sends and receives in C: `sched_pbs/task.h` against calls that are interrupted, that
//! take a part and that fail.

use std::path::Path;
use std::process::Command;

#[test]
fn sends_and_receives_in_c_return_what_they_promise() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("messages");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(compiler)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(manifest.join("include"))
        .arg("-idirafter")
        .arg(manifest.join("../../include/uapi"))
        .arg(manifest.join("tests/messages.c"))
        .status()
        .expect("a C compiler is needed (set CC)");
    assert!(status.success(), "the test does not compile");
    let output = Command::new(&program).env_remove("PBS_PROCESS").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
