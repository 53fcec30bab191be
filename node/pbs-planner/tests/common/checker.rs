// SPDX-License-Identifier: GPL-2.0
//! Whether a plan can be, seen without anything of the planner: plain numbers
//! in, what is wrong with them out. What it knows of plans is written down here
//! once more, on purpose.

use std::collections::{BTreeMap, HashMap};

/// Constraints of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    /// Length of the step of time, in nanoseconds.
    pub(crate) tick: u128,
    /// Per core: its memory and its instructions in a second.
    pub(crate) cores: Vec<(usize, u128)>,
    /// Per memory: its bytes.
    pub(crate) memories: Vec<u128>,
    /// Per resource: its amount.
    pub(crate) resources: Vec<u128>,
    /// Per process: the resources that it holds, with their amounts; it may end before the last
    /// processes, which hold none.
    pub(crate) held: Vec<Vec<(usize, u128)>>,
    /// Per job: the first and the last moment.
    pub(crate) jobs: Vec<(u128, u128)>,
    /// Per process: its job and its bytes.
    pub(crate) processes: Vec<(usize, u128)>,
    /// Per task: its process, its instructions, and the tasks before it.
    pub(crate) tasks: Vec<(usize, u128, Vec<usize>)>,
}

/// A plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// Task, core, start and end.
    pub(crate) tasks: Vec<(usize, usize, u128, u128)>,
    /// Process, core, start and end of its memory.
    pub(crate) memory: Vec<(usize, usize, u128, u128)>,
}

/// The first thing that is wrong.
pub(crate) fn check(question: &Question, answer: &Answer) -> Result<(), String> {
    let mut placed = HashMap::new();
    for &(task, core, start, end) in &answer.tasks {
        if placed.insert(task, (core, start, end)).is_some() {
            return Err(format!("task {task} is planned twice"));
        }
    }
    // Of each process: core, start of its first task, end of its last.
    let mut lives: HashMap<usize, (usize, u128, u128)> = HashMap::new();
    for (task, (process, instructions, before)) in question.tasks.iter().enumerate() {
        let Some(&(core, start, end)) = placed.get(&task) else {
            return Err(format!("task {task} is not planned"));
        };
        let Some(&(_, rate)) = question.cores.get(core) else {
            return Err(format!("task {task} is on core {core}, which is not there"));
        };
        let exact = instructions * 1_000_000_000;
        let mut ticks = exact / rate / question.tick;
        while ticks * question.tick * rate < exact {
            ticks += 1;
        }
        if end != start + ticks * question.tick {
            return Err(format!("task {task} has {start} to {end} and takes {ticks} ticks"));
        }
        let (first, last) = question.jobs[question.processes[*process].0];
        if start < first || end > last {
            return Err(format!("task {task} has {start} to {end}, its job {first} to {last}"));
        }
        for before in before {
            if placed.get(before).is_some_and(|&(_, _, end)| end > start) {
                return Err(format!("task {task} starts before task {before} has ended"));
            }
        }
        let life = lives.entry(*process).or_insert((core, start, end));
        if life.0 != core {
            return Err(format!("process {process} is on cores {} and {core}", life.0));
        }
        *life = (core, life.1.min(start), life.2.max(end));
    }
    if placed.len() != question.tasks.len() {
        return Err("there are more tasks planned than there are".into());
    }
    let mut on_core: BTreeMap<usize, Vec<(u128, u128, usize)>> = BTreeMap::new();
    for &(task, core, start, end) in &answer.tasks {
        if start < end {
            on_core.entry(core).or_default().push((start, end, task));
        }
    }
    for (core, tasks) in &mut on_core {
        tasks.sort_unstable();
        for pair in tasks.windows(2) {
            if pair[1].0 < pair[0].1 {
                return Err(format!(
                    "tasks {} and {} are on core {core} at once",
                    pair[0].2, pair[1].2
                ));
            }
        }
    }
    // What each memory gets and gives, in the order of time, gifts first.
    let mut changes: BTreeMap<usize, Vec<(u128, bool, u128)>> = BTreeMap::new();
    let mut of_resources: BTreeMap<usize, Vec<(u128, bool, u128)>> = BTreeMap::new();
    for &(process, core, start, end) in &answer.memory {
        let life = lives.remove(&process);
        let whole = life.filter(|life| life.0 == core && start <= life.1 && life.2 <= end);
        if whole.is_none() {
            return Err(format!(
                "process {process} holds memory from {start} to {end}, not for its life"
            ));
        }
        for &(resource, amount) in question.held.get(process).into_iter().flatten() {
            let changes = of_resources.entry(resource).or_default();
            if start < end {
                changes.push((start, true, amount));
                changes.push((end, false, amount));
            }
        }
        let (_, bytes) = question.processes[process];
        let changes = changes.entry(question.cores[core].0).or_default();
        if start < end {
            changes.push((start, true, bytes));
            changes.push((end, false, bytes));
        }
    }
    if let Some(process) = lives.keys().min() {
        return Err(format!("process {process} holds no memory"));
    }
    most_is_kept("memory", &question.memories, &mut changes)?;
    most_is_kept("resource", &question.resources, &mut of_resources)
}

/// At no time is more held than there is.
fn most_is_kept(
    what: &str,
    most: &[u128],
    changes: &mut BTreeMap<usize, Vec<(u128, bool, u128)>>,
) -> Result<(), String> {
    for (number, changes) in changes {
        changes.sort_unstable();
        let mut held = 0;
        for &(time, more, amount) in changes.iter() {
            held = if more { held + amount } else { held - amount };
            if held > most[*number] {
                return Err(format!("{what} {number} is over at {time}: {held}"));
            }
        }
    }
    Ok(())
}
