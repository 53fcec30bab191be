// SPDX-License-Identifier: GPL-2.0
//! Requests that follow others, by how those end (Keller, 2).

use std::collections::HashSet;

use crate::ledger::{After, Outcome, Row, State};
use pbs_cluster_planner::RequestId;

use crate::engine::{Engine, COMPLETED};
use crate::error::Error;
use crate::manager::Manager;
use crate::outcome::without_reason;
use crate::record::is_held;
use crate::wish::Wish;

impl<E: Engine> Manager<E> {
    /// Returns the requests that a new request must follow, without those that are over.
    pub(crate) fn open_after(&self, wish: &Wish) -> Result<Vec<After>, Error> {
        if wish.within.is_some() && !wish.after.is_empty() {
            let what = "a request inside a reservation can depend on nothing; leave out --within \
                        or --depend";
            return Err(Error::Wrong(what.into()));
        }
        let mut open: Vec<After> = Vec::new();
        for (place, &after) in wish.after.iter().enumerate() {
            let id = after.request;
            let before = &wish.after[..place];
            if before.contains(&after) {
                continue;
            }
            if before.iter().any(|other| is_contradiction(*other, after)) {
                let what = format!(
                    "request {id} can't both complete and fail, as afterok:{id} and \
                     afternotok:{id} require; write one of them, or afterany:{id}"
                );
                return Err(Error::Wrong(what));
            }
            let row = self.current_row(id)?;
            if row.is_reservation || row.within.is_some() {
                let what = format!(
                    "request {id} is a reservation or inside one, and nothing can \
                                    depend on it; name another"
                );
                return Err(Error::Wrong(what));
            }
            if row.state != State::Ended {
                open.push(after);
                continue;
            }
            let outcome = row.outcome.unwrap_or_default();
            if !is_met(after, &outcome) {
                let what = format!("request {id} has ended with another outcome: {outcome}");
                return Err(Error::Wrong(what));
            }
        }
        Ok(open)
    }

    /// All that follow a request, directly or by others; those that follow another come before it.
    pub(crate) fn all_followers(&self, id: RequestId) -> Vec<RequestId> {
        let (mut seen, mut all) = (HashSet::from([id]), Vec::new());
        let of = |id| self.planner.followers(id).collect::<Vec<_>>();
        let mut path = vec![(id, of(id))];
        while let Some((id, followers)) = path.last_mut() {
            match followers.pop() {
                Some(next) if seen.insert(next) => path.push((next, of(next))),
                Some(_) => {}
                None => {
                    all.push(*id);
                    path.pop();
                }
            }
        }
        // Itself comes last.
        all.pop();
        all
    }

    /// A request is over, that way: who followed it starts, or never will. Those are
    /// returned, with what is told of them.
    pub(crate) fn release_followers(
        &mut self,
        id: RequestId,
        followers: &[RequestId],
        outcome: &str,
    ) -> Vec<(RequestId, String)> {
        let clock_s = self.clock_s;
        let mut in_vain = Vec::new();
        let mut is_any_free = false;
        for &follower in followers {
            let Some(record) = self.records.get(&follower) else {
                continue;
            };
            let of = |after: &&After| after.request == id;
            let is_met = record.after.iter().filter(of).all(|&after| is_met(after, outcome));
            if !is_met && !self.row(follower).is_some_and(|row| has_begun(&row)) {
                in_vain.push((
                    follower,
                    format!("not to run: request {id} {}", without_reason(outcome)),
                ));
                continue;
            }
            self.records.unfollow(follower, id);
            let Some(record) = self.records.get_mut(&follower) else {
                continue;
            };
            let is_held = is_held(&record.after);
            record.request.after.retain(|before| *before != id);
            record.request.is_held = is_held;
            self.planner.set_held(clock_s, follower, is_held);
            is_any_free = true;
        }
        if is_any_free {
            // Once for all requests that end together.
            self.planner.plan_waiting_later();
        }
        in_vain
    }

    /// After a restart: what is followed and ended while nobody looked.
    pub(crate) fn follow_lost(&mut self) {
        let is_lost = |after: &After| !self.records.contains_key(&after.request);
        let followers = self.records.iter().flat_map(|(&id, record)| {
            let lost = record.after.iter().filter(|after| is_lost(after));
            lost.map(move |after| (after.request, id))
        });
        let followers: Vec<(RequestId, RequestId)> = followers.collect();
        for (before, follower) in followers {
            // A request that the ledger cannot show was lost.
            let outcome = self.current_row(before).ok().and_then(|row| row.outcome);
            let outcome = outcome.unwrap_or_else(|| "was lost".into());
            for (id, why) in self.release_followers(before, &[follower], &outcome) {
                self.finish(id, &why);
            }
        }
    }
}

/// Whether two conditions on the same request exclude each other.
fn is_contradiction(one: After, other: After) -> bool {
    let outcomes = [one.outcome, other.outcome];
    one.request == other.request
        && outcomes.contains(&Outcome::Ok)
        && outcomes.contains(&Outcome::NotOk)
}

/// Whether a request runs: it goes on, whoever it followed.
pub(crate) fn has_begun(row: &Row) -> bool {
    row.state == State::Running && row.phase.is_none()
}

fn is_met(after: After, outcome: &str) -> bool {
    match after.outcome {
        Outcome::Any => true,
        Outcome::Ok => outcome == COMPLETED,
        Outcome::NotOk => outcome != COMPLETED,
    }
}
