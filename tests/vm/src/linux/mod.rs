// SPDX-License-Identifier: GPL-2.0
//! Plan processes are processes like others, and leave the others alone.

mod exec;
mod kill;
pub mod scene;
mod signal;
mod stop;

/// The tests by their names.
pub const TESTS: &[(&str, crate::Test)] = &[
    ("kill-running", kill::kill_running),
    ("kill-waiting", kill::kill_waiting),
    ("kill-blocked", kill::kill_blocked),
    ("stop-running", stop::stop_running),
    ("stop-waiting", stop::stop_waiting),
    ("stop-beyond-the-slot", stop::stop_beyond_the_slot),
    ("ptrace-running", stop::ptrace_running),
    ("ptrace-waiting", stop::ptrace_waiting),
    ("ptrace-beyond-the-slot", stop::ptrace_beyond_the_slot),
    ("freeze-running", stop::freeze_running),
    ("freeze-waiting", stop::freeze_waiting),
    ("freeze-beyond-the-slot", stop::freeze_beyond_the_slot),
    ("handler-while-waiting", signal::handler_while_waiting),
    ("handler-takes-no-slot", signal::handler_takes_no_slot),
    ("exec-running", exec::exec_running),
    ("exec-kills-waiting-thread", exec::exec_kills_waiting_thread),
    ("exec-kills-waiting-leader", exec::exec_kills_waiting_leader),
];
