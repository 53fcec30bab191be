// SPDX-License-Identifier: GPL-2.0

//! The request to drop the plan of a CPU, and the reason why its last plan was dropped.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kernel::bindings;

/// Reason why a plan is dropped: `enum pbs_drop`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum DropReason {
    /// A call of `PBS_IOC_DROP`.
    Call = bindings::pbs_drop_PBS_DROP_CALL,
    /// An operator's SysRq key.
    SysRq = bindings::pbs_drop_PBS_DROP_SYSRQ,
    /// A lease that was not renewed.
    Lease = bindings::pbs_drop_PBS_DROP_LEASE,
    /// A CPU that decides no more.
    Decision = bindings::pbs_drop_PBS_DROP_DECISION,
    /// A thread that was granted the CPU and not woken up for it.
    WakeUp = bindings::pbs_drop_PBS_DROP_WAKE_UP,
    /// A process that was granted the CPU and made no progress.
    Progress = bindings::pbs_drop_PBS_DROP_PROGRESS,
    /// A state of the plan that contradicts itself.
    State = bindings::pbs_drop_PBS_DROP_STATE,
}

impl DropReason {
    const ALL: [DropReason; 7] = [
        DropReason::Call,
        DropReason::SysRq,
        DropReason::Lease,
        DropReason::Decision,
        DropReason::WakeUp,
        DropReason::Progress,
        DropReason::State,
    ];

    /// The reason of that number.
    pub(crate) fn from_number(number: u32) -> Option<DropReason> {
        DropReason::ALL
            .into_iter()
            .find(|reason| *reason as u32 == number)
    }

    /// The name of the reason in sysfs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DropReason::Call => "call",
            DropReason::SysRq => "sysrq",
            DropReason::Lease => "lease",
            DropReason::Decision => "decision",
            DropReason::WakeUp => "wake_up",
            DropReason::Progress => "progress",
            DropReason::State => "state",
        }
    }

    /// The text of the reason in the log.
    pub(crate) fn text(self) -> &'static str {
        match self {
            DropReason::Call => "by PBS_IOC_DROP",
            DropReason::SysRq => "by SysRq",
            DropReason::Lease => "nobody has renewed its lease",
            DropReason::Decision => "the CPU decides no more",
            DropReason::WakeUp => "a thread was granted the CPU and not woken up for it",
            DropReason::Progress => "a process was granted the CPU and got nowhere",
            DropReason::State => "its state contradicts itself",
        }
    }

    /// Whether the class, or what it builds on, is in error.
    pub(crate) fn is_fault(self) -> bool {
        !matches!(
            self,
            DropReason::Call | DropReason::SysRq | DropReason::Lease
        )
    }

    /// Reason why the threads leave, as the reason of an ejection.
    pub(crate) fn of_threads(self) -> u32 {
        if self.is_fault() {
            bindings::pbs_eject_PBS_EJECT_FAULT
        } else {
            bindings::pbs_eject_PBS_EJECT_DROPPED
        }
    }
}

/// The request to drop the plan of a CPU.
pub(crate) struct DropRequest {
    /// The [`DropReason`] for which the plan is to be dropped, 0: none; and the number of plans
    /// when that was requested.
    requested: AtomicU32,
    requested_at: AtomicU64,
    /// The [`DropReason`] of the last plan, 0: it was not dropped.
    last: AtomicU32,
}

impl DropRequest {
    /// The absence of a request.
    pub(crate) const fn none() -> Self {
        Self {
            requested: AtomicU32::new(0),
            requested_at: AtomicU64::new(0),
            last: AtomicU32::new(0),
        }
    }

    /// Requests that the plan be dropped which was the last of so many `plans`; a plan that arrives
    /// meanwhile is not.
    pub(super) fn add(&self, reason: DropReason, plans: u64) {
        self.requested_at.store(plans, Ordering::Relaxed);
        self.requested.store(reason as u32, Ordering::Release);
    }

    /// Whether the plan is to be dropped.
    pub(crate) fn is_pending(&self) -> bool {
        self.requested.load(Ordering::Relaxed) != 0
    }

    /// Takes the reason why the last of so many `plans` is to be dropped, if it still is the one
    /// that was meant: an operator means whichever there is. With the control lock held.
    pub(super) fn take(&self, plans: u64) -> Option<DropReason> {
        let requested = self.requested.swap(0, Ordering::Acquire);
        let same = self.requested_at.load(Ordering::Relaxed) == plans;
        DropReason::from_number(requested).filter(|reason| same || *reason == DropReason::SysRq)
    }

    /// Reason why the last plan was dropped, if it was.
    pub(crate) fn last(&self) -> Option<DropReason> {
        DropReason::from_number(self.last.load(Ordering::Relaxed))
    }

    /// Notes the reason why the plan was dropped.
    pub(crate) fn set_last(&self, reason: DropReason) {
        self.last.store(reason as u32, Ordering::Relaxed);
    }
}
