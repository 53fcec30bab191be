// SPDX-License-Identifier: GPL-2.0

//! The formulas of Leppert 2021, chapter 3, by numbers that were worked by hand
//! from its text, at both sides of every bound, and at the greatest numbers
//! that a plan may have, where the exact value comes from 128-bit arithmetic.

use crate::wire::{MAX_BUFFER_INSNS, MAX_PLAN_INSNS, MAX_PROCESSES, MAX_SLOT_INSNS};
use crate::{Config, Progress, Rate, Threshold};

use super::exact::{self, share};
use super::AtOne;

/// The thesis's examples count in units: all bounds that it does not name are out of the way.
const UNITS: Config = Config {
    sigma_t1_permille: 1050,
    preemption_limit_ns: 1 << 48,
    no_preemption_ns: 0,
    sigma_t2_permille: 1200,
    t2_spacer_ns: 1,
    t2_task_signaling_limit_ns: 1 << 49,
    reschedule_time_ns: 0,
    t2_min_process_ns: 0,
    stress_gain_ns: 0,
    tm2_node_lower_bound_ns: 0,
    capacity_buffer_permille: 1100,
    t1_spares_last_slot: 0,
    ..Config::DEFAULT
};

/// Half done of 10,000, with a plan buffer of 40,000.
const HALF: Progress = Progress {
    begun_insns: 6000,
    planned_insns: 10_000,
    retired_insns: 5000,
    buffer_insns: 40_000,
};

/// Section 3.2.2.
#[test]
fn t1_of_100_units_and_of_10_000() {
    // "an average task length of 100 time units, and σ_t1 set to 1.05"
    assert_eq!(UNITS.at_one().t1_insns(100), 105);
    assert_eq!(UNITS.at_one().t1_insns(10_000), 10_500);
    let capped = Config {
        preemption_limit_ns: 100,
        ..UNITS
    };
    assert_eq!(capped.at_one().t1_insns(100), 105);
    assert_eq!(capped.at_one().t1_insns(10_000), 10_100);
}

/// Section 3.2.2.
#[test]
fn t1_at_both_sides_of_its_bounds() {
    let config = Config {
        preemption_limit_ns: 100,
        no_preemption_ns: 10,
        ..UNITS
    };
    // 5 % reach NO_PREEMPTION at 200.
    assert_eq!(config.at_one().t1_insns(199), 209);
    assert_eq!(config.at_one().t1_insns(200), 210);
    assert_eq!(config.at_one().t1_insns(219), 229);
    assert_eq!(config.at_one().t1_insns(220), 231);
    // 5 % reach PREEMPTION_LIMIT at 2000.
    assert_eq!(config.at_one().t1_insns(1980), 2079);
    assert_eq!(config.at_one().t1_insns(1999), 2098);
    assert_eq!(config.at_one().t1_insns(2000), 2100);
    assert_eq!(config.at_one().t1_insns(2020), 2120);
    assert_eq!(config.at_one().t1_insns(3000), 3100);
    // Both bounds the same: neither share nor length matter.
    let fixed = Config {
        no_preemption_ns: 100,
        ..config
    };
    assert_eq!(fixed.at_one().t1_insns(1), 101);
    assert_eq!(fixed.at_one().t1_insns(100_000), 100_100);
}

#[test]
fn t1_may_spare_the_last_slot() {
    for (thresholds, t1_spares_last_slot, within, last) in [
        (Threshold::ALL_BITS, 0, Some(105), Some(105)),
        (Threshold::ALL_BITS, 1, Some(105), None),
        (Threshold::ALL_BITS & !1, 0, None, None),
        (Threshold::ALL_BITS & !1, 1, None, None),
    ] {
        let config = Config {
            thresholds,
            t1_spares_last_slot,
            ..UNITS
        };
        assert_eq!(config.at_one().t1_of_slot_insns(100, false), within);
        assert_eq!(config.at_one().t1_of_slot_insns(100, true), last);
    }
}

