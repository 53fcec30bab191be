// SPDX-License-Identifier: GPL-2.0
//! Accounts of the owners of requests on this machine.

use std::fs;
use std::io;

use pbs_node_api::Environment;
use pbs_site::User;
use rustix::fs::{Gid, Uid};
use rustix::process::{geteuid, getgid, getuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Search path of programs that name no directory.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Account of a user: as /etc/passwd and /etc/group have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: String,
    shell: String,
}

impl Account {
    /// Account of a user, by the user's number.
    ///
    /// # Errors
    ///
    /// There is no such account, or the files cannot be read.
    pub(crate) fn of(user: &User) -> Result<Self, String> {
        let read =
            |file: &str| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
        let no_account = |of: String| format!("/etc/passwd has no {of}; ask an operator");
        let uid = user.uid.ok_or_else(|| no_account(format!("user {user}")))?;
        let (users, groups) = (read("/etc/passwd")?, read("/etc/group")?);
        Self::find(&users, &groups, uid)
            .ok_or_else(|| no_account(format!("user {uid}, who was {user}")))
    }

    /// Account of a number by the lines of a passwd and of a group file.
    fn find(users: &str, groups: &str, uid: u32) -> Option<Self> {
        let number = uid.to_string();
        let is_it = |line: &&str| line.split(':').nth(2) == Some(&*number);
        let fields: Vec<&str> = users.lines().find(is_it)?.split(':').collect();
        let &[name, _, _, gid, _, home, shell] = &fields[..] else {
            return None;
        };
        let member_of = groups.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let &[_, _, gid, members] = &fields[..] else {
                return None;
            };
            let is_member = members.split(',').any(|member| member == name);
            gid.parse().ok().filter(|_| is_member)
        });
        Some(Self {
            name: name.into(),
            uid,
            gid: gid.parse().ok()?,
            groups: member_of.collect(),
            home: home.into(),
            shell: if shell.is_empty() { "/bin/sh".into() } else { shell.into() },
        })
    }

    /// Makes the calling thread act as the user: files are opened with the rights of the user, and
    /// services see the user at the other end of a connection. The thread remains one of this
    /// process for whoever sends signals or sets limits: its real and saved ids stay, by which the
    /// kernel decides about them. Otherwise each user could stop the process through the thread.
    ///
    /// # Errors
    ///
    /// The process runs as another user, and not as root.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if geteuid().as_raw() == self.uid {
            return Ok(());
        }
        let gid = Gid::from_raw(self.gid);
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        set_thread_groups(&groups)?;
        set_thread_res_gid(getgid(), gid, getgid())?;
        Ok(set_thread_res_uid(getuid(), Uid::from_raw(self.uid), getuid())?)
    }

    /// Environment of the user's programs.
    pub(crate) fn environment(&self) -> Vec<Environment> {
        let variables = [
            ("HOME", self.home.as_str()),
            ("LOGNAME", &self.name),
            ("PATH", PATH),
            ("SHELL", &self.shell),
            ("USER", &self.name),
        ];
        let variable =
            |(name, value): (&str, &str)| Environment { name: name.into(), value: value.into() };
        variables.map(variable).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_its_groups() {
        let users = "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:100:Anna,,:/home/anna:\nbob:x:7\n\
                     uno:x:1:7:::\n";
        let groups = "users:x:100:\nvideo:x:44:bob,anna\naudio:x:29:anna2\nlab:x:900:anna\nx\n";
        let anna = Account::find(users, groups, 1000).unwrap();
        let expected = Account {
            name: "anna".into(),
            uid: 1000,
            gid: 100,
            groups: vec![44, 900],
            home: "/home/anna".into(),
            shell: "/bin/sh".into(),
        };
        assert_eq!(anna, expected);
        assert_eq!(Account::find(users, groups, 7), None);
        assert_eq!(Account::find(users, groups, 10), None);
    }

    /// A request of a user whose number is not known runs as nobody, whoever has the name.
    #[test]
    fn a_name_is_no_account() {
        assert!(Account::of(&User::with_uid("renamed", 0)).is_ok_and(|of| of.name == "root"));
        assert!(Account::of(&"root".into()).unwrap_err().contains("no user root"));
        let none = Account::of(&User::with_uid("root", u32::MAX)).unwrap_err();
        assert!(none.contains("no user 4294967295, who was root"), "{none}");
    }
}
