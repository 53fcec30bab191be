// SPDX-License-Identifier: GPL-2.0
//! Jobs that are confined to CPUs: they are planned there, and as if there were no
//! other cores.

mod common;

use common::checker::check;
use common::nets::{large_job, large_machine, machine, random_job, Random};
use common::{question_and_answer, random_machine, whole_ns};
use pbs_job::{Job, Machine};
use pbs_planner::{
    admit, earliest_deadline, lower_bound, reserve, validate, validate_level, Balancing, Declined,
    Lack, Level, Options, Progress, Rejection, Replan, Request, Run, RunId, Shortage, Store,
    Strategy, Validation,
};

const S: u64 = 1_000_000_000;

/// The machine with numbers of its own for the cores of all nodes.
fn numbered(mut machine: Machine) -> Machine {
    let cores = machine.nodes.iter_mut().flat_map(|node| &mut node.cores);
    for (core, cpu) in cores.zip(0..) {
        core.cpu = Some(3 * cpu + 1);
    }
    machine
}

/// Some of the machine's CPUs, at least one.
fn some_cpus(random: &mut Random, machine: &Machine) -> Vec<u32> {
    let one = random.of(&machine.cpus().collect::<Vec<_>>());
    let most = 1 + random.below(3);
    let cpus = machine.cpus().filter(|&cpu| cpu == one || random.below(4) < most);
    cpus.collect()
}

/// The machine as if it had those cores alone, and which they are.
fn part(machine: &Machine, cpus: &[u32]) -> (Machine, Vec<usize>) {
    let numbers = machine.cpus().enumerate();
    let numbers = numbers.filter(|(_, cpu)| cpus.contains(cpu));
    let numbers = numbers.map(|(number, _)| number).collect();
    let mut part = machine.clone();
    for node in &mut part.nodes {
        node.cores.retain(|core| core.cpu.is_some_and(|cpu| cpus.contains(&cpu)));
    }
    part.nodes.retain(|node| !node.cores.is_empty());
    (part, numbers)
}

/// All that the run has is on CPUs of the job.
fn assert_confined(run: &Run, job: &Job, machine: &Machine, what: &str) {
    let cpus: Vec<u32> = machine.cpus().collect();
    let of_processes = run.processes.iter().map(|process| process.core);
    let of_tasks = run.tasks.iter().map(|task| task.core);
    for core in of_processes.chain(of_tasks) {
        let is_there = job.cpus.is_empty() || job.cpus.contains(&cpus[core]);
        assert!(is_there, "{what}: CPU {} is none of {:?}", cpus[core], job.cpus);
    }
}

fn options(strategies: &[Strategy], seed: u64) -> Options {
    Options {
        strategies: strategies.to_vec(),
        local_search_tries: 1500,
        seed,
        ..Options::default()
    }
}

/// Each strategy, and the search after the first of them.
fn ways() -> [Vec<Strategy>; 6] {
    use Strategy::{CriticalPath, EarliestFinish, LatestFinish, LocalSearch, MemoryFirst};
    [
        vec![EarliestFinish],
        vec![CriticalPath],
        vec![LatestFinish],
        vec![MemoryFirst],
        vec![EarliestFinish, LocalSearch],
        Strategy::ALL.to_vec(),
    ]
}

#[test]
fn they_are_planned_there_beside_other_jobs() {
    let (mut planned, mut refused) = (0, 0);
    for seed in 0..70 {
        let random = &mut Random::new(seed);
        let balancing = random.of(&[Balancing::Static, Balancing::Dynamic]);
        let machine = numbered(random_machine(random));
        let mut store = Store::new(machine.clone(), balancing);
        let jobs: Vec<Job> = (0..5)
            .map(|_| {
                let mut job = random_job(random, 6, 5, 250);
                if random.below(4) > 0 {
                    job.cpus = some_cpus(random, &machine);
                }
                job
            })
            .collect();
        let mut runs = Vec::new();
        for (number, job) in (0..).zip(&jobs) {
            let mut request = Request::new(RunId(number), job);
            request.deadline_ns = whole_ns(job) / (1 + random.below(3));
            for (strategies, number) in ways().iter().zip(0u64..) {
                let mut tried = store.clone();
                let options = options(strategies, seed + number);
                if reserve(&mut tried, &request, &options).is_ok() {
                    let run = tried.run(request.run).unwrap();
                    assert_confined(run, job, &machine, &format!("seed {seed}: {strategies:?}"));
                }
            }
            match reserve(&mut store, &request, &options(&Strategy::ALL, seed)) {
                Ok(_) => {
                    planned += 1;
                    runs.push((request.run, job, request.start_ns, request.deadline_ns));
                }
                Err(_) => refused += 1,
            }
            let (question, answer) = question_and_answer(&store, &runs);
            assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
        }
    }
    assert!(planned > 120 && refused > 30, "{planned} planned, {refused} refused");
}

