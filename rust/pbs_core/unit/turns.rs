// SPDX-License-Identifier: GPL-2.0

//! Time that is taken out of turn, and turns beside the slots.

use std::vec::Vec;

use crate::wire::IDLE;
use crate::{Config, EventKind, Grant, IdlePolicy, Node, Plan, Presence, StdMemory};

use super::scene::{Scene, CONFIG, RATE};
use super::text;

/// Windows of a millisecond, a tenth of which may be taken out of turn.
const WINDOWS: Config = Config {
    window_period_ns: 1_000_000,
    window_unallocated_ns: 10_000,
    kernel_budget_permille: 100,
    ..CONFIG
};

/// Windows of a millisecond, in which candidates fill gaps one after the other.
const TURNS: Config = Config {
    idle_policy: IdlePolicy::Pieces as u64,
    idle_piece_ns: 0,
    ..WINDOWS
};

/// A plan by which the first tasks of processes 1 and 2 wait for the first of process 3.
fn both_after_3(slots: &[(u32, u64)]) -> Plan<StdMemory> {
    text::plan_of(text::net(slots, &[(1, 0, 3, 0), (2, 0, 3, 0)]))
}

/// Reports a thread that takes that time out of turn, as the kernel does.
fn taken(scene: &mut Scene, ns: u64) {
    scene.now_ns += ns;
    scene.node.out_of_turn(ns, scene.now_ns);
    scene.decide();
}

#[test]
fn the_clock_of_a_slot_stands_still_for_its_owner() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    // Its ceiling is 1000 ns, twice, and 1000 ns.
    assert_eq!(scene.last.until_ns, Some(3000));
    scene.wait(100);
    taken(&mut scene, 5000);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_ns, Some(8000));
    scene.wait(2899);
    assert_eq!(scene.granted(), 1);
    scene.wait(1);
    assert_eq!(scene.log.of(EventKind::Ceiling).len(), 1);
    assert_eq!(scene.granted(), 2);
}

#[test]
fn it_does_not_for_who_fills_a_slot() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (2, 10), (1, 10)]);
    scene.run(1100);
    scene.set(2, Presence::Blocked);
    assert_eq!(scene.last.reason, Grant::BlockedSlot);
    let until_ns = scene.last.until_ns;
    taken(&mut scene, 500);
    assert_eq!(scene.last.until_ns, until_ns);
}

#[test]
fn what_is_owed_shortens_the_next_slots() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000), (1, 1000), (2, 1000)]);
    scene.node.owe(0, 1500);
    // The present slot does not change.
    assert_eq!(scene.last.until_insns, Some(1100));
    scene.finish(1000);
    scene.finish(1000);
    // Nothing is left of the next one.
    let preempted = scene.log.of(EventKind::Preempted);
    assert_eq!(preempted.len(), 1);
    let of = |index: usize| (preempted[index].process, preempted[index].slot);
    assert_eq!((of(0), preempted[0].value), ((1, 2), 0));
    // And 400 less of the one after it, by the count and by the clock.
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, Some(700));
    assert_eq!(scene.last.until_ns, Some(2000 + 3000 - 400));
    scene.run(700);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    // It is no lateness of its task: that is counted in instructions.
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.reason, Grant::AfterPlan);
    assert_eq!(scene.node.process_lateness_insns(0), 0);
}

#[test]
fn a_plan_takes_over_what_is_owed() {
    let slots = [(1, 1000), (2, 1000), (1, 1000)];
    let mut scene = Scene::new(&slots);
    scene.node.owe(0, 300);
    scene.swap_with(CONFIG, text::plan(&slots), 0);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, Some(800));
}

