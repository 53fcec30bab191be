// SPDX-License-Identifier: GPL-2.0
//! Reasons for which a try ends before its job is planned.

use pbs_profile::Profile;

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

    /// Returns the stop of a process for which too little memory, or too little of a resource, is
    /// free.
    pub(super) fn no_needs(&self, task: usize) -> Stop {
        let want = self.want(task);
        let store = self.booking.store();
        let window = want.ready_ns..want.deadline_ns;
        let needed_ns = want.span_ns.min(want.deadline_ns.saturating_sub(want.ready_ns));
        // A resource that is free for long enough is not what is lacking.
        let lacking = want.needs.resources.iter().position(|held| {
            let free = store.resource(held.resource);
            free.find_first_hole(held.count, needed_ns, window.clone()).is_none()
        });
        let memories = self.net.memories(store);
        let most = memories.filter_map(|memory| memory.max_over(window.clone()));
        let most_free_bytes = most.max().unwrap_or(0);
        let lack = match lacking {
            Some(place) => self.lack_of_resource(task, place, needed_ns, |free| {
                free.max_over(window.clone()).unwrap_or(0)
            }),
            None => {
                let needed_bytes = want.needs.memory_bytes;
                Lack::Memory { needed_bytes, needed_ns, most_free_bytes }
            }
        };
        Stop { task, lack, longer: None }
    }

    /// Returns the lack of a resource of the task's process.
    fn lack_of_resource(
        &self,
        task: usize,
        place: usize,
        needed_ns: u64,
        most_free: impl Fn(&Profile) -> u64,
    ) -> Lack {
        let process = self.request.job.tasks[task].process;
        let held = self.net.needs[process].resources[place];
        Lack::Resource {
            place,
            needed: held.count,
            needed_ns,
            most_free: most_free(self.booking.store().resource(held.resource)),
        }
    }

    /// Returns the stop of a process that could not hold its memory or a resource for long enough:
    /// the tasks after `task` need their time as well.
    pub(super) fn held_too_briefly(&self, task: usize, held: OpenProcess, end_ns: u64) -> Stop {
        let process = self.request.job.tasks[task].process;
        let first = self.net.rank_ns[task].saturating_sub(self.net.shortest_ns[task]);
        let last = self.request.job.processes[process].tasks.last();
        let after_ns = last
            .map_or(0, |&last| self.net.rank_ns[last].saturating_sub(self.net.shortest_ns[last]));
        let rest_ns = first.saturating_sub(after_ns);
        let span_ns = (end_ns - held.start_ns).saturating_add(rest_ns);
        let store = self.booking.store();
        let needs = &self.net.needs[process];
        let lacking = needs
            .resources
            .iter()
            .position(|of| store.resource(of.resource).value_at(held.until_ns) < of.count);
        let lack = match lacking {
            Some(place) => {
                self.lack_of_resource(task, place, span_ns, |free| free.value_at(held.until_ns))
            }
            None => Lack::Memory {
                needed_bytes: needs.memory_bytes,
                needed_ns: span_ns,
                most_free_bytes: store.memory(held.core).value_at(held.until_ns),
            },
        };
        Stop {
            task,
            lack,
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
