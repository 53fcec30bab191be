// SPDX-License-Identifier: GPL-2.0

//! A node played by hand: processes by id, one instruction a nanosecond,
//! invariants checked at every step.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::wire::IDLE;
use crate::StdMemory;
use crate::{
    Config, Decision, Ended, Event, EventKind, Grant, Node, Plan, Presence, Rate, Sink, Threshold,
};

use super::text;

pub(super) const RATE: Rate = Rate::new(1_000_000);

/// No unallocated time for a day: a scene is about slots alone.
pub(super) const CONFIG: Config = Config {
    sigma_t1_permille: 1100,
    preemption_limit_ns: 1_000_000,
    no_preemption_ns: 10,
    ceiling_factor_permille: 2000,
    ceiling_extra_ns: 1000,
    window_period_ns: 86_400_000_000_000,
    window_unallocated_ns: 1,
    sigma_t2_permille: 100_000,
    t2_spacer_ns: 1 << 48,
    t2_task_signaling_limit_ns: 1 << 49,
    thresholds: Threshold::T1 as u64,
    t1_spares_last_slot: 0,
    ..Config::DEFAULT
};

fn line(event: &Event) -> String {
    let Event {
        process,
        task,
        retired_insns,
        ..
    } = *event;
    let kind = match event.kind {
        EventKind::Info => format!("{} %", event.level_percent),
        kind => {
            assert_eq!(event.level_percent, 100);
            kind.name().to_string()
        }
    };
    let cause = match event.reason {
        1 => "task",
        2 => "process",
        3 => "node",
        4 => "preemptions",
        5 => "memory",
        6 => "node_memory",
        7 => "message",
        8 => "start",
        9 => "end",
        reason => panic!("cause {reason}"),
    };
    format!("{kind} {cause}: {process}.{task} at {retired_insns}")
}

/// The events; the progress of processes of other CPUs, by their ids; and the ids of those that are
/// awaited.
#[derive(Default)]
pub(super) struct Log(
    pub(super) Vec<Event>,
    pub(super) BTreeMap<u32, Ended>,
    pub(super) Vec<u32>,
);

impl Sink for Log {
    fn emit(&mut self, event: &Event) -> u64 {
        self.0.push(*event);
        self.0.len() as u64 - 1
    }

    fn await_elsewhere(&mut self, predecessor: u32, _task: u32) -> Ended {
        let id = self.2.get(predecessor as usize);
        let ended = id.and_then(|id| self.1.get(id));
        ended.copied().unwrap_or(Ended::NOTHING)
    }
}

impl Log {
    pub(super) fn of(&self, kind: EventKind) -> Vec<Event> {
        self.0
            .iter()
            .copied()
            .filter(|event| event.kind == kind)
            .collect()
    }

    /// (process, task) of the events of a kind.
    pub(super) fn tasks(&self, kind: EventKind) -> Vec<(u32, u32)> {
        self.of(kind)
            .iter()
            .map(|event| (event.process, event.task))
            .collect()
    }

    /// All signals but warnings, with their numbers among the events.
    pub(super) fn signals(&self) -> Vec<(u64, Event)> {
        let events = self.0.iter().copied().zip(0..);
        let signals = events.map(|(event, seq)| (seq, event));
        let kinds = [EventKind::Late, EventKind::Early, EventKind::Info];
        signals
            .filter(|(_, event)| kinds.contains(&event.kind))
            .collect()
    }

    /// Number of the next event.
    pub(super) fn next_seq(&self) -> u64 {
        self.0.len() as u64
    }

    /// Signals as a test compares them, in one line each: kind, cause, process, task, and
    /// instructions retired by the task.
    pub(super) fn lines(&self) -> Vec<String> {
        let signals = self.signals().into_iter();
        signals.map(|(_, event)| line(&event)).collect()
    }

    /// (process, slot) of the grants.
    pub(super) fn grants(&self) -> Vec<(u32, u64)> {
        let grants = self.of(EventKind::Grant);
        grants
            .iter()
            .map(|event| (event.process, event.slot))
            .collect()
    }
}