#[test]
fn each_window_has_its_budget() {
    let mut scene = Scene::ready(WINDOWS, text::plan(&[(1, 1 << 40)]));
    let left_ns = |scene: &Scene| scene.node.budget_left_ns(scene.now_ns);
    assert_eq!(left_ns(&scene), 100_000);
    taken(&mut scene, 60_000);
    assert_eq!(left_ns(&scene), 40_000);
    taken(&mut scene, 60_000);
    assert_eq!(left_ns(&scene), 0);
    scene.wait(879_999);
    assert_eq!(left_ns(&scene), 0);
    scene.wait(1);
    assert_eq!(left_ns(&scene), 100_000);
    taken(&mut scene, 10_000);
    assert_eq!(left_ns(&scene), 90_000);
    // A new plan is no new window.
    scene.swap_with(WINDOWS, text::plan(&[(1, 1 << 40)]), 0);
    assert_eq!(left_ns(&scene), 90_000);
}

#[test]
fn budget_of_a_window_is_a_part_of_its_own_period() {
    let mut scene = Scene::ready(WINDOWS, text::plan(&[(1, 1 << 40)]));
    let left_ns = |scene: &Scene| scene.node.budget_left_ns(scene.now_ns);
    let long = Config {
        window_period_ns: 10_000_000,
        ..WINDOWS
    };
    let changed = scene.node.configure(&long, scene.now_ns, &mut scene.log);
    assert_eq!(changed, Ok(1));
    // The present window keeps its period of a millisecond.
    assert_eq!(left_ns(&scene), 100_000);
    taken(&mut scene, 10_000);
    assert_eq!(left_ns(&scene), 90_000);
    scene.wait(990_000);
    assert_eq!(left_ns(&scene), 1_000_000);
    taken(&mut scene, 10_000);
    assert_eq!(left_ns(&scene), 990_000);
}

/// Lets nobody retire anything, until the process has the CPU.  Returns the number of windows.
fn windows_until_runs(scene: &mut Scene, process: u32) -> u64 {
    for window in 0..1_000_000 {
        if scene.granted() == process {
            return window;
        }
        next_window(scene);
    }
    panic!("it starves");
}

/// The time in the window that plans have, and that of others.
fn next_window(scene: &mut Scene) {
    for _ in 0..2 {
        let until_ns = scene.last.until_ns.unwrap();
        scene.wait(until_ns - scene.now_ns);
    }
}

/// Two processes after the plan; the first is later by `later_insns` and retires nothing any more.
/// Returns the number of windows until the other one has the CPU.
fn windows_until_the_other_runs(later_insns: u64) -> u64 {
    let mut scene = Scene::ready(WINDOWS, text::plan(&[(1, 1000), (2, 1000)]));
    scene.run(1100);
    scene.run(1100);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::AfterPlan));
    scene.node.charge(0, later_insns);
    windows_until_runs(&mut scene, 2)
}

/// Rounds continue under the next plan: who has waited there does not go behind all that enter.
#[test]
fn who_waits_has_its_turn_under_the_next_plan() {
    let mut scene = Scene::ready(WINDOWS, text::plan(&[(1, 1000), (2, 1000)]));
    scene.run(1100);
    scene.run(1100);
    scene.node.charge(0, 1 << 40);
    for _ in 0..95 {
        next_window(&mut scene);
    }
    windows_until_runs(&mut scene, 1);
    let next = text::plan(&[(IDLE, 1 << 40), (1, 1000), (2, 1000)]);
    scene.swap_with(WINDOWS, next, 0);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    assert!(windows_until_runs(&mut scene, 2) <= 10);
}

/// Plans replace each other before the turn of a process is over: it goes behind all that wait.
#[test]
fn who_has_the_cpu_goes_behind_those_that_wait_at_each_takeover() {
    let next = || text::plan(&[(IDLE, 1 << 40), (1, 1000), (2, 1000)]);
    let behind = |policy: IdlePolicy| {
        let config = Config {
            idle_policy: policy as u64,
            idle_piece_ns: 0,
            ..WINDOWS
        };
        let mut scene = Scene::ready(config, text::plan(&[(1, 1000), (2, 1000)]));
        scene.run(1100);
        scene.run(1100);
        assert_eq!((scene.granted(), scene.last.reason), (1, Grant::AfterPlan));
        scene.node.charge(0, 1 << 40);
        (scene, config)
    };
    let (mut scene, config) = behind(IdlePolicy::Pieces);
    for process in [2, 1, 2, 1] {
        scene.now_ns += 1000;
        scene.swap_with(config, next(), 0);
        assert_eq!(
            (scene.granted(), scene.last.reason),
            (process, Grant::IdleSlot)
        );
    }
    // The latest process stays first, until the next round of ten windows begins.  No decision is
    // made at the begin of a window.
    let (mut scene, config) = behind(IdlePolicy::Latest);
    let mut granted = Vec::new();
    for _ in 0..22 {
        scene.now_ns += WINDOWS.window_period_ns;
        scene.swap_with(config, next(), 0);
        granted.push(scene.granted());
    }
    let had = |process| granted.iter().filter(|&&one| one == process).count();
    assert_eq!((had(1), had(2)), (20, 2), "{granted:?}");
}

