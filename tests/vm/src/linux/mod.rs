// SPDX-License-Identifier: GPL-2.0
//! Plan processes are processes like others, and leave the others alone.

mod kill;
pub mod scene;

/// The tests by their names.
pub const TESTS: &[(&str, crate::Test)] = &[
    ("kill-running", kill::kill_running),
    ("kill-waiting", kill::kill_waiting),
    ("kill-blocked", kill::kill_blocked),
];
