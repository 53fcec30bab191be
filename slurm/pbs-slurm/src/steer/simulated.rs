// SPDX-License-Identifier: GPL-2.0
//! A batch system in virtual time, as Slurm behaves where it was measured: what is let go
//! starts on just the nodes that it has to have, once they are free; a job that is sent back
//! counts as submitted once more. A commitment changes what is shown of nodes and cores, and a
//! node on which a job is being ended starts nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::demands::{Demands, Gres};
use crate::steer::controller::{Commitment, Controller, Event, Fault, Leaving, Revoked};
use crate::steer::seen::{
    Closing, Hold, JobSeen, JobState, Key, Memory, NodeSeen, NodeState, Unread, World,
};

/// A job, and how long it really takes.
#[derive(Clone, Debug)]
struct Job {
    seen: JobSeen,
    run_s: u64,
    /// Time from its end until its nodes are free: a job that ignores SIGTERM is killed only then.
    lingers_s: u64,
    /// Time at which its nodes are free.
    free_s: u64,
    /// Whether the job can't be stopped.
    outlives: bool,
}

/// Cause of the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The job itself.
    Itself,
    /// Its user.
    User,
    /// The batch system, at its limit.
    Limit,
    /// The planner.
    Planner,
}

/// Time after its limit within which the batch system ends a job.
const LIMIT_LATE_S: u64 = 30;

/// A batch system that can be made to fail.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    jobs: BTreeMap<Key, Job>,
    nodes: BTreeMap<String, NodeSeen>,
    now_s: u64,
    events: Vec<Event>,
    /// Whether it does not answer.
    pub is_away: bool,
    /// Whether it starts nothing.
    pub is_stuck: bool,
    /// Whether it takes no start and no comment to show.
    pub is_mute: bool,
    /// All commitments: time, job, nodes.
    pub commits: Vec<(u64, Key, Vec<String>)>,
    /// Messages to the user of each job.
    pub told: BTreeMap<Key, String>,
    /// Number of orders to tell users something for which there is room; `None`: any.
    pub room: Option<usize>,
    /// Ends of jobs: time, job, time at which the limit of a running one was over, cause.
    pub ends: Vec<(u64, Key, u64, By)>,
    /// Jobs whose rows can't be read.
    pub garbled: BTreeSet<Key>,
    /// Jobs with orders that the last look does not show.
    pub ahead: BTreeSet<Key>,
    /// Jobs that are refused at their commitment, with the reasons.
    pub refuses: BTreeMap<Key, String>,
    /// Job and time limit that its user sets just before the next commitment.
    pub raised_at_commit: Option<(Key, u64)>,
    /// Greatest number of jobs of a user that run at the same time, as of a QOS.
    pub most_of_user: Option<usize>,
    /// Number of each licence.
    pub licenses: BTreeMap<String, u64>,
    /// Reservations. Their nodes get no job that would run in their times.
    pub closed: Vec<Closing>,
    /// Reservation that a user gives a job just before it is left to the batch system.
    pub moved_at_leave: Option<(Key, String)>,
    /// All jobs that were left to it.
    pub left: Vec<Key>,
    /// Nodes of a reservation that the planner can't plan round.
    pub hidden: BTreeSet<String>,
}

impl Simulated {
    /// Nodes with so many cores each.
    pub fn new(nodes: &[&str], cpus: u64, now_s: u64) -> Self {
        let node = |name: &&str| {
            let name = (*name).to_string();
            let seen = NodeSeen {
                name: name.clone(),
                cpus,
                memory_bytes: 1 << 30,
                tmp_bytes: 1 << 30,
                gres: Vec::new(),
                features: Vec::new(),
                state: NodeState::Up,
                why: String::new(),
            };
            (name, seen)
        };
        Self { nodes: nodes.iter().map(node).collect(), now_s, ..Self::default() }
    }

    /// A user submits: so many nodes and cores in all, for so long, and it takes so long.
    pub fn submit(&mut self, job: u32, nodes: u64, cpus: u64, limit_s: u64, run_s: u64) -> Key {
        let key = Key { job, index: None, submit_s: self.now_s };
        self.insert(key, nodes, cpus, limit_s, run_s)
    }

