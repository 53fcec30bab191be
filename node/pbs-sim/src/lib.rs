// SPDX-License-Identifier: GPL-2.0
//! Runs plans in virtual time.
//!
//! [`simulate`] takes a [`Plan`] whose tasks have real lengths through
//! `pbs_core::Node`, the code that the kernel runs: nothing of the policy is
//! written here again. Who answers prediction failures is a [`JobScheduler`].
//! This is level one of the implementation in Leppert 2021, 4.3.
//!
//! - All processes are there when the plan begins, at time 0.
//! - A process retires instructions at a constant rate while it is granted, in
//!   execution time only: its own or its CPU's, as the first plan that has it says.
//!   Its task ends when its real length is retired; after
//!   the last the process is gone.
//! - A task without a real length takes what was planned.
//! - An idle slot lasts its length on the clock; the real length that Leppert's
//!   plans give it is not looked at.
//! - A process has its real peak of memory from its first instruction to its end;
//!   without one it has what was planned. It is sampled at the next nominal tick,
//!   and whenever it has run. What becomes of a node with more in use than the plan may use
//!   is said by [`MemoryOver`].
//! - A plan of several CPUs is simulated CPU by CPU, as if each were a node of
//!   its own; the events are put in order of their time. If tasks on one CPU
//!   wait for tasks on another, or their processes share memory, they go in step, and
//!   who waits is let go in the moment in which the task ends.
//! - Tasks on different CPUs may slow each other ([`Options::interference`]). Then all
//!   CPUs go in step, and each task that runs has, from one event on any CPU to the
//!   next, the pace that it has beside those that run then.
//!
//! - The configuration may change while a plan is in force ([`Options::changes`]), as
//!   `PBS_IOC_CONFIGURE` changes that of the kernel.
//! - CPUs may stand for nodes of one job scheduler that answers one after the other
//!   ([`Options::shared_answer_ns`]). They go in step, too.
//!
//! It does no input or output, but for [`Command`].

mod clock;
mod deadline;
mod held;
mod interference;
mod log;
mod machine;
mod memory;
mod options;
mod outcome;
mod program;
mod scheduler;

use std::fmt;

use pbs_core::Refusal;
use pbs_plan::Plan;

use machine::elsewhere::{is_coupled, Board};
use machine::queue::Waiting;
use machine::{Machine, Shared};
use memory::{NodeMemory, SharedMemory};

pub use clock::Clock;
pub use deadline::deadlines;
pub use held::{HeldNode, HeldProcess};
pub use interference::Interference;
pub use options::{
    ConfigChange, MemoryOver, Options, Resolution, Timing, DEFAULT_MAX_ANSWERS,
    DEFAULT_RATE_INSNS_PER_MS, DEFAULT_SWAP_SLOWDOWN,
};
pub use outcome::{
    BegunPlan, Counts, CpuOutcome, MemoryOutcome, ProcessOutcome, RecordedInputs, Replan,
    Simulation, Snapshot, TaskOutcome,
};
pub use scheduler::command::{question, Command};
pub use scheduler::conversation::{plan_of_answer, Conversation, NoReply, RunAs, MAX_ANSWER_BYTES};
pub use scheduler::remaining::{part, remaining, Progress as PlanProgress};
pub use scheduler::stretch::Stretch;
pub use scheduler::{Cause, Failure, JobScheduler, NoAnswer, NodeState, ProcessState};

/// Reason for which a plan could not be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The plan is not valid.
    Plan(String),
    /// The configuration is not valid.
    Config(Refusal),
    /// The job scheduler failed.
    Scheduler(String),
    /// The policy core makes decisions without end and nothing happens.
    Stuck {
        /// The CPU.
        cpu: u32,
        /// Simulated time at which this was noticed.
        now_ns: u64,
    },
    /// The states at the ticks have too many rows.
    Ticks {
        /// Most rows of a CPU.
        most_rows: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(words) => write!(f, "the plan is not valid: {words}"),
            Self::Config(refusal) => write!(f, "the configuration is not valid: {refusal}"),
            Self::Scheduler(words) => write!(f, "the job scheduler failed: {words}"),
            Self::Stuck { cpu, now_ns } => write!(
                f,
                "CPU {cpu} makes no progress after {}; this is an error of the policy core, please \
                 report it with the plan",
                pbs_text::span(*now_ns)
            ),
            Self::Ticks { most_rows } => write!(
                f,
                "the table of ticks has more than {} rows of a CPU; stop the simulation earlier \
                 (--until, --limit)",
                pbs_text::grouped(*most_rows as u64)
            ),
        }
    }
}

impl std::error::Error for Error {}

/// Runs a plan to its end, or to the limit of `options`.
pub fn simulate(
    plan: &Plan,
    options: &Options,
    scheduler: &mut dyn JobScheduler,
) -> Result<Simulation, Error> {
    simulate_watched(plan, options, scheduler, &mut |_| {})
}

/// Progress of a CPU's simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The CPU.
    pub cpu: u32,
    /// The simulated time.
    pub now_ns: u64,
    /// Planned end of the first plan, as its planner computes it.
    pub planned_ns: u64,
    /// Latest time at which the simulation stops.
    pub limit_ns: u64,
}

/// Like [`simulate`], but calls `watch` with the progress from time to time: once in several
/// thousand decisions.
pub fn simulate_watched(
    plan: &Plan,
    options: &Options,
    scheduler: &mut dyn JobScheduler,
    watch: &mut dyn FnMut(Progress),
) -> Result<Simulation, Error> {
    let board = Board::default();
    let memory = SharedMemory::new(NodeMemory::new(plan).into());
    let waiting = Waiting::default();
    let machine = |cpu| {
        let node =
            Shared { board: board.clone(), memory: memory.clone(), waiting: waiting.clone() };
        Machine::new(plan, scheduler::remaining::part(plan, cpu), options, node)
    };
    let interferes = options.interference.is_some() && plan.cpus.len() > 1;
    let one_scheduler = options.shared_answer_ns.is_some() && plan.cpus.len() > 1;
    let parts = if interferes || one_scheduler || is_coupled(plan) {
        let machines: Result<_, Error> = plan.cpus.iter().map(machine).collect();
        Machine::run_together(machines?, scheduler, watch)?
    } else {
        let mut parts = Vec::new();
        for cpu in &plan.cpus {
            parts.push(machine(cpu)?.run(scheduler, watch)?);
        }
        parts
    };
    let mut whole = outcome::merge(parts, plan);
    let memory = memory.borrow();
    whole.memory = MemoryOutcome {
        limit_bytes: plan.memory_bytes,
        peak_bytes: memory.peak_bytes,
        killed: memory.killed,
    };
    Ok(whole)
}
