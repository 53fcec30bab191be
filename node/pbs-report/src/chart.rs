// SPDX-License-Identifier: GPL-2.0
//! Lines over time, with axes, a key and marks.

use crate::axis::ticks_between;
use crate::point::Point;
use crate::sizes::{LEFT, RIGHT, TEXT, WIDTH};
use crate::svg::{text_width, Anchor, Picture};
use crate::MarkKind;

const KEY_ROW: f64 = 22.0;
/// Room above and below what is drawn, as a share of it.
const MARGIN: f64 = 0.06;
/// Thresholds may lie beyond what is compared with them by this times its
/// extent; the axis does not reach to those that lie farther off.
const FAR: f64 = 2.5;

/// A line of a chart.
pub(crate) struct Line<'a> {
    pub(crate) points: &'a [Point],
    /// Class of the style sheet with which the line is drawn.
    pub(crate) class: &'static str,
    /// Text in the key; `None`: the line is not in the key.
    pub(crate) label: Option<String>,
    /// The axis need not reach it.
    pub(crate) is_threshold: bool,
    /// Class of the area between the line and zero, if that is filled.
    pub(crate) area: Option<&'static str>,
}

/// Mark at a moment.
pub(crate) struct ChartMark {
    pub(crate) at: Point,
    pub(crate) symbol: Symbol,
    /// Stands beside it, if there is room.
    pub(crate) label: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    Signal(MarkKind),
    Preemption,
    End,
}

/// A chart over time.
pub(crate) struct Chart<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    pub(crate) marks: Vec<ChartMark>,
    /// Short level lines with a text: t1 of slots.
    pub(crate) levels: Vec<(u64, u64, i64, String)>,
    /// Times at which a plan took over, or its configuration changed.
    pub(crate) rules: Vec<u64>,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) height: f64,
    /// Unit of the values: "instr." or "points".
    pub(crate) unit: &'static str,
    /// Unique in the page.
    pub(crate) id: String,
}

/// Numbers on an axis, and what they are multiplied by.
pub(crate) fn scale_of(most: f64, unit: &str) -> (f64, String) {
    let (factor, name) = match most.abs() {
        most if most >= 2e9 => (1e9, "billion "),
        most if most >= 2e6 => (1e6, "million "),
        most if most >= 2e4 => (1e3, "thousand "),
        _ => (1.0, ""),
    };
    (factor, format!("{name}{unit}"))
}

