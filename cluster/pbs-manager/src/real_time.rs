// SPDX-License-Identifier: GPL-2.0
//! Conditions under which a ledger follows the clock of the machine and acts for its owner.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;

impl<E: Engine> Manager<E> {
    /// Checks that the clock of the ledger is not ahead of the clock of the machine.
    ///
    /// # Errors
    ///
    /// [`Error::Wrong`] if it is.
    pub fn check_clock(&self, now_s: u64) -> Result<(), Error> {
        if self.clock_s <= now_s {
            return Ok(());
        }
        let what = "the clock of the ledger is ahead of the system clock; create a ledger without \
                    --at, and do not advance it";
        Err(Error::Wrong(what.into()))
    }
}

/// Checks that nobody but the user of this process may write a ledger.
///
/// # Errors
///
/// [`Error::Wrong`] if others may: they would act as this user.
pub fn only_mine(ledger: &Path) -> Result<(), Error> {
    // A ledger that is not there is told of when it is opened.
    let (Ok(file), Ok(process)) = (fs::metadata(ledger), fs::metadata("/proc/self")) else {
        return Ok(());
    };
    if file.uid() == process.uid() && file.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(Error::Wrong(format!(
            "other users may write {} and could run programs as you; make it your own, with mode \
             640",
            ledger.display()
        )))
    }
}
