// SPDX-License-Identifier: GPL-2.0
//! Whether a plan makes sense, said in the words of the file it was read from.
//!
//! The kernel's validator, which has the last word, knows only what is in the
//! wire format. Here everything is checked that it cannot see, and what it
//! would refuse too if the file lets one say it better.

use std::collections::HashMap;

use pbs_text::{between, underscored, Line, Problem, Problems};
use pbs_uapi::{IDLE, MAX_BUFFER_INSNS, MAX_PROCESSES, MAX_SLOTS, MAX_SLOT_INSNS, NO_TASK};

use crate::{order, After, Config, Cpu, Plan, Process, Slot, Task, LEASE_NS};

pub(crate) fn check(plan: &Plan) -> Result<(), Vec<Problem>> {
    let mut check = Check { plan, problems: Problems::default() };
    check.config();
    check.lease();
    let are_told_apart = check.names();
    for process in &plan.processes {
        check.process(process);
    }
    // Otherwise, nobody knows which process a slot or a dependency means.
    if are_told_apart {
        check.slots();
        check.order();
    }
    check.problems.none()
}

/// A number of a configuration that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// Index of the number in [`Config::NAMES`].
    pub index: usize,
    /// Name of the number.
    pub name: &'static str,
    /// Value of the number.
    pub value: u64,
    /// The least that it may be, given the other numbers.
    pub least: u64,
    /// The greatest.
    pub most: u64,
    /// Reason for which it may not be less, as the end of a sentence; may be empty.
    pub why: &'static str,
}

/// The least and the greatest value of each number. The ranges of the kernel leave no t2_task for
/// the greatest of its t1; here, t1 leaves one.
pub(crate) fn config_ranges(config: &Config) -> [(u64, u64); Config::COUNT] {
    let mut ranges = config.ranges();
    let place = |wanted: &str| Config::NAMES.iter().position(|name| *name == wanted);
    if let (Some(t1), Some(t2)) = (place("sigma_t1_permille"), place("sigma_t2_permille")) {
        ranges[t1].1 = ranges[t1].1.min(ranges[t2].1 - 1);
    }
    ranges
}

/// All numbers that are out of their ranges. A number without any value that would do is left out:
/// the number on which its range depends is out of its own.
pub fn config_faults(config: &Config) -> Vec<ConfigFault> {
    let numbers = config.values().into_iter().zip(config_ranges(config));
    let numbers = numbers.enumerate();
    let out = numbers
        .filter(|(_, (value, (least, most)))| !(least..=most).contains(&value) && least <= most);
    out.map(|(index, (value, (least, most)))| ConfigFault {
        index,
        name: Config::NAMES[index],
        value,
        least,
        most,
        why: Config::why_not_less(Config::NAMES[index], value, least),
    })
    .collect()
}

/// Returns the reason for which a process can't have that name, if there is one.
pub fn name_fault(name: &str) -> Option<String> {
    let mut characters = name.chars();
    let starts_well = characters.next().is_some_and(char::is_alphabetic);
    let is_bad = !starts_well || name.starts_with("idle") || characters.any(char::is_control);
    is_bad.then(|| {
        format!(
            "process name {name:?} could be taken for a number or an idle slot; \
             begin it with a letter, and not with \"idle\""
        )
    })
}

struct Check<'a> {
    plan: &'a Plan,
    problems: Problems,
}

