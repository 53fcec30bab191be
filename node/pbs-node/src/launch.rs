// SPDX-License-Identifier: GPL-2.0
//! A plan that was written by hand, with its programs.

use std::path::Path;

use pbs_launch::{prepare_plan, Prepared};
use pbs_plan::Plan;

use crate::Error;

/// A plan with its programs, which are ready to be started.
#[derive(Debug)]
pub struct Launch {
    pub(crate) plan: Plan,
    pub(crate) programs: Vec<Prepared>,
    /// Name of the plan in messages.
    pub(crate) file: String,
}

impl Launch {
    /// Prepares the programs of all processes of a plan. `device` is for programs that attach
    /// themselves; `output_to_error` keeps their output out of the caller's standard output.
    ///
    /// # Errors
    ///
    /// All faults of the programs, before any is started.
    pub fn of_plan(
        plan: Plan,
        device: &Path,
        output_to_error: bool,
        file: String,
    ) -> Result<Self, Error> {
        match prepare_plan(&plan, device, output_to_error) {
            Ok(programs) => Ok(Self { plan, programs, file }),
            Err(problems) => Err(Error::Invalid { file, problems }),
        }
    }
}
