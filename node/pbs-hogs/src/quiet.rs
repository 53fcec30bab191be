// SPDX-License-Identifier: GPL-2.0
//! Load of CPUs by other programs, before anything is measured on them.

use std::fs;
use std::io;
use std::thread::sleep;
use std::time::Duration;

/// File with the times of the CPUs.
const STAT: &str = "/proc/stat";

/// Share of a CPU's time, from 0 to 1, that other programs may have on a quiet machine.
pub const QUIET_LOAD: f64 = 0.1;

/// Returns the load of the busier of two CPUs over an interval, from 0 to 1. Time that the host of a
/// virtual machine takes counts, too.
///
/// # Errors
///
/// The system does not report the times of these CPUs.
pub fn load(cpus: [u32; 2], over: Duration) -> io::Result<f64> {
    let before = times(cpus)?;
    sleep(over);
    let after = times(cpus)?;
    let shares = before.iter().zip(&after).map(|(before, after)| share(*before, *after));
    Ok(shares.fold(0.0, f64::max))
}

/// Times of a CPU since the boot, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    all: u64,
    idle: u64,
}

fn times(cpus: [u32; 2]) -> io::Result<[Times; 2]> {
    let text = fs::read_to_string(STAT)?;
    let of = |cpu: u32| {
        let missing = || io::Error::other(format!("{STAT} has no times of CPU {cpu}"));
        parse(&text, cpu).ok_or_else(missing)
    };
    Ok([of(cpus[0])?, of(cpus[1])?])
}

fn parse(text: &str, cpu: u32) -> Option<Times> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    // User, nice, system, idle, waiting for a device, interrupts, stolen; guests are in user.
    let numbers = line.split_whitespace().skip(1).take(8);
    let numbers: Vec<u64> = numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let idle = numbers.get(3)? + numbers.get(4).copied().unwrap_or(0);
    Some(Times { all: numbers.iter().sum(), idle })
}

fn share(before: Times, after: Times) -> f64 {
    let all = after.all.saturating_sub(before.all);
    let idle = after.idle.saturating_sub(before.idle).min(all);
    (all - idle) as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                        cpu1 10 0 20 900 30 5 5 30 7 0\n\
                        cpu10 1 2 3 4 5 6 7 8 0 0\n\
                        cpu2 x\n\
                        intr 4\n";

    #[test]
    fn times_are_those_of_the_cpu_with_that_number() {
        assert_eq!(parse(TEXT, 1), Some(Times { all: 1000, idle: 930 }));
        assert_eq!(parse(TEXT, 10), Some(Times { all: 36, idle: 9 }));
        assert_eq!((parse(TEXT, 2), parse(TEXT, 3)), (None, None));
    }

    #[test]
    fn the_load_is_the_share_that_is_not_idle() {
        let times = |all, idle| Times { all, idle };
        assert_eq!(share(times(100, 50), times(200, 125)), 0.25);
        assert_eq!(share(times(100, 50), times(100, 50)), 0.0);
        // Idle time may be counted twice for a moment.
        assert_eq!(share(times(100, 50), times(110, 70)), 0.0);
    }
}
