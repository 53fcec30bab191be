// SPDX-License-Identifier: GPL-2.0
//! CPUs of a thread. Here because it needs a system call that std has not, and what uses
//! it has no `unsafe`.
#![allow(unsafe_code)] // sched_getaffinity and sched_setaffinity.

use std::io;
use std::mem::zeroed;

/// The CPUs that this thread may run on, in rising order.
///
/// # Errors
///
/// What the kernel says.
pub fn allowed() -> io::Result<Vec<u32>> {
    // SAFETY: a set of zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the set is valid, and as large as is said.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the set is valid, and has a bit for each of these numbers.
    let cpus = all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) });
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

/// Has this thread, and all that it starts, run on these CPUs only.
///
/// # Errors
///
/// What the kernel says: none of them is there, or may be used.
pub fn stay_on(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: a set of zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    for &cpu in cpus {
        if (cpu as usize) < libc::CPU_SETSIZE as usize {
            // SAFETY: the set is valid, and has a bit for this number.
            unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        }
    }
    // SAFETY: the set is valid, and as large as is said.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
