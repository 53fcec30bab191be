// SPDX-License-Identifier: GPL-2.0
//! Rows of the tables, as records and back.

use rusqlite::types::Type;
use rusqlite::{params, Connection, OptionalExtension, Row};

use crate::digest::Digest;
use crate::pack::{has_complete, pack, unpack};
use crate::{
    Error, Fingerprint, InForce, Kind, NewRun, Order, Outcome, ProcessRun, Run, RunId, State,
    Takeover,
};

type Result<T> = rusqlite::Result<T>;

/// All, or those of the job that is bound.
pub(crate) const RUNS: &str = "SELECT * FROM run WHERE ?1 IS NULL OR job = ?1 ORDER BY id";

/// Query for the runs of a job that are over, of that user, or without a user.
pub(crate) const RUNS_OF: &str = "SELECT run.* FROM run LEFT JOIN orders ON orders.run = run.id \
     WHERE job = ?1 AND state = 'over' AND uid IS ?2 ORDER BY id";

/// Query for the runs that are not over: all that have data for a take-over.
pub(crate) const OPEN_RUNS: &str =
    "SELECT run.* FROM run JOIN takeover ON takeover.run = run.id ORDER BY run.id";

/// Query for the last runs that are over, as many as are bound, of all users or of that one.
pub(crate) const LAST_RUNS: &str = "SELECT run.* FROM run LEFT JOIN orders ON orders.run = run.id \
     WHERE state = 'over' AND (?2 IS NULL OR uid = ?2) ORDER BY id DESC LIMIT ?1";

/// Query for the last runs of a job that are over, which the index of jobs finds.
pub(crate) const LAST_RUNS_OF_JOB: &str =
    "SELECT run.* FROM run LEFT JOIN orders ON orders.run = run.id \
     WHERE job = ?3 AND state = 'over' AND (?2 IS NULL OR uid = ?2) ORDER BY id DESC LIMIT ?1";

pub(crate) fn run_of(connection: &Connection, id: RunId) -> Result<Option<Run>> {
    // No number is larger than SQLite's.
    let number = i64::try_from(id.0).unwrap_or(-1);
    let sql = "SELECT * FROM run WHERE id = ?";
    connection.prepare_cached(sql)?.query_row([number], run).optional()
}

pub(crate) fn run(row: &Row<'_>) -> Result<Run> {
    let outcome: Option<String> = row.get(6)?;
    let run = Run {
        id: RunId(row.get(0)?),
        job: row.get(1)?,
        kind: named(2, &row.get::<_, String>(2)?, Kind::from_name)?,
        state: named(3, &row.get::<_, String>(3)?, State::from_name)?,
        submitted_unix_ns: row.get(4)?,
        ended_unix_ns: row.get(5)?,
        outcome: outcome.map(|name| named(6, &name, Outcome::from_name)).transpose()?,
        processes: row.get(7)?,
    };
    same(row, 8, run.digest())?;
    Ok(run)
}

/// A run that has just begun; the number is that of the answer.
pub(crate) fn insert_run(connection: &Connection, new: &NewRun<'_>) -> Result<Run> {
    let sql = "INSERT INTO run (job, kind, state, submitted_unix_ns, processes, digest) \
               VALUES ('', '', '', 0, 0, 0)";
    connection.execute(sql, [])?;
    let run = Run {
        id: RunId(connection.last_insert_rowid() as u64),
        job: new.job.into(),
        kind: new.kind,
        state: State::Planned,
        submitted_unix_ns: new.submitted_unix_ns,
        ended_unix_ns: None,
        outcome: None,
        processes: 0,
    };
    write_run(connection, run.clone(), &[])?;
    Ok(run)
}

/// Writes the run anew, with all its figures.
pub(crate) fn write_run(connection: &Connection, run: Run, figures: &[ProcessRun]) -> Result<()> {
    let run = Run { processes: figures.len() as u32, ..run };
    connection.execute(
        "UPDATE run SET job = ?, kind = ?, state = ?, submitted_unix_ns = ?, ended_unix_ns = ?, \
         outcome = ?, processes = ?, digest = ? WHERE id = ?",
        params![
            run.job,
            run.kind.name(),
            run.state.name(),
            run.submitted_unix_ns,
            run.ended_unix_ns,
            run.outcome.map(Outcome::name),
            run.processes,
            run.digest() as i64,
            run.id.0
        ],
    )?;
    for table in ["process", "ran"] {
        let sql = format!("DELETE FROM {table} WHERE run = ?");
        connection.execute(&sql, [run.id.0])?;
    }
    for process in figures {
        insert_process(connection, run.id, process)?;
    }
    Ok(())
}

