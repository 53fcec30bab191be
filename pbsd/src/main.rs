// SPDX-License-Identifier: GPL-2.0
//! The service of a node: jobs come over a socket while a plan runs.
//!
//! Three threads. One has the socket, and knows who asks; another has the node, its jobs
//! and the history, and does one thing after the other. Between them go requests
//! ([`pbsd::inbox`]) and notices. The third reads long requests (`pbs_socket`).

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Parser;
use pbs_job::{machine_from_toml, Machine};
use pbs_launch::cgroup::GroupLimits;
use pbs_launch::signals::Signals;
use pbs_launch::{cgroup, lower_timers, raise_open_files, stay_off};
use pbs_node::{
    planner_config, this_node, AccountOf, Aim, Error, Node, Options, RunAs, SchedulerCommand,
    Settings,
};
use pbs_plan::{Config, Dispatch};
use pbs_socket::{journal, notify, AccountFiles};
use pbsd::allocations::Allocations;
use pbsd::amounts::Amounts;
use pbsd::drained::Drained;
use pbsd::inbox::{inbox, Sender};
use pbsd::limits::Limits;
use pbsd::service::Service;
use pbsd::session::{serve, Notices};
use pbsd::teller::Teller;
use pbsd::topology::Topology;
use tokio::sync::broadcast;

/// Notices that who watches may be behind.
const NOTICES: usize = 1024;

/// Plan and run the jobs of all users of a node
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    /// Socket to listen on, unless systemd passes one
    #[arg(long, value_name = "PATH", default_value = pbs_node_api::SOCKET)]
    socket: PathBuf,

    /// File of all jobs: waiting, running and ended
    #[arg(long, value_name = "FILE", default_value = "/var/lib/pbs/history.db")]
    history: PathBuf,

    /// Machine to plan for, in TOML, instead of this node with all its CPUs
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,

    /// Share of a CPU that independent jobs may ask for at admission, in thousandths; 0: the
    /// search for plans alone admits jobs [default: that of the machine, or 900]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1000))]
    demand_permille: Option<u64>,

    /// Greatest number of steps of work for a request about jobs; the default takes 100 ms.
    /// Then the best plan found until then is the answer
    #[arg(long, value_name = "N", default_value_t = Settings::REQUEST_WORK,
          value_parser = clap::value_parser!(u64).range(1..))]
    max_work: u64,

    /// Device of the scheduling class
    #[arg(long, env = "PBS_DEVICE", value_name = "PATH", default_value = "/dev/pbs_plan")]
    device: PathBuf,

    /// Lease of plans: the time for which the node continues them without a renewal by this
    /// service. 0: for ever
    #[arg(long, value_name = "NS", default_value_t = 0)]
    lease_ns: u64,

    /// Limit the control group of each job to its requested memory
    #[arg(long)]
    limit_memory: bool,

    /// Tell the owner of a job when a process has more memory than was reserved for it: the largest
    /// peak of its earlier runs
    #[arg(long)]
    report_peaks: bool,

    /// Record which tasks run at the same time, on 2 to 16 CPUs, and choose the CPUs of jobs with
    /// the slow-downs that this shows
    #[arg(long)]
    learn_slowdowns: bool,

    /// Order in which processes of plans run: deadline, or thesis for slots that stay where
    /// they are planned
    #[arg(long, value_name = "WORD", default_value = "deadline", value_parser = dispatch)]
    dispatch: Dispatch,

    /// Let a command answer prediction failures, as in pbsctl sim: "command LINE". It is told of the
    /// jobs of all users
    #[arg(long, value_name = "WHO", value_parser = SchedulerCommand::from_option)]
    scheduler: Option<SchedulerCommand>,

    /// Give the command this time to answer, in seconds or with a unit [default: 1]
    #[arg(long, value_name = "SECONDS", requires = "scheduler",
          value_parser = SchedulerCommand::timeout_of)]
    scheduler_timeout: Option<Duration>,

    /// Run the command as this user, by name or number, instead of the user of the service
    #[arg(long, value_name = "USER", requires = "scheduler",
          value_parser = SchedulerCommand::user_of)]
    scheduler_user: Option<RunAs>,

    /// Let a command admit jobs, as in pbsctl job explain: "command LINE". It is told of the jobs
    /// of all users. Without a usable answer the built-in planner decides
    #[arg(long, value_name = "WHO", value_parser = SchedulerCommand::from_option)]
    admission: Option<SchedulerCommand>,

    /// Give the command that admits jobs this time to answer, in seconds or with a unit
    /// [default: 1]
    #[arg(long, value_name = "SECONDS", requires = "admission",
          value_parser = SchedulerCommand::timeout_of)]
    admission_timeout: Option<Duration>,

    /// Run the command that admits jobs as this user, by name or number, but not as root
    /// [default: nobody]
    #[arg(long, value_name = "USER", requires = "admission", value_parser = unprivileged)]
    admission_user: Option<RunAs>,

    /// Use no control groups: processes that a program leaves behind continue when its job is over
    #[arg(long)]
    no_cgroups: bool,

    #[command(flatten)]
    limits: Limits,

    /// Make it possible for systemd to start a service while jobs of the last one have memory
    /// limits, and exit
    #[arg(long, exclusive = true)]
    make_way: bool,
}