/// Section 3.2.3.
#[test]
fn a_long_task_before_a_short_slot_is_preempted_at_t1() {
    // 1000 units planned, preempted after 1020, pushed into a slot of 5, a
    // prediction failure not before 1200.
    let config = Config {
        sigma_t1_permille: 1020,
        ..UNITS
    };
    assert_eq!(config.at_one().t1_insns(1000), 1020);
    assert_eq!(config.at_one().t1_insns(5), 5);
    assert_eq!(config.at_one().t2_task_insns(1000), 1200);
}

/// Section 3.3.6.
#[test]
fn t2_task_at_both_sides_of_its_bounds() {
    let config = Config {
        sigma_t2_permille: 1500,
        t2_spacer_ns: 20,
        t2_task_signaling_limit_ns: 1000,
        preemption_limit_ns: 500,
        ..UNITS
    };
    // A task of 100 ticks is a prediction failure after 150 (3.3.8).
    assert_eq!(config.at_one().t2_task_insns(100), 150);
    // Half of it reaches T2_SPACER at 40; the product is rounded up.
    assert_eq!(config.at_one().t2_task_insns(1), 21);
    assert_eq!(config.at_one().t2_task_insns(39), 59);
    assert_eq!(config.at_one().t2_task_insns(40), 60);
    assert_eq!(config.at_one().t2_task_insns(41), 62);
    // And the signaling limit, counted from the planned length, at 2000.
    assert_eq!(config.at_one().t2_task_insns(1998), 2997);
    assert_eq!(config.at_one().t2_task_insns(1999), 2999);
    assert_eq!(config.at_one().t2_task_insns(2000), 3000);
    assert_eq!(config.at_one().t2_task_insns(2001), 3001);
    assert_eq!(config.at_one().t2_task_insns(1_000_000), 1_001_000);
    // The upper bound wins over the lower, as min is applied last.
    let crossed = Config {
        t2_spacer_ns: 2000,
        ..config
    };
    assert_eq!(crossed.at_one().t2_task_insns(100), 1100);
}

#[test]
fn the_listing_has_the_numbers_of_t2() {
    let config = Config::DEFAULT;
    // INS_PER_TICK is 4,000,000, PBS_HZ 250.
    assert_eq!(config.t2_spacer_ns, 5 * 4_000_000);
    assert_eq!(config.t2_task_signaling_limit_ns, 250 * 4_000_000);
    assert_eq!(config.sigma_t2_permille, 1000 * 150 / 100);
    assert_eq!(config.at_one().t2_task_insns(1_000_000), 21_000_000);
    assert_eq!(config.at_one().t2_task_insns(39_999_999), 59_999_999);
    assert_eq!(config.at_one().t2_task_insns(40_000_001), 60_000_002);
    assert_eq!(config.at_one().t2_task_insns(4_000_000_000), 5_000_000_000);
}

#[test]
fn defaults_are_what_the_text_asks_for() {
    // The planner takes a tenth off what the node can do (3.3.6).
    assert_eq!(Config::DEFAULT.capacity_buffer_permille, 1000 * 10 / 9);
    // A task that needs four ticks instead of one is interrupted once (3.2.2).
    let tick_insns = Config::DEFAULT.nominal_tick_ns;
    assert_eq!(
        2 * Config::DEFAULT.at_one().t1_insns(tick_insns),
        4 * tick_insns
    );
    // Right after a plan has arrived, stress affects t2_process, even if the planner needs a tenth
    // of a second and next to no buffer is allowed (3.3.6).
    let config = Config {
        reschedule_time_ns: 100_000_000,
        ..Config::DEFAULT
    };
    let progress = Progress {
        buffer_insns: 0,
        ..HALF
    };
    let t2_insns = |stress| config.at_one().t2_process_insns(&progress, 1, stress);
    assert!(t2_insns(config.stress_reset) > t2_insns(0));
}

