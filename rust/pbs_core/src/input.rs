// SPDX-License-Identifier: GPL-2.0

//! Inputs of a node, as they are recorded.

use super::event::{Ended, Event, EventKind};
use super::wire::format;

/// Receiver of the inputs of a node.
///
/// In the kernel this is the ring of the CPU, called under the lock of the run queue.
pub trait Tap: Default {
    /// Whether inputs are recorded.
    fn is_on(&self) -> bool;

    /// Notes one input.  Only called if inputs are recorded.
    fn note(&mut self, input: Input);
}

/// The receiver of a node that does not record.
impl Tap for () {
    fn is_on(&self) -> bool {
        false
    }

    fn note(&mut self, _input: Input) {}
}

/// A call of a node, or a value that arrived from outside during a call: `struct pbs_input`.  The
/// meaning of the fields depends on the kind: [`InputKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Input {
    /// Time of the call, on the monotonic clock; 0 if the call has none.
    pub time_ns: u64,
    /// A number of the call.
    pub value: u64,
    /// Another number of the call, or its result.
    pub more: u64,
    /// Index of the process in the plan, of an event its id; [`format::IDLE`]: none.
    pub process: u32,
    /// An [`InputKind`], or [`Input::EVENT`] and the kind of an event.
    pub kind: u16,
    /// A small number of the call.
    pub reason: u16,
}

/// The kinds of `enum pbs_input_kind`, with the meaning of `value`, `more` and
/// `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum InputKind {
    /// A plan comes into force: the number under which it is stored, its
    /// `dealt_seq`; 1 if it takes over from the one before.
    Begin = 1,
    /// The plan is gone, and no other follows.
    Gone = 2,
    /// `Node::charge`: instructions; the count of the task then.
    Charge = 3,
    /// `Node::set_presence`: its result; processes that are present; the
    /// [`Presence`](super::Presence).
    Presence = 4,
    /// `Node::end_task`: the next task; the lateness of the node then.
    EndTask = 5,
    /// `Node::die`: the task in which it died first.
    Die = 6,
    /// `Node::end_process`: processes that are not done; the lateness of the
    /// node then.
    EndProcess = 7,
    /// `Node::set_rate`: the rate; the one in force then.
    Rate = 8,
    /// `Node::count`: number of such events then; the kind of the event.
    Count = 9,
    /// `Node::memory`: virtual size; resident size; its result.
    Memory = 10,
    /// `Node::watch_memory`: bytes elsewhere; bytes here.
    WatchMemory = 11,
    /// `Node::owe`: nanoseconds; the whole debt of the process then.
    Owe = 12,
    /// `Node::out_of_turn`: nanoseconds; the rest of the window's budget.
    OutOfTurn = 13,
    /// `Node::settle`, with the decision: the granted process as `process`; until when;
    /// for how many instructions; the [`Grant`](super::Grant), and
    /// [`Input::UNALLOCATED`] and [`Input::AGAIN`].
    Settle = 14,
    /// `Node::tell_untold`, if it reported a grant.
    TellUntold = 15,
    /// `Node::look_elsewhere`: whether a process may continue.
    LookElsewhere = 16,
    /// `Node::share`.
    Share = 17,
    /// `Node::contradict`.
    Contradict = 18,
    /// The answer of [`Sink::await_elsewhere`](super::Sink::await_elsewhere) about
    /// the predecessor `process`: the task for which a process waits; the first one that
    /// has not ended; 1 if no more ever will.
    Answer = 19,
    /// `Node::in_kernel`: nanoseconds; instructions that the slot may still use.
    InKernel = 20,
    /// `Node::interrupted`: nanoseconds; the plan time at which the slot ends then.
    Interrupted = 21,
    /// A number of the configuration that the next `Node::configure` changes: its new value; its
    /// place in [`Config::NAMES`](super::Config::NAMES).
    ConfigValue = 22,
    /// `Node::configure`: changed numbers; the lateness of the node then.
    Configure = 23,
}

impl InputKind {
    /// All kinds, by number.
    pub const ALL: [InputKind; 23] = [
        InputKind::Begin,
        InputKind::Gone,
        InputKind::Charge,
        InputKind::Presence,
        InputKind::EndTask,
        InputKind::Die,
        InputKind::EndProcess,
        InputKind::Rate,
        InputKind::Count,
        InputKind::Memory,
        InputKind::WatchMemory,
        InputKind::Owe,
        InputKind::OutOfTurn,
        InputKind::Settle,
        InputKind::TellUntold,
        InputKind::LookElsewhere,
        InputKind::Share,
        InputKind::Contradict,
        InputKind::Answer,
        InputKind::InKernel,
        InputKind::Interrupted,
        InputKind::ConfigValue,
        InputKind::Configure,
    ];

