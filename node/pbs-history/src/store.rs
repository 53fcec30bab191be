// SPDX-License-Identifier: GPL-2.0
//! The file of all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::{params, Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde::Serialize;

use crate::forget::Since;
use crate::lease::Lease;
use crate::limits::{check_coruns, kept};
use crate::measured_rows::insert_corun;
use crate::open::{open, Access};
use crate::usage::{usage_of, write_usage};
use crate::{tables, JobHistory, Options};
use crate::{
    Corun, Error, Fingerprint, InForce, Last, NewRun, Order, Outcome, ProcessRun, Run, RunFigures,
    RunId, RunUsage, State, Takeover,
};

/// A job of which runs are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobSummary {
    /// Name of the job.
    pub job: String,
    /// Runs that are over and kept.
    pub runs: u64,
    /// Number of these runs that completed.
    pub complete: u64,
    /// Runs that are planned or under way.
    pub open: u64,
    /// Time of the last submission, since 1970.
    pub last_submitted_unix_ns: u64,
}

/// End of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// Time of the end, since 1970.
    pub ended_unix_ns: u64,
    /// Kind of the end.
    pub outcome: Outcome,
    /// Order of the run as it stands from now on; `None`: as before.
    pub order: Option<&'a Order>,
    /// Figures of its processes.
    pub figures: &'a [ProcessRun],
    /// Resources of the run as a whole.
    pub usage: RunUsage,
    /// Tasks that ran beside its tasks.
    pub coruns: &'a [Corun],
}

impl RunEnd<'_> {
    /// Returns the end of a run of which nothing else is known.
    pub fn new(ended_unix_ns: u64, outcome: Outcome) -> Self {
        let usage = RunUsage::default();
        Self { ended_unix_ns, outcome, order: None, figures: &[], usage, coruns: &[] }
    }
}

/// The runs of all jobs, in one file.
///
/// Several processes may have it open, and each sees what the others have
/// recorded; one at a time writes, and one at a time is the planner
/// ([`Store::claim_planner`]). Every method that writes does so wholly or not at
/// all.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    options: Options,
    /// Set while this store is that of the planner.
    claimed: Option<Lease>,
    /// Runs that have ended since some were forgotten.
    pub(crate) since: Since,
}

impl Store {
    /// Opens the file, or makes it.
    ///
    /// The whole file is looked through for damage first, which takes about a
    /// millisecond for each megabyte.
    pub fn open(path: &Path, options: Options) -> Result<Self, Error> {
        Self::with(path, options, Access::Write)
    }

    /// Opens the file to look at it. It may be one that cannot be written. It is not looked through
    /// for damage, which is found in what is read.
    pub fn open_read_only(path: &Path, options: Options) -> Result<Self, Error> {
        Self::with(path, options, Access::Read)
    }

    fn with(path: &Path, options: Options, access: Access) -> Result<Self, Error> {
        options.check()?;
        Ok(Self {
            path: path.into(),
            connection: open(path, access, options.wait)?,
            options,
            claimed: None,
            since: Since::default(),
        })
    }

    /// Makes this process the planner of the file, until the store is dropped.
    /// Fails if another process, or another store of this one, is.
    ///
    /// All planners of a file must be on one machine and see each other in
    /// `/proc`.
    pub fn claim_planner(&mut self) -> Result<(), Error> {
        if self.claimed.is_some() {
            return Ok(());
        }
        let path = self.path.clone();
        let mine = Lease::mine();
        self.write(|connection| {
            let before = connection
                .query_row("SELECT pid, started_ticks, boot_id FROM planner", [], |row| {
                    Ok(Lease { pid: row.get(0)?, started_ticks: row.get(1)?, boot_id: row.get(2)? })
                })
                .optional()?;
            if let Some(other) = before.filter(Lease::is_alive) {
                return Err(Error::Planner(path, other.pid).into());
            }
            let sql = "INSERT OR REPLACE INTO planner VALUES (1, ?, ?, ?)";
            connection.execute(sql, params![mine.pid, mine.started_ticks, mine.boot_id])?;
            Ok(())
        })?;
        self.claimed = Some(mine);
        Ok(())
    }

