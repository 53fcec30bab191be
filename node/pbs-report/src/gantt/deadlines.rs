// SPDX-License-Identifier: GPL-2.0
//! Deadlines below what became of a plan, and whether they were kept.

use pbs_text::ms;

use super::*;
use crate::svg::{DUE_HALF, DUE_WIDTH};
use crate::Deadline;

/// Rows of deadlines below a CPU, or below all for those of jobs.
const ROWS: usize = 6;
/// Height of a row of deadlines.
const ROW: f64 = 2.0 * DUE_HALF + 3.0;
/// The axis is made longer by no more than this times for a deadline.
const MOST_STRETCH: f64 = 1.25;

impl Gantt<'_> {
    /// Returns the time of a deadline, counted from the beginning of the plan of its CPU, or of the
    /// first plan.
    fn due_ns(&self, deadline: &Deadline) -> f64 {
        let cpu = deadline.process.and_then(|id| {
            let mut processes = self.report.processes.iter();
            processes.find(|process| process.id == id)?.cpu
        });
        let first = || self.origin_ns.values().min();
        let origin = cpu.map_or_else(first, |cpu| self.origin_ns.get(&cpu));
        let origin = origin.copied().unwrap_or(0);
        deadline.deadline_ns.saturating_sub(origin) as f64
    }

    /// The axis reaches the deadlines that are not far behind the rest.
    pub(super) fn reach_deadlines(&mut self) {
        let most = self.span_ns * MOST_STRETCH;
        let due = self.report.deadlines.iter().map(|due| self.due_ns(due));
        self.span_ns = due.filter(|&ns| ns <= most).fold(self.span_ns, f64::max);
    }

    /// Marks in the lanes of the track at `y`.
    pub(super) fn lane_deadlines(&mut self, y: f64) {
        for deadline in &self.report.deadlines {
            let x = self.x_of_ns(self.due_ns(deadline));
            let lane = deadline.process.filter(|&id| self.lanes.has(id));
            if let Some(id) = lane.filter(|_| x <= WIDTH - RIGHT + 0.5) {
                let (top, height) = self.lanes.place(id, y);
                self.picture.deadline((x, top + height / 2.0), deadline.kept);
            }
        }
    }

    /// Marks the deadlines of the processes of a CPU, or those of jobs, below `y`,
    /// the earliest first; missed ones before all others. Where processes have lanes
    /// with marks, only the missed ones are written. Returns the height of the rows.
    pub(super) fn deadlines(&mut self, cpu: Option<u32>, y: f64) -> f64 {
        let is_own = |deadline: &&Deadline| match deadline.process {
            None => cpu.is_none(),
            Some(id) => {
                let mut processes = self.report.processes.iter();
                let known = processes.find(|process| process.id == id);
                cpu.is_some() && known.and_then(|process| process.cpu) == cpu
            }
        };
        let in_lanes = cpu.is_some() && self.lanes.is_split();
        let is_told = |deadline: &&Deadline| !(in_lanes && deadline.kept);
        let own = self.report.deadlines.iter().filter(is_own);
        let mut own: Vec<_> = own.filter(is_told).collect();
        own.sort_by_key(|deadline| (deadline.kept, deadline.deadline_ns));
        let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); ROWS];
        let (mut used, mut left_out) = (0, 0);
        for deadline in own {
            let x = self.x_of_ns(self.due_ns(deadline));
            let beyond = x > WIDTH - RIGHT;
            let x = x.min(WIDTH - RIGHT);
            let after = if beyond {
                format!(", at {} ms", ms(self.due_ns(deadline) as u64))
            } else {
                String::new()
            };
            let letter = match deadline.process {
                Some(id) => format!("{} ", self.look(id).letter),
                None => String::new(),
            };
            let text = format!("{letter}{}: {}{after}", deadline.name, deadline.words());
            let width = text_width(&text, SMALL) * 1.1;
            let end = x + DUE_WIDTH;
            let right_of = (end + 5.0, x - 4.0, end + 9.0 + width, Anchor::Start);
            let left_of = (x - 6.0, x - 10.0 - width, end + 4.0, Anchor::End);
            let place = (0..ROWS).flat_map(|row| [(row, left_of), (row, right_of)]).find(
                |&(row, (_, left, right, _))| {
                    let is_free = |&(l, r): &(f64, f64)| right < l || r < left;
                    left >= 0.0 && right <= WIDTH && taken[row].iter().all(is_free)
                },
            );
            let Some((row, (at, left, right, anchor))) = place else {
                left_out += 1;
                continue;
            };
            taken[row].push((left, right));
            used = used.max(row + 1);
            let base = y + 4.0 + (row + 1) as f64 * ROW;
            self.picture.deadline((x, base - 3.0), deadline.kept);
            let style = if deadline.kept {
                ""
            } else {
                "class=\"missed\" fill=\"#b03a00\" font-weight=\"bold\""
            };
            self.picture.text((at, base), SMALL, anchor, style, &text);
        }
        if left_out > 0 {
            used += 1;
            let at = (LEFT, y + 4.0 + used as f64 * ROW);
            let text = format!("{left_out} more deadlines are only in the table");
            self.picture.text(at, SMALL, Anchor::Start, GREY_TEXT, &text);
        }
        used as f64 * ROW
    }
}
