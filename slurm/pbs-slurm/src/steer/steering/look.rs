// SPDX-License-Identifier: GPL-2.0
//! From what is seen to what the planner is told.

use std::collections::HashSet;
use std::time::Duration;

use pbs_manager::ledger::{NodeState as Out, Phase, Row, State};
use pbs_manager::{Change, Error, Happened, Manager};

use super::{
    ended, nodes_of, not_started, operator, over, sorted, Asked, Committed, Steer, AGAIN, LOST,
    NEW_AT_ONCE, TOLD,
};
use crate::steer::controller::{Controller, Revoked, Stop};
use crate::steer::link::Link;
use crate::steer::seen::{Hold, JobSeen, JobState, Key, NodeState};
use crate::steer::wish::{wish_of, Words};

impl Steer {
    /// Compares what is seen with what is planned.
    pub(super) fn reconcile(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.world.jobs);
        let seen: HashSet<Key> = jobs.iter().map(|job| job.key).collect();
        self.declined.retain(|key, _| seen.contains(key));
        let mut new = Vec::new();
        // In the order of their numbers: who is followed comes first.
        for job in &jobs {
            match (&job.state, self.jobs.contains_key(&job.key)) {
                (_, true) => self.known(manager, controller, job, now),
                (JobState::Pending(hold), false) => {
                    // One that could start by itself is held at once.
                    let is_first = new.len() < NEW_AT_ONCE || *hold == Hold::No;
                    let is_declined = self.declined.get(&job.key) == Some(&Asked::of(job));
                    if is_first && !(is_declined && *hold == Hold::Admin) {
                        new.push(job);
                    }
                    self.is_behind |= !is_first;
                }
                (_, false) => {}
            }
        }
        self.welcome(manager, controller, &new, now)?;
        let gone: Vec<Key> = self.jobs.keys().copied().filter(|key| !seen.contains(key)).collect();
        for key in gone {
            let id = self.forget(key);
            let Some(row) = id.and_then(|id| manager.open_row(id)) else {
                continue;
            };
            // A job that is sent back is another: it has been submitted once more.
            let is_again = jobs.iter().any(|job| {
                (job.key.job, job.key.index) == (key.job, key.index)
                    && job.key.submit_s > key.submit_s
                    && job.user == row.user
            });
            let outcome = if is_again { AGAIN } else { LOST };
            self.news.push(format!("job {}: {outcome}", key.name()));
            over(manager, row.id, now.as_secs(), now.as_secs(), outcome);
        }
        self.world.jobs = jobs;
        self.nodes(manager, now.as_secs());
        Ok(())
    }

    /// A job that was planned before.
    fn known(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        now: Duration,
    ) {
        let now_s = now.as_secs();
        let Some(id) = self.jobs.get(&job.key).map(|of| of.id) else {
            return;
        };
        let ended_s = job.end_s.unwrap_or(now_s).min(now_s);
        let row = manager.open_row(id);
        match &job.state {
            JobState::Over(outcome) => {
                self.forget(job.key);
                if row.is_some() {
                    over(manager, id, ended_s, now_s, outcome);
                }
            }
            // Who follows it is released by how it ended, so that has to be known.
            JobState::Completing(None) => {}
            JobState::Completing(Some(outcome)) => {
                if row.is_some_and(|row| row.phase != Some(Phase::Releasing)) {
                    ended(manager, id, ended_s, outcome);
                }
            }
            JobState::Running => self.runs(manager, controller, job, row.as_ref(), now),
            JobState::Pending(hold) => self.waits(manager, controller, job, *hold, row, now),
        }
    }

    /// A planned job that runs.
    fn runs(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        row: Option<&Row>,
        now: Duration,
    ) {
        let Some(of) = self.jobs.get_mut(&job.key) else {
            return;
        };
        let Some(row) = row else {
            // It is over for the planner.
            of.is_unwanted = true;
            return;
        };
        of.committed = None;
        let has = sorted(job.nodes.clone());
        let is_there = nodes_of(manager, row.id) == has;
        // Within the window it may be a moment early, where another has ended.
        let soon_s = (now + self.settings.window).as_secs();
        let is_running = row.state == State::Running;
        let is_started = is_running || row.start_s.is_some_and(|start_s| start_s <= soon_s);
        if !is_running && is_started && is_there {
            return;
        }
        if !is_there || !is_started {
            let what = format!(
                "job {} runs on {} outside its plan; it is requeued",
                job.key.name(),
                has.join(" ")
            );
            self.news.push(what);
            let id = row.id;
            if let Err(why) = controller.stop(job.key, Stop::Again) {
                self.failed(job.key, "stop", &why);
            }
            not_started(manager, id, now.as_secs(), "it ran where it was not planned");
            self.is_stale = true;
            return;
        }
        let start_s = job.start_s.unwrap_or(now.as_secs()).min(now.as_secs());
        if row.phase == Some(Phase::Allocating) {
            let allocated = Happened::Allocated { request: row.id };
            let at_s = start_s.max(row.start_s.unwrap_or(0));
            manager.engine_mut().tell(at_s, allocated);
        }
        let words = Words::read(&job.words, job.key.submit_s).unwrap_or_default();
        let asked = Asked::of(job);
        let is_news = of.asked.as_ref() != Some(&asked);
        of.asked = Some(asked);
        if let (Some(end_s), true) = (words.predicted_end_s, is_news) {
            let request = row.id;
            let predicted = Happened::PredictedEnd { request, end_s };
            manager.engine_mut().tell(now.as_secs(), predicted);
        }
    }

    /// A planned job that does not run.
    fn waits(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        hold: Hold,
        row: Option<Row>,
        now: Duration,
    ) {
        let key = job.key;
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        let Some(row) = row else {
            of.is_unwanted = true;
            return;
        };
        let asked = Asked::of(job);
        let is_altered = *of.asked.get_or_insert_with(|| asked.clone()) != asked;
        let required = sorted(job.required.clone());
        let is_planned = row.state == State::Planned && row.start_s == job.start_s;
        if of.committed.is_none() && hold == Hold::No && is_planned {
            // By the one that was here before.
            let nodes = nodes_of(manager, row.id);
            let start_s = row.start_s.filter(|_| nodes == required);
            of.committed = start_s.map(|start_s| Committed {
                start_s,
                nodes,
                until: Duration::from_secs(start_s).max(now) + self.settings.grace,
            });
        }
        let is_ours = of.committed.as_ref().is_some_and(|it| it.nodes == required);
        let is_loose = hold != Hold::Admin && (is_altered || !is_ours);
        if is_loose {
            // Let go by somebody else, or altered since it was committed.
            of.committed = None;
            match controller.revoke(key) {
                Ok(Revoked::Held) => {}
                Ok(Revoked::AlreadyStarted) => {
                    self.is_stale = true;
                    return;
                }
                Err(why) => {
                    self.failed(key, "hold", &why);
                    return;
                }
            }
        }
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        let was_to_run = row.state == State::Running;
        if hold == Hold::Admin && of.committed.take().is_some() && !was_to_run {
            // An operator holds what was let go: it is planned anew from then on.
            of.shown_s = None;
        }
        if was_to_run && (is_loose || hold == Hold::Admin) && of.committed.is_none() {
            not_started(manager, row.id, now.as_secs(), "it was sent back");
        }
        if is_altered {
            of.asked = Some(asked);
            of.shown_s = None;
            self.alter(manager, controller, job, &row, now);
        }
    }

    /// Handles a changed request of a user.
    fn alter(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        row: &Row,
        now: Duration,
    ) {
        let requests = |name: &str| self.request_of(name);
        // What is shown as its start is no wish of its user.
        let job = JobSeen { start_s: None, ..job.clone() };
        let altered = match wish_of(&job, &requests, now.as_secs()) {
            Err(why) => Err(why),
            Ok(wish) => {
                let change = Change {
                    rset: Some(wish.rset),
                    duration_s: Some(wish.duration_s),
                    when: Some(wish.when),
                };
                let altered = manager.alter(&operator(), row.id, &change);
                altered.map_err(|error| error.describe(manager.site()))
            }
        };
        if let Err(why) = altered {
            // It is not planned as it was, and not as it is.
            self.forget(job.key);
            if let Err(fault) = manager.kill(&operator(), row.id) {
                self.news.push(format!("job {}: {fault}", job.key.name()));
            }
            self.decline(controller, &job, &format!("changed, and declined: {why}"));
        }
    }

    /// Nodes that are out of use, or back.
    fn nodes(&mut self, manager: &mut Manager<Link>, now_s: u64) {
        let mut told = Vec::new();
        let completing: HashSet<&String> = self
            .world
            .jobs
            .iter()
            .filter(|job| matches!(job.state, JobState::Completing(_)))
            .flat_map(|job| &job.nodes)
            .collect();
        for seen in &self.world.nodes {
            let node = seen.name.clone();
            let out = manager.nodes_out().find(|row| row.name == node);
            let state = out.map(|row| row.state);
            let is_told = out.is_some_and(|row| row.why.starts_with(TOLD));
            let why = format!("{TOLD}{}", seen.why);
            match seen.state {
                NodeState::Down if state != Some(Out::Down) => {
                    told.push(Happened::NodeFailed { node, why });
                }
                NodeState::Drained if state.is_none() => {
                    told.push(Happened::NodeDrained { node, why });
                }
                NodeState::Up if !completing.contains(&node) => {
                    // What an operator took out with our own command stays out.
                    if state == Some(Out::Down) || is_told {
                        told.push(Happened::NodeBack { node });
                    }
                }
                NodeState::Up | NodeState::Drained | NodeState::Down => {}
            }
        }
        for happened in told {
            manager.engine_mut().tell(now_s, happened);
        }
    }
}
