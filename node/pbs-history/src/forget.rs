// SPDX-License-Identifier: GPL-2.0
//! Runs that are over and forgotten.

use rusqlite::{params, Connection};

use crate::options::EndedLimits;
use crate::{Error, Store};

/// Number of runs that end before it is checked whether some are to be forgotten.
const RUNS: u64 = 256;
/// Bytes that are recorded of runs that end before that is checked.
const BYTES: u64 = 16 << 20;

/// The runs that are over and were ordered, by user, with their sizes.
const ENDED: &str = "SELECT run.id AS id, coalesce((SELECT account FROM temp.account \
     WHERE account.uid = orders.uid), orders.uid) AS uid, run.ended_unix_ns AS ended_unix_ns, \
     octet_length(run.job) + octet_length(orders.text) + coalesce((SELECT \
     sum(octet_length(process.tasks) + coalesce(octet_length(process.name), 0)) FROM process \
     WHERE process.run = run.id), 0) AS bytes \
     FROM orders JOIN run ON run.id = orders.run WHERE run.state = 'over'";

/// Work of the runs that have ended since runs were forgotten last.
#[derive(Debug, Default)]
pub(crate) struct Since {
    runs: u64,
    bytes: u64,
}

impl Since {
    /// A run has ended, of which so many bytes were recorded.
    pub(crate) fn ended(&mut self, bytes: usize) {
        self.runs += 1;
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }
}

impl Store {
    /// Whether so much has ended since the last call of [`Store::forget`] that it is time for
    /// another. Until then a user can exceed the limits by 256 runs and 16 MiB.
    pub fn is_to_forget(&self) -> bool {
        self.since.runs >= RUNS || self.since.bytes >= BYTES
    }

    /// Forgets the runs of users that are over and exceed [`Options::ended`](crate::Options), the
    /// oldest first; `now_unix_ns`: the time, since 1970; `account_of`: the user whose limits the
    /// runs of a user count to. Returns their number. The file does not become shorter, but has room
    /// for others. None is forgotten for its age if all are too old ([`Store::is_out_of_date`]).
    pub fn forget(
        &mut self,
        now_unix_ns: u64,
        account_of: impl Fn(u32) -> u32,
    ) -> Result<usize, Error> {
        let limits = self.options().ended;
        let forgotten = self.write(|connection| {
            note_accounts(connection, &account_of)?;
            Ok(forget(connection, limits, now_unix_ns)?)
        })?;
        self.since = Since::default();
        Ok(forgotten)
    }

    /// Whether the last run of users that is over is older than runs become. This is more likely a
    /// clock that is ahead than a node that nobody has used for as long.
    pub fn is_out_of_date(&self, now_unix_ns: u64) -> Result<bool, Error> {
        let oldest_unix_ns = oldest_unix_ns(self.options().ended, now_unix_ns);
        self.read(|connection| are_all_older(connection, oldest_unix_ns))
    }
}

/// Time of the end of the oldest run that is kept for its age.
fn oldest_unix_ns(limits: EndedLimits, now_unix_ns: u64) -> i64 {
    let oldest_unix_ns = now_unix_ns.saturating_sub(limits.age_ns);
    i64::try_from(oldest_unix_ns).unwrap_or(i64::MAX)
}

/// Whether there are runs of users that are over, and all have ended before that time.
fn are_all_older(connection: &Connection, oldest_unix_ns: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT max(run.ended_unix_ns) FROM orders JOIN run ON run.id = orders.run \
               WHERE run.state = 'over'";
    let newest_unix_ns: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(newest_unix_ns.is_some_and(|newest_unix_ns| newest_unix_ns < oldest_unix_ns))
}

/// Notes the users whose runs count to another one.
fn note_accounts(connection: &Connection, account_of: &dyn Fn(u32) -> u32) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS account (uid INTEGER PRIMARY KEY, account INTEGER); \
         DELETE FROM temp.account",
    )?;
    let mut uids = connection.prepare("SELECT DISTINCT uid FROM orders")?;
    let uids = uids.query_map([], |row| row.get::<_, i64>(0))?;
    for uid in uids {
        // Whatever is no number of a user counts to nobody else.
        let uid = uid?;
        let account = u32::try_from(uid).map_or(uid, |uid| account_of(uid).into());
        if account != uid {
            let insert = "INSERT INTO temp.account (uid, account) VALUES (?1, ?2)";
            connection.execute(insert, params![uid, account])?;
        }
    }
    Ok(())
}

fn forget(
    connection: &Connection,
    limits: EndedLimits,
    now_unix_ns: u64,
) -> rusqlite::Result<usize> {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let sql = format!(
        "DELETE FROM run WHERE id IN (SELECT id FROM (SELECT id, uid, ended_unix_ns, \
         row_number() OVER newer AS runs, sum(bytes) OVER newer AS bytes, \
         sum(CASE uid WHEN 0 THEN 0 ELSE bytes END) OVER (ORDER BY id DESC) AS all_bytes \
         FROM ({ENDED}) WINDOW newer AS (PARTITION BY uid ORDER BY id DESC)) \
         WHERE ended_unix_ns < ?1 OR (uid != 0 AND (runs > ?2 OR bytes > ?3 OR all_bytes > ?4)))"
    );
    let mut oldest_unix_ns = oldest_unix_ns(limits, now_unix_ns);
    if are_all_older(connection, oldest_unix_ns)? {
        oldest_unix_ns = i64::MIN;
    }
    let (runs, bytes) = (signed(limits.user_runs), signed(limits.user_bytes));
    let all_bytes = signed(limits.all_bytes);
    connection.execute(&sql, params![oldest_unix_ns, runs, bytes, all_bytes])
}