/// The store of the machine, that of its part, and the run of both has the same times.
fn assert_same(whole: &Store, part: &Store, numbers: &[usize], what: &str) {
    let of = |store: &Store| store.run(RunId(0)).cloned();
    let expected = of(part).map(|run| {
        let mut run = run;
        for process in &mut run.processes {
            process.core = numbers[process.core];
            process.node = whole.sites()[process.core].node;
        }
        for task in &mut run.tasks {
            task.core = numbers[task.core];
        }
        run
    });
    assert_eq!(of(whole), expected, "{what}");
}

#[test]
fn they_are_planned_as_on_a_machine_of_those_cores() {
    let (mut planned, mut refused) = (0, 0);
    for seed in 0..80 {
        let random = &mut Random::new(seed);
        let balancing = random.of(&[Balancing::Dynamic, Balancing::Dynamic, Balancing::Blind]);
        let machine = numbered(random_machine(random));
        let job = random_job(random, 7, 5, 250);
        let mut confined = job.clone();
        confined.cpus = some_cpus(random, &machine);
        let (part, numbers) = part(&machine, &confined.cpus);
        let store = Store::new(machine, balancing);
        let part = Store::new(part, balancing);
        let deadline_ns = match random.below(3) {
            0 => u64::MAX,
            _ => whole_ns(&job) / (1 + random.below(8)),
        };
        let request = |job| Request { deadline_ns, ..Request::new(RunId(0), job) };
        let (asked, alone) = (request(&confined), request(&job));
        assert_eq!(lower_bound(&store, &asked), lower_bound(&part, &alone), "seed {seed}");
        let validation = Validation {
            min_mem_percentage: 100,
            estimates_refuse: random.below(2) == 0,
            ..Validation::default()
        };
        for level in Level::ALL {
            let of = |store: &Store, request| {
                validate_level(&mut store.clone(), request, &validation, level)
            };
            assert_eq!(of(&store, &asked), of(&part, &alone), "seed {seed}: {level}");
        }
        for (strategies, number) in ways().iter().zip(0u64..) {
            let what = format!("seed {seed}: {strategies:?}");
            let options = options(strategies, seed + number);
            let (mut one, mut other) = (store.clone(), part.clone());
            let ends = [reserve(&mut one, &asked, &options), reserve(&mut other, &alone, &options)];
            let [one_end, other_end] = ends;
            assert_eq!(one_end, other_end, "{what}");
            assert_same(&one, &other, &numbers, &what);
            match one_end {
                Ok(_) => planned += 1,
                Err(_) => refused += 1,
            }
        }
        let earliest = |store: &Store, request| {
            let options = Options { local_search_tries: 200, ..Options::default() };
            earliest_deadline(&mut store.clone(), request, &validation, &options)
        };
        assert_eq!(earliest(&store, &asked), earliest(&part, &alone), "seed {seed}");
    }
    assert!(planned > 200 && refused > 50, "{planned} planned, {refused} refused");
}

