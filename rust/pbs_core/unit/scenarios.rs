// SPDX-License-Identifier: GPL-2.0

//! Situations of a plan, played by hand.

use crate::wire::{IDLE, NO_SLOT, NO_TASK};
use crate::{Config, EventKind, Grant, Presence};

use super::scene::{Scene, CONFIG};
use super::text;

#[test]
fn slots_run_in_order() {
    let mut scene = Scene::new(&[(1, 1000), (2, 500), (1, 300), (3, 100), (2, 50)]);
    for length in [1000, 500, 300, 100, 50] {
        assert_eq!(scene.last.reason, Grant::Slot);
        scene.finish(length);
    }
    let order = [(1, 0), (2, 0), (1, 1), (3, 0), (2, 1)];
    assert_eq!(scene.log.tasks(EventKind::TaskEnded), order);
    assert_eq!(
        scene.log.grants(),
        [(1, 0), (2, 1), (1, 2), (3, 3), (2, 4), (IDLE, NO_SLOT)]
    );
    let ended = scene.log.tasks(EventKind::ProcessEnded);
    assert_eq!(ended, [(1, NO_TASK), (3, NO_TASK), (2, NO_TASK)]);
    assert_eq!(scene.log.0.last().unwrap().kind, EventKind::PlanEnded);
    assert_eq!(scene.log.0.last().unwrap().value, 0);
    assert!(scene.node.ended());
    // Once only.
    scene.wait(1000);
    assert_eq!(scene.log.of(EventKind::PlanEnded).len(), 1);
    assert_eq!(scene.node.counts().get(EventKind::TaskEnded), 5);
}

#[test]
fn t1_may_spare_the_last_slot_of_a_process() {
    let config = Config {
        t1_spares_last_slot: 1,
        ..CONFIG
    };
    let mut scene = Scene::absent(config, text::plan(&[(1, 1000), (2, 1000), (1, 500)]));
    for p in 0..2 {
        scene.node.set_presence(p, Presence::Ready);
    }
    scene.decide();
    assert_eq!(scene.last.until_insns, Some(1100));
    scene.run(1100);
    assert_eq!(scene.granted(), 2);
    // Its only slot is its last.
    assert_eq!(scene.last.until_insns, None);
    scene.finish(1500);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, None);
    scene.finish(50);
    scene.run(900);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.log.of(EventKind::Preempted).len(), 1);
    // As the last slot it has room for both tasks: its ceiling is 1500 ns, twice, and
    // 1000 ns.
    scene.wait(3049);
    assert_eq!(scene.log.of(EventKind::Ceiling).len(), 0);
    scene.wait(1);
    assert_eq!(scene.log.of(EventKind::Ceiling).len(), 1);
}

#[test]
fn t1_pushes_the_task_into_the_next_slot_of_its_process() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 500), (2, 400)]);
    assert_eq!(scene.last.until_insns, Some(1100));
    scene.run(1099);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, Some(1));
    scene.run(1);
    assert_eq!(scene.granted(), 2);
    let preempted = scene.log.of(EventKind::Preempted);
    assert_eq!(preempted.len(), 1);
    assert_eq!((preempted[0].process, preempted[0].task), (1, 0));
    assert_eq!((preempted[0].slot, preempted[0].value), (0, 1100));
    assert_eq!(preempted[0].preemptions, 1);
    assert_eq!(preempted[0].lateness_insns, 100);
    scene.finish(1000);
    // Task 0 continues in the slot of task 1, and task 1 follows in it.
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.node.process(0).unwrap().task, 0);
    assert_eq!(scene.finish(100), Some(1));
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.until_insns, Some(450));
    scene.run(450);
    // t1 of the slot, but task 1 is not beyond its plan: no preemption of it.
    let preempted = scene.log.of(EventKind::Preempted);
    assert_eq!(preempted.len(), 2);
    assert_eq!((preempted[1].task, preempted[1].retired_insns), (1, 450));
    assert_eq!((preempted[1].value, preempted[1].preemptions), (550, 0));
    assert_eq!(scene.granted(), 2);
    scene.finish(400);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.reason, Grant::AfterPlan);
    scene.finish(50);
    let ended = scene.log.of(EventKind::TaskEnded);
    let of_one: std::vec::Vec<_> = ended
        .iter()
        .filter(|event| event.process == 1)
        .map(|event| (event.task, event.retired_insns, event.preemptions))
        .collect();
    assert_eq!(of_one, [(0, 1200, 1), (1, 500, 0)]);
    // 200 late, then on time: 200 in all.
    assert_eq!(ended.last().unwrap().lateness_insns, 200);
}

