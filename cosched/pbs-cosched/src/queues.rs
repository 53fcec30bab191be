// SPDX-License-Identifier: GPL-2.0
//! The waiting queues (§2.6.2) and what is already decided.

use crate::model::Platform;

/// Exact place of a task's execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// Threads of the CPU, by number.
    Threads(Vec<u32>),
    /// This accelerator.
    Device {
        /// Type of the accelerator.
        device: usize,
        /// Number within the type.
        instance: u32,
    },
}

/// Memory of data: the host's, or that of an accelerator.
pub(crate) type Memory = Option<(usize, u32)>;

pub(crate) fn memory(place: &Where) -> Memory {
    match *place {
        Where::Threads(_) => None,
        Where::Device { device, instance } => Some((device, instance)),
    }
}

/// Time and place of a task's execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Start of the execution.
    pub start_ns: u64,
    /// Expected end.
    pub end_ns: u64,
    /// Place of the execution.
    pub place: Where,
}

/// State of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The task has a CSI: it is subject to co-scheduling.
    #[default]
    Waiting,
    /// The task has started and keeps its variant (§1.2: no preemption), or it has ended.
    Started(Slot),
    /// The task is unknown: not submitted yet, or gone.  Successors do not wait for it.
    Absent,
}

/// An entry of a waiting queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Process of the entry: an index into the workload's processes, or another number for a
    /// process that is not in it.
    pub process: usize,
    /// Whether the entry is being executed.
    pub in_execution: bool,
    /// Runtime of the task.
    pub runtime_ns: u64,
    /// Expected end of the task.
    pub end_ns: u64,
}

/// The waiting queues: one per CPU thread and one per accelerator, each first in, first out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Current time.
    pub now_ns: u64,
    /// Queue of each CPU thread.
    pub threads: Vec<Vec<Entry>>,
    /// Queue of each accelerator: by type, then by instance.
    pub devices: Vec<Vec<Vec<Entry>>>,
    /// State of each task; [`State::Waiting`] where the list is shorter.
    pub tasks: Vec<State>,
}

impl Queues {
    /// Creates empty queues, with all tasks waiting.
    pub fn idle(platform: &Platform) -> Self {
        Self {
            now_ns: 0,
            threads: vec![Vec::new(); platform.threads as usize],
            devices: platform
                .devices
                .iter()
                .map(|of| vec![Vec::new(); of.count as usize])
                .collect(),
            tasks: Vec::new(),
        }
    }

    /// Puts an entry at the end of the queues of a place.
    pub fn push(&mut self, place: &Where, entry: Entry) {
        match place {
            Where::Threads(threads) => {
                for &thread in threads {
                    self.threads[thread as usize].push(entry);
                }
            }
            &Where::Device { device, instance } => {
                self.devices[device][instance as usize].push(entry);
            }
        }
    }

    /// Removes all entries that are not in execution, as happens before tasks are mapped anew
    /// (§4.3).
    pub fn keep_running(&mut self) {
        for queue in self.threads.iter_mut().chain(self.devices.iter_mut().flatten()) {
            queue.retain(|entry| entry.in_execution);
        }
    }

    /// Whether a task is subject to co-scheduling.
    pub fn waits(&self, task: usize) -> bool {
        matches!(self.tasks.get(task), None | Some(State::Waiting))
    }

    /// Returns the slot of a task that has started.
    pub fn slot(&self, task: usize) -> Option<&Slot> {
        match self.tasks.get(task) {
            Some(State::Started(slot)) => Some(slot),
            _ => None,
        }
    }

    /// Returns the time at which a queue is worked off, whether it is being executed or not.
    pub(crate) fn free_ns(&self, queue: &[Entry]) -> u64 {
        queue.iter().map(|entry| entry.end_ns).max().unwrap_or(0).max(self.now_ns)
    }
}
