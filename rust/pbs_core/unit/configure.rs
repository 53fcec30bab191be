// SPDX-License-Identifier: GPL-2.0

//! Changes of the configuration under a plan in force.

use std::string::ToString;
use std::vec::Vec;

use crate::wire::IDLE;
use crate::{
    Begun, Config, Dispatch, EventKind, Grant, IdlePolicy, Node, Notes, Presence, Rate, Replay,
    Replayed, Threshold,
};

use super::scene::{Log, Scene, CONFIG, RATE};
use super::text;

impl Scene {
    /// Changes the configuration.  Returns the count of numbers that have changed.
    fn configure(&mut self, config: Config) -> u32 {
        let changed = self.node.configure(&config, self.now_ns, &mut self.log);
        self.node.check_invariants();
        self.decide();
        changed.unwrap()
    }
}

#[test]
fn thresholds_hold_from_the_next_decision() {
    let config = Config {
        thresholds: Threshold::T2Task as u64,
        sigma_t2_permille: 1101,
        t2_spacer_ns: 400,
        ..CONFIG
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 1000), (1, 1000)]));
    scene.run(1200);
    assert_eq!(scene.last.until_insns, Some(201));
    let stricter = Config {
        t2_spacer_ns: 100,
        ..config
    };
    // t2_task is 1101 now: max(1101, 1100).
    assert_eq!(scene.configure(stricter), 1);
    let late = scene.log.of(EventKind::Late);
    assert_eq!(
        (late.len(), late[0].retired_insns, late[0].value),
        (1, 1200, 1101)
    );
    // A failure that was reported is not reported again, whatever t2_task is.
    scene.configure(config);
    scene.run(500);
    assert_eq!(scene.log.of(EventKind::Late).len(), 1);
    // The next task is another one.
    scene.finish(10);
    scene.run(1401);
    let late = scene.log.of(EventKind::Late);
    assert_eq!((late.len(), late[1].value), (2, 1400));
    let told = scene.log.of(EventKind::Configured);
    let values: Vec<_> = told
        .iter()
        .map(|event| (event.time_ns, event.value))
        .collect();
    assert_eq!(values, [(1200, 1), (1200, 1)]);
    assert_eq!(scene.node.counts().get(EventKind::Configured), 2);
}

#[test]
fn present_slot_keeps_its_bounds() {
    let mut scene = Scene::ready(CONFIG, text::plan(&[(1, 1000), (2, 1000), (1, 1000)]));
    // t1 is 1.1 of the length, the ceiling twice the length and 1000.
    assert_eq!(
        (scene.last.until_insns, scene.left_ns()),
        (Some(1100), Some(3000))
    );
    scene.run(200);
    let other = Config {
        sigma_t1_permille: 1200,
        ceiling_extra_ns: 100_000,
        ..CONFIG
    };
    assert_eq!(scene.configure(other), 2);
    assert_eq!(
        (scene.last.until_insns, scene.left_ns()),
        (Some(900), Some(2800))
    );
    scene.run(900);
    assert_eq!(scene.granted(), 2);
    assert_eq!(
        (scene.last.until_insns, scene.left_ns()),
        (Some(1200), Some(102_000))
    );
}

#[test]
fn present_idle_slot_is_divided_anew() {
    let config = |policy: IdlePolicy| Config {
        idle_policy: policy as u64,
        idle_piece_ns: 50,
        ..CONFIG
    };
    let slots = [(1, 100), (2, 1000), (IDLE, 200), (9, 10)];
    let mut scene = Scene::ready(config(IdlePolicy::Latest), text::plan(&slots));
    scene.run(110);
    scene.run(1100);
    // Process 2 is the latest.
    assert_eq!((scene.granted(), scene.left_ns()), (2, Some(200)));
    scene.run(40);
    // The one that came first begins a piece, which is the first of the rest of the slot.
    assert_eq!(scene.configure(config(IdlePolicy::Pieces)), 1);
    assert_eq!((scene.granted(), scene.left_ns()), (1, Some(50)));
    scene.run(10);
    assert_eq!(scene.configure(config(IdlePolicy::Nobody)), 1);
    assert_eq!((scene.granted(), scene.left_ns()), (IDLE, Some(150)));
    scene.wait(10);
    assert_eq!(scene.configure(config(IdlePolicy::Latest)), 1);
    assert_eq!((scene.granted(), scene.left_ns()), (2, Some(140)));
    assert_eq!(scene.last.reason, Grant::IdleSlot);
}

#[test]
fn candidates_are_ordered_anew() {
    let config = |policy: IdlePolicy| Config {
        idle_policy: policy as u64,
        ..CONFIG
    };
    let mut slots: Vec<_> = (1..=7)
        .map(|process| (process, 100 * u64::from(process)))
        .collect();
    slots.extend([(8, 1000), (IDLE, 10_000), (9, 10)]);
    let mut scene = Scene::ready(config(IdlePolicy::Pieces), text::plan(&slots));
    for process in 1..=7 {
        // The later ones are later by more.
        scene.run(110 * process);
    }
    assert_eq!(scene.granted(), 8);
    assert_eq!(scene.configure(config(IdlePolicy::Latest)), 1);
    scene.finish(1000);
    for process in (1..=7).rev() {
        assert_eq!(scene.granted(), process);
        scene.finish(1);
    }
}

