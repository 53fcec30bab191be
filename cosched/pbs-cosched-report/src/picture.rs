// SPDX-License-Identifier: GPL-2.0
//! Schedules without and with co-scheduling, as they are drawn.

use pbs_cosched::{Timeline, Where};
use pbs_report::{placements_page, Panel, PlacedProcess, PlacedTask, Placements};
use pbs_text::{ms, Table};

use crate::measures::{faster, percent, CO_SCHEDULED};
use crate::rows::Placed;
use crate::{Case, Planned, Simulated, TaskRow, WithAndWithout};

/// Rows of the page's table of tasks.
const ROWS: usize = 2_000;

/// Lower schedule of a picture: its timeline, the placement of each task, and marks.
struct Below<'a> {
    timeline: &'a Timeline,
    tasks: Vec<Option<&'a Placed>>,
    title: String,
    marks: Vec<(u64, String)>,
}

/// Without co-scheduling above, what was found below; both as slow-downs make them, if it is
/// known how they do.
fn placements(
    case: &Case<'_>,
    rows: &[TaskRow],
    slowed: Option<&(Timeline, Timeline)>,
    below: Below<'_>,
) -> Placements {
    let panel = |title: &str, timeline: &Timeline, of: &dyn Fn(usize) -> Option<Placed>| {
        let slots = timeline.slots.iter().enumerate().zip(rows);
        let tasks = slots.filter_map(|((task, slot), row)| {
            let (slot, placed) = (slot.as_ref()?, of(task)?);
            let label = match placed.round {
                Some(round) => format!("{} r{round}", placed.variant),
                None => placed.variant,
            };
            Some(PlacedTask {
                process: case.workload.tasks[task].process,
                task: row.task.clone(),
                label,
                rows: case.names.rows_of(&slot.place),
                start_ns: slot.start_ns,
                end_ns: slot.end_ns,
            })
        });
        let tasks = tasks.chain(beside(case, rows, timeline));
        Panel {
            title: match slowed {
                Some(_) => format!("{title}, with slow-downs"),
                None => title.into(),
            },
            tasks: tasks.collect(),
            marks: Vec::new(),
        }
    };
    let processes = case.workload.processes.iter().zip(&case.names.processes);
    let (without, with) = match slowed {
        Some((without, with)) => (without, with),
        None => (&case.without, below.timeline),
    };
    let without = panel("not co-scheduled", without, &|task| rows.get(task)?.without.clone());
    let mut with =
        panel(&below.title, with, &|task| below.tasks.get(task).copied().flatten().cloned());
    with.marks = below.marks;
    Placements {
        title: format!("Co-scheduling {}", case.names.processes.join(", ")),
        processes: processes
            .map(|(process, name)| PlacedProcess {
                name: name.clone(),
                arrival_ns: process.arrival_ns,
                deadline_ns: process.deadline_ns,
            })
            .collect(),
        threads: case.names.threads(),
        accelerators: case.names.below_threads(case.platform),
        panels: vec![without, with],
    }
}

/// Returns what tasks on accelerators take besides them: their hosts' time, and links.
fn beside<'a>(
    case: &'a Case<'_>,
    rows: &'a [TaskRow],
    timeline: &'a Timeline,
) -> impl Iterator<Item = PlacedTask> + 'a {
    let placed = move |task: usize, label: &str, row, start_ns, end_ns| PlacedTask {
        process: case.workload.tasks[task].process,
        task: rows[task].task.clone(),
        label: label.into(),
        rows: vec![row],
        start_ns,
        end_ns,
    };
    let hosts = timeline.slots.iter().enumerate().zip(rows).filter_map(move |((task, slot), _)| {
        let slot = slot.as_ref()?;
        let Where::Device { device, .. } = slot.place else {
            return None;
        };
        let (thread, ns) = case.platform.devices[device].host_time(slot.end_ns - slot.start_ns)?;
        let until_ns = slot.start_ns.saturating_add(ns);
        let label = format!("for {}", case.platform.devices[device].name);
        Some(placed(task, &label, thread as usize, slot.start_ns, until_ns))
    });
    let transfers = timeline.transfers.iter().filter_map(move |of| {
        let row = case.names.row_of_link(case.platform, of.device, of.instance)?;
        Some(placed(of.task, "transfer", row, of.start_ns, of.end_ns))
    });
    hosts.chain(transfers)
}

/// Figures that a page has beside its picture.
struct PageFigures<'a> {
    measures: &'a WithAndWithout,
    slowed: Option<&'a WithAndWithout>,
    /// The title of the column of what was found.
    title: &'a str,
    /// Name of the scheduler, if its schedule was not taken.
    not_taken: Option<&'a str>,
    /// Whether measures and tasks are with slow-downs, and there are none without.
    are_slowed: bool,
    note: &'a str,
    tasks: &'a [TaskRow],
}

/// Figures in short: of what is done, and of what was found if that is something else.
fn figures(told: &PageFigures<'_>) -> Vec<(String, String)> {
    let measures = told.slowed.unwrap_or(told.measures);
    let (without, with) = (&measures.without, &measures.with);
    let figures = match told.not_taken {
        None => vec![
            ("speed-up".into(), faster(measures.speed_up)),
            ("makespan, ms".into(), ms(with.makespan_ns)),
            ("without co-scheduling, ms".into(), ms(without.makespan_ns)),
            ("load".into(), percent(with.load)),
            ("load without".into(), percent(without.load)),
        ],
        Some(who) => vec![
            ("makespan, not co-scheduled, ms".into(), ms(without.makespan_ns)),
            ("load, not co-scheduled".into(), percent(without.load)),
            (format!("makespan of what {who} found, not taken, ms"), ms(with.makespan_ns)),
        ],
    };
    let figures = figures.into_iter().map(|(what, figure): (String, _)| {
        let is_slowed = told.slowed.is_some() || told.are_slowed;
        let slowed = if is_slowed { ", with slow-downs" } else { "" };
        (what + slowed, figure)
    });
    figures.collect()
}

