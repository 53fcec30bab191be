// SPDX-License-Identifier: GPL-2.0
//! The lock of the CSIMF: one of the open file, which the kernel keeps.
//!
//! It has what a robust mutex in shared memory has: it excludes threads and processes, and
//! when its holder is killed the next one gets it and learns of it. The kernel keeps it,
//! so its state is nowhere that a member of the group could write. Of a robust
//! `pthread_mutex_t` that can't be said: glibc unlinks it from a list on unlocking, and
//! stores through pointers that are in the mutex itself. Who can write the mutex could
//! have a process that unlocks it write where he likes.

use std::fs::File;
#[cfg(test)]
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Looks at the lock again after so long, at first without sleeping.
const AGAIN: Duration = Duration::from_micros(50);
const AT_ONCE: u32 = 20;

/// Minimum number of tries, if there is any patience: a process that was stopped for long has not
/// been waiting.
const AT_LEAST: u32 = 16;

/// Takes the lock, if it becomes free in this time.
pub(crate) fn take(file: &File, patience: Duration) -> io::Result<bool> {
    let start = Instant::now();
    take_by(|| set(file, libc::F_WRLCK), || start.elapsed(), patience)
}

/// Tries, with a clock, until it succeeds.
fn take_by(
    mut set: impl FnMut() -> io::Result<bool>,
    mut clock: impl FnMut() -> Duration,
    patience: Duration,
) -> io::Result<bool> {
    let (mut tries, mut waited, mut before) = (0_u32, Duration::ZERO, clock());
    while !set()? {
        let now = clock();
        let most = (patience / AT_LEAST).max(Duration::from_nanos(1));
        waited += now.saturating_sub(before).min(most);
        before = now;
        if waited >= patience {
            return Ok(false);
        }
        tries = tries.saturating_add(1);
        if tries < AT_ONCE {
            std::thread::yield_now()
        } else {
            sleep(AGAIN)
        }
    }
    Ok(true)
}

/// Releases it.
pub(crate) fn release(file: &File) -> io::Result<()> {
    set(file, libc::F_UNLCK).map(|_| ())
}

/// Whether it is set now.
#[allow(unsafe_code)] // A system call that std has not: its locks are of another kind.
fn set(file: &File, kind: libc::c_int) -> io::Result<bool> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the structure lives through the call.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if answer == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES | libc::EINTR) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever held it meanwhile may have released it and got it again.
    #[test]
    fn a_long_stopped_waiter_still_tries_the_lock() {
        let take = |jump_s: u64| {
            let (mut tries, mut now) = (0, Duration::ZERO);
            let free_at_the_fifth = || {
                tries += 1;
                Ok(tries == 5)
            };
            let clock = || {
                now += Duration::from_secs(jump_s);
                now
            };
            take_by(free_at_the_fifth, clock, Duration::from_secs(1)).unwrap()
        };
        assert!(take(0));
        assert!(take(3600));
        // And it comes to an end.
        let mut now = Duration::ZERO;
        let clock = || {
            now += Duration::from_secs(3600);
            now
        };
        assert!(!take_by(|| Ok(false), clock, Duration::from_secs(1)).unwrap());
    }

    #[test]
    fn one_at_a_time_and_closing_releases() {
        let path = std::env::temp_dir().join(format!("pbs-csi-lock-{}", std::process::id()));
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).unwrap()
        };
        let (one, other) = (open(), open());
        assert!(take(&one, Duration::ZERO).unwrap());
        assert!(!take(&other, Duration::ZERO).unwrap());
        release(&one).unwrap();
        assert!(take(&other, Duration::ZERO).unwrap());
        drop(other);
        assert!(take(&one, Duration::ZERO).unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