/// The search looks at some of many cores alone.
#[test]
fn many_cores_are_those_of_the_job_too() {
    let machine = numbered(large_machine(5, 20, 3_000));
    let mut searched = Vec::new();
    for (seed, cores) in [(6, 80), (8, 70), (3, 12), (4, 1)] {
        let random = &mut Random::new(seed);
        let job = large_job(random, 200, 1200, 100, 100_000);
        let mut confined = job.clone();
        // From all nodes.
        confined.cpus = machine
            .cpus()
            .enumerate()
            .filter(|(at, _)| at * 37 % 100 < cores)
            .map(|(_, cpu)| cpu)
            .collect();
        assert_eq!(confined.cpus.len(), cores);
        let (part, numbers) = part(&machine, &confined.cpus);
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let mut part = Store::new(part, Balancing::Dynamic);
        let options = options(&Strategy::ALL, seed);
        let request = |job| Request::new(RunId(0), job).without_deadline();
        let planned = reserve(&mut store, &request(&confined), &options).unwrap();
        searched.push(planned.attempts.len() == Strategy::ALL.len());
        assert_eq!(Ok(planned), reserve(&mut part, &request(&job), &options));
        assert_same(&store, &part, &numbers, &format!("{cores} cores"));
    }
    assert_eq!(searched, [true, false, true, false]);
}

/// Returns the progress of each process at `time_ns` if everything runs as planned.
fn progress_at(run: &Run, job: &Job, time_ns: u64) -> Vec<Progress> {
    let processes = job.processes.iter().map(|process| {
        let mut tasks = process.tasks.iter().map(|&task| run.tasks[task]);
        let core = tasks.clone().next().unwrap().core;
        if tasks.clone().all(|task| task.start_ns >= time_ns) {
            return match process.id % 3 {
                0 => Progress::Attached { core },
                _ => Progress::Waiting,
            };
        }
        match tasks.position(|task| task.end_ns > time_ns) {
            None => Progress::Ended,
            Some(position) => {
                let task = run.tasks[process.tasks[position]];
                Progress::Running {
                    core,
                    position,
                    retired_insns: u64::from(task.start_ns < time_ns),
                }
            }
        }
    });
    processes.collect()
}

#[test]
fn they_stay_there_when_they_are_planned_anew() {
    let (mut replanned, mut moved) = (0, 0);
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let mut machine = numbered(random_machine(random));
        machine.tick_ns = S;
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let jobs: Vec<Job> = (0..4)
            .map(|_| {
                let mut job = random_job(random, 4, 5, 100);
                job.priority = random.below(3) as u32;
                if random.below(4) > 0 {
                    job.cpus = some_cpus(random, &machine);
                }
                job
            })
            .collect();
        let mut requests = Vec::new();
        for (number, job) in (0..).zip(&jobs) {
            let mut request = Request::new(RunId(number), job);
            request.deadline_ns = whole_ns(job) * (1 + random.below(2));
            if reserve(&mut store, &request, &options(&Strategy::ALL, seed)).is_ok() {
                requests.push(request);
            }
        }
        let Some(first) = requests.first() else {
            continue;
        };
        let now_ns = store.run(first.run).unwrap().end_ns() / S / 2 * S;
        let progress: Vec<Vec<Progress>> = (requests.iter())
            .map(|request| progress_at(store.run(request.run).unwrap(), request.job, now_ns))
            .collect();
        // Each takes longer than was thought.
        let mut longer: Vec<Job> = requests.iter().map(|request| request.job.clone()).collect();
        for task in longer.iter_mut().flat_map(|job| &mut job.tasks) {
            task.insns += random.below(3) * u64::from(task.insns > 0);
        }
        let all = requests.iter().zip(&progress).zip(&longer);
        let all = all.map(|((request, progress), job)| Request { job, progress, ..*request });
        let has_begun = |request: &Request<'_>| {
            let mut progress = request.progress.iter();
            progress.any(|one| matches!(one, Progress::Running { .. } | Progress::Ended))
        };
        let is_over =
            |request: &Request<'_>| request.progress.iter().all(|one| *one == Progress::Ended);
        let (running, later): (Vec<_>, Vec<_>) =
            all.filter(|request| !is_over(request)).partition(has_begun);
        let mut replan = Replan::at(now_ns);
        if random.below(2) == 0 {
            replan.options = options(&Strategy::ALL, seed);
        }
        let Ok(done) = replan.run(&mut store, &running, &later) else {
            continue;
        };
        replanned += 1;
        moved += done.moved.len();
        for request in running.iter().chain(&later) {
            let run = store.run(request.run).unwrap();
            assert_confined(run, request.job, &machine, &format!("seed {seed}"));
        }
    }
    assert!(replanned > 60 && moved > 0, "{replanned} replanned, {moved} moved");
}

