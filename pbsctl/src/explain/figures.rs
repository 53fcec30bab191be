// SPDX-License-Identifier: GPL-2.0
//! Planned figures of each task, and their source.

use pbs_history::{Prediction, Source};
use pbs_job::Job;
use pbs_node::Forecast;
use pbs_text::{bytes, columns, grouped};
use serde::Serialize;

/// The figures of a task.
#[derive(Serialize)]
pub(super) struct FigureView {
    process: u32,
    process_name: Option<String>,
    task: u32,
    task_name: Option<String>,
    /// Planned instructions; nine of ten runs are within the following two values.
    insns: u64,
    low_insns: u64,
    high_insns: u64,
    memory_bytes: u64,
    source: Source,
    runs: usize,
}

impl FigureView {
    /// The figures of each task that has instructions.
    pub(super) fn all(job: &Job, forecasts: &[Forecast]) -> Vec<Self> {
        let views = forecasts.iter().map(|forecast| {
            let task = &job.tasks[forecast.task];
            let process = &job.processes[task.process];
            let Prediction { low_insns, high_insns, runs, source, .. } = forecast.prediction;
            Self {
                process: process.id,
                process_name: process.name.clone(),
                task: task.id,
                task_name: task.name.clone(),
                insns: task.insns,
                low_insns,
                high_insns,
                memory_bytes: task.memory_bytes,
                source,
                runs,
            }
        });
        views.collect()
    }

    pub(super) fn is_measured(&self) -> bool {
        self.source != Source::User
    }
}

/// All of them as a table.
pub(super) fn text(figures: &[FigureView]) -> String {
    let header = ["", "PROCESS", "TASK", "FROM", "RUNS", "INSNS", "LEAST", "MOST", "MEMORY"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for figure in figures {
        let task = figure.task.to_string();
        rows.push(vec![
            String::new(),
            figure.process_name.clone().unwrap_or_else(|| figure.process.to_string()),
            match &figure.task_name {
                Some(name) => format!("{task} {name}"),
                None => task,
            },
            figure.source.name().into(),
            grouped(figure.runs as u64),
            grouped(figure.insns),
            grouped(figure.low_insns),
            grouped(figure.high_insns),
            bytes(figure.memory_bytes),
        ]);
    }
    columns(&rows, 4)
}