pub(super) struct Scene {
    pub(super) node: Node<StdMemory>,
    pub(super) now_ns: u64,
    pub(super) log: Log,
    pub(super) last: Decision,
}

impl Scene {
    /// All processes ready, the first decision made.
    pub(super) fn new(slots: &[(u32, u64)]) -> Scene {
        Scene::ready(CONFIG, text::plan(slots))
    }

    /// A scene of any plan: all processes ready, the first decision made.
    pub(super) fn ready(config: Config, plan: Plan<StdMemory>) -> Scene {
        let mut scene = Scene::absent(config, plan);
        for p in 0..scene.node.plan().processes().len() as u32 {
            scene.node.set_presence(p, Presence::Ready);
        }
        scene.decide();
        scene
    }

    /// All processes absent, nothing decided yet.
    pub(super) fn absent(config: Config, plan: Plan<StdMemory>) -> Scene {
        Scene {
            node: Node::new(plan, config, RATE, 7, 0).unwrap(),
            now_ns: 0,
            log: Log::default(),
            last: Decision {
                grant: None,
                reason: Grant::None,
                unallocated: false,
                until_insns: None,
                until_ns: None,
                again: false,
            },
        }
    }

    pub(super) fn index(&self, id: u32) -> u32 {
        self.node.plan().find(id).unwrap()
    }

    pub(super) fn decide(&mut self) -> Decision {
        let cursor = self.node.cursor();
        self.last = self.node.decide(self.now_ns, &mut self.log);
        self.node.check_invariants();
        assert!(self.node.cursor() - cursor <= 128);
        self.last
    }

    /// Time until the clock requires a decision.
    pub(super) fn left_ns(&self) -> Option<u64> {
        self.last.until_ns.map(|until_ns| until_ns - self.now_ns)
    }

    /// Id of the process that may run, `IDLE` for none.
    pub(super) fn granted(&self) -> u32 {
        let process = |p| self.node.plan().process(p).unwrap().id;
        self.last.grant.map_or(IDLE, process)
    }

    pub(super) fn set(&mut self, id: u32, presence: Presence) {
        self.node.set_presence(self.index(id), presence);
        self.decide();
    }

    /// The granted process retires `insns`, one a nanosecond.
    pub(super) fn run(&mut self, insns: u64) {
        self.node.charge(self.last.grant.unwrap(), insns);
        self.now_ns += insns;
        self.decide();
    }

    pub(super) fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        self.decide();
    }

    /// The granted process retires `insns` and its task ends.
    pub(super) fn finish(&mut self, insns: u64) -> Option<u32> {
        let p = self.last.grant.unwrap();
        self.node.charge(p, insns);
        self.now_ns += insns;
        let next = self.node.end_task(p, self.now_ns, &mut self.log);
        self.decide();
        next
    }

    /// Runs the granted process for `insns` in all, each time exactly as long as the node need not
    /// be asked.
    pub(super) fn run_as_told(&mut self, mut insns: u64) {
        while insns > 0 {
            let step_insns = self.last.until_insns.unwrap_or(insns).min(insns);
            assert!(step_insns > 0);
            self.run(step_insns);
            insns -= step_insns;
        }
    }

    /// Swaps in a plan with this configuration, which deals with the failures of the events before
    /// `dealt_seq`.
    pub(super) fn swap_with(&mut self, config: Config, plan: Plan<StdMemory>, dealt_seq: u64) {
        let mut node = Node::new(plan, config, RATE, 8, self.now_ns).unwrap();
        node.begin(Some(&self.node), dealt_seq, self.now_ns);
        node.check_invariants();
        self.node = node;
        self.decide();
    }

    /// Decides until a decision leaves nothing to do.
    pub(super) fn decide_all(&mut self) {
        while self.last.again {
            self.decide();
        }
    }

    pub(super) fn exit(&mut self, id: u32) {
        self.node
            .end_process(self.index(id), self.now_ns, &mut self.log);
        self.decide();
    }
}
