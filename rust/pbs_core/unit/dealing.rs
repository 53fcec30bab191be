// SPDX-License-Identifier: GPL-2.0

//! Prediction failures and the plans that answer them: the failures that a plan has dealt with,
//! those that it has not, and the plans that are refused.

use std::string::ToString;
use std::vec::Vec;

use crate::wire::Message;
use crate::{Config, Errno, Event, Fault, Plan, Presence, Refusal, StdMemory, Threshold};

use super::scene::{Scene, CONFIG};
use super::signals::{on, scene};
use super::swap::tasks;
use super::text;

/// Three tasks for each of two processes.
const SLOTS: [(u32, u32, u64); 6] = [
    (1, 0, 1000),
    (2, 0, 1000),
    (1, 1, 1000),
    (2, 1, 1000),
    (1, 2, 1000),
    (2, 2, 1000),
];

impl Scene {
    /// Swaps in the same plan, which deals with the events before `dealt_seq`.
    fn again(&mut self, dealt_seq: u64) {
        let config = *self.node.config();
        self.swap_with(config, tasks(&SLOTS), dealt_seq);
    }

    /// The number after the last failure: a plan with it has dealt with all.
    fn all_seen(&self) -> u64 {
        self.log.signals().last().unwrap().0 + 1
    }

    fn lateness(&self) -> [i64; 2] {
        [0, 1].map(|p| self.node.process_lateness_insns(p))
    }

    fn last_signal(&self) -> Event {
        self.log.signals().last().unwrap().1
    }
}

fn start(thresholds: &[Threshold]) -> Scene {
    Scene::ready(on(thresholds), tasks(&SLOTS))
}

/// Process 1 is too late by its first task: 101 of 100.
fn late_process() -> Scene {
    let mut scene = start(&[Threshold::T2Process]);
    scene.finish(1101);
    assert_eq!(scene.log.lines(), ["late process: 1.0 at 1101"]);
    scene.finish(1050);
    scene
}

#[test]
fn process_that_is_dealt_with_begins_a_new_account() {
    let mut scene = late_process();
    scene.again(scene.all_seen());
    // The other one keeps its own.
    assert_eq!(scene.lateness(), [0, 50]);
    // Its tasks begun are the running one: a tenth of 1000.
    assert_eq!(scene.node.process_limit_insns(0, scene.now_ns), 100);
    scene.run_as_told(1100);
    assert_eq!(scene.log.signals().len(), 1);
    scene.run_as_told(1);
    let lines = ["late process: 1.0 at 1101", "late process: 1.1 at 1101"];
    assert_eq!(scene.log.lines(), lines);
    assert_eq!(scene.last_signal().lateness_insns, 101);
}

#[test]
fn process_that_is_not_dealt_with_is_told_again_if_it_is_still_late() {
    // One event too few, and none at all.
    for dealt_seq in [late_process().all_seen() - 1, 0] {
        let mut scene = late_process();
        scene.again(dealt_seq);
        assert_eq!(scene.lateness(), [101, 50]);
        // Of 2000 begun: 99 more are 200, and it must be late itself.
        scene.run_as_told(1099);
        assert_eq!(scene.log.signals().len(), 1);
        scene.run_as_told(1);
        let lines = ["late process: 1.0 at 1101", "late process: 1.1 at 1100"];
        assert_eq!(scene.log.lines(), lines);
        assert_eq!(scene.last_signal().lateness_insns, 201);
    }
}

