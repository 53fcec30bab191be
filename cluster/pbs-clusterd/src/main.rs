// SPDX-License-Identifier: GPL-2.0
//! The service of a cluster.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum};
use pbs_clusterd::call::Call;
use pbs_clusterd::limits::{Limits, CALLS};
use pbs_clusterd::pace::{Clock, Pace};
use pbs_clusterd::service::Service;
use pbs_clusterd::session::{notices, serve, stop, Stopped, WeakNotices};
use pbs_clusterd::slurm::Steered;
use pbs_engine_node::Owners;
use pbs_launch::signals::Signals;
use pbs_manager::ledger::{Ledger, Served};
use pbs_manager::{only_mine, Engine, Manager, Simulated};
use pbs_slurm::steer::Link;
use pbs_slurm::{Relay, SteeringOptions};
use pbs_socket::{inbox, journal, notify, Inbox, Sender};
use pbs_uapi::clock::unix_s;

/// Plan the requests of all users of a cluster
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    /// Socket to listen on, unless systemd passes one
    #[arg(long, value_name = "PATH", default_value = pbs_cluster_api::SOCKET)]
    socket: PathBuf,

    /// Ledger: the file with the requests and their plan, as pbsctl cluster new creates it
    #[arg(long, value_name = "FILE", default_value = "/var/lib/pbs/cluster.db")]
    ledger: PathBuf,

    /// Engine of the requests: a simulated one, the service of this node (pbsd), or Slurm
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineKind::Simulated)]
    engine: EngineKind,

    /// Socket of the service of this node, for --engine node
    #[arg(long, value_name = "PATH", default_value = pbs_node_api::SOCKET)]
    node_socket: PathBuf,

    #[command(flatten)]
    slurm: SteeringOptions,

    #[command(flatten)]
    limits: Limits,
}

/// Engines of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EngineKind {
    /// Run nothing: a request takes the run time that it declares, or all that it may
    Simulated,
    /// The command of a request is a job file, which the service of this node runs as its owner
    Node,
    /// Requests are the jobs that users submit to a partition of Slurm, which starts them at their
    /// planned times on their planned nodes. Run the service as SlurmUser
    Slurm,
}

const EXAMPLES: &str = "\
Examples:
  pbsctl cluster new --site site.toml --ledger /var/lib/pbs/cluster.db
  pbs-clusterd                                  Run the service of the cluster
  pbsctl cluster alloc --res rset=ncpus=4 -t 1h Submit a request
  varlinkctl introspect /run/pbs/cluster.sock   Show its interface

Requests start and end by the clock of this machine. With --engine node, their commands are job
files (pbs-job(5)) with whole paths, and the service of this node runs each as its owner. The site
is this one node then.

With --engine slurm, users submit with sbatch to a partition of Slurm that is set up for it
(pbsctl cluster doctor). The service runs as SlurmUser, and refuses other submissions. Without an
engine nothing is run.

SIGTERM ends it. The next service continues with the same plan.";

