// SPDX-License-Identifier: GPL-2.0

//! Any configuration that is accepted, and the formulas of the thresholds for it.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::wire::{MAX_BUFFER_INSNS, MAX_PLAN_INSNS, MAX_PROCESSES, MAX_SLOT_INSNS};
use crate::{Config, Progress};

use super::exact;
use super::AtOne;

pub(super) fn cases(cases: u32) -> ProptestConfig {
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

/// A number of a range: its ends often, and as many small ones as great ones.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Least,
    Most,
    Even(u64),
    Small(u64, u32),
}

impl Choice {
    fn of(self, least: u64, most: u64) -> u64 {
        let of_width = |number: u64| match (most - least).checked_add(1) {
            Some(width) => least + number % width,
            None => number,
        };
        match self {
            Choice::Least => least,
            Choice::Most => most,
            Choice::Even(number) => of_width(number),
            Choice::Small(number, bits) => of_width(number >> bits),
        }
    }
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        1 => Just(Choice::Least),
        1 => Just(Choice::Most),
        2 => any::<u64>().prop_map(Choice::Even),
        4 => (any::<u64>(), 0..64u32).prop_map(|(number, bits)| Choice::Small(number, bits)),
    ]
}

fn number(least: u64, most: u64) -> impl Strategy<Value = u64> {
    choice().prop_map(move |choice| choice.of(least, most))
}

/// Numbers of a configuration that are drawn; those after them are as the first ones are, so that a
/// new number leaves the cases of all others as they are.
const DRAWN: usize = 32;

/// Any configuration that is accepted.
pub(super) fn any_config() -> impl Strategy<Value = Config> {
    vec(choice(), DRAWN).prop_map(|choices| {
        let mut config = Config::DEFAULT;
        // No range depends on a number that comes after it.
        for (index, choice) in choices.into_iter().cycle().take(Config::COUNT).enumerate() {
            let (least, most) = config.ranges()[index];
            // σ_t1 and NO_PREEMPTION leave room for σ_t2 and T2_SPACER.
            let most = match Config::NAMES[index] {
                "sigma_t1_permille" => most - 1,
                "no_preemption_ns" => most.min((1 << 48) - 1),
                _ => most,
            };
            let mut values = config.values();
            values[index] = choice.of(least, most);
            config = Config::from_values(values);
        }
        assert_eq!(config.check(), Ok(()));
        config
    })
}

fn progress() -> impl Strategy<Value = Progress> {
    (
        number(0, MAX_PLAN_INSNS),
        number(0, MAX_PLAN_INSNS),
        number(0, u64::MAX),
        number(0, MAX_BUFFER_INSNS),
    )
        .prop_map(
            |(begun_insns, planned_insns, retired_insns, buffer_insns)| Progress {
                begun_insns,
                planned_insns,
                retired_insns,
                buffer_insns,
            },
        )
}

fn sorted(a: u64, b: u64) -> [u64; 2] {
    [a.min(b), a.max(b)]
}

/// Whether the values rise, or stay, from each step to the next.
fn rises<T: PartialOrd, const N: usize>(steps: [u64; N], of: impl FnMut(u64) -> T) -> bool {
    let values: Vec<T> = steps.into_iter().map(of).collect();
    values.windows(2).all(|pair| pair[0] <= pair[1])
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// The formulas agree with exact arithmetic: t1 is less than t2_task, and nothing overflows.
    #[test]
    fn formulas_are_exact(
        config in any_config(),
        length in number(1, MAX_SLOT_INSNS),
        progress in progress(),
        active in number(0, MAX_PROCESSES.into()),
        stress in number(0, 1_000_000),
    ) {
        let active = active as u32;
        exact::assert_task(&config, length);
        exact::assert_process(&config, &progress, active, stress);
        exact::assert_node(&config, progress.begun_insns, active, stress);
    }

    #[test]
    fn formulas_rise_and_fall_with_what_they_should(
        config in any_config(),
        a in number(1, MAX_SLOT_INSNS),
        b in number(1, MAX_SLOT_INSNS),
        progress in progress(),
        counts in (1..=MAX_PROCESSES, 1..=MAX_PROCESSES),
        points in (0..=1_000_000u64, 0..=1_000_000u64),
    ) {
        let (times, config) = (config, config.at_one());
        let lengths = sorted(a, b);
        prop_assert!(rises(lengths, |insns| config.t1_insns(insns)));
        prop_assert!(rises(lengths, |insns| config.t2_task_insns(insns)));
        prop_assert!(rises(lengths, |insns| config.tm2_task_insns(insns)));
        prop_assert!(rises(lengths, |insns| config.capacity_buffer_insns(insns)));
        let active = counts.0;
        let with = |change: &dyn Fn(&mut Progress, u64), insns: u64| {
            let mut progress = progress;
            change(&mut progress, insns);
            config.process_limit_insns(&progress, active, points.0)
        };
        prop_assert!(rises(lengths, |insns| with(&|p, insns| p.begun_insns = insns, insns)));
        prop_assert!(rises(lengths, |insns| with(&|p, insns| p.retired_insns = insns, insns)));
        prop_assert!(rises(lengths, |insns| with(&|p, insns| p.buffer_insns = insns, insns)));
        let stress = sorted(points.0, points.1);
        let of_process = |active, stress| config.t2_process_insns(&progress, active, stress);
        prop_assert!(rises(stress, |stress| of_process(active, stress)));
        let few_and_many = sorted(counts.0.into(), counts.1.into());
        prop_assert!(rises(few_and_many, |n| u64::MAX - of_process(n as u32, points.0)));
        let of_node = |begun_insns, n: u64, stress| config.t2_node_insns(begun_insns, n as u32, stress);
        prop_assert!(rises(lengths, |insns| of_node(insns, active.into(), points.0)));
        prop_assert!(rises(stress, |stress| of_node(a, active.into(), stress)));
        prop_assert!(rises(few_and_many, |n| of_node(a, n, points.0)));
        prop_assert!(rises(lengths, |insns| -config.tm2_node_insns(insns)));
        prop_assert!(rises(sorted(a << 8, b << 8), |ns| u64::MAX - times.stress(ns)));
    }
}
