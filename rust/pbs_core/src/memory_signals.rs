// SPDX-License-Identifier: GPL-2.0

//! Prediction failures of memory: a process uses more than its planned peak, or
//! all processes of the node together more than the plan may use.
//!
//! What is compared is the *resident* size, which is what the planner reserves
//! and what takes memory away from others; the thesis on memory (Glaß 2024)
//! samples the virtual size, which is an upper bound of it that programs exceed
//! many times over.  A process counts with its peak until it ends, as it is
//! planned: so what is known only grows while it runs, and a sample that is no
//! new peak has nothing to tell.
//!
//! A planned peak is a prediction, and has a threshold around it
//! ([`Config::t2_memory_bytes`](super::Config::t2_memory_bytes)); the limit of
//! the node is what there is, and is itself the threshold.  As with lateness, a
//! failure is told once until a plan deals with it.

use super::config::Threshold;
use super::event::{Cause, Event, EventKind, Sink};
use super::input::{Input, InputKind};
use super::level::{Level, FAILURE};
use super::memory::Memory;
use super::node::Node;
use super::run::Run;

/// The levels on the way to a threshold; the last is the failure.
const LEVELS: [u32; 3] = [75, 90, FAILURE];

/// Is it more than `percent` of the limit?
fn exceeds(used_bytes: u64, limit_bytes: u64, percent: u32) -> bool {
    u128::from(used_bytes) * u128::from(FAILURE) > u128::from(limit_bytes) * u128::from(percent)
}

impl<M: Memory> Node<M> {
    /// `p` was seen using as much memory: virtual and resident size.  Returns
    /// whether that says anything new of what it counts with.
    ///
    /// If so, and when other CPUs have heard of
    /// [`memory_bytes`](Node::memory_bytes), have the thresholds
    /// [looked at](Node::watch_memory).
    pub fn memory(&mut self, p: u32, vm_bytes: u64, rss_bytes: u64) -> bool {
        let mut is_new = false;
        if let Some(run) = self.runs.get_mut(p as usize) {
            let before_bytes = run.process_peak.rss_bytes;
            run.process_peak.raise(vm_bytes, rss_bytes);
            if !run.done {
                run.peak.raise(vm_bytes, rss_bytes);
            }
            let more_bytes = run.process_peak.rss_bytes - before_bytes;
            if run.is_active() {
                // The first sample under a plan may be beyond what that has for it.
                is_new = !core::mem::replace(&mut run.sampled, true) || more_bytes != 0;
                if more_bytes != 0 {
                    self.sums.add_memory(more_bytes);
                }
            }
            if run.copied {
                self.note_change(p);
            }
            self.note(move |_| Input {
                process: p,
                reason: is_new.into(),
                value: vm_bytes,
                more: rss_bytes,
                ..Input::of(InputKind::Memory)
            });
        }
        is_new
    }

    /// What the processes of this CPU that have begun and not ended have used at
    /// most, each by itself.
    pub fn memory_bytes(&self) -> u64 {
        self.sums.memory_bytes()
    }

    /// Looks at the thresholds of memory after a sample of `p`;
    /// `elsewhere_bytes` is the [`memory_bytes`](Node::memory_bytes) of all other
    /// CPUs together.
    pub fn watch_memory(
        &mut self,
        p: u32,
        elsewhere_bytes: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        self.look_at_memory(p, elsewhere_bytes, now_ns, sink);
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: elsewhere_bytes,
            more: node.memory_bytes(),
            ..Input::of(InputKind::WatchMemory)
        });
    }

    fn look_at_memory(&mut self, p: u32, elsewhere_bytes: u64, now_ns: u64, sink: &mut impl Sink) {
        self.elsewhere_bytes = elsewhere_bytes;
        let Some(run) = self.runs.get(p as usize) else {
            return;
        };
        if !self.config().has(Threshold::T2Memory) || run.done {
            return;
        }
        let (used_bytes, told) = (run.process_peak.rss_bytes, run.told.memory);
        let limit_bytes = self.t2_memory_bytes(p);
        let level = self.watch_limit(
            (Cause::Memory, used_bytes, limit_bytes),
            told,
            p,
            now_ns,
            sink,
        );
        if level != told {
            self.update_task(p, |run| run.told.memory = level);
        }
        let limit = (
            Cause::NodeMemory,
            self.memory_together_bytes(),
            self.plan.memory_bytes,
        );
        self.told_memory = self.watch_limit(limit, self.told_memory, p, now_ns, sink);
    }

    /// Is a process beyond its threshold?
    pub(super) fn has_too_much(&self, p: u32, run: &Run) -> bool {
        let limit_bytes = self.t2_memory_bytes(p);
        limit_bytes != 0 && run.process_peak.rss_bytes > limit_bytes
    }

    /// Is the node beyond its limit, as far as is known?
    pub(super) fn has_too_much_together(&self) -> bool {
        let limit_bytes = self.plan.memory_bytes;
        limit_bytes != 0 && self.memory_together_bytes() > limit_bytes
    }

    fn memory_together_bytes(&self) -> u64 {
        self.memory_bytes().saturating_add(self.elsewhere_bytes)
    }

    /// The threshold of a process; 0: it has none.
    pub(super) fn t2_memory_bytes(&self, p: u32) -> u64 {
        match self.plan.process(p).map_or(0, |p| p.memory_bytes) {
            0 => 0,
            planned_bytes => self.config().t2_memory_bytes(planned_bytes),
        }
    }

    /// Tells the greatest level that is reached of a limit (what it is about,
    /// what is used, the limit, 0: none), if it is above the one that was told.
    /// Returns what has been told now.
    fn watch_limit(
        &mut self,
        (cause, memory_bytes, limit_bytes): (Cause, u64, u64),
        told: Level,
        p: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Level {
        if limit_bytes == 0 {
            return told;
        }
        let info = self.config().has(Threshold::Info);
        let reached = LEVELS.into_iter().rev().find(|&percent| {
            (info || percent == FAILURE) && exceeds(memory_bytes, limit_bytes, percent)
        });
        let Some(percent) = reached.filter(|&percent| told.is_below(percent)) else {
            return told;
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
        let seq = self.tell(event, sink);
        told.told(percent, seq)
    }
}
