// SPDX-License-Identifier: GPL-2.0

//! Slots that float by deadline, played by hand.

use std::vec;
use std::vec::Vec;

use crate::wire::{CPU_BYTES, HEADER_BYTES, IDLE, NO_SLOT, PROCESS_BYTES};
use crate::{Config, Dispatch, EventKind, Grant, Plan, PreemptionWay, Presence, StdMemory, Wait};

use super::scene::{Scene, CONFIG};
use super::text::{self, Cpu};

/// t1 is a tenth, and at least 10, more than a slot; sigma_t2 a half more than a plan.
const FLOATS: Config = Config {
    sigma_t2_permille: 1500,
    t2_spacer_ns: 11,
    t2_task_signaling_limit_ns: 1_000_001,
    t1_spares_last_slot: 1,
    dispatch: Dispatch::Deadline as u64,
    ..CONFIG
};

fn cpu(slots: &[(u32, u64)], deadlines: &[(u32, u64)]) -> Cpu {
    Cpu {
        deadlines: deadlines.to_vec(),
        ..Cpu::numbered(0, slots)
    }
}

fn plan(slots: &[(u32, u64)], deadlines: &[(u32, u64)]) -> Plan<StdMemory> {
    text::plan_of(cpu(slots, deadlines))
}

/// All processes ready, the first decision made.
fn scene(slots: &[(u32, u64)], deadlines: &[(u32, u64)]) -> Scene {
    Scene::ready(FLOATS, plan(slots, deadlines))
}

/// Returns the process that has the CPU, and the reason of the grant.
fn granted(scene: &Scene) -> (u32, Grant) {
    (scene.granted(), scene.last.reason)
}

#[test]
fn process_with_the_earliest_deadline_has_the_cpu() {
    let mut scene = scene(
        &[(1, 1000), (2, 1000), (3, 500)],
        &[(1, 9000), (2, 5000), (3, 7000)],
    );
    assert_eq!(granted(&scene), (2, Grant::Slot));
    scene.finish(900);
    scene.exit(2);
    assert_eq!(granted(&scene), (3, Grant::Slot));
    scene.finish(500);
    scene.exit(3);
    assert_eq!(granted(&scene), (1, Grant::Slot));
    scene.finish(1000);
    scene.exit(1);
    assert_eq!(granted(&scene), (IDLE, Grant::None));
    assert_eq!(
        scene.log.grants(),
        [(2, 1), (3, 2), (1, 0), (IDLE, NO_SLOT)]
    );
    assert!(scene.node.ended());
    assert_eq!(scene.log.of(EventKind::PlanEnded).len(), 1);
}

/// A slot is due when its process can still retire what is planned after it.
#[test]
fn slots_of_a_process_have_deadlines_of_their_own() {
    let slots = [(1, 1000), (1, 3000), (2, 1000)];
    let mut scene = scene(&slots, &[(1, 10_000), (2, 8000)]);
    // 1 has to have ended its first task at 7000.
    assert_eq!(scene.granted(), 1);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    assert_eq!(scene.granted(), 1);
}

#[test]
fn process_that_wakes_with_an_earlier_deadline_has_the_cpu_at_once() {
    let mut scene = scene(
        &[(1, 1000), (2, 1000), (3, 1000)],
        &[(1, 9000), (2, 5000), (3, 9500)],
    );
    scene.set(2, Presence::Blocked);
    scene.set(3, Presence::Blocked);
    assert_eq!(scene.granted(), 1);
    scene.run(400);
    let (p, later) = (scene.index(2), scene.index(3));
    // One that comes later changes nothing.
    assert!(!scene.node.set_presence(later, Presence::Ready));
    assert!(scene.node.set_presence(p, Presence::Ready));
    scene.decide();
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    // The slot of 1 goes on where it was.
    assert_eq!((scene.granted(), scene.node.slot_count_insns()), (1, 400));
    assert_eq!(scene.last.until_insns, Some(1501 - 400));
}

/// Without deadlines the order is that of the plan, after all that have deadlines.
#[test]
fn processes_without_a_deadline_come_last_in_the_order_of_the_plan() {
    let slots = [(3, 1000), (2, 1000), (1, 1000), (3, 1000)];
    let mut scene = scene(&slots, &[(1, 1_000_000)]);
    let mut order = vec![];
    for _ in 0..4 {
        order.push(scene.granted());
        scene.finish(1000);
    }
    assert_eq!(order, [1, 3, 2, 3]);
}

