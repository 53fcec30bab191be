// SPDX-License-Identifier: GPL-2.0
//! Without a plan: the programs of the job are started as ordinary ones, in the order that
//! its net asks for, on the CPUs that the step has.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};

use crate::net::{Net, Program, Stage};
use crate::{End, Error, Request, Waits};

/// Time that programs have to end after they were signalled to, as with the service.
const GRACE: Duration = Duration::from_secs(2);
/// Longest time between two checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Exit status of a shell for a program that could not be executed.
const NOT_EXECUTED: i32 = 127;

/// Runs the programs of the job to their end. `why`: why there is no plan.
///
/// # Errors
///
/// A process has nothing to run, or a file can't be written.
pub fn run(request: &Request<'_>, why: &str, waits: &mut dyn Waits) -> Result<End, Error> {
    let net = Net::new(request.job).map_err(Error::Invalid)?;
    waits.tell(&format!(
        "no plan: {why}; the programs run as ordinary ones, on CPUs {}",
        own_cpus()
    ));
    let mut running = Running::new(request, &net)?;
    let mut stopped: Option<Instant> = None;
    loop {
        if stopped.is_none() {
            running.start_ready(waits);
        }
        running.look();
        if running.children.iter().all(Option::is_none) {
            let is_over = running.stages.iter().all(|stage| *stage == Stage::Ended);
            match (stopped.is_some(), is_over) {
                (true, _) => return Ok(End::Cancelled),
                (false, true) => return Ok(running.end()),
                // What waited for those that have just ended.
                (false, false) => continue,
            }
        }
        // What has ended may be waited for by others.
        if stopped.is_none() && !net.ready(&running.stages).is_empty() {
            continue;
        }
        if waits.wait(LOOK) && stopped.is_none() {
            stopped = Some(Instant::now());
            running.signal(Signal::TERM);
        }
        if stopped.is_some_and(|at| at.elapsed() > GRACE) {
            running.signal(Signal::KILL);
        }
    }
}

/// The programs of a job, and their progress.
struct Running<'a> {
    request: &'a Request<'a>,
    net: &'a Net<'a>,
    stages: Vec<Stage>,
    /// Process of each program that runs.
    children: Vec<Option<Child>>,
    /// Exit status of each program that has ended, as of a shell.
    codes: Vec<i32>,
}

impl<'a> Running<'a> {
    fn new(request: &'a Request<'a>, net: &'a Net<'a>) -> Result<Self, Error> {
        // Several programs may write to the same file: it is empty before the first begins.
        let directory = Path::new(&request.submission.directory);
        let commands = net.programs.iter().map(|program| program.command);
        let named = commands.flat_map(|command| [&command.stdout, &command.stderr]);
        let named = named.flatten().map(PathBuf::as_path);
        let output = request.submission.output.as_deref().map(Path::new);
        for path in named.chain(output) {
            let path = directory.join(path);
            let emptied = File::create(&path);
            emptied.map_err(|error| Error::Invalid(format!("{}: {error}", path.display())))?;
        }
        let count = net.programs.len();
        Ok(Self {
            request,
            net,
            stages: vec![Stage::Waits; count],
            children: (0..count).map(|_| None).collect(),
            codes: vec![0; count],
        })
    }

    /// Starts those that can be. One that can't be executed has ended with that.
    fn start_ready(&mut self, waits: &mut dyn Waits) {
        for index in self.net.ready(&self.stages) {
            let program = &self.net.programs[index];
            self.stages[index] = match self.start(program) {
                Ok(child) => {
                    self.children[index] = Some(child);
                    Stage::Runs
                }
                Err(error) => {
                    let (name, process) = (&program.command.argv[0], program.process);
                    waits.tell(&format!("{name} of process {process}: {error}"));
                    self.codes[index] = NOT_EXECUTED;
                    Stage::Ended
                }
            };
        }
    }

    fn start(&self, program: &Program<'_>) -> io::Result<Child> {
        let submission = &self.request.submission;
        let directory = Path::new(&submission.directory);
        let write = |path: &Path| OpenOptions::new().append(true).open(directory.join(path));
        let output = submission.output.as_deref().map(Path::new);
        let of = |named: &Option<PathBuf>, own: Stdio| match named.as_deref().or(output) {
            Some(path) => write(path).map(Stdio::from),
            None => Ok(own),
        };
        let own_output =
            if self.request.output_to_error { io::stderr().into() } else { Stdio::inherit() };
        let command = program.command;
        let (name, arguments) = command.argv.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut started = Command::new(name);
        let variables = submission.environment.iter();
        let variables = variables.map(|variable| (&variable.name, &variable.value));
        // As the service has it, but for a number that nobody has given.
        let name = submission.name.as_ref().unwrap_or(&self.request.job.name);
        started
            .args(arguments)
            .env_clear()
            .envs(variables)
            .env("SCHED_PBS_JOB_NAME", name)
            .current_dir(directory)
            .stdin(match &command.stdin {
                // Opened only now: another program of the job may have made it.
                Some(path) => File::open(directory.join(path))?.into(),
                None => Stdio::null(),
            })
            .stdout(of(&command.stdout, own_output)?)
            .stderr(of(&command.stderr, Stdio::inherit())?);
        started.spawn()
    }

    /// Takes in which have ended.
    fn look(&mut self) {
        for (index, place) in self.children.iter_mut().enumerate() {
            let Some(child) = place else { continue };
            // One that can't be waited for is nobody's child any more.
            let status = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => status,
                Err(_) => ExitStatus::from_raw(NOT_EXECUTED << 8),
            };
            let signal = status.signal().map_or(NOT_EXECUTED, |signal| 128 + signal);
            self.codes[index] = status.code().unwrap_or(signal);
            self.stages[index] = Stage::Ended;
            *place = None;
        }
    }

    fn signal(&self, signal: Signal) {
        for child in self.children.iter().flatten() {
            // It was not waited for, so its number is still its own; it may have ended.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    fn end(&self) -> End {
        let failed = self.codes.iter().find(|code| **code != 0);
        failed.map_or(End::Well, |&code| End::Program(u8::try_from(code).unwrap_or(u8::MAX)))
    }
}

/// The CPUs of this process, as a list.
fn own_cpus() -> String {
    // Without /proc, the message says "that it has" in place of the list.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let cpus = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    cpus.map_or_else(|| "that it has".into(), |cpus| cpus.trim().into())
}
