// SPDX-License-Identifier: GPL-2.0
//! Decisions as jobs of lanes.

use std::collections::BTreeMap;
use std::fmt;

use pbs_cosched::{Mapping, Slot, Timeline, Where};
use pbs_job::graph::{lanes_to_text, Graph, GraphTask, ProgramLane, LANES_VARIABLE};
use pbs_job::{Command, Draft, DraftProcess, DraftTask, Job, Kind, Machine, Problem, Start};

use crate::lanes::Question;

/// A graph as a job.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The job: a process for each CPU that the graph uses, confined to it.
    pub job: Job,
    /// Lane of each of the job's tasks; `None` for tasks that [`Draft::check`] has added.
    pub lanes: Vec<Option<Lane>>,
}

/// A thread of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Index of its task in the workload.
    pub task: usize,
    /// Number of the thread within its task, from 0.
    pub lane: u32,
    /// Begin by the schedule, in nanoseconds from its start.
    pub start_ns: u64,
    /// See [`start_ns`](Self::start_ns).
    pub end_ns: u64,
}

/// Reason for which a graph can't be a job of lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotLower {
    /// The job of that name has no deadline, and plans need one.
    NoDeadline(String),
    /// A task was not given out.
    NotMapped(String),
    /// The job is not a valid one.
    Invalid(String, Vec<Problem>),
}

impl fmt::Display for CannotLower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDeadline(job) => {
                write!(f, "{job} has no deadline, and plans need one; add deadline_ns = \"10s\"")
            }
            Self::NotMapped(task) => write!(f, "task {task} was not mapped"),
            Self::Invalid(job, problems) => {
                write!(f, "{job} can't become a job of lanes:")?;
                for problem in problems {
                    write!(f, " {};", problem.message)?;
                }
                Ok(())
            }
        }
    }
}

/// A lane that has its place.
struct Placed<'a> {
    task: usize,
    lane: u32,
    lanes: u32,
    insns: u64,
    slot: &'a Slot,
    command: Vec<String>,
    /// Index of the variant in the graph's task.
    variant: usize,
}

/// The graphs as jobs, each with a process for each CPU that it uses.
///
/// All lanes of a task wait for all lanes of what the task waits for. They also wait for
/// what is before them on the CPUs of each other, so that they begin together, and for the task of
/// the same graph that slow-downs make theirs wait for.
///
/// A task on an accelerator has one lane, on the CPU that waits for it, which is taken for
/// as long: what the host process does not use others get, as of any that blocks. Tasks
/// of a graph on the same accelerator wait for each other.
///
/// # Errors
///
/// The first graph that can be no job.
pub fn jobs(
    question: &Question,
    graphs: &[Graph],
    machine: &Machine,
    mapping: &Mapping,
    timeline: &Timeline,
) -> Result<Vec<Lowered>, CannotLower> {
    let graphs = graphs.iter().enumerate();
    let jobs =
        graphs.map(|(index, graph)| lower(question, index, graph, machine, mapping, timeline));
    jobs.collect()
}

/// The tasks of those jobs in the order in which they begin by the schedule: the index of
/// the job, and that of its task.
pub fn turns(jobs: &[Lowered]) -> Vec<(usize, usize)> {
    let mut turns = Vec::new();
    for (job, lowered) in jobs.iter().enumerate() {
        let lanes = lowered.lanes.iter().enumerate();
        turns.extend(lanes.filter_map(|(task, lane)| lane.map(|lane| (lane.start_ns, job, task))));
    }
    turns.sort_unstable();
    turns.into_iter().map(|(_, job, task)| (job, task)).collect()
}

