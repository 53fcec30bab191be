// SPDX-License-Identifier: GPL-2.0
//! Rows of what was measured beside the runs of jobs.
//!
//! Rows of one key are numbered from 1 on, and the last ones are kept: who adds one
//! takes away what is too old.

use pbs_interference::{Key, Sample};
use rusqlite::{params, Connection, Row, ToSql};

use crate::measured::magnitude;
use crate::pack::{pack_beside, unpack_beside};
use crate::tables::{damaged, same};
use crate::{Corun, Decision, Fingerprint, Transfer, VariantKey, VariantRun};

type Result<T> = rusqlite::Result<T>;

/// A table, and what tells its keys apart.
struct Keyed {
    table: &'static str,
    key: &'static str,
}

const VARIANT_RUN: Keyed = Keyed {
    table: "variant_run",
    key: "job = ? AND task = ? AND fingerprint = ? AND model = ? AND threads = ? AND device = ?",
};
const TRANSFER: Keyed =
    Keyed { table: "transfer", key: "source = ? AND target = ? AND magnitude = ?" };
const CORUN: Keyed =
    Keyed { table: "corun", key: "fingerprint = ? AND task = ? AND variant = ? AND by_clock = ?" };
const COST: Keyed = Keyed { table: "cost", key: "scheduler = ? AND magnitude = ?" };

impl Keyed {
    /// Makes room for one more row of the key, of which so many are kept with it, and
    /// says its number.
    fn next(&self, connection: &Connection, key: &[&dyn ToSql], keep: u32) -> Result<u64> {
        let Self { table, key: is_key } = self;
        let sql = format!("SELECT coalesce(max(number), 0) + 1 FROM {table} WHERE {is_key}");
        let mut last = connection.prepare_cached(&sql)?;
        let number: u64 = last.query_row(key, |row| row.get(0))?;
        let sql = format!("DELETE FROM {table} WHERE {is_key} AND number <= ?");
        let mut forget = connection.prepare_cached(&sql)?;
        let too_old = number.saturating_sub(keep.into());
        let bound = key.iter().copied().chain([&too_old as &dyn ToSql]);
        forget.execute(&bound.collect::<Vec<_>>()[..])?;
        Ok(number)
    }

    /// All rows of the table, in the order of those columns and of their numbers.
    fn rows<T>(
        &self,
        connection: &Connection,
        order: &str,
        read: fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let sql = format!("SELECT * FROM {} ORDER BY {order}, number", self.table);
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([], read)?;
        rows.collect()
    }
}

pub(crate) fn insert_variant_run(
    connection: &Connection,
    run: &VariantRun,
    keep: u32,
) -> Result<()> {
    let key = &run.variant;
    let fingerprint = key.fingerprint.0 as i64;
    let is_key: [&dyn ToSql; 6] =
        [&key.job, &key.task, &fingerprint, &key.model, &key.threads, &key.device];
    let number = VARIANT_RUN.next(connection, &is_key, keep)?;
    let sql = "INSERT INTO variant_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        key.job,
        key.task,
        fingerprint,
        key.model,
        key.threads,
        key.device,
        number,
        run.ran_ns,
        run.insns,
        run.digest(number) as i64,
    ])?;
    Ok(())
}

/// Reads the runs of variants, grouped by variant, the oldest first.
pub(crate) fn variant_runs(connection: &Connection) -> Result<Vec<VariantRun>> {
    let order = "job, task, fingerprint, model, threads, device";
    VARIANT_RUN.rows(connection, order, |row| {
        let run = VariantRun {
            variant: VariantKey {
                job: row.get(0)?,
                task: row.get(1)?,
                fingerprint: Fingerprint(row.get::<_, i64>(2)? as u64),
                model: row.get(3)?,
                threads: row.get(4)?,
                device: row.get(5)?,
            },
            ran_ns: row.get(7)?,
            insns: row.get(8)?,
        };
        same(row, 9, run.digest(row.get(6)?))?;
        Ok(run)
    })
}

pub(crate) fn insert_transfer(connection: &Connection, it: &Transfer, keep: u32) -> Result<()> {
    let magnitude = magnitude(it.bytes);
    let number = TRANSFER.next(connection, &[&it.from, &it.to, &magnitude], keep)?;
    let sql = "INSERT INTO transfer VALUES (?, ?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        it.from,
        it.to,
        magnitude,
        number,
        it.bytes,
        it.took_ns,
        it.digest(number) as i64,
    ])?;
    Ok(())
}

/// Reads the transfers, grouped by their two memories.
pub(crate) fn transfers(connection: &Connection) -> Result<Vec<Transfer>> {
    TRANSFER.rows(connection, "source, target, magnitude", |row| {
        let transfer = Transfer {
            from: row.get(0)?,
            to: row.get(1)?,
            bytes: row.get(4)?,
            took_ns: row.get(5)?,
        };
        same(row, 6, transfer.digest(row.get(3)?))?;
        Ok(transfer)
    })
}

pub(crate) fn insert_decision(connection: &Connection, it: &Decision, keep: u32) -> Result<()> {
    let magnitude = magnitude(it.tasks);
    let number = COST.next(connection, &[&it.scheduler, &magnitude], keep)?;
    let sql = "INSERT INTO cost VALUES (?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        it.scheduler,
        magnitude,
        number,
        it.tasks,
        it.took_ns,
        it.digest(number) as i64,
    ])?;
    Ok(())
}