/// A process that runs or has a thread elsewhere stays there; no other process of the job follows.
#[test]
fn what_is_elsewhere_stays_alone() {
    let mut elsewhere = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        // The fastest cores are not those of the job.
        let machine = numbered(machine(S, &[(2_000, &[4, 4]), (2_000, &[1, 2, 1])]));
        let mut job = random_job(random, 8, 4, 100);
        let first = random.below(2) as usize;
        let progress: Vec<Progress> = (0..job.processes.len())
            .map(|process| match random.below(5) {
                _ if process == 0 => {
                    Progress::Running { core: first, position: 0, retired_insns: 0 }
                }
                0 => Progress::Attached { core: 1 - first },
                _ => Progress::Waiting,
            })
            .collect();
        job.cpus = vec![7, 13];
        let cpus: Vec<u32> = machine.cpus().collect();
        assert_eq!([cpus[2], cpus[4]], [7, 13]);
        for (strategies, number) in ways().iter().zip(0u64..) {
            let mut store = Store::new(machine.clone(), Balancing::Dynamic);
            let request =
                Request { progress: &progress, ..Request::new(RunId(0), &job).without_deadline() };
            let bound = lower_bound(&store, &request);
            let planned = reserve(&mut store, &request, &options(strategies, seed + number));
            assert!(bound.end_ns <= planned.unwrap().end_ns, "seed {seed}");
            for process in &store.run(RunId(0)).unwrap().processes {
                match progress[process.process] {
                    Progress::Running { core, .. } | Progress::Attached { core } => {
                        assert_eq!(process.core, core, "seed {seed}");
                        elsewhere += 1;
                    }
                    _ => assert!([2, 4].contains(&process.core), "seed {seed}: {strategies:?}"),
                }
            }
        }
    }
    assert!(elsewhere > 500, "{elsewhere}");
}

#[test]
fn cpus_that_the_machine_does_not_have_are_named() {
    let mut store =
        Store::new(numbered(machine(S, &[(500, &[1, 1]), (500, &[1])])), Balancing::Dynamic);
    let before = store.clone();
    let mut job = random_job(&mut Random::new(1), 2, 2, 10);
    let options = Options::default();
    let validation = Validation::default();
    for (cpus, missing) in [(vec![0], vec![0]), (vec![1, 2, 4, 9], vec![2, 9])] {
        job.cpus = cpus;
        let request = Request::new(RunId(1), &job).without_deadline();
        let rejection = Rejection {
            level: Level::General,
            process: None,
            shortage: Shortage::Cpus { missing: missing.clone(), available: vec![1, 4, 7] },
        };
        assert_eq!(rejection.shortage.missing(), missing.len() as u128);
        let refused = validate(&mut store, &request, &validation);
        assert_eq!(refused, Err(rejection.clone()));
        let declined = admit(&mut store, &request, &validation, &options);
        assert_eq!(declined, Err(Declined::Validation(rejection)));
        let earliest = earliest_deadline(&mut store, &request, &validation, &options);
        assert_eq!(earliest.deadline_ns, None);
        // Who asks for a plan at once hears it, too.
        let refused = reserve(&mut store, &request, &options).unwrap_err();
        assert_eq!(refused.best.lack, Lack::Cpu { cpu: missing[0] });
        let refused = Replan::at(S).run(&mut store, &[request], &[]).unwrap_err();
        assert_eq!(refused.refused.best.lack, Lack::Cpu { cpu: missing[0] });
        assert!(store == before);
    }
    let request = Request::new(RunId(1), &job);
    let declined = admit(&mut store, &request, &validation, &options).unwrap_err();
    assert_eq!(
        declined.describe(&job, 0),
        "level 1 (general check): the job is confined to CPUs that the machine does not have: \
         2,9; it has 1,4,7"
    );
    let refused = reserve(&mut store, &request, &options).unwrap_err();
    assert_eq!(
        refused.best.describe(&job, 0),
        "reservation: the job is confined to CPU 2, which the machine does not have"
    );
}

