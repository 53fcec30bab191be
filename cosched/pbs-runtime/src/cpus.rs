// SPDX-License-Identifier: GPL-2.0
//! CPUs of a thread.

use std::io;

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// The CPUs that this thread may run on, in rising order.
///
/// # Errors
///
/// What the kernel says.
pub fn allowed() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

/// Confines this thread, and all that it starts, to these CPUs.
///
/// # Errors
///
/// The error of the kernel: none of the CPUs exists, or may be used.
pub(crate) fn stay_on(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    let cpus = cpus.iter().map(|&cpu| cpu as usize);
    for cpu in cpus.filter(|&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_told_to() {
        let before = allowed().unwrap();
        std::thread::spawn(move || {
            let last = *before.last().unwrap();
            stay_on(&[last]).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
        assert!(stay_on(&[]).is_err());
    }
}
