// SPDX-License-Identifier: GPL-2.0
//! Identity of processes: a pid alone is reused, but together with the start time it is unique
//! within a boot.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::Error;

/// A process: within a boot and its namespaces there is never another of both numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start time, in ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] without `/proc`, or with that of another namespace of pids.
    pub fn this() -> Result<Self, Error> {
        let own = look("self").and_then(|stat| own(stat, std::process::id()));
        own.map_err(|error| Error::io("/proc/self/stat", error))
    }

    /// Whether any process has this pid now.
    pub(crate) fn is_pid_alive(pid: u32) -> bool {
        match look(&pid.to_string()) {
            Ok(stat) => !stat.has_ended,
            Err(_) => exists(pid),
        }
    }

    /// Whether the process is stopped: by a signal or a debugger, with all of its threads, or for
    /// its crash dump. Where `/proc` hides the processes of others, they are never stopped.
    pub fn is_stopped(self) -> bool {
        let Ok(stat) = look(&self.pid.to_string()) else {
            return false;
        };
        let is_this = stat.start_ticks == self.start_ticks && !stat.has_ended;
        is_this && (are_threads_stopped(self.pid) || dumps_core(self.pid))
    }

    /// Whether the process is still there. One that has ended and was not waited for is not.
    ///
    /// Where `/proc` hides the processes of others, one with this pid is taken for this one.
    pub fn is_alive(self) -> bool {
        match look(&self.pid.to_string()) {
            Ok(stat) => stat.start_ticks == self.start_ticks && !stat.has_ended,
            Err(_) => exists(self.pid),
        }
    }
}

/// This process, as its `/proc` tells.
fn own(stat: Stat, pid: u32) -> io::Result<Owner> {
    // With another's all the others would be taken for dead.
    if stat.pid != pid {
        let told = stat.pid;
        return Err(io::Error::other(format!(
            "it calls this process {told}, which is {pid}: mount the /proc of this container"
        )));
    }
    Ok(Owner { pid, start_ticks: stat.start_ticks })
}

struct Stat {
    pid: u32,
    start_ticks: u64,
    has_ended: bool,
    thread: ThreadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Stopped,
    Ended,
    Other,
}

fn look(process: &str) -> io::Result<Stat> {
    let text = fs::read(format!("/proc/{process}/stat"))?;
    parse(&String::from_utf8_lossy(&text)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse(text: &str) -> Option<Stat> {
    // The name may have spaces and brackets: what counts is after the last.
    let pid = text.split_whitespace().next()?.parse().ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    // The first thread may have ended before the others.
    let has_ended = matches!(state, "X" | "x") || (state == "Z" && threads <= 1);
    let thread = match state {
        "T" | "t" => ThreadState::Stopped,
        "X" | "x" | "Z" => ThreadState::Ended,
        _ => ThreadState::Other,
    };
    Some(Stat { pid, start_ticks, has_ended, thread })
}

/// Whether all threads of a process are stopped, except those that have ended. The first that
/// is not stopped answers.
fn are_threads_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let names = threads.into_iter().flatten().flatten().map(|thread| thread.file_name());
    let states = names.filter_map(|name| {
        let thread = format!("{pid}/task/{}", name.to_str()?);
        // A thread that has no state has ended.
        look(&thread).ok().map(|stat| stat.thread)
    });
    let mut are_any = false;
    for state in states {
        match state {
            ThreadState::Stopped => are_any = true,
            ThreadState::Ended => {}
            ThreadState::Other => return false,
        }
    }
    are_any
}

/// Whether a process is writing its crash dump.
fn dumps_core(pid: u32) -> bool {
    // A process that has no status has ended and writes nothing.
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    is_dumping(&status)
}

/// Whether the status of a process, as the kernel prints it, says that a crash dump is written.
fn is_dumping(status: &[u8]) -> bool {
    let mut lines = status.split(|&byte| byte == b'\n');
    lines.any(|line| {
        let value = line.strip_prefix(b"CoreDumping:");
        value.is_some_and(|value| value.trim_ascii() == b"1")
    })
}

#[allow(unsafe_code)] // A system call that std has not.
fn exists(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return false;
    };
    if pid == 0 {
        return false;
    }
    // SAFETY: signal 0 is none; the call only answers.
    let answer = unsafe { libc::kill(pid, 0) };
    answer == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Inode of the namespace of clocks in which a machine starts.
const FIRST_TIME_NAMESPACE: u64 = 0xeffffffa;

/// Boot and namespaces to which pids, start times and the clock are relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) boot_id: [u8; 16],
    pub(crate) namespaces: u64,
}

