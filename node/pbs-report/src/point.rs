// SPDX-License-Identifier: GPL-2.0
//! Points of a chart.

use serde::Serialize;

/// A moment, in nanoseconds since the CPU's first plan came into force, and a
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Point(pub u64, pub i64);
