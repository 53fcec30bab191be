// SPDX-License-Identifier: GPL-2.0

//! Record of the inputs of a node, for a replay.
//!
//! A node decides by its inputs alone.  Given the plan, the configuration and the rate with which
//! it began, and all inputs since, the same code makes the same decisions, anywhere.
//!
//! A record is a sequence of [`Input`]s.  Each *call* of the node that changes anything is one; it
//! is noted at the end of the call, together with its result.  Before it stand, in their order, the
//! values that arrived from outside during the call: the numbers of the events that were emitted
//! ([`Sink::emit`](super::Sink::emit)), on which later decisions depend, and the answers of
//! [`Sink::await_elsewhere`](super::Sink::await_elsewhere).  The input of an event also has a check
//! over its fields, for the comparison in a replay.
//!
//! A decision that finds nothing new changes nothing and is not noted.

use super::event::Event;
use super::input::{Input, InputKind, Tap};
use super::memory::Memory;
use super::node::Node;
use super::wire::format;

impl<M: Memory> Node<M> {
    /// The receiver of the inputs of the node.
    pub fn tap_mut(&mut self) -> &mut M::Tap {
        &mut self.tap
    }

    /// Begins to note inputs, in `tap`.  Call this when the plan has come into force, which is the
    /// first input.  `plan`: the number under which the plan is stored; `follows`: the plan takes
    /// over from the one before.
    pub fn begin_record(&mut self, tap: M::Tap, plan: u64, follows: bool) {
        self.tap = tap;
        self.note(|node| Input {
            time_ns: node.status.installed_ns(),
            reason: follows.into(),
            value: plan,
            more: node.status.dealt_seq(),
            ..Input::of(InputKind::Begin)
        });
    }

    /// Notes an input, if inputs are recorded.
    #[inline(always)]
    pub(super) fn note(&mut self, input: impl FnOnce(&Self) -> Input) {
        if self.tap.is_on() {
            self.note_now(input);
        }
    }

    /// The part of [`note`](Node::note) that only a recorded node runs.
    #[cold]
    #[inline(never)]
    fn note_now(&mut self, input: impl FnOnce(&Self) -> Input) {
        let input = input(self);
        self.tap.note(input);
    }

    #[inline(always)]
    pub(super) fn note_event(&mut self, event: &Event, seq: u64) {
        if self.tap.is_on() {
            self.note_event_now(event, seq);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_event_now(&mut self, event: &Event, seq: u64) {
        self.tap.note(Input::event(event, seq));
    }

    /// Notes a decision.
    #[inline(always)]
    pub(super) fn note_decision(&mut self, now_ns: u64) {
        self.note(move |node| {
            let mut reason = node.grant.reason() as u16;
            if node.standing.is_unallocated() {
                reason |= Input::UNALLOCATED;
            }
            if node.standing.is_unfinished() {
                reason |= Input::AGAIN;
            }
            Input {
                time_ns: now_ns,
                value: node.standing.until_ns().unwrap_or(u64::MAX),
                more: node.standing.left_insns().unwrap_or(u64::MAX),
                process: node.grant.process().unwrap_or(format::IDLE),
                reason,
                ..Input::of(InputKind::Settle)
            }
        });
    }
}
