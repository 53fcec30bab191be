// SPDX-License-Identifier: GPL-2.0
//! Tests that cannot run on this machine.

use std::io::Write;

/// Variable with which a test fails in place of being skipped, if its value is `no`.
const MAY_SKIP: &str = "PBS_TESTS_SKIP";

/// Reports that the calling test is skipped, with the reason.
///
/// The line goes past the test runner, which shows no output of tests that return; `scripts/test`
/// counts such lines.
///
/// # Panics
///
/// If `PBS_TESTS_SKIP` is `no`: everything that tests need has to be there.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let may_skip = std::env::var_os(MAY_SKIP).is_none_or(|value| value != "no");
    assert!(may_skip, "{test} cannot run, and {MAY_SKIP} is no: {why}");
    // Without a reader nobody counts.
    let _ = std::io::stderr().write_all(format!("skipped {test}: {why}\n").as_bytes());
}
