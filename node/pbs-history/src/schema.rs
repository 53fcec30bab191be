// SPDX-License-Identifier: GPL-2.0
//! The tables of the file, and whether they are as they should be.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::Error;

/// The version of the tables.
pub(crate) const VERSION: i64 = 5;
/// The tables that a file of each version has: the first of [`TABLES`].
const TABLES_OF: [(i64, usize); 5] = [(1, 5), (2, 6), (3, 8), (4, 12), (VERSION, TABLES.len())];
/// `PBSH`, by which a file of ours is known.
const APPLICATION: i64 = 0x5042_5348;

/// Each as SQLite gives it back, so that they can be compared.
///
/// Figures are signed 64-bit numbers in SQLite. Fingerprints, digests and
/// numbers of events and plans use all 64 bits and are stored in two's
/// complement. SQLite finds a page that does not hold together; a digest finds a
/// row that does but says something else than was written.
const TABLES: [&str; 13] = [
    "CREATE TABLE run (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	job TEXT NOT NULL,
	kind TEXT NOT NULL,
	state TEXT NOT NULL,
	submitted_unix_ns INTEGER NOT NULL,
	ended_unix_ns INTEGER,
	outcome TEXT,
	processes INTEGER NOT NULL,
	digest INTEGER NOT NULL
) STRICT",
    "CREATE INDEX run_job ON run (job, state, id)",
    "CREATE TABLE process (
	run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
	process INTEGER NOT NULL,
	name TEXT,
	fingerprint INTEGER NOT NULL,
	outcome TEXT NOT NULL,
	tasks BLOB NOT NULL,
	digest INTEGER NOT NULL,
	PRIMARY KEY (run, process)
) STRICT",
    "CREATE TABLE takeover (
	run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
	request TEXT NOT NULL,
	reservation TEXT NOT NULL,
	plan TEXT NOT NULL,
	plan_id INTEGER NOT NULL,
	boot_id TEXT NOT NULL,
	next_seq INTEGER NOT NULL,
	dealt_seq INTEGER NOT NULL,
	digest INTEGER NOT NULL
) STRICT",
    "CREATE TABLE planner (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	pid INTEGER NOT NULL,
	started_ticks INTEGER NOT NULL,
	boot_id TEXT NOT NULL
) STRICT",
    RAN,
    ORDERS,
    IN_FORCE,
    VARIANT_RUN,
    TRANSFER,
    CORUN,
    COST,
    USED,
];

/// For how long each process had a CPU, where that was measured.
const RAN: &str = "CREATE TABLE ran (
	run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
	process INTEGER NOT NULL,
	ran_ns INTEGER NOT NULL,
	digest INTEGER NOT NULL,
	PRIMARY KEY (run, process)
) STRICT";

/// Orders: the users of runs, if somebody has ordered them.
const ORDERS: &str = "CREATE TABLE orders (
	run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
	uid INTEGER NOT NULL,
	text TEXT NOT NULL,
	digest INTEGER NOT NULL
) STRICT";

/// Last plan that the planner has written to the node.
const IN_FORCE: &str = "CREATE TABLE in_force (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	plan TEXT NOT NULL,
	plan_id INTEGER NOT NULL,
	boot_id TEXT NOT NULL,
	next_seq INTEGER NOT NULL,
	digest INTEGER NOT NULL
) STRICT";

/// Times of variants of tasks (Rados 2019, 5.6.4). In this table and in those that follow, rows of
/// one key are numbered, and the key leads to them.
const VARIANT_RUN: &str = "CREATE TABLE variant_run (
	job TEXT NOT NULL,
	task TEXT NOT NULL,
	fingerprint INTEGER NOT NULL,
	model TEXT NOT NULL,
	threads INTEGER NOT NULL,
	device TEXT NOT NULL,
	number INTEGER NOT NULL,
	ran_ns INTEGER NOT NULL,
	insns INTEGER NOT NULL,
	digest INTEGER NOT NULL,
	PRIMARY KEY (job, task, fingerprint, model, threads, device, number)
) STRICT";

/// Times of transfers. The magnitude is that of their size.
const TRANSFER: &str = "CREATE TABLE transfer (
	source TEXT NOT NULL,
	target TEXT NOT NULL,
	magnitude INTEGER NOT NULL,
	number INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	took_ns INTEGER NOT NULL,
	digest INTEGER NOT NULL,
	PRIMARY KEY (source, target, magnitude, number)
) STRICT";

/// Runs of tasks with who ran beside them, for how long, and by what they share.
const CORUN: &str = "CREATE TABLE corun (
	fingerprint INTEGER NOT NULL,
	task INTEGER NOT NULL,
	variant INTEGER NOT NULL,
	by_clock INTEGER NOT NULL,
	number INTEGER NOT NULL,
	insns INTEGER NOT NULL,
	ran_ns INTEGER NOT NULL,
	beside BLOB NOT NULL,
	digest INTEGER NOT NULL,
	PRIMARY KEY (fingerprint, task, variant, by_clock, number)
) STRICT";

