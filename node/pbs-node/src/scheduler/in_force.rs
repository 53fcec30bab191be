// SPDX-License-Identifier: GPL-2.0
//! The plan of a CPU, and what is left of it.

use pbs_plan::{Config, Cpu, Plan, Slot};
use pbs_sim::{part, remaining, Clock, NodeState, PlanProgress, ProcessState};
use pbs_uapi::{Event, EventKind, Process, NO_SLOT, NO_TASK};

/// Figures that are the same for all CPUs of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    /// Configuration of plans that have none.
    pub(super) config: Config,
    /// Rate of CPUs whose plan has none.
    pub(super) rate_insns_per_ms: u64,
}

/// The plan of one CPU.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    /// The part of the plan that is for this CPU.
    pub(super) plan: Plan,
    pub(super) config: Config,
    cpu: Cpu,
    rate_insns_per_ms: u64,
    since_ns: u64,
    /// Number of the present slot, as the last event had it.
    slot: usize,
    /// Tasks here wait for tasks on other CPUs, or those for tasks here.
    pub(super) is_coupled: bool,
}

impl InForce {
    /// The part of a plan that was written at `now_ns`; `None`: it has no slot for that CPU.
    pub(super) fn new(whole: &Plan, cpu: &Cpu, defaults: Defaults, now_ns: u64) -> Option<Self> {
        let plan = part(whole, cpu);
        let cpu = plan.cpus.first().filter(|_| !plan.processes.is_empty())?.clone();
        let is_here = |id: u32| plan.process(id).is_some();
        let is_coupled = whole.processes.iter().any(|process| {
            let mut after = process.tasks.iter().flat_map(|task| &task.after);
            after.any(|after| is_here(after.process) != is_here(process.id))
        });
        Some(Self {
            config: whole.config.unwrap_or(defaults.config),
            rate_insns_per_ms: match cpu.rate_insns_per_ms {
                0 => defaults.rate_insns_per_ms,
                rate_insns_per_ms => rate_insns_per_ms,
            },
            since_ns: now_ns,
            slot: 0,
            is_coupled,
            cpu,
            plan,
        })
    }

    /// Notes where the CPU stands.
    pub(super) fn event(&mut self, event: &Event) {
        if event.plan_id != self.plan.plan_id {
            return;
        }
        if event.kind == EventKind::PlanInstalled as u16 {
            self.since_ns = event.time_ns;
            self.slot = 0;
        } else if event.slot != NO_SLOT && event.slot < self.cpu.slots.len() as u64 {
            self.slot = self.slot.max(event.slot as usize);
        }
    }

    /// The state of the node at `now_ns`, as a command is asked about it: its times count from
    /// `begin_ns`. `known` is what the kernel says of a process; `None`: it is gone.
    pub(super) fn state(
        &self,
        known: &dyn Fn(u32) -> Option<Process>,
        begin_ns: u64,
        now_ns: u64,
    ) -> NodeState {
        let known: Vec<_> = self.plan.processes.iter().map(|process| known(process.id)).collect();
        let clock = Clock::new(self.rate_insns_per_ms);
        let ended = self.plan.processes.iter().zip(&known).map(|(process, known)| match known {
            Some(known) if !is_over(known) => match known.task {
                NO_TASK => 0,
                task => process.tasks.partition_point(|it| it.id < task),
            },
            _ => usize::MAX,
        });
        let reschedule_time_ns = self.config.reschedule_time_ns;
        let progress = PlanProgress {
            cursor: self.slot,
            // Events do not say how much of an idle slot has passed.
            idle_passed_insns: 0,
            ended_tasks: ended.collect(),
            retired_insns: known
                .iter()
                .map(|known| known.map_or(0, |known| known.retired_insns))
                .collect(),
            ahead_insns: clock.insns_in(reschedule_time_ns),
            passed_ns: now_ns.saturating_sub(self.since_ns).saturating_add(reschedule_time_ns),
            clock,
        };
        NodeState {
            cpu: self.cpu.cpu,
            now_ns: now_ns.saturating_sub(begin_ns),
            rate_insns_per_ms: self.rate_insns_per_ms,
            config: self.config,
            processes: known.iter().flatten().map(process_state).collect(),
            remaining: Plan {
                config: Some(self.config),
                ..remaining(&self.plan, &self.cpu, &progress)
            },
        }
    }
}

fn process_state(known: &Process) -> ProcessState {
    ProcessState {
        id: known.process,
        ended: is_over(known),
        task: Some(known.task).filter(|&task| task != NO_TASK),
        planned_insns: known.planned_insns,
        retired_insns: known.retired_insns,
        preemptions: known.preemptions,
        lateness_insns: known.lateness_insns,
    }
}

/// Whether nothing of a process is left to plan: it has ended, or its thread has.
fn is_over(known: &Process) -> bool {
    let has_begun = known.ended_tasks > 0 || known.retired_insns > 0;
    match pbs_uapi::ProcessState::from_raw(known.state) {
        Some(pbs_uapi::ProcessState::Done) => true,
        Some(pbs_uapi::ProcessState::Absent) => has_begun,
        _ => false,
    }
}

/// One plan of all those of single CPUs.
pub(super) fn together<'a>(plans: impl Iterator<Item = &'a Plan>) -> Plan {
    let mut whole = Plan::default();
    for plan in plans {
        let first = whole.processes.len();
        whole.plan_id = whole.plan_id.max(plan.plan_id);
        whole.dealt_seq = whole.dealt_seq.max(plan.dealt_seq);
        whole.lease_ns = whole.lease_ns.max(plan.lease_ns);
        whole.memory_bytes = whole.memory_bytes.max(plan.memory_bytes);
        whole.config = whole.config.or(plan.config);
        whole.processes.extend(plan.processes.iter().cloned());
        for cpu in &plan.cpus {
            let mut cpu = cpu.clone();
            for slot in &mut cpu.slots {
                if let Slot::Process { process } = slot {
                    *process += first;
                }
            }
            whole.cpus.push(cpu);
        }
    }
    whole
}
