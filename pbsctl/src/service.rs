// SPDX-License-Identifier: GPL-2.0
//! The commands that ask the service of this node.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pbs_job::{cpu_list, job_from_toml, now_unix_ns, with_spans, with_values, Worth, MAX_AMOUNT};
use pbs_launch::{Limit, Surroundings};
use pbs_node::Declined;
use pbs_node_api::{
    Alteration, Environment, Job, JobKey, Refusal, Resource, Shown, Status, Submission, Usage,
};
use pbs_text::{bytes, columns, grouped, program_end, shown as foreign, span};
use serde_json::json;

use crate::column::{user, Around};
use crate::complete;
use crate::failure::Failure;
use crate::files::{self, Kind};
use crate::hints::report_hints;
use crate::output::Output;
use crate::row::RunRow;
use crate::socket::Socket;
use crate::terms::{Terms, When, WorthOptions};
use crate::times::{local, local_ms};

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
pub(crate) fn key(job: &str) -> JobKey {
    match job.parse() {
        Ok(number) => JobKey { number: Some(number), name: None },
        Err(_) => JobKey { number: None, name: Some(job.into()) },
    }
}

const ALTER_HELP: &str = "\
Examples:
  pbsctl job alter 12 --deadline 90s        Change the deadline of a job
  pbsctl job alter sort --priority 5        Change its priority
  pbsctl job alter 12 --value 50            Change its value while it waits
  pbsctl job alter 12 --file sort.toml      Replace the job while it waits

Deadlines with a unit count from the submission. A deadline that the job's plan can't meet is declined; the
answer has the earliest that would be accepted.";

#[derive(Args, Debug)]
#[command(after_help = ALTER_HELP)]
pub(crate) struct AlterOptions {
    #[command(flatten)]
    which: Which,

    /// New deadline: counted from the submission, such as 90s, or a date and a time, such as
    /// 2026-11-27T08:00
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    deadline: Option<When>,

    /// New priority; only operators may use more than 0
    #[arg(long, value_name = "N")]
    priority: Option<u32>,

    #[command(flatten)]
    worth: WorthOptions,

    /// New job file, while the job waits; only its owner can change it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) const SET_RESOURCE_HELP: &str = "\
Examples:
  pbsctl service set-resource matlab 0      Promise no licence while the software is updated
  pbsctl service set-resource matlab 3      Promise three at a time from now on

Jobs that need more than there is wait for it. Their deadlines count nevertheless.";

#[derive(Args, Debug)]
pub(crate) struct SetResourceOptions {
    /// Name of the resource, as in the file of the machine
    name: String,

    /// Amount that new jobs may hold together at any time; 0: none
    #[arg(value_parser = clap::value_parser!(u64).range(..=MAX_AMOUNT))]
    amount: u64,

