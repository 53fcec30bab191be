// SPDX-License-Identifier: GPL-2.0
//! Jobs that are run: admitted, planned, planned anew when a prediction fails,
//! and recorded.

use std::path::{Path, PathBuf};

use pbs_control::{Answer, Controller, End, Missed, Options};
use pbs_history::{Kind, RunId};
use pbs_job::{Job, Machine};
use pbs_plan::{Config, Plan};
use pbs_planner::Planned;
use pbs_report::bytes;
use pbs_uapi::{Device, Event, EventKind, Info, Process, ProcessState};

use super::child;
use super::ledger::Ledger;
use super::outcome::{self, JobOutcome};
use super::resume;
use crate::cli::RunOptions;
use crate::failure::Failure;
use crate::files;
use crate::jobs::{by_priority, Forecast, Saved, Submission, LEAD_NS};
use crate::output::ms;

/// A deadline for those who have none: twelve days.
const NO_DEADLINE_NS: u64 = 1 << 50;

/// What is to be run.
pub(super) enum Work {
    Plan(Box<Plan>),
    Jobs(Vec<Submission>),
}

/// A plan, or one or several jobs.
pub(super) fn read(paths: &[PathBuf]) -> Result<Work, Failure> {
    let mut jobs = Vec::new();
    for path in paths {
        let text = files::read(path)?;
        if files::Kind::of(&text) != files::Kind::Job {
            if paths.len() > 1 {
                let file = files::name(path);
                return Err(Failure::Usage(format!(
                    "{file} is no job; several files can be run at once only if all are jobs"
                )));
            }
            return Ok(Work::Plan(Box::new(files::plan_of(&text, path)?)));
        }
        jobs.push(Submission::from_text(text, path)?);
    }
    Ok(Work::Jobs(jobs))
}

/// What to do next.
pub(super) enum Next {
    /// Wait for events, for so many milliseconds; negative: for ever.
    Wait(i32),
    /// Write this plan.
    Plan(Box<Plan>),
}

/// The jobs that run.
pub(super) struct Jobs {
    controller: Controller,
    ledger: Ledger,
    runs: Vec<ActiveJob>,
    kind: Kind,
    machine: Machine,
    replans: u64,
    max_replans: u64,
}

/// A run of a job.
pub(super) struct ActiveJob {
    /// Its number in the history, once it is noted there.
    pub(super) id: Option<RunId>,
    /// Its number for the controller.
    pub(super) run: pbs_planner::RunId,
    /// With what was predicted, and times of the monotonic clock.
    pub(super) job: Job,
    pub(super) submitted_ns: u64,
    /// How it was planned first; `None`: by another pbsctl.
    pub(super) planned: Option<Planned>,
    /// Where the figures of its tasks came from.
    pub(super) forecasts: Vec<Forecast>,
    pub(super) replans: u64,
    /// Prediction failures that the node has signalled: tasks, processes and the
    /// node itself.
    pub(super) signals: u64,
    /// When the last of its processes ended.
    pub(super) ended_ns: Option<u64>,
    /// It was said that it will miss its deadline.
    told_late: bool,
    request: String,
}

