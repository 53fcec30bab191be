// SPDX-License-Identifier: GPL-2.0
//! A recording as one page of HTML that needs nothing else.

use pbs_core::Threshold;
use pbs_plan::Config;
use pbs_text::{append, append_line, escaped, grouped, ms};
use pbs_uapi::NO_TASK;
use serde::Serialize;

use crate::figures::{self, Figure};
use crate::gantt::{gantt, gantt_in_page};
use crate::histogram::Histogram;
use crate::recording::Opened;
use crate::series::{CpuSeries, ProcessSeries, Selection, Series, Signal};
use crate::svg::style;
use crate::{table, Deadline, MarkKind, Outcome, ProcessReport, Report, Source};

pub(crate) const PAGE_STYLE: &str = include_str!("page.css");
/// Container for content that is wider than a narrow window; it scrolls sideways, also with the
/// keyboard.
pub(crate) const SCROLL: &str = "<div class=\"scroll\" tabindex=\"0\">";
/// Rows of the table of deadlines.
const DEADLINES: usize = 40;
/// Rows of the table of signals.
const SIGNALS: usize = 300;
/// Rows of the table of signals that are not folded away.
const FIRST_SIGNALS: usize = 10;
/// Processes with a picture of their own, on each CPU.
const PROCESSES: usize = 24;
/// Rows of the table of tasks.
const TASKS: usize = 5000;

/// Everything that is shown of a recording. It serialises to the numbers
/// behind the pictures.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    #[serde(skip)]
    opened: Opened,
    #[serde(skip)]
    report: Report,
    /// Origin of the recording.
    source: Source,
    /// The number of the first plan.
    plan_id: u64,
    /// `None` if no task ended.
    deviations: Option<Histogram>,
    #[serde(flatten)]
    series: Series,
}

impl Page {
    /// Derives everything.
    pub fn new(opened: Opened, selection: Selection) -> Self {
        let mut report = Report::of_plans(&opened.plans, &opened.events, &opened.facts);
        report.deadlines.clone_from(&opened.deadlines);
        let series = Series::new(&opened, &report, selection);
        Self {
            source: opened.source,
            plan_id: report.plan_id,
            deviations: Histogram::new(&report),
            series,
            report,
            opened,
        }
    }

    /// The numbers behind the pictures.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The names by which [`Page::chart`] knows the pictures.
    pub fn charts(&self) -> Vec<String> {
        let figures = self.figures().into_iter().map(|figure| figure.id);
        std::iter::once("gantt".into()).chain(figures).collect()
    }

    /// One of the pictures as an SVG file.
    pub fn chart(&self, name: &str) -> Result<String, String> {
        if name == "gantt" {
            return Ok(gantt(&self.report));
        }
        let figures = self.figures().into_iter();
        let figure = figures.into_iter().find(|figure| figure.id == name);
        figure.map(Figure::file).ok_or_else(|| {
            let charts = self.charts().join(", ");
            format!("there is no picture \"{name}\"; write one of {charts}")
        })
    }

    fn figures(&self) -> Vec<Figure> {
        let series = &self.series;
        let mut all = Vec::new();
        for cpu in &series.cpus {
            all.push(figures::node(series, cpu));
            let processes = cpu.processes.iter();
            all.extend(processes.map(|process| figures::process(series, cpu, process)));
        }
        all.extend(series.tasks.iter().map(|task| figures::task(series, task)));
        all.extend(self.preemptions());
        all.extend(self.deviations.as_ref().map(figures::deviations));
        all
    }

    fn preemptions(&self) -> Option<Figure> {
        let config = self.config();
        let has_limit = config.has(Threshold::T2Preemptions);
        let limit = config.t2_preemptions().filter(|_| has_limit);
        figures::preemptions(&self.report, limit)
    }

    /// Returns the configuration of the first plan.
    fn config(&self) -> Config {
        let own = self.opened.plans.first().and_then(|plan| plan.config);
        own.unwrap_or(self.opened.config)
    }

    /// Returns the time at which the first plan came into force, in the time of the events.
    fn begun_ns(&self) -> u64 {
        let began = self.report.cpus.iter().filter_map(|cpu| cpu.installed_ns);
        began.min().unwrap_or(0)
    }