/// Times on an axis, and what they are multiplied by.
pub(crate) fn time_scale(span_ns: f64) -> (f64, &'static str) {
    match span_ns {
        span if span >= 2e9 => (1e9, "s"),
        span if span >= 2e6 => (1e6, "ms"),
        span if span >= 2e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

impl Chart<'_> {
    /// The least and the greatest value of the axis.
    pub(crate) fn range(&self) -> (f64, f64) {
        let values = |threshold: bool| {
            let lines = self.lines.iter();
            let lines = lines.filter(move |line| line.is_threshold == threshold);
            lines.flat_map(|line| line.points).map(|point| point.1 as f64)
        };
        let compared =
            values(false).chain(self.marks.iter().map(|mark| mark.at.1 as f64)).chain([0.0]);
        let (mut least, mut most) = extent(compared);
        let reach = if most > least { FAR * (most - least) } else { f64::INFINITY };
        let (lower, upper) = (least - reach, most + reach);
        let levels = self.levels.iter().map(|level| level.2 as f64);
        let near = values(true).chain(levels).filter(|&value| (lower..=upper).contains(&value));
        let (low, high) = extent(near.chain([least, most]));
        (least, most) = (low, high);
        if most <= least {
            most = least + 1.0;
        }
        let margin = (most - least) * MARGIN;
        let below = if least < 0.0 { margin } else { 0.0 };
        (least - below, most + margin)
    }

    /// Draws it from `y` down; the answer is where it ends.
    pub(crate) fn draw(&self, picture: &mut Picture, y: f64) -> f64 {
        let top = self.key(picture, y + 14.0) + 12.0;
        let bottom = top + self.height;
        let right = WIDTH - RIGHT;
        let (least, most) = self.range();
        let (from, to) = (self.from_ns as f64, (self.to_ns as f64).max(self.from_ns as f64 + 1.0));
        let x_of = |ns: u64| LEFT + (ns as f64 - from) / (to - from) * (right - LEFT);
        let y_of = |value: f64| bottom - (value - least) / (most - least) * (bottom - top);
        picture.rect(LEFT, top, right - LEFT, bottom - top, "class=\"plot\"");

        let (factor, unit) = scale_of(least.abs().max(most.abs()), self.unit);
        let wanted = (self.height / 28.0).clamp(2.0, 8.0) as usize;
        for tick in ticks_between(least / factor, most / factor, wanted) {
            let y = y_of(tick.at * factor);
            picture.line((LEFT, y), (right, y), "class=\"grid\"");
            let at = (LEFT - 8.0, y + 4.0);
            picture.text(at, TEXT, Anchor::End, "class=\"muted\"", &tick.label);
        }
        let at = (24.0, (top + bottom) / 2.0);
        if self.height > 7.0 * unit.len() as f64 {
            picture.upright(at, TEXT, "class=\"muted\"", &unit);
        }
        let (factor, unit) = time_scale(to - from);
        for tick in ticks_between(from / factor, to / factor, 10) {
            let x = LEFT + (tick.at * factor - from) / (to - from) * (right - LEFT);
            picture.line((x, top), (x, bottom + 5.0), "class=\"grid\"");
            let at = (x, bottom + 19.0);
            picture.text(at, TEXT, Anchor::Middle, "class=\"muted\"", &tick.label);
        }
        let at = (LEFT - 24.0, bottom + 19.0);
        picture.text(at, TEXT, Anchor::End, "class=\"muted\"", unit);
        if least < 0.0 {
            picture.line((LEFT, y_of(0.0)), (right, y_of(0.0)), "class=\"zero\"");
        }

        let clip = format!("{}-clip", self.id);
        picture.clip(&clip, (LEFT, top, right - LEFT, bottom - top));
        picture.begin(format!("clip-path=\"url(#{clip})\""));
        for &time_ns in &self.rules {
            picture.line((x_of(time_ns), top), (x_of(time_ns), bottom), "class=\"swap\"");
        }
        for &(begin_ns, end_ns, value, _) in &self.levels {
            let y = y_of(value as f64);
            let end = x_of(end_ns).max(x_of(begin_ns) + 8.0);
            picture.line((x_of(begin_ns), y), (end, y), "class=\"line t1\"");
        }
        // What is compared comes last and lies on top.
        let (thresholds, compared): (Vec<_>, Vec<_>) =
            self.lines.iter().partition(|line| line.is_threshold);
        for line in thresholds.into_iter().chain(compared) {
            let points = line.points.iter();
            let mut points: Vec<_> =
                points.map(|point| (x_of(point.0), y_of(point.1 as f64))).collect();
            if let (Some(area), Some(first), Some(last)) =
                (line.area, points.first().copied(), points.last().copied())
            {
                let (line, base) = (points.len(), y_of(0.0));
                points.extend([(last.0, base), (first.0, base)]);
                picture.polygon(&points, format!("class=\"{area}\""));
                points.truncate(line);
            }
            picture.polyline(&points, format!("class=\"line {}\"", line.class));
        }
        picture.end();
        let mut room = self.mark(picture, x_of, y_of);
        for (begin_ns, end_ns, value, text) in &self.levels {
            let (x, y) = (x_of(*begin_ns), y_of(*value as f64));
            let end = x_of(*end_ns);
            let width = text_width(text, TEXT);
            let rows = [-5.0, 16.0, -20.0];
            let places = rows.map(|row| [(x, y + row), (end - width, y + row)]);
            let inside = |place: &(f64, f64)| (top..bottom).contains(&(place.1 - TEXT));
            let places: Vec<_> = places.into_iter().flatten().filter(inside).collect();
            room.write(picture, &places, text);
        }
        bottom + 28.0
    }

    /// Draws the key of the lines. Lines that the axis does not reach are marked.
    fn key(&self, picture: &mut Picture, mut y: f64) -> f64 {
        let (least, most) = self.range();
        let mut entries = Vec::new();
        for line in &self.lines {
            let Some(label) = line.label.as_ref().filter(|_| !line.points.is_empty()) else {
                continue;
            };
            let values = line.points.iter().map(|point| point.1 as f64);
            let (low, high) = extent(values);
            let away = if low > most {
                ", above the picture"
            } else if high < least {
                ", below the picture"
            } else {
                ""
            };
            entries.push((line.class, line.area, format!("{label}{away}")));
        }
        if !self.levels.is_empty() {
            entries.push(("t1", None, "t1 of the slot".into()));
        }
        let mut x = LEFT;
        for (class, area, label) in entries {
            let width = 46.0 + text_width(&label, TEXT) + 16.0;
            if x + width > WIDTH - 4.0 && x > LEFT {
                x = LEFT;
                y += KEY_ROW;
            }
            if let Some(area) = area {
                picture.rect(x, y - 4.0, 38.0, 8.0, format!("class=\"{area}\""));
            }
            let ends = ((x, y - 4.0), (x + 38.0, y - 4.0));
            picture.line(ends.0, ends.1, format!("class=\"line {class}\""));
            picture.text((x + 46.0, y), TEXT, Anchor::Start, "", &label);
            x += width;
        }
        y
    }

    /// Draws the marks with their labels.
    fn mark(
        &self,
        picture: &mut Picture,
        x_of: impl Fn(u64) -> f64,
        y_of: impl Fn(f64) -> f64,
    ) -> Room {
        let mut drawn: Vec<Together> = Vec::new();
        for mark in &self.marks {
            let at = (x_of(mark.at.0), y_of(mark.at.1 as f64));
            let (symbol, label) = (mark.symbol, mark.label.as_str());
            match drawn.iter_mut().find(|other| other.is_near(at)) {
                Some(other) => other.add(at, symbol, label),
                None => drawn.push(Together { at, symbol, labels: vec![label] }),
            }
        }
        for &Together { at: (x, y), symbol, .. } in &drawn {
            match symbol {
                Symbol::Signal(MarkKind::Late) => picture.signal((x, y), "!", true),
                Symbol::Signal(MarkKind::Early) => picture.signal((x, y), "<", false),
                Symbol::Signal(_) => picture.signal((x, y), "i", false),
                Symbol::Preemption => picture.polygon(
                    &[(x - 6.0, y - 12.0), (x + 6.0, y - 12.0), (x, y - 1.0)],
                    "class=\"mark\"",
                ),
                Symbol::End => picture.rect(x - 4.0, y - 4.0, 8.0, 8.0, "class=\"mark\""),
            }
        }
        let boxes =
            drawn.iter().map(|&Together { at: (x, y), .. }| (x - 7.0, x + 7.0, y - 7.0, y + 7.0));
        let mut room = Room(boxes.collect());
        for together in drawn {
            let ((x, y), label) = (together.at, together.label());
            let width = text_width(&label, TEXT);
            let rows = [-8.0, 18.0, 4.0, -24.0, 34.0];
            let places = rows.map(|row| [(x + 10.0, y + row), (x - 10.0 - width, y + row)]);
            room.write(picture, places.as_flattened(), &label);
        }
        room
    }
}

/// Marks that would lie on each other: the most telling of them is drawn.
struct Together<'a> {
    at: (f64, f64),
    symbol: Symbol,
    labels: Vec<&'a str>,
}

