// SPDX-License-Identifier: GPL-2.0
//! The command that simulates a cluster whose nodes run plans.

use clap::Args;
use pbs_cluster_sim::whole::{compare, Comparison, Format, Options};

use crate::failure::Failure;
use crate::output::{counted, Output};

const WHOLE_HELP: &str = "\
Jobs with deadlines arrive at a cluster. Each takes cores of one node and runs processes whose
tasks have known lengths, from which they deviate.

Under \"planned\", the planner of the cluster accepts a job only if it can meet its deadline. At
the start of the job its node makes a plan for these cores, runs it with the policy of the
kernel, answers prediction failures with new plans, and reports if the job will be late. A late
job gets up to 10 % more time if nobody else has the cores; otherwise it is ended at the end of
its time. Under \"no node plans\" the cluster is planned and its nodes are not. Under \"no
plans, 5 % left\" these nodes leave as much time to others as plans do. EASY and FCFS accept all
jobs, and run them without plans.

Examples:
  pbsctl cluster whole
  pbsctl cluster whole --deviation 0            # tasks take as long as planned
  pbsctl cluster whole --load 150 --jobs 500   # half as much again as the cluster can run
  pbsctl cluster whole --nodes 16 --cores 4 --seed 7
  pbsctl --json cluster whole | jq '.policies[] | {policy, kept_of_all_permille}'

The same options give the same numbers on every machine.";

#[derive(Args, Debug)]
#[command(after_help = WHOLE_HELP)]
pub(super) struct WholeOptions {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    nodes: u32,

    /// Number of cores of each node
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    cores: u32,

    /// Greatest number of processes of a job for each of its cores; the least is one
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: u32,

    /// Number of jobs
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,

    /// Standard deviation of tasks from their plan, in thousandths. In half of the jobs it also
    /// scales a scenario of `pbsctl plan generate`, which 100 leaves as it is
    #[arg(long, value_name = "PERMILLE", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(0..=300))]
    deviation: u64,

    /// Load while jobs arrive: requested core time, in percent of the capacity
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    load: u64,

    /// Seed of the jobs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub(super) fn whole(out: Output, options: &WholeOptions) -> Result<(), Failure> {
    let comparison = compare(&Options {
        nodes: options.nodes,
        cores: options.cores,
        most_processes_per_core: options.processes,
        jobs: options.jobs as usize,
        deviation_permille: options.deviation,
        load_permille: options.load * 10,
        seed: options.seed,
        ..Options::default()
    })?;
    out.named("cluster-whole").print(&comparison, || text(&comparison))
}

fn text(comparison: &Comparison) -> String {
    let options = &comparison.options;
    format!(
        "{} on {} of {} with deadlines\n\n{}",
        counted(options.jobs as u64, "job", "jobs"),
        counted(options.nodes.into(), "node", "nodes"),
        counted(options.cores.into(), "core", "cores"),
        comparison.text(Format::Text)
    )
}
