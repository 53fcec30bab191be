// SPDX-License-Identifier: GPL-2.0
//! Remaining part of a plan.

use pbs_plan::{Cpu, Plan, Process, Slot};

use crate::clock::Clock;

/// Progress of a plan of one CPU.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Number of the present slot.
    pub cursor: usize,
    /// Instructions of the present slot that have passed, if it is idle.
    pub idle_passed_insns: u64,
    /// Number of ended tasks by index of the process; all tasks, if the process is gone.
    pub ended_tasks: Vec<usize>,
    /// Instructions retired by the current task, by index of the process.
    pub retired_insns: Vec<u64>,
    /// Time until an answer comes into force, in instructions that the CPU retires at its own rate.
    pub ahead_insns: u64,
    /// Time from the begin of the plan until the answer comes into force, by which deadlines are
    /// closer then.
    pub passed_ns: u64,
    /// Rate of the CPU.
    pub clock: Clock,
}

/// Builds the plan that [`NodeState::remaining`](crate::NodeState::remaining) contains, from the
/// plan of one CPU. It has no processes if nothing is left.
pub fn remaining(plan: &Plan, cpu: &Cpu, progress: &Progress) -> Plan {
    let mut rest = Rest {
        plan,
        progress,
        next: progress.ended_tasks.clone(),
        ahead_insns: progress.ahead_insns,
        // Filled with the indices that processes have in the old plan.
        slots: Vec::new(),
    };
    let mut overdue = Vec::new();
    for (number, slot) in plan.place(cpu).enumerate() {
        match slot.task {
            Some((process, task)) if task < progress.ended_tasks[process] => {}
            Some(place) if number < progress.cursor => overdue.push(place),
            Some((process, task)) => rest.push_tasks(process, task + 1),
            None if number < progress.cursor => {}
            None => {
                let passed_insns =
                    if number == progress.cursor { progress.idle_passed_insns } else { 0 };
                rest.push_idle(slot.length_insns.saturating_sub(passed_insns));
            }
        }
    }
    for (process, task) in overdue {
        rest.push_tasks(process, task + 1);
    }
    rest.plan(cpu)
}

struct Rest<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    /// Index of the first task without a slot, by index of the process.
    next: Vec<usize>,
    ahead_insns: u64,
    slots: Vec<Slot>,
}

impl Rest<'_> {
    /// A slot for each task of the process before `end` that has none yet.
    fn push_tasks(&mut self, process: usize, end: usize) {
        let clock = self.progress.clock;
        let own = clock.of_process(&self.plan.processes[process]);
        for task in self.next[process]..end {
            let mut left_insns = self.plan.processes[process].tasks[task].planned_insns;
            if task == self.progress.ended_tasks[process] {
                left_insns = left_insns.saturating_sub(self.progress.retired_insns[process]);
            }
            let passes_insns = clock.insns_for(left_insns, own);
            self.ahead_insns = self.ahead_insns.saturating_sub(passes_insns);
            self.slots.push(Slot::Process { process });
        }
        self.next[process] = self.next[process].max(end);
    }

    fn push_idle(&mut self, length_insns: u64) {
        let passes_insns = length_insns.min(self.ahead_insns);
        self.ahead_insns -= passes_insns;
        if length_insns > passes_insns {
            self.slots
                .push(Slot::Idle { length_insns: length_insns - passes_insns, real_insns: None });
        }
    }

    /// Whether a process has ended all its tasks: no plan has it any more.
    fn is_gone(&self, id: u32) -> bool {
        let index = self.plan.processes.iter().position(|process| process.id == id);
        index.is_some_and(|index| {
            let ended_tasks = self.progress.ended_tasks[index];
            ended_tasks > 0 && ended_tasks >= self.plan.processes[index].tasks.len()
        })
    }

    fn plan(mut self, cpu: &Cpu) -> Plan {
        let mut processes = Vec::new();
        let mut indices = vec![0; self.plan.processes.len()];
        for (old, process) in self.plan.processes.iter().enumerate() {
            let tasks = process.tasks.get(self.progress.ended_tasks[old]..);
            let mut tasks: Vec<_> = tasks.unwrap_or(&[]).to_vec();
            if tasks.is_empty() {
                continue;
            }
            for task in &mut tasks {
                task.after.retain(|after| !self.is_gone(after.process));
                for arrival_ns in task.after.iter_mut().flat_map(|after| &mut after.arrival_ns) {
                    *arrival_ns = arrival_ns.saturating_sub(self.progress.passed_ns);
                }
            }
            indices[old] = processes.len();
            processes.push(Process {
                id: process.id,
                name: process.name.clone(),
                buffer_insns: process.buffer_insns,
                rate_insns_per_ms: process.rate_insns_per_ms,
                memory_bytes: process.memory_bytes,
                deadline_ns: process
                    .deadline_ns
                    .map(|ns| ns.saturating_sub(self.progress.passed_ns)),
                tasks,
                ..Process::default()
            });
        }
        for slot in &mut self.slots {
            if let Slot::Process { process } = slot {
                *process = indices[*process];
            }
        }
        Plan {
            plan_id: self.plan.plan_id,
            memory_bytes: self.plan.memory_bytes,
            config: self.plan.config,
            processes,
            cpus: vec![Cpu {
                cpu: cpu.cpu,
                rate_insns_per_ms: cpu.rate_insns_per_ms,
                slots: self.slots,
                ..Cpu::default()
            }],
            ..Plan::default()
        }
    }
}

