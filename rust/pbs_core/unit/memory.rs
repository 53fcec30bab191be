// SPDX-License-Identifier: GPL-2.0

//! Memory beyond its planned peak, or beyond the node's limit, is reported.

use std::vec::Vec;

use super::scene::{Scene, CONFIG};
use super::text::{self, Cpu};
use crate::wire::{CPU_BYTES, HEADER_BYTES, PROCESS_BYTES};
use crate::{Cause, Config, EventKind, Plan, StdMemory, Threshold};

const WATCHED: Config = Config {
    thresholds: Threshold::T2Memory as u64 | Threshold::Info as u64,
    sigma_memory_permille: 1200,
    memory_spacer_bytes: 10,
    memory_signaling_limit_bytes: 1000,
    ..CONFIG
};

/// Two processes with a slot each, 1 and 2, with these planned peaks, and the
/// limit of the node.
fn plan(peaks: [u64; 2], limit_bytes: u64) -> Plan<StdMemory> {
    let cpu = Cpu::numbered(0, &[(1, 1000), (2, 1000), (1, 1000), (2, 1000)]);
    let mut bytes = text::write(1, None, &[cpu]);
    let mut put = |at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    };
    put(56, limit_bytes);
    for (number, peak_bytes) in peaks.into_iter().enumerate() {
        let process = HEADER_BYTES + CPU_BYTES + number * PROCESS_BYTES;
        put(process + 16, peak_bytes);
    }
    text::read(&bytes).unwrap().remove(0).1
}

fn scene(config: Config, peaks: [u64; 2], limit_bytes: u64) -> Scene {
    let mut scene = Scene::ready(config, plan(peaks, limit_bytes));
    // Both begin.
    scene.run(1);
    scene.node.charge(1, 1);
    scene
}

impl Scene {
    fn sample(&mut self, id: u32, rss_bytes: u64, elsewhere_bytes: u64) {
        let p = self.index(id);
        self.node.memory(p, 10 * rss_bytes, rss_bytes);
        self.node
            .watch_memory(p, elsewhere_bytes, self.now_ns, &mut self.log);
        self.node.check_invariants();
    }

    /// Kind, cause, process, level, what is compared, threshold.
    fn told(&self) -> Vec<(EventKind, u16, u32, u32, u64, u64)> {
        let signals = self.log.signals().into_iter();
        signals
            .map(|(_, e)| {
                let (level, used_bytes) = (e.level_percent, e.memory_bytes);
                (e.kind, e.reason, e.process, level, used_bytes, e.value)
            })
            .collect()
    }
}

const MEMORY: u16 = Cause::Memory as u16;
const NODE: u16 = Cause::NodeMemory as u16;

#[test]
fn the_threshold_is_formed_as_that_of_a_task() {
    let at = |planned_bytes| WATCHED.t2_memory_bytes(planned_bytes);
    // Spacer, share, limit.
    assert_eq!([at(40), at(100), at(10_000)], [50, 120, 11_000]);
    let exact = Config {
        sigma_memory_permille: 0,
        memory_spacer_bytes: 0,
        memory_signaling_limit_bytes: 0,
        ..WATCHED
    };
    assert_eq!(exact.t2_memory_bytes(100), 100);
}

#[test]
fn a_process_beyond_its_planned_peak_is_told_once() {
    let mut scene = scene(WATCHED, [100, 0], 0);
    // As much as was planned is no information, though it is more than 75 % of the threshold.
    scene.sample(1, 100, 0);
    assert_eq!(scene.told(), []);
    scene.sample(1, 101, 0);
    scene.sample(1, 108, 0);
    scene.sample(1, 109, 0);
    // No more than the threshold is no failure; less than before is nothing new.
    scene.sample(1, 120, 0);
    scene.sample(1, 5, 0);
    // Without a planned peak there is nothing to compare with.
    scene.sample(2, 1 << 40, 0);
    scene.sample(1, 121, 0);
    scene.sample(1, 500, 0);
    let info = |level, used| (EventKind::Info, MEMORY, 1, level, used, 120);
    let late = (EventKind::Late, MEMORY, 1, 100, 121, 120);
    assert_eq!(scene.told(), [info(75, 101), info(90, 109), late]);
}

#[test]
fn the_greatest_level_alone_is_told_and_information_can_be_switched_off() {
    let mut all = scene(WATCHED, [100, 0], 0);
    all.sample(1, 121, 0);
    assert_eq!(all.told().len(), 1);
    let t2_memory = Threshold::T2Memory as u64;
    let mut plain = scene(
        Config {
            thresholds: t2_memory,
            ..WATCHED
        },
        [100, 0],
        200,
    );
    plain.sample(1, 119, 75);
    assert_eq!(plain.told(), []);
    let thresholds = Threshold::ALL_BITS & !t2_memory;
    let mut off = scene(
        Config {
            thresholds,
            ..WATCHED
        },
        [100, 0],
        200,
    );
    off.sample(1, 1000, 1000);
    assert_eq!(off.told(), []);
}

