// SPDX-License-Identifier: GPL-2.0
//! Memory that the plan of a code leaves free, and the times at which there is enough for another
//! process.
//!
//! A memory is a list of points in the order of time. From each point on, so many bytes are free:
//! what other jobs leave, less what processes of this job hold. The points are in blocks that know
//! their extremes. A question passes over most blocks without a look at their points, and a change
//! of all points after a time is one addition for each block.

use std::ops::Range;

use super::model::{Memory, NONE};
use crate::budget::Budget;

/// Points of a block at most; fuller ones are split.
const BLOCK: usize = 64;

/// Free memory over time. It is less than nothing where processes of the job hold what other jobs
/// have reserved.
#[derive(Default)]
pub(super) struct Holds {
    /// None is empty. The first point is at or before any time that is asked for.
    blocks: Vec<Block>,
    /// Empty lists of points, for blocks to come.
    spare: Vec<Vec<Point>>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    time_ns: u64,
    /// Free from this time on, less what the block has to add.
    bytes: i128,
    /// Whether a process of the job takes its memory now.
    is_start: bool,
    /// The last task of the process that gives its memory back now, the first of several;
    /// [`NONE`]: no process does.
    last_task: u32,
}

struct Block {
    points: Vec<Point>,
    /// Added to the bytes of each point.
    added: i128,
    least: i128,
    most: i128,
    /// The least of those points at which a process takes its memory.
    least_at_start: i128,
}

impl Block {
    fn new(points: Vec<Point>) -> Self {
        let mut block = Self { points, added: 0, least: 0, most: 0, least_at_start: 0 };
        block.measure();
        block
    }

    fn measure(&mut self) {
        (self.least, self.most, self.least_at_start) = (i128::MAX, i128::MIN, i128::MAX);
        for point in &self.points {
            let bytes = point.bytes + self.added;
            self.least = self.least.min(bytes);
            self.most = self.most.max(bytes);
            if point.is_start {
                self.least_at_start = self.least_at_start.min(bytes);
            }
        }
    }

    fn add(&mut self, bytes: i128) {
        self.added += bytes;
        self.least += bytes;
        self.most += bytes;
        if self.least_at_start < i128::MAX {
            self.least_at_start += bytes;
        }
    }

    fn first_ns(&self) -> u64 {
        self.points[0].time_ns
    }

    fn bytes(&self, point: &Point) -> i128 {
        point.bytes + self.added
    }
}

impl Holds {
    /// Gives up all holds of the memory.
    pub(super) fn clear(&mut self, memory: &Memory) {
        let Self { blocks, spare } = self;
        spare.extend(blocks.drain(..).map(|block| block.points));
        let steps = memory.steps().iter().map(|&(time_ns, bytes)| (time_ns, bytes.into()));
        // Before the first step nothing is free.
        let before = steps.clone().next().is_none_or(|(time_ns, _)| time_ns > 0);
        let mut steps = before.then_some((0, 0)).into_iter().chain(steps).peekable();
        while steps.peek().is_some() {
            let mut points = spare.pop().unwrap_or_default();
            points.clear();
            points.extend(steps.by_ref().take(BLOCK / 2).map(|(time_ns, bytes)| Point {
                time_ns,
                bytes,
                is_start: false,
                last_task: NONE,
            }));
            blocks.push(Block::new(points));
        }
    }

    /// A process takes its memory and holds it for good, as far as is known.
    pub(super) fn take(&mut self, work: &Budget, bytes: u64, start_ns: u64) {
        self.change_from(work, start_ns, -i128::from(bytes), |point| point.is_start = true);
    }

    /// A process that has held its memory since `start_ns` ends. Returns whether it could hold it
    /// until then: others may have reserved it, when it was thought to end earlier.
    #[must_use]
    pub(super) fn give_back(
        &mut self,
        work: &Budget,
        bytes: u64,
        last_task: u32,
        held: Range<u64>,
    ) -> bool {
        self.change_from(work, held.end, bytes.into(), |point| {
            point.last_task = point.last_task.min(last_task);
        });
        self.first_lack(work, 0, held.start, held.end).is_none()
    }

    /// Adds bytes from a time on, at which there is a point then.
    fn change_from(
        &mut self,
        work: &Budget,
        time_ns: u64,
        bytes: i128,
        mark: impl FnOnce(&mut Point),
    ) {
        let index = self.block_of(time_ns);
        let block = &mut self.blocks[index];
        let place = block.points.partition_point(|point| point.time_ns < time_ns);
        if block.points.get(place).is_none_or(|point| point.time_ns > time_ns) {
            let before = block.points[place - 1].bytes;
            let point = Point { time_ns, bytes: before, is_start: false, last_task: NONE };
            block.points.insert(place, point);
        }
        mark(&mut block.points[place]);
        block.points[place..].iter_mut().for_each(|point| point.bytes += bytes);
        work.add((block.points.len() + self.blocks.len() - index) as u64);
        self.blocks[index + 1..].iter_mut().for_each(|block| block.add(bytes));
        let block = &mut self.blocks[index];
        if block.points.len() > BLOCK {
            let mut rest = self.spare.pop().unwrap_or_default();
            rest.clear();
            rest.extend(block.points.drain(BLOCK / 2..));
            let mut rest = Block { added: block.added, ..Block::new(rest) };
            rest.measure();
            block.measure();
            self.blocks.insert(index + 1, rest);
        } else {
            block.measure();
        }
    }

