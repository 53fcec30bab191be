// SPDX-License-Identifier: GPL-2.0
//! Seconds of the models, nanoseconds of everything else.

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The nearest whole nanosecond; 0 for what is below 0 or no number.
pub fn ns(seconds: f64) -> u64 {
    (seconds * SECOND_NS as f64).round() as u64
}

/// Nanoseconds as seconds, for people and models.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS as f64
}
