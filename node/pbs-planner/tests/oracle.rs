// SPDX-License-Identifier: GPL-2.0
//! Plans of small nets beside the best ones, which are proven, and the oracle that
//! proves them.

mod common;

use common::checker::{check, Question};
use common::oracle::best;
use common::small::{optima, small, TICK_NS};
use common::{question_and_answer, question_of};
use pbs_planner::{
    admit, reserve, Balancing, Options, Request, RunId, Store, Strategy, Validation,
};

/// The nets that are looked at here, of those whose best plan is known.
const NETS: usize = 60;
/// Minimum percentage of the nets that get an optimal plan.
const OPTIMAL_PERCENT: usize = 65;
/// Nine of ten plans take at most so many percent of the best one's time.
const P90_PERCENT: u64 = 105;
/// With a deadline of so many percent of the best plan's time so many percent are
/// admitted, at least.
const ADMITTED_PERCENT: [(u64, usize); 3] = [(100, 65), (105, 90), (120, 99)];

const RUN: RunId = RunId(0);

/// The tasks of one job: process, instructions, and what is before; a core's rate is
/// in instructions of a tick.
fn question(
    cores: &[(usize, u128)],
    memories: &[u128],
    processes: &[u128],
    tasks: &[(usize, u128, &[usize])],
) -> Question {
    let tasks = tasks.iter().map(|&(process, insns, before)| (process, insns, before.to_vec()));
    Question {
        tick: TICK_NS.into(),
        cores: cores.to_vec(),
        memories: memories.to_vec(),
        jobs: vec![(0, u128::MAX)],
        processes: processes.iter().map(|&bytes| (0, bytes)).collect(),
        tasks: tasks.collect(),
        ..Question::default()
    }
}

/// Returns the end of the best plan, which the checker has verified.
fn best_end(question: &Question) -> Option<u64> {
    let found = best(question, u64::MAX, 100_000);
    assert!(found.is_proven);
    if let Some(end_ticks) = found.end_ticks {
        assert_eq!(check(question, &found.answer), Ok(()));
        let ends = found.answer.tasks.iter().map(|task| task.3);
        assert_eq!(ends.max(), Some(u128::from(end_ticks * TICK_NS)));
        // And there is none that ends before.
        let earlier = best(question, end_ticks, 100_000);
        assert_eq!((earlier.end_ticks, earlier.is_proven), (None, true));
    }
    found.end_ticks
}

#[test]
fn the_oracle_has_cores_wait_for_what_is_more_urgent() {
    // Processes 1 and 2 share the fast core, 0 and 3 the slow one, since no more fit.
    // Process 2 could go on at 2, for 4; but 1 goes on at 4, for 8, and all wait for it.
    let tasks: [(usize, u128, &[usize]); 8] = [
        (0, 0, &[]),
        (1, 10, &[0]),
        (2, 10, &[1]),
        (3, 1, &[2]),
        (3, 1, &[3]),
        (1, 80, &[4]),
        (2, 40, &[2]),
        (0, 5, &[0, 5]),
    ];
    let cores = [(0, 10), (1, 1)];
    let waits = question(&cores, &[10, 40], &[20, 5, 5, 20], &tasks);
    assert_eq!(best_end(&waits), Some(1 + 1 + 2 + 8 + 5));
}

#[test]
fn the_oracle_knows_memory() {
    // Three processes that may run at once, of 4, 3 and 2.
    let tasks: [(usize, u128, &[usize]); 3] = [(0, 4, &[]), (1, 3, &[]), (2, 2, &[])];
    let of = |memories: &[u128], cores: &[(usize, u128)], bytes: &[u128]| {
        best_end(&question(cores, memories, bytes, &tasks))
    };
    let three = [(0, 1), (0, 1), (0, 1)];
    assert_eq!(of(&[30], &three, &[10, 10, 10]), Some(4));
    // Two fit at once: 4 beside 3, and 2 after 3.
    assert_eq!(of(&[29], &three, &[10, 10, 10]), Some(5));
    assert_eq!(of(&[19], &three, &[10, 10, 10]), Some(9));
    assert_eq!(of(&[9], &three, &[10, 10, 10]), None);
    // The first fits on the second node alone, which is slow.
    assert_eq!(of(&[9, 10], &[(0, 2), (1, 1)], &[10, 5, 4]), Some(4));
}

