// SPDX-License-Identifier: GPL-2.0
//! Steps of a child between fork and exec: descriptors, signals, rights and files.
//!
//! The child allocates nothing and takes no lock. Files belong to a user who may make
//! any of these calls last for ever. The node therefore waits for a child only until a
//! deadline ([`Child::wait_ready`](crate::Child::wait_ready)).

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use crate::child_report::{ChildReport, Step};
use crate::files::Named;
use crate::program::Files;

/// Standard input of a child that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file that can be read.
    Open,
    /// A FIFO, to which somebody may not have written yet.
    Fifo,
}

/// Greatest number of a signal.
const LAST_SIGNAL: libc::c_int = 64;

/// Size of a set of signals in the kernel.
const SIGNAL_SET_BYTES: usize = 8;

/// Gives each signal its default action, and blocks none: the program does not inherit what
/// the service ignores.
#[allow(unsafe_code)]
pub(crate) fn forget_signals() {
    // The default action, without flags and mask; no kernel reads more than this.
    let action = [0u64; 8];
    let none = [0u8; SIGNAL_SET_BYTES];
    // SAFETY: both are valid for reading. The C library refuses to change signals of its own,
    // therefore the calls are the kernel's; SIGKILL and SIGSTOP are refused without harm.
    unsafe {
        for signal in 1..=LAST_SIGNAL {
            let before = std::ptr::null_mut::<u64>();
            let action = action.as_ptr();
            libc::syscall(libc::SYS_rt_sigaction, signal, action, before, SIGNAL_SET_BYTES);
        }
        let before = std::ptr::null_mut::<u8>();
        let (how, none) = (libc::SIG_SETMASK, none.as_ptr());
        libc::syscall(libc::SYS_rt_sigprocmask, how, none, before, SIGNAL_SET_BYTES);
    }
}

/// Closes all but the standard descriptors and those.
#[allow(unsafe_code)]
pub(crate) fn close_others(kept: [&BorrowedFd<'_>; 3]) {
    let mut kept = kept.map(|fd| fd.as_raw_fd() as libc::c_uint);
    kept.sort_unstable();
    let mut first: libc::c_uint = 3;
    for fd in kept.into_iter().chain([libc::c_uint::MAX]) {
        if first < fd {
            // SAFETY: the child does not use those descriptors any more, and ends without
            // dropping what owns them.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = first.max(fd.saturating_add(1));
    }
}

/// Becomes the owner, and puts the files in place of the standard descriptors.
pub(crate) fn stand_in(files: &Files) -> Result<Input, ChildReport> {
    let mut input = Input::Open;
    match files {
        Files::Opened(files) => {
            for (file, fd) in files {
                stands_for(file.as_raw_fd(), *fd)?;
            }
        }
        Files::Of(rights, files) => {
            rights.assume().map_err(ChildReport::failed)?;
            for file in files {
                let opened = open(file)?;
                if file.fd == libc::STDIN_FILENO && is_fifo(opened) {
                    input = Input::Fifo;
                }
                stands_for(opened, file.fd)?;
                if opened != file.fd {
                    // SAFETY: the child has just opened it and uses its duplicate.
                    #[allow(unsafe_code)]
                    unsafe {
                        libc::close(opened)
                    };
                }
            }
        }
    }
    Ok(input)
}

/// Opens a file without waiting for another process: a FIFO for a reader or a writer, a
/// leased file for its holder, a line for its carrier. Reading and writing wait as usual.
#[allow(unsafe_code)]
fn open(file: &Named) -> Result<RawFd, ChildReport> {
    let flags = file.flags | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    let failed = || Err(ChildReport::failed(Step::of_file(file.fd)));
    // SAFETY: the path is a live C string; the other calls have no pointer.
    unsafe {
        let opened = libc::open(file.path.as_ptr(), flags, 0o666);
        if opened < 0 {
            return failed();
        }
        let flags = libc::fcntl(opened, libc::F_GETFL);
        if flags < 0 || libc::fcntl(opened, libc::F_SETFL, flags & !libc::O_NONBLOCK) < 0 {
            return failed();
        }
        Ok(opened)
    }
}

#[allow(unsafe_code)]
fn is_fifo(fd: RawFd) -> bool {
    let mut file = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `file` is valid for writing, and all of it is written if the call succeeds.
    unsafe {
        libc::fstat(fd, file.as_mut_ptr()) == 0
            && file.assume_init().st_mode & libc::S_IFMT == libc::S_IFIFO
    }
}

/// Waits until somebody has written to the FIFO that is standard input, or has closed it.
/// The program would otherwise find it empty.
#[allow(unsafe_code)]
pub(crate) fn wait_for_writer() {
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: `input` is valid for writing.
    while unsafe { libc::poll(&raw mut input, 1, -1) } < 0 {}
}

/// Sleeps until that time of the monotonic clock, or not at all if it has passed.
#[allow(unsafe_code)]
pub(crate) fn wait_until(time_ns: u64) {
    const SECOND_NS: u64 = 1_000_000_000;
    if time_ns == 0 {
        return;
    }
    let until = libc::timespec {
        tv_sec: libc::time_t::try_from(time_ns / SECOND_NS).unwrap_or(libc::time_t::MAX),
        tv_nsec: (time_ns % SECOND_NS) as libc::c_long,
    };
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    // SAFETY: the time is valid for reading, and nothing is written.
    while unsafe { libc::clock_nanosleep(clock, flags, &until, std::ptr::null_mut()) }
        == libc::EINTR
    {}
}

#[allow(unsafe_code)]
fn stands_for(file: RawFd, fd: RawFd) -> Result<(), ChildReport> {
    // SAFETY: replaces a descriptor of the child, which uses it no more.
    match unsafe { libc::dup2(file, fd) } {
        -1 => Err(ChildReport::failed(Step::of_file(fd))),
        _ => Ok(()),
    }
}
