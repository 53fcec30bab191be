// SPDX-License-Identifier: GPL-2.0
//! Admission by the demand test: it is exact on one core, nothing that was admitted loses
//! its deadline, and nets stay where they are.

mod common;

use common::nets::{job_of, machine, random_job, Random};
use pbs_job::{Action, Job, Process, Task};
use pbs_planner::{
    admit_beside, Balancing, Capacity, Declined, DemandTest, Options, Planned, Progress, Replan,
    Request, Run, RunId, Store, Strategy, Validation,
};

const S: u64 = 1_000_000_000;
/// Capacity with which the search plans: half of a core.
const CAPACITY: Capacity =
    Capacity { window_period_ns: 10, execution_ns: 9, capacity_buffer_permille: 1800 };
const TEST: DemandTest = DemandTest { share_permille: 500, interrupts: true };

/// A job of one process with tasks that take two seconds an instruction, on the half of a
/// core that is planned with.
fn job(insns: &[u64], start_ns: u64, deadline_ns: u64, memory_bytes: u64) -> Job {
    let tasks = insns.iter().enumerate().map(|(position, &insns)| Task {
        id: position as u32,
        name: None,
        process: 0,
        position,
        action: Action::Calculation,
        insns: 2 * insns,
        memory_bytes,
        message_bytes: None,
        senders: Vec::new(),
        after: Vec::new(),
        before: Vec::new(),
        line: None,
    });
    Job {
        name: "job".into(),
        start_ns,
        deadline_ns,
        tasks: tasks.collect(),
        processes: vec![Process {
            memory_bytes,
            tasks: (0..insns.len()).collect(),
            ..Process::default()
        }],
        ..Job::default()
    }
}

fn ask(
    store: &mut Store,
    admitted: &[(RunId, Job)],
    run: RunId,
    job: &Job,
    test: &DemandTest,
) -> Result<Planned, Declined> {
    let others: Vec<_> = admitted.iter().map(|(run, job)| Request::new(*run, job)).collect();
    let request = Request::new(run, job);
    // Rules alone: what the search finds is not of interest.
    let options = Options { local_search_tries: 0, ..Options::default() };
    admit_beside(store, &request, &others, &Validation::default(), &options, Some(test))
}

/// Whether EDF keeps all deadlines of (release, deadline, length), second by second, beside
/// what is reserved.
fn is_feasible(work: &[(u64, u64, u64)], reserved: &[std::ops::Range<u64>]) -> bool {
    let mut left: Vec<u64> = work.iter().map(|work| work.2).collect();
    let last = work.iter().map(|work| work.1).max().unwrap_or(0);
    for time in (0..last).filter(|time| !reserved.iter().any(|over| over.contains(time))) {
        let ready = (0..work.len()).filter(|&it| left[it] > 0 && work[it].0 <= time);
        if let Some(first) = ready.min_by_key(|&it| work[it].1) {
            left[first] -= 1;
            if time >= work[first].1 {
                return false;
            }
        }
    }
    left.iter().all(|&left| left == 0)
}

/// The stretches of all runs on their cores, which nothing else has.
fn check(store: &Store, admitted: &[(RunId, Job)], lengths: impl Fn(usize, u64) -> Vec<u64>) {
    let mut taken: Vec<(usize, u64, u64)> = Vec::new();
    for (run, job) in admitted {
        let run = store.run(*run).expect("it is planned");
        assert!(run.end_ns() <= job.deadline_ns && run.start_ns() >= Some(job.start_ns));
        for task in &run.tasks {
            let stretches: Vec<_> = run.stretches(task).collect();
            assert_eq!(stretches[0].start, task.start_ns);
            assert_eq!(stretches[stretches.len() - 1].end, task.end_ns);
            let sum: u64 = stretches.iter().map(|over| over.end - over.start).sum();
            let insns = job.tasks[task.task].insns;
            assert!(lengths(task.core, insns).contains(&sum), "{sum} for {insns}");
            let some = stretches.iter().filter(|over| !over.is_empty());
            taken.extend(some.map(|over| (task.core, over.start, over.end)));
            let before = job.predecessors(task.task);
            let mut before = before.map(|before| run.tasks[before].end_ns);
            assert!(before.all(|end_ns| end_ns <= task.start_ns));
            let holds = &run.processes[task.process];
            assert!(holds.start_ns <= task.start_ns && holds.end_ns >= task.end_ns);
        }
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        assert!(one.0 < next.0 || one.2 <= next.1, "{one:?} and {next:?}");
    }
    for &(core, start_ns, end_ns) in &taken {
        assert_eq!(store.core(core).max_over(start_ns..end_ns), Some(0));
    }
    // And nothing else is taken.
    for core in 0..store.sites().len() {
        let of_core = taken.iter().filter(|it| it.0 == core).map(|it| it.2 - it.1);
        let horizon_ns = 1 << 50;
        let free = store.core(core).integral(0..horizon_ns);
        assert_eq!(free + u128::from(of_core.sum::<u64>()), u128::from(horizon_ns));
    }
}

