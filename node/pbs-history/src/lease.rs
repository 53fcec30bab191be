// SPDX-License-Identifier: GPL-2.0
//! Lease of the planner: one process at a time plans. It is identified by its number, its start
//! time and its boot. The lease of a process that has ended need not be released.

use std::fs;
use std::process;

/// A process that plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) pid: u32,
    /// Since boot, as `/proc/PID/stat` has it.
    pub(crate) started_ticks: u64,
    pub(crate) boot_id: String,
}

impl Lease {
    /// This process.
    pub(crate) fn mine() -> Self {
        let pid = process::id();
        Self { pid, started_ticks: started_ticks(pid).unwrap_or(0), boot_id: boot_id() }
    }

    /// Whether that process is still there. One of another boot is not, nor one
    /// that this process cannot see.
    pub(crate) fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && started_ticks(self.pid) == Some(self.started_ticks)
    }
}

/// Returns the id of this boot, as in [`crate::Takeover::boot_id`]; empty if the kernel does not
/// report it.
pub fn boot_id() -> String {
    // A kernel that does not report it has an empty id, which equals no other boot's.
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().into()
}

/// Returns the start time of the process, in clock ticks since boot. Together with the process id
/// it is unique. `None`: the process has ended, or can't be seen.
pub fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in brackets, and may have brackets and blanks
    // itself; the start is the 22nd.
    let after = &stat[stat.rfind(')')? + 1..];
    let mut fields = after.split_ascii_whitespace();
    // A process that only waits for its parent to look is gone.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_alive_until_it_is_not() {
        let mine = Lease::mine();
        assert!(mine.started_ticks > 0);
        assert!(mine.is_alive());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let lease = Lease {
            pid: child.id(),
            started_ticks: started_ticks(child.id()).unwrap(),
            boot_id: boot_id(),
        };
        assert!(lease.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!lease.is_alive());
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let mine = Lease::mine();
        let before = Lease { started_ticks: mine.started_ticks - 1, ..mine.clone() };
        assert!(!before.is_alive());
        let rebooted = Lease { boot_id: "another".into(), ..mine };
        assert!(!rebooted.is_alive());
    }
}
