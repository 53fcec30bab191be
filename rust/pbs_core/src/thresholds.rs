// SPDX-License-Identifier: GPL-2.0

//! The thresholds of Leppert 2021, chapter 3: pure functions of their arguments.
//!
//! All values are retired instructions, except in the methods of [`Config`].  Every division rounds
//! down, except for the one of t2_task: because that rounds up, t1 is less than t2_task for every
//! length and every configuration that [`Config::check`] accepts.

use super::config::{Config, T1State, Threshold};
use super::fraction::fraction;
use super::policy::Policy;
use super::rate::Rate;

/// Progress of a process, for t2_process: its account since it was last dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// Planned lengths of the tasks begun so far, the running one included.
    pub begun_insns: u64,
    /// Planned lengths of all tasks.
    pub planned_insns: u64,
    /// Instructions retired by all tasks so far.
    pub retired_insns: u64,
    /// Plan buffer of the process (3.3.3).
    pub buffer_insns: u64,
}

impl Config {
    /// The ceiling of a slot in plan time.
    pub fn ceiling_ns(&self, slot_insns: u64, rate: Rate) -> u64 {
        permille(rate.to_ns(slot_insns), self.ceiling_factor_permille)
            .saturating_add(self.ceiling_extra_ns)
    }

    /// Time in the kernel that no slot pays for: a tenth of the constant part of the ceiling.
    pub fn free_in_kernel_ns(&self) -> u64 {
        self.ceiling_extra_ns / 10
    }

    /// The stress, in points, at that time after a plan has arrived (3.3.6).
    ///
    /// Without a gain there is no stress: then tm2_node is not held back either.
    pub fn stress(&self, since_plan_ns: u64) -> u64 {
        self.stress_beyond(0, since_plan_ns)
    }

    /// The stress at that time after a plan has set `more_points` beyond STRESS_RESET.
    pub(super) fn stress_beyond(&self, more_points: u64, since_plan_ns: u64) -> u64 {
        if self.stress_gain_ns == 0 {
            return 0;
        }
        let points = self.stress_reset.saturating_add(more_points);
        match since_plan_ns.checked_div(self.nominal_tick_ns) {
            Some(ticks) => points.saturating_sub(ticks),
            None => 0,
        }
    }

    /// Points of stress that a plan sets beyond STRESS_RESET in a volatile state (3.3.3).
    ///
    /// `plan_interval_ns`: the average time between two plans of a run, as far as it is known.
    pub fn volatile_points(&self, plan_interval_ns: Option<u64>) -> u64 {
        let volatile_ns = self.volatile_interval_ns;
        match plan_interval_ns {
            Some(interval_ns) if interval_ns < volatile_ns => {
                fraction(self.stress_reset, volatile_ns - interval_ns, volatile_ns)
            }
            _ => 0,
        }
    }

    /// t2_message: a message that is later than this is a prediction failure, if a process waits
    /// for it in its slot.
    pub fn t2_message_limit_ns(&self, stress: u64) -> u64 {
        let stress_ns = stress.saturating_mul(self.stress_gain_ns);
        self.t2_message_ns.saturating_add(stress_ns)
    }

    /// t2_memory: a process that uses more memory than this is a prediction failure, if
    /// `planned_bytes` was its planned peak.  Computed like t2_task.
    pub fn t2_memory_bytes(&self, planned_bytes: u64) -> u64 {
        let relative = permille_up(planned_bytes, self.sigma_memory_permille);
        let least = planned_bytes.saturating_add(self.memory_spacer_bytes);
        let limit = planned_bytes.saturating_add(self.memory_signaling_limit_bytes);
        relative.max(least).min(limit)
    }
}

impl Policy {
    /// t1 of a slot: the slot ends when the instructions retired in it reach this (3.2.2).
    ///
    /// t1 is computed from the length of the slot and not of the task, which may have been pushed
    /// into a slot much shorter than itself.
    pub fn t1_insns(&self, slot_insns: u64) -> u64 {
        let relative = permille(slot_insns, self.config.sigma_t1_permille);
        let limit = slot_insns.saturating_add(self.preemption_limit_insns);
        let least = slot_insns.saturating_add(self.no_preemption_insns);
        let t1_insns = relative.min(limit).max(least);
        self.config.idle_policy().t1_insns(slot_insns, t1_insns)
    }