/// Jobs come one after the other to one core: each is admitted if and only if all
/// admitted ones and it can keep their deadlines in any order.
#[test]
fn a_core_admits_exactly_what_it_can_keep() {
    let (mut by_demand, mut declined) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(seed);
        // One instruction in a second, by the search as by the test.
        let mut store =
            Store::with_capacity(machine(S, &[(1000, &[2])]), Balancing::Dynamic, CAPACITY);
        let mut admitted: Vec<(RunId, Job)> = Vec::new();
        let mut work: Vec<(u64, u64, u64)> = Vec::new();
        for number in 0..2 + random.below(6) {
            let insns: Vec<u64> = (0..1 + random.below(3)).map(|_| 1 + random.below(3)).collect();
            let release = random.below(20);
            let length = 2 * insns.iter().sum::<u64>();
            let deadline = release + length + random.below(16);
            let asked = job(&insns, release * S, deadline * S, 1);
            let run = RunId(number);
            let before = store.clone();
            let answer = ask(&mut store, &admitted, run, &asked, &TEST);
            work.push((release, deadline, length));
            let feasible = is_feasible(&work, &[]);
            assert_eq!(answer.is_ok(), feasible, "seed {seed}, {work:?}");
            match answer {
                Ok(planned) => {
                    by_demand += usize::from(planned.strategy == Strategy::EarliestDeadline);
                    assert_eq!(store.run(run).map(Run::end_ns), Some(planned.end_ns));
                    admitted.push((run, asked));
                }
                Err(why) => {
                    declined += 1;
                    work.pop();
                    assert!(store == before, "a declined job leaves nothing behind");
                    let Declined::Reservation(refused) = why else {
                        panic!("each job fits alone");
                    };
                    let found = refused.demand.expect("time is what there is too little of");
                    assert!(found.demand_ns() > found.supply_ns());
                }
            }
            check(&store, &admitted, |_, insns| vec![insns * S]);
        }
    }
    assert!(by_demand > 100 && declined > 300, "{by_demand} {declined}");
}

