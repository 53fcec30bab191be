// SPDX-License-Identifier: GPL-2.0

//! Reasons that hold a signal back or report it beforehand: stress, information, idle time; and the
//! choice among candidates for idle slots.

use crate::wire::IDLE;
use crate::{Config, EventKind, Grant, IdlePolicy, Presence, Threshold};

use super::scene::Scene;
use super::signals::{buffered, on, scene};

/// Four points of stress, 100 instructions each, for four ticks of 100 µs.
fn stressed(thresholds: &[Threshold]) -> Config {
    Config {
        stress_gain_ns: 100,
        ..on(thresholds)
    }
}

#[test]
fn stress_holds_the_process_back_until_its_tick() {
    let mut scene = scene(stressed(&[Threshold::T2Process]), &[(1, 1000)]);
    let end_ns = scene.last.until_ns;
    assert_eq!(scene.node.thresholds(0).stress, 4);
    assert_eq!(scene.node.process_limit_insns(0, 0), 400);
    scene.run_as_told(1100);
    // Only the clock was asked for so far: the capacity buffer is not passed.
    assert_eq!(scene.last.until_ns, end_ns);
    assert_eq!(scene.last.until_insns, Some(1));
    scene.run(1);
    assert_eq!(scene.last.until_ns, Some(100_000));
    assert_eq!(scene.last.until_insns, Some(300));
    scene.run(149);
    assert_eq!(scene.last.until_insns, Some(151));
    // 250 late: not with three points, but with two.
    for (now_ns, limit_insns, lines) in [
        (100_000, 300, 0),
        (199_999, 300, 0),
        (200_000, 200, 1),
        (300_000, 100, 1),
    ] {
        scene.wait(now_ns - scene.now_ns);
        assert_eq!(scene.node.process_limit_insns(0, now_ns), limit_insns);
        assert_eq!(scene.log.lines().len(), lines, "at {now_ns}");
        if lines == 0 {
            assert_eq!(
                scene.last.until_ns,
                Some(now_ns / 100_000 * 100_000 + 100_000)
            );
        }
    }
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.stress, event.value), (2, 200));
    assert_eq!((event.time_ns, event.lateness_insns), (200_000, 250));
    // There is nothing more to wait for.
    assert_eq!(scene.last.until_ns, end_ns);
    assert_eq!(scene.last.until_insns, None);
}

#[test]
fn stress_raises_the_threshold_and_no_more() {
    // Late enough, it is reported under stress too.
    let mut scene = scene(stressed(&[Threshold::T2Process]), &[(1, 1000)]);
    scene.run_as_told(1400);
    assert_eq!(scene.log.lines(), [""; 0]);
    assert_eq!(scene.last.until_insns, Some(1));
    scene.run(1);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1401"]);
    assert_eq!(scene.log.signals()[0].1.stress, 4);
}

#[test]
fn stress_holds_the_node_back_until_its_tick() {
    let mut scene = scene(stressed(&[Threshold::T2Node]), &[(1, 1000)]);
    // A tenth of the begun and four points.
    assert_eq!(scene.node.thresholds(0).t2_node_insns, 500);
    scene.run_as_told(1101);
    assert_eq!(scene.last.until_ns, Some(100_000));
    scene.run(149);
    for (now_ns, lines) in [(200_000, 0), (299_999, 0), (300_000, 1)] {
        scene.wait(now_ns - scene.now_ns);
        assert_eq!(scene.log.lines().len(), lines, "at {now_ns}");
    }
    let (_, event) = scene.log.signals()[0];
    assert_eq!((event.stress, event.value), (1, 200));
}

#[test]
fn stress_never_holds_task_and_preemptions_back() {
    let thresholds = [
        Threshold::T1,
        Threshold::T2Task,
        Threshold::T2Preemptions,
        Threshold::Tm2Task,
    ];
    let slots = [(1, 1000), (1, 1000), (1, 1000)];
    let mut scene = scene(stressed(&thresholds), &slots);
    scene.run_as_told(2200);
    let lines = [
        "late task: 1.0 at 1501",
        "late preemptions: 1.0 at 2200",
        "early task: 1.1 at 499",
    ];
    assert_eq!(scene.log.lines(), lines[..2]);
    scene.finish(0);
    scene.finish(499);
    assert_eq!(scene.log.lines(), lines);
    let signals = scene.log.signals();
    assert!(signals.iter().all(|(_, event)| event.stress == 4));
}