    /// The page.
    pub fn html(&self) -> String {
        let title = format!("Plan {}: report of its run", self.report.plan_id);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{}{PAGE_STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n",
            style()
        );
        self.head(&mut out);
        let mut body = String::new();
        heading(&mut body, "plan", "Planned and actual");
        append_line!(body, "{SCROLL}\n{}</div>", gantt_in_page(&self.report));
        self.deadlines(&mut body);
        self.waits(&mut body);
        self.nodes(&mut body);
        self.processes(&mut body);
        self.signals(&mut body);
        self.tasks(&mut body);
        self.sums(&mut body);
        self.tables(&mut body);
        out.push_str(&contents(&body));
        out.push_str(&body);
        out.push_str("</body>\n</html>\n");
        out
    }

    /// The deadlines of jobs; those of processes are a column of their table.
    fn deadlines(&self, out: &mut String) {
        let deadlines = &self.report.deadlines;
        if deadlines.is_empty() {
            return;
        }
        heading(out, "deadlines", "Deadlines");
        append_line!(
            out,
            "{SCROLL}\n<table>\n<tr><th>of</th><th class=\"number\">deadline, ms</th>\
             <th class=\"number\">ended, ms</th><th></th></tr>"
        );
        let since = |ns: u64| ms(ns.saturating_sub(self.begun_ns()));
        for deadline in deadlines.iter().take(DEADLINES) {
            let of = match deadline.process {
                Some(_) => "process",
                None => "job",
            };
            let class = if deadline.kept { "words" } else { "words missed" };
            append_line!(
                out,
                "<tr><td>{of} {}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
                 <td class=\"{class}\">{}</td></tr>",
                escaped(&deadline.name),
                since(deadline.deadline_ns),
                deadline.ended_ns.map_or_else(|| "not ended".into(), since),
                deadline.words()
            );
        }
        out.push_str("</table>\n</div>\n");
        let more = deadlines.len().saturating_sub(DEADLINES);
        if more > 0 {
            append_line!(
                out,
                "<p class=\"note-text\">{more} more are in the table of processes.</p>"
            );
        }
    }

    fn head(&self, out: &mut String) {
        let report = &self.report;
        let source = match self.source {
            Source::Simulation => "Simulated",
            Source::Run => "Run",
        };
        let outcome = match report.outcome {
            Outcome::Ended => "the plan ended",
            Outcome::Dropped => "the plan was dropped",
            Outcome::Replaced => "another plan replaced it",
            Outcome::CpuGone => "the plan lost its CPU",
            Outcome::Interrupted => "it was interrupted",
        };
        let lost = match report.events_lost {
            0 => String::new(),
            lost => format!(
                " {} events were lost because they were read too slowly: there are gaps.",
                grouped(lost)
            ),
        };
        append_line!(
            out,
            "<p class=\"about\">{source} on {}, counting tier {}, {} instructions a millisecond; \
             {outcome}.{lost}</p>",
            escaped(&report.kernel),
            escaped(&report.tier),
            grouped(report.rate_insns_per_ms)
        );
        let ended = report.tasks.iter().filter(|task| task.ended).count();
        let sum = |of: fn(&ProcessReport) -> u64| report.processes.iter().map(of).sum::<u64>();
        let preemptions = sum(|process| process.preemptions);
        let pushes = sum(|process| process.pushes);
        let plans = self.series.cpus.iter().map(|cpu| cpu.later_plans.len()).max();
        out.push_str("<ul class=\"figures\">\n");
        let mut figure = |number: String, what: &str| {
            append_line!(out, "<li><b>{number}</b> {what}</li>");
        };
        figure(format!("{} of {}", ended, report.tasks.len()), "tasks ended");
        let processes = report.processes.len();
        figure(grouped(processes as u64), if processes == 1 { "process" } else { "processes" });
        for kind in [MarkKind::Late, MarkKind::Early, MarkKind::Info] {
            let counts = self.counts(kind);
            let all: usize = counts.iter().map(|(_, count)| count).sum();
            let name = kind_name(kind);
            let causes: Vec<_> =
                counts.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
            let causes = match causes.len() {
                0 => String::new(),
                _ => format!(" ({})", escaped(&causes.join(", "))),
            };
            figure(grouped(all as u64), &format!("{name}{causes}"));
        }
        let pushed = match pushes {
            0 => String::new(),
            pushes => format!(" (and {} pushed)", grouped(pushes)),
        };
        let preempted = if preemptions == 1 { "preemption" } else { "preemptions" };
        figure(grouped(preemptions), &format!("{preempted}{pushed}"));
        if let Some(plans) = plans.filter(|&plans| plans > 0) {
            let what = if plans == 1 { "plan" } else { "plans" };
            figure(grouped(plans as u64), &format!("{what} that took over"));
        }
        let deadlines = &self.opened.deadlines;
        if !deadlines.is_empty() {
            let kept = deadlines.iter().filter(|deadline| deadline.kept).count();
            figure(format!("{kept} of {}", deadlines.len()), "deadlines kept");
        }
        out.push_str("</ul>\n");
    }

