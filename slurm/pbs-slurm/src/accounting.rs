// SPDX-License-Identifier: GPL-2.0
//! Slurm's accounting as a trace in the Standard Workload Format: a site can replay its own jobs
//! under other schedulers.
//!
//! The text is what [`SACCT`] prints: a line of titles, and a line for each job. A job's submission
//! is the time from which on it could start (`Eligible`): before, it waited for its own time or
//! for another job. Names of users, accounts, partitions and jobs become numbers in the order in
//! which they appear.

use std::collections::HashMap;
use std::fmt;

use pbs_cluster_sim::swf::{Header, Record};
use pbs_cluster_sim::Status;

use crate::states::{standing, Standing};

/// Command whose output is read.
pub const SACCT: &str = "SLURM_TIME_FORMAT=%s sacct -a -X -P -o JobIDRaw,JobName,User,Account,\
                         Partition,Submit,Eligible,Start,End,TimelimitRaw,ReqTRES,AllocTRES,State";

/// Columns that are read, in lower case.
const COLUMNS: [&str; 13] = [
    "jobidraw",
    "jobname",
    "user",
    "account",
    "partition",
    "submit",
    "eligible",
    "start",
    "end",
    "timelimitraw",
    "reqtres",
    "alloctres",
    "state",
];

/// Reasons for which lines are left out, or read in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Steps of jobs, which `sacct` prints without `-X`.
    pub steps: usize,
    /// Jobs that were not over.
    pub open: usize,
    /// Lines with another number of columns than there are titles: a name with a `|`.
    pub torn: usize,
    /// Lines without a number of cores or a time of submission.
    pub unknown: usize,
}

/// Says how many lines were left out, and why; empty if none was.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = [
            (self.steps, "of steps; print jobs alone with -X"),
            (self.open, "of jobs that are not over"),
            (self.torn, "with too many or too few columns, as names with | have"),
            (self.unknown, "without a number of cores or a submission"),
        ];
        let some = of.into_iter().filter(|(count, _)| *count > 0);
        let lines = |count| if count == 1 { "line" } else { "lines" };
        let all: Vec<_> =
            some.map(|(count, why)| format!("{count} {} {why}", lines(count))).collect();
        f.write_str(&all.join("; "))
    }
}

/// A trace of Slurm's accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Header of the trace: when it begins.
    pub header: Header,
    /// Jobs, in the order of their submission.
    pub records: Vec<Record>,
    /// Lines that are not in the trace.
    pub left_out: LeftOut,
}

/// Numbers for names, from 1 on.
#[derive(Debug, Default)]
struct Numbers<'a>(HashMap<&'a str, u64>);

impl<'a> Numbers<'a> {
    fn of(&mut self, name: &'a str) -> Option<u64> {
        let next = self.0.len() as u64 + 1;
        (!name.is_empty()).then(|| *self.0.entry(name).or_insert(next))
    }
}

