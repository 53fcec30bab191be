// SPDX-License-Identifier: GPL-2.0
//! State of a node at the moment at which its simulation stops, like that at which
//! `hold_at_tick` stops Leppert's simulation (Leppert 2021, 4.3.1).

use pbs_core::wire::NO_TASK;
use pbs_core::{Memory, Node};
use serde::Serialize;

/// State of the node of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldNode {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time of the state.
    pub now_ns: u64,
    /// Number of the present slot.
    pub slot: u32,
    /// Value of t1 in that slot, if it has one.
    pub t1_insns: Option<u64>,
    /// Instructions that its process has retired in the slot.
    pub slot_count_insns: u64,
    /// Process that is granted the CPU.
    pub granted: Option<u32>,
    /// Stress, in points.
    pub stress: u64,
    /// Number of processes that have begun and have tasks left.
    pub active: u32,
    /// Lateness of the node.
    pub lateness_insns: i64,
    /// Lateness above which the node signals.
    pub t2_node_insns: u64,
    /// Lateness below which the node signals.
    pub tm2_node_insns: i64,
    /// Average time from a failure to its plan, if a plan has come.
    pub reschedule_time_ns: Option<u64>,
    /// Average time between plans.
    pub plan_interval_ns: Option<u64>,
    /// Processes of the plan in force.
    pub processes: Vec<HeldProcess>,
}

/// State of one process and its current task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldProcess {
    /// Number of the process.
    pub id: u32,
    /// Number of the current task, if there is one.
    pub task: Option<u32>,
    /// Planned length of the task.
    pub planned_insns: u64,
    /// Instructions that the task has retired.
    pub retired_insns: u64,
    /// Count above which the task is late.
    pub t2_task_insns: u64,
    /// Count below which the end of the task is early.
    pub tm2_task_insns: u64,
    /// Number of preemptions of the task.
    pub preemptions: u32,
    /// Lateness of the process.
    pub lateness_insns: i64,
    /// Lateness above which the process signals: the greater of its capacity buffer and
    /// t2_process.
    pub t2_process_insns: u64,
    /// Plan buffer of the process.
    pub buffer_insns: u64,
}

impl HeldNode {
    /// State of `node` on `cpu` at `now_ns`.
    pub fn of<M: Memory>(cpu: u32, node: &Node<M>, now_ns: u64) -> Self {
        let thresholds = node.thresholds(now_ns);
        let id = |p: u32| node.process(p).map(|info| info.id);
        let processes = (0..node.plan().processes().len() as u32).filter_map(|p| {
            let info = node.process(p)?;
            Some(HeldProcess {
                id: info.id,
                task: Some(info.task).filter(|&task| task != NO_TASK),
                planned_insns: info.planned_insns,
                retired_insns: info.retired_insns,
                t2_task_insns: node.policy().t2_task_insns(info.planned_insns),
                tm2_task_insns: node.policy().tm2_task_insns(info.planned_insns),
                preemptions: info.preemptions,
                lateness_insns: info.lateness_insns,
                t2_process_insns: node.process_limit_insns(p, now_ns),
                buffer_insns: info.buffer_insns,
            })
        });
        Self {
            cpu,
            now_ns,
            slot: node.cursor(),
            t1_insns: node.slot_t1_insns(),
            slot_count_insns: node.slot_count_insns(),
            granted: node.granted().0.and_then(id),
            stress: thresholds.stress,
            active: thresholds.active,
            lateness_insns: thresholds.lateness_insns,
            t2_node_insns: thresholds.t2_node_insns,
            tm2_node_insns: thresholds.tm2_node_insns,
            reschedule_time_ns: node.measured_reschedule_time_ns(),
            plan_interval_ns: node.plan_interval_ns(),
            processes: processes.collect(),
        }
    }
}
