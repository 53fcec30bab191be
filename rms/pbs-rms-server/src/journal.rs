// SPDX-License-Identifier: GPL-2.0
//! State for recovery after a crash. Changes that belong together are one line, with the complete
//! state of each session.
//!
//! A line is written before anybody learns of its contents, therefore no crash of the service makes
//! a node have two owners. For the same reason, a node's passage from one session to another is one
//! line. A line that was cut off has no effect. The service does not wait until a line is on the
//! disk: a power failure also ends the processes on the same machine's nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pbs_rms::{AppId, Counters, Session};
use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Size beyond which the journal is rewritten, if it is also that many times larger than its
/// contents.
const MOST_BYTES: u64 = 16 << 20;
const MOST_TIMES: u64 = 4;

/// Time from one rewriting to the next at least: all calls wait for the disk meanwhile.
const REWRITTEN_EVERY_NS: u64 = 10_000_000_000;

/// Mode of the file: accounts of sessions are private.
const MODE: u32 = 0o600;

/// A session and its user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    pub(crate) uid: u32,
    pub(crate) session: Session,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Counters(Counters),
    Session(AppId, Box<StoredSession>),
    Gone(AppId),
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Written<'a> {
    Counters(&'a Counters),
    Session(AppId, WrittenSession<'a>),
    Gone(AppId),
}

#[derive(Serialize)]
struct WrittenSession<'a> {
    uid: u32,
    session: &'a Session,
}

/// Reason for which a file is not a journal.
#[derive(Debug)]
pub enum Error {
    /// The file can't be read or written.
    Io(PathBuf, io::Error),
    /// A line other than the last one is none of ours.
    Line(PathBuf, usize, String),
    /// Another manager uses the file.
    InUse(PathBuf),
    /// The contents are inconsistent.
    Unusable(PathBuf, pbs_rms::Unusable),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line, why) => {
                write!(
                    f,
                    "{}:{line}: this is not a stored session: {why}; name another file with --keep",
                    path.display()
                )
            }
            Self::InUse(path) => {
                write!(f, "another manager uses {}; name another file with --keep", path.display())
            }
            Self::Unusable(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// Counters and sessions of the file.
pub(crate) type StoredState = (Option<Counters>, BTreeMap<AppId, StoredSession>);

/// The file.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Size beyond which it is rewritten.
    most_bytes: u64,
    /// Time of the last attempt to rewrite it.
    rewritten_ns: u64,
    counters: Option<Counters>,
    /// Lock of the file beside it, for as long as this exists: the journal itself is replaced.
    _lock: File,
}