/// Several cores, nets beside independent jobs of several processes, little memory, and a
/// share that is greater than that of the search: all that was admitted keeps its
/// deadline, and nets keep their places.
#[test]
fn nets_and_independent_jobs_share_cores() {
    let (mut by_demand, mut nets) = (0, 0);
    let test = DemandTest { share_permille: 800, ..TEST };
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let rates: &[u64] = if random.below(2) == 0 { &[5] } else { &[5, 10] };
        let mut store =
            Store::with_capacity(machine(1, &[(60, rates)]), Balancing::Dynamic, CAPACITY);
        let mut admitted: Vec<(RunId, Job)> = Vec::new();
        let mut of_nets: Vec<(RunId, Run)> = Vec::new();
        for number in 0..8 {
            let is_net = random.below(4) == 0;
            let side_by_side = random.below(4) == 0;
            let mut asked = if is_net {
                random_job(&mut random, 2, 5, 8)
            } else if side_by_side {
                let (fork, join) = (Action::Fork { child: 1 }, Action::Join { child: Some(1) });
                let parent = vec![fork, Action::Calculation, join];
                let mut job = job_of(&mut random, &[parent, vec![Action::Calculation]], 9, 30);
                for task in [0, 2] {
                    job.tasks[task].insns = 0;
                }
                job
            } else {
                let insns: Vec<u64> = (0..1 + random.below(3)).map(|_| random.below(30)).collect();
                job(&insns, 0, 0, random.below(30))
            };
            asked.start_ns = random.below(10) * S;
            let insns: u64 = asked.tasks.iter().map(|task| task.insns).sum();
            asked.deadline_ns = asked.start_ns + insns * S / 5 + (1 + random.below(30)) * S;
            let run = RunId(number);
            if let Ok(planned) = ask(&mut store, &admitted, run, &asked, &test) {
                by_demand += usize::from(planned.strategy == Strategy::EarliestDeadline);
                if is_net && planned.strategy != Strategy::EarliestDeadline {
                    nets += 1;
                    of_nets.push((run, store.run(run).unwrap().clone()));
                }
                admitted.push((run, asked));
            }
            let lengths = |core: usize, insns: u64| {
                // By the test and by the search.
                let at = if rates[core] == 5 { [4, 2] } else { [8, 5] };
                at.map(|rate| (insns * S).div_ceil(rate)).to_vec()
            };
            check(&store, &admitted, lengths);
        }
        for (run, reserved) in of_nets {
            let dependent = admitted.iter().find(|(of, _)| *of == run).unwrap();
            let waits = |task: usize| {
                let job = &dependent.1;
                let mut before = job.predecessors(task);
                before.any(|before| {
                    job.tasks[before].process != job.tasks[task].process
                        && job.tasks[before].insns > 0
                        && job.tasks[task].insns > 0
                })
            };
            if (0..dependent.1.tasks.len()).any(waits) {
                assert_eq!(store.run(run), Some(&reserved), "seed {seed}");
            }
        }
    }
    assert!(by_demand > 50 && nets > 100, "{by_demand} {nets}");
}

/// A node that has its slots in a fixed order gets no plan that interrupts a task; and
/// what was admitted is the same otherwise.
#[test]
fn without_interruptions_each_task_has_one_slot() {
    let mut store = Store::with_capacity(machine(S, &[(9, &[2])]), Balancing::Dynamic, CAPACITY);
    let fixed = DemandTest { interrupts: false, ..TEST };
    let long = job(&[10], 0, 30 * S, 1);
    let admitted = [(RunId(0), long.clone())];
    ask(&mut store, &[], RunId(0), &long, &fixed).unwrap();
    let urgent = job(&[2], 6 * S, 12 * S, 1);
    assert!(ask(&mut store, &admitted, RunId(1), &urgent, &fixed).is_err());
    assert!(ask(&mut store.clone(), &admitted, RunId(1), &urgent, &TEST).is_ok());
    // It is first, where it can be.
    let first = job(&[2], 0, 12 * S, 1);
    let planned = ask(&mut store, &admitted, RunId(1), &first, &fixed).unwrap();
    assert_eq!((planned.strategy, planned.end_ns), (Strategy::EarliestDeadline, 4 * S));
    assert!(store.run(RunId(0)).unwrap().interruptions.is_empty());
}

/// The interval that is told is that of the issue, in time of the core.
#[test]
fn a_decline_names_the_interval() {
    let mut store = Store::with_capacity(machine(S, &[(9, &[2])]), Balancing::Dynamic, CAPACITY);
    let first = job(&[5], 10 * S, 24 * S, 1);
    ask(&mut store, &[], RunId(0), &first, &TEST).unwrap();
    let admitted = [(RunId(0), first)];
    let second = job(&[3], 12 * S, 24 * S, 1);
    let Err(Declined::Reservation(refused)) = ask(&mut store, &admitted, RunId(1), &second, &TEST)
    else {
        panic!("16 seconds of 14");
    };
    let found = refused.demand.unwrap();
    assert_eq!((found.overload.from_ns, found.overload.until_ns), (10 * S, 24 * S));
    assert_eq!((found.supply_ns(), found.demand_ns()), (7 * S, 8 * S));
    let text = Declined::Reservation(refused).describe(&second, 10 * S);
    assert!(
        text.ends_with("demand test: between 0 ns and 14 s, core 0 has 7 s, and 8 s are asked for"),
        "{text}"
    );
}

