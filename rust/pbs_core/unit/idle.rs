// SPDX-License-Identifier: GPL-2.0

//! Division of idle slots among processes (Leppert 2021, 3.2.3).

use std::vec::Vec;

use crate::wire::IDLE;
use crate::{Config, EventKind, Grant, IdlePolicy, Presence, Threshold};

use super::scene::{Scene, CONFIG};
use super::signals::buffered;
use super::text;

/// Without t2_node, as most are about the clock alone.
fn config(policy: IdlePolicy, idle_piece_ns: u64) -> Config {
    Config {
        idle_policy: policy as u64,
        idle_piece_ns,
        ..CONFIG
    }
}

/// Slots of 100 for processes 1 to `late`, in which each retires 110 and is preempted,
/// then an idle one, and slots of process 9 at the end.
fn late(config: Config, late: u32, idle_insns: u64) -> Scene {
    let mut slots: Vec<_> = (1..=late).map(|process| (process, 100)).collect();
    slots.extend([(IDLE, idle_insns), (9, 1000)]);
    let mut scene = Scene::ready(config, text::plan(&slots));
    for process in 1..=late {
        assert_eq!(scene.granted(), process);
        scene.run(110);
    }
    scene
}

/// Runs as long as the idle slot lasts.  Returns each process that had it, and for how long.
fn fillers(scene: &mut Scene) -> Vec<(u32, u64)> {
    let slot = scene.node.cursor();
    let mut fillers = Vec::new();
    while scene.node.cursor() == slot {
        let passes_ns = scene.last.until_ns.unwrap() - scene.now_ns;
        fillers.push((scene.granted(), passes_ns));
        match scene.last.grant {
            Some(_) => scene.run(passes_ns),
            None => scene.wait(passes_ns),
        }
    }
    fillers
}

#[test]
fn pieces_go_to_who_came_first() {
    // The example of the thesis: 200, of pieces of 90 and switches of 5, hold two.
    let mut scene = late(config(IdlePolicy::Pieces, 95), 3, 200);
    assert_eq!(scene.last.reason, Grant::IdleSlot);
    assert_eq!(fillers(&mut scene), [(1, 95), (2, 105)]);
    // 190 hold two exactly, 189 do not.
    let mut scene = late(config(IdlePolicy::Pieces, 95), 3, 190);
    assert_eq!(fillers(&mut scene), [(1, 95), (2, 95)]);
    let mut scene = late(config(IdlePolicy::Pieces, 95), 3, 189);
    assert_eq!(fillers(&mut scene), [(1, 189)]);
}

#[test]
fn who_has_had_a_piece_stands_in_line_again() {
    let mut scene = late(config(IdlePolicy::Pieces, 50), 2, 200);
    assert_eq!(fillers(&mut scene), [(1, 50), (2, 50), (1, 50), (2, 50)]);
    // Alone it has one piece after the other, and that is reported once.
    let mut scene = late(config(IdlePolicy::Pieces, 50), 1, 200);
    assert_eq!(fillers(&mut scene), [(1, 50); 4]);
    assert_eq!(scene.log.grants()[..2], [(1, 0), (1, 1)]);
    assert_eq!(scene.log.grants().len(), 3);
}

#[test]
fn lateness_does_not_matter_in_line() {
    let slots = [(1, 100), (2, 1000), (IDLE, 100), (9, 10)];
    let order = |policy| {
        let mut scene = Scene::ready(config(policy, 50), text::plan(&slots));
        scene.run(110);
        scene.run(1100);
        fillers(&mut scene)
    };
    assert_eq!(order(IdlePolicy::Latest), [(2, 100)]);
    assert_eq!(order(IdlePolicy::Pieces), [(1, 50), (2, 50)]);
    assert_eq!(order(IdlePolicy::EqualShares), [(1, 50), (2, 50)]);
}

#[test]
fn a_policy_knows_the_candidate_of_each_piece() {
    // Process 1 is preempted in both of its slots, process 2 in one.
    let slots = [(1, 100), (1, 100), (2, 100), (IDLE, 300), (9, 1000)];
    let mut scene = Scene::ready(config(IdlePolicy::Trial, 30), text::plan(&slots));
    for process in [1, 1, 2] {
        assert_eq!(scene.granted(), process);
        scene.run(110);
    }
    assert_eq!(scene.last.reason, Grant::IdleSlot);
    // Two doublings for process 1, one for process 2; no room is left for two pieces of process 2.
    assert_eq!(fillers(&mut scene), [(1, 120), (2, 60), (1, 120)]);
}

#[test]
fn piece_of_nothing_is_the_whole_slot() {
    for policy in [IdlePolicy::Pieces, IdlePolicy::ByState] {
        let mut scene = late(config(policy, 0), 2, 200);
        assert_eq!(fillers(&mut scene), [(1, 200)]);
    }
}

