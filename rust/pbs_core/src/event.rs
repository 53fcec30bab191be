// SPDX-License-Identifier: GPL-2.0

//! Events of a node, as they are reported to the outside.

use super::wire::format;

/// The kinds of `enum pbs_event_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum EventKind {
    /// A plan was installed on the CPU.
    PlanInstalled = 1,
    /// The last slot is over and no process that is present has tasks left.
    PlanEnded = 2,
    /// The plan was dropped on request.
    PlanDropped = 3,
    /// A thread became one of a plan process.
    Attached = 4,
    /// Another process, or none, may run from now on.
    Grant = 5,
    /// A task ended.
    TaskEnded = 6,
    /// A slot reached t1.
    Preempted = 7,
    /// A slot reached its ceiling on the clock.
    Ceiling = 8,
    /// Prediction failure: a task, process or node is beyond its t2.
    Late = 9,
    /// Prediction failure: a task or the node is below its t-2.
    Early = 10,
    /// A quarter, half or three quarters of the way to t2_process or t2_node, or an untimely task.
    Info = 11,
    /// The slot of a process began, but the process has no thread.
    Absent = 12,
    /// A process ended.
    ProcessEnded = 13,
    /// A thread left the class before its end.
    Ejected = 14,
    /// The CPU went offline.
    CpuGone = 15,
    /// A thread took long to arrive at its waiting place.
    StopLong = 16,
    /// A reader was too slow.
    Overrun = 17,
    /// The CPU counts instructions in another way.
    Tier = 18,
    /// The slot of a process began, but its task waits for a task of another process.
    Waits = 19,
    /// The plan continues with another configuration.
    Configured = 20,
}

impl EventKind {
    /// One more than the greatest number of a kind.
    pub const END: usize = 21;

    /// All kinds, by number.
    pub const ALL: [EventKind; EventKind::END - 1] = [
        EventKind::PlanInstalled,
        EventKind::PlanEnded,
        EventKind::PlanDropped,
        EventKind::Attached,
        EventKind::Grant,
        EventKind::TaskEnded,
        EventKind::Preempted,
        EventKind::Ceiling,
        EventKind::Late,
        EventKind::Early,
        EventKind::Info,
        EventKind::Absent,
        EventKind::ProcessEnded,
        EventKind::Ejected,
        EventKind::CpuGone,
        EventKind::StopLong,
        EventKind::Overrun,
        EventKind::Tier,
        EventKind::Waits,
        EventKind::Configured,
    ];

    /// The kind in lower case, as sysfs and the planner name it.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::PlanInstalled => "plan_installed",
            EventKind::PlanEnded => "plan_ended",
            EventKind::PlanDropped => "plan_dropped",
            EventKind::Attached => "attached",
            EventKind::Grant => "grant",
            EventKind::TaskEnded => "task_ended",
            EventKind::Preempted => "preempted",
            EventKind::Ceiling => "ceiling",
            EventKind::Late => "late",
            EventKind::Early => "early",
            EventKind::Info => "info",
            EventKind::Absent => "absent",
            EventKind::ProcessEnded => "process_ended",
            EventKind::Ejected => "ejected",
            EventKind::CpuGone => "cpu_gone",
            EventKind::StopLong => "stop_long",
            EventKind::Overrun => "overrun",
            EventKind::Tier => "tier",
            EventKind::Waits => "waits",
            EventKind::Configured => "configured",
        }
    }
}

/// Reason why a process may run: `enum pbs_grant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Grant {
    /// The process's own slot.
    Slot = 1,
    /// An idle slot, which the process fills.
    IdleSlot = 2,
    /// The slot of a process that cannot run, which the process fills.
    BlockedSlot = 3,
    /// The time after the last slot of the plan, in which the process continues.
    AfterPlan = 4,
    /// No process may run: lower classes have the CPU.
    None = 5,
}

/// Reason why a task waits for another: `enum pbs_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Wait {
    /// The other task has not ended yet.
    Task = 1,
    /// The other task never ends: its process is over.
    Gone = 2,
}

/// Threshold that a signal is about: `enum pbs_cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Cause {
    /// t2_task or tm2_task: what the task has retired.
    Task = 1,
    /// t2_process: the lateness of the process.
    Process = 2,
    /// t2_node or tm2_node: the lateness of the node.
    Node = 3,
    /// t2_preemptions: the preemptions of the task.
    Preemptions = 4,
    /// t2_memory: the memory of the process, against its planned peak.
    Memory = 5,
    /// The memory of all processes of the node, against the plan's limit.
    NodeMemory = 6,
    /// t2_message or tm2_message: the lateness of a message for which a process waits.
    Message = 7,
    /// Timeliness: the start of the task on the clock.  Information only.
    Start = 8,
    /// Timeliness: the end of the task on the clock.  Information only.
    End = 9,
}