/// Section 3.3.8.
#[test]
fn tm2_task_mirrors_t2_task() {
    let config = Config {
        sigma_t2_permille: 1500,
        t2_spacer_ns: 20,
        t2_task_signaling_limit_ns: 1000,
        preemption_limit_ns: 500,
        ..UNITS
    };
    // "If 150 ticks cause a prediction failure signal, then taking only 50
    // ticks should also."
    assert_eq!(config.at_one().tm2_task_insns(100), 50);
    // Within T2_SPACER of its plan no task is too early.
    assert_eq!(config.at_one().tm2_task_insns(1), 0);
    assert_eq!(config.at_one().tm2_task_insns(20), 0);
    assert_eq!(config.at_one().tm2_task_insns(21), 1);
    assert_eq!(config.at_one().tm2_task_insns(39), 19);
    assert_eq!(config.at_one().tm2_task_insns(40), 20);
    assert_eq!(config.at_one().tm2_task_insns(41), 20);
    assert_eq!(config.at_one().tm2_task_insns(42), 21);
    // And beyond the limit each is.
    assert_eq!(config.at_one().tm2_task_insns(1999), 999);
    assert_eq!(config.at_one().tm2_task_insns(2000), 1000);
    assert_eq!(config.at_one().tm2_task_insns(2001), 1001);
    assert_eq!(config.at_one().tm2_task_insns(1_000_000), 999_000);
}

/// Section 3.3.8.
#[test]
fn sigma_tm2_is_positive_only_below_a_sigma_t2_of_2() {
    let with = |sigma_t2_permille| Config {
        sigma_t2_permille,
        t2_task_signaling_limit_ns: 10_000,
        preemption_limit_ns: 500,
        ..UNITS
    };
    assert_eq!(with(1999).at_one().tm2_task_insns(9000), 9);
    assert_eq!(with(2000).at_one().tm2_task_insns(9000), 0);
    assert_eq!(with(2001).at_one().tm2_task_insns(9000), 0);
    assert_eq!(with(100_000).at_one().tm2_task_insns(9000), 0);
    // The limit alone continues.
    assert_eq!(with(100_000).at_one().tm2_task_insns(10_000), 0);
    assert_eq!(with(100_000).at_one().tm2_task_insns(10_001), 1);
}

/// Section 3.3.6.
#[test]
fn a_capacity_buffer_of_100_000_to_90_000_is_a_ninth() {
    // 1,000,000 instructions are expected to take 11.111 ticks of 90,000 and
    // take 10 of 100,000: "CAPACITY_BUFFER would be defined as 1,111".
    let config = Config {
        capacity_buffer_permille: 1111,
        ..UNITS
    };
    assert_eq!(config.at_one().capacity_buffer_insns(1_000_000), 111_000);
    assert_eq!(config.at_one().capacity_buffer_insns(90_000), 9990);
    assert_eq!(config.at_one().capacity_buffer_insns(9), 0);
    assert_eq!(config.at_one().capacity_buffer_insns(10), 1);
    assert_eq!(config.at_one().capacity_buffer_insns(0), 0);
    let none = Config {
        capacity_buffer_permille: 1000,
        ..UNITS
    };
    assert_eq!(none.at_one().capacity_buffer_insns(1_000_000), 0);
}

/// Section 3.3.6.
#[test]
fn the_buffer_is_modified_step_by_step_as_in_figure_5() {
    // Extra plan capacity 10 % of 40,000; for each of 4 processes 1000; half
    // of that is cleared.
    let config = UNITS;
    assert_eq!(config.at_one().cleared_plan_buffer_insns(40_000, 1), 2000);
    assert_eq!(config.at_one().cleared_plan_buffer_insns(40_000, 4), 500);
    // No active process counts as one.
    assert_eq!(config.at_one().cleared_plan_buffer_insns(40_000, 0), 2000);
    // Each step rounds down: 4009 / 10, / 3, / 2.
    assert_eq!(config.at_one().cleared_plan_buffer_insns(4009, 3), 66);
    let all = Config {
        available_plan_buffer_permille: 1000,
        ..config
    };
    assert_eq!(all.at_one().cleared_plan_buffer_insns(40_000, 4), 1000);
    let nothing = Config {
        available_plan_buffer_permille: 0,
        ..config
    };
    assert_eq!(nothing.at_one().cleared_plan_buffer_insns(40_000, 4), 0);
}

