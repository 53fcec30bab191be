// SPDX-License-Identifier: GPL-2.0

//! Numbers worked by hand: rate, t1, ceiling, windows, ranges.

use crate::{
    Config, EventKind, Fault, IdlePolicy, Policy, PreemptionWay, Presence, Rate, Threshold,
};

use super::scene::{Scene, CONFIG};
use super::text;
use super::AtOne;

#[test]
fn rate_converts_both_ways() {
    let rate = Rate::new(3_000_000);
    assert_eq!(rate.to_ns(3_000_000), 999_999);
    assert_eq!(rate.to_insns(1_000_000), 3_000_000);
    assert_eq!(Rate::new(1_000_000).to_ns(12_345), 12_345);
    assert_eq!(Rate::new(250_000).to_ns(1000), 4000);
    // The longest slot, exact where the rate divides a power of two.
    let long_ns = Rate::new(4_000_000).to_ns(1 << 48);
    assert_eq!(long_ns, (1 << 48) / 4);
}

/// Both ways of a length are exact but for the rounding, for every rate.
#[test]
fn lengths_are_exact() {
    let rate = Rate::new(3_000_000);
    assert_eq!(rate.length_insns(1), 3);
    assert_eq!(rate.length_ns(1), 1);
    assert_eq!(rate.length_ns(4), 2);
    // 78 hours: the fixed point of `to_insns` is off by 65,536 here.
    assert_eq!(rate.length_insns(1 << 48), 3 << 48);
    let mut numbers = 1u64;
    for insns_per_ms in [1, 999, 123_456, 1_000_000, 3_141_592, u64::from(u32::MAX)] {
        let rate = Rate::new(insns_per_ms);
        for shift in 0..60 {
            numbers = numbers
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let length = numbers >> shift;
            let exact = |value: u64, by: u64| u128::from(value) * u128::from(by);
            let insns = exact(length, insns_per_ms) / 1_000_000;
            assert_eq!(
                rate.length_insns(length),
                u64::try_from(insns).unwrap_or(u64::MAX)
            );
            let ns = exact(length, 1_000_000).div_ceil(insns_per_ms.into());
            assert_eq!(
                rate.length_ns(length),
                u64::try_from(ns).unwrap_or(u64::MAX)
            );
            if insns_per_ms <= 1_000_000 && rate.length_ns(length) != u64::MAX {
                assert_eq!(rate.length_insns(rate.length_ns(length)), length);
            }
        }
    }
}

#[test]
fn times_become_instructions_by_the_rate() {
    let config = Config {
        preemption_limit_ns: 50_000_000,
        t2_spacer_ns: 20_000_000,
        stress_gain_ns: 400_000,
        tm2_node_lower_bound_ns: 8,
        ..Config::DEFAULT
    };
    let policy = Policy::new(config, Rate::new(250_000));
    assert_eq!(policy.preemption_limit_insns, 12_500_000);
    assert_eq!(policy.t2_spacer_insns, 5_000_000);
    assert_eq!(policy.stress_gain_insns, 100_000);
    assert_eq!(policy.tm2_node_lower_bound_insns, 2);
    assert_eq!(policy.config, config);
    // What is different in time, but not in instructions, stays apart all the same.
    let near = Config {
        no_preemption_ns: 10,
        t2_spacer_ns: 11,
        preemption_limit_ns: 10,
        t2_task_signaling_limit_ns: 11,
        ..config
    };
    let policy = Policy::new(near, Rate::new(1000));
    assert_eq!((policy.no_preemption_insns, policy.t2_spacer_insns), (0, 1));
    assert_eq!(policy.t2_task_signaling_limit_insns, 1);
}

#[test]
fn rate_has_no_bad_value() {
    assert_eq!(Rate::new(0).insns_per_ms(), 1);
    assert_eq!(Rate::new(0).to_ns(1), 1_000_000);
    assert_eq!(Rate::new(0).to_ns(u64::MAX), u64::MAX);
    assert_eq!(Rate::new(u64::MAX).insns_per_ms(), u32::MAX.into());
    assert_eq!(Rate::new(u64::MAX).to_insns(u64::MAX), u64::MAX);
}

#[test]
fn t1_is_relative_within_two_bounds() {
    let config = Config {
        no_preemption_ns: 10_000,
        ..Config::DEFAULT
    };
    // 1.05 times the length.
    assert_eq!(config.at_one().t1_insns(1_000_000), 1_050_000);
    assert_eq!(config.at_one().t1_insns(20_000_000), 21_000_000);
    assert_eq!(config.at_one().t1_insns(1_234_567), 1_296_295);
    // NO_PREEMPTION below a length of 200,000.
    assert_eq!(config.at_one().t1_insns(200_000), 210_000);
    assert_eq!(config.at_one().t1_insns(199_999), 209_999);
    assert_eq!(config.at_one().t1_insns(1), 10_001);
    // PREEMPTION_LIMIT above a length of 10^9.
    assert_eq!(config.at_one().t1_insns(1_000_000_000), 1_050_000_000);
    assert_eq!(config.at_one().t1_insns(2_000_000_000), 2_050_000_000);
    assert_eq!(config.at_one().t1_insns(1 << 48), (1 << 48) + 50_000_000);
}

