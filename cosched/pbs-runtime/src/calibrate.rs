// SPDX-License-Identifier: GPL-2.0
//! Running each variant that has never run, to measure it (§5.6.4).

use std::sync::mpsc::channel;

use crate::execute::execute;
use crate::graph::Graph;
use crate::pool::Job;
use crate::profile::learn;
use crate::report::{Report, TaskReport};
use crate::runtime::{Candidate, Runtime};
use crate::Error;

impl Runtime {
    /// Executes a graph task by task. Of each, all variants run that have not, each on the
    /// same data, and nothing else meanwhile; if all have, the fastest runs.
    ///
    /// The variants of a task are taken to have the same result: that of the last one stays.
    pub(crate) fn calibrate(
        &self,
        graph: &Graph,
        order: &[usize],
        candidates: &[Vec<Candidate>],
    ) -> Result<Report, Error> {
        let mut tasks = vec![None; graph.tasks.len()];
        for &index in order {
            let own = &candidates[index];
            let measured = |of: &Candidate| self.options.profiles.runtime_ns(&of.key);
            let mut to_run: Vec<&Candidate> =
                own.iter().filter(|of| !of.is_profiled && measured(of).is_none()).collect();
            if to_run.is_empty() {
                let fastest = |of: &&Candidate| measured(of).unwrap_or(of.runtime_ns);
                to_run.extend(own.iter().min_by_key(fastest));
            }
            let regions = &graph.tasks[index].regions;
            let written = regions.iter().filter(|(_, access)| access.writes());
            let before: Vec<_> = written.map(|(region, _)| (region, region.content())).collect();
            for (number, candidate) in to_run.iter().enumerate() {
                if number > 0 {
                    for (region, content) in &before {
                        region.fill(content);
                    }
                }
                tasks[index] = Some(self.measure(graph, index, candidate)?);
            }
        }
        Ok(Report {
            tasks: tasks.into_iter().flatten().collect(),
            is_calibration: true,
            ..Report::default()
        })
    }

    /// Runs a variant alone, and keeps how long it and its transfers took.
    fn measure(
        &self,
        graph: &Graph,
        index: usize,
        candidate: &Candidate,
    ) -> Result<TaskReport, Error> {
        let task = graph.tasks[index].clone();
        let memory = self.devices[candidate.device].memories.first().cloned();
        let (sender, receiver) = channel();
        let (variant, own) = (candidate.variant, task.clone());
        self.pool.entrance().give(Job {
            cpus: self.options.cpus_of(candidate, Some(0)),
            run: Box::new(move || {
                // Without a receiver the calibration has ended.
                let _ = sender.send(execute(&own, variant, memory.as_ref(), &[]));
            }),
        });
        let ran = receiver.recv().unwrap_or_else(|_| Err("no worker".into()));
        let profiles = &self.options.profiles;
        let mut homes = Vec::new();
        for (region, _) in &task.regions {
            homes.push(region.go_home());
        }
        let failed = |why| Error::Failed { task: task.name.clone(), why };
        let ran = ran.map_err(failed)?;
        let homes: Result<Vec<_>, _> = homes.into_iter().collect();
        let homes = homes.map_err(failed)?;
        learn(&**profiles, ran.transfers.iter().chain(homes.iter().flatten()));
        profiles.ran(&candidate.key, ran.ended_ns - ran.started_ns);
        Ok(TaskReport {
            name: task.name.clone(),
            variant,
            model: candidate.key.model,
            device: candidate.key.device.clone(),
            instance: Some(0),
            started_ns: ran.started_ns,
            ended_ns: ran.ended_ns,
            reruns: 0,
            is_co_scheduled: false,
        })
    }
}
