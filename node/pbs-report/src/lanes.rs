// SPDX-License-Identifier: GPL-2.0
//! Use of resources over time: a row for each resource, with boxes whose height is the amount in
//! use.

use crate::process_style::ProcessStyle;
use crate::sizes::{LEFT, RIGHT, TEXT, WIDTH};
use crate::svg::{shortened, text_width, Anchor, Picture};

/// All rows together are at most so high, and one at least and at most so high.
const ROOM: f64 = 1600.0;
const LEAST_ROW: f64 = 6.0;
const MOST_ROW: f64 = 64.0;
/// Between rows.
const SPACE: f64 = 2.0;
const AXES: &str = "Left to right: time. Rows: resources; the height of a box in its row is the \
                    amount in use.";

/// Resource that is used in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name of the resource.
    pub name: String,
    /// Stands in the row, before all else; mostly empty.
    pub note: String,
    /// Total amount of the resource.
    pub has: u64,
    /// Uses of the resource.
    pub stays: Vec<Stay>,
}

/// Use of an amount of the resource during an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// From then on.
    pub from: u64,
    /// Until then.
    pub until: u64,
    /// Amount in use.
    pub takes: u64,
    /// Number of the user; the same number has the same colour.
    pub of: usize,
    /// Stands in the box where there is room.
    pub name: String,
    /// Shows when the pointer rests on it.
    pub title: String,
}

/// Rows below each other over the same time, as an SVG file. Time goes from the first to
/// the second number of `over`; `ticks` are times with what stands below them.
/// `description` tells those who cannot see it.
pub fn lanes(
    title: &str,
    description: &str,
    over: (u64, u64),
    ticks: &[(u64, String)],
    lanes: &[Lane],
) -> String {
    let mut picture = Picture::new(AXES);
    let row = (ROOM / lanes.len().max(1) as f64).clamp(LEAST_ROW, MOST_ROW);
    let (top, right) = (4.0, WIDTH - RIGHT);
    let bottom = top + row * lanes.len() as f64;
    let span = over.1.saturating_sub(over.0).max(1) as f64;
    let x_of = |time: u64| {
        let time = time.clamp(over.0, over.1) - over.0;
        LEFT + time as f64 / span * (right - LEFT)
    };
    for (time, label) in ticks {
        let x = x_of(*time);
        picture.line((x, top), (x, bottom + 5.0), "class=\"grid\"");
        let at = (x, bottom + 19.0);
        let anchor =
            if x + text_width(label, TEXT) / 2.0 > WIDTH { Anchor::End } else { Anchor::Middle };
        picture.text(at, TEXT, anchor, "class=\"muted\"", label);
    }
    // Where rows are low only some have room for their names.
    let each = (TEXT / row).ceil().max(1.0) as usize;
    for (place, lane) in lanes.iter().enumerate() {
        let y = top + place as f64 * row;
        let height = row - SPACE.min(row / 3.0);
        picture.rect(LEFT, y, right - LEFT, height, "class=\"plot\"");
        if place % each == 0 {
            let name = shortened(&lane.name, LEFT - 14.0, TEXT);
            let at = (LEFT - 8.0, y + (row.min(TEXT + 4.0) + TEXT) / 2.0 - 2.0);
            picture.text(at, TEXT, Anchor::End, "", &name);
        }
        if row >= TEXT {
            let at = (LEFT + 8.0, y + (height + TEXT) / 2.0 - 2.0);
            picture.text(at, TEXT, Anchor::Start, "class=\"muted\"", &lane.note);
        }
        let unit = height / lane.has.max(1) as f64;
        for (stay, low) in lane.placed() {
            let (left, end) = (x_of(stay.from), x_of(stay.until));
            if end <= left {
                continue;
            }
            let look = ProcessStyle::of(stay.of);
            let place = (left, y + low as f64 * unit, end - left, stay.takes as f64 * unit);
            let style = "stroke=\"#ffffff\" stroke-width=\"0.5\"";
            picture.process_box(place, &look, style, &stay.title);
            let room = end - left - 6.0;
            if place.3 >= TEXT + 2.0 && room > 2.0 * TEXT {
                let at = (left + (end - left) / 2.0, place.1 + (place.3 + TEXT) / 2.0 - 2.0);
                let name = shortened(&stay.name, room, TEXT);
                picture.in_box(at, TEXT, &look, &name);
            }
        }
    }
    picture.file(bottom + 32.0, "", title, description)
}

impl Lane {
    /// Each with where it begins: the lowest place where there is room, above what others
    /// have at the same time. What has no room in one piece lies over others.
    fn placed(&self) -> Vec<(&Stay, u64)> {
        let mut order: Vec<&Stay> = self.stays.iter().collect();
        order.sort_by_key(|stay| (stay.from, stay.until));
        let mut placed: Vec<(&Stay, u64)> = Vec::new();
        for stay in order {
            let mut taken: Vec<(u64, u64)> = placed
                .iter()
                .filter(|(other, _)| other.until > stay.from)
                .map(|&(other, low)| (low, low + other.takes))
                .collect();
            taken.sort_unstable();
            let mut low = 0;
            for (from, until) in taken {
                if from >= low + stay.takes {
                    break;
                }
                low = low.max(until);
            }
            let most = self.has.saturating_sub(stay.takes);
            placed.push((stay, low.min(most)));
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(from: u64, until: u64, takes: u64) -> Stay {
        Stay { from, until, takes, of: 0, name: format!("{from}"), title: "<&>".into() }
    }

    #[test]
    fn each_has_the_lowest_room() {
        let lane = Lane {
            name: "n1".into(),
            note: "down".into(),
            has: 8,
            stays: vec![stay(0, 10, 3), stay(0, 20, 2), stay(10, 30, 4), stay(12, 14, 3)],
        };
        let lows: Vec<u64> = lane.placed().iter().map(|&(_, low)| low).collect();
        // The third has no room below the second, and the last none at all.
        assert_eq!(lows, [0, 3, 4, 0]);
        let picture = lanes("t", "d", (0, 30), &[(15, "noon".into())], &[lane]);
        assert!(picture.contains("&lt;&amp;&gt;") && picture.contains("noon"));
        assert!(picture.contains(">down<"));
        assert_eq!(picture.matches("<title>").count(), 4 + picture.matches("<title>t<").count());
    }
}