    /// A user submits an array, each of whose elements takes a core for so long; at most so many of
    /// them run at the same time, 0: all.
    pub fn submit_array(&mut self, job: u32, count: u32, run_s: u64, most: u64) -> Vec<Key> {
        let submit_s = self.now_s;
        let keys = (0..count).map(|index| Key { job, index: Some(index), submit_s });
        let keys: Vec<Key> = keys.collect();
        for &key in &keys {
            self.insert(key, 1, 1, 60, run_s);
            self.alter(key, |job| job.demands.throttle = most);
        }
        keys
    }

    fn insert(&mut self, key: Key, nodes: u64, cpus: u64, limit_s: u64, run_s: u64) -> Key {
        let seen = JobSeen {
            key,
            user: "anna".into(),
            account: "users".into(),
            name: format!("job{}", key.job),
            state: JobState::Pending(Hold::User),
            nodes_wanted: nodes,
            max_nodes: Some(nodes),
            cpus,
            min_cpus: 1,
            tasks: 0,
            cpus_per_task: 1,
            memory: Memory::OfCore(1 << 20),
            is_exclusive: false,
            // In whole minutes.
            limit_s: Some(limit_s.div_ceil(60) * 60),
            start_s: None,
            end_s: None,
            nodes: Vec::new(),
            required: Vec::new(),
            after: String::new(),
            words: String::new(),
            reservation: String::new(),
            demands: Demands::default(),
            foreign: None,
            reason: String::new(),
            is_refused: false,
            is_unclear: false,
        };
        let job = Job { seen, run_s, lingers_s: 0, free_s: 0, outlives: false };
        self.jobs.insert(key, job);
        self.events.push(Event::Look);
        key
    }

    /// A job as it is.
    pub fn job(&self, key: Key) -> Option<&JobSeen> {
        self.jobs.get(&key).map(|job| &job.seen)
    }

    /// Somebody changes it.
    pub fn alter(&mut self, key: Key, how: impl FnOnce(&mut JobSeen)) {
        if let Some(job) = self.jobs.get_mut(&key) {
            how(&mut job.seen);
            self.events.push(Event::Look);
        }
    }

    /// A node has a generic resource.
    pub fn has(&mut self, name: &str, gres: Gres) {
        if let Some(seen) = self.nodes.get_mut(name) {
            seen.gres.push(gres);
        }
    }

    /// A node is in another state.
    pub fn node(&mut self, name: &str, state: NodeState) {
        if let Some(seen) = self.nodes.get_mut(name) {
            seen.state = state;
            seen.why = "an operator".into();
        }
        self.events.push(Event::Look);
    }

    /// Simulates a crash that loses the new jobs.
    pub fn crash(&mut self, lost: &[Key]) {
        self.jobs.retain(|key, _| !lost.contains(key));
        self.events.push(Event::Resync);
    }

