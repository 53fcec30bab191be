// SPDX-License-Identifier: GPL-2.0
//! New plans for the remaining parts of running jobs.

mod common;

use common::checker::check;
use common::nets::{machine, random_job, Random};
use common::{question_and_answer, random_machine, whole_ns};
use pbs_job::Job;
use pbs_planner::{
    keep, reserve, Balancing, Lack, Options, Progress, Replan, Request, Run, RunId, Store,
};

const S: u64 = 1_000_000_000;

/// Returns the progress of each process at `time_ns` if everything runs as planned.
fn progress_at(run: &Run, job: &Job, time_ns: u64, rates: &[u64]) -> Vec<Progress> {
    let processes = job.processes.iter();
    let progress = processes.map(|process| {
        let tasks: Vec<_> = process.tasks.iter().map(|&task| run.tasks[task]).collect();
        if tasks.iter().all(|task| task.start_ns >= time_ns) {
            // Some have a thread already.
            return match process.id % 3 {
                0 => Progress::Attached { core: tasks[0].core },
                _ => Progress::Waiting,
            };
        }
        let Some(position) = tasks.iter().position(|task| task.end_ns > time_ns) else {
            return Progress::Ended;
        };
        let ran_ns = time_ns.saturating_sub(tasks[position].start_ns);
        let core = tasks[position].core;
        Progress::Running {
            core,
            position,
            retired_insns: (ran_ns / S * rates[core]).min(job.tasks[process.tasks[position]].insns),
        }
    });
    progress.collect()
}

/// The job as what is left of it, for the checker: ended tasks take no time at
/// the moment of the new plan, and are put there by the answer below.
fn left_of(job: &Job, progress: &[Progress]) -> Job {
    let mut left = job.clone();
    for (process, progress) in job.processes.iter().zip(progress) {
        for (position, &task) in process.tasks.iter().enumerate() {
            let insns = &mut left.tasks[task].insns;
            match *progress {
                Progress::Waiting | Progress::Attached { .. } => {}
                Progress::Ended => *insns = 0,
                Progress::Running { position: at, retired_insns, .. } if position == at => {
                    *insns = insns.saturating_sub(retired_insns).max(1)
                }
                Progress::Running { position: at, .. } if position < at => *insns = 0,
                Progress::Running { .. } => {}
            }
        }
    }
    left
}