#[test]
fn progress_of_a_new_account_is_that_of_the_rest() {
    let buffers = |cpu: &mut text::Cpu| cpu.processes[0].1 = 20_000;
    let plan = || {
        let mut cpu = text::Cpu::numbered(0, &[(1, 1000), (1, 1000), (1, 2000)]);
        buffers(&mut cpu);
        text::plan_of(cpu)
    };
    let config = Config {
        t2_min_process_ns: 0,
        ..on(&[Threshold::T2Process])
    };
    let mut scene = Scene::ready(config, plan());
    // 2000 of extra capacity, half of it allowed after 2000 of 4000.
    scene.finish(2000);
    assert_eq!(scene.node.process_limit_insns(0, 0), 1000);
    // All of it after another 2000; 2001 late.
    scene.finish(3001);
    assert_eq!(scene.log.lines(), ["late process: 1.1 at 3001"]);
    let dealt_seq = scene.all_seen();
    scene.swap_with(config, plan(), dealt_seq);
    // Nothing of the remaining 2000 is done; a tenth of them is begun.
    assert_eq!(scene.node.process_limit_insns(0, 0), 200);
    scene.run(1000);
    assert_eq!(scene.node.process_limit_insns(0, 0), 1000);
}

#[test]
fn only_what_came_before_is_dealt_with() {
    let mut scene = late_process();
    let dealt_seq = scene.all_seen();
    // 50 and 251 of 300.
    scene.finish(1000);
    scene.finish(1151);
    assert_eq!(scene.log.lines()[1], "late process: 2.1 at 1151");
    scene.again(dealt_seq);
    assert_eq!(scene.lateness(), [0, 201]);
    scene.again(scene.all_seen());
    assert_eq!(scene.lateness(), [0, 0]);
}

#[test]
fn task_that_is_dealt_with_is_told_only_beyond_its_new_length() {
    let late = || {
        let mut scene = start(&[Threshold::T2Task]);
        scene.run_as_told(1600);
        assert_eq!(scene.log.lines(), ["late task: 1.0 at 1501"]);
        scene
    };
    // Not dealt with: at once.
    let mut scene = late();
    scene.again(0);
    let lines = ["late task: 1.0 at 1501", "late task: 1.0 at 1600"];
    assert_eq!(scene.log.lines(), lines);
    // As long as before, or a bit longer, which is of no use.
    for length in [1000, 1066] {
        let mut scene = late();
        let plan = tasks(&[(1, 0, length), (1, 1, 1000)]);
        let config = *scene.node.config();
        let dealt_seq = scene.all_seen();
        scene.swap_with(config, plan, dealt_seq);
        scene.run_as_told(5000);
        assert_eq!(scene.log.signals().len(), 1, "length {length}");
        // Neither is the failure of the next task dealt with.
        scene.finish(0);
        scene.run_as_told(1501);
        assert_eq!(scene.log.lines()[1..], ["late task: 1.1 at 1501"]);
    }
    // Stretched to what it has retired, or beyond: reported when it is too late for that, too.
    for (length, at) in [(1067, "1602"), (2000, "3001")] {
        let mut scene = late();
        let plan = tasks(&[(1, 0, length)]);
        let config = *scene.node.config();
        let dealt_seq = scene.all_seen();
        scene.swap_with(config, plan, dealt_seq);
        assert_eq!(scene.log.signals().len(), 1);
        scene.run_as_told(2000);
        let line = std::format!("late task: 1.0 at {at}");
        assert_eq!(scene.log.lines()[1..], [line]);
    }
}

#[test]
fn task_that_is_dealt_with_stays_so_in_the_plans_that_follow() {
    let mut scene = start(&[Threshold::T2Task]);
    scene.run_as_told(1600);
    let dealt_seq = scene.all_seen();
    scene.again(dealt_seq);
    scene.again(dealt_seq + 3);
    scene.run_as_told(1000);
    assert_eq!(scene.log.signals().len(), 1);
}

#[test]
fn preemptions_that_are_dealt_with_count_anew() {
    let pushed = || {
        let mut scene = start(&[Threshold::T1, Threshold::T2Preemptions]);
        scene.run(1100);
        scene.finish(1000);
        scene.run(1100);
        let lines = ["late preemptions: 1.0 at 2200"];
        assert_eq!(scene.log.lines(), lines);
        scene
    };
    // Not dealt with: at once.
    let mut scene = pushed();
    scene.again(0);
    assert_eq!(scene.node.process(0).unwrap().preemptions, 2);
    assert_eq!(scene.log.lines()[1..], ["late preemptions: 1.0 at 2200"]);
    assert_eq!(scene.last_signal().preemptions, 2);
    // Dealt with: after two more.
    let mut scene = pushed();
    scene.again(scene.all_seen());
    assert_eq!(scene.node.process(0).unwrap().preemptions, 0);
    // Process 2 has done what the slot between was for.
    scene.run(1100);
    assert_eq!((scene.granted(), scene.node.cursor()), (1, 2));
    assert_eq!(scene.log.signals().len(), 1);
    scene.run(1100);
    assert_eq!(scene.log.lines()[1..], ["late preemptions: 1.0 at 4400"]);
    assert_eq!(scene.last_signal().preemptions, 2);
}

