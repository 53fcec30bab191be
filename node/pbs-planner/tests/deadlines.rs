// SPDX-License-Identifier: GPL-2.0
//! Plans whose processes run by deadline.

mod common;

use std::collections::BTreeSet;

use common::nets::{machine, random_job, Random};
use pbs_job::Job;
use pbs_plan::{Config, Dispatch, Plan};
use pbs_planner::plan_building::{class_plans, Entry, ProcessIds, Settings};
use pbs_planner::{reserve, Balancing, Options, Request, RunId, Store};

const NS_PER_S: u64 = 1_000_000_000;

fn settings(dispatch: Dispatch, start_ns: u64) -> Settings {
    let config = Config { dispatch: dispatch as u64, ..Config::DEFAULT };
    Settings { config: Some(config), start_ns, ..Settings::default() }
}

/// The plan of the only node for jobs with their deadlines, which are all planned.
fn plan(memory_bytes: u64, cores: usize, jobs: &[Job], settings: &Settings) -> Plan {
    let rates = vec![NS_PER_S; cores];
    let mut store = Store::new(machine(1, &[(memory_bytes, &rates)]), Balancing::Dynamic);
    let mut entries = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let request = Request::new(RunId(number as u64), job);
        reserve(&mut store, &request, &Options::default()).unwrap();
        let (run, deadline_ns) = (request.run, job.deadline_ns);
        entries.push(Entry { run, job, progress: &[], deadline_ns });
    }
    let mut ids = ProcessIds::default();
    class_plans(&store, &entries, &mut ids, settings).unwrap().remove(0).plan
}

fn deadlines_ns(plan: &Plan) -> Vec<Option<u64>> {
    plan.processes.iter().map(|process| process.deadline_ns).collect()
}

#[test]
fn a_child_has_to_end_before_what_its_parent_has_left() {
    let text = "name = \"fork\"\ndeadline_ns = 1_000_000\n\
         [[process]]\nid = 1\nname = \"parent\"\nmemory_bytes = 1\n\
         tasks = [10, { action = \"fork\", child = \"child\" }, 20, \
                  { action = \"join\", child = \"child\" }, 30]\n\
         [[process]]\nid = 2\nname = \"child\"\nmemory_bytes = 1\ntasks = [40, 50]\n";
    let job = pbs_job::job_from_toml(text).unwrap();
    let jobs = [job.clone()];
    let of = |dispatch, start_ns| deadlines_ns(&plan(10, 2, &jobs, &settings(dispatch, start_ns)));
    assert_eq!(of(Dispatch::Deadline, 0), [Some(1_000_000), Some(999_970)]);
    // Deadlines count from the start of the plan; one that has passed is 0.
    assert_eq!(of(Dispatch::Deadline, 100), [Some(999_900), Some(999_870)]);
    assert_eq!(of(Dispatch::Deadline, 999_980), [Some(20), Some(0)]);
    assert_eq!(of(Dispatch::Thesis, 0), [None, None]);
    let patient = [Job { deadline_ns: u64::MAX, ..job }];
    let plan = plan(10, 2, &patient, &settings(Dispatch::Deadline, 0));
    assert_eq!(deadlines_ns(&plan), [None, None]);
}

/// The second job gets the memory of the first, the third that of the second. What waits for
/// memory sets the deadline of who has it.
#[test]
fn memory_is_given_back_in_time_for_the_next() {
    let job = |name: &str, deadline_ns: u64| {
        let text = format!(
            "name = \"{name}\"\ndeadline_ns = {deadline_ns}\n\
             [[process]]\nid = 0\nmemory_bytes = 60\ntasks = [100, 200]\n"
        );
        pbs_job::job_from_toml(&text).unwrap()
    };
    let jobs = [job("first", 5_000), job("second", 9_000), job("third", 2_000)];
    let after = |plan: &Plan| {
        let first = plan.processes.iter().map(|process| &process.tasks[0].after);
        first.map(|after| after.iter().map(|it| it.process).collect()).collect::<Vec<Vec<u32>>>()
    };
    let scarce = plan(100, 2, &jobs, &settings(Dispatch::Deadline, 0));
    assert_eq!(after(&scarce), [vec![], vec![0], vec![0, 1]]);
    assert_eq!(deadlines_ns(&scarce), [Some(1_400), Some(1_700), Some(2_000)]);
    let ample = plan(1_000, 2, &jobs, &settings(Dispatch::Deadline, 0));
    assert_eq!(after(&ample), [vec![0; 0], vec![], vec![]]);
    assert_eq!(deadlines_ns(&ample), [Some(5_000), Some(9_000), Some(2_000)]);
}

/// Tasks begin and end at any time that the plan's edges allow, far from the times that were
/// reserved: there is memory for all processes that have begun.
#[test]
fn memory_holds_in_any_order_that_the_edges_allow() {
    let mut waits = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let jobs: Vec<_> = (0..5).map(|_| random_job(random, 3, 4, 60)).collect();
        let jobs: Vec<_> =
            jobs.into_iter().map(|job| Job { deadline_ns: u64::MAX, ..job }).collect();
        let memory = jobs.iter().flat_map(|job| &job.processes).map(|it| it.memory_bytes);
        let of_job = |job: &Job| job.processes.iter().map(|it| it.memory_bytes).sum::<u64>();
        let most = jobs.iter().map(of_job).max().unwrap();
        let memory_bytes = most.max(memory.sum::<u64>() / 3);
        let plan = plan(memory_bytes, 3, &jobs, &settings(Dispatch::Deadline, 0));
        for _ in 0..20 {
            waits += run_at_random(&plan, memory_bytes, random);
        }
    }
    assert!(waits > 1_000, "{waits}");
}

/// Runs a plan at random; returns how often a task had to wait for another process.
fn run_at_random(plan: &Plan, memory_bytes: u64, random: &mut Random) -> usize {
    // Per process: the place of its task, and whether that one has begun.
    let mut places = vec![(0, false); plan.processes.len()];
    let mut ended = BTreeSet::new();
    let mut waits = 0;
    loop {
        let open = |index: &usize| places[*index].0 < plan.processes[*index].tasks.len();
        let open: Vec<usize> = (0..places.len()).filter(open).collect();
        let mut ready = Vec::new();
        for &index in &open {
            let (place, has_begun) = places[index];
            let task = &plan.processes[index].tasks[place];
            let is_free = |after: &pbs_plan::After| ended.contains(&(after.process, after.task));
            if has_begun || task.after.iter().all(is_free) {
                ready.push(index);
            } else {
                waits += 1;
            }
        }
        assert_eq!(open.is_empty(), ready.is_empty(), "the plan does not go on");
        if ready.is_empty() {
            return waits;
        }
        let index = ready[random.below(ready.len() as u64) as usize];
        let process = &plan.processes[index];
        let (place, has_begun) = &mut places[index];
        if *has_begun {
            ended.insert((process.id, process.tasks[*place].id));
            *place += 1;
        }
        *has_begun = !*has_begun;
        let held = plan
            .processes
            .iter()
            .zip(&places)
            .filter(|(process, place)| **place != (0, false) && place.0 < process.tasks.len());
        let held_bytes: u64 = held.map(|(process, _)| process.memory_bytes).sum();
        assert!(held_bytes <= memory_bytes, "{held_bytes} of {memory_bytes}");
    }
}