impl World {
    pub(crate) fn this() -> Result<Self, Error> {
        const BOOT: &str = "/proc/sys/kernel/random/boot_id";
        const NAMESPACE: &str = "/proc/self/ns/pid";
        let text = fs::read_to_string(BOOT).map_err(|error| Error::io(BOOT, error))?;
        let number = u128::from_str_radix(&text.trim().replace('-', ""), 16);
        let number = number.map_err(|_| Error::io(BOOT, io::ErrorKind::InvalidData.into()))?;
        let pids = fs::metadata(NAMESPACE).map_err(|error| Error::io(NAMESPACE, error))?;
        // A kernel that does not know such namespaces has one.
        let clocks = fs::metadata("/proc/self/ns/time").ok().map(|of| of.ino());
        Ok(Self { boot_id: number.to_be_bytes(), namespaces: namespaces(pids.ino(), clocks) })
    }
}

/// Combines the inodes of the namespaces of pids and of clocks, which have 32 bits each.
fn namespaces(pids: u64, clocks: Option<u64>) -> u64 {
    let other = clocks.filter(|&clocks| clocks != FIRST_TIME_NAMESPACE);
    pids | other.unwrap_or(0) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_crash_dump_is_seen_in_the_status() {
        let status = |value: &str| {
            let name = "CoreDumping: 1 of them";
            format!("Name:\t{name}\nTgid:\t7\nCoreDumping:\t{value}\nTHP_enabled:\t1\n")
        };
        assert!(is_dumping(status("1").as_bytes()));
        assert!(!is_dumping(status("0").as_bytes()));
        assert!(!is_dumping(b"Name:\tx\n"));
        assert!(!is_dumping(b""));
        // The kernel of this machine says it of this test.
        let own = fs::read("/proc/self/status").unwrap();
        assert!(own.split(|&byte| byte == b'\n').any(|line| line == b"CoreDumping:\t0"));
        assert!(!dumps_core(std::process::id()));
    }

    #[test]
    fn this_process_is_alive_and_another_of_its_pid_is_not() {
        let own = Owner::this().unwrap();
        assert!(own.is_alive());
        let start_ticks = own.start_ticks + 1;
        assert!(!Owner { start_ticks, ..own }.is_alive());
        let nobody = Owner { pid: 0, start_ticks: 0 };
        assert!(!nobody.is_alive());
        let beyond = Owner { pid: u32::MAX, start_ticks: 0 };
        assert!(!beyond.is_alive());
    }

    /// Killed processes stay until their parents ask; they hold nothing.
    #[test]
    fn one_that_was_not_waited_for_has_ended() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap();
        let stat = look(&child.id().to_string()).unwrap();
        let owner = Owner { pid: child.id(), start_ticks: stat.start_ticks };
        assert!(owner.is_alive());
        child.kill().unwrap();
        while owner.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!owner.is_alive());
    }

    #[test]
    fn names_of_programs_do_not_confuse() {
        let text = "7 (a) R 9) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 2 18 4242 20";
        let stat = parse(text).unwrap();
        assert_eq!((stat.pid, stat.start_ticks), (7, 4242));
        assert!(!stat.has_ended);
        assert!(parse("7 (a").is_none());
    }

    /// A process has another start time in another namespace of clocks.
    #[test]
    fn another_namespace_of_clocks_is_another_world() {
        let first = namespaces(7, Some(FIRST_TIME_NAMESPACE));
        assert_eq!((first, namespaces(7, None)), (7, 7));
        let other = namespaces(7, Some(0xf000_0001));
        assert_eq!(other, 0xf000_0001_0000_0007);
        assert_ne!(other, namespaces(7, Some(0xf000_0002)));
        assert_ne!(other, namespaces(8, Some(0xf000_0001)));
    }

    /// In a container that sees the `/proc` of the host.
    #[test]
    fn a_proc_with_other_process_numbers_is_refused() {
        let stat =
            || Stat { pid: 4242, start_ticks: 1, has_ended: false, thread: ThreadState::Other };
        let told = own(stat(), 7).unwrap_err().to_string();
        assert!(told.starts_with("it calls this process 4242"), "{told}");
        assert_eq!(own(stat(), 4242).unwrap().start_ticks, 1);
    }
}
