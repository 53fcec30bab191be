// SPDX-License-Identifier: GPL-2.0

//! Replay of recorded inputs on a node, with a comparison.
//!
//! The replaying node notes all its inputs, as the recorded one did (`src/record.rs`).  Its notes
//! must equal the record, number by number: its decisions, its events, and the result of each call.

use std::vec::Vec;

use super::{Config, Ended, Event, Input, InputKind, Node, Notes, Presence, Rate, Sink, StdMemory};

/// A plan as it came into force.
pub struct Begun {
    /// The state before the first slot of the plan.
    pub node: Node<StdMemory>,
    /// The plan deals with the failures of the events before this one.
    pub dealt_seq: u64,
}

/// The first input of a record that the replay did not reproduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of inputs from this one to the last input given.
    pub before: usize,
    /// The recorded input.
    pub recorded: Input,
    /// The input noted by the replay; `None`: none.
    pub came_out: Option<Input>,
}

/// Outcome of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The node received the input and behaved as recorded; or it will receive it with the next
    /// call.
    Same,
    /// The input is about a plan whose begin is not in the record.
    Skipped,
}

/// Replay of the record of one CPU.
#[derive(Default)]
pub struct Replay {
    /// The node; `None`: no plan whose begin is known.
    node: Option<Node<StdMemory>>,
    outside: Outside,
}

/// Values from outside: those that are recorded between two calls are returned again.
#[derive(Default)]
struct Outside {
    inputs: Vec<Input>,
    /// Number of those values that were requested.
    used: usize,
    /// The emitted events, if the caller wants them.
    events: Option<Vec<(u64, Event)>>,
}

impl Outside {
    fn next(&mut self, is: impl FnOnce(&Input) -> bool) -> Option<Input> {
        let input = self.inputs.get(self.used).copied().filter(is)?;
        self.used += 1;
        Some(input)
    }

    /// Passes the numbers of a configuration, which the caller has read.
    fn pass_config_values(&mut self) {
        while self.next(|input| input.config_value().is_some()).is_some() {}
    }
}

impl Sink for Outside {
    fn emit(&mut self, event: &Event) -> u64 {
        // If another input is recorded, the comparison finds the difference.
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
    /// A replay before its first input.  `events`: all emitted events are stored for
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

    /// The events emitted since the last call, with the numbers of the record.
    pub fn take_events(&mut self) -> Vec<(u64, Event)> {
        self.outside
            .events
            .as_mut()
            .map_or(Vec::new(), std::mem::take)
    }

    /// Continues from a node that was restored from a snapshot.  The next input is the first one
    /// after the snapshot.
    pub fn resume(&mut self, mut node: Node<StdMemory>) {
        self.outside.inputs.clear();
        node.tap_mut().0 = Some(Vec::new());
        self.node = Some(node);
    }

    /// Notes that some inputs are missing: the following ones can't be replayed until a plan begins
    /// that takes over from none.
    pub fn forget(&mut self) {
        self.node = None;
        self.outside.inputs.clear();
    }

    /// Replays the next input of the record.  `plan` returns the plan that is stored under a
    /// number, if any.
    ///
    /// After a difference the state is not the recorded one; there is nothing more to compare.
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
            Some(InputKind::Configure) => {
                if let Some(node) = &mut self.node {
                    let config = configured(node.config(), &self.outside.inputs);
                    self.outside.pass_config_values();
                    // A refusal notes nothing, which the comparison finds.
                    let _ = node.configure(&config, input.time_ns, &mut self.outside);
                }
            }
            _ => {
                if let Some(node) = &mut self.node {
                    tell(node, input, &mut self.outside);
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

    /// Begins a plan, which is the first thing that its node notes.
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

    /// Compares the notes of the replay with the record since the last call, and with `call`.
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

/// The configuration after a recorded change; `inputs` has the values that stand before the call.
pub fn configured(config: &Config, inputs: &[Input]) -> Config {
    config.with(inputs.iter().filter_map(Input::config_value))
}

/// Calls the node as the recorded node was called.  `outside` gives numbers to events and answers
/// about other CPUs.  An input that is no call, the begin and the end of a plan, and a
/// change of the configuration change nothing.
pub fn tell<S: Sink>(node: &mut Node<StdMemory>, input: &Input, outside: &mut S) {
    let &Input {
        time_ns,
        value,
        more,
        process,
        reason,
        ..
    } = input;
    match input.input_kind() {
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
        Some(InputKind::InKernel) => node.in_kernel(process, value, time_ns),
        Some(InputKind::Interrupted) => node.interrupted(value, time_ns),
        Some(InputKind::Settle) => node.settle(time_ns, outside),
        Some(InputKind::TellUntold) => node.tell_untold(outside),
        Some(InputKind::LookElsewhere) => node.look_elsewhere(outside),
        Some(InputKind::Share) => node.share(process),
        Some(InputKind::Contradict) => node.contradict(),
        // Handled by the caller, or no call.
        Some(
            InputKind::Begin
            | InputKind::Gone
            | InputKind::Answer
            | InputKind::ConfigValue
            | InputKind::Configure,
        )
        | None => {}
    }
}

fn presence(reason: u16) -> Option<Presence> {
    let all = [Presence::Absent, Presence::Blocked, Presence::Ready];
    all.into_iter().find(|one| *one as u16 == reason)
}
