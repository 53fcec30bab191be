// SPDX-License-Identifier: GPL-2.0
//! Licences on a node that deviates from its plans: whatever is planned anew, no two processes hold
//! what only one can hold.

mod common;

use std::collections::BTreeMap;

use common::{job, machine, run, Loop};
use pbs_control::{Answer, Controller, Options, Pace};
use pbs_job::{job_from_toml, Amount, Core, Job, Machine, Resource};
use pbs_plan::{Config, Plan};
use pbs_planner::plan_building::planner_config;
use pbs_planner::RunId;
use pbs_random::Random;
use pbs_sim::Simulation;
use pbs_uapi::{Cause, Event, EventKind};

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

/// A smaller amount is in force when what is held and promised fits into it, and takes nothing from
/// a run that is late meanwhile.
#[test]
fn a_smaller_amount_waits_for_what_was_promised() {
    let mut machine = licensed(2);
    let core = &machine.nodes[0].cores[0];
    let other = Core { name: "other".into(), cpu: Some(1), ..core.clone() };
    machine.nodes[0].cores.push(other);
    let options = Options { pace: Pace::new(0, 0), ..Options::default() };
    let mut controller = Controller::new(machine, options, 1, 1);
    let holder = |name: &str| {
        let mut job = job(name, &[100 * MS; 2], 5_000 * MS);
        job.processes[0].resources = vec![amount(1)];
        job
    };
    let runs = ["one", "two"].map(|name| controller.admit(holder(name), 0).unwrap().run);
    controller.plan(0).unwrap().unwrap();
    controller.taken();
    assert_eq!(controller.most_held(0, 0), 2);
    for count in [1, 0] {
        assert!(!controller.set_amount(0, count, 10 * MS));
    }
    // By their reservations, both have ended at that time.
    for run in runs {
        begin(&mut controller, run);
    }
    assert_eq!(controller.most_held(0, 300 * MS), 2);
    assert!(!controller.set_amount(0, 1, 300 * MS));
    assert!(controller.renew(300 * MS).is_empty());
    assert!(runs.iter().all(|&run| controller.store().run(run).is_some()));
    controller.cancel(runs[0]);
    assert!(controller.set_amount(0, 1, 310 * MS));
    let next = controller.admit(holder("next"), 310 * MS).unwrap();
    let held_until_ns = controller.store().run(runs[1]).unwrap().end_ns();
    let holds_from_ns = |controller: &Controller, run: RunId| {
        controller.store().run(run).unwrap().held(0).map(|(start_ns, ..)| start_ns).min().unwrap()
    };
    assert!(holds_from_ns(&controller, next.run) >= held_until_ns);
    assert!(!controller.set_amount(0, 0, 310 * MS));
    // More is there at once, for others as well.
    assert!(controller.set_amount(0, 3, 310 * MS));
    let more = controller.admit(holder("more"), 310 * MS).unwrap();
    assert!(holds_from_ns(&controller, more.run) < held_until_ns);
    assert!(!controller.set_amount(7, 3, 310 * MS));
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

/// A job of that many processes beside each other which as a whole holds a licence.
fn whole(name: &str, lengths_ms: &[[u64; 2]], holds: u64, deadline_ns: u64) -> Job {
    let processes = lengths_ms.iter().enumerate().map(|(number, [first, second])| {
        let (id, first, second) = (number + 1, first * MS, second * MS);
        format!("[[process]]\nid = {id}\nmemory_bytes = 1_000_000\ntasks = [{first}, {second}]\n")
    });
    let processes: String = processes.collect();
    let text = format!(
        "name = \"{name}\"\ndeadline_ns = {deadline_ns}\nresources = {{ matlab = {holds} }}\n\
         {processes}"
    );
    job_from_toml(&text).unwrap()
}

/// Instructions of each process's tasks.
fn lengths_insns(job: &Job) -> Vec<Vec<u64>> {
    let of_process = |tasks: &Vec<usize>| tasks.iter().map(|&task| job.tasks[task].insns).collect();
    job.processes.iter().map(|process| of_process(&process.tasks)).collect()
}

/// A job holds a licence from its first process to its last, whatever is late, and has a place in
/// every plan: also where a program begins by a plan that is about to be replaced.
#[test]
fn no_two_jobs_hold_one_licence_whatever_is_late() {
    let (mut holders, mut answers, mut refused) = (0, 0, 0);
    let (mut wrong, mut lost) = (Vec::new(), Vec::new());
    for seed in 0..800 {
        let random = &mut Random::new(seed);
        let reschedule_time_ns = [0, 30 * MS][usize::from(seed % 4 > 1)];
        let config = Config { reschedule_time_ns, ..Config::DEFAULT };
        let config = Some(if seed % 2 == 1 { planner_config(config) } else { config });
        let options = Options { pace: Pace::new(0, 0), config, ..Options::default() };
        let mut controller = Controller::new(licensed(1), options, 1, 1);
        let (mut runs, mut real) = (Vec::new(), BTreeMap::new());
        for number in 0..4 {
            let name = format!("job{number}");
            let length_ms = |random: &mut Random| 5 + random.below(60);
            let processes = 0..1 + random.index(3);
            let lengths_ms = processes.map(|_| [length_ms(random), length_ms(random)]);
            let lengths_ms: Vec<_> = lengths_ms.collect();
            let deadline_ns = (300 + random.below(1_500)) * MS;
            let mut job = match random.below(4) {
                0 => job(&name, &[20 * MS, 30 * MS], deadline_ns),
                _ => whole(&name, &lengths_ms, 1, deadline_ns),
            };
            job.priority = random.below(3) as u32;
            let (is_holder, lengths_insns) = (!job.resources.is_empty(), lengths_insns(&job));
            let Ok(admitted) = controller.admit(job, 0) else {
                continue;
            };
            runs.push((admitted.run, is_holder));
            for (process, insns) in lengths_insns.into_iter().enumerate() {
                let with_work = insns.into_iter().filter(|insns| *insns > 0);
                let late = with_work.map(|insns| insns * (60 + random.below(140)) / 100);
                real.insert((admitted.run, process), late.collect::<Vec<u64>>());
            }
        }
        let mut scheduler = Loop::new(&mut controller);
        let plan = scheduler.first_plan();
        let ids = plan.processes.iter().map(|process| process.id);
        let of: Vec<_> = ids.map(|id| scheduler.controller().process(id).unwrap()).collect();
        let real: Vec<_> = of.iter().map(|of| real[of].clone()).collect();
        let simulation = run(&plan, &real, &mut scheduler);
        answers += scheduler.answers;
        refused += simulation.replans.iter().filter(|replan| replan.refused.is_some()).count();
        let without_place = scheduler.missed.iter().find(|missed| missed.by_ns.is_none());
        if without_place.is_some() {
            lost.push(seed);
            continue;
        }
        let lives = lives(&plan, &simulation);
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for (run, _) in runs.into_iter().filter(|(_, is_holder)| *is_holder) {
            let of_run = lives.iter().zip(&of).filter(|(_, of)| of.0 == run).map(|(life, _)| *life);
            spans.extend(of_run.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))));
        }
        spans.sort_unstable();
        wrong.extend(spans.windows(2).any(|pair| pair[0].1 > pair[1].0).then_some(seed));
        holders += spans.len();
    }
    assert_eq!(
        (&wrong[..], &lost[..]),
        (&[][..], &[][..]),
        "{holders} holders, {answers} answers, {refused} refused plans"
    );
    let told = format!("{holders} holders, {answers} answers, {refused} refused plans");
    assert!(holders > 1_200 && answers > 1_200 && refused > 0, "{told}");
}

