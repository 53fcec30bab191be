// SPDX-License-Identifier: GPL-2.0

//! Which grants are told, and when.
//!
//! Processes that block and wake up hand the CPU over many times in a slot, and
//! to who reads the events most of that is nothing: it tells of shares of time
//! that no picture shows.  So the first grant of each slot is told at once, and
//! another one in the same slot is told late: before anything else that is told,
//! or by the first decision after it has lasted for [`LASTS_INSNS`].  If still
//! another one comes sooner, it leaves no event.  Whenever it is told, what is
//! told is the moment at which it was decided.

use super::event::{Event, EventKind, Sink};
use super::grant::{Granted, Untold};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::run::Peak;
use super::wire::format;

/// A grant lasts if it stands for as long as it takes to retire so much, at the
/// node's rate.
const LASTS_INSNS: u64 = 100_000;

impl<M: Memory> Node<M> {
    /// The present grant is to be told, if it is another one than before.
    pub(super) fn note_grant(&mut self, slot: u64, now_ns: u64, sink: &mut impl Sink) {
        let granted = Granted {
            process: self.grant,
            slot,
            reason: self.reason,
        };
        if let Some(untold) = &self.untold {
            if untold.granted == granted {
                return;
            }
            // It would have been told if it had lasted.
            self.untold = None;
        }
        if self.told == Some(granted) {
            return;
        }
        let run = granted.process.and_then(|p| self.runs.get(p as usize));
        self.untold = Some(Untold {
            granted,
            since_ns: now_ns,
            retired_insns: run.map_or(0, |run| run.retired_insns),
            node_lateness_insns: self.sums.lateness_insns(),
        });
        let told_in_slot = self.told.is_some_and(|told| told.slot == slot);
        if !told_in_slot {
            self.tell_untold_before(sink);
        }
    }

    /// Tells the present grant, if it is not told yet and has lasted.
    #[inline]
    pub(super) fn tell_lasting(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if let Some(untold) = self.untold {
            let lasts_ns = now_ns.saturating_sub(untold.since_ns);
            if lasts_ns >= self.rate.to_ns(LASTS_INSNS) {
                self.tell_untold(sink);
            }
        }
    }

    /// Tells the present grant, if it is not told yet: something else is told
    /// next.  For events that the user of the node emits itself.
    #[inline]
    pub fn tell_untold(&mut self, sink: &mut impl Sink) {
        if let Some(untold) = self.untold.take() {
            self.tell_granted(&untold, sink);
            self.note(move |_| Input::of(InputKind::TellUntold));
        }
    }

    /// The same within what the node is told.
    #[inline]
    pub(super) fn tell_untold_before(&mut self, sink: &mut impl Sink) {
        if let Some(untold) = self.untold.take() {
            self.tell_granted(&untold, sink);
        }
    }

    #[inline(never)]
    fn tell_granted(&mut self, untold: &Untold, sink: &mut impl Sink) {
        self.told = Some(untold.granted);
        let mut event = match untold.granted.process {
            Some(p) => self.process_event(EventKind::Grant, p, untold.since_ns),
            None => Event::new(EventKind::Grant, untold.since_ns),
        };
        // Its task is the same still: the end of a task is told.
        let run = untold
            .granted
            .process
            .and_then(|p| self.runs.get(p as usize));
        if let Some(run) = run {
            event.retired_insns = untold.retired_insns;
            event.lateness_insns = run.lateness_at_insns(untold.retired_insns);
            event.node_lateness_insns = untold.node_lateness_insns;
        }
        event.slot = untold.granted.slot;
        event.reason = untold.granted.reason as u16;
        self.counts.count(EventKind::Grant);
        let seq = sink.emit(&event);
        self.note_event(&event, seq);
    }

    /// Number of the present slot on the wire.
    pub(super) fn slot_on_wire(&self) -> u64 {
        if (self.cursor as usize) < self.plan.slots.len() {
            u64::from(self.cursor)
        } else {
            format::NO_SLOT
        }
    }

    /// An event of `kind` with all that belongs to `p` and its current task.
    #[inline(always)]
    pub(super) fn process_event(&self, kind: EventKind, p: u32, now_ns: u64) -> Event {
        let mut event = Event::new(kind, now_ns);
        event.slot = self.slot_on_wire();
        let (Some(process), Some(run)) = (self.plan.process(p), self.runs.get(p as usize)) else {
            return event;
        };
        let Peak {
            vm_bytes,
            rss_bytes,
        } = run.peak;
        event.process = process.id;
        event.task = run.task;
        event.planned_insns = run.planned_insns;
        event.retired_insns = run.retired_insns;
        event.lateness_insns = run.lateness_insns();
        event.peak_vm_bytes = vm_bytes;
        event.peak_rss_bytes = rss_bytes;
        event.preemptions = run.preemptions;
        event.node_lateness_insns = self.sums.lateness_insns();
        event
    }

    /// Counts and emits an event; returns its number.  It is made where it is
    /// emitted, and not copied.
    #[inline(always)]
    pub(super) fn tell(&mut self, event: Event, sink: &mut impl Sink) -> u64 {
        self.tell_untold_before(sink);
        self.counts.count(event.kind);
        let seq = sink.emit(&event);
        self.note_event(&event, seq);
        seq
    }
}
