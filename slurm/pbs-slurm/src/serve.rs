// SPDX-License-Identifier: GPL-2.0
//! A ledger whose requests Slurm starts.

use std::path::Path;

use crate::steer::{Link, Settings, Steer};
use pbs_manager::ledger::{Access, Served};
use pbs_manager::{Error, Manager};
use pbs_uapi::clock::since_1970;

use crate::slurm::Slurm;

/// Options of the service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serving {
    /// Times at which jobs are let go, and limits of their begin.
    pub settings: Settings,
    /// Whether the service ends when all jobs have.
    pub until_idle: bool,
}

/// Plans the jobs of Slurm in that ledger, and has Slurm start them. `heard` is told what
/// happened that an operator should know.
///
/// # Errors
///
/// Errors of the disk, [`Error::Wrong`] if the clock of the ledger is ahead, and an error if another
/// process carries the ledger out.
pub fn serve(
    ledger: &Path,
    slurm: &mut Slurm,
    serving: Serving,
    mut heard: impl FnMut(&str),
) -> Result<(), Error> {
    let _served = Served::take(ledger)?;
    let link = Link::new(serving.settings.window);
    let (mut manager, recovered) = Manager::open(ledger, Access::Write, link)?;
    manager.check_clock(since_1970().as_secs())?;
    if recovered.requests > 0 {
        heard(&format!("{} requests continue", recovered.requests));
    }
    let mut steer = Steer::new(&manager, serving.settings);
    let mut is_first = true;
    loop {
        steer.turn(&mut manager, slurm, since_1970())?;
        for news in steer.news() {
            heard(&news);
        }
        if serving.until_idle && !is_first && manager.open_rows().is_empty() {
            return Ok(());
        }
        is_first = false;
        let at = since_1970();
        slurm.wait(steer.next(&manager, at).saturating_sub(at));
    }
}
