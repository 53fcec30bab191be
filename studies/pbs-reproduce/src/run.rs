// SPDX-License-Identifier: GPL-2.0
//! Runs the commands of claims.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{kill_process_group, Pid, Signal};
use serde_json::Value;

use crate::{verdict, Claim, Claims, Reproduction, Set, TriedClaim, Verdict};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The repository, in which commands run.
    pub top: PathBuf,
    /// Directory for the files of commands, each in a folder of its own; its content is removed.
    pub out: PathBuf,
    /// Whether the claims of the full set are tried, too.
    pub full: bool,
    /// Whether the claims that measure time are left out.
    pub untimed: bool,
    /// Requirements of claims that this machine meets.
    pub has: Vec<String>,
    /// Number of commands that run at once, of those that don't measure time.
    pub jobs: usize,
    /// Time that a command may take.
    pub timeout: Duration,
}

/// Progress of a run when a command has ended.
#[derive(Debug)]
pub struct RunProgress<'a> {
    /// Number of commands that have ended, and of all.
    pub done: (usize, usize),
    /// The claims that it is about.
    pub ids: &'a [&'a str],
    /// Time that the command took.
    pub took: Duration,
}

/// The file with the output of a command.
const STDOUT: &str = "stdout";

/// Result of a command.
struct Output {
    json: Result<Value, String>,
    took: Duration,
    folder: PathBuf,
}

/// Tries all claims; each command runs once, however many claims it is about.
pub fn run(
    claims: &Claims,
    options: &Options,
    see: &(dyn Fn(&RunProgress<'_>) + Sync),
) -> io::Result<Reproduction> {
    // Before the commands run: files that change meanwhile are not what was built.
    let commit = commit(&options.top);
    let mut commands: BTreeMap<&str, Vec<&Claim>> = BTreeMap::new();
    for claim in &claims.claims {
        if let (Some(command), None) = (&claim.command, put_off(claim, options)) {
            commands.entry(command).or_default().push(claim);
        }
    }
    match fs::remove_dir_all(&options.out) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(&options.out)?,
    }
    let is_alone = |claims: &[&Claim]| claims.iter().any(|claim| claim.alone);
    let (alone, beside): (Vec<_>, Vec<_>) =
        commands.iter().partition(|(_, claims)| is_alone(claims));
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outputs = Mutex::new(BTreeMap::new());
    let carry_out = |command: &str, claims: &[&Claim]| {
        let output = execute(command, &claims[0].id, options);
        let ids: Vec<_> = claims.iter().map(|claim| claim.id.as_str()).collect();
        let number = done.fetch_add(1, Ordering::Relaxed) + 1;
        see(&RunProgress { done: (number, commands.len()), ids: &ids, took: output.took });
        let mut outputs = outputs.lock().unwrap_or_else(|it| it.into_inner());
        outputs.insert(command.to_string(), output);
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, beside.len().max(1)) {
            scope.spawn(|| {
                while let Some((command, claims)) = beside.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    carry_out(command, claims);
                }
            });
        }
    });
    for (command, claims) in alone {
        carry_out(command, claims);
    }
    let outputs = outputs.into_inner().unwrap_or_else(|it| it.into_inner());
    let row = |claim: &Claim| {
        let mut row = row(claim, options, &outputs);
        row.commit = row.took_ms.and(commit.clone());
        row
    };
    Ok(Reproduction {
        kind: Reproduction::KIND.into(),
        version: Reproduction::VERSION,
        machine: machine(),
        commit: commit.clone(),
        claims: claims.claims.iter().map(row).collect(),
    })
}

/// Reason why a claim is not tried this time.
fn put_off(claim: &Claim, options: &Options) -> Option<String> {
    if let Some(needs) = claim.needs.as_ref().filter(|it| !options.has.contains(it)) {
        let known = crate::claims::NEEDS.iter().find(|(name, _)| name == needs);
        let what = known.map_or("", |(_, what)| what);
        return Some(format!("it needs {what}"));
    }
    if claim.alone && options.untimed {
        return Some("it measures time".into());
    }
    match (claim.set, options.full) {
        (Set::Full, false) => Some("it takes long; FULL=1 make reproduce tries it".into()),
        _ => None,
    }
}

