// SPDX-License-Identifier: GPL-2.0
//! Jobs of requests that are over: which of them end, and which are held.

use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::ledger::{Phase, Row};
use pbs_manager::Manager;

use super::{Shown, Steer};
use crate::steer::controller::{Controller, Fault};
use crate::steer::link::Link;
use crate::steer::seen::{JobSeen, JobState, Key};
use crate::steer::wish::begin_s;

impl Steer {
    /// The manager ended a request, or plans it anew.
    pub(super) fn stopped(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        id: RequestId,
    ) {
        let Some(&key) = self.keys.get(&id) else {
            // Its job is over already, or was declined.
            return;
        };
        let row = manager.open_row(id);
        let is_over = row.as_ref().is_none_or(|row| row.phase == Some(Phase::Releasing));
        let Some(of) = self.jobs.get_mut(&key) else {
            return;
        };
        if row.is_some() && is_over {
            of.is_ending = true;
            return;
        }
        of.shown = Shown::Stale;
        let was_let_go = of.committed.take().is_some();
        if was_let_go {
            // It has to be held before it is planned again, or declined.
            self.send_back(controller, key);
        }
        if row.is_none() {
            self.dropped(manager, id, key);
            if let Some(outcome) = self.killed.get(&key).filter(|_| was_let_go) {
                self.recalled.insert(key, outcome.clone());
            }
        }
    }

    /// A request ended without having started. Its job is held, and not ended, unless it has begun
    /// all the same.
    fn dropped(&mut self, manager: &Manager<Link>, id: RequestId, key: Key) {
        self.forget(key);
        let row = self.note_ended(manager, id, key);
        let outcome = row.as_ref().and_then(|row| row.outcome.clone()).unwrap_or_default();
        let is_killed = row.as_ref().is_some_and(Row::is_killed);
        let begin_s = row.as_ref().and_then(begin_s);
        match self.world.job(key).cloned() {
            Some(job) if matches!(job.state, JobState::Pending(_)) => {
                if is_killed {
                    self.decline_killed(&job, begin_s, &outcome);
                } else {
                    self.decline(&job, begin_s, &format!("declined: {outcome}"));
                }
            }
            Some(job) if job.state == JobState::Running && is_killed => {
                self.recalled.insert(key, outcome);
            }
            _ => {}
        }
    }

    /// Ends a job that began before its hold arrived, and whose request somebody ended. No plan has
    /// it, and its nodes would count as free.
    pub(super) fn end_recalled(&mut self, controller: &mut dyn Controller, key: Key) {
        let Some(outcome) = self.recalled.get(&key) else {
            return;
        };
        if let Err(why) = controller.stop(key, &format!("ended by the planner: {outcome}")) {
            self.failed(key, "stop", &why);
        }
    }

    /// Notes of a request that is over what counts if its job waits: the earliest start that its
    /// user wants, and whether somebody ended it in the planner. Returns the request, or nothing if
    /// the ledger cannot show it: then it counts as one that nobody ended.
    pub(super) fn note_ended(
        &mut self,
        manager: &Manager<Link>,
        id: RequestId,
        key: Key,
    ) -> Option<Row> {
        let (row, _) = manager.details(id).ok()?;
        self.begins.insert(key, begin_s(&row));
        if let Some(outcome) = row.outcome.clone().filter(|_| row.is_killed()) {
            self.killed.insert(key, outcome);
        }
        Some(row)
    }

    /// Keeps a job held whose request somebody ended in the planner. It is not planned again.
    pub(super) fn decline_killed(&mut self, job: &JobSeen, begin_s: Option<u64>, outcome: &str) {
        let name = job.key.name();
        let why = format!("not planned any more: {outcome}; cancel it with scancel {name}");
        self.decline(job, begin_s, &why);
        if let Some(of) = self.declined.get_mut(&job.key) {
            of.is_final = true;
        }
    }

    /// Ends jobs whose limit is over, and those that somebody ended in the planner. The jobs of
    /// other requests that are over end by themselves.
    pub(super) fn end_jobs(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        let ending = self.jobs.iter().filter(|(_, of)| of.is_ending);
        let ending: Vec<(Key, RequestId)> = ending.map(|(&key, of)| (key, of.id)).collect();
        for (key, id) in ending {
            if controller.is_ahead(key) {
                self.is_stale = true;
                continue;
            }
            let row = manager.open_row(id).filter(|row| row.phase == Some(Phase::Releasing));
            let job = self.world.job(key);
            let is_left = match (&row, job.map(|job| &job.state)) {
                (Some(row), Some(JobState::Pending(_))) => row.is_killed(),
                (Some(_), Some(JobState::Running)) => true,
                _ => false,
            };
            let (Some(row), Some(job), true) = (row, job, is_left) else {
                if let Some(of) = self.jobs.get_mut(&key) {
                    of.is_ending = false;
                }
                continue;
            };
            let is_over = job.end_s.is_some_and(|end_s| end_s <= now.as_secs());
            if !(row.is_killed() || row.is_aborted() && is_over) {
                continue;
            }
            if self.looked != now {
                // Its limit may be another by now.
                self.is_stale = true;
                continue;
            }
            let why = row.outcome.unwrap_or_default();
            match controller.stop(key, &format!("ended by the planner: {why}")) {
                Ok(()) | Err(Fault::Gone) => {
                    if let Some(of) = self.jobs.get_mut(&key) {
                        of.is_ending = false;
                        // One that goes on nevertheless is ended again at the next look that is due.
                        self.is_stale |= !std::mem::replace(&mut of.is_stopped, true);
                    }
                }
                Err(why) => self.failed(key, "stop", &why),
            }
        }
    }
}
