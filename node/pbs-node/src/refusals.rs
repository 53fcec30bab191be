// SPDX-License-Identifier: GPL-2.0
//! Plans that the kernel refuses: a race that the next plan mends, or a lasting fault.

use pbs_uapi::Refused;

use crate::News;

/// Refusals in succession that may be races. The next one is an alarm.
const RACES: u32 = 3;

/// Count of the plans that the kernel has refused in succession.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    in_succession: u32,
}

impl Refusals {
    /// Notes that the kernel has taken a plan.
    pub(crate) fn taken(&mut self) {
        self.in_succession = 0;
    }

    /// Notes a refusal. Returns the message about it.
    ///
    /// A process may begin a task or end while a plan is made that is not aware of it. The kernel
    /// refuses that plan with `ESRCH`, and the next one is aware of it.
    pub(crate) fn refused(&mut self, refused: &Refused) -> News {
        self.in_succession = self.in_succession.saturating_add(1);
        let is_race = refused.error.raw_os_error() == Some(libc::ESRCH);
        let why = refused.to_string();
        if is_race && self.in_succession <= RACES {
            News::PlanOutdated(why)
        } else {
            News::PlanRefused(why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    fn is_alarm(refusals: &mut Refusals, errno: i32) -> bool {
        let news = refusals.refused(&Error::from_raw_os_error(errno).into());
        news.is_alarm()
    }

    #[test]
    fn a_race_is_an_alarm_only_when_it_stays() {
        let mut refusals = Refusals::default();
        let alarms = [(); 5].map(|()| is_alarm(&mut refusals, libc::ESRCH));
        assert_eq!(alarms, [false, false, false, true, true]);
        refusals.taken();
        assert!(!is_alarm(&mut refusals, libc::ESRCH));
    }

    #[test]
    fn another_refusal_is_an_alarm_at_once() {
        assert!(is_alarm(&mut Refusals::default(), libc::EINVAL));
    }
}
