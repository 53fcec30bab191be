// SPDX-License-Identifier: GPL-2.0
//! The commands for clusters of many nodes.

mod ask;
mod doctor;
mod ledger;
mod ran;
mod replay;
mod serve;
mod show;
mod site;
mod systems;
mod whole;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::output::Output;

const CLUSTER_HELP: &str = "\
Examples:
  pbsctl cluster check site.toml
  pbsctl cluster new --site site.toml
  pbsctl cluster alloc --res rset=2:ncpus=16:mem=12g,place=scatter -t 4h -N run -- ./app
  pbsctl cluster alloc --res rset=ncpus=4 -t 1h --deadline +6h -J 0-99 -- ./part
  pbsctl cluster alloc --res rset=ncpus=1 -t 5m --depend afterok:7 -- ./collect
  pbsctl cluster info
  pbsctl cluster why 7
  pbsctl cluster node offline node03 --why 'disk is full'
  pbsctl cluster plan --gantt plan.svg
  pbsctl cluster advance +2h
  pbsctl cluster serve --slurm
  pbsctl cluster workload --jobs 10000 --per-day 20000 --output trace.swf
  pbsctl cluster replay trace.swf --site site.toml
  pbsctl cluster replay --generate lublin --cores 128 --policy easy,planned --seeds 3
  pbsctl cluster whole --jobs 100
  pbsctl cluster doctor --conf /etc/slurm/slurm.conf
  pbsctl --json cluster replay trace.swf --estimates perfect | jq '.policies[].wait_s'";

#[derive(Args, Debug)]
#[command(after_help = CLUSTER_HELP)]
pub(crate) struct ClusterOptions {
    #[command(subcommand)]
    what: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Check the description of a cluster, and say what it has
    Check {
        /// The site's file
        #[arg(value_name = "SITE")]
        site: PathBuf,
    },

    /// Say what has to be changed in Slurm before its jobs can be planned
    ///
    /// Reads slurm.conf with all that it includes, plugstack.conf and the hooks beside it;
    /// Slurm is not asked, and nothing is changed.
    Doctor(doctor::DoctorOptions),

    /// Replay a trace under several schedulers, and compare what they make of it
    ///
    /// The trace is in the Standard Workload Format. Every job is known by its cores, its
    /// run time and what its user asked for; a job that runs longer than that is ended
    /// then. FCFS, EASY and conservative backfilling see the cores as one pool; the planner
    /// maps onto the nodes of the site.
    Replay(replay::ReplayOptions),

    /// Compare runs of the same jobs under Slurm, planned by one and by another
    ///
    /// A file has what `squeue -h -a -t all -o '%j %V %S %e %l %T %N'` printed with
    /// SLURM_TIME_FORMAT=%s. A job called NUMBER.SECONDS.SUBMITTED was submitted then, and has
    /// its deadline so long after that.
    Ran(ran::RanOptions),

    /// Write a trace of jobs like those of a real cluster
    ///
    /// The sizes, run times and estimates are drawn as those published of OCuLUS (Keller,
    /// section 6), or by the model of Lublin and Feitelson (2003); the same options give the
    /// same jobs on every machine.
    Workload(replay::WorkloadOptions),

    /// Simulate a cluster whose nodes run plans, beside one without plans
    Whole(whole::WholeOptions),

    /// Make a ledger: the file in which requests and their plan are kept
    ///
    /// Its clock is virtual: it stands until `advance` lets it go on, and what is started
    /// runs as long as `--run` said.
    New(ledger::NewOptions),

    /// Plan by another description of the cluster from now on
    Site(ledger::SiteOptions),

    /// Let time go on: requests start, end, move up
    Advance(ledger::AdvanceOptions),

    /// Carry out what is planned, in real time: on this machine, or by Slurm
    ///
    /// The cluster is one node: this one, whose service (pbsd) runs what is started. A
    /// request's command is a job file (see pbs-job(5)), and what is left of its time is the
    /// job's deadline. All programs run as the user who calls this, in this directory.
    /// Meanwhile others ask: the ledger is free between two looks.
    ///
    /// With --slurm the cluster is a partition of Slurm, whose jobs are held, planned and
    /// started by Slurm where and when they are planned. Run it as SlurmUser; `pbsctl cluster
    /// doctor --site` writes the site, and says what Slurm lacks. Meanwhile others read the
    /// ledger.
    Serve(serve::ServeOptions),

    /// Ask for nodes, and be told from when to when they are there
    ///
    /// A script's lines that begin with #CCS are read as options; those of the command line
    /// win.
    Alloc(ask::AllocOptions),

    /// Hold nodes for requests that come later
    Reserve(ask::ReserveOptions),

    /// Plan a request as something else, if there is a place for that
    Alter(ask::AlterOptions),

    /// Give a running request more or fewer of its chunks
    ///
    /// More are given where they are free until its end; fewer give back the dearest nodes.
    Resize(ask::ResizeOptions),

    /// Let a running request go on for longer
    Extend(ask::ExtendOptions),

    /// Keep what was asked for provisionally
    Confirm(ask::IdsOptions),

    /// End requests, or take them back
    Kill(ask::IdsOptions),

    /// Show requests: where they stand, when they start and end
    Info(show::InfoOptions),

    /// Say why a request does not start earlier
    Why(show::WhyOptions),

    /// Take nodes out of use and back, or show which are out
    Node(show::NodeOptions),

    /// Show what limits a user or group has
    Limits(show::LimitsOptions),

    /// Show the plan of the whole machine, as a table or a picture
    Plan(show::PlanOptions),

    /// Say what was asked for and used so far
    Stat(show::StatOptions),

    /// Show several clusters at once: all ledgers of a directory
    Systems(systems::SystemsOptions),
}

pub(crate) fn cluster(out: Output, options: &ClusterOptions) -> Result<ExitCode, Failure> {
    match &options.what {
        ClusterCommand::Check { site } => site::check(out, site)?,
        ClusterCommand::Doctor(options) => return doctor::doctor(out, options),
        ClusterCommand::Replay(options) => replay::replay_trace(out, options)?,
        ClusterCommand::Ran(options) => ran::ran(out, options)?,
        ClusterCommand::Workload(options) => replay::write_workload(out, options)?,
        ClusterCommand::Whole(options) => whole::whole(out, options)?,
        ClusterCommand::New(options) => ledger::new(out, options)?,
        ClusterCommand::Site(options) => ledger::site(out, options)?,
        ClusterCommand::Advance(options) => ledger::advance(out, options)?,
        ClusterCommand::Serve(options) => serve::run(options)?,
        ClusterCommand::Alloc(options) => ask::alloc(out, options)?,
        ClusterCommand::Reserve(options) => ask::reserve(out, options)?,
        ClusterCommand::Alter(options) => ask::alter(out, options)?,
        ClusterCommand::Resize(options) => ask::resize(out, options)?,
        ClusterCommand::Extend(options) => ask::extend(out, options)?,
        ClusterCommand::Confirm(options) => ask::confirm(out, options)?,
        ClusterCommand::Kill(options) => ask::kill(out, options)?,
        ClusterCommand::Info(options) => show::info(out, options)?,
        ClusterCommand::Why(options) => show::why(out, options)?,
        ClusterCommand::Node(options) => show::node(out, options)?,
        ClusterCommand::Limits(options) => show::limits(out, options)?,
        ClusterCommand::Plan(options) => show::plan(out, options)?,
        ClusterCommand::Stat(options) => show::stat(out, options)?,
        ClusterCommand::Systems(options) => systems::systems(out, options)?,
    }
    Ok(ExitCode::SUCCESS)
}
