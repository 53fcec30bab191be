// SPDX-License-Identifier: GPL-2.0
//! Runs that the service or the history knows.

use clap::Args;
use pbs_history::{Options, Store};
use pbs_node::queue;
use pbs_node_api::Filter;

use crate::failure::Failure;
use crate::history_file::HistoryFile;
use crate::output::report;
use crate::row::RunRow;
use crate::socket::Socket;

/// Source of runs: the service if it runs, unless another history is named.
#[derive(Args, Debug)]
pub(crate) struct Source {
    #[command(flatten)]
    pub(crate) socket: Socket,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

impl Source {
    /// All runs that are not over and so many of those that are; `None`: all of them.
    ///
    /// # Errors
    ///
    /// Without a service, without a history and without the name of one, nothing can tell which
    /// runs there are. A history that was named and is not there yet has none.
    pub(crate) fn runs(&self, last: Option<usize>) -> Result<Vec<RunRow>, Failure> {
        let (is_there, is_named) = (self.socket.is_there(), self.history.is_named());
        if is_there && self.history.is_usual() {
            match self.socket.connect() {
                Ok(mut client) => {
                    let all = i64::MAX as u64;
                    let filter = Filter {
                        last: Some(last.map_or(all, |last| last as u64)),
                        ..Filter::default()
                    };
                    return Ok(rows(client.list(&filter)?));
                }
                Err(failure) => report(&format!("{failure}. The list comes from the history.")),
            }
        }
        let (path, socket) = (self.history.path(), self.socket.path.display());
        match Store::open_read_only(&path, Options::DEFAULT) {
            Ok(store) => {
                if !is_there && !is_named {
                    let path = path.display();
                    report(&format!("No service listens at {socket}. The list comes from {path}."));
                }
                Ok(rows(queue::runs(&store, last)?))
            }
            Err(pbs_history::Error::Missing(_)) if is_named => Ok(Vec::new()),
            Err(pbs_history::Error::Missing(_)) if !is_there => Err(Failure::Failed(format!(
                "no runs are known: no service listens at {socket}, and there is no file {}. Start \
                 the service with systemctl start pbsd, or name its socket with --socket",
                path.display()
            ))),
            Err(error) => Err(error.into()),
        }
    }
}

fn rows<T: Into<RunRow>>(runs: Vec<T>) -> Vec<RunRow> {
    runs.into_iter().map(Into::into).collect()
}
