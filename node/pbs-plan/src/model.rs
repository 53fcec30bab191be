// SPDX-License-Identifier: GPL-2.0
//! A plan as people think of it: processes with their tasks, and the order of
//! the slots on each CPU.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use pbs_core::Config;
use pbs_text::{Line, Problem};

/// Lines of the numbers of a configuration, in the order of [`Config::NAMES`].
#[derive(Clone, Debug)]
pub struct ConfigLines([Line; Config::COUNT]);

impl Default for ConfigLines {
    fn default() -> Self {
        Self([None; Config::COUNT])
    }
}

impl Deref for ConfigLines {
    type Target = [Line; Config::COUNT];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ConfigLines {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// A plan for one or several CPUs.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The planner's name for it, repeated in events.
    pub plan_id: u64,
    /// The prediction failures that the plan deals with: those of all events
    /// with a smaller number; 0: none.
    pub dealt_seq: u64,
    /// The line of `dealt_seq`.
    pub dealt_seq_line: Line,
    /// After how much time without a renewal a CPU drops the plan; 0: never.
    pub lease_ns: u64,
    /// The line of `lease_ns`.
    pub lease_ns_line: Line,
    /// Memory that all processes together may use on the node; 0: not declared.
    pub memory_bytes: u64,
    /// `None`: the node's defaults.
    pub config: Option<Config>,
    /// The lines of the configuration's numbers, in the order of
    /// `Config::NAMES`.
    pub config_lines: ConfigLines,
    /// In the order of the file.
    pub processes: Vec<Process>,
    /// In the order of the file.
    pub cpus: Vec<Cpu>,
}

/// A thread bound to one CPU that runs its tasks one after the other.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Number of the process in the wire format.
    pub id: u32,
    /// Readable name.
    pub name: Option<String>,
    /// The CPU that the file names, if it does; the slots decide.
    pub cpu: Option<u32>,
    /// Plan buffer of the process (Leppert 2021, 3.3.3).
    pub buffer_insns: u64,
    /// Planned peak of resident memory; 0: none.
    pub memory_bytes: u64,
    /// Instructions that the process retires in a millisecond in which it runs; 0: as many as its
    /// CPU.
    pub rate_insns_per_ms: u64,
    /// Deadline of the process in nanoseconds from the moment at which the plan comes into force,
    /// for nodes that order processes by deadlines. `None`: the process comes after all that have a
    /// deadline.
    pub deadline_ns: Option<u64>,
    /// The resident memory that it really has from its first instruction to its
    /// end, where that is known beforehand: simulations, as `real_insns` is.
    pub real_memory_bytes: Option<u64>,
    /// Way in which `pbsctl run` starts the process.
    pub start: Start,
    /// In the order of execution.
    pub tasks: Vec<Task>,
    /// Line of the file that declares the process.
    pub line: Line,
}

/// Way in which a process is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The plan does not say.
    #[default]
    Unsaid,
    /// An unmodified program; its whole life is one task.
    Command(Command),
    /// Several unmodified programs, one task each.
    Commands(Vec<Command>),
    /// A program that attaches itself and marks its own task ends; started
    /// with the command, or by somebody else.
    Itself(Option<Command>),
}

/// A program with its arguments and redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// File to read standard input from.
    pub stdin: Option<PathBuf>,
    /// File to write standard output to.
    pub stdout: Option<PathBuf>,
    /// File to write standard error to.
    pub stderr: Option<PathBuf>,
    /// Line of the file that declares the command.
    pub line: Line,
}

/// A stretch of a process with a planned instruction count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Number of the task in the wire format; ascends within the process.
    pub id: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Length that the planner expects, which is the length of the task's slot.
    pub planned_insns: u64,
    /// Real length, if it is known beforehand: for simulations and generated plans.
    pub real_insns: Option<u64>,
    /// Before this task the process waits, blocked, for others, for as much
    /// time as this many instructions take (Leppert 2021, 3.3.8, figure 7).
    /// For simulations, as `real_insns` is.
    pub wait_insns: Option<u64>,
    /// The tasks of other processes that must have ended before it begins.
    pub after: Vec<After>,
    /// Line of the file that declares the task.
    pub line: Line,
}

