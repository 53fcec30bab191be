// SPDX-License-Identifier: GPL-2.0

//! Work that interrupts leave to process context.
//!
//! Each work item is queued here, and done where its subject is: threads are ejected and counters
//! recovered in [`plans::works`](crate::plans::works), plans dropped in
//! [`protect::dropping`](crate::protect::dropping).

use super::{cpu::Cpu, cpus, drop_request::DropReason};
use crate::linux::published::Published;
use kernel::{
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    new_work,
    prelude::*,
    sync::Arc,
    task_ext::may_log,
    workqueue::{self, impl_has_work, Work},
};

/// Time after its failure, and between tries, at which a counter is tried again until it works.
const RECOVERY_NS: u64 = 1_000_000_000;

/// Work item that takes threads out of the class.
#[pin_data]
pub(crate) struct Ejection {
    #[pin]
    work: Work<Ejection>,
}

impl_has_work! {
    impl HasWork<Self> for Ejection { self.work }
}

/// Work item that drops plans.
#[pin_data]
pub(crate) struct Dropping {
    #[pin]
    work: Work<Dropping>,
}

impl_has_work! {
    impl HasWork<Self> for Dropping { self.work }
}

/// Work item that tries to recover counters that have failed.
#[pin_data]
pub(crate) struct Recovery {
    #[pin]
    work: Work<Recovery>,
}

impl_has_work! {
    impl HasWork<Self> for Recovery { self.work }
}

/// Timer callback that tries to recover counters.
struct RecoveryTime;

impl HrTimerCallback for RecoveryTime {
    fn expired(_this: &HrTimer<Self>) -> Restart {
        if let Some(works) = WORKS.get() {
            // This fails if the work is queued already, which is as good.
            let _ = workqueue::system().enqueue(works.recovery.clone());
        }
        Restart::No
    }
}

/// The work items.
#[pin_data]
struct Works {
    ejection: Arc<Ejection>,
    dropping: Arc<Dropping>,
    recovery: Arc<Recovery>,
    #[pin]
    recovery_timer: HrTimer<RecoveryTime>,
}

static WORKS: Published<Works> = Published::none();

/// Makes the work items.
pub(crate) fn publish() -> Result {
    let ejection = Arc::pin_init(
        pin_init!(Ejection { work <- new_work!("pbs_ejection") }),
        GFP_KERNEL,
    )?;
    let dropping = Arc::pin_init(
        pin_init!(Dropping { work <- new_work!("pbs_dropping") }),
        GFP_KERNEL,
    )?;
    let recovery = Arc::pin_init(
        pin_init!(Recovery { work <- new_work!("pbs_recovery") }),
        GFP_KERNEL,
    )?;
    WORKS.publish(KBox::pin_init(
        pin_init!(Works {
            ejection,
            dropping,
            recovery,
            recovery_timer <- HrTimer::new(RecoveryTime),
        }),
        GFP_KERNEL,
    )?);
    Ok(())
}

/// Takes the threads that should leave the class out of it soon. Any context but NMI, but not with
/// a run queue locked.
pub(crate) fn eject_soon() {
    if let Some(works) = WORKS.get() {
        // Not bound to this CPU, which a thread that is to leave may have. This fails if the work
        // is queued already, which is as good.
        let _ = workqueue::system_unbound().enqueue(works.ejection.clone());
    }
}

/// Drops the present plan of a CPU soon. Any context but NMI, but not with a run queue locked.
pub(crate) fn drop_soon(cpu: &Cpu, reason: DropReason) {
    let Some(works) = WORKS.get() else { return };
    cpu.request_drop(reason);
    // Not bound to this CPU, which may be the one that does not run it. This fails if the work is
    // queued already, which is as good.
    let _ = workqueue::system_unbound().enqueue(works.dropping.clone());
}

/// Retries counters that have failed, after a while, and logs them. Interrupt or process context.
pub(crate) fn recover_soon() {
    for cpu in cpus::online().filter(|cpu| cpu.counter.has_failed()) {
        if may_log() {
            pr_warn!(
                "CPU {}: its counter has failed; it counts by the {} until that works again\n",
                cpu.number(),
                cpu.counter.tier().name(),
            );
        }
    }
    recover_later();
}

/// Retries counters that have failed, after a while.
pub(crate) fn recover_later() {
    if let Some(works) = WORKS.get() {
        works.recovery_timer.start_rel(RECOVERY_NS);
    }
}