/// A user for a command that admits jobs, which needs no privilege.
fn unprivileged(text: &str) -> Result<RunAs, String> {
    let user = SchedulerCommand::user_of(text)?;
    if user.uid == 0 || user.gid == 0 {
        return Err("its user or group is root's; name another user".into());
    }
    Ok(user)
}

/// A dispatch by its name.
fn dispatch(name: &str) -> Result<Dispatch, String> {
    let found = Dispatch::ALL.into_iter().find(|dispatch| dispatch.name() == name);
    found.ok_or_else(|| "it must be deadline or thesis".into())
}

const EXAMPLES: &str = "\
Examples:
  pbsd                                      Run the service of this node
  pbsd --machine half.toml                  ... and plan only half of its CPUs
  pbsctl job submit job.toml                Submit a job
  pbsctl job list                           List jobs
  varlinkctl introspect /run/pbs/pbs.sock   Show its interface

SIGTERM ends it. Jobs continue, and the next service takes them over.";

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Problems of the machine's file have a line each.
            why.lines().for_each(|line| journal::warning(&format!("pbsd: {line}")));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), String> {
    if cli.make_way {
        return cgroup::make_way().map_err(|error| format!("control groups: {error}"));
    }
    let text = |error: Error| error.to_string();
    let job_pids = Some(cli.limits.job_pids as u64);
    let memory_bytes = cli.limit_memory.then_some(0);
    let counted = GroupLimits { memory_bytes, pids: job_pids };
    let cgroups = if cli.no_cgroups {
        None
    } else {
        cgroup::prepare(counted)
            .inspect_err(|why| {
                journal::warning(&format!(
                    "jobs have no control groups ({why}): processes that programs leave behind \
                     continue"
                ));
            })
            // The warning has told the reason.
            .ok()
    };
    let open_files = raise_open_files().map_err(|error| format!("open files: {error}"))?;
    let (limits, open_programs) = cli.limits.within(open_files);
    lower_timers(limits.job_timers as u64).map_err(|error| format!("timers: {error}"))?;
    let options = Options {
        open_programs: Some(open_programs),
        lease_ns: Some(cli.lease_ns),
        cgroups,
        limits_memory: cli.limit_memory,
        job_pids,
        checkpoint_ns: limits.save_seconds.saturating_mul(1_000_000_000),
        learns_slowdowns: cli.learn_slowdowns,
        reports_peaks: cli.report_peaks,
        ..Options::default()
    };
    // What users submit, and their environments, are for nobody else.
    private();
    // Before there is another thread, which must not take them.
    let signals = Signals::new().map_err(|error| format!("signals: {error}"))?;
    let (notices, _) = broadcast::channel(NOTICES);
    let teller = Teller::new(notices.clone());
    let mut node = Node::open(&cli.device, options, teller).map_err(text)?;
    if let Some(command) = &cli.scheduler {
        node.answer_with(SchedulerCommand {
            timeout: cli.scheduler_timeout.unwrap_or(command.timeout),
            run_as: cli.scheduler_user,
            ..command.clone()
        });
    }
    let machine = machine(cli, node.info().rate_insns_per_ms)?;
    // Programs are put where they are planned.
    let _ = stay_off(&machine);
    let settings = Settings {
        history: cli.history.clone(),
        ended: limits.ended(),
        account_of: account_of(),
        max_replans: u64::MAX,
        aim: Aim::Deadline,
        max_work: cli.max_work,
        config: Some(Config { dispatch: cli.dispatch as u64, ..planner_config(*node.config()) }),
    };
    // What cannot be read is told before anything is taken over.
    let drained = Drained::beside(&cli.history);
    let is_drained = drained.is_set();
    let is_drained =
        is_drained.map_err(|error| format!("{}: {error}", drained.path().display()))?;
    let amounts = Amounts::beside(&cli.history);
    let set = amounts.read().map_err(|error| format!("{}: {error}", amounts.path().display()))?;
    node.serve(machine, &settings).map_err(text)?;
    if is_drained {
        node.drain(true).map_err(text)?;
        journal::info("pbsd: the node is drained, as it was; pbsctl service resume ends that");
    }
    for (name, amount) in set {
        match node.set_amount(&name, amount) {
            Ok(()) => journal::info(&format!("pbsd: resource {name} has {amount}, as was set")),
            Err(error) => journal::warning(&format!("{}: {error}", amounts.path().display())),
        }
    }
    if cli.learn_slowdowns {
        node.learn_from_history().map_err(text)?;
    }
    if let Some(command) = &cli.admission {
        node.admit_with(SchedulerCommand {
            timeout: cli.admission_timeout.unwrap_or(command.timeout),
            run_as: Some(match cli.admission_user {
                Some(user) => user,
                None => unprivileged("nobody")
                    .map_err(|why| format!("--admission-user: {why}; name another user"))?,
            }),
            ..command.clone()
        })
        .map_err(text)?;
    }
    let (sender, mut inbox) = inbox().map_err(|error| error.to_string())?;
    let listener = match pbs_socket::handed_over() {
        Some(socket) => socket.into(),
        None => pbs_socket::listen(&cli.socket)
            .map_err(|error| format!("{}: {error}", cli.socket.display()))?,
    };
    let listening = thread::Builder::new().name("socket".into());
    let listening = listening.spawn(move || listen(listener, limits, &sender, &notices));
    listening.map_err(|error| format!("no thread could be started: {error}"))?;
    journal::info("pbsd: ready");
    notify::tell("READY=1");
    // Beside the socket: it is to be gone after a boot, as the socket is.
    let allocations = cli.socket.with_file_name("allocations");
    let allocations = Allocations::open(&allocations, Topology::of_this_machine());
    let served = Service::new(node, signals, allocations, limits, drained, amounts).run(&mut inbox);
    notify::tell("STOPPING=1");
    served.map_err(text)
}

