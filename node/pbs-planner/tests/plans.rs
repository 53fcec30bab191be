// SPDX-License-Identifier: GPL-2.0
//! Every plan passes the independent checker, and the checker notices what is
//! wrong.

mod common;

use common::checker::{check, Answer, Question};
use common::nets::{deep_job, machine, random_job, Random};
use common::{question_and_answer, random_machine, whole_ns};
use pbs_planner::{reserve, Aim, Balancing, Options, Request, RunId, Store, Strategy};

fn options(random: &mut Random) -> Options {
    let strategies = match random.below(7) {
        one @ 0..=3 => vec![Strategy::ALL[one as usize]],
        _ => Strategy::ALL.to_vec(),
    };
    Options {
        strategies,
        aim: random.of(&[Aim::Best, Aim::Deadline]),
        local_search_tries: 2000,
        seed: random.below(1000),
        ..Options::default()
    }
}

#[test]
fn every_on_random_machines_passes_the_checker() {
    let (mut planned, mut refused) = (0, 0);
    for seed in 0..150 {
        let random = &mut Random::new(seed);
        let balancing = random.of(&[Balancing::Static, Balancing::Dynamic]);
        let mut store = Store::new(random_machine(random), balancing);
        let jobs: Vec<_> =
            (0..1 + random.below(6)).map(|_| random_job(random, 6, 5, 250)).collect();
        let mut runs = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let number = number as u64;
            let start_ns = random.below(20) * 1_000_000_000;
            let most_ns = whole_ns(job) / (1 + random.below(6));
            let mut request = Request::new(RunId(number), job).not_before(start_ns);
            if random.below(4) > 0 {
                request.deadline_ns = start_ns + most_ns;
            }
            let before = store.clone();
            match reserve(&mut store, &request, &options(random)) {
                Ok(done) => {
                    planned += 1;
                    runs.push((request.run, job, request.start_ns, request.deadline_ns));
                    let run = store.run(request.run).expect("it is planned");
                    assert_eq!(run.end_ns(), done.end_ns, "seed {seed}");
                    for process in &run.processes {
                        let tasks =
                            || run.tasks.iter().filter(|task| task.process == process.process);
                        let life = (
                            tasks().map(|task| task.start_ns).min(),
                            tasks().map(|task| task.end_ns).max(),
                        );
                        let held = (Some(process.start_ns), Some(process.end_ns));
                        assert_eq!(held, life, "seed {seed}");
                    }
                    let reached = done.attempts.iter().filter_map(|attempt| attempt.end_ns.ok());
                    assert_eq!(reached.min(), Some(done.end_ns), "seed {seed}");
                }
                Err(_) => {
                    refused += 1;
                    assert!(store == before, "seed {seed}: a refused job leaves a trace");
                }
            }
            let (question, answer) = question_and_answer(&store, &runs);
            assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
        }
        // One after the other goes, and nothing remains.
        for (run, ..) in runs {
            assert!(store.remove(run));
        }
        let empty = Store::new(store.machine().clone(), balancing);
        assert!(store == empty, "seed {seed}");
    }
    // Both happen often enough to mean something.
    assert!(planned > 200 && refused > 50, "{planned} planned, {refused} refused");
}

#[test]
fn the_same_request_gets_the_same_plan() {
    for seed in 0..10 {
        let random = &mut Random::new(seed);
        let mut first = Store::new(random_machine(random), Balancing::Dynamic);
        let mut second = first.clone();
        let job = random_job(random, 8, 4, 150);
        let request = Request::new(RunId(1), &job);
        let options = Options::default();
        let planned = reserve(&mut first, &request, &options);
        assert_eq!(planned, reserve(&mut second, &request, &options));
        assert!(first == second);
    }
}

