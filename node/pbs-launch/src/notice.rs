// SPDX-License-Identifier: GPL-2.0
//! Signals by which programs are notified.

use std::fs;
use std::str::FromStr;

use rustix::process::Signal;

/// A signal that a program may handle as a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeSignal(Signal);

/// Signals with their names.
const SIGNALS: [(&str, Signal); 5] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("TERM", Signal::TERM),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

impl FromStr for NoticeSignal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("SIG").unwrap_or(text);
        let found = SIGNALS.iter().find(|(known, _)| *known == name);
        found.map(|&(_, signal)| Self(signal)).ok_or_else(|| {
            let names: Vec<_> = SIGNALS.iter().map(|(name, _)| *name).collect();
            format!("{text} is no signal for a notice; write one of {}", names.join(", "))
        })
    }
}

impl NoticeSignal {
    pub(crate) fn signal(self) -> Signal {
        self.0
    }

    /// Whether a process handles the signal: others would be ended by it.
    pub(crate) fn is_handled_by(self, pid: i32) -> bool {
        // A process that has ended handles nothing.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let handled = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let handled = handled.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        handled.is_some_and(|mask| mask & 1 << (self.0.as_raw() - 1) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_with_and_without_sig() {
        assert_eq!("USR1".parse(), Ok(NoticeSignal(Signal::USR1)));
        assert_eq!("SIGTERM".parse(), Ok(NoticeSignal(Signal::TERM)));
        for text in ["KILL", "usr1", "10", ""] {
            let refused = text.parse::<NoticeSignal>().unwrap_err();
            assert!(refused.contains("write one of HUP, INT"), "{refused}");
        }
    }
}