/// The node is too late by both: 201 of 200.
fn late_node() -> Scene {
    let mut scene = start(&[Threshold::T2Node]);
    scene.finish(1080);
    scene.finish(1121);
    assert_eq!(scene.log.lines(), ["late node: 2.0 at 1121"]);
    assert_eq!(scene.lateness(), [80, 121]);
    scene
}

#[test]
fn late_node_that_is_dealt_with_begins_all_accounts_anew() {
    let mut scene = late_node();
    scene.again(scene.all_seen());
    assert_eq!(scene.lateness(), [0, 0]);
    let thresholds = scene.node.thresholds(scene.now_ns);
    // Both have begun; of their tasks only the one that runs.
    assert_eq!((thresholds.active, thresholds.t2_node_insns), (2, 100));
    scene.run_as_told(1101);
    assert_eq!(scene.log.lines()[1..], ["late node: 1.1 at 1101"]);
}

#[test]
fn late_node_that_is_not_dealt_with_is_told_again() {
    let mut scene = late_node();
    scene.again(scene.all_seen() - 1);
    assert_eq!(scene.lateness(), [80, 121]);
    // 3000 begun, 300 late.
    scene.run_as_told(1099);
    assert_eq!(scene.log.signals().len(), 1);
    scene.run_as_told(1);
    assert_eq!(scene.log.lines()[1..], ["late node: 1.1 at 1100"]);
}

/// The node is too early by both: 202 of 200.
fn early_node() -> Scene {
    let mut scene = start(&[Threshold::Tm2Node]);
    scene.finish(950);
    scene.finish(848);
    assert_eq!(scene.log.lines(), ["early node: 2.0 at 848"]);
    scene
}

#[test]
fn early_node_that_is_dealt_with_begins_all_accounts_anew() {
    let mut scene = early_node();
    scene.again(scene.all_seen());
    assert_eq!(scene.lateness(), [0, 0]);
    // Ended are 1000 more: −100.
    scene.finish(900);
    assert_eq!(scene.log.signals().len(), 1);
    scene.finish(899);
    assert_eq!(scene.log.lines()[1..], ["early node: 2.1 at 899"]);
    assert_eq!(scene.last_signal().node_lateness_insns, -201);
}

#[test]
fn early_node_that_is_not_dealt_with_is_told_again() {
    let mut scene = early_node();
    scene.again(scene.all_seen() - 1);
    assert_eq!(scene.lateness(), [-50, -152]);
    scene.finish(902);
    // −300 of −300.
    assert_eq!(scene.log.signals().len(), 1);
    scene.finish(850);
    assert_eq!(scene.log.lines()[1..], ["early node: 2.1 at 850"]);
    assert_eq!(scene.last_signal().node_lateness_insns, -450);
}

#[test]
fn idle_time_is_of_the_account() {
    let config = Config {
        tm2_node_lower_bound_ns: 400,
        tm2_node_earliness_cap_permille: 0,
        idle_is_lateness: 1,
        ..on(&[Threshold::Tm2Node])
    };
    for dealt in [false, true] {
        let mut scene = Scene::ready(config, tasks(&SLOTS));
        // 400 early, of which 200 are idle time; then 1000 more, which is reported.
        scene.finish(600);
        scene.set(2, Presence::Blocked);
        scene.wait(200);
        scene.set(2, Presence::Ready);
        scene.finish(0);
        assert_eq!(scene.log.lines(), ["early node: 2.0 at 0"]);
        assert_eq!(scene.last_signal().node_lateness_insns, -1200);
        let dealt_seq = if dealt { scene.all_seen() } else { 0 };
        scene.again(dealt_seq);
        scene.finish(100);
        assert_eq!(scene.log.lines()[1..], ["early node: 1.1 at 100"]);
        let expected = if dealt { -900 } else { -2100 };
        assert_eq!(scene.last_signal().node_lateness_insns, expected);
    }
}

