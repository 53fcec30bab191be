// SPDX-License-Identifier: GPL-2.0
//! Views that are shown again and again.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pbs_launch::signals::{wait, Signals};

use crate::failure::Failure;
use crate::output::Output;

/// Clears a terminal and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Prefix of each view.
pub(crate) fn clear(out: Output) -> &'static str {
    if !out.json && io::stdout().is_terminal() {
        CLEAR
    } else {
        ""
    }
}

/// Shows a view every so many nanoseconds, `count` times or until somebody stops it.
pub(crate) fn repeat(
    interval_ns: u64,
    count: Option<u64>,
    mut view: impl FnMut() -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let failed = |error: io::Error| Failure::file("signals", &error);
    let signals = Signals::new().map_err(failed)?;
    let mut left = count;
    loop {
        view()?;
        if let Some(left) = &mut left {
            *left -= 1;
            if *left == 0 {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let until = Instant::now() + Duration::from_nanos(interval_ns);
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            // In a process that may hardly run, an interval is longer than asked for.
            let timeout_ms = i32::try_from(rest.as_millis() + 1).unwrap_or(i32::MAX);
            wait(&signals, &signals, timeout_ms).map_err(failed)?;
            if signals.want_stop().map_err(failed)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}
