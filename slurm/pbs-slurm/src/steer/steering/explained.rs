// SPDX-License-Identifier: GPL-2.0
//! Jobs of which too little is known to plan them. Their users are told, not only the operator.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::ledger::{Phase, State};
use pbs_manager::Manager;

use super::{is_passing, Shown, Steer, SHOWN_AT_ONCE};
use crate::steer::controller::{Controller, Fault};
use crate::steer::link::Link;
use crate::steer::seen::{JobSeen, JobState, Key};
use crate::steer::wish::begin_s;

/// Explanation for the user of a job whose row can't be read.
const UNREAD: &str = "set aside: the planner can't read the row of this job in squeue, and does \
                      not start it; remove control characters from its name and comment, or submit \
                      it again";
/// Explanation for the user of a job whose details are not answered.
const UNCLEAR: &str =
    "waits: the planner does not know all that this job asks for, since scontrol \
                       show job gives no answer about it";
/// Outcome of a request of whose job too little was known at its start.
const ASIDE: &str = "too little is known of the job to start it; it is planned again later";
/// Time for which details may be missing before the user is told: most are there in seconds.
const UNCLEAR_FOR: Duration = Duration::from_secs(60);

/// Rows that can't be read, of the last look.
#[derive(Debug, Default)]
pub(super) struct UnreadRows {
    /// Texts of the rows, by the jobs. Rows without a readable key are one.
    rows: HashMap<Option<Key>, String>,
}

/// Explanations for users of jobs of which too little is known.
#[derive(Debug, Default)]
pub(super) struct Explanations {
    /// Times since which details of jobs are missing.
    unclear: BTreeMap<Key, Duration>,
    /// Explanations that are not told yet.
    due: BTreeMap<Key, &'static str>,
    /// Explanations that were told, of jobs of which too little is still known.
    told: BTreeMap<Key, &'static str>,
}

impl Explanations {
    /// Notes that an explanation could not be told, and is tried again.
    pub(super) fn failed(&mut self, key: Key) {
        self.due.extend(self.told.remove(&key).map(|why| (key, why)));
    }
}

impl Steer {
    /// Whether too little is known of a job to let it go, or to show its plan: its row can't be read,
    /// or details are missing.
    pub(super) fn is_unknown(&self, key: Key) -> bool {
        let is_unclear = self.world.job(key).is_some_and(|job| job.is_unclear);
        is_unclear || self.unread.rows.contains_key(&Some(key))
    }

    /// Reports rows of jobs that can't be read, once for each job: the rows of running jobs change
    /// from look to look. Such a job stays as it was, and one that has not begun is held: nobody
    /// knows what it wants.
    pub(super) fn set_unread_aside(&mut self, controller: &mut dyn Controller) {
        let before = std::mem::take(&mut self.unread.rows);
        for unread in &self.world.unread {
            let known = before.get(&unread.key).or_else(|| self.unread.rows.get(&unread.key));
            let (is_new, is_same) = (known.is_none(), known == Some(&unread.what));
            self.unread.rows.insert(unread.key, unread.what.clone());
            if is_new {
                let name = unread.key.map_or_else(|| "?".into(), Key::name);
                self.news.push(format!(
                    "job {name} is set aside: its row in squeue can't be read ({:?})",
                    unread.what
                ));
            }
            let Some(key) = unread.key.filter(|_| !is_same) else {
                continue;
            };
            let is_waiting = |job: &JobSeen| matches!(job.state, JobState::Pending(_));
            let is_waiting =
                unread.is_waiting.unwrap_or_else(|| self.world.job(key).is_none_or(is_waiting));
            if !is_waiting {
                self.explanations.due.remove(&key);
                continue;
            }
            // If it runs by now, it goes on; if it is gone, the next look tells.
            match controller.hold(key) {
                Ok(()) | Err(Fault::Gone | Fault::Started | Fault::Later) => {}
                Err(why) => self.news.push(format!("job {}: hold: {why}", key.name())),
            }
            if !self.explanations.told.contains_key(&key) {
                self.explanations.due.insert(key, UNREAD);
            }
        }
    }

    /// Takes jobs out of the plan whose start has passed and of which too little is known: others get
    /// their nodes. Such a job is planned again when enough is known.
    pub(super) fn unknown_out(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        let waits = |key: Key| {
            let mut unread = self.world.unread.iter().filter(|unread| unread.key == Some(key));
            let job = self.world.job(key);
            let is_pending = job.is_none_or(|job| matches!(job.state, JobState::Pending(_)));
            unread.next().and_then(|unread| unread.is_waiting).unwrap_or(is_pending)
        };
        let has_passed = |id: RequestId| {
            let start_s = manager.planner().standing(id).and_then(|standing| standing.start_s);
            start_s.is_some_and(|at| Duration::from_secs(at) + self.settings.grace <= now)
        };
        let out = self.jobs.iter().filter(|(key, of)| {
            of.committed.is_none() && self.is_unknown(**key) && has_passed(of.id) && waits(**key)
        });
        let out: Vec<(Key, RequestId)> = out.map(|(&key, of)| (key, of.id)).collect();
        for (key, id) in out {
            let Some(row) = manager.open_row(id) else {
                continue;
            };
            if row.phase == Some(Phase::Releasing)
                || row.state == State::Running && row.phase.is_none()
            {
                continue;
            }
            self.news.push(format!("job {}: {ASIDE}", key.name()));
            self.take_out(manager, controller, id, ASIDE);
            // Its planned start is no wish of its user.
            self.begins.insert(key, begin_s(&row));
        }
    }

    /// Notes of which jobs too little is known for long, and of which enough is known again: these
    /// show their plans anew.
    pub(super) fn note_unclear(&mut self, now: Duration) {
        let waits = |job: &&JobSeen| matches!(job.state, JobState::Pending(_));
        let unclear = self.world.jobs.iter().filter(|job| job.is_unclear).filter(waits);
        let unclear: HashSet<Key> = unclear.map(|job| job.key).collect();
        let all = &mut self.explanations;
        all.unclear.retain(|key, _| unclear.contains(key));
        for &key in &unclear {
            let since = *all.unclear.entry(key).or_insert(now);
            if now.saturating_sub(since) >= UNCLEAR_FOR && !all.told.contains_key(&key) {
                all.due.entry(key).or_insert(UNCLEAR);
            }
        }
        let unread = &self.unread.rows;
        let is_unknown = |key: &Key| unread.contains_key(&Some(*key)) || unclear.contains(key);
        all.due.retain(|key, _| is_unknown(key));
        let known: Vec<Key> = all.told.keys().copied().filter(|key| !is_unknown(key)).collect();
        for key in known {
            all.told.remove(&key);
            if let Some(of) = self.jobs.get_mut(&key) {
                of.shown = Shown::Stale;
            } else if self.declined.contains_key(&key) {
                self.untold.entry(key).or_default();
            }
        }
    }

    /// Tells users that too little is known of their jobs, while there is room.
    pub(super) fn explain(&mut self, controller: &mut dyn Controller) {
        let due: Vec<Key> = self.explanations.due.keys().copied().take(SHOWN_AT_ONCE).collect();
        for key in due {
            if !controller.has_room() {
                return;
            }
            let Some(why) = self.explanations.due.remove(&key) else {
                continue;
            };
            // A refused one is not tried again: it would keep the others back.
            self.explanations.told.insert(key, why);
            if let Err(fault) = controller.explain(key, why) {
                self.failed(key, "explain", &fault);
                if is_passing(&fault) {
                    self.explanations.failed(key);
                    return;
                }
            }
        }
    }
}
