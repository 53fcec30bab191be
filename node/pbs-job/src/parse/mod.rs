// SPDX-License-Identifier: GPL-2.0
//! Jobs from TOML.
//!
//! A file says the order of the tasks by their order, and relations by the
//! names of processes; the edges of the net are made of that. What every net
//! has in the same place may be left out: see `complete`.

mod complete;
mod task;

use std::collections::{BTreeSet, HashMap, HashSet};

use pbs_plan::{read_start, Start};
use pbs_text::reader::{closest, read, Reader, Value};
use pbs_text::{between, underscored, Line, Problem};
use toml::de::{DeTable, DeValue};

use crate::amounts::read_amounts;
use crate::check::{cpu_twice, late_start};
use crate::checkpoint::read_checkpoint;
use crate::draft::{Draft, DraftProcess, DraftTask, Kind};
use crate::moment::{now_unix_ns, with_spans};
use crate::{
    Job, MAX_MEMORY_BYTES, MAX_NAME_BYTES, MAX_NS, MAX_RATE_INSNS_PER_S, MAX_TASKS, MAX_WORTH,
};

const TOP_KEYS: &[&str] = &[
    "name",
    "start_ns",
    "deadline_ns",
    "priority",
    "value",
    "penalty",
    "checkpoint",
    "best_effort",
    "runtime_ns",
    "memory_bytes",
    "cpus",
    "resources",
    "process",
];
const PROCESS_KEYS: &[&str] =
    &["id", "name", "memory_bytes", "runtime_ns", "rate_insns_per_s", "cpus", "resources", "tasks"];

const WRITE_CPUS: &str =
    "write the numbers of CPUs: cpus = [2, 3]; or leave it out to allow all CPUs";
const WRITE_AFTER: &str = "write names or numbers of tasks: after = [\"left\", 7]";

/// Reads a job and checks it. Points in time become spans from now.
pub fn job_from_toml(text: &str) -> Result<Job, Vec<Problem>> {
    read(&with_spans(text, now_unix_ns())?, draft)?.check()
}

/// A process with its tasks in order.
struct Process {
    process: DraftProcess,
    tasks: Vec<Task>,
}

/// A task as it is written.
struct Task {
    /// `None`: it gets the next number.
    id: Option<u32>,
    /// The task itself, without its number, which is in `id`, and without edges.
    task: DraftTask,
    /// The child process of a fork or join.
    child: Option<Child>,
    /// Additional dependencies: the number or the name of a task, as text, and its line.
    after: Vec<(Line, String)>,
}

/// Child that a fork or join task names.
enum Child {
    /// The number or the name of a process, as text.
    Named(String),
    /// The place of a process in the list.
    Index(usize),
}

fn draft(reader: &mut Reader, document: &DeTable<'_>) -> Draft {
    let mut top = reader.open(document, "the job", None, TOP_KEYS);
    let mut draft = Draft::default();
    match top.entries.remove("name") {
        Some((line, value)) => {
            draft.name = reader.string(line, "name", value).unwrap_or_default();
        }
        None => reader.problem(
            None,
            "the job has no name, under which its history is stored; add name = \"...\"",
        ),
    }
    if !top.entries.contains_key("deadline_ns") {
        reader.problem(
            None,
            "the job has no deadline; add deadline_ns = 10_000_000_000, counted from its \
             submission",
        );
    }
    let mut figure = |key: &str, least, most| {
        let (line, value) = top.entries.remove(key)?;
        let figure: u64 = reader.number_in(line, key, value, least..=most)?;
        // The check of the job says the same, but knows no lines of the job.
        if (least..=most).contains(&figure) {
            return Some((line, figure));
        }
        let (figure, range) = (underscored(figure), between(least, most));
        reader.problem(line, format!("{key} is {figure}; it must be {range}"));
        None
    };
    let (start, deadline) = (figure("start_ns", 0, MAX_NS), figure("deadline_ns", 1, MAX_NS));
    draft.runtime_ns = figure("runtime_ns", 1, MAX_NS).map(|(_, ns)| ns);
    if let Some((_, value)) = figure("value", 0, MAX_WORTH) {
        draft.worth.value = value;
    }
    if let Some((_, penalty)) = figure("penalty", 0, MAX_WORTH) {
        draft.worth.penalty = penalty;
    }
    draft.start_ns = start.map_or(0, |(_, ns)| ns);
    if let Some((line, deadline_ns)) = deadline {
        draft.deadline_ns = deadline_ns;
        if draft.start_ns >= deadline_ns {
            reader.problem(line, late_start(&draft));
        }
    }
    if let Some((line, value)) = top.entries.remove("priority") {
        draft.priority = reader.number(line, "priority", value).unwrap_or(0);
    }
    if let Some((line, value)) = top.entries.remove("checkpoint") {
        draft.checkpoint = read_checkpoint(reader, line, value);
    }
    if let Some((line, value)) = top.entries.remove("best_effort") {
        draft.best_effort = reader.flag(line, "best_effort", value).unwrap_or(false);
    }
    if let Some((line, value)) = top.entries.remove("memory_bytes") {
        draft.memory_bytes = memory(reader, line, value);
    }
    if let Some((line, value)) = top.entries.remove("cpus") {
        draft.cpus = cpus(reader, line, value, "the job");
    }
    if let Some((line, value)) = top.entries.remove("resources") {
        draft.resources = read_amounts(reader, line, value);
    }
    let tables = reader.tables(&mut top, "process");
    let tasks: usize = tables.iter().map(|(_, value)| tasks_of(value)).sum();
    if tasks > MAX_TASKS {
        let (tasks, most) = (underscored(tasks as u64), underscored(MAX_TASKS as u64));
        reader.problem(
            None,
            format!("the job has {tasks} tasks, and at most {most} are allowed; write fewer"),
        );
        return draft;
    }
    let processes = tables.into_iter().filter_map(|(line, value)| process(reader, line, value));
    let mut processes: Vec<_> = processes.collect();
    number(&mut processes);
    find_awaited(reader, &mut processes);
    complete::complete(reader, &mut processes);
    link(processes, &mut draft);
    draft
}