/// The planner is not recursive. Therefore a net may be deeper than a stack.
#[test]
fn deep_nets_are_planned() {
    let random = &mut Random::new(1);
    let job = deep_job(random, 4000);
    let machine = machine(1, &[(5000, &[1_000_000_000; 4])]);
    for strategy in &Strategy::ALL[..4] {
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let request = Request::new(RunId(0), &job);
        let options = Options { strategies: vec![*strategy], ..Options::default() };
        reserve(&mut store, &request, &options).expect("there is no deadline");
        let (question, answer) = question_and_answer(&store, &[(RunId(0), &job, 0, u64::MAX)]);
        assert_eq!(check(&question, &answer), Ok(()));
    }
}

/// Two processes on two cores; each is changed so that one rule is broken.
fn sound() -> (Question, Answer) {
    let question = Question {
        tick: 1,
        cores: vec![(0, 1_000_000_000), (0, 500_000_000)],
        memories: vec![100],
        jobs: vec![(0, 100)],
        processes: vec![(0, 60), (0, 40)],
        resources: vec![5],
        held: vec![vec![(0, 3)], vec![(0, 2)]],
        tasks: vec![(0, 10, vec![]), (0, 10, vec![0]), (1, 10, vec![0]), (0, 10, vec![1, 2])],
    };
    let answer = Answer {
        tasks: vec![(0, 0, 0, 10), (1, 0, 10, 20), (2, 1, 10, 30), (3, 0, 30, 40)],
        memory: vec![(0, 0, 0, 40), (1, 1, 10, 30)],
    };
    (question, answer)
}

#[test]
fn the_checker_notices_every_broken_rule() {
    type Change = fn(&mut Question, &mut Answer);
    let (question, answer) = sound();
    assert_eq!(check(&question, &answer), Ok(()));
    let changes: [(Change, &str); 14] = [
        (|_, a| a.tasks[2] = (2, 1, 9, 29), "before task 0 has ended"),
        (|_, a| a.tasks[3] = (3, 0, 29, 39), "before task 2 has ended"),
        (|q, _| q.jobs[0].1 = 39, "its job 0 to 39"),
        (|q, _| q.jobs[0].0 = 1, "its job 1 to 100"),
        (|_, a| a.tasks[3].3 = 41, "takes 10 ticks"),
        (|_, a| a.tasks[3] = (3, 1, 30, 50), "is on cores 0 and 1"),
        (
            |_, a| {
                a.tasks[2] = (2, 0, 15, 25);
                a.memory[1] = (1, 0, 15, 25);
            },
            "at once",
        ),
        (|q, _| q.memories[0] = 99, "is over at 10: 100"),
        (|q, _| q.resources[0] = 4, "resource 0 is over at 10: 5"),
        (|_, a| a.memory[1].3 = 29, "not for its life"),
        (|_, a| a.memory.truncate(1), "process 1 holds no memory"),
        (|_, a| a.tasks.truncate(3), "task 3 is not planned"),
        (|_, a| a.tasks.push((1, 0, 50, 60)), "planned twice"),
        (|_, a| a.tasks[3].1 = 2, "not there"),
    ];
    for (change, wrong) in changes {
        let (mut question, mut answer) = sound();
        change(&mut question, &mut answer);
        let found = check(&question, &answer).expect_err(wrong);
        assert!(found.contains(wrong), "{found}, not {wrong}");
    }
}

#[test]
fn damaged_plans_are_noticed() {
    for seed in 0..100 {
        let random = &mut Random::new(seed);
        let mut store = Store::new(random_machine(random), Balancing::Dynamic);
        let job = random_job(random, 5, 5, 100);
        let request = Request::new(RunId(0), &job);
        if reserve(&mut store, &request, &Options::default()).is_err() {
            continue;
        }
        let runs = [(RunId(0), &job, 0, u64::MAX)];
        let (question, answer) = question_and_answer(&store, &runs);
        let which = random.below(answer.tasks.len() as u64) as usize;
        let process = random.below(answer.memory.len() as u64) as usize;
        let mut broken = vec![answer.clone(); 4];
        broken[0].tasks[which].3 += 1;
        broken[1].tasks.remove(which);
        broken[2].memory[process].2 += 1;
        broken[3].memory[process].1 += 1;
        for broken in broken {
            assert!(check(&question, &broken).is_err(), "seed {seed}");
        }
    }
}
