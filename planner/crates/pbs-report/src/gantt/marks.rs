// SPDX-License-Identifier: GPL-2.0
//! Marks, and the legend of all that is drawn.

use std::collections::{BTreeSet, HashMap};

use super::*;

impl Gantt<'_> {
    pub(super) fn marks(&mut self, cpu: &CpuTimeline, y: f64) {
        let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
        let x_of = |mark: &Mark| self.x_of_ns(mark.time_ns.saturating_sub(origin) as f64);
        let placed: Vec<_> = cpu
            .marks
            .iter()
            .map(|mark| (mark.kind, x_of(mark)))
            .collect();
        let mut last = HashMap::new();
        for &(kind, x) in placed.iter().filter(|(kind, _)| !is_signal(*kind)) {
            // One of several of a kind at the same place says enough.
            let before = last.insert(kind, x);
            if before.is_some_and(|before| x - before < SIGNAL_WIDTH) {
                continue;
            }
            if kind != MarkKind::Absent {
                self.picture.line(
                    (x, y - 2.0),
                    (x, y + TRACK),
                    "class=\"rule\" stroke=\"#000000\" stroke-width=\"1.5\"",
                );
            }
            self.symbol(kind, x, y - 7.0);
        }
        // Failures before information, as far as there is room in the row.
        let mut taken = BTreeSet::new();
        for rank in [MarkKind::Late, MarkKind::Early, MarkKind::Info] {
            for &(kind, x) in placed.iter().filter(|(kind, _)| *kind == rank) {
                let place = (x / SIGNAL_WIDTH) as i64;
                if (place - 1..=place + 1).all(|place| !taken.contains(&place)) {
                    taken.insert(place);
                    self.symbol(kind, x, y - 26.0);
                }
            }
        }
    }

    pub(super) fn symbol(&mut self, kind: MarkKind, x: f64, y: f64) {
        match kind {
            MarkKind::Preempted => self.picture.polygon(
                &[(x - 6.0, y - 5.0), (x + 6.0, y - 5.0), (x, y + 6.0)],
                MARK_STYLE,
            ),
            MarkKind::Pushed => self.picture.polygon(
                &[(x - 5.0, y - 4.0), (x + 5.0, y - 4.0), (x, y + 5.0)],
                HOLLOW_STYLE,
            ),
            MarkKind::Ceiling => {
                self.picture.rect(x - 5.0, y - 5.0, 10.0, 10.0, MARK_STYLE);
            }
            MarkKind::Absent => self.picture.polygon(
                &[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)],
                HOLLOW_STYLE,
            ),
            MarkKind::Late => self.picture.signal((x, y), "!", true),
            MarkKind::Early => self.picture.signal((x, y), "<", false),
            MarkKind::Info => self.picture.signal((x, y), "i", false),
        }
    }

    pub(super) fn legend(&mut self) {
        enum Key {
            Box(String),
            Symbol(MarkKind),
            Filling,
        }
        let mut keys = Vec::new();
        for process in &self.report.processes {
            let fill = self.colour(process.id).0;
            let name = format!("process {}", process.name);
            keys.push((Key::Box(format!("fill=\"{fill}\"")), name));
        }
        keys.push((Key::Box(IDLE_STYLE.into()), "idle slot".into()));
        keys.push((Key::Box(TRACK_STYLE.into()), "lower classes".into()));
        keys.push((Key::Filling, "runs outside its own slot".into()));
        for (kind, text) in [
            (MarkKind::Preempted, "t1 reached, task preempted"),
            (MarkKind::Pushed, "t1 reached, task not over its plan"),
            (MarkKind::Ceiling, "slot reached its ceiling"),
            (MarkKind::Absent, "process absent"),
            (MarkKind::Late, "late"),
            (MarkKind::Early, "early"),
            (MarkKind::Info, "info"),
        ] {
            let marks = self.report.cpus.iter().flat_map(|cpu| &cpu.marks);
            if kind == MarkKind::Preempted || marks.into_iter().any(|mark| mark.kind == kind) {
                keys.push((Key::Symbol(kind), text.into()));
            }
        }
        let mut x = LEFT;
        for (key, text) in keys {
            let width = 22.0 + text_width(&text, NORMAL) + 18.0;
            if x + width > WIDTH - 4.0 && x > LEFT {
                x = LEFT;
                self.y += 24.0;
            }
            let y = self.y;
            match key {
                Key::Box(style) => self.picture.rect(x, y - 11.0, 14.0, 14.0, style),
                Key::Symbol(kind) => self.symbol(kind, x + 7.0, y - 4.0),
                Key::Filling => {
                    self.picture
                        .rect(x, y - 11.0, 14.0, 14.0, "fill=\"#0072b2\"");
                    self.picture
                        .rect(x, y - 2.0, 14.0, 5.0, "fill=\"url(#idle)\"");
                }
            }
            self.picture
                .text((x + 22.0, y), NORMAL, Anchor::Start, "", &text);
            x += width;
        }
        self.y += 12.0;
    }
}

/// Signals have a row of their own.
fn is_signal(kind: MarkKind) -> bool {
    matches!(kind, MarkKind::Late | MarkKind::Early | MarkKind::Info)
}
