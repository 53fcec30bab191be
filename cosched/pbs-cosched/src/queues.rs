// SPDX-License-Identifier: GPL-2.0
//! The waiting queues (§2.6.2) and what is already decided.

use crate::model::Platform;

/// Where exactly a task runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// These threads of the CPU.
    Threads(Vec<u32>),
    /// This accelerator.
    Device {
        /// Its type.
        device: usize,
        /// Which one of the type.
        instance: u32,
    },
}

/// When and where a task runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When it starts.
    pub start_ns: u64,
    /// When it ends, as far as is expected.
    pub end_ns: u64,
    /// Where it runs.
    pub place: Where,
}

/// How far a task is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It has a CSI: it is subject to co-scheduling.
    #[default]
    Waiting,
    /// It has started and keeps its variant (§1.2: no preemption), or it has ended.
    Started(Slot),
    /// Nothing is known of it: not submitted yet, or gone.  Who waits for it does not wait.
    Absent,
}

/// An entry of a waiting queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose it is: an index into the workload's processes, or another number for a process
    /// that is not in it.
    pub process: usize,
    /// It runs already.
    pub in_execution: bool,
    /// How long its task runs.
    pub runtime_ns: u64,
    /// When its task is expected to end.
    pub end_ns: u64,
}

/// The waiting queues: one per CPU thread and one per accelerator, each first in, first out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// What time it is.
    pub now_ns: u64,
    /// Of each CPU thread.
    pub threads: Vec<Vec<Entry>>,
    /// Of each accelerator: by type, then by instance.
    pub devices: Vec<Vec<Vec<Entry>>>,
    /// How far each task is; [`State::Waiting`] where the list is shorter.
    pub tasks: Vec<State>,
}

impl Queues {
    /// Nothing runs and everything waits.
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

    /// Takes away what is not in execution, as happens before tasks are mapped anew (§4.3).
    pub fn keep_running(&mut self) {
        for queue in self.threads.iter_mut().chain(self.devices.iter_mut().flatten()) {
            queue.retain(|entry| entry.in_execution);
        }
    }

    /// Whether a task is subject to co-scheduling.
    pub fn waits(&self, task: usize) -> bool {
        matches!(self.tasks.get(task), None | Some(State::Waiting))
    }

    /// When and where a task started, if it has.
    pub fn slot(&self, task: usize) -> Option<&Slot> {
        match self.tasks.get(task) {
            Some(State::Started(slot)) => Some(slot),
            _ => None,
        }
    }

    /// When a queue is through, in execution or not.
    pub(crate) fn free_ns(&self, queue: &[Entry]) -> u64 {
        queue.iter().map(|entry| entry.end_ns).max().unwrap_or(0).max(self.now_ns)
    }
}