#[test]
fn stress_silences_tm2_node_to_its_last_point() {
    let config = stressed(&[Threshold::Tm2Node]);
    let mut scene = scene(config, &[(1, 1000); 4]);
    scene.finish(0);
    scene.wait(399_999 - scene.now_ns);
    assert_eq!(scene.node.thresholds(scene.now_ns).stress, 1);
    scene.finish(0);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.wait(1);
    scene.finish(0);
    assert_eq!(scene.log.lines(), ["early node: 1.2 at 0"]);
    assert_eq!(scene.log.signals()[0].1.stress, 0);
    // A gain of 0 switches stress off.
    let config = Config {
        stress_gain_ns: 0,
        ..config
    };
    let mut calm = self::scene(config, &[(1, 1000); 4]);
    assert_eq!(calm.node.thresholds(0).stress, 0);
    calm.finish(0);
    assert_eq!(calm.log.lines(), ["early node: 1.0 at 0"]);
}

#[test]
fn information_comes_at_each_quarter_of_the_process() {
    let config = on(&[Threshold::T2Process, Threshold::Info]);
    let mut scene = scene(config, &[(1, 1000)]);
    scene.run_as_told(1025);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.run_as_told(1);
    // The next one is another quarter away.
    assert_eq!(scene.last.until_insns, Some(25));
    scene.run_as_told(2000);
    let lines = [
        "25 % process: 1.0 at 1026",
        "50 % process: 1.0 at 1051",
        "75 % process: 1.0 at 1076",
        "late process: 1.0 at 1101",
    ];
    assert_eq!(scene.log.lines(), lines);
    // The threshold of which it is the quarter.
    let signals = scene.log.signals();
    assert!(signals.iter().all(|(_, event)| event.value == 100));
}

#[test]
fn information_comes_at_each_quarter_of_the_node() {
    let config = on(&[Threshold::T2Node, Threshold::Info]);
    let slots = [(1, 1000), (2, 1000), (1, 1000), (2, 1000)];
    let mut scene = scene(config, &slots);
    scene.run_as_told(1026);
    scene.finish(0);
    scene.run_as_told(2000);
    let lines = [
        "25 % node: 1.0 at 1026",
        "50 % node: 2.0 at 1075",
        "75 % node: 2.0 at 1125",
        "late node: 2.0 at 1175",
    ];
    assert_eq!(scene.log.lines(), lines);
}

#[test]
fn only_the_highest_of_the_levels_passed_at_once_is_told() {
    let config = on(&[Threshold::T2Process, Threshold::Info]);
    let mut scene = scene(config, &[(1, 1000)]);
    scene.run(1075);
    scene.run(1);
    scene.run(100);
    let lines = [
        "50 % process: 1.0 at 1075",
        "75 % process: 1.0 at 1076",
        "late process: 1.0 at 1176",
    ];
    assert_eq!(scene.log.lines(), lines);
    let mut at_once = self::scene(config, &[(1, 1000)]);
    at_once.run(1101);
    assert_eq!(at_once.log.lines(), ["late process: 1.0 at 1101"]);
    at_once.run(1000);
    assert_eq!(at_once.log.signals().len(), 1);
}

#[test]
fn information_is_of_the_threshold_as_stress_raises_it() {
    let config = stressed(&[Threshold::T2Process, Threshold::Info]);
    let mut scene = scene(config, &[(1, 1000)]);
    scene.run_as_told(1101);
    let lines = [
        "25 % process: 1.0 at 1101",
        "50 % process: 1.0 at 1101",
        "late process: 1.0 at 1101",
    ];
    assert_eq!(scene.log.lines(), lines[..1]);
    for (tick, lines) in [(1, &lines[..1]), (2, &lines[..2]), (3, &lines[..3])] {
        scene.wait(tick * 100_000 - scene.now_ns);
        assert_eq!(scene.log.lines(), lines, "tick {tick}");
    }
}

#[test]
fn information_alone_tells_nothing() {
    let mut scene = scene(on(&[Threshold::Info, Threshold::T2Task]), &[(1, 1000)]);
    scene.run(1400);
    assert_eq!(scene.log.lines(), [""; 0]);
    assert_eq!(scene.last.until_insns, Some(101));
}

/// t2_process of 4000 planned with an extra capacity of `share_permille` of
/// that, so that it rises with this slope; ten tasks of 400.
fn sloped(share_permille: u64, info: bool) -> Scene {
    let config = Config {
        capacity_buffer_permille: 1000 + 1,
        t2_min_process_ns: 0,
        ..on(&[Threshold::T2Process])
    };
    let config = Config {
        thresholds: config.thresholds | (u64::from(info) * Threshold::Info as u64),
        ..config
    };
    buffered(config, &[(1, 400); 10], &[4000 * share_permille])
}