/// A late job holds what another one waits for: it loses its own deadline, and nobody else does.
#[test]
fn a_late_holder_costs_no_innocent_its_deadline() {
    for is_memory in [false, true] {
        let config = Some(planner_config(Config { reschedule_time_ns: 0, ..Config::DEFAULT }));
        let options = Options { pace: Pace::new(0, 0), config, ..Options::default() };
        let mut controller = Controller::new(licensed(1), options, 1, 1);
        let lengths_insns = [[100 * MS, 50 * MS], [100 * MS; 2], [100 * MS; 2]];
        let deadlines_ns = [600 * MS, 560 * MS, 5_000 * MS];
        let names = ["late", "innocent", "waits"];
        let of = |number: usize| {
            let mut job = job(names[number], &lengths_insns[number], deadlines_ns[number]);
            match (number, is_memory) {
                (1, _) => {}
                (_, true) => job.processes[0].memory_bytes = 600 << 20,
                (_, false) => job.resources = vec![amount(1)],
            }
            job.start_ns = if number == 2 { 2_000 * MS } else { 0 };
            job
        };
        let runs = [0, 1, 2].map(|number| controller.admit(of(number), 0).unwrap().run);
        controller.plan(0).unwrap().unwrap();
        let process = controller.number(runs[0], 0);
        let late = Event {
            kind: EventKind::Late as u16,
            reason: Cause::Task as u16,
            process,
            retired_insns: 300 * MS,
            ..Event::default()
        };
        controller.event(&Event { kind: EventKind::Attached as u16, process, ..Event::default() });
        controller.event(&Event { seq: 1, ..late });
        let Answer::Plan { missed, .. } = controller.answer(320 * MS).unwrap() else {
            panic!("a task beyond t2 is answered");
        };
        let missed: Vec<_> = missed.iter().map(|it| (it.run, it.by_ns.is_some())).collect();
        assert_eq!(missed, [(runs[0], true)], "memory: {is_memory}");
    }
}

