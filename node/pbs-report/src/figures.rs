// SPDX-License-Identifier: GPL-2.0
//! The pictures of a recording beside that of the plan.

use pbs_text::grouped;

use crate::axis::ticks_between;
use crate::bars::{Bar, BarColour, Bars};
use crate::chart::{scale_of, time_scale, Chart, ChartMark, Line, Symbol};
use crate::histogram::Histogram;
use crate::number::{deviation_permille, percent};
use crate::point::Point;
use crate::series::{CpuSeries, ProcessSeries, Series, Signal, TaskSeries};
use crate::sizes::{LEFT, RIGHT, TEXT, WIDTH};
use crate::svg::{Anchor, Picture};
use crate::{MarkKind, Report};

const HIGH: f64 = 230.0;
const LOW: f64 = 56.0;
/// Stress that lasts for less than this part of the time is told in words.
const SHORT: u64 = 60;
/// Tasks with a bar in the picture of preemptions.
const BARS: usize = 24;

/// A picture with what it says to those who cannot see it.
pub(crate) struct Figure {
    /// Unique in the page.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    picture: Picture,
    /// End of what is drawn.
    bottom: f64,
}

impl Figure {
    /// Returns the figure as a part of a page.
    pub(crate) fn inline(self) -> String {
        let Self { id, title, description, picture, bottom } = self;
        picture.inline(bottom, "", &id, &title, &description)
    }

    /// Returns the figure as a separate file.
    pub(crate) fn file(self) -> String {
        self.picture.file(self.bottom, "", &self.title, &self.description)
    }
}

/// Lateness of a process below what it may be, and stress (3.3.6).
pub(crate) fn process(series: &Series, cpu: &CpuSeries, process: &ProcessSeries) -> Figure {
    let id = format!("process-{}-{}", cpu.cpu, process.process);
    let levels = [25, 50, 75].map(|percent| level(&process.limit_insns, percent));
    let mut lines = vec![
        line(&process.lateness_insns, "compared", "lateness of the process", false),
        Line {
            area: Some("below-buffer"),
            ..line(&process.capacity_buffer_insns, "buffer", "capacity buffer", true)
        },
        line(&process.limit_insns, "limit", "max(capacity buffer, t2_process)", true),
    ];
    lines.extend(levels.iter().zip(1..).map(|(points, number)| Line {
        label: (number == 1).then(|| "25, 50, 75 % of the limit".into()),
        ..line(points, "level", "", true)
    }));
    let signals = |signal: &&Signal| {
        signal.cause == "process" && signal.process == process.process && signal.cpu == cpu.cpu
    };
    let marks = lateness_marks(series.signals.iter().filter(signals));
    let described = describe_line(&process.lateness_insns, &process.limit_insns);
    let title = format!("Lateness of process {}", process.name);
    let axes = "instructions that the process has retired beyond its plan; below zero, those that \
                it has saved";
    over_time(cpu, (id, title, described), axes, lines, marks)
}

/// Lateness of the node between t2_node and tm2_node, and stress (3.3.6, 3.3.8).
pub(crate) fn node(series: &Series, cpu: &CpuSeries) -> Figure {
    let levels = [25, 50, 75].map(|percent| level(&cpu.t2_node_insns, percent));
    let mut lines = vec![
        line(&cpu.lateness_insns, "compared", "lateness of the node", false),
        line(&cpu.t2_node_insns, "limit", "t2_node", true),
        line(&cpu.tm2_node_insns, "lower", "tm2_node", true),
    ];
    lines.extend(levels.iter().zip(1..).map(|(points, number)| Line {
        label: (number == 1).then(|| "25, 50, 75 % of t2_node".into()),
        ..line(points, "level", "", true)
    }));
    let signals = |signal: &&Signal| signal.cause == "node" && signal.cpu == cpu.cpu;
    let marks = lateness_marks(series.signals.iter().filter(signals));
    let described = describe_line(&cpu.lateness_insns, &cpu.t2_node_insns);
    let title = format!("Lateness of the node, CPU {}", cpu.cpu);
    let axes = "instructions that the processes have retired beyond their plans, together; below \
                zero, those that they have saved";
    over_time(cpu, (format!("node-{}", cpu.cpu), title, described), axes, lines, marks)
}

