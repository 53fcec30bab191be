// SPDX-License-Identifier: GPL-2.0
//! Task graphs from TOML.

use std::collections::HashMap;

use pbs_text::reader::{closest, read, Reader, Table, Value};
use pbs_text::{between, underscored, Line, Problem};
use pbs_uapi::MAX_SLOT_INSNS;
use toml::de::{DeTable, DeValue};

use super::{Graph, GraphEdge, GraphTask, Target, Variant};
use super::{MAX_TASKS, MAX_THREADS, MAX_VARIANTS};
use crate::moment::{now_unix_ns, with_spans};
use crate::{MAX_MEMORY_BYTES, MAX_MESSAGE_BYTES, MAX_NS};

const TOP_KEYS: &[&str] = &["name", "start_ns", "deadline_ns", "priority", "program", "task"];
const TASK_KEYS: &[&str] = &["name", "after", "memory_bytes", "repeat", "chained", "variant"];
const EDGE_KEYS: &[&str] = &["task", "bytes", "transfer_ns"];
const VARIANT_KEYS: &[&str] = &["model", "threads", "device", "runtime_ns", "insns", "command"];
const WRITE_AFTER: &str =
    "write names of tasks: after = [\"load\", { task = \"sort\", bytes = 4_000_000 }]";

/// Whether that is the text of a graph, and not of a job that says its processes: it has
/// `[[task]]`.
pub fn is_graph(text: &str) -> bool {
    DeTable::parse(text).is_ok_and(|table| table.get_ref().contains_key("task"))
}

/// Reads a task graph and checks it.
pub fn graph_from_toml(text: &str) -> Result<Graph, Vec<Problem>> {
    let graph = read(&with_spans(text, now_unix_ns())?, graph)?;
    graph.check()?;
    Ok(graph)
}

/// A task as it is written: what it waits for is a name.
struct Written {
    task: GraphTask,
    after: Vec<(Line, String, GraphEdge)>,
    repeat: usize,
    chained: bool,
}

fn graph(reader: &mut Reader, document: &DeTable<'_>) -> Graph {
    let mut top = reader.open(document, "the job", None, TOP_KEYS);
    let mut graph = Graph::default();
    match top.entries.remove("name") {
        Some((line, value)) => {
            graph.name = reader.string(line, "name", value).unwrap_or_default();
            if graph.name.contains(char::is_control) {
                reader.problem(line, "the job has a name that can't be printed");
            }
        }
        None => {
            let message =
                "the job has no name, under which its history is stored; add name = \"...\"";
            reader.problem(None, message);
        }
    }
    graph.start_ns = time(reader, &mut top, "start_ns", 0).unwrap_or(0);
    graph.deadline_ns = time(reader, &mut top, "deadline_ns", 1);
    if graph.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= graph.start_ns) {
        let message = "the job's deadline is not after its start; put it later";
        reader.problem(None, message);
    }
    if let Some((line, value)) = top.entries.remove("priority") {
        graph.priority = reader.number(line, "priority", value).unwrap_or(0);
    }
    if let Some((line, value)) = top.entries.remove("program") {
        graph.program = words(reader, line, "program", value).unwrap_or_default();
    }
    let tables = reader.tables(&mut top, "task");
    let mut written = Vec::new();
    for (line, value) in tables {
        written.extend(task(reader, line, value));
    }
    let total: usize = written.iter().map(|written| written.repeat).sum();
    if total > MAX_TASKS {
        let message = format!(
            "the job has {total} tasks, and at most {MAX_TASKS} are allowed; split it into several \
             jobs"
        );
        reader.problem(None, message);
        return graph;
    }
    link(reader, written, &mut graph);
    graph
}

fn time(reader: &mut Reader, table: &mut Table<'_, '_>, key: &str, least: u64) -> Option<u64> {
    let (line, value) = table.entries.remove(key)?;
    let ns = reader.number_in(line, key, value, least..=MAX_NS)?;
    if !(least..=MAX_NS).contains(&ns) {
        let (ns, range) = (underscored(ns), between(least, MAX_NS));
        reader.problem(line, format!("{key} is {ns}; it must be {range}"));
        return None;
    }
    Some(ns)
}