#[test]
fn who_ends_or_blocks_leaves_the_rest_to_the_next() {
    let mut scene = late(config(IdlePolicy::Pieces, 80), 3, 200);
    scene.finish(10);
    assert_eq!(scene.granted(), 2);
    // 190 are left: a whole piece begins.
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 80));
    scene.run(20);
    scene.set(2, Presence::Blocked);
    assert_eq!(scene.granted(), 3);
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 80));
    scene.run(80);
    // No other process, and too little for another piece after this one.
    assert_eq!(scene.granted(), 3);
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 90));
    scene.set(2, Presence::Ready);
    assert_eq!(scene.granted(), 3);
    scene.run(90);
    assert_eq!(scene.granted(), 9);
}

#[test]
fn who_comes_into_an_idle_slot_begins_a_piece() {
    let mut scene = late(config(IdlePolicy::Pieces, 80), 1, 200);
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.last.grant, None);
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 200));
    scene.wait(30);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 80));
}

#[test]
fn pieces_go_on_across_unallocated_time() {
    // Of each 1000, 900 are for the plan; the windows begin with the plan.
    let config = Config {
        window_period_ns: 1000,
        window_unallocated_ns: 100,
        ..config(IdlePolicy::Pieces, 800)
    };
    let mut scene = late(config, 2, 2000);
    let mut had = Vec::new();
    while scene.last.reason == Grant::IdleSlot {
        let passes_ns = scene.last.until_ns.unwrap() - scene.now_ns;
        if scene.last.unallocated {
            scene.wait(passes_ns);
        } else {
            had.push((scene.granted(), passes_ns));
            scene.run(passes_ns);
        }
    }
    // 220 of the first window are over.
    let expected = [(1, 680), (1, 120), (2, 780), (2, 420)];
    assert_eq!(had, expected);
}

#[test]
fn equal_shares_are_a_fifth_for_each_of_five() {
    let mut scene = late(config(IdlePolicy::EqualShares, 1), 5, 1000);
    let expected = [(1, 200), (2, 200), (3, 200), (4, 200), (5, 200)];
    assert_eq!(fillers(&mut scene), expected);
}

#[test]
fn equal_shares_leave_nothing() {
    let mut scene = late(config(IdlePolicy::EqualShares, 1), 3, 100);
    assert_eq!(fillers(&mut scene), [(1, 34), (2, 34), (3, 32)]);
    // Less than one for each.
    let mut scene = late(config(IdlePolicy::EqualShares, 1), 3, 2);
    assert_eq!(fillers(&mut scene), [(1, 1), (2, 1)]);
}

#[test]
fn share_stays_as_it_was_when_the_slot_was_first_given_away() {
    let mut scene = late(config(IdlePolicy::EqualShares, 1), 2, 100);
    scene.finish(10);
    assert_eq!(fillers(&mut scene), [(2, 50), (2, 40)]);
    // One that comes later counts for the next slot.
    let mut scene = late(config(IdlePolicy::EqualShares, 1), 2, 100);
    scene.set(2, Presence::Blocked);
    scene.run(10);
    scene.set(2, Presence::Ready);
    assert_eq!(fillers(&mut scene), [(1, 40), (2, 50)]);
}

#[test]
fn pieces_are_smaller_the_later_the_node_is() {
    let by_state = Config {
        t2_node_lateness_cap_permille: 2000,
        t2_min_process_ns: 0,
        ..config(IdlePolicy::ByState, 80)
    };
    // 20 late, of as much as the tasks that have begun, 200: 6 of the 60 that may be
    // withheld.
    let mut scene = late(by_state, 2, 300);
    assert_eq!(scene.node.thresholds(u64::MAX).t2_node_insns, 200);
    let until_ns = scene.last.until_ns.unwrap();
    assert_eq!(until_ns - scene.now_ns, 74);
    // After it 94 are late: 60 · 94 / 200.
    scene.run(74);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 80 - 28));
    // At t2_node and beyond it is a quarter.
    scene.node.charge(0, 500);
    scene.run(52);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 20));
}

#[test]
fn pieces_are_whole_where_the_node_is_not_late() {
    let by_state = Config {
        t2_node_lateness_cap_permille: 1000,
        t2_min_process_ns: 0,
        ..config(IdlePolicy::ByState, 80)
    };
    let slots = [(2, 100), (1, 100), (2, 100), (IDLE, 300), (2, 100)];
    let mut scene = Scene::ready(by_state, text::plan(&slots));
    scene.finish(50);
    scene.run(110);
    scene.finish(50);
    assert_eq!((scene.granted(), scene.node.lateness_insns()), (1, -90));
    assert_eq!(scene.last.until_ns, Some(scene.now_ns + 80));
}

#[test]
fn round_robin_gives_whole_slots_in_turn_and_to_nobody_else() {
    let slots = [
        (1, 100),
        (2, 100),
        (3, 100),
        (IDLE, 50),
        (IDLE, 60),
        (IDLE, 70),
        (IDLE, 80),
        (9, 100),
        (IDLE, 90),
        (9, 100),
    ];
    let round_robin = config(IdlePolicy::RoundRobin, 1);
    let mut scene = Scene::ready(round_robin, text::plan(&slots));
    for _ in 0..3 {
        scene.run(110);
    }
    assert_eq!(fillers(&mut scene), [(1, 50)]);
    // It ends early: the rest of its slot is for no process.
    scene.finish(10);
    assert_eq!((scene.granted(), scene.last.reason), (IDLE, Grant::None));
    assert_eq!(fillers(&mut scene), [(IDLE, 50)]);
    // It can't run for a while.
    scene.set(3, Presence::Blocked);
    assert_eq!(scene.granted(), IDLE);
    scene.wait(20);
    scene.set(3, Presence::Ready);
    assert_eq!(fillers(&mut scene), [(3, 50)]);
    // 9 is not late: no process runs.
    assert_eq!(fillers(&mut scene), [(IDLE, 80)]);
    scene.finish(100);
    // 1 has its second turn.
    assert_eq!(fillers(&mut scene), [(1, 90)]);
}

