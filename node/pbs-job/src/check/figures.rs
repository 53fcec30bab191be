// SPDX-License-Identifier: GPL-2.0
//! Whether the figures of a job are in their ranges, and its names and numbers
//! tell things apart.

use std::collections::{HashMap, HashSet};

use pbs_plan::name_fault;
use pbs_text::{between, underscored, Line, Problems};
use pbs_uapi::{IDLE, MAX_SLOT_INSNS, NO_TASK};

use crate::amounts::amounts_fault;
use crate::checkpoint::signal_fault;
use crate::draft::{Draft, DraftProcess, DraftTask};
use crate::{MAX_HOLDERS, MAX_MEMORY_BYTES, MAX_NS, MAX_RATE_INSNS_PER_S, MAX_WORTH};

/// Checks the figures of a job. Returns whether its processes and its tasks have different numbers:
/// otherwise, nobody knows which task belongs to which process or leads to which other one.
pub(super) fn check(draft: &Draft, problems: &mut Problems) -> bool {
    let mut figures = Figures { processes: draft.processes.len(), problems };
    figures.job(draft);
    let mut work = HashMap::new();
    let mut memory = HashMap::new();
    for task in &draft.tasks {
        *work.entry(task.process).or_insert(0usize) += usize::from(task.insns > 0);
    }
    figures.names(draft);
    let mut numbers = HashSet::new();
    let are_told_apart = draft.processes.iter().all(|process| numbers.insert(process.id));
    for process in &draft.processes {
        memory.entry(process.id).or_insert(process.memory_bytes);
        let tasks = work.get(&process.id).copied();
        figures.process(process, tasks, are_told_apart);
    }
    let mut are_tasks_told_apart = true;
    let mut ids: HashMap<u32, &DraftTask> = HashMap::new();
    for task in &draft.tasks {
        figures.task(task, memory.get(&task.process).copied());
        if let Some(first) = ids.get(&task.id) {
            are_tasks_told_apart = false;
            figures.problems.add(task.line, || {
                format!(
                    "task id {} is taken{}; choose another for {}",
                    task.id,
                    by_line(first.line),
                    task.label()
                )
            });
        } else {
            ids.insert(task.id, task);
        }
    }
    are_told_apart && are_tasks_told_apart
}

/// Returns the message about a job that must have ended before it may begin.
pub(crate) fn late_start(draft: &Draft) -> String {
    format!(
        "the job's deadline, {}, is not after its start, {}; put it later",
        underscored(draft.deadline_ns),
        underscored(draft.start_ns)
    )
}

/// Returns the message about a CPU that a job names more than once.
pub(crate) fn cpu_twice(cpu: u32) -> String {
    format!("cpus names CPU {cpu} twice; write each once")
}

/// Returns the message about a CPU of a process on which its job may not run.
fn foreign_cpu(process: &str, cpu: u32) -> String {
    format!(
        "process {process} is confined to CPU {cpu}, which is none of those of the job; name it \
         in the cpus of the job, too"
    )
}

/// The numbers that stand there more than once, ascending.
fn twice(numbers: &[u32]) -> Vec<u32> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let pairs = numbers.windows(2).filter(|pair| pair[0] == pair[1]);
    let mut twice: Vec<u32> = pairs.map(|pair| pair[0]).collect();
    twice.dedup();
    twice
}

struct Figures<'a> {
    /// Number of processes of the job.
    processes: usize,
    problems: &'a mut Problems,
}