fn lateness_marks<'a>(signals: impl Iterator<Item = &'a Signal>) -> Vec<ChartMark> {
    signals
        .map(|signal| ChartMark {
            at: Point(signal.time_ns, signal.compared),
            symbol: Symbol::Signal(signal.kind),
            label: match signal.kind {
                MarkKind::Info => format!("{} %", signal.level_percent),
                _ => format!("signal {}", signal.number),
            },
        })
        .collect()
}

/// The sentences about the axes of a chart, whose values are `up`.
fn axes(span_ns: u64, up: &str) -> String {
    let unit = time_scale(span_ns as f64).1;
    format!("Left to right: time in {unit} since the plan came into force. Bottom to top: {up}.")
}

/// Lines over the time of a CPU, and below them its stress.
fn over_time(
    cpu: &CpuSeries,
    (id, title, description): (String, String, String),
    up: &str,
    lines: Vec<Line<'_>>,
    marks: Vec<ChartMark>,
) -> Figure {
    let stress = cpu.stress.iter().rev().find(|point| point.1 > 0);
    let stressed_ns = stress.map_or(0, |point| point.0);
    let is_short = stressed_ns < cpu.span_ns / SHORT;
    let mut axes = axes(cpu.span_ns, up);
    if stressed_ns > 0 && !is_short {
        axes.push_str(" In the lower plot: the stress of the CPU.");
    }
    let mut picture = Picture::new(axes);
    let upper = Chart {
        lines,
        marks,
        levels: Vec::new(),
        rules: cpu.changes_ns(),
        from_ns: 0,
        to_ns: cpu.span_ns,
        height: HIGH,
        unit: "instr.",
        id: id.clone(),
    };
    let mut y = upper.draw(&mut picture, 0.0);
    if stressed_ns > 0 && is_short {
        let most = cpu.stress.iter().map(|point| point.1).max().unwrap_or(0);
        let text = format!(
            "Stress falls from {} to 0 within {:.1} ms, too short a time to be seen.",
            grouped(most),
            stressed_ns as f64 / 1e6
        );
        picture.text((LEFT, y + 14.0), TEXT, Anchor::Start, "class=\"muted\"", &text);
        y += 24.0;
    } else if stressed_ns > 0 {
        let lower = Chart {
            lines: vec![line(&cpu.stress, "stress", "stress, in points", false)],
            marks: Vec::new(),
            levels: Vec::new(),
            rules: cpu.changes_ns(),
            from_ns: 0,
            to_ns: cpu.span_ns,
            height: LOW,
            unit: "points",
            id: format!("{id}-stress"),
        };
        y = lower.draw(&mut picture, y);
    }
    Figure { id, title, description, picture, bottom: y }
}

