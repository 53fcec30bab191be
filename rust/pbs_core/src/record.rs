// SPDX-License-Identifier: GPL-2.0

//! What a node is told, noted so that it can be told again.
//!
//! A node decides by what it is told and by nothing else.  So who has the plan,
//! the configuration and the rate with which it began, and all that it was told
//! since, gets the same decisions from the same code, anywhere.
//!
//! A record is a sequence of [`Input`]s.  Each *call* of the node that changes
//! anything is one, noted when it is over, together with what came of it.  Before
//! it stand, in their order, the things that came from outside within it: the
//! numbers of the events that were emitted ([`Sink::emit`](super::Sink::emit)),
//! which later decisions depend on, and the answers of
//! [`Sink::await_elsewhere`](super::Sink::await_elsewhere).  With an event also
//! stands what it said, so that who tells it all again can compare.
//!
//! A decision that finds nothing new changes nothing and is not noted; it can be
//! left out.

use super::event::Event;
use super::input::{Input, InputKind, Tap};
use super::memory::Memory;
use super::node::Node;
use super::wire::format;

impl<M: Memory> Node<M> {
    /// Where it notes what it is told.
    pub fn tap_mut(&mut self) -> &mut M::Tap {
        &mut self.tap
    }

    /// From now on it notes what it is told there.  Call it when the plan has come
    /// into force, which is the first thing that is noted: as the plan that is kept
    /// under the number `plan`; `follows`: it takes over from the plan before.
    pub fn begin_record(&mut self, tap: M::Tap, plan: u64, follows: bool) {
        self.tap = tap;
        self.note(|node| Input {
            time_ns: node.installed_ns,
            reason: follows.into(),
            value: plan,
            more: node.dealt_seq,
            ..Input::of(InputKind::Begin)
        });
    }

    /// Notes an input, if somebody wants to know.
    #[inline(always)]
    pub(super) fn note(&mut self, input: impl FnOnce(&Self) -> Input) {
        if self.tap.is_on() {
            self.note_now(input);
        }
    }

    /// Apart, so that who is not recorded has none of it in his way.
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

    /// Notes what was decided.
    #[inline(always)]
    pub(super) fn note_decision(&mut self, now_ns: u64) {
        self.note(move |node| {
            let mut reason = node.reason as u16;
            if node.settled.unallocated {
                reason |= Input::UNALLOCATED;
            }
            if node.settled.again {
                reason |= Input::AGAIN;
            }
            Input {
                time_ns: now_ns,
                value: node.settled.until_ns().unwrap_or(u64::MAX),
                more: node.settled.left_insns().unwrap_or(u64::MAX),
                process: node.grant.unwrap_or(format::IDLE),
                reason,
                ..Input::of(InputKind::Settle)
            }
        });
    }
}
