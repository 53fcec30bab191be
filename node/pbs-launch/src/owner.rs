// SPDX-License-Identifier: GPL-2.0
//! Owner of a job's programs: the user and the environment with which they run.
//!
//! No part of a job runs with the rights of the service. The child searches for its program, enters
//! its directory and opens its files after it has become its owner.

use std::ffi::{CString, OsString};
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::child_report::Step;
use crate::files::{c_string, Named};

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

/// The limits by name.
const RESOURCES: [(&str, libc::__rlimit_resource_t); 10] = [
    ("as", libc::RLIMIT_AS),
    ("core", libc::RLIMIT_CORE),
    ("cpu", libc::RLIMIT_CPU),
    ("data", libc::RLIMIT_DATA),
    ("fsize", libc::RLIMIT_FSIZE),
    ("memlock", libc::RLIMIT_MEMLOCK),
    ("nofile", libc::RLIMIT_NOFILE),
    ("nproc", libc::RLIMIT_NPROC),
    ("rss", libc::RLIMIT_RSS),
    ("stack", libc::RLIMIT_STACK),
];

impl Limit {
    /// The limits that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RESOURCES.iter().map(|(name, _)| *name)
    }

    /// Returns the limits of this process.
    #[allow(unsafe_code)]
    pub fn own() -> Vec<Self> {
        let mut limits = Vec::with_capacity(RESOURCES.len());
        for (name, resource) in RESOURCES {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `limit` is valid for writing.
            if unsafe { libc::getrlimit(resource, &mut limit) } == 0 {
                limits.push(Self {
                    resource: name.into(),
                    soft: limit.rlim_cur,
                    hard: limit.rlim_max,
                });
            }
        }
        limits
    }
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
            let (_, resource) = *RESOURCES.iter().find(|(name, _)| *name == limit.resource)?;
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