/// Buffers of the plan are no time to wait.
#[test]
fn idle_slots_are_not_waited_for() {
    let mut scene = scene(
        &[(IDLE, 5000), (1, 1000), (IDLE, 5000), (2, 1000)],
        &[(1, 9000)],
    );
    assert_eq!(scene.granted(), 1);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    assert_eq!(scene.now_ns, 2000);
    for id in [1, 2] {
        scene.exit(id);
    }
    assert!(scene.node.ended());
    assert_eq!(scene.node.cursor(), 4);
}

#[test]
fn slot_that_is_used_up_gives_way_to_the_next_slot_of_its_process() {
    let slots = [(1, 1000), (2, 1000), (1, 1000)];
    // The first slot of 1 is due at 9000, the second one at 10,000.
    let mut scene = scene(&slots, &[(1, 10_000), (2, 9500)]);
    assert_eq!(scene.granted(), 1);
    scene.run_as_told(1100);
    assert_eq!(granted(&scene), (2, Grant::Slot));
    let preempted = scene.log.of(EventKind::Preempted);
    let [event] = preempted[..] else { panic!() };
    assert_eq!((event.process, event.slot, event.value), (1, 0, 1100));
    assert_eq!(event.preemptions, 1);
    scene.finish(1000);
    // In its last slot: the whole process may retire 3000.
    assert_eq!(granted(&scene), (1, Grant::Slot));
    assert_eq!(scene.node.floating_slot(), Some(2));
    assert_eq!(scene.node.slot_count_insns(), 0);
    assert_eq!(scene.node.slot_t1_insns(), Some(3001 - 1100));
    // The task that was late ends, and the next one is there already.
    scene.finish(100);
    assert_eq!(scene.node.floating_slot(), Some(2));
    assert_eq!(scene.node.slot_count_insns(), 100);
}

#[test]
fn last_slot_ends_at_sigma_t2_of_the_plan_of_its_process() {
    let slots = [(1, 1000), (1, 1000), (2, 1000)];
    let mut scene = scene(&slots, &[(1, 9000), (2, 20_000)]);
    scene.finish(500);
    assert_eq!(scene.granted(), 1);
    // The early task leaves more room.
    scene.run_as_told(2500);
    assert_eq!(granted(&scene), (1, Grant::Slot));
    scene.run_as_told(1);
    assert_eq!(granted(&scene), (2, Grant::Slot));
    scene.finish(1000);
    // In the background there is no bound.
    assert_eq!(granted(&scene), (1, Grant::AfterPlan));
    assert_eq!(scene.last.until_insns, None);
    assert_eq!(scene.node.floating_slot(), None);
    let last = scene.log.of(EventKind::Grant).last().copied().unwrap();
    assert_eq!((last.process, last.slot), (1, NO_SLOT));
    scene.finish(50_000);
    scene.exit(1);
    scene.exit(2);
    assert!(scene.node.ended());
}

/// With t1 in the last slot, it ends as every other one.
#[test]
fn last_slot_ends_at_t1_where_that_is_not_spared() {
    let config = Config {
        t1_spares_last_slot: 0,
        ..FLOATS
    };
    let mut scene = Scene::ready(
        config,
        plan(&[(1, 1000), (2, 1000)], &[(1, 9000), (2, 20_000)]),
    );
    scene.run_as_told(1100);
    assert_eq!(granted(&scene), (2, Grant::Slot));
}

/// Two processes in the background, with windows of a millisecond.
fn both_in_background() -> Scene {
    let config = Config {
        window_period_ns: 1_000_000,
        window_unallocated_ns: 10_000,
        ..FLOATS
    };
    let mut scene = Scene::ready(config, plan(&[(1, 10), (2, 10)], &[(1, 5000), (2, 6000)]));
    // Both use up all that they have.
    scene.run_as_told(22);
    assert_eq!(granted(&scene), (2, Grant::Slot));
    scene.run_as_told(22);
    assert_eq!(granted(&scene), (1, Grant::AfterPlan));
    scene
}

