// SPDX-License-Identifier: GPL-2.0
//! Marks, and the legend of all that is drawn.

use std::collections::{BTreeSet, HashMap};

use super::*;
use crate::svg::{CRITICAL, EDGE, MESSAGE};

impl Gantt<'_> {
    pub(super) fn marks(&mut self, cpu: &CpuTimeline, y: f64) {
        let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
        let x_of = |mark: &Mark| self.x_of_ns(mark.time_ns.saturating_sub(origin) as f64);
        let placed: Vec<_> =
            cpu.marks.iter().map(|mark| (mark.kind, x_of(mark), mark.process)).collect();
        let (signals, slots): (Vec<_>, Vec<_>) =
            placed.into_iter().partition(|(kind, ..)| is_signal(*kind));
        self.slot_marks(&slots, y);
        self.signal_marks(&signals, y);
    }

    /// Draws the marks of slots.
    fn slot_marks(&mut self, placed: &[(MarkKind, f64, u32)], y: f64) {
        if is_crowded(placed) {
            self.count(placed, y - 7.0);
            return;
        }
        let mut last = HashMap::new();
        for &(kind, x, process) in placed {
            // One of several of a kind at the same place says enough.
            let before = last.insert(kind, x);
            if before.is_some_and(|before| x - before < SIGNAL_WIDTH) {
                continue;
            }
            if !matches!(kind, MarkKind::Absent | MarkKind::Waits) {
                let (top, height) = self.lanes.place(process, y);
                let from = if self.lanes.has(process) { top } else { y - 2.0 };
                self.picture.line(
                    (x, from),
                    (x, top + height),
                    "class=\"rule\" stroke=\"#000000\" stroke-width=\"1.5\"",
                );
            }
            self.symbol(kind, x, y - 7.0);
        }
    }

    /// Failures before information, as far as there is room in the row.
    fn signal_marks(&mut self, placed: &[(MarkKind, f64, u32)], y: f64) {
        if is_crowded(placed) {
            self.count(placed, y - 26.0);
            return;
        }
        let mut taken = BTreeSet::new();
        for rank in [MarkKind::Late, MarkKind::Early, MarkKind::Info] {
            for &(kind, x, _) in placed.iter().filter(|(kind, ..)| *kind == rank) {
                let place = (x / SIGNAL_WIDTH) as i64;
                if (place - 1..=place + 1).all(|place| !taken.contains(&place)) {
                    taken.insert(place);
                    self.symbol(kind, x, y - 26.0);
                }
            }
        }
    }

    /// Divides the row into stretches of the same length and says how many
    /// marks of each kind are in each.
    fn count(&mut self, placed: &[(MarkKind, f64, u32)], y: f64) {
        self.counted = true;
        let mut kinds = Vec::new();
        for kind in MARKS.map(|(kind, _)| kind) {
            if placed.iter().any(|&(of, ..)| of == kind) {
                kinds.push(kind);
            }
        }
        let whole = WIDTH - LEFT - RIGHT;
        let stretches = (whole / (COUNT_WIDTH * kinds.len() as f64)).floor();
        let stretch = whole / stretches;
        let mut counts = vec![vec![0u32; kinds.len()]; stretches as usize];
        for &(kind, x, _) in placed {
            let number = ((x - LEFT) / stretch).clamp(0.0, stretches - 1.0) as usize;
            for (of, count) in kinds.iter().zip(&mut counts[number]) {
                *count += u32::from(*of == kind);
            }
        }
        for (number, counts) in counts.iter().enumerate() {
            let left = LEFT + number as f64 * stretch;
            self.picture.line(
                (left, y - 8.0),
                (left, y + 8.0),
                "class=\"rule\" stroke=\"#000000\" stroke-opacity=\"0.3\"",
            );
            let present = kinds.iter().zip(counts).filter(|(_, &count)| count > 0);
            let mut x = left + 10.0;
            for (&kind, count) in present {
                self.symbol(kind, x, y);
                let text = count.to_string();
                let at = (x + 10.0, y + 4.0);
                self.picture.text(at, SMALL, Anchor::Start, "", &text);
                x += COUNT_WIDTH - 4.0;
            }
        }
    }

    pub(super) fn symbol(&mut self, kind: MarkKind, x: f64, y: f64) {
        match kind {
            MarkKind::Preempted => self
                .picture
                .polygon(&[(x - 6.0, y - 5.0), (x + 6.0, y - 5.0), (x, y + 6.0)], MARK_STYLE),
            MarkKind::Pushed => self
                .picture
                .polygon(&[(x - 5.0, y - 4.0), (x + 5.0, y - 4.0), (x, y + 5.0)], HOLLOW_STYLE),
            MarkKind::Ceiling => {
                self.picture.rect(x - 5.0, y - 5.0, 10.0, 10.0, MARK_STYLE);
            }
            MarkKind::Absent => self
                .picture
                .polygon(&[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], HOLLOW_STYLE),
            MarkKind::Waits => self.picture.signal((x, y), "w", false),
            MarkKind::Late => self.picture.signal((x, y), "!", true),
            MarkKind::Early => self.picture.signal((x, y), "<", false),
            MarkKind::Info => self.picture.signal((x, y), "i", false),
        }
    }

    pub(super) fn legend(&mut self) {
        enum Key {
            Box(&'static str),
            Process(ProcessStyle),
            Symbol(MarkKind),
            Filling,
            Count,
            Due(bool),
            Arrow(&'static str),
        }
        let mut keys = Vec::new();
        for process in &self.report.processes {
            let look = self.look(process.id);
            let name = format!("{} process {}", look.letter, process.name);
            keys.push((Key::Process(look), name));
        }
        keys.push((Key::Box(IDLE_STYLE), "idle slot".into()));
        keys.push((Key::Box(TRACK_STYLE), "lower classes".into()));
        keys.push((Key::Filling, "runs outside its own slot".into()));
        for (kind, text) in MARKS {
            let marks = self.report.cpus.iter().flat_map(|cpu| &cpu.marks);
            if kind == MarkKind::Preempted || marks.into_iter().any(|mark| mark.kind == kind) {
                keys.push((Key::Symbol(kind), text.into()));
            }
        }
        if !self.report.edges.is_empty() {
            keys.push((Key::Arrow(EDGE), "leads to the waiting task".into()));
        }
        if self.has_messages() {
            keys.push((Key::Arrow(MESSAGE), "message, planned and actual".into()));
        }
        if !self.report.waited.is_empty() {
            keys.push((Key::Arrow(CRITICAL), "its slot came too early".into()));
        }
        for (kept, text) in [(true, "deadline, kept"), (false, "deadline, missed")] {
            if self.report.deadlines.iter().any(|due| due.kept == kept) {
                keys.push((Key::Due(kept), text.into()));
            }
        }
        if self.counted {
            keys.push((Key::Count, "marks between two ticks".into()));
        }
        let mut x = LEFT;
        for (key, text) in keys {
            let width = 22.0 + text_width(&text, TEXT) + 18.0;
            if x + width > WIDTH - 4.0 && x > LEFT {
                x = LEFT;
                self.y += 20.0;
            }
            let y = self.y;
            match key {
                Key::Process(look) => self.picture.swatch((x, y - 11.0), &look),
                Key::Box(style) => self.picture.rect(x, y - 11.0, 14.0, 14.0, style),
                Key::Symbol(kind) => self.symbol(kind, x + 7.0, y - 4.0),
                Key::Arrow(style) => {
                    let at = y - 4.0;
                    self.picture.line((x, at), (x + 14.0, at), style);
                }
                Key::Due(kept) => self.picture.deadline((x + 1.0, y - 4.0), kept),
                Key::Count => {
                    let at = (x + 3.0, y);
                    self.picture.text(at, SMALL, Anchor::Start, "", "12");
                }
                Key::Filling => {
                    self.picture.rect(x, y - 11.0, 14.0, 14.0, "fill=\"#0072b2\"");
                    self.picture.rect(x, y - 2.0, 14.0, 5.0, "fill=\"url(#idle)\"");
                }
            }
            self.picture.text((x + 22.0, y), TEXT, Anchor::Start, "", &text);
            x += width;
        }
        self.y += 12.0;
    }
}

/// Every kind in the order of the legend.
const MARKS: [(MarkKind, &str); 8] = [
    (MarkKind::Preempted, "t1 reached, task preempted"),
    (MarkKind::Pushed, "t1 reached, task within its plan"),
    (MarkKind::Ceiling, "slot reached its ceiling"),
    (MarkKind::Absent, "process absent"),
    (MarkKind::Waits, "waits for another task"),
    (MarkKind::Late, "late"),
    (MarkKind::Early, "early"),
    (MarkKind::Info, "info"),
];

/// A symbol and a number of up to three digits.
const COUNT_WIDTH: f64 = 42.0;

/// Marks of a row that may lie on each other.
const OVERLAPS: usize = 16;

/// Whether too many marks of a row would lie on each other.
fn is_crowded(placed: &[(MarkKind, f64, u32)]) -> bool {
    let mut places: Vec<_> = placed.iter().map(|&(_, x, _)| x).collect();
    places.sort_by(f64::total_cmp);
    let near = |pair: &&[f64]| pair[1] - pair[0] < 2.0 * SIGNAL_WIDTH;
    places.windows(2).filter(near).count() > OVERLAPS
}

/// Signals have a row of their own.
fn is_signal(kind: MarkKind) -> bool {
    matches!(kind, MarkKind::Late | MarkKind::Early | MarkKind::Info)
}
