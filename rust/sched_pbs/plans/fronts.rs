// SPDX-License-Identifier: GPL-2.0

//! Tasks that wait for tasks on other CPUs.
//!
//! The policy of a CPU knows the processes of that CPU. Of a process on another one that somebody
//! here waits for, both CPUs have the same [`Front`]: the one that executes it writes there how far
//! it has come, with its own run queue locked, and the others read it, with theirs. No CPU ever takes
//! the lock of another one for that.
//!
//! Nobody is told who does not wait. Who begins to wait notes so and then reads; who ends a task
//! writes and then looks whether somebody has noted that. As there is a full barrier between the two
//! on both sides, one of them sees the other: either the task is found to have ended, or an
//! interrupt comes ([`Cpu::request_order`]), upon which the policy looks again.
//!
//! Fronts are made when a plan is written, by who holds the control lock, and [`Fronts`] knows those
//! in use. They stay when one side gets another plan: a CPU that keeps its plan goes on to see the
//! processes that it waits for, wherever they go on.

use crate::{
    linux::storage::{KernelMemory, CHARGED},
    pbs_core::{Ended, Node},
    percpu::cpu::Cpu,
    plans::{change::with_locked, global::Pbs},
};
use core::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use kernel::{
    alloc::{KVVec, KVec},
    prelude::*,
    sync::Arc,
    task_ext::give_way,
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

const NOBODY: u32 = u32::MAX;

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
    fn new(process: u32) -> Result<Arc<Front>> {
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

    /// The process has come so far: has those look who wait for that.
    fn tell(&self, pbs: &Pbs, ended: Ended) {
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
                if let Some(cpu) = pbs.cpu(first + bits.trailing_zeros()) {
                    cpu.request_order();
                }
                bits &= bits - 1;
            }
        }
    }

    /// No CPU has the process any more.
    fn tell_gone(&self, pbs: &Pbs) {
        let mut ended = unpack(self.ended.load(Ordering::Relaxed));
        ended.is_last = true;
        self.tell(pbs, ended);
    }

    /// A CPU has lost its plan, and need not look any more.
    fn forget(&self, cpu: u32) {
        if let Some(word) = self.awaiting.get((cpu / u64::BITS) as usize) {
            word.fetch_and(!(1 << (cpu % u64::BITS)), Ordering::Relaxed);
        }
    }

    /// A task on `cpu` waits for the task of that id; returns how far the process has come.
    fn wait(&self, cpu: &Cpu, task: u32) -> Ended {
        let number = cpu.number();
        if let Some(word) = self.awaiting.get((number / u64::BITS) as usize) {
            word.fetch_or(1 << (number % u64::BITS), Ordering::SeqCst);
        }
        self.awaited_task.fetch_min(task, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        unpack(self.ended.load(Ordering::Acquire))
    }
}

/// What a CPU has of fronts: a part of its state.
pub(crate) struct Links {
    /// By the index of the predecessor in the plan.
    awaited: KVVec<Option<Arc<Front>>>,
    /// Of its own processes, with their index in the plan, by which they ascend.
    shared: KVec<(u32, Arc<Front>)>,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            awaited: KVVec::new(),
            shared: KVec::new(),
        }
    }
}

impl Links {
    /// See [`Sink::await_elsewhere`](crate::pbs_core::Sink::await_elsewhere).
    pub(crate) fn wait(&self, cpu: &Cpu, predecessor: u32, task: u32) -> Ended {
        let front = self.awaited.get(predecessor as usize);
        let front = front.and_then(Option::as_ref);
        front.map_or(Ended::NOTHING, |front| front.wait(cpu, task))
    }

    /// See [`Sink::tell_elsewhere`](crate::pbs_core::Sink::tell_elsewhere).
    pub(crate) fn tell(&self, pbs: &Pbs, process: u32, ended: Ended) {
        let first = self.shared.partition_point(|(other, _)| *other < process);
        let own = self.shared.iter().skip(first);
        // One for each written plan that waits for it.
        for (_, front) in own.take_while(|(other, _)| *other == process) {
            front.tell(pbs, ended);
        }
    }
}

/// The fronts in use, each with the number of the CPU that has it, or [`NOBODY`] if that has lost its
/// plan: a part of what the control lock protects.
#[derive(Default)]
pub(crate) struct Fronts {
    awaited: KVec<(u32, Arc<Front>)>,
    shared: KVec<(u32, Arc<Front>)>,
}

/// What a CPU gets: its number, the plan, and its links, which are made for it.
pub(crate) type New<'a> = (u32, &'a mut Node<KernelMemory>, Links);

