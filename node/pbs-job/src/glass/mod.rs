// SPDX-License-Identifier: GPL-2.0
//! The files of Glaß's prototype (Glaß 2024, 5.1.1 and 5.1.2): a machine, and
//! the three of a job request.
//!
//! The prototype counts time in whole units and memory in units that it does
//! not name (7.2.3, 7.2.4). A unit of time is taken for a second, as its
//! machines retire instructions "per second", and a unit of memory for a byte.
//! Machines that are read here have a tick of a second.

mod columns;
mod net;

use std::fmt;

use crate::{machine, Core, Draft, DraftProcess, Job, Machine, Node};
use columns::Columns;
use pbs_text::{Line, Problem};

/// The prototype's unit of time.
const UNIT_NS: u64 = 1_000_000_000;

/// The texts of the files of a job request.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// `job_details_N.csv`: start, deadline and totals.
    pub details: &'a str,
    /// `job_processes_N.csv`: runtime and memory of each process.
    pub processes: &'a str,
    /// `job_tasks_N.txt`: the task net.
    pub tasks: &'a str,
}

/// One of the files of a job request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// [`Files::details`].
    Details,
    /// [`Files::processes`].
    Processes,
    /// [`Files::tasks`].
    Tasks,
}

/// Fault of a job request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// File of the fault; `None`: the files don't match each other.
    pub file: Option<File>,
    /// Description of the fault.
    pub problem: Problem,
}

/// Reads a job and checks it; `name` is what it will be called.
pub fn import_job(name: &str, files: &Files<'_>) -> Result<Job, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut draft = Draft { name: name.into(), ..Draft::default() };
    let mut keep = |file, problems: Vec<Problem>| {
        let file = Some(file);
        faults.extend(problems.into_iter().map(|problem| Fault { file, problem }));
    };
    keep(File::Details, details(files.details, &mut draft));
    keep(File::Processes, processes(files.processes, &mut draft));
    keep(File::Tasks, net::read(files.tasks, &mut draft));
    if !faults.is_empty() {
        return Err(faults);
    }
    draft.check().map_err(|problems| {
        let faults = problems.into_iter().map(|problem| Fault {
            // Only tasks have kept their lines.
            file: problem.line.map(|_| File::Tasks),
            problem,
        });
        faults.collect()
    })
}

/// Reads `machine_details.csv` and checks it.
pub fn import_machine(text: &str) -> Result<Machine, Vec<Problem>> {
    const HEADER: [&str; 4] = ["node_id", "cores", "total_shared_memory", "instructions_pre_sec"];
    let mut columns = Columns::new(text, HEADER);
    let mut machine =
        Machine { name: None, tick_ns: UNIT_NS, nodes: Vec::new(), ..Machine::default() };
    while let Some((line, [name, cores, memory_bytes, rate])) = columns.next_row() {
        let memory_bytes = columns.number(line, HEADER[2], memory_bytes);
        let rate = columns.number(line, HEADER[3], rate);
        let (Some(memory_bytes), Some(rate_insns_per_s)) = (memory_bytes, rate) else {
            continue;
        };
        let cores = cores.split(',').map(str::trim).map(|core| Core {
            name: core.into(),
            cpu: None,
            rate_insns_per_s,
        });
        machine.nodes.push(Node { name: name.into(), memory_bytes, cores: cores.collect(), line });
    }
    let problems = columns.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    machine::check(&machine)?;
    Ok(machine)
}

fn details(text: &str, draft: &mut Draft) -> Vec<Problem> {
    const HEADER: [&str; 4] = ["start", "deadline", "total_runtime", "total_needed_memory"];
    let mut columns = Columns::new(text, HEADER);
    match columns.next_row() {
        Some((line, [start, deadline, runtime, memory])) => {
            draft.start_ns = columns.time(line, HEADER[0], start).unwrap_or(0);
            draft.deadline_ns = columns.time(line, HEADER[1], deadline).unwrap_or(0);
            draft.runtime_ns = columns.time(line, HEADER[2], runtime);
            draft.memory_bytes = columns.number(line, HEADER[3], memory);
        }
        None if columns.is_content() => {
            columns.problem(None, "there is no line with the figures of the job; add it");
        }
        None => {}
    }
    if let Some((line, _)) = columns.next_row() {
        columns.problem(line, "a job has one line of figures; remove the others");
    }
    columns.problems()
}

fn processes(text: &str, draft: &mut Draft) -> Vec<Problem> {
    const HEADER: [&str; 3] = ["process_id", "approx_runtime", "approx_needed_memory"];
    let mut columns = Columns::new(text, HEADER);
    while let Some((line, [id, runtime, memory])) = columns.next_row() {
        let id = columns.number(line, HEADER[0], id);
        let runtime_ns = columns.time(line, HEADER[1], runtime);
        let memory_bytes = columns.number(line, HEADER[2], memory);
        let (Some(id), Some(memory_bytes)) = (id, memory_bytes) else {
            continue;
        };
        let Ok(id) = u32::try_from(id) else {
            let message = format!("process_id {id} is too great; it must be below 2^32");
            columns.problem(line, message);
            continue;
        };
        draft.processes.push(DraftProcess {
            id,
            memory_bytes,
            runtime_ns,
            line: None,
            ..DraftProcess::default()
        });
    }
    columns.problems()
}

/// A number of these files, which are decimal and without sign.
fn number(line: Line, what: &str, text: &str) -> Result<u64, Problem> {
    let digits = text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty();
    text.parse().ok().filter(|_| digits).ok_or_else(|| {
        let message = match text {
            "" => format!("{what} is missing; write a whole number"),
            _ if text.starts_with('-') => {
                format!("{what} is {text:?}, which is negative; write a number from 0 on")
            }
            _ if digits => format!("{what} is {text}, which is too great for 64 bits"),
            _ => format!("{what} is {text:?}, which is no whole number"),
        };
        Problem::at(line, message)
    })
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Details => "job details",
            Self::Processes => "job processes",
            Self::Tasks => "job tasks",
        })
    }
}
