// SPDX-License-Identifier: GPL-2.0
//! Arguments in `plugstack.conf`, which is root's.

use std::ffi::{c_char, c_int, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::slurm;

/// Socket of the service.
const SOCKET: &str = "/run/pbs/pbs.sock";
/// Time that a step waits for it.
const TIMEOUT_MS: u64 = 200;
/// Greatest timeout, whatever is configured: no step may wait longer.
const MOST_TIMEOUT_MS: u64 = 5000;

pub(crate) struct Arguments {
    pub(crate) socket: PathBuf,
    pub(crate) timeout: Duration,
}

impl Arguments {
    /// Reads the arguments of a hook. Unknown ones are reported in the log, and do not count.
    ///
    /// # Safety
    ///
    /// `argv` has `argc` C strings, or `argc` is 0.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn of(argc: c_int, argv: *const *const c_char) -> Self {
        let mut arguments =
            Self { socket: SOCKET.into(), timeout: Duration::from_millis(TIMEOUT_MS) };
        if argv.is_null() {
            return arguments;
        }
        for place in 0..usize::try_from(argc).unwrap_or(0) {
            // SAFETY: there are so many, as the caller says.
            let argument = unsafe { *argv.add(place) };
            if !argument.is_null() {
                // SAFETY: it is a C string, and lives as long as this call.
                arguments.take(unsafe { CStr::from_ptr(argument) });
            }
        }
        arguments
    }

    fn take(&mut self, argument: &CStr) {
        let argument = argument.to_bytes();
        if let Some(path) = argument.strip_prefix(b"socket=") {
            self.socket = OsStr::from_bytes(path).into();
            return;
        }
        let number = argument.strip_prefix(b"timeout_ms=");
        let number = number.and_then(|it| std::str::from_utf8(it).ok()?.parse::<u64>().ok());
        match number {
            Some(ms) if ms > 0 => self.timeout = Duration::from_millis(ms.min(MOST_TIMEOUT_MS)),
            _ => slurm::error(&format!(
                "pbsd: {}: write socket=PATH or timeout_ms=N in plugstack.conf",
                String::from_utf8_lossy(argument)
            )),
        }
    }
}
