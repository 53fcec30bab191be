// SPDX-License-Identifier: GPL-2.0
//! Keller's core pinning (6): a planner that stays where its caches are.

use std::io;

use rustix::thread::{sched_setaffinity, CpuSet};

/// Keeps the calling thread, and those that it will start, on some CPUs.
///
/// # Errors
///
/// What the kernel says: there is no such CPU, or this process may not use it.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn a_pinned_planner_stays_on_its_cores() {
        let cpus = || {
            let set = sched_getaffinity(None).unwrap();
            (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect::<Vec<_>>()
        };
        let all = cpus();
        pin(&all[..1]).unwrap();
        assert_eq!(cpus(), all[..1]);
        // Threads that it starts stay there, too.
        assert_eq!(std::thread::spawn(cpus).join().unwrap(), all[..1]);
        assert!(pin(&[CpuSet::MAX_CPU]).is_err());
        assert!(pin(&[]).is_err());
        assert_eq!(cpus(), all[..1]);
        pin(&all).unwrap();
        assert_eq!(cpus(), all);
    }
}