/// In the background the latest goes last, and a turn lasts to the end of the window.
#[test]
fn background_is_shared_by_windows() {
    let mut scene = both_in_background();
    scene.run(1000);
    assert_eq!(granted(&scene), (1, Grant::AfterPlan));
    scene.run(1_000_000 - 1044);
    assert_eq!(granted(&scene), (2, Grant::AfterPlan));
    scene.wait(1_000_000);
    assert_eq!(granted(&scene), (2, Grant::AfterPlan));
}

/// A process that stays in the kernel, or that is early, has a turn in the background like others.
#[test]
fn background_is_shared_with_a_process_that_retires_nothing() {
    let mut scene = both_in_background();
    scene.run(1_000_000 - 44);
    let mut turns = [0, 0];
    for _ in 0..20 {
        let p = scene.granted();
        turns[p as usize - 1] += 1;
        if p == 1 {
            scene.run(1_000_000);
        } else {
            // It blocks and wakes up, and is ranked anew.
            scene.wait(500_000);
            scene.set(2, Presence::Blocked);
            scene.set(2, Presence::Ready);
            scene.wait(500_000);
        }
    }
    assert!(turns.iter().all(|&turns| turns >= 8), "{turns:?}");
}

#[test]
fn process_that_cannot_keep_its_deadline_goes_behind_those_that_can() {
    let slots = [(1, 1000), (2, 1000), (3, 1000)];
    let mut scene = scene(&slots, &[(1, 999), (2, 5000)]);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    // It had a deadline: 3 comes after it.
    assert_eq!(granted(&scene), (1, Grant::Slot));
    scene.finish(1000);
    assert_eq!(scene.granted(), 3);
}

#[test]
fn deadline_that_passes_takes_the_cpu_away() {
    let mut scene = scene(&[(1, 1000), (2, 1000)], &[(1, 1050), (2, 5000)]);
    assert_eq!(scene.granted(), 1);
    // Its task is late, but may end at any time.
    scene.run(1020);
    assert_eq!((scene.granted(), scene.last.until_ns), (1, Some(1051)));
    scene.run(30);
    assert_eq!(scene.granted(), 1);
    scene.run(1);
    assert_eq!(granted(&scene), (2, Grant::Slot));
    scene.finish(1000);
    assert_eq!((scene.granted(), scene.node.slot_count_insns()), (1, 1051));
}

/// A process that waits is checked when it is to have the CPU: it has all of its task left.
#[test]
fn deadline_that_passes_while_another_runs_is_noticed() {
    let mut scene = scene(
        &[(1, 1000), (2, 1000), (3, 1000)],
        &[(1, 3000), (2, 3500), (3, 9000)],
    );
    scene.run(900);
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.granted(), 2);
    scene.set(2, Presence::Blocked);
    assert_eq!(scene.granted(), 3);
    // 1 has 100 left, and 2 all of 1000.
    scene.run(900);
    scene.wait(900);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    scene.set(2, Presence::Ready);
    scene.finish(100);
    assert_eq!(scene.granted(), 3);
}

/// A task that ends early leaves time again for those after it.
#[test]
fn process_that_can_keep_its_deadline_again_comes_back() {
    let slots = [(1, 1000), (1, 1000), (2, 5000)];
    let mut scene = scene(&slots, &[(1, 1999), (2, 90_000)]);
    assert_eq!(scene.granted(), 2);
    scene.set(2, Presence::Blocked);
    assert_eq!(scene.granted(), 1);
    scene.run(100);
    scene.set(2, Presence::Ready);
    assert_eq!(scene.granted(), 2);
    scene.set(2, Presence::Blocked);
    scene.finish(100);
    scene.set(2, Presence::Ready);
    assert_eq!(scene.granted(), 1);
}

#[test]
fn debt_makes_the_next_slot_shorter() {
    let mut scene = scene(&[(1, 1000), (2, 1000), (1, 1000)], &[(1, 9000), (2, 9000)]);
    let p = scene.index(1);
    // The slot has begun: the debt is taken from the next one.
    scene.node.owe(p, 300);
    scene.decide();
    assert_eq!(scene.node.slot_t1_insns(), Some(1100));
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    assert_eq!(scene.node.slot_t1_insns(), Some(2001 - 300));
}

/// A thread out of turn stops the clock of the slot, and of the slot alone.
#[test]
fn time_out_of_turn_extends_the_ceiling() {
    let mut scene = scene(&[(1, 1000)], &[(1, 90_000)]);
    // Twice what the process may retire, and a thousand.
    assert_eq!(scene.last.until_ns, Some(2 * 1501 + 1000));
    scene.now_ns += 200;
    scene.node.out_of_turn(200, scene.now_ns);
    scene.decide();
    assert_eq!(scene.last.until_ns, Some(2 * 1501 + 1200));
}

