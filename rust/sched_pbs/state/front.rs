// SPDX-License-Identifier: GPL-2.0

//! How far processes have come that tasks on other CPUs wait for.
//!
//! The policy of a CPU knows the processes of that CPU. Of a process on another one that somebody
//! here waits for, both CPUs have the same [`Front`]: the one that executes it writes there how far
//! it has come, with its own run queue locked, and the others read it, with theirs. No CPU ever takes
//! the lock of another one for that.
//!
//! Nobody is told who does not wait. Who begins to wait notes so and then reads; who ends a task
//! writes and then looks whether somebody has noted that. As there is a full barrier between the two
//! on both sides, one of them sees the other: either the task is found to have ended, or an
//! interrupt comes, upon which the policy looks again.

use crate::{linux::storage::CHARGED, pbs_core::Ended};
use core::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use kernel::{
    alloc::{KVVec, KVec},
    prelude::*,
    sync::Arc,
};

/// How far a process has come, for those on other CPUs who wait for it.
pub(crate) struct Front {
    /// The planner's number for it.
    process: u32,
    /// What [`pack`] makes of it; only rises.
    ended: AtomicU64,
    /// The least task that somebody has noted to wait for, [`NOBODY`]: none.
    awaited_task: AtomicU32,
    /// The CPUs that have, a bit for each.
    awaiting: KVec<AtomicU64>,
}

/// No task, and no CPU.
pub(crate) const NOBODY: u32 = u32::MAX;

/// How far, as a number that rises.
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
    /// That of a process of which nothing has ended.
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

    /// The process has come so far: calls `interrupt` with each CPU that waits for that.
    pub(crate) fn tell(&self, ended: Ended, interrupt: impl Fn(u32)) {
        self.ended.fetch_max(pack(ended), Ordering::Release);
        // Between this and what follows, as in `wait`; see the top of the file.
        fence(Ordering::SeqCst);
        let awaited_task = self.awaited_task.load(Ordering::Relaxed);
        if awaited_task == NOBODY || (!ended.has(awaited_task) && !ended.is_last) {
            return;
        }
        // Before the CPUs: who notes itself meanwhile is told, and notes itself again.
        self.awaited_task.store(NOBODY, Ordering::SeqCst);
        for (word, first) in self.awaiting.iter().zip((0..).step_by(u64::BITS as usize)) {
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                interrupt(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// No CPU has the process any more.
    pub(crate) fn tell_gone(&self, interrupt: impl Fn(u32)) {
        let mut ended = unpack(self.ended.load(Ordering::Relaxed));
        ended.is_last = true;
        self.tell(ended, interrupt);
    }

    /// A CPU has lost its plan, and need not look any more.
    pub(crate) fn forget(&self, cpu: u32) {
        if let Some(word) = self.awaiting.get((cpu / u64::BITS) as usize) {
            word.fetch_and(!(1 << (cpu % u64::BITS)), Ordering::Relaxed);
        }
    }

    /// A task on `cpu` waits for the task of that id; returns how far the process has come.
    fn wait(&self, cpu: u32, task: u32) -> Ended {
        if let Some(word) = self.awaiting.get((cpu / u64::BITS) as usize) {
            word.fetch_or(1 << (cpu % u64::BITS), Ordering::SeqCst);
        }
        self.awaited_task.fetch_min(task, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        unpack(self.ended.load(Ordering::Acquire))
    }
}

/// What a CPU has of fronts: a part of its state.
pub(crate) struct FrontLinks {
    /// By the index of the predecessor in the plan.
    awaited: KVVec<Option<Arc<Front>>>,
    /// Of its own processes, with their index in the plan, by which they ascend.
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

    /// All own processes were added.
    pub(crate) fn finish(&mut self) {
        self.shared.sort_unstable_by_key(|(process, _)| *process);
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
