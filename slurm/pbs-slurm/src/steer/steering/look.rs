// SPDX-License-Identifier: GPL-2.0
//! From what is seen to what the planner is told.

use std::collections::HashSet;
use std::time::Duration;

use pbs_manager::ledger::{Phase, Row, State};
use pbs_manager::{Change, Error, Happened, Manager};
use pbs_resources::Rset;

use super::left::left_text;
use super::{
    ended, is_where_planned, nodes_of, not_started, operator, over, sorted, Asked, Committed,
    Shown, Steer, AGAIN, ALTERED_AT_ONCE, GONE, LOST, NEW_AT_ONCE, SHOWN_FOR, UNSEEN,
};
use crate::steer::controller::{Controller, Revoked};
use crate::steer::link::Link;
use crate::steer::seen::{Hold, JobSeen, JobState, Key};
use crate::steer::wish::{begin_s, has_demands_of, hold_of, wish_of, Words, UNLIMITED};

impl Steer {
    /// Compares what is seen with what is planned.
    pub(super) fn reconcile(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.world.jobs);
        let unread = self.world.unread.iter().filter_map(|unread| unread.key);
        let unread: HashSet<Key> = unread.collect();
        let seen: HashSet<Key> = jobs.iter().map(|job| job.key).chain(unread.clone()).collect();
        self.declined.retain(|key, _| seen.contains(key));
        self.begins.retain(|key, _| seen.contains(key));
        self.failed_starts.retain(|key, _| seen.contains(key));
        self.killed.retain(|key, _| seen.contains(key));
        self.recalled.retain(|key, _| seen.contains(key));
        self.extended.retain(|key, _| seen.contains(key));
        self.try_delayed_again(now);
        let (mut new, mut again) = (Vec::new(), Vec::new());
        self.altered = 0;
        self.altered_before = self.altered_last.take();
        // In the order of their numbers: who is followed comes first.
        for job in &jobs {
            if controller.is_ahead(job.key) {
                // This is older than what was ordered.
                self.is_stale = true;
                continue;
            }
            match (&job.state, self.jobs.contains_key(&job.key)) {
                // This is a copy of an older look.
                (JobState::Pending(_), _) | (_, false) if unread.contains(&job.key) => {}
                (JobState::Pending(hold), false) if self.left.has(job.key) => {
                    self.leave(controller, job, *hold, now);
                }
                (JobState::Pending(hold), is_known) if job.is_unclear => {
                    // Nothing is planned by half of what it wants, and nothing starts by that.
                    let of = self.jobs.get(&job.key);
                    let is_committed = of.is_some_and(|of| of.committed.is_some());
                    if *hold != Hold::Admin && !is_known {
                        new.push(job);
                    } else if *hold != Hold::Admin && !is_committed {
                        self.send_back(controller, job.key);
                    }
                    self.is_stale = true;
                }
                (_, true) => self.known(manager, controller, job, now),
                (JobState::Running, false) => self.end_recalled(controller, job.key),
                (JobState::Pending(hold), false) => {
                    if *hold == Hold::Admin {
                        self.recalled.remove(&job.key);
                    }
                    self.note_shown(job, now);
                    // One that could start by itself is held at once.
                    let is_first = new.len() < NEW_AT_ONCE || *hold == Hold::No;
                    let is_new = !self.is_declined(job) || *hold != Hold::Admin;
                    // It was declined, or taken out with the one that it follows.
                    let was_seen =
                        self.declined.contains_key(&job.key) || self.begins.contains_key(&job.key);
                    if is_new && *hold == Hold::Admin && was_seen {
                        again.push(job);
                    } else if is_new && is_first {
                        new.push(job);
                    } else {
                        self.is_behind |= is_new;
                    }
                }
                (_, false) => {}
            }
        }
        new.extend(self.in_turn(&again));
        new.sort_unstable_by_key(|job| job.key);
        self.welcome(manager, controller, &new, now)?;
        let mut losers = HashSet::new();
        let gone: Vec<Key> = self.jobs.keys().copied().filter(|key| !seen.contains(key)).collect();
        for key in gone {
            let would_show_end = self.would_show_ends();
            if controller.is_ahead(key) {
                self.is_stale = true;
                if let Some(of) = self.jobs.get_mut(&key) {
                    of.is_missed |= !would_show_end;
                }
                continue;
            }
            let of = self.jobs.get(&key);
            let may_have_begun = of.is_some_and(|of| of.may_have_begun);
            let is_missed = of.is_some_and(|of| of.is_missed);
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
            let outcome = if is_again {
                AGAIN
            } else if row.state == State::Running || may_have_begun {
                UNSEEN
            } else if would_show_end && !is_missed {
                LOST
            } else {
                GONE
            };
            if outcome == LOST {
                self.lost.note(&row.user, key, &row.name, now.as_secs());
                losers.insert(row.user.clone());
            }
            if is_again {
                // Its nodes may still be being freed: then it is planned in a later look.
                self.ended.note(key, &row.user);
                self.followers_out(manager, controller, row.id);
            }
            self.news.push(format!("job {}: {outcome}", key.name()));
            over(manager, row.id, now.as_secs(), outcome);
            self.try_declined_again();
        }
        if !losers.is_empty() {
            self.show_lost(&jobs, &losers);
        }
        self.world.jobs = jobs;
        self.nodes(manager, now.as_secs());
        Ok(())
    }

    /// Whether this look shows all jobs that have ended since the one before.
    fn would_show_ends(&self) -> bool {
        let past = self.looked.saturating_sub(self.looked_before);
        self.looked_before > Duration::ZERO && past <= SHOWN_FOR
    }

    /// Notes that a look shows a declined job with the earliest start that its user wants: from now
    /// on another one is a wish.
    fn note_shown(&mut self, job: &JobSeen, now: Duration) {
        let wish = |start_s: Option<u64>| start_s.filter(|&start_s| start_s > now.as_secs());
        let is_told = self.declined.contains_key(&job.key) && !self.untold.contains_key(&job.key);
        let begin_s = self.begins.get(&job.key).copied().filter(|_| is_told);
        if begin_s.is_some_and(|begin_s| wish(begin_s) == wish(job.start_s)) {
            self.begins.remove(&job.key);
        }
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
        // A job that the planner ended is not one that was cancelled.
        let is_stopped = self.jobs.get(&job.key).is_some_and(|of| of.is_stopped);
        let by_us = row.as_ref().and_then(|row| row.outcome.clone()).filter(|_| is_stopped);
        match &job.state {
            JobState::Over(outcome) => {
                self.forget(job.key);
                manager.engine_mut().kept.remove(&id);
                if let Some(row) = &row {
                    self.ended.note(job.key, &row.user);
                    over(manager, id, now_s, by_us.as_deref().unwrap_or(outcome));
                }
                self.try_declined_again();
            }
            // Who follows it is released by how it ended, so that has to be known.
            JobState::Completing(None) => {
                manager.engine_mut().kept.insert(id, job.nodes.clone());
            }
            JobState::Completing(Some(outcome)) => {
                manager.engine_mut().kept.insert(id, job.nodes.clone());
                if let Some(row) = row.filter(|_| !is_stopped) {
                    self.ended.note(job.key, &row.user);
                    ended(manager, id, ended_s, outcome);
                }
            }
            JobState::Running => self.runs(manager, job, row.as_ref(), now),
            JobState::Pending(hold) => self.waits(manager, controller, job, *hold, row, now),
        }
    }

    /// A planned job that runs.
    fn runs(
        &mut self,
        manager: &mut Manager<Link>,
        job: &JobSeen,
        row: Option<&Row>,
        now: Duration,
    ) {
        let Some(of) = self.jobs.get_mut(&job.key) else {
            return;
        };
        let Some(row) = row else {
            // It is over for the planner, which lets it run.
            self.forget(job.key);
            return;
        };
        self.failed_starts.remove(&job.key);
        if row.phase == Some(Phase::Releasing) {
            of.committed = None;
            of.is_ending = true;
            manager.engine_mut().kept.insert(row.id, job.nodes.clone());
            return;
        }
        let has = sorted(job.nodes.clone());
        let is_there = is_where_planned(manager, row.id, job);
        // Within the window it may be a moment early, where another has ended.
        let soon_s = (now + self.settings.window).as_secs();
        let is_running = row.state == State::Running;
        let is_soon = row.start_s.is_some_and(|start_s| start_s <= soon_s);
        if let (true, true, None, Some(start_s)) =
            (of.may_have_begun, is_there, &of.committed, row.start_s)
        {
            // Let go by the planner before this one, if it follows on nodes that are being cleaned.
            let follows = |row: &Row| {
                row.phase == Some(Phase::Releasing)
                    && row.end_s == Some(start_s)
                    && row.nodes.iter().any(|part| has.contains(&part.node))
            };
            if manager.open_rows().iter().any(follows) {
                let nodes = has.clone();
                of.committed = Some(Committed { start_s, is_timed: false, nodes, until: None });
            }
        }
        let is_started = is_running || is_soon || of.committed.is_some();
        if !is_running && is_started && is_there {
            // The plan follows once it has the end of who was there before. It is not late.
            if let Some(it) = &mut of.committed {
                it.until = None;
            }
            return;
        }
        of.committed = None;
        if !is_there || !is_started {
            if !std::mem::replace(&mut of.is_outside, true) {
                let (name, on) = (job.key.name(), has.join(" "));
                self.news.push(format!("job {name} runs on {on} outside its plan, which follows"));
            }
            let happened = Happened::RunsElsewhere { request: row.id, nodes: has };
            manager.engine_mut().tell(now.as_secs(), happened);
            self.is_stale = true;
            return;
        }
        of.is_outside = false;
        let start_s = job.start_s.unwrap_or(now.as_secs()).min(now.as_secs());
        if row.phase == Some(Phase::Allocating) {
            let allocated = Happened::Allocated { request: row.id };
            let at_s = start_s.max(row.start_s.unwrap_or(0));
            manager.engine_mut().tell(at_s, allocated);
        }
        let words = Words::read(&job.words, job.key.submit_s).unwrap_or_else(|why| {
            let are_known = of.asked.as_ref().is_some_and(|asked| asked.words == job.words);
            if !are_known {
                self.news.push(format!("job {} runs on as before: {why}", job.key.name()));
            }
            Words::default()
        });
        // Of a running job only its words may have changed; the rest is what it was given.
        let is_first = of.asked.is_none();
        let asked = of.asked.get_or_insert_with(|| Asked::of(job));
        let is_news = asked.words != job.words || words.predicted_end_s.is_some_and(|_| is_first);
        asked.words.clone_from(&job.words);
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
        of.may_have_begun = false;
        let id = of.id;
        let Some(row) = row else {
            // Its request is over, and it is not: it becomes another, unless somebody ended it.
            // If the ledger cannot show the request, the job is planned as the batch system shows it.
            let _ = self.note_ended(manager, id, key);
            self.forget(key);
            self.is_stale = true;
            return;
        };
        if row.phase == Some(Phase::Releasing) {
            self.is_sent_back(manager, controller, job, &row, now);
            return;
        }
        let asked = Asked::of(job);
        // Its limits and its nodes are known from the ledger, even if its user changed them without a planner.
        let booked = || {
            let mut of = Asked { limit_s: Some(row.limit_s()), ..asked.clone() };
            of.demands.throttle = row.set_most.filter(|&most| most < UNLIMITED).unwrap_or(0);
            // What can't be read counts as it is now.
            let rset = row.rset.parse::<Rset>();
            if let Ok(rset) = &rset {
                of.nodes = rset.chunks.iter().map(|chunk| chunk.count).sum();
            }
            // No job is planned while it is held or wants what cannot be planned.
            if hold_of(&job.words).is_some() {
                of.words.clear();
            }
            let has_other = rset.is_ok_and(|rset| !has_demands_of(job, &row, &rset));
            of.foreign = has_other.then(|| "planned with other demands".into());
            of
        };
        let before = of.asked.get_or_insert_with(booked);
        let is_altered = *before != asked;
        let required = sorted(job.required.clone());
        let is_planned = row.state == State::Planned && row.start_s == job.start_s;
        if of.committed.is_none() && hold == Hold::No && is_planned {
            // By the one that was here before.
            let nodes = nodes_of(manager, row.id);
            let start_s = row.start_s.filter(|_| nodes == required);
            of.committed = start_s.map(|start_s| Committed {
                start_s,
                is_timed: true,
                nodes,
                until: Some(Duration::from_secs(start_s).max(now) + self.settings.grace),
            });
        }
        if let Some(it) = &mut of.committed {
            // It may have been seen running, and waits again.
            let by = Duration::from_secs(it.start_s).max(now) + self.settings.grace;
            it.until.get_or_insert(by);
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
            of.shown = Shown::Stale;
        }
        let is_held = is_loose || hold == Hold::Admin;
        let has_turn = self.altered < ALTERED_AT_ONCE && Some(key) > self.altered_before;
        if is_altered && !has_turn {
            // It is held, and still altered in the next turn.
            self.is_behind = true;
        } else if is_altered {
            self.altered += 1;
            self.altered_last = (self.altered == ALTERED_AT_ONCE).then_some(key);
            of.asked = Some(asked);
            of.shown = Shown::Stale;
            self.alter(manager, controller, job, &row, now);
        } else if was_to_run && is_held && of.committed.is_none() {
            not_started(manager, row.id, now.as_secs(), "it was sent back");
        }
    }

    /// A job waits whose request is over but for its nodes: it was sent back, or lost its start with
    /// a crash. It becomes another request.
    fn is_sent_back(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        row: &Row,
        now: Duration,
    ) {
        if row.is_killed() {
            // It has to end, whether it runs or not.
            if let Some(of) = self.jobs.get_mut(&job.key) {
                of.is_ending = true;
            }
            return;
        }
        self.followers_out(manager, controller, row.id);
        self.forget(job.key);
        self.ended.note(job.key, &row.user);
        self.news.push(format!("job {}: {AGAIN}", job.key.name()));
        over(manager, row.id, now.as_secs(), AGAIN);
        // Its start was not a wish of its user.
        self.begins.insert(job.key, begin_s(row));
        if let Err(fault) = controller.show(job.key, begin_s(row), AGAIN) {
            self.failed(job.key, "show", &fault);
        }
        self.is_stale = true;
    }

    /// Handles a changed request of a user. Its job does not run.
    fn alter(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        job: &JobSeen,
        row: &Row,
        now: Duration,
    ) {
        self.failed_starts.remove(&job.key);
        let requests = |name: &str| self.request_of(name);
        // What is shown as its start is no wish of its user.
        let begin_s = begin_s(row);
        let job = JobSeen { start_s: begin_s, ..job.clone() };
        let wish = wish_of(&job, &requests, now.as_secs());
        // It may have had its nodes already, and gives them back.
        let sent_back = manager.send_back(row.id, "it was changed before it began");
        let altered = sent_back.map_err(|error| error.to_string()).and(wish).and_then(|wish| {
            let change = Change {
                rset: Some(wish.rset),
                duration_s: Some(wish.duration_s),
                when: Some(wish.when),
                throttle: wish.throttle,
            };
            let altered = manager.alter(&operator(), row.id, &change);
            altered.map_err(|error| error.describe(manager.site()))
        });
        if let Err(why) = altered {
            // It is not planned as it was, and not as it is.
            let why = match hold_of(&job.words) {
                Some(held) => held.into(),
                // It is released in the next turn.
                None if why == left_text(&job) => why,
                None => format!("changed, and declined: {why}"),
            };
            self.take_out(manager, controller, row.id, &why);
            self.decline(&job, begin_s, &why);
        }
        self.try_declined_again();
    }
}