/// The count of a task and the thresholds on its way.
pub(crate) fn task(series: &Series, task: &TaskSeries) -> Figure {
    let id = format!("task-{}-{}", task.process, task.task);
    let first = task.retired_insns.first().map_or(0, |point| point.0);
    let last = task.retired_insns.last().map_or(first + 1, |point| point.0);
    let last = task.ended.map_or(last, |ended| last.max(ended.0));
    let room = (last - first) / 12 + 1;
    let (from_ns, to_ns) = (first.saturating_sub(room / 3), last + room);
    let reach = |points: &[Point]| widen(points, from_ns, to_ns);
    let (planned, t2, tm2) =
        (reach(&task.planned_insns), reach(&task.t2_task_insns), reach(&task.tm2_task_insns));
    // A plan that takes over may change it.
    let value = |points: &[Point]| match (points.first(), points.last()) {
        (Some(first), Some(last)) if first.1 != last.1 => {
            format!("{} to {}", grouped(first.1), grouped(last.1))
        }
        (_, last) => last.map_or_else(String::new, |last| grouped(last.1)),
    };
    let lines = vec![
        line(&task.retired_insns, "compared", "retired", false),
        Line {
            is_threshold: false,
            ..line(&planned, "planned", &format!("planned {}", value(&planned)), false)
        },
        line(&t2, "limit", &format!("t2_task {}", value(&t2)), true),
        line(&tm2, "lower", &format!("tm2_task {}", value(&tm2)), true),
    ];
    let mut marks: Vec<_> = task
        .preemptions
        .iter()
        .zip(1..)
        .map(|(&at, number)| ChartMark {
            at,
            symbol: Symbol::Preemption,
            label: format!("preempted {number}"),
        })
        .collect();
    let own = series.signals.iter().filter(|signal| {
        (signal.process, signal.task) == (task.process, task.task)
            && matches!(signal.cause.as_str(), "task" | "preemptions")
    });
    marks.extend(own.map(|signal| {
        let at = signal.time_ns;
        let count = match signal.cause.as_str() {
            "task" => signal.compared,
            _ => value_at(&task.retired_insns, at),
        };
        ChartMark {
            at: Point(at, count),
            symbol: Symbol::Signal(signal.kind),
            label: format!("signal {}: {}", signal.number, signal.cause),
        }
    }));
    let planned_insns = task.planned_insns.first().map_or(0, |point| point.1);
    let mut description = format!("Planned {}.", grouped(planned_insns));
    if let Some(ended) = task.ended {
        let (planned, actual) = (planned_insns.unsigned_abs(), ended.1.unsigned_abs());
        let deviation = percent(deviation_permille(planned, actual), 1);
        marks.push(ChartMark {
            at: ended,
            symbol: Symbol::End,
            label: format!("ended with {} ({deviation})", grouped(ended.1)),
        });
        description = format!(
            "Planned {}, ended with {} ({deviation}), {}.",
            grouped(planned),
            grouped(actual),
            match task.preemptions.len() {
                0 => "not preempted".into(),
                1 => "preempted once".into(),
                often => format!("preempted {often} times"),
            }
        );
    }
    let levels = task.slots.iter().map(|stay| {
        let text = format!("t1 of slot {}", stay.slot);
        (stay.begin_ns, stay.end_ns, signed(stay.t1_insns), text)
    });
    let cpu = series.cpus.iter().find(|cpu| cpu.cpu == task.cpu);
    let chart = Chart {
        lines,
        marks,
        levels: levels.collect(),
        rules: cpu.map(CpuSeries::changes_ns).unwrap_or_default(),
        from_ns,
        to_ns,
        height: HIGH,
        unit: "instr.",
        id: id.clone(),
    };
    let mut picture = Picture::new(axes(to_ns - from_ns, "instructions that the task has retired"));
    let bottom = chart.draw(&mut picture, 0.0);
    Figure { title: format!("Task {}", task.name), id, description, picture, bottom }
}

