// SPDX-License-Identifier: GPL-2.0

//! Tells a node again what another one was told, and compares.
//!
//! The node that is told notes all that it is told, as the recorded one did
//! (`src/record.rs`).  What it notes must be what was recorded, number by number:
//! its decisions, its events, and what came of each call.

use std::vec::Vec;

use super::{Ended, Event, Input, InputKind, Node, Notes, Presence, Rate, Sink, StdMemory};

/// A plan as it came into force.
pub struct Begun {
    /// The state before its first slot.
    pub node: Node<StdMemory>,
    /// The prediction failures that it deals with: of the events before this one.
    pub dealt_seq: u64,
}

/// The first input of a record for which something else came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// How many inputs it stands before the one that was given last.
    pub before: usize,
    /// What was recorded.
    pub recorded: Input,
    /// What came out; `None`: nothing.
    pub came_out: Option<Input>,
}

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The node was told, and did as it was recorded; or it will be, with the call
    /// that follows.
    Same,
    /// It is about a plan whose begin is not in the record.
    Skipped,
}

/// The record of one CPU, told again.
#[derive(Default)]
pub struct Replay {
    /// `None`: no plan whose begin is known.
    node: Option<Node<StdMemory>>,
    outside: Outside,
}

/// What came from outside: what is recorded between two calls, handed out again.
#[derive(Default)]
struct Outside {
    inputs: Vec<Input>,
    /// How many of those were asked for.
    used: usize,
    /// What was emitted, if somebody wants to know.
    events: Option<Vec<(u64, Event)>>,
}

impl Outside {
    fn next(&mut self, is: impl FnOnce(&Input) -> bool) -> Option<Input> {
        let input = self.inputs.get(self.used).copied().filter(is)?;
        self.used += 1;
        Some(input)
    }
}

impl Sink for Outside {
    fn emit(&mut self, event: &Event) -> u64 {
        // Where another one is recorded it comes out that something differs.
        let seq = self
            .next(|input| input.kind >= Input::EVENT)
            .map_or(0, |input| input.value);
        if let Some(events) = &mut self.events {
            events.push((seq, *event));
        }
        seq
    }

    fn await_elsewhere(&mut self, _predecessor: u32, _task: u32) -> Ended {
        let answer = self.next(|input| input.input_kind() == Some(InputKind::Answer));
        answer.map_or(Ended::NOTHING, |input| Ended {
            before_task: input.more as u32,
            is_last: input.reason != 0,
        })
    }
}

impl Replay {
    /// Nothing was told yet; `events`: all that is emitted is kept for
    /// [`Replay::take_events`].
    pub fn new(events: bool) -> Replay {
        Replay {
            node: None,
            outside: Outside {
                events: events.then(Vec::new),
                ..Outside::default()
            },
        }
    }

    /// The node as it is now, if a plan is in force whose begin is known.
    pub fn node(&self) -> Option<&Node<StdMemory>> {
        self.node.as_ref()
    }

    /// What was emitted since the last call, with the numbers of the record.
    pub fn take_events(&mut self) -> Vec<(u64, Event)> {
        self.outside
            .events
            .as_mut()
            .map_or(Vec::new(), std::mem::take)
    }

    /// Some inputs are missing: what follows can't be told until a plan begins
    /// that takes over from none.
    pub fn forget(&mut self) {
        self.node = None;
        self.outside.inputs.clear();
    }

    /// The next input of the record.  `plan` gives the plan that is kept under a
    /// number, if it is.
    ///
    /// After a difference the state is another one than it was; there is nothing
    /// more to compare.
    #[inline]
    pub fn next(
        &mut self,
        input: &Input,
        plan: impl FnOnce(u64) -> Option<Begun>,
    ) -> Result<Replayed, Difference> {
        if !input.is_call() {
            if self.node.is_none() {
                return Ok(Replayed::Skipped);
            }
            self.outside.inputs.push(*input);
            return Ok(Replayed::Same);
        }
        self.outside.used = 0;
        match input.input_kind() {
            Some(InputKind::Begin) => self.begin(input, plan),
            Some(InputKind::Gone) if self.node.is_some() => {
                self.node = None;
                return self.compare(input, &[Input::gone(input.time_ns)]);
            }
            kind => {
                if let Some(node) = &mut self.node {
                    tell(node, kind, input, &mut self.outside);
                }
            }
        }
        let Some(node) = &mut self.node else {
            self.outside.inputs.clear();
            return Ok(Replayed::Skipped);
        };
        let notes = node.tap_mut().0.take().unwrap_or_default();
        let compared = self.compare(input, &notes);
        if let Some(node) = &mut self.node {
            let mut notes = notes;
            notes.clear();
            node.tap_mut().0 = Some(notes);
        }
        compared
    }

