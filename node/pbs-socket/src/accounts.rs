// SPDX-License-Identifier: GPL-2.0
//! Users whose limits count for subordinate users.
//!
//! /etc/subuid gives ranges of numbers to users, who can be all of these at once. What one of them
//! has counts to its owner, as far as the file says whose it is.

use std::io::ErrorKind;
use std::sync::Once;

use crate::journal;

/// The file of subordinate users (subuid(5)).
const FILE: &str = "/etc/subuid";

/// The file that knows the users themselves.
const USERS: &str = "/etc/passwd";

/// Owners of subordinate users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    ranges: Vec<Range>,
}

/// Subordinate users of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    owner: u32,
    first: u32,
    count: u32,
}

impl Accounts {
    /// The owners as this system has them now. What cannot be read is reported once.
    pub fn read() -> Self {
        let Some(ranges) = text(FILE) else {
            return Self::default();
        };
        text(USERS).map_or_else(Self::default, |users| Self::of_text(&ranges, &users))
    }

    /// Reads the lines of subuid(5) and passwd(5); one that is invalid gives nobody anything, as for newuidmap.
    pub fn of_text(ranges: &str, users: &str) -> Self {
        let number = |name: &str| {
            let mut lines = users.lines().map(|line| line.split(':'));
            let named = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words));
            named.and_then(|mut words| words.nth(1))?.parse().ok()
        };
        let range = |line: &str| {
            let mut words = line.split(':');
            let owner = words.next()?;
            let first = words.next()?.parse().ok()?;
            let count = words.next()?.parse().ok()?;
            let owner: u32 = number(owner).or_else(|| owner.parse().ok())?;
            // Root needs no limit, and what is root's is not to escape from one.
            (owner != 0).then_some(Range { owner, first, count })
        };
        Self { ranges: ranges.lines().filter_map(range).collect() }
    }

    /// Returns the user to whom what that user has counts: the owner of a subordinate user, and
    /// otherwise the user.
    pub fn of(&self, uid: u32) -> u32 {
        let has = |range: &&Range| uid.checked_sub(range.first).is_some_and(|at| at < range.count);
        self.ranges.iter().find(has).map_or(uid, |range| range.owner)
    }
}

/// The text of a file; `None`: there is none, or it can't be read, which is reported.
fn text(file: &str) -> Option<String> {
    static REPORT: Once = Once::new();
    match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            REPORT.call_once(|| {
                journal::warning(&format!(
                    "{file}: {error}; each subordinate user has limits of its own"
                ));
            });
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_users_count_to_their_owner() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        let ranges = "ann:100000:65536\n1001:200000:10\nroot:300000:10\nbob:1:2\nann:x:7\nann:5\n";
        let accounts = Accounts::of_text(ranges, users);
        let of = |uids: [u32; 9]| uids.map(|uid| accounts.of(uid));
        assert_eq!(
            of([100_000, 165_535, 165_536, 200_009, 200_010, 300_000, 1000, 0, 1]),
            [1000, 1000, 165_536, 1001, 200_010, 300_000, 1000, 0, 1]
        );
        assert_eq!(Accounts::default().of(100_000), 100_000);
    }
}
