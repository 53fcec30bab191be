// SPDX-License-Identifier: GPL-2.0
//! Identity of callers: only the kernel's data about a socket are trusted.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use crate::accounts::{Accounts, CachedFile};

/// The group whose members may do what others may not.
pub const OPERATORS: &str = "pbs-operators";

/// Groups of a caller for which there is room at first, and the most that a user can have.
const GROUPS: usize = 1024;
const MOST_GROUPS: usize = 65_536;

/// Identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// His group.
    pub gid: u32,
    /// The others that he is in.
    pub groups: Vec<u32>,
    /// Root, or in the group of the operators.
    pub is_operator: bool,
    /// The process that has connected; 0: it can't be seen from here.
    pub pid: u32,
    /// The user to whom what this one has counts: another one for a subordinate user.
    pub account: u32,
}

impl Caller {
    /// Returns the process at the other end of a socket; `operators`: the number of the operators'
    /// group, if there is one; `accounts`: the owners of subordinate users.
    #[allow(unsafe_code)]
    pub fn of(
        socket: BorrowedFd<'_>,
        operators: Option<u32>,
        accounts: &Accounts,
    ) -> io::Result<Self> {
        let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut bytes = size_of_val(&who) as libc::socklen_t;
        // SAFETY: `who` has room for so many bytes, and both are valid for writing.
        let asked = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut who).cast(),
                &mut bytes,
            )
        };
        if asked < 0 {
            return Err(io::Error::last_os_error());
        }
        let groups = groups_of(socket, GROUPS)?;
        let in_group = |gid| who.gid == gid || groups.contains(&gid);
        Ok(Self {
            uid: who.uid,
            gid: who.gid,
            is_operator: who.uid == 0 || operators.is_some_and(in_group),
            groups,
            pid: u32::try_from(who.pid).unwrap_or(0),
            account: accounts.of(who.uid),
        })
    }

    /// Whether he may do something with a job of that user.
    pub fn may(&self, of: Option<u32>) -> bool {
        self.is_operator || of == Some(self.uid)
    }
}

/// Returns the groups of the process at the other end of a socket; `room`: for how many there is
/// room at first.
#[allow(unsafe_code)]
fn groups_of(socket: BorrowedFd<'_>, room: usize) -> io::Result<Vec<u32>> {
    let mut groups = vec![0u32; room];
    loop {
        let mut bytes = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: `groups` has room for so many bytes, and both are valid for writing.
        let asked = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut bytes,
            )
        };
        let count = bytes as usize / size_of::<u32>();
        if asked >= 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // Where there is too little room, the kernel answers how much it takes.
        let takes_more = (groups.len() + 1..=MOST_GROUPS).contains(&count);
        if error.raw_os_error() != Some(libc::ERANGE) || !takes_more {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

/// The operators' group as /etc/group has it, which is read again only once it has changed.
#[derive(Debug)]
pub(crate) struct Operators(CachedFile<Option<u32>>);

impl Operators {
    /// The group, for which the file was not read yet.
    pub(crate) fn new() -> Self {
        Self(CachedFile::new(Path::new("/etc/group")))
    }

    /// Returns the number of the group now. Without the file there is no such group, and only root
    /// is an operator.
    pub(crate) fn number(&mut self) -> Option<u32> {
        self.0.get(|groups| group_number(groups, OPERATORS)).flatten()
    }
}

/// Name of a user, as /etc/passwd has it; otherwise the number.
pub fn user_name(uid: u32) -> String {
    known_user(uid).unwrap_or_else(|| format!("user {uid}"))
}

/// Name of a user, if /etc/passwd has it.
pub fn known_user(uid: u32) -> Option<String> {
    // Nobody is in a file that cannot be read.
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    pbs_text::user_name(&users, uid)
}

fn group_number(groups: &str, name: &str) -> Option<u32> {
    let line = groups.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line?.split(':').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_kernel_says_who_asks() {
        let (one, _other) = UnixStream::pair().unwrap();
        let caller = Caller::of(one.as_fd(), None, &Accounts::default()).unwrap();
        // SAFETY: they only answer.
        #[allow(unsafe_code)]
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        assert_eq!((caller.uid, caller.gid), (uid, gid));
        assert_eq!(caller.is_operator, uid == 0);
        assert_eq!(caller.pid, std::process::id());
        assert!(Caller::of(one.as_fd(), Some(gid), &Accounts::default()).unwrap().is_operator);
        assert!(caller.may(Some(uid)));
        let other = Caller { is_operator: false, ..caller };
        assert!(!other.may(Some(uid + 1)) && !other.may(None));
    }

    /// A caller in more groups than there is room for at first has all of them.
    #[test]
    fn all_groups_of_a_caller_are_known() {
        let (one, _other) = UnixStream::pair().unwrap();
        let all = groups_of(one.as_fd(), GROUPS).unwrap();
        if all.is_empty() {
            pbs_text::skipped("this process is in no other group than its first");
            return;
        }
        assert_eq!(groups_of(one.as_fd(), 0).unwrap(), all);
    }

    #[test]
    fn a_user_without_a_line_is_a_number() {
        assert_eq!(user_name(u32::MAX), "user 4294967295");
        assert_eq!(user_name(0), "root");
    }

    #[test]
    fn groups_are_found_by_their_whole_name() {
        let groups = "root:x:0:\npbs-operators-old:x:7:\npbs-operators:x:990:ann,bob\nx:y\n";
        assert_eq!(group_number(groups, OPERATORS), Some(990));
        assert_eq!(group_number(groups, "pbs"), None);
        assert_eq!(group_number(groups, "x"), None);
    }
}
