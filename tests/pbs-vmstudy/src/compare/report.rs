// SPDX-License-Identifier: GPL-2.0
//! From runs to figures: for each scheduler and setting the sums over all seeds.

use std::collections::BTreeMap;
use std::io::Read;

use pbs_vmtest::harness::{Context, Verdict};
use serde::Serialize;

use super::{Outcome, Run, Scheduler};

/// What the document is.
const SCHEMA: &str = "pbs.scheduler-comparison/1";

/// The figures of one scheduler in one setting. A rogue is in none of them but the
/// switches.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SettingRow {
    /// All of the setting in one word: `fifo-100-20-rogue`.
    name: String,
    scheduler: Scheduler,
    load_percent: u64,
    error_percent: u64,
    rogue: bool,
    seeds: usize,
    /// Jobs that are no rogues.
    jobs: usize,
    accepted: usize,
    kept: usize,
    kept_of_accepted_percent: f64,
    kept_of_all_percent: f64,
    /// Of those that were accepted: from release to end.
    mean_response_ms: f64,
    /// The same over the CPU time that was planned: 1 is a job that had the CPU at once.
    mean_slowdown: f64,
    /// By how much the accepted ones ended after their deadlines, those in time as 0.
    mean_tardiness_ms: f64,
    greatest_tardiness_ms: f64,
    /// Context switches of a job that was run, a rogue as well.
    switches_per_job: f64,
    /// Of everybody, in a second.
    all_switches_per_s: f64,
    plans: u64,
    /// Of a normal task that is to wake up a hundred times in a second.
    beside_wakeups_per_s: f64,
    beside_mean_wait_ms: f64,
    beside_longest_wait_ms: f64,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    rows: Vec<SettingRow>,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count == 0.0 {
        0.0
    } else {
        sum / count
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn tardiness_ms(job: &Outcome, ended_ns: u64) -> f64 {
    ended_ns.saturating_sub(job.job.deadline_ns) as f64 / 1e6
}

/// The runs of one scheduler in one setting.
fn row(runs: &[Run]) -> SettingRow {
    let first = &runs[0];
    let honest: Vec<&Outcome> =
        runs.iter().flat_map(|run| &run.jobs).filter(|job| !job.job.rogue).collect();
    let ran: Vec<(&Outcome, u64)> =
        honest.iter().filter_map(|job| job.ended_ns.map(|ended_ns| (*job, ended_ns))).collect();
    let kept = ran.iter().filter(|(job, ended_ns)| *ended_ns <= job.job.deadline_ns).count();
    let response_ms = |job: &Outcome, ended_ns: u64| (ended_ns - job.job.release_ns) as f64 / 1e6;
    let planned_ms =
        |job: &Outcome| pbs_gen::deadline_jobs::time_ns(job.job.planned_insns) as f64 / 1e6;
    let tardiness = || ran.iter().map(|(job, ended_ns)| tardiness_ms(job, *ended_ns));
    let all_ran = runs.iter().flat_map(|run| &run.jobs).filter(|job| job.accepted).count();
    let seconds = runs.iter().map(|run| run.lasted_ns as f64 / 1e9).sum::<f64>();
    let wakeups: u64 = runs.iter().map(|run| run.beside.wakeups).sum();
    let waited_ns: u64 = runs.iter().map(|run| run.beside.waited_ns).sum();
    let longest_ns = runs.iter().map(|run| run.beside.longest_wait_ns).max();
    let setting = &first.setting;
    let name = format!(
        "{}-{}-{}{}",
        first.scheduler.name(),
        setting.load_percent,
        setting.error_percent,
        if setting.rogue { "-rogue" } else { "" }
    );
    SettingRow {
        name,
        scheduler: first.scheduler,
        load_percent: setting.load_percent,
        error_percent: setting.error_percent,
        rogue: setting.rogue,
        seeds: runs.len(),
        jobs: honest.len(),
        accepted: ran.len(),
        kept,
        kept_of_accepted_percent: percent(kept, ran.len()),
        kept_of_all_percent: percent(kept, honest.len()),
        mean_response_ms: mean(ran.iter().map(|(job, ended_ns)| response_ms(job, *ended_ns))),
        mean_slowdown: mean(
            ran.iter().map(|(job, ended_ns)| response_ms(job, *ended_ns) / planned_ms(job)),
        ),
        mean_tardiness_ms: mean(tardiness()),
        greatest_tardiness_ms: tardiness().fold(0.0, f64::max),
        switches_per_job: runs.iter().map(|run| run.switches).sum::<u64>() as f64
            / all_ran.max(1) as f64,
        all_switches_per_s: runs.iter().map(|run| run.all_switches).sum::<u64>() as f64 / seconds,
        plans: runs.iter().map(|run| run.plans).sum(),
        beside_wakeups_per_s: wakeups as f64 / seconds,
        beside_mean_wait_ms: waited_ns as f64 / 1e6 / wakeups.max(1) as f64,
        beside_longest_wait_ms: longest_ns.unwrap_or(0) as f64 / 1e6,
    }
}

fn rows(runs: Vec<Run>) -> Vec<SettingRow> {
    let mut groups: BTreeMap<_, Vec<Run>> = BTreeMap::new();
    for run in runs {
        let setting = &run.setting;
        let key = (setting.rogue, setting.load_percent, setting.error_percent, run.scheduler);
        groups.entry(key).or_default().push(run);
    }
    groups.values().map(|runs| row(runs)).collect()
}

fn parse(text: &str) -> Result<Vec<Run>, String> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}")))
        .collect()
}

