// SPDX-License-Identifier: GPL-2.0

//! Prediction failures of memory: a process uses more than its planned peak, or
//! all processes of the node together more than the plan may use.
//!
//! The thresholds are compared with the *resident* size, which the planner reserves and
//! which takes memory away from others; the thesis on memory (Glaß 2024) samples the
//! virtual size, an upper bound that programs exceed many times over.  A process counts
//! with its peak until it ends, as it is planned.  Therefore its share only grows while it
//! runs, and a sample that is no new peak changes nothing.
//!
//! A planned peak is a prediction, and has a threshold around it
//! ([`Config::t2_memory_bytes`](super::Config::t2_memory_bytes)); the limit of
//! the node is its memory, and is itself the threshold.  As with lateness, a
//! failure is reported once until a plan deals with it.
//!
//! The levels before a failure are reported only for a process that uses more than its
//! planned peak: a run that uses exactly what was planned signals nothing.

use super::config::Threshold;
use super::event::{Cause, Event, EventKind, Sink};
use super::input::{Input, InputKind};
use super::level::{Level, FAILURE};
use super::memory::Memory;
use super::node::Node;
use super::run::Run;

/// The levels on the way to a threshold; the last is the failure.
const LEVELS: [u32; 3] = [75, 90, FAILURE];

/// Whether `used_bytes` is more than `percent` of the limit.
fn exceeds(used_bytes: u64, limit_bytes: u64, percent: u32) -> bool {
    u128::from(used_bytes) * u128::from(FAILURE) > u128::from(limit_bytes) * u128::from(percent)
}

impl<M: Memory> Node<M> {
    /// Takes a sample of the memory of `p`: virtual and resident size.  Returns whether the sample
    /// changes the memory with which `p` counts.
    ///
    /// In that case publish [`memory_bytes`](Node::memory_bytes) to the other CPUs, then
    /// [check](Node::watch_memory) the thresholds.
    pub fn memory(&mut self, p: u32, vm_bytes: u64, rss_bytes: u64) -> bool {
        let Some(is_new) = self.processes.sample_memory(p, vm_bytes, rss_bytes) else {
            return false;
        };
        self.note(move |_| Input {
            process: p,
            reason: is_new.into(),
            value: vm_bytes,
            more: rss_bytes,
            ..Input::of(InputKind::Memory)
        });
        is_new
    }

    /// Whether samples of `p` are of no use later: it has not begun, and its first sample after
    /// that is new.
    pub fn is_sampled_too_early(&self, p: u32) -> bool {
        let run = self.processes.get(p);
        run.is_some_and(|run| !run.done && !run.is_active())
    }

    /// Sum of the memory peaks of the processes of this CPU that have begun and not ended.
    pub fn memory_bytes(&self) -> u64 {
        self.processes.sums().memory_bytes()
    }

    /// Checks the thresholds of memory after a sample of `p`;
    /// `elsewhere_bytes` is the [`memory_bytes`](Node::memory_bytes) of all other
    /// CPUs together.
    pub fn watch_memory(
        &mut self,
        p: u32,
        elsewhere_bytes: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        self.check_memory(p, elsewhere_bytes, now_ns, sink);
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: elsewhere_bytes,
            more: node.memory_bytes(),
            ..Input::of(InputKind::WatchMemory)
        });
    }

    fn check_memory(&mut self, p: u32, elsewhere_bytes: u64, now_ns: u64, sink: &mut impl Sink) {
        self.signals.elsewhere_bytes = elsewhere_bytes;
        let Some(run) = self.processes.get(p) else {
            return;
        };
        if !self.policy.config.has(Threshold::T2Memory) || run.done {
            return;
        }
        let (used_bytes, reported) = (run.process_peak.rss_bytes, run.reported.memory);
        let limit_bytes = self.t2_memory_bytes(p);
        let level = self.report_limit(
            (Cause::Memory, used_bytes, limit_bytes),
            reported,
            p,
            now_ns,
            sink,
        );
        if level != reported {
            self.processes
                .update_task(p, |run| run.reported.memory = level);
        }
        let limit = (
            Cause::NodeMemory,
            self.memory_together_bytes(),
            self.plan.memory_bytes,
        );
        let level = self.report_limit(limit, self.signals.memory, p, now_ns, sink);
        self.signals.memory = level;
    }

    /// Whether a process is beyond its threshold.
    pub(super) fn has_too_much(&self, p: u32, run: &Run) -> bool {
        let limit_bytes = self.t2_memory_bytes(p);
        limit_bytes != 0 && run.process_peak.rss_bytes > limit_bytes
    }

    /// Whether the node is beyond its limit, as far as is known.
    pub(super) fn has_too_much_together(&self) -> bool {
        let limit_bytes = self.plan.memory_bytes;
        limit_bytes != 0 && self.memory_together_bytes() > limit_bytes
    }

    fn memory_together_bytes(&self) -> u64 {
        self.memory_bytes()
            .saturating_add(self.signals.elsewhere_bytes)
    }

    /// Whether a process uses more memory than was planned for it.  Without a planned peak,
    /// nothing was.
    fn uses_unplanned_memory(&self, p: u32) -> bool {
        let planned_bytes = self.plan.process(p).map_or(0, |p| p.memory_bytes);
        let used_bytes = (self.processes.get(p)).map_or(0, |run| run.process_peak.rss_bytes);
        used_bytes > planned_bytes
    }

    /// The threshold of a process; 0: it has none.
    pub(super) fn t2_memory_bytes(&self, p: u32) -> u64 {
        match self.plan.process(p).map_or(0, |p| p.memory_bytes) {
            0 => 0,
            planned_bytes => self.policy.config.t2_memory_bytes(planned_bytes),
        }
    }

    /// Reports the greatest level that is reached of a limit (its cause, the memory in use,
    /// the limit or 0 for none), if it is above the one that was reported.  Returns the
    /// level that is reported now.
    fn report_limit(
        &mut self,
        (cause, memory_bytes, limit_bytes): (Cause, u64, u64),
        reported: Level,
        p: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Level {
        if limit_bytes == 0 {
            return reported;
        }
        let info = self.policy.config.has(Threshold::Info);
        let is_unplanned = self.uses_unplanned_memory(p);
        let reached = LEVELS.into_iter().rev().find(|&percent| {
            ((info && is_unplanned) || percent == FAILURE)
                && exceeds(memory_bytes, limit_bytes, percent)
        });
        let Some(percent) = reached.filter(|&percent| reported.is_below(percent)) else {
            return reported;
        };
        let kind = if percent == FAILURE {
            EventKind::Late
        } else {
            EventKind::Info
        };
        let event = Event {
            value: limit_bytes,
            level_percent: percent,
            memory_bytes,
            ..self.signal(kind, cause, p, now_ns)
        };
        let seq = self.report(event, sink);
        reported.reported(percent, seq)
    }
}
