// SPDX-License-Identifier: GPL-2.0
//! Signals by which programs are notified.

use std::fs;
use std::str::FromStr;

use pbs_job::NOTICE_SIGNALS;
use rustix::process::Signal;

/// A signal that a program may handle as a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeSignal(Signal);

/// Signals, in the order of their names.
const SIGNALS: [Signal; NOTICE_SIGNALS.len()] =
    [Signal::HUP, Signal::INT, Signal::TERM, Signal::USR1, Signal::USR2];

impl FromStr for NoticeSignal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("SIG").unwrap_or(text);
        let found = NOTICE_SIGNALS.iter().position(|known| *known == name);
        found.map(|place| Self(SIGNALS[place])).ok_or_else(|| {
            let names = NOTICE_SIGNALS.join(", ");
            format!("{text} is no signal for a notice; write one of {names}")
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
        for (name, signal) in NOTICE_SIGNALS.iter().zip(SIGNALS) {
            assert_eq!(pbs_text::signal(signal.as_raw()), format!("SIG{name}"));
        }
        for text in ["KILL", "usr1", "10", ""] {
            let refused = text.parse::<NoticeSignal>().unwrap_err();
            assert!(refused.contains("write one of HUP, INT"), "{refused}");
        }
    }
}
