// SPDX-License-Identifier: GPL-2.0
//! Owner of a job's programs: the user and the environment with which they run.
//!
//! No part of a job runs with the rights of the service. The child searches for its program, enters
//! its directory and opens its files after it has become its owner.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::child_report::Step;
use crate::files::{c_string, Named};
use crate::own_limits::{former_timers, limit_of};

/// Default search path of programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// User and environment of a job's programs.
///
/// An owner has no default, and of the stored fields only an absent output file has one: missing
/// data would otherwise be taken for root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// His group.
    pub gid: u32,
    /// The other groups that he is in.
    pub groups: Vec<u32>,
    /// The working directory.
    pub directory: PathBuf,
    /// The file mode creation mask.
    pub umask: u32,
    /// All of the environment.
    pub environment: Vec<(String, String)>,
    /// Never more than the service's own.
    pub limits: Vec<Limit>,
    /// Output file of programs whose standard output or standard error is not redirected; `None`:
    /// the job's name and number with `.out`.
    pub output: Option<PathBuf>,
}

/// A limit of setrlimit(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Name of the resource in setrlimit(2), in small letters and without `RLIMIT_`.
    pub resource: String,
    /// `u64::MAX`: there is none.
    pub soft: u64,
    /// `u64::MAX`: there is none.
    pub hard: u64,
}

/// The limits by name, each with its name in /proc/PID/limits.
const RESOURCES: [(&str, libc::__rlimit_resource_t, &str); 10] = [
    ("as", libc::RLIMIT_AS, "Max address space"),
    ("core", libc::RLIMIT_CORE, "Max core file size"),
    ("cpu", libc::RLIMIT_CPU, "Max cpu time"),
    ("data", libc::RLIMIT_DATA, "Max data size"),
    ("fsize", libc::RLIMIT_FSIZE, "Max file size"),
    ("memlock", libc::RLIMIT_MEMLOCK, "Max locked memory"),
    ("nofile", libc::RLIMIT_NOFILE, "Max open files"),
    ("nproc", libc::RLIMIT_NPROC, "Max processes"),
    ("rss", libc::RLIMIT_RSS, "Max resident set"),
    ("stack", libc::RLIMIT_STACK, "Max stack size"),
];

impl Limit {
    /// The limits that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RESOURCES.iter().map(|(name, ..)| *name)
    }

    /// Returns the limits of this process.
    pub fn own() -> Vec<Self> {
        let known = RESOURCES.into_iter().filter_map(|(name, resource, _)| {
            // A limit that this kernel does not have is none.
            let limit = limit_of(resource).ok()?;
            Some(Self { resource: name.into(), soft: limit.rlim_cur, hard: limit.rlim_max })
        });
        known.collect()
    }

    /// Returns the limits of a process of that user.
    ///
    /// # Errors
    ///
    /// There is no such process, or it is another user's, or what the kernel says of it can't be
    /// read.
    pub fn of_process(pid: u32, uid: u32) -> io::Result<Vec<Self>> {
        let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        let limits = limits_of_text(&file("limits")?)
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/limits is not as expected")))?;
        // Its number may be that of another process by now, which has other limits.
        let status = file("status")?;
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let mut uids = uids.unwrap_or_default().split_whitespace();
        if uids.any(|of| of.parse() == Ok(uid)) {
            Ok(limits)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("process {pid} has ended")))
        }
    }
}

/// Reads the limits that /proc/PID/limits has; `None`: one is missing.
fn limits_of_text(text: &str) -> Option<Vec<Limit>> {
    let value = |word: &str| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    let limit = |(name, _, label): &(&str, _, &str)| {
        let mut words = text.lines().find_map(|line| line.strip_prefix(label))?.split_whitespace();
        let (soft, hard) = (value(words.next()?)?, value(words.next()?)?);
        Some(Limit { resource: (*name).into(), soft, hard })
    };
    RESOURCES.iter().map(limit).collect()
}

/// `KEYCTL_JOIN_SESSION_KEYRING` of linux/keyctl.h.
pub(crate) const JOIN_SESSION_KEYRING: libc::c_int = 1;

/// Limit of open files that programs expect: select(2) can handle no more. A service may
/// have raised its own.
const OPEN_FILES: u64 = 1024;

impl Owner {
    /// The user, in that group alone, in the root directory, without an environment.
    pub fn new(uid: u32, gid: u32) -> Self {
        Self {
            uid,
            gid,
            groups: Vec::new(),
            directory: "/".into(),
            umask: 0o077,
            environment: Vec::new(),
            limits: Vec::new(),
            output: None,
        }
    }

