// SPDX-License-Identifier: GPL-2.0

//! What holds for all plans and all processes.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::wire::IDLE;
use crate::{Config, EventKind, Threshold};

use super::driver::{Machine, Task, Work};
use super::scene::CONFIG;
use super::text;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        // The same cases everywhere; PROPTEST_RNG_SEED gives others.
        rng_seed: match std::env::var("PROPTEST_RNG_SEED") {
            Ok(seed) => RngSeed::Fixed(seed.parse().unwrap()),
            Err(_) => RngSeed::Fixed(2021),
        },
        ..ProptestConfig::default()
    }
}

/// A slot and the task that was planned for it.
#[derive(Clone, Debug)]
struct Place {
    process: u32,
    length_insns: u64,
    /// The real length as a share of the planned one.
    real_permille: u64,
    block: Option<(u64, u64)>,
}

fn place(processes: u32, real: impl Strategy<Value = u64>) -> impl Strategy<Value = Place> {
    let process = prop_oneof![4 => 0..processes, 1 => Just(IDLE)];
    let length = prop_oneof![1..100u64, 1..20_000u64, 1..2_000_000u64];
    let block = option::weighted(0.2, (0..1_000_000u64, 1..3_000_000u64));
    (process, length, real, block).prop_map(|(process, length_insns, real_permille, block)| Place {
        process,
        length_insns,
        real_permille,
        block,
    })
}

fn config() -> impl Strategy<Value = Config> {
    let window = (1_000_000..20_000_000u64, 10..900u64);
    (
        1001..3000u64,
        0..100_000u64,
        0..=1000u64,
        1000..5000u64,
        window,
    )
        .prop_map(
            |(sigma, limit, share, factor, (period_ns, unallocated_permille))| {
                let config = Config {
                    sigma_t1_permille: sigma,
                    preemption_limit_insns: limit,
                    no_preemption_insns: limit * share / 1000,
                    ceiling_factor_permille: factor,
                    ceiling_extra_ns: 100_000,
                    window_period_ns: period_ns,
                    window_unallocated_ns: (period_ns * unallocated_permille).div_ceil(1000),
                    thresholds: Threshold::T1 as u64,
                    ..CONFIG
                };
                assert_eq!(config.check(), Ok(()));
                config
            },
        )
}

/// The processes as they really are, by their index in the plan.
fn works(places: &[Place], arrivals: &[u64]) -> Vec<Work> {
    let mut ids: Vec<u32> = places.iter().map(|place| place.process).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|&id| id != IDLE);
    ids.into_iter()
        .map(|id| Work {
            arrival_ns: arrivals[id as usize],
            tasks: places
                .iter()
                .filter(|place| place.process == id)
                .map(|place| Task {
                    real_insns: (place.length_insns * place.real_permille / 1000).max(1),
                    block: place.block,
                })
                .collect(),
        })
        .collect()
}

fn slots(places: &[Place]) -> Vec<(u32, u64)> {
    let slots = places
        .iter()
        .map(|place| (place.process, place.length_insns));
    // At least one process.
    slots.chain([(0, 1000)]).collect()
}

fn with_last(mut places: Vec<Place>) -> Vec<Place> {
    places.push(Place {
        process: 0,
        length_insns: 1000,
        real_permille: 1000,
        block: None,
    });
    places
}

proptest! {
    #![proptest_config(cases(1500))]

    /// Whatever is late, early, blocked or absent: each task ends once, in
    /// order, having retired what it really needs.
    #[test]
    fn every_task_ends_once_and_in_order(
        places in vec(place(6, 100..3000u64), 0..60),
        arrivals in vec(prop_oneof![Just(0), 0..5_000_000u64, 0..1_000_000_000u64], 6),
        config in config(),
        delay_ns in prop_oneof![Just(0), 0..5000u64],
    ) {
        let plan = text::plan(&slots(&places));
        let mut machine = Machine::new(plan, config, works(&with_last(places), &arrivals), delay_ns);
        machine.run();
        machine.check_end();
    }

    /// Nothing is late, blocked or absent: the plan is what happens.
    #[test]
    fn order_is_the_plan_when_all_is_as_planned(
        places in vec(place(6, 100..=1000u64), 0..60),
        config in config(),
    ) {
        let mut places = with_last(places);
        for place in &mut places {
            place.block = None;
        }
        let slots = slots(&places[..places.len() - 1]);
        let planned: Vec<u32> = slots.iter().map(|slot| slot.0).filter(|&id| id != IDLE).collect();
        let works = works(&places, &[0; 6]);
        let mut machine = Machine::new(text::plan(&slots), config, works, 0);
        machine.run();
        machine.check_end();
        let ended: Vec<u32> =
            machine.log.tasks(EventKind::TaskEnded).iter().map(|task| task.0).collect();
        prop_assert_eq!(ended, planned);
        let counts = machine.node.counts();
        prop_assert_eq!(counts.get(EventKind::Preempted), 0);
        prop_assert_eq!(counts.get(EventKind::Ceiling), 0);
    }

    /// A plan of one process without idle slots takes as long as its work.
    #[test]
    fn one_process_never_waits(places in vec(place(1, 100..3000u64), 0..60)) {
        let mut places = with_last(places);
        places.retain(|place| place.process != IDLE);
        for place in &mut places {
            place.block = None;
        }
        let slots = slots(&places[..places.len() - 1]);
        let works = works(&places, &[0]);
        let real_ns: u64 = works[0].tasks.iter().map(|task| task.real_insns).sum();
        let mut machine = Machine::new(text::plan(&slots), CONFIG, works, 0);
        prop_assert_eq!(machine.run(), real_ns);
        machine.check_end();
    }
}