#[test]
fn new_plans_on_random_machines_pass_the_checker() {
    let (mut replanned, mut refused, mut moved) = (0, 0, 0);
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let mut machine = random_machine(random);
        machine.tick_ns = S;
        let mut store = Store::new(machine, Balancing::Dynamic);
        let rates: Vec<u64> = store.sites().iter().map(|site| site.rate_insns_per_s).collect();
        let mut jobs: Vec<Job> = (0..4).map(|_| random_job(random, 4, 5, 150)).collect();
        for job in &mut jobs {
            job.priority = random.below(3) as u32;
        }
        let mut requests = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let mut request = Request::new(RunId(number as u64), job);
            request.deadline_ns = whole_ns(job) * (1 + random.below(3));
            if reserve(&mut store, &request, &Options::default()).is_ok() {
                requests.push(request);
            }
        }
        let Some(first) = requests.first() else {
            continue;
        };
        let run = store.run(first.run).expect("it is planned");
        let now_ns = run.end_ns() / S / 2 * S;
        let progress: Vec<Vec<Progress>> = requests
            .iter()
            .map(|request| {
                let run = store.run(request.run).expect("it is planned");
                progress_at(run, request.job, now_ns, &rates)
            })
            .collect();
        // One of them takes longer than was thought.
        let mut longer: Vec<Job> = requests.iter().map(|request| request.job.clone()).collect();
        for task in &mut longer[0].tasks {
            if random.below(3) == 0 && task.insns > 0 {
                task.insns += 1 + random.below(8);
            }
        }
        let mut running = Vec::new();
        let mut later = Vec::new();
        for ((request, progress), job) in requests.iter().zip(&progress).zip(&longer) {
            let request = Request { job, progress, ..*request };
            let begun = progress
                .iter()
                .any(|progress| !matches!(progress, Progress::Waiting | Progress::Attached { .. }));
            let ended = progress.iter().all(|progress| *progress == Progress::Ended);
            if ended {
                continue;
            } else if begun {
                running.push(request);
            } else {
                later.push(request);
            }
        }
        let before = store.clone();
        match Replan::at(now_ns).run(&mut store, &running, &later) {
            Ok(done) => {
                replanned += 1;
                moved += done.moved.len();
                assert_eq!(done.running.len(), running.len());
            }
            Err(_) => {
                refused += 1;
                assert!(store == before, "seed {seed}: a refused plan leaves a trace");
                continue;
            }
        }
        // What has ended is for the checker at the begin, on its core.
        let left: Vec<Job> = (running.iter().chain(&later))
            .map(|request| left_of(request.job, request.progress))
            .collect();
        let mut whole = store.clone();
        let mut runs = Vec::new();
        for (request, left) in running.iter().chain(&later).zip(&left) {
            let old = before.run(request.run).expect("it was planned");
            let mut run = store.run(request.run).cloned().unwrap_or_default();
            for (index, task) in old.tasks.iter().enumerate() {
                if !run.tasks.iter().any(|task| task.task == index) {
                    let mut ended = *task;
                    (ended.start_ns, ended.end_ns) = (now_ns, now_ns);
                    run.tasks.push(ended);
                }
            }
            run.tasks.sort_by_key(|task| task.task);
            for process in &old.processes {
                if !run.processes.iter().any(|new| new.process == process.process) {
                    let mut ended = process.clone();
                    (ended.start_ns, ended.end_ns) = (now_ns, now_ns);
                    run.processes.push(ended);
                }
            }
            for progress in request.progress.iter().enumerate() {
                let (process, core, runs) = match progress {
                    (process, &Progress::Running { core, .. }) => (process, core, true),
                    (process, &Progress::Attached { core }) => (process, core, false),
                    _ => continue,
                };
                let new = run.processes.iter().find(|new| new.process == process);
                let new = new.expect("what runs is planned");
                assert_eq!(new.core, core, "seed {seed}");
                assert!(!runs || new.start_ns == now_ns, "seed {seed}");
            }
            let mut booking = whole.book();
            booking.remove(request.run);
            booking.reserve(request.run, run).expect("it was free");
            booking.commit();
            let begun = request
                .progress
                .iter()
                .any(|progress| !matches!(progress, Progress::Waiting | Progress::Attached { .. }));
            let start_ns = if begun { now_ns } else { 0 };
            runs.push((request.run, left, start_ns, request.deadline_ns));
        }
        let (question, answer) = question_and_answer(&whole, &runs);
        assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
    }
    assert!(replanned > 80 && refused > 5, "{replanned} replanned, {refused} refused");
    assert!(moved > 0, "no job ever made room");
}

/// A job of one process on one core, as long as its instructions in seconds.
fn straight(insns: u64, memory_bytes: u64) -> Job {
    let mut job = random_job(&mut Random::new(1), 0, 1, 10);
    for task in &mut job.tasks {
        task.insns = 0;
    }
    job.tasks[1].insns = insns;
    job.processes[0].memory_bytes = memory_bytes;
    job
}

#[test]
fn a_later_job_makes_room_if_its_deadline_allows() {
    let mut store = Store::new(machine(S, &[(100, &[1])]), Balancing::Dynamic);
    let (one, two) = (straight(10, 60), straight(5, 60));
    let options = Options::default();
    let request = |run, job, deadline_s: u64| Request {
        deadline_ns: deadline_s * S,
        ..Request::new(RunId(run), job)
    };
    let first = request(1, &one, 14);
    reserve(&mut store, &first, &options).expect("the machine is empty");
    let second = request(2, &two, 19);
    reserve(&mut store, &second, &options).expect("there is room behind it");
    // At 4 it turns out that the first needs 4 more.
    let one = straight(14, 60);
    let progress = [Progress::Running { core: 0, position: 1, retired_insns: 4 }];
    let running = Request { job: &one, progress: &progress, ..first };
    let before = store.clone();
    let replan = Replan::at(4 * S);
    // The second would be late, or may not be touched.
    let tight = request(2, &two, 18);
    let refused = replan.run(&mut store, &[running], &[tight]).expect_err("it is too late");
    assert_eq!(refused.run, RunId(1));
    let Lack::Time { deadline_ns, .. } = refused.refused.best.lack else {
        panic!("{refused:?}");
    };
    assert_eq!(deadline_ns, 14 * S);
    assert!(replan.run(&mut store, &[running], &[]).is_err());
    let none = Replan { max_moved_runs: 0, ..replan.clone() };
    assert!(none.run(&mut store, &[running], &[second]).is_err());
    assert!(store == before);
    let done = replan.run(&mut store, &[running], &[second]).expect("there is room for both");
    assert_eq!(done.moved.len(), 1);
    let ends = [1, 2].map(|run| store.run(RunId(run)).expect("it is planned").end_ns());
    assert_eq!(ends, [14 * S, 19 * S]);
}