#[test]
fn failure_may_be_dealt_with_by_a_plan_after_the_next() {
    // No process has run under the plan between, therefore nothing was reported again.
    let seen = |scene: &Scene| scene.log.signals()[0].0 + 1;
    let mut scene = late_process();
    scene.again(0);
    scene.again(seen(&scene));
    assert_eq!(scene.lateness(), [0, 50]);
    for mut scene in [late_node(), early_node()] {
        scene.again(0);
        scene.again(seen(&scene));
        assert_eq!(scene.lateness(), [0, 0]);
    }
    // Once dealt with, it is no matter of the plans that follow.
    let mut scene = late_process();
    let dealt_seq = scene.all_seen();
    scene.again(dealt_seq);
    scene.finish(1090);
    scene.again(dealt_seq + 1);
    assert_eq!(scene.lateness(), [90, 50]);
    // Reported anew, it must be dealt with anew; information on the way to that leaves the older
    // one open.
    let mut scene = late_process();
    let dealt_seq = scene.all_seen();
    scene.again(0);
    scene.run_as_told(1100);
    scene.again(dealt_seq);
    assert_eq!(scene.lateness(), [201, 50]);
}

#[test]
fn task_and_preemptions_may_be_dealt_with_by_a_plan_after_the_next() {
    let config = Config {
        max_preemptions: 1,
        ..on(&[Threshold::T1, Threshold::T2Task, Threshold::T2Preemptions])
    };
    let mut scene = Scene::ready(config, tasks(&SLOTS));
    scene.run(1100);
    scene.finish(1000);
    scene.run_as_told(500);
    let lines = ["late preemptions: 1.0 at 1100", "late task: 1.0 at 1501"];
    assert_eq!(scene.log.lines(), lines);
    let dealt_seq = scene.all_seen();
    // The process does not run under the plan between, and signals nothing again.
    let between = tasks(&[(3, 0, 1000), (1, 0, 1000), (1, 1, 1000)]);
    scene.set(2, Presence::Blocked);
    scene.set(1, Presence::Blocked);
    scene.swap_with(config, between, 0);
    assert_eq!(scene.last.grant, None);
    scene.again(dealt_seq);
    assert_eq!(scene.node.process(0).unwrap().preemptions, 0);
    scene.set(1, Presence::Ready);
    scene.run_as_told(1000);
    assert_eq!(scene.log.lines(), lines);
}

#[test]
fn stress_and_information_begin_anew_with_every() {
    let config = Config {
        stress_gain_ns: 100,
        ..on(&[Threshold::T2Process, Threshold::Info])
    };
    let mut scene = Scene::ready(config, tasks(&SLOTS));
    scene.wait(1_000_000);
    scene.run_as_told(1076);
    let levels: Vec<_> = scene
        .log
        .signals()
        .iter()
        .map(|s| s.1.level_percent)
        .collect();
    assert_eq!(levels, [25, 50, 75]);
    assert_eq!(scene.node.thresholds(scene.now_ns).stress, 0);
    // Even one that deals with nothing.
    scene.now_ns = 2_050_000;
    scene.again(0);
    for (later_ns, stress) in [(0, 4), (99_999, 4), (100_000, 3), (400_000, 0)] {
        let thresholds = scene.node.thresholds(2_050_000 + later_ns);
        assert_eq!(thresholds.stress, stress);
    }
    // 76 late, more than 75 and no more than 100.
    assert_eq!(scene.last.until_ns, Some(2_150_000));
    assert_eq!(scene.log.signals().len(), 3);
    // A quarter of 300, half of 150.
    scene.wait(100_000);
    assert_eq!(scene.log.lines()[3..], ["25 % process: 1.0 at 1076"]);
    scene.wait(300_000);
    assert_eq!(scene.log.lines()[4..], ["75 % process: 1.0 at 1076"]);
}

