// SPDX-License-Identifier: GPL-2.0
//! Users whose limits count for subordinate users.
//!
//! /etc/subuid gives ranges of numbers to users, who can be all of these at once. What one of them
//! has counts to its owner, as far as the file says whose it is.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

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
    /// Reads the lines of subuid(5) and passwd(5). An invalid line gives nobody anything, as for
    /// newuidmap(1).
    pub fn of_text(ranges: &str, users: &str) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for line in users.lines() {
            let mut words = line.split(':');
            if let (Some(name), Some(Ok(uid))) = (words.next(), words.nth(1).map(str::parse)) {
                // The first line of a name counts, as for getpwnam(3).
                numbers.entry(name).or_insert(uid);
            }
        }
        let range = |line: &str| {
            let mut words = line.split(':');
            let owner = words.next()?;
            let first = words.next()?.parse().ok()?;
            let count = words.next()?.parse().ok()?;
            let owner = numbers.get(owner).copied().or_else(|| owner.parse().ok())?;
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

/// Owners as the files of this system have them, which are read again only once they have changed.
#[derive(Debug)]
pub struct AccountFiles {
    ranges: PathBuf,
    users: PathBuf,
    /// The files as they were when they were read last, and what they said.
    read: Option<([Option<Version>; 2], Arc<Accounts>)>,
}

/// Numbers of a file that change with its content: device, file, size, and the times of its last
/// modification and its last change in seconds and nanoseconds.
type Version = [i64; 7];

impl Default for AccountFiles {
    fn default() -> Self {
        Self::of(Path::new(FILE), Path::new(USERS))
    }
}

impl AccountFiles {
    /// Files of the subordinate users and of the users, which were not read yet.
    fn of(ranges: &Path, users: &Path) -> Self {
        Self { ranges: ranges.into(), users: users.into(), read: None }
    }

    /// Returns the owners as the files have them now. What cannot be read is reported once, and
    /// read again at each call.
    pub fn accounts(&mut self) -> Arc<Accounts> {
        // Before they are read: a change meanwhile is noticed by the next call.
        let versions = [version(&self.ranges), version(&self.users)];
        if let Some((_, accounts)) = self.read.as_ref().filter(|(read, _)| *read == versions) {
            return accounts.clone();
        }
        let (ranges, users) = (text(&self.ranges), text(&self.users));
        let is_read = ranges.is_ok() && users.is_ok();
        let accounts = match (ranges, users) {
            (Ok(Some(ranges)), Ok(Some(users))) => Accounts::of_text(&ranges, &users),
            _ => Accounts::default(),
        };
        let accounts = Arc::new(accounts);
        self.read = is_read.then(|| (versions, accounts.clone()));
        accounts
    }
}

/// Contents of a file, which is read again only once the file has changed.
#[derive(Debug)]
pub(crate) struct CachedFile<T> {
    file: PathBuf,
    read: Option<(Version, T)>,
}

impl<T: Clone> CachedFile<T> {
    /// A file that was not read yet.
    pub(crate) fn new(file: &Path) -> Self {
        Self { file: file.into(), read: None }
    }

    /// Returns what `of_text` makes of the file as it is now; `None`: there is no such file, or it
    /// can't be read.
    pub(crate) fn get(&mut self, of_text: impl FnOnce(&str) -> T) -> Option<T> {
        // Before it is read: a change meanwhile is noticed by the next call.
        let version = version(&self.file);
        if let Some((_, known)) = self.read.as_ref().filter(|(read, _)| Some(*read) == version) {
            return Some(known.clone());
        }
        self.read = None;
        let found = of_text(&fs::read_to_string(&self.file).ok()?);
        self.read = version.map(|version| (version, found.clone()));
        Some(found)
    }
}

/// Returns the version of a file; `None`: there is none, or it can't be examined.
fn version(file: &Path) -> Option<Version> {
    let of = fs::metadata(file).ok()?;
    Some([
        of.dev() as i64,
        of.ino() as i64,
        of.size() as i64,
        of.mtime(),
        of.mtime_nsec(),
        of.ctime(),
        of.ctime_nsec(),
    ])
}

/// Returns the text of a file; `None`: there is none.
///
/// # Errors
///
/// The file can't be read, which was reported.
fn text(file: &Path) -> Result<Option<String>, ()> {
    static REPORT: Once = Once::new();
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            REPORT.call_once(|| {
                journal::warning(&format!(
                    "{}: {error}; each subordinate user has limits of its own",
                    file.display()
                ));
            });
            Err(())
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

    /// Files are read once for all callers, and again when they have changed.
    #[test]
    fn files_are_read_again_when_they_have_changed() {
        let directory = std::env::temp_dir().join(format!("pbs-accounts-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (ranges, users) = (directory.join("subuid"), directory.join("passwd"));
        let mut files = AccountFiles::of(&ranges, &users);
        assert_eq!(files.accounts().of(100_000), 100_000);
        fs::write(&users, "ann:x:1000:1000::/:/bin/sh\n").unwrap();
        fs::write(&ranges, "ann:100000:65536\n").unwrap();
        let first = files.accounts();
        assert_eq!(first.of(100_000), 1000);
        assert!(Arc::ptr_eq(&first, &files.accounts()));
        // As usermod(8) does it.
        let new = directory.join("subuid+");
        fs::write(&new, "ann:200000:65536\n").unwrap();
        fs::rename(&new, &ranges).unwrap();
        let second = files.accounts();
        assert_eq!((second.of(100_000), second.of(200_000)), (100_000, 1000));
        fs::remove_file(&ranges).unwrap();
        assert_eq!(files.accounts().of(200_000), 200_000);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// A file is read once as long as it stays as it is, and a file that is missing is no group.
    #[test]
    fn a_file_is_read_once_for_each_change() {
        let directory = std::env::temp_dir().join(format!("pbs-cached-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("group");
        let (mut cached, mut reads) = (CachedFile::new(&file), 0);
        let mut get = |cached: &mut CachedFile<String>| {
            let text = cached.get(|text| {
                reads += 1;
                text.into()
            });
            (text, reads)
        };
        assert_eq!(get(&mut cached), (None, 0));
        fs::write(&file, "one").unwrap();
        for _ in 0..3 {
            assert_eq!(get(&mut cached), (Some("one".into()), 1));
        }
        // As groupmod(8) does it, and with the same size.
        let new = directory.join("group+");
        fs::write(&new, "two").unwrap();
        fs::rename(&new, &file).unwrap();
        assert_eq!(get(&mut cached), (Some("two".into()), 2));
        assert_eq!(get(&mut cached), (Some("two".into()), 2));
        fs::remove_file(&file).unwrap();
        assert_eq!(get(&mut cached), (None, 2));
        fs::remove_dir_all(&directory).unwrap();
    }
}
