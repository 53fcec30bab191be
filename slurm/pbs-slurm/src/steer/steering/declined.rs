// SPDX-License-Identifier: GPL-2.0
//! Jobs that stay declined for long. The batch system counts them among its jobs, whose number is
//! limited for all users together.

use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::Manager;
use pbs_text::span;

use super::{date, is_passing, Refused, Steer, SHOWN_AT_ONCE};
use crate::steer::controller::{Controller, Fault};
use crate::steer::link::Link;
use crate::steer::seen::{Hold, JobState, Key};
use crate::steer::wish::begin_s;

/// Old declined jobs whose users are told, or that are cancelled, in a turn at most.
const OLD_AT_ONCE: usize = 20;

impl Steer {
    /// Declines jobs that the batch system would never start as they are, and for a while those that
    /// it did not start as planned. Without that, they would be committed and taken back for ever.
    pub(super) fn decline_refused(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
    ) {
        for Refused { key, why, not_before } in std::mem::take(&mut self.refused) {
            let Some(id) = self.jobs.get(&key).map(|of| of.id) else {
                continue;
            };
            let begin_s = manager.open_row(id).as_ref().and_then(begin_s);
            let why = match not_before {
                None => format!(
                    "declined: Slurm can't start it as it is ({why}); change it, or hold and \
                     release it to have it tried again"
                ),
                Some(at) => format!(
                    "waits: Slurm did not start it as planned, several times ({why}); it is \
                     planned again from {} on",
                    date(manager, at.as_secs())
                ),
            };
            self.take_out(manager, controller, id, &why);
            let job = self.world.job(key).filter(|job| matches!(job.state, JobState::Pending(_)));
            if let Some(job) = job.cloned() {
                self.decline(&job, begin_s, &why);
            }
            if let Some(of) = self.declined.get_mut(&key) {
                of.is_final = not_before.is_none();
                of.not_before = not_before.unwrap_or_default();
            }
            self.try_declined_again();
        }
    }

    /// Tries jobs again whose delay is over.
    pub(super) fn try_delayed_again(&mut self, now: Duration) {
        let is_over = |at: Duration| at > Duration::ZERO && at <= now;
        for of in self.declined.values_mut().filter(|of| is_over(of.not_before)) {
            of.not_before = Duration::ZERO;
            of.is_again = true;
        }
    }

    /// Takes a request out of the plan whose job goes on waiting, and those that follow it.
    pub(super) fn take_out(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        id: RequestId,
        why: &str,
    ) {
        self.followers_out(manager, controller, id);
        let name = self.keys.get(&id).map_or_else(|| "?".into(), |key| key.name());
        if let Err(fault) = manager.decline(id, why) {
            self.news.push(format!("job {name}: {fault}"));
        }
        self.forget_request(id);
    }

    /// Takes those out of the plan that follow a request. Their jobs wait for its job, which has not
    /// ended: they come like new ones, and are planned once they follow a request again.
    pub(super) fn followers_out(
        &mut self,
        manager: &mut Manager<Link>,
        controller: &mut dyn Controller,
        id: RequestId,
    ) {
        match manager.decline_followers(id) {
            Ok(rows) => {
                for row in rows {
                    let key = self.keys.get(&row.id).copied();
                    let of = key.and_then(|key| self.jobs.get(&key));
                    if let (Some(key), true) = (key, of.is_some_and(|of| of.committed.is_some())) {
                        self.send_back(controller, key);
                    }
                    if let Some(key) = self.forget_request(row.id) {
                        self.begins.insert(key, begin_s(&row));
                        self.is_behind = true;
                    }
                }
            }
            Err(fault) => self.news.push(format!("request {id}: {fault}")),
        }
    }

    /// Tells users that their jobs are declined, and why, while there is room: what starts and holds
    /// jobs does not wait behind thousands of these orders.
    pub(super) fn tell_declined(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        let due: Vec<Key> = self.due_reasons(now).take(SHOWN_AT_ONCE).collect();
        for key in due {
            if !controller.has_room() {
                return;
            }
            self.untold.remove(&key);
            let Some(of) = self.declined.get(&key) else {
                continue;
            };
            let told = self.with_lost(manager, key, &of.why);
            if let Err(fault) = controller.show(key, of.begin_s, &told) {
                self.note_untold(key, &fault);
                self.failed(key, "show", &fault);
                if is_passing(&fault) {
                    return;
                }
            }
        }
        // The next turn tells more of them.
        self.is_behind |= self.due_reasons(now).next().is_some() && controller.has_room();
    }

    /// Declined jobs whose users are to read the reason by now. A job of which too little is known has
    /// another explanation.
    fn due_reasons(&self, now: Duration) -> impl Iterator<Item = Key> + '_ {
        let due = self.untold.iter().filter(move |(_, not_before)| **not_before <= now);
        due.map(|(&key, _)| key).filter(|&key| !self.is_unknown(key))
    }

    /// Tells the users of jobs that were declined long ago, and cancels those jobs that the operator
    /// wants to be cancelled.
    pub(super) fn old_declined(
        &mut self,
        manager: &Manager<Link>,
        controller: &mut dyn Controller,
        now: Duration,
    ) {
        if self.looked != now {
            // A job may have been changed since.
            return;
        }
        let (remind, cancel) = (self.settings.remind_declined, self.settings.cancel_declined);
        let age = |since: Duration| now.saturating_sub(since);
        let old = self.declined.iter().filter(|(_, of)| {
            let is_told = of.is_reminded || age(of.since) < remind;
            let is_kept = cancel.is_none_or(|cancel| age(of.since) < cancel);
            !(of.is_wait || is_told && is_kept)
        });
        let is_held = |key: &Key| {
            let job = self.world.job(*key);
            let is_held = job.is_some_and(|job| job.state == JobState::Pending(Hold::Admin));
            is_held && !controller.is_ahead(*key) && !self.is_unknown(*key)
        };
        let mut old: Vec<Key> = old.map(|(&key, _)| key).filter(is_held).collect();
        old.sort_unstable();
        for key in old.into_iter().take(OLD_AT_ONCE) {
            let Some(of) = self.declined.get(&key) else {
                continue;
            };
            let held = age(of.since);
            if cancel.is_some_and(|cancel| held >= cancel) {
                let why = format!("{}; cancelled, as it was declined for {}", of.why, text(held));
                match controller.stop(key, &why) {
                    Ok(()) | Err(Fault::Gone) => {
                        self.news.push(format!("job {}: {why}", key.name()));
                        self.is_stale = true;
                    }
                    Err(why) => self.failed(key, "cancel", &why),
                }
                continue;
            }
            let name = key.name();
            let why = format!(
                "{}; it has been held for {}: change it, or cancel it with scancel {name}",
                of.why,
                text(held)
            );
            if !controller.has_room() {
                return;
            }
            let told = self.with_lost(manager, key, &why);
            match controller.show(key, of.begin_s, &told) {
                Ok(()) => {
                    if let Some(of) = self.declined.get_mut(&key) {
                        of.is_reminded = true;
                    }
                }
                Err(why) => self.failed(key, "show", &why),
            }
        }
    }
}

fn text(held: Duration) -> String {
    span(u64::try_from(held.as_nanos()).unwrap_or(u64::MAX))
}
