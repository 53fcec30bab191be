// SPDX-License-Identifier: GPL-2.0
//! Predictions for the next run of a job from its earlier runs (Leppert 2021, 6.2.3; Glaß 2024, 4.1
//! and 4.4).

use pbs_history::{Expected, ExpectedTask, Fingerprint, JobHistory, Prediction, TaskKey, User};
use pbs_job::{Job, Process};

/// Planned length of a task, and its source.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// Index of the task in the job.
    pub task: usize,
    /// Predicted length with its source.
    pub prediction: Prediction,
}

/// The job with what its runs predict in the place of the user's figures, and
/// what that is for each task that has instructions.
pub fn predict(job: &Job, history: &JobHistory) -> (Job, Vec<Forecast>) {
    let mut predicted = job.clone();
    let mut forecasts = Vec::new();
    for (index, process) in job.processes.iter().enumerate() {
        let fingerprint = fingerprint(process);
        for &task in &process.tasks {
            let asked = &job.tasks[task];
            if asked.insns == 0 {
                continue;
            }
            let key = TaskKey { process: process.id, fingerprint, task: asked.id };
            let user = User {
                insns: Some(asked.insns),
                peak_memory_bytes: Some(asked.memory_bytes).filter(|&bytes| bytes > 0),
            };
            if let Some(prediction) = history.predict(key, user) {
                let task_of = &mut predicted.tasks[task];
                // A task that has a slot keeps it, whatever its runs retired.
                task_of.insns = prediction.insns.max(1);
                if let Some(bytes) = prediction.peak_memory_bytes {
                    task_of.memory_bytes = bytes;
                }
                forecasts.push(Forecast { task, prediction });
            }
        }
        if let Some(rate) = history.rate(process.id, fingerprint) {
            let insns_per_s = rate.rate_insns_per_ms.saturating_mul(1000);
            predicted.processes[index].rate_insns_per_s = Some(insns_per_s);
        }
        if let Some(bytes) = history.process_memory_bytes(process.id, fingerprint) {
            let tasks = forecasts.iter().filter(|f| job.tasks[f.task].process == index);
            let ended = tasks.map(|f| f.prediction.runs).min() > Some(0);
            let process = &mut predicted.processes[index];
            // Who did not get to the end has not shown all that it needs.
            process.memory_bytes = if ended { bytes } else { bytes.max(process.memory_bytes) };
            // The job's own totals are the user's, and no longer what is known.
            predicted.memory_bytes = None;
            predicted.runtime_ns = None;
            process.runtime_ns = None;
        }
        let memory_bytes = predicted.processes[index].memory_bytes;
        for &task in &process.tasks {
            let task_bytes = &mut predicted.tasks[task].memory_bytes;
            *task_bytes = (*task_bytes).min(memory_bytes);
        }
    }
    let asked_bytes = memory_bytes_of(job);
    add_memory_of_others(&mut predicted, asked_bytes, history);
    (predicted, forecasts)
}

/// Adds the memory of processes that the programs of earlier runs have started to that of the
/// initial process, which lives as long as the job: nobody knows which process has started them,
/// and when. The job never gets less than its processes need by themselves, and for others not more
/// than its user has asked for: what a group has had includes file cache, which grows to its limit.
fn add_memory_of_others(job: &mut Job, asked_bytes: u64, history: &JobHistory) {
    let Some(whole_bytes) = history.group_memory_bytes(programs(job)) else {
        return;
    };
    let more_bytes = whole_bytes.min(asked_bytes).saturating_sub(memory_bytes_of(job));
    if let Some(initial) = job.initial_process() {
        let memory_bytes = &mut job.processes[initial].memory_bytes;
        *memory_bytes = memory_bytes.saturating_add(more_bytes);
    }
}

/// Gives each process of a predicted job at least the memory that it asks for.
pub(crate) fn reserve_requested(predicted: &mut Job, asked: &Job) {
    for (process, asked) in predicted.processes.iter_mut().zip(&asked.processes) {
        process.memory_bytes = process.memory_bytes.max(asked.memory_bytes);
    }
}

/// Returns the memory of all processes of a job.
pub(crate) fn memory_bytes_of(job: &Job) -> u64 {
    let processes = job.processes.iter().map(|process| process.memory_bytes);
    processes.fold(0, u64::saturating_add)
}

/// Returns the expected lengths of a run's tasks, for the collector of its figures. `number`
/// returns the number in the plan of each process, by its index in the job.
pub(crate) fn expected(job: &Job, mut number: impl FnMut(usize) -> u32) -> Vec<Expected> {
    let processes = job.processes.iter().enumerate();
    let expected = processes.map(|(index, process)| {
        let tasks = process.tasks.iter().enumerate();
        // Those without instructions have no slot, and nothing is heard of them.
        let tasks = tasks.filter(|&(_, &task)| job.tasks[task].insns > 0);
        Expected {
            number: number(index),
            process: process.id,
            name: process.name.clone(),
            fingerprint: fingerprint(process),
            tasks: tasks
                .map(|(position, &task)| ExpectedTask {
                    number: position as u32,
                    task: job.tasks[task].id,
                    name: job.tasks[task].name.clone(),
                    planned_insns: job.tasks[task].insns,
                })
                .collect(),
        }
    });
    expected.collect()
}

/// Returns the number of each process of a job with its programs.
pub(crate) fn programs(job: &Job) -> impl Iterator<Item = (u32, Fingerprint)> + '_ {
    job.processes.iter().map(|process| (process.id, fingerprint(process)))
}

