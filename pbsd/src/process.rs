// SPDX-License-Identifier: GPL-2.0
//! A process that may have ended since one has heard of it.

use pbs_history::started_ticks;
use serde::{Deserialize, Serialize};

/// A process, which no other is that gets its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: u32,
    /// Start of the process, in the kernel's ticks since the boot.
    began_ticks: u64,
}

impl Process {
    /// The one that has that number now. `None`: it has ended.
    pub fn of(pid: u32) -> Option<Self> {
        // It can't be seen from here, nor when it ends.
        if pid == 0 {
            return Some(Self { pid, began_ticks: 0 });
        }
        let began_ticks = started_ticks(pid)?;
        Some(Self { pid, began_ticks })
    }

    /// Whether it has not ended, as far as that can be seen.
    pub fn lives(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_lives_until_it_has_ended() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.lives());
        // Another that has its number.
        let other = Process { began_ticks: own.began_ticks + 1, ..own };
        assert!(!other.lives());
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(process.lives());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.lives());
        assert!(Process::of(0).unwrap().lives());
    }
}