impl Check<'_> {
    fn problem(&mut self, line: Line, message: impl Into<String>) {
        self.problems.add(line, || message.into());
    }

    fn config(&mut self) {
        let Some(config) = &self.plan.config else {
            return;
        };
        for fault in config_faults(config) {
            let ConfigFault { index, name, value, least, most, why } = fault;
            let line = self.plan.config_lines[index];
            // Some ranges depend on other numbers of the file.
            let left_out = line.is_none() && value == Config::DEFAULT.values()[index];
            let (value, range) = (underscored(value), between(least, most));
            let message = if left_out {
                format!(
                    "{name} is left out and so {value}, but with the other numbers of [config] \
                     it must be {range}{why}; add it"
                )
            } else {
                format!("{name} is {value}; it must be {range}{why}")
            };
            self.problem(line, message);
        }
    }

    fn lease(&mut self) {
        let lease_ns = self.plan.lease_ns;
        if lease_ns != 0 && !LEASE_NS.contains(&lease_ns) {
            let (least, most) = (underscored(*LEASE_NS.start()), underscored(*LEASE_NS.end()));
            let message = format!(
                "lease_ns is {}; write 0 for none, or {least} to {most} (\"100ms\" to \"1h\")",
                underscored(lease_ns)
            );
            self.problem(self.plan.lease_ns_line, message);
        }
    }

    /// Checks that numbers and names of processes tell them apart; returns whether they do.
    fn names(&mut self) -> bool {
        let mut are_told_apart = true;
        let mut ids: HashMap<u32, &Process> = HashMap::new();
        let mut names: HashMap<&str, &Process> = HashMap::new();
        for process in &self.plan.processes {
            if process.id == IDLE {
                self.problem(process.line, format!("process id {IDLE} means idle; choose another"));
            }
            if let Some(first) = ids.insert(process.id, process) {
                are_told_apart = false;
                self.problem(
                    process.line,
                    format!(
                        "process id {} is taken{}; choose another",
                        process.id,
                        by_line(first.line)
                    ),
                );
            }
            let Some(name) = process.name.as_deref() else {
                continue;
            };
            if let Some(first) = names.insert(name, process) {
                are_told_apart = false;
                self.problem(
                    process.line,
                    format!("process name {name} is taken{}; choose another", by_line(first.line)),
                );
            }
            if let Some(message) = name_fault(name) {
                self.problem(process.line, message);
            }
        }
        are_told_apart
    }

    fn process(&mut self, process: &Process) {
        let label = process.label();
        if process.buffer_insns > MAX_BUFFER_INSNS {
            self.problem(
                process.line,
                format!(
                    "process {label} has a buffer_insns of {}; at most {} are allowed",
                    underscored(process.buffer_insns),
                    underscored(MAX_BUFFER_INSNS)
                ),
            );
        }
        let tasks = process.tasks.len();
        if tasks == 0 {
            self.problem(
                process.line,
                format!("process {label} has no task; add its length: tasks = [20_000_000]"),
            );
        }
        let fault = process.start.fault(&label, tasks, process.line);
        self.problems.extend(fault);
        let mut before: Option<u32> = None;
        for task in &process.tasks {
            if let Some(before) = before.filter(|&before| before >= task.id) {
                self.problem(
                    task.line,
                    format!(
                        "task {} of process {label} comes after task {before}; \
                         task ids must ascend, leave them out to have them numbered",
                        task.id
                    ),
                );
            }
            before = Some(task.id);
            if task.id == NO_TASK {
                self.problem(
                    task.line,
                    format!("task id {NO_TASK} means no task; choose a smaller one"),
                );
            }
            self.length(
                task.line,
                &format!("task {} of process {label}", task.id),
                task.planned_insns,
            );
            self.simulated(task.line, "real_insns", task.real_insns);
            self.simulated(task.line, "wait_insns", task.wait_insns);
        }
    }

    /// Checks that a length that only simulations read is within the kernel's limit.
    fn simulated(&mut self, line: Line, what: &str, length_insns: Option<u64>) {
        if let Some(length_insns) = length_insns.filter(|&length| length > MAX_SLOT_INSNS) {
            self.problem(
                line,
                format!(
                    "{what} is {}; at most {} are allowed",
                    underscored(length_insns),
                    underscored(MAX_SLOT_INSNS)
                ),
            );
        }
    }

    fn length(&mut self, line: Line, what: &str, length_insns: u64) {
        if !(1..=MAX_SLOT_INSNS).contains(&length_insns) {
            self.problem(
                line,
                format!(
                    "{what} is {} instructions long; it must be {}",
                    underscored(length_insns),
                    between(1, MAX_SLOT_INSNS)
                ),
            );
        }
    }

    /// Checks that no CPU has more than the kernel takes, given the CPU of each process.
    fn sizes(&mut self, cpu_of: &[Option<u32>]) {
        let mut processes: HashMap<u32, usize> = HashMap::new();
        for cpu in cpu_of.iter().flatten() {
            *processes.entry(*cpu).or_default() += 1;
        }
        for cpu in &self.plan.cpus {
            let processes = processes.get(&cpu.cpu).copied().unwrap_or(0);
            let sizes = [
                (processes, MAX_PROCESSES as usize, "processes"),
                (cpu.slots.len(), MAX_SLOTS as usize, "slots"),
            ];
            for (number, most, what) in sizes {
                if number > most {
                    self.problem(
                        cpu.line,
                        format!(
                            "CPU {} has {} {what}, and may have {}; move some to another CPU, or \
                             plan them later",
                            cpu.cpu,
                            underscored(number as u64),
                            underscored(most as u64)
                        ),
                    );
                }
            }
        }
    }

    fn slots(&mut self) {
        let plan = self.plan;
        let mut cpus: HashMap<u32, &Cpu> = HashMap::new();
        // Per process: its CPU, and how many slots it has.
        let mut cpu_of: Vec<Option<u32>> = vec![None; plan.processes.len()];
        let mut slots_of = vec![0usize; plan.processes.len()];
        for cpu in &plan.cpus {
            if let Some(first) = cpus.insert(cpu.cpu, cpu) {
                self.problem(
                    cpu.line,
                    format!(
                        "CPU {} has a plan already{}; put its slots into one [[cpu]]",
                        cpu.cpu,
                        by_line(first.line)
                    ),
                );
            }
            // Without slots it is cleared; with slots somebody must be there for them.
            let idle = |slot: &Slot| matches!(slot, Slot::Idle { .. });
            if !cpu.slots.is_empty() && cpu.slots.iter().all(idle) {
                self.problem(
                    cpu.line,
                    format!(
                        "CPU {} has idle slots alone; add those of a process, or write \
                         slots = [] to have no process there",
                        cpu.cpu
                    ),
                );
            }
            for (number, slot) in cpu.slots.iter().enumerate() {
                let line = cpu.slot_lines.get(number).copied().flatten();
                match *slot {
                    Slot::Idle { length_insns, real_insns } => {
                        self.length(line, &format!("idle slot {number}"), length_insns);
                        self.simulated(line, "real_insns", real_insns);
                    }
                    Slot::Process { process } => {
                        let label = plan.processes[process].label();
                        let tasks = plan.processes[process].tasks.len();
                        slots_of[process] += 1;
                        if slots_of[process] == tasks + 1 && tasks > 0 {
                            self.problem(
                                line,
                                format!(
                                    "slot {number} is one more than process {label} has tasks \
                                     ({tasks}); add a task to the process or remove the slot"
                                ),
                            );
                        }
                        let home = *cpu_of[process].get_or_insert(cpu.cpu);
                        if home != cpu.cpu {
                            self.problem(
                                line,
                                format!(
                                    "process {label} has slots on CPU {home} and on CPU {}; \
                                     a process belongs to one CPU, so make it two processes",
                                    cpu.cpu
                                ),
                            );
                        }
                    }
                }
            }
        }
        self.sizes(&cpu_of);
        for (index, process) in plan.processes.iter().enumerate() {
            let label = process.label();
            let (slots, tasks) = (slots_of[index], process.tasks.len());
            if slots == 0 {
                self.problem(
                    process.line,
                    format!(
                        "process {label} has no slot; add it to a [[cpu]] slots list \
                         or remove the process"
                    ),
                );
            } else if slots < tasks {
                self.problem(
                    process.line,
                    format!(
                        "process {label} has {tasks} tasks but {slots} slots; name it \
                         {} more times in the slots list",
                        tasks - slots
                    ),
                );
            }
            if let (Some(said), Some(home)) = (process.cpu, cpu_of[index]) {
                if said != home {
                    self.problem(
                        process.line,
                        format!(
                            "process {label} says cpu = {said}, but its slots are on CPU {home}; \
                             move them, or leave cpu out"
                        ),
                    );
                }
            }
        }
    }
}

