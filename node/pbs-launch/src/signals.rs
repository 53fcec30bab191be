// SPDX-License-Identifier: GPL-2.0
//! Signals as something to read: the end of a child, and the wish to stop.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Takes SIGCHLD, SIGINT, SIGTERM and SIGHUP.
#[derive(Debug)]
pub struct Signals {
    file: File,
    before: libc::sigset_t,
}

impl Signals {
    /// From now on they are no longer delivered to this thread.
    #[allow(unsafe_code)]
    pub fn new() -> io::Result<Self> {
        let mut taken = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigemptyset fills the set before it is used; sigprocmask
        // fills the other; signalfd gives a new descriptor or -1.
        unsafe {
            libc::sigemptyset(taken.as_mut_ptr());
            for signal in [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(taken.as_mut_ptr(), signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, taken.as_ptr(), before.as_mut_ptr()) < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, taken.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { file: File::from_raw_fd(fd), before: before.assume_init() })
        }
    }

    /// The mask before, which children are to have.
    pub fn mask_before(&self) -> &libc::sigset_t {
        &self.before
    }

    /// Takes what has come; the answer is whether somebody wants to stop.
    pub fn want_stop(&self) -> io::Result<bool> {
        let mut stop = false;
        let mut buffer = [0; 128];
        const _: () = assert!(size_of::<libc::signalfd_siginfo>() == 128);
        loop {
            match (&self.file).read(&mut buffer) {
                Ok(_) => {
                    // The signal's number is the first field.
                    let [a, b, c, d, ..] = buffer;
                    let number = u32::from_ne_bytes([a, b, c, d]);
                    stop |= number != libc::SIGCHLD as u32;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(stop),
                Err(e) => return Err(e),
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Has a command begin with no signal blocked: it would inherit those that [`Signals`] takes.
#[allow(unsafe_code)]
pub fn unblock_in(command: &mut Command) {
    let unblock = || {
        let mut none = MaybeUninit::uninit();
        // SAFETY: sigemptyset fills the set before it is used; both functions may be called
        // between fork and exec.
        let result = unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: the closure neither allocates nor takes a lock.
    unsafe { command.pre_exec(unblock) };
}

/// The sooner of two times to wait, of which a negative one means for ever.
pub fn sooner(one_ms: i32, other_ms: i32) -> i32 {
    match (one_ms < 0, other_ms < 0) {
        (true, _) => other_ms,
        (_, true) => one_ms,
        _ => one_ms.min(other_ms),
    }
}

/// Waits until one of both can be read, or for `timeout_ms` (negative: for
/// ever).
pub fn wait(a: impl AsFd, b: impl AsFd, timeout_ms: i32) -> io::Result<()> {
    wait_for([a.as_fd(), b.as_fd()], timeout_ms)
}

/// Waits until one of them can be read, or for `timeout_ms` (negative: for ever).
#[allow(unsafe_code)]
pub fn wait_for<'a>(
    fds: impl IntoIterator<Item = BorrowedFd<'a>>,
    timeout_ms: i32,
) -> io::Result<()> {
    let poll =
        |fd: BorrowedFd<'a>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<_> = fds.into_iter().map(poll).collect();
    // SAFETY: `fds` are so many valid pollfds that outlive the call.
    if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command of a process that takes signals can be ended by them.
    #[test]
    fn no_signal_is_blocked_in_a_command() {
        let _signals = Signals::new().unwrap();
        let blocked = |is_unblocked| {
            let mut command = Command::new("grep");
            command.args(["SigBlk", "/proc/self/status"]);
            if is_unblocked {
                unblock_in(&mut command);
            }
            let output = command.output().unwrap().stdout;
            let text = String::from_utf8(output).unwrap();
            u64::from_str_radix(text.split_whitespace().nth(1).unwrap(), 16).unwrap()
        };
        assert_ne!(blocked(false), 0);
        assert_eq!(blocked(true), 0);
    }
}