#[test]
fn window_that_has_begun_ends_as_it_began() {
    let config = Config {
        window_period_ns: 1_000_000,
        window_unallocated_ns: 100_000,
        ..CONFIG
    };
    let mut scene = Scene::ready(config, text::plan(&[(IDLE, 10_000_000), (1, 10)]));
    scene.wait(300_000);
    let short = Config {
        window_period_ns: 2_000_000,
        window_unallocated_ns: 1_500_000,
        ..config
    };
    assert_eq!(scene.configure(short), 2);
    assert_eq!(
        (scene.last.unallocated, scene.left_ns()),
        (false, Some(600_000))
    );
    scene.wait(600_000);
    assert_eq!(
        (scene.last.unallocated, scene.left_ns()),
        (true, Some(100_000))
    );
    scene.wait(100_000);
    assert_eq!(
        (scene.last.unallocated, scene.left_ns()),
        (false, Some(500_000))
    );
    scene.wait(500_000);
    assert_eq!(
        (scene.last.unallocated, scene.left_ns()),
        (true, Some(1_500_000))
    );
    // Changed back before the period ends: there is nothing to wait for.
    scene.configure(config);
    scene.configure(short);
    scene.wait(1_500_000);
    assert_eq!(scene.left_ns(), Some(500_000));
}

#[test]
fn suspended_process_continues_where_none_is_suspended() {
    let config = Config {
        thresholds: Threshold::T2Task as u64,
        sigma_t2_permille: 1101,
        t2_spacer_ns: 100,
        suspends_failed: 1,
        ..CONFIG
    };
    let mut scene = Scene::ready(config, text::plan(&[(1, 1000), (2, 10)]));
    scene.run(1102);
    assert_eq!(scene.granted(), IDLE);
    let other = Config {
        suspends_failed: 0,
        ..config
    };
    assert_eq!(scene.configure(other), 1);
    assert_eq!(scene.granted(), 1);
}

#[test]
fn what_is_refused_changes_nothing() {
    let slots = [(1, 1000), (2, 1000)];
    let mut scene = Scene::ready(CONFIG, text::plan(&slots));
    scene.run(100);
    let twin = {
        let mut twin = Scene::ready(CONFIG, text::plan(&slots));
        twin.run(100);
        twin
    };
    let deadline = Config {
        dispatch: Dispatch::Deadline as u64,
        sigma_t1_permille: 1200,
        ..CONFIG
    };
    let now_ns = scene.now_ns;
    let refused = scene.node.configure(&deadline, now_ns, &mut scene.log);
    let refusal = refused.unwrap_err().to_string();
    let words = "the plan in force has dispatch = \"thesis\"";
    assert!(refusal.contains(words), "{refusal}");
    assert!(refusal.len() < 240, "{refusal}");
    // Nothing is new.
    assert_eq!(scene.configure(CONFIG), 0);
    scene.node.check_same(&twin.node);
    assert_eq!(scene.log.0, twin.log.0);
}

#[test]
fn a_record_has_the_values_before_the_call() {
    let slots = [(1, 1000), (2, 1000)];
    let node = || Node::new(text::plan(&slots), CONFIG, RATE, 7, 0).unwrap();
    let other = Config {
        sigma_t1_permille: 1200,
        max_preemptions: 2,
        ..CONFIG
    };
    let mut recorded = node();
    let mut log = Log::default();
    recorded.begin(None, 0, 0);
    recorded.begin_record(Notes(Some(Vec::new())), 3, false);
    recorded.set_presence(0, Presence::Ready);
    recorded.settle(5, &mut log);
    recorded.set_rate(Rate::new(900_000));
    assert_eq!(recorded.configure(&other, 6, &mut log), Ok(2));
    recorded.settle(6, &mut log);
    let inputs = recorded.tap_mut().0.take().unwrap();
    let names: Vec<_> = inputs.iter().map(|input| input.name().unwrap()).collect();
    let want = [
        "begin",
        "presence",
        "grant",
        "settle",
        "rate",
        "config_value",
        "config_value",
        "configured",
        "configure",
        "settle",
    ];
    assert_eq!(names, want);
    let values: Vec<_> = inputs
        .iter()
        .filter_map(|input| input.config_value())
        .collect();
    assert_eq!(values, [(0, 1200), (10, 2)]);
    let mut replay = Replay::new(false);
    let mut plan = Some(node());
    for input in &inputs {
        let replayed = replay.next(input, |_| {
            let node = plan.take()?;
            Some(Begun { node, dealt_seq: 0 })
        });
        assert_eq!(replayed, Ok(Replayed::Same));
    }
    replay.node().unwrap().check_same(&recorded);
    assert_eq!(replay.node().unwrap().config(), &other);
}
