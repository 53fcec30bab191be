// SPDX-License-Identifier: GPL-2.0
//! Outcomes of jobs, as text.

use pbs_history::Outcome;
use pbs_node::{JobOutcome, TaskOutcome};
use pbs_report::Deadline;
use pbs_text::{columns, grouped, ms, shown};

use crate::output::{counted, share};

/// The deadline that was promised to a job, on the clock of the events.
pub(super) fn deadline(job: &JobOutcome) -> Option<Deadline> {
    if job.best_effort {
        return None;
    }
    let at = |after_ns: u64| job.submitted_ns.saturating_add(after_ns);
    Some(Deadline {
        process: None,
        name: job.name.clone(),
        deadline_ns: at(job.deadline_ns?),
        ended_ns: job.ended_ns.map(at),
        kept: job.kept,
    })
}

/// The jobs as a table, and below it what was learnt.
pub(super) fn table(jobs: &[JobOutcome]) -> String {
    let header = [
        "JOB",
        "RUN",
        "STRATEGY",
        "PLANNED ms",
        "ENDED ms",
        "DEADLINE ms",
        "KEPT",
        "SIGNALS",
        "REPLANS",
        "PLAN ERROR",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    let some_best_effort = jobs.iter().any(|job| job.best_effort);
    rows[0].extend(some_best_effort.then(|| "BEST EFFORT".into()));
    let dash = || "-".to_string();
    for job in jobs {
        rows.push(vec![
            job.name.clone(),
            job.run.map_or_else(dash, |run| run.to_string()),
            job.strategy.clone().unwrap_or_else(dash),
            job.planned_end_ns.map_or_else(dash, ms),
            job.ended_ns.map_or_else(dash, ms),
            job.deadline_ns.map_or_else(dash, ms),
            match (job.kept, job.deadline_ns) {
                (true, None) => dash(),
                (true, Some(_)) => "yes".into(),
                (false, _) if job.best_effort => "no".into(),
                (false, _) => "NO".into(),
            },
            grouped(job.signals),
            grouped(job.replans),
            job.plan_error_permille.map_or_else(dash, share),
        ]);
        let last = rows.last_mut().filter(|_| some_best_effort);
        let is_best_effort = if job.best_effort { "yes" } else { "no" };
        last.into_iter().for_each(|row| row.push(is_best_effort.into()));
    }
    let mut out = format!("\n{}", columns(&rows, 3));
    for job in jobs.iter().filter(|job| job.reason.is_some()) {
        out.push_str(&format!("Job {}: {}.\n", shown(&job.name), shown(&job.in_words())));
    }
    for job in jobs.iter().filter(|job| !job.tasks.is_empty()) {
        out.push_str(&format!("\nFigures of job {} and the next prediction:\n", job.name));
        let header = ["PROCESS", "TASK", "PLANNED", "FROM", "RETIRED", "OFF", "NEXT TIME"];
        let mut rows = vec![header.map(String::from).to_vec()];
        for task in &job.tasks {
            rows.push(task_row(task));
        }
        out.push_str(&columns(&rows, 2));
    }
    out
}

fn task_row(task: &TaskOutcome) -> Vec<String> {
    let ended = task.outcome == Outcome::Complete;
    let off = task.retired_insns.abs_diff(task.planned_insns);
    let planned = u128::from(task.planned_insns);
    let permille = (u128::from(off) * 1000 + planned / 2).checked_div(planned);
    let sign = match task.retired_insns.cmp(&task.planned_insns) {
        std::cmp::Ordering::Less => "−",
        std::cmp::Ordering::Equal => "",
        std::cmp::Ordering::Greater => "+",
    };
    vec![
        task.process.clone(),
        task.task.clone(),
        grouped(task.planned_insns),
        match task.planned_from_runs {
            None => "-".into(),
            Some(0) => "user".into(),
            Some(runs) => counted(runs as u64, "run", "runs"),
        },
        grouped(task.retired_insns),
        match permille {
            Some(permille) if ended => format!("{sign}{}", share(permille as u64)),
            _ => task.outcome.to_string(),
        },
        task.next_insns.map_or_else(|| "-".into(), grouped),
    ]
}

/// A job of which a program failed.
#[cfg(test)]
pub(super) fn failed() -> JobOutcome {
    JobOutcome {
        name: "sort".into(),
        run: Some(7),
        kind: pbs_history::Kind::Plan,
        strategy: None,
        submitted_ns: 0,
        planned_end_ns: None,
        best_effort: false,
        deadline_ns: Some(5),
        ended_ns: None,
        kept: false,
        reason: Some("failed (exit 3): sort of process 2".into()),
        signals: 0,
        replans: 0,
        outcome: Some(Outcome::Failed),
        plan_error_permille: None,
        tasks: vec![TaskOutcome {
            process: "sort".into(),
            task: "0".into(),
            planned_insns: 5,
            planned_from_runs: Some(2),
            low_insns: None,
            high_insns: Some(7),
            source: Some(pbs_history::Source::History),
            retired_insns: 6,
            peak_memory_bytes: 1,
            outcome: Outcome::Complete,
            next_insns: Some(6),
        }],
        exits: Vec::new(),
        usage: pbs_history::RunUsage::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of jobs has the outcome and the reason of each that did not do all in time.
    #[test]
    fn a_job_that_failed_says_why() {
        let text = table(&[failed()]);
        assert!(text.contains("\nJob sort: failed (exit 3): sort of process 2.\n"), "{text}");
    }
}