#[test]
fn ceiling_ends_a_slot_in_which_nothing_is_retired() {
    let slots = [(1, 1000), (2, 1000), (1, 1000)];
    let mut scene = scene(&slots, &[(1, 20_000), (2, 19_500)]);
    assert_eq!(scene.granted(), 1);
    scene.wait(3000);
    assert_eq!(scene.granted(), 1);
    // The time in which another process has the CPU does not count.
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.granted(), 2);
    scene.wait(500);
    scene.set(1, Presence::Ready);
    assert_eq!((scene.granted(), scene.last.until_ns), (1, Some(3700)));
    scene.wait(200);
    assert_eq!(scene.granted(), 2);
    let [event] = scene.log.of(EventKind::Ceiling)[..] else {
        panic!()
    };
    assert_eq!((event.process, event.slot, event.value), (1, 0, 3200));
    assert_eq!(event.preemptions, 0);
}

/// Absence is reported when the slot comes, and nobody waits for it.
#[test]
fn absent_process_is_reported_when_its_slot_comes() {
    let slots = [(1, 1000), (2, 1000), (3, 1000)];
    let plan = plan(&slots, &[(1, 5000), (2, 9000), (3, 7000)]);
    let mut scene = Scene::absent(FLOATS, plan);
    scene.set(3, Presence::Ready);
    assert_eq!(scene.granted(), 3);
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0)]);
    scene.finish(1000);
    scene.exit(3);
    // Of 2 the slot comes when the plan has waited for 1: for the ceiling of its slots.
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0)]);
    assert_eq!(scene.last.until_ns, Some(3000));
    scene.wait(1999);
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0)]);
    scene.wait(1);
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0), (2, 0)]);
    // It comes late, and runs.
    scene.wait(500);
    scene.set(1, Presence::Ready);
    assert_eq!(granted(&scene), (1, Grant::Slot));
    scene.finish(1000);
    scene.exit(1);
    assert!(!scene.node.ended());
    assert_eq!(scene.last.until_ns, Some(6000));
    scene.wait(1500);
    let [event] = scene.log.of(EventKind::PlanEnded)[..] else {
        panic!()
    };
    assert_eq!((event.time_ns, event.value), (6000, 1));
    assert_eq!(scene.last.until_ns, None);
}

#[test]
fn plan_without_any_process_there_ends_after_all_ceilings() {
    let mut scene = Scene::absent(FLOATS, plan(&[(1, 1000), (2, 500), (1, 1000)], &[]));
    scene.decide();
    let mut steps = 0;
    while let Some(until_ns) = scene.last.until_ns {
        scene.wait(until_ns - scene.now_ns);
        steps += 1;
    }
    // Two slots of 1 and one of 2.
    assert_eq!(
        (steps, scene.now_ns),
        (2, 2 * 2000 + 2 * 1000 + 2 * 500 + 1000)
    );
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0), (2, 0)]);
    assert_eq!(scene.log.of(EventKind::PlanEnded)[0].value, 2);
}

/// A process that is released after the end of the plan, and is absent, is not reported again:
/// nobody waits for it.
#[test]
fn nobody_is_absent_after_the_end_of_the_plan() {
    let mut cpu = cpu(&[(1, 1000), (2, 500), (2, 500)], &[]);
    cpu.edges = vec![(2, 1, 1, 0)];
    let mut scene = Scene::absent(FLOATS, text::plan_of(cpu));
    scene.decide();
    while let Some(until_ns) = scene.last.until_ns {
        scene.wait(until_ns - scene.now_ns);
    }
    assert_eq!(scene.log.of(EventKind::PlanEnded).len(), 1);
    let absent = scene.log.tasks(EventKind::Absent);
    scene.node.end_task(1, scene.now_ns, &mut scene.log);
    scene.node.end_task(0, scene.now_ns, &mut scene.log);
    for _ in 0..3 {
        scene.wait(10_000_000);
        scene.node.forget_decision();
    }
    assert_eq!(scene.log.tasks(EventKind::Absent), absent);
}

