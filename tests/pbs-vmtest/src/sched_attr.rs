// SPDX-License-Identifier: GPL-2.0
//! The other classes' parameters: sched_setattr(2).

use std::io;

use crate::harness::cvt;

/// `struct sched_attr`, first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl SchedAttr {
    fn of(policy: libc::c_int) -> Self {
        Self { size: size_of::<Self>() as u32, policy: policy as u32, ..Self::default() }
    }

    /// `SCHED_OTHER`, nice 0.
    pub fn other() -> Self {
        Self::of(libc::SCHED_OTHER)
    }

    /// `SCHED_FIFO` with a priority of 1 to 99; the greater number goes first.
    pub fn fifo(priority: u32) -> Self {
        Self { priority, ..Self::of(libc::SCHED_FIFO) }
    }

    /// `SCHED_DEADLINE`: that much CPU time until the deadline, once a period.
    pub fn deadline(runtime_ns: u64, deadline_ns: u64, period_ns: u64) -> Self {
        Self { runtime_ns, deadline_ns, period_ns, ..Self::of(libc::SCHED_DEADLINE) }
    }

    /// Puts a thread into that class; 0 is the one that calls.
    ///
    /// # Errors
    ///
    /// `EBUSY`: `SCHED_DEADLINE` does not admit it beside those that it has.
    pub fn set(&self, pid: i32) -> io::Result<()> {
        // SAFETY: it is as long as it says.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const *self, 0) };
        cvt(result as libc::c_int).map(|_| ())
    }
}
