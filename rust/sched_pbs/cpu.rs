// SPDX-License-Identifier: GPL-2.0

//! One CPU: its timer and its irq_work, its counts of events, and the way to its [`State`].

use super::{entity, global::pbs, pbs_core::EventKind, state::State};
use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};
use kernel::{
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    irq_work::{IrqWork, IrqWorkCallback},
    prelude::*,
    sched_class::{self, RunQueue, RunQueueGuard},
};

/// One CPU, for as long as the kernel runs.
#[pin_data]
pub(crate) struct Cpu {
    number: u32,
    /// How many events of each kind there were, since boot.
    counts: [AtomicU64; EventKind::END],
    /// Some thread has to leave the class, which takes process context.
    eject: AtomicBool,
    state: UnsafeCell<State>,
    /// Expires at the next moment that the clock brings, or that the count is predicted to.
    #[pin]
    timer: HrTimer<Expiry>,
    /// Does on the CPU, outside the lock, what could not be done where it was found necessary.
    #[pin]
    kick: IrqWork<Kick>,
}

// SAFETY: The state is reached through `entity::with_state` only, under the lock of the CPU's run
// queue; all else is `Sync` itself.
unsafe impl Sync for Cpu {}
// SAFETY: Nothing in it belongs to a thread.
unsafe impl Send for Cpu {}

impl Cpu {
    /// The CPU of that number, without a plan.
    pub(crate) fn new(number: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            number,
            counts: [const { AtomicU64::new(0) }; EventKind::END],
            eject: AtomicBool::new(false),
            state: UnsafeCell::new(State::default()),
            timer <- HrTimer::new(Expiry(*number)),
            kick <- IrqWork::new_hard(Kick(*number)),
        })
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// How many events of the kind with that number there were.
    pub(crate) fn count(&self, kind: usize) -> u64 {
        self.counts
            .get(kind)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts one more event of `kind`.
    pub(crate) fn count_one(&self, kind: EventKind) {
        if let Some(count) = self.counts.get(kind as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// For [`entity::with_state`] only.
    pub(crate) fn state(&self) -> *mut State {
        self.state.get()
    }

    /// Locks the run queue of this CPU and calls `function` with the state.
    ///
    /// Who the settling found to be woken up is woken after the lock is dropped.
    pub(crate) fn lock<R>(
        &self,
        function: impl FnOnce(&mut RunQueue, &'static Cpu, &mut State) -> R,
    ) -> Option<R> {
        finish(RunQueueGuard::lock(self.number), function)
    }

    /// Has the threads that should leave the class leave it soon. Any context but NMI.
    pub(crate) fn request_ejection(&self) {
        self.eject.store(true, Ordering::Relaxed);
        self.kick();
    }

    /// Has the timer expire at that monotonic time. On the CPU itself.
    pub(crate) fn arm(&self, at_ns: u64) {
        self.timer.start_abs(at_ns);
    }

    /// Settles in interrupt context on the CPU itself.
    pub(crate) fn kick(&self) {
        self.kick.queue_on(self.number);
    }
}

/// Calls `function` with the state of the locked run queue's CPU, drops the lock, and wakes up who
/// the settling found to be woken. Not for the callbacks of the class, whose lock is the core's.
pub(crate) fn finish<R>(
    mut rq: RunQueueGuard<'_>,
    function: impl FnOnce(&mut RunQueue, &'static Cpu, &mut State) -> R,
) -> Option<R> {
    let (result, wake) = entity::with_state(&mut rq, |rq, cpu, state| {
        let result = function(rq, cpu, state);
        (result, state.take_wake())
    })?;
    drop(rq);
    if let Some(task) = wake {
        sched_class::wake_up(&task);
    }
    Some(result)
}

struct Expiry(u32);

impl HrTimerCallback for Expiry {
    fn expired(this: &HrTimer<Self>) -> Restart {
        finish(RunQueueGuard::lock(this.0), |rq, cpu, state| {
            state.expire(rq, cpu)
        });
        // Settling has armed the timer itself if there is something to wait for.
        Restart::No
    }
}

struct Kick(u32);

impl IrqWorkCallback for Kick {
    fn run(this: &IrqWork<Self>) {
        finish(RunQueueGuard::lock(this.0), |rq, cpu, state| {
            state.charge(rq);
            state.settle(rq, cpu);
        });
        let Some(pbs) = pbs() else { return };
        if pbs
            .cpu(this.0)
            .is_some_and(|cpu| cpu.eject.swap(false, Ordering::Relaxed))
        {
            pbs.queue_ejection();
        }
    }
}
