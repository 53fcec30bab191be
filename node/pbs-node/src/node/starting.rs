// SPDX-License-Identifier: GPL-2.0
//! The start of runs: their programs are forked, come to a gate, and are let go with a plan.
//!
//! A child opens files of its owner on its way to the gate, and its owner can make that last for
//! ever. The node therefore waits for no child: it looks whenever a child has reported something
//! ([`Node::reports`]), or the time of some is up ([`Node::starting_ms`]). The runs of a user that
//! are started at the same time have a gate of their own: no user waits for the programs of
//! another. A run is in no plan that is written before its programs stand at their gate.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pbs_history::RunId;
use pbs_launch::signals::{sooner, wait_for, Signals};
use pbs_launch::{Gate, Prepared};
use pbs_plan::Plan;

use super::Node;
use crate::active::ActiveJob;
use crate::programs::Programs;
use crate::room::Room;
use crate::{device, Error, Listener};

/// Maximum number of attempts to write a plan. The kernel refuses a plan if a process has ended
/// while the plan was made. With hundreds of short jobs under way, one nearly always has.
const WRITE_TRIES: u32 = 20;

/// Share of the descriptors for programs that is left to root's jobs: one of so many.
const OF_ROOT: usize = 8;

/// Time in which the programs of a user's runs come to the gate, and the time that each of them
/// adds: they are started one after the other.
const TO_THE_GATE: Duration = Duration::from_millis(500);
const OF_PROGRAM: Duration = Duration::from_millis(5);

/// Age up to which a plan is written as it was made, before the programs were forked. An older one
/// is planned anew if there is time for that.
const FRESH: Duration = Duration::from_millis(200);

/// Starts of a user and its subordinate users that are under way at the same time: each has a gate with descriptors. Further
/// runs are forked when one of them has ended.
const MOST_STARTS: usize = 4;

/// Runs of a user whose programs are on their way to a gate, or stand there.
#[derive(Debug)]
pub(super) struct Starting {
    /// The user whose limits the runs count to; `None`: they are those of the user who runs the node.
    account: Option<u32>,
    runs: Vec<StartingRun>,
    gate: Gate,
    /// File that reports whether the runs were released.
    commit: PathBuf,
    begun: Instant,
    /// Time by which the programs are to be ready; `None`: nobody can make them wait.
    until: Option<Instant>,
}

/// A run with its programs.
#[derive(Debug)]
struct StartingRun {
    run: pbs_planner::RunId,
    /// Process ids of its programs.
    pids: Vec<i32>,
    /// Process ids of the programs that do not stand at the gate yet.
    unready: Vec<i32>,
}

impl Starting {
    /// Whether programs of runs that count to a user can be forked now: not many starts are under
    /// way.
    fn may_follow(starting: &[Self], account: Option<u32>) -> bool {
        let own = starting.iter().filter(|one| one.account == account);
        account.is_none() || own.count() < MOST_STARTS
    }

    /// Whether a run is among them.
    pub(super) fn has(&self, run: pbs_planner::RunId) -> bool {
        self.runs.iter().any(|starting| starting.run == run)
    }

    fn remove(&mut self, run: pbs_planner::RunId) {
        self.runs.retain(|starting| starting.run != run);
    }

    fn runs(&self) -> Vec<pbs_planner::RunId> {
        self.runs.iter().map(|starting| starting.run).collect()
    }

    /// Looks which programs stand at the gate; does not wait. Removes and returns the runs with a
    /// program that can't, or that had all its time.
    fn look(&mut self, programs: &mut Programs, now: Instant) -> Vec<(pbs_planner::RunId, Error)> {
        let is_over = self.until.is_some_and(|until| until <= now);
        let mut failed = Vec::new();
        self.runs.retain_mut(|starting| {
            let error = match programs.retain_unready(&mut starting.unready) {
                Ok(()) if !is_over => None,
                Ok(()) => {
                    let late = starting.unready.first().and_then(|&pid| programs.child(pid));
                    late.map(|child| Error::Programs(child.not_ready_in_time()))
                }
                Err(error) => Some(error),
            };
            let Some(error) = error else {
                return true;
            };
            failed.push((starting.run, error));
            false
        });
        if self.is_ready() {
            // Some may have been killed while they waited for the last one.
            self.runs.retain(|starting| {
                let error = programs.retain_unready(&mut starting.pids.clone()).err();
                let is_there = error.is_none();
                failed.extend(error.map(|error| (starting.run, error)));
                is_there
            });
        }
        failed
    }