/// A task that another one waits for.
///
/// Both are in the same plan; or the process has only later tasks in it: then
/// the task has ended under an earlier plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// The number of its process.
    pub process: u32,
    /// Number of the task.
    pub task: u32,
    /// Planned arrival of the message of that task, in nanoseconds from the moment at which the
    /// plan comes into force. `None`: the dependency is no message.
    pub arrival_ns: Option<u64>,
    /// Line of the file that declares the dependency.
    pub line: Line,
}

/// The plan of one CPU.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Instructions that the CPU retires in a millisecond; 0: the node's rate.
    pub rate_insns_per_ms: u64,
    /// In the order of execution.
    pub slots: Vec<Slot>,
    /// The line of each slot.
    pub slot_lines: Vec<Line>,
    /// Line of the file that declares the CPU.
    pub line: Line,
}

/// A place in a CPU's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The slot of a process's next task.
    Process {
        /// Index into [`Plan::processes`].
        process: usize,
    },
    /// Nobody's; late processes may use it.
    Idle {
        /// Length of the slot.
        length_insns: u64,
        /// Real length, for simulations.
        real_insns: Option<u64>,
    },
}

/// A slot with the task it is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedSlot {
    /// Index of the process and of its task; `None`: idle.
    pub task: Option<(usize, usize)>,
    /// Length of the slot.
    pub length_insns: u64,
    /// Real length of the task or of the idle slot, if it is known.
    pub real_insns: Option<u64>,
}

impl Plan {
    /// Whether a task of the plan waits for a message.
    pub fn has_messages(&self) -> bool {
        let mut tasks = self.processes.iter().flat_map(|process| &process.tasks);
        tasks.any(|task| task.after.iter().any(|after| after.arrival_ns.is_some()))
    }

    /// Leaves out the processes for whose numbers `is_over` holds: their slots become idle,
    /// and nobody waits for them. Whether there were any.
    pub fn leave_out(&mut self, is_over: &dyn Fn(u32) -> bool) -> bool {
        let over: Vec<bool> = self.processes.iter().map(|of| is_over(of.id)).collect();
        if !over.contains(&true) {
            return false;
        }
        let mut left = 0..;
        let places: Vec<Option<usize>> =
            over.iter().map(|over| if *over { None } else { left.next() }).collect();
        let lengths: Vec<Vec<u64>> = self
            .cpus
            .iter()
            .map(|cpu| self.place(cpu).map(|slot| slot.length_insns).collect())
            .collect();
        for (cpu, lengths) in self.cpus.iter_mut().zip(lengths) {
            for (slot, length_insns) in cpu.slots.iter_mut().zip(lengths) {
                let Slot::Process { process } = *slot else {
                    continue;
                };
                *slot = match places[process] {
                    Some(process) => Slot::Process { process },
                    None => Slot::Idle { length_insns, real_insns: None },
                };
            }
            // A CPU with nothing but idle slots has no plan.
            if !cpu.slots.iter().any(|slot| matches!(slot, Slot::Process { .. })) {
                cpu.slots.clear();
                cpu.slot_lines.clear();
            }
        }
        let mut over = over.into_iter();
        let gone: Vec<u32> = self
            .processes
            .extract_if(.., |_| over.next() == Some(true))
            .map(|process| process.id)
            .collect();
        for task in self.processes.iter_mut().flat_map(|of| &mut of.tasks) {
            task.after.retain(|after| !gone.contains(&after.process));
        }
        true
    }

    /// The slots of a CPU with their tasks: each slot of a process is for the
    /// next task of it. A slot for which there is no task has length 0, which
    /// no valid plan has.
    pub fn place<'a>(&'a self, cpu: &'a Cpu) -> impl Iterator<Item = PlacedSlot> + 'a {
        let mut next_task = vec![0; self.processes.len()];
        cpu.slots.iter().map(move |slot| match *slot {
            Slot::Process { process } => {
                let number = next_task[process];
                next_task[process] += 1;
                let task = self.processes[process].tasks.get(number);
                PlacedSlot {
                    task: Some((process, number)),
                    length_insns: task.map_or(0, |task| task.planned_insns),
                    real_insns: task.and_then(|task| task.real_insns),
                }
            }
            Slot::Idle { length_insns, real_insns } => {
                PlacedSlot { task: None, length_insns, real_insns }
            }
        })
    }