    /// The kind in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            InputKind::Begin => "begin",
            InputKind::Gone => "gone",
            InputKind::Charge => "charge",
            InputKind::Presence => "presence",
            InputKind::EndTask => "end_task",
            InputKind::Die => "die",
            InputKind::EndProcess => "end_process",
            InputKind::Rate => "rate",
            InputKind::Count => "count",
            InputKind::Memory => "memory",
            InputKind::WatchMemory => "watch_memory",
            InputKind::Owe => "owe",
            InputKind::OutOfTurn => "out_of_turn",
            InputKind::Settle => "settle",
            InputKind::TellUntold => "tell_untold",
            InputKind::LookElsewhere => "look_elsewhere",
            InputKind::Share => "share",
            InputKind::Contradict => "contradict",
            InputKind::Answer => "answer",
            InputKind::InKernel => "in_kernel",
            InputKind::Interrupted => "interrupted",
            InputKind::ConfigValue => "config_value",
            InputKind::Configure => "configure",
        }
    }
}

impl Input {
    /// Added to the kind of an event, this is the kind of its input.  `process` and
    /// `reason` are those of the event, `value` is its number and `more` a
    /// check over its other fields.
    pub const EVENT: u16 = 0x100;

    /// In the reason of a decision: it is unallocated time.
    pub const UNALLOCATED: u16 = 0x100;

    /// In the reason of a decision: it must be continued soon.
    pub const AGAIN: u16 = 0x200;

    /// An input of that kind without numbers.
    pub const fn of(kind: InputKind) -> Input {
        Input {
            time_ns: 0,
            value: 0,
            more: 0,
            process: format::IDLE,
            kind: kind as u16,
            reason: 0,
        }
    }

    /// The plan of a CPU has gone.
    pub const fn gone(time_ns: u64) -> Input {
        Input {
            time_ns,
            ..Input::of(InputKind::Gone)
        }
    }

    /// The kind, if the input is no event and there is such a kind.
    pub fn input_kind(&self) -> Option<InputKind> {
        let at = usize::from(self.kind).checked_sub(1)?;
        InputKind::ALL.get(at).copied()
    }

    /// The kind of the event, if the input is one and there is such a kind.
    pub fn event_kind(&self) -> Option<EventKind> {
        let at = usize::from(self.kind.checked_sub(Input::EVENT + 1)?);
        EventKind::ALL.get(at).copied()
    }

    /// The name of the kind, if there is such a kind.
    pub fn name(&self) -> Option<&'static str> {
        let event = || self.event_kind().map(EventKind::name);
        self.input_kind().map(InputKind::name).or_else(event)
    }

    /// The number of the configuration that the input is about, and its value, if it is about one.
    pub fn config_value(&self) -> Option<(usize, u64)> {
        let is_one = self.input_kind() == Some(InputKind::ConfigValue);
        let place = usize::try_from(self.more).ok()?;
        is_one.then_some((place, self.value))
    }

    /// Whether the input is a call of the node, and not a value that arrived during one.
    pub fn is_call(&self) -> bool {
        let value = [InputKind::Answer as u16, InputKind::ConfigValue as u16];
        self.kind < Input::EVENT && !value.contains(&self.kind)
    }

    pub(super) fn answer(predecessor: u32, task: u32, ended: Ended) -> Input {
        Input {
            process: predecessor,
            reason: ended.is_last.into(),
            value: task.into(),
            more: ended.before_task.into(),
            ..Input::of(InputKind::Answer)
        }
    }

    pub(super) fn event(event: &Event, seq: u64) -> Input {
        Input {
            time_ns: event.time_ns,
            value: seq,
            more: check(event),
            process: event.process,
            kind: Input::EVENT + event.kind as u16,
            reason: event.reason,
        }
    }
}

/// Check over the fields of an event that its input does not have: it almost surely
/// differs if one of them does.
fn check(event: &Event) -> u64 {
    let others = [
        u64::from(event.task) << 32 | u64::from(event.preemptions),
        u64::from(event.stress) << 32 | u64::from(event.level_percent),
        event.slot,
        event.planned_insns,
        event.retired_insns,
        event.lateness_insns as u64,
        event.node_lateness_insns as u64,
        event.value,
        event.peak_vm_bytes,
        event.peak_rss_bytes,
        event.memory_bytes,
    ];
    let mut check = 0_u64;
    for other in others {
        check = check.rotate_left(11) ^ other;
    }
    check
}