#[test]
fn what_has_begun_keeps_its_memory_while_others_are_planned() {
    let mut store = Store::new(machine(S, &[(100, &[1, 1])]), Balancing::Dynamic);
    let (one, two) = (straight(10, 60), straight(10, 60));
    let running_on = |core| [Progress::Running { core, position: 1, retired_insns: 1 }];
    let (on_first, on_second) = (running_on(0), running_on(1));
    let request = |run, job, progress| Request { progress, ..Request::new(RunId(run), job) };
    // Both can't have begun on this node: the first holds what the second needs.
    let running = [request(1, &one, &on_first[..]), request(2, &two, &on_second[..])];
    let refused = Replan::at(S).run(&mut store, &running, &[]).expect_err("it is too much");
    assert!(matches!(refused.refused.best.lack, Lack::Memory { needed_bytes: 60, .. }));
    // A core that is not there is refused, too.
    let nowhere = running_on(9);
    let running = [request(1, &one, &nowhere[..])];
    assert!(Replan::at(S).run(&mut store, &running, &[]).is_err());
    assert!(store == Store::new(machine(S, &[(100, &[1, 1])]), Balancing::Dynamic));
}

/// The rest of a job fits into what is reserved for it, until it takes longer.
#[test]
fn a_job_in_time_keeps_its_reservation() {
    let mut store = Store::new(machine(S, &[(100, &[1])]), Balancing::Dynamic);
    let (one, two) = (straight(10, 60), straight(5, 60));
    for (run, job) in [(1, &one), (2, &two)] {
        let request = Request { deadline_ns: 20 * S, ..Request::new(RunId(run), job) };
        reserve(&mut store, &request, &Options::default()).expect("there is room");
    }
    let reserved = store.run(RunId(1)).expect("it is planned").clone();
    store.forget_before(4 * S);
    let before = store.clone();
    let keeps = |store: &mut Store, retired_insns, deadline_ns| {
        let progress = [Progress::Running { core: 0, position: 1, retired_insns }];
        let request = Request { progress: &progress, ..Request::new(RunId(1), &one) };
        keep(store, &Request { deadline_ns, ..request }, 4 * S)
    };
    // Seven are left for six seconds, or the deadline is earlier.
    assert!(!keeps(&mut store, 3, 20 * S));
    assert!(!keeps(&mut store, 4, 9 * S));
    assert!(store == before);
    assert!(keeps(&mut store, 4, 10 * S));
    let kept = store.run(RunId(1)).expect("it is planned");
    // The start of the job has ended.
    assert_eq!(kept.tasks, reserved.tasks[1..]);
    assert_eq!(kept.processes, reserved.processes);
    assert!(!keep(&mut store, &Request::new(RunId(9), &one), 4 * S));
    // It is still there to be given back.
    for run in [1, 2] {
        assert!(store.remove(RunId(run)));
    }
    let mut empty = Store::new(machine(S, &[(100, &[1])]), Balancing::Dynamic);
    empty.forget_before(4 * S);
    assert!(store == empty);
}

/// The more important job comes last as it is asked for, and no job moves for it.
#[test]
fn the_last_has_its_place_after_all_others() {
    let mut store = Store::new(machine(S, &[(200, &[1])]), Balancing::Dynamic);
    let jobs = [(10, 9), (6, 0), (5, 0)].map(|(insns, priority)| {
        let job = straight(insns, 60);
        Job { priority, ..job }
    });
    let request = |run: usize, deadline_s: u64| Request {
        deadline_ns: deadline_s * S,
        ..Request::new(RunId(run as u64), &jobs[run])
    };
    for run in 0..3 {
        reserve(&mut store, &request(run, 40), &Options::default()).expect("there is room");
    }
    // All of them have begun but the third, which may be moved.
    let progress = [Progress::Running { core: 0, position: 1, retired_insns: 1 }];
    let running = |run, deadline_s| Request { progress: &progress, ..request(run, deadline_s) };
    let ends = |store: &Store| [0, 1, 2].map(|run| store.run(RunId(run)).unwrap().end_ns() / S);
    let asked = [running(0, 40).last(), running(1, 8)];
    let done = Replan::at(2 * S).run(&mut store, &asked, &[request(2, 40)]).expect("all fit");
    assert_eq!((done.running.len(), done.moved.len()), (2, 0));
    assert_eq!(ends(&store), [16, 7, 21]);
    let asked = [running(0, 15).last(), running(1, 8)];
    let refused = Replan::at(2 * S).run(&mut store, &asked, &[request(2, 40)]);
    assert_eq!(refused.expect_err("there is no room before the third").run, RunId(0));
    let asked = [running(0, 15), running(1, 30)];
    Replan::at(2 * S).run(&mut store, &asked, &[request(2, 40)]).expect("the third moves");
}

