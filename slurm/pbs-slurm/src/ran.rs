// SPDX-License-Identifier: GPL-2.0
//! Results of jobs under Slurm, measured like replays.

use pbs_cluster_sim::metrics::Metrics;
use pbs_cluster_sim::{Outcome, TraceJob};
use pbs_report::{lanes, Lane, Stay};

use crate::conf::seconds;

use crate::columns::hosts;
use crate::states::{standing, Standing};

/// Jobs shorter than that count as so long in their slowdowns, in seconds.
pub const BOUND_S: u64 = 60;
/// Pictures have at most so many times below them.
const TICKS: u64 = 8;

/// A job that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Name of the job.
    pub name: String,
    /// Time of the submission. Slurm sets that anew if the job is sent back, unlike its name.
    pub submit_s: u64,
    /// Deadline of the job, if its name has one.
    pub deadline_s: Option<u64>,
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
}

/// Meaning of names of jobs beside the name itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Names have no other meaning.
    #[default]
    Plain,
    /// `NUMBER.DEADLINE` or `NUMBER.DEADLINE.SUBMITTED`, in seconds: the deadline is counted from
    /// the submission.
    WithDeadlines,
}

impl Names {
    /// Returns the deadline that a name has, counted from the submission, and the submission.
    fn read(self, name: &str) -> Option<(u64, Option<u64>)> {
        let numbers: Option<Vec<u64>> = name.split('.').map(|of| of.parse().ok()).collect();
        match (self, &numbers?[..]) {
            (Self::WithDeadlines, &[_, in_s]) => Some((in_s, None)),
            (Self::WithDeadlines, &[_, in_s, submit_s]) => Some((in_s, Some(submit_s))),
            _ => None,
        }
    }
}

/// Command whose output is read.
const SQUEUE: &str = "SLURM_TIME_FORMAT=%s squeue -h -a -t all -o '%j %V %S %e %l %T %N'";

/// Reads jobs, by what their names say, as `squeue -h -a -t all -o '%j %V %S %e %l %T %N'` prints
/// them with `SLURM_TIME_FORMAT=%s`.
///
/// # Errors
///
/// The first line that can't be read, with its number and the reason, or a job that is not over.
pub fn ran_of(text: &str, names: Names) -> Result<Vec<Ran>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| line_of(line, names).map_err(|what| format!("line {number}: {what}")))
        .collect()
}