/// Section 3.3.6.
#[test]
fn the_allowed_plan_buffer_grows_with_progress() {
    let config = UNITS;
    let at = |retired_insns| {
        let progress = Progress {
            retired_insns,
            ..HALF
        };
        config.at_one().t2_process_insns(&progress, 4, 0)
    };
    // "every process starts with 0 % completion", and 500 are cleared.
    assert_eq!(at(0), 0);
    assert_eq!(at(19), 0);
    assert_eq!(at(20), 1);
    assert_eq!(at(5000), 250);
    assert_eq!(at(9999), 499);
    assert_eq!(at(10_000), 500);
    // Not beyond the end of the plan.
    assert_eq!(at(20_000), 500);
    assert_eq!(at(u64::MAX), 500);
}

/// Section 3.3.6.
#[test]
fn t2_process_has_stress_reschedule_time_and_a_minimum() {
    let config = Config {
        reschedule_time_ns: 100,
        t2_min_process_ns: 60,
        stress_gain_ns: 7,
        ..UNITS
    };
    assert_eq!(config.at_one().t2_process_insns(&HALF, 4, 0), 150);
    assert_eq!(config.at_one().t2_process_insns(&HALF, 4, 1), 157);
    assert_eq!(config.at_one().t2_process_insns(&HALF, 4, 50), 500);
    // 62 allowed with 16 active; the rescheduling is longer.
    assert_eq!(config.at_one().t2_process_insns(&HALF, 16, 0), 60);
    assert_eq!(config.at_one().t2_process_insns(&HALF, 16, 14), 60);
    assert_eq!(config.at_one().t2_process_insns(&HALF, 16, 15), 67);
    // "stress ≈ STRESS_RESET": a process that has just arrived.
    let new = Progress {
        retired_insns: 0,
        ..HALF
    };
    assert_eq!(config.at_one().t2_process_insns(&new, 4, 50), 250);
    assert_eq!(config.at_one().t2_process_insns(&new, 4, 0), 60);
}

/// Section 3.3.6.
#[test]
fn both_stages_are_the_greater_of_two() {
    // Capacity buffer 600, allowed plan buffer 250.
    let config = UNITS;
    assert_eq!(config.at_one().process_limit_insns(&HALF, 4, 0), 600);
    // 1000 allowed for one alone.
    assert_eq!(config.at_one().process_limit_insns(&HALF, 1, 0), 1000);
    let least = Config {
        t2_min_process_ns: 700,
        ..config
    };
    assert_eq!(least.at_one().process_limit_insns(&HALF, 4, 0), 700);
}

/// Section 3.3.6.
#[test]
fn t2_node_has_stress_and_a_lower_bound_for_each_process() {
    let config = Config {
        t2_min_process_ns: 60,
        stress_gain_ns: 7,
        ..UNITS
    };
    // "T2_NODE_LATENESS_CAP should be set to 110 %".
    assert_eq!(config.at_one().t2_node_insns(10_000, 4, 0), 1000);
    assert_eq!(config.at_one().t2_node_insns(10_000, 4, 3), 1021);
    // The lower bound of 4 processes is 240.
    assert_eq!(config.at_one().t2_node_insns(2399, 4, 0), 240);
    assert_eq!(config.at_one().t2_node_insns(2409, 4, 0), 240);
    assert_eq!(config.at_one().t2_node_insns(2410, 4, 0), 241);
    assert_eq!(config.at_one().t2_node_insns(0, 4, 34), 240);
    assert_eq!(config.at_one().t2_node_insns(0, 4, 35), 245);
    // A freshly booted node.
    assert_eq!(config.at_one().t2_node_insns(0, 1, 0), 60);
    assert_eq!(config.at_one().t2_node_insns(0, 0, 0), 0);
    let no_share = Config {
        t2_node_lateness_cap_permille: 1000,
        ..config
    };
    assert_eq!(no_share.at_one().t2_node_insns(1 << 60, 4, 0), 240);
}

