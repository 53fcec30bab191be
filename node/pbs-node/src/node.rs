// SPDX-License-Identifier: GPL-2.0
//! The node: writes plans, starts their programs, and follows them to their end.
//!
//! On a CPU of the plan who follows it is a normal process and may hardly run. So
//! nothing of the plan waits for it once the programs are released; it only reads,
//! many events at a time.

mod starting;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pbs_history::{Kind, RunId};
use pbs_job::{Job, Machine};
use pbs_launch::cgroup::GroupLimits;
use pbs_launch::signals::{sooner, wait, Signals};
use pbs_launch::Gate;
use pbs_plan::{Config, Plan};
use pbs_report::{Exit, Outcome};
use pbs_uapi::{EventKind, Info, Tier, Wait};

use crate::active::ActiveJob;
use crate::clock::monotonic_ns;
use crate::jobs::{Jobs, ToDo};
use crate::kernel::Kernel;
use crate::lease::Lease;
use crate::ledger::Unrecorded;
use crate::predict::memory_bytes_of;
use crate::processes::Processes;
use crate::programs::{Ends, Programs, Strangers, GRACE};
use crate::progress::Progress;
use crate::refusals::Refusals;
use crate::resume::Resumed;
use crate::scheduler::Scheduler;
use starting::Starting;

use crate::{device, Error, Launch, Listener, News, Settings, SlowdownSource, Step, Submission};

/// Interval and maximum number of checks of a run whose programs have ended, while the kernel's
/// last events about it have not arrived yet.
const LOOK_MS: i32 = 10;
const LOOKS: u32 = 100;

/// Interval at which groups are checked whose processes were killed many times and have not ended.
const STUCK_MS: i32 = 1000;

/// Interval at which children that the node has not started are reported.
const STRANGERS_EVERY: Duration = Duration::from_secs(60);

/// Next step of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for events, for so many milliseconds; negative: for ever.
    Wait(i32),
    /// All work is done; the value is the outcome of the plans. Later programs continue from here.
    Over(Outcome),
}

/// Options of a node.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The lease of all plans, instead of their own; 0: none.
    pub lease_ns: Option<u64>,
    /// Whether the output of programs is kept out of the caller's standard output.
    pub output_to_error: bool,
    /// Below which each job that was ordered has a control group of its own
    /// ([`cgroup::prepare`](pbs_launch::cgroup::prepare)); `None`: it has none.
    pub cgroups: Option<PathBuf>,
    /// The control group of a job has no more memory than was asked for, or than is reserved for it
    /// if that is more. At least what was asked for is reserved.
    pub limits_memory: bool,
    /// Most processes and threads in the control group of a job; `None`: they have no limit.
    pub job_pids: Option<u64>,
    /// Whether the node records which tasks run beside each other, if there are 2 to 16 CPUs.
    /// Slow-downs are learnt from these records (`pbsctl interference`).
    pub learns_slowdowns: bool,
    /// Whether the listener receives processes that have more memory than was reserved for them.
    pub reports_peaks: bool,
    /// Longest time that a job gets to save its work before it is ended; 0: it is not asked to.
    pub checkpoint_ns: u64,
    /// Programs for which a descriptor may be open at the same time: those that were started and
    /// not executed yet. `None`: the system alone limits them. An order for whose programs there
    /// is no room waits.
    pub open_programs: Option<usize>,
}

impl Options {
    /// Returns the limits of all processes of a job together.
    pub(crate) fn limits_of(&self, active: &ActiveJob) -> GroupLimits {
        // Earlier runs say what is planned for the job, and its user how much it may have.
        let memory_bytes = memory_bytes_of(&active.job).max(active.requested_bytes);
        let memory_bytes = self.limits_memory.then_some(memory_bytes);
        GroupLimits { memory_bytes, pids: self.job_pids }
    }

    /// Whether the control group of a job has room for its programs, which are all forked before
    /// the first of them ends. `file`: what the job is called in messages.
    pub(crate) fn allow_programs(&self, job: &Job, file: &str) -> Result<(), Error> {
        let (programs, most) = (job.programs(), self.job_pids.filter(|_| self.cgroups.is_some()));
        match most.filter(|&most| programs as u64 > most) {
            Some(most) => Err(Error::ManyPrograms(file.into(), programs, most)),
            None => Ok(()),
        }
    }
}