/// The page of a picture.
fn page(placements: &Placements, told: &PageFigures<'_>) -> String {
    let PageFigures { title, tasks, .. } = *told;
    let mut list = Table::new(
        &[
            "process",
            "task",
            "runs as",
            "on",
            "start, ms",
            "end, ms",
            "without: runs as",
            "end, ms",
        ],
        4,
    );
    for row in tasks.iter().take(ROWS) {
        let cells = |placed: &Option<Placed>, of: &[fn(&Placed) -> String]| {
            let cells = of.iter().map(|cell| placed.as_ref().map_or_else(String::new, cell));
            cells.collect::<Vec<_>>()
        };
        let variant: fn(&Placed) -> String = |of| of.variant.clone();
        let on: fn(&Placed) -> String = |of| of.on.clone();
        let start: fn(&Placed) -> String = |of| ms(of.start_ns);
        let end: fn(&Placed) -> String = |of| ms(of.end_ns);
        let mut line = vec![row.process.clone(), row.task.clone()];
        line.extend(cells(&row.placed, &[variant, on, start, end]));
        line.extend(cells(&row.without, &[variant, end]));
        list.push(line);
    }
    let mut tables = Vec::new();
    match told.slowed {
        Some(slowed) => {
            tables.push(("Measures, with slow-downs", slowed.table(title)));
            tables.push(("Measures, without slow-downs", told.measures.table(title)));
        }
        None if told.are_slowed => {
            tables.push(("Measures, with slow-downs", told.measures.table(title)));
        }
        None => tables.push(("Measures", told.measures.table(title))),
    }
    let heading = match (told.not_taken.is_some(), told.slowed.is_some()) {
        (false, false) if told.are_slowed => "Tasks, times with slow-downs",
        (false, false) => "Tasks",
        (false, true) => "Tasks, times without slow-downs",
        (true, false) => "Tasks, as without co-scheduling",
        (true, true) => "Tasks, as without co-scheduling, times without slow-downs",
    };
    tables.push((heading, list));
    placements_page(placements, &figures(told), told.note, &tables)
}

impl Planned {
    /// The picture: what was found, taken or not, below not co-scheduling.
    pub fn placements(&self, case: &Case<'_>) -> Placements {
        let title = if self.verdict.taken {
            format!("co-scheduled, {}", self.scheduler)
        } else {
            format!("not taken: what {} found", self.scheduler)
        };
        let rounds = match self.scheduler {
            "greedy" => "; r2: of the second round",
            _ => "",
        };
        let below = Below {
            timeline: &self.found.1,
            tasks: self.found_tasks.iter().map(Option::as_ref).collect(),
            title: title + rounds,
            marks: Vec::new(),
        };
        placements(case, &self.tasks, self.slowed_timelines.as_ref(), below)
    }

    /// The picture in a page, with tables.
    pub fn page(&self, case: &Case<'_>) -> String {
        let placements = self.placements(case);
        let told = PageFigures {
            measures: &self.measures,
            are_slowed: false,
            slowed: self.slowed.as_ref(),
            title: &self.title(),
            not_taken: (!self.verdict.taken).then_some(self.scheduler),
            note: &self.verdict.why,
            tasks: &self.tasks,
        };
        page(&placements, &told)
    }
}

impl Simulated {
    /// The picture: what became of it, below not co-scheduling, with what was decided when.
    pub fn placements(&self, case: &Case<'_>) -> Placements {
        let title = format!("co-scheduled, {}, {}", self.scheduler, self.determination);
        let mut decisions: Vec<_> = self.decisions.iter().collect();
        decisions.sort_by_key(|decision| !decision.taken);
        let marks = decisions.into_iter().map(|decision| {
            let what = match (decision.taken, decision.necessary) {
                (true, _) => "mapped anew",
                (false, true) => "left as it was",
                (false, false) => "not necessary",
            };
            (decision.at_ns, format!("{} comes: {what}", decision.process))
        });
        let below = Below {
            timeline: &self.run.timeline,
            tasks: self.tasks.iter().map(|row| row.placed.as_ref()).collect(),
            title,
            marks: marks.collect(),
        };
        placements(case, &self.tasks, self.slowed_timelines.as_ref(), below)
    }

    /// The picture in a page, with tables.
    pub fn page(&self, case: &Case<'_>) -> String {
        let placements = self.placements(case);
        let decisions = self.decisions.iter().map(|decision| {
            let at = ms(decision.at_ns);
            let (process, why) = (&decision.process, &decision.determination);
            let verdict = match (&decision.verdict, decision.taken) {
                (None, _) => String::new(),
                (Some(why), true) => format!("; mapped anew: {why}"),
                (Some(why), false) => format!("; left as it was: {why}"),
            };
            format!("At {at} ms {process} comes: {why}{verdict}.")
        });
        let note: Vec<_> = decisions.take(12).collect();
        let told = PageFigures {
            measures: &self.measures,
            slowed: None,
            title: CO_SCHEDULED,
            not_taken: None,
            are_slowed: self.slowed.is_some(),
            note: &note.join(" "),
            tasks: &self.tasks,
        };
        page(&placements, &told)
    }
}
