// SPDX-License-Identifier: GPL-2.0
//! Who holds how much of a memory, and when there is enough for another process.

use super::model::{Memory, Model, NONE};

/// What processes of the job hold of a memory.
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
        self.0.push(Hold {
            process,
            start_ns,
            end_ns: u64::MAX,
            bytes,
        });
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
    /// `None`: who has it holds it for good, as far as is known.
    pub(super) fn first_free(
        &self,
        model: &Model<'_>,
        memory: &Memory,
        bytes: u64,
        from_ns: u64,
        span_ns: u64,
    ) -> Option<(u64, u32)> {
        let mut from = (from_ns, NONE);
        loop {
            let until_ns = from.0.saturating_add(span_ns);
            let Some(lack_ns) = self.first_lack(memory, bytes, from.0, until_ns) else {
                return Some(from);
            };
            // When somebody gives some back.
            let ends = self.0.iter().filter(|hold| hold.end_ns != u64::MAX);
            let ends = ends.map(|hold| (hold.end_ns, model.last_task(hold.process)));
            let steps = memory.free.iter().map(|&(step_ns, _)| (step_ns, NONE));
            let times = ends.chain(steps).filter(|time| time.0 > lack_ns);
            from = times.min()?;
        }
    }

    /// The first time from `from_ns` on at which not so much more is free. What
    /// other jobs have reserved counts until `until_ns`, what this one's processes
    /// hold for good: nothing is planned before them that may be in their way.
    fn first_lack(&self, memory: &Memory, bytes: u64, from_ns: u64, until_ns: u64) -> Option<u64> {
        let lacks = |time_ns: u64| {
            let begun = memory.free.partition_point(|step| step.0 <= time_ns);
            let free_bytes = begun.checked_sub(1).map_or(0, |step| memory.free[step].1);
            let held = self.0.iter();
            let held = held.filter(|hold| hold.start_ns <= time_ns && time_ns < hold.end_ns);
            let wanted = held.fold(bytes, |sum, hold| sum.saturating_add(hold.bytes));
            wanted > free_bytes
        };
        if lacks(from_ns) {
            return Some(from_ns);
        }
        // Less is free from a start or a step on.
        let starts = self.0.iter().map(|hold| hold.start_ns);
        let steps = memory.free.iter().map(|step| step.0);
        let steps = steps.filter(|&step_ns| step_ns < until_ns);
        let times = starts.chain(steps).filter(|&time_ns| from_ns < time_ns);
        times.filter(|&time_ns| lacks(time_ns)).min()
    }
}
