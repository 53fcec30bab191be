// SPDX-License-Identifier: GPL-2.0
//! Jobs whose processes are each confined by themselves, and whose tasks name others
//! that they wait for: the lanes of tasks that run on several CPUs at once.

mod common;

use std::fmt::Write;

use common::nets::Random;
use pbs_job::{job_from_toml, job_to_toml, machine_from_toml, Job, Machine};
use pbs_planner::plan_building::{class_plans, Entry, ProcessIds, Settings};
use pbs_planner::{reserve, Balancing, Lack, Options, Request, RunId, Store};

const MACHINE: &str = r#"
    [[node]]
    name = "n"
    memory_bytes = 1_000_000_000
    rate_insns_per_s = 1_000_000_000
    cores = ["c0", "c1", "c2", { name = "c3", cpu = 7 }]
"#;

fn machine() -> Machine {
    machine_from_toml(MACHINE).unwrap()
}

/// Processes that nobody forks, each on some CPUs, whose tasks wait for tasks of
/// processes before them.
fn lanes(random: &mut Random) -> Job {
    let mut text = String::from("name = \"lanes\"\ndeadline_ns = \"100s\"\n");
    for process in 0..2 + random.below(5) {
        let cpus = random.of(&["[0]", "[1]", "[2]", "[7]", "[0, 7]"]);
        let _ = write!(
            text,
            "[[process]]\nid = {process}\nmemory_bytes = 1_000\ncpus = {cpus}\ntasks = ["
        );
        for task in 0..3 {
            let insns = 1_000_000 * (1 + random.below(50));
            let mut after: Vec<String> = Vec::new();
            for before in 0..process {
                if random.below(3) == 0 {
                    after.push(format!("\"t{before}.{}\"", random.below(3)));
                }
            }
            let after = after.join(", ");
            let _ = write!(
                text,
                "{{ name = \"t{process}.{task}\", insns = {insns}, after = [{after}] }}, "
            );
        }
        text.push_str("]\n");
    }
    job_from_toml(&text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

#[test]
fn lanes_are_planned_on_their_cpus_and_in_order() {
    let machine = machine();
    let cpus: Vec<u32> = machine.cpus().collect();
    let mut waits = 0;
    for seed in 0..200 {
        let job = lanes(&mut Random::new(seed));
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let request = Request::new(RunId(1), &job);
        reserve(&mut store, &request, &Options::default()).unwrap();
        let run = store.run(RunId(1)).unwrap();
        let end_ns = |task| run.tasks.iter().find(|it| it.task == task).unwrap().end_ns;
        for task in &run.tasks {
            let process = &job.processes[job.tasks[task.task].process];
            let is_there = process.cpus.is_empty() || process.cpus.contains(&cpus[task.core]);
            assert!(is_there, "seed {seed}: {process:?} is on {}", cpus[task.core]);
            for before in job.predecessors(task.task) {
                assert!(end_ns(before) <= task.start_ns, "seed {seed}: {before}, {task:?}");
                assert!(job.successors(before).any(|after| after == task.task));
            }
        }
        // The node is told of each wait, or of one that comes after it.
        let mut ids = ProcessIds::default();
        let entry = Entry { run: RunId(1), job: &job, progress: &[], deadline_ns: u64::MAX };
        let plans = class_plans(&store, &[entry], &mut ids, &Settings::default());
        let plan = &plans.unwrap()[0].plan;
        let told = plan.processes.iter().flat_map(|process| &process.tasks);
        waits += told.map(|task| task.after.len()).sum::<usize>();
    }
    assert!(waits > 500, "{waits}");
}

#[test]
fn a_task_begins_when_the_last_that_it_names_has_ended() {
    let text = r#"
        name = "barrier"
        deadline_ns = "1s"
        [[process]]
        id = 1
        memory_bytes = 0
        cpus = [0]
        tasks = [{ name = "a0", insns = 10_000_000 }, { name = "b", insns = 5_000_000, after = ["a1", 3] }]
        [[process]]
        id = 2
        memory_bytes = 0
        cpus = [7]
        tasks = [{ name = "a1", insns = 30_000_000 }, { id = 3, insns = 1_000_000 }]
    "#;
    let job = job_from_toml(text).unwrap();
    let again = job_from_toml(&job_to_toml(&job)).unwrap();
    let figures = |job: &Job| -> Vec<_> {
        let tasks = job.tasks.iter();
        tasks.map(|task| (task.id, task.after.clone(), task.before.clone())).collect()
    };
    assert_eq!(figures(&again), figures(&job));
    let mut store = Store::new(machine(), Balancing::Dynamic);
    let request = Request::new(RunId(1), &job);
    reserve(&mut store, &request, &Options::default()).unwrap();
    let run = store.run(RunId(1)).unwrap();
    let b = job.tasks.iter().position(|task| task.name.as_deref() == Some("b"));
    let placed = run.tasks.iter().find(|task| Some(task.task) == b).unwrap();
    assert_eq!((placed.start_ns, placed.end_ns), (31_000_000, 36_000_000));

    let elsewhere = text.replace("cpus = [7]", "cpus = [7, 9]");
    let job = job_from_toml(&elsewhere).unwrap();
    let refused = reserve(&mut store, &Request::new(RunId(2), &job), &Options::default());
    assert_eq!(refused.unwrap_err().best.lack, Lack::Cpu { cpu: 9 });
}

#[test]
fn what_is_wrong_with_lanes_is_told() {
    let text = r#"
        name = "wrong"
        deadline_ns = "1s"
        cpus = [0, 1]
        [[process]]
        id = 1
        memory_bytes = 0
        cpus = [2]
        tasks = [{ name = "a", insns = 1, after = ["b", "a", "c", "b"] }, { name = "a2", insns = 1, after = ["a"] }]
        [[process]]
        id = 2
        memory_bytes = 0
        cpus = [1, 1]
        tasks = [{ name = "b", insns = 1, after = ["a2"] }]
    "#;
    let problems = job_from_toml(text).unwrap_err();
    let told: Vec<String> =
        problems.iter().map(|problem| format!("{:?}: {}", problem.line, problem.message)).collect();
    let expected = ["waits for task c, which is not there", "CPU 1 twice"];
    for part in expected {
        assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:#?}");
    }
    let text = text.replace(", \"c\"", "").replace("[1, 1]", "[1]");
    let told = job_from_toml(&text).unwrap_err();
    let told: Vec<String> =
        told.iter().map(|problem| format!("{:?}: {}", problem.line, problem.message)).collect();
    let expected = [
        "process 1 is confined to CPU 2, which is none",
        "waits for itself",
        "task 2 twice",
        "waits for task 0 of its own process",
        "wait for each other in a circle",
    ];
    for part in expected {
        assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:#?}");
    }
}
