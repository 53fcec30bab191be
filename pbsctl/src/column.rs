// SPDX-License-Identifier: GPL-2.0
//! Columns of lists of runs.

use std::fs;

use jiff::tz::TimeZone;
use jiff::Timestamp;
use pbs_job::cpu_list;
use pbs_text::{grouped, user_name};

use crate::row::{RunRow, STATES};
use crate::times::time;

const SECOND_NS: u64 = 1_000_000_000;

/// Key by which runs are ordered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Number(u64),
    Text(String),
}

/// A property of a run that can be shown.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) header: &'static str,
    pub(crate) help: &'static str,
    /// Shown when nothing else is asked for.
    pub(crate) by_default: bool,
    pub(crate) cell: fn(&RunRow, &Around) -> Option<String>,
    pub(crate) key: fn(&RunRow, &Around) -> Option<Key>,
}

/// Context in which cells are made.
pub(crate) struct Around {
    pub(crate) now_unix_ns: u64,
    pub(crate) zone: TimeZone,
    /// Lines of /etc/passwd.
    pub(crate) users: String,
}

#[rustfmt::skip]
pub(crate) static COLUMNS: [Column; 22] = [
    Column { name: "run", header: "RUN", by_default: true, help: "number of the run",
        cell: |run, _| Some(run.run.to_string()), key: |run, _| number(run.run) },
    Column { name: "job", header: "JOB", by_default: true, help: "name of the job",
        cell: |run, _| Some(run.job.clone()), key: |run, _| text(&run.job) },
    Column { name: "user", header: "USER", by_default: true, help: "user who submitted it",
        cell: user, key: |run, around| Some(Key::Text(user(run, around)?)) },
    Column { name: "for", header: "FOR", by_default: false, help: "purpose of the run",
        cell: |run, _| run.kind.clone(), key: |run, _| text(run.kind.as_ref()?) },
    Column { name: "state", header: "STATE", by_default: true,
        help: "held, waiting, planned, running or over",
        cell: |run, _| Some(run.state.clone()), key: |run, _| {
            number(STATES.iter().position(|state| *state == run.state)? as u64)
        } },
    Column { name: "priority", header: "PRIORITY", by_default: false,
        help: "priority: a greater one goes first",
        cell: |run, _| Some(run.priority?.to_string()),
        key: |run, _| number(run.priority?.into()) },
    Column { name: "best-effort", header: "BEST EFFORT", by_default: false,
        help: "whether it is run as best effort, without a promise",
        cell: |run, _| Some(if run.best_effort? { "yes" } else { "no" }.into()),
        key: |run, _| number(run.best_effort?.into()) },
    Column { name: "cpus", header: "CPUS", by_default: false,
        help: "CPUs to which it is confined",
        cell: |run, _| Some(cpu_list(run.cpus.as_ref()?)),
        key: |run, _| number((*run.cpus.as_ref()?.first()?).into()) },
    Column { name: "submitted", header: "SUBMITTED", by_default: true, help: "time of submission",
        cell: |run, around| Some(time(run.submitted_unix_ns, &around.zone)),
        key: |run, _| number(run.submitted_unix_ns) },
    Column { name: "age", header: "AGE", by_default: false, help: "time since submission",
        cell: |run, around| Some(span(around.now_unix_ns.saturating_sub(run.submitted_unix_ns))),
        key: |run, around| number(around.now_unix_ns.saturating_sub(run.submitted_unix_ns)) },
    Column { name: "expected-start", header: "EXPECTED START", by_default: false,
        help: "planned start",
        cell: |run, around| Some(time(run.expected_start_unix_ns?, &around.zone)),
        key: |run, _| number(run.expected_start_unix_ns?) },
    Column { name: "start", header: "START", by_default: false,
        help: "time of its first instruction in a slot",
        cell: |run, around| Some(time(run.begun_unix_ns?, &around.zone)),
        key: |run, _| number(run.begun_unix_ns?) },
    Column { name: "expected-end", header: "EXPECTED END", by_default: false,
        help: "planned end",
        cell: |run, around| Some(time(run.expected_end_unix_ns?, &around.zone)),
        key: |run, _| number(run.expected_end_unix_ns?) },
    Column { name: "end", header: "END", by_default: false,
        help: "time at which it was over",
        cell: |run, around| Some(time(run.ended_unix_ns?, &around.zone)),
        key: |run, _| number(run.ended_unix_ns?) },
    Column { name: "deadline", header: "DEADLINE", by_default: false,
        help: "time by which it must end",
        cell: |run, around| Some(time(run.deadline_unix_ns?, &around.zone)),
        key: |run, _| number(run.deadline_unix_ns?) },
    Column { name: "time", header: "TIME", by_default: true, help: "time that it has run",
        cell: |run, around| Some(span(time_ns(run, around)?)),
        key: |run, around| number(time_ns(run, around)?) },
    Column { name: "left", header: "LEFT", by_default: true,
        help: "time until its deadline; with a minus sign, the time since then",
        cell: left, key: |run, _| (run.state != "over").then_some(())
            .and_then(|()| number(run.deadline_unix_ns?)) },
    Column { name: "expected", header: "EXPECTED", by_default: false,
        help: "time until its planned end",
        cell: |run, around| Some(span(expected_ns(run, around)?)),
        key: |run, around| number(expected_ns(run, around)?) },
    Column { name: "done", header: "DONE", by_default: true,
        help: "ended tasks, and all known tasks that have instructions",
        cell: |run, _| {
            let tasks = run.tasks.filter(|&tasks| tasks > 0)?;
            Some(format!("{}/{}", grouped(run.tasks_ended? as u64), grouped(tasks as u64)))
        },
        key: |run, _| number((run.tasks_ended? as u64 * 1_000_000).checked_div(run.tasks? as u64)?) },
    Column { name: "outcome", header: "OUTCOME", by_default: true, help: "outcome of the run",
        cell: |run, _| run.outcome.clone(),
        key: |run, _| text(run.outcome.as_ref()?) },
    Column { name: "kept", header: "KEPT", by_default: false,
        help: "whether it met its deadline",
        cell: |run, _| Some(if run.kept? { "yes" } else { "NO" }.into()),
        key: |run, _| number(run.kept?.into()) },
    Column { name: "reason", header: "REASON", by_default: true,
        help: "reason why it waits or did not complete",
        cell: |run, _| run.reason.clone(), key: |run, _| text(run.reason.as_ref()?) },
];