impl<'a> Together<'a> {
    /// Closer marks than this lie on each other.
    const NEAR: f64 = 12.0;
    /// More labels than this are not written.
    const LABELS: usize = 4;

    fn is_near(&self, (x, y): (f64, f64)) -> bool {
        (x - self.at.0).abs() < Self::NEAR && (y - self.at.1).abs() < Self::NEAR
    }

    fn add(&mut self, at: (f64, f64), symbol: Symbol, label: &'a str) {
        if symbol.rank() > self.symbol.rank() {
            (self.at, self.symbol) = (at, symbol);
        }
        self.labels.push(label);
    }

    fn label(&self) -> String {
        match self.labels[..] {
            [first, .., last] if self.labels.len() > Self::LABELS => {
                let left_out = self.labels.len() - 2;
                format!("{first}, {left_out} more, {last}")
            }
            _ => self.labels.join(", "),
        }
    }
}

impl Symbol {
    /// Returns the importance of the symbol.
    fn rank(self) -> u32 {
        match self {
            Self::Signal(MarkKind::Late | MarkKind::Early) => 3,
            Self::End => 2,
            Self::Preemption => 1,
            Self::Signal(_) => 0,
        }
    }
}

/// Occupied rectangles: left, right, top and bottom.
struct Room(Vec<(f64, f64, f64, f64)>);

impl Room {
    /// Writes a label at the first of the places where it is in nobody's way,
    /// or not at all.
    fn write(&mut self, picture: &mut Picture, places: &[(f64, f64)], label: &str) {
        let width = text_width(label, TEXT);
        let extent = |&(left, base): &(f64, f64)| (left, left + width, base - TEXT, base + 3.0);
        let is_free = |place: &&(f64, f64)| {
            let (left, right, top, bottom) = extent(place);
            left >= LEFT
                && right < WIDTH
                && self.0.iter().all(|&(l, r, t, b)| right < l || r < left || bottom < t || b < top)
        };
        if let Some(place) = places.iter().find(is_free).filter(|_| !label.is_empty()) {
            self.0.push(extent(place));
            picture.label(*place, TEXT, Anchor::Start, "class=\"note\"", label);
        }
    }
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}