/// Reads the decisions, grouped by scheduler.
pub(crate) fn decisions(connection: &Connection) -> Result<Vec<Decision>> {
    COST.rows(connection, "scheduler, magnitude", |row| {
        let decision =
            Decision { scheduler: row.get(0)?, tasks: row.get(3)?, took_ns: row.get(4)? };
        same(row, 5, decision.digest(row.get(2)?))?;
        Ok(decision)
    })
}

/// Runs of tasks beside others that are stored of all tasks together. Users name the programs, so
/// the number of different tasks has no other bound.
const MOST_CORUNS: i64 = 200_000;

pub(crate) fn insert_corun(connection: &Connection, it: &Corun, keep: u32) -> Result<()> {
    insert_corun_within(connection, it, keep, MOST_CORUNS)
}

/// Adds a run of a task, and deletes those that were stored before the last `most`.
fn insert_corun_within(connection: &Connection, it: &Corun, keep: u32, most: i64) -> Result<()> {
    let sample = &it.sample;
    let key = sample.victim;
    let fingerprint = key.fingerprint as i64;
    let is_key: [&dyn ToSql; 4] = [&fingerprint, &key.task, &key.variant, &it.by_clock];
    let number = CORUN.next(connection, &is_key, keep)?;
    let beside = pack_beside(&sample.beside);
    let sql = "INSERT INTO corun VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        fingerprint,
        key.task,
        key.variant,
        it.by_clock,
        number,
        sample.insns,
        sample.ran_ns,
        beside,
        it.digest(number, &beside) as i64,
    ])?;
    let too_old = connection.last_insert_rowid().saturating_sub(most);
    connection.prepare_cached("DELETE FROM corun WHERE rowid <= ?")?.execute([too_old])?;
    Ok(())
}

/// Reads the runs beside other tasks, grouped by task, the oldest first.
pub(crate) fn coruns(connection: &Connection) -> Result<Vec<Corun>> {
    CORUN.rows(connection, "fingerprint, task, variant, by_clock", corun)
}

/// Reads the last runs beside other tasks, the oldest first: as many as fit into `bytes`, and none
/// before a damaged one.
pub(crate) fn last_coruns(connection: &Connection, bytes: usize) -> Result<Vec<Corun>> {
    let mut statement = connection.prepare("SELECT * FROM corun ORDER BY rowid DESC")?;
    let mut rows = statement.query([])?;
    let (mut coruns, mut left) = (Vec::new(), bytes);
    while let Some(row) = rows.next()? {
        let Ok(corun) = corun(row) else {
            break;
        };
        let Some(rest) = left.checked_sub(corun.held_bytes()) else {
            break;
        };
        left = rest;
        coruns.push(corun);
    }
    coruns.reverse();
    Ok(coruns)
}

/// Reads a run beside other tasks.
fn corun(row: &Row<'_>) -> Result<Corun> {
    let packed = row.get_ref(7)?;
    let packed = packed.as_blob().map_err(|_| damaged(7, "no neighbours"))?;
    let beside = unpack_beside(packed);
    let corun = Corun {
        sample: Sample {
            victim: Key {
                fingerprint: row.get::<_, i64>(0)? as u64,
                task: row.get(1)?,
                variant: row.get(2)?,
            },
            insns: row.get(5)?,
            ran_ns: row.get(6)?,
            beside: beside.ok_or_else(|| damaged(7, "neighbours that are cut off"))?,
        },
        by_clock: row.get(3)?,
    };
    same(row, 8, corun.digest(row.get(4)?, packed))?;
    Ok(corun)
}

#[cfg(test)]
mod tests {
    use pbs_interference::{Key, Sample};

    use super::*;
    use crate::{Options, Store};

    /// Each task has its own rows, and all tasks together have a bound: the oldest rows go.
    #[test]
    fn rows_of_all_tasks_have_a_bound() {
        let path = std::env::temp_dir().join(format!("pbs-coruns-{}.db", std::process::id()));
        // It may be left from a test that failed.
        let _ = std::fs::remove_file(&path);
        drop(Store::open(&path, Options::DEFAULT).unwrap());
        let connection = Connection::open(&path).unwrap();
        for fingerprint in 0..10 {
            let victim = Key { fingerprint, task: 1, variant: 0 };
            let sample = Sample { victim, insns: 3, ran_ns: 5, beside: Vec::new() };
            let corun = Corun { sample, by_clock: false };
            insert_corun_within(&connection, &corun, 32, 4).unwrap();
        }
        let left = coruns(&connection).unwrap();
        let fingerprints =
            |of: &[Corun]| of.iter().map(|it| it.sample.victim.fingerprint).collect::<Vec<_>>();
        assert_eq!(fingerprints(&left), [6, 7, 8, 9]);
        // A reader may want less.
        let last = |rows| last_coruns(&connection, rows * size_of::<Corun>()).unwrap();
        assert_eq!(fingerprints(&last(9)), [6, 7, 8, 9]);
        assert_eq!(fingerprints(&last(2)), [8, 9]);
        drop(connection);
        std::fs::remove_file(&path).unwrap();
    }
}
