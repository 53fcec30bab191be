// SPDX-License-Identifier: GPL-2.0
//! Right to let the time of a ledger go on.

use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

use super::database::POLL;
use super::error::Error;
use super::files::open_served;

/// Time for which a process waits for another one to give the right back.
const PATIENCE: Duration = Duration::from_secs(1);

/// Right of one process to let the time of a ledger go on, for as long as the value exists. Other
/// processes write to the ledger meanwhile, but do not advance its clock.
#[derive(Debug)]
pub struct Served {
    _lock: File,
}

impl Served {
    /// Takes the right.
    ///
    /// # Errors
    ///
    /// [`Error::Served`] if another process has it, [`Error::Missing`] if there is no such ledger,
    /// and errors of the disk.
    pub fn take(path: &Path) -> Result<Self, Error> {
        match path.metadata() {
            Ok(of) if of.is_file() => {}
            Ok(_) => return Err(Error::NotLedger(path.into())),
            Err(_) => return Err(Error::Missing(path.into())),
        }
        let lock = open_served(path).map_err(|error| Error::io(path, &error))?;
        let begun = Instant::now();
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _lock: lock }),
                Err(Errno::INTR) => {}
                // A command that advances the clock has it for a moment.
                Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => sleep(POLL),
                Err(Errno::WOULDBLOCK) => return Err(Error::Served(path.into())),
                Err(error) => return Err(Error::io(path, &error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ledger;
    use super::*;

    #[test]
    fn one_process_at_a_time_carries_a_ledger_out() {
        let path = std::env::temp_dir().join(format!("pbs-served-{}", std::process::id()));
        assert!(matches!(Served::take(&path), Err(Error::Missing(_))));
        drop(Ledger::create(&path, "", 1).unwrap());
        let served = Served::take(&path).unwrap();
        let refused = Served::take(&path).unwrap_err().to_string();
        assert!(refused.contains("another process carries out this ledger"), "{refused}");
        drop(served);
        drop(Served::take(&path).unwrap());
        for suffix in ["", "-lock", "-shm", "-wal", "-served"] {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            // SQLite removes some of them itself.
            let _ = std::fs::remove_file(name);
        }
    }
}
