// SPDX-License-Identifier: GPL-2.0
//! Quantities as people write them: `20M` instructions, `4ms`, `64MiB`, `20%`.
//!
//! A number without a unit has that of its key or option, so what was valid without
//! units is valid.

use std::ops::RangeInclusive;

/// Measured quantity, which determines the unit of numbers without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Instructions, or instructions in a time.
    Insns,
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Thousandths.
    Permille,
}

/// Multiples as they are usual in science.
const INSNS: &[(&str, u64)] =
    &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];
const NS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const BYTES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
const PERMILLE: &[(&str, u64)] = &[("%", 10), ("‰", 1)];

/// Digits behind the point; more are no measurement.
const MOST_DECIMALS: usize = 12;

impl Quantity {
    /// Returns the quantity of a key, from the end of its name; `None`: it is a count or a name.
    pub fn of_key(key: &str) -> Option<Self> {
        let ends = |end: &str| key == end || key.ends_with(&format!("_{end}"));
        let insns = ["insns", "insns_per_ms", "insns_per_s"];
        match () {
            () if insns.into_iter().any(ends) => Some(Self::Insns),
            () if ends("ns") => Some(Self::Ns),
            () if ends("bytes") || ends("bytes_per_s") => Some(Self::Bytes),
            () if ends("permille") => Some(Self::Permille),
            () => None,
        }
    }

    fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Insns => INSNS,
            Self::Ns => NS,
            Self::Bytes => BYTES,
            Self::Permille => PERMILLE,
        }
    }

    /// The unit in which it is kept.
    fn base(self) -> &'static str {
        match self {
            Self::Insns => "instructions",
            Self::Ns => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Permille => "thousandths",
        }
    }

    /// The unit that people use most.
    pub(crate) fn usual_unit(self) -> &'static str {
        match self {
            Self::Insns => "M",
            Self::Ns => "ms",
            Self::Bytes => "MiB",
            Self::Permille => "%",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Insns => "20M",
            Self::Ns => "4ms",
            Self::Bytes => "64MiB",
            Self::Permille => "20%",
        }
    }

    /// The number that a text stands for, in the unit of the quantity; `plain`: how many
    /// of those a number counts that has no unit.
    ///
    /// # Errors
    ///
    /// What to write instead.
    pub fn parse_with(self, text: &str, plain: u64) -> Result<u64, String> {
        let text = text.trim();
        let split = text.find(|c: char| !matches!(c, '0'..='9' | '_' | '.'));
        let (number, unit) = text.split_at(split.unwrap_or(text.len()));
        let unit = unit.trim_start();
        let scale = match self.units().iter().find(|(name, _)| *name == unit) {
            Some(&(_, scale)) => scale,
            None if unit.is_empty() => plain,
            None => return Err(self.refused(text)),
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.replace('_', "");
        let (whole, decimals) = (digits(whole), digits(decimals));
        let has_point = number.contains('.');
        if whole.is_empty() || (has_point && decimals.is_empty()) || decimals.len() > MOST_DECIMALS
        {
            return Err(self.refused(text));
        }
        // A second point is left in there, and no digit.
        let all: u128 = format!("{whole}{decimals}").parse().map_err(|_| self.refused(text))?;
        let one = 10u128.pow(decimals.len() as u32);
        let scaled = all.checked_mul(scale.into()).ok_or_else(|| self.refused(text))?;
        if scaled % one != 0 {
            let base = self.base();
            return Err(format!("\"{text}\" is no whole number of {base}; round it"));
        }
        u64::try_from(scaled / one).map_err(|_| self.refused(text))
    }

    /// Parses a text in which a number without a unit is in the unit of the quantity.
    ///
    /// # Errors
    ///
    /// A description of what to write instead.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        self.parse_with(text, 1)
    }

    fn refused(self, text: &str) -> String {
        let units: Vec<_> = self.units().iter().map(|(name, _)| *name).collect();
        format!(
            "\"{text}\" is no number of {}; write one as {}, with one of {} or without a unit",
            self.base(),
            self.example(),
            units.join(", ")
        )
    }

    /// A number that has to be in a range, for the options of a command.
    ///
    /// # Errors
    ///
    /// What to write instead.
    pub fn parse_in(
        self,
        text: &str,
        plain: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let value = self.parse_with(text, plain)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let base = self.base();
        Err(format!("it must be {} {base}", crate::between(*range.start(), *range.end())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Quantity::{Bytes, Insns, Ns, Permille};

    #[test]
    fn numbers_with_units_are_exact() {
        for (quantity, text, value) in [
            (Insns, "20_000_000", 20_000_000),
            (Insns, "20M", 20_000_000),
            (Insns, "1.5G", 1_500_000_000),
            (Insns, "0.001 k", 1),
            (Ns, "17", 17),
            (Ns, "2s", 2_000_000_000),
            (Ns, "4 ms", 4_000_000),
            (Ns, "0.25us", 250),
            (Ns, "1.000001ms", 1_000_001),
            (Ns, "3min", 180_000_000_000),
            (Bytes, "64MiB", 64 << 20),
            (Bytes, "0.5 KiB", 512),
            (Bytes, "64MB", 64_000_000),
            (Permille, "20%", 200),
            (Permille, "2.5 %", 25),
            (Permille, "1250", 1250),
            (Ns, "18446744073709551615", u64::MAX),
        ] {
            assert_eq!(quantity.parse(text), Ok(value), "{text}");
        }
        assert_eq!(Ns.parse_with("1.5", 1_000_000_000), Ok(1_500_000_000));
        assert_eq!(Ns.parse_with("1.5ms", 1_000_000_000), Ok(1_500_000));
    }

    #[test]
    fn others_are_refused_with_what_to_write() {
        for (quantity, text, words) in [
            (Insns, "", "write one as 20M, with one of k, M, G, T"),
            (Insns, "M", "write one as 20M"),
            (Insns, "10MiB", "\"10MiB\" is no number of instructions"),
            (Ns, "4m", "write one as 4ms"),
            (Ns, "1.5", "\"1.5\" is no whole number of nanoseconds"),
            (Ns, "0.1ns", "is no whole number of nanoseconds"),
            (Ns, "1.", "is no number of nanoseconds"),
            (Ns, ".5s", "is no number of nanoseconds"),
            (Ns, "1.2.3s", "is no number of nanoseconds"),
            (Ns, "-1s", "is no number of nanoseconds"),
            (Bytes, "1M", "write one as 64MiB, with one of B, KiB"),
            (Bytes, "17000000TiB", "is no number of bytes"),
            (Permille, "0.05%", "is no whole number of thousandths"),
        ] {
            let refused = quantity.parse(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    #[test]
    fn keys_say_what_they_measure() {
        for (key, quantity) in [
            ("insns", Some(Insns)),
            ("planned_insns", Some(Insns)),
            ("rate_insns_per_ms", Some(Insns)),
            ("deadline_ns", Some(Ns)),
            ("bytes", Some(Bytes)),
            ("memory_bytes", Some(Bytes)),
            ("bandwidth_bytes_per_s", Some(Bytes)),
            ("t2_permille", Some(Permille)),
            ("plan_id", None),
            ("max_preemptions", None),
            ("turns", None),
        ] {
            assert_eq!(Quantity::of_key(key), quantity, "{key}");
        }
    }
}