#[test]
fn t1_of_the_greatest_numbers_does_not_overflow() {
    let config = Config {
        sigma_t1_permille: 100_000,
        preemption_limit_ns: 1 << 48,
        ..Config::DEFAULT
    };
    assert_eq!(config.at_one().t1_insns(1 << 48), 1 << 49);
    assert_eq!(config.at_one().t1_insns(u64::MAX), u64::MAX);
}

#[test]
fn ceiling_is_the_length_at_the_rate_with_room() {
    let config = Config::DEFAULT;
    // 20,000,000 instructions at 250,000 a millisecond are 80 ms.
    assert_eq!(
        config.ceiling_ns(20_000_000, Rate::new(250_000)),
        170_000_000
    );
    assert_eq!(config.ceiling_ns(1, Rate::new(4_000_000)), 10_000_000);
    assert_eq!(config.ceiling_ns(u64::MAX, Rate::new(1)), u64::MAX);
}

#[test]
fn configuration_is_checked_number_by_number() {
    assert_eq!(Config::DEFAULT.check(), Ok(()));
    // What others depend on is out of the way.
    let wide = Config {
        sigma_t2_permille: 100_000,
        t2_spacer_ns: 1 << 48,
        t2_task_signaling_limit_ns: 1 << 49,
        ..Config::DEFAULT
    };
    let bounds = [
        (0, 1001, 99_999),
        (1, 4_000_000, 1 << 48),
        (2, 0, 50_000_000),
        (3, 1000, 1_000_000),
        (4, 100_000, 3_600_000_000_000),
        (5, 5_555_556, 500_000_000),
        (6, 1_000_000, 90_000_000),
        (7, 1051, 100_000),
        (8, 4_000_001, 1 << 49),
        (9, 50_000_001, 1 << 49),
        (10, 1, 1_000_000),
        (11, 1000, 100_000),
        (12, 0, 1000),
        (13, 0, 1 << 48),
        (14, 0, 1 << 48),
        (15, 1000, 100_000),
        (16, 0, 1000),
        (17, 0, 1_000_000),
        (18, 0, 1 << 40),
        (19, 100_000, 1_000_000_000),
        (20, 0, 2047),
        (21, 0, IdlePolicy::ALL.len() as u64 - 1),
        (22, 0, 1),
        (23, 0, 1),
        (24, 1, 1000),
        (25, 0, 1 << 48),
        (29, 0, 3),
        (30, 100_000, 1 << 48),
        (32, 0, 2),
        (33, 0, 1),
        (34, 0, 1),
        (35, 0, 1000),
        (36, 0, 1000),
        (37, 0, 1 << 49),
        (38, 0, 1 << 49),
        (39, 0, 2),
        (40, 0, 1),
        (41, 0, 1 << 48),
        (42, 0, 1 << 48),
    ];
    for (index, least, most) in bounds {
        let with = |value| {
            let mut values = wide.values();
            values[index] = value;
            Config::from_values(values).check()
        };
        assert_eq!(with(least), Ok(()), "{}", Config::NAMES[index]);
        assert_eq!(with(most), Ok(()), "{}", Config::NAMES[index]);
        for value in [least.checked_sub(1), Some(most + 1), Some(u64::MAX)] {
            let Some(value) = value else { continue };
            let refusal = with(value).unwrap_err();
            assert!(matches!(refusal.fault, Fault::Config { .. }));
        }
    }
    let whole = Config {
        idle_piece_ns: 0,
        ..Config::DEFAULT
    };
    assert_eq!(whole.check(), Ok(()));
    let period = Config {
        window_period_ns: 999_999,
        window_unallocated_ns: 50_000,
        ..Config::DEFAULT
    };
    let refusal = period.check().unwrap_err();
    assert_eq!(refusal.offset_bytes, 64 + 5 * 8);
}

#[test]
fn thresholds_and_policies_have_their_bits_and_names() {
    let thresholds = Threshold::ALL.map(|threshold| (threshold as u64, threshold.name()));
    let expected = [
        (1, "t1"),
        (2, "t2_task"),
        (4, "t2_process"),
        (8, "t2_node"),
        (16, "t2_preemptions"),
        (32, "tm2_task"),
        (64, "tm2_node"),
        (128, "info"),
        (256, "t2_memory"),
        (512, "t2_message"),
        (1024, "tm2_message"),
    ];
    assert_eq!(thresholds, expected);
    assert_eq!(Threshold::ALL_BITS, 2047);
    for threshold in Threshold::ALL {
        let alone = Config {
            thresholds: threshold as u64,
            ..Config::DEFAULT
        };
        for other in Threshold::ALL {
            assert_eq!(alone.has(other), other == threshold);
        }
    }
    let policies = IdlePolicy::ALL.map(|policy| (policy as u64, policy.name()));
    let expected = [
        (0, "latest"),
        (1, "least_slack"),
        (2, "pieces"),
        (3, "equal_shares"),
        (4, "by_state"),
        (5, "round_robin"),
        (6, "closest_deadline"),
        (7, "nobody"),
        (8, "preempted"),
        (9, "strict"),
    ];
    // The numbers of policies that were shipped stay; another one may follow.
    assert!(policies.starts_with(&expected), "{policies:?}");
    for (idle_policy, policy) in (0..).zip(IdlePolicy::ALL) {
        let config = Config {
            idle_policy,
            ..Config::DEFAULT
        };
        assert_eq!(config.idle_policy(), policy);
    }
    let ways = PreemptionWay::ALL.map(|way| (way as u64, way.name()));
    let expected = [
        (0, "capped"),
        (1, "once"),
        (2, "next_slot"),
        (3, "every_slot"),
    ];
    assert_eq!(ways, expected);
    for (preemption_way, way) in (0..).zip(PreemptionWay::ALL) {
        let config = Config {
            preemption_way,
            ..Config::DEFAULT
        };
        assert_eq!(config.preemption_way(), way);
    }
}

