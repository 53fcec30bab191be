// SPDX-License-Identifier: GPL-2.0
//! Jobs that are seen for the first time.

use std::collections::HashSet;
use std::time::Duration;

use pbs_manager::ledger::account_user;
use pbs_manager::{Error, Manager};

use super::{operator, Asked, Declined, Steer};
use crate::steer::controller::{Controller, Fault};
use crate::steer::link::Link;
use crate::steer::seen::{Hold, JobSeen, JobState, Key};
use crate::steer::wish::{held_by_operator, hold_of, wish_of};

/// Jobs whose hold by a requeue is written down in a turn at most: each takes a command.
const MARKED_AT_ONCE: usize = 50;

/// Longest time from the moment at which a job is sent back to the start that the batch system then
/// gives it: two minutes and a second. A later one is a wish of its user.
const SENT_BACK_S: u64 = 130;

impl Steer {
    /// Writes down the holds of jobs that were sent back and held: no hook sees these. The hold of
    /// the planner would hide them.
    ///
    /// A job whose hold can't be written down now is left as it is: it is held, and not planned.
    pub(super) fn mark_requeued(&mut self, controller: &mut dyn Controller) {
        let requeued = JobState::Pending(Hold::Requeued);
        let held = self.world.jobs.iter().enumerate().filter(|(_, job)| job.state == requeued);
        let held = held.filter(|(_, job)| !controller.is_ahead(job.key));
        let held: Vec<usize> = held.map(|(at, _)| at).collect();
        for (turn, at) in held.into_iter().enumerate() {
            let job = &mut self.world.jobs[at];
            let key = job.key;
            let is_marked = hold_of(&job.words).is_some();
            if !is_marked {
                job.words = held_by_operator(&job.words);
            }
            let marked = match turn {
                _ if is_marked => Ok(()),
                0..MARKED_AT_ONCE => controller.comment(key, &job.words),
                _ => Err(Fault::Later),
            };
            if let Err(why) = marked {
                job.state = JobState::Pending(Hold::Admin);
                self.failed(key, "comment", &why);
            }
        }
    }

    /// Jobs that were not planned before are held, and planned if they can be.
    pub(super) fn welcome(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        new: &[&JobSeen],
        now: Duration,
    ) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let is_loose = |job: &&&JobSeen| job.state != JobState::Pending(Hold::Admin);
        let loose: Vec<Key> = new.iter().filter(is_loose).map(|job| job.key).collect();
        let mut not_held = HashSet::new();
        for (&key, held) in loose.iter().zip(controller.hold_all(&loose)) {
            if let Err(why) = held {
                self.failed(key, "hold", &why);
                not_held.insert(key);
            }
        }
        // What can't be held now is tried again a moment later, not at once.
        self.is_behind &= not_held.is_empty();
        manager.advance(now.as_secs().max(manager.clock_s()))?;
        let is_new = |job: &&&JobSeen| {
            !self.is_declined(job) && !not_held.contains(&job.key) && !job.is_unclear
        };
        let new: Vec<&JobSeen> = new.iter().filter(is_new).copied().collect();
        // Those that follow nobody wait for the disk together; who is followed comes first.
        let (alone, following): (Vec<&JobSeen>, Vec<&JobSeen>) =
            new.into_iter().partition(|job| job.after.is_empty());
        let mut planned = HashSet::new();
        self.plan(manager, &alone, now, &mut planned)?;
        for job in following {
            self.plan(manager, &[job], now, &mut planned)?;
        }
        self.try_followers_again(&planned);
        Ok(())
    }

    /// Plans jobs that are held, and adds the numbers of those that have requests then.
    fn plan(
        &mut self,
        manager: &mut Manager<Link>,
        jobs: &[&JobSeen],
        now: Duration,
        numbers: &mut HashSet<u32>,
    ) -> Result<(), Error> {
        let mut wishes = Vec::with_capacity(jobs.len());
        let mut wished = Vec::with_capacity(jobs.len());
        for &job in jobs {
            // The time from which on a job may start that was sent back is none of its user's.
            let is_early = job.start_s <= Some(job.key.submit_s + SENT_BACK_S);
            let begin_s = match self.begins.get(&job.key) {
                Some(&begin_s) => begin_s,
                None if is_early && self.was_sent_back(manager, job) => None,
                None => job.start_s,
            };
            if let Some(outcome) = self.killed.get(&job.key).cloned() {
                self.decline_killed(job, begin_s, &outcome);
                continue;
            }
            let plain = JobSeen { start_s: begin_s, ..job.clone() };
            match wish_of(&plain, &|name| self.request_of(name), now.as_secs()) {
                Ok(mut wish) => {
                    if self.settings.has_accounts {
                        wish.user = account_user(&wish.user.name)?;
                    }
                    wishes.push((operator(), wish));
                    wished.push((job, plain.start_s));
                }
                Err(why) => {
                    let why = if is_wait(job) { why } else { format!("declined: {why}") };
                    self.decline(job, plain.start_s, &why);
                }
            }
        }
        for ((job, begin_s), planned) in wished.into_iter().zip(manager.submit_all(&wishes)?) {
            match planned {
                Ok(ids) => {
                    numbers.insert(job.key.job);
                    self.begins.remove(&job.key);
                    for id in ids {
                        self.track(job.key, id, Some(Asked::of(job)));
                    }
                }
                Err(error @ Error::Ledger(_)) => return Err(error),
                Err(why) => {
                    let why = why.describe(manager.site());
                    self.decline(job, begin_s, &format!("declined: {why}"));
                }
            }
        }
        Ok(())
    }

    /// A job stays held, and its user is told why. `begin_s` is the earliest start that its user
    /// wants: what was planned before is not shown any more.
    pub(super) fn decline(&mut self, job: &JobSeen, begin_s: Option<u64>, why: &str) {
        let before = self.declined.get(&job.key);
        let is_known = before.is_some_and(|of| of.why == why);
        if before.is_none_or(|of| of.asked != Asked::of(job)) {
            self.news.push(format!("job {}: {why}", job.key.name()));
        }
        let since = before.map_or(self.looked, |of| of.since);
        let declined = Declined {
            asked: Asked::of(job),
            after: job.after.clone(),
            why: why.into(),
            is_final: false,
            is_again: false,
            not_before: before.map_or(Duration::ZERO, |of| of.not_before),
            since,
            begin_s,
            is_wait: is_wait(job),
            is_reminded: is_known && before.is_some_and(|of| of.is_reminded),
        };
        self.declined.insert(job.key, declined);
        if is_known && !self.begins.contains_key(&job.key) {
            return;
        }
        // Until it is told, what was planned before is shown, and is no wish of its user.
        self.begins.insert(job.key, begin_s);
        self.untold.insert(job.key, Duration::ZERO);
    }
}

/// Whether a job is not planned since it is held, or waits for one of several jobs.
fn is_wait(job: &JobSeen) -> bool {
    hold_of(&job.words).is_some() || job.after.contains('?')
}
