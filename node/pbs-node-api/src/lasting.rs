// SPDX-License-Identifier: GPL-2.0
//! A client that outlives the service that it asks.

use std::path::{Path, PathBuf};

use crate::{Client, Failure};

/// The service that listens at a path, whichever that is: one that was started anew is
/// connected to again.
#[derive(Debug)]
pub struct Lasting {
    socket: PathBuf,
    /// `None`: it was not reached, or has gone away.
    client: Option<Client>,
}

impl Lasting {
    /// Connects when something is asked.
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.into(), client: None }
    }

    /// Asks the service.
    ///
    /// # Errors
    ///
    /// What it says; or it does not answer, and may when it is asked again.
    pub fn ask<T>(
        &mut self,
        what: impl FnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::connect(&self.socket)?),
        };
        let answer = what(client);
        if let Err(Failure::Connection(_)) = &answer {
            self.client = None;
        }
        answer
    }
}