    /// Bounds all limits by those of a process of the user. A limit that the owner has not is that
    /// of the process.
    pub fn bound_limits(&mut self, most: &[Limit]) {
        let bounded = most.iter().map(|most| {
            let own = self.limits.iter().find(|own| own.resource == most.resource);
            let own = own.unwrap_or(most);
            let hard = own.hard.min(most.hard);
            Limit { resource: most.resource.clone(), soft: own.soft.min(hard), hard }
        });
        self.limits = bounded.collect();
    }

    /// The environment of his programs.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let variables = self.environment.iter();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        variables.collect()
    }

    /// Returns the paths at which a program of this owner may be, as execvp(3) searches for it.
    pub(crate) fn candidates(&self, program: &str) -> Vec<PathBuf> {
        let mut variables = self.environment.iter().rev();
        let path = variables.find(|(name, _)| name == "PATH");
        candidates(program, path.map(|(_, value)| value.as_str()))
    }

    /// Returns the files for standard input, output and error, given the files that a command
    /// names.
    pub(crate) fn files(&self, named: [(Option<&PathBuf>, RawFd); 3]) -> Vec<Named> {
        // Several programs may write to the same one. All are opened before any of them
        // is let go, so each may empty it.
        let append = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_TRUNC;
        let files = named.into_iter().map(|(file, fd)| {
            let null = PathBuf::from("/dev/null");
            let (path, flags) = match (file, fd) {
                (file, libc::STDIN_FILENO) => (file.unwrap_or(&null).clone(), libc::O_RDONLY),
                (Some(file), _) => (file.clone(), append),
                (None, _) => (self.output.clone().unwrap_or(null), append),
            };
            Named { path: c_string(path.as_os_str()), flags, fd }
        });
        files.collect()
    }
}

/// Returns the paths at which a program may be, given the value of `PATH`.
pub(crate) fn candidates(program: &str, path: Option<&str>) -> Vec<PathBuf> {
    if program.contains('/') {
        return vec![program.into()];
    }
    let directories = std::env::split_paths(path.unwrap_or(PATH));
    directories.map(|directory| directory.join(program)).collect()
}

/// Data with which a child becomes its owner, without allocating memory.
#[derive(Debug)]
pub(crate) struct Rights {
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
    directory: CString,
    umask: libc::mode_t,
    limits: Vec<(libc::__rlimit_resource_t, libc::rlimit)>,
}

impl Rights {
    pub(crate) fn of(owner: &Owner) -> Self {
        let own = Limit::own();
        let limits = owner.limits.iter().filter_map(|limit| {
            let (_, resource, _) = *RESOURCES.iter().find(|of| of.0 == limit.resource)?;
            let own = own.iter().find(|own| own.resource == limit.resource)?;
            let rlim_max = limit.hard.min(own.hard);
            let rlim_cur = limit.soft.min(rlim_max);
            Some((resource, libc::rlimit { rlim_cur, rlim_max }))
        });
        let mut limits: Vec<_> = limits.collect();
        if limits.iter().all(|(resource, _)| *resource != libc::RLIMIT_NOFILE) {
            let own = own.iter().find(|own| own.resource == "nofile");
            limits.extend(own.map(|own| {
                let rlim_cur = own.soft.min(OPEN_FILES);
                (libc::RLIMIT_NOFILE, libc::rlimit { rlim_cur, rlim_max: own.hard })
            }));
        }
        let former_timers = former_timers().filter(|_| owner.uid == 0);
        limits.extend(former_timers.map(|former| (libc::RLIMIT_SIGPENDING, former)));
        Self {
            uid: owner.uid,
            gid: owner.gid,
            groups: owner.groups.clone(),
            directory: c_string(owner.directory.as_os_str()),
            umask: owner.umask & 0o777,
            limits,
        }
    }