#[test]
fn flat_slopes_are_told_at_the_first_instruction() {
    for share_permille in (0..=500).step_by(3) {
        let mut scene = sloped(share_permille, true);
        let mut by_one = sloped(share_permille, true);
        // Half of what is retired is late, or more.
        scene.run_as_told(850);
        for _ in 0..850 {
            by_one.node.forget_decision();
            by_one.run(1);
        }
        let (told, first) = (scene.log.lines(), by_one.log.lines());
        assert_eq!(told, first, "slope {share_permille} ‰");
        // Where a quarter is an instruction at least.
        let levels = if share_permille > 20 { 4 } else { 1 };
        assert!(told.len() >= levels, "{told:?}");
    }
}

#[test]
fn steep_slopes_are_told_within_a_thousandth_and_in_few_steps() {
    for share_permille in (501..1500).step_by(7) {
        let mut scene = sloped(share_permille, false);
        let mut decisions = 0;
        while scene.log.lines().is_empty() && decisions < 1100 {
            let insns = scene.last.until_insns.unwrap();
            scene.run(insns);
            decisions += 1;
        }
        let mut by_one = sloped(share_permille, false);
        while by_one.log.lines().is_empty() && by_one.now_ns < 10_000 {
            by_one.node.forget_decision();
            by_one.run(1);
        }
        let (_, told) = scene.log.signals()[0];
        let (_, first) = by_one.log.signals()[0];
        let late_insns = told.retired_insns - first.retired_insns;
        assert!(late_insns <= first.value / 1000 + 1, "{share_permille} ‰");
        assert!(decisions < 1100, "{decisions} decisions");
    }
}

/// A scene in which tm2_node of one process is at −150, and two tasks have ended 100 early each.
fn waiting(idle_is_lateness: u64, wait_ns: u64) -> Scene {
    let config = Config {
        tm2_node_lower_bound_ns: 150,
        tm2_node_earliness_cap_permille: 0,
        idle_is_lateness,
        ..on(&[Threshold::Tm2Node])
    };
    let slots = [(1, 1000), (1, 1000), (1, 1000), (IDLE, 500), (1, 1000)];
    let mut scene = scene(config, &slots);
    scene.finish(900);
    scene.set(1, Presence::Blocked);
    scene.wait(wait_ns / 2);
    scene.wait(wait_ns - wait_ns / 2);
    scene.set(1, Presence::Ready);
    scene.finish(900);
    scene
}

/// Section 3.3.8.
#[test]
fn waiting_lessens_earliness_if_configured() {
    assert_eq!(waiting(0, 60).log.lines(), ["early node: 1.1 at 900"]);
    assert_eq!(waiting(1, 49).log.lines(), ["early node: 1.1 at 900"]);
    // −200 and 50 are −150.
    let mut scene = waiting(1, 50);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.finish(999);
    assert_eq!(scene.log.lines(), ["early node: 1.2 at 999"]);
    let (_, event) = scene.log.signals()[0];
    assert_eq!(event.node_lateness_insns, -151);
    assert_eq!(event.value as i64, -150);
    // What is shown stays what was retired and planned.
    assert_eq!(scene.node.lateness_insns(), -201);
}

#[test]
fn waiting_counts_no_longer_than_it_is_configured() {
    let mut scene = waiting(1, 50);
    assert_eq!(scene.log.lines(), [""; 0]);
    let config = Config {
        idle_is_lateness: 0,
        ..*scene.node.config()
    };
    let changed = scene.node.configure(&config, scene.now_ns, &mut scene.log);
    assert_eq!(changed, Ok(1));
    scene.decide();
    scene.finish(999);
    let (_, event) = scene.log.signals()[0];
    // All that is early counts, and not what was waited for.
    assert_eq!(event.node_lateness_insns, -201);
}

#[test]
fn waiting_makes_nobody_late() {
    // 100 early: therefore more than 100 do not count.
    let mut scene = waiting(1, 5000);
    scene.finish(950);
    assert_eq!(scene.log.lines(), [""; 0]);
    // −250 and 100; a planned idle slot is no deviation.
    assert_eq!(scene.last.reason, Grant::None);
    scene.wait(500);
    scene.finish(999);
    assert_eq!(scene.log.lines(), ["early node: 1.3 at 999"]);
    assert_eq!(scene.log.signals()[0].1.node_lateness_insns, -151);
}

