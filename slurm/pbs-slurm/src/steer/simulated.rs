// SPDX-License-Identifier: GPL-2.0
//! A batch system in virtual time, as Slurm behaves where it was measured: what is let go
//! starts on just the nodes that it has to have, once they are free; a job that is sent back
//! counts as submitted once more.

use std::collections::BTreeMap;

use crate::steer::controller::{Controller, Event, Fault, Revoked, Stop};
use crate::steer::seen::{Hold, JobSeen, JobState, Key, Memory, NodeSeen, NodeState, World};

/// A job, and how long it really takes.
#[derive(Clone, Debug)]
struct Job {
    seen: JobSeen,
    run_s: u64,
    /// Whether the job can't be stopped.
    outlives: bool,
}

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
    /// All commitments: time, job, nodes.
    pub commits: Vec<(u64, Key, Vec<String>)>,
    /// Messages to the user of each job.
    pub told: BTreeMap<Key, String>,
}

impl Simulated {
    /// Nodes with so many cores each.
    pub fn new(nodes: &[&str], cpus: u64, now_s: u64) -> Self {
        let node = |name: &&str| {
            let name = (*name).to_string();
            let seen =
                NodeSeen { name: name.clone(), cpus, state: NodeState::Up, why: String::new() };
            (name, seen)
        };
        Self { nodes: nodes.iter().map(node).collect(), now_s, ..Self::default() }
    }

    /// A user submits: so many nodes and cores in all, for so long, and it takes so long.
    pub fn submit(&mut self, job: u32, nodes: u64, cpus: u64, limit_s: u64, run_s: u64) -> Key {
        let key = Key { job, index: None, submit_s: self.now_s };
        let seen = JobSeen {
            key,
            user: "anna".into(),
            account: "users".into(),
            name: format!("job{job}"),
            state: JobState::Pending(Hold::User),
            nodes_wanted: nodes,
            cpus,
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
            foreign: None,
        };
        let job = Job { seen, run_s, outlives: false };
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

    /// A running job waits again, with its nodes still written down.
    pub fn requeue(&mut self, key: Key) -> Key {
        let again = Key { submit_s: self.now_s.max(key.submit_s + 1), ..key };
        if let Some(mut job) = self.jobs.remove(&key) {
            job.seen.key = again;
            job.seen.state = JobState::Pending(Hold::No);
            job.seen.nodes.clear();
            job.seen.start_s = Some(self.now_s + 120);
            self.jobs.insert(again, job);
        }
        self.events.push(Event::Look);
        again
    }

    /// A launch failed: the job waits, and would start again by itself.
    pub fn launch_failed(&mut self, key: Key) {
        self.alter(key, |job| {
            job.state = JobState::Pending(Hold::No);
            job.nodes.clear();
        });
    }

    /// Time goes on by a second: what is over ends, what may start does.
    pub fn tick(&mut self) {
        self.now_s += 1;
        let now_s = self.now_s;
        for job in self.jobs.values_mut() {
            let (JobState::Running, Some(start_s)) = (&job.seen.state, job.seen.start_s) else {
                continue;
            };
            if start_s + job.run_s <= now_s {
                job.seen.state = JobState::Over("completed".into());
                job.seen.end_s = Some(now_s);
                self.events.push(Event::Look);
            }
        }
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
        let is_let_go = seen.state == JobState::Pending(Hold::No) && !self.is_stuck;
        if !is_let_go || !is_due || seen.required.is_empty() {
            return;
        }
        let each = seen.cpus_each();
        if seen.required.iter().any(|node| self.free(node) < each) {
            return;
        }
        let nodes = seen.required.clone();
        let now_s = self.now_s;
        self.alter(key, |job| {
            job.state = JobState::Running;
            job.start_s = Some(now_s);
            job.nodes = nodes;
        });
    }

    fn free(&self, node: &str) -> u64 {
        let Some(seen) = self.nodes.get(node) else {
            return 0;
        };
        if seen.state != NodeState::Up {
            return 0;
        }
        let on = self.jobs.values().map(|job| &job.seen);
        let on = on.filter(|job| job.state == JobState::Running);
        let on = on.filter(|job| job.nodes.iter().any(|of| of == node));
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
            Ok(World::new(
                self.jobs.values().map(|job| job.seen.clone()).collect(),
                self.nodes.values().cloned().collect(),
            ))
        }
    }

    fn hold(&mut self, job: Key) -> Result<(), Fault> {
        self.pending(job)?.state = JobState::Pending(Hold::Admin);
        Ok(())
    }

    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Result<(), Fault> {
        let seen = self.pending(job)?;
        seen.start_s = start_s.or(seen.start_s);
        self.told.insert(job, why.into());
        Ok(())
    }

    fn commit(&mut self, job: Key, nodes: &[String], start_s: Option<u64>) -> Result<(), Fault> {
        let now_s = self.now_s;
        let seen = self.pending(job)?;
        seen.required = nodes.to_vec();
        seen.start_s = Some(start_s.unwrap_or(now_s));
        seen.state = JobState::Pending(Hold::No);
        self.commits.push((now_s, job, nodes.to_vec()));
        Ok(())
    }

    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault> {
        match self.hold(job) {
            Ok(()) => Ok(Revoked::Held),
            Err(Fault::Started) => Ok(Revoked::AlreadyStarted),
            Err(why) => Err(why),
        }
    }

    fn stop(&mut self, job: Key, why: Stop) -> Result<(), Fault> {
        if self.is_away {
            return Err(Fault::Unreachable("it is away".into()));
        }
        let now_s = self.now_s;
        if !self.jobs.contains_key(&job) {
            return Err(Fault::Gone);
        }
        match why {
            Stop::Again => {
                let again = self.requeue(job);
                self.hold(again)?;
            }
            Stop::End if self.jobs.get(&job).is_some_and(|job| job.outlives) => {}
            Stop::End => self.alter(job, |job| {
                job.state = JobState::Over("cancelled".into());
                job.end_s = Some(now_s);
            }),
        }
        Ok(())
    }

    fn limit(&mut self, job: Key, limit_s: u64) -> Result<(), Fault> {
        self.alter(job, |job| job.limit_s = Some(limit_s.div_ceil(60) * 60));
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
