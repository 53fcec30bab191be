// SPDX-License-Identifier: GPL-2.0
//! Memory held by processes of the job, and the times at which there is enough for another process.

use std::ops::Range;

use super::model::{Memory, Model, NONE};

/// Parts of a memory that processes of the job hold.
#[derive(Default)]
pub(super) struct Holds(Vec<Hold>);

struct Hold {
    process: u32,
    start_ns: u64,
    /// `u64::MAX`: not known yet.
    end_ns: u64,
    bytes: u64,
}

impl Holds {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn take(&mut self, process: u32, bytes: u64, start_ns: u64) {
        self.0.push(Hold { process, start_ns, end_ns: u64::MAX, bytes });
    }

    /// The process ends. Whether it could hold its memory until then: others may
    /// have reserved it, when it was thought to end earlier.
    #[must_use]
    pub(super) fn give_back(&mut self, memory: &Memory, process: u32, end_ns: u64) -> bool {
        let Some(hold) = self.0.iter_mut().find(|hold| hold.process == process) else {
            return true;
        };
        hold.end_ns = end_ns;
        let start_ns = hold.start_ns;
        self.first_lack(memory, 0, start_ns, end_ns).is_none()
    }

    /// From when on so much is free for so long, and the task at whose end it is.
    /// `None`: who has it holds it for good, as far as is known. `windows` are those
    /// of [`Memory::windows`].
    pub(super) fn first_free(
        &self,
        model: &Model<'_>,
        memory: &Memory,
        windows: &[Range<u64>],
        bytes: u64,
        from_ns: u64,
        span_ns: u64,
    ) -> Option<(u64, u32)> {
        let mut from = (from_ns, NONE);
        loop {
            let end_ns = from.0.saturating_add(span_ns);
            let first = windows.partition_point(|window| window.end < end_ns);
            let window = windows[first..].iter().find(|window| {
                let end_ns = window.start.max(from.0).saturating_add(span_ns);
                end_ns <= window.end
            })?;
            if window.start > from.0 {
                from = (window.start, NONE);
            }
            let until_ns = from.0.saturating_add(span_ns);
            let Some(lack_ns) = self.first_lack(memory, bytes, from.0, until_ns) else {
                return Some(from);
            };
            from = (lack_ns, NONE);
            while self.lacks(memory, bytes, from.0) {
                // The next time at which somebody gives some back.
                let ends = self.0.iter().filter(|hold| hold.end_ns != u64::MAX);
                let ends = ends.map(|hold| (hold.end_ns, model.last_task(hold.process)));
                let end = ends.filter(|end| end.0 > from.0).min();
                let step = memory.steps_after(from.0).first();
                from = end.into_iter().chain(step.map(|step| (step.0, NONE))).min()?;
            }
        }
    }

    /// Not so much more is free at that time.
    fn lacks(&self, memory: &Memory, bytes: u64, time_ns: u64) -> bool {
        let held = self.0.iter();
        let held = held.filter(|hold| hold.start_ns <= time_ns && time_ns < hold.end_ns);
        let wanted_bytes = held.fold(bytes, |sum, hold| sum.saturating_add(hold.bytes));
        wanted_bytes > memory.free_bytes(time_ns)
    }

    /// The first time from `from_ns` on at which not so much more is free. What
    /// other jobs have reserved counts until `until_ns`, what this one's processes
    /// hold for good: nothing is planned before them that may be in their way.
    fn first_lack(&self, memory: &Memory, bytes: u64, from_ns: u64, until_ns: u64) -> Option<u64> {
        if self.0.is_empty() {
            // It is in a window.
            return None;
        }
        if self.lacks(memory, bytes, from_ns) {
            return Some(from_ns);
        }
        // Less is free from a start or a step on.
        let lacks = |&time_ns: &u64| self.lacks(memory, bytes, time_ns);
        let starts = self.0.iter().map(|hold| hold.start_ns);
        let start_ns = starts.filter(|&start_ns| from_ns < start_ns).filter(lacks).min();
        let steps = memory.steps_after(from_ns).iter().map(|step| step.0);
        let mut steps = steps.take_while(|&step_ns| step_ns < until_ns);
        start_ns.into_iter().chain(steps.find(lacks)).min()
    }
}