fn lower(
    question: &Question,
    index: usize,
    graph: &Graph,
    machine: &Machine,
    mapping: &Mapping,
    timeline: &Timeline,
) -> Result<Lowered, CannotLower> {
    let no_deadline = || CannotLower::NoDeadline(graph.name.clone());
    let deadline_ns = graph.deadline_ns.ok_or_else(no_deadline)?;
    let rates = machine.cpus().zip(machine.cores());
    let rates: BTreeMap<u32, u64> =
        rates.map(|(cpu, (_, core))| (cpu, core.rate_insns_per_s)).collect();
    // By CPU, in the order of their start.
    let mut cpus: BTreeMap<u32, Vec<Placed<'_>>> = BTreeMap::new();
    let own = (0..question.tasks.len()).filter(|&task| question.tasks[task].graph == index);
    for task in own {
        let of = &question.tasks[task];
        let written = &graph.tasks[of.task];
        let choice = mapping.choices.get(task).copied().flatten();
        let slot = timeline.slots.get(task).and_then(Option::as_ref);
        let (Some(choice), Some(slot)) = (choice, slot) else {
            return Err(CannotLower::NotMapped(written.name.clone()));
        };
        let variant = &written.variants[of.variants[choice.variant]];
        let runtime_ns = question.workload.tasks[task].variants[choice.variant].runtime_ns;
        let on: Vec<u32> = match &slot.place {
            Where::Threads(threads) => {
                let threads = threads.iter();
                threads.map(|&thread| question.cpus[thread as usize]).collect()
            }
            Where::Device { device, .. } => vec![question.hosts[*device]],
        };
        for (lane, &cpu) in (0..).zip(&on) {
            let rate = rates.get(&cpu).copied().unwrap_or(1);
            let of_time = u128::from(runtime_ns) * u128::from(rate) / 1_000_000_000;
            let insns = variant.insns.unwrap_or(u64::try_from(of_time).unwrap_or(u64::MAX));
            cpus.entry(cpu).or_default().push(Placed {
                task,
                lane,
                lanes: on.len() as u32,
                insns: insns.max(1),
                slot,
                command: command(&variant.command, lane, on.len()),
                variant: of.variants[choice.variant],
            });
        }
    }
    for lanes in cpus.values_mut() {
        lanes.sort_by_key(|placed| (placed.slot.start_ns, placed.task));
    }
    let (draft, lanes) = draft(question, graph, deadline_ns, timeline, &cpus);
    let invalid = |problems| CannotLower::Invalid(graph.name.clone(), problems);
    let job = draft.check().map_err(invalid)?;
    Ok(Lowered { job, lanes })
}

/// The words of a lane: `{lane}` and `{lanes}` are replaced.
fn command(words: &[String], lane: u32, lanes: usize) -> Vec<String> {
    let words = words.iter().map(|word| {
        let word = word.replace("{lane}", &lane.to_string());
        word.replace("{lanes}", &lanes.to_string())
    });
    words.collect()
}

/// The name of the process that forks and joins those of all CPUs, which `pbsctl` is.
const STARTER: &str = "pbsctl";

/// Numbers of the tasks that fork and join the processes, which begin with 1. The lanes come
/// before them, from 0.
struct Numbering {
    lanes: u32,
    processes: u32,
}

impl Numbering {
    fn start(&self) -> u32 {
        self.lanes + 1
    }

    fn fork(&self, process: u32) -> u32 {
        self.start() + process
    }

    fn join(&self, process: u32) -> u32 {
        self.fork(self.processes) + process
    }

    fn end(&self) -> u32 {
        self.join(self.processes) + 1
    }

    fn fork_end(&self, process: u32) -> u32 {
        self.end() + process
    }
}