/// Draws the number of preemptions of each task; `None` if no task was preempted.
pub(crate) fn preemptions(report: &Report, max_preemptions: Option<u64>) -> Option<Figure> {
    let mut tasks: Vec<_> = report.tasks.iter().filter(|task| task.preemptions > 0).collect();
    let all = tasks.len();
    // A stable sort: in the order of the plan where they are alike.
    tasks.sort_by_key(|task| std::cmp::Reverse(task.preemptions));
    tasks.truncate(BARS);
    let most = tasks.first()?.preemptions;
    let limit = max_preemptions.filter(|&limit| limit <= 4 * u64::from(most));
    let bars = Bars {
        title: String::new(),
        bars: tasks
            .iter()
            .map(|task| {
                let preemptions = u64::from(task.preemptions);
                Bar {
                    label: task.label(),
                    value: preemptions as f64,
                    text: preemptions.to_string(),
                    colour: match limit {
                        Some(limit) if preemptions >= limit => BarColour::Beyond,
                        _ => BarColour::Subject,
                    },
                }
            })
            .collect(),
        limit: limit.map(|limit| (limit as f64, format!("MAX_PREEMPTIONS {limit}"))),
    };
    let mut picture = Picture::new(
        "Left to right: number of preemptions. Rows: the tasks, the most preempted first.",
    );
    let bottom = bars.draw(&mut picture, 0.0, bars.left());
    let mut description =
        format!("{all} of {} tasks were preempted beyond their plan", report.tasks.len());
    let pushes: u64 = report.processes.iter().map(|process| process.pushes).sum();
    if pushes > 0 {
        description += &format!(
            "; {} slots reached t1 with a task within its plan, which is pushed on and not charged",
            grouped(pushes)
        );
    }
    if all > tasks.len() {
        description += &format!("; the {} with most preemptions are shown", tasks.len());
    }
    if let (None, Some(far)) = (limit, max_preemptions) {
        description += &format!("; MAX_PREEMPTIONS {} is far off", grouped(far));
    }
    Some(Figure {
        id: "preemptions".into(),
        title: "Preemptions".into(),
        description: description + ".",
        picture,
        bottom,
    })
}

/// The histogram with the fitted normal distribution.
pub(crate) fn deviations(histogram: &Histogram) -> Figure {
    let mut picture = Picture::new(
        "Left to right: deviation from the plan in percent. Bottom to top: number of tasks.",
    );
    let (top, bottom, right) = (40.0, 40.0 + HIGH, WIDTH - RIGHT);
    let (least, most) = (histogram.least_percent, histogram.most_percent());
    // A place of their own for those beyond, at either end.
    let beyond_width = 40.0;
    let from = LEFT + if histogram.below > 0 { beyond_width } else { 0.0 };
    let to = right - if histogram.above > 0 { beyond_width } else { 0.0 };
    let x_of = |percent: f64| from + (percent - least) / (most - least) * (to - from);
    let curve = (0..=200).map(|step| least + (most - least) * f64::from(step) / 200.0);
    let curve: Vec<_> = curve.map(|at| (at, histogram.fitted(at))).collect();
    let counts = histogram.counts.iter().chain([&histogram.below, &histogram.above]);
    let highest = counts.max().copied().unwrap_or(1) as f64;
    let peak = curve.iter().map(|point| point.1).fold(highest, f64::max);
    // A narrow curve over few tasks must not flatten the columns.
    let high = peak.min(highest * 1.6).max(1.0) * 1.08;
    let y_of = |count: f64| bottom - count.min(high) / high * (bottom - top);
    picture.rect(LEFT, top, right - LEFT, bottom - top, "class=\"plot\"");
    let (factor, _) = scale_of(0.0, "");
    for tick in ticks_between(0.0, high / factor, 6) {
        if tick.at.fract() != 0.0 {
            continue;
        }
        let y = y_of(tick.at);
        picture.line((LEFT, y), (right, y), "class=\"grid\"");
        let at = (LEFT - 8.0, y + 4.0);
        picture.text(at, TEXT, Anchor::End, "class=\"muted\"", &tick.label);
    }
    picture.upright((24.0, (top + bottom) / 2.0), TEXT, "class=\"muted\"", "tasks");
    for tick in ticks_between(least, most, 12) {
        let x = x_of(tick.at);
        picture.line((x, bottom), (x, bottom + 5.0), "class=\"axis\"");
        let at = (x, bottom + 19.0);
        picture.text(at, TEXT, Anchor::Middle, "class=\"muted\"", &tick.label);
    }
    let at = (LEFT - 8.0, bottom + 19.0);
    picture.text(at, TEXT, Anchor::End, "class=\"muted\"", "percent");
    for (bin, &count) in histogram.counts.iter().enumerate() {
        let begin = least + bin as f64 * histogram.width_percent;
        let end = begin + histogram.width_percent;
        let (x, y) = (x_of(begin), y_of(count as f64));
        let title = format!("{begin:.2} to {end:.2} percent: {count} tasks");
        let size = (x + 0.5, y, (x_of(end) - x - 1.0).max(0.5), bottom - y);
        picture.titled_rect(size, "class=\"bar\"", &title);
    }
    let beyond = [
        (histogram.below, LEFT, format!("below {least:.1} %")),
        (histogram.above, right - beyond_width, format!("above {most:.1} %")),
    ];
    for (count, x, what) in beyond {
        if count == 0 {
            continue;
        }
        let y = y_of(count as f64);
        let title = format!("{what}: {count} tasks");
        let size = (x + 6.0, y, beyond_width - 12.0, bottom - y);
        picture.titled_rect(size, "class=\"beyond\"", &title);
        let at = (x + beyond_width / 2.0, y - 5.0);
        picture.text(at, TEXT, Anchor::Middle, "class=\"note\"", &count.to_string());
        let at = (x + beyond_width / 2.0, bottom + 36.0);
        let anchor = if x > LEFT { Anchor::End } else { Anchor::Start };
        let edge = if x > LEFT { right } else { LEFT };
        picture.text((edge, at.1), TEXT, anchor, "class=\"muted\"", &what);
    }
    if histogram.sigma_percent > 0.0 {
        let points: Vec<_> = curve.iter().map(|&(at, count)| (x_of(at), y_of(count))).collect();
        picture.polyline(&points, "class=\"line limit\"");
    }
    let summary = format!(
        "mean {:+.2} %, sigma {:.2} %, median {:+.2} %, {} tasks",
        histogram.mean_percent,
        histogram.sigma_percent,
        histogram.median_percent,
        grouped(histogram.tasks as u64)
    )
    .replace('-', "−");
    picture.line((LEFT, 20.0), (LEFT + 38.0, 20.0), "class=\"line limit\"");
    let text = format!("fitted normal distribution: {summary}");
    picture.text((LEFT + 46.0, 24.0), TEXT, Anchor::Start, "", &text);
    let more = if histogram.below + histogram.above > 0 { 44.0 } else { 28.0 };
    Figure {
        id: "deviations".into(),
        title: "Deviations from the plan".into(),
        description: format!("Number of tasks by deviation: {summary}."),
        picture,
        bottom: bottom + more,
    }
}