fn main() -> ExitCode {
    let mut command = Cli::command();
    let given = command.get_matches_mut();
    let cli = match Cli::from_arg_matches(&given) {
        Ok(cli) => cli,
        Err(error) => error.format(&mut command).exit(),
    };
    if let Some(why) = misplaced(&cli, &given) {
        command.error(ErrorKind::ArgumentConflict, why).exit();
    }
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            journal::warning(&format!("pbs-clusterd: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns what is wrong with an option of an engine that is not used, if one was given.
fn misplaced(cli: &Cli, given: &ArgMatches) -> Option<String> {
    let of_slurm = SteeringOptions::NAMES.into_iter().map(|id| (id, EngineKind::Slurm));
    let mut options = of_slurm.chain([("node_socket", EngineKind::Node)]);
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let (id, engine) = options.find(|&(id, of)| of != cli.engine && is_given(id))?;
    let engine = engine.to_possible_value()?;
    let (option, engine) = (id.replace('_', "-"), engine.get_name().to_string());
    Some(format!(
        "--{option} is an option of --engine {engine}; write --engine {engine}, or leave out --{option}"
    ))
}

fn run(cli: &Cli) -> Result<(), String> {
    // Before there is another thread, which must not take them.
    let signals = Signals::new().map_err(|error| format!("signals: {error}"))?;
    let (sender, inbox) = inbox(CALLS).map_err(|error| error.to_string())?;
    match cli.engine {
        EngineKind::Simulated => {
            serve_with(cli, signals, Simulated::default(), |_| Ok(Clock), sender, inbox)
        }
        EngineKind::Node => {
            let bell = sender.clone();
            let trouble = |why: &str| journal::warning(&format!("pbs-clusterd: {why}"));
            let engine = Owners::new(&cli.node_socket, move || bell.ring(), trouble);
            serve_with(cli, signals, engine, |_| Ok(Clock), sender, inbox)
        }
        EngineKind::Slurm => {
            let engine = Link::new(cli.slurm.window);
            let bell = sender.clone();
            let pace = |cluster: &Manager<Link>| steered(&cli.slurm, cluster, move || bell.ring());
            serve_with(cli, signals, engine, pace, sender, inbox)
        }
    }
}

/// Returns the steering of a partition of Slurm. `wake` is called when it has to have a turn.
fn steered(
    options: &SteeringOptions,
    cluster: &Manager<Link>,
    wake: impl Fn() + Send + 'static,
) -> Result<Steered, String> {
    let slurm = options.connect()?;
    let relay = Relay::start(slurm, wake);
    let relay = relay.map_err(|error| format!("no thread for Slurm could be started: {error}"))?;
    Ok(Steered::new(cluster, options.settings(), relay))
}

/// Serves the cluster, whose requests that engine runs. `pace` makes what advances its time.
fn serve_with<E: Engine, P: Pace<E>>(
    cli: &Cli,
    signals: Signals,
    engine: E,
    pace: impl FnOnce(&Manager<E>) -> Result<P, String>,
    sender: Sender<Call>,
    mut inbox: Inbox<Call>,
) -> Result<(), String> {
    let text = |error: pbs_manager::Error| error.to_string();
    only_mine(&cli.ledger).map_err(text)?;
    let _served = Served::take(&cli.ledger).map_err(|error| error.to_string())?;
    let attributed = Ledger::attribute(&cli.ledger).map_err(|error| error.to_string())?;
    if let Some(without) = attributed.and_then(|attributed| attributed.describe()) {
        journal::warning(&format!("pbs-clusterd: {without}"));
    }
    let (cluster, _) = Manager::open_deferred(&cli.ledger, engine).map_err(text)?;
    cluster.check_clock(unix_s()).map_err(text)?;
    let nodes = cluster.machine().node_count();
    if cli.engine == EngineKind::Node && nodes != 1 {
        return Err(format!(
            "the site has {nodes} nodes, and --engine node runs programs on this machine only; \
             describe it as one node"
        ));
    }
    let pace = pace(&cluster)?;
    let notices = notices();
    let listener = match pbs_socket::handed_over() {
        Some(socket) => socket.into(),
        None => pbs_socket::listen(&cli.socket)
            .map_err(|error| format!("{}: {error}", cli.socket.display()))?,
    };
    let (limits, of_thread) = (cli.limits, notices.downgrade());
    let (stop, stopped) = stop();
    let listening = thread::Builder::new().name("socket".into());
    let listening = listening.spawn(move || listen(listener, limits, &sender, &of_thread, stopped));
    let listening = listening.map_err(|error| format!("no thread could be started: {error}"))?;
    journal::info("pbs-clusterd: ready");
    notify::tell("READY=1");
    let served = Service::new(cluster, pace, signals, limits, notices).run(&mut inbox);
    notify::tell("STOPPING=1");
    // Calls that nobody takes any more are answered, and those that watch: the service is stopping.
    drop((inbox, stop));
    if listening.join().is_err() {
        journal::warning("pbs-clusterd: the thread of the socket failed");
    }
    served
}

/// The thread of the socket. Without it there is no service: it ends the process, unless it was
/// stopped.
fn listen(
    listener: UnixListener,
    limits: Limits,
    cluster: &Sender<Call>,
    notices: &WeakNotices,
    stopped: Stopped,
) {
    if let Err(error) = serve(listener, limits.of_connections(), cluster, notices, stopped) {
        journal::warning(&format!("pbs-clusterd: the socket failed: {error}"));
        std::process::exit(1);
    }
}