    /// The block in which the last point at or before that time is.
    fn block_of(&self, time_ns: u64) -> usize {
        self.blocks.partition_point(|block| block.first_ns() <= time_ns).saturating_sub(1)
    }

    /// Returns the most that is free at any time from `from_ns` on.
    pub(super) fn most_bytes(&self, work: &Budget, from_ns: u64) -> i128 {
        let first = self.block_of(from_ns);
        work.add((self.blocks.len() - first) as u64);
        let rest = self.blocks[first..].iter().map(|block| block.most);
        rest.max().unwrap_or(0)
    }

    /// From when on so much is free for so long, and the task at whose end it is.
    /// `None`: who has it holds it for good, as far as is known. `windows` are those
    /// of [`Memory::windows`].
    pub(super) fn first_free(
        &self,
        work: &Budget,
        windows: &[Range<u64>],
        bytes: u64,
        from_ns: u64,
        span_ns: u64,
    ) -> Option<(u64, u32)> {
        let wanted = i128::from(bytes);
        let mut from = (from_ns, NONE);
        loop {
            let end_ns = from.0.saturating_add(span_ns);
            let first = windows.partition_point(|window| window.end < end_ns);
            let window = windows[first..].iter().find(|window| {
                work.add(1);
                let end_ns = window.start.max(from.0).saturating_add(span_ns);
                end_ns <= window.end
            })?;
            if window.start > from.0 {
                from = (window.start, NONE);
            }
            let until_ns = from.0.saturating_add(span_ns);
            let Some(lack_ns) = self.first_lack(work, wanted, from.0, until_ns) else {
                return Some(from);
            };
            // Nothing is planned before a process that would be in its way, so the last of those
            // that would counts.
            let last_ns = self.last_lack_at_start(work, wanted, lack_ns);
            from = self.first_at_least(work, wanted, last_ns)?;
            let is_begin = windows.binary_search_by_key(&from.0, |window| window.start).is_ok();
            if is_begin && last_ns > lack_ns {
                // The process waits for other jobs then, if it could not be in the window before.
                from = self.first_at_least(work, wanted, lack_ns)?;
            }
        }
    }

    /// The first time from `from_ns` on at which not so much more is free. What
    /// other jobs have reserved counts until `until_ns`, what this one's processes
    /// hold for good: nothing is planned before them that may be in their way.
    fn first_lack(&self, work: &Budget, wanted: i128, from_ns: u64, until_ns: u64) -> Option<u64> {
        let first = self.block_of(from_ns);
        for (index, block) in self.blocks.iter().enumerate().skip(first) {
            work.add(1);
            let is_before = index == first || block.first_ns() < until_ns;
            let is_before = is_before && block.least < wanted;
            if !is_before && block.least_at_start >= wanted {
                continue;
            }
            let begun = if index == first {
                block.points.partition_point(|point| point.time_ns <= from_ns)
            } else {
                0
            };
            // The point that holds at `from_ns`, whatever it is.
            if let Some(at) = block.points[..begun].last() {
                if block.bytes(at) < wanted {
                    return Some(from_ns);
                }
            }
            let mut points = block.points[begun..].iter();
            let found = points.find(|point| {
                let counts = point.time_ns < until_ns || point.is_start;
                counts && block.bytes(point) < wanted
            });
            work.add((block.points.len() - begun - points.len()) as u64);
            if let Some(found) = found {
                return Some(found.time_ns);
            }
        }
        None
    }

    /// The last time after `lack_ns` at which a process of the job takes its memory and not so much
    /// more is free; `lack_ns` if there is none.
    fn last_lack_at_start(&self, work: &Budget, wanted: i128, lack_ns: u64) -> u64 {
        let first = self.block_of(lack_ns);
        for block in self.blocks[first..].iter().rev() {
            work.add(1);
            if block.least_at_start < wanted {
                let mut points = block.points.iter().rev();
                let found = points.find(|point| point.is_start && block.bytes(point) < wanted);
                work.add((block.points.len() - points.len()) as u64);
                return found.map_or(lack_ns, |point| point.time_ns.max(lack_ns));
            }
        }
        lack_ns
    }

    /// The first time after `after_ns` at which so much is free, and the task at whose end it is.
    fn first_at_least(&self, work: &Budget, wanted: i128, after_ns: u64) -> Option<(u64, u32)> {
        let first = self.block_of(after_ns);
        for block in &self.blocks[first..] {
            work.add(1);
            if block.most < wanted {
                continue;
            }
            let mut points = block.points.iter();
            let found =
                points.find(|point| point.time_ns > after_ns && block.bytes(point) >= wanted);
            work.add((block.points.len() - points.len()) as u64);
            if let Some(found) = found {
                return Some((found.time_ns, found.last_task));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
