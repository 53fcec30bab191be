// SPDX-License-Identifier: GPL-2.0
//! WfFormat, the JSON of WfCommons: versions 1.5, with `specification` and `execution`, and those
//! before, where each task has all of its figures.

use std::collections::{BTreeMap, HashMap};

use pbs_job::Problem;
use serde_json::Value;

use super::model::{seconds_ns, Step, Workflow};

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
    let mut problems = Vec::new();
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
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut ids: HashMap<&str, usize> = places.clone();
    for (place, task) in tasks.iter().enumerate() {
        if let Some(name) = task["name"].as_str() {
            ids.entry(name).or_insert(place);
        }
    }
    let ran = workflow["execution"]["tasks"].as_array();
    let ran: HashMap<&str, &Value> =
        ran.into_iter().flatten().filter_map(|it| Some((it["id"].as_str()?, it))).collect();
    let written = written(tasks, &sizes(&specification["files"]));
    for (place, task) in tasks.iter().enumerate() {
        let step = &mut read.tasks[place];
        let figures = ran.get(step.name.as_str()).copied().unwrap_or(task);
        if let Err(problem) = step.take(figures) {
            problems.push(problem);
        }
        if !figures["avgCPU"].is_null() {
            read.left_out
                .insert("avgCPU is left out: a task has its cores for all of its run time");
        }
        if figures["memoryInBytes"].is_null() && !figures["memory"].is_null() {
            read.left_out.insert("memory is left out: its unit differs; memoryInBytes is read");
        }
        if !figures["command"].is_null() || !task["command"].is_null() {
            read.left_out.insert("commands are left out: their programs and files are elsewhere");
        }
        for parent in strings(&task["parents"]) {
            match ids.get(parent) {
                Some(&before) => {
                    let bytes = written.get(&before).map_or(0, |files| shared(files, task));
                    read.tasks[place].after.insert(before, bytes);
                }
                None => {
                    let name = &read.tasks[place].name;
                    let message =
                        format!("task {name} names the parent {parent}, which is not there");
                    problems.push(Problem::at(None, message));
                }
            }
        }
        for child in strings(&task["children"]) {
            match ids.get(child) {
                Some(&after) => {
                    let files = written.get(&place);
                    let bytes = files.map_or(0, |files| shared(files, &tasks[after]));
                    read.tasks[after].after.entry(place).or_insert(bytes);
                }
                None => {
                    let name = &read.tasks[place].name;
                    let message =
                        format!("task {name} names the child {child}, which is not there");
                    problems.push(Problem::at(None, message));
                }
            }
        }
    }
    if problems.is_empty() {
        Ok(read)
    } else {
        Err(problems)
    }
}

impl Step {
    /// Takes the figures of a task as it ran.
    fn take(&mut self, figures: &Value) -> Result<(), Problem> {
        let runtime = [&figures["runtimeInSeconds"], &figures["runtime"]];
        if let Some(runtime) = runtime.into_iter().find(|value| !value.is_null()) {
            let ns = runtime.as_f64().and_then(seconds_ns);
            let why =
                || format!("the run time of task {} is {runtime}; it must be seconds", self.name);
            self.runtime_ns = Some(ns.ok_or_else(|| Problem::at(None, why()))?);
        }
        let cores = [&figures["coreCount"], &figures["cores"]];
        let cores = cores.into_iter().find_map(Value::as_f64);
        self.threads = cores.filter(|&cores| cores >= 1.0).map(|cores| cores.ceil() as u64);
        let bytes = figures["memoryInBytes"].as_f64();
        self.memory_bytes = bytes.filter(|&bytes| bytes >= 1.0).map(|bytes| bytes.ceil() as u64);
        Ok(())
    }
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The sizes of files that version 1.5 lists apart.
fn sizes(files: &Value) -> HashMap<&str, u64> {
    let files = files.as_array().into_iter().flatten();
    files.filter_map(|file| Some((file["id"].as_str()?, file["sizeInBytes"].as_u64()?))).collect()
}

/// The files that each task writes, with their sizes.
fn written<'a>(
    tasks: &'a [Value],
    sizes: &HashMap<&'a str, u64>,
) -> BTreeMap<usize, HashMap<&'a str, u64>> {
    let of = |task: &'a Value| {
        let listed = strings(&task["outputFiles"]);
        let listed = listed.map(|id| (id, sizes.get(id).copied().unwrap_or(0)));
        let own = task["files"].as_array().into_iter().flatten();
        let own = own.filter(|file| file["link"] == "output");
        let own = own.filter_map(|file| {
            let size = file["sizeInBytes"].as_u64().or_else(|| file["size"].as_u64());
            Some((file["name"].as_str().or_else(|| file["id"].as_str())?, size.unwrap_or(0)))
        });
        listed.chain(own).collect()
    };
    tasks.iter().map(of).enumerate().collect()
}

/// Bytes of those files that the task reads.
fn shared(files: &HashMap<&str, u64>, task: &Value) -> u64 {
    let own = task["files"].as_array().into_iter().flatten();
    let own = own.filter(|file| file["link"] == "input");
    let own = own.filter_map(|file| file["name"].as_str().or_else(|| file["id"].as_str()));
    let read = strings(&task["inputFiles"]).chain(own);
    read.filter_map(|id| files.get(id)).fold(0, |sum: u64, &bytes| sum.saturating_add(bytes))
}
