// SPDX-License-Identifier: GPL-2.0
//! Errors of a simulation.

use std::fmt;

/// Failure to generate, plan or simulate, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub(crate) String);

impl Error {
    pub(crate) fn of(what: &impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
