// SPDX-License-Identifier: GPL-2.0
//! Figures for other programs.

use std::fmt::Write;

use serde::Serialize;

use crate::{ProcessRun, Run, RunUsage};

/// A run with all its figures. As JSON it has these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunFigures {
    /// The run.
    pub run: Run,
    /// Processes of the run, ascending.
    pub processes: Vec<ProcessRun>,
    /// Resources of the run as a whole, with all that its programs started.
    pub usage: RunUsage,
}

impl RunFigures {
    /// The memory of the run and whether its control group was measured; without that, the sum of
    /// the greatest resident sizes of its processes. `None`: nothing was measured.
    pub fn peak_memory_bytes(&self) -> Option<(u64, bool)> {
        let peaks = self.processes.iter().map(ProcessRun::peak_memory_bytes);
        let of_processes = Some(peaks.fold(0, u64::saturating_add)).filter(|&bytes| bytes > 0);
        let of_group = self.usage.group_peak_bytes.map(|bytes| (bytes, true));
        of_group.or(of_processes.map(|bytes| (bytes, false)))
    }
}

/// The columns of [`to_csv`].
const COLUMNS: &str = "job,run,kind,submitted_unix_ns,ended_unix_ns,run_outcome,process,\
                       process_name,fingerprint,process_outcome,task,task_name,planned_insns,\
                       retired_insns,peak_memory_bytes,preemptions,task_outcome";

/// A row for each task of each run, below one with the names of the columns
/// (RFC 4180, but with bare newlines). What there is not is empty.
pub fn to_csv(runs: &[RunFigures]) -> String {
    let mut out = format!("{COLUMNS}\n");
    for RunFigures { run, processes, .. } in runs {
        let ended = run.ended_unix_ns.map(|ns| ns.to_string());
        let before = format!(
            "{},{},{},{},{},{}",
            field(&run.job),
            run.id,
            run.kind,
            run.submitted_unix_ns,
            ended.unwrap_or_default(),
            run.outcome.map_or("", crate::Outcome::name)
        );
        for process in processes {
            for task in &process.tasks {
                // Writing to a string does not fail.
                let _ = writeln!(
                    out,
                    "{before},{},{},{},{},{},{},{},{},{},{},{}",
                    process.process,
                    field(process.name.as_deref().unwrap_or("")),
                    process.fingerprint,
                    process.outcome,
                    task.task,
                    field(task.name.as_deref().unwrap_or("")),
                    task.planned_insns,
                    task.retired_insns,
                    task.peak_memory_bytes,
                    task.preemptions,
                    task.outcome
                );
            }
        }
    }
    out
}

/// Quoted where it has to be.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