    /// t1 of a slot of a process, if t1 holds in it; `is_last`: it is the last
    /// slot of its process.
    pub fn t1_of_slot_insns(&self, slot_insns: u64, is_last: bool) -> Option<u64> {
        let spared = is_last && self.config.t1_spares_last_slot != 0;
        if self.config.has(Threshold::T1) && !spared {
            Some(self.t1_insns(slot_insns))
        } else {
            None
        }
    }

    /// t2_task: a task that has retired more than this is a prediction failure (3.3.6).
    ///
    /// The planned length is included, because T2_TASK_SIGNALING_LIMIT is understood here as
    /// counted from it.
    pub fn t2_task_insns(&self, task_insns: u64) -> u64 {
        let relative = permille_up(task_insns, self.config.sigma_t2_permille);
        let least = task_insns.saturating_add(self.t2_spacer_insns);
        let limit = task_insns.saturating_add(self.t2_task_signaling_limit_insns);
        let t2_task_insns = relative.max(least).min(limit);
        let policy = self.config.idle_policy();
        policy.t2_task_insns(task_insns, t2_task_insns)
    }

    /// Instructions that a process with this many planned ones may retire in the order of
    /// deadlines.  Computed like t2_task, without its limit.
    pub fn most_insns(&self, planned_insns: u64) -> u64 {
        let relative = permille_up(planned_insns, self.config.sigma_t2_permille);
        relative.max(planned_insns.saturating_add(self.t2_spacer_insns))
    }

    /// tm2_task: a task that ends having retired less than this is a prediction failure (3.3.8). 0
    /// if it can never be one.
    pub fn tm2_task_insns(&self, task_insns: u64) -> u64 {
        let sigma_permille = match self.config.sigma_tm2_permille {
            // With σ_t2 ≥ 2 the relative part is not positive, and nothing is less.
            0 => 2000u64.saturating_sub(self.config.sigma_t2_permille),
            declared => declared,
        };
        let relative = permille(task_insns, sigma_permille);
        let limit = task_insns.saturating_sub(self.tm2_task_signaling_limit_insns);
        let least = task_insns.saturating_sub(self.tm2_spacer_insns);
        relative.max(limit).min(least)
    }

    /// The capacity buffer of tasks with these planned lengths (3.3.6).
    pub fn capacity_buffer_insns(&self, begun_insns: u64) -> u64 {
        share(begun_insns, self.config.capacity_buffer_permille)
    }

    /// cleared_plan_buffer: the part of its plan buffer that a process might use up when all its
    /// instructions are retired (3.3.6).
    pub fn cleared_plan_buffer_insns(&self, buffer_insns: u64, active: u32) -> u64 {
        let extra_plan_capacity = share(buffer_insns, self.config.capacity_buffer_permille);
        let active = u64::from(active.max(1));
        permille(
            extra_plan_capacity / active,
            self.config.available_plan_buffer_permille,
        )
    }

    /// t2_process before it is compared with the capacity buffer: allowed plan
    /// buffer and stress, less the reschedule time, at least T2_MIN_PROCESS
    /// (3.3.6).
    ///
    /// `active` processes have begun and not ended.  Progress is
    /// retired / planned, at most 1 (Documentation/theses.rst).
    pub fn t2_process_insns(&self, progress: &Progress, active: u32, stress: u64) -> u64 {
        let cleared = self.cleared_plan_buffer_insns(progress.buffer_insns, active);
        let least_insns = self.least_progress_insns(progress.planned_insns);
        let done_insns = progress.retired_insns.max(least_insns);
        let allowed = fraction(cleared, done_insns, progress.planned_insns);
        let stressed = allowed.saturating_add(self.stress_insns(stress));
        stressed
            .saturating_sub(self.reschedule_time_insns)
            .max(self.t2_min_process_insns)
    }

