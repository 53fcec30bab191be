// SPDX-License-Identifier: GPL-2.0
//! WfFormat, the JSON of WfCommons: versions 1.5, with `specification` and `execution`, and those
//! before, where each task has all of its figures.

use std::collections::{BTreeSet, HashMap};

use pbs_job::Problem;
use pbs_text::Problems;
use serde_json::Value;

use super::model::{seconds_ns, Step, Workflow};

/// Number of names in a message about fields.
const SHOWN_FIELDS: usize = 8;

/// Files that tasks read at most, each once for each task that writes it.
const MOST_PAIRS: usize = 1 << 22;

/// Fields of tasks that are read, that are reported apart, or that only people read.
const KNOWN: [&str; 18] = [
    "id",
    "name",
    "parents",
    "children",
    "files",
    "inputFiles",
    "outputFiles",
    "runtime",
    "runtimeInSeconds",
    "cores",
    "coreCount",
    "memory",
    "memoryInBytes",
    "avgCPU",
    "command",
    "type",
    "category",
    "executedAt",
];

/// Reads a workflow; all problems are told at once.
pub(super) fn read(text: &str) -> Result<Workflow, Vec<Problem>> {
    let whole: Value = serde_json::from_str(text).map_err(|error| {
        let line = u32::try_from(error.line()).ok().and_then(std::num::NonZeroU32::new);
        vec![Problem::at(line, format!("this is no JSON: {error}"))]
    })?;
    let workflow = &whole["workflow"];
    let specification = match &workflow["specification"] {
        Value::Null => workflow,
        specification => specification,
    };
    let Some(tasks) = specification["tasks"].as_array().or_else(|| workflow["jobs"].as_array())
    else {
        let message = "workflow.specification.tasks (WfFormat 1.5) or workflow.tasks is no list";
        return Err(vec![Problem::at(None, message)]);
    };
    let mut problems = Problems::default();
    let mut read = Workflow { name: whole["name"].as_str().map(Into::into), ..Workflow::default() };
    // Tasks are referred to by their id; in versions before 1.5 also by their name.
    let mut places: HashMap<&str, usize> = HashMap::new();
    for task in tasks {
        let id = task["id"].as_str().or_else(|| task["name"].as_str());
        let Some(id) = id else {
            problems.push(Problem::at(None, format!("task {} has no id", read.tasks.len() + 1)));
            continue;
        };
        let place = read.tasks.len();
        if places.insert(id, place).is_some() {
            problems.push(Problem::at(None, format!("there are two tasks with the id {id}")));
        }
        read.tasks.push(Step { name: id.into(), ..Step::default() });
    }
    problems.none()?;
    let mut problems = Problems::default();
    let ids = Ids::new(&places, tasks);
    let ran = workflow["execution"]["tasks"].as_array();
    let ran: HashMap<&str, &Value> =
        ran.into_iter().flatten().filter_map(|it| Some((it["id"].as_str()?, it))).collect();
    let missing = ran.keys().filter(|id| !places.contains_key(*id)).count();
    if missing > 0 {
        read.leave_out(match missing {
            1 => "1 task of the execution is left out: no task has its id".to_string(),
            many => format!("{many} tasks of the execution are left out: no task has their ids"),
        });
    }
    let sizes = sizes(&specification["files"]).map_err(|problem| vec![problem])?;
    let data = data(tasks, &sizes).map_err(|problem| vec![problem])?;
    let bytes_from = |after: usize, before: usize| data[after].get(&before).copied().unwrap_or(0);
    let mut others: BTreeSet<&str> = BTreeSet::new();
    for (place, task) in tasks.iter().enumerate() {
        let step = &mut read.tasks[place];
        let figures = ran.get(step.name.as_str()).copied().unwrap_or(task);
        if let Err(problem) = step.take(figures) {
            problems.push(problem);
        }
        if !figures["avgCPU"].is_null() {
            read.leave_out("avgCPU is left out: a task has its cores for all of its run time");
        }
        if figures["memoryInBytes"].is_null() && !figures["memory"].is_null() {
            read.leave_out("memory is left out: its unit differs; memoryInBytes is read");
        }
        if !figures["command"].is_null() || !task["command"].is_null() {
            read.leave_out("commands are left out: their programs and files are elsewhere");
        }
        let fields = [task, figures].into_iter().filter_map(Value::as_object);
        let fields = fields.flat_map(|fields| fields.keys()).map(String::as_str);
        others.extend(fields.filter(|field| !KNOWN.contains(field)));
        for parent in references(&task["parents"]) {
            match ids.place(parent) {
                Ok(before) => {
                    read.tasks[place].after.insert(before, bytes_from(place, before));
                }
                Err(why) => {
                    let name = &read.tasks[place].name;
                    let message = format!("task {name} names the parent {}, {why}", shown(parent));
                    problems.push(Problem::at(None, message));
                }
            }
        }
        for child in references(&task["children"]) {
            match ids.place(child) {
                Ok(after) => {
                    let bytes = bytes_from(after, place);
                    read.tasks[after].after.entry(place).or_insert(bytes);
                }
                Err(why) => {
                    let name = &read.tasks[place].name;
                    let message = format!("task {name} names the child {}, {why}", shown(child));
                    problems.push(Problem::at(None, message));
                }
            }
        }
    }
    if !others.is_empty() {
        let shown: Vec<_> = others.iter().take(SHOWN_FIELDS).copied().collect();
        let more = match others.len().saturating_sub(SHOWN_FIELDS) {
            0 => String::new(),
            more => format!(" and {more} others"),
        };
        read.leave_out(format!("fields of tasks are left out: {}{more}", shown.join(", ")));
    }
    problems.none()?;
    Ok(read)
}