/// Tasks that wait for one that has ended have waited under the plan before, too: each takeover
/// checks their edges again, and leaves their turns.
#[test]
fn who_waits_with_edges_that_are_passed_has_its_turn_at_each_takeover() {
    let slots = [(3, 100), (1, 1000), (2, 1000), (3, 100)];
    let mut scene = Scene::ready(TURNS, both_after_3(&slots));
    scene.finish(100);
    scene.set(3, Presence::Blocked);
    scene.run(1100);
    scene.run(1100);
    let slots = [(3, 100), (IDLE, 1 << 40), (1, 1000), (2, 1000), (3, 100)];
    let mut granted = Vec::new();
    for _ in 0..8 {
        scene.now_ns += 1000;
        scene.swap_with(TURNS, both_after_3(&slots), 0);
        granted.push(scene.granted());
        scene.node.charge(0, 100);
    }
    assert_eq!(granted, [2, 1, 2, 1, 2, 1, 2, 1]);
}

/// A decision checks 64 processes of a new plan.  A candidate that comes later than those has its
/// turn as well, when it is known.
#[test]
fn the_last_processes_of_a_large_plan_have_their_turns() {
    for last in [63, 64, 65, 66, 127, 128, 129, 1000] {
        let edges = [(last, 0, 1, 0)];
        let plan = |slots: &[(u32, u64)]| text::plan_of(text::net(slots, &edges));
        let slots = [(1, 100), (2, 1000), (3, 1000), (last, 1000), (1, 100)];
        let mut scene = Scene::ready(TURNS, plan(&slots));
        scene.finish(100);
        scene.set(1, Presence::Blocked);
        for _ in 0..3 {
            scene.run(1100);
        }
        let mut slots = slots.to_vec();
        slots.insert(1, (IDLE, 1 << 40));
        slots.extend((4..last).map(|id| (id, 10)));
        let mut granted = Vec::new();
        for _ in 0..9 {
            scene.now_ns += 1000;
            scene.swap_with(TURNS, plan(&slots), 0);
            scene.decide_all();
            granted.push(scene.granted());
            scene.node.charge(scene.last.grant.unwrap(), 100);
        }
        let mut had = granted[..3].to_vec();
        had.sort_unstable();
        assert_eq!(had, [2, 3, last], "{granted:?}");
        assert_eq!(granted[..6], granted[3..]);
    }
}

/// The process of the first slot is not known until its edge is checked.  Who fills the slot until
/// then keeps its turn.
#[test]
fn who_fills_a_slot_until_its_process_is_known_keeps_its_turn() {
    for last in [20, 100, 200] {
        let edges = [(last, 0, 1, 0)];
        let plan = |slots: &[(u32, u64)]| text::plan_of(text::net(slots, &edges));
        let mut slots = [(1, 100), (2, 1000), (3, 1000), (1, 100)].to_vec();
        slots.extend((4..=last).map(|id| (id, 10)));
        let mut scene = Scene::ready(TURNS, plan(&slots));
        scene.finish(100);
        scene.set(1, Presence::Blocked);
        scene.run(1100);
        scene.run(1100);
        for id in 4..last {
            let process = scene.index(id);
            scene.node.set_presence(process, Presence::Blocked);
        }
        let mut slots = [(1, 100), (last, 1000), (IDLE, 1 << 40), (2, 1000)].to_vec();
        slots.extend([(3, 1000), (1, 100)]);
        slots.extend((4..last).map(|id| (id, 10)));
        let mut granted = Vec::new();
        for _ in 0..6 {
            scene.now_ns += 1000;
            scene.swap_with(TURNS, plan(&slots), 0);
            scene.decide_all();
            assert_eq!((scene.granted(), scene.last.reason), (last, Grant::Slot));
            scene.run(1100);
            assert_eq!(scene.last.reason, Grant::IdleSlot);
            granted.push(scene.granted());
            scene.run(500);
        }
        assert_eq!(granted, [3, 2, 3, 2, 3, 2], "{last}");
    }
}