/// The part of a plan that is for one CPU, without what only a simulation
/// knows.
pub fn part(plan: &Plan, cpu: &Cpu) -> Plan {
    let everything = Progress {
        cursor: 0,
        idle_passed_insns: 0,
        ended_tasks: vec![0; plan.processes.len()],
        retired_insns: vec![0; plan.processes.len()],
        ahead_insns: 0,
        passed_ns: 0,
        // With nothing ahead it does not matter.
        clock: Clock::new(1),
    };
    let mut here = plan.clone();
    let mut is_here = vec![false; plan.processes.len()];
    for process in plan.processes_on(cpu) {
        is_here[process] = true;
    }
    for (process, is_here) in here.processes.iter_mut().zip(is_here) {
        // Without their tasks the others are gone.
        if !is_here {
            process.tasks.clear();
        }
        for task in &mut process.tasks {
            task.real_insns = None;
            task.wait_insns = None;
        }
    }
    remaining(&here, cpu, &everything)
}

#[cfg(test)]
mod tests {
    use super::{part, remaining, Progress};
    use crate::clock::Clock;
    use pbs_plan::{from_toml, to_toml, Plan};

    const PLAN: &str = "plan_id = 3
[[process]]
id = 4
name = \"a\"
buffer_insns = 7
tasks = [{ planned_insns = 100, real_insns = 150 }, 200, 300]
[[process]]
id = 2
tasks = [{ id = 5, planned_insns = 10 }, { id = 7, planned_insns = 20 }]
[[process]]
id = 9
tasks = [1]
[[cpu]]
cpu = 1
slots = [\"a\", 2, \"idle 50\", \"a\", 2, \"idle 60\", \"a\"]
[[cpu]]
cpu = 0
slots = [9]
";

    fn plan() -> Plan {
        from_toml(PLAN).unwrap()
    }

    fn rest(progress: &Progress) -> String {
        let plan = plan();
        let here = part(&plan, &plan.cpus[0]);
        let toml = to_toml(&remaining(&here, &here.cpus[0], progress));
        toml.lines().last().unwrap_or("").to_owned()
    }

    fn progress(cursor: usize, ended_tasks: [usize; 2]) -> Progress {
        Progress {
            cursor,
            idle_passed_insns: 0,
            ended_tasks: ended_tasks.to_vec(),
            retired_insns: vec![0, 0],
            ahead_insns: 0,
            passed_ns: 0,
            clock: Clock::new(1_000_000),
        }
    }

    #[test]
    fn a_part_has_its_own_processes_and_no_real_lengths() {
        let plan = plan();
        let here = part(&plan, &plan.cpus[0]);
        let ids: Vec<_> = here.processes.iter().map(|process| process.id).collect();
        assert_eq!(ids, [4, 2]);
        assert_eq!(here.plan_id, 3);
        assert_eq!(here.processes[0].buffer_insns, 7);
        assert_eq!(here.processes[0].tasks[0].real_insns, None);
        assert_eq!(here.cpus[0].slots, plan.cpus[0].slots);
        let toml = to_toml(&here);
        assert_eq!(to_toml(&from_toml(&toml).unwrap()), toml);
    }

    #[test]
    fn ended_tasks_and_passed_idle_slots_are_gone() {
        assert_eq!(rest(&progress(3, [1, 1])), "slots = [\"a\", 2, \"idle 60\", \"a\"]");
        // Ahead of its slot.
        assert_eq!(rest(&progress(3, [2, 1])), "slots = [2, \"idle 60\", \"a\"]");
    }

    #[test]
    fn deadlines_count_from_the_new_plan() {
        let mut plan = plan();
        plan.processes[0].deadline_ns = Some(5_000);
        let of = |plan: &Plan| plan.processes.iter().map(|p| p.deadline_ns).collect::<Vec<_>>();
        assert_eq!(of(&part(&plan, &plan.cpus[0])), [Some(5_000), None]);
        let later = Progress { passed_ns: 3_000, ..progress(0, [0, 0]) };
        let here = part(&plan, &plan.cpus[0]);
        assert_eq!(of(&remaining(&here, &here.cpus[0], &later)), [Some(2_000), None]);
        let too_late = Progress { passed_ns: 9_000, ..later };
        assert_eq!(of(&remaining(&here, &here.cpus[0], &too_late)), [Some(0), None]);
    }

    #[test]
    fn a_task_behind_its_slot_comes_before_the_next_of_its_process() {
        assert_eq!(
            rest(&progress(2, [0, 1])),
            "slots = [\"idle 50\", \"a\", \"a\", 2, \"idle 60\", \"a\"]"
        );
        // None is left: at the end.
        assert_eq!(rest(&progress(5, [1, 0])), "slots = [\"idle 60\", \"a\", \"a\", 2, 2]");
    }

    #[test]
    fn nobody_waits_for_a_process_that_is_gone() {
        let mut plan = plan();
        let after = |process, task| pbs_plan::After { process, task, ..pbs_plan::After::default() };
        plan.processes[1].tasks[1].after = vec![after(4, 2), after(9, 0)];
        let here = part(&plan, &plan.cpus[0]);
        let left = |ended| {
            let left = remaining(&here, &here.cpus[0], &progress(0, ended));
            left.processes.last().map(|last| last.tasks[1].after.clone())
        };
        assert_eq!(left([2, 0]), Some(vec![after(4, 2), after(9, 0)]));
        // The other CPU's is not aware of it.
        assert_eq!(left([3, 0]), Some(vec![after(9, 0)]));
    }

    #[test]
    fn idle_time_passes() {
        let mut at = progress(2, [1, 1]);
        at.idle_passed_insns = 20;
        assert_eq!(rest(&at), "slots = [\"idle 30\", \"a\", 2, \"idle 60\", \"a\"]");
        // 30 idle, what is left of 200, 20, and 5 idle.
        at.retired_insns[0] = 150;
        at.ahead_insns = 30 + 50 + 20 + 5;
        assert_eq!(rest(&at), "slots = [\"a\", 2, \"idle 55\", \"a\"]");
        at.ahead_insns = 1 << 40;
        assert_eq!(rest(&at), "slots = [\"a\", 2, \"a\"]");
    }

    #[test]
    fn rates_stay_and_slow_processes_take_longer() {
        let mut plan = plan();
        plan.processes[0].rate_insns_per_ms = 500_000;
        plan.cpus[0].rate_insns_per_ms = 1_000_000;
        let here = part(&plan, &plan.cpus[0]);
        assert_eq!(here.processes[0].rate_insns_per_ms, 500_000);
        assert_eq!(here.cpus[0].rate_insns_per_ms, 1_000_000);
        let mut at = progress(2, [1, 1]);
        // The whole idle slot, the 200 of the first process in the time of 400, the 20 of
        // the other one, and 5 idle.
        at.ahead_insns = 50 + 400 + 20 + 5;
        let left = remaining(&here, &here.cpus[0], &at);
        let toml = to_toml(&left);
        assert!(toml.ends_with("slots = [\"a\", 2, \"idle 55\", \"a\"]\n"), "{toml}");
        assert_eq!(left.processes[0].rate_insns_per_ms, 500_000);
    }
}
