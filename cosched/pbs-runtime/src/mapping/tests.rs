// SPDX-License-Identifier: GPL-2.0
//! Tests of decisions with data that other processes wrote.

use super::*;
use pbs_cosched::{EnhancedOptions, GreedyOptions};
use pbs_csi::Csi;
use proptest::collection::vec;
use proptest::prelude::*;

fn devices() -> Vec<Device> {
    let device = |name: &str, models, count| Device { name: name.into(), models, count };
    vec![device("cpu", 0b11, 4), device("gpu", 0b100, 1)]
}

fn entry(pid: u32, task: u64) -> Entry {
    Entry {
        slot: pid * 100 + task as u32,
        owner: Owner { pid, start_ticks: 1 },
        task,
        state: pbs_csi::State::Waiting,
        is_scheduled: false,
        is_ready: true,
        submission: task,
        registered_ns: 5,
        priority: 0,
        round: 0,
        capabilities: 0,
        device: None,
        units: 0,
        instance: None,
        expected_end_ns: 0,
        runtime_ns: 0,
        acknowledged: 0,
    }
}

fn waiting(pid: u32, task: u64, after: &[u64], variants: &[pbs_csi::Variant]) -> Waiting {
    let entry = entry(pid, task);
    Waiting {
        csi: Csi {
            owner: entry.owner,
            task,
            dependencies: after.to_vec(),
            reverse_dependencies: Vec::new(),
            best_index: None,
            variants: variants.to_vec(),
            transfer_ns: 0,
            is_transfer: false,
        },
        entry,
    }
}

fn variant(model: u32, threads: u32, runtime_ns: u64, device: u32) -> pbs_csi::Variant {
    pbs_csi::Variant { model, threads, runtime_ns, device }
}

fn snapshot(waiting: Vec<Waiting>, in_execution: Vec<Entry>) -> Snapshot {
    Snapshot { generation: 1, now_ns: 10, devices: devices(), waiting, in_execution }
}

/// Greedy gives the accelerator to the older task, and the other then takes ten times as long.
#[test]
fn the_default_scheduler_is_better_than_greedy_and_stops_by_itself() {
    const MS: u64 = 1_000_000;
    let first = [variant(2, 1, 10 * MS, 1), variant(0, 1, 11 * MS, 0)];
    let second = [variant(2, 1, 20 * MS, 1), variant(0, 1, 200 * MS, 0)];
    let given = snapshot(vec![waiting(7, 1, &[], &first), waiting(8, 2, &[], &second)], Vec::new());
    let best_of = |placements: Vec<Placement>| {
        let mut best = [u32::MAX; 2];
        for placement in placements {
            best[placement.task as usize - 1] = placement.best_index;
        }
        best
    };
    // Not co-scheduling is better than that: both on the accelerator.
    assert_eq!(best_of(greedy(&given)), [0, 0]);
    let how = crate::CoScheduling::new(pbs_csi::Options::default());
    let mut tried = 0;
    let mut keep_going = || {
        tried += 1;
        true
    };
    let placements = decide(&given, &how.scheduler, how.objective, &mut keep_going);
    assert_eq!(best_of(placements), [1, 0]);
    assert!((1..=2 * MAPPINGS_PER_TASK).contains(&tried), "{tried}");
}

fn greedy(snapshot: &Snapshot) -> Vec<Placement> {
    let scheduler = Scheduler::Greedy(GreedyOptions::default());
    decide(snapshot, &scheduler, Objective::default(), &mut || false)
}

#[test]
fn a_variant_of_an_unknown_device_is_left_out_and_numbers_stay() {
    let variants = [variant(2, 1, 1, 9), variant(2, 1, 100, 1)];
    let placements = greedy(&snapshot(vec![waiting(1, 1, &[], &variants)], Vec::new()));
    assert_eq!(placements.len(), 1);
    assert_eq!((placements[0].best_index, placements[0].device), (1, 1));
}

#[test]
fn a_process_whose_tasks_wait_for_each_other_is_left_out_alone() {
    let variants = [variant(0, 1, 100, 0)];
    let bad = [waiting(1, 1, &[2], &variants), waiting(1, 2, &[1], &variants)];
    let good = waiting(2, 1, &[], &variants);
    let all = bad.into_iter().chain([good]).collect();
    let placements = greedy(&snapshot(all, Vec::new()));
    let owners: Vec<u32> = placements.iter().map(|of| of.owner.pid).collect();
    assert_eq!(owners, [2]);
}

/// The GPU is taken for long: who can use a thread does.
#[test]
fn what_is_in_execution_takes_its_device() {
    let mut running = entry(1, 1);
    running.state = pbs_csi::State::InExecution;
    running.device = Some(1);
    running.units = 1;
    running.instance = Some(0);
    running.expected_end_ns = 1_000_000;
    let variants = [variant(0, 1, 200, 0), variant(2, 1, 100, 1)];
    let free = greedy(&snapshot(vec![waiting(2, 1, &[], &variants)], Vec::new()));
    assert_eq!(free[0].best_index, 1);
    let taken = snapshot(vec![waiting(2, 1, &[], &variants)], vec![running]);
    assert_eq!(greedy(&taken)[0].best_index, 0);
}

