// SPDX-License-Identifier: GPL-2.0
//! The report as a picture: for each CPU the plan above what became of it.
//!
//! Both stand on one axis: the plan's instructions take the time that they
//! take at the node's rate.

mod arrows;
mod boxes;
mod deadlines;
mod labels;
mod lanes;
mod marks;

use std::collections::{BTreeSet, HashMap};

use pbs_text::{bytes, grouped};

use self::boxes::Thinning;
use self::lanes::Lanes;
use crate::axis::ticks;
use crate::chart::{scale_of, time_scale};
use crate::number::percent;
use crate::process_style::ProcessStyle;
use crate::sizes::{BOLD, HEADING, LEFT, RIGHT, SMALL, TEXT, WIDTH};
use crate::svg::{text_width, Anchor, Picture};
use crate::timeline::{ActualSegment, CpuTimeline, Mark, MarkKind, PlannedSlot};
use crate::{LaterPlan, Outcome, Report, TaskReport};

/// High enough for most names of tasks to stand upright in it.
const TRACK: f64 = 94.0;
/// Between the plan and what became of it: room for the bands and the marks.
const BETWEEN: f64 = 46.0;
/// A row of deviations below a track.
const ROW: f64 = 18.0;
const ROWS: usize = 3;
/// Half of the room of a signal in its row.
const SIGNAL_WIDTH: f64 = 8.0;

/// Deviations from here on are written into the picture.
const NOTABLE_PERMILLE: i64 = 100;

const DEFINITIONS: &str = "\
<pattern id=\"idle\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\">\
<rect class=\"paper\" width=\"7\" height=\"7\" fill=\"#ffffff\"/>\
<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" stroke=\"#888888\" stroke-width=\"2\"/></pattern>\n";

const IDLE_STYLE: &str = "fill=\"url(#idle)\" stroke=\"#888888\" stroke-width=\"0.5\"";
/// Style of time in which no process of the plan runs.
const TRACK_STYLE: &str = "class=\"track\" fill=\"#f2f2f2\" stroke=\"#cccccc\"";
const GREY_TEXT: &str = "class=\"muted\" fill=\"#555555\"";
const MARK_STYLE: &str = "class=\"mark\" fill=\"#000000\" stroke=\"#ffffff\" stroke-width=\"1\"";
const HOLLOW_STYLE: &str =
    "class=\"hollow\" fill=\"#ffffff\" stroke=\"#000000\" stroke-width=\"1.5\"";
/// Around the boxes of a task with a notable deviation.
const NOTABLE_STYLE: &str =
    "class=\"rule\" fill=\"none\" stroke=\"#000000\" stroke-width=\"1.8\" pointer-events=\"none\"";

const DESCRIPTION: &str = "For each CPU the slots of the plan above what ran when, on one axis \
                           of time. Bands lead from each slot to where its task ran. The table \
                           of tasks has the numbers.";

/// Draws the report as an SVG file.
pub fn gantt(report: &Report) -> String {
    let (picture, bottom) = draw(report);
    picture.file(bottom, DEFINITIONS, &title(report), DESCRIPTION)
}

/// Draws the report as a part of a page.
pub(crate) fn gantt_in_page(report: &Report) -> String {
    let (picture, bottom) = draw(report);
    picture.inline(bottom, DEFINITIONS, "gantt", &title(report), DESCRIPTION)
}

fn title(report: &Report) -> String {
    let later = report.cpus.iter().flat_map(|cpu| &cpu.later);
    let later: BTreeSet<_> = later.map(|later| later.plan_id).collect();
    let followers = match later.len() {
        0 => String::new(),
        1 => " and the plan that took over".into(),
        more => format!(" and {more} plans that took over"),
    };
    format!("Plan {}{followers}: planned and actual", report.plan_id)
}

fn axes(span_ns: f64) -> String {
    format!(
        "Left to right: time in {} since the plan came into force, on the lower axis, and planned \
         instructions, on the upper one. Rows: for each CPU the slots of its plan, and below them \
         what ran.",
        time_scale(span_ns).1
    )
}

