// SPDX-License-Identifier: GPL-2.0
//! QEMU's monitor.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Prompt of the monitor for the next command.
const PROMPT: &[u8] = b"(qemu) ";

/// A connection to the monitor of a running machine.
pub struct Monitor(UnixStream);

impl Monitor {
    pub fn connect(socket: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(socket)
            .map_err(|error| format!("{}: {error}", socket.display()))?;
        let mut monitor = Self(stream);
        monitor.read_to_prompt()?;
        Ok(monitor)
    }

    /// Says a command and waits until it is done; what the answer was.
    pub fn say(&mut self, command: &str) -> Result<String, String> {
        let error = |error| format!("monitor, {command}: {error}");
        self.0.write_all(command.as_bytes()).map_err(error)?;
        self.0.write_all(b"\n").map_err(error)?;
        self.read_to_prompt()
    }

    fn read_to_prompt(&mut self) -> Result<String, String> {
        let mut said = Vec::new();
        let mut byte = [0];
        while !said.ends_with(PROMPT) {
            self.0
                .read_exact(&mut byte)
                .map_err(|error| format!("the machine's monitor is gone: {error}"))?;
            said.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}
