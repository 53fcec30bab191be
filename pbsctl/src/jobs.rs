// SPDX-License-Identifier: GPL-2.0
//! Jobs and machines from files, as they are named on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use pbs_cosched_report::lanes::{variant_key, Question};
use pbs_interference::{slowdowns_from_toml, Entry};
use pbs_job::graph::{graph_from_toml, Graph};
use pbs_job::{machine_from_toml, Machine};
use pbs_node::{by_priority, this_node, Submission};

use crate::failure::Failure;
use crate::files::{self, Kind};
use crate::history_file::{variants, HistoryFile};

/// Jobs from files, and what they are planned with.
#[derive(Args, Debug)]
pub(crate) struct JobFiles {
    /// Jobs in TOML or JSON; - reads standard input
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) machine: MachineFile,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

/// Reads jobs and checks all of them. The order is that of [`by_priority`].
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Submission>, Failure> {
    let jobs = paths.iter().map(|path| {
        let text = files::read(path)?;
        files::expect(Kind::Job, &text, path)?;
        job_of(text, path)
    });
    let mut jobs: Vec<_> = jobs.collect::<Result<_, _>>()?;
    by_priority(&mut jobs, |submission| &submission.job);
    Ok(jobs)
}

/// The job that a file holds.
pub(crate) fn job_of(text: String, path: &Path) -> Result<Submission, Failure> {
    Ok(Submission::from_text(text, files::name(path))?)
}

/// The task graph that a file holds.
pub(crate) fn graph_of(text: &str, path: &Path) -> Result<Graph, Failure> {
    graph_from_toml(text).map_err(|problems| Failure::Invalid { file: files::name(path), problems })
}

/// The task graphs that those files hold.
pub(crate) fn graphs_of(paths: &[PathBuf]) -> Result<Vec<Graph>, Failure> {
    let graphs = paths.iter().map(|path| {
        let text = files::read(path)?;
        files::expect(Kind::Graph, &text, path)?;
        graph_of(&text, path)
    });
    graphs.collect()
}

/// The graphs to be co-scheduled, and the number of variants whose run times the history has.
/// Problems are reported for all tasks at once.
pub(crate) fn question(
    graphs: &[Graph],
    machine: &Machine,
    history: &Path,
) -> Result<(Question, usize), Failure> {
    let known = variants(history)?;
    let mut profiled = 0;
    let question = Question::new(graphs, machine, |graph, task, variant| {
        let prediction = known.get(&variant_key(&graphs[graph], task, variant))?;
        profiled += 1;
        Some(prediction.ran_ns)
    });
    let question = question.map_err(|unfit| {
        let told = unfit.iter().map(ToString::to_string);
        Failure::NotValid(told.collect())
    })?;
    Ok((question, profiled))
}

/// Reads the slow-downs in a file.
pub(crate) fn slowdowns_of(path: &Path) -> Result<Vec<Entry<String>>, Failure> {
    let entries = slowdowns_from_toml(&files::read(path)?);
    entries.map_err(|problems| Failure::Invalid { file: files::name(path), problems })
}

/// The machine that jobs are planned for, wherever one is.
#[derive(Args, Debug)]
pub(crate) struct MachineFile {
    /// Machine to plan for, in TOML or JSON, instead of this node with all its CPUs
    #[arg(id = "machine", long, value_name = "FILE")]
    path: Option<PathBuf>,
}

impl MachineFile {
    /// Whether a file was named.
    pub(crate) fn is_named(&self) -> bool {
        self.path.is_some()
    }

    /// The machine of the file. Without one this node, whose CPUs retire so many
    /// instructions in a millisecond, as `rate_insns_per_ms` answers.
    pub(crate) fn read(
        &self,
        rate_insns_per_ms: impl FnOnce() -> Result<u64, pbs_node::Error>,
    ) -> Result<Machine, Failure> {
        match &self.path {
            Some(path) => {
                let text = files::read(path)?;
                files::expect(Kind::Machine, &text, path)?;
                machine_of(&text, path)
            }
            None => Ok(this_node(rate_insns_per_ms()?)?),
        }
    }
}

/// The machine that a file holds.
pub(crate) fn machine_of(text: &str, path: &Path) -> Result<Machine, Failure> {
    machine_from_toml(text)
        .map_err(|problems| Failure::Invalid { file: files::name(path), problems })
}