    /// Programs that do not stand at the gate yet.
    fn unready(&self) -> impl Iterator<Item = i32> + '_ {
        self.runs.iter().flat_map(|starting| &starting.unready).copied()
    }

    fn is_ready(&self) -> bool {
        self.unready().next().is_none()
    }

    /// Ends the start: nobody is let go.
    fn end(&self) {
        remove(&self.commit);
    }
}

/// Removes the file that reports a release, since there was none.
fn remove(commit: &Path) {
    // It holds nothing: a successor that finds it takes the runs as not released.
    let _ = fs::remove_file(commit);
}

impl<L: Listener> Node<L> {
    /// Starts what was admitted: forks its programs, writes the plan of all that run,
    /// attaches the programs, and lets them go. What cannot be started is over; the
    /// answer is which runs those are and why. Waits for the programs: this is for callers that
    /// nobody else depends on ([`Node::start_ready`]).
    ///
    /// # Errors
    ///
    /// Why none was started; they are all over then.
    pub fn start(&mut self, signals: &Signals) -> Result<Vec<(Option<RunId>, Error)>, Error> {
        let mut failed = self.start_ready(signals)?;
        while !self.starting.is_empty() {
            wait_for(self.reports(), self.starting_ms()).map_err(Error::Programs)?;
            failed.extend(self.start_ready(signals)?);
        }
        Ok(failed)
    }

    /// Starts what was admitted, as far as that is possible without waiting: forks the programs of
    /// new runs, and lets those go of a user that all stand at their gate. Returns the runs that
    /// could not be started, and why.
    ///
    /// # Errors
    ///
    /// Why none of those was started that are over now.
    pub fn start_ready(&mut self, signals: &Signals) -> Result<Vec<(Option<RunId>, Error)>, Error> {
        self.fork_new(signals)?;
        self.look_at_starting();
        self.let_go()?;
        Ok(std::mem::take(&mut self.not_started))
    }

    /// Whether a run is about to be started.
    pub fn is_starting(&self, id: RunId) -> bool {
        let runs = self.jobs.iter().flat_map(|jobs| &jobs.runs);
        runs.filter(|run| run.started_ns.is_none()).any(|run| run.id == Some(id))
    }

    /// Returns descriptors that can be read when [`Node::start_ready`] has something to do.
    pub fn reports(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.programs.reports(self.starting.iter().flat_map(Starting::unready))
    }

    /// Time after which [`Node::start_ready`] is to be called in any case, in milliseconds;
    /// negative: when something happens.
    pub fn starting_ms(&self) -> i32 {
        if !self.unforked().is_empty() {
            return 0;
        }
        let now = Instant::now();
        let left = self.starting.iter().filter_map(|starting| starting.until).map(|until| {
            let left = until.saturating_duration_since(now).as_millis();
            i32::try_from(left).unwrap_or(i32::MAX).saturating_add(1)
        });
        left.fold(-1, sooner)
    }

    /// Runs whose programs were not forked yet and can be forked now.
    fn unforked(&self) -> Vec<pbs_planner::RunId> {
        let Some(jobs) = &self.jobs else {
            return Vec::new();
        };
        let mut runs = jobs.unstarted();
        runs.retain(|&run| {
            let uid = jobs.active(run).and_then(ActiveJob::uid);
            let account = jobs.account(uid);
            !self.has_forked(run) && Starting::may_follow(&self.starting, account)
        });
        runs
    }

    /// Whether the programs of a run are on their way to a gate, or stand there.
    pub(crate) fn has_forked(&self, run: pbs_planner::RunId) -> bool {
        self.starting.iter().any(|starting| starting.has(run))
    }

    /// Forks the programs of runs that were admitted since this was last done.
    fn fork_new(&mut self, signals: &Signals) -> Result<(), Error> {
        let unforked = self.unforked();
        if unforked.is_empty() {
            return Ok(());
        }
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        let plan = match jobs.take_plan() {
            Ok(plan) => plan,
            Err(error) => return Err(self.drop_all(&unforked, error, false)),
        };
        let mut users: BTreeMap<Option<u32>, Vec<pbs_planner::RunId>> = BTreeMap::new();
        for run in unforked {
            let uid = self.jobs.as_ref().and_then(|jobs| jobs.active(run)?.uid());
            users.entry(uid).or_default().push(run);
        }
        let mut is_whole = true;
        let mut none_forked = None;
        for (uid, runs) in users {
            match self.fork_runs(uid, &runs, &plan, signals) {
                Ok(all) => is_whole &= all,
                Err(error) => none_forked = Some(self.drop_all(&runs, error, false)),
            }
        }
        if let (Some(jobs), None, true) = (&mut self.jobs, &none_forked, is_whole) {
            jobs.next_plan = Some(plan);
        }
        none_forked.map_or(Ok(()), Err)
    }