fn draw(report: &Report) -> (Picture, f64) {
    let mut gantt = Gantt::new(report);
    gantt.picture = Picture::new(axes(gantt.span_ns));
    gantt.facts();
    gantt.top_axis();
    for cpu in &report.cpus {
        gantt.cpu(cpu);
    }
    gantt.arrows();
    gantt.planned_messages();
    gantt.y += gantt.deadlines(None, gantt.y - 18.0);
    gantt.bottom_axis();
    gantt.legend();
    (gantt.picture, gantt.y)
}

/// The slots of a plan, and while it was in force.
struct Part<'a> {
    number: usize,
    planned: &'a [PlannedSlot],
    /// Since the first plan of the CPU began.
    begin_ns: f64,
    end_ns: f64,
}

/// The plans of a CPU one after the other.
fn parts<'a>(cpu: &'a CpuTimeline, origin_ns: u64) -> Vec<Part<'a>> {
    let begin = |later: &LaterPlan| later.installed_ns.saturating_sub(origin_ns) as f64;
    let first = (0.0, cpu.planned.as_slice());
    let later = cpu.later.iter();
    let all: Vec<_> = std::iter::once(first)
        .chain(later.map(|plan| (begin(plan), plan.planned.as_slice())))
        .collect();
    let ends = all.iter().skip(1).map(|&(begin_ns, _)| begin_ns);
    let ends: Vec<_> = ends.chain([f64::INFINITY]).collect();
    let numbered = all.into_iter().zip(ends).enumerate();
    numbered
        .map(|(number, ((begin_ns, planned), end_ns))| Part { number, planned, begin_ns, end_ns })
        .collect()
}

/// Returns the length of the axis: the longest of the plans and of their runs.
pub(crate) fn span_ns(report: &Report) -> u64 {
    Gantt::new(report).span_ns as u64
}

struct Gantt<'a> {
    report: &'a Report,
    picture: Picture,
    /// Style of each process.
    looks: HashMap<u32, ProcessStyle>,
    names: HashMap<u32, &'a str>,
    tasks: HashMap<(u32, u32), &'a TaskReport>,
    /// Segments of the CPU that is drawn, by plan, process and task.
    segments: HashMap<(usize, u32, Option<u32>), Vec<&'a ActualSegment>>,
    /// Lanes of the CPU that is drawn.
    lanes: Lanes,
    /// Whether marks were counted instead of being drawn one by one.
    counted: bool,
    /// Beginning of each CPU's plan.
    origin_ns: HashMap<u32, u64>,
    /// Length of the axis.
    span_ns: f64,
    /// Top and height of the planned slots of each process.
    planned: HashMap<u32, (f64, f64)>,
    /// Top and height of what became of each process.
    actual: HashMap<u32, (f64, f64)>,
    /// Vertical position of the next element.
    y: f64,
    axis_top: f64,
}

impl<'a> Gantt<'a> {
    fn new(report: &'a Report) -> Self {
        let looks = report.processes.iter().enumerate();
        let mut gantt = Self {
            report,
            picture: Picture::new(""),
            looks: looks.map(|(index, process)| (process.id, ProcessStyle::of(index))).collect(),
            names: report
                .processes
                .iter()
                .map(|process| (process.id, process.name.as_str()))
                .collect(),
            tasks: report.tasks.iter().map(|task| ((task.process, task.task), task)).collect(),
            segments: HashMap::new(),
            lanes: Lanes::default(),
            counted: false,
            origin_ns: HashMap::new(),
            span_ns: 1.0,
            planned: HashMap::new(),
            actual: HashMap::new(),
            y: 0.0,
            axis_top: 0.0,
        };
        for cpu in &report.cpus {
            let first = cpu.actual.first().map(|segment| segment.start_ns);
            let origin = cpu.installed_ns.or(first).unwrap_or(0);
            gantt.origin_ns.insert(cpu.cpu, origin);
            let actual_end = cpu.actual.iter().map(|segment| segment.end_ns).max();
            let actual_ns = actual_end.unwrap_or(origin).saturating_sub(origin) as f64;
            for part in parts(cpu, origin) {
                let end = part.planned.last();
                let end_ns = part.begin_ns + end.map_or(0, |slot| slot.end_ns) as f64;
                gantt.span_ns = gantt.span_ns.max(end_ns.min(part.end_ns));
            }
            gantt.span_ns = gantt.span_ns.max(actual_ns);
        }
        gantt.reach_deadlines();
        gantt
    }