    /// Notes a run that begins. Its state is [`State::Planned`].
    pub fn begin_run(&mut self, run: &NewRun<'_>) -> Result<RunId, Error> {
        Ok(self.begin_runs(std::slice::from_ref(run))?[0])
    }

    /// Notes several runs that begin, all or none; see [`Self::begin_run`].
    pub fn begin_runs(&mut self, runs: &[NewRun<'_>]) -> Result<Vec<RunId>, Error> {
        for run in runs {
            kept("the time of submission", run.submitted_unix_ns)?;
        }
        self.write(|connection| {
            let mut ids = Vec::with_capacity(runs.len());
            for run in runs {
                let id = tables::insert_run(connection, run)?.id;
                let takeover = Takeover {
                    request: run.request.into(),
                    reservation: run.reservation.into(),
                    ..Takeover::default()
                };
                tables::write_takeover(connection, id, &takeover)?;
                if let Some(order) = run.order {
                    tables::write_order(connection, id, order)?;
                }
                ids.push(id);
            }
            Ok(ids)
        })
    }

    /// Returns the plan that the last planner has given to the node; `None`: there was none.
    pub fn in_force(&self) -> Result<Option<InForce>, Error> {
        self.read(tables::in_force)
    }

    /// Returns the order of a run; `None`: nobody has ordered it.
    pub fn order(&self, id: RunId) -> Result<Option<Order>, Error> {
        self.read(|connection| tables::order(connection, id))
    }

    /// Notes what is said of a run from now on, also when it is over.
    pub fn set_order(&mut self, id: RunId, order: &Order) -> Result<(), Error> {
        self.write(|connection| {
            tables::run_of(connection, id)?.ok_or(Error::NoRun(id))?;
            Ok(tables::write_order(connection, id, order)?)
        })
    }

    /// Notes what somebody needs to take over, with the figures there are so far;
    /// and with [`State::Running`] that the run's plan is in force.
    pub fn update_run(
        &mut self,
        id: RunId,
        state: State,
        takeover: &Takeover,
        figures: &[ProcessRun],
    ) -> Result<(), Error> {
        self.update_runs(&[(id, state, Some(takeover), figures)], None)
    }

    /// Replaces the order of a run that waits, and its request if there is another one: both or
    /// neither.
    pub fn replace_order(
        &mut self,
        id: RunId,
        order: &Order,
        takeover: Option<&Takeover>,
    ) -> Result<(), Error> {
        self.write(|connection| {
            let run = open_run(connection, id)?;
            if run.state != State::Planned {
                return Err(Error::WrongState(id, run.state).into());
            }
            if let Some(takeover) = takeover {
                tables::write_run(connection, run, &[])?;
                tables::write_takeover(connection, id, takeover)?;
            }
            Ok(tables::write_order(connection, id, order)?)
        })
    }

    /// Updates several runs and the state of the node, all or none; see [`Self::update_run`]. A run
    /// without data for a take-over keeps those that it has.
    pub fn update_runs(
        &mut self,
        runs: &[(RunId, State, Option<&Takeover>, &[ProcessRun])],
        in_force: Option<&InForce>,
    ) -> Result<(), Error> {
        for (_, _, _, figures) in runs {
            tables::check(figures)?;
        }
        self.write(|connection| {
            if let Some(in_force) = in_force {
                tables::write_in_force(connection, in_force)?;
            }
            for &(id, state, takeover, figures) in runs {
                let mut run = open_run(connection, id)?;
                if state == State::Over || (run.state, state) == (State::Running, State::Planned) {
                    return Err(Error::WrongState(id, run.state).into());
                }
                run.state = state;
                tables::write_run(connection, run, figures)?;
                if let Some(takeover) = takeover {
                    tables::write_takeover(connection, id, takeover)?;
                }
            }
            Ok(())
        })
    }

    /// Records a run that is over: its figures come in, what was needed to take
    /// it over goes, and so do the oldest runs of the job, beyond
    /// [`Options::keep_runs`].
    pub fn finish_run(
        &mut self,
        id: RunId,
        ended_unix_ns: u64,
        outcome: Outcome,
        figures: &[ProcessRun],
    ) -> Result<(), Error> {
        self.end_run(id, &RunEnd { figures, ..RunEnd::new(ended_unix_ns, outcome) })
    }

    /// Records a run that is over with all that belongs to its end; see [`Self::finish_run`].
    pub fn end_run(&mut self, id: RunId, end: &RunEnd<'_>) -> Result<(), Error> {
        let &RunEnd { ended_unix_ns, outcome, order, figures, usage, coruns } = end;
        tables::check(figures)?;
        usage.check()?;
        check_coruns(coruns)?;
        kept("the time of the end", ended_unix_ns)?;
        let (keep, keep_samples) = (self.options.keep_runs, self.options.keep_samples);
        let tasks: usize = figures.iter().map(|process| size_of_val(&process.tasks[..])).sum();
        let order_bytes = self.write(|connection| {
            let mut run = open_run(connection, id)?;
            run.state = State::Over;
            run.ended_unix_ns = Some(ended_unix_ns);
            run.outcome = Some(outcome);
            let job = run.job.clone();
            if let Some(order) = order {
                tables::write_order(connection, id, order)?;
            }
            let order = tables::order(connection, id)?;
            let order_bytes = order.as_ref().map_or(0, |order| order.text.len());
            let uid = order.map(|order| order.uid);
            tables::write_run(connection, run, figures)?;
            write_usage(connection, id, &usage)?;
            connection.execute("DELETE FROM takeover WHERE run = ?", [id.0])?;
            tables::forget_oldest(connection, &job, uid, keep as usize)?;
            for corun in coruns {
                insert_corun(connection, corun, keep_samples)?;
            }
            Ok(order_bytes)
        })?;
        self.since.ended(order_bytes.saturating_add(tasks));
        Ok(())
    }

    /// The runs, the oldest first; `job`: of that one alone.
    pub fn runs(&self, job: Option<&str>) -> Result<Vec<Run>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare(tables::RUNS)?;
            let rows = statement.query_map([job], tables::run)?;
            rows.collect()
        })
    }

    /// The runs that are not over, the oldest first.
    pub fn open_runs(&self) -> Result<Vec<Run>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare(tables::OPEN_RUNS)?;
            let rows = statement.query_map([], tables::run)?;
            rows.collect()
        })
    }

    /// Ends runs that are not over and whose records are damaged, with an unknown outcome and without
    /// figures. What can't be read is gone. Returns them, each with what is damaged.
    ///
    /// # Errors
    ///
    /// The file can't be read or written. Then nothing is changed.
    pub fn set_damaged_aside(&mut self, ended_unix_ns: u64) -> Result<Vec<(RunId, String)>, Error> {
        kept("the time of the end", ended_unix_ns)?;
        let ids: Vec<RunId> = self.read(|connection| {
            let mut statement = connection.prepare("SELECT run FROM takeover ORDER BY run")?;
            let ids = statement.query_map([], |row| row.get(0).map(RunId))?;
            ids.collect()
        })?;
        let mut damaged = Vec::new();
        for id in ids {
            damaged.extend(self.damage_of(id)?.map(|what| (id, what)));
        }
        for (id, _) in &damaged {
            self.end_damaged(*id, ended_unix_ns)?;
        }
        Ok(damaged)
    }

    /// Ends a run as [`Self::set_damaged_aside`] does if its record is damaged. Returns what is
    /// damaged.
    ///
    /// # Errors
    ///
    /// The file can't be read or written. Then nothing is changed.
    pub fn set_aside_if_damaged(
        &mut self,
        id: RunId,
        ended_unix_ns: u64,
    ) -> Result<Option<String>, Error> {
        kept("the time of the end", ended_unix_ns)?;
        let damage = self.damage_of(id)?;
        if damage.is_some() {
            self.end_damaged(id, ended_unix_ns)?;
        }
        Ok(damage)
    }

    /// Returns what is damaged of the record of a run.
    fn damage_of(&self, id: RunId) -> Result<Option<String>, Error> {
        let whole = self.takeover(id).and_then(|_| {
            self.order(id)?;
            self.figures_of(id)
        });
        match whole {
            Ok(_) => Ok(None),
            Err(Error::Damaged(_, what)) => Ok(Some(what)),
            Err(other) => Err(other),
        }
    }

    fn end_damaged(&mut self, id: RunId, ended_unix_ns: u64) -> Result<(), Error> {
        self.write(|connection| {
            tables::end_damaged(connection, id, ended_unix_ns)?;
            Ok(())
        })
    }

    /// The last runs that are over, the oldest first.
    pub fn last_runs(&self, last: &Last<'_>) -> Result<Vec<Run>, Error> {
        let count = i64::try_from(last.count).unwrap_or(i64::MAX);
        let mut runs: Vec<Run> = self.read(|connection| match last.job {
            Some(job) => {
                let mut statement = connection.prepare(tables::LAST_RUNS_OF_JOB)?;
                let rows = statement.query_map(params![count, last.uid, job], tables::run)?;
                rows.collect()
            }
            None => {
                let mut statement = connection.prepare(tables::LAST_RUNS)?;
                let rows = statement.query_map(params![count, last.uid], tables::run)?;
                rows.collect()
            }
        })?;
        runs.reverse();
        Ok(runs)
    }

    /// A run.
    pub fn run(&self, id: RunId) -> Result<Run, Error> {
        self.read(|connection| tables::run_of(connection, id))?.ok_or(Error::NoRun(id))
    }

    /// Returns the data that are needed to take over a run; `None`: it is over.
    pub fn takeover(&self, id: RunId) -> Result<Option<Takeover>, Error> {
        self.run(id)?;
        self.read(|connection| tables::takeover(connection, id))
    }

    /// A run with its figures, which are those so far if it is not over.
    pub fn figures_of(&self, id: RunId) -> Result<RunFigures, Error> {
        // Both looks see the same, whatever others write meanwhile.
        let _snapshot = self.read(Connection::unchecked_transaction)?;
        let run = self.run(id)?;
        let processes = self.read(|connection| tables::processes_of(connection, &run))?;
        let usage = self.read(|connection| usage_of(connection, run.id))?;
        Ok(RunFigures { run, processes, usage })
    }

    /// The runs of a job that are over, with all their figures, the oldest
    /// first.
    pub fn figures(&self, job: &str) -> Result<Vec<RunFigures>, Error> {
        let _snapshot = self.read(Connection::unchecked_transaction)?;
        let runs = self.runs(Some(job))?.into_iter();
        runs.filter(|run| run.state == State::Over)
            .map(|run| {
                let processes = self.read(|connection| tables::processes_of(connection, &run))?;
                let usage = self.read(|connection| usage_of(connection, run.id))?;
                Ok(RunFigures { run, processes, usage })
            })
            .collect()
    }

    /// Returns the history of a job's runs without a user. A job that is not known has an empty
    /// history.
    pub fn history(&self, job: &str) -> Result<JobHistory, Error> {
        self.history_of(job, None)
    }

    /// Returns the history of the job's runs that this user has ordered. No user's figures depend
    /// on runs of other users under the same name.
    pub fn history_of(&self, job: &str, uid: Option<u32>) -> Result<JobHistory, Error> {
        let _snapshot = self.read(Connection::unchecked_transaction)?;
        let mut history = JobHistory::new(self.options.estimate);
        let runs: Vec<Run> = self.read(|connection| {
            let mut statement = connection.prepare(tables::RUNS_OF)?;
            let rows = statement.query_map(params![job, uid], tables::run)?;
            rows.collect()
        })?;
        for run in runs {
            let processes = self.read(|connection| tables::processes_of(connection, &run))?;
            let usage = self.read(|connection| usage_of(connection, run.id))?;
            history.add(run.id, run.kind, &processes);
            history.add_usage(&processes, &usage);
        }
        Ok(history)
    }

    /// Returns the history of the job's runs that this user has ordered, of those processes alone
    /// that execute such programs: of a name under which other things ran, nothing else is read.
    pub fn history_for(
        &self,
        job: &str,
        uid: Option<u32>,
        programs: &[(u32, Fingerprint)],
    ) -> Result<JobHistory, Error> {
        let _snapshot = self.read(Connection::unchecked_transaction)?;
        let mut history = JobHistory::new(self.options.estimate);
        let wanted: BTreeSet<_> = programs.iter().copied().collect();
        let runs: Vec<Run> = self.read(|connection| {
            let mut statement = connection.prepare_cached(tables::RUNS_OF)?;
            let rows = statement.query_map(params![job, uid], tables::run)?;
            rows.collect()
        })?;
        for run in runs {
            let is_wanted = |program: &_| wanted.contains(program);
            let read = |connection| tables::some_processes_of(connection, &run, &is_wanted);
            let processes = self.read(read)?;
            history.add(run.id, run.kind, &processes);
            if processes.len() == run.processes as usize {
                let usage = self.read(|connection| usage_of(connection, run.id))?;
                history.add_usage(&processes, &usage);
            }
        }
        Ok(history)
    }

    /// The jobs of which runs are known, by name.
    pub fn jobs(&self) -> Result<Vec<JobSummary>, Error> {
        let mut jobs = BTreeMap::new();
        for run in self.runs(None)? {
            let summary = jobs.entry(run.job.clone()).or_insert(JobSummary {
                job: run.job,
                runs: 0,
                complete: 0,
                open: 0,
                last_submitted_unix_ns: 0,
            });
            let over = run.state == State::Over;
            summary.runs += u64::from(over);
            summary.open += u64::from(!over);
            summary.complete += u64::from(run.outcome == Some(Outcome::Complete));
            let last = summary.last_submitted_unix_ns.max(run.submitted_unix_ns);
            summary.last_submitted_unix_ns = last;
        }
        Ok(jobs.into_values().collect())
    }

    /// The numbers that it was opened with.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn read<'a, T>(
        &'a self,
        what: impl FnOnce(&'a Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        what(&self.connection).map_err(|error| Error::sqlite(&self.path, &error))
    }

    /// All of it, or nothing. Others can read until it is committed.
    pub(crate) fn write<T>(
        &mut self,
        what: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let behavior = TransactionBehavior::Immediate;
        let done = Transaction::new(&mut self.connection, behavior)
            .map_err(Fault::Sqlite)
            .and_then(|transaction| {
                let done = what(&transaction)?;
                transaction.commit()?;
                Ok(done)
            });
        done.map_err(|fault| match fault {
            Fault::Sqlite(error) => Error::sqlite(&self.path, &error),
            Fault::Ours(error) => error,
        })
    }
}

/// Reason for which a transaction was rolled back.
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Ours(Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

/// A run that must not be over.
fn open_run(connection: &Connection, id: RunId) -> Result<Run, Fault> {
    match tables::run_of(connection, id)? {
        None => Err(Error::NoRun(id).into()),
        Some(run) if run.state == State::Over => Err(Error::WrongState(id, State::Over).into()),
        Some(run) => Ok(run),
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(lease) = self.claimed.take() {
            // If this fails, who comes next finds that the process is gone.
            let _ = self.connection.execute(
                "DELETE FROM planner WHERE pid = ? AND started_ticks = ?",
                params![lease.pid, lease.started_ticks],
            );
        }
    }
}

#[cfg(test)]
mod tests;
