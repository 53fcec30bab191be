// SPDX-License-Identifier: GPL-2.0
//! Jobs in the queue of a file, for the commands that otherwise ask the service.

use std::process::ExitCode;

use clap::Args;
use pbs_history::{Options, RunId, Store};
use pbs_node::{process_of, queue, usage_of};
use pbs_node_api::{Job, Shown};

use crate::failure::Failure;
use crate::history_file::HistoryFile;
use crate::output::Output;
use crate::service::{self, key, Which};

/// A job of the service or, where none runs, one in the queue.
#[derive(Args, Debug)]
pub(crate) struct AnyJob {
    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

impl AnyJob {
    /// The number of the job in the queue. A name means the one job of that name that is not over.
    fn find(&self, store: &Store) -> Result<RunId, Failure> {
        let (job, place) = (&self.which.job, self.place());
        let key = key(job);
        let runs = store.runs(None)?;
        if let Some(number) = key.number {
            let known = runs.iter().any(|run| run.id.0 == number);
            return known.then_some(RunId(number)).ok_or_else(|| {
                Failure::Failed(format!("there is no job {job} in {place}; see pbsctl job list"))
            });
        }
        let mut open: Vec<_> = store.open_runs()?;
        open.retain(|run| run.job == *job);
        match open.as_slice() {
            [run] => Ok(run.id),
            [] => Err(Failure::Failed(format!(
                "no job named {job} waits in {place}; see pbsctl job list"
            ))),
            several => {
                let numbers: Vec<_> = several.iter().map(|run| run.id.to_string()).collect();
                let numbers = numbers.join(", ");
                Err(Failure::Failed(format!(
                    "there are several jobs named {job}; write the number of one: {numbers}"
                )))
            }
        }
    }

    /// The place where the queue is looked for, in messages.
    fn place(&self) -> String {
        self.history.path().display().to_string()
    }

    /// Words for a command that found no history: nobody has queued anything.
    fn missing(&self) -> Failure {
        let (job, place) = (&self.which.job, self.place());
        let socket = self.which.socket.path.display();
        Failure::Failed(format!(
            "there is no job {job}: no service listens at {socket}, and there is no queue {place}. \
             Start the service with systemctl start pbsd, or name its socket with --socket"
        ))
    }
}

pub(crate) fn show(out: Output, any: &AnyJob) -> Result<ExitCode, Failure> {
    if any.which.socket.is_there() {
        return service::job(out, &any.which);
    }
    let path = any.history.path();
    if !path.exists() {
        return Err(any.missing());
    }
    let store = Store::open_read_only(&path, Options::DEFAULT)?;
    let id = any.find(&store)?;
    service::shown(out, details(&store, id)?)
}

pub(crate) fn cancel(out: Output, any: &AnyJob) -> Result<ExitCode, Failure> {
    if any.which.socket.is_there() {
        return service::cancel(out, &any.which);
    }
    let path = any.history.path();
    if !path.exists() {
        return Err(any.missing());
    }
    let mut store = queue::open(&path)?;
    let id = any.find(&store)?;
    queue::withdraw(&mut store, id)?;
    service::shown(out, details(&store, id)?)
}

/// The record of a run, in the form that the service has for it.
fn details(store: &Store, id: RunId) -> Result<Shown, Failure> {
    let runs = queue::runs(store, None)?;
    let summary = runs.into_iter().find(|summary| summary.run == id);
    let summary = summary.ok_or(pbs_history::Error::NoRun(id))?;
    let figures = store.figures_of(id)?;
    let request = store.takeover(id)?.map(|takeover| takeover.request);
    Ok(Shown {
        job: Job::from(summary),
        request,
        processes: figures.processes.iter().map(process_of).collect(),
        programs: Vec::new(),
        usage: usage_of(&figures),
    })
}
