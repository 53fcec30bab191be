// SPDX-License-Identifier: GPL-2.0
//! Numbers as bars below each other.

use crate::axis::ticks_between;
use crate::sizes::{BOLD, HEADING, MARGIN, MUTED, RIGHT, TEXT, WIDTH};
use crate::svg::{shortened, text_width, Anchor, Picture};

/// Height of a row and of its bar.
const ROW: f64 = 24.0;
const BAR: f64 = 18.0;
/// The labels before the bars have this part of the width at most.
const LABELS: f64 = 1.0 / 3.0;

/// Bars on one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Stands above them; may be empty.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    /// A value that is compared with all, and its name.
    pub limit: Option<(f64, String)>,
}

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Stands before the bar.
    pub label: String,
    /// Length of the bar: a number that is not negative.
    pub value: f64,
    /// The number as it is written behind the bar.
    pub text: String,
    /// Colour of the bar.
    pub colour: BarColour,
}

/// Colour of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarColour {
    /// Blue: the subject of the picture.
    Subject,
    /// Grey: what the subject is compared with.
    Other,
    /// Red: at a limit or beyond it.
    Beyond,
}

impl BarColour {
    fn style(self) -> &'static str {
        match self {
            Self::Subject => "class=\"bar\" fill=\"#0060a0\"",
            Self::Other => "class=\"other\" fill=\"#8a9099\"",
            Self::Beyond => "class=\"beyond\" fill=\"#b03a00\"",
        }
    }
}

/// Draws groups of bars below each other, as an SVG file. `axes` are sentences on the lengths, the
/// rows and the colours; `description` informs readers who cannot see it.
pub fn bars(title: &str, axes: &str, description: &str, groups: &[Bars]) -> String {
    let mut picture = Picture::new(axes);
    let left = groups.iter().map(Bars::left).fold(0.0, f64::max);
    let mut y = 0.0;
    for group in groups {
        y = group.draw(&mut picture, y, left);
    }
    picture.file(y, "", title, description)
}

impl Bars {
    /// Returns the left edge of the bars: their labels have room before it.
    pub(crate) fn left(&self) -> f64 {
        let labels = self.bars.iter().map(|bar| text_width(&bar.label, TEXT));
        MARGIN + 8.0 + labels.fold(0.0, f64::max).min(WIDTH * LABELS)
    }

    /// Draws the bars from `y` down, each from `left` on. Returns their end.
    pub(crate) fn draw(&self, picture: &mut Picture, mut y: f64, left: f64) -> f64 {
        if !self.title.is_empty() {
            let at = (MARGIN, y + HEADING);
            picture.text(at, HEADING, Anchor::Start, BOLD, &self.title);
            y += HEADING + 8.0;
        }
        let numbers = self.bars.iter().map(|bar| text_width(&bar.text, TEXT));
        let right = WIDTH - RIGHT - 6.0 - numbers.fold(0.0, f64::max);
        let values = self.bars.iter().map(|bar| bar.value);
        let limit = self.limit.iter().map(|limit| limit.0);
        let most = values.chain(limit).fold(0.0, f64::max).max(1e-9);
        let x_of = |value: f64| left + value / most * (right - left);
        let top = y + if self.limit.is_some() { 24.0 } else { 4.0 };
        let bottom = top + self.bars.len() as f64 * ROW + 4.0;
        self.ticks(picture, most, x_of, (top, bottom));
        let mut y = top + 4.0;
        for bar in &self.bars {
            let width = x_of(bar.value) - left;
            picture.rect(left, y, width, BAR, bar.colour.style());
            let label = shortened(&bar.label, left - 8.0 - MARGIN, TEXT);
            picture.text((left - 8.0, y + 14.0), TEXT, Anchor::End, "", &label);
            let at = (left + width + 6.0, y + 14.0);
            picture.text(at, TEXT, Anchor::Start, "class=\"note\"", &bar.text);
            y += ROW;
        }
        if let Some((limit, name)) = &self.limit {
            let x = x_of(*limit);
            picture.line((x, top - 6.0), (x, bottom), "class=\"line limit\"");
            let is_wide = x + 1.3 * text_width(name, TEXT) > WIDTH;
            let (anchor, off) = if is_wide { (Anchor::End, -6.0) } else { (Anchor::Start, 6.0) };
            picture.text((x + off, top - 8.0), TEXT, anchor, "", name);
        }
        bottom + 30.0
    }

    /// Whole numbers below the bars.
    fn ticks(
        &self,
        picture: &mut Picture,
        most: f64,
        x_of: impl Fn(f64) -> f64,
        (top, bottom): (f64, f64),
    ) {
        let ticks = ticks_between(0.0, most, (most as usize).clamp(1, 8));
        for tick in ticks.into_iter().filter(|tick| tick.at.fract() == 0.0) {
            let x = x_of(tick.at);
            picture.line((x, top), (x, bottom), "class=\"grid\"");
            picture.text((x, bottom + 18.0), TEXT, Anchor::Middle, MUTED, &tick.label);
        }
    }
}
