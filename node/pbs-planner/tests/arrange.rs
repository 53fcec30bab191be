// SPDX-License-Identifier: GPL-2.0
//! Runs that are planned anew together: the same places in another order.

mod common;

use common::checker::check;
use common::nets::{random_job, Random};
use common::{question_and_answer, random_machine, whole_ns};
use pbs_job::Job;
use pbs_planner::{arrange, reserve, Balancing, NotArranged, Options, Request, RunId, Store, Turn};

/// All tasks of the jobs that take instructions, in a random order in which each comes
/// after those that it waits for.
fn turns(random: &mut Random, jobs: &[(RunId, &Job)]) -> Vec<Turn> {
    let mut waits: Vec<Vec<usize>> = Vec::new();
    for (_, job) in jobs {
        let count = |task| job.predecessors(task).count();
        waits.push((0..job.tasks.len()).map(count).collect());
    }
    let mut ready: Vec<(usize, usize)> = Vec::new();
    for (place, of) in waits.iter().enumerate() {
        let free = of.iter().enumerate().filter(|(_, waits)| **waits == 0);
        ready.extend(free.map(|(task, _)| (place, task)));
    }
    let mut turns = Vec::new();
    while !ready.is_empty() {
        let next = random.below(ready.len() as u64) as usize;
        let (place, task) = ready.swap_remove(next);
        let (run, job) = jobs[place];
        if job.tasks[task].insns > 0 {
            turns.push(Turn { run, task, stretch_permille: 1000 + 500 * random.below(2) });
        }
        for after in job.successors(task) {
            waits[place][after] -= 1;
            if waits[place][after] == 0 {
                ready.push((place, after));
            }
        }
    }
    turns
}

#[test]
fn runs_are_arranged_in_any_order_of_turns() {
    let (mut arranged, mut late) = (0, 0);
    for seed in 0..120 {
        let random = &mut Random::new(seed);
        let machine = random_machine(random);
        let mut store = Store::new(machine, Balancing::Dynamic);
        let jobs: Vec<Job> = (0..3).map(|_| random_job(random, 4, 4, 50)).collect();
        let mut planned = Vec::new();
        for (number, job) in (0..).zip(&jobs) {
            let mut request = Request::new(RunId(number), job);
            request.deadline_ns = whole_ns(job) * (1 + random.below(4));
            if reserve(&mut store, &request, &Options::default()).is_ok() {
                planned.push(request);
            }
        }
        // The first stays where it is.
        let Some((first, others)) = planned.split_first() else {
            continue;
        };
        let named: Vec<(RunId, &Job)> = others.iter().map(|of| (of.run, of.job)).collect();
        let turns = turns(random, &named);
        let before = store.clone();
        match arrange(&mut store, others, &turns) {
            Ok(()) => arranged += usize::from(!others.is_empty()),
            Err(why) => {
                late += usize::from(matches!(why, NotArranged::Late { .. }));
                for request in &planned {
                    assert_eq!(store.run(request.run), before.run(request.run));
                }
                continue;
            }
        }
        assert_eq!(store.run(first.run), before.run(first.run));
        let runs: Vec<_> =
            planned.iter().map(|of| (of.run, of.job, of.start_ns, of.deadline_ns)).collect();
        let mut last_ns = std::collections::BTreeMap::new();
        for turn in &turns {
            let run = store.run(turn.run).unwrap();
            let task = &run.tasks[turn.task];
            assert_eq!(task.core, before.run(turn.run).unwrap().tasks[turn.task].core);
            // In their order on each core.
            let end_ns = last_ns.insert(task.core, task.end_ns);
            assert!(end_ns.is_none_or(|end_ns| end_ns <= task.start_ns), "seed {seed}");
        }
        if turns.iter().all(|turn| turn.stretch_permille == 1000) {
            let (question, answer) = question_and_answer(&store, &runs);
            assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
        }
        for &(run, job) in &named {
            let run = store.run(run).unwrap();
            for task in 0..job.tasks.len() {
                for before in job.predecessors(task) {
                    assert!(run.tasks[before].end_ns <= run.tasks[task].start_ns, "seed {seed}");
                }
            }
        }
    }
    assert!(arranged > 60 && late > 5, "{arranged} arranged, {late} late");
}

#[test]
fn turns_that_are_wrong_change_nothing() {
    let random = &mut Random::new(5);
    let machine = random_machine(random);
    let job = random_job(random, 3, 3, 10);
    let mut store = Store::new(machine, Balancing::Dynamic);
    let request = Request::new(RunId(1), &job).without_deadline();
    reserve(&mut store, &request, &Options::default()).unwrap();
    let right = turns(random, &[(RunId(1), &job)]);
    let before = store.run(RunId(1)).cloned();
    let mut refuse = |requests: &[Request<'_>], turns: &[Turn]| {
        let why = arrange(&mut store, requests, turns).unwrap_err();
        assert_eq!(store.run(RunId(1)).cloned(), before);
        why
    };
    let last = right[right.len() - 1];
    let of = |turn: Turn| NotArranged::Turns { run: turn.run, task: turn.task };
    let why = refuse(&[request], &right[..right.len() - 1]);
    assert!(matches!(why, NotArranged::Turns { run: RunId(1), .. }), "{why:?}");
    let twice = [&right[..], &[right[0]]].concat();
    assert_eq!(refuse(&[request], &twice), of(right[0]));
    let backwards: Vec<_> = right.iter().rev().copied().collect();
    let why = refuse(&[request], &backwards);
    assert!(matches!(why, NotArranged::Turns { run: RunId(1), .. }), "{why:?}");
    let strange = Turn { run: RunId(7), ..last };
    assert_eq!(refuse(&[request], &[strange]), of(strange));
    let none = Turn { task: 1_000, ..last };
    assert_eq!(refuse(&[request], &[none]), of(none));
    let other = Request::new(RunId(2), &job);
    assert_eq!(refuse(&[request, other], &right), NotArranged::NotWaiting(RunId(2)));
    let soon = Request { deadline_ns: 1, ..request };
    assert!(matches!(refuse(&[soon], &right), NotArranged::Late { run: RunId(1), .. }));
}