/// A job that has begun before its time holds its memory from then on. Its reservation does not stay
/// if another job has that memory before.
#[test]
fn a_job_that_has_begun_early_holds_its_memory() {
    for other_bytes in [40, 60] {
        let mut store = Store::new(machine(S, &[(100, &[1, 1])]), Balancing::Dynamic);
        let (one, two) = (straight(10, other_bytes), straight(5, 60));
        for (run, job, start_s) in [(1, &one, 0), (2, &two, 20)] {
            let request = Request { start_ns: start_s * S, ..Request::new(RunId(run), job) };
            let request = Request { deadline_ns: 60 * S, ..request };
            reserve(&mut store, &request, &Options::default()).expect("there is room");
        }
        store.forget_before(2 * S);
        let core = store.run(RunId(2)).expect("it is planned").processes[0].core;
        let progress = [Progress::Running { core, position: 1, retired_insns: 1 }];
        let request = Request { progress: &progress, ..Request::new(RunId(2), &two) };
        let request = Request { deadline_ns: 60 * S, ..request };
        assert_eq!(keep(&mut store, &request, 2 * S), other_bytes == 40);
        let starts = &store.run(RunId(2)).expect("it is planned").processes;
        assert_eq!(starts[0].start_ns, if other_bytes == 40 { 2 * S } else { 20 * S });
    }
}

/// The innocent holder of memory ends before the more important and more urgent job begins that
/// waits for it.
#[test]
fn a_holder_of_memory_has_its_place_before_those_that_wait() {
    let mut store = Store::new(machine(S, &[(100, &[1])]), Balancing::Dynamic);
    let holder = straight(10, 60);
    let waiting = Job { priority: 1, ..straight(5, 60) };
    let progress = [Progress::Running { core: 0, position: 1, retired_insns: 1 }];
    let holder =
        Request { progress: &progress, deadline_ns: 40 * S, ..Request::new(RunId(1), &holder) };
    let waiting = Request { deadline_ns: 30 * S, ..Request::new(RunId(2), &waiting) };
    let running = [holder, waiting];
    Replan::at(2 * S).run(&mut store, &running, &[]).expect("one after the other");
    let ends = [1, 2].map(|run| store.run(RunId(run)).unwrap().end_ns());
    assert!(ends[0] < ends[1] && ends[1] <= 30 * S, "{ends:?}");
}

/// The job that is refused is the one whose deadline can't be kept, or the less important of two
/// that can't be kept together.
#[test]
fn the_job_that_yields_lets_the_others_keep_their_deadlines() {
    let of = |jobs: &[(u64, u32, u64)]| {
        let mut store = Store::new(machine(S, &[(200, &[1])]), Balancing::Dynamic);
        let straight = jobs.iter().map(|&(insns, priority, _)| {
            let job = straight(insns, 60);
            Job { priority, ..job }
        });
        let straight: Vec<Job> = straight.collect();
        let requests = jobs.iter().zip(&straight).zip(0..).map(|((job, straight), run)| Request {
            deadline_ns: job.2 * S,
            ..Request::new(RunId(run), straight)
        });
        let running: Vec<_> = requests.collect();
        let before = store.clone();
        let refused = Replan::at(2 * S).run(&mut store, &running, &[]).expect_err("too much");
        assert!(store == before);
        refused.run
    };
    // By priority the second comes too late, and by deadline the third, which never had a chance.
    assert_eq!(of(&[(10, 2, 100), (5, 1, 8), (200, 0, 150)]), RunId(2));
    // The first or the second, and the second is less important.
    assert_eq!(of(&[(10, 2, 12), (5, 1, 8)]), RunId(1));
    assert_eq!(of(&[(10, 2, 100), (5, 1, 8), (6, 0, 8)]), RunId(2));
}