/// Times of schedulers' decisions. The magnitude is that of the number of tasks.
const COST: &str = "CREATE TABLE cost (
	scheduler TEXT NOT NULL,
	magnitude INTEGER NOT NULL,
	number INTEGER NOT NULL,
	tasks INTEGER NOT NULL,
	took_ns INTEGER NOT NULL,
	digest INTEGER NOT NULL,
	PRIMARY KEY (scheduler, magnitude, number)
) STRICT";

/// Resources that runs used as a whole, with all that their programs started, where that was
/// measured.
const USED: &str = "CREATE TABLE used (
	run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
	group_cpu_ns INTEGER,
	programs_cpu_ns INTEGER,
	group_peak_bytes INTEGER,
	digest INTEGER NOT NULL
) STRICT";

/// Content of a file by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// The file is empty.
    Empty,
    /// A history of that version.
    History(i64),
}

impl FileContent {
    /// A history of the version that is written.
    pub(crate) const CURRENT: Self = Self::History(VERSION);

    fn version(self) -> i64 {
        match self {
            Self::Empty => VERSION,
            Self::History(version) => version,
        }
    }

    /// Returns the number of [`TABLES`] that the file has.
    fn tables(self) -> usize {
        let mut known = TABLES_OF.iter();
        let of = known.find(|(version, _)| Self::History(*version) == self);
        of.map_or(0, |&(_, tables)| tables)
    }
}

/// Makes the tables that are missing, unless somebody else just did.
pub(crate) fn create(path: &Path, connection: &mut Connection) -> Result<(), Error> {
    let failed = |error| Error::sqlite(path, &error);
    let transaction =
        Transaction::new(connection, TransactionBehavior::Immediate).map_err(failed)?;
    let is = identify(path, &transaction)?;
    if is == FileContent::CURRENT {
        return Ok(());
    }
    for table in &TABLES[is.tables()..] {
        transaction.execute_batch(table).map_err(failed)?;
    }
    for (name, value) in [("application_id", APPLICATION), ("user_version", VERSION)] {
        transaction.pragma_update(None, name, value).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Makes a file of an earlier version, which is only read, appear to have all tables.
pub(crate) fn pretend(path: &Path, connection: &Connection, is: FileContent) -> Result<(), Error> {
    for table in &TABLES[is.tables()..] {
        let table = table.replace("CREATE TABLE", "CREATE TEMP TABLE");
        // Of another database it cannot speak.
        let table = table.replace(" REFERENCES run ON DELETE CASCADE", "");
        let made = connection.execute_batch(&table);
        made.map_err(|error| Error::sqlite(path, &error))?;
    }
    Ok(())
}

/// Identifies the content of the file; fails if it is not a history, or of an unknown version.
pub(crate) fn identify(path: &Path, connection: &Connection) -> Result<FileContent, Error> {
    let number = |name: &str| -> Result<i64, Error> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(|error| Error::sqlite(path, &error))
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION {
        return match version {
            known if TABLES_OF.iter().any(|(of, _)| *of == known) => {
                Ok(FileContent::History(known))
            }
            newer if newer > VERSION => Err(Error::Newer(path.into(), newer, VERSION)),
            other => Err(Error::Damaged(path.into(), format!("version {other}"))),
        };
    }
    if application == 0 && version == 0 && tables(path, connection)?.is_empty() {
        return Ok(FileContent::Empty);
    }
    Err(Error::NotHistory(path.into()))
}

/// Looks through the whole file for damage; changes nothing. No other process can write meanwhile.
pub(crate) fn verify(path: &Path, connection: &Connection) -> Result<(), Error> {
    let found: String = connection
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .map_err(|error| Error::sqlite(path, &error))?;
    if found != "ok" {
        // The first line has a heading of SQLite's alone.
        let first = found.lines().find(|line| !line.starts_with("***"));
        let what = first.unwrap_or("the tables do not hold together");
        return Err(Error::Damaged(path.into(), what.into()));
    }
    Ok(())
}

/// Whether the file has the tables of its version.
pub(crate) fn has_tables(
    path: &Path,
    connection: &Connection,
    is: FileContent,
) -> Result<(), Error> {
    if tables(path, connection)? != TABLES[..is.tables()] {
        let what = format!("its tables are not those of version {}", is.version());
        return Err(Error::Damaged(path.into(), what));
    }
    Ok(())
}

/// Returns the statements of the history's own tables, in the order in which they were made.
fn tables(path: &Path, connection: &Connection) -> Result<Vec<String>, Error> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                   ORDER BY rowid";
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    read().map_err(|error| Error::sqlite(path, &error))
}
