// SPDX-License-Identifier: GPL-2.0

//! Reports of a node: events, and the moments at which grants are reported.
//!
//! Processes that block and wake up hand the CPU over many times in a slot, and most of
//! these grants mean nothing to a reader of events: their shares of time show in no
//! picture.  Therefore only the first grant of each slot is reported at once.  Another one
//! in the same slot is pending: it is reported before any other event, or by the first
//! decision after it has lasted for [`LASTS_INSNS`].  A grant that is replaced before
//! leaves no event.  The event has the moment of the decision, whenever it is emitted.

use super::event::{Event, EventKind, Sink};
use super::grant::{PendingGrant, ReportedGrant};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::run::Peak;
use super::wire::format;

/// Instructions for which a grant must stand, at the node's rate, to have lasted.
const LASTS_INSNS: u64 = 100_000;

impl<M: Memory> Node<M> {
    /// Notes the present grant for a report, if it is another one than before.
    pub(super) fn note_grant(&mut self, slot: u64, now_ns: u64, sink: &mut impl Sink) {
        let grant = ReportedGrant {
            process: self.grant.process(),
            slot,
            reason: self.grant.reason(),
        };
        if !self.grant_reports.is_new(&grant) {
            return;
        }
        let run = grant.process.and_then(|p| self.processes.get(p));
        let mut is_first = self.grant_reports.set_pending(PendingGrant {
            grant,
            since_ns: now_ns,
            retired_insns: run.map_or(0, |run| run.retired_insns),
            node_lateness_insns: self.processes.sums().lateness_insns(),
        });
        if self.floats() {
            // Slots change as often as processes do.
            is_first = grant.process.is_some_and(|p| self.floating.show(p));
        }
        if is_first {
            self.report_pending_grant(sink);
        }
    }

    /// Reports the pending grant, if it has lasted.
    #[inline]
    pub(super) fn report_lasting_grant(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if let Some(since_ns) = self.grant_reports.pending_since_ns() {
            let lasts_ns = now_ns.saturating_sub(since_ns);
            if lasts_ns >= self.rates.cpu().to_ns(LASTS_INSNS) {
                self.tell_untold(sink);
            }
        }
    }

    /// Reports the pending grant, if there is one, before an event that the user of the
    /// node emits itself.
    #[inline]
    pub fn tell_untold(&mut self, sink: &mut impl Sink) {
        if let Some(pending) = self.grant_reports.take_pending() {
            self.report_grant(&pending, sink);
            self.note(move |_| Input::of(InputKind::TellUntold));
        }
    }

    /// Reports the pending grant, if there is one, within a call of the node.
    #[inline]
    pub(super) fn report_pending_grant(&mut self, sink: &mut impl Sink) {
        if let Some(pending) = self.grant_reports.take_pending() {
            self.report_grant(&pending, sink);
        }
    }

    #[inline(never)]
    fn report_grant(&mut self, pending: &PendingGrant, sink: &mut impl Sink) {
        let grant = &pending.grant;
        self.grant_reports.set_last(*grant);
        let mut event = match grant.process {
            Some(p) => self.process_event(EventKind::Grant, p, pending.since_ns),
            None => Event::new(EventKind::Grant, pending.since_ns),
        };
        // Its task is still the same: the end of a task would have reported the grant.
        if let Some(run) = grant.process.and_then(|p| self.processes.get(p)) {
            event.retired_insns = pending.retired_insns;
            event.lateness_insns = run.lateness_at_insns(pending.retired_insns);
            event.node_lateness_insns = pending.node_lateness_insns;
        }
        event.slot = grant.slot;
        event.reason = grant.reason as u16;
        self.counts.count(EventKind::Grant);
        let seq = sink.emit(&event);
        self.note_event(&event, seq);
    }

    /// Number of the present slot on the wire.
    pub(super) fn slot_on_wire(&self) -> u64 {
        if self.floats() && !self.slot.has_begun() {
            return format::NO_SLOT;
        }
        let number = self.slot.number();
        if (number as usize) < self.plan.slots.len() {
            u64::from(number)
        } else {
            format::NO_SLOT
        }
    }

    /// An event of `kind` about `p` and its current task.
    #[inline(always)]
    pub(super) fn process_event(&self, kind: EventKind, p: u32, now_ns: u64) -> Event {
        let mut event = Event::new(kind, now_ns);
        event.slot = match self.floating.place(p) {
            Some(place) => place.on_wire(),
            None => self.slot_on_wire(),
        };
        let (Some(process), Some(run)) = (self.plan.process(p), self.processes.get(p)) else {
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
        event.node_lateness_insns = self.processes.sums().lateness_insns();
        event
    }

    /// Counts and emits an event; returns its number.  The event is made where it is
    /// emitted, and not copied.
    #[inline(always)]
    pub(super) fn report(&mut self, event: Event, sink: &mut impl Sink) -> u64 {
        self.report_pending_grant(sink);
        self.counts.count(event.kind);
        let seq = sink.emit(&event);
        self.note_event(&event, seq);
        if matches!(event.kind, EventKind::Late | EventKind::Early) {
            self.responses.fail(seq, event.time_ns);
        }
        seq
    }
}