const HEAD: [&str; 10] = [
    "scheduler",
    "accepted",
    "kept",
    "of all",
    "response",
    "tardiness",
    "greatest",
    "switches",
    "beside",
    "longest",
];

fn cells(row: &SettingRow) -> [String; 10] {
    [
        row.scheduler.name().into(),
        format!("{}", row.accepted),
        format!("{:.1} %", row.kept_of_accepted_percent),
        format!("{:.1} %", row.kept_of_all_percent),
        format!("{:.0} ms", row.mean_response_ms),
        format!("{:.1} ms", row.mean_tardiness_ms),
        format!("{:.0} ms", row.greatest_tardiness_ms),
        format!("{:.1}", row.switches_per_job),
        format!("{:.2} ms", row.beside_mean_wait_ms),
        format!("{:.0} ms", row.beside_longest_wait_ms),
    ]
}

/// As reStructuredText, a table for each setting; a terminal shows it as well.
fn tables(rows: &[SettingRow]) -> String {
    let mut out = String::new();
    let of = |row: &SettingRow| (row.rogue, row.load_percent, row.error_percent);
    for group in rows.chunk_by(|a, b| of(a) == of(b)) {
        let first = &group[0];
        let mut lines = vec![HEAD.map(str::to_owned)];
        lines.extend(group.iter().map(cells));
        let mut widths = [0; 10];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.len().max(*width);
            }
        }
        let rule = widths.map(|width| "=".repeat(width)).join("  ");
        out += &format!(
            "Load {} %, errors up to {} %{}, {} jobs:\n\n{rule}\n",
            first.load_percent,
            first.error_percent,
            if first.rogue { ", a rogue" } else { "" },
            first.jobs,
        );
        for (number, line) in lines.iter().enumerate() {
            let mut cells = line.iter().zip(widths);
            let (name, width) = cells.next().expect("a first column");
            let mut text = format!("{name:<width$}");
            for (cell, width) in cells {
                text += &format!("  {cell:>width$}");
            }
            out += &format!("{text}\n");
            if number == 0 {
                out += &format!("{rule}\n");
            }
        }
        out += &format!("{rule}\n\n");
    }
    out
}

/// `pbs-vmstudy compare-report [--json]`: of the runs on standard input.
pub fn report(mut words: impl Iterator<Item = String>) -> Verdict {
    let is_json = match words.next().as_deref() {
        None => false,
        Some("--json") => true,
        Some(word) => return Err(format!("unknown option {word}")),
    };
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input")?;
    let rows = rows(parse(&text)?);
    if rows.is_empty() {
        return Err("nothing was measured".into());
    }
    if is_json {
        let document = Document { schema: SCHEMA, rows };
        println!("{}", serde_json::to_string_pretty(&document).map_err(|e| e.to_string())?);
    } else {
        print!("{}", tables(&rows));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::Beside;
    use pbs_gen::deadline_jobs::{DeadlineJob, Setting};

    fn outcome(deadline_ms: u64, ended_ms: Option<u64>, rogue: bool) -> Outcome {
        Outcome {
            job: DeadlineJob {
                release_ns: 10_000_000,
                deadline_ns: deadline_ms * 1_000_000,
                planned_insns: 2_500_000,
                real_insns: 2_500_000,
                rogue,
            },
            accepted: ended_ms.is_some(),
            ended_ns: ended_ms.map(|ms| ms * 1_000_000),
        }
    }

    fn run(jobs: Vec<Outcome>) -> Run {
        Run {
            scheduler: Scheduler::Fifo,
            setting: Setting { load_percent: 100, error_percent: 0, rogue: false, seed: 1 },
            jobs,
            switches: 9,
            all_switches: 50,
            plans: 0,
            lasted_ns: 500_000_000,
            beside: Beside { wakeups: 4, longest_wait_ns: 3_000_000, waited_ns: 4_000_000 },
        }
    }

    #[test]
    fn figures_are_those_of_the_jobs() {
        let rows = rows(vec![run(vec![
            outcome(50, Some(30), false),
            outcome(50, Some(70), false),
            outcome(50, None, false),
            outcome(50, Some(500), true),
        ])]);
        let [row] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!(row.name, "fifo-100-0");
        assert_eq!((row.jobs, row.accepted, row.kept), (3, 2, 1));
        assert_eq!(row.kept_of_accepted_percent, 50.0);
        assert_eq!(row.mean_response_ms, 40.0);
        assert_eq!(row.mean_slowdown, 4.0);
        assert_eq!((row.mean_tardiness_ms, row.greatest_tardiness_ms), (10.0, 20.0));
        assert_eq!(row.switches_per_job, 3.0);
        assert_eq!((row.all_switches_per_s, row.beside_wakeups_per_s), (100.0, 8.0));
        assert_eq!((row.beside_mean_wait_ms, row.beside_longest_wait_ms), (1.0, 3.0));
    }

    #[test]
    fn runs_travel_as_lines() {
        let run = run(vec![outcome(50, Some(30), false)]);
        let line = serde_json::to_string(&run).unwrap();
        assert_eq!(parse(&format!("noise\n{line}\n")).unwrap(), [run]);
        assert!(parse("{\"scheduler\":}\n").is_err());
    }

    #[test]
    fn a_table_has_a_row_for_each_scheduler() {
        let text = tables(&rows(vec![run(vec![outcome(50, Some(30), false)])]));
        assert!(text.contains("Load 100 %, errors up to 0 %, 1 jobs:"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("fifo ")), "{text}");
    }
}
