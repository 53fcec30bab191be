// SPDX-License-Identifier: GPL-2.0
//! What is wrong is refused, and changes nothing.

/// The tests by their names.
pub const TESTS: &[(&str, crate::Test)] = &[];
