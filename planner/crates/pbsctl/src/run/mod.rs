// SPDX-License-Identifier: GPL-2.0
//! The command that runs a plan: writes it, starts its processes, and follows
//! it to its end.
//!
//! On a CPU of the plan pbsctl is a normal process and may hardly run. So
//! nothing of the plan waits for it once the programs are released; it only
//! reads, many events at a time.

mod child;
mod progress;
pub(crate) mod signals;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use child::{Child, Gate, Prepared};
use pbs_plan::{Config, Plan, Problem, Start};
use pbs_report::gantt::gantt;
use pbs_report::{
    config_by_name, table, tier_name, EventView, Facts, Outcome, RecordedPlan, Recording, Report,
    Source,
};
use pbs_uapi::{Device, Event, Info, ATTACH_ONE_TASK};
use progress::Progress;
use serde::Serialize;
use signals::Signals;

use crate::cli::RunOptions;
use crate::failure::{Failure, INCOMPLETE, INTERRUPTED, NOT_ENDED};
use crate::output::{to_json, Output};
use crate::{files, plans, stat};

/// Events read at once.
const BATCH: usize = 4096;

/// How long programs have to end after an interruption.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run(out: Output, path: &Path, options: &RunOptions) -> Result<ExitCode, Failure> {
    let plan = files::read_plan(&options.file)?;
    let prepared = prepare(&plan, path, out.json).map_err(|problems| Failure::Invalid {
        file: files::name(&options.file),
        problems,
    })?;
    let device = plans::open(path)?;
    let info = device
        .info()
        .map_err(|refused| Failure::refused("limits", &refused))?;
    // As it is when the plan comes; it may change while the plan runs.
    let config = match plan.config {
        Some(config) => config,
        None => stat::node_config()?,
    };

    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let mut runner = Runner {
        plan: &plan,
        device,
        signals,
        progress: Progress::new(&plan),
        written: false,
        children: Vec::new(),
        events: Vec::new(),
        batch: vec![Event::default(); BATCH],
    };
    let outcome = runner.start(&prepared, &options.file).and_then(|()| {
        drop(prepared);
        runner.follow().map_err(|error| Failure::file(path, &error))
    });
    let outcome = match outcome {
        Ok(Outcome::Interrupted) | Err(_) => {
            runner.stop();
            outcome?
        }
        Ok(outcome) => outcome,
    };
    runner.report(out, outcome, &info, &config, options)
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

struct Runner<'a> {
    plan: &'a Plan,
    device: Device,
    signals: Signals,
    progress: Progress,
    /// The plan was written, so it is ours to drop.
    written: bool,
    children: Vec<Child>,
    /// Those of this run of the plan, in order.
    events: Vec<Event>,
    batch: Vec<Event>,
}

impl Runner<'_> {
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
        let next = self.device.info().map(|info| info.next_seq);
        next.and_then(|next| self.device.seek(next))
            .map_err(|refused| Failure::refused("events", &refused))?;
        plans::write(&self.device, self.plan, file)?;
        self.written = true;
        for child in self.children.iter().filter(|child| !child.itself) {
            let process = &self.plan.processes[child.process];
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
        gate.release().map_err(start)
    }

    /// Reads events until the plan is over everywhere and all programs have
    /// ended, or somebody wants to stop.
    fn follow(&mut self) -> io::Result<Outcome> {
        loop {
            let read = self.read()?;
            if self.signals.want_stop()? {
                return Ok(Outcome::Interrupted);
            }
            if read > 0 {
                continue;
            }
            if let Some(outcome) = self.progress.outcome() {
                if self.all_ended() {
                    // The ends of programs are events too.
                    while self.read()? > 0 {}
                    return Ok(outcome);
                }
            }
            signals::wait(&self.device, &self.signals, -1)?;
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let count = self.device.read_events(&mut self.batch)?;
        for event in &self.batch[..count] {
            self.progress.event(event);
            if self.progress.concerns(event) {
                self.events.push(*event);
            }
        }
        Ok(count)
    }

    fn all_ended(&mut self) -> bool {
        let mut all = true;
        for child in &mut self.children {
            all &= child.has_ended();
        }
        all
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
    fn recording(&self, facts: &Facts, config: &Config) -> Recording {
        Recording {
            version: Recording::VERSION,
            source: Source::Run,
            kernel: facts.kernel.clone(),
            tier: facts.tier.clone(),
            rate_insns_per_ms: facts.rate_insns_per_ms,
            outcome: facts.outcome,
            config: config_by_name(config),
            plans: vec![RecordedPlan::from(self.plan)],
            events: self.events.iter().map(EventView::from).collect(),
        }
    }

    fn report(
        mut self,
        out: Output,
        outcome: Outcome,
        info: &Info,
        config: &Config,
        options: &RunOptions,
    ) -> Result<ExitCode, Failure> {
        let exits: Vec<_> = self
            .children
            .iter_mut()
            .map(|child| child.exit(self.plan.processes[child.process].id))
            .collect();
        let succeeded = exits.iter().all(pbs_report::Exit::success);
        let facts = Facts {
            kernel: kernel_release(),
            tier: tier_name(info.tier),
            rate_insns_per_ms: info.rate_insns_per_ms,
            exits,
            outcome,
        };
        let report = Report::new(self.plan, &self.events, &facts);
        let all = Recorded {
            recording: self.recording(&facts, config),
            report: &report,
        };
        if let Some(file) = &options.report {
            files::write(file, &(to_json(&all) + "\n"))?;
        }
        if let Some(file) = &options.gantt {
            files::write(file, &gantt(&report))?;
        }
        out.print(&all, || table(&report))?;
        Ok(match outcome {
            Outcome::Interrupted => ExitCode::from(INTERRUPTED),
            Outcome::Dropped | Outcome::Replaced | Outcome::CpuGone => ExitCode::from(NOT_ENDED),
            Outcome::Ended if succeeded && report.is_complete() => ExitCode::SUCCESS,
            Outcome::Ended => ExitCode::from(INCOMPLETE),
        })
    }
}

/// What is kept of a run: the recording, and the report that is made from it.
#[derive(Serialize)]
struct Recorded<'a> {
    #[serde(flatten)]
    recording: Recording,
    #[serde(flatten)]
    report: &'a Report,
}

pub(crate) fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".into(), |text| text.trim().into())
}
