// SPDX-License-Identifier: GPL-2.0
//! The commands for clusters of many nodes.

mod accounting;
mod ask;
mod blocks;
mod doctor;
mod examples;
mod habits;
mod ledger;
mod lost;
mod numbers;
mod optimiser;
mod ran;
mod reach;
mod replay;
mod replay_cluster;
mod replay_optimiser;
mod replay_policy;
mod replay_runs;
mod replay_timed;
mod requirements;
mod script_options;
mod serve;
mod show;
mod site;
mod systems;
mod trace_file;
mod watch;
mod whole;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::given::Given;
use crate::output::Output;

pub(crate) use habits::hint_of_others;

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
    /// Check the description of a cluster and summarize it
    #[command(after_help = examples::CHECK)]
    Check {
        /// Site file: the description of the cluster
        #[arg(value_name = "SITE")]
        site: PathBuf,
    },

    /// List the changes that Slurm needs before its jobs can be planned
    ///
    /// Reads slurm.conf with all files that it includes, plugstack.conf and the hooks beside it.
    /// Slurm is not contacted, and nothing is changed.
    Doctor(doctor::DoctorOptions),

    /// Replay a trace under several schedulers and compare the results
    ///
    /// The trace is in the Standard Workload Format. Each job has a number of cores, a run time and
    /// the time that its user requested; a job that runs longer is ended at the requested time.
    /// FCFS, EASY and conservative backfilling treat the cores as one pool; the planner maps jobs
    /// onto the nodes of the site. Lines that are left out are counted by reason, with the first of
    /// them.
    #[command(after_help = examples::REPLAY)]
    Replay(Given<replay::ReplayOptions>),

    /// Convert Slurm's accounting to a trace that can be replayed
    ///
    /// The file has what sacct prints for all jobs of a time; the example below has the command. A
    /// job is submitted when it could start: the time before, in which it waited for its own time
    /// or another job, is no wait. Users, accounts and names become numbers.
    #[command(after_help = examples::ACCOUNTING)]
    Accounting(accounting::AccountingOptions),

    /// Compare runs of the same jobs under Slurm with different schedulers
    ///
    /// Each file has the output of `squeue -h -a -t all -o '%j %V %S %e %l %T %N'` with
    /// SLURM_TIME_FORMAT=%s.
    #[command(after_help = examples::RAN)]
    Ran(ran::RanOptions),

    /// List the jobs that Slurm lost in a crash
    ///
    /// slurmctld loses jobs that were submitted shortly before it crashes. Their users must submit
    /// them again.
    #[command(after_help = examples::LOST)]
    Lost(lost::LostOptions),

    /// Generate a trace of jobs like those of a real cluster
    ///
    /// Sizes, run times and estimates follow the published figures of OCuLUS (Keller, section 6) or
    /// the model of Lublin and Feitelson (2003). The same options give the same jobs on every
    /// machine.
    #[command(after_help = examples::WORKLOAD)]
    Workload(Given<replay::WorkloadOptions>),

    /// Simulate a cluster whose nodes run plans, and compare it with one without plans
    Whole(whole::WholeOptions),

    /// Create a ledger: the file with the requests and their plan
    ///
    /// The ledger's clock is virtual: it stands still until `advance` moves it, and a started
    /// request runs as long as its `--run` declares.
    #[command(after_help = examples::NEW)]
    New(ledger::NewOptions),

    /// Replace the description of the cluster, and plan with the new one from now on
    #[command(after_help = examples::SITE)]
    Site(ledger::SiteOptions),

    /// Advance the clock: requests start, end and move up
    #[command(after_help = examples::ADVANCE)]
    Advance(ledger::AdvanceOptions),

    /// Carry out the plan in real time, on this node or with Slurm
    ///
    /// The cluster is one node: this one, whose service (pbsd) runs what is started. The command of
    /// a request is a job file (see pbs-job(5)); the rest of the request's time is the job's
    /// deadline. All programs run as the user who calls this command, in this directory. Others can
    /// submit requests meanwhile: the ledger is free between two steps.
    ///
    /// With --slurm the cluster is a partition of Slurm. Its jobs are held and planned; Slurm
    /// starts them at the planned times on the planned nodes. Run this command as SlurmUser.
    /// `pbsctl cluster doctor --site` writes the site file and lists what Slurm lacks. Others can
    /// read the ledger meanwhile.
    #[command(after_help = examples::SERVE)]
    Serve(Given<serve::ServeOptions>),

    /// Request nodes, and print when and where the request will run
    ///
    /// Lines of a script that begin with #CCS are read as options; the command line takes
    /// precedence.
    #[command(after_help = examples::ALLOC)]
    Alloc(ask::AllocOptions),

    /// Reserve nodes for later requests
    #[command(after_help = examples::RESERVE)]
    Reserve(ask::ReserveOptions),

    /// Change the requirements of a request, if the new ones can be planned
    #[command(after_help = examples::ALTER)]
    Alter(ask::AlterOptions),

    /// Change the number of chunks of a running request
    ///
    /// Chunks are added if they are free until its end; removed chunks free the most expensive
    /// nodes.
    #[command(after_help = examples::RESIZE)]
    Resize(ask::ResizeOptions),

    /// Extend the time of a running request
    #[command(after_help = examples::EXTEND)]
    Extend(ask::ExtendOptions),

    /// Confirm provisional requests
    #[command(after_help = examples::CONFIRM)]
    Confirm(ask::IdsOptions),

    /// End or withdraw requests
    #[command(after_help = examples::KILL)]
    Kill(ask::IdsOptions),

    /// List requests with their state, start and end; or show one in detail
    #[command(after_help = examples::INFO)]
    Info(show::InfoOptions),

    /// Explain why a request does not start earlier
    #[command(after_help = examples::WHY)]
    Why(show::WhyOptions),

    /// Take nodes, or parts of them, out of use or put them back; or list those out of use
    #[command(after_help = examples::NODE)]
    Node(show::NodeOptions),

    /// List the limits of a user or a group
    #[command(after_help = examples::LIMITS)]
    Limits(show::LimitsOptions),

    /// Show the plan of the whole cluster, as a table or a picture
    #[command(after_help = examples::PLAN)]
    Plan(show::PlanOptions),

    /// Show statistics of requests and their use of the cluster
    #[command(after_help = examples::STAT)]
    Stat(show::StatOptions),

    /// Show the search for better plans: its work, the cost of the plan, and the errors of expected
    /// run times; needs the service
    #[command(after_help = examples::OPTIMISER)]
    Optimiser(optimiser::OptimiserOptions),

    /// Report events of requests and nodes as they happen; needs the service
    #[command(after_help = examples::WATCH)]
    Watch(watch::WatchOptions),

    /// Show several clusters at once: all ledgers of a directory
    #[command(after_help = examples::SYSTEMS)]
    Systems(systems::SystemsOptions),
}

