// SPDX-License-Identifier: GPL-2.0
//! Execution of the plan by the service of this node, or by Slurm.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pbs_engine_node::{serve, Local};
use pbs_node_api::Environment;
use pbs_slurm::conf::{check, read, Level};
use pbs_slurm::{Serving, Slurm};

use super::doctor::CONF;
use super::ledger::{attribute, duration_s, failure, LedgerOptions};
use crate::failure::Failure;
use crate::given::{Conditional, Given};
use crate::output::{counted, report};
use crate::socket::Socket;

#[derive(Args, Debug)]
pub(super) struct ServeOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    #[command(flatten)]
    socket: Socket,

    /// Plan and start the jobs of a Slurm partition; run this as SlurmUser
    #[arg(long, conflicts_with = "socket")]
    slurm: bool,

    /// Partition of Slurm whose jobs are planned
    #[arg(long, value_name = "NAME", default_value = "plan", requires = "slurm")]
    partition: String,

    /// File to which the hooks of Slurm append events
    #[arg(
        long,
        env = "PBS_SLURM_EVENTS",
        value_name = "FILE",
        default_value = "/var/lib/pbs-slurm/events"
    )]
    events: PathBuf,

    /// Release a job of Slurm this long before its planned start
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration_s)]
    window: u64,

    /// Time after the planned start within which a job of Slurm may begin. A later job is held and
    /// planned again. At most the allocate_timeout of the site
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration_s)]
    grace: u64,

    /// Cancel jobs of Slurm that have been declined for this long. By default they stay held, and
    /// Slurm counts them among its jobs (MaxJobCount)
    #[arg(long, value_name = "TIME", requires = "slurm", value_parser = duration_s)]
    cancel_declined: Option<u64>,

    /// Run the planner on this CPU only
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// Exit when all requests have ended
    #[arg(long)]
    until_idle: bool,
}

pub(super) fn run(options: &Given<ServeOptions>) -> Result<(), Failure> {
    let of_slurm = |field| Conditional { field, is_read: options.slurm, needs: "--slurm" };
    options.refuse_unread(&["events", "window", "grace"].map(of_slurm))?;
    if let Some(cpu) = options.cpu {
        let no_cpu = |error| Failure::Failed(format!("CPU {cpu}: {error}"));
        pbs_engine_node::pin(&[cpu]).map_err(no_cpu)?;
    }
    if options.slurm {
        return with_slurm(options);
    }
    attribute(&options.ledger.ledger)?;
    let directory = std::env::current_dir().map_err(|error| Failure::file(".", &error))?;
    let environment = std::env::vars().map(|(name, value)| Environment { name, value });
    let socket = &options.socket.path;
    let directory = directory.to_string_lossy();
    let mut engine = Local::new(socket, Some(&directory), environment.collect());
    let heard = |what: &str| report(&format!("pbsctl: {what}"));
    serve(&options.ledger.ledger, &mut engine, options.until_idle, heard).map_err(failure)
}

/// The failure for a file of events that can't be opened: its directory comes with the hooks.
fn no_events(options: &ServeOptions, error: &io::Error) -> Failure {
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::file(&options.events, error);
    }
    let file = options.events.display();
    Failure::Failed(format!(
        "{file}: {error}. Slurm's hooks append to this file: install them and make its directory \
         (Documentation/slurm.rst), or name another file with --events; pbsctl cluster doctor \
         lists what is missing"
    ))
}

/// Reports errors in Slurm's configuration, with which no job would be planned. Where that is not
/// on this machine there is nothing to report.
fn report_errors(partition: &str) {
    let conf = std::env::var_os("SLURM_CONF").map_or_else(|| CONF.into(), PathBuf::from);
    let Ok(conf) = read(&conf) else { return };
    // The timeouts of the site are compared by the doctor.
    let findings = check(&conf, partition, u64::MAX);
    let errors = findings.iter().filter(|of| of.level == Level::Error).count();
    if errors > 0 {
        report(&format!(
            "pbsctl: {} in {}, such as {}: jobs of {partition} can't be planned with them; pbsctl \
             cluster doctor --partition {partition} lists them",
            counted(errors as u64, "error", "errors"),
            conf.path.display(),
            findings.iter().find(|of| of.level == Level::Error).map_or("", |of| &of.key)
        ));
    }
}

fn with_slurm(options: &ServeOptions) -> Result<(), Failure> {
    let heard = |what: &str| report(&format!("pbsctl: {what}"));
    let to_slurm = pbs_slurm::Options {
        partition: options.partition.clone(),
        events: options.events.clone(),
        patience: Duration::from_secs(10),
    };
    report_errors(&options.partition);
    let mut slurm = Slurm::new(&to_slurm).map_err(|error| no_events(options, &error))?;
    let serving = Serving {
        settings: pbs_slurm::steer::Settings {
            window: Duration::from_secs(options.window),
            grace: Duration::from_secs(options.grace),
            cancel_declined: options.cancel_declined.map(Duration::from_secs),
            ..pbs_slurm::steer::Settings::default()
        },
        until_idle: options.until_idle,
    };
    pbs_slurm::serve(&options.ledger.ledger, &mut slurm, serving, heard).map_err(failure)
}
