// SPDX-License-Identifier: GPL-2.0

//! The configuration in version 1, where lengths are instructions.

use super::super::config::Config;
use super::super::rate::Rate;
use super::super::refusal::{Fault, Refusal};
use super::format::HEADER_BYTES;

/// Count of its numbers: the first of [`Config::NAMES`].
pub(super) const COUNT: usize = 25;

/// Numbers that are instructions: their places, and their names in version 1.
const LENGTHS: [(usize, &str); 7] = [
    (1, "preemption_limit_insns"),
    (2, "no_preemption_insns"),
    (8, "t2_spacer_insns"),
    (9, "t2_task_signaling_limit_insns"),
    (13, "reschedule_time_insns"),
    (14, "t2_min_process_insns"),
    (18, "stress_gain_insns"),
];

/// Place of the number that also was the lower bound of tm2_node.
const T2_MIN_PROCESS: usize = 14;
const TM2_NODE_LOWER_BOUND: usize = COUNT;

/// Refuses numbers out of their ranges, which are those of the times on a node
/// that retires one instruction a nanosecond.
pub(super) fn check(values: [u64; COUNT]) -> Result<(), Refusal> {
    with_bound(values).check().map_err(|refusal| {
        let Fault::Config {
            name,
            value,
            least,
            most,
        } = refusal.fault
        else {
            return refusal;
        };
        let index = (refusal.offset_bytes as usize).saturating_sub(HEADER_BYTES) / 8;
        let old = LENGTHS.iter().find(|(place, _)| *place == index);
        Refusal {
            fault: Fault::Config {
                name: old.map_or(name, |(_, old)| old),
                value,
                least,
                most,
            },
            ..refusal
        }
    })
}

/// The times that stand for the numbers on a CPU of that rate.
///
/// Each becomes the same number of instructions again, or one that is greater by
/// less than the CPU retires in a nanosecond.  Times beyond what a configuration
/// may have are cut off there.
pub(super) fn times(mut values: [u64; COUNT], rate: Rate) -> Config {
    for (place, _) in LENGTHS {
        if let Some(value) = values.get_mut(place) {
            *value = rate.length_ns(*value);
        }
    }
    // In the order of the numbers, as the ranges of some depend on others before them.
    let mut config = with_bound(values);
    for place in 0..Config::COUNT {
        let mut values = config.values();
        if let (Some(value), Some(&(least, most))) =
            (values.get_mut(place), config.ranges().get(place))
        {
            *value = (*value).min(most).max(least);
        }
        config = Config::from_values(values);
    }
    config
}

fn with_bound(values: [u64; COUNT]) -> Config {
    let mut all = Config::DEFAULT.values();
    all.iter_mut()
        .zip(values)
        .for_each(|(place, value)| *place = value);
    if let (Some(place), Some(&bound)) = (
        all.get_mut(TM2_NODE_LOWER_BOUND),
        values.get(T2_MIN_PROCESS),
    ) {
        *place = bound;
    }
    Config::from_values(all)
}