    /// Forks the programs of runs of a user, which go as far as a gate. Whether those of all runs
    /// could be forked.
    fn fork_runs(
        &mut self,
        uid: Option<u32>,
        of_user: &[pbs_planner::RunId],
        plan: &Plan,
        signals: &Signals,
    ) -> Result<bool, Error> {
        let jobs = self.jobs.as_ref().ok_or(Error::NoJobs)?;
        let users = jobs.users_of(of_user)?;
        let commit = jobs.commit_file(plan, uid);
        let gate = Gate::new(Some(&commit)).map_err(Error::Programs)?;
        let begun = Instant::now();
        let runs = Vec::with_capacity(of_user.len());
        let account = jobs.account(uid);
        let mut starting = Starting { account, runs, gate, commit, begun, until: None };
        let mut failed = Vec::new();
        for &run in of_user {
            let pids = self.prepare(run, plan, &users).and_then(|programs| {
                self.has_room((uid, account), programs.len())?;
                self.make_cgroup(run)?;
                self.programs.fork((Some(run), account), &programs, &starting.gate, signals)
            });
            match pids {
                Ok(pids) => {
                    starting.runs.push(StartingRun { run, unready: pids.clone(), pids });
                }
                Err(error) => failed.push((run, error)),
            }
        }
        let programs: usize = starting.runs.iter().map(|starting| starting.pids.len()).sum();
        let of_programs = OF_PROGRAM.saturating_mul(u32::try_from(programs).unwrap_or(u32::MAX));
        starting.until = uid.and_then(|_| begun.checked_add(TO_THE_GATE + of_programs));
        if starting.runs.is_empty() {
            starting.end();
        } else {
            self.starting.push(starting);
        }
        let is_whole = failed.is_empty();
        for (run, error) in failed {
            self.leave_out(run, error);
        }
        Ok(is_whole)
    }

    /// Looks which programs stand at their gates.
    fn look_at_starting(&mut self) {
        let now = Instant::now();
        let starting = self.starting.iter_mut();
        let failed: Vec<_> =
            starting.flat_map(|starting| starting.look(&mut self.programs, now)).collect();
        for (run, error) in failed {
            self.leave_out(run, error);
        }
        self.end_empty();
    }

    /// Forgets starts that have no run any more.
    fn end_empty(&mut self) {
        for over in self.starting.extract_if(.., |starting| starting.runs.is_empty()) {
            over.end();
        }
    }

    /// A run that is in no written plan can't be started: it waits again, or is over.
    fn leave_out(&mut self, run: pbs_planner::RunId, why: Error) {
        if !self.waits_again(run, &why) {
            let id = self.give_up(run, &why, false);
            self.not_started.push((id, why));
        }
    }

    /// Whether a run that is in no written plan waits again, for what may be otherwise later.
    fn waits_again(&mut self, run: pbs_planner::RunId, why: &Error) -> bool {
        // A shortage is nobody's fault, and least of all its own. Its files, or a history that
        // others keep busy, may answer later.
        (why.is_shortage() && self.postpone(run, why)) || (why.may_pass() && self.retry(run, why))
    }

    /// Writes the plan of all that run and of those whose programs are ready, and lets these go.
    fn let_go(&mut self) -> Result<(), Error> {
        let mut ready: Vec<_> = self.starting.extract_if(.., |it| it.is_ready()).collect();
        if ready.is_empty() {
            return Ok(());
        }
        let mut is_written = false;
        let mut stand = self.put_in_force(&mut ready, &mut is_written);
        let mut released = Vec::with_capacity(ready.len());
        for Starting { runs, gate, commit, .. } in ready {
            let runs: Vec<_> = runs.into_iter().map(|starting| starting.run).collect();
            if let Err(error) = stand {
                remove(&commit);
                stand = Err(self.drop_all(&runs, error, is_written));
            } else if runs.is_empty() {
                remove(&commit);
            } else if let Err(error) = gate.release() {
                // The programs of others are let go nevertheless.
                remove(&commit);
                let error = self.drop_all(&runs, Error::Programs(error), is_written);
                self.not_started.push((None, error));
            } else {
                released.push((runs, commit));
            }
        }
        // All are let go before the first of them is recorded: they may take the CPU.
        if let Some(jobs) = &mut self.jobs {
            for (runs, commit) in released {
                jobs.released(&runs, commit, &mut self.listener);
            }
        }
        stand
    }