fn task(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Written> {
    let mut table = reader.table(line, value, "[[task]]", TASK_KEYS)?;
    let mut task = GraphTask { line, ..GraphTask::default() };
    match table.entries.remove("name") {
        Some((line, value)) => {
            task.name = reader.string(line, "name", value)?;
            if task.name.contains(char::is_control) {
                reader.problem(line, "the task has a name that can't be printed");
            }
        }
        None => {
            reader.problem(line, "the task has no name; add name = \"load\"");
            return None;
        }
    }
    if let Some((line, value)) = table.entries.remove("memory_bytes") {
        let bytes = reader.number_in(line, "memory_bytes", value, 0..=MAX_MEMORY_BYTES)?;
        if bytes > MAX_MEMORY_BYTES {
            let range = between(0, MAX_MEMORY_BYTES);
            let found = underscored(bytes);
            reader.problem(line, format!("memory_bytes is {found}; it must be {range}"));
        }
        task.memory_bytes = bytes;
    }
    let mut repeat = 1;
    if let Some((line, value)) = table.entries.remove("repeat") {
        repeat = reader.number_in(line, "repeat", value, 1..=MAX_TASKS as u64)?;
        if !(1..=MAX_TASKS).contains(&repeat) {
            let range = between(1, MAX_TASKS as u64);
            let found = underscored(repeat as u64);
            reader.problem(line, format!("repeat is {found}; it must be {range}"));
            return None;
        }
    }
    let mut chained = true;
    if let Some((line, value)) = table.entries.remove("chained") {
        chained = reader.flag(line, "chained", value)?;
    }
    let after = match table.entries.remove("after") {
        Some((line, value)) => edges(reader, line, value)?,
        None => Vec::new(),
    };
    for (line, value) in reader.tables(&mut table, "variant") {
        let variant = variant(reader, line, value, &task.name);
        task.variants.extend(variant);
    }
    let label = &task.name;
    if task.variants.is_empty() && reader.is_content() {
        let message = format!(
            "task {label} has no variant; add [[task.variant]] with model, threads or device, and \
             runtime_ns or insns"
        );
        reader.problem(line, message);
    }
    if task.variants.len() > MAX_VARIANTS {
        let many = task.variants.len();
        let message = format!(
            "task {label} has {many} variants, and at most {MAX_VARIANTS} are allowed; remove some"
        );
        reader.problem(line, message);
    }
    for (place, variant) in task.variants.iter().enumerate() {
        let same = |other: &Variant| other.model == variant.model && other.target == variant.target;
        if task.variants[..place].iter().any(same) {
            let message = format!(
                "task {label} has the variant {} twice; remove one, or choose another model",
                variant.label()
            );
            reader.problem(variant.line, message);
        }
    }
    Some(Written { task, after, repeat, chained })
}

fn edges(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
) -> Option<Vec<(Line, String, GraphEdge)>> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("after is no list; {WRITE_AFTER}"));
        return None;
    };
    let edges = items.iter().map(|item| {
        let line = reader.line_of(item);
        let mut edge = GraphEdge::default();
        if let DeValue::String(_) = item.get_ref() {
            return Some((line, reader.string(line, "after", item)?, edge));
        }
        let mut table = reader.table(line, item, "an entry of after", EDGE_KEYS)?;
        let Some((name_line, name)) = table.entries.remove("task") else {
            reader.problem(line, format!("an entry of after names no task; {WRITE_AFTER}"));
            return None;
        };
        let name = reader.string(name_line, "task", name)?;
        if let Some((line, value)) = table.entries.remove("bytes") {
            edge.bytes = reader.number_in(line, "bytes", value, 0..=MAX_MESSAGE_BYTES)?;
            if edge.bytes > MAX_MESSAGE_BYTES {
                let range = between(0, MAX_MESSAGE_BYTES);
                let found = underscored(edge.bytes);
                reader.problem(line, format!("bytes is {found}; it must be {range}"));
            }
        }
        edge.transfer_ns = time(reader, &mut table, "transfer_ns", 0);
        Some((line, name, edge))
    });
    edges.collect()
}