/// Forgets the oldest runs of a job that are over, of that user or without a user. Those with a task
/// that has ended and the others count apart: a program that cannot be started, and is tried again
/// and again, does not push out what was measured before.
pub(crate) fn forget_oldest(
    connection: &Connection,
    job: &str,
    uid: Option<u32>,
    keep: usize,
) -> Result<()> {
    let sql = "SELECT id FROM run LEFT JOIN orders ON orders.run = run.id \
               WHERE job = ? AND state = ? AND uid IS ? ORDER BY id DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map(params![job, State::Over.name(), uid], |row| row.get(0))?;
    let ids: Vec<u64> = ids.collect::<Result<_>>()?;
    if ids.len() <= keep {
        return Ok(());
    }
    let mut delete = connection.prepare_cached("DELETE FROM run WHERE id = ?")?;
    let (mut measured, mut others) = (0, 0);
    for id in ids {
        let count = if is_measured(connection, id)? { &mut measured } else { &mut others };
        *count += 1;
        if *count > keep {
            delete.execute([id])?;
        }
    }
    Ok(())
}

/// Whether a task of a run has ended. Figures that cannot be read are none.
fn is_measured(connection: &Connection, id: u64) -> Result<bool> {
    let sql = "SELECT tasks FROM process WHERE run = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        if row.get_ref(0)?.as_blob().is_ok_and(has_complete) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Ends a run of which a row is damaged. Of its own row and its order, what is whole remains.
pub(crate) fn end_damaged(connection: &Connection, id: RunId, ended_unix_ns: u64) -> Result<()> {
    // Both are written anew where they are damaged.
    let known = run_of(connection, id).ok().flatten();
    if order(connection, id).is_err() {
        connection.execute("DELETE FROM orders WHERE run = ?", [id.0])?;
    }
    let run = Run {
        id,
        job: known.as_ref().map_or_else(|| "damaged".into(), |run| run.job.clone()),
        kind: known.as_ref().map_or(Kind::Plan, |run| run.kind),
        state: State::Over,
        submitted_unix_ns: known.as_ref().map_or(ended_unix_ns, |run| run.submitted_unix_ns),
        ended_unix_ns: Some(ended_unix_ns),
        outcome: Some(Outcome::Unknown),
        processes: 0,
    };
    write_run(connection, run, &[])?;
    connection.execute("DELETE FROM takeover WHERE run = ?", [id.0])?;
    Ok(())
}

fn insert_process(connection: &Connection, id: RunId, p: &ProcessRun) -> Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO process VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    insert.execute(params![
        id.0,
        p.process,
        p.name,
        p.fingerprint.0 as i64,
        p.outcome.name(),
        pack(&p.tasks),
        p.digest(id) as i64,
    ])?;
    if p.ran_ns != 0 {
        let mut insert = connection.prepare_cached("INSERT INTO ran VALUES (?, ?, ?, ?)")?;
        let digest = ran_digest(id, p.process, p.ran_ns);
        insert.execute(params![id.0, p.process, p.ran_ns, digest as i64])?;
    }
    Ok(())
}

fn ran_digest(id: RunId, process: u32, ran_ns: u64) -> u64 {
    let mut digest = Digest::new();
    digest.number(id.0);
    digest.number(process.into());
    digest.number(ran_ns);
    digest.value()
}

/// The figures of a run.
pub(crate) fn processes_of(connection: &Connection, run: &Run) -> Result<Vec<ProcessRun>> {
    some_processes_of(connection, run, &|_| true)
}

/// The figures of those processes of a run that are wanted, by their numbers and programs. Of the
/// others, no figures are read.
pub(crate) fn some_processes_of(
    connection: &Connection,
    run: &Run,
    is_wanted: &dyn Fn(&(u32, Fingerprint)) -> bool,
) -> Result<Vec<ProcessRun>> {
    let sql = "SELECT * FROM process WHERE run = ? ORDER BY process";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run.id.0])?;
    let (mut count, mut processes) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        count += 1;
        if is_wanted(&(row.get(1)?, Fingerprint(bits(row, 3)?))) {
            processes.push(process(row, run.id)?);
        }
    }
    if count != run.processes {
        return Err(damaged(0, "runs without some of their processes"));
    }
    let sql = "SELECT process, ran_ns, digest FROM ran WHERE run = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run.id.0])?;
    while let Some(row) = rows.next()? {
        let (process, ran_ns) = (row.get(0)?, row.get(1)?);
        same(row, 2, ran_digest(run.id, process, ran_ns))?;
        let of = |known: &&mut ProcessRun| known.process == process;
        if let Some(known) = processes.iter_mut().find(of) {
            known.ran_ns = ran_ns;
        }
    }
    Ok(processes)
}

fn process(row: &Row<'_>, id: RunId) -> Result<ProcessRun> {
    let tasks = row.get_ref(5)?;
    let tasks = tasks.as_blob().map_err(|_| damaged(5, "no figures"))?;
    let process = ProcessRun {
        process: row.get(1)?,
        name: row.get(2)?,
        fingerprint: Fingerprint(row.get::<_, i64>(3)? as u64),
        outcome: named(4, &row.get::<_, String>(4)?, Outcome::from_name)?,
        // It stands in a table of its own.
        ran_ns: 0,
        tasks: unpack(tasks).ok_or_else(|| damaged(5, "figures that are cut off"))?,
    };
    same(row, 6, process.digest(id))?;
    Ok(process)
}