    /// None of those runs is started. Returns the reason.
    fn drop_all(&mut self, runs: &[pbs_planner::RunId], why: Error, is_written: bool) -> Error {
        for &run in runs {
            if is_written || !self.waits_again(run, &why) {
                self.give_up(run, &why, is_written);
            }
        }
        why
    }

    /// Number of programs that can be started now: for root's jobs and for others, for whom some
    /// are left out.
    pub(crate) fn room(&mut self) -> Room {
        let Some(most) = self.options.open_programs else {
            return Room::ENDLESS;
        };
        let others = most - most / OF_ROOT;
        let of_gates = Gate::DESCRIPTORS.saturating_mul(self.starting.len());
        let open = self.programs.descriptors(others / 2).saturating_add(of_gates);
        Room { root: most.saturating_sub(open), others: others.saturating_sub(open) }
    }

    /// Whether so many programs of a user can be started now.
    fn has_room(
        &mut self,
        (uid, account): (Option<u32>, Option<u32>),
        programs: usize,
    ) -> Result<(), Error> {
        if self.programs.has_stuck(account) {
            return Err(Error::Stuck);
        }
        if programs > self.room().of(uid) {
            return Err(Error::NoRoom);
        }
        Ok(())
    }

    /// Postpones a run whose programs can't be started now: it waits again, if it was ordered.
    /// Returns whether it does.
    fn postpone(&mut self, run: pbs_planner::RunId, why: &Error) -> bool {
        self.programs.give_up(run);
        self.jobs.as_mut().is_some_and(|jobs| jobs.postpone(run, why))
    }

    /// Postpones a run that could not be started now, if another attempt follows. Returns whether one
    /// does.
    fn retry(&mut self, run: pbs_planner::RunId, why: &Error) -> bool {
        self.programs.give_up(run);
        self.jobs.as_mut().is_some_and(|jobs| jobs.retry(run, why))
    }

    /// A run can't be started: its programs end, and it is over.
    fn give_up(&mut self, run: pbs_planner::RunId, why: &Error, is_written: bool) -> Option<RunId> {
        self.programs.give_up(run);
        let jobs = self.jobs.as_mut()?;
        jobs.give_up(run, why, is_written, &mut self.listener)
    }

    /// Ends a run that is about to be started, since it was cancelled.
    pub(crate) fn cancel_start(&mut self, run: pbs_planner::RunId) {
        for starting in &mut self.starting {
            starting.remove(run);
        }
        self.end_empty();
        self.give_up(run, &Error::NothingToRun, false);
    }

