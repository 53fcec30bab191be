// SPDX-License-Identifier: GPL-2.0
//! Programs of plans and runs, and the control groups that they are in.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use pbs_history::{RunId, RunUsage};
use pbs_job::Job;
use pbs_launch::cgroup::{Cgroup, GroupLimits, GroupUsage};
use pbs_launch::signals::{sooner, Signals};
use pbs_launch::{
    empty_outputs, ended_children, Child, Exited, Gate, NoticeSignal, Prepared, Stay,
};
use pbs_report::Exit;

use crate::usage::with_programs;
use crate::Error;

/// Time that programs have to end after an interruption.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Programs of a user that were killed and have not ended, from which on no other program of the
/// user is started. A program that waits for a file system in the kernel does not end.
const MOST_STUCK: usize = 256;

/// Attempts to kill the processes of a control group, after which the group is checked rarely.
const KILLS: u32 = 100;

/// Maximum number of control groups that are checked in a round.
const CHECKED_AT_ONCE: usize = 16;

/// Interval at which a group is checked for programs that another service has started.
const UNSEEN_MS: i32 = 50;

/// Beginning of the names of jobs' control groups; the number of the job follows.
const CGROUP: &str = "job-";

/// All programs that this node has started and that were not given up.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// Programs of all plans and runs, by their process ids.
    children: BTreeMap<i32, Started>,
    /// Control groups of runs that have one.
    cgroups: BTreeMap<pbs_planner::RunId, Cgroup>,
    /// Control groups of runs that are over, until they are empty.
    leaving: VecDeque<Leaving>,
    /// Runs that are to end.
    ending: BTreeMap<pbs_planner::RunId, EndingRun>,
}

/// A program of a plan, or of a run.
#[derive(Debug)]
struct Started {
    /// `None`: of a plan, or of a run that was given up.
    run: Option<pbs_planner::RunId>,
    /// The user whose run it is; `None`: of a plan.
    /// The user whose limits it counts to.
    account: Option<u32>,
    child: Child,
}

/// A run that is to end.
#[derive(Clone, Copy, Debug)]
struct EndingRun {
    /// Whether its programs were told to end; otherwise they save their work.
    is_told: bool,
    /// Time at which they are told, or killed.
    at: Instant,
}

/// Control group of a run that is over.
#[derive(Debug)]
struct Leaving {
    cgroup: Cgroup,
    /// Whether an earlier service has left it, for a run that is not open any more.
    is_left: bool,
    /// Number of times that its processes were killed.
    kills: u32,
}

/// Children of the node that it has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strangers {
    /// Number of those that have ended.
    pub(crate) ended: usize,
    /// More may have ended.
    pub(crate) more: bool,
}

/// Programs of runs, by whether they have ended.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Runs with a program that has not ended.
    pub(crate) alive: BTreeMap<pbs_planner::RunId, usize>,
    /// Runs with a program that has ended.
    pub(crate) ended: BTreeMap<pbs_planner::RunId, usize>,
}

/// Programs of a run that is over.
#[derive(Debug, Default)]
pub(crate) struct EndedPrograms {
    /// End of each program, with its CPU time.
    pub(crate) exits: Vec<Exited>,
    /// The kernel killed a process of the run for want of memory.
    pub(crate) over_memory: bool,
    /// Resources of all processes in its control group, if it has one.
    pub(crate) usage: GroupUsage,
}