#[test]
fn plan_without_failures_to_deal_with_changes_no_account() {
    let mut scene = scene(on(&[Threshold::T2Process]), &[(1, 1000), (1, 1000)]);
    scene.finish(1090);
    let plan = tasks(&[(1, 0, 1000), (1, 1, 1000)]);
    let config = *scene.node.config();
    scene.swap_with(config, plan, u64::MAX);
    assert_eq!(scene.node.process_lateness_insns(0), 90);
}

#[test]
fn new_configuration_is_that_of_the_new_plan() {
    let mut scene = start(&[Threshold::T2Task]);
    scene.run_as_told(1400);
    let strict = Config {
        sigma_t2_permille: 1200,
        ..*scene.node.config()
    };
    scene.swap_with(strict, tasks(&SLOTS), 0);
    assert_eq!(scene.log.lines(), ["late task: 1.0 at 1400"]);
    assert_eq!(scene.last_signal().value, 1200);
}

/// Checks a plan with these slots that follows `old`.
fn check_over(old: &Scene, slots: &[(u32, u32, u64)]) -> Result<(), Refusal> {
    Scene::absent(CONFIG, tasks(slots)).node_over(old)
}

impl Scene {
    fn node_over(&self, old: &Scene) -> Result<(), Refusal> {
        self.node.check_over(&old.node, 0)
    }
}

#[test]
fn plan_that_gives_an_ended_process_nothing_to_do_is_refused() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (2, 1000)]);
    scene.finish(1000);
    scene.finish(1000);
    let both = [(1, 0, 10), (2, 1, 10)];
    let refusal = check_over(&scene, &both).unwrap_err();
    assert_eq!(refusal.fault, Fault::ProcessEnded { process: 1 });
    assert_eq!(refusal.errno(), Errno::NoProcess);
    assert!(refusal.to_string().contains("process 1"), "{refusal}");
    // With something that it has not done, or without it, or for others.
    assert_eq!(check_over(&scene, &[(1, 0, 10), (1, 1, 10)]), Ok(()));
    assert_eq!(check_over(&scene, &[(2, 1, 10)]), Ok(()));
    assert_eq!(check_over(&scene, &[(1, 7, 10), (2, 0, 10)]), Ok(()));
    // A process that has nothing to do but has not ended is dropped.
    assert_eq!(check_over(&scene, &[(2, 0, 10)]), Ok(()));
    // What is dead has ended too.
    scene.exit(2);
    assert_eq!(check_over(&scene, &[(2, 1, 10)]), Ok(()));
}

/// A plan of two processes, of which the second waits for the first.
fn plan_with_edge() -> Plan<StdMemory> {
    text::plan_of(text::Cpu {
        edges: [(2, 0, 1, 0)].to_vec(),
        ..text::Cpu::numbered(0, &[(1, 1000), (2, 1000), (2, 1000)])
    })
}

/// The refusal of a plan in which task 0 of process 2 waits for task 0 of process 1, after this
/// plan has gone on.
fn check_begun(old: &Scene) -> Result<(), Refusal> {
    let mut new = Scene::absent(CONFIG, plan_with_edge()).node;
    new.begin(Some(&old.node), 1, old.now_ns);
    let refused = new.check_begun(|_| None);
    let at_last = (0..2).try_for_each(|p| new.check_begun_at_last(p));
    assert_eq!(at_last, refused);
    refused
}

