// SPDX-License-Identifier: GPL-2.0
//! The lease of the CPUs: they have the plan for as long as their planner says now and
//! then that it is there.

use std::time::{Duration, Instant};

use pbs_uapi::Device;

/// Number of renewals during a lease. On the CPU of a plan, the planner may have to wait long for
/// its turn.
const RENEWALS: u32 = 4;

/// A lease, or none.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    length_ns: u64,
    /// Time of the last renewal.
    renewed: Option<Instant>,
}

impl Lease {
    /// 0: none.
    pub(crate) fn new(length_ns: u64) -> Self {
        Self { length_ns, renewed: None }
    }

    /// Returns the length of the lease that plans declare.
    pub(crate) fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Renews it on those CPUs if it is time. Returns in how many milliseconds that is to be
    /// done again; `None`: never.
    pub(crate) fn keep(&mut self, device: &Device, cpus: impl Iterator<Item = u32>) -> Option<i32> {
        if self.length_ns == 0 {
            return None;
        }
        let every = Duration::from_nanos(self.length_ns) / RENEWALS;
        let left = self.renewed.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
        if !left.is_zero() {
            return Some(left.as_millis() as i32 + 1);
        }
        self.renewed = Some(Instant::now());
        for cpu in cpus {
            // If the plan is gone, an event says so.
            let _ = device.renew(cpu);
        }
        Some(every.as_millis() as i32)
    }
}