fn variant(reader: &mut Reader, line: Line, value: &Value<'_>, task: &str) -> Option<Variant> {
    let mut table = reader.table(line, value, "[[task.variant]]", VARIANT_KEYS)?;
    let Some((model_line, model)) = table.entries.remove("model") else {
        let message = format!("a variant of task {task} has no model; add model = \"omp\"");
        reader.problem(line, message);
        return None;
    };
    let model = reader.string(model_line, "model", model)?;
    let target = match (table.entries.remove("threads"), table.entries.remove("device")) {
        (Some((line, _)), Some(_)) => {
            let message = format!(
                "variant {model} of task {task} has both threads and a device; it runs on one of \
                 them, so remove the other"
            );
            reader.problem(line, message);
            return None;
        }
        (None, Some((line, value))) => Target::Device(reader.string(line, "device", value)?),
        (Some((line, value)), None) => {
            let threads = reader.number_in(line, "threads", value, 1..=MAX_THREADS.into())?;
            if !(1..=MAX_THREADS).contains(&threads) {
                let range = between(1, MAX_THREADS.into());
                let found = underscored(threads.into());
                reader.problem(line, format!("threads is {found}; it must be {range}"));
                return None;
            }
            Target::Threads(threads)
        }
        (None, None) => Target::Threads(1),
    };
    // A task of no length keeps its place in the order, for which it needs some.
    let runtime_ns = time(reader, &mut table, "runtime_ns", 0).map(|ns| ns.max(1));
    let mut insns = None;
    if let Some((line, value)) = table.entries.remove("insns") {
        let number = reader.insns(line, "insns", value, 0..=MAX_SLOT_INSNS)?;
        if number > MAX_SLOT_INSNS {
            let range = between(0, MAX_SLOT_INSNS);
            let found = underscored(number);
            reader.problem(line, format!("insns is {found}; it must be {range}"));
        }
        insns = Some(number.max(1));
    }
    let command = match table.entries.remove("command") {
        None => Vec::new(),
        Some((line, value)) => words(reader, line, "command", value)?,
    };
    Some(Variant { model, target, runtime_ns, insns, command, line })
}

fn words(reader: &mut Reader, line: Line, key: &str, value: &Value<'_>) -> Option<Vec<String>> {
    let DeValue::Array(words) = value.get_ref() else {
        let last = if key == "command" { "{lane}" } else { "argument" };
        let message = format!("{key} is no list; write its words: {key} = [\"prog\", \"{last}\"]");
        reader.problem(line, message);
        return None;
    };
    words.iter().map(|word| reader.string(line, "a word", word)).collect()
}

/// Makes tasks of what is written: those that are repeated get numbers, and names become
/// indices.
fn link(reader: &mut Reader, written: Vec<Written>, graph: &mut Graph) {
    // Of each name: the tasks that it stands for, which are what others wait for.
    let mut meant: HashMap<String, Vec<usize>> = HashMap::new();
    let mut place = 0;
    for written in &written {
        let name = &written.task.name;
        let all = place..place + written.repeat;
        // Of a chain the last, which comes after all others.
        let last = if written.chained { all.end - 1..all.end } else { all.clone() };
        let numbered = (1..).zip(all).filter(|_| written.repeat > 1);
        let numbered = numbered.map(|(number, task)| (format!("{name}.{number}"), vec![task]));
        for (name, tasks) in numbered.chain([(name.clone(), last.collect())]) {
            if meant.insert(name.clone(), tasks).is_some() {
                let message = format!("there is a task {name} already; choose another name");
                reader.problem(written.task.line, message);
            }
        }
        place += written.repeat;
    }
    for written in written {
        let name = written.task.name.clone();
        let mut after = Vec::new();
        for (line, awaited, edge) in written.after {
            let Some(tasks) = meant.get(&awaited) else {
                let instead = match closest(&awaited, meant.keys().map(String::as_str)) {
                    Some(close) => format!("did you mean {close}?"),
                    None => WRITE_AFTER.into(),
                };
                let message =
                    format!("task {name} waits for {awaited}, which is not there; {instead}");
                reader.problem(line, message);
                continue;
            };
            for &task in tasks {
                if after.iter().any(|edge: &GraphEdge| edge.task == task) {
                    let message = format!("task {name} waits for {awaited} twice; remove one");
                    reader.problem(line, message);
                }
                after.push(GraphEdge { task, ..edge });
            }
        }
        let first = graph.tasks.len();
        for number in 0..written.repeat {
            let mut task = written.task.clone();
            if written.repeat > 1 {
                task.name = format!("{name}.{}", number + 1);
            }
            task.after = match number {
                1.. if written.chained => {
                    vec![GraphEdge { task: first + number - 1, ..GraphEdge::default() }]
                }
                _ => after.clone(),
            };
            graph.tasks.push(task);
        }
    }
}