/// Places of tasks by their ids, and by their names as versions before 1.5 have it.
struct Ids<'a> {
    by_id: &'a HashMap<&'a str, usize>,
    /// `None`: several tasks have the name.
    by_name: HashMap<&'a str, Option<usize>>,
}

impl<'a> Ids<'a> {
    fn new(by_id: &'a HashMap<&'a str, usize>, tasks: &'a [Value]) -> Self {
        let mut by_name = HashMap::new();
        for (place, task) in tasks.iter().enumerate() {
            if let Some(name) = task["name"].as_str() {
                by_name.entry(name).and_modify(|of| *of = None).or_insert(Some(place));
            }
        }
        Self { by_id, by_name }
    }

    /// The place of the task that a value names, or the reason why there is none.
    fn place(&self, value: &Value) -> Result<usize, &'static str> {
        let id = value.as_str().ok_or("which is no text; write the id of a task in quotes")?;
        if let Some(&place) = self.by_id.get(id) {
            return Ok(place);
        }
        let named = self.by_name.get(id).ok_or("which is not there")?;
        named.ok_or("which is the name of several tasks; write an id")
    }
}

/// A value in a message: a text without its quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

/// Elements of a list of tasks. A value that is no list is an element of its own.
fn references(list: &Value) -> &[Value] {
    match list {
        Value::Null => &[],
        Value::Array(elements) => elements,
        other => std::slice::from_ref(other),
    }
}

impl Step {
    /// Takes the figures of a task as it ran.
    fn take(&mut self, figures: &Value) -> Result<(), Problem> {
        let runtime = [&figures["runtimeInSeconds"], &figures["runtime"]];
        if let Some(runtime) = runtime.into_iter().find(|value| !value.is_null()) {
            let ns = runtime.as_f64().and_then(seconds_ns);
            let why = || {
                format!(
                    "the run time of task {} is {runtime}; write seconds, \
                     at most 4e9",
                    self.name
                )
            };
            self.runtime_ns = Some(ns.ok_or_else(|| Problem::at(None, why()))?);
        }
        let number = |names: &[&str]| -> Result<Option<u64>, Problem> {
            let mut values = names.iter().map(|name| (*name, &figures[*name]));
            let Some((name, value)) = values.find(|(_, value)| !value.is_null()) else {
                return Ok(None);
            };
            let number = amount(value).ok_or_else(|| {
                let message =
                    format!("{name} of task {} is {value}; write a number from 0 on", self.name);
                Problem::at(None, message)
            })?;
            // 0 stands for what was not measured.
            Ok(Some(number).filter(|&number| number > 0))
        };
        (self.threads, self.memory_bytes) =
            (number(&["coreCount", "cores"])?, number(&["memoryInBytes"])?);
        Ok(())
    }
}

/// A number from 0 on, rounded up.
fn amount(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|&number| (0.0..u64::MAX as f64).contains(&number))?;
    Some(number.ceil() as u64)
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The size of a file; a file without one has none that counts.
fn size(file: &Value, name: &str) -> Result<u64, Problem> {
    let values = [&file["sizeInBytes"], &file["size"]];
    let Some(value) = values.into_iter().find(|value| !value.is_null()) else {
        return Ok(0);
    };
    amount(value).ok_or_else(|| {
        let message = format!("the size of file {name} is {value}; write a number of bytes");
        Problem::at(None, message)
    })
}

/// The sizes of files that version 1.5 lists apart.
fn sizes(files: &Value) -> Result<HashMap<&str, u64>, Problem> {
    let files = files.as_array().into_iter().flatten();
    let named = files.filter_map(|file| Some((file["id"].as_str()?, file)));
    named.map(|(id, file)| Ok((id, size(file, id)?))).collect()
}

/// Bytes that each task reads of files that others write, by the place of the writer. Each file is
/// looked at once for each task that reads it.
fn data<'a>(
    tasks: &'a [Value],
    sizes: &HashMap<&'a str, u64>,
) -> Result<Vec<HashMap<usize, u64>>, Problem> {
    let mut writers: HashMap<&str, Vec<(usize, u64)>> = HashMap::new();
    for (place, task) in tasks.iter().enumerate() {
        let listed = strings(&task["outputFiles"]);
        let listed = listed.map(|id| Ok((id, sizes.get(id).copied().unwrap_or(0))));
        let own = linked(task, "output").map(|(name, file)| Ok((name, size(file, name)?)));
        // A file that is listed in both ways is one.
        let files: Result<HashMap<&str, u64>, Problem> = listed.chain(own).collect();
        for (name, bytes) in files? {
            writers.entry(name).or_default().push((place, bytes));
        }
    }
    let mut pairs = 0_usize;
    let of = |task: &'a Value| -> Result<HashMap<usize, u64>, Problem> {
        let mut from: HashMap<usize, u64> = HashMap::new();
        let own = linked(task, "input").map(|(name, _)| name);
        for name in strings(&task["inputFiles"]).chain(own) {
            let writers = writers.get(name).map_or(&[][..], |of| of);
            pairs = pairs.saturating_add(1 + writers.len());
            if pairs > MOST_PAIRS {
                let message = format!("a workflow has at most {MOST_PAIRS} files of tasks");
                return Err(Problem::at(None, message));
            }
            for &(writer, bytes) in writers {
                let sum = from.entry(writer).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        Ok(from)
    };
    tasks.iter().map(of).collect()
}

/// The files of a task with such a link, as versions before 1.5 have it, each with its name.
fn linked<'a>(task: &'a Value, link: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let files = task["files"].as_array().into_iter().flatten();
    let files = files.filter(move |file| file["link"] == link);
    files.filter_map(|file| Some((file["name"].as_str().or_else(|| file["id"].as_str())?, file)))
}