#[test]
fn overshoot_of_the_timer_is_charged_to_the_task() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.run(1250);
    assert_eq!(scene.log.of(EventKind::Preempted)[0].retired_insns, 1250);
    assert_eq!(scene.granted(), 2);
    // Instructions that process 1 retires on its way out count in no slot.
    scene.node.charge(0, 50);
    scene.decide();
    assert_eq!(scene.node.slot_count_insns(), 0);
    assert_eq!(scene.node.process(0).unwrap().retired_insns, 1300);
}

#[test]
fn early_end_starts_the_next_slot_at_once() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000)]);
    scene.finish(600);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.now_ns, 600);
    assert_eq!(scene.node.process_lateness_insns(0), -400);
    assert_eq!(scene.node.lateness_insns(), -400);
    scene.run(1050);
    assert_eq!(scene.node.lateness_insns(), -350);
}

#[test]
fn blocked_owner_gives_its_slot_away_and_gets_it_back() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (2, 1000), (1, 10)]);
    scene.run(1100);
    assert_eq!(scene.granted(), 2);
    scene.run(300);
    scene.set(2, Presence::Blocked);
    // Process 1 is behind and fills.
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.last.reason, Grant::BlockedSlot);
    assert_eq!(scene.last.until_insns, None);
    scene.run(5);
    // Fillers leave the slot's count alone.
    assert_eq!(scene.node.slot_count_insns(), 300);
    scene.set(2, Presence::Ready);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.last.until_insns, Some(800));
    scene.set(2, Presence::Blocked);
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.last.grant, None);
    assert_eq!(scene.last.reason, Grant::None);
    // No process runs: the slot continues until its ceiling, 2 · 1000 + 1000 ns after it began.
    assert_eq!(scene.last.until_ns, Some(1100 + 3000));
    scene.wait(1100 + 3000 - scene.now_ns);
    let ceiling = scene.log.of(EventKind::Ceiling);
    assert_eq!(ceiling.len(), 1);
    assert_eq!((ceiling[0].process, ceiling[0].value), (2, 3000));
    // It was not beyond its plan.
    assert_eq!(ceiling[0].preemptions, 0);
    assert_eq!(scene.node.cursor(), 2);
}

#[test]
fn ceiling_preempts_a_task_beyond_its_plan() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    // In the kernel for long, with few instructions of its own.
    scene.run(1050);
    scene.wait(1950);
    let ceiling = scene.log.of(EventKind::Ceiling);
    assert_eq!((ceiling[0].task, ceiling[0].preemptions), (0, 1));
    assert_eq!(scene.granted(), 2);
    assert!(scene.log.of(EventKind::Preempted).is_empty());
}

#[test]
fn task_exactly_at_its_plan_is_not_charged_with_a_preemption() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.run(1000);
    scene.wait(2000);
    assert_eq!(scene.log.of(EventKind::Ceiling)[0].preemptions, 0);
}

#[test]
fn process_that_wakes_as_its_slot_ends_is_behind() {
    let plan = text::plan(&[(1, 1000), (2, 1000)]);
    let mut scene = Scene::absent(CONFIG, plan);
    scene.decide();
    // Both are reported at once: the arrival, and the time.
    scene.now_ns = 3000;
    scene.set(1, Presence::Ready);
    assert_eq!(scene.node.cursor(), 1);
    assert_eq!(
        (scene.granted(), scene.last.reason),
        (1, Grant::BlockedSlot)
    );
}

#[test]
fn absent_process_is_told_once_a_slot_and_may_still_come() {
    let plan = text::plan(&[(1, 1000), (1, 1000), (2, 1000)]);
    let mut scene = Scene::absent(CONFIG, plan);
    scene.set(2, Presence::Ready);
    assert_eq!(scene.last.grant, None);
    scene.wait(10);
    scene.wait(10);
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0)]);
    scene.wait(2980);
    assert_eq!(scene.node.cursor(), 1);
    assert_eq!(scene.log.of(EventKind::Absent).len(), 2);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    // It catches up within the slot: both tasks.
    scene.finish(400);
    assert_eq!(scene.granted(), 1);
    scene.finish(400);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.node.cursor(), 2);
}