    /// Instructions that a process with so many planned ones counts at least as its progress.
    pub(super) fn least_progress_insns(&self, planned_insns: u64) -> u64 {
        permille(planned_insns, self.config.least_progress_permille)
    }

    /// t1 of a slot when the node is in a state (3.1.2), which makes it smaller, but not smaller
    /// than NO_PREEMPTION allows.  `late_insns`: the lateness of the node, 0 when it is early.
    pub fn t1_in_state_insns(
        &self,
        slot_insns: u64,
        t1_insns: u64,
        (late_insns, t2_node_insns): (u64, u64),
        active: u32,
    ) -> u64 {
        let beyond_insns = t1_insns.saturating_sub(slot_insns);
        let left_insns = match self.config.t1_state() {
            T1State::Ignored => return t1_insns,
            T1State::Lateness if late_insns == 0 => return t1_insns,
            T1State::Lateness => {
                let most_insns = beyond_insns - beyond_insns / 4;
                beyond_insns - fraction(most_insns, late_insns, t2_node_insns)
            }
            T1State::Load => beyond_insns / u64::from(active.max(1)),
        };
        slot_insns.saturating_add(left_insns.max(self.no_preemption_insns.min(beyond_insns)))
    }

    /// Lateness above which a process is a prediction failure: both stages, the capacity buffer and
    /// t2_process (3.3.6).
    pub fn process_limit_insns(&self, progress: &Progress, active: u32, stress: u64) -> u64 {
        self.capacity_buffer_insns(progress.begun_insns)
            .max(self.t2_process_insns(progress, active, stress))
    }

    /// t2_node: a node that is later than this is a prediction failure (3.3.6).
    ///
    /// `begun_insns` are the planned lengths of the tasks begun so far of the
    /// `active` processes.
    pub fn t2_node_insns(&self, begun_insns: u64, active: u32, stress: u64) -> u64 {
        share(begun_insns, self.config.t2_node_lateness_cap_permille)
            .saturating_add(self.stress_insns(stress))
            .max(self.node_lower_bound_insns(active))
    }

    /// tm2_node: a node whose lateness is below this is a prediction failure
    /// (3.3.8).  Never positive.
    ///
    /// `finished_insns` are the planned lengths of the tasks ended so far of
    /// the active processes.
    pub fn tm2_node_insns(&self, finished_insns: u64) -> i64 {
        let cap = permille(finished_insns, self.config.tm2_node_earliness_cap_permille);
        let earliness = cap.max(self.tm2_node_lower_bound_insns);
        -i64::try_from(earliness).unwrap_or(i64::MAX)
    }

    /// T2_NODE_LOWER_BOUND (3.3.6).
    fn node_lower_bound_insns(&self, active: u32) -> u64 {
        self.t2_min_process_insns.saturating_mul(active.into())
    }

    /// Amount that stress adds to t2_process and t2_node.
    fn stress_insns(&self, stress: u64) -> u64 {
        stress.saturating_mul(self.stress_gain_insns)
    }
}

/// `value · factor / 1000`, rounded down, exactly and without 128-bit division.
#[inline]
fn permille(value: u64, factor_permille: u64) -> u64 {
    if let Some(product) = value.checked_mul(factor_permille) {
        return product / 1000;
    }
    (value / 1000)
        .saturating_mul(factor_permille)
        .saturating_add((value % 1000).saturating_mul(factor_permille) / 1000)
}

/// `value · factor / 1000`, rounded up.
fn permille_up(value: u64, factor_permille: u64) -> u64 {
    (value / 1000)
        .saturating_mul(factor_permille)
        .saturating_add(
            (value % 1000)
                .saturating_mul(factor_permille)
                .div_ceil(1000),
        )
}

/// `value · (factor − 1)`, of a factor that is one plus a share.
fn share(value: u64, factor_permille: u64) -> u64 {
    permille(value, factor_permille.saturating_sub(1000))
}
