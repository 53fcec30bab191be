// SPDX-License-Identifier: GPL-2.0
//! Results of jobs under Slurm, measured like replays.

use pbs_cluster_sim::metrics::Metrics;
use pbs_cluster_sim::{Outcome, TraceJob};
use pbs_report::{lanes, Lane, Stay};

use crate::conf::seconds;

use crate::columns::hosts;

/// Jobs shorter than that count as so long in their slowdowns, in seconds.
pub const BOUND_S: u64 = 60;
/// Pictures have at most so many times below them.
const TICKS: u64 = 8;

/// A job that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Name of the job: `NUMBER.DEADLINE.SUBMITTED`, the deadline counted from the submission; a
    /// job with another name has none.
    pub name: String,
    /// Time of the submission. Slurm sets that anew if the job is sent back, unlike its name.
    pub submit_s: u64,
    /// Begin and end of its run; `None`: it was never started.
    pub span_s: Option<(u64, u64)>,
    /// Longest permitted run time.
    pub limit_s: u64,
    /// Slurm's word for its outcome.
    pub state: String,
    /// Nodes that it had.
    pub nodes: Vec<String>,
}

impl Ran {
    /// Whether the job was started, and did not end by itself and well.
    pub fn has_failed(&self) -> bool {
        self.span_s.is_some() && self.state != "COMPLETED"
    }

    /// Deadline of the job.
    pub fn deadline_s(&self) -> Option<u64> {
        let in_s = self.name.split('.').nth(1)?;
        in_s.parse::<u64>().ok()?.checked_add(self.submit_s)
    }
}

/// Jobs as `squeue -h -a -t all -o '%j %V %S %e %l %T %N'` prints them with
/// `SLURM_TIME_FORMAT=%s`.
///
/// # Errors
///
/// The line that can't be read, or a job that is not over.
pub fn ran_of(text: &str) -> Result<Vec<Ran>, String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            line_of(line).ok_or_else(|| {
                format!(
                    "{line:?} is not an ended job; print the \
                                                         jobs with squeue -h -a -t all -o '%j %V \
                                                         %S %e %l %T %N' when all have ended"
                )
            })
        })
        .collect()
}

fn line_of(line: &str) -> Option<Ran> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, submit, start, end, limit, state, ref rest @ ..] = words[..] else {
        return None;
    };
    let nodes = match rest {
        [] => Vec::new(),
        [nodes] => hosts(nodes)?,
        _ => return None,
    };
    if matches!(state, "PENDING" | "RUNNING" | "COMPLETING" | "SUSPENDED") {
        return None;
    }
    Some(Ran {
        name: name.into(),
        submit_s: match name.split('.').nth(2) {
            Some(submit) => submit.parse().ok()?,
            None => submit.parse().ok()?,
        },
        span_s: if nodes.is_empty() {
            None
        } else {
            Some((start.parse().ok()?, end.parse().ok()?))
        },
        limit_s: seconds(limit)?,
        state: state.into(),
        nodes,
    })
}

/// Their figures on so many nodes, each of which has one job at a time; slowdowns are bounded
/// by [`BOUND_S`].
pub fn metrics_of(ran: &[Ran], nodes: u64) -> Metrics {
    let jobs = ran.iter().map(|of| {
        let run_s = of.span_s.map_or(of.limit_s, |(from, to)| to - from.min(to));
        TraceJob {
            deadline_s: of.deadline_s(),
            // Slurm lets jobs overrun their limits a little.
            ..TraceJob::new(of.submit_s, run_s, of.limit_s.max(run_s), of.nodes.len().max(1) as u64)
        }
    });
    let jobs: Vec<TraceJob> = jobs.collect();
    let outcomes = ran.iter().enumerate().map(|(job, of)| Outcome {
        job,
        start_s: of.span_s.map(|(from, _)| from),
        end_s: of.span_s.map_or(of.submit_s, |(_, to)| to),
        killed: of.has_failed(),
    });
    let outcomes: Vec<Outcome> = outcomes.collect();
    Metrics::with_bound(&jobs, &outcomes, nodes, BOUND_S)
}

