// SPDX-License-Identifier: GPL-2.0
//! Sizes and styles that pictures share.

/// Width of a picture. A page that shows it 880 pixels wide has [`SMALL`] letters of 11 pixels.
pub(crate) const WIDTH: f64 = 960.0;
/// Left edge of tracks and plots; names and numbers of the vertical axis stand before it. Times
/// are below each other in all pictures of a page.
pub(crate) const LEFT: f64 = 120.0;
/// Distance of tracks and plots from the right edge.
pub(crate) const RIGHT: f64 = 24.0;
/// Left and right of titles and sentences.
pub(crate) const MARGIN: f64 = 16.0;
/// Height of the letters of a title.
pub(crate) const TITLE: f64 = 18.0;
/// Height of the letters of headings of plots.
pub(crate) const HEADING: f64 = 15.0;
/// Height of letters.
pub(crate) const TEXT: f64 = 13.0;
/// Height of the smallest letters.
pub(crate) const SMALL: f64 = 12.0;
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
