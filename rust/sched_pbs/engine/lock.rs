// SPDX-License-Identifier: GPL-2.0

//! Sections under the lock of a run queue that begin outside the core scheduler.

use super::settle::Wake;
use crate::{
    linux::sched_class::{self, RunQueue, RunQueueGuard},
    percpu::{access::with_state, cpu::Cpu},
    state::State,
};
use kernel::{clock, prelude::*, task::Task, types::ARef};

impl Cpu {
    /// Locks the run queue of this CPU and calls `function` with the state.
    pub(crate) fn lock<R>(
        &self,
        function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
    ) -> Option<R> {
        finish(RunQueueGuard::lock(self.id()), function)
    }

    /// Calls `function` with the run queue locked, for a change of the plan, and notes the time if
    /// it is the longest so far.
    pub(crate) fn lock_for_change<R>(
        &self,
        function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
    ) -> Option<R> {
        self.lock(|rq, cpu, state| {
            let since_ns = clock::monotonic_ns();
            let result = function(rq, cpu, state);
            let took_ns = clock::monotonic_ns().saturating_sub(since_ns);
            state.longest.note_swap(took_ns);
            result
        })
    }
}

/// Calls `function` with the state of the locked run queue's CPU, wakes up the thread that the
/// settling found, and drops the lock. Not for the callbacks of the class, whose lock is the
/// core's.
pub(crate) fn finish<R>(
    mut rq: RunQueueGuard,
    function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
) -> Option<R> {
    rq.update_clock();
    let (result, wake, boosted) = with_state(rq.as_mut(), |rq, cpu, state| {
        let result = function(rq, cpu, state);
        (result, state.take_wake(rq), state.take_boosted(cpu))
    })?;
    let granted = wake_granted(rq.as_mut(), wake);
    drop(rq);
    for task in [granted, boosted].into_iter().flatten() {
        sched_class::wake_up(&task);
    }
    Some(result)
}

/// Wakes up the thread that is granted the CPU where it waits, with its run queue locked. Returns
/// the thread if it can be woken up only after the lock is dropped.
pub(crate) fn wake_granted(rq: Pin<&mut RunQueue>, wake: Wake) -> Option<ARef<Task>> {
    match wake {
        Wake::Nobody => None,
        Wake::Here(task) => {
            // SAFETY: `State::take_wake` found this with the lock that is still held; therefore the
            // seat keeps the task, which sleeps on this run queue.
            unsafe { sched_class::wake_delayed(rq, task) };
            None
        }
        Wake::Later(task) => Some(task),
    }
}
