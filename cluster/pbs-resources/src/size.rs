// SPDX-License-Identifier: GPL-2.0
//! Amounts: plain numbers, and numbers of bytes with a unit.

use std::fmt::Write;

use crate::Error;

/// Each is 1024 of the one before; the first is 1024 bytes.
const UNITS: [char; 5] = ['k', 'm', 'g', 't', 'p'];

/// Kind of a text that may be an amount.
pub(crate) enum Size {
    Is(u64),
    /// A number that 64 bits don't hold.
    TooLarge,
    /// The text is not an amount.
    No,
}

pub(crate) fn size(text: &str) -> Size {
    let split = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(split.unwrap_or(text.len()));
    let unit = unit.to_ascii_lowercase();
    let Some(bits) = bits(&unit) else {
        return Size::No;
    };
    if digits.is_empty() {
        return Size::No;
    }
    // Digits that can't be a number are too many of them.
    let number = digits.parse::<u64>().ok();
    match number.and_then(|number| number.checked_mul(1 << bits)) {
        Some(number) => Size::Is(number),
        None => Size::TooLarge,
    }
}

/// The power of two that a unit stands for.
fn bits(unit: &str) -> Option<u32> {
    if matches!(unit, "" | "b") {
        return Some(0);
    }
    let mut letters = unit.chars();
    let first = letters.next()?;
    let of_units = UNITS.iter().zip(1..).find(|(letter, _)| **letter == first);
    let (_, power) = of_units?;
    matches!(letters.as_str(), "" | "b" | "ib").then_some(10 * power)
}

/// The number of a text like `16`, `10g`, `10gb` or `10GiB`: k, m, g, t and p are powers
/// of 1024, in either case.
///
/// # Errors
///
/// The text is something else, or its number takes more than 64 bits.
///
/// ```
/// assert_eq!(pbs_resources::parse_size_bytes("10g"), Ok(10 << 30));
/// assert_eq!(pbs_resources::parse_size_bytes("4096"), Ok(4096));
/// assert!(pbs_resources::parse_size_bytes("1.5g").is_err());
/// ```
pub fn parse_size_bytes(text: &str) -> Result<u64, Error> {
    match size(text) {
        Size::Is(number) => Ok(number),
        Size::TooLarge => Err(Error::new(1, too_large(text))),
        Size::No => {
            Err(Error::new(1, format!("{text:?} is no amount; write one as 16, 512m, 10g or 1t")))
        }
    }
}

pub(crate) fn too_large(text: &str) -> String {
    format!("{text} is too large; the most is {}", u64::MAX)
}

/// The amount as it is read: from 1 MiB on with the greatest unit of which it is a whole
/// number, else as a plain number.
///
/// ```
/// assert_eq!(pbs_resources::format_size(12 << 30), "12g");
/// assert_eq!(pbs_resources::format_size(1024), "1024");
/// ```
pub fn format_size(amount: u64) -> String {
    let mut unit = None;
    let mut number = amount;
    // Below a mebibyte it is more likely cores than bytes.
    if amount >= 1 << 20 && amount.is_multiple_of(1 << 20) {
        for letter in UNITS {
            if !number.is_multiple_of(1024) {
                break;
            }
            number /= 1024;
            unit = Some(letter);
        }
    }
    let mut text = number.to_string();
    if let Some(unit) = unit {
        // Writing to a string can't fail.
        let _ = text.write_char(unit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, number) in [
            ("0", 0),
            ("007", 7),
            ("512b", 512),
            ("1k", 1 << 10),
            ("1kb", 1 << 10),
            ("64GB", 64 << 30),
            ("64GiB", 64 << 30),
            ("1t", 1 << 40),
            ("16383p", 16383 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size_bytes(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn others_are_refused() {
        for text in ["", "g", "-1", "1.5g", "10gx", "10 g", "1gbb", "1i", "1bb"] {
            let error = parse_size_bytes(text).unwrap_err();
            assert!(error.message.contains("is no amount"), "{text}: {error}");
        }
        for text in ["18446744073709551616", "16384p", "99999999999999999999g"] {
            let error = parse_size_bytes(text).unwrap_err();
            assert!(error.message.contains("is too large"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for amount in [0, 1, 1023, 1024, 1 << 20, 3 << 30, (1 << 30) + 1, 1 << 60, u64::MAX] {
            assert_eq!(parse_size_bytes(&format_size(amount)), Ok(amount));
        }
    }
}