/// Ten layers of ten transfers: 10^10 ways.
#[test]
fn layers_of_transfers_do_not_keep_a_master_busy_for_ever() {
    let mut all = Vec::new();
    for layer in 0..10_u64 {
        for number in 0..10 {
            let before: Vec<u64> = match layer {
                0 => Vec::new(),
                layer => (0..10).map(|of| (layer - 1) * 10 + of).collect(),
            };
            let mut one = waiting(1, layer * 10 + number, &before, &[]);
            one.csi.is_transfer = true;
            all.push(one);
        }
    }
    let last: Vec<u64> = (90..100).collect();
    all.push(waiting(1, 100, &last, &[variant(0, 1, 1, 0)]));
    all.push(waiting(2, 1, &[], &[variant(0, 1, 1, 0)]));
    let placements = greedy(&snapshot(all, Vec::new()));
    assert_eq!(placements.len(), 2);
}

/// A process that declares the longest times for as many tasks as it may register does not prevent
/// decisions for others.
#[test]
fn long_times_of_one_process_do_not_prevent_decisions_for_others() {
    let long = [variant(0, 1, u64::MAX, 0)];
    let mut all: Vec<Waiting> = (1..=9_000).map(|task| waiting(1, task, &[], &long)).collect();
    all.push(waiting(2, 1, &[], &[variant(0, 1, 1, 0)]));
    let placements = greedy(&snapshot(all, Vec::new()));
    assert!(placements.iter().any(|of| of.owner.pid == 2));
}

/// Transfers in a circle leave out their owner, and nobody else's order.
#[test]
fn transfers_in_a_circle_harm_their_owner_alone() {
    let transfer = |task: u64, before: u64| {
        let mut one = waiting(1, task, &[before], &[]);
        one.csi.is_transfer = true;
        one
    };
    let variants = [variant(0, 1, 100, 0)];
    let all = vec![
        transfer(1, 2),
        transfer(2, 1),
        waiting(1, 3, &[1], &variants),
        waiting(2, 1, &[2], &variants),
        waiting(2, 2, &[], &variants),
    ];
    let placements = greedy(&snapshot(all, Vec::new()));
    let order: Vec<_> = placements.iter().map(|of| (of.owner.pid, of.task, of.round)).collect();
    assert_eq!(order.len(), 2, "{order:?}");
    let round = |task| order.iter().find(|of| (of.0, of.1) == (2, task)).unwrap().2;
    assert!(round(2) < round(1), "{order:?}");
}

fn any_waiting() -> impl Strategy<Value = Waiting> {
    let number = prop_oneof![0..6_u64, any::<u64>()];
    let small = prop_oneof![0..5_u32, any::<u32>()];
    let one = (0..32_u32, small.clone(), number.clone(), small.clone());
    let one = one.prop_map(|(model, threads, ns, device)| variant(model, threads, ns, device));
    let some = (1..4_u32, 0..8_u64, vec(number.clone(), 0..4), vec(one, 0..4));
    (some, any::<bool>(), number).prop_map(|((pid, task, after, variants), is_transfer, ns)| {
        let mut of = waiting(pid, task, &after, &variants);
        of.csi.is_transfer = is_transfer && task % 3 == 0;
        of.csi.transfer_ns = ns;
        of.entry.registered_ns = ns;
        of
    })
}

fn any_running() -> impl Strategy<Value = Entry> {
    let small = prop_oneof![0..5_u32, any::<u32>()];
    let times = prop_oneof![0..6_u64, any::<u64>()];
    (1..4_u32, small.clone(), small.clone(), small, times.clone(), times).prop_map(
        |(pid, device, units, instance, end_ns, runtime_ns)| {
            let mut of = entry(pid, u64::from(device) + 50);
            of.state = pbs_csi::State::InExecution;
            (of.device, of.units, of.instance) = (Some(device), units, Some(instance));
            (of.expected_end_ns, of.runtime_ns) = (end_ns, runtime_ns);
            of
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever others have written, what is decided is of those tasks and can be.
    #[test]
    fn a_decision_is_possible_whatever_others_write(
        waiting in vec(any_waiting(), 0..12),
        running in vec(any_running(), 0..6),
        now_ns in prop_oneof![0..9_u64, Just(1 << 60)],
        counts in prop_oneof![Just((4_u32, 1_u32)), any::<(u32, u32)>()],
    ) {
        let mut given = snapshot(waiting, running);
        given.now_ns = now_ns;
        given.devices[0].count = counts.0 % 4096;
        given.devices[1].count = counts.1 % 4096;
        for scheduler in [
            Scheduler::Greedy(GreedyOptions::default()),
            Scheduler::EnhancedRandom(EnhancedOptions::default(), 1),
            Scheduler::Evolutionary(1),
        ] {
            let mut left = 20;
            let mut keep_going = || { left -= 1; left > 0 };
            let decided = decide(&given, &scheduler, Objective::default(), &mut keep_going);
            for placement in decided {
                let mut of = given.waiting.iter();
                let is_one = of.any(|of| {
                    let variants = &of.csi.variants;
                    of.entry.task == placement.task
                        && of.entry.owner == placement.owner
                        && (placement.best_index as usize) < variants.len()
                });
                prop_assert!(is_one);
            }
        }
    }
}