#[test]
fn idle_slot_goes_to_the_latest_first() {
    let mut scene = Scene::new(&[
        (1, 1000),
        (2, 2000),
        (3, 3000),
        (IDLE, 10_000),
        (1, 1000),
        (2, 1000),
        (3, 1000),
    ]);
    scene.run(1100); // 1 is 100 late
    scene.run(2250); // 2 is 250 late
    scene.finish(3000); // 3 is on time and not behind
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.last.reason, Grant::IdleSlot);
    assert_eq!(scene.last.until_insns, None);
    assert_eq!(scene.last.until_ns, Some(6350 + 10_000));
    // It keeps the CPU, whatever the others do, even if one is later by now.
    scene.node.charge(0, 500);
    scene.set(3, Presence::Blocked);
    scene.run(100);
    assert_eq!(scene.granted(), 2);
    // Until it isn't behind any more; 1 is next.
    scene.finish(50);
    assert_eq!(scene.granted(), 1);
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.last.grant, None);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    scene.finish(0);
    assert_eq!(scene.last.grant, None);
    scene.wait(6350 + 10_000 - scene.now_ns);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::Slot));
}

#[test]
fn lateness_counts_that_comes_after_the_slot() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (3, 1000), (IDLE, 1000)]);
    scene.run(1100);
    scene.run(1150);
    // Process 1 retires more on its way to where it waits.
    scene.node.charge(0, 200);
    scene.finish(1000);
    assert_eq!(scene.granted(), 1);
}

#[test]
fn lateness_of_a_tie_goes_to_the_lower_id() {
    let mut scene = Scene::new(&[(5, 1000), (9, 1000), (2, 1000), (IDLE, 1000)]);
    for _ in 0..3 {
        scene.run(1100);
    }
    assert_eq!(scene.granted(), 2);
}

#[test]
fn end_of_an_idle_slot_stops_its_filler() {
    let mut scene = Scene::new(&[(1, 1000), (IDLE, 500), (2, 1000), (IDLE, 500)]);
    scene.run(1100);
    assert_eq!(scene.granted(), 1);
    scene.run(500);
    assert_eq!((scene.granted(), scene.last.reason), (2, Grant::Slot));
    scene.finish(1000);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::IdleSlot));
    // Not t1 of anything: only the first push was a preemption.
    scene.finish(100);
    assert_eq!(
        scene
            .log
            .0
            .iter()
            .rev()
            .find(|e| e.kind == EventKind::TaskEnded)
            .unwrap()
            .preemptions,
        1
    );
}

#[test]
fn process_ahead_of_its_slot_does_not_get_it() {
    // Process 1 does task 1 before its slot comes: pushed behind task 0, both
    // tasks fit into the idle slot.
    let mut scene = Scene::new(&[(1, 1000), (IDLE, 5000), (1, 1000), (2, 1000), (1, 10)]);
    scene.run(1100);
    scene.finish(200);
    // Not behind any more, and its next slot isn't here: no process fills it.
    assert_eq!(scene.last.grant, None);
    // A task that ends on the way to its waiting place is legal.
    assert_eq!(
        scene.node.end_task(0, scene.now_ns, &mut scene.log),
        Some(2)
    );
    scene.wait(4800);
    // Slot 2 was for task 1: over at once.
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.node.cursor(), 3);
    assert!(scene.log.grants().iter().all(|&(_, slot)| slot != 2));
}

#[test]
fn after_the_plan_the_latest_goes_first() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (3, 1000)]);
    scene.run(1100);
    scene.run(1300);
    scene.run(1200);
    for id in [2, 3, 1] {
        assert_eq!((scene.granted(), scene.last.reason), (id, Grant::AfterPlan));
        scene.finish(700);
    }
    assert_eq!(scene.log.of(EventKind::PlanEnded).len(), 1);
}