/// An idle slot is divided among all candidates of a new plan, though the first decision knows some
/// of them only.
#[test]
fn equal_shares_are_those_of_all_candidates_of_a_large_plan() {
    let config = Config {
        idle_policy: IdlePolicy::EqualShares as u64,
        ..TURNS
    };
    for last in [10, 100, 200] {
        let edges = [(3, 0, 1, 0), (last, 0, 1, 0)];
        let plan = |slots: &[(u32, u64)]| text::plan_of(text::net(slots, &edges));
        let mut slots = [(1, 100), (2, 1000), (3, 1000), (last, 1000)].to_vec();
        slots.extend((4..last).map(|id| (id, 10)));
        slots.push((1, 100));
        let mut scene = Scene::ready(config, plan(&slots));
        scene.finish(100);
        scene.set(1, Presence::Blocked);
        for id in 4..last {
            let process = scene.index(id);
            scene.node.set_presence(process, Presence::Blocked);
        }
        for _ in 0..3 {
            scene.run(1100);
        }
        slots.insert(1, (IDLE, 30_000));
        scene.now_ns += 1000;
        scene.swap_with(config, plan(&slots), 0);
        scene.decide_all();
        let mut had = Vec::new();
        while scene.last.reason == Grant::IdleSlot {
            let share_ns = scene.last.until_ns.unwrap() - scene.now_ns;
            had.push((scene.granted(), share_ns));
            scene.run(share_ns);
        }
        had.sort_unstable();
        assert_eq!(had, [(2, 10_000), (3, 10_000), (last, 10_000)]);
    }
}

/// A task waits for a process that is gone.  However often other CPUs have news, all processes of a
/// large plan are checked.
#[test]
fn news_of_other_cpus_keep_no_process_from_its_check() {
    let last = 1000;
    let mut slots = [(1, 100), (2, 100)].to_vec();
    slots.extend((3..=last).map(|id| (id, 10)));
    let plan = text::plan_of(text::net(&slots, &[(1, 0, 2, 0), (last, 0, 3, 0)]));
    let mut scene = Scene::ready(TURNS, plan);
    scene.exit(2);
    scene.decide_all();
    let awaited = scene.index(3);
    scene.node.end_task(awaited, scene.now_ns, &mut scene.log);
    for _ in 0..100 {
        scene.node.look_elsewhere(&mut scene.log);
        scene.decide();
    }
    assert_eq!(scene.node.waits_for(scene.index(last)), None);
    assert_eq!(scene.node.waits_for(scene.index(1)), Some((2, 0)));
}

/// A candidate whose task must wait under the new plan has a new turn when it need not any more,
/// even if the decision ended at its edge.
#[test]
fn who_must_wait_under_the_next_plan_loses_its_turn() {
    let config = Config {
        idle_policy: IdlePolicy::Pieces as u64,
        idle_piece_ns: 100,
        ..CONFIG
    };
    for first in [1, 60, 61, 62, 63, 100] {
        let (other, held, awaited) = (first + 1, first + 2, first + 3);
        let slots = [(first, 1000), (held, 1000), (other, 1000)];
        let mut scene = Scene::ready(config, text::plan(&slots));
        for _ in 0..3 {
            scene.run(1100);
        }
        assert_eq!(scene.granted(), first);
        let mut slots = [(IDLE, 1 << 40)].to_vec();
        slots.extend((1..first).map(|id| (id, 10)));
        slots.extend([(awaited, 100), (first, 1000), (other, 1000), (held, 1000)]);
        let plan = text::plan_of(text::net(&slots, &[(held, 0, awaited, 0)]));
        scene.swap_with(config, plan, 0);
        scene.decide_all();
        assert_eq!(scene.node.waits_for(scene.index(held)), Some((awaited, 0)));
        assert_eq!(scene.granted(), other, "{first}");
        for granted in [first, other] {
            scene.run(100);
            assert_eq!(scene.granted(), granted, "{first}");
        }
        let end = scene.index(awaited);
        scene.node.end_task(end, scene.now_ns, &mut scene.log);
        scene.decide();
        for granted in [first, held, other] {
            scene.run(100);
            assert_eq!(scene.granted(), granted, "{first}");
        }
    }
}

