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
    let (mut told, mut is_first) = (None, true);
    loop {
        match Manager::open(ledger, Access::Write, &mut *engine) {
            Ok((mut cluster, _)) => {
                let now_s = unix_s();
                cluster.check_clock(now_s)?;
                cluster.advance(now_s)?;
                // Not before: what waits for a closed node would be planned in the past.
                if std::mem::take(&mut is_first) {
                    if let Some(opened) = cluster.open_all() {
                        heard(&opened);
                        cluster.advance(now_s)?;
                    }
                }
                let is_idle = cluster.open_rows().is_empty();
                drop(cluster);
                if until_idle && is_idle && !engine.is_busy() {
                    return Ok(());
                }
            }
            // Somebody has much to ask.
            Err(Error::Ledger(LedgerError::Busy(_))) => {
                heard("another process has been writing to the ledger for a minute; trying again")
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

#[cfg(test)]
mod tests {
    use pbs_manager::ledger::ClosedRow;
    use pbs_manager::{Caller, Simulated};

    use super::*;

    /// Times in which nodes are closed are those of the planner over Slurm: without it they end.
    #[test]
    fn closed_nodes_are_open_under_this_service() {
        let directory =
            std::env::temp_dir().join(format!("pbs-engine-node-serve-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let ledger = directory.join("cluster.db");
        let site = "name = 'one'\n[[nodes]]\nname = 'n%d'\ncount = 2\nhas = 'ncpus=8'\n";
        let now_s = unix_s();
        {
            let then_s = now_s - 3600;
            let mut cluster = Manager::create(&ledger, site, then_s, Simulated::default()).unwrap();
            let times = vec![(then_s, now_s + 5000)];
            let row = ClosedRow { name: "n2".into(), times, why: "maint".into() };
            let operator = Caller { user: "op".into(), is_operator: true };
            cluster.set_closed(&operator, vec![row]).unwrap();
        }
        let mut engine = Local::new(Path::new("/does/not/exist"), None, Vec::new());
        let mut told = Vec::new();
        serve(&ledger, &mut engine, true, |what| told.push(what.to_owned())).unwrap();
        assert!(told.iter().any(|what| what.starts_with("node n2 is open again: ")), "{told:?}");
        let (cluster, _) = Manager::open(&ledger, Access::Read, Simulated::default()).unwrap();
        assert_eq!(cluster.closed().count(), 0);
        drop(cluster);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
