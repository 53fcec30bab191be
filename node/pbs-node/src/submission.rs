// SPDX-License-Identifier: GPL-2.0
//! Jobs that somebody wants to have run.

use std::cmp::Reverse;

use pbs_history::JobHistory;
use pbs_job::{job_from_toml, now_unix_ns, with_spans, with_values, Job, Problem, Process};
use pbs_launch::{check_programs, path_of, JobCommand, Surroundings};
use pbs_plan::Start;
use pbs_text::Problems;

use crate::predict::{predict, Forecast};
use crate::Error;

/// A job that somebody wants to have run.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Name of its file in messages.
    pub file: String,
    /// Text of the request: the file itself.
    pub request: String,
    /// The job with the user's figures. Its times count from its submission.
    pub job: Job,
}

impl Submission {
    /// The job of a file that was read; all of it is checked. `file` is what it is
    /// called in messages. Points in time become spans from now, also in the request that is
    /// stored.
    pub fn from_text(request: String, file: String) -> Result<Self, Error> {
        let read = || {
            let request = with_spans(&request, now_unix_ns())?.into_owned();
            let job = job_from_toml(&request)?;
            Ok((request, job))
        };
        match read() {
            Ok((request, job)) => Ok(Self { file, request, job }),
            Err(problems) => Err(Error::Invalid { file, problems }),
        }
    }

    /// The job with other values of keys in front of its first table, written as in TOML. The
    /// request that is stored has them, too.
    pub fn with_request_values(self, values: &[(&str, String)]) -> Result<Self, Error> {
        if values.is_empty() {
            return Ok(self);
        }
        Self::from_text(with_values(&self.request, values), self.file)
    }

    /// The job as one of best effort, also in the request that is stored.
    pub fn as_best_effort(mut self) -> Self {
        self.request = with_values(&self.request, &[("best_effort", "true".into())]);
        self.job.best_effort = true;
        self
    }

    /// The job as it is after it has waited for so long.
    pub(crate) fn waited(mut self, ns: u64) -> Self {
        self.job.start_ns = self.job.start_ns.saturating_sub(ns);
        self.job.deadline_ns = self.job.deadline_ns.saturating_sub(ns);
        self
    }

    /// The job as the runs before predict it, with its times of the planner's
    /// clock, which says `now_ns`.
    pub fn predicted(
        &self,
        history: &JobHistory,
        now_ns: u64,
    ) -> Result<(Job, Vec<Forecast>), Error> {
        let (job, forecasts) = predict(&self.job, history);
        let job = job.submitted_at(now_ns).ok_or_else(|| Error::Invalid {
            file: self.file.clone(),
            problems: vec![Problem::at(
                None,
                "its start or deadline is too late for the clock; write earlier ones",
            )],
        })?;
        Ok((job, forecasts))
    }

    /// Whether all of its programs are there: one whose are not must not keep others
    /// from running.
    pub fn with_programs(self) -> Result<Self, Error> {
        let processes = self.job.processes.iter();
        let commands = processes.flat_map(|process| process.start.commands());
        let missing = commands.filter_map(|command| path_of(command).err());
        let mut problems = Problems::default();
        problems.extend(missing);
        match problems.none() {
            Ok(()) => Ok(self),
            Err(problems) => Err(Error::Invalid { file: self.file, problems }),
        }
    }
}

impl Submission {
    /// Whether its programs, and their files, are there for this process in those surroundings:
    /// for who submits it to a service, which does not look. What earlier tasks of the job may
    /// make is not checked: the service resolves it in the slots after them.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`]: what is missing, in the words of a run without a service.
    pub fn with_files(&self, at: &Surroundings<'_>) -> Result<(), Error> {
        let processes = self.job.processes.iter();
        let commands: Vec<_> = processes.flat_map(|process| self.commands(process)).collect();
        let mut problems = Problems::default();
        problems.extend(check_programs(&commands, at));
        let file = self.file.clone();
        problems.none().map_err(|problems| Error::Invalid { file, problems })
    }

