// SPDX-License-Identifier: GPL-2.0
//! The node: writes plans, starts their programs, and follows them to their end.
//!
//! On a CPU of the plan who follows it is a normal process and may hardly run. So
//! nothing of the plan waits for it once the programs are released; it only reads,
//! many events at a time.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pbs_history::Kind;
use pbs_job::Machine;
use pbs_plan::{Config, Plan, Process};
use pbs_report::{Exit, Outcome};
use pbs_uapi::{Device, Event, EventKind, Info, Wait};

use crate::child::{empty_outputs, Child, Gate, Launch};
use crate::jobs::{Jobs, Settings, ToDo};
use crate::lease::Lease;
use crate::progress::Progress;
use crate::signals::{wait, Signals};
use crate::{device, Error, JobOutcome, Listener, News, Submission};

/// Events read at once.
pub(crate) const BATCH: usize = 4096;

/// How long programs have to end after an interruption.
const GRACE: Duration = Duration::from_secs(2);

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for events, for so many milliseconds; negative: for ever.
    Wait(i32),
    /// Nothing is under way, and how the plans ended. What is started then goes on
    /// from here.
    Over(Outcome),
}

/// How a node is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The lease of all plans, instead of their own; 0: none.
    pub lease_ns: Option<u64>,
    /// What programs print is kept out of the own standard output.
    pub output_to_error: bool,
}

/// One node with what runs on it.
#[derive(Debug)]
pub struct Node<L> {
    /// Who hears of what happens.
    pub listener: L,
    options: Options,
    path: PathBuf,
    device: Device,
    info: Info,
    /// The configuration of plans that have none, as it was at first. It may change
    /// while a plan runs.
    config: Config,
    /// What the plans are made of, if it is jobs.
    jobs: Option<Jobs>,
    progress: Progress,
    /// For how long the CPUs have the plan without a word of ours.
    lease: Lease,
    /// Events were lost since it was last looked what is in force.
    lost: bool,
    /// Of all plans and jobs.
    children: Vec<Child>,
    /// The labels of all processes of our plans, by their numbers.
    labels: BTreeMap<u32, String>,
    /// Numbers of processes that wait for what will never end, each with the one
    /// that it waits for.
    cancelled: BTreeMap<u32, u32>,
    batch: Vec<Event>,
}

impl<L> AsFd for Node<L> {
    /// Can be read when there is something to hear.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl<L: Listener> Node<L> {
    /// The node whose device is at `path`.
    pub fn open(path: &Path, options: Options, listener: L) -> Result<Self, Error> {
        let device = device::open(path)?;
        Ok(Self {
            listener,
            options,
            path: path.into(),
            info: device.info().map_err(Error::refused("limits"))?,
            config: device::config()?,
            device,
            jobs: None,
            progress: Progress::default(),
            lease: Lease::default(),
            lost: false,
            children: Vec::new(),
            labels: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            batch: vec![Event::default(); BATCH],
        })
    }

    /// What the device says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The configuration of plans that have none.
    pub fn config(&self) -> &Config {
        &self.config
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
        self.jobs = Some(Jobs::open(machine, settings, &self.device, &self.config)?);
        Ok(())
    }

    /// Admits jobs; without any, those that were submitted and still can be. The answer
    /// is what starts them, with the plan of all that runs. `file` is what they are
    /// called in messages.
    ///
    /// # Errors
    ///
    /// Why one was declined: nothing is admitted then. Or which program is missing: what was
    /// admitted stays so, and the node is to be ended.
    pub fn admit(
        &mut self,
        submissions: Vec<Submission>,
        kind: Kind,
        file: String,
    ) -> Result<Launch, Error> {
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        let plan = jobs.admit(submissions, kind, &file, &mut self.listener)?;
        // Those of jobs before are there already.
        let is_new = |process: &Process| !self.labels.contains_key(&process.id);
        Launch::new(plan, is_new, &self.path, self.options.output_to_error, file)
    }