/// Number of tasks that a process is written with.
fn tasks_of(process: &Value<'_>) -> usize {
    let DeValue::Table(process) = process.get_ref() else {
        return 0;
    };
    let tasks = process.get("tasks").and_then(|tasks| tasks.get_ref().as_array());
    tasks.map_or(0, |tasks| tasks.len())
}

/// The name of a process or task.
fn name(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<String> {
    let name = reader.string(line, "name", value)?;
    if name.len() > MAX_NAME_BYTES {
        reader.problem_with(line, || {
            format!(
                "the name has {} bytes, and at most {MAX_NAME_BYTES} are allowed; choose a \
                 shorter one",
                name.len()
            )
        });
        return None;
    }
    Some(name)
}

fn memory(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<u64> {
    reader.number_in(line, "memory_bytes", value, 0..=MAX_MEMORY_BYTES)
}

fn cpus(reader: &mut Reader, line: Line, value: &Value<'_>, whose: &str) -> Vec<u32> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("cpus is no list; {WRITE_CPUS}"));
        return Vec::new();
    };
    if items.is_empty() {
        let message = format!("cpus is empty, and {whose} can run nowhere; {WRITE_CPUS}");
        reader.problem(line, message);
    }
    let mut cpus = BTreeSet::new();
    for item in items.iter() {
        let line = reader.line_of(item);
        let cpu = reader.number(line, "a CPU", item);
        if let Some(cpu) = cpu.filter(|&cpu| !cpus.insert(cpu)) {
            reader.problem(line, cpu_twice(cpu));
        }
    }
    cpus.into_iter().collect()
}

fn process(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Process> {
    let keys = [PROCESS_KEYS, &Start::KEYS].concat();
    let mut table = reader.table(line, value, "[[process]]", &keys)?;
    let mut process = DraftProcess { line, ..DraftProcess::default() };
    match table.entries.remove("id") {
        Some((line, value)) => process.id = reader.number(line, "id", value)?,
        None => {
            reader.problem(line, "the process has no id; add a number of its own: id = 1");
            return None;
        }
    }
    if let Some((line, value)) = table.entries.remove("name") {
        process.name = name(reader, line, value);
    }
    let label = process.label();
    match table.entries.remove("memory_bytes") {
        Some((line, value)) => {
            process.memory_bytes = memory(reader, line, value).unwrap_or(0);
        }
        None => reader.problem(
            line,
            format!(
                "process {label} has no memory size; add memory_bytes = 64_000_000, rather too \
                 much than too little"
            ),
        ),
    }
    if let Some((line, value)) = table.entries.remove("runtime_ns") {
        process.runtime_ns = reader.number_in(line, "runtime_ns", value, 1..=MAX_NS);
    }
    if let Some((line, value)) = table.entries.remove("rate_insns_per_s") {
        let range = 1..=MAX_RATE_INSNS_PER_S;
        process.rate_insns_per_s = reader.number_in(line, "rate_insns_per_s", value, range);
    }
    if let Some((line, value)) = table.entries.remove("cpus") {
        process.cpus = cpus(reader, line, value, &format!("process {label}"));
    }
    if let Some((line, value)) = table.entries.remove("resources") {
        process.resources = read_amounts(reader, line, value);
    }
    let tasks = match table.entries.remove("tasks") {
        Some((line, value)) => task::tasks(reader, line, value, process.id),
        None => {
            reader.problem(
                line,
                format!(
                    "process {label} has no tasks; add their instructions: \
                     tasks = [20_000_000, ...]"
                ),
            );
            Vec::new()
        }
    };
    process.start = read_start(reader, &mut table, &label);
    Some(Process { process, tasks })
}

/// Tasks without a number get the next one of the whole job.
fn number(processes: &mut [Process]) {
    let mut next_id = 0u32;
    for task in processes.iter_mut().flat_map(|process| &mut process.tasks) {
        task.task.id = *task.id.get_or_insert(next_id);
        next_id = task.task.id.saturating_add(1);
    }
}

/// Finds the tasks that `after` names.
fn find_awaited(reader: &mut Reader, processes: &mut [Process]) {
    let mut ids: HashMap<String, u32> = HashMap::new();
    let mut twice: HashSet<String> = HashSet::new();
    for task in processes.iter().flat_map(|process| &process.tasks) {
        if let Some(name) = &task.task.name {
            if ids.insert(name.clone(), task.task.id).is_some() {
                twice.insert(name.clone());
            }
        }
    }
    let by_process = labels_by_process(processes);
    // A number is one, also where a task has that name.
    for task in processes.iter().flat_map(|process| &process.tasks) {
        ids.insert(task.task.id.to_string(), task.task.id);
    }
    for task in processes.iter_mut().flat_map(|process| &mut process.tasks) {
        for (line, name) in std::mem::take(&mut task.after) {
            let is_several = twice.contains(&name) && name.parse::<u32>().is_err();
            if let Some(&id) = ids.get(&name).filter(|_| !is_several) {
                task.task.after.push(id);
                continue;
            }
            reader.problem_with(line, || {
                let label = task.task.label();
                if let Some(instead) = of_process(&by_process, &name).filter(|_| !is_several) {
                    return format!("{label} waits for {name}: {instead}");
                }
                let instead = match closest(&name, ids.keys().map(String::as_str)) {
                    _ if is_several => {
                        format!("which is the name of several tasks; {WRITE_AFTER}")
                    }
                    Some(close) => format!("which is not there; did you mean {close}?"),
                    None => format!("which is not there; {WRITE_AFTER}"),
                };
                format!("{label} waits for task {name}, {instead}")
            });
        }
    }
}

/// Most tasks of a process that a message lists.
const MOST_LISTED: usize = 5;

/// The tasks of each process, as `after` names them, by the name and the number of the process.
fn labels_by_process(processes: &[Process]) -> HashMap<String, Vec<String>> {
    let mut labels = HashMap::new();
    for Process { process, tasks } in processes.iter().rev() {
        let of_task = |task: &Task| match &task.task.name {
            Some(name) => name.clone(),
            None => task.task.id.to_string(),
        };
        let tasks: Vec<_> = tasks.iter().map(of_task).collect();
        labels.insert(process.id.to_string(), tasks.clone());
        labels.extend(process.name.clone().map(|name| (name, tasks)));
    }
    labels
}

/// The words to write instead of the name of a process, or of a task with its process, as plans
/// have it.
fn of_process(labels: &HashMap<String, Vec<String>>, name: &str) -> Option<String> {
    if let Some(tasks) = labels.get(name) {
        let listed = tasks.iter().take(MOST_LISTED).map(String::as_str).collect::<Vec<_>>();
        let instead = match &listed[..] {
            [] => return None,
            [only] => format!("name its task: {only}"),
            [listed @ .., last] => {
                format!("name one of its tasks: {}, or {last}", listed.join(", "))
            }
        };
        return Some(format!("this is a process; {instead}"));
    }
    let (process, task) = name.split_once('/')?;
    let is_there = labels.get(process)?.iter().any(|label| label == task);
    is_there.then(|| format!("in a job, a task is named without its process; write {task}"))
}

/// Makes edges of the order of tasks and of the names of children.
fn link(mut processes: Vec<Process>, draft: &mut Draft) {
    let id = |task: Option<&Task>| task.map(|task| task.task.id);
    let first: Vec<_> = processes.iter().map(|process| id(process.tasks.first())).collect();
    let mut joins = Vec::new();
    for process in &mut processes {
        for position in 0..process.tasks.len() {
            let after = id(process.tasks.get(position + 1));
            let task = &mut process.tasks[position];
            task.task.next.extend(after);
            let Some(Child::Index(child)) = task.child else {
                continue;
            };
            if task.task.kind == Kind::Fork {
                task.task.next.extend(first[child]);
            } else {
                joins.push((child, task.task.id));
            }
        }
    }
    for (child, join) in joins {
        if let Some(last) = processes[child].tasks.last_mut() {
            last.task.next.push(join);
        }
    }
    for process in processes {
        let tasks = process.tasks.into_iter().map(|task| task.task);
        draft.tasks.extend(tasks);
        draft.processes.push(process.process);
    }
}
