// SPDX-License-Identifier: GPL-2.0
//! Schedules without and with co-scheduling, as they are drawn.

use pbs_cosched::Timeline;
use pbs_report::{ms, placements_page, Panel, PlacedProcess, PlacedTask, Placements, Table};

use crate::measures::{faster, percent};
use crate::rows::Placed;
use crate::{Both, Case, Planned, Simulated, TaskRow};

/// Rows of the page's table of tasks.
const ROWS: usize = 2_000;

/// Without co-scheduling above, what was decided below.
fn placements(
    case: &Case<'_>,
    timeline: &Timeline,
    tasks: &[TaskRow],
    title: &str,
    marks: Vec<(u64, String)>,
) -> Placements {
    let panel = |title: &str, timeline: &Timeline, of: &dyn Fn(&TaskRow) -> Option<Placed>| {
        let slots = timeline.slots.iter().enumerate().zip(tasks);
        let tasks = slots.filter_map(|((task, slot), row)| {
            let (slot, placed) = (slot.as_ref()?, of(row)?);
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
        Panel {
            title: title.into(),
            tasks: tasks.collect(),
            marks: Vec::new(),
        }
    };
    let processes = case.workload.processes.iter().zip(&case.names.processes);
    let without = panel("not co-scheduled", &case.without, &|row| {
        row.without.clone()
    });
    let mut with = panel(title, timeline, &|row| row.placed.clone());
    with.marks = marks;
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
        accelerators: case.names.accelerators(),
        panels: vec![without, with],
    }
}

/// The page of a picture.
fn page(placements: &Placements, measures: &Both, note: &str, tasks: &[TaskRow]) -> String {
    let (without, with) = (&measures.without, &measures.with);
    let figures = [
        ("speed-up", faster(measures.speed_up)),
        ("makespan, ms", ms(with.makespan_ns)),
        ("without co-scheduling, ms", ms(without.makespan_ns)),
        ("load", percent(with.load)),
        ("load without", percent(without.load)),
    ];
    let figures = figures.map(|(what, figure)| (what.to_string(), figure));
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
            let cells = of
                .iter()
                .map(|cell| placed.as_ref().map_or_else(String::new, cell));
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
    let tables = [("Measures", measures.table()), ("Tasks", list)];
    placements_page(placements, &figures, note, &tables)
}

impl Planned {
    /// The picture: what is done, below not co-scheduling.
    pub fn placements(&self, case: &Case<'_>) -> Placements {
        let title = match self.verdict.taken {
            true if self.scheduler == "greedy" => {
                "co-scheduled, greedy; r2: of the second round".into()
            }
            true => format!("co-scheduled, {}", self.scheduler),
            false => format!("not taken, what {} found would be worse", self.scheduler),
        };
        placements(case, &self.timeline, &self.tasks, &title, Vec::new())
    }

    /// The picture in a page, with tables.
    pub fn page(&self, case: &Case<'_>) -> String {
        let placements = self.placements(case);
        page(&placements, &self.measures, &self.verdict.why, &self.tasks)
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
            (
                decision.at_ns,
                format!("{} comes: {what}", decision.process),
            )
        });
        let marks = marks.collect();
        placements(case, &self.run.timeline, &self.tasks, &title, marks)
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
        page(&placements, &self.measures, &note.join(" "), &self.tasks)
    }
}
