// SPDX-License-Identifier: GPL-2.0

//! Three rates: of the CPU, which may change; declared by a plan for the CPU; and declared by a
//! plan for a process.

use super::scene::{Scene, CONFIG};
use super::text::{self, Cpu};
use crate::wire::{CPU_BYTES, HEADER_BYTES, IDLE, PROCESS_BYTES};
use crate::{Config, EventKind, Plan, Rate, StdMemory, Threshold};

/// Half of that of the scenes, and twice that.
const SLOW: u64 = 500_000;
const FAST: u64 = 2_000_000;

/// A plan of these slots (process, length) that declares the rates of the CPU and of the first two
/// processes, 0: none.
pub(super) fn plan(slots: &[(u32, u64)], cpu: u64, processes: [u64; 2]) -> Plan<StdMemory> {
    let mut bytes = text::write(1, None, &[Cpu::numbered(0, slots)]);
    let mut put = |at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    };
    put(HEADER_BYTES + 24, cpu);
    for (number, rate) in processes.into_iter().enumerate() {
        put(HEADER_BYTES + CPU_BYTES + number * PROCESS_BYTES + 24, rate);
    }
    text::read(&bytes).unwrap().remove(0).1
}

/// t1 of the first slot of the plan.
fn t1_insns(scene: &Scene) -> Option<u64> {
    let slot = scene.node.plan().slot(0).unwrap();
    scene.node.t1_insns(slot)
}

const SLOTS: [(u32, u64); 5] = [(1, 50), (2, 1000), (IDLE, 1000), (1, 1000), (2, 1000)];

#[test]
fn without_any_that_of_the_cpu_is_for_all() {
    let mut scene = Scene::ready(CONFIG, plan(&SLOTS, 0, [0, 0]));
    // 10 ns of NO_PREEMPTION; a ceiling of twice 50 ns and 1000 ns.
    assert_eq!(t1_insns(&scene), Some(60));
    assert_eq!(scene.left_ns(), Some(1100));
    scene.finish(50);
    assert_eq!(scene.left_ns(), Some(3000));
    scene.finish(1000);
    assert_eq!(scene.granted(), IDLE);
    assert_eq!(scene.left_ns(), Some(1000));
    assert_eq!(scene.node.rate_of(0), scene.node.rate());
}

#[test]
fn a_plan_says_that_of_its_cpu() {
    let mut scene = Scene::ready(CONFIG, plan(&SLOTS, SLOW, [0, 0]));
    assert_eq!(scene.node.rate(), Rate::new(SLOW));
    assert_eq!(t1_insns(&scene), Some(55));
    assert_eq!(scene.left_ns(), Some(1200));
    scene.finish(50);
    assert_eq!(scene.left_ns(), Some(5000));
    scene.finish(1000);
    assert_eq!(scene.left_ns(), Some(2000));
    // Then the CPU's own does not matter, whatever becomes of it.
    scene.node.set_rate(Rate::new(FAST));
    assert_eq!(scene.node.rate(), Rate::new(SLOW));
    assert_eq!(t1_insns(&scene), Some(55));
    scene.wait(2000);
    assert_eq!((scene.granted(), scene.left_ns()), (1, Some(5000)));
}

#[test]
fn a_plan_says_that_of_a_process() {
    let mut scene = Scene::ready(CONFIG, plan(&SLOTS, SLOW, [0, FAST]));
    assert_eq!(scene.node.rate_of(0), Rate::new(SLOW));
    assert_eq!(scene.node.rate_of(1), Rate::new(FAST));
    assert_eq!(scene.left_ns(), Some(1200));
    scene.finish(50);
    // It needs half of the time that instructions have at the CPU's rate in a
    // scene, and pays back what it has taken at the same rate.
    assert_eq!((scene.granted(), scene.left_ns()), (2, Some(2000)));
    scene.node.owe(1, 300);
    scene.finish(1000);
    assert_eq!(scene.left_ns(), Some(2000));
    scene.wait(2000);
    scene.finish(1000);
    assert_eq!((scene.granted(), scene.left_ns()), (2, Some(1700)));
    assert_eq!(scene.last.until_insns, Some(1100 - 600));
    // The CPU's own changes neither.
    scene.node.set_rate(Rate::new(1));
    assert_eq!(scene.node.rate_of(0), Rate::new(SLOW));
    assert_eq!(scene.node.rate_of(1), Rate::new(FAST));
}

#[test]
fn another_one_of_the_cpu_is_for_the_slots_that_come() {
    let mut scene = Scene::ready(CONFIG, plan(&SLOTS, 0, [0, FAST]));
    scene.node.set_rate(Rate::new(SLOW));
    scene.decide();
    assert_eq!(scene.node.rate(), Rate::new(SLOW));
    assert_eq!(t1_insns(&scene), Some(55));
    // The present slot keeps its ceiling and its t1.
    assert_eq!(scene.left_ns(), Some(1100));
    assert_eq!(scene.last.until_insns, Some(60));
    scene.finish(50);
    assert_eq!(scene.left_ns(), Some(2000));
    scene.finish(1000);
    assert_eq!(scene.left_ns(), Some(2000));
    scene.wait(2000);
    assert_eq!((scene.granted(), scene.left_ns()), (1, Some(5000)));
}

#[test]
fn another_one_of_the_cpu_is_for_the_thresholds_at_once() {
    let config = Config {
        thresholds: Threshold::T2Task as u64,
        sigma_t2_permille: 1101,
        t2_spacer_ns: 400,
        ..CONFIG
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 1000), (1, 10)]));
    scene.run(1100);
    assert_eq!(scene.last.until_insns, Some(301));
    scene.node.set_rate(Rate::new(SLOW));
    scene.decide();
    // 400 ns are 200 instructions now.
    assert_eq!(scene.last.until_insns, Some(101));
    scene.run(100);
    assert_eq!(scene.log.of(EventKind::Late).len(), 0);
    scene.run(1);
    let late = scene.log.of(EventKind::Late);
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].retired_insns, late[0].value), (1201, 1200));
    // Faster again: a signal that was reported is not repeated.
    scene.node.set_rate(Rate::new(FAST));
    scene.decide();
    scene.run(1000);
    assert_eq!(scene.log.of(EventKind::Late).len(), 1);
}