impl Fronts {
    /// The fronts as they are with the plans that some CPUs get, and the links of those. Marks the
    /// processes of the new plans for which CPUs wait that keep theirs.
    ///
    /// Takes time in proportion to the processes that are waited for, times those.
    pub(crate) fn follow(&self, plans: &mut [New<'_>]) -> Result<Fronts> {
        let mut fronts = Fronts::default();
        let keeps = |cpu: u32, plans: &[New<'_>]| {
            cpu != NOBODY && !plans.iter().any(|(other, ..)| *other == cpu)
        };
        // Those that stay find the processes that they wait for in the new plans.
        for (cpu, front) in self.awaited.iter() {
            give_way()?;
            if !keeps(*cpu, plans) {
                continue;
            }
            fronts.awaited.push((*cpu, front.clone()), CHARGED)?;
            fronts.share(front, plans)?;
        }
        // Nothing but what is written together waits for each other anew.
        let mut made = KVec::new();
        for (cpu, node, links) in plans.iter_mut() {
            for after in node.plan().predecessors() {
                give_way()?;
                let front = if after.is_elsewhere() {
                    let front = front_of(&mut made, after.id)?;
                    fronts.awaited.push((*cpu, front.clone()), CHARGED)?;
                    Some(front)
                } else {
                    None
                };
                links.awaited.push(front, CHARGED)?;
            }
        }
        for front in made.iter() {
            fronts.share(front, plans)?;
        }
        for (_, _, links) in plans.iter_mut() {
            links.shared.sort_unstable_by_key(|(process, _)| *process);
        }
        for (cpu, front) in self.shared.iter() {
            if keeps(*cpu, plans) {
                fronts.shared.push((*cpu, front.clone()), CHARGED)?;
            }
        }
        Ok(fronts)
    }

    /// The plan that has the process of a front tells it from now on.
    fn share(&mut self, front: &Arc<Front>, plans: &mut [New<'_>]) -> Result {
        for (cpu, node, links) in plans.iter_mut() {
            if let Some(process) = node.plan().find(front.process) {
                node.share(process);
                links.shared.push((process, front.clone()), CHARGED)?;
                self.shared.push((*cpu, front.clone()), CHARGED)?;
            }
        }
        Ok(())
    }

    /// The new plans are in force, and `self` is what they made of `before`: tells those who wait for
    /// a process that no CPU has any more.
    pub(crate) fn tell_lost(&self, pbs: &Pbs, before: &Fronts) {
        for (_, front) in before.shared.iter() {
            let _ = give_way();
            if !self
                .shared
                .iter()
                .any(|(_, other)| Arc::ptr_eq(other, front))
            {
                front.tell_gone(pbs);
            }
        }
    }

    /// A CPU has lost its plan: tells those who wait for its processes. Allocates nothing.
    pub(crate) fn leave(&mut self, pbs: &Pbs, cpu: u32) {
        // It may go offline, where no interrupt may be sent to. What its plan before waited for is
        // among those, too, as long as somebody tells it.
        for (_, front) in self.shared.iter() {
            front.forget(cpu);
        }
        for (other, _) in self.awaited.iter_mut().filter(|front| front.0 == cpu) {
            *other = NOBODY;
        }
        for (other, front) in self.shared.iter_mut().filter(|front| front.0 == cpu) {
            *other = NOBODY;
            front.tell_gone(pbs);
        }
    }
}

/// The front of a process among those that were made, ascending by process; makes it if it is not
/// among them.
fn front_of(made: &mut KVec<Arc<Front>>, process: u32) -> Result<Arc<Front>> {
    let place = match made.binary_search_by_key(&process, |front| front.process) {
        Ok(place) => place,
        Err(place) => {
            made.push(Front::new(process)?, CHARGED)?;
            if let Some(behind) = made.get_mut(place..) {
                behind.rotate_right(1);
            }
            place
        }
    };
    made.get(place).cloned().ok_or(EINVAL)
}

/// How many processes are told of with the run queue locked.
const TOLD_A_LOCK: usize = 32;

/// Tells those on other CPUs how far the processes of a CPU have come with which its plan begins.
pub(crate) fn tell_all(pbs: &Pbs, cpu: &Cpu) {
    let mut from = 0;
    loop {
        let _ = give_way();
        let told = with_locked(cpu, |_, _, state| {
            let node = state.node.as_deref()?;
            let links = state.events.links();
            let piece = links.shared.get(from..)?;
            let piece = piece.iter().take(TOLD_A_LOCK);
            let mut told = 0;
            for (process, front) in piece {
                if let Some(ended) = node.come_to(*process) {
                    front.tell(pbs, ended);
                }
                told += 1;
            }
            Some(told)
        });
        match told.flatten() {
            None | Some(0) => return,
            Some(told) => from += told,
        }
    }
}
