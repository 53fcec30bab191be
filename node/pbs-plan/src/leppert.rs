// SPDX-License-Identifier: GPL-2.0
//! Plans of Leppert's simulation (Leppert 2021, 4.3.1): a line with the
//! number of processes, the plan buffer of each, and the tasks in order of
//! execution, each with its planned and its real length.
//!
//! ```text
//! 2;0,9000;1,8000;;;0,0,1200,1150;-1,-1,300,310;1,1,700,910;
//! ```
//!
//! Process -1 is an idle slot; process -2 ends the list early. Task numbers
//! count through the whole plan: those of a process ascend with gaps.
//!
//! Leppert's own parser takes the number of a process for its place in the list of plan
//! buffers, and the number of a task for its place among all tasks. Processes are therefore
//! written with numbers from 0, and tasks with numbers that count through the plan.
//!
//! The grammar as it is printed has a comma before each process and each task; it is read, too.
//!
//! The simulation prints the plan once more below, as a table for people
//! (listing 4): a line of `#`, one that names the columns, and a row for each task
//! and idle slot. So its whole output is read; the table is held against the plan.
//!
//! ```text
//! 2;0,9000;1,8000;;;0,0,1200,1150;-1,-1,300,310;1,1,700,910;
//!
//! #########
//!
//! pid - tid - len_plan - len-real
//! 0 0 1200 1150
//! -1 -1 300 310
//! 1 1 700 910
//! ```

use std::collections::HashMap;
use std::num::NonZeroU32;

use pbs_text::{append, Line, Problem};

use crate::{check, Cpu, Plan, Process, Slot, Task};

const IDLE: i64 = -1;
const END: i64 = -2;

/// Whether the text begins as a plan in this grammar. No TOML begins with a number and a semicolon.
pub fn is_it(text: &str) -> bool {
    let after = text.trim_start();
    let after_number = after.trim_start_matches(|c: char| c.is_ascii_digit());
    after_number.len() < after.len() && after_number.starts_with(';')
}

/// Reads a plan for one CPU and checks it.
pub fn import(text: &str, plan_id: u64, cpu: u32) -> Result<Plan, Vec<Problem>> {
    let plan = parse(text, plan_id, cpu).map_err(|problem| vec![problem])?;
    check(&plan)?;
    Ok(plan)
}

/// The plan as Leppert's parser and [`import`] read it, with the numbers that his parser needs
/// for processes and tasks. What the grammar has no place for and a simulation would miss is
/// refused; names and commands are left out.
pub fn export(plan: &Plan) -> Result<String, Problem> {
    let [cpu] = &plan.cpus[..] else {
        let message = format!(
            "the plan has {} CPUs, but Leppert's grammar is for one; write TOML",
            plan.cpus.len()
        );
        return Err(Problem::at(None, message));
    };
    if plan.config.is_some() || plan.dealt_seq != 0 || plan.lease_ns != 0 {
        let message = "Leppert's grammar has no [config], dealt_seq and lease_ns; write TOML";
        return Err(Problem::at(None, message));
    }
    let mut rates = plan
        .processes
        .iter()
        .map(|process| process.rate_insns_per_ms)
        .chain([cpu.rate_insns_per_ms]);
    if rates.any(|rate| rate != 0) {
        let message = "Leppert's grammar has no rate_insns_per_ms; write TOML";
        return Err(Problem::at(None, message));
    }
    let mut out = plan.processes.len().to_string();
    for (number, process) in plan.processes.iter().enumerate() {
        check_expressible(process)?;
        append!(out, ";{number},{}", process.buffer_insns);
    }
    out.push_str(";;;");
    let mut next_task = 0;
    for slot in plan.place(cpu) {
        let (process, task) = match slot.task {
            Some((process, _)) => {
                next_task += 1;
                (process as i64, next_task - 1)
            }
            None => (IDLE, IDLE),
        };
        let planned_insns = slot.length_insns;
        let real_insns = slot.real_insns.unwrap_or(planned_insns);
        append!(out, "{process},{task},{planned_insns},{real_insns};");
    }
    out.push('\n');
    Ok(out)
}

/// Refuses a process with anything that simulations read and the grammar has no place for.
fn check_expressible(process: &Process) -> Result<(), Problem> {
    let label = process.label();
    let refuse = |line, what: String, key: &str| {
        let message = format!("{what} has {key}, which Leppert's grammar has not; write TOML");
        Err(Problem::at(line, message))
    };
    let keys = [
        ("memory_bytes", process.memory_bytes != 0),
        ("real_memory_bytes", process.real_memory_bytes.is_some()),
        ("deadline", process.deadline_ns.is_some()),
    ];
    if let Some((key, _)) = keys.into_iter().find(|&(_, is_there)| is_there) {
        return refuse(process.line, format!("process {label}"), key);
    }
    for task in &process.tasks {
        let keys = [("wait_insns", task.wait_insns.is_some()), ("after", !task.after.is_empty())];
        if let Some((key, _)) = keys.into_iter().find(|&(_, is_there)| is_there) {
            return refuse(task.line, format!("task {} of process {label}", task.id), key);
        }
    }
    Ok(())
}