#[test]
fn the_limit_of_the_node_is_that_of_all_cpus_and_processes() {
    let mut scene = scene(WATCHED, [0, 0], 1000);
    scene.sample(1, 300, 400);
    assert_eq!(scene.told(), []);
    assert_eq!(scene.node.memory_bytes(), 300);
    scene.sample(2, 51, 400);
    scene.sample(2, 300, 400);
    scene.sample(2, 301, 400);
    scene.sample(1, 400, 400);
    let told = |kind, level, used| (kind, NODE, 2, level, used, 1000);
    let expected = [
        told(EventKind::Info, 75, 751),
        told(EventKind::Info, 90, 1000),
        told(EventKind::Late, 100, 1001),
    ];
    assert_eq!(scene.told(), expected);
}

/// A node whose plan books nearly all of its memory is no news as long as each process keeps to
/// its plan; beyond the limit it is always reported.
#[test]
fn planned_memory_of_the_node_is_no_information() {
    let mut scene = scene(WATCHED, [500, 450], 1000);
    scene.sample(1, 500, 0);
    scene.sample(2, 450, 0);
    assert_eq!(scene.told(), []);
    scene.sample(2, 451, 0);
    scene.sample(2, 451, 50);
    let told = |kind, level, used| (kind, NODE, 2, level, used, 1000);
    let node = [
        told(EventKind::Info, 90, 951),
        told(EventKind::Late, 100, 1001),
    ];
    let process = (EventKind::Info, MEMORY, 2, 75, 451, 540);
    assert_eq!(scene.told(), [process, node[0], node[1]]);
}

#[test]
fn a_process_counts_until_it_ends() {
    let mut scene = scene(WATCHED, [0, 0], 1000);
    scene.sample(1, 600, 0);
    scene.sample(1, 100, 0);
    assert_eq!(scene.node.memory_bytes(), 600);
    scene.exit(1);
    assert_eq!(scene.node.memory_bytes(), 0);
    scene.sample(1, 700, 0);
    scene.sample(2, 700, 0);
    assert_eq!(scene.node.memory_bytes(), 700);
    assert_eq!(scene.told(), []);
}

/// Signals of the node when it is sampled again under another plan.
fn after_plan(peaks: [u64; 2], limit_bytes: u64, dealt: bool) -> Vec<u16> {
    let mut scene = scene(WATCHED, [100, 0], 1000);
    scene.sample(1, 900, 101);
    let told = scene.told().len();
    assert_eq!(told, 2);
    let dealt_seq = if dealt { scene.log.0.len() as u64 } else { 0 };
    scene.swap_with(WATCHED, plan(peaks, limit_bytes), dealt_seq);
    assert_eq!(scene.node.memory_bytes(), 900);
    scene.sample(1, 900, 101);
    let later = scene.told().split_off(told);
    let late = later.into_iter().filter(|told| told.0 == EventKind::Late);
    late.map(|told| told.1).collect()
}

#[test]
fn a_plan_that_deals_with_it_silences_it() {
    // A plan that does not deal with it causes another report, as far as it holds.
    assert_eq!(after_plan([100, 0], 1000, false), [MEMORY, NODE]);
    assert_eq!(after_plan([900, 0], 1001, false), []);
    // A plan that does may leave it as it is.
    assert_eq!(after_plan([100, 0], 1000, true), []);
    assert_eq!(after_plan([900, 0], 2000, true), []);
}

#[test]
fn what_is_dealt_with_is_told_anew_beyond_the_new_figure() {
    let mut scene = scene(WATCHED, [100, 0], 1000);
    scene.sample(1, 900, 101);
    let dealt_seq = scene.log.0.len() as u64;
    scene.swap_with(WATCHED, plan([900, 0], 2000), dealt_seq);
    scene.sample(1, 1081, 920);
    let told = scene.told().split_off(2);
    let late = |cause, used, limit| (EventKind::Late, cause, 1, 100, used, limit);
    assert_eq!(told, [late(MEMORY, 1081, 1080), late(NODE, 2001, 2000)]);
}

#[test]
fn memory_is_compared_with_a_changed_threshold() {
    let generous = Config {
        sigma_memory_permille: 3000,
        ..WATCHED
    };
    let mut scene = scene(generous, [100, 0], 0);
    scene.sample(1, 150, 0);
    assert_eq!(scene.told(), []);
    let changed = scene.node.configure(&WATCHED, scene.now_ns, &mut scene.log);
    assert_eq!(changed, Ok(1));
    // The sample is compared, although it is as large as before.
    let is_new = scene.node.memory(0, 1500, 150);
    assert!(is_new);
    scene.sample(1, 150, 0);
    assert_eq!(scene.told(), [(EventKind::Late, MEMORY, 1, 100, 150, 120)]);
}

#[test]
fn memory_is_compared_once_it_is_watched() {
    let unwatched = Config {
        thresholds: Threshold::T1 as u64,
        ..WATCHED
    };
    let mut scene = scene(unwatched, [100, 0], 0);
    scene.sample(1, 150, 0);
    assert_eq!(scene.told(), []);
    let changed = scene.node.configure(&WATCHED, scene.now_ns, &mut scene.log);
    assert_eq!(changed, Ok(1));
    // The sample is compared, although it is as large as before.
    assert!(scene.node.memory(0, 1500, 150));
    scene.sample(1, 150, 0);
    assert_eq!(scene.told(), [(EventKind::Late, MEMORY, 1, 100, 150, 120)]);
}
