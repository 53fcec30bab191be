// SPDX-License-Identifier: GPL-2.0
//! Comparison of an answer with what is left of the plan.
//!
//! An answer is a valid plan already. It must also be about the same work: a planner says when
//! tasks run and how long they are, and neither adds nor drops one.

use std::collections::{BTreeMap, BTreeSet};

use pbs_plan::{Plan, Process};

/// Checks that a plan is for the CPU of `left`, with the same processes and tasks. `next_seq`:
/// number of the event after the last failure.
///
/// # Errors
///
/// The first difference, for the author of the command.
pub(super) fn check_same_work(plan: &Plan, left: &Plan, next_seq: u64) -> Result<(), String> {
    let cpus = |plan: &Plan| plan.cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>();
    if cpus(plan) != cpus(left) {
        return Err(format!(
            "its plan is for the CPUs {:?}, and the question is about {:?}",
            cpus(plan),
            cpus(left)
        ));
    }
    if plan.dealt_seq > next_seq {
        return Err(format!(
            "its plan deals with failures before event {}, and the last one of the question is \
             {}; write the number of the last failure plus one",
            plan.dealt_seq,
            next_seq.saturating_sub(1)
        ));
    }
    let mut wanted: BTreeMap<u32, &Process> =
        left.processes.iter().map(|process| (process.id, process)).collect();
    for process in &plan.processes {
        let Some(known) = wanted.remove(&process.id) else {
            return Err(format!(
                "its plan has process {}, which is not in the question",
                process.label()
            ));
        };
        check_tasks(process, known)?;
    }
    match wanted.into_values().next() {
        Some(missing) => Err(format!("its plan has no process {}", missing.label())),
        None => Ok(()),
    }
}

fn check_tasks(process: &Process, known: &Process) -> Result<(), String> {
    let label = known.label();
    let numbers =
        |process: &Process| process.tasks.iter().map(|task| task.id).collect::<Vec<u32>>();
    // The kernel would go on at the first task of the plan, and skip one that was left out.
    if numbers(known) != numbers(process) {
        return Err(format!(
            "the tasks of process {label} are {:?} in its plan and {:?} in the question",
            numbers(process),
            numbers(known)
        ));
    }
    for (task, known) in process.tasks.iter().zip(&known.tasks) {
        let after = |task: &pbs_plan::Task| {
            let after = task.after.iter().map(|after| (after.process, after.task));
            after.collect::<BTreeSet<_>>()
        };
        if after(task) != after(known) {
            return Err(format!(
                "task {} of process {label} waits for other tasks than in the question",
                task.id
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pbs_plan::from_toml;

    use super::check_same_work;

    const LEFT: &str = "plan_id = 1
[[process]]
id = 4
name = \"a\"
tasks = [{ id = 2, planned_insns = 100 }, { id = 3, planned_insns = 100 }]
[[process]]
id = 7
tasks = [{ id = 0, planned_insns = 50, after = [\"a/3\"] }]
[[cpu]]
cpu = 1
slots = [\"a\", \"a\", 7]
";

    fn told(from: &str, to: &str) -> Result<(), String> {
        let text = LEFT.replace(from, to);
        let plan = from_toml(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        check_same_work(&plan, &from_toml(LEFT).unwrap(), 10)
    }

    #[test]
    fn an_answer_has_the_same_processes_tasks_and_dependencies() {
        assert_eq!(told("", ""), Ok(()));
        assert_eq!(told("planned_insns = 100", "planned_insns = 999"), Ok(()));
        assert_eq!(told("plan_id = 1", "plan_id = 2\ndealt_seq = 10"), Ok(()));
        let shorter = LEFT.replace("{ id = 2, planned_insns = 100 }, ", "");
        let why = told(LEFT, &shorter.replace("\"a\", \"a\"", "\"a\"")).unwrap_err();
        assert!(why.contains("the tasks of process a are [3] in its plan and [2, 3]"), "{why}");
        for (from, to, words) in [
            ("cpu = 1", "cpu = 0", "for the CPUs [0], and the question is about [1]"),
            ("plan_id = 1", "dealt_seq = 11", "before event 11, and the last one"),
            ("id = 4", "id = 5", "process a, which is not in the question"),
            ("id = 3", "id = 9", "the tasks of process a are [2, 9]"),
            (", after = [\"a/3\"]", "", "task 0 of process 7 waits for other tasks"),
        ] {
            let from_all = if from == "id = 3" { LEFT } else { from };
            let to_all = LEFT.replace("id = 3", "id = 9").replace("a/3", "a/9");
            let to_all = if from == "id = 3" { &to_all } else { to };
            let why = told(from_all, to_all).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let without = "plan_id = 1\n[[process]]\nid = 4\nname = \"a\"\ntasks = [{ id = 2, \
                       planned_insns = 1 }, 1]\n[[cpu]]\ncpu = 1\nslots = [\"a\", \"a\"]\n";
        assert_eq!(told(LEFT, without), Err("its plan has no process 7".into()));
    }
}
