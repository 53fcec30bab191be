// SPDX-License-Identifier: GPL-2.0
//! Figures that SQLite can keep: its integers have a sign.

use crate::{Corun, Error};

/// Whether SQLite can keep the figure.
pub(crate) fn kept(what: &str, figure: u64) -> Result<(), Error> {
    match i64::try_from(figure) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooLarge(format!("{what} ({figure})"))),
    }
}

/// Whether SQLite can keep the figures of runs of tasks.
pub(crate) fn check_coruns(coruns: &[Corun]) -> Result<(), Error> {
    for Corun { sample, .. } in coruns {
        kept("the time of a task", sample.ran_ns)?;
        kept("the instructions of a task", sample.insns)?;
    }
    Ok(())
}