/// A late job and best effort hold memory. A job that needs more than both leave waits for the late
/// one, which therefore ends before a long job that needs little.
#[test]
fn best_effort_leaves_its_memory_to_nobody_that_waits() {
    let config = Some(planner_config(Config { reschedule_time_ns: 0, ..Config::DEFAULT }));
    let options = Options { pace: Pace::new(0, 0), config, ..Options::default() };
    let mut controller = Controller::new(machine(), options, 1, 1);
    let of = |name: &str, insns: [u64; 2], deadline_ms: u64, mib: u64| {
        let mut job = job(name, &insns, deadline_ms * MS);
        job.processes[0].memory_bytes = mib << 20;
        job
    };
    let slow = Job { best_effort: true, ..of("slow", [100 * MS; 2], 9_000, 300) };
    let slow = controller.admit(slow, 0).unwrap().run;
    let late = of("late", [100 * MS, 50 * MS], 6_000, 300);
    let late = controller.admit(late, 0).unwrap().run;
    let waits = of("waits", [100 * MS; 2], 1_500, 500);
    let waits = controller.admit(waits, 0).unwrap().run;
    let long = of("long", [1_000 * MS; 2], 4_000, 1);
    controller.admit(long, 0).unwrap();
    controller.plan(0).unwrap().unwrap();
    controller.taken();
    begin(&mut controller, slow);
    let process = controller.number(late, 0);
    controller.event(&Event {
        seq: 2,
        kind: EventKind::Attached as u16,
        process,
        ..Event::default()
    });
    controller.event(&Event {
        seq: 3,
        kind: EventKind::Late as u16,
        reason: Cause::Task as u16,
        process,
        retired_insns: 300 * MS,
        ..Event::default()
    });
    let Answer::Plan { missed, .. } = controller.answer(450 * MS).unwrap() else {
        panic!("a task beyond t2 is answered");
    };
    assert!(missed.iter().all(|missed| missed.run != waits), "{missed:?}");
    let ends = [late, waits].map(|run| controller.run(run).unwrap().planned_end_ns.unwrap());
    assert!(ends[0] < ends[1], "{ends:?}");
}

/// Jobs that together need more memory than there is have it one after the other, whatever is late,
/// and each has a place in every plan.
#[test]
fn memory_is_held_in_turn_whatever_is_late() {
    let mut answers = 0;
    let (mut wrong, mut lost) = (Vec::new(), Vec::new());
    for seed in 0..800 {
        let random = &mut Random::new(seed);
        let reschedule_time_ns = [0, 30 * MS][usize::from(seed % 4 > 1)];
        let config = Config { reschedule_time_ns, ..Config::DEFAULT };
        let config = Some(if seed % 2 == 1 { planner_config(config) } else { config });
        let options = Options { pace: Pace::new(0, 0), config, ..Options::default() };
        let mut controller = Controller::new(machine(), options, 1, 1);
        let (mut held_bytes, mut real) = (Vec::new(), Vec::new());
        for number in 0..6 {
            let insns: Vec<u64> =
                (0..2 + random.below(2)).map(|_| (5 + random.below(60)) * MS).collect();
            let deadline_ns = (300 + random.below(1_500)) * MS;
            let mut job = job(&format!("job{number}"), &insns, deadline_ns);
            job.priority = random.below(3) as u32;
            job.processes[0].memory_bytes = (100 + random.below(700)) << 20;
            let bytes = job.processes[0].memory_bytes;
            if controller.admit(job, 0).is_ok() {
                held_bytes.push(bytes);
                let late = |insns: &u64| insns * (60 + random.below(140)) / 100;
                real.push(insns.iter().map(late).collect::<Vec<_>>());
            }
        }
        let mut scheduler = Loop::new(&mut controller);
        let plan = scheduler.first_plan();
        let simulation = run(&plan, &real, &mut scheduler);
        answers += scheduler.answers;
        let without_place = scheduler.missed.iter().find(|missed| missed.by_ns.is_none());
        if without_place.is_some() {
            lost.push(seed);
            continue;
        }
        let lives = lives(&plan, &simulation);
        for &(at_ns, _) in &lives {
            let alive = lives.iter().zip(&held_bytes);
            let alive =
                alive.filter(|((begun_ns, end_ns), _)| *begun_ns <= at_ns && at_ns < *end_ns);
            let used_bytes: u64 = alive.map(|(_, bytes)| bytes).sum();
            wrong.extend((used_bytes > 1 << 30).then_some(seed));
        }
    }
    assert_eq!((&wrong[..], &lost[..]), (&[][..], &[][..]), "{answers} answers");
    assert!(answers > 800, "{answers}");
}