/// 95 ms of execution time, 5 ms of unallocated time.
fn windowed(slots: &[(u32, u64)]) -> Scene {
    let config = Config {
        window_period_ns: 100_000_000,
        window_unallocated_ns: 5_000_000,
        ..CONFIG
    };
    let mut scene = Scene::absent(config, text::plan(slots));
    for p in 0..scene.node.plan().processes().len() as u32 {
        scene.node.set_presence(p, Presence::Ready);
    }
    scene.decide();
    scene
}

#[test]
fn unallocated_time_ends_each_period() {
    let mut scene = windowed(&[(1, 1_000_000_000)]);
    assert!(!scene.last.unallocated);
    assert_eq!(scene.last.until_ns, Some(95_000_000));
    scene.wait(94_999_999);
    assert!(!scene.last.unallocated);
    scene.wait(1);
    assert!(scene.last.unallocated);
    assert_eq!(scene.last.grant, Some(0));
    assert_eq!(scene.last.until_ns, Some(100_000_000));
    scene.wait(5_000_000);
    assert!(!scene.last.unallocated);
    assert_eq!(scene.last.until_ns, Some(195_000_000));
    // Several periods at once: into the unallocated time of the eighth.
    scene.wait(697_000_000);
    assert!(scene.last.unallocated);
    assert_eq!(scene.last.until_ns, Some(800_000_000));
    // The windows change no grant.
    assert_eq!(scene.log.of(EventKind::Grant).len(), 1);
}

#[test]
fn unallocated_time_does_not_shorten_an_idle_slot() {
    use crate::wire::IDLE;
    // 120 ms of plan time: 95 in the first period, 25 in the second.
    let mut scene = windowed(&[(IDLE, 120_000_000), (1, 1000)]);
    assert_eq!(scene.last.until_ns, Some(95_000_000));
    scene.wait(97_000_000);
    assert_eq!(scene.last.until_ns, Some(100_000_000));
    scene.wait(3_000_000);
    assert_eq!(scene.last.until_ns, Some(125_000_000));
    scene.wait(24_999_999);
    assert_eq!(scene.node.cursor(), 0);
    scene.wait(1);
    assert_eq!(scene.granted(), 1);
}

#[test]
fn unallocated_time_does_not_count_towards_the_ceiling() {
    // Twice 50 ms and 1 µs: 95 ms in the first period, 5.001 in the second.
    let mut scene = windowed(&[(1, 50_000_000), (2, 1000)]);
    scene.wait(99_000_000);
    scene.wait(6_000_999);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_ns, Some(105_001_000));
    scene.wait(1);
    assert_eq!(scene.granted(), 2);
    let ceiling = scene.log.of(EventKind::Ceiling);
    assert_eq!(ceiling.len(), 1);
    assert_eq!(ceiling[0].value, 100_001_000);
}

#[test]
fn windows_end_with_the_plan_and_whoever_runs_after_it() {
    let mut scene = windowed(&[(1, 1000)]);
    scene.run(1100);
    // After the last slot, behind: the windows continue.
    assert_eq!(scene.last.grant, Some(0));
    assert_eq!(scene.last.until_ns, Some(95_000_000));
    scene.wait(96_000_000);
    assert!(scene.last.unallocated);
    scene.finish(0);
    assert_eq!(scene.last.grant, None);
    assert!(!scene.last.unallocated);
    assert_eq!(scene.last.until_ns, None);
}

#[test]
fn idle_slot_may_end_just_beyond_a_window() {
    use crate::wire::IDLE;
    let mut scene = windowed(&[(IDLE, 95_000_001), (1, 1000)]);
    for (now_ns, until_ns) in [
        (94_999_999, 95_000_000),
        (95_000_000, 100_000_000),
        (95_000_001, 100_000_000),
        (100_000_000, 100_000_001),
    ] {
        scene.wait(now_ns - scene.now_ns);
        assert_eq!(scene.last.until_ns, Some(until_ns));
        assert_eq!(scene.granted(), IDLE);
    }
    scene.wait(1);
    assert_eq!(scene.granted(), 1);
}