/// A task that ends before its edges are checked leaves no turn behind.
#[test]
fn who_ends_before_its_edges_are_checked_has_no_turn_left() {
    let plan = || both_after_3(&[(3, 100), (1, 1000), (2, 1000), (2, 1000), (3, 100)]);
    let ends: [fn(&mut Scene); 2] = [
        |scene| {
            let now_ns = scene.now_ns;
            scene.node.end_task(0, now_ns, &mut scene.log);
        },
        |scene| scene.node.end_process(0, scene.now_ns, &mut scene.log),
    ];
    for end in ends {
        let mut scene = Scene::ready(TURNS, plan());
        scene.finish(100);
        scene.run(1100);
        scene.run(1100);
        let mut node = Node::new(plan(), TURNS, RATE, 8, scene.now_ns).unwrap();
        node.begin(Some(&scene.node), 0, scene.now_ns);
        node.check_invariants();
        scene.node = node;
        end(&mut scene);
        scene.node.check_invariants();
    }
}

/// Process 3 was held back under the plan before and never waited for a gap: it comes after those
/// that did.
#[test]
fn who_was_held_back_has_its_turn_after_those_that_waited() {
    let config = Config {
        idle_policy: IdlePolicy::Pieces as u64,
        idle_piece_ns: 100,
        ..CONFIG
    };
    let slots = [(3, 100), (1, 1000), (2, 1000), (4, 1000)];
    let plan = text::plan_of(text::net(&slots, &[(3, 0, 4, 0)]));
    let mut scene = Scene::absent(config, plan);
    for id in 1..=3 {
        scene.set(id, Presence::Ready);
    }
    scene.wait(1200);
    assert_eq!(scene.granted(), 1);
    scene.run(1100);
    scene.run(1100);
    assert_eq!(
        (scene.granted(), scene.last.reason),
        (1, Grant::BlockedSlot)
    );
    scene.swap_with(
        config,
        text::plan(&[(IDLE, 300), (1, 1000), (2, 1000), (3, 1000)]),
        0,
    );
    for process in [2, 1, 3] {
        assert_eq!(
            (scene.granted(), scene.last.reason),
            (process, Grant::IdleSlot)
        );
        scene.run(100);
    }
}

#[test]
fn who_waits_has_its_turn() {
    // However late the other one is, it has a window of the next round.
    assert_eq!(windows_until_the_other_runs(0), 10);
    assert_eq!(windows_until_the_other_runs(1 << 60), 10);
}

#[test]
fn who_retires_all_the_time_starves_nobody() {
    let mut scene = Scene::ready(WINDOWS, text::plan(&[(1, 1000), (2, 1000)]));
    scene.run(1100);
    scene.run(1100);
    scene.node.charge(0, 10_000_000);
    let mut had_ns = [0, 0];
    while scene.now_ns < 100_000_000 {
        let passes_ns = scene.last.until_ns.unwrap() - scene.now_ns;
        if scene.last.unallocated {
            scene.wait(passes_ns);
        } else {
            had_ns[scene.last.grant.unwrap() as usize] += passes_ns;
            scene.run(passes_ns);
        }
    }
    // One window in ten, and the latest has the others.
    assert!((8_000_000..11_000_000).contains(&had_ns[1]), "{had_ns:?}");
    assert!(had_ns[0] > 88_000_000, "{had_ns:?}");
}
