// SPDX-License-Identifier: GPL-2.0
//! Jobs that are run: admitted, planned, planned anew when a prediction fails,
//! and recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use pbs_control::{Answer, Controller, End, HandedOver, Missed, Options};
use pbs_history::{JobHistory, RunId};
use pbs_job::{job_from_toml, Machine};
use pbs_launch::Exited;
use pbs_plan::{Config, Plan};
use pbs_uapi::{Device, Event, EventKind, Process, ProcessState};

use crate::active::{ActiveJob, ProcessEnd, WHOLE_PERMILLE};
use crate::admitting::Admitter;
use crate::allocation::Allocations;
use crate::amounts::Amounts;
use crate::clock::monotonic_ns;
use crate::companions::SlowdownSource;
use crate::learned::Learned;
use crate::ledger::{Ledger, START};
use crate::orders::{Backlog, Ending, Noted, Order, ProgramEnd, Terms, Waiting};
use crate::outcome::{self, JobOutcome};
use crate::overlaps::Overlaps;
use crate::predict::memory_bytes_of;
use crate::programs::EndedPrograms;
use crate::result::{Facts, RunResult};
use crate::room::Room;
use crate::saved::Saved;
use crate::settings::{Settings, LEAD_NS};
use crate::usage::of_ended;
use crate::{resume, Error, Held, Listener, NewPeak, News, NotRun, Submission};

/// Users of this system with their numbers (passwd(5)).
const USERS: &str = "/etc/passwd";

/// Next action.
pub(crate) enum ToDo {
    /// Wait for events, for so many milliseconds; negative: for ever.
    Wait(i32),
    /// Write this plan.
    Plan(Box<Plan>),
}

/// Whether a prediction failure is a command's to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// The controller keeps it, or there is none.
    Keep,
    /// A plan came a moment ago; ask again after so many milliseconds.
    NotBefore(i32),
    /// The command is to be asked.
    Ask,
}

/// The jobs that run, and those that were ordered and wait.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) controller: Controller,
    pub(crate) ledger: Ledger,
    /// In the order in which they were admitted.
    pub(crate) runs: Vec<ActiveJob>,
    /// Orders that wait.
    pub(crate) backlog: Backlog,
    /// The plan of all that run, with what was admitted since the last one was written.
    pub(crate) next_plan: Option<Plan>,
    pub(crate) machine: Machine,
    replans: u64,
    max_replans: u64,
    /// Steps of work that a request may take ([`Settings::max_work`]).
    pub(crate) max_work: u64,
    /// Whether a job gets at least the memory that it asks for, whatever its runs had: that is the
    /// limit of its control group, and what is reserved for others must be there.
    pub(crate) reserves_requested: bool,
    /// Source of the slow-downs, if the node plans with them.
    pub(crate) slowdowns: Option<SlowdownSource>,
    /// Slow-downs with which the CPUs of orders are chosen.
    pub(crate) learned: Learned,
    /// Allocations: CPUs that belong to certain runs.
    pub(crate) allocations: Allocations,
    /// Amounts of resources that an operator has set.
    pub(crate) amounts: Amounts,
    /// Number of programs that can be started now, beside those that were admitted.
    pub(crate) room: Room,
    /// Runs that have begun, until the listener is told.
    begun: Vec<pbs_planner::RunId>,
    /// Runs of which it was reported that they will be late, until the listener is told the reason.
    late: Vec<pbs_planner::RunId>,
    /// Memory of processes beyond what was reserved, until the listener is told; `None`: nobody
    /// wants to know.
    peaks: Option<Vec<(RunId, String, NewPeak)>>,
    /// Command that admits orders, if there is one.
    pub(crate) admitter: Option<Admitter>,
}

impl Jobs {
    /// Claims the history, and closes what is left open there.
    pub(crate) fn open(
        machine: Machine,
        settings: &Settings,
        device: &Device,
        config: &Config,
        listener: &mut dyn Listener,
    ) -> Result<Self, Error> {
        if machine.nodes.len() != 1 {
            return Err(Error::SeveralNodes(machine.nodes.len()));
        }
        let mut ledger = Ledger::open(&settings.history, settings.limits(), listener)?;
        resume::clear(&mut ledger, device, listener)?;
        Ok(Self {
            controller: new_controller(machine.clone(), settings, config),
            ledger,
            runs: Vec::new(),
            backlog: Backlog::default(),
            next_plan: None,
            machine,
            replans: 0,
            max_replans: settings.max_replans,
            max_work: settings.max_work,
            reserves_requested: false,
            slowdowns: None,
            learned: Learned::default(),
            allocations: Allocations::default(),
            amounts: Amounts::default(),
            room: Room::ENDLESS,
            begun: Vec::new(),
            late: Vec::new(),
            peaks: None,
            admitter: None,
        })
    }

    /// Takes over the jobs of a planner that died, with the plans that may be in
    /// force.
    pub(crate) fn resume(
        settings: &Settings,
        device: &Device,
        config: &Config,
        listener: &mut dyn Listener,
    ) -> Result<(Self, resume::Resumed), Error> {
        let mut ledger = Ledger::open(&settings.history, settings.limits(), listener)?;
        let left = resume::left(&mut ledger, device, listener)?;
        let mut controller = new_controller(left.machine.clone(), settings, config);
        let mut runs = Vec::new();
        for run in left.runs {
            match taken_over(&run, &mut controller, &ledger)? {
                Ok(active) => {
                    runs.push(active);
                    ledger.go_on(run.saved, run.takeover, &run.figures);
                }
                Err(why) => {
                    let (figures, takeover) = (&run.figures, &run.takeover);
                    resume::set_aside(&mut ledger, figures, takeover, why, device, listener)?;
                }
            }
        }
        if runs.is_empty() {
            return Err(Error::NothingLeft);
        }
        let jobs = Self {
            controller,
            ledger,
            runs,
            backlog: Backlog::default(),
            next_plan: None,
            machine: left.machine,
            replans: 0,
            max_replans: settings.max_replans,
            max_work: settings.max_work,
            reserves_requested: false,
            slowdowns: None,
            learned: Learned::default(),
            allocations: Allocations::default(),
            amounts: Amounts::default(),
            room: Room::ENDLESS,
            begun: Vec::new(),
            late: Vec::new(),
            peaks: None,
            admitter: None,
        };
        Ok((jobs, left.resumed))
    }

    /// From now on who runs beside whom is recorded, by plans with those windows, if
    /// there is something to be learnt from that on this machine; `by_clock`:
    /// instructions are counted by the clock; `begun`: CPUs where a plan is in force.
    pub(crate) fn learn_slowdowns(&mut self, config: &Config, by_clock: bool, begun: &[u32]) {
        if let Some(mut overlaps) = Overlaps::new(&self.machine, config, by_clock) {
            overlaps.begun(begun);
            self.ledger.watch(overlaps);
        }
    }

    /// The runs whose programs were not let go yet.
    pub(crate) fn unstarted(&self) -> Vec<pbs_planner::RunId> {
        let runs = self.runs.iter().filter(|run| run.started_ns.is_none());
        runs.map(|run| run.run).collect()
    }

    /// A run.
    pub(crate) fn active(&self, run: pbs_planner::RunId) -> Option<&ActiveJob> {
        self.runs.iter().find(|active| active.run == run)
    }

    /// Returns the name of a run's job in messages.
    pub(crate) fn name_of(&self, run: pbs_planner::RunId) -> String {
        let name = self.active(run).map(|active| active.job.name.as_str());
        format!("job {}", name.unwrap_or("?"))
    }

