// SPDX-License-Identifier: GPL-2.0
//! Sizes and styles of pictures whose rows are cores, threads or devices.

use crate::chart::LEFT;

/// Height of small letters.
pub(crate) const SMALL: f64 = 11.0;
/// Height of a row of the key.
pub(crate) const KEY_ROW: f64 = 24.0;
/// A deadline is drawn if the picture is not longer by more than this for it.
pub(crate) const MOST_STRETCH: f64 = 1.5;
/// Boxes narrower than this may be left out where another one is.
pub(crate) const NARROW: f64 = 0.5;
/// Room for names at the left.
pub(crate) const NAME: f64 = LEFT - 26.0;

pub(crate) const BOLD: &str = "font-weight=\"bold\"";
pub(crate) const MUTED: &str = "class=\"muted\"";
