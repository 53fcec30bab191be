// SPDX-License-Identifier: GPL-2.0
//! Several policies over one trace: as tables, as JSON (it serialises) and as a picture.

use pbs_report::{curves, Curve, Plot};
use pbs_text::{grouped, Format, Table};
use serde::Serialize;

use crate::metrics::{bounded_slowdowns, mean_usage, usage, Metrics, SLOWDOWN_BOUND_S};
use crate::{Outcome, Policy, RunTimeErrors, TraceJob, Unstarted, Work};

/// Points of a line over time; more can't be seen.
const STRETCHES: usize = 600;
/// Points of a line of shares.
const SHARES: usize = 400;

/// Policies that replayed the same trace on the same cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the replayed trace.
    pub trace: String,
    /// Number of cores.
    pub cores: u64,
    /// Jobs of the trace that are in the figures.
    pub jobs: usize,
    /// Jobs of the trace that are in no figure but the utilisation, as the cluster filled or
    /// emptied then.
    pub jobs_left_out: usize,
    /// In the order in which they were added.
    pub policies: Vec<Compared>,
    /// Errors of expected run times in the last schedule, if they are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_time_errors: Option<RunTimeErrors>,
    #[serde(skip)]
    first_s: Option<u64>,
}

/// Result of a policy on the trace.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of the policy.
    pub policy: String,
    /// Metrics of the replay.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Work of the scheduler.
    #[serde(flatten)]
    pub planning: Planning,
    /// Jobs that never ran, by reason.
    pub unstarted_by_reason: Vec<Unstarted>,
    /// Number of cores in use, each from a time on, in seconds.
    #[serde(skip)]
    usage: Vec<(u64, u64)>,
    /// From the least to the greatest.
    #[serde(skip)]
    slowdowns: Vec<f64>,
}

/// Work of a scheduler in a replay.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Planning {
    /// Number of jobs that started later than promised; `None` if nothing was promised.
    pub broken_promises: Option<usize>,
    /// Work of its searches; `None` if it does not search.
    pub work: Option<Work>,
    /// Mean time for an event, as the caller measured it.
    pub event_ns: Option<u64>,
}

impl Planning {
    /// Returns the work of a scheduler up to now.
    pub fn of(policy: &dyn Policy, event_ns: Option<u64>) -> Self {
        Self { broken_promises: policy.broken_promises(), work: policy.work(), event_ns }
    }
}

impl Comparison {
    /// Creates a comparison without policies.
    pub fn new(trace: &str, jobs: &[TraceJob], cores: u64) -> Self {
        Self {
            trace: trace.into(),
            cores,
            jobs: jobs.len(),
            jobs_left_out: 0,
            policies: Vec::new(),
            run_time_errors: None,
            first_s: jobs.iter().map(|job| job.submit_s).min(),
        }
    }

    /// Adds what a policy made of the trace, which is the same for all of them.
    pub fn push(&mut self, policy: &str, jobs: &[TraceJob], outcomes: &[Outcome]) {
        let counts = vec![true; jobs.len()];
        self.push_with(policy, (jobs, outcomes), &counts, Planning::default(), Vec::new());
    }

    /// Adds what a policy made of all jobs of the trace, which of them count, the work of the
    /// policy, and the jobs that never ran by reason.
    pub fn push_with(
        &mut self,
        policy: &str,
        (jobs, outcomes): (&[TraceJob], &[Outcome]),
        counts: &[bool],
        planning: Planning,
        unstarted_by_reason: Vec<Unstarted>,
    ) {
        let all = jobs.iter().copied().zip(outcomes.iter().copied()).zip(counts);
        let (counted, others): (Vec<_>, Vec<_>) = all.partition(|(_, counts)| **counts);
        let (counted, own): (Vec<_>, Vec<_>) = counted.into_iter().map(|(of, _)| of).unzip();
        let others: Vec<_> = others.into_iter().map(|(of, _)| of).collect();
        let bound_s = SLOWDOWN_BOUND_S;
        self.policies.push(Compared {
            policy: policy.into(),
            metrics: Metrics::beside((&counted, &own), &others, self.cores, bound_s),
            planning,
            unstarted_by_reason,
            usage: usage(jobs, outcomes),
            slowdowns: bounded_slowdowns(&counted, &own, bound_s),
        });
    }