    #[command(flatten)]
    socket: Socket,
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
    submissions.iter().for_each(|job| report_hints(out, &job.request, &job.file));
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
    submission_of(request, file, terms)
}

/// Like [`submission`], of a request that was read from `file`.
pub(crate) fn submission_of(
    request: String,
    file: &Path,
    terms: &Terms,
) -> Result<Submission, Failure> {
    let request = with_times(request, file, terms)?;
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
        deadline_ns: terms.deadline()?,
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

/// The file of a job with the start and the value of the command line, and with spans in the place of points in
/// time: the zone is that of this user.
fn with_times(request: String, file: &Path, terms: &Terms) -> Result<String, Failure> {
    let spans = with_spans(&request, now_unix_ns())
        .map_err(|problems| Failure::Invalid { file: files::name(file), problems })?
        .into_owned();
    let start = terms.start()?.map(|ns| ("start_ns", ns.to_string()));
    let values: Vec<_> = start.into_iter().chain(terms.worth.values()).collect();
    Ok(with_values(&spans, &values))
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

pub(crate) fn checkpoint(out: Output, which: &Which) -> Result<ExitCode, Failure> {
    let notified = which.socket.connect()?.checkpoint(&key(&which.job))?;
    out.print(&notified, || match notified.processes {
        0 => "No process of the job handles the signal of its checkpoint.\n".into(),
        processes => format!("Asked {processes} processes of the job to save their work.\n"),
    })?;
    Ok(ExitCode::SUCCESS)
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
    let AlterOptions { which, deadline, priority, worth, .. } = options;
    let worth = worth.values();
    if deadline.is_none() && priority.is_none() && request.is_none() && worth.is_empty() {
        let what = "nothing to change is given; add --deadline, --priority, --value, --penalty or \
                    --file";
        return Err(Failure::Usage(what.into()));
    }
    let (mut client, key) = (which.socket.connect()?, key(&which.job));
    let request = match request {
        request if worth.is_empty() => request,
        Some(request) => Some(with_values(&request, &worth)),
        // The job file of the job itself, with these values.
        None => Some(with_values(&own_request(client.show(&key)?)?, &worth)),
    };
    let deadline_ns = match deadline {
        None => None,
        Some(When::Span(ns)) => Some(*ns),
        // Deadlines count from the submission, which only the service knows.
        Some(moment @ When::Moment(_)) => {
            let submitted_unix_ns = client.show(&key)?.job.submitted_unix_ns;
            Some(moment.after_ns("--deadline", submitted_unix_ns)?)
        }
    };
    let alteration = Alteration { deadline_ns, priority: *priority, request };
    shown(out, client.alter(&key, &alteration)?)
}

/// The job file of a job that waits: only that of such a job can be changed.
fn own_request(shown: Shown) -> Result<String, Failure> {
    let Job { number, state, .. } = shown.job;
    let is_waiting = matches!(state.as_str(), "waiting" | "held");
    shown.request.filter(|_| is_waiting).ok_or_else(|| {
        Failure::Failed(if is_waiting {
            format!("job {number} is another user's; only its owner can change its value")
        } else {
            format!("job {number} is {state}; its value can be changed only while it waits")
        })
    })
}

pub(crate) fn shown(out: Output, shown: Shown) -> Result<ExitCode, Failure> {
    out.print(&shown, || {
        let job = &shown.job;
        // Words are those of the list.
        let (run, around) = (RunRow::from(job.clone()), Around::new());
        let at = |unix_ns: Option<u64>| unix_ns.map(local_ms);
        let worth = shown.request.as_deref().and_then(declared_worth);
        let rows = [
            ("Job", Some(format!("{} ({})", job.number, job.name))),
            ("State", Some(job.state.clone())),
            ("Reason", job.reason.clone()),
            ("Outcome", run.outcome.clone()),
            ("User", user(&run, &around)),
            ("Priority", job.priority.map(|priority| priority.to_string())),
            ("Value", worth.map(|worth| grouped(worth.value))),
            ("Penalty", worth.map(|worth| grouped(worth.penalty))),
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
            ("CPU time", shown.usage.as_ref().and_then(cpu_time)),
            ("Memory", shown.usage.as_ref().and_then(memory)),
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
                    run.process_outcome(&process.outcome).unwrap_or("-").into(),
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
        let advice = shown.usage.as_ref().and_then(|usage| usage.advice.as_deref());
        if let Some(advice) = advice {
            text.push_str(&format!("\nJob {}: {}.\n", job.number, foreign(advice)));
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

/// CPU time of a job, and the part of it that its plan does not have.
fn cpu_time(usage: &Usage) -> Option<String> {
    let outside = match usage.others_cpu_ns {
        Some(ns) => format!("{} of it outside of the plan", span(ns)),
        None => "unknown how much of it outside of the plan".into(),
    };
    usage.cpu_ns.map(|ns| format!("{}, {outside}", span(ns)))
}

/// The most memory of a job, and its source.
fn memory(usage: &Usage) -> Option<String> {
    let source = match usage.memory_source.as_deref() {
        Some("group") => "control group, with file cache",
        _ => "class, without what programs start",
    };
    usage.peak_memory_bytes.map(|peak| format!("{} ({source})", bytes(peak)))
}

/// Value and penalty of a job file, if it declares others than those of every job.
fn declared_worth(request: &str) -> Option<Worth> {
    let worth = job_from_toml(request).ok()?.worth;
    (worth != Worth::default()).then_some(worth)
}

/// A row of a job's details. The value may hold text of the job's owner.
fn row(name: &str, value: &str) -> String {
    format!("{name:<14} {}\n", foreign(value))
}

pub(crate) fn drain(out: Output, socket: &Socket, drained: bool) -> Result<ExitCode, Failure> {
    let status = socket.connect()?.drain(drained)?;
    tell_status(out, &status)
}

pub(crate) fn set_resource(out: Output, options: &SetResourceOptions) -> Result<ExitCode, Failure> {
    let SetResourceOptions { name, amount, socket } = options;
    let status = socket.connect()?.set_resource(name, *amount)?;
    tell_status(out, &status)
}

pub(crate) fn status(out: Output, socket: &Socket) -> Result<ExitCode, Failure> {
    let status = socket.connect()?.status()?;
    tell_status(out, &status)
}

fn tell_status(out: Output, status: &Status) -> Result<ExitCode, Failure> {
    out.print(status, || {
        let mut text = format!(
            "pbsd {} is {}; it was started {}, on {} with {} instructions a millisecond.\n\
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
        status.resources.iter().flatten().for_each(|of| text.push_str(&resource_line(of)));
        if !status.recorded {
            text.push_str("Some results could not be recorded; see journalctl -u pbsd.\n");
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The line of a resource in the state of the service.
fn resource_line(resource: &Resource) -> String {
    let Resource { name, amount, declared, promised } = resource;
    let of = if amount == declared {
        String::new()
    } else {
        format!(", set in place of {}", grouped(*declared))
    };
    let kept = if promised > amount { ", which they keep" } else { "" };
    let (amount, promised) = (grouped(*amount), grouped(*promised));
    format!("Resource {}: {amount}{of}; jobs hold up to {promised}{kept}.\n", foreign(name))
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
}