fn line_of(line: &str, names: Names) -> Result<Ran, String> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    // A job that got nodes has them at the end; a job that was never started has none. Names of
    // nodes are seldom in capitals; a word of capitals is a state, if an unknown one.
    let is_state = |word: &str| standing(word).is_some();
    let is_word = |word: &str| word.bytes().all(|c| c.is_ascii_uppercase() || c == b'_');
    let comes_after_state = |at: usize| at.checked_sub(1).is_some_and(|at| is_word(words[at]));
    let has_nodes = words.last().is_some_and(|word| {
        !is_state(word) && (!is_word(word) || comes_after_state(words.len() - 1))
    });
    let nodes = match has_nodes.then(|| words.pop()).flatten() {
        Some(list) => hosts(list)
            .ok_or_else(|| format!("{list:?} is no list of nodes; print the jobs with {SQUEUE}"))?,
        None => Vec::new(),
    };
    // A name may have spaces: the other columns are counted from the end.
    let Some(at) = words.len().checked_sub(5).filter(|&at| at > 0) else {
        return Err(format!("{line:?} lacks columns; print the jobs with {SQUEUE}"));
    };
    let name = words[..at].join(" ");
    let [submit, start, end, limit, state] = words[at..] else {
        return Err(format!("{line:?} lacks columns; print the jobs with {SQUEUE}"));
    };
    match standing(state) {
        Some(Standing::Open) => {
            return Err(format!(
                "job {name} is {state}, and not over; print the jobs when all have ended"
            ));
        }
        Some(_) => {}
        None => return Err(format!("{state} is no state of a job; print the jobs with {SQUEUE}")),
    }
    let time_s = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("{text} is no time in seconds; print the jobs with {SQUEUE}"))
    };
    let named = names.read(&name);
    let submit_s = match named {
        Some((_, Some(submit_s))) => submit_s,
        _ => time_s(submit)?,
    };
    Ok(Ran {
        submit_s,
        deadline_s: named.and_then(|(in_s, _)| submit_s.checked_add(in_s)),
        span_s: if nodes.is_empty() { None } else { Some((time_s(start)?, time_s(end)?)) },
        limit_s: match limit {
            "UNLIMITED" | "INFINITE" | "Partition_Limit" | "NOT_SET" | "INVALID" => {
                return Err(format!(
                    "job {name} has no time limit of its own ({limit}), and can't be compared; leave \
                     it out, or submit it with --time"
                ));
            }
            _ => seconds(limit).ok_or_else(|| {
                format!("{limit} is no time limit such as 1-02:00:00; print the jobs with {SQUEUE}")
            })?,
        },
        name,
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
            deadline_s: of.deadline_s,
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
        let ran = ran_of(TEXT, Names::WithDeadlines).unwrap();
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
        let ran = ran_of(failed, Names::WithDeadlines).unwrap();
        assert!(ran[0].has_failed());
        assert_eq!(ran[0].deadline_s, None);
    }

    /// Dots in names are no deadlines unless that is said, and numbers.
    #[test]
    fn names_may_have_dots() {
        for name in ["vasp.5.4", "sim.v1.final", "3.11", "1.2.3"] {
            let line = format!("{name} 1000 1010 1100 2:00 COMPLETED n01\n");
            let ran = ran_of(&line, Names::Plain).unwrap();
            assert_eq!((ran[0].submit_s, ran[0].deadline_s), (1000, None), "{name}");
        }
        let line = "vasp.5.4 1000 1010 1100 2:00 COMPLETED n01\n";
        let ran = ran_of(line, Names::WithDeadlines).unwrap();
        assert_eq!((ran[0].submit_s, ran[0].deadline_s), (1000, None));
    }

    #[test]
    fn a_name_may_have_spaces() {
        let ran = "my job 1000 1000 1100 2:00 COMPLETED n01\na b c 7 N/A 9 1:00 CANCELLED \n";
        let ran = ran_of(ran, Names::Plain);
        let names: Vec<_> = ran.unwrap().into_iter().map(|of| (of.name, of.nodes.len())).collect();
        assert_eq!(names, [("my job".to_string(), 1), ("a b c".to_string(), 0)]);
    }

    #[test]
    fn each_line_that_cannot_be_read_is_told_as_what_it_is() {
        for (line, what) in [
            ("7 1000 1000 1001 1:00 RUNNING n01", "job 7 is RUNNING, and not over"),
            ("7 1000 1000 1100 2:00 CONFIGURING n01", "job 7 is CONFIGURING, and not over"),
            ("7 1 1 2 1:00 GONE n01", "GONE is no state of a job"),
            ("7 1 N/A N/A 1:00 GONE", "GONE is no state of a job"),
            ("my job 1 N/A N/A 1:00 RESV_DEL_HOLD", "my job is RESV_DEL_HOLD, and not over"),
            ("7", "lacks columns; print the jobs with SLURM_TIME_FORMAT=%s squeue"),
            ("7 x 1 2 1:00 COMPLETED n01", "x is no time in seconds"),
            (
                "7 2026-11-25T08:00:00 1 2 1:00 COMPLETED n01",
                "2026-11-25T08:00:00 is no time in seconds; print the jobs with SLURM_TIME_FORMAT",
            ),
            ("7 1 1 2 UNLIMITED COMPLETED n01", "job 7 has no time limit of its own (UNLIMITED)"),
            ("7 1 1 2 Partition_Limit COMPLETED n01", "no time limit of its own (Partition_Limit)"),
            ("7 1 1 2 soon COMPLETED n01", "soon is no time limit"),
            ("7 1 1 2 1:00 COMPLETED n[01-", "is no list of nodes"),
        ] {
            let error = ran_of(&format!("{TEXT}\n{line}\n"), Names::Plain).unwrap_err();
            assert!(error.starts_with("line 5: ") && error.contains(what), "{line}: {error}");
        }
    }
}