impl Programs {
    /// Makes the control group of a run.
    pub(crate) fn make_cgroup(
        &mut self,
        run: pbs_planner::RunId,
        id: RunId,
        parent: &Path,
        limits: GroupLimits,
    ) -> Result<(), Error> {
        let name = cgroup_name(id);
        let before = Cgroup::open(parent, &name);
        let left = |leaving: &&Leaving| before.as_ref() == Some(&leaving.cgroup);
        let is_own = self.leaving.iter().find(left).is_some_and(|leaving| !leaving.is_left);
        let cgroup = Cgroup::create(parent, &name, limits, is_own);
        let cgroup = cgroup.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::GroupInUse(name.clone()),
            _ => Error::file(parent.join(&name), error),
        })?;
        // An attempt before may have left the group, which is killed at the end of this one.
        self.leaving.retain(|leaving| leaving.cgroup != cgroup);
        self.cgroups.insert(run, cgroup);
        Ok(())
    }

    /// Takes over the control group of a run that another service has started, if there is
    /// one.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot be limited again; the group is taken over.
    pub(crate) fn open_cgroup(
        &mut self,
        run: pbs_planner::RunId,
        id: Option<RunId>,
        parent: &Path,
        limits: GroupLimits,
    ) -> Result<(), Error> {
        let Some(name) = id.map(cgroup_name) else {
            return Ok(());
        };
        let Some(cgroup) = Cgroup::open(parent, &name) else {
            return Ok(());
        };
        let limited = cgroup.limit(limits);
        self.cgroups.insert(run, cgroup);
        limited.map_err(|error| Error::file(parent.join(&name), error))
    }

    /// Kills all that is in the control groups of jobs that are not those of runs that were taken
    /// over, and has them removed: an earlier service has left them. Returns their names.
    ///
    /// # Errors
    ///
    /// Fails if the groups cannot be listed.
    pub(crate) fn kill_left_cgroups(&mut self, parent: &Path) -> Result<Vec<String>, Error> {
        let groups = Cgroup::below(parent, CGROUP);
        let groups = groups.map_err(|error| Error::file(parent, error))?;
        let mut names = Vec::new();
        for (name, cgroup) in groups {
            let is_number = name[CGROUP.len()..].parse::<u64>().is_ok();
            if !is_number || self.cgroups.values().any(|open| *open == cgroup) {
                continue;
            }
            // If that does not work, it is not empty, and tried again.
            let _ = cgroup.kill();
            self.leaving.push_back(Leaving { cgroup, is_left: true, kills: 1 });
            names.push(name);
        }
        Ok(names)
    }

    /// Forks programs, which go as far as the gate. Returns their process ids.
    pub(crate) fn fork(
        &mut self,
        (run, account): (Option<pbs_planner::RunId>, Option<u32>),
        programs: &[Prepared],
        gate: &Gate,
        signals: &Signals,
    ) -> Result<Vec<i32>, Error> {
        empty_outputs(programs).map_err(Error::Programs)?;
        let cgroup = run.and_then(|run| self.cgroups.get(&run));
        let cgroup = cgroup.map(Cgroup::descriptor).transpose();
        let cgroup = cgroup.map_err(Error::Programs)?;
        let mut pids = Vec::with_capacity(programs.len());
        let _stay = Stay::here();
        for program in programs {
            match gate.fork(program, cgroup.as_ref(), signals.mask_before()) {
                Ok(child) => {
                    pids.push(child.pid);
                    self.children.insert(child.pid, Started { run, account, child });
                }
                Err(error) => {
                    self.kill(&pids);
                    return Err(Error::Programs(error));
                }
            }
        }
        Ok(pids)
    }

    /// Number of programs for which a descriptor is open. If it is greater than `most`, the
    /// descriptors of those that were executed are closed first: they are of no more use.
    pub(crate) fn descriptors(&mut self, most: usize) -> usize {
        let count = |children: &BTreeMap<i32, Started>| {
            children.values().filter(|started| started.child.has_descriptor()).count()
        };
        if count(&self.children) > most {
            for started in self.children.values_mut() {
                started.child.close_descriptor();
            }
        }
        count(&self.children)
    }

    /// Waits until those programs stand at the gate. If one can't, none of them continues. For
    /// programs of the user who runs the node: nobody else makes them wait.
    pub(crate) fn wait_ready(&mut self, pids: &[i32]) -> Result<(), Error> {
        for pid in pids {
            let Some(started) = self.children.get_mut(pid) else {
                continue;
            };
            if let Err(error) = started.child.wait_ready(None) {
                self.kill(pids);
                return Err(Error::Programs(error));
            }
        }
        Ok(())
    }

    /// Leaves of those programs the ones that do not stand at the gate yet; does not wait.
    pub(crate) fn retain_unready(&mut self, pids: &mut Vec<i32>) -> Result<(), Error> {
        let mut failed = None;
        pids.retain(|pid| match self.children.get_mut(pid).map(|of| of.child.is_ready()) {
            Some(Ok(is_ready)) => !is_ready,
            Some(Err(error)) => {
                failed = Some(error);
                true
            }
            None => false,
        });
        failed.map_or(Ok(()), |error| Err(Error::Programs(error)))
    }

    /// Returns a descriptor for each of those programs that can be read when it reports something.
    pub(crate) fn reports<'a>(
        &'a self,
        pids: impl Iterator<Item = i32> + 'a,
    ) -> impl Iterator<Item = BorrowedFd<'a>> {
        pids.filter_map(|pid| self.children.get(&pid)?.child.reports())
    }

    /// Kills programs that are not to continue, and forgets whose they are.
    fn kill(&mut self, pids: &[i32]) {
        for pid in pids {
            if let Some(started) = self.children.get_mut(pid) {
                started.child.signal(libc::SIGKILL);
                started.run = None;
            }
        }
    }

    /// The program with that process id.
    pub(crate) fn child(&self, pid: i32) -> Option<&Child> {
        self.children.get(&pid).map(|started| &started.child)
    }

    /// Programs of the process with that number in plans.
    pub(crate) fn of_process(&mut self, process: u32) -> Vec<&mut Child> {
        let children = self.children.values_mut().map(|started| &mut started.child);
        let own = children.filter(|child| child.program.process == process);
        own.collect()
    }

    /// Sends all programs a signal.
    pub(crate) fn signal_all(&mut self, signal: i32) {
        for started in self.children.values_mut() {
            started.child.signal(signal);
        }
    }

    /// Sends all programs of a run a signal.
    fn signal(&mut self, run: pbs_planner::RunId, signal: i32) {
        for started in self.children.values_mut() {
            if started.run == Some(run) {
                started.child.signal(signal);
            }
        }
    }

    /// Lets the programs of a run, which save their work, go on for so long; it is one of
    /// [`Programs::saved`] then.
    pub(crate) fn end_after(&mut self, run: pbs_planner::RunId, within: Duration) {
        let ending = EndingRun { is_told: false, at: Instant::now() + within };
        self.ending.entry(run).or_insert(ending);
    }

    /// Returns the runs whose time to save their work is over. Their programs are to be told to end.
    pub(crate) fn saved(&self) -> Vec<pbs_planner::RunId> {
        let now = Instant::now();
        let saved = self.ending.iter().filter(|(_, of)| !of.is_told && of.at <= now);
        saved.map(|(&run, _)| run).collect()
    }

    /// Whether the programs of a run save their work before they are told to end.
    pub(crate) fn is_saving(&self, run: pbs_planner::RunId) -> bool {
        self.ending.get(&run).is_some_and(|ending| !ending.is_told)
    }

    /// Asks the programs of a run to end; [`Programs::kill_overdue`] kills those that do
    /// not.
    pub(crate) fn end(&mut self, run: pbs_planner::RunId) {
        if self.has_children(run) {
            self.signal(run, libc::SIGTERM);
        } else if let Some(cgroup) = self.cgroups.get(&run) {
            // Another service has started them. A group that is gone has no programs.
            let _ = cgroup.terminate();
        }
        let told = EndingRun { is_told: true, at: Instant::now() + GRACE };
        let ending = self.ending.entry(run).or_insert(told);
        if !ending.is_told {
            *ending = told;
        }
    }

    /// Notifies those programs of a run that handle the signal. Returns the number of processes;
    /// none for a run without a control group.
    pub(crate) fn notify(
        &self,
        run: pbs_planner::RunId,
        notice: NoticeSignal,
    ) -> std::io::Result<usize> {
        self.cgroups.get(&run).map_or(Ok(0), |cgroup| cgroup.notify(notice))
    }

    /// Resources that a run has used until now, with all that its programs started.
    pub(crate) fn usage(&self, run: pbs_planner::RunId, job: &Job) -> RunUsage {
        let Some(cgroup) = self.cgroups.get(&run) else {
            return RunUsage::default();
        };
        let children = self.children.values().filter(|started| started.run == Some(run));
        // The group is read last: what its programs do meanwhile is not that of others.
        let programs_ns: Vec<_> = children.map(|started| started.child.cpu_ns()).collect();
        with_programs(cgroup.usage(), job, programs_ns.into_iter())
    }

    fn has_children(&self, run: pbs_planner::RunId) -> bool {
        self.children.values().any(|started| started.run == Some(run))
    }

    /// Whether programs of a run that was asked to end go on, of which this service has started
    /// none: their group tells.
    fn goes_on_unseen(&self, run: pbs_planner::RunId) -> bool {
        let in_group = self.cgroups.get(&run).is_some_and(|cgroup| !cgroup.is_empty());
        in_group && !self.has_children(run)
    }

    /// Kills the programs of a run that cannot be started, and forgets whose they are.
    pub(crate) fn give_up(&mut self, run: pbs_planner::RunId) {
        self.signal(run, libc::SIGKILL);
        self.leave(run);
        for started in self.children.values_mut() {
            if started.run == Some(run) {
                started.run = None;
            }
        }
    }

    /// Kills the processes that are left in the control group of a run.
    fn leave(&mut self, run: pbs_planner::RunId) {
        if let Some(cgroup) = self.cgroups.remove(&run) {
            // If that does not work, it is not empty, and tried again.
            let _ = cgroup.kill();
            self.leaving.push_back(Leaving { cgroup, is_left: false, kills: 1 });
        }
    }

    /// Removes control groups that are empty: some of them, if there are many. Whether there are
    /// others, which are to be checked again soon (`Some(true)`) or in a while.
    pub(crate) fn remove_cgroups(&mut self) -> Option<bool> {
        for _ in 0..self.leaving.len().min(CHECKED_AT_ONCE) {
            let Some(mut leaving) = self.leaving.pop_front() else {
                break;
            };
            if leaving.cgroup.is_empty() && leaving.cgroup.remove().is_ok() {
                continue;
            }
            leaving.kills = leaving.kills.saturating_add(1);
            // A group that could not be killed is tried again when its turn comes.
            let _ = leaving.cgroup.kill();
            self.leaving.push_back(leaving);
        }
        let soon = self.leaving.iter().any(|leaving| leaving.kills < KILLS);
        (!self.leaving.is_empty()).then_some(soon)
    }

    /// Whether so many programs that count to a user were killed and have not ended that no other is
    /// started.
    pub(crate) fn has_stuck(&self, account: Option<u32>) -> bool {
        let stuck = self.children.values().filter(|started| {
            started.run.is_none() && started.account == account && !started.child.is_reaped()
        });
        account.is_some() && stuck.count() >= MOST_STUCK
    }

    /// Finds out which programs have ended. `forgets_given_up`: nobody asks how one ended that
    /// was given up. `other`: whether another child of the node has ended, and is waited for.
    pub(crate) fn reap(
        &mut self,
        forgets_given_up: bool,
        mut other: impl FnMut(i32) -> Option<bool>,
    ) -> Strangers {
        let children = &mut self.children;
        let ended = ended_children(|pid| match children.get_mut(&pid) {
            Some(started) => Some(started.child.has_ended()),
            None => other(pid),
        });
        if ended.more {
            // Programs may stand behind the others.
            for started in self.children.values_mut() {
                started.child.has_ended();
            }
        }
        if forgets_given_up {
            self.children.retain(|_, started| started.run.is_some() || !started.child.is_reaped());
        }
        Strangers { ended: ended.strangers, more: ended.more }
    }

    /// Programs of runs, by whether they were found to have ended.
    pub(crate) fn ends(&self) -> Ends {
        let mut ends = Ends::default();
        for started in self.children.values() {
            if let Some(run) = started.run {
                let count = if started.child.is_reaped() {
                    ends.ended.entry(run).or_default()
                } else {
                    ends.alive.entry(run).or_default()
                };
                *count += 1;
            }
        }
        for &run in self.ending.keys().filter(|&&run| self.goes_on_unseen(run)) {
            ends.alive.insert(run, 1);
        }
        ends
    }

    /// Whether all programs have ended.
    pub(crate) fn all_ended(&mut self) -> bool {
        let mut all = true;
        for started in self.children.values_mut() {
            all &= started.child.has_ended();
        }
        all
    }

    /// Kills the programs of runs that were asked to end and did not. Returns when to do so again,
    /// or when the time of a run to save its work is over, in milliseconds; negative: never.
    pub(crate) fn kill_overdue(&mut self) -> i32 {
        let unseen = self.ending.keys().any(|&run| self.goes_on_unseen(run));
        // No event comes when they have ended.
        let mut again_ms = if unseen { UNSEEN_MS } else { -1 };
        let now = Instant::now();
        for (run, EndingRun { at, is_told }) in &mut self.ending {
            let left = at.saturating_duration_since(now);
            if left.is_zero() && *is_told {
                if let Some(cgroup) = self.cgroups.get(run) {
                    // A group that could not be killed is tried again in the next round.
                    let _ = cgroup.kill();
                }
                for started in self.children.values_mut() {
                    if started.run == Some(*run) {
                        started.child.signal(libc::SIGKILL);
                    }
                }
                *at = now + GRACE;
            }
            let left_ms = at.saturating_duration_since(now).as_millis();
            again_ms = sooner(again_ms, i32::try_from(left_ms).unwrap_or(i32::MAX - 1) + 1);
        }
        again_ms
    }

    /// Removes a run that is over. Returns the ends of its programs.
    pub(crate) fn finish(&mut self, run: pbs_planner::RunId) -> EndedPrograms {
        let cgroup = self.cgroups.get(&run);
        let over_memory = cgroup.is_some_and(Cgroup::was_over_memory);
        let usage = cgroup.map(Cgroup::usage).unwrap_or_default();
        self.leave(run);
        self.ending.remove(&run);
        let of = |started: &Started| started.run == Some(run);
        let children = self.children.iter().filter(|(_, started)| of(started));
        let pids: Vec<i32> = children.map(|(&pid, _)| pid).collect();
        let exits = pids.iter().filter_map(|pid| {
            let mut started = self.children.remove(pid)?;
            Some(started.child.exited())
        });
        EndedPrograms { exits: exits.collect(), over_memory, usage }
    }

    /// Removes all programs. Returns how they ended.
    pub(crate) fn exits(&mut self) -> Vec<Exit> {
        let children = std::mem::take(&mut self.children);
        let exits = children.into_values().map(|mut started| started.child.exit());
        exits.collect()
    }
}

