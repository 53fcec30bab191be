// SPDX-License-Identifier: GPL-2.0
//! Children of this process that have ended.
//!
//! A program can give this process a child that it has not started: with `CLONE_PARENT` the
//! parent of the new process is that of the program. Such strangers are waited for, since
//! they would otherwise stand before the children that the caller has started.

use std::mem::MaybeUninit;

/// Strangers that are waited for in one round.
const MOST_STRANGERS: usize = 64;

/// Children that were found to have ended in one round.
#[derive(Debug, Default)]
pub struct EndedChildren {
    /// Process ids of children that the caller has started. They were not waited for.
    pub own: Vec<i32>,
    /// Number of children that the caller has not started. They are gone.
    pub strangers: usize,
    /// More may have ended than were looked at.
    pub more: bool,
}

/// Finds the children that have ended and waits for those that the caller has not started;
/// `has_ended` returns whether one that it has started was found to have ended and is gone, and
/// `None` for a stranger. The number of strangers in a round is bounded.
pub fn ended_children(mut has_ended: impl FnMut(i32) -> Option<bool>) -> EndedChildren {
    let mut ended = EndedChildren::default();
    while let Some(pid) = ended_child() {
        match has_ended(pid) {
            Some(true) => ended.own.push(pid),
            Some(false) => break,
            None if ended.strangers < MOST_STRANGERS && reap(pid) => ended.strangers += 1,
            None => {
                ended.more = true;
                break;
            }
        }
    }
    ended
}

/// A child that has ended and was not waited for.
#[allow(unsafe_code)]
fn ended_child() -> Option<i32> {
    let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `info` is valid for writing.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) };
    // SAFETY: all of it was written, with zeroes at first; without a child that has ended
    // the number stays 0.
    let pid = unsafe { info.assume_init().si_pid() };
    (result == 0 && pid > 0).then_some(pid)
}

/// Waits for a child that has ended.
#[allow(unsafe_code)]
fn reap(pid: i32) -> bool {
    // SAFETY: the call writes nothing; the child was not waited for, and the number is
    // therefore not that of another.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) == pid }
}
