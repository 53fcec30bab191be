// SPDX-License-Identifier: GPL-2.0
//! Jobs that are run: admitted, planned, planned anew when a prediction fails,
//! and recorded.

use std::path::PathBuf;

use pbs_control::{Answer, Controller, End, Missed, Options};
use pbs_history::{Kind, RunId};
use pbs_job::{Job, Machine};
use pbs_plan::{Config, Plan};
use pbs_planner::Planned;
use pbs_uapi::{Device, Event, EventKind, Process, ProcessState};

use crate::ledger::Ledger;
use crate::outcome::{self, JobOutcome};
use crate::predict::Forecast;
use crate::saved::Saved;
use crate::submission::by_priority;
use crate::{resume, Declined, Error, Listener, News, Submission};

/// From the call that makes the plan of jobs until it is in force: on the CPU of a
/// plan the planner itself has the CPU for a few milliseconds in a hundred.
pub const LEAD_NS: u64 = 100_000_000;

/// A deadline for those who have none: twelve days.
const NO_DEADLINE_NS: u64 = 1 << 50;

/// How jobs are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of what jobs have used.
    pub history: PathBuf,
    /// At most so many new plans are made after the first; prediction failures beyond
    /// are left to the node.
    pub max_replans: u64,
}

/// What to do next.
pub(crate) enum ToDo {
    /// Wait for events, for so many milliseconds; negative: for ever.
    Wait(i32),
    /// Write this plan.
    Plan(Box<Plan>),
}

/// The jobs that run.
#[derive(Debug)]
pub(crate) struct Jobs {
    controller: Controller,
    ledger: Ledger,
    runs: Vec<ActiveJob>,
    machine: Machine,
    replans: u64,
    max_replans: u64,
}

/// A run of a job.
#[derive(Debug)]
pub(crate) struct ActiveJob {
    /// Its number in the history, once it is noted there.
    pub(crate) id: Option<RunId>,
    /// Its number for the controller.
    pub(crate) run: pbs_planner::RunId,
    /// With what was predicted, and times of the monotonic clock.
    pub(crate) job: Job,
    pub(crate) submitted_ns: u64,
    pub(crate) kind: Kind,
    /// How it was planned first; `None`: by another planner.
    pub(crate) planned: Option<Planned>,
    /// Where the figures of its tasks came from.
    pub(crate) forecasts: Vec<Forecast>,
    pub(crate) replans: u64,
    /// Prediction failures that the node has signalled: tasks, processes and the
    /// node itself.
    pub(crate) signals: u64,
    /// When the last of its processes ended.
    pub(crate) ended_ns: Option<u64>,
    /// It was said that it will miss its deadline.
    told_late: bool,
    request: String,
    /// The ledger has it.
    is_followed: bool,
}

impl Jobs {
    /// Claims the history, and closes what is left open there.
    pub(crate) fn open(
        machine: Machine,
        settings: &Settings,
        device: &Device,
        config: &Config,
    ) -> Result<Self, Error> {
        if machine.nodes.len() != 1 {
            return Err(Error::SeveralNodes(machine.nodes.len()));
        }
        let mut ledger = Ledger::open(&settings.history)?;
        resume::clear(&mut ledger, device)?;
        Ok(Self {
            controller: new_controller(machine.clone(), config, monotonic_ns()),
            ledger,
            runs: Vec::new(),
            machine,
            replans: 0,
            max_replans: settings.max_replans,
        })
    }

