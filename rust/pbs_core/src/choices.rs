// SPDX-License-Identifier: GPL-2.0

//! Numbers of the policy that are choices: each choice has a name, by which planners write it.

/// Thresholds that can be switched on and off in `Config::thresholds`, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Threshold {
    /// t1 (3.2.2).  Without it a slot lasts until its process has caught up, or
    /// to its ceiling.
    T1 = 1,
    /// t2_task (3.3.6)
    T2Task = 1 << 1,
    /// t2_process (3.3.6)
    T2Process = 1 << 2,
    /// t2_node (3.3.6)
    T2Node = 1 << 3,
    /// t2_preemptions (3.3.6)
    T2Preemptions = 1 << 4,
    /// tm2_task (3.3.8)
    Tm2Task = 1 << 5,
    /// tm2_node (3.3.8)
    Tm2Node = 1 << 6,
    /// Information on the way to t2_process and t2_node (6.2.3).  Each is reported only if its
    /// threshold is switched on.
    Info = 1 << 7,
    /// The memory of each process against its planned peak, and the memory of all processes
    /// together against the node's limit, with the information on the way to each.
    T2Memory = 1 << 8,
    /// The lateness of a message for which a process waits in its slot, with the information on the
    /// way to it.
    T2Message = 1 << 9,
    /// A message that ends the wait of a process much earlier than planned.
    Tm2Message = 1 << 10,
}

impl Threshold {
    /// All thresholds.
    pub const ALL: [Threshold; 11] = [
        Threshold::T1,
        Threshold::T2Task,
        Threshold::T2Process,
        Threshold::T2Node,
        Threshold::T2Preemptions,
        Threshold::Tm2Task,
        Threshold::Tm2Node,
        Threshold::Info,
        Threshold::T2Memory,
        Threshold::T2Message,
        Threshold::Tm2Message,
    ];

    /// The bits of all thresholds.
    pub const ALL_BITS: u64 = (1 << Threshold::ALL.len()) - 1;

    /// Returns the name of the threshold, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Threshold::T1 => "t1",
            Threshold::T2Task => "t2_task",
            Threshold::T2Process => "t2_process",
            Threshold::T2Node => "t2_node",
            Threshold::T2Preemptions => "t2_preemptions",
            Threshold::Tm2Task => "tm2_task",
            Threshold::Tm2Node => "tm2_node",
            Threshold::Info => "info",
            Threshold::T2Memory => "t2_memory",
            Threshold::T2Message => "t2_message",
            Threshold::Tm2Message => "tm2_message",
        }
    }
}

/// Treatment of a task that reaches t1 of the slots into which it was pushed: `enum
/// pbs_preemption_way`.
///
/// Leppert 2021, 3.2.3, describes three ways, and combines the second and the third.  In all of
/// them slots stay where they are, and t1 is computed from the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum PreemptionWay {
    /// The choice of the thesis: the task is pushed on from slot to slot, and MAX_PREEMPTIONS is a
    /// prediction failure.
    Capped = 0,
    /// The first way: the task is preempted once, and in its next slot continues until it ends or
    /// is beyond t2_task.
    Once = 1,
    /// The second way: t1 of the slot into which the task was pushed is a prediction failure at
    /// once.
    NextSlot = 2,
    /// The third way: the task is pushed on again and again, until it ends or exceeds another t2.
    EverySlot = 3,
}

impl PreemptionWay {
    /// All ways, by number.
    pub const ALL: [PreemptionWay; 4] = [
        PreemptionWay::Capped,
        PreemptionWay::Once,
        PreemptionWay::NextSlot,
        PreemptionWay::EverySlot,
    ];

    /// Returns the name of the way, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            PreemptionWay::Capped => "capped",
            PreemptionWay::Once => "once",
            PreemptionWay::NextSlot => "next_slot",
            PreemptionWay::EverySlot => "every_slot",
        }
    }
}

/// The order in which the processes of a plan run: `enum pbs_dispatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Dispatch {
    /// Slots stay where the plan has them, and late processes fill idle slots (Leppert
    /// 2021).
    Thesis = 0,
    /// Slots float: of the processes that can run the one with the earliest deadline has
    /// the CPU, and no CPU idles while one can run.
    Deadline = 1,
}

impl Dispatch {
    /// All of them, by number.
    pub const ALL: [Dispatch; 2] = [Dispatch::Thesis, Dispatch::Deadline];

    /// The name, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Dispatch::Thesis => "thesis",
            Dispatch::Deadline => "deadline",
        }
    }
}

/// The plans that set stress to `Config::stress_reset`: `enum pbs_stress_cause`.
///
/// Leppert 2021, 6.2.3: a plan may be caused by a new job alone, and need not make the node wait.
/// A plan that does not set stress leaves it as it is: it continues to fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum StressCause {
    /// Every plan (3.3.6).
    Every = 0,
    /// A plan with a process that was not in the plan before, or with other planned lengths for
    /// the rest of a process that was.
    NewLengths = 1,
    /// A plan with other planned lengths for the rest of a process whose failure it deals with.
    FailedLengths = 2,
}

impl StressCause {
    /// All causes, by number.
    pub const ALL: [StressCause; 3] = [
        StressCause::Every,
        StressCause::NewLengths,
        StressCause::FailedLengths,
    ];

    /// Returns the name of the cause, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            StressCause::Every => "every",
            StressCause::NewLengths => "new_lengths",
            StressCause::FailedLengths => "failed_lengths",
        }
    }
}

/// The state of the node that makes t1 smaller: `enum pbs_t1_state`.
///
/// Leppert 2021 considers this in 3.1.2 and 3.2.2, and computes t1 from the slot alone.  The share
/// of t1 beyond the slot becomes smaller, down to NO_PREEMPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum T1State {
    /// No state: t1 is that of the slot.
    Ignored = 0,
    /// The lateness of the node: up to three quarters less at t2_node.
    Lateness = 1,
    /// The load: the share is divided by the number of active processes.
    Load = 2,
}

impl T1State {
    /// All states, by number.
    pub const ALL: [T1State; 3] = [T1State::Ignored, T1State::Lateness, T1State::Load];

    /// Returns the name of the state, as the planner writes it.
    pub const fn name(self) -> &'static str {
        match self {
            T1State::Ignored => "ignored",
            T1State::Lateness => "lateness",
            T1State::Load => "load",
        }
    }
}