pub(crate) fn cluster(out: Output, options: &ClusterOptions) -> Result<ExitCode, Failure> {
    match &options.what {
        ClusterCommand::Check { site } => site::check(out, site)?,
        ClusterCommand::Doctor(options) => return doctor::doctor(out, options),
        ClusterCommand::Replay(options) => replay::replay_trace(out, options)?,
        ClusterCommand::Accounting(options) => accounting::write_trace(out, options)?,
        ClusterCommand::Ran(options) => ran::ran(out, options)?,
        ClusterCommand::Lost(options) => lost::lost(out, options)?,
        ClusterCommand::Workload(options) => replay::write_workload(out, options)?,
        ClusterCommand::Whole(options) => whole::whole(out, options)?,
        ClusterCommand::New(options) => ledger::new(out, options)?,
        ClusterCommand::Site(options) => ledger::site(out, options)?,
        ClusterCommand::Advance(options) => ledger::advance(out, options)?,
        ClusterCommand::Serve(options) => serve::run(options)?,
        ClusterCommand::Alloc(options) => return ask::alloc(out, options),
        ClusterCommand::Reserve(options) => ask::reserve(out, options)?,
        ClusterCommand::Alter(options) => return ask::alter(out, options),
        ClusterCommand::Resize(options) => ask::resize(out, options)?,
        ClusterCommand::Extend(options) => ask::extend(out, options)?,
        ClusterCommand::Confirm(options) => ask::confirm(out, options)?,
        ClusterCommand::Kill(options) => ask::kill(out, options)?,
        ClusterCommand::Info(options) => return show::info(out, options),
        ClusterCommand::Why(options) => return show::why(out, options),
        ClusterCommand::Node(options) => show::node(out, options)?,
        ClusterCommand::Limits(options) => show::limits(out, options)?,
        ClusterCommand::Plan(options) => show::plan(out, options)?,
        ClusterCommand::Stat(options) => show::stat(out, options)?,
        ClusterCommand::Optimiser(options) => optimiser::optimiser(out, options)?,
        ClusterCommand::Watch(options) => watch::watch(out, options)?,
        ClusterCommand::Systems(options) => systems::systems(out, options)?,
    }
    Ok(ExitCode::SUCCESS)
}