/// The free resources of other CPUs do not help a job that is confined to its own.
#[test]
fn a_declined_job_is_told_what_its_cpus_have() {
    let mut store =
        Store::new(numbered(machine(S, &[(500, &[9]), (100, &[1, 1])])), Balancing::Dynamic);
    let mut job = random_job(&mut Random::new(3), 0, 1, 10);
    job.processes[0].memory_bytes = 101;
    job.cpus = vec![4, 7];
    let validation = Validation::default();
    let mut shortage = |job: &Job, deadline_ns| {
        let request = Request { deadline_ns, ..Request::new(RunId(1), job) };
        let answer = validate(&mut store, &request, &validation);
        answer.map_err(|rejection| (rejection.level, rejection.shortage))
    };
    let memory = Shortage::Memory { needed_bytes: 101, available_bytes: 100 };
    assert_eq!(shortage(&job, u64::MAX), Err((Level::General, memory)));
    job.processes[0].memory_bytes = 100;
    assert_eq!(shortage(&job, u64::MAX), Ok(()));
    // On a slow core.
    let end_ns = whole_ns(&job);
    let time = Shortage::Time { end_ns, deadline_ns: end_ns - S };
    assert_eq!(shortage(&job, end_ns - S), Err((Level::General, time)));
    assert_eq!(shortage(&job, end_ns), Ok(()));
}

/// Others hold what it needs, on its own node.
#[test]
fn what_is_free_elsewhere_does_not_help() {
    let nodes: &[(u64, &[u64])] = &[(500, &[1]), (100, &[1, 1])];
    let mut store = Store::new(numbered(machine(S, nodes)), Balancing::Dynamic);
    let mut booking = store.book();
    booking.take_memory(2, 0..100 * S, 60).unwrap();
    booking.take_core(2, 0..50 * S).unwrap();
    booking.commit();
    let mut job = random_job(&mut Random::new(3), 0, 1, 10);
    let length_ns = whole_ns(&job);
    let mut asked = |cpus: &[u32], memory_bytes, deadline_ns| {
        job.cpus = cpus.to_vec();
        job.processes[0].memory_bytes = memory_bytes;
        let request = Request { deadline_ns, ..Request::new(RunId(1), &job) };
        let answers = Level::ALL.map(|level| {
            let answer = validate_level(&mut store, &request, &Validation::default(), level);
            answer.map_err(|rejection| rejection.shortage)
        });
        let planned =
            reserve(&mut store.clone(), &request, &options(&[Strategy::EarliestFinish], 0));
        let planned = planned.map_err(|refused| refused.best.lack);
        (answers, planned.map(|planned| planned.end_ns))
    };
    let anywhere = ([const { Ok(()) }; 3], Ok(length_ns));
    assert_eq!(asked(&[], 90, 30 * S), anywhere);
    assert_eq!(asked(&[1, 4], 90, 30 * S), anywhere);
    // Two levels see that there is too little memory before 100 s, and so does the search.
    let (levels, planned) = asked(&[4, 7], 90, 30 * S);
    let memory_time = Shortage::MemoryTime {
        want: 90 * u128::from(length_ns),
        left: 40 * u128::from(30 * S),
        min_mem_percentage: 80,
    };
    let late = Shortage::Time { end_ns: 100 * S + length_ns, deadline_ns: 30 * S };
    let is_enough = 40 * 30 * S * 10 >= 72 * length_ns * 10;
    let level_2 = if is_enough { Ok(()) } else { Err(memory_time) };
    assert_eq!(levels, [Ok(()), level_2, Err(late)]);
    let lack = Lack::Memory { needed_bytes: 90, needed_ns: length_ns, most_free_bytes: 40 };
    assert_eq!(planned, Err(lack));
    assert_eq!(asked(&[4, 7], 90, 200 * S).1, Ok(100 * S + length_ns));
    // On the core that is free, not on the busy one.
    assert_eq!(asked(&[4, 7], 40, 30 * S), anywhere);
    let (levels, planned) = asked(&[7], 40, 80 * S);
    assert_eq!(levels, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(planned, Ok(50 * S + length_ns));
    let (levels, planned) = asked(&[7], 40, 50 * S);
    let late = Shortage::Time { end_ns: 50 * S + length_ns, deadline_ns: 50 * S };
    assert_eq!(levels, [Ok(()), Ok(()), Err(late)]);
    assert!(matches!(planned, Err(Lack::Time { .. })), "{planned:?}");
}