/// One node with what runs on it.
#[derive(Debug)]
pub struct Node<L> {
    /// Receiver of messages.
    pub listener: L,
    pub(crate) options: Options,
    pub(crate) kernel: Kernel,
    /// Jobs from which plans are made, if there are jobs.
    pub(crate) jobs: Option<Jobs>,
    pub(crate) progress: Progress,
    /// For how long the CPUs have the plan without a word of ours.
    pub(crate) lease: Lease,
    /// Events were lost since it was last looked what is in force.
    lost: bool,
    /// Runs that are over but for what events of them may still come: how often it was
    /// looked.
    looked: BTreeMap<pbs_planner::RunId, u32>,
    pub(crate) programs: Programs,
    pub(crate) processes: Processes,
    /// Command that answers prediction failures, if there is one.
    pub(crate) scheduler: Option<Scheduler>,
    pub(crate) refusals: Refusals,
    /// Runs whose programs are on their way to a gate, or stand there.
    starting: Vec<Starting>,
    /// Runs that could not be started since that was last asked for, with the reason.
    not_started: Vec<(Option<RunId>, Error)>,
    /// Children that the node has not started and that were not reported yet, and the time of
    /// the last report.
    strangers: (usize, Option<Instant>),
}

impl<L> AsFd for Node<L> {
    /// Returns a descriptor that is readable when the kernel has something to report.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel.device.as_fd()
    }
}

impl<L: Listener> Node<L> {
    /// The node whose device is at `path`.
    pub fn open(path: &Path, options: Options, listener: L) -> Result<Self, Error> {
        Ok(Self {
            listener,
            options,
            kernel: Kernel::open(path)?,
            jobs: None,
            progress: Progress::default(),
            lease: Lease::default(),
            lost: false,
            looked: BTreeMap::new(),
            programs: Programs::default(),
            processes: Processes::default(),
            scheduler: None,
            refusals: Refusals::default(),
            starting: Vec::new(),
            not_started: Vec::new(),
            strangers: (0, None),
        })
    }

    /// Returns the device's description of itself.
    pub fn info(&self) -> &Info {
        &self.kernel.info
    }

    /// The configuration of plans that have none.
    pub fn config(&self) -> &Config {
        &self.kernel.config
    }

    /// Whether the node runs jobs.
    pub fn plans_jobs(&self) -> bool {
        self.jobs.is_some()
    }

    /// From now on the node runs jobs, and plans are made of them, for a machine of
    /// which it is the only node.
    ///
    /// # Errors
    ///
    /// The history is not to be had, or a run goes on that nobody follows.
    pub fn plan_jobs(&mut self, machine: Machine, settings: &Settings) -> Result<(), Error> {
        let Kernel { device, config, .. } = &self.kernel;
        let jobs = Jobs::open(machine, settings, device, config, &mut self.listener)?;
        self.set_jobs(jobs, &[]);
        Ok(())
    }

    /// From now on those are the jobs; `begun`: CPUs where a plan of theirs is in force.
    fn set_jobs(&mut self, mut jobs: Jobs, begun: &[u32]) {
        if self.options.learns_slowdowns {
            let by_clock = self.kernel.info.tier == Tier::Clock as u32;
            jobs.learn_slowdowns(&self.kernel.config, by_clock, begun);
        }
        if self.options.reports_peaks {
            jobs.report_peaks();
        }
        self.jobs = Some(jobs);
    }

    /// Admits jobs; without any, those that were submitted and still can be. They are
    /// started with [`Node::start`]. `file` is what they are called in messages.
    ///
    /// # Errors
    ///
    /// Why one was declined: nothing is admitted then.
    pub fn admit(
        &mut self,
        submissions: Vec<Submission>,
        kind: Kind,
        file: &str,
    ) -> Result<(), Error> {
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        jobs.look_at_progress(&self.kernel.device);
        if submissions.is_empty() {
            jobs.admit_waiting(file, &mut self.listener)
        } else {
            jobs.admit(submissions, &[], kind, file, &mut self.listener)?;
            Ok(())
        }
    }

    /// The job of a submission as earlier runs predict it. Its times count from its submission.
    ///
    /// # Errors
    ///
    /// The node plans no jobs, or the history cannot be read.
    pub fn predicted(&self, submission: &Submission) -> Result<Job, Error> {
        let jobs = self.jobs.as_ref().ok_or(Error::NoJobs)?;
        let history = jobs.ledger.history(&submission.job, None)?;
        Ok(submission.predicted(&history, 0)?.0)
    }