    /// A table of all jobs, and one by their sizes if there are several.
    pub fn text(&self, format: Format) -> String {
        let left_out = match self.jobs_left_out {
            0 => String::new(),
            jobs => format!("; {} at its begin and end are left out", grouped(jobs as i128)),
        };
        let mut out = format!(
            "{}: {} jobs on {} cores{left_out}\n\n",
            self.trace,
            grouped(self.jobs as i128),
            grouped(self.cores)
        );
        out.push_str(&self.all_jobs().print(format));
        out.push_str(&self.unstarted());
        if self.policies.iter().any(|of| of.metrics.sizes.len() > 1) {
            out.push('\n');
            out.push_str(&self.by_sizes().print(format));
        }
        if let Some(errors) = &self.run_time_errors {
            out += &format!("\n{}", errors.text(format));
        }
        out
    }

    fn all_jobs(&self) -> Table {
        let metrics = || self.policies.iter().map(|of| &of.metrics);
        let has_deadlines = metrics().any(|of| of.deadlines > 0);
        let has_killed = metrics().any(|of| of.killed > 0);
        let mut titles = vec![
            "policy",
            "wait, mean",
            "median",
            "95 %",
            "max",
            "bounded slowdown, mean",
            "median",
            "95 %",
            "used",
            "used while jobs come",
            "makespan",
            "fairness",
            "worst user's normalised wait",
            "ran",
        ];
        let planning = || self.policies.iter().map(|of| &of.planning);
        let has_promises = planning().any(|of| of.broken_promises.is_some());
        let has_work = planning().any(|of| of.work.is_some());
        let has_times = planning().any(|of| of.event_ns.is_some());
        titles.extend(has_killed.then_some("killed"));
        if has_deadlines {
            titles.extend(["deadlines kept", "of accepted"]);
        }
        titles.extend(has_promises.then_some("promises broken"));
        titles.extend(has_work.then_some("orders per event"));
        titles.extend(has_times.then_some("time per event"));
        let mut table = Table::new(&titles, 1);
        for Compared { policy, metrics, planning, .. } in &self.policies {
            let (wait_s, slowdown) = (&metrics.wait_s, &metrics.bounded_slowdown);
            let mut row = vec![policy.clone()];
            row.extend([wait_s.mean, wait_s.median, wait_s.p95, wait_s.max].map(duration));
            row.extend([slowdown.mean, slowdown.median, slowdown.p95].map(ratio));
            row.extend([metrics.utilisation, metrics.utilisation_loaded].map(percent));
            row.push(duration(metrics.makespan_s as f64));
            row.push(format!("{:.3}", metrics.fairness.jain));
            row.push(ratio(metrics.fairness.worst_normalised_wait));
            row.push(percent(metrics.acceptance));
            row.extend(has_killed.then(|| grouped(metrics.killed as i128)));
            if has_deadlines {
                let kept = |of: usize| percent(metrics.deadlines_kept as f64 / of.max(1) as f64);
                row.extend([metrics.deadlines, metrics.deadlines_accepted].map(kept));
            }
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            let broken = planning.broken_promises.map(|broken| grouped(broken as i128));
            row.extend(has_promises.then(|| or_none(broken)));
            let orders = planning
                .work
                .map(|work| format!("{:.1}", work.orders as f64 / work.events.max(1) as f64));
            row.extend(has_work.then(|| or_none(orders)));
            let event = planning.event_ns.map(|ns| format!("{:.1} µs", ns as f64 / 1_000.0));
            row.extend(has_times.then(|| or_none(event)));
            table.push(row);
        }
        table
    }

    /// A line for each policy under which jobs never ran, if their reasons are known.
    fn unstarted(&self) -> String {
        let some = self.policies.iter().filter(|of| !of.unstarted_by_reason.is_empty());
        let lines = some.map(|of| {
            let (jobs, reasons) = (of.metrics.unstarted, Unstarted::text(&of.unstarted_by_reason));
            let jobs = match jobs {
                1 => "1 job".into(),
                jobs => format!("{} jobs", grouped(jobs as i128)),
            };
            format!("{}: {jobs} never ran: {reasons}\n", of.policy)
        });
        let lines: String = lines.collect();
        if lines.is_empty() {
            lines
        } else {
            format!("\n{lines}")
        }
    }