    /// A job can't be stopped from now on.
    pub fn outlives(&mut self, key: Key) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.outlives = true;
        }
    }

    /// And now it can, and is.
    pub fn may_end(&mut self, key: Key) {
        if let Some(job) = self.jobs.get_mut(&key) {
            (job.outlives, job.run_s) = (false, 0);
        }
    }

    /// Makes a job ignore SIGTERM: its nodes are free so long after its end.
    pub fn lingers(&mut self, key: Key, lingers_s: u64) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.lingers_s = lingers_s;
        }
    }

    /// Cancels a job in the name of its user.
    pub fn cancel(&mut self, key: Key) {
        self.end(key, "cancelled", By::User);
    }

    fn end(&mut self, key: Key, outcome: &str, by: By) {
        let now_s = self.now_s;
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        match job.seen.state {
            JobState::Over(_) | JobState::Completing(_) => return,
            JobState::Pending(_) => {
                self.ends.push((now_s, key, u64::MAX, by));
                job.seen.state = JobState::Over(outcome.into());
            }
            JobState::Running => {
                let limit_s = job.seen.end_s.unwrap_or(u64::MAX);
                self.ends.push((now_s, key, limit_s, by));
                job.free_s = now_s + job.lingers_s;
                job.seen.state = match job.lingers_s {
                    0 => JobState::Over(outcome.into()),
                    _ => JobState::Completing(Some(outcome.into())),
                };
            }
        }
        job.seen.end_s = Some(now_s);
        self.events.push(Event::Look);
    }

    /// Returns a copy of all jobs as they are now: the state on the disk of the batch system.
    pub fn save(&self) -> Self {
        self.clone()
    }

    /// Simulates a crash: jobs are as they were saved, and younger ones are lost.
    pub fn crash_to(&mut self, saved: &Self) {
        self.jobs.clone_from(&saved.jobs);
        self.events.push(Event::Resync);
    }

    /// A user has a job ask for something that can't be planned.
    pub fn want_contiguous(&mut self, key: Key) {
        self.alter(key, |job| job.foreign = Some("--contiguous: leave it out".into()));
    }

    /// A running job waits again, with its nodes still written down.
    pub fn requeue(&mut self, key: Key) -> Key {
        let again = Key { submit_s: self.now_s.max(key.submit_s + 1), ..key };
        if let Some(mut job) = self.jobs.remove(&key) {
            job.seen.key = again;
            job.seen.state = JobState::Pending(Hold::No);
            job.seen.nodes.clear();
            job.seen.end_s = None;
            job.seen.start_s = Some(self.now_s + 120);
            self.jobs.insert(again, job);
        }
        self.events.push(Event::Look);
        again
    }

    /// A job is sent back and held, as after a failed prolog: no hook sees that.
    pub fn requeue_held(&mut self, key: Key) -> Key {
        let again = self.requeue(key);
        self.alter(again, |job| job.state = JobState::Pending(Hold::Requeued));
        again
    }

    /// A launch failed: the job waits, and would start again by itself.
    pub fn launch_failed(&mut self, key: Key) {
        self.alter(key, |job| {
            job.state = JobState::Pending(Hold::No);
            job.nodes.clear();
            job.end_s = None;
        });
    }

    /// Time goes on by a second: what is over ends, what may start does.
    pub fn tick(&mut self) {
        self.now_s += 1;
        let now_s = self.now_s;
        let mut over = Vec::new();
        for (&key, job) in &mut self.jobs {
            match (&job.seen.state, job.seen.start_s, job.seen.end_s) {
                (JobState::Running, Some(start_s), _) if start_s + job.run_s <= now_s => {
                    over.push((key, "completed", By::Itself));
                }
                (JobState::Running, _, Some(end_s)) if end_s + LIMIT_LATE_S <= now_s => {
                    if !job.outlives {
                        over.push((key, "aborted at its end", By::Limit));
                    }
                }
                (JobState::Completing(Some(outcome)), ..) if job.free_s <= now_s => {
                    job.seen.state = JobState::Over(outcome.clone());
                    self.events.push(Event::Look);
                }
                _ => {}
            }
        }
        for (key, outcome, by) in over {
            self.end(key, outcome, by);
        }
        self.end_reserved();
        let keys: Vec<Key> = self.jobs.keys().copied().collect();
        for key in keys {
            self.try_start(key);
        }
    }

    fn try_start(&mut self, key: Key) {
        let Some(job) = self.jobs.get(&key) else {
            return;
        };
        let seen = &job.seen;
        let is_due = seen.start_s.is_none_or(|start_s| start_s <= self.now_s);
        let is_let_go =
            seen.state == JobState::Pending(Hold::No) && !self.is_stuck && !seen.is_refused;
        if !is_let_go || !is_due {
            return;
        }
        match (seen.required.is_empty(), seen.reservation.is_empty()) {
            (false, true) => {}
            (true, false) => return self.start_reserved(key),
            // It was not let go by the planner, or its nodes are none of its reservation.
            (true, true) | (false, false) => return,
        }
        let why = self.reason_to_wait(seen);
        if !why.is_empty() {
            self.alter(key, |job| job.reason = why.into());
            return;
        }
        let each = seen.cpus_each();
        if seen.required.iter().any(|node| seen.demands.excluded.contains(node)) {
            return;
        }
        let has_room = |node: &String| self.free(node) >= each && self.has_gres(node, seen);
        if !seen.required.iter().all(has_room) {
            return;
        }
        if self.is_reserved(seen) {
            self.alter(key, |job| job.reason = "Reservation".into());
            return;
        }
        if seen.required.iter().any(|node| self.hidden.contains(node)) {
            let why = "ReqNodeNotAvail, Reserved for maintenance";
            self.alter(key, |job| job.reason = why.into());
            return;
        }
        let nodes = seen.required.clone();
        self.begin(key, nodes);
    }

    /// Starts a job in its reservations, or outside of all of them if its jobs may leave one.
    fn start_reserved(&mut self, key: Key) {
        let Some(seen) = self.job(key) else {
            return;
        };
        let is_of = |of: &&Closing| seen.reservation.split(',').any(|name| name == of.name);
        let is_free = self.closed.iter().filter(is_of).any(|of| of.loose.is_some());
        let now_s = self.now_s;
        let nodes: Vec<String> = if is_free {
            let is_closed = |node: &String| {
                self.closed.iter().any(|of| of.keeps_at(now_s) && of.nodes.contains(node))
            };
            self.nodes.keys().filter(|node| !is_closed(node)).cloned().collect()
        } else {
            let now = self.closed.iter().filter(is_of).filter(|of| of.keeps_at(now_s));
            now.flat_map(|of| of.nodes.iter().cloned()).collect()
        };
        let each = seen.cpus_each();
        let has_room = |node: &String| self.free(node) >= each;
        let count = usize::try_from(seen.nodes_asked()).unwrap_or(usize::MAX);
        let nodes: Vec<String> = nodes.into_iter().filter(has_room).take(count).collect();
        if nodes.len() == count {
            self.begin(key, nodes);
        }
    }

    /// Ends jobs whose reservations have ended, and holds those that wait for one.
    fn end_reserved(&mut self) {
        let lasts = |names: &str, overrun: bool| {
            names.split(',').any(|name| {
                let of = self.closed.iter().find(|of| of.name == name);
                of.is_some_and(|of| match of.overrun_s {
                    None if overrun => true,
                    Some(after_s) if overrun => of.lasts_after(self.now_s - after_s),
                    _ => of.lasts_after(self.now_s),
                })
            })
        };
        let (mut held, mut over) = (Vec::new(), Vec::new());
        for (&key, job) in self.jobs.iter().filter(|(_, job)| !job.seen.reservation.is_empty()) {
            match job.seen.state {
                JobState::Pending(hold) if !lasts(&job.seen.reservation, false) => {
                    held.push((key, hold));
                }
                JobState::Running if !lasts(&job.seen.reservation, true) => over.push(key),
                _ => {}
            }
        }
        for key in over {
            self.end(key, "aborted at its end", By::Limit);
        }
        for (key, hold) in held {
            self.alter(key, |job| {
                job.reservation.clear();
                if hold != Hold::Admin {
                    job.state = JobState::Pending(Hold::Unreserved);
                }
            });
        }
    }

    fn begin(&mut self, key: Key, nodes: Vec<String>) {
        let now_s = self.now_s;
        self.alter(key, |job| {
            job.state = JobState::Running;
            job.start_s = Some(now_s);
            job.end_s = job.limit_s.map(|limit_s| now_s + limit_s);
            job.nodes = nodes;
        });
    }

    /// Reason for which a job whose time has come does not start, whatever is free.
    fn reason_to_wait(&self, seen: &JobSeen) -> &'static str {
        let throttle = seen.demands.throttle;
        let runs =
            |job: &&Job| job.seen.key.job == seen.key.job && job.seen.state == JobState::Running;
        let running = self.jobs.values().filter(runs).count() as u64;
        let is_running = |job: &&Job| job.seen.state == JobState::Running;
        let of_user = self.jobs.values().filter(is_running);
        let of_user = of_user.filter(|job| job.seen.user == seen.user).count();
        let lacks_license = seen.demands.licenses.iter().any(|(name, count)| {
            let holds =
                self.jobs.values().filter(is_running).flat_map(|job| &job.seen.demands.licenses);
            let held: u64 = holds.filter(|(of, _)| of == name).map(|(_, held)| held).sum();
            held + count > self.licenses.get(name).copied().unwrap_or(0)
        });
        if !seen.after.is_empty() {
            "Dependency"
        } else if seen.key.index.is_some() && throttle > 0 && running >= throttle {
            "JobArrayTaskLimit"
        } else if lacks_license {
            "Licenses"
        } else if self.most_of_user.is_some_and(|most| of_user >= most) {
            "QOSMaxJobsPerUserLimit"
        } else {
            ""
        }
    }

    /// Whether a node has the generic resources of a job beside those of the jobs that run there.
    fn has_gres(&self, node: &str, seen: &JobSeen) -> bool {
        let names = seen.demands.gres.iter().map(|(_, of)| &of.name);
        let units = |job: &JobSeen, name: &str| job.demands.units_each(job.tasks_with_gres(), name);
        names.into_iter().all(|name| {
            let has = self.nodes.get(node).map_or(0, |of| {
                of.gres.iter().filter(|of| of.name == *name).map(|of| of.count).sum::<u64>()
            });
            let on = self.jobs.values().map(|job| &job.seen);
            let on = on.filter(|job| job.state == JobState::Running);
            let on = on.filter(|job| job.nodes.iter().any(|of| of == node));
            units(seen, name) + on.map(|job| units(job, name)).sum::<u64>() <= has
        })
    }

    /// Whether a reservation is in the way of a job that would start now.
    fn is_reserved(&self, seen: &JobSeen) -> bool {
        let end_s = self.now_s.saturating_add(seen.limit_s.unwrap_or(u64::MAX));
        self.closed.iter().any(|closing| {
            closing.nodes.iter().any(|node| seen.required.contains(node))
                && closing.times.iter().any(|it| it.start < end_s && it.end > self.now_s)
        })
    }

    fn free(&self, node: &str) -> u64 {
        let Some(seen) = self.nodes.get(node) else {
            return 0;
        };
        if seen.state != NodeState::Up {
            return 0;
        }
        let on = self.jobs.values().map(|job| &job.seen);
        let on: Vec<_> = on.filter(|job| job.nodes.iter().any(|of| of == node)).collect();
        if on.iter().any(|job| matches!(job.state, JobState::Completing(_))) {
            return 0;
        }
        let on = on.into_iter().filter(|job| job.state == JobState::Running);
        let used = on.map(JobSeen::cpus_each);
        seen.cpus.saturating_sub(used.sum())
    }

    fn pending(&mut self, key: Key) -> Result<&mut JobSeen, Fault> {
        if self.is_away {
            return Err(Fault::Unreachable("it is away".into()));
        }
        let job = self.jobs.get_mut(&key).ok_or(Fault::Gone)?;
        match job.seen.state {
            JobState::Pending(_) => Ok(&mut job.seen),
            JobState::Running => Err(Fault::Started),
            JobState::Completing(_) | JobState::Over(_) => Err(Fault::Gone),
        }
    }
}

