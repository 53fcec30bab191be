// SPDX-License-Identifier: GPL-2.0
//! Reports of a child on itself, between fork and exec.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::RawFd;
use std::path::PathBuf;

/// The step at which a child failed, or its arrival at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// The child waits at the gate.
    Ready,
    Execute,
    Identity,
    Keyring,
    Limits,
    Directory,
    Input,
    Output,
    Errors,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::Ready,
        Self::Execute,
        Self::Identity,
        Self::Keyring,
        Self::Limits,
        Self::Directory,
        Self::Input,
        Self::Output,
        Self::Errors,
    ];

    pub(crate) fn of_file(fd: RawFd) -> Self {
        match fd {
            libc::STDIN_FILENO => Self::Input,
            libc::STDOUT_FILENO => Self::Output,
            _ => Self::Errors,
        }
    }
}

/// A report of a child on itself: five bytes, the step and the errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildReport {
    pub(crate) step: Step,
    pub(crate) errno: i32,
}

impl ChildReport {
    pub(crate) fn new(step: Step, errno: i32) -> Self {
        Self { step, errno }
    }

    /// A report that the last call has failed.
    pub(crate) fn failed(step: Step) -> Self {
        Self::new(step, io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    pub(crate) fn bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_ne_bytes();
        [self.step as u8, a, b, c, d]
    }

    /// Reads the next report without waiting for it; `None`: the child was executed, or
    /// killed.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock): the child has not reported yet.
    pub(crate) fn read(from: &mut File) -> io::Result<Option<Self>> {
        let mut bytes = [0; 5];
        match from.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let [step, a, b, c, d] = bytes;
        let step = Step::ALL.into_iter().find(|known| *known as u8 == step);
        Ok(step.map(|step| Self::new(step, i32::from_ne_bytes([a, b, c, d]))))
    }
}

/// Places that a child needs before its program begins, for messages: files by their descriptors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) files: [Option<PathBuf>; 3],
}

impl Places {
    fn of_step(&self, step: Step) -> Option<&PathBuf> {
        let [input, output, errors] = &self.files;
        let place = match step {
            Step::Directory => &self.directory,
            Step::Input => input,
            Step::Output => output,
            Step::Errors => errors,
            Step::Ready | Step::Execute | Step::Identity | Step::Keyring | Step::Limits => {
                return None
            }
        };
        place.as_ref()
    }
}

impl ChildReport {
    /// Describes the failure of the step, with the place that it is about.
    pub(crate) fn in_words(self, places: &Places) -> String {
        let what = match self.step {
            Step::Ready | Step::Execute => "",
            Step::Identity => "its user and groups",
            Step::Keyring => "its session keyring",
            Step::Limits => "its limits",
            Step::Directory => "its working directory",
            Step::Input => "the file for its standard input",
            Step::Output => "the file for its standard output",
            Step::Errors => "the file for its standard error",
        };
        let error = io::Error::from_raw_os_error(self.errno);
        match places.of_step(self.step) {
            Some(place) => format!("{what}, {}: {error}", place.display()),
            None if what.is_empty() => error.to_string(),
            None => format!("{what}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_file() {
        let places = Places {
            directory: Some("/home/anna".into()),
            files: [None, Some("/home/anna/out".into()), None],
        };
        let words = |step| ChildReport::new(step, libc::EACCES).in_words(&places);
        let denied = "Permission denied (os error 13)";
        assert_eq!(
            words(Step::Output),
            format!("the file for its standard output, /home/anna/out: {denied}")
        );
        assert_eq!(words(Step::Directory), format!("its working directory, /home/anna: {denied}"));
        assert_eq!(words(Step::Errors), format!("the file for its standard error: {denied}"));
        assert_eq!(words(Step::Execute), denied);
    }
}