impl Jobs {
    /// Admits all of them, or says why one was declined; and their plan. Without
    /// any, those that wait are admitted, if they still can be.
    pub(super) fn admit(
        submissions: Vec<Submission>,
        device: &Device,
        info: &Info,
        config: &Config,
        options: &RunOptions,
    ) -> Result<(Self, Plan), Failure> {
        let machine = options.machine.read(|| Ok(info.rate_insns_per_ms))?;
        if machine.nodes.len() != 1 {
            return Err(Failure::Usage(format!(
                "the machine has {} nodes, and this is one of them; name a machine with that node \
                 alone",
                machine.nodes.len()
            )));
        }
        let mut ledger = Ledger::open(&options.history.path)?;
        resume::clear(&mut ledger, device)?;
        let now_ns = monotonic_ns();
        let mut controller = new_controller(machine.clone(), config, now_ns);
        let asked = submissions.into_iter().map(|submission| Asked {
            submission,
            id: None,
            submitted_ns: now_ns,
        });
        let mut asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            asked = waiting_jobs(&mut ledger, now_ns)?;
        }
        by_priority(&mut asked, |asked| &asked.submission.job);
        let mut admitted = Vec::new();
        let mut last = None;
        for asked in asked {
            let submission = &asked.submission;
            let history = ledger.history(&submission.job.name)?;
            let (mut job, forecasts) = submission.predicted(&history, asked.submitted_ns)?;
            if options.kind == Kind::Profile {
                job.deadline_ns = now_ns.saturating_add(NO_DEADLINE_NS);
            }
            match controller.admit(job.clone(), now_ns) {
                Ok(run) => admitted.push((asked, job, forecasts, run)),
                Err(declined) => {
                    let earliest_ns = controller.earliest_deadline_ns(&job, now_ns);
                    let failure = Failure::Declined {
                        file: asked.submission.file,
                        job: job.name.clone(),
                        why: declined.describe(&job, asked.submitted_ns),
                        earliest_deadline_ns: earliest_ns
                            .map(|ns| ns.saturating_sub(asked.submitted_ns)),
                    };
                    match asked.id {
                        Some(id) => {
                            ledger.decline(id)?;
                            if let Some(before) = last.replace(failure) {
                                eprintln!("{before}");
                            }
                        }
                        None => return Err(failure),
                    }
                }
            }
        }
        match last {
            Some(declined) if admitted.is_empty() => return Err(declined),
            Some(declined) => eprintln!("{declined}"),
            None if admitted.is_empty() => {
                return Err(Failure::Failed(
                    "no job waits to be run; submit one with pbsctl submit, or name its file"
                        .into(),
                ));
            }
            None => {}
        }
        let plan = controller.plan(now_ns);
        let plan = plan.map_err(|problems| Failure::Invalid {
            file: options.name(),
            problems,
        })?;
        let plan = plan.ok_or_else(|| Failure::Failed("the jobs have nothing to run".into()))?;
        let mut runs = Vec::new();
        for (asked, job, forecasts, admitted) in admitted {
            runs.push(ActiveJob {
                id: asked.id,
                run: admitted.run,
                submitted_ns: asked.submitted_ns,
                planned: Some(admitted.planned),
                forecasts,
                replans: 0,
                signals: 0,
                ended_ns: None,
                told_late: false,
                request: asked.submission.request,
                job,
            });
        }
        let jobs = Self {
            controller,
            ledger,
            runs,
            kind: options.kind,
            machine,
            replans: 0,
            max_replans: options.max_replans,
        };
        Ok((jobs, plan))
    }

    /// Takes over the jobs of a pbsctl that died, with the plans that may be in
    /// force.
    pub(super) fn resume(
        device: &Device,
        config: &Config,
        options: &RunOptions,
    ) -> Result<(Self, resume::Resumed), Failure> {
        let mut ledger = Ledger::open(&options.history.path)?;
        let left = resume::left(&mut ledger, device)?;
        let now_ns = monotonic_ns();
        let mut controller = new_controller(left.machine.clone(), config, now_ns);
        let mut runs = Vec::new();
        let mut kind = Kind::Plan;
        for run in left.runs {
            let Saved {
                job, submitted_ns, ..
            } = &run.saved;
            let job = job.clone().submitted_at(*submitted_ns).unwrap_or_default();
            let taken = controller.take_over(job.clone(), &run.saved.numbers, &run.so_far);
            let taken = taken.ok_or_else(|| {
                Failure::Failed("two runs that are under way have the same processes".into())
            })?;
            kind = run.figures.run.kind;
            runs.push(ActiveJob {
                id: Some(run.figures.run.id),
                run: taken,
                submitted_ns: *submitted_ns,
                planned: None,
                forecasts: Vec::new(),
                replans: 0,
                signals: 0,
                ended_ns: run.saved.ended_ns,
                told_late: false,
                request: run.takeover.request.clone(),
                job,
            });
            ledger.go_on(run.saved, run.takeover, &run.figures);
        }
        let jobs = Self {
            controller,
            ledger,
            runs,
            kind,
            machine: left.machine,
            replans: 0,
            max_replans: options.max_replans,
        };
        Ok((jobs, left.resumed))
    }

    /// Notes the runs, and follows them from the event of that number on.
    pub(super) fn follow_from(&mut self, next_seq: u64) -> Result<(), Failure> {
        for run in &mut self.runs {
            let processes = 0..run.job.processes.len();
            let numbers = processes.map(|process| self.controller.number(run.run, process));
            let mut job = run.job.clone();
            job.start_ns = job.start_ns.saturating_sub(run.submitted_ns);
            job.deadline_ns = job.deadline_ns.saturating_sub(run.submitted_ns);
            let saved = Saved {
                numbers: numbers.collect(),
                job,
                submitted_ns: run.submitted_ns,
                machine: self.machine.clone(),
                ended_ns: None,
            };
            let request = &run.request;
            let id = (self.ledger).follow(run.id, saved, self.kind, request, next_seq)?;
            run.id = Some(id);
        }
        Ok(())
    }

    /// The first plan is in force; nothing of it runs yet.
    pub(super) fn in_force(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.ledger.planned(plan)
    }

    /// The programs were let go.
    pub(super) fn released(&mut self) {
        self.ledger.released();
    }

    /// Hears of an event; `ours`: of one of our plans.
    pub(super) fn event(&mut self, event: &Event, ours: bool) {
        self.ledger.event(event, ours);
        if !ours {
            return;
        }
        self.controller.event(event);
        let kind = EventKind::from_raw(event.kind);
        let of = self.controller.process(event.process);
        for active in &mut self.runs {
            let concerned = of.is_none_or(|(run, _)| run == active.run);
            if matches!(kind, Some(EventKind::Late | EventKind::Early)) && concerned {
                active.signals += 1;
            }
            let ended = kind == Some(EventKind::ProcessEnded) && event.value == 0;
            if ended && of.is_some_and(|(run, _)| run == active.run) {
                active.ended_ns = active.ended_ns.max(Some(event.time_ns));
                let over = self.controller.run(active.run);
                let over = over.is_some_and(|state| state.ends.iter().all(Option::is_some));
                if let (true, Some(id)) = (over, active.id) {
                    self.ledger.ended(id, event.time_ns);
                }
            }
        }
    }

    /// The processes that were cancelled since this was last asked, each with the
    /// one that it can't go on without: their numbers in plans.
    pub(super) fn cancelled(&mut self) -> Vec<(u32, u32)> {
        let cancelled = self.controller.cancelled().into_iter();
        let numbers = cancelled.map(|cancelled| {
            let mut number = |process| self.controller.number(cancelled.run, process);
            (number(cancelled.process), number(cancelled.cut))
        });
        numbers.collect()
    }

    /// Events were lost: asks the kernel how the processes are whose end was not heard.
    pub(super) fn catch_up(&mut self, device: &Device) {
        eprintln!(
            "pbsctl: events were lost, as it came to read them too late; what the tasks used that \
             they told of is not recorded"
        );
        for index in 0..self.runs.len() {
            let run = self.runs[index].run;
            let Some(state) = self.controller.run(run) else {
                continue;
            };
            let open = state.ends.iter().enumerate();
            for (process, _) in open.filter(|(_, end)| end.is_none()) {
                let number = self.controller.number(run, process);
                match device.process(number) {
                    // At the latest now.
                    Ok(Some(known)) => self.seen(index, &known, monotonic_ns()),
                    // A plan that takes over has not got who has ended; or the plan
                    // was dropped, which is looked after elsewhere.
                    Ok(None) => {}
                    Err(refused) => {
                        eprintln!("pbsctl: how process {number} is cannot be asked: {refused}");
                        return;
                    }
                }
            }
        }
    }

    /// Asks the kernel whose memory is in use, if the node has said that it is too much;
    /// and tells who has more than was reserved.
    pub(super) fn look_at_memory(&mut self, device: &Device) {
        let asks = self.controller.asks();
        if !asks.is_empty() {
            eprintln!("pbsctl: the node uses more memory than plans may");
        }
        for number in asks {
            // Who cannot be asked has ended, or is not known: that is no memory.
            if let Ok(Some(known)) = device.process(number) {
                self.controller.seen(&known);
            }
        }
        for grown in self.controller.grown() {
            let mut runs = self.runs.iter();
            if let Some(active) = runs.find(|active| active.run == grown.run) {
                eprintln!(
                    "pbsctl: process {} of job {} uses {}, and {} were reserved for it; it is \
                     planned anew with more",
                    active.job.processes[grown.process].label(),
                    active.job.name,
                    bytes(grown.used_bytes),
                    bytes(grown.reserved_bytes)
                );
            }
        }
    }

    /// Hears what the kernel says of a process of a run.
    fn seen(&mut self, index: usize, known: &Process, now_ns: u64) {
        self.controller.seen(known);
        let active = &mut self.runs[index];
        let ended = known.state == ProcessState::Done as u32 && known.ended_tasks == known.tasks;
        if ended {
            active.ended_ns = active.ended_ns.max(Some(now_ns));
            let over = self.controller.run(active.run);
            let over = over.is_some_and(|state| state.ends.iter().all(Option::is_some));
            if let (true, Some(id)) = (over, active.id) {
                self.ledger.ended(id, now_ns);
            }
        }
    }

    /// What to do about what was heard.
    pub(super) fn answer(&mut self) -> Next {
        self.ledger.keep_in_time();
        if self.replans >= self.max_replans {
            return Next::Wait(-1);
        }
        let now_ns = monotonic_ns();
        let answer = self.controller.answer(now_ns);
        match answer {
            Ok(Answer::Nothing) => Next::Wait(-1),
            Ok(Answer::NotBefore(at_ns)) => {
                let left_ms = at_ns.saturating_sub(now_ns).div_ceil(1_000_000);
                Next::Wait(i32::try_from(left_ms).unwrap_or(i32::MAX))
            }
            Ok(Answer::Plan { plan, missed }) => {
                self.tell_missed(&missed);
                Next::Plan(plan)
            }
            Err(problems) => {
                let words = problems.into_iter().map(|problem| problem.message);
                let words: Vec<_> = words.collect();
                eprintln!(
                    "pbsctl: no new plan could be made, so the old one goes on: {}",
                    words.join("; ")
                );
                Next::Wait(-1)
            }
        }
    }

    /// Says once of each run that it will be late.
    fn tell_missed(&mut self, missed: &[Missed]) {
        for missed in missed {
            let mut runs = self.runs.iter_mut();
            let Some(active) = runs.find(|run| run.run == missed.run && !run.told_late) else {
                continue;
            };
            active.told_late = true;
            let name = &active.job.name;
            match missed.by_ns {
                Some(ns) => eprintln!(
                    "pbsctl: job {name} will miss its deadline by {} ms as it looks now",
                    ms(ns)
                ),
                None => eprintln!(
                    "pbsctl: there is no place left for job {name}; what is left of it goes on \
                     outside the plan"
                ),
            }
        }
    }

    /// The node took a new plan.
    pub(super) fn replanned(&mut self, plan: &Plan) {
        self.replans += 1;
        let numbers = plan.processes.iter().map(|process| process.id);
        let of: Vec<_> = numbers
            .filter_map(|id| Some(self.controller.process(id)?.0))
            .collect();
        for active in self.runs.iter_mut().filter(|run| of.contains(&run.run)) {
            active.replans += 1;
        }
        self.ledger.replanned(plan);
    }

    /// The node did not take the last plan.
    pub(super) fn refused(&mut self, why: &str) {
        eprintln!("pbsctl: the kernel refused the new plan, so the old one goes on: {why}");
        self.controller.refused();
    }

    /// A program of the process with that number did not succeed.
    pub(super) fn failed_program(&mut self, process: u32, task: Option<u32>) {
        self.ledger.failed_program(process, task);
    }

    /// For how long a program of the process with that number had a CPU.
    pub(super) fn ran(&mut self, process: u32, ran_ns: u64) {
        self.ledger.ran(process, ran_ns);
    }

    /// All is over: records the runs, and says what became of each job.
    pub(super) fn finish(&mut self) -> Vec<JobOutcome> {
        let finished = self.ledger.finish();
        let outcome = |run: &ActiveJob| {
            let figures = finished.iter().find(|(id, _)| Some(*id) == run.id);
            let figures = figures.and_then(|(_, figures)| figures.as_ref());
            let history = self.ledger.history(&run.job.name).unwrap_or_default();
            let state = self.controller.run(run.run);
            let completed = state.is_some_and(|state| {
                let mut ends = state.ends.iter();
                ends.all(|end| *end == Some(End::Complete))
            });
            outcome::of(run, self.kind, figures, &history, completed)
        };
        self.runs.iter().map(outcome).collect()
    }

    /// Whether all that happened could be recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.ledger.is_whole()
    }
}

