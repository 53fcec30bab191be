// SPDX-License-Identifier: GPL-2.0
//! Files of a ledger: the users who may lock them, and a copy for those who may only read.
//!
//! A user who can open a file can lock it. Therefore no lock is on the ledger itself, which more
//! users may read: SQLite has its locks on the file `-shm`, and writers exclude each other by the
//! file `-lock`. A process that carries the plan out, and writes now and then, locks the file
//! `-served` until it ends. Only those who may write the ledger can open these files. All others
//! read a copy.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{fchown, DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::id;
use std::thread::sleep;

use rustix::process::geteuid;

use super::database::POLL;

/// Mode of a new ledger. Its group may read it.
const LEDGER_MODE: u32 = 0o640;
/// SQLite's index of the log, with its locks.
const INDEX: &str = "-shm";
/// SQLite's log.
const LOG: &str = "-wal";
/// SQLite's log while a ledger is being made.
const ROLLBACK: &str = "-journal";
/// Lock of the writer.
const LOCK: &str = "-lock";
/// Lock of the process that carries the plan out.
const SERVED: &str = "-served";
/// Size of the head of a log, which differs each time that the log begins anew.
const LOG_HEAD_BYTES: usize = 32;
/// Attempts to copy a ledger that changes meanwhile.
const ATTEMPTS: usize = 10;
/// Names that are tried for the directory of a copy.
const NAMES: usize = 100;

/// Returns the path of a file beside the ledger.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes the empty file of a new ledger.
pub(super) fn create(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(LEDGER_MODE).open(path).map(drop)
}

/// Whether this process has the rights of the ledger's owner.
fn is_owner(of: &Metadata) -> bool {
    let user = geteuid();
    user.is_root() || user.as_raw() == of.uid()
}

/// Whether this process reads the ledger itself, and not a copy.
pub(super) fn is_own(path: &Path) -> bool {
    // A file that cannot be looked at is not read either.
    fs::metadata(path).is_ok_and(|of| is_owner(&of))
}

/// Makes SQLite's index before SQLite does, for writers alone.
pub(super) fn guard_index(path: &Path) -> io::Result<()> {
    // SQLite gives the mode of the ledger to an empty file.
    guard(path, INDEX, b"\n")
}

/// Opens the file that the writer locks.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    guard(path, LOCK, b"")?;
    OpenOptions::new().read(true).write(true).open(beside(path, LOCK))
}

/// Opens the file that is locked by the process that carries the plan out.
pub(super) fn open_served(path: &Path) -> io::Result<File> {
    guard(path, SERVED, b"")?;
    OpenOptions::new().read(true).write(true).open(beside(path, SERVED))
}

