// SPDX-License-Identifier: GPL-2.0
//! How a plan is simulated.

use pbs_core::Config;

use crate::interference::Interference;

/// Instructions in a millisecond of the node that the theses assume: 10^9 a
/// second.
pub const DEFAULT_RATE_INSNS_PER_MS: u64 = 1_000_000;

/// Answers for each CPU where no other number is given. A plan of some hundred
/// tasks, half of which fail, takes fewer.
pub const DEFAULT_MAX_ANSWERS: u64 = 1000;

/// What an instruction on memory that is swapped out takes, where nothing else is said.
pub const DEFAULT_SWAP_SLOWDOWN: u64 = 10;

/// How a plan is simulated; [`Options::default`] is an ideal node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Instructions that a CPU retires in a millisecond where the plan does not
    /// say it; 1 to 2^32 − 1.
    pub rate_insns_per_ms: u64,
    /// The configuration of the node, for plans that do not have their own.
    pub config: Config,
    /// When the node looks at the count.
    pub resolution: Resolution,
    /// What the machinery of the node takes.
    pub timing: Timing,
    /// What becomes of it if more memory is in use than the plan may use.
    pub memory_over: MemoryOver,
    /// How tasks on different CPUs slow each other; `None`: not at all, and CPUs that
    /// have nothing else to do with each other are simulated one by one.
    pub interference: Option<Interference>,
    /// The simulation of a CPU stops at this time even if there is more to do,
    /// for tasks may be endless loops. `None`: a hundred times the time that
    /// the plan would take as planned.
    pub limit_ns: Option<u64>,
    /// So many questions to the job scheduler are answered for each CPU, then
    /// no more: its answers may lead to new failures without end.
    pub max_answers: u64,
    /// All CPUs are nodes of one job scheduler, which answers one question after the
    /// other, each in this time, and looks at what a node has told by then when it comes
    /// to it (Leppert 2021, 3.3.6, stress). `None`: each CPU has one for itself, whose
    /// answers take RESCHEDULE_TIME.
    pub shared_answer_ns: Option<u64>,
    /// Processes whose first task waits sleep when the plan begins, as those that went to
    /// sleep before. Without it each finds out that it has to wait when it first has the CPU.
    pub asleep_at_start: bool,
    /// The process of the plan that is granted the CPU runs in unallocated time, too, for
    /// the rest of the system has nothing to run then.
    pub uses_unallocated: bool,
    /// Keep the events that tell who may run. They are most of all events, and
    /// only pictures need them.
    pub record_grants: bool,
    /// Note all that the policy of each CPU is told, in
    /// [`Simulation::recorded`](crate::Simulation::recorded).
    pub record_inputs: bool,
}

/// When the node looks at the count of the process that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// In the moment in which something is to happen: a node with a timer or a
    /// counter that interrupts.
    #[default]
    Event,
    /// At the nominal ticks of the configuration, and where a task ends, a
    /// process wakes, or a plan comes: a node that has only its tick, as the
    /// loop `run_tick` of the simulation in Leppert 2021, 4.3.1. Slots, idle
    /// slots and windows then last up to a tick longer.
    Tick,
}

/// What the machinery of a node takes; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// What a process still retires after the count at which it was to be
    /// looked at.
    pub timer_delay_insns: u64,
    /// Execution time that passes unused when a count or a time is looked at:
    /// that of an interrupt.
    pub look_ns: u64,
    /// Execution time that passes unused when another process gets the CPU.
    pub switch_ns: u64,
}

/// What becomes of a node on which more memory is in use than the plan may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOver {
    /// Nothing but signals: it has more than the plan may use.
    #[default]
    Tell,
    /// It has no more, and no swap: a process that begins when there is not as much
    /// left as it takes is ended there and then, and frees nothing, since it had
    /// nothing yet. Glaß 2024 (1) has the whole job terminated, which comes to the
    /// same for all that wait for the process: they never go on.
    Kill,
    /// It has no more, and swaps: all processes have an equal share of what they use
    /// in memory. So each instruction on what is not there takes as long as `slowdown`
    /// on what is, and all retire slower while too much is in use.
    Swap {
        /// At least 1. What it really is depends on the disk and on how programs use
        /// their memory.
        slowdown: u64,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate_insns_per_ms: DEFAULT_RATE_INSNS_PER_MS,
            config: Config::DEFAULT,
            resolution: Resolution::default(),
            timing: Timing::default(),
            memory_over: MemoryOver::default(),
            interference: None,
            limit_ns: None,
            max_answers: DEFAULT_MAX_ANSWERS,
            shared_answer_ns: None,
            asleep_at_start: false,
            uses_unallocated: false,
            record_grants: true,
            record_inputs: false,
        }
    }
}