    /// Reads the lines of /etc/passwd if a run needs them: its user was there when it was submitted.
    ///
    /// # Errors
    ///
    /// The file cannot be read. A file that is gone has nobody.
    pub(crate) fn users_of(&self, runs: &[pbs_planner::RunId]) -> Result<String, Error> {
        let named = |run: &pbs_planner::RunId| {
            self.active(*run).and_then(|active| active.terms.as_ref()?.user.as_ref()).is_some()
        };
        if !runs.iter().any(named) {
            return Ok(String::new());
        }
        match std::fs::read_to_string(USERS) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| Error::file(USERS, error)),
        }
    }

    /// Size of what is held of all open jobs, each with its owner.
    pub(crate) fn held(&self) -> impl Iterator<Item = (Option<u32>, Held)> + '_ {
        let waiting = self.backlog.iter().map(|waiting| &waiting.order);
        let waiting = waiting.map(|order| (Some(order.terms.owner.uid), order.held()));
        waiting.chain(self.runs.iter().map(|run| (run.uid(), run.held)))
    }

    /// Size of what is held of the request of a job that waits.
    pub(crate) fn held_of_waiting(&self, id: RunId) -> Option<Held> {
        let submission = &self.backlog.find(id)?.order.submission;
        Some(Held::of(&submission.job, &submission.request, 0))
    }

    /// The numbers of its processes in plans.
    pub(crate) fn numbers(&mut self, run: pbs_planner::RunId) -> Vec<u32> {
        let processes = self.active(run).map_or(0, |active| active.job.processes.len());
        let numbers = (0..processes).map(|process| self.controller.number(run, process));
        numbers.collect()
    }

    /// The runs whose programs were let go.
    pub(crate) fn started(&self) -> Vec<pbs_planner::RunId> {
        let runs = self.runs.iter().filter(|run| run.started_ns.is_some());
        runs.map(|run| run.run).collect()
    }

    /// Returns the run of a process of a plan.
    pub(crate) fn run_of(&self, number: u32) -> Option<pbs_planner::RunId> {
        self.controller.process(number).map(|(run, _)| run)
    }

    /// The plan of all that run, and of those runs of what was admitted.
    pub(crate) fn take_plan_with(&mut self, runs: &[pbs_planner::RunId]) -> Result<Plan, Error> {
        let mut plan = self.take_plan()?;
        self.leave_out_unstarted(&mut plan, runs);
        Ok(plan)
    }

    /// Leaves out of a plan the processes of runs whose programs were not let go, but for those
    /// runs: their programs are not there yet.
    fn leave_out_unstarted(&self, plan: &mut Plan, but: &[pbs_planner::RunId]) {
        let mut unstarted = self.unstarted();
        unstarted.retain(|run| !but.contains(run));
        plan.leave_out(&|number| self.run_of(number).is_some_and(|run| unstarted.contains(&run)));
    }

    /// The plan of all that run and of what was admitted.
    pub(crate) fn take_plan(&mut self) -> Result<Plan, Error> {
        if let Some(plan) = self.next_plan.take() {
            return Ok(plan);
        }
        let plan = self.controller.plan(monotonic_ns());
        let plan = plan
            .map_err(|problems| Error::Invalid { file: "the plan of all jobs".into(), problems })?;
        plan.ok_or(Error::NothingToRun)
    }

    /// The plan of what was admitted is old: the rest is planned anew, with half of the work of a
    /// request and in the pace of answers. Otherwise the plan stays: whoever lets its programs come
    /// late again and again does not keep the node planning.
    pub(crate) fn refresh(&mut self, listener: &mut dyn Listener) {
        let renewed = self.controller.renew_in_pace(monotonic_ns(), self.max_work / 2);
        if let Some(missed) = renewed {
            self.next_plan = None;
            self.tell_missed(&missed, listener);
        }
    }

    /// Returns the steps of work that all plans of a start together may take which follow on a
    /// refusal of the node: half of those of a request.
    pub(crate) fn steps_of_start(&self) -> u64 {
        self.max_work / 2
    }

    /// The node did not take the plan of what was admitted: the rest is planned anew, with no more
    /// than those steps of work. If they do not suffice, all reservations stay, and the plan is made
    /// of them again.
    pub(crate) fn plan_anew(&mut self, steps: &mut u64, listener: &mut dyn Listener) {
        self.next_plan = None;
        let mut renewed = self.controller.clone();
        let Some((missed, done)) = renewed.renew_within(monotonic_ns(), *steps) else {
            *steps = 0;
            return;
        };
        *steps = steps.saturating_sub(done);
        self.controller = renewed;
        self.tell_missed(&missed, listener);
    }

    /// Leaves out of a plan whose processes have ended since it was made, which takes far
    /// less time than to make another, in which more would end. Whether there were any.
    pub(crate) fn leave_out_ended(&self, plan: &mut Plan) -> bool {
        plan.leave_out(&|number| self.has_process_ended(number))
    }

    /// Returns the user whose limits a job of that user counts to; `None`: nobody has ordered it.
    pub(crate) fn account(&self, uid: Option<u32>) -> Option<u32> {
        self.ledger.account(uid)
    }

    /// The file by which who comes after us knows whether the programs of a user that were
    /// prepared for that plan were let go.
    pub(crate) fn commit_file(&self, plan: &Plan, uid: Option<u32>) -> PathBuf {
        let of_user = uid.map_or_else(String::new, |uid| format!("-{uid}"));
        self.ledger.beside(&format!("{START}{}{of_user}", plan.plan_id))
    }

    /// Follows those runs from the event of that number on: they are let go with `commit`.
    pub(crate) fn follow_from(
        &mut self,
        next_seq: u64,
        runs: &[pbs_planner::RunId],
        commit: &std::path::Path,
    ) -> Result<(), Error> {
        for run in self.runs.iter_mut().filter(|run| runs.contains(&run.run)) {
            let processes = 0..run.job.processes.len();
            let numbers = processes.map(|process| self.controller.number(run.run, process));
            let mut job = run.job.clone();
            job.start_ns = job.start_ns.saturating_sub(run.submitted_ns);
            job.deadline_ns = job.deadline_ns.saturating_sub(run.submitted_ns);
            let saved = Saved {
                numbers: numbers.collect(),
                job,
                submitted_ns: run.submitted_ns,
                zero_unix_ns: Some(run.zero_unix_ns),
                machine: self.machine.clone(),
                commit: commit.into(),
                started_ns: monotonic_ns(),
                begun_ns: None,
                ended_ns: None,
                cancelled: None,
            };
            let request = &run.request;
            let id = (self.ledger).follow(run.id, saved, run.kind, request, next_seq)?;
            run.id = Some(id);
        }
        Ok(())
    }

    /// Notes that this plan is to be in force.
    pub(crate) fn planned(&mut self, plan: &Plan) -> Result<(), Error> {
        Ok(self.ledger.planned(plan)?)
    }

    /// The node took the plan of what was admitted.
    pub(crate) fn taken(&mut self) {
        self.controller.taken();
    }

    /// The programs of those runs were let go, as that file says until it is noted.
    pub(crate) fn released(
        &mut self,
        runs: &[pbs_planner::RunId],
        commit: PathBuf,
        listener: &mut dyn Listener,
    ) {
        self.ledger.committed(commit);
        let now_ns = monotonic_ns();
        for run in self.runs.iter_mut().filter(|run| runs.contains(&run.run)) {
            run.started_ns = Some(now_ns);
            if let Some(id) = run.id {
                self.ledger.released(id, now_ns);
                self.backlog.retries.forget(id);
            }
        }
        self.ledger.keep(listener);
    }

    /// The programs of a run can't be started, so it is over. `written`: the node has a
    /// plan with it.
    pub(crate) fn give_up(
        &mut self,
        run: pbs_planner::RunId,
        why: &Error,
        written: bool,
        listener: &mut dyn Listener,
    ) -> Option<RunId> {
        let place = self.runs.iter().position(|active| active.run == run)?;
        let active = self.runs.remove(place);
        if written {
            self.controller.cancel(run)
        } else {
            self.controller.withdraw(run)
        }
        self.controller.forget(run);
        self.next_plan = None;
        self.backlog.check_again();
        let id = active.id?;
        let result = match &active.cancelled {
            Some(why) => RunResult::cancelled(why),
            None if matches!(why, Error::OtherUser { .. }) => RunResult::declined(&why.to_string()),
            None => RunResult::not_started(&why.to_string()),
        };
        let ending = self.ending(&active, Vec::new(), &result);
        let order = active.terms.clone().map(|terms| over(terms, ending));
        let closed = if active.cancelled.is_some() {
            // A job whose cancellation was accepted never waits again.
            self.ledger.close_waiting(id, result.outcome, order, listener);
            Ok(())
        } else {
            self.ledger.close_unrun(id, result.outcome, order.as_ref())
        };
        match closed {
            Ok(()) => {
                self.backlog.retries.forget(id);
                let why = result.why.unwrap_or_default();
                listener.not_run(&NotRun { run: id, job: &active.job.name, why: &why });
            }
            Err(error) => {
                // So it stands there as one that waits, and it does. Until the next attempt others
                // are tried.
                self.backlog.retries.later(id, Instant::now());
                self.backlog.check_in_a_while();
                self.wait_again(active, error.to_string());
                if let Error::History(error) = error {
                    listener.news(News::NotRecorded(error));
                }
            }
        }
        Some(id)
    }

    /// The programs of a run can't be started now, and it is in no plan that was written: it waits
    /// again, if it was ordered. Whether it does.
    pub(crate) fn postpone(&mut self, run: pbs_planner::RunId, why: &Error) -> bool {
        let ordered =
            |active: &ActiveJob| active.run == run && active.id.is_some() && active.terms.is_some();
        let Some(place) = self.runs.iter().position(ordered) else {
            return false;
        };
        let active = self.runs.remove(place);
        if let (Error::Stuck, Some(id)) = (why, active.id) {
            // Others are tried meanwhile.
            self.backlog.retries.later(id, Instant::now());
        }
        if let Some(id) = active.id {
            // Its plan may have been recorded, which was not written then.
            self.ledger.forget(id);
        }
        self.controller.withdraw(run);
        self.controller.forget(run);
        self.next_plan = None;
        self.wait_again(active, why.to_string());
        self.backlog.check_in_a_while();
        true
    }

    /// A run whose programs were not ready in time, or whose start was not recorded, waits again,
    /// if it was ordered and another attempt follows. Whether it does.
    pub(crate) fn retry(&mut self, run: pbs_planner::RunId, why: &Error) -> bool {
        let ordered = self.active(run).filter(|active| active.terms.is_some());
        let Some(id) = ordered.and_then(|active| active.id) else {
            return false;
        };
        let now = Instant::now();
        if !self.backlog.retries.failed(id, now) || !self.postpone(run, why) {
            return false;
        }
        if let Some(next) = self.backlog.retries.next(id, now) {
            self.backlog.check_at(next);
        }
        true
    }

    /// A run that was ordered and is in no plan waits once more; `why`: what is to be said
    /// of it.
    fn wait_again(&mut self, active: ActiveJob, why: String) {
        let (Some(id), Some(terms)) = (active.id, active.terms) else {
            return;
        };
        let Ok(submission) = Submission::from_text(active.request, format!("run {id}")) else {
            return;
        };
        self.backlog.push(Waiting {
            id,
            order: Order::new(submission, terms),
            submitted_ns: active.submitted_ns,
            submitted_unix_ns: active.submitted_unix_ns,
            not_started: Some(why),
            decision: None,
        });
    }

    fn ending(&self, active: &ActiveJob, programs: Vec<ProgramEnd>, result: &RunResult) -> Ending {
        let unix_ns = |ns| active.unix_ns(ns);
        Ending {
            why: result.why.clone(),
            deadline_unix_ns: active.deadline_ns().map(unix_ns),
            best_effort: Some(active.job.best_effort),
            cpus: active.job.cpus.clone(),
            started_unix_ns: active.started_ns.map(unix_ns),
            begun_unix_ns: active.begun_ns.map(unix_ns),
            kept: active.deadline_ns().map(|_| result.kept),
            succeeded: !active.is_adopted && programs.iter().all(ProgramEnd::is_success),
            programs,
        }
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
            if of.is_none_or(|(run, _)| run != active.run) {
                continue;
            }
            let process = of.map_or(0, |(_, process)| process);
            if let Some(peaks) = &mut self.peaks {
                let seen = active.memory_seen(process, event.peak_rss_bytes);
                let named = active.id.zip(seen);
                peaks.extend(named.map(|(id, peak)| (id, active.job.name.clone(), peak)));
            }
            if let Some(kind) = kind.filter(|kind| has_executed(*kind)) {
                let is_grant = kind == EventKind::Grant;
                let ledger = &mut self.ledger;
                if note_begin(&self.controller, ledger, active, event.time_ns, is_grant) {
                    self.begun.push(active.run);
                }
            }
            if kind == Some(EventKind::ProcessEnded) && event.value == 0 {
                active.process_ended(event.process, ProcessEnd::Heard(event.time_ns));
                note_end_of_run(&self.controller, &mut self.ledger, active);
            }
        }
    }

    /// Reports the runs that have begun since this was last done.
    pub(crate) fn tell_begun(&mut self, listener: &mut dyn Listener) {
        for run in std::mem::take(&mut self.begun) {
            let active = self.active(run);
            if let Some((id, active)) = active.and_then(|active| Some((active.id?, active))) {
                listener.begun(id, &active.job.name);
            }
        }
    }

    /// Reports processes from now on that have more memory than was reserved for them.
    pub(crate) fn report_peaks(&mut self) {
        self.peaks = Some(Vec::new());
    }

    /// Reports processes that have more memory than was reserved for them.
    pub(crate) fn tell_peaks(&mut self, listener: &mut dyn Listener) {
        for (run, job, peak) in self.peaks.iter_mut().flat_map(std::mem::take) {
            listener.new_peak(run, &job, &peak);
        }
    }

    /// Returns the runs that were reported as late since this was last called.
    pub(crate) fn take_late(&mut self) -> Vec<pbs_planner::RunId> {
        std::mem::take(&mut self.late)
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
            for number in self.open_processes(index) {
                match device.process(number) {
                    // At the latest now.
                    Ok(Some(known)) => self.seen(index, &known, monotonic_ns()),
                    // A plan that takes over has not got who has ended; or the plan
                    // was dropped, which is looked after elsewhere.
                    Ok(None) => {}
                    Err(refused) => {
                        let job = &self.runs[index].job;
                        let process = self.controller.process(number);
                        let process = process.and_then(|(_, index)| job.processes.get(index));
                        listener.news(News::NotAsked {
                            job: job.name.clone(),
                            process: process.map_or(number.to_string(), |known| known.label()),
                            why: refused.to_string(),
                        });
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

    /// Asks the kernel how far those have come that should have begun: no event says so
    /// before the end of a task, and what is left of one that runs is not all of it.
    pub(crate) fn look_at_progress(&mut self, device: &Device) {
        self.look_at_begun(device, monotonic_ns());
    }

    /// Asks how far all have come. A node that is ahead of its plan begins before the plan
    /// does, and where many jobs come at once an event may have been overrun.
    pub(crate) fn look_at_all_progress(&mut self, device: &Device) {
        self.look_at_begun(device, u64::MAX);
    }

    /// Asks of those that begin by then.
    fn look_at_begun(&mut self, device: &Device, by_ns: u64) {
        let now_ns = monotonic_ns();
        for index in 0..self.runs.len() {
            let run = self.runs[index].run;
            // Of what another planner has planned it is not known when it begins.
            if (self.controller.planned_start_ns(run)).is_some_and(|ns| ns > by_ns) {
                continue;
            }
            for number in self.open_processes(index) {
                // Who cannot be asked has ended, or was not started yet.
                if let Ok(Some(known)) = device.process(number) {
                    self.controller.progressed(&known);
                    self.note_end(index, &known, now_ns);
                }
            }
        }
    }

    /// Numbers, in plans, of the processes of a run whose end was not heard.
    fn open_processes(&mut self, index: usize) -> Vec<u32> {
        let run = self.runs[index].run;
        let Some(ends) = self.controller.ends(run) else {
            return Vec::new();
        };
        let open = ends.iter().enumerate();
        let open = open.filter(|(_, end)| end.is_none());
        let open: Vec<usize> = open.map(|(process, _)| process).collect();
        let numbers = open.into_iter();
        numbers.map(|process| self.controller.number(run, process)).collect()
    }

    /// Hears what the kernel says of a process of a run.
    fn seen(&mut self, index: usize, known: &Process, now_ns: u64) {
        self.controller.seen(known);
        self.note_end(index, known, now_ns);
    }

    /// Notes that a process has ended, if the kernel says so.
    fn note_end(&mut self, index: usize, known: &Process, now_ns: u64) {
        let active = &mut self.runs[index];
        let has_executed = known.retired_insns > 0 || known.ended_tasks > 0;
        let ledger = &mut self.ledger;
        if has_executed && note_begin(&self.controller, ledger, active, now_ns, false) {
            self.begun.push(active.run);
        }
        active.asked_seq = active.asked_seq.max(known.next_seq);
        let ended = known.state == ProcessState::Done as u32 && known.ended_tasks == known.tasks;
        if ended {
            active.process_ended(known.process, ProcessEnd::Asked(now_ns));
            note_end_of_run(&self.controller, &mut self.ledger, active);
        }
    }

    /// Determines the next action after the events that were read.
    pub(crate) fn answer(&mut self, listener: &mut dyn Listener) -> ToDo {
        self.ledger.keep_in_time(listener);
        // What was given up has to leave the plan in any case.
        if self.replans >= self.max_replans && !self.controller.has_vacated() {
            return ToDo::Wait(-1);
        }
        let now_ns = monotonic_ns();
        let answer = self.controller.answer(now_ns);
        match answer {
            Ok(Answer::Nothing) => ToDo::Wait(-1),
            Ok(Answer::NotBefore(at_ns)) => ToDo::Wait(ms_until(at_ns, now_ns)),
            Ok(Answer::Plan { mut plan, missed }) => {
                self.tell_missed(&missed, listener);
                // It is made of the same reservations, as they were.
                self.next_plan = None;
                self.leave_out_unstarted(&mut plan, &[]);
                if plan.processes.is_empty() && !self.controller.has_vacated() {
                    return ToDo::Wait(-1);
                }
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

    /// Hands over to a command what is to be answered. A plan without what was given up is the
    /// controller's alone.
    pub(crate) fn hand_over(
        &mut self,
        cpu: u32,
        others: impl Fn(u32) -> bool,
        now_ns: u64,
    ) -> HandOver {
        if self.replans >= self.max_replans || self.controller.has_vacated() {
            return HandOver::Keep;
        }
        match self.controller.hand_over(cpu, others, now_ns) {
            HandedOver::Nothing => HandOver::Keep,
            HandedOver::NotBefore(at_ns) => HandOver::NotBefore(ms_until(at_ns, now_ns)),
            HandedOver::Now => HandOver::Ask,
        }
    }

    /// The failures on a CPU that were handed over are to be handed over once more.
    pub(crate) fn handed_back(&mut self, cpu: u32) {
        self.controller.handed_back(cpu);
    }

    /// Whether a process of a plan has ended, as far as that is known.
    pub(crate) fn has_process_ended(&self, number: u32) -> bool {
        let known = self.controller.process(number);
        known.is_none_or(|(run, process)| {
            self.controller.has_process_ended(run, process).unwrap_or(true)
        })
    }

    /// Gives the plan of an answer its number.
    pub(crate) fn number(&mut self, plan: &mut Plan) {
        plan.plan_id = self.controller.next_plan_id(monotonic_ns());
    }

    /// The node took the plan of a command for some CPUs; `whole` has those of all.
    pub(crate) fn command_planned(
        &mut self,
        plan: &Plan,
        whole: &Plan,
        listener: &mut dyn Listener,
    ) {
        self.replans += 1;
        self.next_plan = None;
        self.count_replan(plan);
        self.ledger.replanned(whole, listener);
    }

    /// Says once of each run that it will be late.
    pub(crate) fn tell_missed(&mut self, missed: &[Missed], listener: &mut dyn Listener) {
        for missed in missed {
            let mut runs = self.runs.iter_mut();
            let Some(active) = runs.find(|run| run.run == missed.run && !run.told_late) else {
                continue;
            };
            active.told_late = true;
            self.late.push(active.run);
            listener.news(News::WillMiss(active.job.name.clone(), missed.by_ns));
        }
    }

    /// The node took a new plan.
    pub(crate) fn replanned(&mut self, plan: &Plan, listener: &mut dyn Listener) {
        // One without what was given up answers no prediction failure.
        self.replans += u64::from(!self.controller.has_vacated());
        self.controller.taken();
        if self.is_amount_short() {
            self.backlog.check_in_a_while();
        }
        self.count_replan(plan);
        self.ledger.replanned(plan, listener);
    }

    fn count_replan(&mut self, plan: &Plan) {
        let numbers = plan.processes.iter().map(|process| process.id);
        let of: Vec<_> = numbers.filter_map(|id| Some(self.controller.process(id)?.0)).collect();
        for active in self.runs.iter_mut().filter(|run| of.contains(&run.run)) {
            active.replans += 1;
        }
    }

    /// The node did not take the last plan.
    pub(crate) fn refused(&mut self) {
        self.controller.refused();
    }

    /// The runs that are over, and whether all was heard of each that tells how: the end
    /// of one may be known before, from the kernel, which is asked when others come.
    pub(crate) fn over(&self) -> Vec<(pbs_planner::RunId, bool)> {
        let started = self.runs.iter().filter(|run| run.started_ns.is_some());
        let over = started.filter(|run| self.controller.has_ended(run.run));
        let heard_seq = self.ledger.in_force().next_seq;
        over.map(|run| (run.run, run.asked_seq <= heard_seq)).collect()
    }

    /// Asks the kernel how the processes of a run are of which all programs have ended.
    /// `give_up`: what it does not know either has ended.
    pub(crate) fn look_at(&mut self, run: pbs_planner::RunId, device: &Device, give_up: bool) {
        let Some(index) = self.runs.iter().position(|active| active.run == run) else {
            return;
        };
        for number in self.open_processes(index) {
            if let Ok(Some(known)) = device.process(number) {
                self.seen(index, &known, monotonic_ns());
            }
        }
        if give_up {
            self.controller.cancel(run);
        }
    }

    /// Records and forgets a run that is over with all its programs, and returns its outcome.
    pub(crate) fn finish(
        &mut self,
        run: pbs_planner::RunId,
        ended: EndedPrograms,
        listener: &mut dyn Listener,
    ) -> Option<JobOutcome> {
        let place = self.runs.iter().position(|active| active.run == run)?;
        let active = self.runs.remove(place);
        let EndedPrograms { exits, over_memory, usage } = ended;
        let usage = of_ended(usage, &active.job, &exits);
        let mut programs = Vec::with_capacity(exits.len());
        for exited in &exits {
            let Exited { exit, task, itself, ran_ns, .. } = exited;
            if !exit.success() {
                self.ledger.failed_program(exit.process, *task);
            }
            // What one that attaches itself had before that is not its plan's.
            if !itself {
                self.ledger.ran(exit.process, *ran_ns);
            }
            let of = self.controller.process(exit.process);
            let number = of.map_or(0, |(_, process)| active.job.processes[process].id);
            programs.push(ProgramEnd::new(number, exited));
        }
        let ends = self.controller.ends(run);
        let completed = ends.is_some_and(|ends| ends.iter().all(|end| *end == Some(End::Complete)));
        let result = RunResult::of(&Facts {
            cancelled: active.cancelled.as_deref(),
            over_memory,
            completed,
            recorded: active.id.and_then(|id| self.ledger.outcome_of(id)),
            programs: &programs,
            is_adopted: active.is_adopted,
            ended_ns: active.ended_ns(),
            deadline_ns: active.deadline_ns(),
        });
        let ending = self.ending(&active, programs, &result);
        let order = active.terms.clone().map(|terms| over(terms, ending));
        let figures = active
            .id
            .and_then(|id| self.ledger.finish(id, result.outcome, (order, usage), listener));
        let uid = active.uid();
        let history = if listener.wants_forecasts() {
            self.ledger.history_or_news(&active.job, uid, listener)
        } else {
            JobHistory::default()
        };
        let exits = exits.into_iter().map(|exited| exited.exit).collect();
        let outcome = outcome::of(&active, figures.as_ref(), &history, result, (exits, usage));
        if self.controller.ends(run).is_some_and(|ends| ends.iter().any(Option::is_none)) {
            self.controller.cancel(run);
        }
        self.controller.forget(run);
        self.backlog.check_again();
        Some(outcome)
    }

    /// Whether all that happened could be recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.ledger.is_whole()
    }
}

/// A run of another planner, which the controller has taken over; or, in words, why it can't be.
fn taken_over(
    run: &resume::LeftRun,
    controller: &mut Controller,
    ledger: &Ledger,
) -> Result<Result<ActiveJob, &'static str>, Error> {
    let Saved { job, submitted_ns, .. } = &run.saved;
    let Some(job) = job.clone().submitted_at(*submitted_ns) else {
        return Ok(Err("its times are impossible"));
    };
    // Without its terms, a run would go on as nobody's and without its limits.
    let terms = match ledger.order(run.figures.run.id)?.map(|order| Noted::of(&order)) {
        None => None,
        Some(Some(noted)) => Some(noted.terms),
        Some(None) => return Ok(Err("its order is unreadable")),
    };
    let Some(taken) = controller.take_over(job.clone(), &run.saved.numbers, &run.so_far) else {
        return Ok(Err("another run has its processes"));
    };
    let terms_bytes = terms.as_ref().map_or(0, Terms::held_bytes);
    Ok(Ok(ActiveJob {
        held: Held::of(&job, &run.takeover.request, terms_bytes),
        id: Some(run.figures.run.id),
        run: taken,
        submitted_ns: *submitted_ns,
        submitted_unix_ns: run.figures.run.submitted_unix_ns,
        zero_unix_ns: run.saved.zero_unix_ns(run.figures.run.submitted_unix_ns),
        kind: run.figures.run.kind,
        terms,
        planned: None,
        moved: None,
        forecasts: Vec::new(),
        replans: 0,
        signals: 0,
        started_ns: Some(run.saved.started_ns),
        begun_ns: run.saved.begun_ns,
        has_slept: false,
        expected_start_ns: None,
        ends_ns: BTreeMap::new(),
        ended_before_ns: run.saved.ended_ns,
        asked_seq: 0,
        cancelled: run.saved.cancelled.clone(),
        is_adopted: job.programs() > 0,
        told_late: false,
        told_memory_permille: WHOLE_PERMILLE,
        // Without a request that can be read, it has what is reserved for it.
        requested_bytes: job_from_toml(&run.takeover.request)
            .map_or(0, |job| memory_bytes_of(&job)),
        request: run.takeover.request.clone(),
        job,
    }))
}

fn ms_until(at_ns: u64, now_ns: u64) -> i32 {
    let left_ms = at_ns.saturating_sub(now_ns).div_ceil(1_000_000);
    i32::try_from(left_ms).unwrap_or(i32::MAX)
}

/// Plans and processes are numbered by the time, so that they are unlike those
/// of any planner before.
fn new_controller(machine: Machine, settings: &Settings, node: &Config) -> Controller {
    let now_ns = monotonic_ns();
    let (aim, max_work) = (settings.aim, settings.max_work);
    let default = Options::default();
    let options = Options {
        planning: pbs_planner::Options { aim, max_work, ..default.planning },
        // Runs that have a plan must not lose it because requests may take less.
        replanning: pbs_planner::Options {
            max_work: max_work.max(Settings::MAX_WORK),
            ..default.replanning
        },
        config: Some(settings.plan_config(node)),
        keeps_starts: true,
        lead_ns: LEAD_NS,
        ..default
    };
    let first_process = ((now_ns >> 20) & 0x3fff_ffff) as u32;
    Controller::new(machine, options, now_ns, first_process)
}

/// Whether an event of that kind is about a process that had the CPU.
fn has_executed(kind: EventKind) -> bool {
    matches!(kind, EventKind::Grant | EventKind::TaskEnded | EventKind::Preempted)
}

/// Notes that a run had the CPU at that time, also for another planner. `is_grant`: the event is
/// its grant. Returns whether that was not known before.
fn note_begin(
    controller: &Controller,
    ledger: &mut Ledger,
    active: &mut ActiveJob,
    time_ns: u64,
    is_grant: bool,
) -> bool {
    // A run may have many tasks, and many events after the first.
    let is_first = active.begun_ns.is_none();
    let planned_ns = if is_first { controller.planned_start_ns(active.run) } else { None };
    let is_new = active.begun(time_ns, is_grant, planned_ns);
    if let (Some(id), Some(begun_ns)) = (active.id, active.begun_ns) {
        ledger.begun(id, begun_ns);
    }
    is_new
}

/// Notes the end of a run for another planner, if all its processes have ended.
fn note_end_of_run(controller: &Controller, ledger: &mut Ledger, active: &ActiveJob) {
    let ends = controller.ends(active.run);
    let is_over = ends.is_some_and(|ends| ends.iter().all(Option::is_some));
    if let (true, Some(id), Some(ended_ns)) = (is_over, active.id, active.ended_ns()) {
        ledger.ended(id, ended_ns);
    }
}

/// The terms of a run that has ended so.
fn over(terms: Terms, ending: Ending) -> pbs_history::Order {
    let noted = Noted { terms, ending: Ending::default() };
    noted.over(ending).order()
}

#[cfg(test)]
impl Jobs {
    /// Notes that all runs which were not started are let go with that plan.
    pub(crate) fn let_go(&mut self, plan: &Plan, next_seq: u64) {
        self.let_runs_go(&self.unstarted(), plan, next_seq);
    }

    /// Notes that those runs are let go with that plan.
    pub(crate) fn let_runs_go(&mut self, runs: &[pbs_planner::RunId], plan: &Plan, next_seq: u64) {
        struct Nobody;
        impl Listener for Nobody {}
        let commit = self.commit_file(plan, Some(1000));
        self.follow_from(next_seq, runs, &commit).unwrap();
        self.planned(plan).unwrap();
        self.taken();
        self.released(runs, commit, &mut Nobody);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use pbs_history::{Kind, Outcome};
    use pbs_job::with_values;

    use super::*;
    use crate::queue::RunSummary;
    use crate::{Alteration, Rewrite};

    struct Nobody;

    impl Listener for Nobody {}

    /// Returns a job that takes a quarter of a second of the machine's only CPU.
    fn job(name: &str, deadline_ns: u64) -> Vec<Submission> {
        let text = format!(
            "name = \"{name}\"\ndeadline_ns = {deadline_ns}\n[[process]]\nid = 1\n\
             memory_bytes = 4096\ncommand = [\"true\"]\ntasks = [62_500_000]\n"
        );
        vec![Submission::from_text(text, name.into()).unwrap()]
    }

    fn jobs(directory: &Path) -> Jobs {
        crate::model::open(directory)
    }

    /// One that is confined to those CPUs, if it is said.
    fn ordered(cpus: Option<&str>, hold: bool) -> Order {
        let Submission { file, request, .. } = job("confined", 4_000_000_000).remove(0);
        let cpus = cpus.map(|cpus| ("cpus", cpus.to_string()));
        let text = with_values(&request, cpus.as_slice());
        let submission = Submission::from_text(text, file).unwrap();
        let terms = Terms { hold, ..Terms::new(pbs_launch::Owner::new(1000, 1000)) };
        Order::new(submission, terms)
    }

    /// The CPUs to which a job is confined are reported while it waits, while it is planned and
    /// after it is over. A job for CPUs that the machine does not have is refused before it waits.
    #[test]
    fn the_cpus_of_jobs_are_told() {
        let directory = std::env::temp_dir().join(format!("pbs-cpus-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let order = |jobs: &mut Jobs, cpus, hold| {
            let ids = jobs.order(vec![ordered(cpus, hold)], &mut Nobody)?;
            let standing = jobs.standing_of(ids[0])?;
            Ok::<_, Error>((ids[0], standing.state, standing.cpus))
        };
        let all = order(&mut jobs, None, false);
        assert!(matches!(all, Ok((_, "planned", None))), "{all:?}");
        let (held, state, cpus) = order(&mut jobs, Some("[0]"), true).unwrap();
        assert_eq!((state, cpus), ("held", Some(vec![0])));
        let (_, state, cpus) = order(&mut jobs, Some("[0]"), false).unwrap();
        assert_eq!((state, cpus), ("planned", Some(vec![0])));
        for hold in [false, true] {
            let declined = order(&mut jobs, Some("[0, 3]"), hold);
            let declined = declined.map_err(|error| error.to_string());
            let why = declined.unwrap_err();
            let missing = "confined: job confined is declined: level 1 (general check): the job \
                           is confined to CPUs that the machine does not have: 3; it has 0; no \
                           deadline was found that would do";
            assert_eq!(why, missing);
        }
        let alteration = |cpus| Alteration {
            rewrite: Some(Rewrite { uid: 1000, submission: ordered(Some(cpus), true).submission }),
            ..Alteration::default()
        };
        let declined = jobs.alter(held, alteration("[1]"), &mut Nobody);
        assert!(matches!(declined, Err(Error::Declined(_))), "{declined:?}");
        assert_eq!(jobs.standing_of(held).unwrap().cpus, Some(vec![0]));
        jobs.cancel(held, "nobody wants it".into(), &mut Nobody).unwrap();
        let standing = jobs.standing_of(held).unwrap();
        assert_eq!((standing.state, standing.cpus), ("over", Some(vec![0])));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// The owner of a job can change what it runs, and nobody else: neither an operator nor
    /// root. Everybody who may alter it can change its deadline and its priority.
    #[test]
    fn only_the_owner_says_what_is_run() {
        let directory = std::env::temp_dir().join(format!("pbs-rewrite-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let held = jobs.order(vec![ordered(None, true)], &mut Nobody).unwrap()[0];
        let rewrite = |uid| Alteration {
            priority: Some(7),
            rewrite: Some(Rewrite { uid, submission: job("another", 5_000_000_000).remove(0) }),
            ..Alteration::default()
        };
        for other in [0, 1001, 65534] {
            let refused = jobs.alter(held, rewrite(other), &mut Nobody);
            assert!(matches!(refused, Err(Error::NotTheOwner(..))), "{refused:?}");
            let standing = jobs.standing_of(held).unwrap();
            assert_eq!((standing.job.as_str(), standing.priority), ("confined", Some(0)));
            assert!(jobs.noted(held).unwrap().1.unwrap().contains("confined"));
        }
        let more = Alteration { priority: Some(3), ..Alteration::default() };
        jobs.alter(held, more, &mut Nobody).unwrap();
        assert_eq!(jobs.standing_of(held).unwrap().priority, Some(3));
        jobs.alter(held, rewrite(1000), &mut Nobody).unwrap();
        let standing = jobs.standing_of(held).unwrap();
        assert_eq!((standing.job.as_str(), standing.uid), ("another", Some(1000)));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Size of the open jobs of a user.
    fn held(jobs: &Jobs, uid: u32) -> Held {
        jobs.held().filter(|(owner, _)| *owner == Some(uid)).map(|(_, held)| held).sum()
    }

    /// Whatever state an open job is in, its user has it; when it is over, the user has nothing.
    #[test]
    fn open_jobs_are_held_for_their_users() {
        let directory = std::env::temp_dir().join(format!("pbs-held-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let one = ordered(None, true).held();
        // The start, the task and the end.
        assert_eq!((one.jobs, one.tasks, one.programs), (1, 3, 1));
        let waits = jobs.order(vec![ordered(None, true)], &mut Nobody).unwrap()[0];
        let planned = jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap()[0];
        assert_eq!((held(&jobs, 1000), held(&jobs, 1001)), (one * 2, Held::default()));
        let large = "tasks = [62_500_000, 1, 1, 1]\nattaches = \"itself\"";
        let request = job("confined", 4_000_000_000).remove(0).request;
        let request = request.replace("tasks = [62_500_000]", large);
        let submission = Submission::from_text(request, "large".into()).unwrap();
        let rewrite = Rewrite { uid: 1000, submission };
        let alteration = Alteration { rewrite: Some(rewrite), ..Alteration::default() };
        jobs.alter(waits, alteration, &mut Nobody).unwrap();
        assert_eq!(held(&jobs, 1000).tasks, one.tasks * 2 + 3);
        let of_request = jobs.held_of_waiting(waits).unwrap();
        assert_eq!((of_request.jobs, of_request.tasks), (1, one.tasks + 3));
        jobs.cancel(waits, "test".into(), &mut Nobody).unwrap();
        assert_eq!(held(&jobs, 1000), one);
        let run = jobs.runs[0].run;
        jobs.give_up(run, &Error::NothingToRun, false, &mut Nobody);
        assert_eq!(held(&jobs, 1000), Held::default());
        assert_eq!(jobs.standing_of(planned).unwrap().state, "over");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// An order that is over leaves a record, and nothing else.
    #[test]
    fn a_record_of_a_job_that_is_over_is_short() {
        let directory = std::env::temp_dir().join(format!("pbs-short-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let Order { submission, mut terms, .. } = ordered(None, true);
        let long = "o".repeat(10_000);
        terms.owner.environment = vec![("A".into(), long.clone())];
        terms.owner.output = Some(long.clone().into());
        terms.owner.directory = format!("/{long}").into();
        terms.owner.groups = vec![7; 1000];
        terms.name = Some("short".into());
        terms.priority = Some(3);
        let id = jobs.order(vec![Order::new(submission, terms)], &mut Nobody).unwrap()[0];
        assert!(jobs.ledger.order(id).unwrap().unwrap().text.len() > 30_000);
        jobs.cancel(id, long, &mut Nobody).unwrap();
        let record = jobs.ledger.order(id).unwrap().unwrap();
        assert!(record.text.len() < 5000, "{}", record.text);
        let standing = jobs.standing_of(id).unwrap();
        assert_eq!((standing.job.as_str(), standing.uid), ("short", Some(1000)));
        assert_eq!((standing.state, standing.priority), ("over", Some(3)));
        assert_eq!(standing.reason, Some("o".repeat(4000)));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A job for whose programs there is no descriptor waits, and runs when there is one; whoever
    /// took them all, it never fails. Root has some left.
    #[test]
    fn a_job_waits_for_descriptors() {
        let directory = std::env::temp_dir().join(format!("pbs-room-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.room = Room { root: 2, others: 1 };
        let order = |jobs: &mut Jobs, uid| {
            let Order { submission, mut terms, .. } = ordered(None, false);
            terms.owner.uid = uid;
            jobs.order(vec![Order::new(submission, terms)], &mut Nobody).unwrap()[0]
        };
        let state = |jobs: &Jobs, id| {
            let RunSummary { state, reason, .. } = jobs.standing_of(id).unwrap();
            (state, reason)
        };
        let first = order(&mut jobs, 1000);
        let second = order(&mut jobs, 1001);
        let third = order(&mut jobs, 0);
        assert_eq!(state(&jobs, first).0, "planned");
        let why = "it waits for programs of other jobs: the node can start no more at once";
        assert_eq!(state(&jobs, second), ("waiting", Some(why.into())));
        assert_eq!(state(&jobs, third).0, "planned");
        // It is looked after again, and needs no other event for that.
        assert!(jobs.backlog.again_ms(Instant::now()) > 0);

        // The system has no descriptor in spite of the count: what was planned waits, too.
        let run = jobs.runs[0].run;
        let error = Error::Programs(std::io::Error::from_raw_os_error(libc::EMFILE));
        assert!(error.is_shortage());
        assert!(!Error::Programs(std::io::Error::from_raw_os_error(libc::ENOENT)).is_shortage());
        assert!(jobs.postpone(run, &error));
        assert!(!jobs.postpone(run, &error));
        let (waits, reason) = state(&jobs, first);
        assert_eq!((waits, reason.unwrap().contains("Too many open files")), ("waiting", true));
        assert_eq!(held(&jobs, 1000), ordered(None, false).held());

        jobs.room = Room { root: 5, others: 2 };
        jobs.backlog.check_again();
        jobs.promote(&mut Nobody);
        for id in [first, second, third] {
            assert_eq!(state(&jobs, id).0, "planned", "{id}");
        }
        assert_eq!(jobs.backlog.again_ms(Instant::now()), -1);
        assert_eq!(jobs.room, Room { root: 3, others: 0 });
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A plan has a job when the programs of the job are ready, and not before. Until then the
    /// place of the job is reserved, and cancelling the job ends it.
    #[test]
    fn a_job_is_in_no_plan_before_its_programs_are_ready() {
        let directory = std::env::temp_dir().join(format!("pbs-ready-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let ids: Vec<_> = (0..2)
            .map(|_| jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap()[0])
            .collect();
        let (first, second) = (jobs.runs[0].run, jobs.runs[1].run);
        let numbers = |plan: &Plan| plan.processes.iter().map(|of| of.id).collect::<Vec<_>>();
        let both = jobs.take_plan().unwrap();
        assert_eq!(both.processes.len(), 2);
        let own = jobs.take_plan_with(&[first]).unwrap();
        assert_eq!(numbers(&own), jobs.numbers(first));
        jobs.let_runs_go(&[first], &own, 1);
        assert_eq!((jobs.started(), jobs.unstarted()), (vec![first], vec![second]));
        let whole = jobs.take_plan_with(&[second]).unwrap();
        assert_eq!(whole.processes.len(), 2);
        let cancelled = jobs.cancel(ids[1], "nobody wants it".into(), &mut Nobody).unwrap();
        assert_eq!(cancelled, Some(second));
        assert!(!jobs.controller.has_vacated());
        jobs.give_up(second, &Error::NothingToRun, false, &mut Nobody);
        let standing = jobs.standing_of(ids[1]).unwrap();
        let end = (standing.outcome, standing.reason.as_deref());
        assert_eq!(end, (Some(Outcome::Cancelled), Some("nobody wants it")));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A cancelled job that saves its work stays in the plan until that is over, or until it is
    /// cancelled once more.
    #[test]
    fn a_job_saves_its_work_in_its_own_slots() {
        let directory = std::env::temp_dir().join(format!("pbs-saves-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let ids = [(); 2].map(|()| jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap()[0]);
        let plan = jobs.take_plan().unwrap();
        jobs.let_go(&plan, 1);
        for id in ids {
            let why = "cancelled by anna, after it was asked to save itself";
            let run = jobs.begin_to_end(id, why.into(), &mut Nobody).unwrap().unwrap();
            assert!(jobs.controller.store().run(run).is_some());
            let reason = jobs.standing_of(id).unwrap().reason.unwrap();
            assert_eq!(reason, format!("ending: {why}"));
        }
        assert!(!jobs.controller.has_vacated());
        jobs.leave_plan(jobs.runs[0].run);
        assert!(jobs.controller.has_vacated());
        jobs.cancel(ids[1], "cancelled by bob".into(), &mut Nobody).unwrap();
        for run in jobs.started() {
            assert!(jobs.controller.store().run(run).is_none());
        }
        // The first reason stands.
        let reason = jobs.standing_of(ids[1]).unwrap().reason.unwrap();
        assert!(reason.contains("by anna"), "{reason}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A job that was cancelled before its programs were let go is over, whatever becomes of its
    /// record: it never starts.
    #[test]
    fn a_cancelled_start_is_over_though_nothing_can_be_recorded() {
        let directory = std::env::temp_dir().join(format!("pbs-cancel-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let id = jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap()[0];
        let file = rusqlite::Connection::open(directory.join("history.db")).unwrap();
        let full =
            "CREATE TRIGGER full BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'full'); END";
        file.execute_batch(full).unwrap();
        let run = jobs.cancel(id, "nobody wants it".into(), &mut Nobody).unwrap().unwrap();
        jobs.give_up(run, &Error::NothingToRun, false, &mut Nobody);
        let over = |jobs: &Jobs| {
            let standing = jobs.standing_of(id).unwrap();
            assert_eq!((standing.state, standing.outcome), ("over", Some(Outcome::Cancelled)));
            assert_eq!(standing.reason.as_deref(), Some("nobody wants it"));
        };
        over(&jobs);
        jobs.promote(&mut Nobody);
        assert!(jobs.runs.is_empty() && jobs.ledger.owes());
        file.execute_batch("DROP TRIGGER full").unwrap();
        jobs.ledger.keep(&mut Nobody);
        assert!(!jobs.ledger.owes());
        over(&jobs);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A job whose start can't be recorded waits for another attempt, and nothing is left of the one
    /// before.
    #[test]
    fn a_start_that_cannot_be_recorded_is_tried_again() {
        let directory = std::env::temp_dir().join(format!("pbs-unstarted-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let id = jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap()[0];
        let run = jobs.runs[0].run;
        jobs.follow_from(1, &[run], Path::new("start")).unwrap();
        assert!(jobs.ledger.outcome_of(id).is_some());
        let busy = Error::History(pbs_history::Error::NoRun(id));
        assert!(busy.may_pass() && !busy.is_shortage());
        assert!(jobs.retry(run, &busy));
        assert!(jobs.ledger.outcome_of(id).is_none());
        jobs.promote(&mut Nobody);
        assert_eq!(jobs.standing_of(id).unwrap().state, "waiting");
        let now = Instant::now();
        assert!(jobs.backlog.retries.next(id, now).is_some());
        assert!(jobs.backlog.again_ms(now) >= 0 && jobs.admission_ms() >= 0);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A job whose record is damaged keeps neither the service from starting nor the other jobs from
    /// going on.
    #[test]
    fn a_job_with_a_damaged_record_is_set_aside() {
        let directory = std::env::temp_dir().join(format!("pbs-aside-{}", std::process::id()));
        let mut before = jobs(&directory);
        let orders = vec![ordered(None, true), ordered(None, true)];
        let ids = before.order(orders, &mut Nobody).unwrap();
        drop(before);
        let file = rusqlite::Connection::open(directory.join("history.db")).unwrap();
        let sql = "UPDATE takeover SET reservation = 'odd' WHERE run = ?";
        file.execute(sql, [ids[0].0]).unwrap();
        drop(file);
        let mut hears = Hears::default();
        let machine = include_str!("../../../samples/machines/vm.toml");
        let mut after = crate::model::open_on(machine, &directory, &mut hears);
        after.find_orders(&mut hears).unwrap();
        let [told] = &hears.0[..] else { panic!("{:?}", hears.0) };
        assert!(told.starts_with(&format!("run {} is set aside: its record", ids[0])), "{told}");
        assert_eq!(after.standing_of(ids[0]).unwrap().outcome, Some(Outcome::Unknown));
        assert_eq!(after.standing_of(ids[1]).unwrap().state, "held");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A damaged record of the plan in force does not keep the service from starting.
    #[test]
    fn a_damaged_plan_in_force_is_set_aside() {
        let directory = std::env::temp_dir().join(format!("pbs-in-force-{}", std::process::id()));
        let mut before = jobs(&directory);
        let ids = before.order(vec![ordered(None, true)], &mut Nobody).unwrap();
        let plan = "[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
        before.planned(&pbs_plan::from_toml(plan).unwrap()).unwrap();
        drop(before);
        let file = rusqlite::Connection::open(directory.join("history.db")).unwrap();
        assert_eq!(file.execute("UPDATE in_force SET plan = 'odd'", []).unwrap(), 1);
        drop(file);
        let mut hears = Hears::default();
        let machine = include_str!("../../../samples/machines/vm.toml");
        let mut after = crate::model::open_on(machine, &directory, &mut hears);
        after.find_orders(&mut hears).unwrap();
        let [told] = &hears.0[..] else { panic!("{:?}", hears.0) };
        assert!(told.starts_with("the record of the plan in force is set aside"), "{told}");
        assert_eq!(after.standing_of(ids[0]).unwrap().state, "held");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Plans that follow on refusals of the node share the work of one start, and take no more.
    #[test]
    fn plans_after_a_refusal_share_their_work() {
        let directory = std::env::temp_dir().join(format!("pbs-anew-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap();
        assert!(!jobs.controller.is_over());
        let mut steps = jobs.steps_of_start();
        let mut before = steps;
        for _ in 0..3 {
            jobs.plan_anew(&mut steps, &mut Nobody);
            assert!(steps > 0 && steps < before, "{steps} of {before}");
            before = steps;
        }
        let planned = jobs.controller.store().clone();
        let mut steps = 1;
        jobs.plan_anew(&mut steps, &mut Nobody);
        assert_eq!(steps, 0);
        assert!(*jobs.controller.store() == planned);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Jobs of one submission keep their numbers, in whatever order they are planned.
    #[test]
    fn jobs_of_a_submission_have_their_own_numbers() {
        let directory = std::env::temp_dir().join(format!("pbs-numbers-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let order = |name: &str, keys: &str| {
            let Submission { file, request, .. } = job(name, 4_000_000_000).remove(0);
            let submission = Submission::from_text(format!("{keys}{request}"), file).unwrap();
            Order::new(submission, Terms::new(pbs_launch::Owner::new(1000, 1000)))
        };
        let orders = vec![
            order("effort", "best_effort = true\npriority = 9\n"),
            order("plain", ""),
            order("urgent", "priority = 5\n"),
        ];
        let ids = jobs.order(orders, &mut Nobody).unwrap();
        let names = ids.iter().map(|&id| {
            let run = jobs.runs.iter().find(|run| run.id == Some(id)).unwrap();
            run.job.name.clone()
        });
        assert_eq!(names.collect::<Vec<_>>(), ["effort", "plain", "urgent"]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A job whose programs are not ready in time waits, a second at first, and is over after six
    /// attempts.
    #[test]
    fn a_job_whose_files_do_not_answer_is_started_again_later() {
        let directory = std::env::temp_dir().join(format!("pbs-retry-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let id = jobs.order(vec![ordered(None, false)], &mut Nobody).unwrap()[0];
        let error = Error::Programs(std::io::Error::new(std::io::ErrorKind::TimedOut, "slow"));
        assert!(error.is_not_ready() && !Error::NoRoom.is_not_ready());
        let run = jobs.runs[0].run;
        assert!(jobs.retry(run, &error));
        assert!(!jobs.retry(run, &error), "it is no longer planned");
        let standing = jobs.standing_of(id).unwrap();
        assert_eq!(standing.state, "waiting");
        assert!(standing.reason.unwrap().contains("slow"));
        assert!(jobs.backlog.again_ms(Instant::now()) >= 0);
        // Another event does not start it before its time, which is far away here.
        jobs.backlog.retries.put_off(id, 3600);
        jobs.backlog.check_again();
        jobs.promote(&mut Nobody);
        assert!(jobs.runs.is_empty());
        assert!(jobs.backlog.again_ms(Instant::now()) > 0);

        jobs.backlog.retries.forget(id);
        let mut attempts = 0;
        loop {
            jobs.backlog.retries.put_off(id, 0);
            jobs.backlog.check_again();
            jobs.promote(&mut Nobody);
            attempts += 1;
            if !jobs.retry(jobs.runs[0].run, &error) {
                break;
            }
        }
        assert_eq!(attempts, 6);
        assert!(jobs.give_up(jobs.runs[0].run, &error, false, &mut Nobody).is_some());
        assert_eq!(jobs.standing_of(id).unwrap().state, "over");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// An order that is being checked still counts as waiting: the history is not asked for it.
    #[test]
    fn an_order_that_is_being_checked_waits() {
        let directory = std::env::temp_dir().join(format!("pbs-checked-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let id = jobs.order(vec![ordered(None, true)], &mut Nobody).unwrap()[0];
        jobs.backlog.check_again();
        let taken = jobs.backlog.take_due().unwrap();
        assert!(jobs.backlog.find(id).is_none() && jobs.backlog.has(id));
        jobs.backlog.settled(id);
        assert!(!jobs.backlog.has(id));
        jobs.backlog.put_back(taken);
        assert!(jobs.backlog.has(id));
        assert!(jobs.backlog.remove(id).is_some() && !jobs.backlog.has(id));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A user's order is not run by a process that would run it as its own user.
    #[test]
    fn orders_of_users_wait_for_the_service() {
        let directory = std::env::temp_dir().join(format!("pbs-no-owner-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.order(vec![ordered(None, true)], &mut Nobody).unwrap();
        let admitted = jobs.admit_waiting("jobs", &mut Nobody);
        assert!(matches!(admitted, Err(Error::NothingWaits)), "{admitted:?}");
        assert_eq!(jobs.runs.len(), 0);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Remembers what it hears.
    #[derive(Default)]
    struct Hears(Vec<String>);

    impl Listener for Hears {
        fn news(&mut self, news: News) {
            self.0.push(news.to_string());
        }
    }

    /// A job whose order cannot be read is set aside with a reason and never run, least of all
    /// as root. Other jobs run.
    #[test]
    fn a_job_with_an_unreadable_order_is_set_aside() {
        let directory = std::env::temp_dir().join(format!("pbs-unreadable-{}", std::process::id()));
        let mut before = jobs(&directory);
        let orders = vec![ordered(None, true), ordered(None, true), ordered(None, true)];
        let ids = before.order(orders, &mut Nobody).unwrap();
        for (id, text) in [(ids[0], "{}"), (ids[1], "{\"terms\":{\"hold\":false}}")] {
            let order = pbs_history::Order { uid: 1000, text: text.into() };
            before.ledger.set_order(id, &order).unwrap();
        }
        drop(before);
        let mut after = jobs(&directory);
        let mut hears = Hears::default();
        after.find_orders(&mut hears).unwrap();
        assert_eq!(hears.0.len(), 2);
        let is_told = |text: &String| text.contains("the record of its order cannot be read");
        assert!(hears.0.iter().all(is_told), "{hears:?}", hears = hears.0);
        for &id in &ids[..2] {
            let standing = after.standing_of(id).unwrap();
            assert_eq!((standing.state, standing.uid), ("over", Some(1000)));
            assert_eq!(standing.outcome, Some(Outcome::Declined));
            assert_eq!(standing.reason.as_deref(), Some(crate::orders::UNREADABLE));
        }
        after.hold(ids[2], false).unwrap();
        after.promote(&mut hears);
        assert_eq!(after.runs.len(), 1);
        assert_eq!(after.runs[0].owner().unwrap().uid, 1000);
        assert_eq!(after.standing_of(ids[2]).unwrap().state, "planned");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// In an allocation, if it is said.
    fn ordered_in(allocation: Option<u32>, hold: bool) -> Order {
        let order = ordered(None, hold);
        let terms = Terms { allocation, ..order.terms };
        Order::new(order.submission, terms)
    }

    /// The one CPU of the machine is allocated: who has no part in that gets nothing there,
    /// and one that waits is looked at again when it is free.
    #[test]
    fn jobs_are_planned_on_the_cpus_of_their_allocation() {
        let directory = std::env::temp_dir().join(format!("pbs-allocated-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let of = |cpu| crate::Allocation { cpus: [cpu].into(), until_unix_ns: None };
        jobs.allocations = Allocations([(7, of(0)), (8, of(1))].into());
        let order = |jobs: &mut Jobs, allocation| {
            let ids = jobs.order(vec![ordered_in(allocation, false)], &mut Nobody)?;
            let standing = jobs.standing_of(ids[0])?;
            Ok::<_, Error>((standing.state, standing.cpus, standing.allocation))
        };
        let its = order(&mut jobs, Some(7)).unwrap();
        assert_eq!(its, ("planned", Some(vec![0]), Some(7)));
        for other in [None, Some(8), Some(9)] {
            let declined = order(&mut jobs, other);
            assert!(matches!(declined, Err(Error::Declined(_))), "{declined:?}");
        }
        let held = jobs.order(vec![ordered_in(None, true)], &mut Nobody);
        let held = held.unwrap()[0];
        jobs.allocations = Allocations::default();
        jobs.hold(held, false).unwrap();
        jobs.promote(&mut Nobody);
        let standing = jobs.standing_of(held).unwrap();
        assert_eq!((standing.state, standing.cpus), ("planned", None));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A later service is aware of the allocation of a waiting run, and reports it also for a run
    /// that is over.
    #[test]
    fn the_allocation_of_a_run_outlives_the_service() {
        let directory = std::env::temp_dir().join(format!("pbs-outlives-{}", std::process::id()));
        let mut before = jobs(&directory);
        let held = before.order(vec![ordered_in(Some(7), true)], &mut Nobody);
        let held = held.unwrap()[0];
        drop(before);
        let mut after = jobs(&directory);
        after.find_orders(&mut Nobody).unwrap();
        let standing = after.standing_of(held).unwrap();
        assert_eq!((standing.state, standing.allocation), ("held", Some(7)));
        // It has ended meanwhile.
        after.hold(held, false).unwrap();
        after.promote(&mut Nobody);
        let standing = after.standing_of(held).unwrap();
        assert_eq!((standing.state, standing.allocation), ("over", Some(7)));
        let why = standing.reason.unwrap();
        assert!(why.contains("allocation 7 has ended"), "{why}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A failure that was handed over is nobody's until it is given back; then the built-in
    /// planner answers it.
    #[test]
    fn the_built_in_planner_answers_what_is_given_back() {
        let directory = std::env::temp_dir().join(format!("pbs-back-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.max_replans = 9;
        jobs.admit(job("late", 9_000_000_000), &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let plan = jobs.take_plan().unwrap();
        jobs.let_go(&plan, 10);
        let all = |_: u32| true;
        assert_eq!(jobs.hand_over(0, all, monotonic_ns()), HandOver::Keep);
        let event = |seq, kind: EventKind| Event {
            seq,
            kind: kind as u16,
            reason: pbs_uapi::Cause::Task as u16,
            plan_id: plan.plan_id,
            process: plan.processes[0].id,
            retired_insns: 70_000_000,
            ..Event::default()
        };
        jobs.event(&event(10, EventKind::Attached), true);
        jobs.event(&event(11, EventKind::Late), true);
        // Not before the distance of plans has passed.
        let now_ns = monotonic_ns();
        assert!(matches!(jobs.hand_over(0, all, now_ns), HandOver::NotBefore(_) | HandOver::Ask));
        let later_ns = now_ns + 2_000_000_000;
        // One on another CPU in the same batch still wants an answer.
        jobs.event(&event(12, EventKind::Late), true);
        jobs.event(&Event { cpu: 1, ..event(13, EventKind::Late) }, true);
        assert_eq!(jobs.hand_over(0, all, later_ns), HandOver::Ask);
        assert_eq!(jobs.hand_over(0, all, later_ns), HandOver::Keep);
        assert!(jobs.controller.is_asked());
        // Nobody else answers for that CPU.
        assert_eq!(jobs.hand_over(1, |cpu| cpu == 0, later_ns), HandOver::Keep);
        assert!(jobs.controller.needs_own_plan(|cpu| cpu == 0));
        assert_eq!(jobs.hand_over(1, all, later_ns), HandOver::Ask);
        assert_eq!(jobs.hand_over(1, all, later_ns), HandOver::Keep);
        assert!(matches!(jobs.controller.answer(later_ns), Ok(Answer::Nothing)));
        jobs.refused();
        assert!(matches!(jobs.controller.answer(later_ns), Ok(Answer::Plan { .. })));
        let mut numbered = plan.clone();
        jobs.number(&mut numbered);
        assert!(numbered.plan_id > plan.plan_id + 1);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Returns the end of a run with one process. The kernel is asked before its events are read,
    /// as it is when another job arrives. `lost`: the events are overrun meanwhile. Returns also
    /// the time of the end: 3 by the event, and 5 when the kernel was asked.
    fn asked_first(directory: &str, lost: bool) -> (Outcome, bool, Option<u64>) {
        let directory = format!("{directory}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let mut jobs = jobs(&directory);
        let submissions = job("asked", 4_000_000_000);
        jobs.admit(submissions, &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let plan = jobs.take_plan().unwrap();
        jobs.let_go(&plan, 10);
        let (run, number) = (jobs.runs[0].run, plan.processes[0].id);
        let event = |seq, kind| Event {
            seq,
            time_ns: 3,
            kind: kind as u16,
            plan_id: plan.plan_id,
            process: number,
            task: plan.processes[0].tasks[0].id,
            retired_insns: 62_500_000,
            ..Event::default()
        };
        let attached = Event { retired_insns: 0, ..event(10, EventKind::Attached) };
        jobs.event(&attached, true);
        assert_eq!(jobs.over(), []);
        let known = Process {
            process: number,
            state: ProcessState::Done as u32,
            ended_tasks: 1,
            tasks: 1,
            next_seq: 13,
            ..Process::default()
        };
        jobs.seen(0, &known, 5);
        // It has ended, and what it took is not known yet.
        assert_eq!(jobs.over(), [(run, false)]);
        if lost {
            let overrun =
                Event { value: 2, process: pbs_uapi::IDLE, ..event(11, EventKind::Overrun) };
            jobs.event(&overrun, true);
        } else {
            jobs.event(&event(11, EventKind::TaskEnded), true);
            assert_eq!(jobs.over(), [(run, false)]);
            jobs.event(&event(12, EventKind::ProcessEnded), true);
        }
        assert_eq!(jobs.over(), [(run, true)]);
        let ended_ns = jobs.runs[0].ended_ns();
        let outcome = jobs.finish(run, EndedPrograms::default(), &mut Nobody).unwrap();
        let retired = outcome.tasks[0].retired_insns == 62_500_000;
        std::fs::remove_dir_all(&directory).unwrap();
        (outcome.outcome.unwrap(), retired, ended_ns)
    }

    /// The end of a run that is known from the kernel is recorded with what its events
    /// tell, and what they would have told is unknown only if they are lost.
    #[test]
    fn a_run_that_ended_unheard_is_recorded_when_it_is_heard() {
        assert_eq!(asked_first("pbs-heard", false), (Outcome::Complete, true, Some(3)));
        assert_eq!(asked_first("pbs-lost", true), (Outcome::Unknown, false, Some(5)));
    }

    /// The end of a job tells what processes have used that its programs have started. The next run
    /// has no more memory for them than its user has asked for.
    #[test]
    fn processes_that_programs_start_are_counted_with_the_job() {
        let directory = std::env::temp_dir().join(format!("pbs-others-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.admit(job("script", 4_000_000_000), &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let plan = jobs.take_plan().unwrap();
        jobs.let_go(&plan, 10);
        let (run, process) = (jobs.runs[0].run, plan.processes[0].id);
        let exit = pbs_report::Exit {
            process,
            program: "sh".into(),
            pid: 7,
            code: Some(0),
            signal: None,
            error: None,
        };
        let (end, was_signalled) = (1, false);
        let ran_ns = 200_000_000;
        let exited = Exited { exit, task: None, itself: false, ran_ns, end, was_signalled };
        let usage = pbs_launch::cgroup::GroupUsage {
            cpu_ns: Some(3_400_000_000),
            peak_memory_bytes: Some(40 << 20),
        };
        let ended = EndedPrograms { exits: vec![exited], usage, ..EndedPrograms::default() };
        let outcome = jobs.finish(run, ended, &mut Nobody).unwrap();
        assert_eq!(outcome.usage.notable_others_ns(), Some(3_200_000_000));
        let figures = jobs.figures_of(RunId(outcome.run.unwrap())).unwrap();
        assert_eq!(figures.usage, outcome.usage);
        jobs.admit(job("script", 4_000_000_000), &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let asked_bytes = job("script", 4_000_000_000)[0].job.processes[0].memory_bytes;
        assert_eq!(jobs.runs[0].job.processes[0].memory_bytes, asked_bytes);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A job may have all the memory that its user asks for, though earlier runs had less: one that
    /// grows by a page would be killed. It may have more if more is reserved for it.
    #[test]
    fn the_limit_of_memory_is_what_was_asked_for() {
        use pbs_history::{ProcessRun, Store, TaskRun};
        let directory = std::env::temp_dir().join(format!("pbs-asked-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut asked = job("grows", 4_000_000_000);
        let text = asked[0].request.replace("4096", "67_108_864");
        asked = vec![Submission::from_text(text, "grows".into()).unwrap()];
        let process = &asked[0].job.processes[0];
        let task = TaskRun {
            task: asked[0].job.tasks.iter().find(|task| task.insns > 0).unwrap().id,
            name: None,
            planned_insns: 62_500_000,
            retired_insns: 62_500_000,
            peak_memory_bytes: 1 << 20,
            preemptions: 0,
            outcome: Outcome::Complete,
        };
        let figures = ProcessRun {
            process: process.id,
            name: None,
            fingerprint: crate::predict::fingerprint(process),
            outcome: Outcome::Complete,
            ran_ns: 250_000_000,
            tasks: vec![task],
        };
        let file = directory.join("history.db");
        let mut store = Store::open(&file, pbs_history::Options::DEFAULT).unwrap();
        let new = pbs_history::NewRun {
            job: "grows",
            kind: Kind::Plan,
            submitted_unix_ns: 1,
            request: "",
            reservation: "",
            order: None,
        };
        let id = store.begin_run(&new).unwrap();
        store.finish_run(id, 2, Outcome::Complete, &[figures]).unwrap();
        drop(store);
        let mut jobs = jobs(&directory);
        jobs.admit(asked, &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let mut options = crate::node::Options { limits_memory: true, ..Default::default() };
        let active = &mut jobs.runs[0];
        let reserved_bytes = memory_bytes_of(&active.job);
        assert!(reserved_bytes < 2 << 20, "{reserved_bytes}");
        assert_eq!(options.limits_of(active).memory_bytes, Some(64 << 20));
        active.requested_bytes = 0;
        assert_eq!(options.limits_of(active).memory_bytes, Some(reserved_bytes));
        options.limits_memory = false;
        assert_eq!(options.limits_of(active).memory_bytes, None);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// More programs than the control group of a job may have processes are refused: they would be
    /// forked and killed until the deadline of the job.
    #[test]
    fn a_job_has_no_more_programs_than_processes() {
        let submission = job("wide", 4_000_000_000).remove(0);
        let cgroups = Some(std::path::PathBuf::from("/none"));
        let options = |job_pids| crate::node::Options { job_pids, ..Default::default() };
        let allowed = |options: crate::node::Options| {
            options.allow_programs(&submission.job, "wide.toml").map_err(|why| why.to_string())
        };
        assert_eq!(allowed(options(Some(0))), Ok(()));
        let limited = |most| crate::node::Options { cgroups: cgroups.clone(), ..options(most) };
        assert_eq!([allowed(limited(None)), allowed(limited(Some(1)))], [Ok(()), Ok(())]);
        let why = "wide.toml: these are 1 programs, and a job may have 0 processes (--job-pids); \
                   make several jobs of it";
        assert_eq!(allowed(limited(Some(0))), Err(why.into()));
    }

    /// A job whose user has become another one is declined, and the reason is in the record.
    #[test]
    fn a_job_of_another_user_is_declined() {
        let directory = std::env::temp_dir().join(format!("pbs-user-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let mut order = ordered(None, false);
        assert_eq!(jobs.users_of(&[]).unwrap(), "");
        order.terms.user = Some("nobody-of-this-test".into());
        let id = jobs.order(vec![order], &mut Nobody).unwrap()[0];
        let run = jobs.runs[0].run;
        let users = jobs.users_of(&[run]).unwrap();
        let error = jobs.runs[0].terms.as_ref().unwrap().is_of_user(&users).unwrap_err();
        jobs.give_up(run, &error, false, &mut Nobody);
        let RunSummary { outcome, reason, .. } = jobs.standing_of(id).unwrap();
        assert_eq!(outcome, Some(Outcome::Declined));
        let reason = reason.unwrap();
        assert!(reason.starts_with("user 1000 was nobody-of-this-test when"), "{reason}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A run that will be late is looked at once, whatever is reported of it later.
    #[test]
    fn a_late_run_is_looked_at_once() {
        let directory = std::env::temp_dir().join(format!("pbs-late-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.admit(job("late", 4_000_000_000), &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let run = jobs.runs[0].run;
        let missed = [Missed { run, by_ns: Some(5) }, Missed { run, by_ns: None }];
        jobs.tell_missed(&missed, &mut Nobody);
        assert_eq!(jobs.take_late(), [run]);
        jobs.tell_missed(&missed, &mut Nobody);
        assert!(jobs.take_late().is_empty());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A process with more memory than was reserved is reported where that is wanted, and again
    /// when it has twice as much.
    #[test]
    fn new_peaks_are_reported_once_for_each_doubling() {
        #[derive(Default)]
        struct Peaks(Vec<u64>);

        impl Listener for Peaks {
            fn new_peak(&mut self, _run: RunId, job: &str, peak: &NewPeak) {
                assert_eq!((job, peak.process.as_str()), ("grows", "1"));
                assert_eq!(peak.reserved_bytes, 4096);
                self.0.push(peak.peak_bytes);
            }
        }

        let directory = std::env::temp_dir().join(format!("pbs-peaks-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        jobs.admit(job("grows", 4_000_000_000), &[], Kind::Plan, "jobs", &mut Nobody).unwrap();
        let plan = jobs.take_plan().unwrap();
        jobs.let_go(&plan, 10);
        let mut peaks = Peaks::default();
        let mut seq = 10;
        let mut grows_to = |jobs: &mut Jobs, peaks: &mut Peaks, peak_rss_bytes| {
            let event = Event {
                seq,
                kind: EventKind::Grant as u16,
                plan_id: plan.plan_id,
                process: plan.processes[0].id,
                peak_rss_bytes,
                ..Event::default()
            };
            seq += 1;
            jobs.event(&event, true);
            jobs.tell_peaks(peaks);
        };
        grows_to(&mut jobs, &mut peaks, 9_000);
        assert!(peaks.0.is_empty());
        jobs.report_peaks();
        for bytes in [4_096, 5_000, 5_000, 9_000, 11_000, 12_000, u64::MAX, u64::MAX] {
            grows_to(&mut jobs, &mut peaks, bytes);
        }
        assert_eq!(peaks.0, [5_000, 11_000, u64::MAX]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// One that is declined takes nothing from those who come after, nor do those that
    /// were asked for with it; and the plan of a second job has the first.
    #[test]
    fn a_node_goes_on_after_it_has_declined() {
        let directory = std::env::temp_dir().join(format!("pbs-jobs-{}", std::process::id()));
        let mut jobs = jobs(&directory);
        let mut admit = |submissions| {
            jobs.admit(submissions, &[], Kind::Plan, "jobs", &mut Nobody)?;
            jobs.take_plan().map(|plan| plan.processes.len())
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
