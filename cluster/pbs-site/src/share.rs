// SPDX-License-Identifier: GPL-2.0
//! Amounts that depend on what is available.

use std::fmt;
use std::str::FromStr;

use pbs_resources::{format_size, parse_size_bytes, Error};

/// A number, a part of what is available, or the greater of both: Keller's `min/max%` (3).
///
/// ```
/// use pbs_site::Share;
///
/// let share: Share = "30/45%".parse()?;
/// assert_eq!([100, 50, 20].map(|available| share.of(available)), [45, 30, 20]);
/// assert_eq!(share.to_string(), "30/45%");
/// # Ok::<(), pbs_resources::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Absolute amount; `None`: no number.
    pub least: Option<u64>,
    /// Part of the available amount, in thousandths; `None`: no part. At most 1000.
    pub permille: Option<u64>,
}

impl Share {
    /// Returns the share of `available`: the greater of both, but not more than there is. Parts are
    /// rounded down.
    pub fn of(&self, available: u64) -> u64 {
        let permille = u128::from(self.permille.unwrap_or(0).min(1000));
        let part = u128::from(available) * permille / 1000;
        // At most a thousand thousandths, so it fits.
        let part = u64::try_from(part).unwrap_or(available);
        self.least.unwrap_or(0).max(part).min(available)
    }
}

impl FromStr for Share {
    type Err = Error;

    /// `30`, `10g`, `45%`, `12.5%` or `30/45%`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (least, percent) = match text.split_once('/') {
            Some((least, percent)) => (Some(least), Some((percent, least.chars().count() + 2))),
            None if text.ends_with('%') => (None, Some((text, 1))),
            None => (Some(text), None),
        };
        let least = least.map(|least| {
            parse_size_bytes(least).map_err(|_| Error {
                column: 1,
                message: format!("{least:?} is no amount; {EXAMPLES}"),
            })
        });
        let permille = percent.map(|(percent, column)| {
            permille(percent).ok_or_else(|| Error {
                column,
                message: format!("{percent:?} is no percentage up to 100%; {EXAMPLES}"),
            })
        });
        Ok(Self { least: least.transpose()?, permille: permille.transpose()? })
    }
}

const EXAMPLES: &str = "write 30, 45%, or 30/45% for the greater of both";

/// `45%` or `12.5%`.
pub(crate) fn permille(text: &str) -> Option<u64> {
    let number = text.strip_suffix('%')?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    let permille = digits(whole)?.checked_mul(10)?.checked_add(digits(tenth)?)?;
    (tenth.len() == 1 && permille <= 1000).then_some(permille)
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.permille) {
            (Some(least), None) => return f.write_str(&format_size(least)),
            (Some(least), Some(_)) => write!(f, "{}/", format_size(least))?,
            (None, _) => {}
        }
        let permille = self.permille.unwrap_or(0);
        match permille % 10 {
            0 => write!(f, "{}%", permille / 10),
            tenth => write!(f, "{}.{tenth}%", permille / 10),
        }
    }
}
