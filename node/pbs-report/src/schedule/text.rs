// SPDX-License-Identifier: GPL-2.0
//! The plan for a terminal.

use pbs_text::{append_line, bytes, columns, grouped, ms};

use super::{Schedule, ScheduleCore, ScheduleTask};
use crate::process_style;

/// Processes after the last that has a letter of its own.
const MORE: char = '*';
const IDLE: char = '.';

/// Columns at most for names of resources.
const MOST_LEFT: usize = 20;

/// Lines that show how much memory, or how much of a resource, is reserved.
const LEVEL_ROWS: u64 = 4;

/// Maximum number of tasks that are named as the dependencies of one task.
const MOST_AFTER: usize = 3;

/// A chart is never narrower than this.
const LEAST_WIDTH: usize = 10;

/// For each core a table of its tasks.
pub fn schedule_tables(schedule: &Schedule) -> String {
    let mut out = String::new();
    for node in &schedule.nodes {
        for core in &node.cores {
            append_line!(out, "{} {}", node.name, core.name);
            let header = ["START ms", "END ms", "PROCESS", "TASK", "INSNS", "MEMORY"];
            let mut rows = vec![header.map(String::from).to_vec()];
            let waits = core.tasks.iter().any(|task| !task.after.is_empty());
            if waits {
                rows[0].push("AFTER".into());
            }
            for task in &core.tasks {
                rows.push(vec![
                    ms(task.start_ns),
                    ms(task.end_ns),
                    schedule.processes[task.process].clone(),
                    task.task.clone(),
                    grouped(task.insns),
                    bytes(task.memory_bytes),
                ]);
                if let Some(row) = rows.last_mut().filter(|_| waits) {
                    row.push(after(schedule, task));
                }
            }
            // Numbers to the right, the two names in the middle to the left.
            for column in [2, 3, 6].into_iter().take(if waits { 3 } else { 2 }) {
                let widths = rows.iter().map(|row| row[column].chars().count());
                let width = widths.max().unwrap_or(0);
                for row in &mut rows {
                    row[column] = format!("{:<width$}", row[column]);
                }
            }
            out.push_str(&columns(&rows, 0));
            out.push('\n');
        }
    }
    out
}

/// Names the dependencies of a task.
fn after(schedule: &Schedule, task: &ScheduleTask) -> String {
    let after = task.after.iter();
    let names = after.map(|after| format!("{} {}", schedule.processes[after.process], after.task));
    let names: Vec<_> = names.collect();
    match &names[..] {
        [] => "-".into(),
        names if names.len() <= MOST_AFTER => names.join(", "),
        names => {
            let more = names.len() - MOST_AFTER + 1;
            format!("{} and {more} more", names[..MOST_AFTER - 1].join(", "))
        }
    }
}

/// The cores over time, a letter for each process, the memory of each node
/// below its cores, and the resources that are held, in no more than so many columns if that can be.
pub fn schedule_chart(schedule: &Schedule, width: usize) -> String {
    let cores = schedule.nodes.iter().flat_map(|node| &node.cores);
    let names = cores.map(|core| core.name.chars().count());
    let left = names.chain([6]).max().unwrap_or(6);
    let names = schedule.resources.iter().map(|it| it.name.chars().count());
    let left = names.chain([left]).max().unwrap_or(left).min(MOST_LEFT.max(left));
    let memories = schedule.nodes.iter();
    let memories = memories.map(|node| bytes(node.memory_bytes).chars().count());
    let counts = schedule.resources.iter().map(|it| grouped(it.count).chars().count());
    let right = memories.chain(counts).max().unwrap_or(0);
    // Two bars and two blanks.
    let chart = width.saturating_sub(left + right + 4).max(LEAST_WIDTH);
    let end_ns = schedule.end_ns().max(1);
    let cells = Cells { chart, end_ns };
    let mut out = String::new();
    for node in &schedule.nodes {
        append_line!(out, "{}", node.name);
        for core in &node.cores {
            append_line!(out, "{:>left$} |{}|", core.name, cells.core(core));
        }
        let levels = cells.levels(node.memory_bytes, &node.reserved_bytes);
        append_levels(&mut out, left, "memory", &bytes(node.memory_bytes), levels);
    }
    for resource in &schedule.resources {
        let levels = cells.levels(resource.count, &resource.held);
        append_levels(&mut out, left, &resource.name, &grouped(resource.count), levels);
    }
    let end = format!("{} ms", ms(end_ns));
    let room = chart.saturating_sub(1);
    append_line!(out, "{:left$}  0{end:>room$}\n", "");
    for (ns, what) in &schedule.deadlines {
        append_line!(out, "deadline of {what}: {} ms", ms(*ns));
    }
    out.push_str(&legend(schedule, width));
    out
}

