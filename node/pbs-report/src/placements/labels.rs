// SPDX-License-Identifier: GPL-2.0
//! Texts above lines, as far as they have room.

use std::cmp::Ordering;

use crate::sizes::{LEFT, RIGHT, SMALL, WIDTH};
use crate::svg::text_width;

/// Lines of text above each other.
const LEVELS: usize = 2;
/// Between texts.
const GAP: f64 = 8.0;

/// A line from top to bottom, and what it is.
pub(super) struct Line {
    pub(super) x: f64,
    /// Style of the line.
    pub(super) line: &'static str,
    /// Style of its text.
    pub(super) style: &'static str,
    pub(super) text: String,
}

/// A text that has room.
pub(super) struct Label<'a> {
    pub(super) line: &'a Line,
    pub(super) middle: f64,
    /// Counted from below.
    pub(super) level: usize,
    /// Number of further lines of the same style that the text stands for.
    pub(super) more: usize,
}

/// Places the texts of lines, those first that stand first. What has no room is counted by the
/// nearest text of its kind.
pub(super) fn labels(lines: &[Line]) -> Vec<Label<'_>> {
    let (labels, hidden) = placed(lines, 0.0);
    if hidden.is_empty() {
        return labels;
    }
    let count = format!(" +{}", lines.len());
    let (mut labels, hidden) = placed(lines, text_width(&count, SMALL));
    for line in hidden {
        let far = |label: &Label<'_>| {
            let is_other = label.line.line != line.line;
            (is_other, (label.line.x - line.x).abs())
        };
        let nearest = labels
            .iter_mut()
            .min_by(|one, other| far(one).partial_cmp(&far(other)).unwrap_or(Ordering::Equal));
        if let Some(label) = nearest {
            label.more += 1;
        }
    }
    labels
}

/// The texts that have room, each with so much behind it, and the lines whose texts have none.
fn placed(lines: &[Line], behind: f64) -> (Vec<Label<'_>>, Vec<&Line>) {
    let mut taken: [Vec<(f64, f64)>; LEVELS] = Default::default();
    let (mut labels, mut hidden) = (Vec::new(), Vec::new());
    for line in lines {
        let width = text_width(&line.text, SMALL) + behind;
        let most = (WIDTH - RIGHT - width).max(LEFT);
        let left = (line.x - width / 2.0).clamp(LEFT, most);
        let right = left + width;
        let is_free = |taken: &Vec<(f64, f64)>| {
            let mut taken = taken.iter();
            taken.all(|&(from, to)| right + GAP < from || left > to + GAP)
        };
        match taken.iter().position(is_free) {
            Some(level) => {
                taken[level].push((left, right));
                labels.push(Label { line, middle: left + width / 2.0, level, more: 0 });
            }
            None => hidden.push(line),
        }
    }
    (labels, hidden)
}