/// Section 3.3.8.
#[test]
fn tm2_node_is_below_its_lower_bound() {
    let config = Config {
        tm2_node_lower_bound_ns: 240,
        stress_gain_ns: 7,
        ..UNITS
    };
    assert_eq!(config.at_one().tm2_node_insns(10_000), -1000);
    assert_eq!(config.at_one().tm2_node_insns(2409), -240);
    assert_eq!(config.at_one().tm2_node_insns(2410), -241);
    assert_eq!(config.at_one().tm2_node_insns(0), -240);
    let no_share = Config {
        tm2_node_earliness_cap_permille: 0,
        ..config
    };
    assert_eq!(no_share.at_one().tm2_node_insns(1 << 60), -240);
    let all = Config {
        tm2_node_earliness_cap_permille: 1000,
        ..config
    };
    assert_eq!(all.at_one().tm2_node_insns(10_000), -10_000);
}

/// Section 3.3.6.
#[test]
fn stress_falls_by_one_a_nominal_tick() {
    let config = Config {
        stress_reset: 50,
        stress_gain_ns: 1,
        nominal_tick_ns: 4_000_000,
        ..UNITS
    };
    assert_eq!(config.stress(0), 50);
    assert_eq!(config.stress(3_999_999), 50);
    assert_eq!(config.stress(4_000_000), 49);
    assert_eq!(config.stress(7_999_999), 49);
    assert_eq!(config.stress(8_000_000), 48);
    assert_eq!(config.stress(199_999_999), 1);
    assert_eq!(config.stress(200_000_000), 0);
    assert_eq!(config.stress(u64::MAX), 0);
    // "Setting it to 0 would disable the behaviour fully."
    let off = Config {
        stress_gain_ns: 0,
        ..config
    };
    assert_eq!(off.stress(0), 0);
    let never = Config {
        stress_reset: 0,
        ..config
    };
    assert_eq!(never.stress(0), 0);
    // No configuration that is accepted has it; no panic in the kernel all the same.
    let no_tick = Config {
        nominal_tick_ns: 0,
        ..config
    };
    assert_eq!(no_tick.stress(0), 0);
}

/// Every division rounds down, the one of t2_task rounds up.
#[test]
fn rounding_is_that_of_the_exact_quotient() {
    let config = Config {
        sigma_t1_permille: 1333,
        sigma_t2_permille: 1667,
        capacity_buffer_permille: 1111,
        t2_node_lateness_cap_permille: 1777,
        tm2_node_earliness_cap_permille: 333,
        available_plan_buffer_permille: 667,
        ceiling_factor_permille: 1001,
        ceiling_extra_ns: 0,
        t2_spacer_ns: 1,
        ..UNITS
    };
    let lengths = (1..5000).chain((MAX_SLOT_INSNS - 2000)..=MAX_SLOT_INSNS);
    for length in lengths {
        exact::assert_task(&config, length);
        assert_eq!(
            config.at_one().capacity_buffer_insns(length),
            share(length, 111)
        );
        assert_eq!(
            config.at_one().t2_node_insns(length, 1, 0),
            share(length, 777)
        );
        let earliness = share(length, 333) as i64;
        assert_eq!(config.at_one().tm2_node_insns(length), -earliness);
        let ceiling_ns = config.ceiling_ns(length, Rate::new(1_000_000));
        assert_eq!(ceiling_ns, share(length, 1001));
    }
    for retired_insns in 0..5000 {
        let progress = Progress {
            planned_insns: 4801,
            retired_insns,
            ..HALF
        };
        exact::assert_process(&config, &progress, 3, 0);
    }
}

/// Progress is exact where a product of 64-bit numbers needs 128 bits.
#[test]
fn progress_of_the_greatest_plans_is_exact() {
    let config = Config {
        capacity_buffer_permille: 2000,
        available_plan_buffer_permille: 1000,
        ..UNITS
    };
    let wholes = [
        MAX_PLAN_INSNS,
        MAX_PLAN_INSNS - 1,
        (1 << 61) + 12_345,
        3,
        u64::MAX,
    ];
    for planned_insns in wholes {
        let steps = [
            0,
            1,
            2,
            planned_insns / 3,
            planned_insns / 2 + 1,
            planned_insns / 1000 * 999,
            planned_insns - 1,
            planned_insns,
        ];
        for retired_insns in steps {
            for buffer_insns in [
                MAX_BUFFER_INSNS,
                MAX_BUFFER_INSNS - 1,
                0x00a5_a5a5_a5a5_a5a5,
            ] {
                let progress = Progress {
                    begun_insns: 0,
                    planned_insns,
                    retired_insns,
                    buffer_insns,
                };
                exact::assert_process(&config, &progress, 1, 0);
            }
        }
    }
    let half = Progress {
        begun_insns: 0,
        planned_insns: MAX_PLAN_INSNS,
        retired_insns: MAX_PLAN_INSNS / 2,
        buffer_insns: MAX_BUFFER_INSNS,
    };
    assert_eq!(
        config.at_one().t2_process_insns(&half, 1, 0),
        MAX_BUFFER_INSNS / 2
    );
}