impl Controller for Simulated {
    fn snapshot(&mut self) -> Result<World, Fault> {
        if self.is_away {
            Err(Fault::Unreachable("it is away".into()))
        } else {
            let (unread, read): (Vec<_>, Vec<_>) =
                self.jobs.values().partition(|job| self.garbled.contains(&job.seen.key));
            // Rows have the time that a job has run.
            let what = |key: Key| format!("{}\u{1f}…{}", key.job, self.now_s);
            let unread = unread.into_iter().map(|job| Unread {
                key: Some(job.seen.key),
                what: what(job.seen.key),
                is_waiting: Some(matches!(job.seen.state, JobState::Pending(_))),
            });
            let jobs = read.into_iter().map(|job| job.seen.clone()).collect();
            let nodes = self.nodes.values().cloned().collect();
            let world = World::new(jobs, nodes).with_unread(unread.collect());
            Ok(world.with_closed(self.closed.clone(), Vec::new()))
        }
    }

    fn hold(&mut self, job: Key) -> Result<(), Fault> {
        self.pending(job)?.state = JobState::Pending(Hold::Admin);
        Ok(())
    }

    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Result<(), Fault> {
        if self.is_mute {
            return Err(Fault::Later);
        }
        let seen = self.pending(job)?;
        seen.start_s = start_s;
        self.told.insert(job, why.into());
        self.room = self.room.map(|room| room.saturating_sub(1));
        Ok(())
    }