    /// The run that the process of that number in plans belongs to, and its index in the
    /// job.
    pub fn process(&self, number: u32) -> Option<(pbs_planner::RunId, usize)> {
        self.jobs.as_ref()?.controller.process(number)
    }

    /// Jobs that are admitted by [`Node::admit`] and [`Node::admit_together`] are planned
    /// from now on with who slows whom.
    ///
    /// # Errors
    ///
    /// The node plans no jobs.
    pub fn plan_with_slowdowns(&mut self, source: SlowdownSource) -> Result<(), Error> {
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        jobs.slowdowns = Some(source);
        Ok(())
    }

    /// Admits jobs whose tasks come in that order on their CPUs. Where it does not keep all
    /// deadlines they are planned one beside the other, as [`Node::admit`] does, and
    /// [`News::NotArranged`](crate::News::NotArranged) tells why. The answer is the run of
    /// each, in the order of the submissions.
    ///
    /// # Errors
    ///
    /// As [`Node::admit`].
    pub fn admit_together(
        &mut self,
        submissions: Vec<Submission>,
        steps: &[Step],
        file: &str,
    ) -> Result<Vec<pbs_planner::RunId>, Error> {
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        jobs.look_at_progress(&self.kernel.device);
        jobs.admit(submissions, steps, Kind::Plan, file, &mut self.listener)
    }

    /// Takes over the jobs of a planner that died, and hears of all that it has not
    /// heard of. Their programs were started by another; their ends are told by events.
    ///
    /// # Errors
    ///
    /// There is none, or what was kept of it is of no use.
    pub fn take_over(&mut self, settings: &Settings) -> Result<(), Error> {
        let Kernel { device, config, .. } = &self.kernel;
        let (jobs, resumed) = Jobs::resume(settings, device, config, &mut self.listener)?;
        self.kernel.seek(resumed.next_seq)?;
        if let Some(parent) = &self.options.cgroups {
            for active in &jobs.runs {
                let limits = self.options.limits_of(active);
                let opened = self.programs.open_cgroup(active.run, active.id, parent, limits);
                if let Err(error) = opened {
                    // Its programs run, and ending them would lose their work.
                    let job = active.job.name.clone();
                    self.listener.news(News::Unlimited(job, error.to_string()));
                }
            }
        }
        self.set_jobs(jobs, &resumed.in_force);
        self.progress = Progress::resumed(&resumed.plans, &resumed.in_force);
        let first = &resumed.plans[0];
        self.lease = Lease::new(self.options.lease_ns.unwrap_or(first.lease_ns));
        self.listener.planned(first);
        for plan in &resumed.plans {
            self.processes.note(plan);
        }
        self.ask_about(&resumed);
        while self.hear()? > 0 {}
        self.progress.caught_up(&resumed.in_force);
        // The planner that died may not have come to kill them.
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        let cancelled = jobs.runs.iter().filter(|run| run.cancelled.is_some());
        for run in cancelled.map(|active| active.run).collect::<Vec<_>>() {
            jobs.controller.cancel(run);
            self.programs.end(run);
        }
        Ok(())
    }

    /// Lets the command be asked about the plans that another planner has left.
    fn ask_about(&mut self, resumed: &Resumed) {
        let Some(scheduler) = &mut self.scheduler else {
            return;
        };
        for &cpu in &resumed.in_force {
            let of_kernel = device::in_force(&self.kernel.device, cpu);
            let Some(plan_id) = of_kernel.as_ref().map(|plan| plan.plan_id) else {
                continue;
            };
            // The kernel knows no names.
            let named = resumed.plans.iter().find(|plan| plan.plan_id == plan_id);
            if let Some(plan) = named.or(of_kernel.as_ref()) {
                scheduler.written_on(plan, cpu, monotonic_ns());
            }
        }
    }

    /// Forks the programs of a plan, writes it, attaches the programs, and lets them go.
    pub fn start_plan(&mut self, launch: Launch, signals: &Signals) -> Result<(), Error> {
        let Launch { mut plan, programs, file } = launch;
        plan.lease_ns = self.options.lease_ns.unwrap_or(plan.lease_ns);
        let gate = Gate::new(None).map_err(Error::Programs)?;
        let children = self.programs.fork((None, None), &programs, &gate, signals)?;
        self.programs.wait_ready(&children)?;
        self.begin()?;
        device::write(&self.kernel.device, &plan, &file)?;
        self.written(&plan);
        for pid in children {
            self.attach(pid)?;
        }
        gate.release().map_err(Error::Programs)
    }

