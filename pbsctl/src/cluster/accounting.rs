// SPDX-License-Identifier: GPL-2.0
//! Conversion of Slurm's accounting to a trace.

use std::path::PathBuf;

use clap::Args;
use jiff::tz::TimeZone;
use pbs_cluster_sim::{swf, Summary, TraceJob};
use pbs_site::parse_time_s;
use pbs_slurm::accounting;

use super::replay::{in_memory, Written};
use crate::failure::Failure;
use crate::files::{name, read, write};
use crate::output::{report, write_out, Output};

#[derive(Args, Debug)]
pub(super) struct AccountingOptions {
    /// File with the output of sacct; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Number of cores of the cluster, for the header of the trace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cores: Option<u64>,

    /// Write the trace to FILE instead of standard output. With --json, standard output has a
    /// summary of the jobs
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn write_trace(out: Output, options: &AccountingOptions) -> Result<(), Failure> {
    let file = name(&options.file);
    let zone = TimeZone::system();
    // What is no time is told with its line.
    let read = accounting(&read(&options.file)?, |text| parse_time_s(text, &zone).ok());
    let mut read = read.map_err(|why| Failure::Failed(format!("{file}: {why}")))?;
    let left_out = read.left_out.to_string();
    if !left_out.is_empty() {
        report(&format!("{file}: left out: {left_out}"));
    }
    if read.records.is_empty() {
        return Err(Failure::Failed(format!("{file}: it has no job that is over")));
    }
    if let Some(cores) = options.cores {
        read.header.push("MaxProcs", &cores.to_string());
    }
    let text = || in_memory(|to| swf::write_records(to, &read.header, &read.records));
    if let Some(output) = &options.output {
        write(output, &text())?;
    }
    match (&options.output, out.json) {
        (_, true) => {
            // Lines without a job, such as those of cancelled ones, count in a replay.
            let jobs: Vec<TraceJob> = read.records.iter().filter_map(|of| of.job().ok()).collect();
            let written = Written { workload: Summary::of(&jobs), published: None };
            out.named("cluster-workload").print(&written, String::new)
        }
        (Some(_), false) => Ok(()),
        (None, false) => write_out(&text()),
    }
}
