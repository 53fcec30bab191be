// SPDX-License-Identifier: GPL-2.0
//! Jobs with a reservation of the batch system, which are left to it. They have no request, and the
//! plan has nothing on the nodes of the reservation in its time.
//!
//! Only the planner releases such a job, once it knows that the job stays on these nodes in that
//! time. Otherwise the job could take nodes that are planned for others.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::Steer;
use crate::steer::controller::{Controller, Fault, Leaving};
use crate::steer::seen::{Closing, Hold, JobSeen, JobState, Key};
use crate::steer::wish::{held_without_reservation, hold_of};

/// Jobs of a reservation that wait without a hold, at most. The batch system tries the jobs of
/// reservations before all others, and only so many jobs in a round.
const WAITING_AT_ONCE: usize = 40;
/// Jobs of a user among them, at most: a job that can't start would keep the place of another's.
const WAITING_OF_USER: usize = 10;
/// Jobs whose reservations have ended, and that is written down in a turn, at most.
const MARKED_AT_ONCE: usize = 50;
/// Least time from one release of a job to the next, if it is held again by something else.
const RELEASED_EVERY: Duration = Duration::from_secs(60);
/// Seconds by which the batch system may end a job late: it looks at limits every 30 s.
pub(super) const ENDED_LATE_S: u64 = 40;
/// Length of the names of reservations in a text for users, at most.
const NAME_CHARS: usize = 100;

/// A job that is left to the batch system.
#[derive(Debug, Default)]
struct Left {
    /// Time at which it was released last.
    released: Option<Duration>,
    /// Earliest start that its user wants, as it was at the first release.
    begin_s: Option<u64>,
    /// Whether its user was told that it waits behind others.
    is_told: bool,
}

/// Numbers of jobs of a reservation that wait without a hold.
#[derive(Debug, Default)]
struct Waiting {
    all: usize,
    of_users: HashMap<String, usize>,
}

impl Waiting {
    fn add(&mut self, user: &str) {
        self.all += 1;
        *self.of_users.entry(user.into()).or_default() += 1;
    }

    /// Whether a further job of a user has to wait for others.
    fn is_full(&self, user: &str) -> bool {
        let of_user = self.of_users.get(user).copied().unwrap_or_default();
        self.all >= WAITING_AT_ONCE || of_user >= WAITING_OF_USER
    }
}

/// Jobs that are left to the batch system.
#[derive(Debug, Default)]
pub(super) struct LeftJobs {
    jobs: BTreeMap<Key, Left>,
    /// Numbers of jobs that wait without a hold, by reservation.
    waiting: HashMap<String, Waiting>,
    /// Reservations of waiting jobs in the last look, whether they are left to the batch system or
    /// not.
    names: HashMap<Key, String>,
}

impl LeftJobs {
    /// Whether a job is left to the batch system.
    pub(super) fn has(&self, key: Key) -> bool {
        self.jobs.contains_key(&key)
    }
}

/// Treatment of a job with a reservation.
enum Fate {
    /// The job is left to the batch system.
    Left,
    /// The job is neither left to the batch system nor planned, with the reason.
    Refused(String),
    /// The reservation has ended.
    Over,
}

/// Text for the user of a job that is left to the batch system.
pub(super) fn left_text(job: &JobSeen) -> String {
    let names: String = job.reservation.chars().take(NAME_CHARS).collect();
    format!("left to Slurm in reservation {names}")
}