/// Appends the rows of a level, from the top, with its name and all that there is.
fn append_levels(out: &mut String, left: usize, name: &str, all: &str, rows: Vec<String>) {
    for (row, line) in rows.into_iter().enumerate() {
        let name: String = name.chars().take(if row == 0 { left } else { 0 }).collect();
        let scale = if row == 0 { format!(" {all}") } else { String::new() };
        append_line!(out, "{name:>left$} |{line}|{scale}");
    }
}

/// Time in columns.
struct Cells {
    chart: usize,
    end_ns: u64,
}

impl Cells {
    fn start_ns(&self, cell: usize) -> u64 {
        let ns = u128::from(self.end_ns) * cell as u128 / self.chart as u128;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Each cell has the process that has most of its time, so that none is
    /// lost that is alone in one.
    fn core(&self, core: &ScheduleCore) -> String {
        let mut tasks = core.tasks.iter().peekable();
        let cells = (0..self.chart).map(|cell| {
            let (from, until) = (self.start_ns(cell), self.start_ns(cell + 1));
            let mut best = (0, IDLE);
            let mut times: Vec<(usize, u64)> = Vec::new();
            while let Some(task) = tasks.peek() {
                let time_ns = task.end_ns.min(until).saturating_sub(task.start_ns.max(from));
                if time_ns > 0 {
                    match times.iter_mut().find(|(process, _)| *process == task.process) {
                        Some((_, sum)) => *sum += time_ns,
                        None => times.push((task.process, time_ns)),
                    }
                }
                if task.end_ns > until {
                    break;
                }
                tasks.next();
            }
            for (process, time_ns) in times {
                if time_ns > best.0 {
                    best = (time_ns, letter(process));
                }
            }
            best.1
        });
        cells.collect()
    }

    /// From the top to the bottom: filled as far as the most that is reserved in
    /// the time of a cell.
    fn levels(&self, all: u64, steps: &[(u64, u64)]) -> Vec<String> {
        let mut steps = steps.iter().peekable();
        let mut now = 0;
        let levels = (0..self.chart).map(|cell| {
            let (from, until) = (self.start_ns(cell), self.start_ns(cell + 1));
            let mut most = 0;
            while let Some(&&(at_ns, bytes)) = steps.peek() {
                if at_ns >= until {
                    break;
                }
                if at_ns > from {
                    most = most.max(now);
                }
                now = bytes;
                most = most.max(now);
                steps.next();
            }
            let most = u128::from(most.max(now)) * u128::from(LEVEL_ROWS);
            most.div_ceil(u128::from(all.max(1))) as u64
        });
        let levels: Vec<u64> = levels.collect();
        let rows = (1..=LEVEL_ROWS).rev().map(|row| {
            let cells = levels.iter();
            cells.map(|&level| if level >= row { '#' } else { ' ' }).collect()
        });
        rows.collect()
    }
}

fn letter(process: usize) -> char {
    process_style::letter(process).unwrap_or(MORE)
}

/// Lists the letters of the processes.
fn legend(schedule: &Schedule, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    let mut names: Vec<_> = schedule
        .processes
        .iter()
        .take(process_style::ALONE)
        .enumerate()
        .map(|(index, name)| format!("{} {name}", letter(index)))
        .collect();
    if schedule.processes.len() > process_style::ALONE {
        names.push(format!("{MORE} others"));
    }
    names.push(format!("{} idle", IDLE));
    for name in names {
        let length = line.chars().count() + 3 + name.chars().count();
        if !line.is_empty() && length > width {
            out.push_str(&line);
            out.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push_str("   ");
        }
        line.push_str(&name);
    }
    out + &line + "\n"
}