pub(crate) fn write_takeover(connection: &Connection, id: RunId, t: &Takeover) -> Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO takeover VALUES (?, ?, ?, '', 0, ?, ?, 0, ?)",
        params![
            id.0,
            t.request,
            t.reservation,
            t.boot_id,
            t.first_seq as i64,
            t.digest(id, "", 0, 0) as i64
        ],
    )?;
    Ok(())
}

/// A number that uses all 64 bits.
fn bits(row: &Row<'_>, column: usize) -> Result<u64> {
    row.get::<_, i64>(column).map(|number| number as u64)
}

pub(crate) fn takeover(connection: &Connection, id: RunId) -> Result<Option<Takeover>> {
    let sql = "SELECT * FROM takeover WHERE run = ?";
    let read = |row: &Row<'_>| {
        let takeover = Takeover {
            request: row.get(1)?,
            reservation: row.get(2)?,
            boot_id: row.get(5)?,
            first_seq: bits(row, 6)?,
        };
        let plan: String = row.get(3)?;
        let digest = takeover.digest(id, &plan, bits(row, 4)?, bits(row, 7)?);
        same(row, 8, digest)?;
        Ok(takeover)
    };
    connection.query_row(sql, [id.0], read).optional()
}

pub(crate) fn write_in_force(connection: &Connection, in_force: &InForce) -> Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO in_force VALUES (1, ?, ?, ?, ?, ?)",
        params![
            in_force.plan,
            in_force.plan_id as i64,
            in_force.boot_id,
            in_force.next_seq as i64,
            in_force.digest() as i64
        ],
    )?;
    Ok(())
}

pub(crate) fn in_force(connection: &Connection) -> Result<Option<InForce>> {
    let read = |row: &Row<'_>| {
        let in_force = InForce {
            plan: row.get(1)?,
            plan_id: bits(row, 2)?,
            boot_id: row.get(3)?,
            next_seq: bits(row, 4)?,
        };
        same(row, 5, in_force.digest())?;
        Ok(in_force)
    };
    let sql = "SELECT * FROM in_force";
    connection.query_row(sql, [], read).optional()
}

pub(crate) fn write_order(connection: &Connection, id: RunId, order: &Order) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?)";
    let digest = order.digest(id) as i64;
    connection.execute(sql, params![id.0, order.uid, order.text, digest])?;
    Ok(())
}

pub(crate) fn order(connection: &Connection, id: RunId) -> Result<Option<Order>> {
    let sql = "SELECT uid, text, digest FROM orders WHERE run = ?";
    let read = |row: &Row<'_>| {
        let order = Order { uid: row.get(0)?, text: row.get(1)? };
        same(row, 2, order.digest(id))?;
        Ok(order)
    };
    connection.prepare_cached(sql)?.query_row([id.0], read).optional()
}

/// Whether the figures of a run can be kept: none is too large, none stands
/// twice.
pub(crate) fn check(processes: &[ProcessRun]) -> std::result::Result<(), Error> {
    let mut numbers: Vec<_> = processes.iter().map(|process| process.process).collect();
    numbers.sort_unstable();
    if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::Twice(format!("process {}", pair[0])));
    }
    for process in processes {
        let of = process.process;
        let mut numbers: Vec<_> = process.tasks.iter().map(|task| task.task).collect();
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Twice(format!("task {} of process {of}", pair[0])));
        }
        if i64::try_from(process.ran_ns).is_err() {
            let ran_ns = process.ran_ns;
            return Err(Error::TooLarge(format!("ran_ns of process {of} ({ran_ns})")));
        }
        for task in &process.tasks {
            let figures = [
                ("planned_insns", task.planned_insns),
                ("retired_insns", task.retired_insns),
                ("peak_memory_bytes", task.peak_memory_bytes),
            ];
            for (name, figure) in figures {
                if i64::try_from(figure).is_err() {
                    let task = task.task;
                    return Err(Error::TooLarge(format!(
                        "{name} of task {task} of process {of} ({figure})"
                    )));
                }
            }
        }
    }
    Ok(())
}

fn named<T>(column: usize, name: &str, from_name: fn(&str) -> Option<T>) -> Result<T> {
    from_name(name).ok_or_else(|| damaged(column, &format!("\"{name}\", which means nothing")))
}

/// Whether the row says what was written.
pub(crate) fn same(row: &Row<'_>, column: usize, digest: u64) -> Result<()> {
    if row.get::<_, i64>(column)? as u64 == digest {
        return Ok(());
    }
    Err(damaged(column, "values that were changed"))
}

/// Returns an error that [`Error::sqlite`] recognizes as damage.
pub(crate) fn damaged(column: usize, what: &str) -> rusqlite::Error {
    let cause = format!("there are {what}");
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, cause.into())
}
