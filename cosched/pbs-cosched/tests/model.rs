// SPDX-License-Identifier: GPL-2.0
//! Tests of the model and its checks, one for each feature.

mod common;

use common::{build, cpu, platform, GPU};
use pbs_cosched::{
    check, direct_dependencies, measure, not_co_scheduled, simulate, speed_up, timing, Entry,
    ExecutionTarget, Fault, Mapping, Options, Queues, Recorded, Score, State, Where,
};

const OTHER: ExecutionTarget = ExecutionTarget::Device(1);

#[test]
fn check_reports_all_faults_at_once_and_names_cycles() {
    let mut all = build(&[0]);
    all.0.processes[0].name = "p".into();
    all.task(0, &[(2, 0)], &[(cpu(1), 1)]);
    all.task(0, &[(0, 0)], &[(cpu(1), 1)]);
    all.task(0, &[(1, 0)], &[(cpu(1), 1)]);
    all.task(0, &[(9, 0)], &[(cpu(9), 1), (OTHER, 1)]);
    all.task(4, &[(4, 0)], &[]);
    all.task(0, &[], &[(cpu(1), 1)]);
    all.0.tasks[5].name = "t0".into();
    let on = platform(8, &[1]);
    let mut faults = check(&all.0, &on).unwrap_err();
    for wanted in [
        Fault::Cycle(vec![0, 2, 1]),
        Fault::Cycle(vec![4]),
        Fault::NoSuchPredecessor { task: 3, predecessor: 9 },
        Fault::NothingFits { task: 3 },
        Fault::NoSuchProcess { task: 4 },
        Fault::NoVariant { task: 4 },
        Fault::SameName { task: 5, other: 0 },
    ] {
        let at = faults.iter().position(|fault| *fault == wanted);
        faults.remove(at.unwrap_or_else(|| panic!("no {wanted:?} in {faults:?}")));
    }
    assert_eq!(faults, []);
    assert_eq!(
        Fault::Cycle(vec![0, 2, 1]).tell(&all.0),
        "tasks wait in a circle, \"t0\" of process \"p\" for \"t2\" of process \"p\" for \"t1\" of \
         process \"p\" for \"t0\" of process \"p\": take one of these dependencies away"
    );
    assert!(simulate(&all.0, &on, &Options::default()).is_err());
    // A diamond is no cycle, and neither is a task two others wait for.
    let mut all = build(&[0]);
    let top = all.task(0, &[], &[(cpu(1), 1)]);
    let left = all.task(0, &[(top, 0)], &[(cpu(1), 1)]);
    let right = all.task(0, &[(top, 0)], &[(cpu(1), 1)]);
    all.task(0, &[(left, 0), (right, 0)], &[(cpu(1), 1)]);
    assert_eq!(check(&all.0, &on), Ok(()));
}

#[test]
fn devices_are_grouped_by_type_and_each_has_its_memory() {
    let mut all = build(&[0]);
    let first = all.task(0, &[], &[(GPU, 10)]);
    all.task(0, &[], &[(GPU, 10)]);
    all.task(0, &[], &[(OTHER, 30)]);
    // Waits 4 for its data on the other accelerator, and 6 behind the first.
    let near = all.task(0, &[(first, 7)], &[(GPU, 5)]);
    let on = platform(1, &[2, 1]);
    let mapping = not_co_scheduled(&all.0, &on, &Queues::idle(&on));
    let timeline = timing(&all.0, &on, &Queues::idle(&on), &mapping).unwrap();
    let of = |task: usize| timeline.slots[task].clone().unwrap();
    assert_eq!(of(0).place, Where::Device { device: 0, instance: 0 });
    assert_eq!(of(1).place, Where::Device { device: 0, instance: 1 });
    assert_eq!(of(2).place, Where::Device { device: 1, instance: 0 });
    assert_eq!((of(near).place, of(near).start_ns), (of(0).place, 10));
    // On the CPU its data travel.
    all.0.tasks[near].variants = common::variants(&[(cpu(1), 5)]);
    let timeline = timing(&all.0, &on, &Queues::idle(&on), &mapping).unwrap();
    assert_eq!(timeline.slots[near].as_ref().unwrap().start_ns, 17);
}

