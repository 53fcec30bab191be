// SPDX-License-Identifier: GPL-2.0
//! Figures of the service about jobs: their ends, their times and their memory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pbs_node_api::{Array, Job};

use crate::harness::{Context, Verdict};
use crate::service::{all, all_over, job, number, prepare, serve, with_log, DIR};
use crate::{check, check_eq};

/// Outcome of a job, whether it kept its deadline, the reason, and the exit status or the signal.
type End<'a> = (Option<&'a str>, Option<bool>, Option<&'a str>, Option<i32>, Option<&'a str>);

fn end(job: &Job) -> End<'_> {
    let Job { outcome, kept, reason, exit_code, signal, .. } = job;
    (outcome.as_deref(), *kept, reason.as_deref(), *exit_code, signal.as_deref())
}

/// Waits until a program has written a file.
fn wait_for_file(name: &str) -> Verdict {
    let until = Instant::now() + Duration::from_secs(60);
    while fs::metadata(format!("{DIR}/{name}")).is_err() {
        check!(Instant::now() < until, "nobody writes {name}");
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn of_name<'a>(jobs: &'a [Job], name: &str) -> Result<&'a Job, String> {
    jobs.iter().find(|job| job.name == name).ok_or_else(|| format!("no {name}: {jobs:?}"))
}

/// Only a job that did all in time keeps its deadline, and each other one has a reason: the same
/// in the list, in the details and in the log.
pub fn service_tells_each_end() -> Verdict {
    with_log(tells_each_end_inner)
}

fn tells_each_end_inner() -> Verdict {
    prepare()?;
    let (_service, mut client) = serve()?;
    let waits = "echo began > began; sleep 100";
    let submissions = [
        job("well", "true", 20_000_000, 60_000),
        job("fails", "exit 3", 20_000_000, 60_000),
        job("killed", "kill -9 $$", 20_000_000, 60_000),
        job("unwanted", waits, 20_000_000, 60_000),
    ];
    client.submit(&submissions).context("submit")?;
    wait_for_file("began")?;
    let jobs = all(&mut client)?;
    let unwanted = of_name(&jobs, "unwanted")?.number;
    client.cancel(&number(unwanted)).context("cancel")?;
    let over = all_over(&mut client)?;
    let ends = ["well", "fails", "killed", "unwanted"].map(|name| of_name(&over, name).map(end));
    let [well, fails, killed, unwanted] = ends;
    check_eq!(well?, (Some("complete"), Some(true), None, None, None), "well");
    let why = Some("failed (exit 3): sh of process 1");
    check_eq!(fails?, (Some("failed"), Some(false), why, Some(3), None), "fails");
    let why = Some("killed (SIGKILL): sh of process 1");
    check_eq!(killed?, (Some("killed"), Some(false), why, None, Some("SIGKILL")), "killed");
    let why = Some("cancelled by root");
    check_eq!(unwanted?, (Some("cancelled"), Some(false), why, None, None), "unwanted");
    for listed in &over {
        let shown = client.show(&number(listed.number)).context("show")?.job;
        check_eq!(&shown, listed, "details and list");
        check!(listed.begun_unix_ns > Some(listed.submitted_unix_ns), "begun: {listed:?}");
        check!(listed.begun_unix_ns < listed.ended_unix_ns, "ended: {listed:?}");
    }
    let log = fs::read_to_string(format!("{DIR}/log")).context("log")?;
    let words = "job fails has ended: failed (exit 3): sh of process 1, its deadline missed";
    check!(log.contains(words), "{words} is not in: {log}");
    Ok(())
}

/// Jobs begin in their own slots, one after the other, and not before their start.
pub fn service_begins_jobs_in_their_slots() -> Verdict {
    with_log(begins_jobs_in_their_slots_inner)
}

fn begins_jobs_in_their_slots_inner() -> Verdict {
    prepare()?;
    let (_service, mut client) = serve()?;
    let mut array = job("array", "sha256sum data > /dev/null", 100_000_000, 60_000);
    array.array = Some(Array { first: 1, last: 3, step: None });
    let mut later = job("later", "echo later > later", 20_000_000, 60_000);
    later.request = format!("start_ns = 2_000_000_000\n{}", later.request);
    let jobs = client.submit(&[array, later]).context("submit")?;
    for planned in jobs.iter().filter(|job| job.state == "planned") {
        check_eq!(planned.begun_unix_ns, None, "{planned:?}");
        check!(planned.expected_start_unix_ns.is_some(), "{planned:?}");
    }
    let over = all_over(&mut client)?;
    let mut begun: Vec<_> = over.iter().map(|job| job.begun_unix_ns).collect();
    check!(begun.iter().all(Option::is_some), "begun: {over:?}");
    begun.sort_unstable();
    begun.dedup();
    check_eq!(begun.len(), over.len(), "different begins: {over:?}");
    let later = of_name(&over, "later")?;
    let start_ns = later.submitted_unix_ns + 2_000_000_000;
    check!(later.begun_unix_ns >= Some(start_ns), "begun before its start: {later:?}");
    let written = fs::metadata(format!("{DIR}/later")).context("later")?;
    let written_ns = written.mtime() as u64 * 1_000_000_000 + written.mtime_nsec() as u64;
    // A file has the time of the last tick.
    check!(written_ns + 20_000_000 >= start_ns, "written {written_ns}, start {start_ns}");
    Ok(())
}