fn parse(text: &str, plan_id: u64, cpu: u32) -> Result<Plan, Problem> {
    let mut lines = text
        .lines()
        .zip(1..)
        .map(|(text, number)| (text.trim(), NonZeroU32::new(number)))
        .filter(|(text, _)| !text.is_empty());
    let (line, first) = lines.next().unwrap_or(("", Line::Some(NonZeroU32::MIN)));
    let Some((meta, tasks)) = line.split_once(";;") else {
        return Err(Problem::at(
            first,
            "no \";;\" between the processes and the tasks; write \
             PROCESSES;ID,BUFFER;...;;ID,TASK,PLANNED,REAL;...",
        ));
    };
    check_table(tasks, lines)?;

    let mut meta = meta.split(';');
    let said = meta.next().unwrap_or("");
    let number: usize = said.trim().parse().map_err(|_| {
        Problem::at(
            first,
            format!("\"{said}\" is no number of processes; write it before the first \";\""),
        )
    })?;
    let mut processes = Vec::new();
    let mut indices = HashMap::new();
    for item in meta.filter(|item| !item.is_empty()) {
        let [id, buffer_insns] = numbers(item, first, "process", "ID,BUFFER")?;
        let id = positive(id, item, first)?;
        indices.insert(i64::from(id), processes.len());
        processes.push(Process {
            id,
            buffer_insns: positive(buffer_insns, item, first)?,
            line: first,
            ..Process::default()
        });
    }
    if processes.len() != number {
        return Err(Problem::at(
            first,
            format!(
                "{number} processes are announced and {} are there; correct the first number",
                processes.len()
            ),
        ));
    }

    let mut slots = Vec::new();
    for item in tasks.split(';').filter(|item| !item.trim().is_empty()) {
        let [process, task, planned, real] =
            numbers(item, first, "task", "PROCESS,TASK,PLANNED,REAL")?;
        if process == END {
            break;
        }
        let planned_insns = positive(planned, item, first)?;
        let real_insns = Some(positive(real, item, first)?);
        if process == IDLE {
            slots.push(Slot::Idle { length_insns: planned_insns, real_insns });
            continue;
        }
        let Some(&process) = indices.get(&process) else {
            return Err(Problem::at(
                first,
                format!(
                    "task \"{item}\": there is no process {process}; \
                     add it before the \";;\" as {process},BUFFER"
                ),
            ));
        };
        slots.push(Slot::Process { process });
        processes[process].tasks.push(Task {
            id: positive(task, item, first)?,
            planned_insns,
            real_insns,
            line: first,
            ..Task::default()
        });
    }
    Ok(Plan {
        plan_id,
        processes,
        cpus: vec![Cpu {
            cpu,
            slot_lines: vec![first; slots.len()],
            slots,
            line: first,
            ..Cpu::default()
        }],
        ..Plan::default()
    })
}

/// Checks the table of tasks that follows the plan. The simulation prints it for people: headings,
/// which have no digits, and a row of four numbers for each task and idle slot. The line alone
/// defines the plan. If the table differs, it does not belong to that plan, or one of the two is
/// damaged.
fn check_table<'a>(
    tasks: &str,
    lines: impl Iterator<Item = (&'a str, Line)>,
) -> Result<(), Problem> {
    let numbers = |text: &str, separator: fn(char) -> bool| -> Vec<String> {
        text.split(separator)
            .map(|number| number.trim().to_owned())
            .filter(|number| !number.is_empty())
            .collect()
    };
    let mut items = tasks.split(';').filter(|item| !item.trim().is_empty());
    for (row, line) in lines.filter(|(row, _)| row.contains(|c: char| c.is_ascii_digit())) {
        if row.contains(';') {
            let message = "this is a second plan; put each into a file of its own";
            return Err(Problem::at(line, message));
        }
        let item = items.next().unwrap_or("");
        if numbers(row, char::is_whitespace) != numbers(item, |c| c == ',') {
            let said = match item.trim() {
                "" => "has no more tasks".to_owned(),
                item => format!("has \"{item}\" there"),
            };
            let message = format!(
                "the table has \"{row}\", but the plan above it {said}; \
                 correct one of them, or delete the table"
            );
            return Err(Problem::at(line, message));
        }
    }
    Ok(())
}

fn numbers<const N: usize>(
    item: &str,
    line: Line,
    what: &str,
    form: &str,
) -> Result<[i64; N], Problem> {
    let parsed: Option<Vec<i64>> =
        without_comma(item).split(',').map(|number| number.trim().parse().ok()).collect();
    parsed.and_then(|parsed| parsed.try_into().ok()).ok_or_else(|| {
        Problem::at(line, format!("\"{item}\" is no {what}; write {N} whole numbers: {form}"))
    })
}

/// The item without the comma with which it begins in the grammar as it is printed.
fn without_comma(item: &str) -> &str {
    let item = item.trim();
    item.strip_prefix(',').unwrap_or(item)
}

fn positive<T: TryFrom<i64>>(number: i64, item: &str, line: Line) -> Result<T, Problem> {
    T::try_from(number).map_err(|_| {
        Problem::at(
            line,
            format!("\"{item}\": {number} is out of range; only process and task can be -1"),
        )
    })
}