#[test]
fn queues_have_owner_execution_and_expected_end() {
    let on = platform(3, &[2]);
    let mut queues = Queues::idle(&on);
    let entry =
        |process, in_execution, end_ns| Entry { process, in_execution, runtime_ns: 10, end_ns };
    queues.now_ns = 5;
    queues.threads[0] = vec![entry(0, true, 20), entry(1, false, 30)];
    queues.threads[1] = vec![entry(0, true, 9)];
    queues.devices[0][0] = vec![entry(1, false, 50)];
    queues.devices[0][1] = vec![entry(1, true, 4)];
    let start_ns = |queues: &Queues, place| {
        let mut all = build(&[0]);
        all.task(0, &[], &[(place, 7)]);
        let mapping = Mapping::in_order(1, [(0, 0)]);
        let timeline = timing(&all.0, &on, queues, &mapping).unwrap();
        timeline.slots[0].as_ref().unwrap().start_ns
    };
    // Tasks enter behind all that stands in a queue; what has ended is no hindrance.
    assert_eq!([1, 2, 3].map(|threads| start_ns(&queues, cpu(threads))), [5, 9, 30]);
    assert_eq!(start_ns(&queues, GPU), 5);
    queues.devices[0][1].push(entry(1, true, 60));
    assert_eq!(start_ns(&queues, GPU), 50);
    // What is not in execution goes before all is mapped anew.
    queues.keep_running();
    assert_eq!(queues.threads[0], [entry(0, true, 20)]);
    assert_eq!((start_ns(&queues, cpu(3)), start_ns(&queues, GPU)), (20, 5));
}

#[test]
fn indirect_dependencies_give_way_to_direct_ones() {
    let of = |name: &str, after: &[&str], before: &[&str], transfer_ns| Recorded {
        name: name.into(),
        after: after.iter().map(|&name| name.into()).collect(),
        before: before.iter().map(|&name| name.into()).collect(),
        transfer_ns,
    };
    // a → copy → b, where copy has no record; c waits for b and for what is gone.
    let recorded = [
        of("1-a", &[], &["1-copy"], None),
        of("1-b", &["1-copy"], &["1-c"], None),
        of("1-c", &["1-b", "1-gone"], &[], None),
    ];
    let direct = |recorded: &[Recorded]| -> Vec<Vec<(usize, u64)>> {
        let found = direct_dependencies(recorded).unwrap();
        found
            .iter()
            .map(|of| of.iter().map(|edge| (edge.task, edge.transfer_ns)).collect())
            .collect()
    };
    assert_eq!(direct(&recorded), [vec![], vec![(0, 0)], vec![(1, 0)]]);
    // Transfers with records: behind each other, and two ways to one task.
    let recorded = [
        of("a", &[], &[], None),
        of("out", &["a"], &[], Some(5)),
        of("in", &["out"], &[], Some(7)),
        of("short", &["a"], &[], Some(3)),
        of("b", &["in", "short"], &[], None),
        of("c", &["a"], &[], None),
    ];
    let found = direct(&recorded);
    assert_eq!((&found[4], &found[5]), (&vec![(0, 12)], &vec![(0, 0)]));
    assert_eq!(found[2], []);
    // Transfers that wait for each other are told, not followed for ever.
    let recorded =
        [of("x", &["y"], &[], Some(1)), of("y", &["x"], &[], Some(1)), of("a", &["x"], &[], None)];
    assert_eq!(direct_dependencies(&recorded), Err(vec!["x".into(), "y".into()]));
}

