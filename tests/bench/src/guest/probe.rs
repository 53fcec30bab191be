// SPDX-License-Identifier: GPL-2.0
//! The stretch of work that is measured.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use pbs_vmtest::harness::{sleep_ms, Verdict};

use super::counter::Counter;
use super::shared;

/// Counts kernel instructions in a stretch of a process's work.
pub struct Probe {
    counter: Counter,
    /// What a child has counted.
    insns: &'static AtomicU64,
    /// The stretch begins when there is this file, and its bounds are marked
    /// with times(2), for `scripts/bench --profile`.
    wait_for: Option<PathBuf>,
}

impl Probe {
    pub fn new(wait_for: Option<PathBuf>) -> Result<Self, String> {
        Ok(Self {
            counter: Counter::new()?,
            insns: shared::of_processes()?,
            wait_for,
        })
    }

    /// Whether the instructions are looked at one by one, which is slow.
    pub fn is_profiled(&self) -> bool {
        self.wait_for.is_some()
    }

    /// Does `work`, in a process of the measurement, and counts what the CPU
    /// retires in the kernel meanwhile.
    pub fn measure(&self, work: impl FnOnce()) {
        if let Some(file) = &self.wait_for {
            println!("ready");
            while !file.exists() {
                sleep_ms(10);
            }
            mark();
        }
        let start = self.counter.read();
        work();
        let end = self.counter.read();
        if self.wait_for.is_some() {
            mark();
        }
        self.insns.store(end - start, SeqCst);
    }

    /// What was measured last; fails if nothing was.
    pub fn take(&self) -> Result<f64, String> {
        match self.insns.swap(0, SeqCst) {
            0 => Err("the measured process came to no end".into()),
            insns => Ok(insns as f64),
        }
    }

    /// Calls `run` and gives what a process of it measured, by `times`, which is
    /// how often it did its work.
    pub fn of_each(&self, times: u64, run: impl FnOnce() -> Verdict) -> Result<f64, String> {
        if self.is_profiled() {
            println!("times {times}");
        }
        run()?;
        Ok(self.take()? / times as f64)
    }
}

/// A system call that nothing else here makes.
fn mark() {
    // SAFETY: nothing is written to a null pointer.
    unsafe { libc::times(std::ptr::null_mut()) };
}
