// SPDX-License-Identifier: GPL-2.0

//! The formulas of Leppert 2021, chapter 3, once more: as its text has them, in
//! 128 bits, in which nothing overflows.  Where the code differs, one of both
//! is wrong.

use crate::{Config, IdlePolicy, Progress};

use super::AtOne;

/// `value · permille / 1000`, rounded down.
pub(super) fn share(value: u64, permille: u64) -> u64 {
    fit(u128::from(value) * u128::from(permille) / 1000)
}

fn fit(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// t1, t2_task and tm2_task of a slot and task of this length.
pub(super) fn assert_task(config: &Config, length_insns: u64) {
    let own = config.at_one();
    let (t1, t2_task) = (own.t1_insns(length_insns), own.t2_task_insns(length_insns));
    assert!(
        length_insns <= t1 && t1 < t2_task,
        "t1 {t1}, t2_task {t2_task}"
    );
    // Under a policy that leaves the thresholds as they are.
    let config = &Config {
        idle_policy: IdlePolicy::Latest as u64,
        ..*config
    };
    let length = i128::from(length_insns);
    let sigma = |permille: u64| length * i128::from(permille);
    let insns = |insns: u64| i128::from(insns);
    let no_preemption = length + insns(config.no_preemption_ns);
    let preemption_limit = length + insns(config.preemption_limit_ns);
    let t1 = (sigma(config.sigma_t1_permille) / 1000)
        .min(preemption_limit)
        .max(no_preemption);
    assert_eq!(i128::from(config.at_one().t1_insns(length_insns)), t1);
    let spacer = insns(config.t2_spacer_ns);
    let limit = insns(config.t2_task_signaling_limit_ns);
    let t2_task = ((sigma(config.sigma_t2_permille) + 999) / 1000)
        .max(length + spacer)
        .min(length + limit);
    assert_eq!(
        i128::from(config.at_one().t2_task_insns(length_insns)),
        t2_task
    );
    assert!(t1 < t2_task, "t1 {t1}, t2_task {t2_task}");
    let or = |declared: u64, mirrored: i128| match declared {
        0 => mirrored,
        declared => i128::from(declared),
    };
    let sigma_tm2 = or(
        config.sigma_tm2_permille,
        2000 - i128::from(config.sigma_t2_permille),
    );
    let tm2_task = (length * sigma_tm2)
        .div_euclid(1000)
        .max(length - or(config.tm2_task_signaling_limit_ns, limit))
        .min(length - or(config.tm2_spacer_ns, spacer));
    let got = i128::from(config.at_one().tm2_task_insns(length_insns));
    assert_eq!(got, tm2_task.max(0));
}

/// Capacity buffer, t2_process and their greater.
pub(super) fn assert_process(config: &Config, progress: &Progress, active: u32, stress: u64) {
    let wide = |insns: u64| u128::from(insns);
    let capacity = wide(config.capacity_buffer_permille - 1000);
    let extra = wide(progress.buffer_insns) * capacity / 1000;
    let per_process = extra / u128::from(active.max(1));
    let cleared = per_process * wide(config.available_plan_buffer_permille) / 1000;
    let got = config
        .at_one()
        .cleared_plan_buffer_insns(progress.buffer_insns, active);
    assert_eq!(wide(got), cleared);
    let least = wide(progress.planned_insns) * wide(config.least_progress_permille) / 1000;
    let done = wide(progress.retired_insns.min(progress.planned_insns)).max(least);
    let allowed = match progress.planned_insns {
        0 => cleared,
        planned => cleared * done / wide(planned),
    };
    let stressed = allowed + wide(stress) * wide(config.stress_gain_ns);
    let t2_process = stressed
        .saturating_sub(wide(config.reschedule_time_ns))
        .max(wide(config.t2_min_process_ns));
    let got = config.at_one().t2_process_insns(progress, active, stress);
    assert_eq!(got, fit(t2_process));
    let buffer = wide(progress.begun_insns) * capacity / 1000;
    let got = config.at_one().capacity_buffer_insns(progress.begun_insns);
    assert_eq!(got, fit(buffer));
    let got = config
        .at_one()
        .process_limit_insns(progress, active, stress);
    assert_eq!(got, fit(t2_process.max(buffer)));
}

/// t2_node and tm2_node.
pub(super) fn assert_node(config: &Config, insns: u64, active: u32, stress: u64) {
    let wide = |insns: u64| u128::from(insns);
    let lower_bound = wide(config.t2_min_process_ns) * u128::from(active);
    let late_share = wide(config.t2_node_lateness_cap_permille - 1000);
    let t2_node = (wide(insns) * late_share / 1000 + wide(stress) * wide(config.stress_gain_ns))
        .max(lower_bound);
    assert_eq!(
        config.at_one().t2_node_insns(insns, active, stress),
        fit(t2_node)
    );
    let early_share = wide(config.tm2_node_earliness_cap_permille);
    let lower_bound = wide(config.tm2_node_lower_bound_ns);
    let earliness = (wide(insns) * early_share / 1000).max(lower_bound);
    let got = config.at_one().tm2_node_insns(insns);
    assert_eq!(i128::from(got), -(earliness as i128).min(i64::MAX.into()));
}
