// SPDX-License-Identifier: GPL-2.0
//! Figures of the service about jobs: their ends, their times and their memory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pbs_node_api::{Array, Client, Job, Usage};

use crate::harness::{cvt, Context, Verdict};
use crate::service::{
    all, all_over, job, number, prepare, serve, serve_with_limits, with_log, DIR,
};
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

/// Programs whose memory is compared, with what they hold: windows of compressors, one buffer, a
/// whole file, lines, tables, and plans.
const PROGRAMS: [&[&str]; 12] = [
    &["bzip2", "-c", "text"],
    &["bunzip2", "-c", "text.bz2"],
    &["dd", "if=/dev/zero", "of=/dev/null", "bs=16M", "count=4"],
    &["dd", "if=/dev/zero", "of=/dev/null", "bs=3M", "count=4"],
    &["sort", "text"],
    &["sort", "-r", "-n", "text"],
    &["awk", "{ seen[$1] = $0 } END { for (key in seen) n++; print n }", "text"],
    &["tac", "text"],
    &["awk", "{ all[NR] = $0 } END { print all[NR / 2] }", "text"],
    &["dd", "if=/dev/zero", "of=/dev/null", "bs=8M", "count=2"],
    &["pbsctl", "gen", "normal"],
    &["pbsctl", "gen", "scatter-gather"],
];

/// Programs that have less memory than a child of this test before it executes them, with which
/// `wait4(2)` begins.
const SMALL_PROGRAMS: [&[&str]; 4] =
    [&["true"], &["sha256sum", "data"], &["gzip", "-c", "text"], &["od", "-x", "data"]];

/// The most memory that a program had, as `time -v` prints it: what `wait4(2)` says of a child
/// that was forked and has executed the program.
fn maximum_resident_bytes(words: &[&str]) -> Result<u64, String> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(DIR).stdin(Stdio::null()).stdout(Stdio::null());
    // A child that shares this memory until it executes the program would be charged with it.
    // SAFETY: nothing is done in the child.
    unsafe { command.pre_exec(|| Ok(())) };
    let child = command.spawn().context("spawn")?;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: there is room for both answers, and zeroes are one, too.
    let usage = unsafe {
        cvt(libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()))
            .context("wait4")?;
        usage.assume_init()
    };
    check_eq!(status, 0, "{words:?}");
    Ok(usage.ru_maxrss as u64 * 1024)
}

/// Tolerances of a peak: a share, and what is not counted yet of both figures, since the kernel
/// counts the pages of a process in batches on each CPU.
const PERCENT: u64 = 5;
const UNCOUNTED_BYTES: u64 = 256 << 10;

/// The memory of programs is what `time -v` says of them.
pub fn service_measures_memory() -> Verdict {
    with_log(measures_memory_inner)
}

fn measures_memory_inner() -> Verdict {
    prepare()?;
    let line = |number: u64| format!("{} {}\n", number * 7_919 % 60_013, number * number);
    let text: String = (0..60_000).map(line).collect();
    fs::write(format!("{DIR}/text"), text).context("text")?;
    maximum_resident_bytes(&["bzip2", "-k", "text"])?;
    let (_service, mut client) = serve()?;
    let mut wrong = String::new();
    for words in PROGRAMS {
        // Pages that a CPU has not counted yet are missing.
        let mut expected_bytes = 0;
        for _ in 0..5 {
            expected_bytes = expected_bytes.max(maximum_resident_bytes(words)?);
        }
        let bytes = peak_bytes(&mut client, words)?;
        let tolerance_bytes = (expected_bytes * PERCENT / 100).max(UNCOUNTED_BYTES);
        if bytes.abs_diff(expected_bytes) > tolerance_bytes {
            wrong.push_str(&format!("\n{words:?}: {bytes} bytes, {expected_bytes} expected"));
        }
    }
    for words in SMALL_PROGRAMS {
        let (bytes, limit_bytes) =
            (peak_bytes(&mut client, words)?, maximum_resident_bytes(words)?);
        if bytes == 0 || bytes > limit_bytes {
            wrong.push_str(&format!("\n{words:?}: {bytes} bytes, at most {limit_bytes} expected"));
        }
    }
    check!(wrong.is_empty(), "memory of programs:{wrong}");
    Ok(())
}