/// The owners of subordinate users, as the files of this system have them at each question.
fn account_of() -> AccountOf {
    let files = Mutex::new(AccountFiles::default());
    AccountOf::new(move |uid| {
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        files.accounts().of(uid)
    })
}

/// Makes all files that this process creates from now on readable for its user only.
#[allow(unsafe_code)]
fn private() {
    // SAFETY: it only sets the mask.
    unsafe { libc::umask(0o077) };
}

fn machine(cli: &Cli, rate_insns_per_ms: u64) -> Result<Machine, String> {
    let machine = own_machine(cli, rate_insns_per_ms)?;
    Ok(Machine { demand_permille: cli.demand_permille.or(machine.demand_permille), ..machine })
}

fn own_machine(cli: &Cli, rate_insns_per_ms: u64) -> Result<Machine, String> {
    let Some(path) = &cli.machine else {
        return this_node(rate_insns_per_ms).map_err(|error| error.to_string());
    };
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
    machine_from_toml(&text).map_err(|problems| {
        let lines = problems.iter().map(|it| it.in_file(&file).to_string());
        lines.collect::<Vec<_>>().join("\n")
    })
}

/// The thread of the socket. Without it there is no service, so it ends with it.
fn listen(listener: UnixListener, limits: Limits, node: &Sender, notices: &Notices) {
    if let Err(error) = serve(listener, limits.of_connections(), node, notices) {
        journal::warning(&format!("pbsd: the socket failed: {error}"));
    }
    std::process::exit(1);
}
