// SPDX-License-Identifier: GPL-2.0
//! A process that may have ended since one has heard of it.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process, which no other is that gets its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: u32,
    /// When it began, in the kernel's ticks since the boot.
    began_ticks: u64,
}

impl Process {
    /// The one that has that number now. `None`: it has ended.
    pub fn of(pid: u32) -> Option<Self> {
        // It can't be seen from here, nor when it ends.
        if pid == 0 {
            return Some(Self {
                pid,
                began_ticks: 0,
            });
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name, in parentheses, may have spaces and parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        // One that nobody has waited for yet has ended all the same.
        let has_ended = matches!(fields.next()?, "Z" | "X");
        // The third field is the state, the 22nd when it began (proc(5)).
        let began_ticks = fields.nth(18)?.parse().ok()?;
        (!has_ended).then_some(Self { pid, began_ticks })
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
        let other = Process {
            began_ticks: own.began_ticks + 1,
            ..own
        };
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
