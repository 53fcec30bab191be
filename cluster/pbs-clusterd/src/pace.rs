// SPDX-License-Identifier: GPL-2.0
//! The time of the cluster: by the clock of the machine, or with a batch system.

use pbs_manager::{Engine, Error, Manager};
use pbs_socket::journal;
use pbs_uapi::clock::unix_ns;

/// Driver of the time of a cluster.
pub trait Pace<E> {
    /// Called once, after the time has passed for the first time.
    fn begin(&mut self, cluster: &mut Manager<E>);

    /// Starts and ends what is due. This does not wait.
    ///
    /// # Errors
    ///
    /// Errors after which the service must end, such as those of the disk.
    fn pass_time(&mut self, cluster: &mut Manager<E>) -> Result<(), Error>;

    /// Time until something is due; -1: nothing is.
    fn timeout_ms(&self, cluster: &mut Manager<E>) -> i32;

    /// Whether orders wait until the changes are written.
    fn has_orders(&self) -> bool {
        false
    }

    /// All changes are in the ledger.
    fn written(&mut self) {}
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl<E: Engine> Pace<E> for Clock {
    fn begin(&mut self, cluster: &mut Manager<E>) {
        if let Some(opened) = cluster.open_all() {
            journal::warning(&format!("pbs-clusterd: {opened}"));
            cluster.look_again();
        }
    }

    fn pass_time(&mut self, cluster: &mut Manager<E>) -> Result<(), Error> {
        let now_s = unix_ns() / 1_000_000_000;
        let is_due = cluster.next_s().is_some_and(|next_s| next_s <= now_s);
        if is_due || cluster.clock_s() < now_s {
            cluster.advance(now_s)?;
        }
        Ok(())
    }

    fn timeout_ms(&self, cluster: &mut Manager<E>) -> i32 {
        let Some(next_s) = cluster.next_s() else {
            return -1;
        };
        let ns = next_s.saturating_mul(1_000_000_000).saturating_sub(unix_ns());
        i32::try_from(ns.div_ceil(1_000_000)).unwrap_or(i32::MAX)
    }
}