impl Steer {
    /// Decides about jobs with a reservation: which of them are left to the batch system, and which
    /// are held. A job whose reservation has ended is marked as held for that: its user wanted it
    /// there.
    pub(super) fn sort_reserved(&mut self, controller: &mut dyn Controller) {
        let mut jobs = std::mem::take(&mut self.world.jobs);
        let mut before = std::mem::take(&mut self.left);
        let mut marked = 0;
        for job in &mut jobs {
            let key = job.key;
            let (is_planned, was_left) = (self.jobs.contains_key(&key), before.has(key));
            let is_left = match job.state {
                JobState::Pending(hold) => {
                    let named = before.names.remove(&key);
                    let has_any = !job.reservation.is_empty() || hold == Hold::Unreserved;
                    // Of a held job, the batch system clears the reservation without a word.
                    let is_lost =
                        !has_any && named.as_deref().is_some_and(|names| self.has_ended(names));
                    if has_any {
                        self.left.names.insert(key, job.reservation.clone());
                    } else if let (true, Some(names)) = (is_lost, named) {
                        // Until a look shows the mark, which may not be made in this one.
                        if hold_of(&job.words).is_none() {
                            self.left.names.insert(key, names);
                        }
                    }
                    let is_over = hold == Hold::Unreserved || is_lost;
                    (has_any || is_lost)
                        && self.is_to_leave(controller, job, is_over, is_planned, &mut marked)
                }
                JobState::Over(_) => false,
                // The plan follows a planned job that runs, whatever reservation it has entered.
                JobState::Running | JobState::Completing(_) => {
                    !is_planned && (was_left || !job.reservation.is_empty())
                }
            };
            if !is_left {
                continue;
            }
            if job.state == JobState::Pending(Hold::No) {
                for name in job.reservation.split(',') {
                    self.left.waiting.entry(name.into()).or_default().add(&job.user);
                }
            }
            self.left.jobs.insert(key, before.jobs.remove(&key).unwrap_or_default());
        }
        self.world.jobs = jobs;
    }

    /// Whether a waiting job is left to the batch system. Otherwise the job says why not.
    fn is_to_leave(
        &mut self,
        controller: &mut dyn Controller,
        job: &mut JobSeen,
        is_over: bool,
        is_planned: bool,
        marked: &mut usize,
    ) -> bool {
        let key = job.key;
        if hold_of(&job.words).is_some() || self.killed.contains_key(&key) {
            return false;
        }
        job.is_unclear = false;
        let fate = if is_over { Fate::Over } else { self.fate(job) };
        match fate {
            Fate::Left if is_planned => {
                job.foreign = Some(left_text(job));
                false
            }
            Fate::Left => {
                job.foreign = None;
                true
            }
            Fate::Refused(why) => {
                let names: String = job.reservation.chars().take(NAME_CHARS).collect();
                job.foreign = Some(format!("--reservation={names}: {why}"));
                false
            }
            Fate::Over => {
                if controller.is_ahead(key) {
                    return false;
                }
                job.words = held_without_reservation(&job.words);
                *marked += 1;
                let told = match *marked {
                    0..=MARKED_AT_ONCE => controller.comment(key, &job.words),
                    _ => Err(Fault::Later),
                };
                if let Err(why) = told {
                    // It is marked at the next look. A hold would hide why it is held.
                    job.state = JobState::Pending(Hold::Admin);
                    self.failed(key, "comment", &why);
                }
                false
            }
        }
    }

    /// The reservation with that name; without one, a reservation of which nothing could be read.
    fn reservation(&self, name: &str) -> Option<&Closing> {
        let closed = &self.world.closed;
        let unread = || closed.iter().find(|of| of.name.is_empty());
        closed.iter().find(|of| of.name == name).or_else(unread)
    }

    /// Whether all of these reservations have ended.
    fn has_ended(&self, names: &str) -> bool {
        let now_s = self.looked.as_secs();
        let mut all = names.split(',').filter_map(|name| self.reservation(name));
        all.all(|of| of.loose.is_none() && !of.lasts_after(now_s))
    }

    /// The treatment of a job that waits for its reservations.
    fn fate(&self, job: &JobSeen) -> Fate {
        let now_s = self.looked.as_secs();
        if self.has_ended(&job.reservation) {
            return Fate::Over;
        }
        for name in job.reservation.split(',') {
            let loose = self.reservation(name).and_then(|of| of.loose.as_ref());
            if let Some(why) = loose {
                return Fate::Refused(format!(
                    "no job in reservation {name} is left to Slurm, since {why}; leave out \
                     --reservation, or ask for another reservation"
                ));
            }
        }
        if !job.demands.licenses.is_empty() {
            return Fate::Refused(
                "licences of jobs in a reservation are not planned, and could be those of others; \
                 leave out --licenses or --reservation"
                    .into(),
            );
        }
        let Some(limit_s) = job.limit_s else {
            return Fate::Refused("it has no time limit; add --time".into());
        };
        let named = job.reservation.split(',').filter_map(|name| self.reservation(name));
        let mut too_short = named.filter(|of| !of.has_room_for(limit_s, now_s));
        if let Some(of) = too_short.next() {
            return Fate::Refused(format!(
                "Slurm does not end jobs at the end of reservation {}, and this one would not be over \
                 by then; it waits for the next time, or needs a shorter time limit",
                of.name
            ));
        }
        Fate::Left
    }

