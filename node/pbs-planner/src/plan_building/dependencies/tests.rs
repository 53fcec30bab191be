// SPDX-License-Identifier: GPL-2.0
//! Dependencies against a search for each task, and their work in a net that joins many processes.

use pbs_gen::nets::{machine, random_job, Random};
use pbs_job::{job_from_toml, Task};
use pbs_text::Problem;

use super::*;
use crate::plan_building::{class_plans, Entry, NodePlan, ProcessIds, Settings};
use crate::{Balancing, RunId, Store, TaskReservation};

const RUN: RunId = RunId(0);

/// Children of the initial process, which joins all of them, and a worker whose tasks all wait for
/// the last join.
fn joining(children: usize, waiting: usize, child: &str) -> Job {
    let mut text = String::from("name = \"hub\"\ndeadline_ns = 1_000_000_000\n");
    text += "[[process]]\nid = 0\nname = \"root\"\nmemory_bytes = 0\ntasks = [\n";
    text += &format!("{{ action = \"fork\", child = {} }},\n", children + 1);
    for id in 1..=children {
        text += &format!("{{ action = \"fork\", child = {id} }},\n");
    }
    for id in 1..=children {
        let name = if id == children { ", name = \"j\"" } else { "" };
        text += &format!("{{ action = \"join\", child = {id}{name} }},\n");
    }
    text += &format!("{{ action = \"join\", child = {} }}]\n", children + 1);
    for id in 1..=children {
        text += &format!("[[process]]\nid = {id}\nmemory_bytes = 0\ntasks = [{child}]\n");
    }
    text += &format!("[[process]]\nid = {}\nmemory_bytes = 0\ntasks = [", children + 1);
    text += &"{ insns = 1, after = [\"j\"] }, ".repeat(waiting);
    job_from_toml(&(text + "]\n")).expect("a valid job")
}

/// Each task after the one before it, all on one core.
fn placed(job: &Job) -> Store {
    let mut store = Store::new(machine(1, &[(1000, &[1_000_000_000])]), Balancing::Dynamic);
    let (mut run, mut end_ns) = (Run::default(), 0);
    for task in order(job, &vec![true; job.tasks.len()]) {
        let Task { process, insns, .. } = job.tasks[task];
        let start_ns = end_ns;
        end_ns += insns;
        let memory_bytes = 0;
        run.tasks.push(TaskReservation { task, process, core: 0, start_ns, end_ns, memory_bytes });
    }
    run.tasks.sort_unstable_by_key(|task| task.task);
    let mut booking = store.book();
    booking.reserve(RUN, run).expect("the core is free");
    booking.commit();
    store
}

fn plans_of(store: &Store, job: &Job) -> Result<Vec<NodePlan>, Vec<Problem>> {
    let entry = Entry { run: RUN, job, progress: &[], deadline_ns: u64::MAX };
    class_plans(store, &[entry], &mut ProcessIds::default(), &Settings::default())
}

/// Searches for each task anew.
fn searched(job: &Job, run: &Run) -> Vec<(usize, usize)> {
    let mut has_slot = vec![false; job.tasks.len()];
    for task in run.tasks.iter().filter(|task| task.start_ns < task.end_ns) {
        has_slot[task.task] = true;
    }
    let mut pairs = Vec::new();
    for task in (0..job.tasks.len()).filter(|&task| has_slot[task]) {
        let mut last = std::collections::BTreeMap::new();
        let mut seen = vec![false; job.tasks.len()];
        let mut way: Vec<usize> = job.predecessors(task).collect();
        while let Some(before) = way.pop() {
            if std::mem::replace(&mut seen[before], true) {
                continue;
            }
            let of = &job.tasks[before];
            if !has_slot[before] {
                way.extend(job.predecessors(before));
            } else if of.process != job.tasks[task].process {
                let last = last.entry(of.process).or_insert(of.position);
                *last = of.position.max(*last);
            }
        }
        let last = last.into_iter();
        pairs
            .extend(last.map(|(process, position)| (task, job.processes[process].tasks[position])));
    }
    pairs
}

#[test]
fn dependencies_are_those_of_a_search_for_each_task() {
    let mut pairs = 0;
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let mut job = random_job(random, 12, 4, 1);
        // More of them wait for each other, always for one of an earlier number.
        for _ in 0..random.below(8) {
            let tasks = job.tasks.len() as u64;
            let (one, other) = (random.below(tasks) as usize, random.below(tasks) as usize);
            let (before, after) = (one.min(other), one.max(other));
            if job.tasks[before].process != job.tasks[after].process {
                job.tasks[before].before.push(after);
                job.tasks[after].after.push(before);
            }
        }
        if order(&job, &vec![true; job.tasks.len()]).len() < job.tasks.len() {
            continue;
        }
        let store = placed(&job);
        let run = store.run(RUN).expect("it is planned");
        let mut found = awaited(&job, run).expect("they are few");
        let mut expected = searched(&job, run);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "seed {seed}");
        pairs += found.len();
    }
    assert!(pairs > 1000, "{pairs}");
}

#[test]
fn a_plan_passes_each_task_without_a_slot_once() {
    for child in ["{ action = \"fork_end\" }", "1"] {
        let job = joining(300, 1000, child);
        let store = placed(&job);
        tally::take();
        let plans = plans_of(&store, &job);
        let looked_at = tally::take();
        let plans = plans.expect("a valid plan");
        let tasks = plans.iter().flat_map(|node| &node.plan.processes).flat_map(|it| &it.tasks);
        let edges: usize = tasks.map(|task| task.after.len()).sum();
        let most = 4 * (job.tasks.len() + edges);
        assert!(looked_at <= most as u64, "{looked_at} of {edges} edges");
    }
}

#[test]
fn a_plan_of_too_many_dependencies_is_refused() {
    let job = joining(2100, 2100, "1");
    let store = placed(&job);
    let problems = plans_of(&store, &job).expect_err("they are too many");
    let message = &problems[0].message;
    assert!(message.starts_with("with job hub, the tasks of the plan wait"), "{message}");
    assert_eq!(awaited(&job, store.run(RUN).unwrap()), None);
}
