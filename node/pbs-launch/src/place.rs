// SPDX-License-Identifier: GPL-2.0
//! Placement of the node's own threads: on the CPU of a plan, a thread outside of all plans hardly
//! runs.

use std::io;
use std::mem::MaybeUninit;

use pbs_job::Machine;

/// While it lives, this thread stays on its CPU, and so do the children that it forks.
///
/// A child that is put on the CPU of a plan, which looks idle to the fair class, waits
/// for its turn there before it has come as far as the gate.
#[derive(Debug)]
pub struct Stay {
    before: Option<libc::cpu_set_t>,
}

impl Stay {
    /// If that can't be done the children only take longer.
    #[allow(unsafe_code)]
    pub fn here() -> Self {
        // Without its CPUs the process stays free to move, which costs time alone.
        let before = own().ok();
        if before.is_some() {
            // SAFETY: it only answers.
            let cpu = unsafe { libc::sched_getcpu() };
            let mut here = empty();
            if let Ok(cpu) = usize::try_from(cpu) {
                // SAFETY: the set is valid, and the call knows how large it is.
                unsafe { libc::CPU_SET(cpu, &mut here) };
                // A process that cannot stay here only takes longer.
                let _ = go(&here);
            }
        }
        Self { before }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A CPU of them may have gone offline; the kernel has chosen others.
            let _ = go(before);
        }
    }
}

/// Keeps this thread, and everything that it starts, off the CPUs of the machine, if there are
/// other CPUs.
#[allow(unsafe_code)]
pub fn stay_off(machine: &Machine) -> io::Result<()> {
    let mut others = own()?;
    for cpu in machine.cpus().map(|cpu| cpu as usize) {
        if cpu < libc::CPU_SETSIZE as usize {
            // SAFETY: the set is valid, and the CPU is one that it can have.
            unsafe { libc::CPU_CLR(cpu, &mut others) };
        }
    }
    // SAFETY: the set is valid.
    match unsafe { libc::CPU_COUNT(&others) } {
        0 => Ok(()),
        _ => go(&others),
    }
}

#[allow(unsafe_code)]
fn empty() -> libc::cpu_set_t {
    // SAFETY: a set of nothing is all zeroes.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The CPUs of this thread.
#[allow(unsafe_code)]
fn own() -> io::Result<libc::cpu_set_t> {
    let mut own = empty();
    // SAFETY: the set is valid for writing, and as long as it says.
    match unsafe { libc::sched_getaffinity(0, size_of_val(&own), &mut own) } {
        0 => Ok(own),
        _ => Err(io::Error::last_os_error()),
    }
}

#[allow(unsafe_code)]
fn go(cpus: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set is valid, and as long as it says.
    match unsafe { libc::sched_setaffinity(0, size_of_val(cpus), cpus) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(unsafe_code)]
    fn count() -> i32 {
        let own = own().unwrap();
        // SAFETY: the set is valid.
        unsafe { libc::CPU_COUNT(&own) }
    }

    #[test]
    fn a_thread_stays_and_goes_on() {
        let before = count();
        {
            let _stay = Stay::here();
            assert_eq!(count(), 1);
        }
        assert_eq!(count(), before);
        // Of a machine of one CPU it goes away, if it can; of all there is nowhere to go.
        let machine = |cpus: &str| {
            let text = format!(
                "[[node]]\nname = \"n\"\nmemory_bytes = 1\nrate_insns_per_s = 1_000_000\n\
                 cores = [{cpus}]\n"
            );
            pbs_job::machine_from_toml(&text).unwrap()
        };
        let one = "{ name = \"c0\", cpu = 0 }";
        let thread = std::thread::spawn(move || {
            stay_off(&machine(one)).unwrap();
            count()
        });
        assert_eq!(thread.join().unwrap(), (before - 1).max(1));
    }
}
