// SPDX-License-Identifier: GPL-2.0
//! Jobs whose processes do not depend on each other's work.

use pbs_job::Job;

use crate::reserve::net::order;

/// Work that a task and all tasks before it consist of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Process(usize),
    Several,
}

impl Before {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (one, other) if one == other => one,
            _ => Self::Several,
        }
    }
}

/// Whether no task that takes time waits for one of another process, directly or through
/// others. Forks at the begin and joins at the end, which every job of several processes
/// has, take no time and make nothing wait.
pub(crate) fn is_independent(job: &Job) -> bool {
    let mut before = vec![Before::Nothing; job.tasks.len()];
    let mut in_order = 0;
    for index in order(job, &vec![true; job.tasks.len()]) {
        in_order += 1;
        let task = &job.tasks[index];
        let earlier = job.predecessors(index).map(|earlier| before[earlier]);
        let earlier = earlier.fold(Before::Nothing, Before::and);
        before[index] = if task.insns == 0 {
            earlier
        } else if earlier.and(Before::Process(task.process)) == Before::Several {
            return false;
        } else {
            Before::Process(task.process)
        };
    }
    in_order == job.tasks.len()
}