    /// Admits all of them, or says why one was declined; and the plan of all that run.
    /// Without any, those that wait are admitted, if they still can be.
    pub(crate) fn admit(
        &mut self,
        submissions: Vec<Submission>,
        kind: Kind,
        file: &str,
        listener: &mut dyn Listener,
    ) -> Result<Plan, Error> {
        let now_ns = monotonic_ns();
        let asked = submissions.into_iter().map(|submission| Asked {
            submission,
            id: None,
            submitted_ns: now_ns,
        });
        let mut asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            asked = self.waiting(now_ns, listener)?;
        }
        by_priority(&mut asked, |asked| &asked.submission.job);
        // Where one is declined, or there is no plan, all stays as it is.
        let mut controller = self.controller.clone();
        let missed = match self.runs.is_empty() {
            true => Vec::new(),
            false => controller.renew(now_ns),
        };
        let mut admitted = Vec::new();
        let mut last = None;
        for asked in asked {
            let submission = &asked.submission;
            let history = self.ledger.history(&submission.job.name)?;
            let (mut job, forecasts) = submission.predicted(&history, asked.submitted_ns)?;
            if kind == Kind::Profile {
                job.deadline_ns = now_ns.saturating_add(NO_DEADLINE_NS);
            }
            match controller.admit(job.clone(), now_ns) {
                Ok(run) => admitted.push((asked, job, forecasts, run)),
                Err(declined) => {
                    let earliest_ns = controller.earliest_deadline_ns(&job, now_ns);
                    let declined = Error::Declined(Declined {
                        file: asked.submission.file,
                        job: job.name.clone(),
                        why: declined.describe(&job, asked.submitted_ns),
                        earliest_deadline_ns: earliest_ns
                            .map(|ns| ns.saturating_sub(asked.submitted_ns)),
                    });
                    match asked.id {
                        Some(id) => {
                            self.ledger.decline(id)?;
                            if let Some(before) = last.replace(declined) {
                                listener.news(News::NotAdmitted(before));
                            }
                        }
                        None => return Err(declined),
                    }
                }
            }
        }
        match last {
            Some(declined) if admitted.is_empty() => return Err(declined),
            Some(declined) => listener.news(News::NotAdmitted(declined)),
            None if admitted.is_empty() => return Err(Error::NothingWaits),
            None => {}
        }
        let plan = controller.plan(now_ns);
        let plan = plan.map_err(|problems| Error::Invalid {
            file: file.into(),
            problems,
        })?;
        let plan = plan.ok_or(Error::NothingToRun)?;
        self.controller = controller;
        self.tell_missed(&missed, listener);
        for (asked, job, forecasts, admitted) in admitted {
            self.runs.push(ActiveJob {
                id: asked.id,
                run: admitted.run,
                submitted_ns: asked.submitted_ns,
                kind,
                planned: Some(admitted.planned),
                forecasts,
                replans: 0,
                signals: 0,
                ended_ns: None,
                told_late: false,
                request: asked.submission.request,
                is_followed: false,
                job,
            });
        }
        Ok(plan)
    }

    /// The jobs that wait. One that cannot be read any more is declined.
    fn waiting(&mut self, now_ns: u64, listener: &mut dyn Listener) -> Result<Vec<Asked>, Error> {
        let mut asked = Vec::new();
        for (id, ago_ns, request) in self.ledger.waiting()? {
            let submission = Submission::from_text(request, format!("run {id}"));
            match submission.and_then(Submission::with_programs) {
                Ok(submission) => asked.push(Asked {
                    // What was submitted before the boot has had some of its time before.
                    submission: submission.waited(ago_ns.saturating_sub(now_ns)),
                    id: Some(id),
                    submitted_ns: now_ns.saturating_sub(ago_ns),
                }),
                Err(error) => {
                    listener.news(News::NotAdmitted(error));
                    self.ledger.decline(id)?;
                }
            }
        }
        Ok(asked)
    }

    /// Takes over the jobs of a planner that died, with the plans that may be in
    /// force.
    pub(crate) fn resume(
        settings: &Settings,
        device: &Device,
        config: &Config,
    ) -> Result<(Self, resume::Resumed), Error> {
        let mut ledger = Ledger::open(&settings.history)?;
        let left = resume::left(&mut ledger, device)?;
        let now_ns = monotonic_ns();
        let mut controller = new_controller(left.machine.clone(), config, now_ns);
        let mut runs = Vec::new();
        for run in left.runs {
            let Saved {
                job, submitted_ns, ..
            } = &run.saved;
            let job = job.clone().submitted_at(*submitted_ns).unwrap_or_default();
            let taken = controller.take_over(job.clone(), &run.saved.numbers, &run.so_far);
            let taken = taken.ok_or(Error::SameProcesses)?;
            runs.push(ActiveJob {
                id: Some(run.figures.run.id),
                run: taken,
                submitted_ns: *submitted_ns,
                kind: run.figures.run.kind,
                planned: None,
                forecasts: Vec::new(),
                replans: 0,
                signals: 0,
                ended_ns: run.saved.ended_ns,
                told_late: false,
                request: run.takeover.request.clone(),
                is_followed: true,
                job,
            });
            ledger.go_on(run.saved, run.takeover, &run.figures);
        }
        let jobs = Self {
            controller,
            ledger,
            runs,
            machine: left.machine,
            replans: 0,
            max_replans: settings.max_replans,
        };
        Ok((jobs, left.resumed))
    }

    /// Notes the runs that were admitted last, and follows them from the event of that
    /// number on.
    pub(crate) fn follow_from(&mut self, next_seq: u64) -> Result<(), Error> {
        for run in self.runs.iter_mut().filter(|run| !run.is_followed) {
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
            let id = (self.ledger).follow(run.id, saved, run.kind, request, next_seq)?;
            run.id = Some(id);
            run.is_followed = true;
        }
        Ok(())
    }

    /// The plan is in force; nothing runs yet of what was admitted last.
    pub(crate) fn in_force(&mut self, plan: &Plan) -> Result<(), Error> {
        Ok(self.ledger.planned(plan)?)
    }

    /// The programs were let go.
    pub(crate) fn released(&mut self, listener: &mut dyn Listener) {
        self.ledger.released(listener);
    }

    /// Hears of an event; `ours`: of one of our plans.
    pub(crate) fn event(&mut self, event: &Event, ours: bool) {
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
    pub(crate) fn cancelled(&mut self) -> Vec<(u32, u32)> {
        let cancelled = self.controller.cancelled().into_iter();
        let numbers = cancelled.map(|cancelled| {
            let mut number = |process| self.controller.number(cancelled.run, process);
            (number(cancelled.process), number(cancelled.cut))
        });
        numbers.collect()
    }

    /// Events were lost: asks the kernel how the processes are whose end was not heard.
    pub(crate) fn catch_up(&mut self, device: &Device, listener: &mut dyn Listener) {
        listener.news(News::EventsLost);
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
                        listener.news(News::NotAsked(number, refused.to_string()));
                        return;
                    }
                }
            }
        }
    }

    /// Asks the kernel whose memory is in use, if the node has said that it is too much;
    /// and tells who has more than was reserved.
    pub(crate) fn look_at_memory(&mut self, device: &Device, listener: &mut dyn Listener) {
        let asks = self.controller.asks();
        if !asks.is_empty() {
            listener.news(News::MemoryShort);
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
                listener.news(News::Grown {
                    job: active.job.name.clone(),
                    process: active.job.processes[grown.process].label(),
                    used_bytes: grown.used_bytes,
                    reserved_bytes: grown.reserved_bytes,
                });
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
    pub(crate) fn answer(&mut self, listener: &mut dyn Listener) -> ToDo {
        self.ledger.keep_in_time(listener);
        if self.replans >= self.max_replans {
            return ToDo::Wait(-1);
        }
        let now_ns = monotonic_ns();
        let answer = self.controller.answer(now_ns);
        match answer {
            Ok(Answer::Nothing) => ToDo::Wait(-1),
            Ok(Answer::NotBefore(at_ns)) => {
                let left_ms = at_ns.saturating_sub(now_ns).div_ceil(1_000_000);
                ToDo::Wait(i32::try_from(left_ms).unwrap_or(i32::MAX))
            }
            Ok(Answer::Plan { plan, missed }) => {
                self.tell_missed(&missed, listener);
                ToDo::Plan(plan)
            }
            Err(problems) => {
                let words = problems.into_iter().map(|problem| problem.message);
                let words: Vec<_> = words.collect();
                listener.news(News::NoNewPlan(words.join("; ")));
                ToDo::Wait(-1)
            }
        }
    }

    /// Says once of each run that it will be late.
    fn tell_missed(&mut self, missed: &[Missed], listener: &mut dyn Listener) {
        for missed in missed {
            let mut runs = self.runs.iter_mut();
            let Some(active) = runs.find(|run| run.run == missed.run && !run.told_late) else {
                continue;
            };
            active.told_late = true;
            listener.news(News::WillMiss(active.job.name.clone(), missed.by_ns));
        }
    }

    /// The node took a new plan.
    pub(crate) fn replanned(&mut self, plan: &Plan, listener: &mut dyn Listener) {
        self.replans += 1;
        let numbers = plan.processes.iter().map(|process| process.id);
        let of: Vec<_> = numbers
            .filter_map(|id| Some(self.controller.process(id)?.0))
            .collect();
        for active in self.runs.iter_mut().filter(|run| of.contains(&run.run)) {
            active.replans += 1;
        }
        self.ledger.replanned(plan, listener);
    }

    /// The node did not take the last plan.
    pub(crate) fn refused(&mut self) {
        self.controller.refused();
    }

    /// A program of the process with that number did not succeed.
    pub(crate) fn failed_program(&mut self, process: u32, task: Option<u32>) {
        self.ledger.failed_program(process, task);
    }

    /// For how long a program of the process with that number had a CPU.
    pub(crate) fn ran(&mut self, process: u32, ran_ns: u64) {
        self.ledger.ran(process, ran_ns);
    }

    /// All is over: records the runs, and says what became of each job.
    pub(crate) fn finish(&mut self, listener: &mut dyn Listener) -> Vec<JobOutcome> {
        let finished = self.ledger.finish(listener);
        let outcome = |run: &ActiveJob| {
            let figures = finished.iter().find(|(id, _)| Some(*id) == run.id);
            let figures = figures.and_then(|(_, figures)| figures.as_ref());
            let history = self.ledger.history(&run.job.name).unwrap_or_default();
            let state = self.controller.run(run.run);
            let completed = state.is_some_and(|state| {
                let mut ends = state.ends.iter();
                ends.all(|end| *end == Some(End::Complete))
            });
            outcome::of(run, figures, &history, completed)
        };
        self.runs.iter().map(outcome).collect()
    }

    /// Whether all that happened could be recorded.
    pub(crate) fn is_recorded(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use pbs_job::machine_from_toml;

    struct Nobody;

    impl Listener for Nobody {}

    /// Of the whole CPU of the machine, one takes a quarter of a second.
    fn job(name: &str, deadline_ns: u64) -> Vec<Submission> {
        let text = format!(
            "name = \"{name}\"\ndeadline_ns = {deadline_ns}\n[[process]]\nid = 1\n\
             memory_bytes = 4096\ncommand = [\"true\"]\ntasks = [62_500_000]\n"
        );
        vec![Submission::from_text(text, name.into()).unwrap()]
    }

    fn jobs(directory: &Path) -> Jobs {
        let machine = include_str!("../../../../samples/machines/vm.toml");
        let settings = Settings {
            history: directory.join("history.db"),
            max_replans: 0,
        };
        // Nothing is left open, so the device is not asked.
        let device = Device::open_path(Path::new("/dev/null"), true).unwrap();
        let machine = machine_from_toml(machine).unwrap();
        Jobs::open(machine, &settings, &device, &Config::DEFAULT).unwrap()
    }

    /// One that is declined takes nothing from those who come after, nor do those that
    /// were asked for with it; and the plan of a second job has the first.
    #[test]
    fn a_node_goes_on_after_it_has_declined() {
        let directory = std::env::temp_dir().join(format!("pbs-jobs-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let mut admit = |submissions| {
            let plan = jobs.admit(submissions, Kind::Plan, "jobs", &mut Nobody);
            plan.map(|plan| plan.processes.len())
        };
        const SECOND_NS: u64 = 1_000_000_000;
        let mut both = job("fits", SECOND_NS);
        both.extend(job("late", SECOND_NS / 10));
        match admit(both) {
            Err(Error::Declined(declined)) => assert_eq!(declined.job, "late"),
            other => panic!("{other:?}"),
        }
        assert_eq!(admit(job("first", SECOND_NS * 2 / 5)).unwrap(), 1);
        assert!(admit(job("second", SECOND_NS * 2 / 5)).is_err());
        assert_eq!(admit(job("second", 2 * SECOND_NS)).unwrap(), 2);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
