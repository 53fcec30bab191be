// SPDX-License-Identifier: GPL-2.0

//! The lease of a plan: a plan whose lease was not renewed is dropped.

use crate::percpu::{cpu::LeaseEnd, cpus, drop_request::DropReason, works};
use kernel::{
    clock,
    hrtimer::{HrTimer, HrTimerCallback, Restart},
};

impl HrTimerCallback for LeaseEnd {
    fn expired(this: &HrTimer<Self>) -> Restart {
        let Some(cpu) = cpus::get(this.0.number()) else {
            return Restart::No;
        };
        let ends_ns = cpu.lock(|_, _, state| {
            let lease = state.lease?;
            if state
                .threads
                .as_ref()
                .is_some_and(|threads| threads.used() == 0)
            {
                // There is no lease to check. A plan that arrives has a whole lease at most.
                return Some(state.clock.now_ns().saturating_add(lease.length_ns()));
            }
            Some(lease.end_ns())
        });
        match ends_ns.flatten() {
            None => Restart::No,
            Some(ends_ns) if ends_ns > clock::monotonic_ns() => Restart::At(ends_ns),
            Some(_) => {
                works::drop_soon(cpu, DropReason::Lease);
                Restart::No
            }
        }
    }
}
