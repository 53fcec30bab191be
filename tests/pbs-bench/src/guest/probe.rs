// SPDX-License-Identifier: GPL-2.0
//! The stretch of work that is measured.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use pbs_vmtest::harness::{sleep_ms, Verdict};
use pbs_vmtest::shared;

use pbs_vmtest::counter::Counter;

/// Counts kernel instructions in a stretch of a process's work.
pub struct Probe {
    counter: Counter,
    /// Count of a child.
    insns: &'static AtomicU64,
    /// Work begins when there is this file, and the bounds of the stretch are
    /// marked with times(2), for `scripts/bench --profile`.
    wait_for: Option<PathBuf>,
}

impl Probe {
    pub fn new(wait_for: Option<PathBuf>) -> Result<Self, String> {
        Ok(Self { counter: Counter::new()?, insns: &shared::of_processes(1)?[0], wait_for })
    }

    /// Whether the instructions are looked at one by one, which is slow.
    pub fn is_profiled(&self) -> bool {
        self.wait_for.is_some()
    }

    /// Kernel instructions so far.
    pub fn read(&self) -> u64 {
        self.counter.read()
    }

    /// Calls `work` in a process of the measurement, and counts the instructions that the CPU
    /// retires in the kernel meanwhile.
    pub fn measure(&self, work: impl FnOnce()) {
        self.mark();
        let start = self.read();
        work();
        let end = self.read();
        self.mark();
        self.insns.store(end - start, SeqCst);
    }

    /// Calls `run` and gives what a process of it measured, by `times`, which is
    /// how often it did its work.
    pub fn of_each(&self, times: u64, run: impl FnOnce() -> Verdict) -> Result<f64, String> {
        if let Some(file) = &self.wait_for {
            println!("times {times}");
            println!("ready");
            while !file.exists() {
                sleep_ms(10);
            }
        }
        run()?;
        match self.insns.swap(0, SeqCst) {
            0 => Err("the measured process came to no end".into()),
            insns => Ok(insns as f64 / times as f64),
        }
    }

    /// A system call that nothing else here makes.
    fn mark(&self) {
        if self.is_profiled() {
            // SAFETY: nothing is written to a null pointer.
            unsafe { libc::times(std::ptr::null_mut()) };
        }
    }
}