/// A picture: a row for each node on which something ran, from the first submission on; SVG.
pub fn gantt(title: &str, ran: &[Ran]) -> String {
    let from_s = ran.iter().map(|of| of.submit_s).min().unwrap_or(0);
    let until_s = ran.iter().filter_map(|of| of.span_s).map(|span| span.1);
    let until_s = until_s.max().unwrap_or(from_s).max(from_s + 60) - from_s;
    let mut names: Vec<&String> = ran.iter().flat_map(|of| &of.nodes).collect();
    names.sort_unstable();
    names.dedup();
    let rows = names.into_iter().map(|node| {
        let on = ran.iter().enumerate().filter(|(_, of)| of.nodes.contains(node));
        let stays = on.filter_map(|(place, of)| {
            let (start_s, end_s) = of.span_s?;
            let name = of.name.split('.').next().unwrap_or_default().to_string();
            Some(Stay {
                from: start_s.saturating_sub(from_s),
                until: end_s.saturating_sub(from_s),
                takes: 1,
                of: place,
                title: format!(
                    "{name}: waited {} s, ran {} s on {} nodes",
                    start_s.saturating_sub(of.submit_s),
                    end_s.saturating_sub(start_s),
                    of.nodes.len()
                ),
                name,
            })
        });
        Lane { name: node.clone(), note: String::new(), has: 1, stays: stays.collect() }
    });
    let rows: Vec<Lane> = rows.collect();
    let minutes = [1, 5, 10, 15, 30, 60, 120, 240, 480, 1440];
    let step_s = minutes.map(|of| of * 60).into_iter();
    let step_s = step_s.clone().find(|step_s| until_s / step_s <= TICKS).unwrap_or(until_s);
    let ticks = (0..=until_s).step_by(usize::try_from(step_s).unwrap_or(usize::MAX));
    let ticks: Vec<(u64, String)> = ticks.map(|at| (at, format!("{} min", at / 60))).collect();
    let description = format!("{} jobs on {} nodes", ran.len(), rows.len());
    lanes(title, &description, (0, until_s), &ticks, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1.300 1000 1000 1100 2:00 COMPLETED n[01-02]
2.100.1010 1060 1100 1130 1:00 COMPLETED n01
3.60 1020 N/A 1030 1:00 CANCELLED 
";

    #[test]
    fn figures_worked_by_hand() {
        let ran = ran_of(TEXT).unwrap();
        assert_eq!(ran[0].nodes, ["n01", "n02"]);
        assert!(ran.iter().all(|of| !of.has_failed()));
        let metrics = metrics_of(&ran, 2);
        assert_eq!((metrics.jobs, metrics.unstarted, metrics.makespan_s), (2, 1, 130));
        assert_eq!((metrics.wait_s.mean, metrics.wait_s.max), (45.0, 90.0));
        // The second is over after 120 seconds, and may be after 100.
        assert_eq!((metrics.deadlines, metrics.deadlines_kept), (3, 1));
        // It counts as long as a minute.
        assert_eq!(metrics.bounded_slowdown.mean, (1.0 + 120.0 / 60.0) / 2.0);
        assert_eq!(metrics.utilisation, (200.0 + 30.0) / 260.0);
        let picture = gantt("a < b", &ran);
        assert!(picture.starts_with("<svg") || picture.starts_with("<?xml"));
        assert!(picture.contains("n02") && picture.contains("a &lt; b"));
    }

    #[test]
    fn what_failed_is_told() {
        let failed = "7 1000 1000 1001 1:00 FAILED n01\n";
        assert!(ran_of(failed).unwrap()[0].has_failed());
        assert_eq!(ran_of(failed).unwrap()[0].deadline_s(), None);
        for wrong in ["7 1000 1000 1001 1:00 RUNNING n01", "7", "7 x 1 2 1:00 COMPLETED n01"] {
            assert!(ran_of(wrong).is_err(), "{wrong}");
        }
    }
}
