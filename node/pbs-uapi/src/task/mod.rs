// SPDX-License-Identifier: GPL-2.0
//! For programs that mark the ends of their own tasks.
//!
//! A process of a plan runs its tasks one after the other. A program that
//! knows where one stretch of its work ends and the next begins says so:
//!
//! ```no_run
//! # fn read_input() {}
//! # fn sort() {}
//! # fn write_output() {}
//! use pbs_uapi::task::Process;
//!
//! # fn main() -> Result<(), pbs_uapi::task::Error> {
//! // `pbsctl run` names the process in the environment.
//! let process = Process::from_env()?;
//! for stage in [read_input, sort, write_output] {
//!     stage();
//!     // The stage's task ends; the next stage waits for its slot.
//!     process.task_end()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A task that ends with a message to another process ends with [`Process::send`]. The task that
//! waits for the message in the plan begins in [`Process::receive`]:
//!
//! ```no_run
//! # use pbs_uapi::task::{Error, Process};
//! # fn sender(process: &Process, mut pipe: std::io::PipeWriter) -> Result<(), Error> {
//! process.send(&mut pipe, b"result")?;
//! # Ok(())
//! # }
//! # fn receiver(process: &Process, mut pipe: std::io::PipeReader) -> Result<(), Error> {
//! let mut result = [0; 6];
//! process.receive(&mut pipe, &mut result)?;
//! # Ok(())
//! # }
//! ```
//!
//! The same program runs outside a plan too: where `PBS_PROCESS` is not set,
//! [`Process::from_env`] gives a process whose task ends do nothing.

use std::env::VarError;
use std::fmt;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::path::Path;

use crate::{Device, Refused, DEVICE_PATH};

/// The environment variable that holds the process's id.
pub const ENV_PROCESS: &str = "PBS_PROCESS";
/// The environment variable that holds the device's path.
pub const ENV_DEVICE: &str = "PBS_DEVICE";

/// Reason for which a process could not be attached, or a task could not be ended.
#[derive(Debug)]
pub enum Error {
    /// The device cannot be opened.
    Open {
        /// The device.
        path: String,
        /// Error of `open(2)`.
        error: io::Error,
    },
    /// `PBS_PROCESS` is set to something that is no process id.
    Environment(String),
    /// The kernel refused.
    Refused(Refused),
    /// A message could not be written or read.
    Message(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, error } => write!(f, "{path}: {error}"),
            Self::Environment(value) => write!(
                f,
                "{ENV_PROCESS}={value} is no process id; \
                 set it to the number of a process of the plan, or unset it"
            ),
            Self::Refused(refused) => refused.fmt(f),
            Self::Message(error) => write!(f, "message: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { error, .. } => Some(error),
            Self::Environment(_) => None,
            Self::Refused(refused) => Some(refused),
            Self::Message(error) => Some(error),
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// The calling thread as a process of the plan.
///
/// It belongs to the thread that attached, so it cannot be sent to another.
/// When it goes, the thread stays in the plan, and its exit ends the process.
#[derive(Debug)]
pub struct Process {
    device: Option<Device>,
    thread: PhantomData<*const ()>,
}

impl Process {
    /// Attaches the calling thread to process `id` of the plan in force.
    ///
    /// Returns when the thread is attached; it then goes on when a slot of the
    /// process comes.
    pub fn attach(id: u32) -> Result<Self, Error> {
        Self::attach_at(Path::new(DEVICE_PATH), id)
    }

    /// Like [`Process::attach`], with the device at `path`.
    pub fn attach_at(path: &Path, id: u32) -> Result<Self, Error> {
        let device = Device::open_path(path, false)
            .map_err(|error| Error::Open { path: path.display().to_string(), error })?;
        device.attach(0, id, 0)?;
        Ok(Self { device: Some(device), thread: PhantomData })
    }

    /// Attaches to the process that `PBS_PROCESS` names, by the device that
    /// `PBS_DEVICE` names. `pbsctl run` sets both. Where `PBS_PROCESS` is not
    /// set the program is not part of a plan.
    pub fn from_env() -> Result<Self, Error> {
        let id = match std::env::var(ENV_PROCESS) {
            Ok(id) => id,
            Err(VarError::NotPresent) => return Ok(Self { device: None, thread: PhantomData }),
            Err(VarError::NotUnicode(id)) => {
                return Err(Error::Environment(id.to_string_lossy().into_owned()))
            }
        };
        let id = id.parse().map_err(|_| Error::Environment(id))?;
        let path = std::env::var_os(ENV_DEVICE).unwrap_or_else(|| DEVICE_PATH.into());
        Self::attach_at(Path::new(&path), id)
    }

    /// Whether the program runs as part of a plan.
    pub fn is_planned(&self) -> bool {
        self.device.is_some()
    }

    /// Ends the current task. The next one begins when this returns, which is
    /// when a slot of the process comes. The answer is the number of the next
    /// task, `None` after the last one and outside a plan: also after the plan
    /// was dropped, or replaced by one without the process. So let the
    /// program's own work end its loop, not this number.
    pub fn task_end(&self) -> Result<Option<u32>, Error> {
        self.end(None)
    }

    /// Like [`Process::task_end`], refused if the current task is not `task`.
    pub fn task_end_of(&self, task: u32) -> Result<Option<u32>, Error> {
        self.end(Some(task))
    }

    /// Sends a message and ends the current task, for the end of which the receiver waits.
    ///
    /// The whole message is written first. With [`Error::Message`] it has not gone out whole, and
    /// the task goes on. With [`Error::Refused`] it has, and the kernel refused the end of the
    /// task. The answer is that of [`Process::task_end`].
    ///
    /// The receiver reads only after this task has ended: the message must fit into what the pipe
    /// or socket holds.
    pub fn send(&self, to: &mut impl Write, message: &[u8]) -> Result<Option<u32>, Error> {
        to.write_all(message).and_then(|()| to.flush()).map_err(Error::Message)?;
        self.task_end()
    }

    /// Ends the current task, waits for the task that sends the message, and reads the message,
    /// which has the length of `message`. The task that waits for it in the plan has begun then.
    ///
    /// With [`Error::Refused`] nothing was read. With [`Error::Message`] the task has ended all the
    /// same: read the rest without another call. The answer is that of [`Process::task_end`].
    pub fn receive(&self, from: &mut impl Read, message: &mut [u8]) -> Result<Option<u32>, Error> {
        let next = self.task_end()?;
        from.read_exact(message).map_err(Error::Message)?;
        Ok(next)
    }

    fn end(&self, task: Option<u32>) -> Result<Option<u32>, Error> {
        match &self.device {
            Some(device) => Ok(next_task(device.task_end(task))?),
            None => Ok(None),
        }
    }
}

/// Next task by the kernel's answer to the end of a task. A thread that is not
/// attached any more continues as a normal one, as it does without a plan.
fn next_task(ended: Result<Option<u32>, Refused>) -> Result<Option<u32>, Refused> {
    match ended {
        Err(refused) if refused.error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        ended => ended,
    }
}

#[cfg(test)]
mod tests;