/// A process that waits for another is passed by, reported once, and released in time.
#[test]
fn task_that_waits_for_another_is_not_in_the_order() {
    let slots = [(1, 1000), (2, 1000), (3, 1000)];
    let mut cpu = cpu(&slots, &[(1, 9000), (2, 3000), (3, 8000)]);
    cpu.edges = vec![(2, 0, 1, 0)];
    let mut scene = Scene::ready(FLOATS, text::plan_of(cpu));
    assert_eq!(scene.granted(), 3);
    let [event] = scene.log.of(EventKind::Waits)[..] else {
        panic!()
    };
    assert_eq!(
        (event.process, event.reason, event.slot),
        (2, Wait::Task as u16, 1)
    );
    assert_eq!(event.value, 1 << 32);
    scene.finish(1000);
    assert_eq!(scene.granted(), 1);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.log.of(EventKind::Waits).len(), 1);
}

/// Edges keep a task back though nothing else is to be done.
#[test]
fn nobody_runs_ahead_of_an_edge() {
    let mut cpu = cpu(&[(1, 1000), (2, 1000)], &[(1, 9000), (2, 3000)]);
    cpu.edges = vec![(2, 0, 1, 0)];
    let mut scene = Scene::ready(FLOATS, text::plan_of(cpu));
    scene.set(1, Presence::Blocked);
    assert_eq!(granted(&scene), (IDLE, Grant::None));
    scene.wait(10_000);
    assert_eq!(granted(&scene), (IDLE, Grant::None));
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
}

/// Tasks after a slot take as long as the rate of their process demands.
#[test]
fn deadlines_are_times_whatever_the_rates_are() {
    let slots = [(1, 1000), (1, 1000), (2, 1000), (2, 1000)];
    let of = |rates: [u64; 2]| {
        let deadlines = [(1, 10_000), (2, 9500)];
        let mut bytes = text::write(1, None, &[cpu(&slots, &deadlines)]);
        for (number, rate) in rates.into_iter().enumerate() {
            let at = HEADER_BYTES + CPU_BYTES + number * PROCESS_BYTES + 24;
            bytes[at..at + 8].copy_from_slice(&rate.to_ne_bytes());
        }
        let plan = text::read(&bytes).unwrap().remove(0).1;
        Scene::ready(FLOATS, plan).granted()
    };
    assert_eq!(of([0, 0]), 2);
    // At half the rate the second task of 1 takes 2000.
    assert_eq!(of([500_000, 0]), 1);
    assert_eq!(of([500_000, 250_000]), 2);
}

/// The numbers of a task go over to the next plan, its budget is that of the new slot.
#[test]
fn new_plan_takes_over_in_the_middle_of_a_slot() {
    let slots = [(1, 1000), (2, 1000), (1, 1000)];
    let mut scene = scene(&slots, &[(1, 9000), (2, 9500)]);
    scene.run(600);
    scene.swap_with(FLOATS, plan(&slots, &[(1, 9000), (2, 7000)]), 0);
    assert_eq!(scene.granted(), 2);
    scene.finish(1000);
    assert_eq!((scene.granted(), scene.node.slot_count_insns()), (1, 600));
    assert_eq!(scene.node.slot_t1_insns(), Some(1100));
    scene.run_as_told(500);
    assert_eq!(scene.node.floating_slot(), Some(2));
    // Again another plan: the preempted task gets no more than t1 of its slot.
    scene.swap_with(FLOATS, plan(&[(1, 1500), (2, 1)], &[(1, 9000)]), 0);
    assert_eq!(scene.node.slot_t1_insns(), Some(1650));
    assert_eq!(scene.node.slot_count_insns(), 1100);
}

/// Deadlines count from the moment at which the plan came into force.
#[test]
fn deadlines_of_a_new_plan_count_from_its_begin() {
    let slots = [(1, 1000), (2, 1000)];
    let mut scene = scene(&slots, &[(1, 500), (2, 9500)]);
    assert_eq!(scene.granted(), 2);
    scene.wait(5000);
    scene.swap_with(FLOATS, plan(&slots, &[(1, 1000), (2, 9500)]), 0);
    assert_eq!(scene.granted(), 1);
    // One that was in the background has a slot again.
    scene.run(600);
    assert_eq!(scene.last.until_ns, Some(6001));
    scene.wait(401);
    assert_eq!(scene.granted(), 2);
    scene.swap_with(FLOATS, plan(&slots, &[(1, 20_000), (2, 30_000)]), 0);
    assert_eq!(granted(&scene), (1, Grant::Slot));
}