/// Returns the fingerprint of the programs of a process: the words of its commands, or its name if
/// another program starts it.
pub(crate) fn fingerprint(process: &Process) -> Fingerprint {
    let commands = process.start.commands();
    if commands.is_empty() {
        return Fingerprint::of([process.label()]);
    }
    let words = commands.iter().flat_map(|command| {
        let number = command.argv.len().to_string();
        std::iter::once(number).chain(command.argv.iter().cloned())
    });
    Fingerprint::of(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_history::{Kind, Outcome, ProcessRun, RunId, RunUsage, TaskRun};
    use pbs_job::{job_from_toml, job_to_toml};

    const JOB: &str = "name = \"j\"\ndeadline_ns = 1000\n[[process]]\nid = 7\n\
                       memory_bytes = 4000\ncommands = [[\"a\"], [\"b\"]]\n\
                       tasks = [{ insns = 100, memory_bytes = 3000 }, 200]\n";

    fn run(job: &Job, retired: [u64; 2]) -> Vec<ProcessRun> {
        let tasks = retired.into_iter().zip(0..).map(|(retired_insns, task)| TaskRun {
            task,
            name: None,
            planned_insns: 1,
            retired_insns,
            peak_memory_bytes: 5000 + u64::from(task),
            preemptions: 0,
            outcome: Outcome::Complete,
        });
        vec![ProcessRun {
            process: 7,
            name: None,
            fingerprint: fingerprint(&job.processes[0]),
            outcome: Outcome::Complete,
            ran_ns: 1_000_000,
            tasks: tasks.collect(),
        }]
    }

    #[test]
    fn without_runs_the_user_is_believed() {
        let job = job_from_toml(JOB).unwrap();
        let (predicted, forecasts) = predict(&job, &JobHistory::default());
        assert_eq!(predicted, job);
        assert!(forecasts.iter().all(|f| f.prediction.runs == 0));
        assert_eq!(forecasts.len(), 2);
    }

    #[test]
    fn runs_take_the_place_of_the_users_figures() {
        let job = job_from_toml(JOB).unwrap();
        let mut history = JobHistory::default();
        for number in 0..4 {
            history.add(RunId(number), Kind::Plan, &run(&job, [1000, 50]));
        }
        let (predicted, _) = predict(&job, &history);
        let of = |id| predicted.tasks.iter().find(|task| task.id == id).unwrap();
        assert!(of(0).insns.abs_diff(1000) < 50, "{predicted:?}");
        assert!(of(1).insns.abs_diff(50) < 5, "{predicted:?}");
        assert_eq!(of(0).memory_bytes, 5000);
        assert_eq!(predicted.processes[0].memory_bytes, 5001);
        // 1050 in a millisecond.
        assert_eq!(predicted.processes[0].rate_insns_per_s, Some(1_050_000));
    }

    /// The memory of processes that programs have started is reserved for the whole job, never
    /// less than before, and survives a restart of the service.
    #[test]
    fn memory_of_processes_that_programs_start_is_reserved() {
        let text = JOB.replace("tasks = [{", "tasks = [{ id = 0,")
            + "[[process]]\nid = 9\nmemory_bytes = 1000\ncommand = [\"c\"]\ntasks = [300]\n";
        let mut job = job_from_toml(&text).unwrap();
        assert_eq!(job.processes.len(), 3);
        job.processes[0].memory_bytes = 60_000;
        let memory = |whole_bytes| {
            let mut history = JobHistory::default();
            let mut processes: Vec<_> = expected(&job, |index| index as u32)
                .into_iter()
                .map(|expected| ProcessRun {
                    process: expected.process,
                    name: None,
                    fingerprint: expected.fingerprint,
                    outcome: Outcome::Complete,
                    ran_ns: 1_000_000,
                    tasks: Vec::new(),
                })
                .collect();
            processes[0].tasks = run(&job, [1000, 50]).remove(0).tasks;
            history.add(RunId(1), Kind::Plan, &processes);
            let usage = RunUsage {
                group_cpu_ns: Some(90_000_000),
                programs_cpu_ns: Some(10_000_000),
                group_peak_bytes: Some(whole_bytes),
            };
            history.add_usage(&processes, &usage);
            let (predicted, _) = predict(&job, &history);
            let saved = job_from_toml(&job_to_toml(&predicted)).unwrap();
            let bytes = |job: &Job| job.processes.iter().map(|it| it.memory_bytes).sum::<u64>();
            assert_eq!((saved.processes.len(), bytes(&saved)), (3, bytes(&predicted)));
            let initial = predicted.initial_process().unwrap();
            (predicted.processes[initial].memory_bytes, bytes(&predicted))
        };
        assert_eq!(memory(50_000), (50_000 - 6001, 50_000));
        assert_eq!(memory(6001), (0, 6001));
        assert_eq!(memory(7), (0, 6001));
        // File cache grows to the limit: the user's figure bounds what is added, and may be
        // lowered.
        assert_eq!(memory(90_000), (61_000 - 6001, 61_000));
    }

    #[test]
    fn another_command_begins_anew() {
        let job = job_from_toml(JOB).unwrap();
        let mut history = JobHistory::default();
        history.add(RunId(1), Kind::Plan, &run(&job, [1000, 50]));
        let other = job_from_toml(&JOB.replace("\"b\"", "\"c\"")).unwrap();
        let (predicted, _) = predict(&other, &history);
        assert_eq!(predicted, other);
    }

    #[test]
    fn words_do_not_run_into_the_next_command() {
        let of = |text: &str| {
            let text = JOB.replace("[\"a\"], [\"b\"]", text);
            fingerprint(&job_from_toml(&text).unwrap().processes[0])
        };
        assert_ne!(of("[\"a\", \"b\"], [\"c\"]"), of("[\"a\"], [\"b\", \"c\"]"));
    }
}