    /// Indices of the processes with a slot on `cpu`, ascending by id.
    pub fn processes_on(&self, cpu: &Cpu) -> Vec<usize> {
        let mut present = vec![false; self.processes.len()];
        for slot in &cpu.slots {
            if let Slot::Process { process } = *slot {
                present[process] = true;
            }
        }
        let mut processes: Vec<_> = (0..present.len()).filter(|&p| present[p]).collect();
        processes.sort_by_key(|&p| self.processes[p].id);
        processes
    }

    /// The CPU that has the slots of the process with that index.
    pub fn cpu_of(&self, process: usize) -> Option<&Cpu> {
        let slot = Slot::Process { process };
        self.cpus.iter().find(|cpu| cpu.slots.contains(&slot))
    }

    /// The process with that number.
    pub fn process(&self, id: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == id)
    }
}

impl Process {
    /// Returns the name of the process, or its number if it has none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// The commands to start, in order.
    pub fn commands(&self) -> &[Command] {
        self.start.commands()
    }

    /// The place of the task with that number.
    pub fn position_of(&self, task: u32) -> Option<usize> {
        // In a valid plan they ascend.
        self.tasks.binary_search_by_key(&task, |task| task.id).ok()
    }
}

impl Task {
    /// Returns the name of the task, or its number if it has none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

impl Start {
    /// The keys of a process that say it.
    pub const KEYS: [&'static str; 6] =
        ["command", "commands", "attaches", "stdin", "stdout", "stderr"];

    /// The commands, in order.
    pub fn commands(&self) -> &[Command] {
        match self {
            Self::Unsaid | Self::Itself(None) => &[],
            Self::Command(command) | Self::Itself(Some(command)) => std::slice::from_ref(command),
            Self::Commands(commands) => commands,
        }
    }

    /// Whether so many tasks can be told apart where a process is started like
    /// this; `label` and `line` are those of the process.
    pub fn fault(&self, label: &str, tasks: usize, line: Line) -> Option<Problem> {
        match self {
            Self::Command(command) if tasks > 1 => Some(Problem::at(
                command.line,
                format!(
                    "process {label} has {tasks} tasks, but the whole life of its command is \
                     one; write commands = [[...], ...] with one command per task, or \
                     attaches = \"itself\" if the program marks its own task ends"
                ),
            )),
            Self::Commands(commands) if tasks != commands.len() => Some(Problem::at(
                line,
                format!(
                    "process {label} has {tasks} tasks and {} commands; each command is one \
                     task, so write as many of both",
                    commands.len()
                ),
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_over_is_left_out() {
        let task = |id, planned_insns, after: &[u32]| Task {
            id,
            planned_insns,
            after: after.iter().map(|&process| After { process, ..After::default() }).collect(),
            ..Task::default()
        };
        let process = |id, tasks| Process { id, tasks, ..Process::default() };
        let slots = |slots: &[usize]| Cpu {
            slots: slots.iter().map(|&process| Slot::Process { process }).collect(),
            slot_lines: vec![None; slots.len()],
            ..Cpu::default()
        };
        let mut plan = Plan {
            processes: vec![
                process(7, vec![task(0, 5, &[])]),
                process(8, vec![task(0, 6, &[7]), task(1, 3, &[])]),
                process(9, vec![task(0, 4, &[8])]),
            ],
            cpus: vec![slots(&[0]), slots(&[1, 2, 1])],
            ..Plan::default()
        };
        assert!(!plan.leave_out(&|_| false));
        assert!(plan.leave_out(&|id| id < 9));
        let numbers: Vec<u32> = plan.processes.iter().map(|of| of.id).collect();
        assert_eq!(numbers, [9]);
        assert!(plan.processes[0].tasks[0].after.is_empty());
        assert_eq!((plan.cpus[0].slots.len(), plan.cpus[0].slot_lines.len()), (0, 0));
        let idle = |length_insns| Slot::Idle { length_insns, real_insns: None };
        assert_eq!(plan.cpus[1].slots, [idle(6), Slot::Process { process: 0 }, idle(3)]);
    }
}
