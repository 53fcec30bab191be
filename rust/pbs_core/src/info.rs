// SPDX-License-Identifier: GPL-2.0

//! State of a node as it is shown, in sysfs and elsewhere.

use super::config::Config;
use super::event::{Counts, Grant};
use super::memory::Memory;
use super::node::Node;
use super::plan::Plan;
use super::policy::Policy;
use super::rate::Rate;
use super::run::Presence;

/// The state of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The planner's number for the process.
    pub id: u32,
    /// Presence of the threads of the process.
    pub presence: Presence,
    /// All tasks have ended, or its threads are gone for good.
    pub done: bool,
    /// Tasks that have ended.
    pub ended_tasks: u32,
    /// Tasks that it has in the plan.
    pub tasks: u32,
    /// Id of its current task, [`NO_TASK`](super::wire::NO_TASK) if it has none.
    pub task: u32,
    /// Planned length of the current task.
    pub planned_insns: u64,
    /// Retired by the current task so far.
    pub retired_insns: u64,
    /// Preemptions of the current task.
    pub preemptions: u32,
    /// Lateness of the process, negative when it is early.
    pub lateness_insns: i64,
    /// Plan buffer of the process.
    pub buffer_insns: u64,
    /// Largest virtual size seen of the current task.
    pub task_peak_vm_bytes: u64,
    /// Largest resident size seen of the current task.
    pub task_peak_rss_bytes: u64,
    /// Largest virtual size seen of the process.
    pub peak_vm_bytes: u64,
    /// Largest resident size seen of the process.
    pub peak_rss_bytes: u64,
    /// Planned peak of resident memory; 0: none.
    pub memory_bytes: u64,
    /// Memory above which the process is a prediction failure, if that is switched on; 0: none.
    pub t2_memory_bytes: u64,
}

impl ProcessInfo {
    /// Whether the process has tasks left, and more memory than its threshold.
    pub fn is_beyond_memory(&self) -> bool {
        !self.done && self.t2_memory_bytes != 0 && self.peak_rss_bytes > self.t2_memory_bytes
    }
}

impl<M: Memory> Node<M> {
    /// The plan.
    pub fn plan(&self) -> &Plan<M> {
        &self.plan
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.policy.config
    }

    /// The configuration with its times as instructions.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The rate of process `p`, as declared by the plan, else that of the CPU.
    pub fn rate_of(&self, p: u32) -> Rate {
        self.rates.of(p)
    }

    /// The rate of the CPU, as declared by the plan, else by the machine.
    pub fn rate(&self) -> Rate {
        self.rates.cpu()
    }

    /// The planner's name for the plan.
    pub fn plan_id(&self) -> u64 {
        self.status.id()
    }

    /// Time at which the plan came into force.
    pub fn installed_ns(&self) -> u64 {
        self.status.installed_ns()
    }

    /// Number of the present slot; [`Node::slots`] after the last.
    ///
    /// The present slot is the first one that is not over, where slots float.
    pub fn cursor(&self) -> u32 {
        if self.floats() {
            self.floating.front()
        } else {
            self.slot.number()
        }
    }

    /// Number of the slot of the process that is granted the CPU, where slots float; `None`
    /// if nobody is granted, or one without a slot.
    pub fn floating_slot(&self) -> Option<u32> {
        (self.floats() && self.slot.has_begun()).then(|| self.slot.number())
    }

    /// Number of slots of the plan.
    pub fn slots(&self) -> u32 {
        self.plan.slots.len() as u32
    }

    /// t1 of the present slot, or of the one that begins next, if it has one.
    pub fn slot_t1_insns(&self) -> Option<u64> {
        if self.slot.has_begun() {
            return self.slot.t1_insns();
        }
        if self.floats() {
            return None;
        }
        self.t1_insns(self.plan.slot(self.slot.number())?)
    }

    /// Retired in the present slot by its process.
    pub fn slot_count_insns(&self) -> u64 {
        if self.slot.has_begun() {
            self.slot.count_insns()
        } else {
            0
        }
    }

    /// The process that is granted the CPU, and the reason.
    pub fn granted(&self) -> (Option<u32>, Grant) {
        (self.grant.process(), self.grant.reason())
    }

    /// The end of the plan was reported.
    pub fn ended(&self) -> bool {
        self.status.has_ended()
    }

    /// Processes that are not done.
    pub fn unfinished(&self) -> u32 {
        self.processes.unfinished()
    }

    /// Number of events of each kind.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Lateness of process `p`, negative when it is early.
    pub fn process_lateness_insns(&self, p: u32) -> i64 {
        self.processes.get(p).map_or(0, |run| run.lateness_insns())
    }

    /// Lateness of the node: Σ process lateness of the active processes, which
    /// have begun and are not done (Leppert 2021, 3.3.6).
    pub fn lateness_insns(&self) -> i64 {
        self.processes.sums().lateness_insns()
    }

    /// The state of process `p`.
    pub fn process(&self, p: u32) -> Option<ProcessInfo> {
        let process = self.plan.process(p)?;
        let run = self.processes.get(p)?;
        Some(ProcessInfo {
            id: process.id,
            presence: run.presence,
            done: run.done,
            ended_tasks: run.position,
            tasks: process.count,
            task: run.task,
            planned_insns: run.planned_insns,
            retired_insns: run.retired_insns,
            preemptions: run.preemptions,
            lateness_insns: run.lateness_insns(),
            buffer_insns: process.buffer_insns,
            task_peak_vm_bytes: run.peak.vm_bytes,
            task_peak_rss_bytes: run.peak.rss_bytes,
            peak_vm_bytes: run.process_peak.vm_bytes,
            peak_rss_bytes: run.process_peak.rss_bytes,
            memory_bytes: process.memory_bytes,
            t2_memory_bytes: self.t2_memory_bytes(p),
        })
    }

    /// Instructions that the granted process may still retire before the node must be
    /// asked again, as [`until_insns`](super::Decision::until_insns).
    #[inline]
    pub fn left_insns(&self) -> Option<u64> {
        self.standing.left_insns()
    }

    /// The moment at which the node must be asked again, as
    /// [`until_ns`](super::Decision::until_ns).
    #[inline]
    pub fn until_ns(&self) -> Option<u64> {
        self.standing.until_ns()
    }

    /// The moment of the last decision.
    #[inline]
    pub fn settled_ns(&self) -> u64 {
        self.standing.since_ns()
    }

    /// Whether the last decision was made for unallocated time.
    #[inline]
    pub fn is_unallocated(&self) -> bool {
        self.standing.is_unallocated()
    }

    /// Whether the plan uses unallocated time in which no lower class has anything to run.
    #[inline]
    pub fn uses_unallocated(&self) -> bool {
        self.floats()
    }

    /// Whether the last decision must be continued soon.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.standing.is_unfinished()
    }
}
