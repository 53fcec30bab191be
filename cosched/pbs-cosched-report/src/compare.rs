// SPDX-License-Identifier: GPL-2.0
//! All schedulers and determinations side by side.

use pbs_cosched::MOST_TASKS;
use pbs_text::{columns, ms};
use serde::Serialize;

use crate::measures::{faster, percent};
use crate::{Case, Measured, SchedulerName, Settings, When, WithAndWithout};

/// Results of a workload under each scheduler and determination.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Not co-scheduling. All measures are with slow-downs if these are known.
    pub without: Measured,
    /// Co-scheduling.
    pub rows: Vec<ComparisonRow>,
    /// Brute force was not asked, as more tasks wait than it takes.
    pub oracle_left_out: bool,
    /// Whether tasks slow each other. The random schedulers decide without that.
    pub with_slowdowns: bool,
}

/// Result of the workload under one scheduler and determination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Name of the determination.
    pub determination: &'static str,
    /// The makespan without over that with.
    pub speed_up: f64,
    /// Number of arrivals at which co-scheduling was necessary.
    pub necessary: usize,
    /// Number of arrivals at which everything was mapped anew.
    pub taken: usize,
    /// Measures of the result.
    pub measured: Measured,
}

/// Simulates the arrivals of a case under each scheduler and determination. The scheduler and the
/// determination of the settings are ignored.
///
/// # Errors
///
/// All faults of the workload.
pub fn compare(case: &Case<'_>, settings: &Settings) -> Result<Compared, Vec<String>> {
    let (workload, platform, names) = (case.workload, case.platform, &case.names);
    let too_many = workload.tasks.len() > MOST_TASKS;
    let without = case.slowed_without();
    let mut rows = Vec::new();
    for who in SchedulerName::ALL {
        if who == SchedulerName::Oracle && too_many {
            continue;
        }
        for when in When::ALL {
            if when == When::Never {
                continue;
            }
            let settings = Settings { who, ..*settings };
            let run = case.simulate(&settings.options(when, workload.tasks.len()))?;
            let both = WithAndWithout::new(workload, platform, names, &without, &run.timeline);
            let decisions = || run.decisions.iter();
            rows.push(ComparisonRow {
                scheduler: who.name(),
                determination: when.name(),
                speed_up: both.speed_up,
                necessary: decisions().filter(|of| of.necessity.is_necessary()).count(),
                taken: decisions().filter(|of| of.taken).count(),
                measured: both.with,
            });
        }
    }
    Ok(Compared {
        without: Measured::new(workload, platform, names, &without),
        rows,
        with_slowdowns: case.slowed.is_some(),
        oracle_left_out: too_many,
    })
}

impl Compared {
    /// For people: determinations that came to the same are one row.
    pub fn text(&self) -> String {
        let titles = [
            "SCHEDULER",
            "DETERMINATION",
            "MAKESPAN, ms",
            "SPEED-UP",
            "TURNAROUNDS, ms",
            "Δ, ms",
            "LATE",
            "LOAD",
            "NECESSARY",
            "TAKEN",
        ];
        let mut lines = vec![titles.map(String::from).to_vec()];
        let line = |scheduler: &str, when: &str, of: &Measured, speed_up, asked, taken| {
            vec![
                scheduler.to_string(),
                when.to_string(),
                ms(of.makespan_ns),
                speed_up,
                ms(of.turnarounds_ns),
                ms(of.delta_ns),
                of.misses.to_string(),
                percent(of.load),
                asked,
                taken,
            ]
        };
        let none = || String::new();
        lines.push(line("none", "never", &self.without, none(), none(), none()));
        let mut shown: Vec<(&ComparisonRow, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let is_same = |other: &ComparisonRow| {
                let same = ComparisonRow { determination: other.determination, ..row.clone() };
                same == *other
            };
            match shown.iter_mut().find(|(other, _)| is_same(other)) {
                Some((_, whens)) => whens.push(row.determination),
                None => shown.push((row, vec![row.determination])),
            }
        }
        for (row, whens) in shown {
            lines.push(line(
                row.scheduler,
                &whens.join(", "),
                &row.measured,
                faster(row.speed_up),
                row.necessary.to_string(),
                row.taken.to_string(),
            ));
        }
        let mut text = columns(&lines, 2);
        if self.with_slowdowns {
            text += "Times are with slow-downs; the random schedulers do not regard them.\n";
        }
        if self.oracle_left_out {
            text += &format!("The oracle takes at most {MOST_TASKS} tasks, and was left out.\n");
        }
        text
    }
}