#[test]
fn round_goes_on_under_the_next_plan() {
    let slots = [(1, 100), (2, 100), (IDLE, 50), (IDLE, 50), (2, 10)];
    let round_robin = config(IdlePolicy::RoundRobin, 1);
    let late = |scene: &mut Scene| {
        scene.run(110);
        scene.run(110);
    };
    let mut scene = Scene::ready(round_robin, text::plan(&slots));
    late(&mut scene);
    assert_eq!(scene.granted(), 1);
    scene.swap_with(round_robin, text::plan(&slots), 0);
    late(&mut scene);
    assert_eq!(scene.granted(), 2);
    // A new run begins with the first process again.
    scene.exit(1);
    scene.exit(2);
    scene.wait(50);
    scene.wait(50);
    assert!(scene.node.ended());
    scene.swap_with(round_robin, text::plan(&slots), 0);
    scene.set(1, Presence::Ready);
    scene.set(2, Presence::Ready);
    late(&mut scene);
    assert_eq!(scene.granted(), 1);
}

#[test]
fn closest_deadline_is_the_end_in_the_plan_and_the_plan_buffer() {
    // 1 is later; the last slot of 2 ends at 1300, that of 1 at 1310.
    let slots = [
        (1, 1000),
        (2, 100),
        (IDLE, 100),
        (2, 100),
        (1, 10),
        (9, 1000),
    ];
    let deadline = config(IdlePolicy::ClosestDeadline, 1);
    for (buffers_insns, first) in [([0, 0], 2), ([0, 9], 2), ([0, 10], 1), ([10, 20], 1)] {
        let mut scene = buffered(deadline, &slots, &buffers_insns);
        scene.run(1100);
        scene.run(110);
        assert_eq!(scene.granted(), first, "{buffers_insns:?}");
        assert_eq!(fillers(&mut scene), [(first, 100)]);
    }
}

/// Two processes that never end after the plan, of which 1 is the more urgent one by any policy.
/// Returns the share of each in the first hundred windows, in thousandths.
fn parts_after_the_plan(policy: IdlePolicy) -> [u64; 2] {
    let config = Config {
        window_period_ns: 10_000,
        window_unallocated_ns: 1000,
        ..config(policy, 100)
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 2000), (2, 1000)]));
    scene.run(2200);
    scene.run(1100);
    assert_eq!(scene.last.reason, Grant::AfterPlan);
    let mut had_ns = [0; 2];
    while scene.now_ns < 1_000_000 {
        let passes_ns = scene.last.until_ns.unwrap() - scene.now_ns;
        if scene.last.unallocated {
            scene.wait(passes_ns);
        } else {
            had_ns[scene.last.grant.unwrap() as usize] += passes_ns;
            scene.run(passes_ns);
        }
    }
    had_ns.map(|ns| ns / 900)
}

#[test]
fn nobody_starves_after_the_plan() {
    for policy in IdlePolicy::ALL {
        let [first, second] = parts_after_the_plan(policy);
        let in_line = [
            IdlePolicy::Pieces,
            IdlePolicy::EqualShares,
            IdlePolicy::ByState,
            IdlePolicy::RoundRobin,
            IdlePolicy::Trial,
        ]
        .contains(&policy);
        // Window by window; or one window in ten.
        let expected = if in_line { 450..550 } else { 80..150 };
        let name = policy.name();
        assert!(expected.contains(&second), "{name}: {first} and {second}");
    }
}

#[test]
fn slot_of_a_process_that_cannot_run_is_in_turns() {
    for policy in IdlePolicy::ALL {
        let slots = [(1, 100), (2, 100), (9, 5000), (2, 10)];
        let mut scene = Scene::ready(config(policy, 50), text::plan(&slots));
        scene.set(9, Presence::Blocked);
        scene.run(110);
        scene.run(110);
        assert_eq!(scene.last.reason, Grant::BlockedSlot, "{}", policy.name());
        assert_eq!(scene.granted(), 1, "{}", policy.name());
        scene.run(3000);
        assert_eq!(scene.granted(), 1, "{}", policy.name());
    }
}

#[test]
fn by_default_an_idle_slot_is_not_divided() {
    let mut scene = late(CONFIG, 3, 200);
    assert_eq!(Threshold::T1 as u64, CONFIG.thresholds);
    assert_eq!(fillers(&mut scene), [(1, 200)]);
    assert_eq!(scene.node.counts().get(EventKind::Preempted), 3);
}
