// SPDX-License-Identifier: GPL-2.0
//! Messages of a program that marks its sends and receives.

use std::io::{self, ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{next_task, Error, Process};
use crate::Device;

const MESSAGE: &[u8] = b"message";

/// A process of no plan.
fn unplanned() -> Process {
    Process { device: None, thread: PhantomData }
}

/// A process whose marks are all refused: its device is none.
fn refused() -> Process {
    let device = Device::open_path(Path::new("/dev/null"), false).unwrap();
    Process { device: Some(device), thread: PhantomData }
}

/// A stream that is interrupted, takes or gives a byte, and fails after a number of bytes.
struct Halting {
    left: usize,
    bytes: Vec<u8>,
    interrupted: bool,
}

impl Halting {
    fn after(left: usize, bytes: &[u8]) -> Self {
        Self { left, bytes: bytes.to_vec(), interrupted: false }
    }

    fn step(&mut self) -> io::Result<()> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        self.left = self.left.checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
        Ok(())
    }
}

impl Write for Halting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.step()?;
        self.bytes.push(bytes[0]);
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Halting {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.step()?;
        bytes[0] = self.bytes.remove(0);
        Ok(1)
    }
}

#[test]
fn messages_of_a_program_without_a_plan_go_through_pipes_and_sockets() {
    let process = unplanned();
    let mut received = [0; MESSAGE.len()];
    let (mut from, mut to) = io::pipe().unwrap();
    assert_eq!(process.send(&mut to, MESSAGE).unwrap(), None);
    assert_eq!(process.receive(&mut from, &mut received).unwrap(), None);
    assert_eq!(received, MESSAGE);
    let (mut one, mut other) = UnixStream::pair().unwrap();
    process.send(&mut one, MESSAGE).unwrap();
    process.receive(&mut other, &mut received).unwrap();
    assert_eq!(received, MESSAGE);
    drop(one);
    let end = process.receive(&mut other, &mut received);
    assert!(matches!(end, Err(Error::Message(error)) if error.kind() == ErrorKind::UnexpectedEof));
}

#[test]
fn interrupted_message_is_whole() {
    let process = unplanned();
    let mut stream = Halting::after(100, b"");
    process.send(&mut stream, MESSAGE).unwrap();
    assert_eq!(stream.bytes, MESSAGE);
    let mut received = [0; MESSAGE.len()];
    process.receive(&mut stream, &mut received).unwrap();
    assert_eq!(received, MESSAGE);
}

#[test]
fn task_ends_after_the_whole_message_alone() {
    let process = refused();
    // The mark is refused, and therefore was made.
    let mut out = Vec::new();
    assert!(matches!(process.send(&mut out, MESSAGE), Err(Error::Refused(_))));
    assert_eq!(out, MESSAGE);
    // It was not made.
    let halted = process.send(&mut Halting::after(3, b""), MESSAGE);
    let Err(Error::Message(error)) = halted else { panic!("{halted:?}") };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert_eq!(Error::Message(error).to_string(), "message: broken pipe");
}

#[test]
fn nothing_is_read_before_the_mark() {
    let mut stream = Halting::after(100, MESSAGE);
    let mut received = [0; MESSAGE.len()];
    let refused = refused().receive(&mut stream, &mut received);
    assert!(matches!(refused, Err(Error::Refused(_))));
    assert_eq!(stream.bytes, MESSAGE);
}

#[test]
fn a_program_whose_plan_is_gone_continues() {
    let refused = |errno| Err(io::Error::from_raw_os_error(errno).into());
    assert!(matches!(next_task(refused(libc::ESRCH)), Ok(None)));
    assert!(next_task(refused(libc::EBUSY)).is_err());
    assert!(matches!(next_task(Ok(Some(3))), Ok(Some(3))));
}