impl Journal {
    /// Opens it, with what it says. No other manager may use it meanwhile.
    pub(crate) fn open(path: &Path) -> Result<(Self, StoredState), Error> {
        let failed = |error| Error::Io(path.into(), error);
        match fs::metadata(path) {
            // One that is a pipe would be waited for.
            Ok(data) if !data.is_file() => {
                return Err(failed(io::Error::other("it is not a file")))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(MODE);
        let file = options.open(path).map_err(failed)?;
        check_owner(&file).map_err(failed)?;
        // A link to it remains one.
        let real = fs::canonicalize(path).map_err(failed)?;
        let lock = lock(&real).map_err(failed)?.ok_or_else(|| Error::InUse(path.into()))?;
        let all = read(path, File::open(&real).map_err(failed)?)?;
        let journal = Self {
            path: real,
            bytes: 0,
            most_bytes: 0,
            rewritten_ns: 0,
            file,
            counters: None,
            _lock: lock,
        };
        Ok((journal, all))
    }

    /// Writes what has changed: each session as it is, or that it is gone. Returns the bytes that
    /// the sessions of each user have added.
    pub(crate) fn keep<'a>(
        &mut self,
        counters: Counters,
        changed: impl Iterator<Item = (AppId, Option<(u32, &'a Session)>)>,
    ) -> io::Result<Vec<(u32, u64)>> {
        let is_new = self.counters.as_ref() != Some(&counters);
        let mut text = vec![b'['];
        if is_new {
            serde_json::to_writer(&mut text, &Written::Counters(&counters))?;
        }
        let mut added = Vec::new();
        for (app, kept) in changed {
            let before = text.len();
            if before > 1 {
                text.push(b',');
            }
            let (uid, written) = match kept {
                Some((uid, session)) => {
                    (Some(uid), Written::Session(app, WrittenSession { uid, session }))
                }
                None => (None, Written::Gone(app)),
            };
            serde_json::to_writer(&mut text, &written)?;
            added.extend(uid.map(|uid| (uid, (text.len() - before) as u64)));
        }
        text.extend(b"]\n");
        self.counters = Some(counters);
        self.bytes += text.len() as u64;
        self.file.write_all(&text)?;
        Ok(added)
    }

    /// Whether the journal should be rewritten.
    pub(crate) fn is_long(&self, now_ns: u64) -> bool {
        let rested_ns = now_ns.saturating_sub(self.rewritten_ns);
        self.bytes > self.most_bytes && rested_ns >= REWRITTEN_EVERY_NS
    }

    /// Writes it anew, with all sessions. If it can't be, the old one is still there.
    pub(crate) fn rewrite<'a>(
        &mut self,
        now_ns: u64,
        counters: Counters,
        all: impl Iterator<Item = (AppId, u32, &'a Session)>,
    ) -> io::Result<()> {
        let bytes = self.bytes;
        self.rewritten_ns = now_ns;
        self.most_bytes = bytes.saturating_add(MOST_BYTES);
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        // Of one that was killed; or a link of somebody else's, which is not followed.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let options = options.create_new(true).append(true).mode(MODE);
        let old = std::mem::replace(&mut self.file, options.open(&beside)?);
        self.counters = None;
        self.bytes = 0;
        let kept = all.map(|(app, uid, session)| (app, Some((uid, session))));
        let written = self.keep(counters, kept).and_then(|_| {
            self.file.sync_all()?;
            fs::rename(&beside, &self.path)
        });
        if written.is_err() {
            self.file = old;
            self.bytes = bytes;
            // The error of the writing is the one to report.
            let _ = fs::remove_file(&beside);
        } else {
            self.most_bytes = MOST_BYTES.max(MOST_TIMES * self.bytes);
        }
        written
    }
}

/// Locks the file beside a journal. `None`: another manager has locked it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(".lock");
    let mut options = OpenOptions::new();
    // A link of somebody else's is not followed, and a pipe does not keep us waiting.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let options = options.create(true).append(true).mode(MODE).custom_flags(flags);
    let lock = options.open(&beside)?;
    if !lock.metadata()?.is_file() {
        return Err(io::Error::other(format!("{} is no regular file", beside.display())));
    }
    check_owner(&lock)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Checks the owner of the file: another user could take over sessions by writing it.
fn check_owner(file: &File) -> io::Result<()> {
    let own = fs::metadata("/proc/self")?.uid();
    match file.metadata()?.uid() {
        uid if uid == 0 || uid == own => Ok(()),
        uid => Err(io::Error::other(format!("it belongs to user {uid}"))),
    }
}

fn read(path: &Path, file: File) -> Result<StoredState, Error> {
    let mut all = StoredState::default();
    let mut torn: Option<Error> = None;
    // Where it was cut off there may be no text.
    for (number, text) in BufReader::new(file).split(b'\n').enumerate() {
        let text = text.map_err(|error| Error::Io(path.into(), error))?;
        // Only the last line may have been cut off.
        if let Some(error) = torn {
            return Err(error);
        }
        let line: Vec<Change> = match serde_json::from_slice(&text) {
            Ok(line) => line,
            Err(error) => {
                torn = Some(Error::Line(path.into(), number + 1, error.to_string()));
                continue;
            }
        };
        for change in line {
            match change {
                Change::Counters(counters) => all.0 = Some(counters),
                Change::Session(app, kept) => {
                    all.1.insert(app, *kept);
                }
                Change::Gone(app) => {
                    all.1.remove(&app);
                }
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_room_for_a_second_one_the_first_goes_on() {
        let directory = std::env::temp_dir().join(format!("rms-rewrite-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a place for files");
        let path = directory.join("kept");
        let counters = |next_app| Counters { sizes: vec![4], next_app, next_request: 1 };
        let none = || std::iter::empty();
        let (mut journal, _) = Journal::open(&path).expect("it can be");
        journal.rewrite(1, counters(1), none()).expect("it can be");
        // A directory is in the way.
        fs::create_dir(directory.join("kept.new")).expect("it can be");
        assert!(journal.rewrite(1, counters(1), none()).is_err());
        assert!(!journal.is_long(u64::MAX));
        let gone = std::iter::once((AppId(1), None));
        journal.keep(counters(2), gone).expect("it can be");
        drop(journal);
        let (_, (kept, _)) = Journal::open(&path).expect("it is whole");
        assert_eq!(kept, Some(counters(2)));
    }

    #[test]
    fn two_managers_do_not_write_to_one_file() {
        let directory = std::env::temp_dir().join(format!("rms-lock-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a place for files");
        let (path, link) = (directory.join("kept"), directory.join("link"));
        let (first, _) = Journal::open(&path).expect("it can be");
        std::os::unix::fs::symlink(&path, &link).expect("it can be");
        for path in [&path, &link] {
            let refused = Journal::open(path).expect_err("another one has it").to_string();
            let expected = format!("another manager uses {}; name another file", path.display());
            assert!(refused.contains(&expected), "{refused}");
        }
        let lock = fs::metadata(directory.join("kept.lock")).expect("it is there");
        assert_eq!(lock.mode() & 0o777, MODE);
        drop(first);
        Journal::open(&link).expect("nobody has it any more");
        fs::remove_dir_all(&directory).expect("its own");
    }

    /// However much is written, calls wait for the disk once in ten seconds at most.
    #[test]
    fn a_long_journal_is_not_rewritten_at_once() {
        let directory = std::env::temp_dir().join(format!("rms-long-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a place for files");
        let sizes = vec![4; 1 << 20];
        let counters = |next_app| Counters { sizes: sizes.clone(), next_app, next_request: 1 };
        let (mut journal, _) = Journal::open(&directory.join("kept")).expect("it can be");
        journal.rewrite(7, counters(1), std::iter::empty()).expect("it can be");
        for next_app in 2..12 {
            journal.keep(counters(next_app), std::iter::empty()).expect("it can be");
        }
        assert!(journal.bytes > MOST_BYTES);
        assert!(!journal.is_long(6 + REWRITTEN_EVERY_NS));
        assert!(journal.is_long(7 + REWRITTEN_EVERY_NS));
        fs::remove_dir_all(&directory).expect("its own");
    }
}