    /// Writes the plan with those runs, and attaches their programs.
    fn put_in_force(&mut self, ready: &mut [Starting], is_written: &mut bool) -> Result<(), Error> {
        self.begin()?;
        let runs: Vec<_> = ready.iter().flat_map(Starting::runs).collect();
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        if ready.iter().any(|starting| starting.begun.elapsed() >= FRESH) {
            jobs.refresh(&mut self.listener);
        }
        let mut plan = jobs.take_plan_with(&runs)?;
        let mut steps = jobs.steps_of_start();
        let mut tries = 1;
        let mut is_noted = false;
        loop {
            plan.lease_ns = match self.lease.length_ns() {
                0 => self.options.lease_ns.unwrap_or(plan.lease_ns),
                length_ns => length_ns,
            };
            let next_seq = self.kernel.next_seq()?;
            let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
            if !is_noted {
                for starting in &*ready {
                    jobs.follow_from(next_seq, &starting.runs(), &starting.commit)?;
                }
                jobs.planned(&plan)?;
                is_noted = true;
            }
            match device::write(&self.kernel.device, &plan, "the plan of all jobs") {
                Ok(()) => break,
                // Something has happened since that we have not heard of.
                Err(Error::Refused(..)) if tries < WRITE_TRIES => {
                    tries += 1;
                    while self.hear()? > 0 {}
                    let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
                    jobs.look_at_all_progress(&self.kernel.device);
                    if !jobs.leave_out_ended(&mut plan) {
                        jobs.plan_anew(&mut steps, &mut self.listener);
                        plan = jobs.take_plan_with(&runs)?;
                        is_noted = false;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        *is_written = true;
        self.written(&plan);
        if let Some(jobs) = &mut self.jobs {
            jobs.taken();
        }
        for starting in ready {
            let mut refused = Vec::new();
            for of in &starting.runs {
                let attached = of.pids.iter().try_for_each(|&pid| self.attach(pid));
                refused.extend(attached.err().map(|error| (of.run, error)));
            }
            for (run, error) in refused {
                starting.remove(run);
                let id = self.give_up(run, &error, true);
                self.not_started.push((id, error));
            }
        }
        Ok(())
    }

    /// Makes the control group of a run that was ordered.
    fn make_cgroup(&mut self, run: pbs_planner::RunId) -> Result<(), Error> {
        let (Some(jobs), Some(parent)) = (&self.jobs, &self.options.cgroups) else {
            return Ok(());
        };
        let active = jobs.active(run).filter(|active| active.terms.is_some());
        if let Some((active, id)) = active.and_then(|active| Some((active, active.id?))) {
            let limits = self.options.limits_of(active);
            self.programs.make_cgroup(run, id, parent, limits)?;
        }
        Ok(())
    }

    /// The programs of a run, with the CPUs that the plan has for them; `users`: the lines of
    /// /etc/passwd.
    fn prepare(
        &self,
        run: pbs_planner::RunId,
        plan: &Plan,
        users: &str,
    ) -> Result<Vec<Prepared>, Error> {
        let jobs = self.jobs.as_ref().ok_or(Error::NoJobs)?;
        let active = jobs.active(run);
        if let Some((job, terms)) = active.and_then(|it| Some((&it.job, it.terms.as_ref()?))) {
            terms.is_of_user(users)?;
            self.options.allow_programs(job, &job.name)?;
        }
        let owner = active.and_then(|active| active.owner());
        // A run that is no job's has none.
        let of_job = active.map(|active| active.variables()).unwrap_or_default();
        let start_ns = active.map_or(0, |active| active.job.start_ns);
        let mut programs = Vec::new();
        let mut problems = Vec::new();
        let processes = plan.processes.iter().enumerate();
        for (index, process) in processes.filter(|(_, it)| jobs.run_of(it.id) == Some(run)) {
            let cpu = plan.cpu_of(index).map_or(0, |cpu| cpu.cpu);
            let to_error = self.options.output_to_error;
            let (device, owner) = (&self.kernel.path, owner.as_ref());
            match Prepared::of_process(process, cpu, device, to_error, owner, &of_job) {
                Ok(prepared) => {
                    programs.extend(prepared.into_iter().map(|one| one.not_before(start_ns)));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(programs)
        } else {
            Err(Error::Invalid { file: jobs.name_of(run), problems })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(process: u32) -> Vec<Prepared> {
        let plan = format!(
            "[[process]]\nid = {process}\ncommand = ['true']\ntasks = [1]\n\
             [[cpu]]\ncpu = 0\nslots = [{process}]\n"
        );
        let plan = pbs_plan::from_toml(&plan).unwrap();
        pbs_launch::prepare_plan(&plan, Path::new("/dev/null"), true).unwrap()
    }

    fn starting(programs: &mut Programs, run: u64, signals: &Signals) -> Starting {
        let name = format!("pbs-starting-{run}-{}", std::process::id());
        let commit = std::env::temp_dir().join(name);
        let gate = Gate::new(Some(&commit)).unwrap();
        let run = pbs_planner::RunId(run);
        let prepared = prepared(run.0 as u32);
        let pids = programs.fork((Some(run), Some(1000)), &prepared, &gate, signals).unwrap();
        let begun = Instant::now();
        let runs = vec![StartingRun { run, unready: pids.clone(), pids }];
        let account = Some(1000);
        Starting { account, runs, gate, commit, begun, until: begun.checked_add(TO_THE_GATE) }
    }

    /// A start whose program was stopped before it came to the gate.
    fn stopped(programs: &mut Programs, signals: &Signals) -> Starting {
        loop {
            let mut stopped = starting(programs, 1, signals);
            programs.signal_all(libc::SIGSTOP);
            let stat = format!("/proc/{}/stat", stopped.runs[0].pids[0]);
            while !fs::read_to_string(&stat).unwrap().contains(") T ") {
                std::thread::yield_now();
            }
            programs.retain_unready(&mut stopped.runs[0].unready).unwrap();
            if !stopped.is_ready() {
                return stopped;
            }
            programs.give_up(stopped.runs[0].run);
            stopped.end();
        }
    }

    /// Programs that do not come to their gate keep nobody waiting: others are ready meanwhile. The
    /// run is left out when its time is up.
    #[test]
    fn programs_that_do_not_come_to_the_gate_keep_nobody_waiting() {
        let signals = Signals::new().unwrap();
        let mut programs = Programs::default();
        let mut stuck = stopped(&mut programs, &signals);
        let mut other = starting(&mut programs, 2, &signals);
        let (begun, until) = (stuck.begun, stuck.until.unwrap());
        while !other.is_ready() {
            wait_for(programs.reports(other.unready()), -1).unwrap();
            assert!(other.look(&mut programs, begun).is_empty());
            assert!(stuck.look(&mut programs, begun).is_empty());
        }
        assert!(!stuck.is_ready() && stuck.has(pbs_planner::RunId(1)));
        assert_eq!(programs.reports(stuck.unready()).count(), 1);
        assert_eq!(programs.reports(other.unready()).count(), 0);
        assert!(other.look(&mut programs, until).is_empty());
        let failed = stuck.look(&mut programs, until);
        assert!(failed.len() == 1 && failed[0].1.is_not_ready(), "{failed:?}");
        assert!(stuck.runs.is_empty() && other.is_ready());
        for (starting, run) in [(&stuck, 1), (&other, 2)] {
            programs.give_up(pbs_planner::RunId(run));
            starting.end();
            assert!(!starting.commit.exists());
        }
    }

    /// A user whose programs do not come to their gates holds the descriptors of a few gates, and
    /// keeps nobody else from starting.
    #[test]
    fn the_starts_of_a_user_that_are_under_way_are_few() {
        let signals = Signals::new().unwrap();
        let mut programs = Programs::default();
        let mut starts = Vec::new();
        for number in 0..MOST_STARTS as u64 {
            assert!(Starting::may_follow(&starts, Some(1000)));
            starts.push(starting(&mut programs, 10 + number, &signals));
        }
        assert!(!Starting::may_follow(&starts, Some(1000)));
        assert!(Starting::may_follow(&starts, Some(1001)) && Starting::may_follow(&starts, None));
        starts.drain(..).for_each(|start| {
            start.runs().into_iter().for_each(|run| programs.give_up(run));
            start.end();
        });
    }

    /// A program that is killed at the gate, where it waits for others, is not let go.
    #[test]
    fn a_program_that_is_killed_at_the_gate_fails_its_run() {
        let signals = Signals::new().unwrap();
        let mut programs = Programs::default();
        let mut killed = starting(&mut programs, 1, &signals);
        let begun = killed.begun;
        while !killed.is_ready() {
            wait_for(programs.reports(killed.unready()), -1).unwrap();
            assert!(killed.look(&mut programs, begun).is_empty());
        }
        programs.signal_all(libc::SIGKILL);
        let failed = loop {
            let failed = killed.look(&mut programs, begun);
            if !failed.is_empty() {
                break failed;
            }
            std::thread::yield_now();
        };
        assert!(failed[0].1.to_string().contains("killed before it began"), "{failed:?}");
        assert!(killed.runs.is_empty());
        killed.end();
    }

    /// A run with a program that can't come to the gate is left out at once, and no other run.
    #[test]
    fn a_program_that_is_killed_on_its_way_fails_its_run_alone() {
        let signals = Signals::new().unwrap();
        let mut programs = Programs::default();
        let mut killed = stopped(&mut programs, &signals);
        programs.signal_all(libc::SIGKILL);
        let mut other = starting(&mut programs, 2, &signals);
        let begun = killed.begun;
        let failed = loop {
            let failed = killed.look(&mut programs, begun);
            if !failed.is_empty() {
                break failed;
            }
            wait_for(programs.reports(killed.unready()), -1).unwrap();
        };
        assert!(failed[0].1.to_string().contains("killed before it began"), "{failed:?}");
        while !other.is_ready() {
            wait_for(programs.reports(other.unready()), -1).unwrap();
            assert!(other.look(&mut programs, begun).is_empty());
        }
        programs.give_up(pbs_planner::RunId(2));
        killed.end();
        other.end();
    }
}