/// Reads the accounting; `time_s` reads times that are no seconds since 1970.
///
/// # Errors
///
/// A column is missing, or a line has a time or a state that can't be read.
pub fn accounting(text: &str, time_s: impl Fn(&str) -> Option<u64>) -> Result<Accounting, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (_, titles) =
        lines.next().ok_or_else(|| format!("it is empty; write what {SACCT} prints"))?;
    let titles: Vec<String> =
        titles.split('|').map(|title| title.trim().to_ascii_lowercase()).collect();
    let places: Result<Vec<usize>, String> = COLUMNS
        .iter()
        .map(|column| {
            let found = titles.iter().position(|title| title == column);
            found.ok_or_else(|| format!("there is no column {column}; print jobs with {SACCT}"))
        })
        .collect();
    let places = places?;
    let mut users = [(); 4].map(|()| Numbers::default());
    let mut found: Vec<Record> = Vec::new();
    let mut left_out = LeftOut::default();
    for (number, line) in lines {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        // Without -P, but with -p, lines end with a sign.
        let is_whole = cells.len() == titles.len();
        let row: Option<Vec<&str>> = places.iter().map(|&at| cells.get(at).copied()).collect();
        let Some(row) = row.filter(|_| is_whole) else {
            left_out.torn += 1;
            continue;
        };
        let time =
            |text: &str| time_of(text, &time_s).map_err(|why| format!("line {number}: {why}"));
        let [id, name, user, account, partition, ref times @ .., state] = row[..] else {
            continue;
        };
        let &[submit, eligible, start, end, limit, req, alloc] = times else {
            continue;
        };
        if id.contains('.') {
            left_out.steps += 1;
            continue;
        }
        let Some(status) = status_of(state).map_err(|why| format!("line {number}: {why}"))? else {
            left_out.open += 1;
            continue;
        };
        let (start_s, end_s) = (time(start)?, time(end)?);
        let submit_s = time(submit)?.max(time(eligible)?);
        // A job that began before it was eligible was begun by hand.
        let submit_s = submit_s.map(|submit_s| submit_s.min(start_s.unwrap_or(submit_s)));
        let cores = number_of(alloc, "cpu").filter(|&cores| cores > 0);
        let asked = number_of(req, "cpu").filter(|&cores| cores > 0);
        let (Some(submit_s), Some(for_one)) = (submit_s, cores.or(asked)) else {
            left_out.unknown += 1;
            continue;
        };
        let span_s = start_s.zip(end_s).map(|(start_s, end_s)| end_s.saturating_sub(start_s));
        let kib = memory_kib(req).map(|kib| kib / for_one);
        let [user, account, partition, name] = [user, account, partition, name]
            .into_iter()
            .zip(&mut users)
            .map(|(of, numbers)| numbers.of(of))
            .collect::<Vec<_>>()[..]
        else {
            continue;
        };
        found.push(Record {
            number: id.parse().ok(),
            submit_s: Some(submit_s),
            wait_s: start_s.map(|start_s| start_s.saturating_sub(submit_s)),
            run_s: span_s,
            allocated_cores: cores,
            requested_cores: asked,
            // In minutes; otherwise the partition had none.
            requested_s: limit.parse::<u64>().ok().and_then(|minutes| minutes.checked_mul(60)),
            requested_kib: kib,
            status,
            user,
            group: account,
            executable: name,
            partition,
            ..Record::default()
        });
    }
    let begin_s = found.iter().filter_map(|of| of.submit_s).min().unwrap_or(0);
    for record in &mut found {
        record.submit_s = record.submit_s.map(|submit_s| submit_s - begin_s);
    }
    found.sort_by_key(|of| (of.submit_s, of.number));
    let mut header = Header::default();
    header.push("Computer", "a cluster with Slurm");
    header.push("UnixStartTime", &begin_s.to_string());
    header.push("MaxJobs", &found.len().to_string());
    header.push("MaxRecords", &found.len().to_string());
    Ok(Accounting { header, records: found, left_out })
}

/// A time of a job; `None`: there is none.
fn time_of(text: &str, time_s: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>, String> {
    if ["", "None", "Unknown", "N/A", "0"].contains(&text) {
        return Ok(None);
    }
    let seconds = text.parse().ok().or_else(|| time_s(text));
    seconds.map(Some).ok_or_else(|| format!("{text} is no time; print jobs with {SACCT}"))
}

/// Status of a job that is over; `None`: it is not. `CANCELLED by 1000` names who did it.
fn status_of(state: &str) -> Result<Option<Status>, String> {
    let word = state.split_whitespace().next().unwrap_or("");
    match standing(word) {
        Some(Standing::Open) => Ok(None),
        Some(Standing::Completed) => Ok(Some(Status::Completed)),
        Some(Standing::Cancelled) => Ok(Some(Status::Cancelled)),
        Some(Standing::Failed) => Ok(Some(Status::Failed)),
        None => Err(format!("{state:?} is no state of a job; print jobs with {SACCT}")),
    }
}

/// Text of a resource in `cpu=4,mem=16G,node=1`.
fn part<'a>(tres: &'a str, name: &str) -> Option<&'a str> {
    tres.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
}

