// SPDX-License-Identifier: GPL-2.0
//! The command that runs a plan or jobs: writes the plan, starts its processes,
//! and follows it to its end. What runs jobs answers the prediction failures of
//! the node with new plans ([`jobs`]).
//!
//! On a CPU of the plan pbsctl is a normal process and may hardly run. So
//! nothing of the plan waits for it once the programs are released; it only
//! reads, many events at a time.

mod child;
pub(crate) mod jobs;
mod lease;
pub(crate) mod ledger;
mod live;
mod outcome;
mod progress;
mod resume;
pub(crate) mod signals;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use child::{Child, Gate, Prepared};
use jobs::Jobs;
use lease::Lease;
use live::Live;
use outcome::JobOutcome;
use pbs_plan::{Config, Plan, Problem, Start};
use pbs_report::gantt::gantt;
use pbs_report::{
    config_by_name, table, tier_name, EventView, Facts, Outcome, RecordedPlan, Recording, Report,
    Source,
};
use pbs_uapi::{Device, Event, EventKind, Info, Wait, ATTACH_ONE_TASK};
use progress::Progress;
use serde::Serialize;
use serde_json::json;
use signals::Signals;

use crate::cli::RunOptions;
use crate::failure::{Failure, DEADLINE_MISSED, FAILED, INCOMPLETE, INTERRUPTED, NOT_ENDED};
use crate::output::{to_json, Output};
use crate::{files, plans, stat};

/// Events read at once.
const BATCH: usize = 4096;

/// How long programs have to end after an interruption.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run(out: Output, path: &Path, options: &RunOptions) -> Result<ExitCode, Failure> {
    if options.resume {
        return resume_runs(out, path, options);
    }
    let work = jobs::read(&options.files)?;
    // What is wrong with a plan can be said without a device.
    let invalid = |problems| Failure::Invalid {
        file: options.name(),
        problems,
    };
    let mut prepared = None;
    if let jobs::Work::Plan(plan) = &work {
        prepared = Some(prepare(plan, path, out.json).map_err(invalid)?);
    }
    let device = plans::open(path)?;
    let info = device
        .info()
        .map_err(|refused| Failure::refused("limits", &refused))?;
    // As it is when the plan comes; it may change while the plan runs.
    let node_config = stat::node_config()?;
    let (mut plan, jobs) = match work {
        jobs::Work::Plan(plan) => (*plan, None),
        jobs::Work::Jobs(files) => {
            let (jobs, plan) = Jobs::admit(files, &device, &info, &node_config, options)?;
            (plan, Some(jobs))
        }
    };
    plan.lease_ns = options.lease.unwrap_or(plan.lease_ns);
    let prepared = match prepared {
        Some(prepared) => prepared,
        None => prepare(&plan, path, out.json).map_err(invalid)?,
    };
    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let mut runner = Runner {
        progress: Progress::new(&plan),
        live: Live::new(&plan, !out.json),
        lease: Lease::new(plan.lease_ns),
        node_config,
        plans: vec![plan],
        jobs,
        device,
        signals,
        lost: false,
        written: false,
        children: Vec::new(),
        cancelled: BTreeMap::new(),
        events: Vec::new(),
        batch: vec![Event::default(); BATCH],
    };
    let started = runner.start(
        &prepared,
        options.files.first().map_or(path, PathBuf::as_path),
    );
    let followed = started.and_then(|()| {
        drop(prepared);
        runner.follow(path)
    });
    let outcome = runner.end(followed)?;
    runner.report(out, outcome, &info, options)
}

/// Takes over the jobs of a pbsctl that died, and follows them to their end.
fn resume_runs(out: Output, path: &Path, options: &RunOptions) -> Result<ExitCode, Failure> {
    let device = plans::open(path)?;
    let node_config = stat::node_config()?;
    let (jobs, resumed) = Jobs::resume(&device, &node_config, options)?;
    device
        .seek(resumed.next_seq)
        .map_err(|refused| Failure::refused("events", &refused))?;
    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let mut runner = Runner {
        progress: Progress::resumed(&resumed.plans, &resumed.in_force),
        live: Live::new(&resumed.plans[0], !out.json),
        lease: Lease::new(options.lease.unwrap_or(resumed.plans[0].lease_ns)),
        node_config,
        plans: resumed.plans,
        jobs: Some(jobs),
        device,
        signals,
        lost: false,
        written: true,
        // They were started by another; their ends are told by events.
        children: Vec::new(),
        cancelled: BTreeMap::new(),
        events: Vec::new(),
        batch: vec![Event::default(); BATCH],
    };
    let failed = |error: io::Error| Failure::file(path, &error);
    while runner.read().map_err(failed)? > 0 {}
    runner.progress.caught_up(&resumed.in_force);
    let followed = runner.follow(path);
    let outcome = runner.end(followed)?;
    let jobs = runner.jobs.as_mut().map(Jobs::finish).unwrap_or_default();
    out.print(&json!({ "outcome": outcome, "jobs": jobs }), || {
        outcome::text(&jobs)
    })?;
    Ok(match outcome {
        Outcome::Ended => runner.of_jobs(&jobs).unwrap_or(ExitCode::SUCCESS),
        _ => not_ended(outcome),
    })
}