/// The names of the columns.
pub(crate) fn column_names() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.name)
}

impl Around {
    pub(crate) fn new() -> Self {
        let now_ns = Timestamp::now().as_nanosecond();
        Self {
            now_unix_ns: u64::try_from(now_ns).unwrap_or(0),
            zone: TimeZone::system(),
            // Without it users are numbers.
            users: fs::read_to_string("/etc/passwd").unwrap_or_default(),
        }
    }
}

pub(crate) fn column(name: &str) -> Result<&'static Column, String> {
    let found = COLUMNS.iter().find(|column| column.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = column_names().collect();
        format!("there is no such column; write one of {}", names.join(", "))
    })
}

fn number(number: u64) -> Option<Key> {
    Some(Key::Number(number))
}

fn text(text: &str) -> Option<Key> {
    Some(Key::Text(text.into()))
}

pub(crate) fn user(run: &RunRow, around: &Around) -> Option<String> {
    let uid = run.uid?;
    Some(user_name(&around.users, uid).unwrap_or_else(|| uid.to_string()))
}

fn time_ns(run: &RunRow, around: &Around) -> Option<u64> {
    let until_ns = run.ended_unix_ns.unwrap_or(around.now_unix_ns);
    Some(until_ns.saturating_sub(run.begun_unix_ns?))
}

fn expected_ns(run: &RunRow, around: &Around) -> Option<u64> {
    let end_ns = run.expected_end_unix_ns.filter(|_| run.state != "over")?;
    Some(end_ns.saturating_sub(around.now_unix_ns))
}

fn left(run: &RunRow, around: &Around) -> Option<String> {
    let deadline_ns = run.deadline_unix_ns.filter(|_| run.state != "over")?;
    Some(match deadline_ns.checked_sub(around.now_unix_ns) {
        Some(left_ns) => span(left_ns),
        None => format!("-{}", span(around.now_unix_ns - deadline_ns)),
    })
}

/// A time span in full seconds, as squeue writes it: 0:07, 1:02:03, 4-05:06:07.
pub(crate) fn span(ns: u64) -> String {
    let s = ns / SECOND_NS;
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}