    fn by_sizes(&self) -> Table {
        let titles = [
            "policy",
            "cores",
            "jobs",
            "core hours",
            "wait, mean",
            "95 %",
            "bounded slowdown, mean",
            "95 %",
        ];
        let mut table = Table::new(&titles, 2);
        for Compared { policy, metrics, .. } in &self.policies {
            for size in &metrics.sizes {
                table.push(vec![
                    policy.clone(),
                    size.cores.clone(),
                    grouped(size.jobs as i128),
                    grouped(i128::try_from(size.core_seconds / 3600).unwrap_or(i128::MAX)),
                    duration(size.wait_s.mean),
                    duration(size.wait_s.p95),
                    ratio(size.bounded_slowdown.mean),
                    ratio(size.bounded_slowdown.p95),
                ]);
            }
        }
        table
    }

    /// Cores that are used over time, and how many jobs have at most which bounded slowdown,
    /// as an SVG file.
    pub fn picture(&self) -> String {
        let from_s = self.first_s.unwrap_or(0);
        let ends = self.policies.iter().filter_map(|of| of.usage.last());
        let to_s = ends.map(|step| step.0).max().unwrap_or(from_s).max(from_s + 1);
        let span_s = (to_s - from_s) as f64;
        let (unit_s, unit) = match span_s {
            span if span >= 2.0 * 86_400.0 => (86_400.0, "days"),
            span if span >= 2.0 * 3_600.0 => (3_600.0, "hours"),
            span if span >= 120.0 => (60.0, "minutes"),
            _ => (1.0, "seconds"),
        };
        let used = |of: &Compared| {
            let parts = mean_usage(&of.usage, from_s, to_s, STRETCHES);
            let width = span_s / unit_s / STRETCHES as f64;
            let points = parts.iter().enumerate().flat_map(|(place, cores)| {
                let percent = 100.0 * cores / self.cores.max(1) as f64;
                let begin = place as f64 * width;
                [(begin, percent), (begin + width, percent)]
            });
            Curve { name: of.policy.clone(), points: points.collect() }
        };
        let slowdown = |of: &Compared| {
            let count = of.slowdowns.len();
            let places = (0..=SHARES).filter_map(|place| {
                // The first and the last are there, whatever lies between.
                let index = place * count.checked_sub(1)? / SHARES;
                let share = 100.0 * (index + 1) as f64 / count as f64;
                Some((*of.slowdowns.get(index)?, share))
            });
            Curve { name: of.policy.clone(), points: places.collect() }
        };
        let plots = [
            Plot {
                title: format!("Cores in use, of {}", grouped(self.cores)),
                across: format!("time, {unit}"),
                up: "percent of the cores".into(),
                is_logarithmic: false,
                up_to: 100.0,
                curves: self.policies.iter().map(used).collect(),
                ..Plot::default()
            },
            Plot {
                title: "Jobs with at most this bounded slowdown".into(),
                across: format!("bounded slowdown, τ = {SLOWDOWN_BOUND_S} s"),
                up: "percent of the jobs".into(),
                is_logarithmic: true,
                up_to: 100.0,
                curves: self.policies.iter().map(slowdown).collect(),
                ..Plot::default()
            },
        ];
        let told = self.policies.iter().map(|of| {
            let (used, slowdown) = (of.metrics.utilisation, of.metrics.bounded_slowdown.mean);
            format!("{} uses {} and has {} on average", of.policy, percent(used), ratio(slowdown))
        });
        let told: Vec<_> = told.collect();
        let description = format!(
            "Cores in use over time, and bounded slowdowns of the jobs, by policy. {}.",
            told.join("; ")
        );
        curves(&self.trace, &description, &plots)
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn ratio(value: f64) -> String {
    match value {
        value if value >= 1000.0 => grouped(value.round() as i128),
        value => format!("{value:.2}"),
    }
}

/// In the unit that people would take.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86_400.0 => format!("{:.1} d", s / 86_400.0),
        s if s >= 2.0 * 3_600.0 => format!("{:.1} h", s / 3_600.0),
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s => format!("{s:.1} s"),
    }
}