/// One event: `struct pbs_event` without the fields that only the kernel has (sequence number, CPU,
/// thread id).  Fields that do not belong to a kind have the values of [`Event::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// A [`Grant`] or a [`Cause`] as number, or the reason that belongs to the kind.
    pub reason: u16,
    /// Id of the process, or [`format::IDLE`].
    pub process: u32,
    /// Id of its current task, or [`format::NO_TASK`].
    pub task: u32,
    /// Number of the slot in which it happened, or [`format::NO_SLOT`].
    pub slot: u64,
    /// Time of the event, on the monotonic clock.
    pub time_ns: u64,
    /// Planned length of the task.
    pub planned_insns: u64,
    /// Retired by the task so far.
    pub retired_insns: u64,
    /// Lateness of the process, negative when it is early.
    pub lateness_insns: i64,
    /// Depends on the kind; see the wire format.
    pub value: u64,
    /// Largest virtual size seen of the task.
    pub peak_vm_bytes: u64,
    /// Largest resident size seen of the task.
    pub peak_rss_bytes: u64,
    /// Preemptions of the task.
    pub preemptions: u32,
    /// Lateness of the node, negative when it is early.
    pub node_lateness_insns: i64,
    /// The stress; of signals only.
    pub stress: u32,
    /// Level of the threshold that was reached, in percent; of signals only.
    pub level_percent: u32,
    /// Memory that a signal about memory compares: of the process, or of the node.
    pub memory_bytes: u64,
}

impl Event {
    /// An event of `kind` that concerns no process, task or slot.
    pub const fn new(kind: EventKind, time_ns: u64) -> Event {
        Event {
            kind,
            reason: 0,
            process: format::IDLE,
            task: format::NO_TASK,
            slot: format::NO_SLOT,
            time_ns,
            planned_insns: 0,
            retired_insns: 0,
            lateness_insns: 0,
            value: 0,
            peak_vm_bytes: 0,
            peak_rss_bytes: 0,
            preemptions: 0,
            node_lateness_insns: 0,
            stress: 0,
            level_percent: 0,
            memory_bytes: 0,
        }
    }
}

/// Progress of a process: its tasks that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// All tasks with smaller ids have ended; [`format::NO_TASK`]: all tasks have ended.
    pub before_task: u32,
    /// No more tasks will ever end: the process is over, or died in that task.
    pub is_last: bool,
}

impl Ended {
    /// No task has ended.
    pub const NOTHING: Ended = Ended {
        before_task: 0,
        is_last: false,
    };

    /// Whether the task of that id has ended.
    pub const fn has(&self, task: u32) -> bool {
        task < self.before_task
    }
}

/// Receiver of events as they happen.  Called wherever the node is called: in the kernel under the
/// run-queue lock.
pub trait Sink {
    /// Receives one event.  Returns its number among all events, by which a plan refers to the
    /// failures that it deals with.
    fn emit(&mut self, event: &Event) -> u64;

    /// Returns the progress of a process on another CPU for which a process waits here;
    /// `predecessor` is its index in [`Plan::predecessors`].
    ///
    /// From now on its task `task` is awaited: when that task has ended, call
    /// [`Node::look_elsewhere`].
    ///
    /// [`Plan::predecessors`]: super::Plan::predecessors
    /// [`Node::look_elsewhere`]: super::Node::look_elsewhere
    fn await_elsewhere(&mut self, _predecessor: u32, _task: u32) -> Ended {
        Ended::NOTHING
    }

    /// Reports the progress of the process with this index, for which other CPUs may wait.
    fn tell_elsewhere(&mut self, _process: u32, _ended: Ended) {}

    /// Traces the begin of a slot.  Slots are too frequent to be events.  Only a sink that traces
    /// calls `slot`.
    fn slot_begin(&mut self, _slot: impl FnOnce() -> Option<PresentSlot>) {}

    /// Traces the end of the present slot, if `slot` returns one.
    fn slot_end(&mut self, _slot: impl FnOnce() -> Option<PresentSlot>) {}
}

/// The present slot, as it is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentSlot {
    /// Number of the slot in the plan, from 0.
    pub number: u32,
    /// Id of its process, or [`format::IDLE`].
    pub process: u32,
    /// Id of the task that it was planned for, or [`format::NO_TASK`].
    pub task: u32,
    /// Planned length of the slot.
    pub length_insns: u64,
    /// Instructions retired in the slot by its process so far.
    pub count_insns: u64,
    /// Count at which t1 ends the slot, or `None`.
    pub t1_insns: Option<u64>,
    /// Ceiling of the slot; of an idle slot, its length on the clock.  Execution time.
    pub limit_ns: u64,
}

/// Number of events of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    by_kind: [u64; EventKind::END],
}

impl Counts {
    /// No events yet.
    pub const ZERO: Counts = Counts {
        by_kind: [0; EventKind::END],
    };

    /// Returns the number of events of `kind`.
    pub fn get(&self, kind: EventKind) -> u64 {
        self.by_kind.get(kind as usize).copied().unwrap_or(0)
    }

    /// Sets the number of events of `kind`.
    #[cfg(any(test, feature = "std"))]
    pub(super) fn set(&mut self, kind: EventKind, count: u64) {
        if let Some(place) = self.by_kind.get_mut(kind as usize) {
            *place = count;
        }
    }

    /// Counts one more of `kind`.
    pub fn count(&mut self, kind: EventKind) {
        if let Some(count) = self.by_kind.get_mut(kind as usize) {
            *count = count.wrapping_add(1);
        }
    }
}

saved!([super] Ended {
    before_task,
    is_last,
});
saved_choice!([super] Grant {
    Slot,
    IdleSlot,
    BlockedSlot,
    AfterPlan,
    None,
});