/// Everything that can be wrong with the programs is found before anything is
/// started. With `json` nothing but pbsctl's own may be on standard output.
fn prepare(plan: &Plan, device: &Path, json: bool) -> Result<Vec<Prepared>, Vec<Problem>> {
    let mut prepared = Vec::new();
    let mut problems = Vec::new();
    for (index, process) in plan.processes.iter().enumerate() {
        if process.start == Start::Unsaid {
            problems.push(Problem::at(
                process.line,
                format!(
                    "process {} has nothing to run; add command = [\"program\", \"argument\"], \
                     or attaches = \"itself\" if somebody else starts it",
                    process.label()
                ),
            ));
        }
        let cpu = plan.cpu_of(index).map_or(0, |cpu| cpu.cpu);
        for command in process.commands() {
            match Prepared::new(index, process, command, cpu, device, json) {
                Ok(one) => prepared.push(one),
                Err(problem) => problems.push(problem),
            }
        }
    }
    if problems.is_empty() {
        Ok(prepared)
    } else {
        Err(problems)
    }
}

struct Runner {
    /// The plan that was started with, and those that came after it.
    plans: Vec<Plan>,
    /// The configuration of plans that have none.
    node_config: Config,
    /// What the plans are made of, if it is jobs.
    jobs: Option<Jobs>,
    device: Device,
    signals: Signals,
    progress: Progress,
    live: Live,
    /// For how long the CPUs have the plan without a word of ours.
    lease: Lease,
    /// Events were lost since it was last looked what is in force.
    lost: bool,
    /// The plan was written, so it is ours to drop.
    written: bool,
    children: Vec<Child>,
    /// Numbers of processes that wait for what will never end, each with the one
    /// that it waits for.
    cancelled: BTreeMap<u32, u32>,
    /// Those of this run of the plan, in order.
    events: Vec<Event>,
    batch: Vec<Event>,
}

impl Runner {
    /// Forks the programs, writes the plan, attaches the programs, and lets
    /// them go.
    fn start(&mut self, prepared: &[Prepared], file: &Path) -> Result<(), Failure> {
        let start = |error: io::Error| Failure::Failed(format!("programs of the plan: {error}"));
        child::empty_outputs(prepared).map_err(start)?;
        let mut gate = Gate::new().map_err(start)?;
        for one in prepared {
            let child = gate.fork(one, self.signals.mask_before()).map_err(start)?;
            self.children.push(child);
        }
        gate.wait_ready(self.children.len()).map_err(start)?;

        // What happened before is of no interest.
        let refused = |refused| Failure::refused("events", &refused);
        let next_seq = self.device.info().map_err(refused)?.next_seq;
        self.device.seek(next_seq).map_err(refused)?;
        if let Some(jobs) = &mut self.jobs {
            jobs.follow_from(next_seq)?;
        }
        let plan = &self.plans[0];
        plans::write(&self.device, plan, file)?;
        self.written = true;
        if let Some(jobs) = &mut self.jobs {
            jobs.in_force(plan)?;
        }
        for child in self.children.iter().filter(|child| !child.itself) {
            let process = &plan.processes[child.process];
            let flags = match process.start {
                Start::Commands(_) => ATTACH_ONE_TASK,
                _ => 0,
            };
            self.device
                .attach(child.pid, process.id, flags)
                .map_err(|refused| {
                    let what = format!("attach {} to process {}", child.program, process.label());
                    Failure::refused(&what, &refused)
                })?;
        }
        gate.release().map_err(start)?;
        if let Some(jobs) = &mut self.jobs {
            jobs.released();
        }
        Ok(())
    }

