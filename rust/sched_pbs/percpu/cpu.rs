// SPDX-License-Identifier: GPL-2.0

//! One CPU.

use super::{
    alarm::Alarm,
    counter::Counter,
    counts::Counts,
    drop_request::{DropReason, DropRequest},
    inspection::Inspection,
    requests::Requests,
    usage::Usage,
};
use crate::{pbs_core::EventKind, state::State};
use core::cell::UnsafeCell;
use kernel::{cpu::PossibleCpu, hrtimer::HrTimer, new_mutex, prelude::*, sync::Mutex};

/// Timer callback: the lease of the CPU's plan may be over. See [`lease`](crate::protect::lease).
pub(crate) struct LeaseEnd(pub(crate) PossibleCpu);

/// One CPU, for as long as the kernel runs: its state, and one struct for each subject that does
/// not need the lock of its run queue.
#[pin_data]
pub(crate) struct Cpu {
    id: PossibleCpu,
    state: UnsafeCell<State>,
    /// Counts of the events on the CPU.
    pub(crate) counts: Counts,
    /// Whether the CPU is used for plans.
    pub(crate) usage: Usage,
    /// Whether the plan is to be dropped, and why the last one was.
    pub(crate) drop_request: DropRequest,
    /// Held while a thread enters or leaves the class here: this way only one caller does so with
    /// the same thread. Taken after the control lock and before the lock of the run queue. The
    /// holder may be a thread that waits for this CPU: therefore nothing else may wait for the lock
    /// while a plan is in the way.
    #[pin]
    pub(crate) seats: Mutex<()>,
    /// Counter of the CPU.
    #[pin]
    pub(crate) counter: Counter,
    /// Timer of the CPU.
    #[pin]
    pub(crate) alarm: Alarm,
    /// Requests of others to the CPU.
    #[pin]
    pub(crate) requests: Requests,
    /// Timer that expires when the lease of the plan may be over.
    #[pin]
    pub(crate) lease: HrTimer<LeaseEnd>,
    /// Check of the CPU for the watchdog.
    #[pin]
    pub(crate) inspection: Inspection,
}

// SAFETY: The state is reached through `access::with_state` only, under the lock of the CPU's run
// queue; all else is `Sync` itself.
unsafe impl Sync for Cpu {}
// SAFETY: Nothing in it belongs to a thread.
unsafe impl Send for Cpu {}

impl Cpu {
    /// The CPU of that number, without a plan.
    pub(crate) fn new(id: PossibleCpu) -> impl PinInit<Self> {
        pin_init!(Self {
            id,
            state: UnsafeCell::new(State::default()),
            counts: Counts::new(),
            usage: Usage::none(),
            drop_request: DropRequest::none(),
            seats <- new_mutex!((), "pbs_seats"),
            counter <- Counter::new(*id),
            alarm <- Alarm::new(*id),
            requests <- Requests::new(*id),
            lease <- HrTimer::new(LeaseEnd(*id)),
            inspection <- Inspection::new(*id),
        })
    }

    /// Number of the CPU.
    pub(crate) fn number(&self) -> u32 {
        self.id.number()
    }

    /// Number of the CPU, as the proof that there is such a CPU.
    pub(crate) fn id(&self) -> PossibleCpu {
        self.id
    }

    /// For [`access::with_state`](super::access::with_state) only.
    pub(super) fn state(&self) -> *mut State {
        self.state.get()
    }

    /// The number of plans that the CPU has had.
    fn plans(&self) -> u64 {
        self.counts.get(EventKind::PlanInstalled as usize)
    }

    /// Requests that the present plan be dropped; a plan that arrives meanwhile is not.
    pub(crate) fn request_drop(&self, reason: DropReason) {
        self.drop_request.add(reason, self.plans());
    }

    /// Takes the reason for which the plan is to be dropped, see [`DropRequest::take`].
    pub(crate) fn take_drop(&self) -> Option<DropReason> {
        self.drop_request.take(self.plans())
    }
}
