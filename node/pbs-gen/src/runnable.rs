// SPDX-License-Identifier: GPL-2.0
//! Plans that can be executed: what `pbsctl run` starts for them.

use pbs_plan::{Command, Plan, Process, Slot, Start};

/// The program that retires what it is told to (`samples/c/pbs_retire.c`).
const PROGRAM: &str = "pbs_retire";

/// The idle slot in front, for each process that has to be loaded in it: 40 ms in
/// the virtual machine, 10 ms at 10^9 instructions a second.
const LEAD_IN_INSNS: u64 = 10_000_000;

/// Gives every process a program whose tasks retire their real lengths, and wait
/// where the plan says so. The programs attach themselves, which takes them some
/// time; so an idle slot stands in front of each CPU's slots.
pub fn make_runnable(plan: &mut Plan) {
    for process in &mut plan.processes {
        process.start = Start::Itself(Some(Command { argv: words(process), ..Command::default() }));
    }
    let lead_in =
        Slot::Idle { length_insns: LEAD_IN_INSNS * plan.processes.len() as u64, real_insns: None };
    for cpu in &mut plan.cpus {
        cpu.slots.insert(0, lead_in);
        // Generated slots have no lines; read ones keep theirs.
        if !cpu.slot_lines.is_empty() {
            cpu.slot_lines.insert(0, None);
        }
    }
}

/// The program and its arguments.
fn words(process: &Process) -> Vec<String> {
    let mut argv = vec![PROGRAM.to_owned()];
    for task in &process.tasks {
        if let Some(wait_insns) = task.wait_insns {
            argv.push(format!("wait:{wait_insns}"));
        }
        argv.push(task.real_insns.unwrap_or(task.planned_insns).to_string());
    }
    argv
}