    /// The commands of a process. As at the gate, an input is opened late only if tasks of other
    /// processes come first; a program is looked for in its own slot.
    fn commands<'a>(&'a self, process: &'a Process) -> impl Iterator<Item = JobCommand<'a>> {
        let slots = process.tasks.iter().filter(|&&task| self.job.tasks[task].insns > 0);
        let waits: Vec<bool> = slots.map(|&task| self.waits_for_others(task)).collect();
        process.start.commands().iter().enumerate().map(move |(place, command)| {
            let before = match process.start {
                Start::Command(_) => waits.len(),
                Start::Commands(_) => place + 1,
                Start::Itself(_) | Start::Unsaid => 0,
            };
            let has_late_input = waits.iter().take(before).any(|waits| *waits);
            JobCommand { command, has_late_program: has_late_input || place > 0, has_late_input }
        })
    }

    /// Whether a task waits for tasks of other processes. A task without instructions has no
    /// slot, and hands on the tasks that it waits for.
    fn waits_for_others(&self, task: usize) -> bool {
        let job = &self.job;
        let mut is_seen = vec![false; job.tasks.len()];
        let mut way: Vec<usize> = job.predecessors(task).collect();
        while let Some(before) = way.pop() {
            if std::mem::replace(&mut is_seen[before], true) {
                continue;
            }
            if job.tasks[before].insns == 0 {
                way.extend(job.predecessors(before));
            } else if job.tasks[before].process != job.tasks[task].process {
                return true;
            }
        }
        false
    }
}

/// A turn of a task, where jobs that are admitted together say in which order their tasks
/// come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of its job among those that are submitted.
    pub submission: usize,
    /// Index of the task in its job.
    pub task: usize,
}

/// The most important first, and of those as they came; all of best effort behind all
/// others.
pub fn by_priority<T>(jobs: &mut [T], job: impl Fn(&T) -> &Job) {
    jobs.sort_by_key(|one| (job(one).best_effort, Reverse(job(one).priority)));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn missing(processes: &str) -> Vec<String> {
        let text = format!("name = \"a\"\ndeadline_ns = 1\n{processes}");
        let submission = Submission::from_text(text, "a.toml".into()).unwrap();
        let directory = Path::new("/");
        let output = Some(Path::new("/dev/null"));
        let at = Surroundings { directory, search_path: Some("/bin:/usr/bin"), output };
        match submission.with_files(&at) {
            Ok(()) => Vec::new(),
            Err(Error::Invalid { problems, .. }) => {
                problems.into_iter().map(|problem| problem.message).collect()
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// A compiler makes the program that a later process executes, and that makes its input.
    #[test]
    fn files_that_earlier_tasks_make_may_be_missing() {
        let first = "[[process]]\nid = 1\nmemory_bytes = 1\ncommand = [\"true\"]\n\
                     tasks = [{ id = 1, insns = 5 }]\n";
        let second = |task: &str| {
            format!(
                "{first}[[process]]\nid = 2\nmemory_bytes = 1\ncommand = [\"./no-app\"]\n\
                 stdin = \"no-input\"\ntasks = [{{ id = 2, insns = 5{task} }}]\n"
            )
        };
        assert_eq!(missing(&second(", after = [1]")), [] as [&str; 0]);
        let told = missing(&second(""));
        assert!(told.len() == 2 && told[0].contains("./no-app") && told[1].contains("no-input"));
        // The first command of a process may make the second, but not its input, which is opened
        // before any of them runs.
        let several = "[[process]]\nid = 1\nmemory_bytes = 1\n\
                       commands = [[\"true\"], [\"./no-app\"]]\ntasks = [5, 5]\n";
        assert_eq!(missing(several), [] as [&str; 0]);
        let told = missing(&several.replace("memory", "stdin = \"no-input\"\nmemory"));
        assert!(told.len() == 2 && told.iter().all(|one| one.contains("no-input")), "{told:?}");
        let told = missing(&several.replace("true", "no-cc"));
        assert!(told.len() == 1 && told[0].contains("no-cc"), "{told:?}");
    }
}
