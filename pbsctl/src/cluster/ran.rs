// SPDX-License-Identifier: GPL-2.0
//! Comparison of runs of the same jobs under different schedulers.

use std::path::PathBuf;

use clap::Args;
use pbs_cluster_sim::metrics::Metrics;
use pbs_slurm::{gantt, metrics_of, ran_of, Names};
use pbs_text::{shown as foreign, Format, Table};
use serde::Serialize;

use crate::failure::Failure;
use crate::files::{pictures, read, write};
use crate::output::{counted, Output};

#[derive(Args, Debug)]
pub(super) struct RanOptions {
    /// Runs to compare: a name for each, and the file with the output of squeue
    #[arg(value_name = "NAME=FILE", required = true, value_parser = named)]
    runs: Vec<(String, PathBuf)>,

    /// Number of nodes, each for one job at a time
    #[arg(long, value_name = "N", default_value_t = 16)]
    nodes: u64,

    /// Names of jobs are NUMBER.DEADLINE or NUMBER.DEADLINE.SUBMITTED, in seconds: the deadline is
    /// counted from the submission
    #[arg(long)]
    deadlines_in_names: bool,

    /// Draw each run to the file NAME.svg in this directory
    #[arg(long, value_name = "DIR", value_parser = pictures())]
    gantt: Option<PathBuf>,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or("write NAME=FILE, such as planned=jobs.txt")?;
    Ok((name.into(), file.into()))
}

#[derive(Serialize)]
struct Compared {
    nodes: u64,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    name: String,
    #[serde(flatten)]
    metrics: Metrics,
}

pub(super) fn ran(out: Output, options: &RanOptions) -> Result<(), Failure> {
    let names = if options.deadlines_in_names { Names::WithDeadlines } else { Names::Plain };
    let mut runs = Vec::new();
    for (name, file) in &options.runs {
        let invalid = |why: String| Failure::Failed(format!("{}: {why}", file.display()));
        let ran = ran_of(&read(file)?, names).map_err(invalid)?;
        let failed: Vec<&str> =
            ran.iter().filter(|of| of.has_failed()).map(|of| of.name.as_str()).collect();
        if !failed.is_empty() {
            let jobs = counted(failed.len() as u64, "job has", "jobs have");
            let which = failed.join(", ");
            let which = foreign(&which);
            return Err(invalid(format!(
                "{jobs} failed ({which}); the run can't be compared, so leave it out or repeat it"
            )));
        }
        if let Some(directory) = &options.gantt {
            let picture = directory.join(format!("{name}.svg"));
            write(&picture, &gantt(&format!("{name}: jobs as they ran"), &ran))?;
        }
        runs.push(Run { name: name.clone(), metrics: metrics_of(&ran, options.nodes) });
    }
    let compared = Compared { nodes: options.nodes, runs };
    out.named("cluster-ran").print(&compared, || text(&compared))
}

fn text(compared: &Compared) -> String {
    let titles = [
        "run",
        "jobs",
        "ran",
        "deadlines kept",
        "of those that ran",
        "wait, mean",
        "max",
        "bounded slowdown",
        "makespan",
        "used",
    ];
    let mut table = Table::new(&titles, 1);
    for Run { name, metrics } in &compared.runs {
        let percent = |part: usize, of: usize| match (metrics.deadlines, of) {
            // Without deadlines none was kept, and none was missed.
            (0, _) | (_, 0) => "-".into(),
            _ => format!("{:.1} %", 100.0 * part as f64 / of as f64),
        };
        table.push(vec![
            name.clone(),
            (metrics.jobs + metrics.unstarted).to_string(),
            metrics.jobs.to_string(),
            percent(metrics.deadlines_kept, metrics.deadlines),
            percent(metrics.deadlines_kept, metrics.jobs),
            format!("{:.0} s", metrics.wait_s.mean),
            format!("{:.0} s", metrics.wait_s.max),
            format!("{:.2}", metrics.bounded_slowdown.mean),
            format!("{} s", metrics.makespan_s),
            format!("{:.3}", metrics.utilisation),
        ]);
    }
    table.print(Format::Text)
}