impl Figures<'_> {
    fn problem(&mut self, line: Line, message: impl Into<String>) {
        self.problems.add(line, || message.into());
    }

    fn range(&mut self, line: Line, what: &str, value: u64, least: u64, most: u64) {
        if !(least..=most).contains(&value) {
            let (value, range) = (underscored(value), between(least, most));
            self.problem(line, format!("{what} is {value}; it must be {range}"));
        }
    }

    fn job(&mut self, draft: &Draft) {
        if draft.name.is_empty() || draft.name.contains(char::is_control) {
            self.problem(None, "the job has no name that can be printed; add name = \"...\"");
        }
        self.range(None, "start_ns of the job", draft.start_ns, 0, MAX_NS);
        let deadline_ns = draft.deadline_ns;
        self.range(None, "deadline_ns of the job", deadline_ns, 1, MAX_NS);
        if draft.start_ns >= deadline_ns {
            self.problem(None, late_start(draft));
        }
        self.range(None, "value of the job", draft.worth.value, 0, MAX_WORTH);
        self.range(None, "penalty of the job", draft.worth.penalty, 0, MAX_WORTH);
        if let Some(checkpoint) = &draft.checkpoint {
            let what = "within_ns of the checkpoint";
            self.range(None, what, checkpoint.within_ns, 1, MAX_NS);
            if let Some(fault) = signal_fault(&checkpoint.signal) {
                self.problem(None, fault);
            }
        }
        if let Some(runtime_ns) = draft.runtime_ns {
            self.range(None, "runtime_ns of the job", runtime_ns, 1, MAX_NS);
        }
        if let Some(bytes) = draft.memory_bytes {
            self.range(None, "memory_bytes of the job", bytes, 0, MAX_MEMORY_BYTES);
        }
        for cpu in twice(&draft.cpus) {
            self.problem(None, cpu_twice(cpu));
        }
        if let Some(fault) = amounts_fault(&draft.resources) {
            self.problem(None, fault);
        }
        if !draft.resources.is_empty() && draft.processes.len() > MAX_HOLDERS {
            let processes = underscored(draft.processes.len() as u64);
            self.problem(
                None,
                format!(
                    "the job holds resources as a whole and has {processes} processes, of which \
                     at most {MAX_HOLDERS} are allowed then; write resources at its processes"
                ),
            );
        }
        let of_job: HashSet<u32> = draft.cpus.iter().copied().collect();
        for process in &draft.processes {
            for cpu in twice(&process.cpus) {
                self.problem(process.line, cpu_twice(cpu));
            }
            for &cpu in &process.cpus {
                if !of_job.is_empty() && !of_job.contains(&cpu) {
                    self.problems.add(process.line, || foreign_cpu(&process.label(), cpu));
                }
            }
        }
        if draft.processes.is_empty() {
            self.problem(
                None,
                "the job has no process; add a [[process]] with id, memory_bytes and tasks",
            );
        }
    }

    /// Numbers and names of processes must tell them apart.
    fn names(&mut self, draft: &Draft) {
        for task in &draft.tasks {
            let name = task.name.as_deref().unwrap_or_default();
            if name.contains(char::is_control) {
                self.problem(task.line, "the task has a name that can't be printed");
            }
        }
        let mut ids: HashMap<u32, Line> = HashMap::new();
        let mut names: HashMap<&str, Line> = HashMap::new();
        for process in &draft.processes {
            let mut taken = |what: String, first: Line| {
                let message = format!("{what} is taken{}; choose another", by_line(first));
                self.problem(process.line, message);
            };
            match ids.get(&process.id) {
                Some(&first) => taken(format!("process id {}", process.id), first),
                None => drop(ids.insert(process.id, process.line)),
            }
            let Some(name) = process.name.as_deref() else {
                continue;
            };
            match names.get(name) {
                Some(&first) => taken(format!("process name {name}"), first),
                None => drop(names.insert(name, process.line)),
            }
            if let Some(message) = name_fault(name) {
                self.problem(process.line, message);
            }
        }
    }

    /// `tasks`: how many of its tasks take instructions; `None`: it has none at all.
    /// `are_its`: they can't be those of another process with its number.
    fn process(&mut self, process: &DraftProcess, tasks: Option<usize>, are_its: bool) {
        let label = process.label();
        if process.id == IDLE {
            let message = format!("process id {IDLE} means idle; choose another");
            self.problem(process.line, message);
        }
        let what = format!("memory_bytes of process {label}");
        let memory_bytes = process.memory_bytes;
        self.range(process.line, &what, memory_bytes, 0, MAX_MEMORY_BYTES);
        if let Some(fault) = amounts_fault(&process.resources) {
            self.problem(process.line, fault);
        }
        if let Some(rate) = process.rate_insns_per_s {
            let what = format!("rate_insns_per_s of process {label}");
            self.range(process.line, &what, rate, 1, MAX_RATE_INSNS_PER_S);
        }
        if let Some(runtime_ns) = process.runtime_ns {
            let what = format!("runtime_ns of process {label}");
            self.range(process.line, &what, runtime_ns, 1, MAX_NS);
        }
        if tasks == Some(0) && !process.resources.is_empty() && self.processes > MAX_HOLDERS {
            let processes = underscored(self.processes as u64);
            self.problem(
                process.line,
                format!(
                    "process {label} holds resources, has no instructions, and is one of \
                     {processes} processes, of which at most {MAX_HOLDERS} are allowed then; write \
                     the resources at processes that have instructions"
                ),
            );
        }
        match tasks {
            None => self.problem(
                process.line,
                format!("process {label} has no task; add one, or remove the process"),
            ),
            Some(tasks) if are_its => {
                let fault = process.start.fault(&label, tasks, process.line);
                self.problems.extend(fault);
            }
            Some(_) => {}
        }
    }

    /// `memory_bytes`: that of its process, where there is one.
    fn task(&mut self, task: &DraftTask, memory_bytes: Option<u64>) {
        let label = task.label();
        if task.id == NO_TASK {
            let message = format!("task id {NO_TASK} means no task; choose a smaller one");
            self.problem(task.line, message);
        }
        let least = u64::from(task.kind.works());
        let what = format!("the number of instructions of {label}");
        self.range(task.line, &what, task.insns, least, MAX_SLOT_INSNS);
        if let (Some(of_task), Some(of_process)) = (task.memory_bytes, memory_bytes) {
            if of_task > of_process {
                self.problem(
                    task.line,
                    format!(
                        "{label} uses {} bytes of memory and its process only has {}; give the \
                         process as much as its greatest task needs",
                        underscored(of_task),
                        underscored(of_process)
                    ),
                );
            }
        }
    }
}

fn by_line(line: Line) -> String {
    line.map_or_else(String::new, |line| format!(" by line {line}"))
}