    /// Reads events until the plan is over everywhere and all programs have
    /// ended, or somebody wants to stop. Answers prediction failures if it can.
    fn follow(&mut self, path: &Path) -> Result<Outcome, Failure> {
        let failed = |error: io::Error| Failure::file(path, &error);
        loop {
            let read = self.read().map_err(failed)?;
            if self.signals.want_stop().map_err(failed)? {
                return Ok(Outcome::Interrupted);
            }
            if read > 0 {
                continue;
            }
            if std::mem::take(&mut self.lost) {
                // The end of a plan may be among what was lost.
                let cpus: Vec<_> = self.progress.in_force().collect();
                let in_force = |&cpu: &u32| resume::in_force(&self.device, cpu).is_some();
                let cpus: Vec<_> = cpus.into_iter().filter(in_force).collect();
                self.progress.caught_up(&cpus);
                if let Some(jobs) = &mut self.jobs {
                    jobs.catch_up(&self.device);
                }
            }
            if let Some(outcome) = self.progress.outcome() {
                if self.all_ended() {
                    // The ends of programs are events too.
                    while self.read().map_err(failed)? > 0 {}
                    return Ok(outcome);
                }
            }
            let mut timeout_ms = self.answer();
            if let Some(left_ms) = self.lease.keep(&self.device, self.progress.in_force()) {
                timeout_ms = u32::try_from(timeout_ms).map_or(left_ms, |ms| left_ms.min(ms as i32));
            }
            self.live.show();
            signals::wait(&self.device, &self.signals, timeout_ms).map_err(failed)?;
        }
    }

    /// Answers prediction failures with a new plan, if jobs are run. Returns for
    /// how long events may be waited for; negative: for ever.
    fn answer(&mut self) -> i32 {
        let Some(jobs) = &mut self.jobs else {
            return -1;
        };
        jobs.look_at_memory(&self.device);
        let next = jobs.answer();
        // The new plan does not have them, and would set them free.
        for (process, cut) in jobs.cancelled() {
            self.cancel(process, cut);
        }
        let Some(jobs) = &mut self.jobs else {
            return -1;
        };
        match next {
            jobs::Next::Wait(timeout_ms) => timeout_ms,
            jobs::Next::Plan(mut plan) => {
                plan.lease_ns = self.lease.length_ns();
                let encoded = pbs_plan::wire::encode(&plan);
                match self.device.write_plan(&encoded.bytes) {
                    Ok(()) => {
                        self.progress.also(&plan);
                        jobs.replanned(&plan);
                        self.live.replanned();
                        self.plans.push(*plan);
                    }
                    // Something has happened since that we have not heard of: the plan in
                    // force goes on, and the failure is answered once more.
                    Err(refused) => {
                        jobs.refused(&refused.to_string());
                        // There is a time before which no other is made.
                        return 0;
                    }
                }
                -1
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let count = self.device.read_events(&mut self.batch)?;
        let mut stopped = Vec::new();
        for event in &self.batch[..count] {
            self.progress.event(event);
            self.lost |= event.kind == EventKind::Overrun as u16;
            let ours = self.progress.concerns(event);
            if let Some(jobs) = &mut self.jobs {
                jobs.event(event, ours);
            }
            let gone = event.kind == EventKind::Waits as u16 && event.reason == Wait::Gone as u16;
            if ours && gone {
                stopped.push((event.process, (event.value >> 32) as u32));
            }
            if ours {
                self.live.event(event);
                self.events.push(*event);
            }
        }
        if let Some(jobs) = &mut self.jobs {
            stopped.extend(jobs.cancelled());
        }
        for (process, cut) in stopped {
            self.cancel(process, cut);
        }
        Ok(count)
    }

    /// Ends the programs of a process that waits for `cut`, which has ended before
    /// its tasks did. The class would hold them for ever.
    fn cancel(&mut self, process: u32, cut: u32) {
        if self.cancelled.insert(process, cut).is_some() {
            return;
        }
        let label = |id| {
            let mut plans = self.plans.iter();
            let known = plans.find_map(|plan| plan.process(id));
            known.map_or_else(|| id.to_string(), pbs_plan::Process::label)
        };
        let started = &self.plans[0].processes;
        let children = self.children.iter_mut();
        let own = children.filter(|child| started[child.process].id == process);
        let mut own: Vec<_> = own.collect();
        self.live.clear();
        eprintln!(
            "pbsctl: process {} is cancelled: it waits for process {}, which has ended before its \
             tasks did{}",
            label(process),
            label(cut),
            if own.is_empty() {
                "; end its program, which pbsctl did not start"
            } else {
                ""
            }
        );
        for child in &mut own {
            child.signal(libc::SIGTERM);
        }
    }

    fn all_ended(&mut self) -> bool {
        let mut all = true;
        for child in &mut self.children {
            all &= child.has_ended();
        }
        all
    }

    /// How it ended. What did not come to its end is stopped.
    fn end(&mut self, followed: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        self.live.clear();
        match followed {
            Ok(Outcome::Interrupted) | Err(_) => self.stop(),
            Ok(_) => {}
        }
        if followed.is_err() {
            // What there is of the runs is recorded all the same.
            self.exits();
            self.jobs.as_mut().map(Jobs::finish);
        }
        followed
    }

    /// Drops the plan and ends the programs.
    fn stop(&mut self) {
        if self.written {
            for cpu in self.progress.in_force() {
                // It may be gone already.
                let _ = self.device.drop_plan(cpu);
            }
        }
        for child in &mut self.children {
            child.signal(libc::SIGTERM);
        }
        let deadline = Instant::now() + GRACE;
        while !self.all_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                for child in &mut self.children {
                    child.signal(libc::SIGKILL);
                }
            }
            let timeout_ms = i32::try_from(left.as_millis()).unwrap_or(0).clamp(10, 2000);
            let waited = signals::wait(&self.signals, &self.signals, timeout_ms);
            if waited.and_then(|()| self.signals.want_stop()).is_err() {
                break;
            }
        }
        while self.read().is_ok_and(|count| count > 0) {}
    }