#[test]
fn waiting_counts_only_while_nobody_runs() {
    let config = Config {
        tm2_node_lower_bound_ns: 300,
        tm2_node_earliness_cap_permille: 0,
        idle_is_lateness: 1,
        ..on(&[Threshold::T1, Threshold::Tm2Node])
    };
    let slots = [(2, 1000), (1, 1000), (1, 1000), (2, 1000), (1, 1000)];
    let mut scene = scene(config, &slots);
    // Process 2 is 100 late and fills the slot of process 1.
    scene.run(1100);
    scene.finish(700);
    scene.set(1, Presence::Blocked);
    assert_eq!(
        (scene.granted(), scene.last.reason),
        (2, Grant::BlockedSlot)
    );
    scene.run(50);
    scene.set(1, Presence::Ready);
    // 150 and −1300: the 50 are not idle.
    scene.finish(0);
    assert_eq!(scene.log.lines(), ["early node: 1.1 at 0"]);
    assert_eq!(scene.log.signals()[0].1.node_lateness_insns, -1150);
}

#[test]
fn waiting_goes_on_across_a_plan() {
    let config = *waiting(1, 0).node.config();
    let slots = [(1, 1000), (1, 1000), (1, 1000)];
    let mut scene = self::scene(config, &slots);
    scene.finish(900);
    scene.set(1, Presence::Blocked);
    scene.now_ns += 30;
    scene.swap_with(config, super::text::plan(&slots), 0);
    scene.wait(20);
    scene.set(1, Presence::Ready);
    scene.finish(900);
    assert_eq!(scene.log.lines(), [""; 0]);
    scene.finish(999);
    assert_eq!(scene.log.signals()[0].1.node_lateness_insns, -151);
}

/// Processes 1 and 2 are 300 and 100 late when an idle slot comes; the plan
/// buffer of process 1 is 1000.
fn idle_slot(policy: IdlePolicy) -> Scene {
    let config = Config {
        idle_policy: policy as u64,
        ..on(&[Threshold::T1])
    };
    let slots = [(1, 3000), (2, 1000), (IDLE, 1000)];
    buffered(config, &slots, &[1000, 0])
}

#[test]
fn idle_slot_goes_to_the_latest_or_to_the_least_slack() {
    for (policy, first) in [(IdlePolicy::Latest, 1), (IdlePolicy::LeastSlack, 2)] {
        let mut scene = idle_slot(policy);
        scene.run(3300);
        scene.run(1100);
        assert_eq!(scene.last.reason, Grant::IdleSlot);
        assert_eq!(scene.granted(), first, "{}", policy.name());
        // The other when that one is done.
        scene.finish(10);
        assert_eq!(scene.granted(), 3 - first);
    }
}

#[test]
fn least_slack_is_that_of_the_moment() {
    // Process 2 has 950 of buffer; 1 is beyond it by as much lateness or not.
    let config = *idle_slot(IdlePolicy::LeastSlack).node.config();
    for (buffer_insns, first) in [(799, 2), (800, 1), (801, 1)] {
        let slots = [(1, 3000), (2, 1000), (IDLE, 1000)];
        let mut scene = buffered(config, &slots, &[1000, buffer_insns]);
        scene.run(3300);
        scene.run(1100);
        assert_eq!(scene.granted(), first, "buffer {buffer_insns}");
    }
}

#[test]
fn thresholds_of_the_node_are_those_of_the_moment() {
    let config = stressed(&[Threshold::T2Node]);
    let slots = [(1, 1000), (2, 2000), (1, 3000), (2, 1000)];
    let mut scene = scene(config, &slots);
    scene.finish(900);
    let thresholds = scene.node.thresholds(250_000);
    assert_eq!((thresholds.stress, thresholds.active), (2, 2));
    assert_eq!(thresholds.lateness_insns, -100);
    // 3000 begun, 1000 ended.
    assert_eq!(thresholds.t2_node_insns, 300 + 200);
    assert_eq!(thresholds.tm2_node_insns, -100);
    scene.finish(2000);
    let thresholds = scene.node.thresholds(1_000_000);
    assert_eq!(thresholds.t2_node_insns, 600);
    assert_eq!(thresholds.tm2_node_insns, -300);
    // A process that does not exist has no account.
    assert_eq!(scene.node.process_limit_insns(0, 1_000_000), 400);
    assert_eq!(scene.node.process_limit_insns(9, 1_000_000), 30);
    assert_eq!(scene.log.of(EventKind::Late).len(), 0);
}
