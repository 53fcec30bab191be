// SPDX-License-Identifier: GPL-2.0
//! The commands that ask the service of this node.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pbs_job::cpu_list;
use pbs_launch::{Limit, Surroundings};
use pbs_node::Declined;
use pbs_node_api::{
    Alteration, Array, Environment, Job, JobKey, Refusal, Shown, Status, Submission,
};
use pbs_text::{columns, grouped, program_end, shown as foreign, span};
use serde_json::json;

use crate::complete;
use crate::failure::Failure;
use crate::files::{self, Kind};
use crate::output::Output;
use crate::quantities::ns;
use crate::socket::Socket;
use crate::times::{local, local_ms};

/// Terms on which a job is submitted to the service.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Name of the job, instead of that in its file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Priority, instead of that in the file; only operators may use more than 0
    #[arg(long, value_name = "N")]
    priority: Option<u32>,

    /// Deadline counted from the submission, such as 90s, instead of that in the file
    #[arg(long, value_name = "TIME", value_parser = ns)]
    deadline: Option<u64>,

    /// Run the job as best effort: behind all jobs with a promise, and without one
    #[arg(long)]
    pub(crate) best_effort: bool,

    /// Hold the job until it is released
    #[arg(long)]
    hold: bool,

    /// Plan the job when these jobs have ended
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    after: Vec<u64>,

    /// Plan the job when these jobs have succeeded; cancel it if one does not
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    afterok: Vec<u64>,

    /// Submit the job once for each index, which programs find in SCHED_PBS_ARRAY_INDEX: 1-10, or
    /// 0-8:2
    #[arg(long, value_name = "FIRST-LAST[:STEP]", value_parser = array)]
    array: Option<Array>,

    /// File for the output of programs that name no file [default: NAME-NUMBER.out]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Working directory of the programs [default: the present directory]
    #[arg(long, value_name = "DIRECTORY")]
    chdir: Option<PathBuf>,
}

impl Terms {
    /// Terms of the job file, with that file for the output of programs.
    pub(crate) fn with_output(output: Option<PathBuf>) -> Self {
        Self { output, ..Self::default() }
    }

    /// Whether something was asked for that only the service can do.
    pub(crate) fn needs_service(&self) -> bool {
        self.name.is_some()
            || self.priority.is_some()
            || self.deadline.is_some()
            || self.hold
            || !self.after.is_empty()
            || !self.afterok.is_empty()
            || self.array.is_some()
            || self.output.is_some()
            || self.chdir.is_some()
    }
}

/// A job: its number, or its name if there is one of it.
#[derive(Args, Debug)]
pub(crate) struct Which {
    /// Number or name of the job
    #[arg(add = complete::jobs())]
    pub(crate) job: String,

    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// The job that is meant: a number is one.
fn key(job: &str) -> JobKey {
    match job.parse() {
        Ok(number) => JobKey { number: Some(number), name: None },
        Err(_) => JobKey { number: None, name: Some(job.into()) },
    }
}

const ALTER_HELP: &str = "\
Examples:
  pbsctl job alter 12 --deadline 90s        Change the deadline of a job
  pbsctl job alter sort --priority 5        Change its priority
  pbsctl job alter 12 --file sort.toml      Replace the job while it waits

Deadlines count from the submission. A deadline that the job's plan can't meet is declined; the
answer has the earliest that would be accepted.";

#[derive(Args, Debug)]
#[command(after_help = ALTER_HELP)]
pub(crate) struct AlterOptions {
    #[command(flatten)]
    which: Which,

    /// New deadline, counted from the submission, such as 90s
    #[arg(long, value_name = "TIME", value_parser = ns)]
    deadline: Option<u64>,

    /// New priority; only operators may use more than 0
    #[arg(long, value_name = "N")]
    priority: Option<u32>,

    /// New job file, while the job waits; only its owner can change it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

const WATCH_HELP: &str = "\
Examples:
  pbsctl job watch             Follow all jobs until interrupted
  pbsctl job watch 12          Follow one job until it has ended
  pbsctl --json job watch | jq .kind";

#[derive(Args, Debug)]
#[command(after_help = WATCH_HELP)]
pub(crate) struct WatchOptions {
    /// Number or name of the job; without it, all jobs
    #[arg(add = complete::jobs())]
    job: Option<String>,

