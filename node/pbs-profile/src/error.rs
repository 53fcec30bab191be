// SPDX-License-Identifier: GPL-2.0
//! Errors of changes to a profile.

use std::fmt;

/// Reason for which a request was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Less is there than was to be subtracted.
    TooLittle {
        /// The first such time.
        time: u64,
        /// Available value.
        value: u64,
        /// Amount to be subtracted.
        amount: u64,
    },
    /// A value would exceed 64 bits.
    TooMuch {
        /// The first such time.
        time: u64,
        /// Available value.
        value: u64,
        /// Amount to be added.
        amount: u64,
    },
    /// An interval ends before it begins.
    Backwards {
        /// Beginning of the interval.
        from: u64,
        /// End of the interval.
        until: u64,
    },
    /// A profile can't be made of no steps.
    NoStep,
    /// A step does not begin after the one before, or begins at
    /// [`FOREVER`](crate::FOREVER).
    StepOutOfOrder {
        /// Beginning of the step.
        time: u64,
    },
    /// A [`Transaction`](crate::Transaction) has no such profile.
    NoProfile {
        /// The index that was asked for.
        index: usize,
        /// Number of its profiles.
        profiles: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLittle { time, value, amount } => write!(
                f,
                "at {time} there is {value}, from which {amount} can't be subtracted; \
                 look for a hole first, or subtract less"
            ),
            Self::TooMuch { time, value, amount } => write!(
                f,
                "at {time} there is {value}, and {amount} more exceeds 64 bits; \
                 count in a larger unit"
            ),
            Self::Backwards { from, until } => write!(
                f,
                "the interval ends at {until}, before it begins at {from}; exchange the two"
            ),
            Self::NoStep => f.write_str("a profile has at least one step; give its first value"),
            Self::StepOutOfOrder { time } => write!(
                f,
                "the step at {time} is not after the one before it; give steps in the order \
                 of time, each once and before the end of time"
            ),
            Self::NoProfile { index, profiles } => {
                write!(f, "there is no profile {index}; there are {profiles}, counted from 0")
            }
        }
    }
}

impl std::error::Error for Error {}
