// SPDX-License-Identifier: GPL-2.0
//! The boxes of planned slots and of what ran, and what leads from one to the
//! other.

use super::*;

/// Leaves out boxes that would lie on another one's pixel: a plan may have
/// many thousand slots.
#[derive(Default)]
pub(super) struct Thinning(HashMap<i64, f64>);

impl Thinning {
    /// Narrower boxes than this may be left out.
    const WIDTH: f64 = 0.5;

    /// Whether to draw a box whose top is at `y`.
    fn admits(&mut self, (x, y): (f64, f64), width: f64) -> bool {
        let last = self.0.entry(y as i64).or_insert(f64::NEG_INFINITY);
        if width < Self::WIDTH && x < *last + Self::WIDTH {
            return false;
        }
        *last = x;
        true
    }
}

impl<'a> Gantt<'a> {
    /// Returns the left edge and the width of a planned slot; `None` if another plan took over
    /// before it.
    fn slot_extent(&self, part: &Part<'_>, slot: &PlannedSlot) -> Option<(f64, f64)> {
        let begin = part.begin_ns + slot.start_ns as f64;
        if begin >= part.end_ns {
            return None;
        }
        let end = (part.begin_ns + slot.end_ns as f64).min(part.end_ns);
        let x = self.x_of_ns(begin);
        Some((x, self.x_of_ns(end) - x))
    }

    pub(super) fn planned_slot(
        &mut self,
        part: &Part<'_>,
        slot: &PlannedSlot,
        y: f64,
        thinning: &mut Thinning,
    ) {
        let Some((x, width)) = self.slot_extent(part, slot) else {
            return;
        };
        let lane = slot.process.map(|process| self.lanes.place(process, y));
        if !thinning.admits((x, lane.map_or(y, |lane| lane.0)), width) {
            return;
        }
        let length = grouped(slot.length_insns);
        let (Some(process), Some(task)) = (slot.process, slot.task) else {
            let title = format!("slot {}: idle, {length} instructions", slot.slot);
            self.picture.titled_rect((x, y, width, self.lanes.height), IDLE_STYLE, &title);
            return;
        };
        let (y, height) = self.lanes.place(process, y);
        let name = self.name(process);
        let title = format!(
            "slot {}: {name}, {}, {length} instructions planned",
            slot.slot,
            self.task_name(process, Some(task))
        );
        let (place, look) = ((x, y, width, height), self.look(process));
        self.picture.process_box(place, &look, outline(width), &title);
        self.label((x, y, width, height), process, Some(task));
    }

    pub(super) fn segment(
        &mut self,
        cpu: &CpuTimeline,
        segment: &ActualSegment,
        y: f64,
        thinning: &mut Thinning,
    ) {
        let (x, width) = self.extent(cpu, segment);
        let (y, height) = self.lanes.place(segment.process, y);
        if !thinning.admits((x, y), width) {
            return;
        }
        let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
        let start = segment.start_ns.saturating_sub(origin) as f64;
        let end = segment.end_ns.saturating_sub(origin) as f64;
        let task = self.task_name(segment.process, segment.task);
        let slot =
            segment.slot.map_or_else(|| "after the plan".into(), |slot| format!("slot {slot}"));
        let title = format!(
            "{}, {task}, {slot} ({}): {:.3} to {:.3} ms{}",
            self.name(segment.process),
            segment.reason,
            start / 1e6,
            end / 1e6,
            self.counts(segment)
        );
        let (place, look) = ((x, y, width, height), self.look(segment.process));
        self.picture.process_box(place, &look, outline(width), &title);
        if segment.reason != "slot" {
            // Not its own slot: a band below says so.
            self.picture.rect(
                x,
                y + height - 7.0,
                width,
                7.0,
                "fill=\"url(#idle)\" stroke=\"none\"",
            );
        }
        self.label((x, y, width, height), segment.process, segment.task);
    }

    /// Returns the figures of the segment's task, for the text at the pointer.
    fn counts(&self, segment: &ActualSegment) -> String {
        let found = self.task(segment.process, segment.task);
        found.filter(|task| task.ended).map_or_else(String::new, |task| {
            format!(
                "; planned {}, retired {} ({}), peak {}",
                grouped(task.planned_insns),
                grouped(task.retired_insns),
                percent(task.deviation_permille, 1),
                bytes(task.peak_rss_bytes)
            )
        })
    }

    /// Returns the left edge and the width of a segment.
    fn extent(&self, cpu: &CpuTimeline, segment: &ActualSegment) -> (f64, f64) {
        let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
        let x = self.x_of_ns(segment.start_ns.saturating_sub(origin) as f64);
        let end = self.x_of_ns(segment.end_ns.saturating_sub(origin) as f64);
        // What is too short to see is still drawn.
        (x, (end - x).max(0.4))
    }

    /// From each planned slot a band to where its task really ran.
    pub(super) fn bands(&mut self, cpu: &CpuTimeline, part: &Part<'_>, top: f64, bottom: f64) {
        for slot in part.planned {
            let (Some(process), Some((mut left, planned))) =
                (slot.process, self.slot_extent(part, slot))
            else {
                continue;
            };
            if planned < Thinning::WIDTH {
                continue;
            }
            let segments = self.segments.get(&(part.number, process, slot.task));
            let segments: Vec<_> =
                segments.into_iter().flatten().map(|segment| self.extent(cpu, segment)).collect();
            let whole: f64 = segments.iter().map(|(_, width)| width).sum();
            let fill = self.look(process).fill;
            for (x, width) in segments {
                // A task that ran in pieces has its slot divided among them.
                let share = planned * width / whole;
                self.picture.polygon(
                    &[(left, top), (left + share, top), (x + width, bottom), (x, bottom)],
                    format!("fill=\"{fill}\" fill-opacity=\"0.22\""),
                );
                left += share;
            }
        }
    }

    /// Marks the boxes of tasks with a notable deviation.
    pub(super) fn outlines(
        &mut self,
        cpu: &CpuTimeline,
        part: &Part<'_>,
        planned_y: f64,
        actual_y: f64,
    ) {
        for slot in part.planned {
            let (Some(process), Some((x, width))) = (slot.process, self.slot_extent(part, slot))
            else {
                continue;
            };
            // An outline would hide what is not much wider.
            if !self.task(process, slot.task).is_some_and(is_notable) || width < 4.0 {
                continue;
            }
            let (y, height) = self.lanes.place(process, planned_y);
            self.picture.rect(x, y, width, height, NOTABLE_STYLE);
            let (y, height) = self.lanes.place(process, actual_y);
            let segments = self.segments.get(&(part.number, process, slot.task));
            for segment in segments.into_iter().flatten() {
                let (x, width) = self.extent(cpu, segment);
                self.picture.rect(x, y, width, height, NOTABLE_STYLE);
            }
        }
    }
}

/// Returns the outline that separates boxes, if they are wide enough.
fn outline(width: f64) -> &'static str {
    if width > 3.0 {
        "class=\"box\" stroke=\"#ffffff\""
    } else {
        "stroke=\"none\""
    }
}
