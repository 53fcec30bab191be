// SPDX-License-Identifier: GPL-2.0
//! The service of a cluster.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use pbs_clusterd::call::Call;
use pbs_clusterd::limits::{Limits, CALLS};
use pbs_clusterd::service::Service;
use pbs_clusterd::session::{notices, serve, Notices};
use pbs_launch::signals::Signals;
use pbs_manager::ledger::Access;
use pbs_manager::{only_mine, Manager, Simulated};
use pbs_socket::{inbox, journal, notify, Sender};
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

    #[command(flatten)]
    limits: Limits,
}

const EXAMPLES: &str = "\
Examples:
  pbsctl cluster new --site site.toml --ledger /var/lib/pbs/cluster.db
  pbs-clusterd                                  Run the service of the cluster
  pbsctl cluster alloc --res rset=ncpus=4 -t 1h Submit a request
  varlinkctl introspect /run/pbs/cluster.sock   Show its interface

Requests start and end by the clock of this machine. Nothing is run on the nodes yet: a request
takes the time that its --run declares, or all that it may.

SIGTERM ends it. The next service continues with the same plan.";

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            journal::warning(&format!("pbs-clusterd: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), String> {
    // Before there is another thread, which must not take them.
    let signals = Signals::new().map_err(|error| format!("signals: {error}"))?;
    let text = |error: pbs_manager::Error| error.to_string();
    only_mine(&cli.ledger).map_err(text)?;
    let opened = Manager::open(&cli.ledger, Access::Write, Simulated::default());
    let (cluster, _) = opened.map_err(text)?;
    cluster.check_clock(unix_s()).map_err(text)?;
    let (sender, mut inbox) = inbox(CALLS).map_err(|error| error.to_string())?;
    let notices = notices();
    let listener = match pbs_socket::handed_over() {
        Some(socket) => socket.into(),
        None => pbs_socket::listen(&cli.socket)
            .map_err(|error| format!("{}: {error}", cli.socket.display()))?,
    };
    let (limits, of_thread) = (cli.limits, notices.clone());
    let listening = thread::Builder::new().name("socket".into());
    let listening = listening.spawn(move || listen(listener, limits, &sender, &of_thread));
    listening.map_err(|error| format!("no thread could be started: {error}"))?;
    journal::info("pbs-clusterd: ready");
    notify::tell("READY=1");
    let served = Service::new(cluster, signals, limits, notices).run(&mut inbox);
    notify::tell("STOPPING=1");
    served
}

/// The thread of the socket. Without it there is no service, so it ends with it.
fn listen(listener: UnixListener, limits: Limits, cluster: &Sender<Call>, notices: &Notices) {
    if let Err(error) = serve(listener, limits.of_connections(), cluster, notices) {
        journal::warning(&format!("pbs-clusterd: the socket failed: {error}"));
    }
    std::process::exit(1);
}
