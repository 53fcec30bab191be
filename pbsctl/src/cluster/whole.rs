// SPDX-License-Identifier: GPL-2.0
//! The command that simulates a cluster whose nodes run plans.

use clap::Args;
use pbs_cluster_sim::whole::{compare, Comparison, Format, Options};

use crate::failure::Failure;
use crate::output::{counted, Output};

const WHOLE_HELP: &str = "\
Jobs with deadlines come to a cluster. Each takes cores of one node, and what runs there has
tasks of known length, which deviate. Under \"planned\" the cluster's planner accepts a job
only if it can be over by its deadline; at its start the node makes a plan for just its cores
and runs it with the policy of the kernel, answers what it signals with new plans, and says if
it will be late. Then the job gets up to 10 % more time where nobody else has the cores, or
is ended at the end of its time. Under \"no node plans\" the cluster is planned and nodes
are not; under \"no plans, 5 % left\" they leave as much time to others as plans have to. EASY
and FCFS take all jobs, and run them without plans.

Examples:
  pbsctl cluster whole
  pbsctl cluster whole --deviation 0            # everything takes as long as planned
  pbsctl cluster whole --load 1500 --jobs 500   # half as much again as there is room for
  pbsctl cluster whole --nodes 16 --cores 4 --seed 7
  pbsctl --json cluster whole | jq '.policies[] | {policy, kept_of_all_permille}'

The same options give the same numbers on every machine.";

#[derive(Args, Debug)]
#[command(after_help = WHOLE_HELP)]
pub(super) struct WholeOptions {
    /// How many nodes there are
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    nodes: u32,

    /// How many cores each has
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    cores: u32,

    /// How many processes jobs have for each of their cores at most; one at the least
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: u32,

    /// How many jobs come
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,

    /// How much tasks deviate from what is planned, in thousandths: the standard deviation of
    /// all, and with 100 the scenarios of `pbsctl gen` as they are in half of the jobs
    #[arg(long, value_name = "PERMILLE", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(0..=300))]
    deviation: u64,

    /// Core time that is asked for while jobs come, of what there is, in thousandths
    #[arg(long, value_name = "PERMILLE", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    load: u64,

    /// Another seed, other jobs
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
        load_permille: options.load,
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
