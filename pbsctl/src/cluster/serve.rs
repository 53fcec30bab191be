// SPDX-License-Identifier: GPL-2.0
//! Has the service of this node carry out what is planned.

use clap::Args;
use pbs_local::{serve, Local};
use pbs_varlink::Environment;

use super::ledger::{failure, LedgerOptions};
use crate::failure::Failure;
use crate::output::write_err;
use crate::service::Socket;

#[derive(Args, Debug)]
pub(super) struct ServeOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    #[command(flatten)]
    socket: Socket,

    /// Plan on that CPU only
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// End when all requests have
    #[arg(long)]
    until_idle: bool,
}

pub(super) fn run(options: &ServeOptions) -> Result<(), Failure> {
    if let Some(cpu) = options.cpu {
        let no_cpu = |error| Failure::Failed(format!("CPU {cpu}: {error}"));
        pbs_local::pin(&[cpu]).map_err(no_cpu)?;
    }
    let directory = std::env::current_dir().map_err(|error| Failure::file(".", &error))?;
    let environment = std::env::vars().map(|(name, value)| Environment { name, value });
    let socket = &options.socket.path;
    let mut engine = Local::new(socket, &directory.to_string_lossy(), environment.collect());
    let heard = |what: &str| write_err(&format!("pbsctl: {what}\n"));
    serve(
        &options.ledger.ledger,
        &mut engine,
        options.until_idle,
        heard,
    )
    .map_err(failure)
}
