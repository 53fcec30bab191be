// SPDX-License-Identifier: GPL-2.0
//! Reasons for which a try ends before its job is planned.

use super::{Attempt, OpenProcess};
use crate::reserve::{Lack, Progress};

/// Point at which a try ends.
pub(super) struct Stop {
    pub(super) task: usize,
    pub(super) lack: Lack,
    /// For how long the process of the task needs its memory, if that is why.
    pub(super) longer: Option<u64>,
}

impl Attempt<'_, '_> {
    pub(super) fn too_late(&self, task: usize, end_ns: u64) -> Stop {
        Stop {
            task,
            lack: Lack::Time { end_ns, deadline_ns: self.request.deadline_ns },
            longer: None,
        }
    }

    pub(super) fn no_work(&self, task: usize) -> Stop {
        self.work.cut();
        Stop { task, lack: Lack::Work, longer: None }
    }

    pub(super) fn no_memory(&self, task: usize) -> Stop {
        let want = self.want(task);
        let window = want.ready_ns..want.deadline_ns;
        let memories = self.net.memories(self.booking.store());
        let most = memories.filter_map(|memory| memory.max_over(window.clone()));
        Stop {
            task,
            lack: Lack::Memory {
                needed_bytes: want.memory_bytes,
                needed_ns: want.span_ns.min(want.deadline_ns.saturating_sub(want.ready_ns)),
                most_free_bytes: most.max().unwrap_or(0),
            },
            longer: None,
        }
    }

    /// Returns the stop of a process whose memory was not held long enough: the tasks after `task`
    /// need their time as well.
    pub(super) fn held_too_briefly(&self, task: usize, held: OpenProcess, end_ns: u64) -> Stop {
        let process = self.request.job.tasks[task].process;
        let first = self.net.rank_ns[task].saturating_sub(self.net.shortest_ns[task]);
        let last = self.request.job.processes[process].tasks.last();
        let after_ns = last
            .map_or(0, |&last| self.net.rank_ns[last].saturating_sub(self.net.shortest_ns[last]));
        let rest_ns = first.saturating_sub(after_ns);
        let span_ns = (end_ns - held.start_ns).saturating_add(rest_ns);
        let memory = self.booking.store().memory(held.core);
        Stop {
            task,
            lack: Lack::Memory {
                needed_bytes: self.request.job.processes[process].memory_bytes,
                needed_ns: span_ns,
                most_free_bytes: memory.value_at(held.until_ns),
            },
            // What has begun holds its memory already, wherever it looks.
            longer: match self.request.progress_of(process) {
                Progress::Waiting | Progress::Attached { .. } => Some(span_ns),
                Progress::Running { .. } | Progress::Ended => None,
            },
        }
    }

    pub(super) fn stuck(&self) -> Stop {
        let left = (0..self.waits_for.len()).find(|&task| self.waits_for[task] > 0);
        Stop { task: left.unwrap_or(0), lack: Lack::Order, longer: None }
    }
}