/// Makes a file beside the ledger that only those can open who may write the ledger.
fn guard(path: &Path, suffix: &str, text: &[u8]) -> io::Result<()> {
    let of = fs::metadata(path)?;
    let (is_of_group, is_of_all) = (of.mode() & 0o020 != 0, of.mode() & 0o002 != 0);
    let mode = 0o600 | if is_of_group { 0o060 } else { 0 } | if is_of_all { 0o006 } else { 0 };
    let name = beside(path, suffix);
    let new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&name);
    match new {
        Ok(mut file) => {
            if geteuid().is_root() {
                // The owner of the ledger has to open it, too. A group that gets no rights stays: a
                // service without capabilities cannot give a file to a group that it is not in.
                fchown(&file, Some(of.uid()), is_of_group.then_some(of.gid()))?;
            }
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            io::Write::write_all(&mut file, text)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // It is not opened: closing it would release SQLite's locks of this process.
            let is = fs::symlink_metadata(&name)?;
            let is_foreign = is.uid() != of.uid() && !is_of_group && !is_of_all;
            if !is.is_file() || is_foreign {
                let why = format!("{} belongs to another user; remove it", name.display());
                return Err(io::Error::new(ErrorKind::PermissionDenied, why));
            }
            if is_owner(&is) && is.mode() & 0o777 != mode {
                fs::set_permissions(&name, fs::Permissions::from_mode(mode))?;
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// A copy of a ledger and its log, in a directory that is removed with it.
#[derive(Debug)]
pub(super) struct Copy {
    directory: PathBuf,
}

impl Copy {
    /// Copies a ledger in the state of some moment, without a lock. `None`: it changed too fast.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        // The reason why it can't be read comes before a directory for it.
        drop(File::open(path)?);
        let copy = Self { directory: new_directory()? };
        for _ in 0..ATTEMPTS {
            let before = Mark::of(path)?;
            copy_file(path, &copy.ledger())?;
            // The log comes second: it has all pages that SQLite writes from it to the ledger.
            copy_log(&beside(path, LOG), &beside(&copy.ledger(), LOG))?;
            let is_in_progress = beside(path, ROLLBACK).exists();
            if Mark::of(path)? == before && !is_in_progress {
                return Ok(Some(copy));
            }
            sleep(POLL);
        }
        Ok(None)
    }

    /// Returns the path of the copied ledger.
    pub(super) fn ledger(&self) -> PathBuf {
        self.directory.join("ledger")
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // A directory that stays is in that of temporary files, and only its user can read it.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Makes a directory that only this user can read.
fn new_directory() -> io::Result<PathBuf> {
    let mut last = ErrorKind::AlreadyExists.into();
    for number in 0..NAMES {
        let directory = std::env::temp_dir().join(format!("pbs-ledger-{}-{number}", id()));
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            // The ledger is readable: its user is told of the directory instead.
            Err(error) => {
                let why = format!("{}: {error}; set TMPDIR to another", directory.display());
                return Err(io::Error::other(why));
            }
        }
    }
    Err(last)
}

/// Copies a file, and not its mode: a ledger that nobody may write has a copy that SQLite writes.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mut options = OpenOptions::new();
    let mut to = options.write(true).create(true).truncate(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to).map(drop)
}

/// Copies a log. A ledger that no process has open has none.
fn copy_log(from: &Path, to: &Path) -> io::Result<()> {
    match copy_file(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::remove_file(to) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        copied => copied,
    }
}

/// State of a ledger that stays the same as long as a copy of it is of one moment.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    /// The head of the log: pages are only appended to it.
    Log(u64, [u8; LOG_HEAD_BYTES]),
    /// Without a log: the number of the file, its size, and the times of its last changes.
    Alone(u64, u64, [i64; 4]),
}

impl Mark {
    fn of(path: &Path) -> io::Result<Self> {
        let of = fs::metadata(path)?;
        let mut head = [0; LOG_HEAD_BYTES];
        let read = File::open(beside(path, LOG)).and_then(|mut log| log.read_exact(&mut head));
        match read {
            Ok(()) => Ok(Self::Log(of.ino(), head)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) =>
            {
                let times = [of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec()];
                Ok(Self::Alone(of.ino(), of.len(), times))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    use rusqlite::Connection;
    use rustix::fs::{flock, FlockOperation};

    use super::*;
    use crate::ledger::{Access, Changes, Event, Ledger};

    fn new_path(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("pbs-files-{}-{name}", id()));
        fs::create_dir_all(&directory).unwrap();
        directory.join("cluster.db")
    }

    fn remove(path: &Path) {
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    fn mode(path: &Path, suffix: &str) -> u32 {
        fs::metadata(beside(path, suffix)).unwrap().mode() & 0o777
    }

    #[test]
    fn who_may_only_read_can_open_no_lock() {
        let path = new_path("modes");
        let ledger = Ledger::create(&path, "", 1).unwrap();
        assert_eq!([mode(&path, ""), mode(&path, LOG)], [0o640; 2]);
        assert_eq!([mode(&path, INDEX), mode(&path, LOCK)], [0o600; 2]);
        drop(ledger);
        // An operator lets everybody read it, or a group write it.
        for (of, locks) in [(0o644, 0o600), (0o664, 0o660), (0o640, 0o600)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(of)).unwrap();
            let ledger = Ledger::open(&path, Access::Write).unwrap();
            assert_eq!([mode(&path, INDEX), mode(&path, LOCK)], [locks; 2], "{of:o}");
            assert_eq!(mode(&path, LOG), of);
            // So does a reader, if it is the first.
            drop(ledger);
            let reader = Ledger::open(&path, Access::Read).unwrap();
            assert_eq!(mode(&path, INDEX), locks, "{of:o}");
            drop(reader);
        }
        remove(&path);
    }

    #[test]
    fn a_lock_on_the_ledger_stops_no_writer() {
        let path = new_path("lock");
        drop(Ledger::create(&path, "", 1).unwrap());
        let file = File::open(&path).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let ledger = Ledger::open(&path, Access::Write).unwrap();
        // Writers exclude each other nevertheless.
        let lock = File::open(beside(&path, LOCK)).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap_err();
        drop(ledger);
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove(&path);
    }

    #[test]
    fn a_lock_of_another_user_is_named() {
        let path = new_path("foreign");
        drop(Ledger::create(&path, "", 1).unwrap());
        fs::remove_file(beside(&path, LOCK)).unwrap();
        fs::create_dir(beside(&path, LOCK)).unwrap();
        let error = Ledger::open(&path, Access::Write).unwrap_err().to_string();
        assert!(error.contains("cluster.db-lock belongs to another user; remove it"), "{error}");
        remove(&path);
    }

    /// Each write is two events. Meanwhile SQLite moves the log into the ledger, again and again.
    #[test]
    fn a_copy_is_of_one_moment() {
        const WRITES: u64 = 300;
        let path = new_path("copy");
        let mut ledger = Ledger::create(&path, "", 0).unwrap();
        let writer = thread::spawn(move || {
            for time_s in 1..=WRITES {
                let text = "x".repeat(20_000);
                let event = Event { time_s, request: None, what: String::new(), text };
                let changes = Changes {
                    events: vec![event.clone(), event],
                    clock_s: time_s,
                    ..Changes::default()
                };
                ledger.write(&changes).unwrap();
            }
            ledger
        });
        let mut last = 0;
        loop {
            let is_over = writer.is_finished();
            if let Some(copy) = Copy::of(&path).unwrap() {
                let of = Connection::open(copy.ledger()).unwrap();
                let number = |query: &str| of.query_row(query, [], |row| row.get::<_, u64>(0));
                let whole: String =
                    of.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
                assert_eq!(whole, "ok");
                let clock_s = number("SELECT clock_s FROM site").unwrap();
                assert_eq!(number("SELECT count(*) FROM event"), Ok(2 * clock_s));
                assert!(clock_s >= last, "{clock_s} after {last}");
                last = clock_s;
            }
            if is_over {
                break;
            }
        }
        drop(writer.join().unwrap());
        assert_eq!(last, WRITES);
        remove(&path);
    }
}