    fn explain(&mut self, job: Key, why: &str) -> Result<(), Fault> {
        if self.is_mute {
            return Err(Fault::Later);
        }
        self.pending(job)?;
        self.told.insert(job, why.into());
        self.room = self.room.map(|room| room.saturating_sub(1));
        Ok(())
    }

    fn is_ahead(&self, job: Key) -> bool {
        self.ahead.contains(&job)
    }

    fn has_room(&self) -> bool {
        self.room != Some(0)
    }

    fn commit(&mut self, job: Key, of: &Commitment) -> Result<(), Fault> {
        let nodes = &of.nodes;
        let now_s = self.now_s;
        if let Some((of, limit_s)) = self.raised_at_commit.take() {
            self.pending(of)?.limit_s = Some(limit_s);
        }
        if let Some(why) = self.refuses.get(&job) {
            self.commits.push((now_s, job, nodes.to_vec()));
            return Err(Fault::Never(why.clone()));
        }
        let seen = self.pending(job)?;
        seen.limit_s = of.limit_s.or(seen.limit_s);
        seen.required = nodes.to_vec();
        // As for a user who asks for just so many.
        let count = nodes.len() as u64;
        seen.max_nodes = Some(count);
        seen.cpus = seen.cpus.max(count * seen.min_cpus);
        if seen.cpus_per_task > 1 {
            seen.nodes_wanted = count + 1;
        }
        seen.start_s = Some(of.start_s.unwrap_or(now_s));
        seen.state = JobState::Pending(Hold::No);
        self.commits.push((now_s, job, nodes.to_vec()));
        self.told.insert(job, of.told.clone());
        Ok(())
    }

