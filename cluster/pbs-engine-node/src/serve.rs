// SPDX-License-Identifier: GPL-2.0
//! A ledger in real time.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use pbs_manager::ledger::{Access, Error as LedgerError, Served};
use pbs_manager::{only_mine, Error, Manager};
use pbs_uapi::clock::unix_s;

use crate::Local;

/// Interval at which events are checked and other writers get their turn.
const POLL: Duration = Duration::from_millis(200);

/// Runs a ledger by the clock of the machine, and lets the service of this node carry out the plan,
/// once the service is there. Between two checks, other processes submit, alter and kill. With
/// `until_idle`, it returns when all requests have ended. `heard` receives errors that do not end
/// it.
///
/// All programs run as the user who calls this function.
///
/// # Errors
///
/// [`Error::Wrong`] if others may write the ledger, because they would run programs in the name of
/// this user, or if its clock is ahead; [`LedgerError::Served`] if another process runs it; and
/// errors of the disk.
pub fn serve(
    ledger: &Path,
    engine: &mut Local,
    until_idle: bool,
    mut heard: impl FnMut(&str),
) -> Result<(), Error> {
    only_mine(ledger)?;
    let _served = Served::take(ledger)?;
    let mut told = None;
    loop {
        match Manager::open(ledger, Access::Write, &mut *engine) {
            Ok((mut cluster, _)) => {
                let now_s = unix_s();
                cluster.check_clock(now_s)?;
                cluster.advance(now_s)?;
                let is_idle = cluster.open_rows().is_empty();
                drop(cluster);
                if until_idle && is_idle && !engine.is_busy() {
                    return Ok(());
                }
            }
            // Somebody has much to ask.
            Err(Error::Ledger(LedgerError::Busy(_))) => {
                heard("another process writes to the ledger; trying again")
            }
            Err(error) => return Err(error),
        }
        // What is not there is waited for, and that is told once.
        let trouble = engine.trouble();
        if let Some(new) = trouble.as_ref().filter(|_| trouble != told) {
            heard(new);
        }
        told = trouble;
        sleep(POLL);
    }
}