    #[command(flatten)]
    socket: Socket,
}

pub(crate) fn submit(
    out: Output,
    socket: &Socket,
    files: &[PathBuf],
    terms: &Terms,
) -> Result<ExitCode, Failure> {
    let submissions = files.iter().map(|file| submission(file, terms));
    let submissions: Vec<_> = submissions.collect::<Result<_, _>>()?;
    submissions.iter().try_for_each(has_files)?;
    let jobs = socket.connect()?.submit(&submissions)?;
    out.print(&json!({ "submitted": jobs }), || jobs.iter().map(submitted).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the programs and files of a job are there, for this user and now. Jobs before it may
/// make those of a job that follows others. What is wrong with the job itself, the service says.
fn has_files(submission: &Submission) -> Result<(), Failure> {
    let Submission { request, file, directory, environment, output, .. } = submission;
    let follows = submission.after.is_some() || submission.afterok.is_some();
    let job = pbs_node::Submission::from_text(request.clone(), file.clone());
    // The service reports what is wrong with the job itself.
    let Some(job) = job.ok().filter(|_| !follows) else {
        return Ok(());
    };
    let path = environment.iter().rev().find(|variable| variable.name == "PATH");
    Ok(job.with_files(&Surroundings {
        directory: Path::new(directory),
        search_path: path.map(|path| path.value.as_str()),
        output: output.as_deref().map(Path::new),
    })?)
}

/// Describes the state of a job that was just submitted.
fn submitted(job: &Job) -> String {
    let (number, name) = (job.number, foreign(&job.name));
    let from_now = |unix_ns: u64| span(unix_ns.saturating_sub(job.submitted_unix_ns));
    match (job.expected_start_unix_ns, job.expected_end_unix_ns) {
        (Some(start), Some(end)) => format!(
            "Job {number} ({name}) is {}: it begins in {} and ends in {}{}.\n",
            job.state,
            from_now(start),
            from_now(end),
            job.deadline_unix_ns.map_or_else(String::new, |deadline| {
                format!("; its deadline is in {}", from_now(deadline))
            })
        ),
        _ => format!(
            "Job {number} ({name}) is {}: {}.\n",
            job.state,
            foreign(job.reason.as_deref().unwrap_or("it is not planned yet"))
        ),
    }
}

/// A job with all that its programs are to have of this command.
pub(crate) fn submission(file: &Path, terms: &Terms) -> Result<Submission, Failure> {
    let request = files::read(file)?;
    files::expect(Kind::Job, &request, file)?;
    let here = std::env::current_dir().map_err(|error| Failure::file(".", &error))?;
    let directory = match &terms.chdir {
        Some(directory) => here.join(directory),
        None => here,
    };
    let text = |path: &Path| path.display().to_string();
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        Some(Environment { name: name.into_string().ok()?, value: value.into_string().ok()? })
    });
    let some = |bytes: u64| Some(bytes).filter(|&bytes| bytes != u64::MAX);
    let limits = Limit::own().into_iter().map(|limit| pbs_node_api::Limit {
        resource: limit.resource,
        soft: some(limit.soft),
        hard: some(limit.hard),
    });
    let list = |jobs: &[u64]| Some(jobs.to_vec()).filter(|jobs| !jobs.is_empty());
    Ok(Submission {
        file: files::name(file),
        request,
        name: terms.name.clone(),
        priority: terms.priority,
        deadline_ns: terms.deadline,
        best_effort: Some(terms.best_effort),
        hold: Some(terms.hold),
        after: list(&terms.after),
        afterok: list(&terms.afterok),
        array: terms.array,
        directory: text(&directory),
        umask: umask()?,
        environment: variables.collect(),
        limits: Some(limits.collect()),
        output: terms.output.as_deref().map(text),
        allocation: None,
    })
}

/// The file mode creation mask, which nobody can ask for without setting it.
fn umask() -> Result<u32, Failure> {
    let file = "/proc/self/status";
    let status = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    mask.ok_or_else(|| {
        Failure::Failed(format!("{file}: it has no line Umask; Linux 4.7 or later is needed"))
    })
}

pub(crate) fn cancel(out: Output, which: &Which) -> Result<ExitCode, Failure> {
    shown(out, which.socket.connect()?.cancel(&key(&which.job))?)
}

pub(crate) fn hold(out: Output, which: &Which) -> Result<ExitCode, Failure> {
    shown(out, which.socket.connect()?.hold(&key(&which.job))?)
}

pub(crate) fn release(out: Output, which: &Which) -> Result<ExitCode, Failure> {
    shown(out, which.socket.connect()?.release(&key(&which.job))?)
}

pub(crate) fn job(out: Output, which: &Which) -> Result<ExitCode, Failure> {
    shown(out, which.socket.connect()?.show(&key(&which.job))?)
}

pub(crate) fn alter(out: Output, options: &AlterOptions) -> Result<ExitCode, Failure> {
    let request = options.file.as_deref().map(files::read).transpose()?;
    let alteration =
        Alteration { deadline_ns: options.deadline, priority: options.priority, request };
    if alteration == Alteration::default() {
        let what = "nothing to change is given; add --deadline, --priority or --file";
        return Err(Failure::Usage(what.into()));
    }
    let AlterOptions { which, .. } = options;
    shown(out, which.socket.connect()?.alter(&key(&which.job), &alteration)?)
}

fn shown(out: Output, shown: Shown) -> Result<ExitCode, Failure> {
    out.print(&shown, || {
        let job = &shown.job;
        let at = |unix_ns: Option<u64>| unix_ns.map(local_ms);
        let rows = [
            ("Job", Some(format!("{} ({})", job.number, job.name))),
            ("State", Some(job.state.clone())),
            ("Reason", job.reason.clone()),
            ("Outcome", job.outcome.clone()),
            ("User", job.uid.map(|uid| uid.to_string())),
            ("Priority", job.priority.map(|priority| priority.to_string())),
            ("Best effort", job.best_effort.map(|is| if is { "yes".into() } else { "no".into() })),
            ("CPUs", job.cpus.as_deref().map(cpu_list)),
            ("Submitted", at(Some(job.submitted_unix_ns))),
            ("Deadline", at(job.deadline_unix_ns)),
            ("Expected start", at(job.expected_start_unix_ns)),
            ("Expected end", at(job.expected_end_unix_ns)),
            ("Start", at(job.begun_unix_ns)),
            ("End", at(job.ended_unix_ns)),
            ("Exit", job.exit_code.map(|code| code.to_string())),
            ("Signal", job.signal.clone()),
            ("In time", job.kept.map(|kept| if kept { "yes".into() } else { "NO".into() })),
        ];
        let rows = rows.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut text: String = rows.map(|(name, value)| row(name, &value)).collect();
        if !shown.processes.is_empty() {
            let header = ["PROCESS", "OUTCOME", "TASKS", "PLANNED", "RETIRED"];
            let mut table = vec![header.map(String::from).to_vec()];
            table.extend(shown.processes.iter().map(|process| {
                let name = process.name.clone();
                vec![
                    name.unwrap_or_else(|| process.number.to_string()),
                    process.outcome.clone(),
                    format!("{}/{}", process.ended_tasks, process.tasks),
                    grouped(process.planned_insns),
                    grouped(process.retired_insns),
                ]
            }));
            text.push('\n');
            text.push_str(&columns(&table, 2));
        }
        for program in &shown.programs {
            let end = program_end(program.code, program.signal, program.error.as_deref());
            let end = end.unwrap_or_else(|| "has no result".into());
            text.push_str(&format!("{} {}\n", foreign(&program.program), foreign(&end)));
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A row of a job's details. The value may hold text of the job's owner.
fn row(name: &str, value: &str) -> String {
    format!("{name:<14} {}\n", foreign(value))
}

pub(crate) fn drain(out: Output, socket: &Socket, drained: bool) -> Result<ExitCode, Failure> {
    let status = socket.connect()?.drain(drained)?;
    tell_status(out, &status)
}

pub(crate) fn status(out: Output, socket: &Socket) -> Result<ExitCode, Failure> {
    let status = socket.connect()?.status()?;
    tell_status(out, &status)
}

fn tell_status(out: Output, status: &Status) -> Result<ExitCode, Failure> {
    out.print(status, || {
        let mut text = format!(
            "pbsd {} is {} since {}, on {} with {} instructions a millisecond.\n\
             {} jobs run, {} are planned, {} wait.\n",
            status.version,
            status.state,
            local(status.since_unix_ns),
            status.kernel,
            grouped(status.rate_insns_per_ms),
            status.running,
            status.planned,
            status.waiting
        );
        if !status.recorded {
            text.push_str("Some results could not be recorded; see journalctl -u pbsd.\n");
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn watch(out: Output, options: &WatchOptions) -> Result<ExitCode, Failure> {
    let key = options.job.as_deref().map(key);
    let mut printed = Ok(());
    let is_one = key.is_some();
    options.socket.connect()?.watch(key.as_ref(), |notice| {
        let is_over = is_one && notice.kind == "over";
        printed = out.print_line(&notice, || {
            let job = notice.job.map_or_else(|| "-".into(), |job| job.to_string());
            let text = foreign(&notice.text);
            format!("{}  {job}  {}  {text}", local(notice.unix_ns), notice.kind)
        });
        printed.is_ok() && !is_over
    })?;
    printed.map(|()| ExitCode::SUCCESS)
}

/// The indices of `1-10` or `0-8:2`.
fn array(text: &str) -> Result<Array, String> {
    let read = || {
        let (range, step) = match text.split_once(':') {
            Some((range, step)) => (range, Some(step.parse().ok()?)),
            None => (text, None),
        };
        let (first, last) = range.split_once('-')?;
        let array = Array { first: first.parse().ok()?, last: last.parse().ok()?, step };
        (array.first <= array.last && step != Some(0)).then_some(array)
    };
    read().ok_or_else(|| "write the first and the last index, such as 1-10, or 0-8:2".into())
}

/// A refusal of the service has the exit status that it has without a service.
impl From<pbs_node_api::Failure> for Failure {
    fn from(failure: pbs_node_api::Failure) -> Self {
        match failure {
            pbs_node_api::Failure::Refused(Refusal::Declined {
                job,
                why,
                earliest_deadline_ns,
            }) => Self::Declined(Declined { file: "pbsd".into(), job, why, earliest_deadline_ns }),
            pbs_node_api::Failure::Refused(Refusal::Invalid { problems, .. }) => {
                Self::NotValid(problems)
            }
            other => Self::Failed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The job of another user adds no row, and does nothing to the terminal.
    #[test]
    fn text_of_a_job_stays_in_its_row() {
        let value = "true\nState      over\u{1b}[2J\u{202e}";
        assert_eq!(
            row("Reason", value),
            "Reason         true\\nState      over\\u001B[2J\\u202E\n"
        );
        let job = Job { number: 3, name: value.into(), ..Job::default() };
        assert_eq!(submitted(&job).matches('\n').count(), 1);
    }

    /// The words are those of a run without the service.
    #[test]
    fn a_missing_program_is_named_before_the_service_is_asked() {
        let request = "name = \"a\"\ndeadline_ns = 1\n[[process]]\nid = 1\nmemory_bytes = 1\n\
                       command = [\"no-such-program\"]\ntasks = [1]\n";
        let submission = Submission {
            file: "a.toml".into(),
            request: request.into(),
            directory: "/".into(),
            output: Some("/dev/null".into()),
            ..Submission::default()
        };
        let told = has_files(&submission).unwrap_err();
        let job = pbs_node::Submission::from_text(request.into(), "a.toml".into()).unwrap();
        let run = Failure::from(job.with_programs().unwrap_err());
        assert_eq!(format!("{told:?}"), format!("{run:?}"));
        assert!(format!("{told:?}").contains("there is no program no-such-program"));
        // A job before it may make the program; a job that is wrong is the service's to refuse.
        let follows = Submission { afterok: Some(vec![7]), ..submission.clone() };
        assert!(has_files(&follows).is_ok());
        assert!(has_files(&Submission { request: "name = 7".into(), ..submission }).is_ok());
    }

    #[test]
    fn arrays_are_ranges() {
        let of = |first, last, step| Ok(Array { first, last, step });
        assert_eq!(array("1-10"), of(1, 10, None));
        assert_eq!(array("0-8:2"), of(0, 8, Some(2)));
        for wrong in ["", "5", "5-", "-5", "9-1", "1-9:0", "1-9:x", "a-b"] {
            assert!(array(wrong).unwrap_err().contains("such as 1-10"), "{wrong}");
        }
    }
}