    /// Takes over the jobs of a planner that died, and hears of all that it has not
    /// heard of. Their programs were started by another; their ends are told by events.
    ///
    /// # Errors
    ///
    /// There is none, or what was kept of it is of no use.
    pub fn take_over(&mut self, settings: &Settings) -> Result<(), Error> {
        let (jobs, resumed) = Jobs::resume(settings, &self.device, &self.config)?;
        self.device
            .seek(resumed.next_seq)
            .map_err(Error::refused("events"))?;
        self.jobs = Some(jobs);
        self.progress = Progress::resumed(&resumed.plans, &resumed.in_force);
        let first = &resumed.plans[0];
        self.lease = Lease::new(self.options.lease_ns.unwrap_or(first.lease_ns));
        self.listener.planned(first);
        for plan in &resumed.plans {
            note_labels(&mut self.labels, plan);
        }
        while self.hear()? > 0 {}
        self.progress.caught_up(&resumed.in_force);
        Ok(())
    }

    /// Forks the programs, writes the plan, attaches the programs, and lets
    /// them go.
    pub fn start(&mut self, launch: Launch, signals: &Signals) -> Result<(), Error> {
        let Launch {
            mut plan,
            programs,
            file,
        } = launch;
        plan.lease_ns = self.options.lease_ns.unwrap_or(plan.lease_ns);
        empty_outputs(&programs).map_err(Error::Programs)?;
        let mut gate = Gate::new().map_err(Error::Programs)?;
        let started = self.children.len();
        for program in &programs {
            let child = gate.fork(program, signals.mask_before());
            self.children.push(child.map_err(Error::Programs)?);
        }
        gate.wait_ready(programs.len()).map_err(Error::Programs)?;

        let next_seq = self
            .device
            .info()
            .map_err(Error::refused("events"))?
            .next_seq;
        if self.progress.is_over() {
            // What happened before is of no interest.
            self.progress = Progress::default();
            self.device
                .seek(next_seq)
                .map_err(Error::refused("events"))?;
        }
        if let Some(jobs) = &mut self.jobs {
            jobs.follow_from(next_seq)?;
        }
        device::write(&self.device, &plan, &file)?;
        self.lease = Lease::new(plan.lease_ns);
        self.progress.written(&plan);
        self.listener.planned(&plan);
        note_labels(&mut self.labels, &plan);
        if let Some(jobs) = &mut self.jobs {
            jobs.in_force(&plan)?;
        }
        for child in &self.children[started..] {
            child.attach(&self.device).map_err(|refused| {
                let what = &child.program;
                let label = label(&self.labels, what.process);
                Error::Refused(format!("attach {} to process {label}", what.name), refused)
            })?;
        }
        gate.release().map_err(Error::Programs)?;
        if let Some(jobs) = &mut self.jobs {
            jobs.released(&mut self.listener);
        }
        Ok(())
    }