/// The greatest plan under the greatest configuration overflows nothing, and nothing wraps for
/// numbers that no plan has.
#[test]
fn greatest_numbers_do_not_overflow() {
    let most = Config {
        sigma_t1_permille: 99_999,
        preemption_limit_ns: 1 << 48,
        no_preemption_ns: 1 << 47,
        sigma_t2_permille: 100_000,
        t2_spacer_ns: 1 << 48,
        t2_task_signaling_limit_ns: 1 << 49,
        capacity_buffer_permille: 100_000,
        available_plan_buffer_permille: 1000,
        reschedule_time_ns: 1 << 48,
        t2_min_process_ns: 1 << 48,
        t2_node_lateness_cap_permille: 100_000,
        tm2_node_earliness_cap_permille: 1000,
        stress_reset: 1_000_000,
        stress_gain_ns: 1 << 40,
        tm2_node_lower_bound_ns: 1 << 48,
        ..Config::DEFAULT
    };
    assert_eq!(most.check(), Ok(()));
    for length in [1, MAX_SLOT_INSNS - 1, MAX_SLOT_INSNS] {
        exact::assert_task(&most, length);
    }
    assert_eq!(most.at_one().t2_task_insns(MAX_SLOT_INSNS), 3 << 48);
    assert_eq!(most.at_one().tm2_task_insns(MAX_SLOT_INSNS), 0);
    let all = Progress {
        begun_insns: MAX_PLAN_INSNS,
        planned_insns: MAX_PLAN_INSNS,
        retired_insns: MAX_PLAN_INSNS,
        buffer_insns: MAX_BUFFER_INSNS,
    };
    for active in [1, 2, 1023, MAX_PROCESSES] {
        for stress in [0, 1, 1_000_000] {
            exact::assert_process(&most, &all, active, stress);
            exact::assert_node(&most, MAX_PLAN_INSNS, active, stress);
        }
    }
    // 99 · 2^56 of extra capacity, a stress of 10^6 · 2^40.
    let t2_process_insns = 99 * (1 << 56) + 1_000_000 * (1 << 40) - (1 << 48);
    assert_eq!(
        most.at_one().t2_process_insns(&all, 1, 1_000_000),
        t2_process_insns
    );
    // 99 · 2^62 do not fit: nothing is later than that.
    assert_eq!(most.at_one().t2_node_insns(MAX_PLAN_INSNS, 1, 0), u64::MAX);
    assert_eq!(most.at_one().tm2_node_insns(MAX_PLAN_INSNS), -(1 << 62));
    let earliest = most.at_one().tm2_node_insns(u64::MAX);
    assert_eq!(earliest, -i64::MAX);
    // Exactly where an i64 ends.
    assert_eq!(
        most.at_one().tm2_node_insns(i64::MAX as u64 - 1),
        1 - i64::MAX
    );
    assert_eq!(most.at_one().tm2_node_insns(i64::MAX as u64), -i64::MAX);
    assert_eq!(most.at_one().tm2_node_insns(i64::MAX as u64 + 1), -i64::MAX);
    let beyond = Progress {
        begun_insns: u64::MAX,
        planned_insns: u64::MAX,
        retired_insns: u64::MAX,
        buffer_insns: u64::MAX,
    };
    assert_eq!(
        most.at_one().process_limit_insns(&beyond, 0, u64::MAX),
        u64::MAX
    );
    assert_eq!(most.at_one().t2_task_insns(u64::MAX), u64::MAX);
}
