// SPDX-License-Identifier: GPL-2.0
//! Quantities on the command line, with units or, as ever, without.

use pbs_gen::Span;
use pbs_text::Quantity;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Instructions: `20M`.
pub(crate) fn insns(text: &str) -> Result<u64, String> {
    Quantity::Insns.parse(text)
}

/// A rate that a CPU may have: `1M` instructions in a millisecond.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    Quantity::Insns.parse_in(text, 1, 1..=u32::MAX.into())
}

/// A time in nanoseconds: `4ms`.
pub(crate) fn ns(text: &str) -> Result<u64, String> {
    Quantity::Ns.parse(text)
}

/// Instructions in a second, of a core or a node: `2G`.
pub(crate) fn rate_per_s(text: &str) -> Result<u64, String> {
    Quantity::Insns.parse_in(text, 1, 1..=1 << 40)
}

/// A time in nanoseconds; a number without a unit is one of seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    Quantity::Ns.parse_with(text, SECOND)
}

/// A time in nanoseconds; a number without a unit is one of milliseconds.
pub(crate) fn ms(text: &str) -> Result<u64, String> {
    Quantity::Ns.parse_with(text, MS)
}

/// An interval between a millisecond and a day; a number without a unit is one of
/// seconds.
pub(crate) fn interval(text: &str) -> Result<u64, String> {
    let day = 86_400 * SECOND;
    Quantity::Ns
        .parse_in(text, SECOND, MS..=day)
        .map_err(|words| format!("{words}, from 1ms to 24h"))
}

/// Memory: `4MiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    Quantity::Bytes.parse(text)
}

/// Thousandths: `20%`.
pub(crate) fn permille(text: &str) -> Result<u64, String> {
    Quantity::Permille.parse(text)
}

/// From the least to the greatest number of instructions: `20M..1.5G`.
pub(crate) fn insns_span(text: &str) -> Result<Span, String> {
    span(text, Quantity::Insns)
}

/// From the least to the greatest number of bytes: `1MiB..64MiB`.
pub(crate) fn bytes_span(text: &str) -> Result<Span, String> {
    span(text, Quantity::Bytes)
}

/// From the least to the greatest number of thousandths: `5%..10%`.
pub(crate) fn permille_span(text: &str) -> Result<Span, String> {
    span(text, Quantity::Permille)
}

fn span(text: &str, quantity: Quantity) -> Result<Span, String> {
    match text.split_once("..") {
        Some((min, max)) => Ok(Span::new(quantity.parse(min)?, quantity.parse(max)?)),
        None => quantity.parse(text).map(|both| Span::new(both, both)),
    }
}
