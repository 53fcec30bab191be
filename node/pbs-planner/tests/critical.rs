// SPDX-License-Identifier: GPL-2.0
//! Critical paths of plans.

mod common;

use common::nets::{job_of, machine, random_job, Random};
use pbs_job::Action;
use pbs_planner::{
    critical_path, reserve, Balancing, Because, Options, Request, RunId, Store, Strategy,
};

/// On a machine that has nothing else to do and memory enough, the path leads
/// without a gap from the beginning to the end.
#[test]
fn the_path_has_no_gaps() {
    let (mut by_order, mut by_core) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let rates = [1_000_000_000, 600_000_000];
        let mut store = Store::new(machine(1, &[(1 << 30, &rates)]), Balancing::Dynamic);
        let job = random_job(random, 6, 5, 40);
        let request = Request::new(RunId(0), &job).without_deadline().not_before(17);
        let options = Options { strategies: vec![Strategy::CriticalPath], ..Options::default() };
        reserve(&mut store, &request, &options).expect("nothing is in its way");
        let run = store.run(RunId(0)).expect("it is planned");
        let path = critical_path(&job, run);
        let mut at_ns = 17;
        for (place, critical) in path.iter().enumerate() {
            let task = run.tasks[critical.task];
            assert_eq!(task.start_ns, at_ns, "seed {seed}");
            at_ns = task.end_ns;
            let Some(before) = place.checked_sub(1).map(|before| path[before].task) else {
                assert_eq!(critical.because, Because::Others);
                continue;
            };
            match critical.because {
                Because::Order => {
                    assert!(job.predecessors(critical.task).any(|task| task == before));
                    by_order += 1;
                }
                Because::Core => {
                    assert_eq!(run.tasks[before].core, task.core);
                    by_core += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(at_ns, run.end_ns(), "seed {seed}");
    }
    assert!(by_order > 300 && by_core > 30, "{by_order} {by_core}");
}

/// Two cores, but memory for one of two children at a time: the second waits for the
/// first, and that is what sets the end.
#[test]
fn the_path_knows_who_holds_memory() {
    let items = vec![
        vec![
            Action::Start,
            Action::Fork { child: 1 },
            Action::Fork { child: 2 },
            Action::Join { child: Some(1) },
            Action::Join { child: Some(2) },
        ],
        vec![Action::ForkEnd, Action::Calculation],
        vec![Action::ForkEnd, Action::Calculation],
    ];
    let mut job = job_of(&mut Random::new(1), &items, 1, 1);
    for (process, bytes) in job.processes.iter_mut().zip([0, 60, 60]) {
        process.memory_bytes = bytes;
    }
    for task in &mut job.tasks {
        task.insns = u64::from(task.action == Action::Calculation) * 10;
    }
    let because = |bytes| {
        let machine = machine(1_000_000_000, &[(bytes, &[1, 1])]);
        let mut store = Store::new(machine, Balancing::Dynamic);
        let request = Request::new(RunId(0), &job).without_deadline();
        reserve(&mut store, &request, &Options::default()).expect("it fits");
        let path = critical_path(&job, store.run(RunId(0)).expect("it is planned"));
        path.iter().any(|step| step.because == Because::Memory)
    };
    assert!(because(100));
    assert!(!because(120));
}
