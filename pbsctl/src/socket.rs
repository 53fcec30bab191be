// SPDX-License-Identifier: GPL-2.0
//! The socket of the service of this node.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::Args;
use pbs_node_api::Client;

use crate::failure::Failure;

/// Address of the service of this node.
#[derive(Args, Clone, Debug)]
pub(crate) struct Socket {
    /// The socket of the service of this node
    #[arg(
        id = "socket",
        long = "socket",
        env = "PBS_SOCKET",
        value_name = "PATH",
        default_value = pbs_node_api::SOCKET
    )]
    pub(crate) path: PathBuf,
}

impl Socket {
    /// Whether there is a service to be asked.
    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        Client::connect(&self.path).map_err(|error| {
            let path = self.path.display();
            let is_closed = UnixStream::connect(&self.path)
                .is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
            Failure::Failed(if is_closed {
                format!("{path}: you may not connect to this socket; its owner can allow it")
            } else if self.is_there() {
                format!(
                    "{path}: {error}. See systemctl status pbsd, and start it with systemctl start \
                     pbsd, or as root with pbsd"
                )
            } else {
                format!(
                    "the service pbsd is not running: there is no {path}. Start it with systemctl \
                     start pbsd, or as root with pbsd; or name its socket with --socket"
                )
            })
        })
    }
}