#[test]
fn plan_that_lets_a_begun_task_wait_is_refused() {
    // Process 2 has not begun, or process 1 has ended before.
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (2, 1000)]);
    scene.run(100);
    assert_eq!(check_begun(&scene), Ok(()));
    scene.finish(900);
    scene.run(100);
    assert_eq!(check_begun(&scene), Ok(()));

    // Process 2 is in its first task, and then behind it.
    let mut scene = Scene::new(&[(2, 1000), (1, 1000), (2, 1000)]);
    assert_eq!(check_begun(&scene), Ok(()));
    scene.run(100);
    let refusal = check_begun(&scene).unwrap_err();
    let fault = Fault::TaskBegun {
        process: 2,
        task: 0,
        after: 1,
        after_task: 0,
    };
    assert_eq!(refusal.fault, fault);
    assert_eq!(refusal.errno(), Errno::NoProcess);
    let text = refusal.to_string();
    assert!(
        text.contains("process 2") && text.contains("process 1"),
        "{text}"
    );
    scene.finish(900);
    assert_eq!(check_begun(&scene).unwrap_err().fault, fault);
    scene.run(100);
    assert_eq!(check_begun(&scene).unwrap_err().fault, fault);
    // What is dead holds nothing.
    scene.exit(1);
    assert_eq!(check_begun(&scene), Ok(()));
}

#[test]
fn task_that_handles_a_signal_while_it_waits_has_not_begun() {
    let mut scene = Scene::ready(CONFIG, plan_with_edge());
    scene.run(100);
    let waiting = scene.index(2);
    scene.node.charge(waiting, 50);
    assert_eq!(check_begun(&scene), Ok(()));
    // It begins in its slot, and then another plan lets it wait for what comes after.
    scene.finish(900);
    scene.run(100);
    assert_eq!(check_begun(&scene), Ok(()));
}

#[test]
fn plan_that_runs_again_refuses_no_begun_task() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000)]);
    scene.finish(1000);
    scene.run(100);
    scene.set(2, Presence::Absent);
    scene.wait(1_000_000_000);
    assert!(scene.node.ended());
    let mut new = Scene::absent(CONFIG, plan_with_edge()).node;
    new.begin(Some(&scene.node), 0, scene.now_ns);
    assert_eq!(new.check_begun(|_| None), Ok(()));
}

#[test]
fn progress_of_a_process_is_that_of_the_plan_in_force() {
    let mut scene = Scene::new(&[(1, 1000), (2, 1000), (1, 1000)]);
    let new = Scene::absent(
        CONFIG,
        text::plan_of(text::Cpu::numbered(0, &[(1, 1000), (1, 1000)])),
    );
    let ended = |scene: &Scene| new.node.progress_after(&scene.node, 0, 1);
    assert_eq!(ended(&scene).map(|ended| ended.before_task), Some(0));
    scene.finish(1000);
    assert_eq!(ended(&scene).map(|ended| ended.before_task), Some(1));
    assert_eq!(new.node.progress_after(&scene.node, 7, 1), None);
}

#[test]
fn ended_plan_may_be_followed_by_the_same() {
    let mut scene = Scene::new(&[(1, 1000)]);
    scene.finish(1000);
    assert!(scene.node.ended());
    assert_eq!(check_over(&scene, &[(1, 0, 1000)]), Ok(()));
}

#[test]
fn plan_that_deals_with_the_future_is_refused() {
    let with = |dealt_seq| {
        let mut bytes = text::write(1, None, &[text::Cpu::numbered(0, &[(1, 1000)])]);
        bytes[40..48].copy_from_slice(&u64::to_ne_bytes(dealt_seq));
        bytes
    };
    let check = |dealt_seq, next_seq| {
        let bytes = with(dealt_seq);
        let message = Message::parse::<StdMemory>(&bytes).unwrap();
        assert_eq!(message.dealt_seq(), dealt_seq);
        message.check_dealt(next_seq)
    };
    assert_eq!(check(0, 0), Ok(()));
    assert_eq!(check(7, 7), Ok(()));
    assert_eq!(check(7, 8), Ok(()));
    let refusal = check(8, 7).unwrap_err();
    assert_eq!(refusal.fault, Fault::DealtSeq { found: 8, next: 7 });
    assert_eq!(refusal.offset_bytes, 40);
    assert_eq!(refusal.errno(), Errno::Invalid);
    let text = refusal.to_string();
    assert!(text.contains('8') && text.contains('7'), "{text}");
    assert!(check(u64::MAX, 0).is_err());
}
