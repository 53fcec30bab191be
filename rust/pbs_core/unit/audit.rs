// SPDX-License-Identifier: GPL-2.0

//! Checks that every signal is true and reported once, and that nothing true is left unreported,
//! using what a node shows of itself and the formulas.

use std::collections::BTreeMap;
use std::vec::Vec;

use crate::{Cause, Event, EventKind, Node, StdMemory, Threshold};

/// Subject of a signal: cause, process, task.
type Subject = (u16, u32, u32);

#[derive(Default)]
pub(super) struct Audit {
    /// The greatest level that was reported.
    told: BTreeMap<Subject, u32>,
    early_node: bool,
    /// Number of events that were read.
    read: usize,
}

fn subject(cause: Cause, process: u32, task: u32) -> Subject {
    match cause {
        Cause::Task | Cause::Preemptions | Cause::Message => (cause as u16, process, task),
        // A task is reported once, whichever of both it is.
        Cause::Start | Cause::End => (Cause::Start as u16, process, task),
        Cause::Process | Cause::Memory => (cause as u16, process, 0),
        Cause::Node | Cause::NodeMemory => (cause as u16, 0, 0),
    }
}

/// Whether `lateness` is greater than `percent` of `limit`, rounded down.
fn exceeds(lateness_insns: i64, limit_insns: u64, percent: u32) -> bool {
    let level = u128::from(limit_insns) * u128::from(percent) / 100;
    i128::from(lateness_insns) > level as i128
}

/// Facts about process `p` that are true now.
pub(super) fn truths(node: &Node<StdMemory>, p: u32, now_ns: u64) -> Vec<(Subject, u32)> {
    let mut truths = Vec::new();
    let info = node.process(p).unwrap();
    if info.done || info.retired_insns <= info.planned_insns {
        return truths;
    }
    let config = node.config();
    let mut add = |threshold, cause, percent| {
        if config.has(threshold) {
            truths.push((subject(cause, info.id, info.task), percent));
        }
    };
    if info.retired_insns > node.policy().t2_task_insns(info.planned_insns) {
        add(Threshold::T2Task, Cause::Task, 100);
    }
    let t2_preemptions = config.t2_preemptions();
    if t2_preemptions.is_some_and(|most| u64::from(info.preemptions) >= most) {
        add(Threshold::T2Preemptions, Cause::Preemptions, 100);
    }
    let thresholds = node.thresholds(now_ns);
    let process_insns = node.process_limit_insns(p, now_ns);
    for percent in [25, 50, 75, 100] {
        if percent != 100 && !config.has(Threshold::Info) {
            continue;
        }
        if exceeds(info.lateness_insns, process_insns, percent) {
            add(Threshold::T2Process, Cause::Process, percent);
        }
        if exceeds(thresholds.lateness_insns, thresholds.t2_node_insns, percent) {
            add(Threshold::T2Node, Cause::Node, percent);
        }
    }
    truths
}

impl Audit {
    /// Reads the events that arrived meanwhile; all of `truths` must have been reported by now.
    pub(super) fn check(
        &mut self,
        node: &Node<StdMemory>,
        events: &[Event],
        truths: &[(Subject, u32)],
    ) {
        for event in &events[self.read..] {
            match event.kind {
                EventKind::Late | EventKind::Info => self.read_late(node, event),
                EventKind::Early => self.read_early(event),
                _ => {}
            }
        }
        self.read = events.len();
        for &(subject, percent) in truths {
            let told = self.told.get(&subject).copied().unwrap_or(0);
            assert!(told >= percent, "{subject:?}: {told} % told of {percent} %");
        }
    }

    fn read_late(&mut self, node: &Node<StdMemory>, event: &Event) {
        let percent = event.level_percent;
        if let Some(cause) = [Cause::Start, Cause::End]
            .into_iter()
            .find(|&cause| event.reason == cause as u16)
        {
            assert_eq!((event.kind, percent), (EventKind::Info, 100));
            let off_ns = event.value.cast_signed().unsigned_abs();
            let timeliness_ns = node.config().timeliness_ns;
            assert!(timeliness_ns != 0 && off_ns > timeliness_ns);
            let subject = subject(cause, event.process, event.task);
            let before = self.told.insert(subject, percent);
            assert_eq!(before, None, "{subject:?} is told again");
            return;
        }
        assert_eq!(percent == 100, event.kind == EventKind::Late);
        let config = node.config();
        let (cause, threshold) = match event.reason {
            1 => (Cause::Task, Threshold::T2Task),
            2 => (Cause::Process, Threshold::T2Process),
            3 => (Cause::Node, Threshold::T2Node),
            4 => (Cause::Preemptions, Threshold::T2Preemptions),
            7 => (Cause::Message, Threshold::T2Message),
            reason => panic!("cause {reason}"),
        };
        assert!(config.has(threshold));
        assert!(percent == 100 || config.has(Threshold::Info));
        match cause {
            Cause::Task => {
                assert_eq!(
                    event.value,
                    node.policy().t2_task_insns(event.planned_insns)
                );
                assert!(event.retired_insns > event.value);
            }
            Cause::Process => assert!(exceeds(event.lateness_insns, event.value, percent)),
            Cause::Node => assert!(exceeds(event.node_lateness_insns, event.value, percent)),
            Cause::Memory | Cause::NodeMemory => unreachable!("no plan of these tests has memory"),
            Cause::Start | Cause::End => unreachable!("they have no threshold"),
            Cause::Message => {
                // One instruction a nanosecond.
                let limit_ns = config.t2_message_limit_ns(event.stress.into());
                assert!(event.retired_insns > limit_ns * u64::from(percent) / 100);
                let sender = ((event.value >> 32) as u32, event.value as u32);
                let waits = node.plan().find(event.process);
                assert_ne!((event.process, event.task), sender);
                assert!(waits.is_some());
                // Another message of the task begins a new account.
                return;
            }
            Cause::Preemptions => {
                assert_eq!(Some(event.value), config.t2_preemptions());
                assert!(u64::from(event.preemptions) >= event.value);
            }
        }
        let subject = subject(cause, event.process, event.task);
        let before = self.told.insert(subject, percent).unwrap_or(0);
        assert!(before < percent, "{subject:?} is told again");
    }

    fn read_early(&mut self, event: &Event) {
        if event.reason == Cause::Task as u16 {
            assert!(event.retired_insns < event.value);
            return;
        }
        if event.reason == Cause::Message as u16 {
            assert_eq!(event.stress, 0);
            return;
        }
        assert_eq!(event.reason, Cause::Node as u16);
        assert_eq!(event.stress, 0);
        assert!(event.node_lateness_insns < event.value as i64);
        assert!(!self.early_node, "the node is told to be early again");
        self.early_node = true;
    }
}