#[test]
fn plan_waits_for_a_blocked_process_but_not_for_an_absent_one() {
    let plan = text::plan(&[(1, 1000), (2, 1000), (3, 1000)]);
    let mut scene = Scene::absent(CONFIG, plan);
    scene.set(1, Presence::Blocked);
    for _ in 0..3 {
        scene.wait(3000);
    }
    assert_eq!(scene.node.cursor(), 3);
    assert!(!scene.node.ended());
    assert_eq!(scene.last.until_ns, None);
    scene.set(1, Presence::Ready);
    scene.finish(1000);
    let ended = scene.log.of(EventKind::PlanEnded);
    assert_eq!((ended.len(), ended[0].value), (1, 2));
    // A late one still runs.
    scene.set(3, Presence::Ready);
    assert_eq!((scene.granted(), scene.last.reason), (3, Grant::AfterPlan));
    scene.finish(1000);
    assert_eq!(scene.node.unfinished(), 1);
    assert_eq!(scene.log.of(EventKind::PlanEnded).len(), 1);
}

#[test]
fn process_that_dies_ends_its_task_and_loses_the_rest() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000), (1, 1000), (2, 10)]);
    scene.run(500);
    scene.exit(1);
    let ended = scene.log.of(EventKind::TaskEnded);
    assert_eq!((ended[0].task, ended[0].retired_insns), (0, 500));
    let ended = scene.log.of(EventKind::ProcessEnded);
    assert_eq!((ended[0].process, ended[0].value), (1, 2));
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    assert_eq!((scene.granted(), scene.node.cursor()), (2, 4));
    // Dead is dead.
    scene.exit(1);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 2);
    scene.finish(10);
    assert_eq!(scene.log.of(EventKind::ProcessEnded).len(), 2);
    assert_eq!(scene.log.of(EventKind::TaskEnded).len(), 3);
    assert!(scene.node.ended());
}

#[test]
fn process_that_dies_before_its_first_task_ends_none() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (2, 1000)]);
    scene.exit(2);
    assert!(scene.log.of(EventKind::TaskEnded).is_empty());
    assert_eq!(scene.log.of(EventKind::ProcessEnded)[0].value, 2);
    scene.finish(1000);
    assert!(scene.node.ended());
}

#[test]
fn life_of_a_process_as_one_task() {
    let mut scene = Scene::new(&[(1, 1000)]);
    scene.run(900);
    scene.exit(1);
    let kinds: std::vec::Vec<_> = scene.log.0.iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::Grant,
            EventKind::TaskEnded,
            EventKind::ProcessEnded,
            EventKind::Grant,
            EventKind::PlanEnded
        ]
    );
    assert_eq!(scene.log.of(EventKind::ProcessEnded)[0].value, 0);
}

#[test]
fn slots_of_a_dead_process_are_passed_in_bounded_steps() {
    let mut slots = std::vec![(1, 1000); 1_000_000];
    slots.push((2, 1000));
    let mut scene = Scene::new(&slots);
    scene.exit(1);
    let mut decisions = 1;
    while scene.last.again {
        assert_eq!(scene.last.grant, None);
        scene.decide(); // never more than 128 slots, see there
        decisions += 1;
    }
    assert_eq!(scene.granted(), 2);
    assert!((7813..=7814).contains(&decisions), "{decisions}");
    // And it is reported once, not 7813 times.
    assert_eq!(scene.log.of(EventKind::Grant).len(), 3);
}

#[test]
fn peaks_are_of_the_task_and_of_the_process() {
    let mut scene = Scene::new(&[(1, 1000), (1, 1000)]);
    scene.node.memory(0, 9000, 100);
    scene.node.memory(0, 5000, 300);
    scene.finish(1000);
    scene.node.memory(0, 6000, 200);
    scene.finish(1000);
    let ended = scene.log.of(EventKind::TaskEnded);
    let peaks = |i: usize| (ended[i].peak_vm_bytes, ended[i].peak_rss_bytes);
    assert_eq!([peaks(0), peaks(1)], [(9000, 300), (6000, 200)]);
    let info = scene.node.process(0).unwrap();
    assert_eq!((info.peak_vm_bytes, info.peak_rss_bytes), (9000, 300));
}

#[test]
fn decision_is_the_same_when_nothing_is_new() {
    let mut scene = Scene::new(&[(1, 1000), (IDLE, 1000), (2, 1000)]);
    for step in [300, 800, 40] {
        scene.run(step);
        let (first, events) = (scene.last, scene.log.0.len());
        for _ in 0..2 {
            assert_eq!(scene.decide(), first);
            scene.node.forget_decision();
        }
        assert_eq!(scene.log.0.len(), events);
    }
}
