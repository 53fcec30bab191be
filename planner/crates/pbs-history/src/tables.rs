// SPDX-License-Identifier: GPL-2.0
//! Rows of the tables, as records and back.

use rusqlite::types::Type;
use rusqlite::{params, Connection, OptionalExtension, Row};

use crate::{
    Error, Fingerprint, Kind, NewRun, Outcome, ProcessRun, Run, RunId, State, Takeover, TaskRun,
};

type Result<T> = rusqlite::Result<T>;

/// All, or those of the job that is bound.
pub(crate) const RUNS: &str = "SELECT * FROM run WHERE ?1 IS NULL OR job = ?1 ORDER BY id";

pub(crate) fn run_of(connection: &Connection, id: RunId) -> Result<Option<Run>> {
    // No number is larger than SQLite's.
    let number = i64::try_from(id.0).unwrap_or(-1);
    let sql = "SELECT * FROM run WHERE id = ?";
    connection.query_row(sql, [number], run).optional()
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
        outcome: outcome
            .map(|name| named(6, &name, Outcome::from_name))
            .transpose()?,
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
    write_run(connection, &run)?;
    Ok(run)
}

pub(crate) fn write_run(connection: &Connection, run: &Run) -> Result<()> {
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
    Ok(())
}

pub(crate) fn insert_process(connection: &Connection, id: RunId, p: &ProcessRun) -> Result<()> {
    let mut insert = connection.prepare("INSERT INTO process VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    insert.execute(params![
        id.0,
        p.process,
        p.name,
        p.fingerprint.0 as i64,
        p.outcome.name(),
        pack(&p.tasks),
        p.digest(id) as i64,
    ])?;
    Ok(())
}

pub(crate) const PROCESSES_OF_JOB: &str =
    "SELECT * FROM process WHERE run IN (SELECT id FROM run WHERE job = ?) ORDER BY run, process";

pub(crate) fn process(row: &Row<'_>) -> Result<(RunId, ProcessRun)> {
    let id = RunId(row.get(0)?);
    let tasks = row.get_ref(5)?;
    let tasks = tasks.as_blob().map_err(|_| damaged(5, "no figures"))?;
    let process = ProcessRun {
        process: row.get(1)?,
        name: row.get(2)?,
        fingerprint: Fingerprint(row.get::<_, i64>(3)? as u64),
        outcome: named(4, &row.get::<_, String>(4)?, Outcome::from_name)?,
        tasks: unpack(tasks).ok_or_else(|| damaged(5, "figures that are cut off"))?,
    };
    same(row, 6, process.digest(id))?;
    Ok((id, process))
}

pub(crate) fn write_takeover(connection: &Connection, id: RunId, t: &Takeover) -> Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO takeover VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            id.0,
            t.request,
            t.reservation,
            t.plan,
            t.plan_id as i64,
            t.boot_id,
            t.next_seq as i64,
            t.dealt_seq as i64,
            t.digest(id) as i64
        ],
    )?;
    Ok(())
}

pub(crate) fn takeover(connection: &Connection, id: RunId) -> Result<Option<Takeover>> {
    let sql = "SELECT * FROM takeover WHERE run = ?";
    let number = |row: &Row<'_>, column| row.get::<_, i64>(column).map(|number| number as u64);
    let read = |row: &Row<'_>| {
        let takeover = Takeover {
            request: row.get(1)?,
            reservation: row.get(2)?,
            plan: row.get(3)?,
            plan_id: number(row, 4)?,
            boot_id: row.get(5)?,
            next_seq: number(row, 6)?,
            dealt_seq: number(row, 7)?,
        };
        same(row, 8, takeover.digest(id))?;
        Ok(takeover)
    };
    connection.query_row(sql, [id.0], read).optional()
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

/// The bytes of a task without its name.
const TASK_BYTES: usize = 4 + 1 + 4 + 3 * 8 + 4;
/// Length of a name that is not there.
const NO_NAME: u32 = u32::MAX;