/// A job that is to be admitted.
struct Asked {
    submission: Submission,
    /// Its number in the history, if it was submitted before.
    id: Option<RunId>,
    submitted_ns: u64,
}

/// The jobs that wait. One that cannot be read any more is declined.
fn waiting_jobs(ledger: &mut Ledger, now_ns: u64) -> Result<Vec<Asked>, Failure> {
    let mut asked = Vec::new();
    for (id, ago_ns, request) in ledger.submitted()? {
        let name = format!("run {id}");
        let submission = Submission::from_text(request, Path::new(&name));
        match submission.and_then(can_be_started) {
            Ok(submission) => asked.push(Asked {
                // What was submitted before the boot has had some of its time before.
                submission: submission.waited(ago_ns.saturating_sub(now_ns)),
                id: Some(id),
                submitted_ns: now_ns.saturating_sub(ago_ns),
            }),
            Err(failure) => {
                eprintln!("{failure}");
                ledger.decline(id)?;
            }
        }
    }
    Ok(asked)
}

/// Whether all programs of a job are there: one whose are not must not keep others
/// from running.
pub(crate) fn can_be_started(submission: Submission) -> Result<Submission, Failure> {
    let processes = submission.job.processes.iter();
    let commands = processes.flat_map(|process| process.start.commands());
    let missing = commands.filter_map(|command| child::path_of(command).err());
    let problems: Vec<_> = missing.collect();
    if problems.is_empty() {
        return Ok(submission);
    }
    Err(Failure::Invalid {
        file: submission.file,
        problems,
    })
}

/// Plans and processes are numbered by the time, so that they are unlike those
/// of any planner before.
fn new_controller(machine: Machine, config: &Config, now_ns: u64) -> Controller {
    let options = Options {
        config: Some(*config),
        lead_ns: LEAD_NS,
        ..Options::default()
    };
    let first_process = ((now_ns >> 20) & 0x3fff_ffff) as u32;
    Controller::new(machine, options, now_ns, first_process)
}

#[allow(unsafe_code)]
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing. This clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}
