// SPDX-License-Identifier: GPL-2.0
//! Counting instructions with the PMU, through perf_event_open(2).

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

use crate::harness::{cvt, Context};

/// A counter of the instructions that CPU 0 retires in the kernel, whoever runs.
/// Children may read their parent's.
pub struct Counter(File);

/// `struct perf_event_attr` as far as its first version goes.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const PINNED: u64 = 1 << 2;
const EXCLUDE_USER: u64 = 1 << 4;

impl Counter {
    pub fn new() -> Result<Self, String> {
        let attr = Attr {
            kind: PERF_TYPE_HARDWARE,
            size: size_of::<Attr>() as u32,
            config: PERF_COUNT_HW_INSTRUCTIONS,
            flags: PINNED | EXCLUDE_USER,
            ..Attr::default()
        };
        // SAFETY: `attr` is as long as it says.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, 0, -1, 0) };
        let fd = cvt(fd as libc::c_int).context("perf_event_open: no counter of instructions")?;
        // SAFETY: just opened, and nobody else's.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Instructions since it was made. Panics if the counter is not on its CPU
    /// any more: a pinned one then reads nothing.
    pub fn read(&self) -> u64 {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count).expect("a counter that counts");
        u64::from_ne_bytes(count)
    }
}