    /// A row for each process.
    fn process_table(&self, out: &mut String) {
        let deadlines = &self.opened.deadlines;
        let dated = deadlines.iter().any(|deadline| deadline.process.is_some());
        append!(
            out,
            "<details><summary>Processes</summary>\n{SCROLL}<table>\n<tr>\
             <th>process</th><th class=\"number\">CPU</th><th class=\"number\">tasks ended</th>\
             <th class=\"number\">planned</th><th class=\"number\">retired</th>\
             <th class=\"number\">lateness</th><th class=\"number\">preemptions</th>\
             <th class=\"number\">pushed</th>",
        );
        if dated {
            out.push_str(
                "<th class=\"number\">ended, ms</th><th class=\"number\">deadline, ms</th>\
                 <th>deadline</th>",
            );
        }
        out.push_str("</tr>\n");
        for process in &self.report.processes {
            let cells = [
                process.cpu.map_or_else(String::new, |cpu| cpu.to_string()),
                format!("{} of {}", process.tasks_ended, process.tasks),
                grouped(process.planned_insns),
                grouped(process.retired_insns),
                grouped(process.lateness_insns),
                grouped(process.preemptions),
                grouped(process.pushes),
            ];
            append!(out, "<tr><td>{}</td>", escaped(&process.name));
            for cell in cells {
                append!(out, "<td class=\"number\">{cell}</td>");
            }
            let own = |deadline: &&Deadline| deadline.process == Some(process.id);
            if let Some(deadline) = deadlines.iter().find(own) {
                let since = |ns: u64| ms(ns.saturating_sub(self.begun_ns()));
                let ended = deadline.ended_ns.map_or_else(|| "not ended".into(), since);
                let kept = if deadline.kept { "kept" } else { "missed" };
                append!(
                    out,
                    "<td class=\"number\">{ended}</td><td class=\"number\">{}</td><td>{kept}</td>",
                    since(deadline.deadline_ns)
                );
            } else if dated {
                out.push_str("<td></td><td></td><td></td>");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div></details>\n");
    }

    /// Counts the signals by cause.
    fn counts(&self, kind: MarkKind) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for signal in self.series.signals.iter().filter(|signal| signal.kind == kind) {
            match counts.iter_mut().find(|(cause, _)| *cause == signal.cause) {
                Some((_, count)) => *count += 1,
                None => counts.push((&signal.cause, 1)),
            }
        }
        counts
    }

    fn signals(&self, out: &mut String) {
        out.push_str("<h2 id=\"at-signals\">Signals</h2>\n");
        let signals = &self.series.signals;
        if signals.is_empty() {
            out.push_str("<p>No threshold was exceeded.</p>\n");
            return;
        }
        // Failures first, if not all have room; each table in order of time.
        let infos = signals.iter().filter(|signal| signal.kind == MarkKind::Info);
        let failures = signals.iter().filter(|signal| signal.kind != MarkKind::Info);
        let mut shown: Vec<_> = failures.chain(infos).take(SIGNALS).collect();
        shown.sort_by_key(|signal| signal.number);
        let first = shown.len().min(FIRST_SIGNALS);
        self.signal_table(out, &shown[..first]);
        let folded = &shown[first..];
        if !folded.is_empty() {
            append_line!(
                out,
                "<details><summary>{} more of {} signals</summary>",
                grouped(folded.len() as u64),
                grouped(signals.len() as u64)
            );
            self.signal_table(out, folded);
            out.push_str("</details>\n");
        }
        if shown.len() < signals.len() {
            append_line!(
                out,
                "<p class=\"note-text\">{} more are left out; <code>pbsctl --json report</code> has \
                 them all.</p>",
                grouped((signals.len() - shown.len()) as u64)
            );
        }
    }

    fn signal_table(&self, out: &mut String, signals: &[&Signal]) {
        append!(
            out,
            "{SCROLL}\n<table>\n<tr><th class=\"number\">#</th>\
             <th class=\"number\">ms</th><th>kind</th><th>cause</th><th>process</th><th>task</th>\
             <th>what was compared</th><th class=\"number\">stress</th></tr>\n",
        );
        for signal in signals {
            self.signal(out, signal);
        }
        out.push_str("</table>\n</div>\n");
    }

    fn signal(&self, out: &mut String, signal: &Signal) {
        let name = self.process_name(signal.process);
        let task = match signal.task {
            NO_TASK => String::new(),
            task => task.to_string(),
        };
        append_line!(
            out,
            "<tr><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{task}</td><td>{}</td><td class=\"number\">{}</td></tr>",
            signal.number,
            ms(signal.time_ns),
            kind_name(signal.kind),
            escaped(&signal.cause),
            escaped(&name),
            escaped(&signal.words),
            signal.stress
        );
    }

    fn process_name(&self, id: u32) -> String {
        self.report.process_name(id)
    }

    /// The tasks whose slot came before what they wait for had ended.
    fn waits(&self, out: &mut String) {
        let report = &self.report;
        if report.edges.is_empty() {
            return;
        }
        out.push_str(
            "<h2 id=\"at-waits\">Waiting tasks</h2>\n<p>A task waits for the tasks of other \
             processes that the plan names. Arrows lead from the end of each to the beginning of \
             the waiting task. The table has the tasks whose slots came too early; other tasks \
             filled these slots.</p>\n",
        );
        if report.waited.is_empty() {
            out.push_str("<p>No task waited: the tasks before each had ended.</p>\n");
            return;
        }
        append!(
            out,
            "{SCROLL}\n<table>\n<tr><th class=\"number\">CPU</th><th>process</th>\
             <th>task</th><th>waited for</th><th>task</th><th class=\"number\">ms</th></tr>\n",
        );
        for wait in report.waited.iter().take(SIGNALS) {
            let edge = wait.edge;
            let words = |process: u32, task: u32| escaped(&report.task_words(process, task));
            append_line!(
                out,
                "<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
                 <td class=\"number\">{}</td></tr>",
                wait.cpu,
                escaped(&self.process_name(edge.process)),
                words(edge.process, edge.task),
                escaped(&self.process_name(edge.after_process)),
                words(edge.after_process, edge.after_task),
                wait.words()
            );
        }
        out.push_str("</table>\n</div>\n");
        let more = report.waited.len().saturating_sub(SIGNALS);
        if more > 0 {
            append_line!(
                out,
                "<p class=\"note-text\">{} more are left out.</p>",
                grouped(more as u64)
            );
        }
    }

    fn nodes(&self, out: &mut String) {
        out.push_str(
            "<h2 id=\"at-node\">Lateness of the node</h2>\n<p>The sum of the latenesses of all \
             processes that have begun and have tasks left. Above t2_node, or below tm2_node once \
             there is no stress, it is a prediction failure.</p>\n",
        );
        for cpu in &self.series.cpus {
            if cpu.lateness_insns.is_empty() {
                append_line!(out, "<p>CPU {}: nothing ran.</p>", cpu.cpu);
                continue;
            }
            self.figure(out, figures::node(&self.series, cpu), self.series.cpus.len() > 1);
        }
    }

    fn processes(&self, out: &mut String) {
        out.push_str(
            "<h2 id=\"at-processes\">Lateness of the processes</h2>\n<p>Instructions that a \
             process has retired beyond its plan; below zero, instructions that it has saved. \
             Above max(capacity buffer, t2_process) it is a prediction failure; a quarter, half \
             and three quarters of that are signalled as information.</p>\n",
        );
        for cpu in &self.series.cpus {
            let mut processes: Vec<_> = cpu.processes.iter().collect();
            processes.sort_by_key(|process| std::cmp::Reverse(self.weight(cpu, process)));
            let left_out = processes.len().saturating_sub(PROCESSES);
            processes.truncate(PROCESSES);
            for process in processes {
                self.figure(out, figures::process(&self.series, cpu, process), true);
            }
            if left_out > 0 {
                append_line!(
                    out,
                    "<p class=\"note-text\">CPU {}: {left_out} processes with fewer signals and \
                     less lateness are left out.</p>",
                    cpu.cpu
                );
            }
        }
    }

    /// Returns the importance of a process: its number of signals, then its greatest lateness.
    fn weight(&self, cpu: &CpuSeries, process: &ProcessSeries) -> (usize, u64) {
        let signals = self.series.signals.iter().filter(|signal| {
            signal.cause == "process" && (signal.cpu, signal.process) == (cpu.cpu, process.process)
        });
        let lateness = process.lateness_insns.iter();
        let most = lateness.map(|point| point.1.unsigned_abs()).max();
        (signals.count(), most.unwrap_or(0))
    }

    fn tasks(&self, out: &mut String) {
        let (shown, all) = (self.series.tasks.len(), self.report.tasks.len());
        let which = if shown < all {
            format!(
                "The {shown} most relevant of {all} tasks: those with most signals, preemptions \
                 and deviation; <code>--task PROCESS:TASK</code> puts another one first."
            )
        } else {
            "All tasks; those with most signals, preemptions and deviation come first.".into()
        };
        append_line!(
            out,
            "<h2 id=\"at-tasks\">Progress of tasks</h2>\n<p>Retired instructions of a task over \
             time. A slot that reaches t1 ends; a task above t2_task, or one that ends below \
             tm2_task, is a prediction failure. {which}</p>"
        );
        for (task, number) in self.series.tasks.iter().zip(0..) {
            let figure = figures::task(&self.series, task);
            let open = if number == 0 { " open" } else { "" };
            append_line!(
                out,
                "<details{open}><summary>{}: {}</summary>\n{SCROLL}\n{}</div></details>",
                escaped(&figure.title),
                escaped(&figure.description),
                figure.inline()
            );
        }
    }

    fn sums(&self, out: &mut String) {
        out.push_str("<h2 id=\"at-preemption\">Preemptions</h2>\n");
        match self.preemptions() {
            Some(figure) => {
                append_line!(out, "<p>{}</p>", escaped(&figure.description));
                self.figure(out, figure, false);
            }
            None => out.push_str("<p>No task was preempted.</p>\n"),
        }
        out.push_str("<h2 id=\"at-deviation\">Deviations from the plan</h2>\n");
        match &self.deviations {
            Some(histogram) => {
                out.push_str(
                    "<p>Number of tasks by their deviation from the plan, in percent of the plan. \
                     The curve is the normal distribution with the same mean and sigma.</p>\n",
                );
                self.figure(out, figures::deviations(histogram), false);
            }
            None => out.push_str("<p>No task ended.</p>\n"),
        }
    }

    fn figure(&self, out: &mut String, figure: Figure, headed: bool) {
        if headed {
            let (id, title) = (&figure.id, escaped(&figure.title));
            append_line!(out, "<h3 id=\"at-{id}\">{title}</h3>");
        }
        append_line!(out, "{SCROLL}\n{}</div>", figure.inline());
    }

    fn tables(&self, out: &mut String) {
        out.push_str("<h2 id=\"at-tables\">Tables</h2>\n");
        self.process_table(out);
        if self.report.tasks.len() <= TASKS {
            append_line!(
                out,
                "<details><summary>Tasks</summary>\n{SCROLL}<pre>{}</pre></div>\
                 </details>",
                lines_escaped(&table(&self.report))
            );
        } else {
            append_line!(
                out,
                "<p class=\"note-text\">The table of tasks has more than {} rows and is left \
                 out.</p>",
                grouped(TASKS as u64)
            );
        }
        out.push_str("<details><summary>Configuration</summary>\n<table>\n");
        for (name, value) in Config::NAMES.iter().zip(self.config().values()) {
            append_line!(
                out,
                "<tr><td>{name}</td><td class=\"number\">{}</td></tr>",
                grouped(value)
            );
        }
        out.push_str("</table></details>\n");
    }
}

/// A heading that the table of contents leads to.
fn heading(out: &mut String, id: &str, title: &str) {
    append_line!(out, "<h2 id=\"at-{id}\">{title}</h2>");
}

/// Links to all headings of a body; those of its charts in a line.
fn contents(body: &str) -> String {
    let mut out = String::from("<nav aria-label=\"Contents\">\n<ul>\n");
    let mut in_charts = false;
    for line in body.lines() {
        let Some((tag, rest)) = line.trim_start().split_once(" id=\"at-") else {
            continue;
        };
        let (true, Some((id, rest))) = (matches!(tag, "<h2" | "<h3"), rest.split_once("\">"))
        else {
            continue;
        };
        let title = rest.split("</h").next().unwrap_or_default();
        let is_chart = tag == "<h3";
        match (in_charts, is_chart) {
            (false, true) => out.push_str("<ul class=\"charts\">\n"),
            (true, false) => out.push_str("</ul>\n"),
            _ => {}
        }
        in_charts = is_chart;
        append_line!(out, "<li><a href=\"#at-{id}\">{title}</a></li>");
    }
    if in_charts {
        out.push_str("</ul>\n");
    }
    out + "</ul>\n</nav>\n"
}

fn kind_name(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Late => "late",
        MarkKind::Early => "early",
        _ => "info",
    }
}

/// Text of several lines as it may stand in HTML.
fn lines_escaped(text: &str) -> String {
    text.lines().map(|line| escaped(line) + "\n").collect()
}
