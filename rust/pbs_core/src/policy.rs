// SPDX-License-Identifier: GPL-2.0

//! The configuration of one CPU, ready to be compared with what it retires.

use super::config::Config;
use super::rate::Rate;

/// A [`Config`] with its times as the instructions that a CPU retires in them.
///
/// Computed when a plan comes into force, and again when the rate of the CPU changes: no decision
/// converts anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are those of the configuration.
pub struct Policy {
    pub config: Config,
    pub preemption_limit_insns: u64,
    pub no_preemption_insns: u64,
    pub t2_spacer_insns: u64,
    pub t2_task_signaling_limit_insns: u64,
    pub reschedule_time_insns: u64,
    pub t2_min_process_insns: u64,
    pub stress_gain_insns: u64,
    pub tm2_node_lower_bound_insns: u64,
    pub tm2_spacer_insns: u64,
    pub tm2_task_signaling_limit_insns: u64,
}

impl Policy {
    /// The configuration on a CPU of that rate.
    pub const fn new(config: Config, rate: Rate) -> Policy {
        let no_preemption_insns = rate.length_insns(config.no_preemption_ns);
        let preemption_limit_insns = rate.length_insns(config.preemption_limit_ns);
        // Rounding must not make them equal: t1 is less than t2_task.
        let t2_spacer_insns = greater(rate.length_insns(config.t2_spacer_ns), no_preemption_insns);
        let t2_task_signaling_limit_insns = greater(
            rate.length_insns(config.t2_task_signaling_limit_ns),
            preemption_limit_insns,
        );
        Policy {
            preemption_limit_insns,
            no_preemption_insns,
            t2_spacer_insns,
            t2_task_signaling_limit_insns,
            tm2_spacer_insns: match config.tm2_spacer_ns {
                0 => t2_spacer_insns,
                declared_ns => rate.length_insns(declared_ns),
            },
            tm2_task_signaling_limit_insns: match config.tm2_task_signaling_limit_ns {
                0 => t2_task_signaling_limit_insns,
                declared_ns => rate.length_insns(declared_ns),
            },
            reschedule_time_insns: rate.length_insns(config.reschedule_time_ns),
            t2_min_process_insns: rate.length_insns(config.t2_min_process_ns),
            stress_gain_insns: rate.length_insns(config.stress_gain_ns),
            tm2_node_lower_bound_insns: rate.length_insns(config.tm2_node_lower_bound_ns),
            config,
        }
    }
}

/// `value`, but more than `other`.
const fn greater(value: u64, other: u64) -> u64 {
    if value > other {
        value
    } else {
        other.saturating_add(1)
    }
}
