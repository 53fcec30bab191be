// SPDX-License-Identifier: GPL-2.0
//! From the least to the greatest.

use std::fmt;
use std::str::FromStr;

use pbs_text::underscored;
use serde::Serialize;

/// The least and the greatest that a random number may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

impl Span {
    /// From `min` to `max`, both included.
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }
}

/// Displays the span in the notation in which it is read.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&underscored(self.min))?;
        if self.min != self.max {
            write!(f, "..{}", underscored(self.max))?;
        }
        Ok(())
    }
}

/// `MIN..MAX`, or one number for both; digits may be grouped with underscores.
impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let digits = text.trim().replace('_', "");
            digits.parse().map_err(|_| {
                format!("\"{text}\" is no whole number; write MIN..MAX, as 20_000..3_000_000")
            })
        };
        match text.split_once("..") {
            Some((min, max)) => Ok(Self::new(number(min)?, number(max)?)),
            None => number(text).map(|both| Self::new(both, both)),
        }
    }
}