    fn insns_to_ns(&self, insns: f64) -> f64 {
        insns * 1e6 / self.report.rate_insns_per_ms.max(1) as f64
    }

    fn x_of_ns(&self, ns: f64) -> f64 {
        LEFT + ns / self.span_ns * (WIDTH - LEFT - RIGHT)
    }

    fn x_of_insns(&self, insns: f64) -> f64 {
        self.x_of_ns(self.insns_to_ns(insns))
    }

    fn look(&self, process: u32) -> ProcessStyle {
        // Events may tell of a process that no plan has.
        self.looks.get(&process).cloned().unwrap_or_else(|| ProcessStyle::of(self.looks.len()))
    }

    fn name(&self, process: u32) -> String {
        self.names.get(&process).map_or_else(|| process.to_string(), ToString::to_string)
    }

    fn facts(&mut self) {
        let report = self.report;
        let ended = report.tasks.iter().filter(|task| task.ended).count();
        let preemptions: u64 = report.processes.iter().map(|p| p.preemptions).sum();
        let outcome = match report.outcome {
            Outcome::Ended => "",
            Outcome::Dropped => " · dropped",
            Outcome::Replaced => " · replaced by another plan",
            Outcome::CpuGone => " · lost its CPU",
            Outcome::Interrupted => " · interrupted",
        };
        let lost = match report.events_lost {
            0 => String::new(),
            lost => format!(" · {} events lost", grouped(lost)),
        };
        let pushes: u64 = report.processes.iter().map(|p| p.pushes).sum();
        let pushed = match pushes {
            0 => String::new(),
            pushes => format!(" and {pushes} pushed"),
        };
        let facts = format!(
            "{ended} of {} tasks ended · {preemptions} {}{pushed} · kernel {} · tier {} · \
             {} instructions a ms{outcome}{lost}",
            report.tasks.len(),
            if preemptions == 1 { "preemption" } else { "preemptions" },
            report.kernel,
            report.tier,
            grouped(report.rate_insns_per_ms)
        );
        self.y = self.picture.paragraph(SMALL, SMALL, GREY_TEXT, &facts) + 10.0;
    }

    fn top_axis(&mut self) {
        let span_insns = self.span_ns * self.report.rate_insns_per_ms as f64 / 1e6;
        let (factor, unit) = scale_of(span_insns, "instr.");
        self.picture.text((LEFT - 20.0, self.y), SMALL, Anchor::End, GREY_TEXT, &unit);
        for tick in ticks(span_insns / factor) {
            let x = self.x_of_insns(tick.at * factor);
            let y = self.y;
            self.picture.text((x, y), SMALL, Anchor::Middle, GREY_TEXT, &tick.label);
            self.picture.line((x, y + 4.0), (x, y + 9.0), "stroke=\"#999999\"");
        }
        self.y += 9.0;
        self.axis_top = self.y;
        self.picture.line((LEFT, self.y), (WIDTH - RIGHT, self.y), "stroke=\"#999999\"");
        self.y += 14.0;
    }