    /// Prepares the start of something new. If nothing is under way, earlier events are ignored,
    /// except those about the end of runs whose end was not received.
    fn begin(&mut self) -> Result<(), Error> {
        let is_unheard = |jobs: &Jobs| jobs.over().iter().any(|(_, is_heard)| !is_heard);
        while self.jobs.as_ref().is_some_and(is_unheard) && self.hear()? > 0 {}
        if self.progress.is_over() {
            self.progress = Progress::default();
            self.lease = Lease::default();
            let next_seq = self.kernel.next_seq()?;
            self.kernel.seek(next_seq)?;
        }
        Ok(())
    }

    /// The node took a plan.
    fn written(&mut self, plan: &Plan) {
        self.lease = Lease::new(plan.lease_ns);
        self.progress.written(plan);
        self.listener.planned(plan);
        self.processes.note(plan);
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.written(plan, monotonic_ns());
        }
    }

    fn attach(&self, pid: i32) -> Result<(), Error> {
        let Some(child) = self.programs.child(pid) else {
            return Ok(());
        };
        child.attach(&self.kernel.device).map_err(|refused| {
            let what = &child.program;
            let label = self.processes.label(what.process);
            Error::Refused(format!("attach {} to process {label}", what.name), refused)
        })
    }

    /// Hears and acts until all is over, or somebody wants to stop.
    pub fn follow(&mut self, signals: &Signals) -> Result<Outcome, Error> {
        let path = self.kernel.path.clone();
        let failed = |error| Error::file(&path, error);
        loop {
            let heard = self.hear()?;
            if signals.want_stop().map_err(failed)? {
                return Ok(Outcome::Interrupted);
            }
            if heard > 0 {
                continue;
            }
            match self.act()? {
                Next::Over(outcome) => return Ok(outcome),
                Next::Wait(timeout_ms) => {
                    self.listener.waits();
                    wait(&*self, signals, timeout_ms).map_err(failed)?;
                }
            }
        }
    }

    /// Hears of what has happened. Returns how many events that were; 0: all were heard.
    pub fn hear(&mut self) -> Result<usize, Error> {
        let count = self.kernel.read()?;
        let mut stopped = Vec::new();
        for event in &self.kernel.batch[..count] {
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
                self.listener.event(event);
                if let Some(scheduler) = &mut self.scheduler {
                    scheduler.event(event);
                }
            }
        }
        if let Some(jobs) = &mut self.jobs {
            jobs.tell_begun(&mut self.listener);
            jobs.tell_peaks(&mut self.listener);
            stopped.extend(jobs.cancelled());
        }
        for (process, cut) in stopped {
            self.cancel(process, cut);
        }
        Ok(count)
    }

    /// Acts on everything that was received. Answers prediction failures with a new plan if jobs
    /// are run, keeps the lease, and handles the programs that have ended. Call this after
    /// everything was received.
    pub fn act(&mut self) -> Result<Next, Error> {
        if std::mem::take(&mut self.lost) {
            // The end of a plan may be among what was lost.
            let cpus = self.progress.in_force();
            let in_force = |&cpu: &u32| device::in_force(&self.kernel.device, cpu).is_some();
            let cpus: Vec<_> = cpus.filter(in_force).collect();
            self.progress.caught_up(&cpus);
            if let Some(jobs) = &mut self.jobs {
                jobs.catch_up(&self.kernel.device, &mut self.listener);
            }
        }
        let plans_jobs = self.jobs.is_some();
        let scheduler = &mut self.scheduler;
        let mut admitter = self.jobs.as_mut().and_then(|jobs| jobs.admitter.as_mut());
        let other = |pid| {
            let of_scheduler = scheduler.as_mut().and_then(|scheduler| scheduler.has_ended(pid));
            of_scheduler.or_else(|| admitter.as_mut()?.has_ended(pid))
        };
        let strangers = self.programs.reap(plans_jobs, other);
        self.tell_strangers(strangers.ended);
        let settled_ms = self.settle()?;
        let again_ms = self.jobs.as_ref().map_or(-1, |jobs| jobs.backlog.again_ms(Instant::now()));
        if let Some(outcome) = self.progress.outcome() {
            let jobs = self.jobs.as_ref();
            let has_vacated = jobs.is_some_and(|jobs| jobs.controller.has_vacated());
            if self.programs.all_ended() && !has_vacated && settled_ms < 0 && again_ms < 0 {
                // The ends of programs are events too.
                while self.hear()? > 0 {}
                return Ok(Next::Over(outcome));
            }
        }
        let answered_ms = self.answer();
        self.tell_others_of_late();
        let lease_ms = self.lease.keep(&self.kernel.device, self.progress.in_force());
        let Strangers { more, .. } = strangers;
        let settled_ms = sooner(sooner(settled_ms, again_ms), if more { 0 } else { -1 });
        Ok(Next::Wait(sooner(sooner(answered_ms, settled_ms), lease_ms.unwrap_or(-1))))
    }

    /// Reports of runs that will be late that their programs have started other processes. The
    /// group of a run is read once for this, since a run is reported as late once.
    fn tell_others_of_late(&mut self) {
        let Some(jobs) = &mut self.jobs else {
            return;
        };
        for run in jobs.take_late() {
            let Some(active) = jobs.active(run) else {
                continue;
            };
            let usage = self.programs.usage(run, &active.job);
            if let (Some(id), Some(others_ns)) = (active.id, usage.notable_others_ns()) {
                self.listener.started_others(id, &active.job.name, others_ns);
            }
        }
    }

    /// Reports children that the node has not started, once in a while.
    fn tell_strangers(&mut self, ended: usize) {
        let (count, told) = &mut self.strangers;
        *count = count.saturating_add(ended);
        if *count > 0 && told.is_none_or(|at| at.elapsed() >= STRANGERS_EVERY) {
            self.listener.news(News::Strangers(std::mem::take(count)));
            *told = Some(Instant::now());
        }
    }

    /// Records the runs that are over, and kills what was told to end and did not.
    /// Returns when to do so again, in milliseconds; negative: when something happens.
    fn settle(&mut self) -> Result<i32, Error> {
        let Some(jobs) = &mut self.jobs else {
            return Ok(-1);
        };
        let Ends { alive, ended } = self.programs.ends();
        let mut over = jobs.over();
        let mut again_ms = -1;
        // All its programs have ended, and no event has said so of its processes.
        for &run in ended.keys() {
            let is_starting = self.starting.iter().any(|starting| starting.has(run));
            let is_over = over.iter().any(|(known, _)| *known == run);
            if is_starting || is_over || alive.contains_key(&run) {
                continue;
            }
            let looked = self.looked.entry(run).or_default();
            *looked += 1;
            jobs.look_at(run, &self.kernel.device, *looked > LOOKS);
            again_ms = LOOK_MS;
        }
        over.retain(|(run, _)| !alive.contains_key(run));
        for (run, is_heard) in over {
            // Its events are there, or about to be written.
            if !is_heard {
                let looked = self.looked.entry(run).or_default();
                *looked += 1;
                if *looked <= LOOKS {
                    again_ms = LOOK_MS;
                    continue;
                }
            }
            let ended = self.programs.finish(run);
            self.looked.remove(&run);
            for number in jobs.numbers(run) {
                self.processes.forget(number);
            }
            if let Some(outcome) = jobs.finish(run, ended, &mut self.listener) {
                self.listener.over(outcome);
            }
        }
        for run in self.programs.saved() {
            jobs.leave_plan(run);
            self.programs.end(run);
        }
        again_ms = sooner(again_ms, self.programs.kill_overdue());
        if let Some(soon) = self.programs.remove_cgroups() {
            again_ms = sooner(again_ms, if soon { LOOK_MS } else { STUCK_MS });
        }
        Ok(again_ms)
    }

    /// Answers prediction failures with a new plan, if jobs are run. Returns for
    /// how long events may be waited for; negative: for ever.
    fn answer(&mut self) -> i32 {
        if let Some(jobs) = &mut self.jobs {
            jobs.look_at_memory(&self.kernel.device, &mut self.listener);
        }
        if let Some(timeout_ms) = self.answer_by_command() {
            self.cancel_all();
            return timeout_ms;
        }
        let Some(jobs) = &mut self.jobs else {
            return -1;
        };
        if jobs.controller.is_asked() {
            jobs.look_at_progress(&self.kernel.device);
        }
        let to_do = jobs.answer(&mut self.listener);
        // The new plan does not have them, and would set them free.
        self.cancel_all();
        let Some(jobs) = &mut self.jobs else {
            return -1;
        };
        match to_do {
            ToDo::Wait(timeout_ms) => timeout_ms,
            ToDo::Plan(mut plan) => {
                plan.lease_ns = self.lease.length_ns();
                let encoded = pbs_plan::wire::encode(&plan);
                match self.kernel.device.write_plan(&encoded.bytes) {
                    Ok(()) => {
                        self.refusals.taken();
                        self.progress.written(&plan);
                        jobs.replanned(&plan, &mut self.listener);
                        self.listener.planned(&plan);
                        self.processes.note(&plan);
                        if let Some(scheduler) = &mut self.scheduler {
                            scheduler.written(&plan, monotonic_ns());
                        }
                    }
                    // Something has happened since that we have not heard of: the plan in
                    // force goes on, and the failure is answered once more.
                    Err(refused) => {
                        jobs.refused();
                        self.listener.news(self.refusals.refused(&refused));
                        // There is a time before which no other is made.
                        return 0;
                    }
                }
                -1
            }
        }
    }

    /// Ends the programs of all processes that were cancelled since this was last done.
    fn cancel_all(&mut self) {
        for (process, cut) in self.jobs.as_mut().map_or_else(Vec::new, Jobs::cancelled) {
            self.cancel(process, cut);
        }
    }

    /// Ends the programs of a process that waits for `cut`, which has ended before
    /// its tasks did. The class would hold them for ever.
    fn cancel(&mut self, process: u32, cut: u32) {
        if !self.processes.cancel(process, cut) {
            return;
        }
        let jobs = self.jobs.as_ref();
        let run = jobs.and_then(|jobs| jobs.run_of(process));
        if run.is_some_and(|run| self.programs.is_saving(run)) {
            // Others of the job may have saved their work before.
            return;
        }
        let own = self.programs.of_process(process);
        let run = jobs.and_then(|jobs| jobs.active(jobs.run_of(process)?));
        // The end of a job that a user has cancelled is what the user wants, and no news.
        if run.is_none_or(|run| run.cancelled.is_none()) {
            self.listener.news(News::Cancelled {
                process: self.processes.label(process),
                job: run.map(|run| run.job.name.clone()),
                cut: self.processes.label(cut),
                is_told: !own.is_empty(),
            });
        }
        for child in own {
            child.signal(libc::SIGTERM);
        }
    }

    /// Ends the node's work, given the answer of [`Node::follow`]. Plans and programs that have not
    /// ended are stopped. After an error, the jobs are recorded nevertheless.
    pub fn end(
        &mut self,
        followed: Result<Outcome, Error>,
        signals: &Signals,
    ) -> Result<Outcome, Error> {
        match followed {
            Ok(Outcome::Interrupted) | Err(_) => self.stop(signals),
            Ok(_) => {}
        }
        self.finish();
        followed
    }

    /// Drops the plans and ends the programs.
    fn stop(&mut self, signals: &Signals) {
        for cpu in self.progress.in_force() {
            // It may be gone already.
            let _ = self.kernel.device.drop_plan(cpu);
        }
        self.programs.signal_all(libc::SIGTERM);
        let deadline = Instant::now() + GRACE;
        while !self.programs.all_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.programs.signal_all(libc::SIGKILL);
            }
            let timeout_ms = i32::try_from(left.as_millis()).unwrap_or(0).clamp(10, 2000);
            let waited = wait(signals, signals, timeout_ms);
            if waited.and_then(|()| signals.want_stop()).is_err() {
                break;
            }
        }
        while self.hear().is_ok_and(|count| count > 0) {}
    }

    /// Returns the exit of each program of a plan. Exits of jobs' programs are part of the job's
    /// outcome.
    pub fn exits(&mut self) -> Vec<Exit> {
        self.programs.exits()
    }

    /// Records all jobs that are under way as they stand, since nobody follows them any
    /// more.
    pub fn finish(&mut self) {
        let Some(jobs) = &mut self.jobs else {
            return;
        };
        for run in jobs.started() {
            let ended = self.programs.finish(run);
            if let Some(outcome) = jobs.finish(run, ended, &mut self.listener) {
                self.listener.over(outcome);
            }
        }
    }

    /// Results that are not recorded.
    pub fn unrecorded(&self) -> Unrecorded {
        self.jobs.as_ref().map_or_else(Unrecorded::default, |jobs| jobs.ledger.unrecorded())
    }

    /// Whether all that happened could be recorded.
    pub fn is_recorded(&self) -> bool {
        self.jobs.as_ref().is_none_or(Jobs::is_recorded)
    }
}
