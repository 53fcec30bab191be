// SPDX-License-Identifier: GPL-2.0
//! Licences on a node that deviates from its plans: whatever is planned anew, no two processes hold
//! what only one can hold.

mod common;

use common::{job, machine, run, Loop};
use pbs_control::{Controller, Options, Pace};
use pbs_job::{Amount, Job, Machine, Resource};
use pbs_plan::{Config, Plan};
use pbs_planner::plan_building::planner_config;
use pbs_planner::RunId;
use pbs_random::Random;
use pbs_sim::Simulation;
use pbs_uapi::{Event, EventKind};

const MS: u64 = 1_000_000;

fn amount(count: u64) -> Amount {
    Amount { resource: "matlab".into(), count }
}

/// One core, and so many licences.
fn licensed(count: u64) -> Machine {
    let mut machine = machine();
    machine.resources = vec![Resource { name: "matlab".into(), count, ..Resource::default() }];
    machine
}

/// Per process of the plan: a time at which it has begun at the latest, and its end.
fn lives(plan: &Plan, simulation: &Simulation) -> Vec<(u64, u64)> {
    let lives = plan.processes.iter().map(|process| {
        let tasks = simulation.tasks.iter().filter(|task| task.process == process.id);
        let first = tasks.min_by_key(|task| task.ended_ns).unwrap();
        // At 10⁹ instructions in a second, each takes a nanosecond.
        let begun_ns = first.ended_ns.unwrap().saturating_sub(first.retired_insns);
        let ended = simulation.processes.iter().find(|it| it.id == process.id).unwrap();
        (begun_ns, ended.ended_ns.unwrap())
    });
    lives.collect()
}

#[test]
fn no_two_hold_one_licence_whatever_is_late() {
    let (mut apart, mut together, mut answers) = (0, 0, 0);
    for seed in 0..80 {
        let random = &mut Random::new(seed);
        let count = 1 + random.below(2);
        // Slots that stay where they are planned, and slots that float.
        let config = (seed % 2 == 1).then(|| planner_config(Config::DEFAULT));
        let options = Options { pace: Pace::new(0, 0), config, ..Options::default() };
        let mut controller = Controller::new(licensed(count), options, 1, 1);
        let (mut held, mut real) = (Vec::new(), Vec::new());
        for number in 0..6 {
            let insns: Vec<u64> =
                (0..2 + random.below(2)).map(|_| (5 + random.below(60)) * MS).collect();
            let deadline_ns = (600 + random.below(1_500)) * MS;
            let mut job = job(&format!("job{number}"), &insns, deadline_ns);
            job.priority = random.below(3) as u32;
            let holds = random.below(3).min(count);
            if holds > 0 && random.below(2) == 0 {
                job.resources = vec![amount(holds)];
            } else if holds > 0 {
                job.processes[0].resources = vec![amount(holds)];
            }
            if controller.admit(job, 0).is_ok() {
                held.push(holds);
                let late = |insns: &u64| insns * (60 + random.below(100)) / 100;
                real.push(insns.iter().map(late).collect::<Vec<_>>());
            }
        }
        let mut scheduler = Loop::new(&mut controller);
        let plan = scheduler.first_plan();
        let simulation = run(&plan, &real, &mut scheduler);
        answers += scheduler.answers;
        let lives = lives(&plan, &simulation);
        for (one, &(_, end_ns)) in lives.iter().enumerate() {
            for (other, &(begun_ns, other_ns)) in lives.iter().enumerate() {
                let overlap = one != other && begun_ns < end_ns && end_ns <= other_ns;
                if held[one] + held[other] > count && held[one].min(held[other]) > 0 {
                    apart += usize::from(one != other);
                    assert!(!overlap, "seed {seed}: {one} until {end_ns}, {other} from {begun_ns}");
                } else {
                    together += usize::from(overlap);
                }
            }
        }
    }
    let told = format!("{apart} apart, {together} together, {answers} answers");
    assert!(apart > 100 && together > 20 && answers > 30, "{told}");
}

/// A process of best effort that has begun keeps its licence; a job with a promise cannot have it.
#[test]
fn best_effort_keeps_its_licence() {
    for of_job in [false, true] {
        let options = Options { pace: Pace::new(0, 0), ..Options::default() };
        let mut controller = Controller::new(licensed(1), options, 1, 1);
        let with = |name: &str, deadline_ns| {
            let mut job = job(name, &[100 * MS; 2], deadline_ns);
            if of_job {
                job.resources = vec![amount(1)];
            } else {
                job.processes[0].resources = vec![amount(1)];
            }
            job
        };
        let slow = Job { best_effort: true, ..with("slow", 5_000 * MS) };
        let slow = controller.admit(slow, 0).unwrap().run;
        let before = controller.admit(with("before", 5_000 * MS), 0);
        assert!(before.is_ok(), "it has not begun");
        controller.cancel(before.unwrap().run);
        controller.plan(0).unwrap().unwrap();
        controller.taken();
        begin(&mut controller, slow);
        let refused = controller.admit(with("promised", 5_000 * MS), 150 * MS);
        assert!(refused.is_err(), "{of_job}");
        let other = job("other", &[100 * MS; 2], 5_000 * MS);
        assert!(controller.admit(other, 150 * MS).is_ok());
    }
}

/// A process of best effort that has begun keeps its licence until another job has it by a promise
/// from before.
#[test]
fn best_effort_keeps_its_licence_until_an_earlier_promise() {
    let options = Options { pace: Pace::new(0, 0), ..Options::default() };
    let mut controller = Controller::new(licensed(1), options, 1, 1);
    let with = |name: &str, start_ns, deadline_ns| {
        let mut job = job(name, &[100 * MS; 2], deadline_ns);
        job.processes[0].resources = vec![amount(1)];
        Job { start_ns, ..job }
    };
    let slow = Job { best_effort: true, ..with("slow", 0, 5_000 * MS) };
    let slow = controller.admit(slow, 0).unwrap().run;
    let promised = controller.admit(with("promised", 2_000 * MS, 5_000 * MS), 0);
    assert!(promised.is_ok(), "it has not begun");
    controller.plan(0).unwrap().unwrap();
    controller.taken();
    begin(&mut controller, slow);
    let refused = controller.admit(with("before it", 0, 1_500 * MS), 150 * MS);
    assert!(refused.is_err());
}

/// The first task of the run has ended.
fn begin(controller: &mut Controller, run: RunId) {
    let process = controller.number(run, 0);
    let kinds = [EventKind::Attached, EventKind::TaskEnded];
    for (seq, kind) in (0..).zip(kinds) {
        controller.event(&Event {
            seq,
            kind: kind as u16,
            process,
            retired_insns: 100 * MS * u64::from(kind == EventKind::TaskEnded),
            ..Event::default()
        });
    }
}