#[test]
fn plans_of_both_orders_follow_each_other() {
    let slots = [(1, 1000), (2, 1000), (IDLE, 500), (1, 1000)];
    let deadlines = [(1, 9000), (2, 3000)];
    let mut scene = scene(&slots, &deadlines);
    assert_eq!(scene.granted(), 2);
    scene.run(300);
    let thesis = Config {
        dispatch: Dispatch::Thesis as u64,
        ..FLOATS
    };
    scene.swap_with(thesis, plan(&slots, &deadlines), 0);
    assert_eq!(scene.granted(), 1);
    scene.run(100);
    scene.swap_with(FLOATS, plan(&slots, &deadlines), 0);
    assert_eq!((scene.granted(), scene.node.slot_count_insns()), (2, 300));
    scene.finish(700);
    assert_eq!((scene.granted(), scene.node.slot_count_insns()), (1, 100));
}

/// A task that is preempted once goes on to t2_task in the next slot.
#[test]
fn task_that_is_preempted_once_is_spared() {
    let config = Config {
        preemption_way: PreemptionWay::Once as u64,
        sigma_t2_permille: 3000,
        ..FLOATS
    };
    let slots = [(1, 1000), (1, 100), (1, 100), (2, 1000)];
    let mut scene = Scene::ready(config, plan(&slots, &[(1, 90_000), (2, 95_000)]));
    scene.run_as_told(1100);
    assert_eq!(scene.node.floating_slot(), Some(1));
    assert_eq!(scene.node.slot_t1_insns(), Some(3001 - 1100));
    // When the task ends, t1 holds again.
    scene.finish(50);
    assert_eq!(scene.node.slot_t1_insns(), Some(110));
}

/// Processes that hand the CPU over many times leave few events.
#[test]
fn grant_of_a_slot_is_reported_once_unless_it_lasts() {
    let mut scene = scene(
        &[(1, 1_000_000), (2, 1_000_000)],
        &[(1, 5_000_000), (2, 9_000_000)],
    );
    for _ in 0..20 {
        scene.run(10);
        scene.set(1, Presence::Blocked);
        scene.run(10);
        scene.set(1, Presence::Ready);
    }
    assert_eq!(scene.log.grants(), [(1, 0), (2, 1)]);
    scene.run(100_000);
    assert_eq!(scene.log.grants(), [(1, 0), (2, 1), (1, 0)]);
}

/// A slot is there for its process alone: without T1 it lasts to its ceiling.
#[test]
fn without_t1_only_ceilings_end_slots() {
    let config = Config {
        thresholds: 0,
        ..FLOATS
    };
    let mut scene = Scene::ready(
        config,
        plan(&[(1, 1000), (2, 1000)], &[(1, 9000), (2, 9500)]),
    );
    assert_eq!(scene.last.until_insns, None);
    assert_eq!(scene.last.until_ns, Some(3000));
    scene.run(3000);
    assert_eq!(scene.granted(), 2);
    assert_eq!(scene.log.of(EventKind::Ceiling).len(), 1);
}

/// Many processes that can't keep their deadlines are put back in several decisions.
#[test]
fn decision_puts_a_bounded_number_of_processes_back() {
    let processes = 1..301u32;
    let slots: Vec<_> = processes.clone().map(|id| (id, 1000)).collect();
    let deadlines: Vec<_> = processes.map(|id| (id, u64::from(id))).collect();
    let mut scene = scene(&slots, &deadlines);
    let mut decisions = 1;
    while scene.last.again {
        scene.decide();
        decisions += 1;
    }
    assert_eq!(decisions, 300 / 128 + 1);
    assert_eq!(scene.granted(), 1);
}

/// The plan stops waiting for a process that has come: where no process runs, the next absent one
/// is reported at once.
#[test]
fn arrival_ends_the_wait_for_a_process() {
    let mut scene = Scene::absent(FLOATS, plan(&[(1, 1000), (2, 500)], &[]));
    scene.decide();
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0)]);
    scene.set(1, Presence::Ready);
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0)]);
    scene.set(1, Presence::Blocked);
    assert_eq!(scene.granted(), IDLE);
    assert_eq!(scene.log.tasks(EventKind::Absent), [(1, 0), (2, 0)]);
}