/// Reservations of a net count as demand: a job fits beside them or not, exactly.
#[test]
fn reservations_of_nets_count_as_demand() {
    let mut random = Random::new(1);
    let mut counts = [0; 2];
    for _ in 0..200 {
        let mut store =
            Store::with_capacity(machine(S, &[(99, &[2])]), Balancing::Dynamic, CAPACITY);
        // A parent that goes on when its child has ended.
        let parent = vec![
            Action::Fork { child: 1 },
            Action::Calculation,
            Action::Join { child: Some(1) },
            Action::Calculation,
        ];
        let mut net = job_of(&mut random, &[parent, vec![Action::Calculation]], 9, 3);
        net.start_ns = random.below(6) * S;
        net.deadline_ns = 60 * S;
        ask(&mut store, &[], RunId(0), &net, &TEST).unwrap();
        let reserved = store.run(RunId(0)).unwrap().clone();
        let over: Vec<_> =
            reserved.tasks.iter().map(|task| task.start_ns / S..task.end_ns / S).collect();
        let mut admitted = vec![(RunId(0), net)];
        let mut work = Vec::new();
        for number in 1..6 {
            let insns = 1 + random.below(3);
            let release = random.below(20);
            let deadline = release + 2 * insns + random.below(24);
            let asked = job(&[insns], release * S, deadline * S, 1);
            work.push((release, deadline, 2 * insns));
            let answer = ask(&mut store, &admitted, RunId(number), &asked, &TEST);
            let feasible = is_feasible(&work, &over);
            assert_eq!(answer.is_ok(), feasible, "{work:?} beside {over:?}");
            counts[usize::from(feasible)] += 1;
            match answer {
                Ok(_) => admitted.push((RunId(number), asked)),
                Err(_) => _ = work.pop(),
            }
        }
        assert_eq!(store.run(RunId(0)), Some(&reserved));
    }
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
}

/// An answer keeps what the demand test has promised, which the search alone does not:
/// processes run, and what is left of all is placed by deadlines.
#[test]
fn an_answer_keeps_what_was_admitted_by_demand() {
    let (mut by_search, mut by_demand) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut store =
            Store::with_capacity(machine(S, &[(99, &[2])]), Balancing::Dynamic, CAPACITY);
        let mut admitted: Vec<(RunId, Job)> = Vec::new();
        for number in 0..6 {
            let insns = 1 + random.below(5);
            let release = random.below(12);
            let deadline = release + 2 * insns + random.below(16);
            let asked = job(&[insns], release * S, deadline * S, 1);
            if ask(&mut store, &admitted, RunId(number), &asked, &TEST).is_ok() {
                admitted.push((RunId(number), asked));
            }
        }
        // As the plan has it after eight seconds.
        let now_ns = 8 * S;
        let progress = admitted.iter().map(|(run, _)| {
            let run = store.run(*run).unwrap();
            let done = run
                .stretches(&run.tasks[0])
                .map(|over| over.end.min(now_ns).saturating_sub(over.start));
            let done_ns: u64 = done.sum();
            vec![match done_ns {
                _ if run.end_ns() <= now_ns => Progress::Ended,
                0 => Progress::Waiting,
                _ => Progress::Running { core: 0, position: 0, retired_insns: done_ns / S },
            }]
        });
        let progress: Vec<_> = progress.collect();
        let requests = admitted
            .iter()
            .zip(&progress)
            .map(|((run, job), progress)| Request { progress, ..Request::new(*run, job) });
        let (running, later): (Vec<_>, Vec<_>) = requests
            .filter(|request| request.progress[0] != Progress::Ended)
            .partition(|request| request.progress[0] != Progress::Waiting);
        for ((run, _), progress) in admitted.iter().zip(&progress) {
            if progress[0] == Progress::Ended {
                store.remove(*run);
            }
        }
        store.forget_before(now_ns);
        let alone = Replan::at(now_ns);
        by_search += usize::from(alone.run(&mut store.clone(), &running, &later).is_ok());
        let both = Replan { demand: Some(TEST), ..alone };
        let replanned = both.run(&mut store, &running, &later);
        assert!(replanned.is_ok(), "seed {seed}: {replanned:?}");
        by_demand += 1;
        for request in running.iter().chain(&later) {
            let run = store.run(request.run).expect("it is planned");
            assert!(run.end_ns() <= request.deadline_ns, "seed {seed}");
            assert!(run.start_ns() >= Some(now_ns.max(request.start_ns)), "seed {seed}");
        }
    }
    assert!(by_demand > 100 && by_search < by_demand, "{by_search} of {by_demand}");
}