impl Check<'_> {
    /// Checks the dependencies between tasks.
    fn order(&mut self) {
        let plan = self.plan;
        if order::edges(plan).next().is_none() {
            return;
        }
        let processes: HashMap<u32, &Process> =
            plan.processes.iter().map(|process| (process.id, process)).collect();
        let before = self.problems.count();
        let tasks =
            plan.processes.iter().flat_map(|it| it.tasks.iter().map(move |task| (it, task)));
        let edges = tasks.flat_map(|(process, task)| {
            let is_twice = waits_twice(task);
            task.after.iter().map(move |after| (process, task, after, is_twice))
        });
        for (process, task, after, is_twice) in edges {
            let known = processes.get(&after.process);
            let is_own = after.process == process.id;
            let is_known = known.is_some_and(|process| has_had(process, after.task));
            if !is_own && is_known && !(is_twice && is_again(task, after)) {
                continue;
            }
            let (label, waits) = (process.label(), task.label());
            let message = if is_own {
                format!(
                    "task {waits} of process {label} waits for its own process; its tasks follow \
                     each other anyway, so leave it out of after"
                )
            } else if !is_known {
                let theirs = known.map_or_else(|| after.process.to_string(), |known| known.label());
                format!(
                    "task {waits} of process {label} waits for task {} of process {theirs}, which \
                     the plan does not have; leave it out of after, or add it",
                    after.task
                )
            } else {
                let twice = order::label(plan, after.process, after.task);
                format!(
                    "task {waits} of process {label} waits for {twice} twice; leave one of them \
                     out of after"
                )
            };
            self.problem(after.line.or(task.line), message);
        }
        if self.problems.count() > before {
            return;
        }
        if let Some(circle) = order::circle(plan) {
            let line = circle.first().and_then(|edge| edge.2.line.or(edge.1.line));
            self.problem(line, order::refusal(plan, &circle));
        }
    }
}

/// Whether the process has the task, or has had it under an earlier plan.
fn has_had(process: &Process, task: u32) -> bool {
    let first = process.tasks.first();
    first.is_some_and(|first| task < first.id) || process.position_of(task).is_some()
}

/// Whether the task waits for another one more than once.
fn waits_twice(task: &Task) -> bool {
    let mut awaited: Vec<_> = task.after.iter().map(|it| (it.process, it.task)).collect();
    awaited.sort_unstable();
    awaited.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether the task waits for the same one already.
fn is_again(task: &Task, after: &After) -> bool {
    let mut same = task
        .after
        .iter()
        .filter(|other| (other.process, other.task) == (after.process, after.task));
    same.next().is_some_and(|first| !std::ptr::eq(first, after))
}

fn by_line(line: Line) -> String {
    line.map_or_else(String::new, |line| format!(" by line {line}"))
}