/// The most memory of a job that runs this program.
fn peak_bytes(client: &mut Client, words: &[&str]) -> Result<u64, String> {
    let mut job = job("program", "", 500_000_000, 60_000);
    job.request = job.request.replace("['sh', '-c', '''''']", &format!("{words:?}"));
    let submitted = client.submit(&[job]).context("submit")?;
    let over = all_over(client)?;
    let over = over.iter().find(|job| job.number == submitted[0].number).ok_or("no such job")?;
    check_eq!(over.outcome.as_deref(), Some("complete"), "{words:?}");
    let shown = client.show(&number(over.number)).context("show")?;
    Ok(shown.processes.iter().map(|process| process.peak_memory_bytes).sum())
}

/// Work of a child: 4 MB are hashed, which takes more than 100 million instructions.
const CHILD: &str = "sha256sum data data > /dev/null";
/// Least CPU time that this takes.
const CHILD_NS: u64 = 100_000_000;
/// Memory of another child.
const CHILD_BYTES: u64 = 16 << 20;

fn usage(client: &mut Client, job: u64) -> Result<Usage, String> {
    let shown = client.show(&number(job)).context("show")?;
    shown.usage.ok_or_else(|| format!("no resources of {:?}", shown.job))
}

/// A job counts all that its programs start, and its owner is told: while it runs, at its end, and
/// of a job that a later service has taken over.
pub fn service_counts_what_programs_start() -> Verdict {
    with_log(counts_what_programs_start_inner)
}

fn counts_what_programs_start_inner() -> Verdict {
    prepare()?;
    let (service, mut client) = serve_with_limits()?;
    let fills = format!("dd if=/dev/zero of=/dev/null bs={CHILD_BYTES} count=2 2> /dev/null");
    let script = format!("{fills}; {CHILD}; echo forked > forked; sleep 1");
    let started = [
        job("script", &script, 20_000_000, 60_000),
        job("exec", &format!("exec {CHILD}"), 300_000_000, 60_000),
    ];
    let jobs = client.submit(&started).context("submit")?;
    let (script, exec) = (jobs[0].number, jobs[1].number);
    wait_for_file("forked")?;
    let running = usage(&mut client, script)?;
    check!(running.others_cpu_ns >= Some(CHILD_NS), "while it runs: {running:?}");
    all_over(&mut client)?;
    let script = usage(&mut client, script)?;
    check!(script.others_cpu_ns >= Some(CHILD_NS), "script: {script:?}");
    check!(script.programs_cpu_ns < script.others_cpu_ns, "script: {script:?}");
    let told = script.advice.clone().unwrap_or_default();
    check!(told.starts_with("its programs started others, which used "), "told: {told}");
    check!(told.ends_with("start the program itself with exec"), "told: {told}");
    let log = fs::read_to_string(format!("{DIR}/log")).context("log")?;
    let words = "job script has ended: complete, its deadline kept; its programs started others";
    check!(log.contains(words), "{words} is not in: {log}");
    let exec = usage(&mut client, exec)?;
    check!(exec.programs_cpu_ns >= Some(CHILD_NS), "exec: {exec:?}");
    check!(exec.others_cpu_ns.is_some() && exec.advice.is_none(), "exec: {exec:?}");
    // The kernel of the tests counts the memory of groups, and the other one does not.
    match script.memory_source.as_deref() {
        Some("group") => {
            check!(script.peak_memory_bytes > Some(CHILD_BYTES), "memory: {script:?}");
        }
        source => {
            check_eq!(source, Some("class"), "source");
            check!(script.peak_memory_bytes < Some(CHILD_BYTES), "memory: {script:?}");
        }
    }
    let adopted = job("adopted", &format!("{CHILD}; echo > adopted; sleep 3"), 20_000_000, 60_000);
    let adopted = client.submit(&[adopted]).context("submit")?[0].number;
    wait_for_file("adopted")?;
    drop(service);
    let (_service, mut client) = serve_with_limits()?;
    let taken_over = usage(&mut client, adopted)?;
    check!(taken_over.cpu_ns >= Some(CHILD_NS), "taken over: {taken_over:?}");
    all_over(&mut client)?;
    let adopted = usage(&mut client, adopted)?;
    check!(adopted.cpu_ns >= taken_over.cpu_ns, "adopted: {adopted:?}");
    // Only the parent of a program knows what it has used.
    check_eq!((adopted.programs_cpu_ns, adopted.others_cpu_ns), (None, None), "{adopted:?}");
    Ok(())
}