    /// Hears and acts until all is over, or somebody wants to stop.
    pub fn follow(&mut self, signals: &Signals) -> Result<Outcome, Error> {
        let path = self.path.clone();
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
        let read = self.device.read_events(&mut self.batch);
        let count = read.map_err(|error| Error::file(&self.path, error))?;
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
                self.listener.event(event);
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

    /// Does what is to be done about what was heard: answers prediction failures with
    /// a new plan, if jobs are run, keeps the lease, and sees to the programs that
    /// have ended. To be called when all was heard.
    pub fn act(&mut self) -> Result<Next, Error> {
        if std::mem::take(&mut self.lost) {
            // The end of a plan may be among what was lost.
            let cpus = self.progress.in_force();
            let in_force = |&cpu: &u32| device::in_force(&self.device, cpu).is_some();
            let cpus: Vec<_> = cpus.filter(in_force).collect();
            self.progress.caught_up(&cpus);
            if let Some(jobs) = &mut self.jobs {
                jobs.catch_up(&self.device, &mut self.listener);
            }
        }
        if let Some(outcome) = self.progress.outcome() {
            if self.all_ended() {
                // The ends of programs are events too.
                while self.hear()? > 0 {}
                return Ok(Next::Over(outcome));
            }
        }
        let mut timeout_ms = self.answer();
        if let Some(left_ms) = self.lease.keep(&self.device, self.progress.in_force()) {
            timeout_ms = u32::try_from(timeout_ms).map_or(left_ms, |ms| left_ms.min(ms as i32));
        }
        Ok(Next::Wait(timeout_ms))
    }

    /// Answers prediction failures with a new plan, if jobs are run. Returns for
    /// how long events may be waited for; negative: for ever.
    fn answer(&mut self) -> i32 {
        let Some(jobs) = &mut self.jobs else {
            return -1;
        };
        jobs.look_at_memory(&self.device, &mut self.listener);
        let to_do = jobs.answer(&mut self.listener);
        // The new plan does not have them, and would set them free.
        for (process, cut) in jobs.cancelled() {
            self.cancel(process, cut);
        }
        let Some(jobs) = &mut self.jobs else {
            return -1;
        };
        match to_do {
            ToDo::Wait(timeout_ms) => timeout_ms,
            ToDo::Plan(mut plan) => {
                plan.lease_ns = self.lease.length_ns();
                let encoded = pbs_plan::wire::encode(&plan);
                match self.device.write_plan(&encoded.bytes) {
                    Ok(()) => {
                        self.progress.written(&plan);
                        jobs.replanned(&plan, &mut self.listener);
                        self.listener.planned(&plan);
                        note_labels(&mut self.labels, &plan);
                    }
                    // Something has happened since that we have not heard of: the plan in
                    // force goes on, and the failure is answered once more.
                    Err(refused) => {
                        jobs.refused();
                        self.listener.news(News::PlanRefused(refused.to_string()));
                        // There is a time before which no other is made.
                        return 0;
                    }
                }
                -1
            }
        }
    }

    /// Ends the programs of a process that waits for `cut`, which has ended before
    /// its tasks did. The class would hold them for ever.
    fn cancel(&mut self, process: u32, cut: u32) {
        if self.cancelled.insert(process, cut).is_some() {
            return;
        }
        let children = self.children.iter_mut();
        let own = children.filter(|child| child.program.process == process);
        let mut own: Vec<_> = own.collect();
        self.listener.news(News::Cancelled {
            process: label(&self.labels, process),
            cut: label(&self.labels, cut),
            is_told: !own.is_empty(),
        });
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

    /// How it ended, which is what [`Node::follow`] has answered. What did not come to
    /// its end is stopped; where something failed, the jobs are recorded all the same.
    pub fn end(
        &mut self,
        followed: Result<Outcome, Error>,
        signals: &Signals,
    ) -> Result<Outcome, Error> {
        match followed {
            Ok(Outcome::Interrupted) | Err(_) => self.stop(signals),
            Ok(_) => {}
        }
        if followed.is_err() {
            self.exits();
            self.finish();
        }
        followed
    }

    /// Drops the plans and ends the programs.
    fn stop(&mut self, signals: &Signals) {
        for cpu in self.progress.in_force() {
            // It may be gone already.
            let _ = self.device.drop_plan(cpu);
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
            let waited = wait(signals, signals, timeout_ms);
            if waited.and_then(|()| signals.want_stop()).is_err() {
                break;
            }
        }
        while self.hear().is_ok_and(|count| count > 0) {}
    }

    /// How each program ended; what did not succeed is no example for the next run.
    pub fn exits(&mut self) -> Vec<Exit> {
        let mut exits = Vec::new();
        for child in &mut self.children {
            let exit = child.exit();
            if let Some(jobs) = &mut self.jobs {
                let program = &child.program;
                if !exit.success() {
                    jobs.failed_program(program.process, program.task);
                }
                // What one that attaches itself had before that is not its plan's.
                if !program.itself {
                    jobs.ran(program.process, child.ran_ns());
                }
            }
            exits.push(exit);
        }
        exits
    }

    /// The jobs are over: records them, and says what became of each.
    pub fn finish(&mut self) -> Vec<JobOutcome> {
        let jobs = self.jobs.as_mut();
        jobs.map(|jobs| jobs.finish(&mut self.listener))
            .unwrap_or_default()
    }

    /// Whether all that happened could be recorded.
    pub fn is_recorded(&self) -> bool {
        self.jobs.as_ref().is_none_or(Jobs::is_recorded)
    }
}

fn note_labels(labels: &mut BTreeMap<u32, String>, plan: &Plan) {
    for process in &plan.processes {
        let label = || process.label();
        labels.entry(process.id).or_insert_with(label);
    }
}

fn label(labels: &BTreeMap<u32, String>, process: u32) -> String {
    let known = labels.get(&process);
    known.map_or_else(|| process.to_string(), String::clone)
}