#[test]
fn memory_that_a_parent_holds_can_stop_its_children() {
    // 0 forks 1 and joins it, and holds its memory meanwhile.
    let tasks: [(usize, u128, &[usize]); 3] = [(0, 1, &[]), (1, 2, &[0]), (0, 1, &[0, 1])];
    let of = |bytes| best_end(&question(&[(0, 1)], &[10], &[5, bytes], &tasks));
    assert_eq!(of(5), Some(4));
    assert_eq!(of(6), None);
}

/// The oracle's results equal the optima that another solver has proven.
#[test]
fn the_oracle_agrees_with_the_optima_that_are_known() {
    let mut proven = 0;
    for (seed, best_ticks) in optima().take(150) {
        let small = small(seed);
        let question =
            question_of(&small.machine, Balancing::Dynamic, &[(&small.job, 0, u64::MAX)]);
        let found = best(&question, u64::MAX, 1_000);
        if let Some(end_ticks) = found.end_ticks {
            assert_eq!(check(&question, &found.answer), Ok(()), "seed {seed}");
            assert!(end_ticks >= best_ticks, "seed {seed}: {end_ticks}");
        }
        if found.is_proven {
            proven += 1;
            assert_eq!(found.end_ticks, Some(best_ticks), "seed {seed}");
        }
    }
    assert!(proven >= 30, "{proven} proven");
}

#[test]
fn plans_of_small_nets_are_close_to_the_best() {
    let mut ratios_percent = Vec::new();
    let mut optimal = 0;
    let mut admitted = [0; ADMITTED_PERCENT.len()];
    for (seed, best_ticks) in optima().take(NETS) {
        let small = small(seed);
        let best_ns = best_ticks * TICK_NS;
        let empty = Store::new(small.machine, Balancing::Dynamic);
        let request = Request::new(RUN, &small.job);
        let see = |store: &Store, deadline_ns| {
            let runs = [(RUN, &small.job, 0, deadline_ns)];
            let (question, answer) = question_and_answer(store, &runs);
            assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
            let end_ns = store.run(RUN).expect("it is planned").end_ns();
            assert!(end_ns >= best_ns, "seed {seed}: the best is not the best");
            end_ns
        };
        let mut store = empty.clone();
        let planned = reserve(&mut store, &request, &Options::default());
        let ratio = planned.map_or(u64::MAX, |_| {
            let end_ns = see(&store, u64::MAX);
            optimal += usize::from(end_ns == best_ns);
            (end_ns * 100).div_ceil(best_ns)
        });
        ratios_percent.push(ratio);
        for (count, (percent, _)) in admitted.iter_mut().zip(ADMITTED_PERCENT) {
            let request = Request { deadline_ns: best_ns * percent / 100, ..request };
            let mut store = empty.clone();
            let (validation, options) = (Validation::default(), Options::default());
            if admit(&mut store, &request, &validation, &options).is_ok() {
                see(&store, request.deadline_ns);
                *count += 1;
            }
        }
    }
    let nets = ratios_percent.len();
    assert_eq!(nets, NETS);
    ratios_percent.sort_unstable();
    let p90 = ratios_percent[nets * 9 / 10 - 1];
    let told = format!("{optimal} optimal, p90 {p90} %, admitted {admitted:?} of {nets}");
    assert!(optimal * 100 >= OPTIMAL_PERCENT * nets, "{told}");
    assert!(p90 <= P90_PERCENT, "{told}");
    for (count, (_, percent)) in admitted.into_iter().zip(ADMITTED_PERCENT) {
        assert!(count * 100 >= percent * nets, "{told}");
    }
}

/// Memory so scarce that each rule puts some process where the others then have no
/// room.
#[test]
fn nets_that_no_rule_can_plan_get_a_plan() {
    for seed in [154, 274, 406, 438] {
        let small = small(seed);
        let mut store = Store::new(small.machine, Balancing::Dynamic);
        let request = Request::new(RUN, &small.job);
        let rules = Options { strategies: Strategy::ALL[..4].to_vec(), ..Options::default() };
        let refused = reserve(&mut store, &request, &rules);
        assert!(refused.is_err(), "seed {seed}");
        let planned = reserve(&mut store, &request, &Options::default());
        let planned = planned.expect("there is a plan");
        assert_eq!(planned.strategy, Strategy::LocalSearch);
        let runs = [(RUN, &small.job, 0, u64::MAX)];
        let (question, answer) = question_and_answer(&store, &runs);
        assert_eq!(check(&question, &answer), Ok(()), "seed {seed}");
    }
}