    /// In the child: has those rights and no others from now on; the answer is what
    /// failed, with errno saying why.
    #[allow(unsafe_code)]
    pub(crate) fn assume(&self) -> Result<(), Step> {
        // SAFETY: calls with valid arguments, all of which may be made between fork and
        // exec. The groups are set by the call itself, not by the C library, which would
        // do it in all threads: there is but this one.
        unsafe {
            // Its own session: what a terminal sends the service is not for it.
            libc::setsid();
            let (count, groups) = (self.groups.len(), self.groups.as_ptr());
            if libc::syscall(libc::SYS_setgroups, count, groups) != 0
                || libc::syscall(libc::SYS_setresgid, self.gid, self.gid, self.gid) != 0
                || libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid) != 0
            {
                return Err(Step::Identity);
            }
            // Until the program is executed, the memory is that of the service: no core of it is
            // for the owner, whatever fs.suid_dumpable says. The program can have one again. Files
            // in /proc/self belong to root from here on, as they do after a change of the user.
            if libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong, 0, 0, 0) != 0 {
                return Err(Step::Identity);
            }
            // The keys of the service are not for it. As its owner: the new keyring is his.
            let nameless = std::ptr::null::<u8>();
            if libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, nameless) < 0
                && *libc::__errno_location() != libc::ENOSYS
            {
                return Err(Step::Keyring);
            }
            for (resource, limit) in &self.limits {
                if libc::setrlimit(*resource, limit) != 0 {
                    return Err(Step::Limits);
                }
            }
            libc::umask(self.umask);
            if libc::chdir(self.directory.as_ptr()) != 0 {
                return Err(Step::Directory);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_limits;

    /// A client that says nothing of limits, or more than its user has, gets those that its own
    /// process has: a login has set them.
    #[test]
    fn limits_are_bounded_by_those_of_a_process_of_the_user() {
        let limit = |resource: &str, soft, hard| Limit { resource: resource.into(), soft, hard };
        let most = [limit("nproc", 50, 100), limit("nofile", 1024, 4096), limit("cpu", 7, 9)];
        let said = vec![limit("nproc", u64::MAX, u64::MAX), limit("nofile", 4096, u64::MAX)];
        let mut owner = Owner { limits: said, ..Owner::new(1000, 1000) };
        owner.bound_limits(&most);
        let bounded = [limit("nproc", 100, 100), limit("nofile", 4096, 4096), limit("cpu", 7, 9)];
        assert_eq!(owner.limits, bounded);
        let mut silent = Owner::new(1000, 1000);
        silent.bound_limits(&most);
        assert_eq!(silent.limits, most);
    }

    /// Programs inherit the lowered limit of timers, but for root's.
    #[test]
    fn the_limit_of_timers_is_not_for_root() {
        let limit = || own_limits::limit_of(libc::RLIMIT_SIGPENDING).unwrap();
        let former = limit();
        // No lower than it is: other tests run beside this one.
        own_limits::lower_timers(former.rlim_max).unwrap();
        let of = |uid: u32| {
            let limits = Rights::of(&Owner::new(uid, uid)).limits;
            let found = limits.into_iter().find(|(of, _)| *of == libc::RLIMIT_SIGPENDING);
            found.map(|(_, limit)| (limit.rlim_cur, limit.rlim_max))
        };
        assert_eq!(of(1000), None);
        assert_eq!(of(0), Some((former.rlim_cur, former.rlim_max)));
    }

    /// A child that became its owner has the memory of the service, and leaves no core of it.
    #[test]
    #[allow(unsafe_code)]
    fn a_child_leaves_no_core_of_the_service() {
        // SAFETY: it only answers.
        if unsafe { libc::getuid() } != 0 {
            pbs_text::skipped("it becomes another user, which needs root");
            return;
        }
        // Without a change of the user, the kernel does nothing by itself.
        let rights = Rights::of(&Owner { umask: 0o022, ..Owner::new(0, 0) });
        // SAFETY: the child makes calls that are allowed between fork and exec, and ends by _exit;
        // the parent waits for the child, which is its own.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                let assumed = rights.assume().is_ok();
                let is_dumpable = libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0);
                libc::_exit(if assumed { is_dumpable } else { 77 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            status
        };
        assert!(libc::WIFEXITED(status));
        match libc::WEXITSTATUS(status) {
            77 => pbs_text::skipped("a child cannot become root here"),
            is_dumpable => assert_eq!(is_dumpable, 0),
        }
    }

    /// The limits that the kernel has for a process are those that getrlimit(2) answers it. They are
    /// unknown of a process that has ended, or whose number another user's process has.
    #[test]
    #[allow(unsafe_code)]
    fn the_kernel_knows_the_limits_of_a_process() {
        // SAFETY: it only answers.
        let uid = unsafe { libc::getuid() };
        let pid = std::process::id();
        assert_eq!(Limit::of_process(pid, uid).unwrap(), Limit::own());
        assert!(Limit::of_process(pid, uid + 1).is_err());
        assert!(Limit::of_process(u32::MAX, uid).is_err());
        assert!(limits_of_text("Max cpu time   unlimited   unlimited   seconds\n").is_none());
    }
}
