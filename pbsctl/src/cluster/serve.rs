// SPDX-License-Identifier: GPL-2.0
//! Execution of the plan by the service of this node, or by Slurm.

use std::path::PathBuf;

use clap::Args;
use pbs_engine_node::{serve, Local};
use pbs_node_api::Environment;
use pbs_slurm::conf::{check, read, Level};
use pbs_slurm::{Serving, SteeringOptions};

use super::doctor::CONF;
use super::ledger::{attribute, failure, LedgerOptions};
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

    /// Run the planner on this CPU only
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// Exit when all requests have ended
    #[arg(long)]
    until_idle: bool,

    #[command(flatten)]
    steering: SteeringOptions,
}

pub(super) fn run(options: &Given<ServeOptions>) -> Result<(), Failure> {
    let of_slurm = |field| Conditional { field, is_read: options.slurm, needs: "--slurm" };
    options.refuse_unread(&SteeringOptions::NAMES.map(of_slurm))?;
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
    let steering = &options.steering;
    report_errors(&steering.partition);
    let mut slurm = steering.connect().map_err(Failure::Failed)?;
    let serving = Serving { settings: steering.settings(), until_idle: options.until_idle };
    pbs_slurm::serve(&options.ledger.ledger, &mut slurm, serving, heard).map_err(failure)
}
