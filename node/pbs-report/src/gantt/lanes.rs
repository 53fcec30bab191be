// SPDX-License-Identifier: GPL-2.0
//! A lane for each process, where there are too many slots for one row.

use super::*;
use crate::svg::shortened;

/// Slots narrower than this on average are told apart by lanes.
const NARROW: f64 = 8.0;
/// More processes than this are told apart by lanes, too: there are no more colours.
const ALONE: usize = 8;
/// The height of a lane, as long as the track is not higher than [`MOST`].
const LANE: f64 = 18.0;
const MOST: f64 = 720.0;
/// Room for the name of a process.
const NAME: f64 = LEFT - 28.0;
/// Names closer to each other than this could not be read.
const NAME_ROW: f64 = 13.0;

/// Place of each process in a track.
#[derive(Default)]
pub(super) struct Lanes {
    /// Height of the whole track.
    pub(super) height: f64,
    /// From top to bottom; empty if all are drawn in one row.
    processes: Vec<u32>,
}

impl Lanes {
    pub(super) fn is_split(&self) -> bool {
        !self.processes.is_empty()
    }

    /// Whether a process has a lane.
    pub(super) fn has(&self, process: u32) -> bool {
        self.processes.contains(&process)
    }

    fn lane(&self) -> f64 {
        self.height / self.processes.len().max(1) as f64
    }

    /// Top and height of the boxes of a process in the track at `y`.
    pub(super) fn place(&self, process: u32, y: f64) -> (f64, f64) {
        let number = self.processes.iter().position(|&id| id == process);
        match number {
            Some(number) => (y + number as f64 * self.lane(), self.lane()),
            None => (y, self.height),
        }
    }
}

impl Gantt<'_> {
    pub(super) fn lanes_of(&self, cpu: &CpuTimeline) -> Lanes {
        let mut lanes = Lanes { height: TRACK, processes: Vec::new() };
        let end_ns = cpu.planned.last().map_or(0, |slot| slot.end_ns);
        let width = self.x_of_ns(end_ns as f64);
        let is_narrow = width - LEFT < NARROW * cpu.planned.len() as f64;
        let own = self.report.processes.iter();
        let own = own.filter(|process| process.cpu == Some(cpu.cpu));
        let own: Vec<_> = own.map(|process| process.id).collect();
        if (is_narrow && own.len() > 1) || own.len() > ALONE {
            lanes.height = (LANE * own.len() as f64).clamp(TRACK, MOST);
            lanes.processes = own;
        }
        lanes
    }

    /// Writes whose lane is which, left of the track at `y`.
    pub(super) fn lane_names(&mut self, y: f64) {
        let mut free_from = f64::NEG_INFINITY;
        for process in self.lanes.processes.clone() {
            let (top, height) = self.lanes.place(process, y);
            let base = top + height / 2.0 + 4.0;
            if base < free_from {
                continue;
            }
            free_from = base + NAME_ROW;
            let name = shortened(&self.name(process), NAME, SMALL);
            let at = (LEFT - 8.0, base);
            self.picture.text(at, SMALL, Anchor::End, GREY_TEXT, &name);
        }
    }
}