    fn bottom_axis(&mut self) {
        let (top, bottom) = (self.axis_top, self.y);
        self.picture.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "stroke=\"#999999\"");
        let (factor, unit) = time_scale(self.span_ns);
        for tick in ticks(self.span_ns / factor) {
            let x = self.x_of_ns(tick.at * factor);
            self.picture.line(
                (x, top),
                (x, bottom + 5.0),
                "class=\"rule\" stroke=\"#000000\" stroke-opacity=\"0.12\"",
            );
            self.picture.text((x, bottom + 18.0), SMALL, Anchor::Middle, GREY_TEXT, &tick.label);
        }
        self.picture.text((LEFT - 20.0, bottom + 18.0), SMALL, Anchor::End, GREY_TEXT, unit);
        self.y = bottom + 44.0;
    }

    fn cpu(&mut self, cpu: &'a CpuTimeline) {
        self.lanes = self.lanes_of(cpu);
        let track = self.lanes.height;
        let planned_y = self.y;
        let actual_y = planned_y + track + BETWEEN;
        self.picture.text(
            (16.0, planned_y + track + BETWEEN / 2.0 + 5.0),
            HEADING,
            Anchor::Start,
            BOLD,
            &format!("CPU {}", cpu.cpu),
        );
        for (y, label) in [(planned_y, "planned"), (actual_y, "actual")] {
            let (x, middle) = (LEFT - 12.0, y + track / 2.0);
            if self.lanes.is_split() {
                self.picture.upright((13.0, middle), SMALL, GREY_TEXT, label);
            } else {
                let at = (x, middle + 4.0);
                self.picture.text(at, SMALL, Anchor::End, GREY_TEXT, label);
            }
            self.lane_names(y);
        }
        let whole = WIDTH - LEFT - RIGHT;
        self.picture.rect(LEFT, actual_y, whole, track, TRACK_STYLE);
        self.segments.clear();
        for segment in &cpu.actual {
            let key = (segment.plan, segment.process, segment.task);
            self.segments.entry(key).or_default().push(segment);
        }
        let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
        let parts = parts(cpu, origin);
        for part in &parts {
            let mut thinning = Thinning::default();
            for slot in part.planned {
                self.planned_slot(part, slot, planned_y, &mut thinning);
                if let Some(process) = slot.process {
                    self.planned.insert(process, self.lanes.place(process, planned_y));
                }
            }
            // Hundreds of them would only be fog.
            if !self.lanes.is_split() {
                self.bands(cpu, part, planned_y + track, actual_y);
            }
        }
        let mut thinning = Thinning::default();
        for segment in &cpu.actual {
            self.segment(cpu, segment, actual_y, &mut thinning);
        }
        for part in &parts {
            self.outlines(cpu, part, planned_y, actual_y);
        }
        // Names lie on top of the lines of other plans.
        let mut names = Vec::new();
        let mut free_from = f64::NEG_INFINITY;
        for later in &cpu.later {
            let x = self.x_of_ns(later.installed_ns.saturating_sub(origin) as f64);
            self.picture.line(
                (x, planned_y - 10.0),
                (x, actual_y + track),
                "class=\"rule\" stroke=\"#000000\" stroke-width=\"2\" stroke-dasharray=\"6 4\"",
            );
            let text = format!("plan {}", later.plan_id);
            if x < free_from {
                continue;
            }
            free_from = x + 10.0 + text_width(&text, SMALL) * 1.1;
            names.push(((x + 4.0, planned_y - 3.0), text));
        }
        for (at, text) in names {
            self.picture.label(at, SMALL, Anchor::Start, BOLD, &text);
        }
        for segment in &cpu.actual {
            let place = self.lanes.place(segment.process, actual_y);
            self.actual.insert(segment.process, place);
        }
        self.marks(cpu, actual_y);
        self.lane_deadlines(actual_y);
        let rows = self.deviations(cpu, actual_y + track);
        self.y = actual_y + track + 8.0 + rows as f64 * ROW;
        self.y += self.deadlines(Some(cpu.cpu), self.y - 8.0) + 18.0;
    }

    fn task(&self, process: u32, task: Option<u32>) -> Option<&'a TaskReport> {
        self.tasks.get(&(process, task?)).copied()
    }

    /// Returns the name of a task in texts.
    fn task_name(&self, process: u32, task: Option<u32>) -> String {
        let Some(number) = task else {
            return "no task".into();
        };
        match self.task(process, task).and_then(|task| task.name.as_ref()) {
            Some(name) => format!("task {number} ({name})"),
            None => format!("task {number}"),
        }
    }
}

fn is_notable(task: &TaskReport) -> bool {
    task.ended && task.deviation_permille.abs() >= NOTABLE_PERMILLE
}