fn cgroup_name(id: RunId) -> String {
    format!("{CGROUP}{id}")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// Programs that were killed and do not end keep their user from starting others, and nobody
    /// else.
    #[test]
    fn programs_that_do_not_end_count_for_their_user() {
        let plan = "[[process]]\nid = 1\ncommand = ['true']\ntasks = [1]\n\
                    [[cpu]]\ncpu = 0\nslots = [1]\n";
        let plan = pbs_plan::from_toml(plan).unwrap();
        let prepared = pbs_launch::prepare_plan(&plan, Path::new("/dev/null"), true).unwrap();
        let (gate, signals) = (Gate::new(None).unwrap(), Signals::new().unwrap());
        let mut programs = Programs::default();
        let run = pbs_planner::RunId(3);
        for _ in 0..MOST_STUCK {
            assert!(!programs.has_stuck(Some(1000)));
            programs.fork((Some(run), Some(1000)), &prepared, &gate, &signals).unwrap();
            programs.give_up(run);
        }
        // None of them was found to have ended.
        assert!(programs.has_stuck(Some(1000)));
        assert!(!programs.has_stuck(Some(1001)) && !programs.has_stuck(None));
        while programs.has_stuck(Some(1000)) {
            programs.reap(true, |_| None);
        }
    }

    /// A group that an earlier service has left is killed and goes to no job as long as something is
    /// in it, whatever the number of the job. Groups of runs that were taken over stay.
    #[test]
    fn no_job_gets_the_group_of_another() {
        let parent = std::env::temp_dir().join(format!("pbs-left-{}", std::process::id()));
        let group = |name: &str| {
            let group = parent.join(name);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.events"), "populated 1\n").unwrap();
            group
        };
        let [left, open, service] = ["job-1", "job-2", "service"].map(group);
        let other = group("job-x");
        let mut programs = Programs::default();
        let run = pbs_planner::RunId;
        let limits = GroupLimits::default();
        programs.open_cgroup(run(1), Some(RunId(2)), &parent, limits).unwrap();
        assert_eq!(programs.kill_left_cgroups(&parent).unwrap(), ["job-1"]);
        assert_eq!(fs::read_to_string(left.join("cgroup.kill")).unwrap(), "1");
        assert!([open, service, other].iter().all(|it| !it.join("cgroup.kill").exists()));
        let refused = programs.make_cgroup(run(2), RunId(1), &parent, limits).unwrap_err();
        assert!(refused.is_shortage() && refused.to_string().contains("group job-1"), "{refused}");
        assert!(programs.remove_cgroups().is_some());
        // Such a directory of the kernel's has no files that keep it from being removed.
        fs::remove_file(left.join("cgroup.events")).unwrap();
        fs::remove_file(left.join("cgroup.kill")).unwrap();
        programs.make_cgroup(run(2), RunId(1), &parent, limits).unwrap();
        assert!(left.is_dir() && programs.remove_cgroups().is_none());
        fs::remove_dir_all(&parent).unwrap();
    }

    /// A second attempt to start a run is not killed by the clean-up of the first.
    #[test]
    fn another_attempt_takes_the_group_of_the_first() {
        let parent = std::env::temp_dir().join(format!("pbs-again-{}", std::process::id()));
        let group = parent.join("job-7");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cgroup.events"), "populated 1\n").unwrap();
        let mut programs = Programs::default();
        let (first, second) = (pbs_planner::RunId(1), pbs_planner::RunId(2));
        programs.open_cgroup(first, Some(RunId(7)), &parent, GroupLimits::default()).unwrap();
        programs.give_up(first);
        assert_eq!(programs.leaving.len(), 1);
        fs::remove_file(group.join("cgroup.kill")).unwrap();
        programs.make_cgroup(second, RunId(7), &parent, GroupLimits::default()).unwrap();
        assert_eq!(programs.remove_cgroups(), None);
        assert!(!group.join("cgroup.kill").exists());
        fs::remove_dir_all(&parent).unwrap();
    }

    /// The resources of a run that this service has taken over are those of its group. The group is
    /// read before its processes are killed.
    #[test]
    fn a_group_that_was_taken_over_has_its_resources() {
        let parent = std::env::temp_dir().join(format!("pbs-whole-{}", std::process::id()));
        let group = parent.join("job-7");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.stat"), "usage_usec 3200\n").unwrap();
        fs::write(group.join("memory.peak"), "4096\n").unwrap();
        fs::write(group.join("cgroup.events"), "populated 1\n").unwrap();
        let mut programs = Programs::default();
        let (run, other) = (pbs_planner::RunId(3), pbs_planner::RunId(4));
        programs.open_cgroup(run, Some(RunId(7)), &parent, GroupLimits::default()).unwrap();
        let text = "name = \"j\"\ndeadline_ns = 1000\n[[process]]\nid = 1\nmemory_bytes = 5\n\
                    command = [\"a\"]\ntasks = [7]\n";
        let job = pbs_job::job_from_toml(text).unwrap();
        let usage = programs.usage(run, &job);
        assert_eq!(usage.group_cpu_ns, Some(3_200_000));
        // Nobody knows what its programs have used.
        assert_eq!((usage.programs_cpu_ns, usage.group_peak_bytes), (None, Some(4096)));
        assert_eq!(programs.usage(other, &job), RunUsage::default());
        let ended = programs.finish(run);
        let group_usage = GroupUsage { cpu_ns: Some(3_200_000), peak_memory_bytes: Some(4096) };
        assert_eq!(ended.usage, group_usage);
        assert_eq!(programs.finish(other).usage, GroupUsage::default());
        fs::remove_dir_all(&parent).unwrap();
    }

    /// A group whose processes do not end is checked rarely, and few groups at a time.
    #[test]
    fn groups_that_are_never_empty_cost_little() {
        let parent = std::env::temp_dir().join(format!("pbs-leaving-{}", std::process::id()));
        let mut programs = Programs::default();
        let groups = 3 * CHECKED_AT_ONCE;
        for number in 0..groups {
            let group = parent.join(format!("job-{number}"));
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.events"), "populated 1\n").unwrap();
            let (run, id) = (pbs_planner::RunId(number as u64), RunId(number as u64));
            programs.open_cgroup(run, Some(id), &parent, GroupLimits::default()).unwrap();
            programs.leave(run);
        }
        let kills = |programs: &Programs| -> u32 {
            programs.leaving.iter().map(|leaving| leaving.kills).sum()
        };
        let before = kills(&programs);
        assert_eq!(programs.remove_cgroups(), Some(true));
        assert_eq!(kills(&programs) - before, CHECKED_AT_ONCE as u32);
        for _ in 0..3 * KILLS {
            programs.remove_cgroups();
        }
        assert_eq!(programs.remove_cgroups(), Some(false));
        assert_eq!(programs.leaving.len(), groups);
        fs::remove_dir_all(&parent).unwrap();
    }

    /// Programs that another service has started are asked to end before they are killed. The run
    /// goes on as long as they do.
    #[test]
    fn adopted_programs_are_asked_to_end() {
        let parent = std::env::temp_dir().join(format!("pbs-adopted-{}", std::process::id()));
        let group = parent.join("job-7");
        fs::create_dir_all(&group).unwrap();
        let mut adopted = Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(group.join("cgroup.procs"), format!("{}\n", adopted.id())).unwrap();
        fs::write(group.join("cgroup.events"), "populated 1\n").unwrap();
        let mut programs = Programs::default();
        let run = pbs_planner::RunId(3);
        programs.open_cgroup(run, Some(RunId(7)), &parent, GroupLimits::default()).unwrap();
        assert!(programs.ends().alive.is_empty());
        programs.end(run);
        assert_eq!(adopted.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(programs.ends().alive.get(&run), Some(&1));
        assert_eq!(programs.kill_overdue(), UNSEEN_MS);
        assert!(!group.join("cgroup.kill").exists());
        fs::write(group.join("cgroup.events"), "populated 0\n").unwrap();
        assert!(programs.ends().alive.is_empty());
        fs::remove_dir_all(&parent).unwrap();
    }

    /// Programs that save their work are told to end when their time is over, or when they are to end
    /// at once; they are killed only after that.
    #[test]
    fn programs_that_save_their_work_are_told_to_end_later() {
        let parent = std::env::temp_dir().join(format!("pbs-saving-{}", std::process::id()));
        let group = parent.join("job-7");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cgroup.events"), "populated 1\n").unwrap();
        let run = pbs_planner::RunId(3);
        for is_over in [false, true] {
            let mut adopted = Command::new("sleep").arg("60").spawn().unwrap();
            fs::write(group.join("cgroup.procs"), format!("{}\n", adopted.id())).unwrap();
            let mut programs = Programs::default();
            programs.open_cgroup(run, Some(RunId(7)), &parent, GroupLimits::default()).unwrap();
            programs.end_after(run, Duration::from_secs(if is_over { 0 } else { 3600 }));
            // A second request to save does not lengthen the first.
            programs.end_after(run, Duration::from_secs(7200));
            if !is_over {
                assert_eq!(programs.kill_overdue(), UNSEEN_MS);
                assert!(programs.saved().is_empty() && programs.is_saving(run));
                assert_eq!(adopted.try_wait().unwrap(), None);
                assert_eq!(programs.ends().alive.get(&run), Some(&1));
                programs.end(run);
            } else {
                assert_eq!(programs.saved(), [run]);
                programs.end(run);
            }
            assert!(programs.saved().is_empty());
            assert_eq!(adopted.wait().unwrap().signal(), Some(libc::SIGTERM));
            assert!(!programs.is_saving(run));
            assert!(!group.join("cgroup.kill").exists());
        }
        fs::remove_dir_all(&parent).unwrap();
    }
}