    fn leave(&mut self, job: Key, of: &Leaving) -> Result<(), Fault> {
        if let Some((of, reservation)) = self.moved_at_leave.take() {
            self.pending(of)?.reservation = reservation;
        }
        let seen = self.pending(job)?;
        if seen.reservation != of.reservation {
            return Err(Fault::Later);
        }
        seen.required.clear();
        seen.start_s = of.begin_s;
        seen.state = JobState::Pending(Hold::No);
        self.left.push(job);
        self.told.insert(job, of.told.clone());
        Ok(())
    }

    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault> {
        match self.hold(job) {
            Ok(()) => Ok(Revoked::Held),
            Err(Fault::Started) => Ok(Revoked::AlreadyStarted),
            Err(why) => Err(why),
        }
    }

    fn stop(&mut self, job: Key, why: &str) -> Result<(), Fault> {
        if self.is_away {
            return Err(Fault::Unreachable("it is away".into()));
        }
        let known = self.jobs.get(&job).ok_or(Fault::Gone)?;
        if !known.outlives {
            self.told.insert(job, why.into());
            self.end(job, "cancelled", By::Planner);
        }
        Ok(())
    }

    fn limit(&mut self, job: Key, limit_s: u64) -> Result<(), Fault> {
        self.alter(job, |job| {
            let limit_s = limit_s.div_ceil(60) * 60;
            job.limit_s = Some(limit_s);
            if job.state == JobState::Running {
                job.end_s = job.start_s.map(|start_s| start_s + limit_s);
            }
        });
        Ok(())
    }

    fn comment(&mut self, job: Key, text: &str) -> Result<(), Fault> {
        if self.is_mute {
            return Err(Fault::Later);
        }
        self.pending(job)?.words = text.into();
        Ok(())
    }

    fn notify(&mut self, job: Key, text: &str) -> Result<(), Fault> {
        self.told.insert(job, text.into());
        Ok(())
    }

    fn events(&mut self) -> Vec<Event> {
        if self.is_away {
            Vec::new()
        } else {
            std::mem::take(&mut self.events)
        }
    }
}
