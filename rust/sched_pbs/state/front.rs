// SPDX-License-Identifier: GPL-2.0

//! Progress of processes that tasks on other CPUs wait for.
//!
//! The policy of a CPU is aware of the processes of that CPU. For a process on another CPU that a
//! process here waits for, both CPUs have the same [`Front`]: the one that executes the process
//! writes its progress there, with its own run queue locked, and the others read it, with theirs.
//! No CPU ever takes the lock of another one for that.
//!
//! Only CPUs that wait are notified. A CPU that begins to wait notes so and then reads; a CPU that
//! ends a task writes and then checks whether another has noted that. There is a full barrier
//! between the two steps on both sides: therefore one of them sees the other. Either the task is
//! found to have ended, or an interrupt arrives, upon which the policy checks again.

use crate::{
    linux::storage::CHARGED,
    pbs_core::{sort, Ended},
    state::node::KernelMemory,
};
use core::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use kernel::{
    alloc::{KVVec, KVec},
    prelude::*,
    sync::Arc,
};

/// Progress of a process, for those on other CPUs that wait for it.
pub(crate) struct Front {
    /// The planner's number for the process.
    process: u32,
    /// The progress, packed by [`pack`]. The number of ended tasks only rises.
    ended: AtomicU64,
    /// The least task that a CPU has noted to wait for, [`NOBODY`]: none.
    awaited_task: AtomicU32,
    /// The CPUs that wait, a bit for each.
    awaiting: KVec<AtomicU64>,
}

/// No task, and no CPU.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Packs the progress into a number.
fn pack(ended: Ended) -> u64 {
    u64::from(ended.before_task) << 1 | u64::from(ended.is_last)
}

fn unpack(ended: u64) -> Ended {
    Ended {
        before_task: (ended >> 1) as u32,
        is_last: ended & 1 != 0,
    }
}

impl Front {
    /// The front of a process of which no task has ended.
    pub(crate) fn new(process: u32) -> Result<Arc<Front>> {
        let mut awaiting = KVec::new();
        for _ in 0..kernel::cpu::nr_cpu_ids().div_ceil(u64::BITS) {
            awaiting.push(AtomicU64::new(0), CHARGED)?;
        }
        let front = Front {
            process,
            ended: AtomicU64::new(pack(Ended::NOTHING)),
            awaited_task: AtomicU32::new(NOBODY),
            awaiting,
        };
        Ok(Arc::new(front, CHARGED)?)
    }

    /// The planner's number for the process.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// Sets the progress of the process: calls `interrupt` with each CPU that waits for that.
    pub(crate) fn tell(&self, ended: Ended, interrupt: impl Fn(u32)) {
        // A process that no CPU had any more may be in a plan again: then it is not gone.
        let _ = self
            .ended
            .fetch_update(Ordering::Release, Ordering::Relaxed, |before| {
                let before_task = unpack(before).before_task.max(ended.before_task);
                Some(pack(Ended {
                    before_task,
                    ..ended
                }))
            });
        // Between this and the following, as in `wait`; see the top of the file.
        fence(Ordering::SeqCst);
        let awaited_task = self.awaited_task.load(Ordering::Relaxed);
        if awaited_task == NOBODY || (!ended.has(awaited_task) && !ended.is_last) {
            return;
        }
        // Before the CPUs: one that notes itself meanwhile is notified, and notes itself again.
        self.awaited_task.store(NOBODY, Ordering::SeqCst);
        for (word, first) in self.awaiting.iter().zip((0..).step_by(u64::BITS as usize)) {
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                interrupt(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Reports that no CPU has the process any more.
    pub(crate) fn tell_gone(&self, interrupt: impl Fn(u32)) {
        let mut ended = unpack(self.ended.load(Ordering::Relaxed));
        ended.is_last = true;
        self.tell(ended, interrupt);
    }

    /// Forgets a CPU that has lost its plan, and need not be notified any more.
    pub(crate) fn forget(&self, cpu: u32) {
        if let Some(word) = self.awaiting.get((cpu / u64::BITS) as usize) {
            word.fetch_and(!(1 << (cpu % u64::BITS)), Ordering::Relaxed);
        }
    }

    /// Notes that a task on `cpu` waits for the task of that id; returns the progress of the
    /// process.
    fn wait(&self, cpu: u32, task: u32) -> Ended {
        if let Some(word) = self.awaiting.get((cpu / u64::BITS) as usize) {
            word.fetch_or(1 << (cpu % u64::BITS), Ordering::SeqCst);
        }
        self.awaited_task.fetch_min(task, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        unpack(self.ended.load(Ordering::Acquire))
    }
}

/// The fronts that a CPU uses: a part of its state.
pub(crate) struct FrontLinks {
    /// Fronts by the index of the predecessor in the plan.
    awaited: KVVec<Option<Arc<Front>>>,
    /// Fronts of its own processes, with their index in the plan, ascending by that.
    shared: KVec<(u32, Arc<Front>)>,
}

impl Default for FrontLinks {
    fn default() -> Self {
        Self {
            awaited: KVVec::new(),
            shared: KVec::new(),
        }
    }
}

impl FrontLinks {
    /// Adds the next predecessor of the plan, with its front if another CPU has it.
    pub(crate) fn await_front(&mut self, front: Option<Arc<Front>>) -> Result {
        self.awaited.push(front, CHARGED)?;
        Ok(())
    }

    /// Adds the front of an own process.
    pub(crate) fn share(&mut self, process: u32, front: Arc<Front>) -> Result {
        self.shared.push((process, front), CHARGED)?;
        Ok(())
    }

    /// Notes that all own processes were added.
    pub(crate) fn finish(&mut self) {
        let by_process = |one: &(u32, _), other: &(u32, _)| one.0.cmp(&other.0);
        sort::<KernelMemory, _>(&mut self.shared, by_process);
    }

    /// The own processes that were added, from one on: their index in the plan, and their front.
    pub(crate) fn shared_from(&self, from: usize) -> &[(u32, Arc<Front>)] {
        self.shared.get(from..).unwrap_or_default()
    }

    /// See [`Sink::await_elsewhere`](crate::pbs_core::Sink::await_elsewhere).
    pub(crate) fn wait(&self, cpu: u32, predecessor: u32, task: u32) -> Ended {
        let front = self.awaited.get(predecessor as usize);
        let front = front.and_then(Option::as_ref);
        front.map_or(Ended::NOTHING, |front| front.wait(cpu, task))
    }

    /// See [`Sink::tell_elsewhere`](crate::pbs_core::Sink::tell_elsewhere).
    pub(crate) fn tell(&self, process: u32, ended: Ended, interrupt: impl Fn(u32)) {
        let first = self.shared.partition_point(|(other, _)| *other < process);
        let own = self.shared.iter().skip(first);
        // One for each written plan that waits for it.
        for (_, front) in own.take_while(|(other, _)| *other == process) {
            front.tell(ended, &interrupt);
        }
    }
}