#[test]
fn reports_have_speed_up_load_and_fairness() {
    let mut all = build(&[0, 10]);
    all.task(0, &[], &[(cpu(2), 30)]);
    all.task(1, &[], &[(GPU, 10)]);
    all.task(1, &[], &[(cpu(1), 10)]);
    all.0.processes[1].deadline_ns = Some(39);
    let on = platform(3, &[1]);
    let mapping = not_co_scheduled(&all.0, &on, &Queues::idle(&on));
    let timeline = timing(&all.0, &on, &Queues::idle(&on), &mapping).unwrap();
    let measures = measure(&all.0, &on, &timeline);
    // 2 · 30 + 10 + 10 of 4 · 30; the CPU as one is never idle.
    assert!((measures.load - 80.0 / 120.0).abs() < 1e-12);
    assert!((measures.load_monolithic - 40.0 / 60.0).abs() < 1e-12);
    assert_eq!(measures.threads_busy_ns.iter().sum::<u64>(), 70);
    assert_eq!(measures.devices_busy_ns, [[10]]);
    assert_eq!(measures.turnarounds_ns, [Some(30), Some(10)]);
    assert_eq!(measures.delta_ns, 20);
    assert_eq!(
        measures.score,
        Score { misses: 0, makespan_ns: 30, turnarounds_ns: 40, runtimes_ns: 50 }
    );
    let mut longer = measures.clone();
    longer.score.makespan_ns = 45;
    assert!((speed_up(&longer, &measures) - 1.5).abs() < 1e-12);
    // One thread is a CPU, too; and none is not.
    let mut one = build(&[0]);
    one.task(0, &[], &[(cpu(1), 5), (GPU, 5)]);
    for (threads, variant) in [(1, 0), (0, 1)] {
        let on = platform(threads, &[1 - threads]);
        let mapping = Mapping::in_order(1, [(0, variant)]);
        let timeline = timing(&one.0, &on, &Queues::idle(&on), &mapping).unwrap();
        assert_eq!(measure(&one.0, &on, &timeline).load_monolithic, 1.0);
    }
    // Nothing ran.
    let nothing = measure(&all.0, &on, &pbs_cosched::Timeline::default());
    assert_eq!((nothing.load, nothing.delta_ns), (0.0, 0));
}

#[test]
fn mappings_that_cannot_be_are_refused() {
    let mut all = build(&[0]);
    all.chain(0, 2, &[(cpu(1), 1), (cpu(9), 1)]);
    let on = platform(2, &[]);
    let mut queues = Queues::idle(&on);
    let of = |order: &[(usize, usize)]| Mapping::in_order(2, order.iter().copied());
    let refused = |queues: &Queues, mapping: &Mapping| timing(&all.0, &on, queues, mapping);
    assert!(refused(&queues, &of(&[(0, 0), (1, 0)])).is_ok());
    assert_eq!(
        refused(&queues, &of(&[(1, 0), (0, 0)])),
        Err(Fault::BeforeItsPredecessor { task: 1, predecessor: 0 })
    );
    assert_eq!(refused(&queues, &of(&[(0, 2)])), Err(Fault::NoSuchVariant { task: 0, variant: 2 }));
    assert_eq!(refused(&queues, &of(&[(0, 1)])), Err(Fault::TooLarge { task: 0, variant: 1 }));
    // The dependency is satisfied.
    queues.tasks = vec![State::Absent];
    assert!(refused(&queues, &of(&[(1, 0)])).is_ok());
    assert_eq!(refused(&queues, &of(&[(0, 0)])), Err(Fault::NotWaiting { task: 0 }));
}

/// Through layers of transfers, each behind all of the one before, lead more ways than can be
/// gone one by one.
#[test]
fn each_layer_of_transfers_is_visited_once() {
    let mut recorded = vec![Recorded { name: "first".into(), ..Recorded::default() }];
    let mut before = vec!["first".to_owned()];
    for layer in 0..40 {
        let names: Vec<String> = (0..4).map(|number| format!("{layer}-{number}")).collect();
        for (number, name) in (1..).zip(&names) {
            recorded.push(Recorded {
                name: name.clone(),
                after: before.clone(),
                transfer_ns: Some(number),
                ..Recorded::default()
            });
        }
        before = names;
    }
    recorded.push(Recorded { name: "last".into(), after: before, ..Recorded::default() });
    let found = direct_dependencies(&recorded).unwrap();
    // The slowest of each layer.
    assert_eq!(found.last().unwrap()[..], [pbs_cosched::Edge { task: 0, transfer_ns: 40 * 4 }]);
}

/// Times that would not fit when they are added up are refused.
#[test]
fn times_whose_sum_overflows_are_refused() {
    let mut all = build(&[0]);
    for _ in 0..3 {
        all.task(0, &[], &[(cpu(1), u64::MAX / 4)]);
    }
    let on = platform(1, &[]);
    let faults = check(&all.0, &on).unwrap_err();
    assert_eq!(faults, [Fault::TooLong]);
    all.0.tasks.pop();
    all.0.tasks.pop();
    assert_eq!(check(&all.0, &on), Ok(()));
}