    /// A plan begins, which is the first thing that its node notes.
    fn begin(&mut self, input: &Input, plan: impl FnOnce(u64) -> Option<Begun>) {
        let old = self.node.take();
        let follows = input.reason != 0;
        if follows && old.is_none() {
            return;
        }
        let Some(Begun {
            mut node,
            dealt_seq,
        }) = plan(input.value)
        else {
            return;
        };
        node.begin(old.as_ref().filter(|_| follows), dealt_seq, input.time_ns);
        node.begin_record(Notes(Some(Vec::new())), input.value, follows);
        self.node = Some(node);
    }

    /// Compares what came out with what was recorded since the last call, and with
    /// `call`.
    fn compare(&mut self, call: &Input, came_out: &[Input]) -> Result<Replayed, Difference> {
        let outside = &mut self.outside.inputs;
        let recorded = outside.len() + 1;
        let same = came_out.len() == recorded
            && came_out.last() == Some(call)
            && came_out.starts_with(outside);
        if !same {
            let all = || outside.iter().chain([call]);
            let at = all()
                .zip(came_out)
                .position(|(one, other)| one != other)
                .unwrap_or(came_out.len().min(recorded - 1));
            return Err(Difference {
                before: recorded - 1 - at,
                recorded: all().nth(at).copied().unwrap_or(*call),
                came_out: came_out.get(at).copied(),
            });
        }
        outside.clear();
        Ok(Replayed::Same)
    }
}

/// Tells the node what was told then.
fn tell(node: &mut Node<StdMemory>, kind: Option<InputKind>, input: &Input, outside: &mut Outside) {
    let &Input {
        time_ns,
        value,
        more,
        process,
        reason,
        ..
    } = input;
    match kind {
        Some(InputKind::Charge) => node.charge(process, value),
        Some(InputKind::Presence) => {
            if let Some(presence) = presence(reason) {
                node.set_presence(process, presence);
            }
        }
        Some(InputKind::EndTask) => {
            node.end_task(process, time_ns, outside);
        }
        Some(InputKind::Die) => node.die(process),
        Some(InputKind::EndProcess) => node.end_process(process, time_ns, outside),
        Some(InputKind::Rate) => node.set_rate(Rate::new(value)),
        Some(InputKind::Count) => {
            let kind = Input {
                kind: reason.saturating_add(Input::EVENT),
                ..*input
            };
            if let Some(kind) = kind.event_kind() {
                node.count(kind);
            }
        }
        Some(InputKind::Memory) => {
            node.memory(process, value, more);
        }
        Some(InputKind::WatchMemory) => node.watch_memory(process, value, time_ns, outside),
        Some(InputKind::Owe) => node.owe(process, value),
        Some(InputKind::OutOfTurn) => node.out_of_turn(value, time_ns),
        Some(InputKind::Settle) => node.settle(time_ns, outside),
        Some(InputKind::TellUntold) => node.tell_untold(outside),
        Some(InputKind::LookElsewhere) => node.look_elsewhere(outside),
        Some(InputKind::Share) => node.share(process),
        Some(InputKind::Contradict) => node.contradict(),
        // Handled by the caller, or no call.
        Some(InputKind::Begin | InputKind::Gone | InputKind::Answer) | None => {}
    }
}

fn presence(reason: u16) -> Option<Presence> {
    let all = [Presence::Absent, Presence::Blocked, Presence::Ready];
    all.into_iter().find(|one| *one as u16 == reason)
}