fn draft(
    question: &Question,
    graph: &Graph,
    deadline_ns: u64,
    timeline: &Timeline,
    cpus: &BTreeMap<u32, Vec<Placed<'_>>>,
) -> (Draft, Vec<Option<Lane>>) {
    // The numbers of the lanes of each task, and before each lane what is on its CPU.
    let mut numbers: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut before: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    let mut process_of: Vec<u32> = Vec::new();
    let mut devices: BTreeMap<(usize, u32), Vec<(u64, u32)>> = BTreeMap::new();
    for (process, lanes) in (1..).zip(cpus.values()) {
        let mut last = None;
        for placed in lanes {
            let number = process_of.len() as u32;
            numbers.entry(placed.task).or_default().push(number);
            before.insert(number, last.replace(number));
            process_of.push(process);
            if let Where::Device { device, instance } = placed.slot.place {
                let of = devices.entry((device, instance)).or_default();
                of.push((placed.slot.start_ns, number));
            }
        }
    }
    // What is before each on its accelerator.
    let mut queued: BTreeMap<u32, u32> = BTreeMap::new();
    for of in devices.values_mut() {
        of.sort_unstable();
        queued.extend(of.windows(2).map(|pair| (pair[1].1, pair[0].1)));
    }
    let mut draft = Draft {
        name: graph.name.clone(),
        start_ns: graph.start_ns,
        deadline_ns,
        priority: graph.priority,
        ..Draft::default()
    };
    let mut lanes_of = Vec::new();
    let processes = cpus.len() as u32;
    let numbering = Numbering { lanes: process_of.len() as u32, processes };
    let mut number = 0;
    let mut starts = starts(question, graph, cpus).into_iter();
    for (process, (&cpu, lanes)) in (1..).zip(cpus) {
        let of =
            |placed: &Placed<'_>| -> &GraphTask { &graph.tasks[question.tasks[placed.task].task] };
        let memory = lanes.iter().map(|placed| of(placed).memory_bytes);
        draft.processes.push(DraftProcess {
            id: process,
            name: Some(format!("cpu{cpu}")),
            memory_bytes: memory.max().unwrap_or(0),
            cpus: vec![cpu],
            start: starts.next().unwrap_or_default(),
            line: None,
            ..DraftProcess::default()
        });
        // The fork end with which a forked process begins.
        draft.tasks.push(added(numbering.fork_end(process), process, Kind::ForkEnd, vec![number]));
        lanes_of.push(None);
        for (place, placed) in lanes.iter().enumerate() {
            let all = &numbers[&placed.task];
            let awaited = question.workload.tasks[placed.task].after.iter().map(|edge| edge.task);
            let awaited = awaited.chain(timeline.awaited(placed.task));
            let awaited = awaited.filter_map(|task| numbers.get(&task)).flatten();
            let beside = all.iter().filter_map(|lane| before[lane]);
            let after = awaited.copied().chain(beside).chain(queued.get(&number).copied());
            let mut after: Vec<u32> =
                after.filter(|&other| process_of[other as usize] != process).collect();
            after.sort_unstable();
            after.dedup();
            let next = match lanes.get(place + 1) {
                Some(_) => number + 1,
                // Its join.
                None => numbering.join(process),
            };
            let task = of(placed);
            draft.tasks.push(DraftTask {
                id: number,
                name: Some(match placed.lanes {
                    1 => task.name.clone(),
                    _ => format!("{} {}", task.name, placed.lane),
                }),
                process,
                insns: placed.insns,
                memory_bytes: Some(task.memory_bytes),
                after,
                next: vec![next],
                ..DraftTask::default()
            });
            lanes_of.push(Some(Lane {
                task: placed.task,
                lane: placed.lane,
                start_ns: placed.slot.start_ns,
                end_ns: placed.slot.end_ns,
            }));
            number += 1;
        }
    }
    // Who forks them all and joins them all.
    draft.processes.push(DraftProcess {
        id: 0,
        name: Some(STARTER.into()),
        ..DraftProcess::default()
    });
    // Each has the number before that of the next: the start, all forks, all joins, the end.
    let mut starter = |id, kind, next| draft.tasks.push(added(id, 0, kind, next));
    starter(numbering.start(), Kind::Start, vec![numbering.fork(1)]);
    for process in 1..=processes {
        let fork = numbering.fork(process);
        let next = vec![fork + 1, numbering.fork_end(process)];
        starter(fork, Kind::Fork, next);
    }
    for process in 1..=processes {
        let join = numbering.join(process);
        starter(join, Kind::Join, vec![join + 1]);
    }
    starter(numbering.end(), Kind::End, Vec::new());
    lanes_of.resize(draft.tasks.len(), None);
    (draft, lanes_of)
}

/// A task that takes no instructions.
fn added(id: u32, process: u32, kind: Kind, next: Vec<u32>) -> DraftTask {
    DraftTask { id, process, kind, next, ..DraftTask::default() }
}

/// Returns the start of the process of each CPU.  A program that runs all tasks itself is started
/// with the first one, and attaches a thread to each.
fn starts(question: &Question, graph: &Graph, cpus: &BTreeMap<u32, Vec<Placed<'_>>>) -> Vec<Start> {
    if graph.program.is_empty() {
        return cpus.values().map(|lanes| start(lanes)).collect();
    }
    let lane = |placed: &Placed<'_>| ProgramLane {
        task: question.tasks[placed.task].task,
        variant: placed.variant,
        instance: match placed.slot.place {
            Where::Device { instance, .. } => instance,
            Where::Threads(_) => 0,
        },
    };
    let lanes: Vec<Vec<ProgramLane>> =
        cpus.values().map(|lanes| lanes.iter().map(lane).collect()).collect();
    let mut argv = vec!["env".into(), format!("{LANES_VARIABLE}={}", lanes_to_text(&lanes))];
    argv.extend(graph.program.iter().cloned());
    let mut starts = vec![Start::Itself(None); cpus.len()];
    if let Some(first) = starts.first_mut() {
        *first = Start::Itself(Some(Command { argv, ..Command::default() }));
    }
    starts
}

/// Each lane with a command is one; processes without any are started by others.
fn start(lanes: &[Placed<'_>]) -> Start {
    let commands =
        lanes.iter().map(|placed| Command { argv: placed.command.clone(), ..Command::default() });
    let commands: Vec<Command> = commands.collect();
    if commands.iter().any(|command| command.argv.is_empty()) {
        Start::Unsaid
    } else {
        Start::Commands(commands)
    }
}