    /// What is kept of the run, by which it can be looked at later.
    fn recording(&self, facts: &Facts) -> Recording {
        Recording {
            version: Recording::VERSION,
            source: Source::Run,
            kernel: facts.kernel.clone(),
            tier: facts.tier.clone(),
            rate_insns_per_ms: facts.rate_insns_per_ms,
            outcome: facts.outcome,
            config: config_by_name(&self.plans[0].config.unwrap_or(self.node_config)),
            plans: self.plans.iter().map(RecordedPlan::from).collect(),
            events: self.events.iter().map(EventView::from).collect(),
        }
    }

    fn report(
        mut self,
        out: Output,
        outcome: Outcome,
        info: &Info,
        options: &RunOptions,
    ) -> Result<ExitCode, Failure> {
        let exits = self.exits();
        let succeeded = exits.iter().all(pbs_report::Exit::success);
        let facts = Facts {
            kernel: kernel_release(),
            tier: tier_name(info.tier),
            rate_insns_per_ms: info.rate_insns_per_ms,
            exits,
            outcome,
        };
        let report = Report::of_plans(&self.plans, &self.events, &facts);
        let jobs = self.jobs.as_mut().map(Jobs::finish);
        let all = Recorded {
            recording: self.recording(&facts),
            report: &report,
            jobs: jobs.as_deref(),
        };
        if let Some(file) = &options.report {
            files::write(file, &(to_json(&all) + "\n"))?;
        }
        if let Some(file) = &options.gantt {
            files::write(file, &gantt(&report))?;
        }
        out.print(&all, || {
            table(&report) + &jobs.as_deref().map_or_else(String::new, outcome::text)
        })?;
        let jobs = jobs.unwrap_or_default();
        Ok(match outcome {
            Outcome::Ended if !succeeded || !report.is_complete() => ExitCode::from(INCOMPLETE),
            Outcome::Ended => self.of_jobs(&jobs).unwrap_or(ExitCode::SUCCESS),
            _ => not_ended(outcome),
        })
    }

    /// How each program ended; what did not succeed is no example for the next run.
    fn exits(&mut self) -> Vec<pbs_report::Exit> {
        let plan = &self.plans[0];
        let mut exits = Vec::new();
        let mut commands = vec![0; plan.processes.len()];
        for child in &mut self.children {
            let process = &plan.processes[child.process];
            let exit = child.exit(process.id);
            let number = commands[child.process];
            commands[child.process] += 1;
            let one_task = matches!(process.start, Start::Commands(_) | Start::Command(_));
            let task = process.tasks.get(number).filter(|_| one_task);
            if let Some(jobs) = &mut self.jobs {
                if !exit.success() {
                    jobs.failed_program(process.id, task.map(|task| task.id));
                }
                // What one that attaches itself had before that is not its plan's.
                if !child.itself {
                    jobs.ran(process.id, child.ran_ns());
                }
            }
            exits.push(exit);
        }
        exits
    }

    /// The exit status where all jobs have ended; `None`: as it should be.
    fn of_jobs(&self, jobs: &[JobOutcome]) -> Option<ExitCode> {
        if jobs.iter().any(|job| !job.kept) {
            return Some(ExitCode::from(DEADLINE_MISSED));
        }
        let recorded = self.jobs.as_ref().is_none_or(Jobs::is_recorded);
        (!recorded).then(|| ExitCode::from(FAILED))
    }
}

/// The exit status of what did not come to its end.
fn not_ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::from(NOT_ENDED),
    }
}

/// What is kept of a run: the recording, and the report that is made from it.
#[derive(Serialize)]
struct Recorded<'a> {
    #[serde(flatten)]
    recording: Recording,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<&'a [JobOutcome]>,
}

pub(crate) fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".into(), |text| text.trim().into())
}
