// SPDX-License-Identifier: GPL-2.0
//! Threads on one CPU each, and their time.

use std::io;

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// The CPUs that this thread may run on, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

/// From now on this thread runs on that CPU alone.
pub fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}