/// Task after task, each: number, outcome, preemptions, planned, retired, peak,
/// length of the name and the name; all little-endian. A job can have tens of
/// thousands, which a planner reads of many runs: a row for each would take
/// twenty times as long.
fn pack(tasks: &[TaskRun]) -> Vec<u8> {
    let mut out = Vec::with_capacity(tasks.len() * TASK_BYTES);
    for task in tasks {
        out.extend(task.task.to_le_bytes());
        let outcome = Outcome::ALL.iter().position(|&known| known == task.outcome);
        out.push(outcome.unwrap_or(0) as u8);
        out.extend(task.preemptions.to_le_bytes());
        for figure in [
            task.planned_insns,
            task.retired_insns,
            task.peak_memory_bytes,
        ] {
            out.extend(figure.to_le_bytes());
        }
        let name = task.name.as_deref();
        out.extend(name.map_or(NO_NAME, |name| name.len() as u32).to_le_bytes());
        out.extend(name.unwrap_or("").as_bytes());
    }
    out
}

/// `None`: these are not packed tasks.
fn unpack(mut bytes: &[u8]) -> Option<Vec<TaskRun>> {
    let mut tasks = Vec::with_capacity(bytes.len() / TASK_BYTES);
    while !bytes.is_empty() {
        let task = number(&mut bytes)?;
        let outcome = *Outcome::ALL.get(usize::from(take::<1>(&mut bytes)?[0]))?;
        let preemptions = number(&mut bytes)?;
        let planned_insns = u64::from_le_bytes(take(&mut bytes)?);
        let retired_insns = u64::from_le_bytes(take(&mut bytes)?);
        let peak_memory_bytes = u64::from_le_bytes(take(&mut bytes)?);
        let name = match number(&mut bytes)? {
            NO_NAME => None,
            length => {
                let (name, rest) = bytes.split_at_checked(length as usize)?;
                bytes = rest;
                Some(std::str::from_utf8(name).ok()?.into())
            }
        };
        tasks.push(TaskRun {
            task,
            name,
            planned_insns,
            retired_insns,
            peak_memory_bytes,
            preemptions,
            outcome,
        });
    }
    Some(tasks)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_le_bytes)
}

fn named<T>(column: usize, name: &str, from_name: fn(&str) -> Option<T>) -> Result<T> {
    from_name(name).ok_or_else(|| damaged(column, &format!("\"{name}\", which means nothing")))
}

/// Whether the row says what was written.
fn same(row: &Row<'_>, column: usize, digest: u64) -> Result<()> {
    if row.get::<_, i64>(column)? as u64 == digest {
        return Ok(());
    }
    Err(damaged(column, "values that were changed"))
}

/// What [`Error::sqlite`] takes for damage.
pub(crate) fn damaged(column: usize, what: &str) -> rusqlite::Error {
    let cause = format!("there are {what}");
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, cause.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(task: u32, name: Option<&str>) -> TaskRun {
        TaskRun {
            task,
            name: name.map(Into::into),
            planned_insns: 1 << 40,
            retired_insns: 3,
            peak_memory_bytes: 4096,
            preemptions: 2,
            outcome: Outcome::Killed,
        }
    }

    #[test]
    fn tasks_come_out_as_they_went_in() {
        let tasks = [
            task(1, None),
            task(2, Some("")),
            task(u32::MAX, Some("größer")),
        ];
        assert_eq!(unpack(&pack(&tasks)).as_deref(), Some(&tasks[..]));
        assert_eq!(unpack(&[]), Some(Vec::new()));
    }

    #[test]
    fn tasks_that_are_cut_off_are_none() {
        let packed = pack(&[task(1, Some("a"))]);
        for length in 1..packed.len() {
            assert_eq!(unpack(&packed[..length]), None, "{length}");
        }
        let mut other = packed.clone();
        other[4] = 200;
        assert_eq!(unpack(&other), None, "an outcome that there is not");
        let mut other = packed;
        let end = other.len() - 1;
        other[end] = 0xff;
        assert_eq!(unpack(&other), None, "a name that is no text");
    }
}
