// SPDX-License-Identifier: GPL-2.0
//! Figures for the comparison of policies.

use crate::metrics::Metrics;
use crate::{Outcome, TraceJob};
use pbs_text::{grouped, Format, Table};
use serde::Serialize;

use crate::whole::{Fate, Options, WholeJob};

/// Figures of a policy. `accepted` and `declined` add up to all jobs; `kept`, `late` and `aborted`
/// add up to the accepted ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Name of the policy.
    pub policy: String,
    /// Jobs that were taken.
    pub accepted: u64,
    /// Jobs that were not.
    pub declined: u64,
    /// Deadlines kept.
    pub kept: u64,
    /// Jobs that ended after their deadlines.
    pub late: u64,
    /// Jobs that were ended at the end of their time, before they were over.
    pub aborted: u64,
    /// Deadlines kept, of accepted jobs.
    pub kept_of_accepted_permille: u64,
    /// Deadlines kept, of all jobs.
    pub kept_of_all_permille: u64,
    /// Core time that jobs had, of all from the first submission to the last end.
    pub utilisation_permille: u64,
    /// Core time of jobs that kept their deadlines: the useful part of the utilisation.
    pub useful_permille: u64,
    /// From submission to start, of accepted jobs, in seconds.
    pub mean_wait_s: f64,
    /// Mean bounded slowdown of accepted jobs, with 10 s as the least run time.
    pub mean_bounded_slowdown: f64,
    /// Number of signals of nodes: late or early.
    pub signals: u64,
    /// New plans that nodes got.
    pub replans: u64,
    /// Number of extensions of jobs.
    pub extensions: u64,
    /// Number of extensions that were refused because other jobs had the cores.
    pub refused_extensions: u64,
}

/// Policies over the same jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Options of the simulation.
    #[serde(flatten)]
    pub options: Options,
    /// In the order in which they were added.
    pub policies: Vec<Figures>,
}

impl Figures {
    /// Computes the figures; the fates are in the order of their jobs.
    pub fn of(policy: &str, options: &Options, jobs: &[WholeJob], fates: &[Fate]) -> Self {
        let pairs = || jobs.iter().zip(fates);
        let count = |is: fn(&WholeJob, &Fate) -> bool| {
            pairs().filter(|(job, fate)| is(job, fate)).count() as u64
        };
        let accepted = count(|_, fate| fate.start_s.is_some());
        let kept = count(|job, fate| fate.keeps(job.deadline_s));
        let aborted = count(|_, fate| fate.is_aborted);
        let sum = |of: fn(&Fate) -> u64| fates.iter().map(of).sum();
        let all = jobs.len() as u64;
        let metrics = metrics(options, jobs, fates);
        let core_s = |job: &WholeJob, fate: &Fate| {
            let span_s = fate.end_s - fate.start_s.unwrap_or(fate.end_s);
            span_s * u64::from(job.cores)
        };
        let used_s = pairs().map(|(job, fate)| core_s(job, fate)).sum();
        let kept_jobs = pairs().filter(|(job, fate)| fate.keeps(job.deadline_s));
        let useful_s = kept_jobs.map(|(job, fate)| core_s(job, fate)).sum();
        let there_s = metrics.makespan_s * options.total_cores();
        Self {
            policy: policy.into(),
            accepted,
            declined: all - accepted,
            kept,
            late: accepted - kept - aborted,
            aborted,
            kept_of_accepted_permille: permille(kept, accepted),
            kept_of_all_permille: permille(kept, all),
            utilisation_permille: permille(used_s, there_s),
            useful_permille: permille(useful_s, there_s),
            mean_wait_s: metrics.wait_s.mean,
            mean_bounded_slowdown: metrics.bounded_slowdown.mean,
            signals: sum(|fate| fate.signals),
            replans: sum(|fate| fate.replans),
            extensions: sum(|fate| fate.extensions),
            refused_extensions: sum(|fate| fate.refused_extensions),
        }
    }
}

/// Computes the metrics that replays of traces have.
fn metrics(options: &Options, jobs: &[WholeJob], fates: &[Fate]) -> Metrics {
    let trace = jobs.iter().zip(fates).map(|(job, fate)| {
        let run_s = fate.end_s - fate.start_s.unwrap_or(fate.end_s);
        TraceJob::new(job.submit_s, run_s, job.duration_s, job.cores.into())
    });
    let outcomes = fates.iter().enumerate().map(|(job, fate)| Outcome {
        job,
        start_s: fate.start_s,
        end_s: fate.end_s,
        killed: fate.is_aborted,
    });
    let (trace, outcomes): (Vec<_>, Vec<_>) = (trace.collect(), outcomes.collect());
    Metrics::of(&trace, &outcomes, options.total_cores())
}

impl Comparison {
    /// Creates a comparison without policies.
    pub fn new(options: &Options) -> Self {
        Self { options: *options, policies: Vec::new() }
    }

    /// Adds what a policy made of the jobs.
    pub fn push(&mut self, policy: &str, jobs: &[WholeJob], fates: &[Fate]) {
        let figures = Figures::of(policy, &self.options, jobs, fates);
        self.policies.push(figures);
    }

    /// Formats the comparison as a table.
    pub fn text(&self, format: Format) -> String {
        let mut titles = vec![""];
        titles.extend(self.policies.iter().map(|of| of.policy.as_str()));
        let mut table = Table::new(&titles, 1);
        let mut row = |title: &str, of: &dyn Fn(&Figures) -> String| {
            let mut row = vec![title.to_string()];
            row.extend(self.policies.iter().map(of));
            table.push(row);
        };
        row("accepted", &|of| grouped(of.accepted));
        row("declined", &|of| grouped(of.declined));
        row("deadlines kept", &|of| grouped(of.kept));
        row("of those accepted", &|of| share(of.kept_of_accepted_permille));
        row("of all", &|of| share(of.kept_of_all_permille));
        row("ended late", &|of| grouped(of.late));
        row("aborted", &|of| grouped(of.aborted));
        row("used", &|of| share(of.utilisation_permille));
        row("used by jobs in time", &|of| share(of.useful_permille));
        row("wait, mean", &|of| format!("{:.1} s", of.mean_wait_s));
        row("bounded slowdown, mean", &|of| format!("{:.2}", of.mean_bounded_slowdown));
        row("signals", &|of| grouped(of.signals));
        row("replans", &|of| grouped(of.replans));
        row("extensions", &|of| grouped(of.extensions));
        row("extensions refused", &|of| grouped(of.refused_extensions));
        table.print(format)
    }
}

fn permille(part: u64, whole: u64) -> u64 {
    let part = u128::from(part) * 1000 / u128::from(whole.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

fn share(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}