fn number_of(tres: &str, name: &str) -> Option<u64> {
    part(tres, name)?.parse().ok()
}

/// The memory of a whole job; without a unit it is in MiB.
fn memory_kib(tres: &str) -> Option<u64> {
    let text = part(tres, "mem")?;
    let (number, shift) = match text.as_bytes().last()? {
        b'K' => (text.strip_suffix('K')?, 0),
        b'M' => (text.strip_suffix('M')?, 10),
        b'G' => (text.strip_suffix('G')?, 20),
        b'T' => (text.strip_suffix('T')?, 30),
        b'P' => (text.strip_suffix('P')?, 40),
        _ => (text, 10),
    };
    let number: f64 = number.parse().ok().filter(|number| (0.0..1e12).contains(number))?;
    Some((number * (1_u64 << shift) as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
JobIDRaw|JobName|User|Account|Partition|Submit|Eligible|Start|End|TimelimitRaw|ReqTRES|AllocTRES|State
7|sort|anna|physics|batch|1000|1060|1100|1400|10|billing=4,cpu=4,mem=8G,node=1|billing=4,cpu=4,mem=8G,node=1|COMPLETED
7.batch|batch||physics||1100|1100|1100|1400|||cpu=4,mem=8G,node=1|COMPLETED
8|scan|bob|physics|batch|1010|1010|None|1020|60|cpu=2,mem=500M,node=1||CANCELLED by 1001
9|pipe|anna|bio|long|2026-11-25T08:00:00|Unknown|2000|2600|UNLIMITED|cpu=1|cpu=8,node=2|TIMEOUT
10|now|bob|bio|long|1200|1200|1200|Unknown|5|cpu=1|cpu=1|RUNNING
11|a|b|bob|bio|long|1200|1200|1200|1300|5|cpu=1|cpu=1|COMPLETED
12|none|bob|bio|long|1200|1200|1200|1300|5|||FAILED
";

    fn read(text: &str) -> Result<Accounting, String> {
        accounting(text, |text| (text == "2026-11-25T08:00:00").then_some(1500))
    }

    #[test]
    fn jobs_become_lines_of_a_trace() {
        let read = read(TEXT).unwrap();
        let lines: Vec<String> = read.records.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                // Cancelled before it started, as the first of all: the trace begins with it.
                "8 0 -1 -1 -1 -1 -1 2 3600 256000 5 2 1 2 -1 1 -1 -1",
                // Its submission is the time from which on it could start.
                "7 50 40 300 4 -1 -1 4 600 2097152 1 1 1 1 -1 1 -1 -1",
                // Its partition had no limit.
                "9 490 500 600 8 -1 -1 1 -1 -1 0 1 2 3 -1 2 -1 -1",
            ]
        );
        assert_eq!(read.header.get("UnixStartTime"), Some("1010"));
        assert_eq!(
            read.left_out.to_string(),
            "1 line of steps; print jobs alone with -X; 1 line of jobs that are not over; 1 line \
             with too many or too few columns, as names with | have; 1 line without a number of \
             cores or a submission"
        );
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let titles = TEXT.lines().next().unwrap();
        let row = "1|a|b|c|d|1|1|1|2|5|cpu=1|cpu=1|COMPLETED";
        for (text, what) in [
            (String::new(), "it is empty; write what SLURM_TIME_FORMAT=%s sacct"),
            (titles.replace("|State", ""), "there is no column state; print jobs with"),
            (format!("{titles}\n{}", row.replace("|2|", "|soon|")), "line 2: soon is no time"),
            (format!("{titles}\n{row}ISH"), "line 2: \"COMPLETEDISH\" is no state of a job"),
        ] {
            let why = read(&text).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }
}