    /// Releases a job that is left to the batch system.
    pub(super) fn leave(
        &mut self,
        controller: &mut dyn Controller,
        job: &JobSeen,
        hold: Hold,
        now: Duration,
    ) {
        let key = job.key;
        if hold == Hold::No && job.required.is_empty() {
            self.declined.remove(&key);
            self.untold.remove(&key);
            return;
        }
        if hold == Hold::No {
            // It has the nodes of a commitment, on which it would never start.
            self.send_back(controller, key);
            self.is_stale = true;
            return;
        }
        let names: Vec<&str> = job.reservation.split(',').collect();
        let waiting = &self.left.waiting;
        let is_full = names
            .iter()
            .any(|&name| waiting.get(name).is_some_and(|waiting| waiting.is_full(&job.user)));
        let own_s = match self.begins.get(&key) {
            Some(&begin_s) => begin_s,
            None => job.start_s.filter(|&start_s| start_s > now.as_secs()),
        };
        let Some(of) = self.left.jobs.get_mut(&key) else {
            return;
        };
        if is_full {
            let told = format!("{}, behind other jobs that wait for it", left_text(job));
            if !of.is_told && controller.has_room() {
                of.is_told = controller.explain(key, &told).is_ok();
            }
            return;
        }
        if of.released.is_some_and(|at| now < at + RELEASED_EVERY) && hold == Hold::Admin {
            return;
        }
        let is_first = of.released.replace(now).is_none();
        if is_first {
            of.begin_s = own_s;
        }
        let (told, begin_s) = (left_text(job), of.begin_s);
        let leaving = Leaving { reservation: job.reservation.clone(), begin_s, told };
        match controller.leave(key, &leaving) {
            Ok(()) => {
                self.begins.insert(key, begin_s);
                self.declined.remove(&key);
                self.untold.remove(&key);
                for name in names {
                    self.left.waiting.entry(name.into()).or_default().add(&job.user);
                }
                if is_first {
                    self.news.push(format!("job {} is {}", key.name(), leaving.told));
                }
            }
            Err(why) => self.failed(key, "release into its reservation", &why),
        }
    }

    /// Forgets that a job was released: that has failed.
    pub(super) fn not_left(&mut self, key: Key) {
        if let Some(of) = self.left.jobs.get_mut(&key) {
            of.released = None;
        }
    }

    /// Nodes of jobs that run without a request, with the times in which they are not free, and the
    /// reasons. A job goes on until its limit, and at most so long after its reservation as the
    /// batch system allows.
    pub(super) fn left_nodes(&self, cleaned_s: u64) -> Vec<(&[String], (u64, u64), String)> {
        let now_s = self.looked.as_secs();
        let jobs = self.left.jobs.keys().filter_map(|&key| self.world.job(key));
        let running =
            jobs.filter(|job| matches!(job.state, JobState::Running | JobState::Completing(_)));
        let nodes = running.map(|job| {
            let is_of = |name: &str| job.reservation.split(',').any(|of| of == name);
            let of = self.world.closed.iter().filter(|of| is_of(&of.name) && of.loose.is_none());
            let ends = of.filter_map(|of| {
                let time =
                    of.times.iter().filter(|time| time.start <= now_s).max_by_key(|of| of.end);
                Some(time?.end.saturating_add(of.overrun_s?))
            });
            let of_limit = job.end_s.unwrap_or(u64::MAX - cleaned_s);
            let until_s = match job.state {
                JobState::Running => ends.max().map_or(of_limit, |end_s| end_s.min(of_limit)),
                _ => now_s,
            };
            // The same at each look, as long as the job is in time.
            let from_s = job.start_s.unwrap_or(now_s).min(now_s);
            let time = (from_s, until_s.max(now_s).saturating_add(cleaned_s));
            (&job.nodes[..], time, format!("job {} of Slurm", job.key.name()))
        });
        nodes.collect()
    }
}