fn row(claim: &Claim, options: &Options, outputs: &BTreeMap<String, Output>) -> TriedClaim {
    let command = claim.command.as_deref();
    let output = command.and_then(|command| outputs.get(command));
    let (verdict, figures) = match (output, &claim.cannot) {
        (_, Some(because)) => {
            let because = because.clone();
            (Verdict::CannotBeTried { because }, Vec::new())
        }
        (Some(output), None) => match filtered(claim, output) {
            Ok(json) => verdict(claim, &json),
            Err(because) => (Verdict::Failed { because }, Vec::new()),
        },
        (None, None) => {
            let because = put_off(claim, options).unwrap_or_default();
            (Verdict::NotTried { because }, Vec::new())
        }
    };
    let picture = claim.picture.as_ref().zip(output);
    TriedClaim {
        id: claim.id.clone(),
        document: claim.document().short().into(),
        section: claim.section.clone(),
        says: claim.says.clone(),
        setup: claim.setup.clone(),
        command: claim.command.clone(),
        filter: claim.filter.clone(),
        verdict,
        figures,
        picture: picture.and_then(|(name, output)| {
            let path = output.folder.join(name);
            let there = path.is_file();
            there.then(|| path.strip_prefix(&options.out).unwrap_or(&path).display().to_string())
        }),
        drawn: claim.drawn.clone(),
        note: claim.note.clone(),
        took_ms: output.map(|output| output.took.as_millis() as u64),
        commit: None,
    }
}

/// The output of a command, through the filter of the claim.
fn filtered(claim: &Claim, output: &Output) -> Result<Value, String> {
    let json = output.json.clone()?;
    let Some(filter) = &claim.filter else {
        return Ok(json);
    };
    let jq = Command::new("jq")
        .arg(filter)
        .arg(output.folder.join(STDOUT))
        .output()
        .map_err(|error| format!("jq: {error}"))?;
    if !jq.status.success() {
        let said = String::from_utf8_lossy(&jq.stderr);
        return Err(format!("its filter: {}", said.trim_end()));
    }
    serde_json::from_slice(&jq.stdout).map_err(|error| format!("its filter: {error}"))
}

/// Runs a command to its end, which it has to come to in time, with all that it has started.
fn execute(command: &str, id: &str, options: &Options) -> Output {
    let folder = options.out.join(id);
    let began = Instant::now();
    let json = printed(command, &folder, options).and_then(|text| {
        serde_json::from_str(&text).map_err(|error| format!("it printed no JSON: {error}"))
    });
    Output { json, took: began.elapsed(), folder }
}

fn printed(command: &str, folder: &Path, options: &Options) -> Result<String, String> {
    let text = |error: io::Error| error.to_string();
    let (out, err) = (folder.join(STDOUT), folder.join("stderr"));
    fs::create_dir_all(folder).map_err(text)?;
    let mut child = Command::new("bash")
        .args(["-eu", "-o", "pipefail", "-c", command])
        .current_dir(&options.top)
        .env("OUT", folder)
        .stdin(Stdio::null())
        .stdout(File::create(&out).map_err(text)?)
        .stderr(File::create(&err).map_err(text)?)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("bash: {error}"))?;
    let group = Pid::from_child(&child);
    let until = Instant::now() + options.timeout;
    let status = loop {
        match child.try_wait().map_err(text)? {
            Some(status) => break status,
            None if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            None => {
                // It may have ended meanwhile.
                let _ = kill_process_group(group, Signal::KILL);
                child.wait().map_err(text)?;
                return Err(format!("it took more than {} s", options.timeout.as_secs_f64()));
            }
        }
    };
    if !status.success() {
        // The status is reported without a last line.
        let said = fs::read(&err).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.trim_end().lines().next_back().unwrap_or_default();
        return Err(format!("{status}: {last}"));
    }
    fs::read_to_string(&out).map_err(text)
}

/// The commit of a repository's files, with `-dirty` if some differ; `None` if git cannot tell.
fn commit(top: &Path) -> Option<String> {
    let git = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .current_dir(top)
        .output()
        .ok()?;
    let text = String::from_utf8(git.stdout).ok()?;
    Some(text.trim().to_string()).filter(|text| git.status.success() && !text.is_empty())
}

/// The machine, in a few words.
fn machine() -> String {
    // A machine without the file has an unknown CPU.
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = |line: &str| Some(line.strip_prefix("model name")?.split_once(": ")?.1.to_string());
    let model = cpus.lines().find_map(name).unwrap_or_else(|| "unknown CPU".into());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores, {model}")
}
