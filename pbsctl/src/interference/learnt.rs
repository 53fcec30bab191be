// SPDX-License-Identifier: GPL-2.0
//! Slow-downs that runs in a history tell, with the names of jobs and tasks.

use std::collections::HashMap;

use pbs_history::{Options, Store};
use pbs_interference::{names, Entry, Key, Level, Names, Neighbour, Slowdowns};
use pbs_node::slowdowns_of_runs;
use serde::Serialize;

use crate::failure::Failure;
use crate::history_file::HistoryFile;

/// Contents of a history about slow-downs.
pub(super) struct Learnt {
    /// Runs of tasks of which is known who ran beside them.
    pub(super) runs: usize,
    pub(super) slowdowns: Slowdowns,
    names: Names,
    /// Name of each task: from the last job that had it.
    called: HashMap<Key, String>,
}

/// A task that runs beside another.
#[derive(Serialize)]
pub(super) struct Other {
    pub(super) name: String,
    /// Resource that it shares with the victim.
    pub(super) level: &'static str,
}

impl Learnt {
    pub(super) fn read(history: &HistoryFile) -> Result<Self, Failure> {
        let store = Store::open_read_only(&history.path(), Options::DEFAULT)?;
        let coruns = store.coruns()?;
        let mut learnt = Self {
            runs: coruns.len(),
            slowdowns: slowdowns_of_runs(&coruns),
            names: Names::default(),
            called: HashMap::new(),
        };
        for job in store.jobs()? {
            for run in store.figures(&job.job)? {
                for process in &run.processes {
                    let number = process.process.to_string();
                    let label = process.name.as_deref().unwrap_or(&number);
                    for task in &process.tasks {
                        let key =
                            Key { fingerprint: process.fingerprint.0, task: task.task, variant: 0 };
                        let name = task.name.as_deref();
                        learnt.call(key, &job.job, label, name);
                    }
                }
            }
        }
        Ok(learnt)
    }

    fn call(&mut self, key: Key, job: &str, process: &str, task_name: Option<&str>) {
        let all = names(Some(job), process, key.task, task_name, None);
        let number = key.task.to_string();
        let task = task_name.unwrap_or(&number);
        self.called.insert(key, format!("{job}:{process}/{task}"));
        self.names.add(key, all);
    }

    /// Name of a task.
    pub(super) fn name(&self, key: Key) -> String {
        let known = self.called.get(&key);
        // Its runs are no longer kept.
        known.map_or_else(|| format!("{:016x}/{}", key.fingerprint, key.task), String::clone)
    }

    /// The tasks of that name.
    pub(super) fn keys(&self, name: &str) -> Result<&[Key], Failure> {
        match self.names.of(name) {
            [] => Err(Failure::Failed(format!(
                "no task is called \"{name}\"; write process, process/task or job:process/task, as \
                 in the output of pbsctl cosched interference show"
            ))),
            keys => Ok(keys),
        }
    }

    /// The closest level at which the one was measured beside the other.
    pub(super) fn level(&self, victim: Key, beside: Key) -> Option<Level> {
        let entries = self.slowdowns.entries().iter();
        let of_it = entries.filter(|entry| entry.victim == victim);
        let pairs = of_it.flat_map(|entry| &entry.beside);
        pairs.filter(|(_, key)| *key == beside).map(|&(level, _)| level).min()
    }

    pub(super) fn other(&self, by: Neighbour) -> Other {
        Other { name: self.name(by.key), level: by.level.name() }
    }

    /// All that was learnt, with names.
    pub(super) fn entries(&self) -> Vec<Entry<String>> {
        let entries = self.slowdowns.entries().iter();
        let mut entries: Vec<_> = entries
            .map(|entry| Entry {
                victim: self.name(entry.victim),
                beside: (entry.beside.iter())
                    .map(|&(level, key)| (level, self.name(key)))
                    .collect(),
                slowdown: entry.slowdown,
                low: entry.low,
                high: entry.high,
                samples: entry.samples,
            })
            .collect();
        entries
            .sort_by(|one, other| (&one.victim, &one.beside).cmp(&(&other.victim, &other.beside)));
        entries
    }
}

/// Names of who runs beside a task, with what they share, for people.
pub(super) fn list(beside: &[Other]) -> String {
    let others = beside.iter().map(|other| format!("{} ({})", other.name, other.level));
    others.collect::<Vec<_>>().join(", ")
}