fn line<'a>(points: &'a [Point], class: &'static str, label: &str, is_threshold: bool) -> Line<'a> {
    Line { points, class, label: Some(label.into()), is_threshold, area: None }
}

/// `percent` of a line.
fn level(points: &[Point], percent: i64) -> Vec<Point> {
    let points = points.iter();
    let share = |value: i64| (i128::from(value) * i128::from(percent) / 100) as i64;
    points.map(|point| Point(point.0, share(point.1))).collect()
}

/// The line with its ends drawn out over the whole time.
fn widen(points: &[Point], from_ns: u64, to_ns: u64) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let ends = (Point(from_ns, first.1), Point(to_ns, last.1));
    std::iter::once(ends.0).chain(points.iter().copied()).chain([ends.1]).collect()
}

/// The value of a line at a time, between two points evenly.
fn value_at(points: &[Point], time_ns: u64) -> i64 {
    let after = points.partition_point(|point| point.0 <= time_ns);
    let before = points[..after].last().copied();
    match (before, points.get(after)) {
        (Some(a), Some(b)) => {
            let share = (time_ns - a.0) as f64 / (b.0 - a.0) as f64;
            a.1 + ((b.1 - a.1) as f64 * share) as i64
        }
        (Some(only), None) => only.1,
        (None, Some(first)) => first.1,
        (None, None) => 0,
    }
}

fn describe_line(compared: &[Point], limit: &[Point]) -> String {
    let most = compared.iter().map(|point| point.1).max().unwrap_or(0);
    let last = compared.last().map_or(0, |point| point.1);
    let limit = match limit.last() {
        Some(point) => format!("; the limit is {} there", grouped(point.1)),
        None => "; there is no limit, as it is switched off".into(),
    };
    format!("At most {}, at the end {}{limit}.", grouped(most), grouped(last))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
