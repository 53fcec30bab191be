// SPDX-License-Identifier: GPL-2.0
//! Options of a simulation.

use pbs_core::Config;

use crate::interference::Interference;

/// Instructions in a millisecond of the node that the theses assume: 10^9 a
/// second.
pub const DEFAULT_RATE_INSNS_PER_MS: u64 = 1_000_000;

/// Answers for each CPU where no other number is given. A plan of some hundred
/// tasks, half of which fail, takes fewer.
pub const DEFAULT_MAX_ANSWERS: u64 = 1000;

/// Slow-down of instructions on memory that is swapped out, if none is given.
pub const DEFAULT_SWAP_SLOWDOWN: u64 = 10;

/// Options of a simulation; [`Options::default`] is an ideal node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Instructions that a CPU retires in a millisecond where the plan does not
    /// say it; 1 to 2^32 − 1.
    pub rate_insns_per_ms: u64,
    /// The configuration of the node, for plans that do not have their own.
    pub config: Config,
    /// Times at which the node checks the count of the running process.
    pub resolution: Resolution,
    /// Costs of the node's own machinery.
    pub timing: Timing,
    /// Behaviour of the node if more memory is in use than the plan may use.
    pub memory_over: MemoryOver,
    /// Slow-downs between tasks on different CPUs. `None`: there are none, and CPUs that do not
    /// depend on each other in another way are simulated one by one.
    pub interference: Option<Interference>,
    /// Changes of the configuration while plans are in force, ascending by time.
    pub changes: Vec<ConfigChange>,
    /// Whether Linux has nothing to run in unallocated time: plans that float (`dispatch =
    /// "deadline"`) use it then. Otherwise normal tasks take all of it. Plans of the thesis
    /// leave it unused in either case.
    pub linux_is_idle: bool,
    /// The simulation of a CPU stops at this time even if there is more to do,
    /// for tasks may be endless loops. `None`: a hundred times the time that
    /// the plan would take as planned.
    pub limit_ns: Option<u64>,
    /// Maximum number of questions to the job scheduler that are answered for each CPU. The limit
    /// is needed because answers may lead to new failures without end.
    pub max_answers: u64,
    /// All CPUs are nodes of one job scheduler, which answers one question after the
    /// other, each in this time, and looks at what a node has told by then when it comes
    /// to it (Leppert 2021, 3.3.6, stress). `None`: each CPU has one for itself, whose
    /// answers take RESCHEDULE_TIME.
    pub shared_answer_ns: Option<u64>,
    /// Processes whose first task waits sleep when the plan begins, as those that went to
    /// sleep before. Without it each finds out that it has to wait when it first has the CPU.
    pub asleep_at_start: bool,
    /// Keep the events that tell who may run. They are most of all events, and
    /// only pictures need them.
    pub record_grants: bool,
    /// Note all that the policy of each CPU is told, in
    /// [`Simulation::recorded`](crate::Simulation::recorded).
    pub record_inputs: bool,
    /// Time from which on inputs are recorded.  Where it is not 0, the record of a CPU begins with
    /// a snapshot of its node.
    pub record_from_ns: u64,
    /// Time between two states of each node that are noted in
    /// [`Simulation::ticks`](crate::Simulation::ticks); `None`: none is noted.
    pub note_every_ns: Option<u64>,
}

/// Change of the configuration of all CPUs, under the plans that are in force then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// Time of the change.
    pub at_ns: u64,
    /// Places of the numbers in [`Config::NAMES`], with their new values.
    pub values: Vec<(usize, u64)>,
}

/// Times at which the node checks the count of the running process.
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

/// Costs of a node's own machinery; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Instructions that a process still retires after the count at which the node was to check it.
    pub timer_delay_insns: u64,
    /// Execution time that passes unused when a count or a time is looked at:
    /// that of an interrupt.
    pub look_ns: u64,
    /// Execution time that passes unused when another process gets the CPU.
    pub switch_ns: u64,
}

/// Behaviour of a node on which more memory is in use than the plan may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOver {
    /// The node only signals the excess: it has more memory than the plan may use.
    #[default]
    Tell,
    /// The node has no more memory, and no swap. If a process begins and there is less memory left
    /// than it needs, it is ended at once. It frees no memory, since it had none yet. Glaß 2024 (1)
    /// terminates the whole job, which is equivalent for all tasks that wait for the process: they
    /// never continue.
    Kill,
    /// The node has no more memory, and swaps. The same share of each process's memory is swapped
    /// out. An instruction on memory that is swapped out takes as long as `slowdown` instructions
    /// on memory that is present. Therefore all processes retire more slowly while too much memory
    /// is in use.
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
            changes: Vec::new(),
            linux_is_idle: true,
            limit_ns: None,
            max_answers: DEFAULT_MAX_ANSWERS,
            shared_answer_ns: None,
            asleep_at_start: false,
            record_grants: true,
            record_inputs: false,
            record_from_ns: 0,
            note_every_ns: None,
        }
    }
}
