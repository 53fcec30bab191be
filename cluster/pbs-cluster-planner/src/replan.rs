// SPDX-License-Identifier: GPL-2.0
//! Replanning: a node is lost or comes back, an allocation fails, a user wants something
//! else (Keller, 5.4).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::budget::SearchBudget;
use crate::machine::NCPUS;
use crate::need::{amount_of, Need};
use crate::placed::by_node;
use crate::planner::{Entry, Planner};
use crate::request::{Refusal, Request, When, MOST_DURATION_S};
use crate::types::{Cause, RequestId};

/// Result of replanning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replanned {
    /// Requests that ran on lost nodes and have ended.
    pub aborted: Vec<RequestId>,
    /// Requests that start at another time or place.
    pub moved: Vec<RequestId>,
    /// Requests that have no place now.
    pub waiting: Vec<RequestId>,
    /// Reservations that keep their other nodes, as no others are free in their time.
    pub shrunk: Vec<RequestId>,
}

/// Whether each node of the machine is one of some nodes.
pub(crate) type NodeSet = Vec<bool>;

/// Maximum number of requests that are displaced for one.
const MAX_DISPLACED: usize = 64;

/// Number of requests that a refusal names.
const NAMED: usize = 3;

impl Planner {
    /// A node is down: what runs on it is aborted, what is planned on it is planned
    /// anew, and where that costs it its start, it displaces what is less important.
    pub fn node_down(&mut self, now_s: u64, node: usize) -> Replanned {
        let mut replanned = Replanned::default();
        for id in self.on_any(&self.node_set(&[node])) {
            if self.entries.get(&id).is_some_and(|entry| entry.is_running) {
                self.remove(now_s, id);
                replanned.aborted.push(id);
            }
        }
        self.withdraw(now_s, &[node], &mut replanned);
        replanned
    }

    /// A node gets nothing new, and what runs on it ends there.
    pub fn node_offline(&mut self, now_s: u64, node: usize) -> Replanned {
        self.nodes_offline(now_s, &[node])
    }

    /// Nodes get nothing new, and what runs on them ends there. What was planned there is planned
    /// anew once.
    pub fn nodes_offline(&mut self, now_s: u64, nodes: &[usize]) -> Replanned {
        let mut replanned = Replanned::default();
        self.withdraw(now_s, nodes, &mut replanned);
        replanned
    }

    /// A node is in order again: who waits is planned, and others may move up.
    pub fn node_up(&mut self, now_s: u64, node: usize) -> Replanned {
        self.nodes_up(now_s, &[node])
    }

    /// Nodes are in order again: who waits is planned, and others may move up.
    pub fn nodes_up(&mut self, now_s: u64, nodes: &[usize]) -> Replanned {
        let mut back = self.node_set(nodes);
        for (node, is_back) in back.iter_mut().enumerate() {
            *is_back &= !self.nodes.is_usable(node);
        }
        if !back.contains(&true) {
            return Replanned::default();
        }
        self.version += 1;
        for node in (0..back.len()).filter(|&node| back[node]) {
            self.nodes.set_usable(node, true);
            let has = self.has(node);
            self.system.set_defect(&has, now_s, false);
            self.count_closed(now_s, node, true);
        }
        self.count_running(now_s, &back, true);
        let moved = self.plan_waiting(now_s);
        self.backfill.add(now_s);
        Replanned { moved, ..Replanned::default() }
    }

    /// Whether a node may get something new.
    pub fn is_usable(&self, node: usize) -> bool {
        self.nodes.is_usable(node)
    }

    /// Returns the set of some nodes.
    pub(crate) fn node_set(&self, nodes: &[usize]) -> NodeSet {
        let mut set = vec![false; self.machine.node_count()];
        for &node in nodes {
            set[node] = true;
        }
        set
    }

    /// Returns the requests that have a place on one of some nodes, in the order of their numbers.
    pub(crate) fn on_any(&self, among: &NodeSet) -> Vec<RequestId> {
        let is_on = |id: &RequestId| self.placed(*id).iter().any(|of| among[of.node as usize]);
        self.requests().filter(is_on).collect()
    }

    /// Returns the nodes on which a request has a place.
    pub(crate) fn nodes_of(&self, id: RequestId) -> impl Iterator<Item = usize> + '_ {
        by_node(self.placed(id)).map(|on_node| on_node[0].node as usize)
    }

    /// Amounts of a node that are in order.
    pub(crate) fn has(&self, node: usize) -> Vec<(usize, u64)> {
        let defect = |of| {
            let mut defects = self.nodes.defect(node).iter();
            defects.find(|(resource, _)| *resource == of).map_or(0, |(_, amount)| *amount)
        };
        let has = self.machine.class(node).has.iter().enumerate();
        let has = has.map(|(of, &amount)| (of, amount.saturating_sub(defect(of))));
        has.filter(|&(_, amount)| amount > 0).collect()
    }

    /// Removes what requests hold of some nodes from the sums of the cluster, or restores it: that
    /// of requests that keep a node out of use, those that run and reservations. The nodes as a
    /// whole are taken from the cluster.
    fn count_running(&mut self, now_s: u64, among: &NodeSet, is_more: bool) {
        for id in self.on_any(among) {
            if !self.entries.get(&id).is_some_and(|entry| entry.keeps_lost_nodes()) {
                continue;
            }
            let used = self.used_by(id).into_iter().filter(|&(node, _)| among[node]);
            let mut sums = vec![0; self.machine.resources().len()];
            for (_, used) in used {
                sums.iter_mut().zip(used).for_each(|(sum, used)| *sum += used);
            }
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            let (Some(over), Some(place)) = (entry.over(), &mut entry.place) else {
                continue;
            };
            let had_s = now_s.saturating_sub(over.start);
            let over = over.start.max(now_s)..over.end;
            if over.is_empty() {
                continue;
            }
            let used: Vec<_> = sums.into_iter().enumerate().filter(|&(_, of)| of > 0).collect();
            let asked = (&entry.need.sums[..], entry.need.asked_s());
            self.system.book(&used, asked, &entry.who, over, is_more);
            self.system.count_area(&used, had_s, &entry.who, is_more);
            for (resource, amount) in used {
                if let Some((_, sum)) = place.sums.iter_mut().find(|(of, _)| *of == resource) {
                    *sum = if is_more { *sum + amount } else { sum.saturating_sub(amount) };
                }
            }
        }
    }

    /// Takes nodes out of use, and plans their requests that have not started anew.
    fn withdraw(&mut self, now_s: u64, nodes: &[usize], replanned: &mut Replanned) {
        let among = self.node_set(nodes);
        let budget = SearchBudget::default();
        let mut planned = Vec::new();
        for id in self.on_any(&among) {
            let entry = self.entries.get(&id).filter(|entry| !entry.keeps_lost_nodes());
            let Some(turn) = entry.map(|entry| entry.turn(id)) else {
                continue;
            };
            planned.extend(self.take_place(now_s, id).map(|place| (turn, place)));
        }
        let mut lost = among.clone();
        for (node, is_lost) in lost.iter_mut().enumerate() {
            *is_lost &= self.nodes.is_usable(node);
        }
        if lost.contains(&true) {
            self.count_running(now_s, &lost, false);
            self.version += 1;
        }
        for node in (0..lost.len()).filter(|&node| lost[node]) {
            self.count_closed(now_s, node, false);
            let has = self.has(node);
            self.system.set_defect(&has, now_s, true);
            self.nodes.set_usable(node, false);
        }
        for id in self.on_any(&among) {
            let lost: Vec<usize> = self.nodes_of(id).filter(|&node| among[node]).collect();
            self.hold_elsewhere(now_s, id, &lost, replanned, &budget);
        }
        planned.sort_by_key(|(turn, _)| *turn);
        for ((_, _, id), old) in planned {
            self.plan_again(now_s, id, old.start_s.max(now_s), replanned, &budget);
        }
        self.keep_order_after(now_s, replanned, &budget);
        self.backfill.add(now_s);
    }

    /// Moves followers of requests that were planned anew.
    pub(crate) fn keep_order_after(
        &mut self,
        now_s: u64,
        replanned: &mut Replanned,
        budget: &SearchBudget,
    ) {
        let changed = [&replanned.moved[..], &replanned.waiting].concat();
        replanned.moved.extend(self.keep_order(now_s, &changed, budget));
        if !replanned.waiting.is_empty() {
            // Before others move up into the room that a request with a deadline may need.
            self.plan_waiting_later();
        }
    }

    /// Moves a reservation that has not begun from lost nodes of it to others, for the same time.
    /// If it can't be moved, it keeps its other nodes.
    pub(crate) fn hold_elsewhere(
        &mut self,
        now_s: u64,
        id: RequestId,
        lost: &[usize],
        replanned: &mut Replanned,
        budget: &SearchBudget,
    ) {
        let known = self.entries.get(&id);
        let entry = known.filter(|entry| entry.inside.is_some() && !entry.is_running);
        let Some((need, who)) = entry.map(|entry| (entry.need.clone(), entry.who.clone())) else {
            return;
        };
        let Some(old) = self.take_place(now_s, id) else {
            return;
        };
        let start_s = old.start_s.max(now_s);
        let found = self.search(&who, budget).exactly(&need, start_s);
        let is_moved = match found {
            Some(place) => {
                self.set_place(id, place);
                true
            }
            None => self.displace(now_s, id, start_s, replanned, budget),
        };
        if is_moved {
            replanned.moved.push(id);
            self.hold(id);
            return;
        }
        if !old.nodes.iter().any(|placed| self.nodes.is_usable(placed.node as usize)) {
            self.plan_again(now_s, id, start_s, replanned, budget);
            return;
        }
        self.set_place(id, old);
        replanned.shrunk.push(id);
        let Some(inside) = self.entries.get_mut(&id).and_then(|entry| entry.inside.as_mut()) else {
            return;
        };
        let names = lost.iter().map(|&node| self.machine.node_name(node));
        let places: Vec<usize> =
            names.filter_map(|name| inside.machine.node_by_name(name)).collect();
        inside.nodes_offline(now_s, &places);
    }

    /// Plans a request that lost its place: where it started, if it can, and otherwise as
    /// early as can be.
    pub(crate) fn plan_again(
        &mut self,
        now_s: u64,
        id: RequestId,
        start_s: u64,
        replanned: &mut Replanned,
        budget: &SearchBudget,
    ) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let is_reservation = entry.inside.is_some();
        if budget.is_empty() && !is_reservation {
            // At the end of the plan it would be before those that wait and may need the room.
            self.queues.wait(entry.turn(id));
            replanned.waiting.push(id);
            return;
        }
        self.nodes.renew_gaps(&self.machine, budget);
        let found = self.seek(now_s, entry, budget);
        let keeps_start = found.as_ref().is_some_and(|place| place.start_s <= start_s);
        let is_placed = match found {
            found if !keeps_start && self.displace(now_s, id, start_s, replanned, budget) => {
                drop(found);
                true
            }
            Some(place) => {
                self.set_place(id, place);
                true
            }
            None => {
                if let Some(entry) = self.entries.get(&id) {
                    self.queues.wait(entry.turn(id));
                }
                false
            }
        };
        if is_placed {
            replanned.moved.push(id)
        } else {
            replanned.waiting.push(id)
        }
        if is_reservation {
            // It holds other nodes now, of which nothing is planned.
            self.hold(id);
        }
    }

    /// Keeps the start of a request by moving less important ones: first one, then twice as many,
    /// and further doublings.
    fn displace(
        &mut self,
        now_s: u64,
        id: RequestId,
        start_s: u64,
        replanned: &mut Replanned,
        budget: &SearchBudget,
    ) -> bool {
        budget.take(self.entries.len());
        let Some(entry) = self.entries.get(&id).filter(|_| !budget.is_empty()) else {
            return false;
        };
        let (need, who, priority) = (entry.need.clone(), entry.who.clone(), entry.priority);
        let end_s = start_s + need.duration_s;
        let mut others: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, other)| !other.is_running && other.priority < priority)
            .filter(|(_, other)| {
                !matches!(other.when, When::Fixed { .. }) && other.inside.is_none()
            })
            .filter(|(_, other)| {
                other.over().is_some_and(|over| over.start < end_s && over.end > start_s)
            })
            .map(|(&of, other)| other.turn(of))
            .collect();
        // The least important first.
        others.sort_by(|one, other| other.cmp(one));
        others.truncate(MAX_DISPLACED);
        let mut out = Vec::new();
        let mut count = 1;
        while out.len() < others.len() {
            for &(_, _, other) in &others[out.len()..count.min(others.len())] {
                if let Some(place) = self.take_place(now_s, other) {
                    out.push((other, place));
                }
            }
            count *= 2;
            if let Some(place) = self.search(&who, budget).exactly(&need, start_s) {
                self.set_place(id, place);
                out.reverse();
                for (other, _) in out {
                    let Some(entry) = self.entries.get(&other) else {
                        continue;
                    };
                    match self.seek(now_s, entry, budget) {
                        Some(place) => {
                            self.set_place(other, place);
                            replanned.moved.push(other);
                        }
                        None => {
                            self.queues.wait(entry.turn(other));
                            replanned.waiting.push(other);
                        }
                    }
                }
                return true;
            }
        }
        for (other, place) in out {
            self.set_place(other, place);
        }
        false
    }

    /// A running request will have to start once more: it counts as planned, and loses its
    /// place when its node is taken out of use.
    pub fn start_again(&mut self, id: RequestId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            if let (true, Some(over)) = (entry.is_running, entry.over()) {
                entry.is_running = false;
                self.queues.plan(over.start, entry.turn(id));
            }
        }
        self.changed(id);
    }

    /// A request that was to run did not begin: it is planned anew, from now on. Where that
    /// can't be in its time it waits.
    pub fn not_started(&mut self, now_s: u64, id: RequestId) -> Replanned {
        self.start_again(id);
        let mut replanned = Replanned::default();
        if self.take_place(now_s, id).is_some() {
            let budget = SearchBudget::default();
            self.plan_again(now_s, id, now_s, &mut replanned, &budget);
            self.keep_order_after(now_s, &mut replanned, &budget);
            self.backfill.add(now_s);
        }
        replanned
    }

    /// Resumes after a time without service. Of the requests that should have started meanwhile,
    /// those that did start are returned. The others wait for another place.
    pub fn wake(&mut self, now_s: u64, did: &dyn Fn(RequestId) -> bool) -> Vec<RequestId> {
        let passed: Vec<_> = self.queues.passed(now_s).into_iter().filter(|&id| !did(id)).collect();
        for &id in &passed {
            // Nothing of it was used, so it gives back what has passed, too.
            let taken = self.take_place(0, id);
            if let (Some(_), Some(entry)) = (taken, self.entries.get(&id)) {
                self.queues.wait(entry.turn(id));
            }
        }
        self.keep_order_behind(now_s, &passed);
        let mut started = Vec::new();
        self.start(now_s.saturating_sub(1), &mut started);
        self.backfill.add(now_s);
        started
    }

    /// Changes a request that has not started: it is planned anew, or stays as it was.
    ///
    /// # Errors
    ///
    /// Why the new one is declined.
    pub fn alter(&mut self, now_s: u64, id: RequestId, request: &Request) -> Result<(), Refusal> {
        self.alter_within(now_s, id, request, &SearchBudget::default())
    }

    /// Changes a request as [`Self::alter`] does, by searches that share a budget. If it does not
    /// suffice to find a start that is not later, the request stays as it was.
    ///
    /// # Errors
    ///
    /// Why the new one is declined.
    pub fn alter_within(
        &mut self,
        now_s: u64,
        id: RequestId,
        request: &Request,
        budget: &SearchBudget,
    ) -> Result<(), Refusal> {
        let known = self.entries.get(&id).filter(|entry| entry.is_to_start(now_s));
        let entry = known.filter(|entry| entry.inside.is_none());
        let old = entry.ok_or(Refusal::NoSuchRequest(id))?.clone();
        let (backfill, submit_s) = (self.backfill, old.submit_s);
        let followers: Vec<RequestId> = self.followers(id).collect();
        self.remove(now_s, id);
        let next_id = std::mem::replace(&mut self.next_id, id);
        let mut planned = self.submit_within(now_s, request, budget);
        self.next_id = next_id;
        if planned.is_ok() && self.has_lost_by_cut(now_s, id, &old, budget) {
            self.remove(now_s, id);
            planned = Err(Refusal::GaveUp);
        }
        if let Err(refusal) = planned {
            self.insert(id, old);
            self.follow_again(id, &followers);
            self.backfill = backfill;
            return Err(refusal);
        }
        self.follow_again(id, &followers);
        if let Some(entry) = self.entries.get_mut(&id) {
            // It does not lose its turn, but keeps what decides of that.
            let before = entry.turn(id);
            entry.submit_s = submit_s;
            self.queues.change_turn(&before, entry.turn(id));
        }
        self.keep_order(now_s, &[id], budget);
        Ok(())
    }

    /// Whether a request starts later than before only because its search ended early: it asks for
    /// no more than before, and may start as early.
    fn has_lost_by_cut(
        &self,
        now_s: u64,
        id: RequestId,
        old: &Entry,
        budget: &SearchBudget,
    ) -> bool {
        let (Some(before), Some(entry)) = (&old.place, self.entries.get(&id)) else {
            return false;
        };
        let may_start = self.window(now_s, entry).is_some_and(|it| it.start <= before.start_s);
        let mut sums = entry.need.sums.iter();
        let is_no_more = entry.need.duration_s <= old.need.duration_s
            && sums.all(|&(of, amount)| amount <= amount_of(&old.need.sums, of));
        let is_later = entry.place.as_ref().is_none_or(|place| place.start_s > before.start_s);
        budget.is_cut() && may_start && is_no_more && is_later
    }

    /// Extends a running request if nobody else is planned there.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`] beyond `most_permille` of the first duration, and
    /// [`Refusal::NotLonger`] if others are planned, or the site does not allow it.
    pub fn extend(&mut self, id: RequestId, by_s: u64, most_permille: u64) -> Result<(), Refusal> {
        let by_s = self.policy.point_s(by_s);
        let known = self.entries.get(&id).filter(|entry| entry.is_running);
        let entry = known.ok_or(Refusal::NoSuchRequest(id))?;
        let (Some(over), Some(place)) = (entry.over(), entry.place.clone()) else {
            return Err(Refusal::NoSuchRequest(id));
        };
        let more_s = u128::from(entry.first_duration_s) * u128::from(most_permille) / 1000;
        let most_s =
            entry.first_duration_s.saturating_add(u64::try_from(more_s).unwrap_or(u64::MAX));
        let most_s = most_s.min(MOST_DURATION_S);
        if entry.need.duration_s.saturating_add(by_s) > most_s {
            return Err(Refusal::TooLong { most_s });
        }
        let tail = over.end..over.end + by_s;
        let is_free = by_node(&place.nodes).all(|on_node| {
            let node = on_node[0].node as usize;
            let free = self.nodes.free_over(&self.machine, node, &tail);
            let used = self.used_by(id).into_iter().find(|(of, _)| *of == node);
            let (Some(free), Some((_, used))) = (free, used) else {
                return false;
            };
            used.iter().zip(&free).all(|(used, free)| used <= free)
        });
        let (old, who) = (entry.need.clone(), entry.who.clone());
        let mut need = Need::clone(&old);
        need.duration_s += by_s;
        // Pools judge it by all of its duration.
        self.system.prepare(&need.sums, need.asked_s(), &who);
        let ask = self.system.ask(&place.sums, by_s, (&need.sums, need.asked_s()), &who);
        if !is_free || ask.next_start_s(by_s, tail.clone()) != Some(tail.start) {
            let causes = ask.causes(by_s, &tail).into_iter();
            let causes = causes.filter(|(_, start_s)| *start_s != Some(tail.start));
            let others = self.planned_over(id, &tail).map(Cause::Planned);
            return Err(Refusal::NotLonger(others.chain(causes.map(|(cause, _)| cause)).collect()));
        }
        self.nodes.book(&self.machine, &need, &place.nodes, tail.clone());
        self.book_as(&place.sums, (&old, &need), &who, &over);
        let asked = (&need.sums[..], need.asked_s());
        self.system.book(&place.sums, asked, &who, tail.clone(), true);
        self.system.throttles.book(&who, tail.clone(), true);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.need = Arc::new(need);
        }
        self.changed(id);
        self.keep_order(tail.start, &[id], &SearchBudget::default());
        Ok(())
    }

    /// Returns the first requests that have nodes of a request in that time: who stands in its way
    /// is among them.
    fn planned_over<'a>(
        &'a self,
        id: RequestId,
        over: &'a Range<u64>,
    ) -> impl Iterator<Item = RequestId> + 'a {
        let nodes = by_node(self.placed(id)).map(|on_node| on_node[0].node);
        let nodes: BTreeSet<u32> = nodes.collect();
        let others = self.entries.iter().filter(move |(&other, entry)| {
            let is_then = |of: Range<u64>| of.start < over.end && of.end > over.start;
            other != id
                && entry.over().is_some_and(is_then)
                && self.placed(other).iter().any(|placed| nodes.contains(&placed.node))
        });
        others.map(|(&other, _)| other).take(NAMED)
    }

    /// Moves the end of a running request to an earlier time. The rest is given back, and other
    /// requests get their turn.
    pub fn shorten(&mut self, now_s: u64, id: RequestId, end_s: u64) {
        let Some(entry) = self.entries.get(&id).filter(|entry| entry.is_running) else {
            return;
        };
        let (Some(over), Some(place)) = (entry.over(), entry.place.clone()) else {
            return;
        };
        let end_s = self.policy.point_s(end_s.max(now_s)).max(over.start + 1);
        if end_s >= over.end {
            return;
        }
        let (old, who) = (entry.need.clone(), entry.who.clone());
        let mut need = Need::clone(&old);
        let rest = end_s..over.end;
        self.nodes.revoke(&self.machine, &need, &place.nodes, rest.clone());
        let asked = (&need.sums[..], need.asked_s());
        self.system.book(&place.sums, asked, &who, rest.clone(), false);
        self.system.throttles.book(&who, rest, false);
        need.duration_s = end_s - over.start;
        need.margin_s = need.margin_s.min(need.duration_s - 1);
        self.system.prepare(&need.sums, need.asked_s(), &who);
        self.book_as(&place.sums, (&old, &need), &who, &(over.start..end_s));
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.need = Arc::new(need);
        }
        self.changed(id);
        self.backfill.add(end_s);
    }

    /// A provisional request is wanted: it stays.
    pub fn confirm(&mut self, id: RequestId) -> bool {
        let entry = self.entries.get_mut(&id);
        let provisional = entry.filter(|entry| matches!(entry.when, When::Provisional { .. }));
        let Some(entry) = provisional else {
            return false;
        };
        if let When::Provisional { until_s } = entry.when {
            self.queues.drop_no_more(until_s, id);
        }
        entry.when = When::BestEffort;
        self.changed(id);
        true
    }

    /// Returns the time at which the next provisional request must be dropped.
    pub fn next_drop_s(&self) -> Option<u64> {
        self.queues.next_drop_s()
    }

    /// Provisional requests that were not confirmed in time.
    pub fn unconfirmed(&self, now_s: u64) -> Vec<RequestId> {
        self.queues.unconfirmed(now_s)
    }

    /// Whether an agreement on an end is broken by the plan as it is, and by how much.
    pub fn violation_s(&self, id: RequestId) -> Option<u64> {
        let entry = self.entries.get(&id)?;
        let When::Agreement { end_s } = entry.when else {
            return None;
        };
        let late_s = match entry.over() {
            None => u64::MAX,
            Some(over) => over.end.saturating_sub(end_s),
        };
        (late_s > 0).then_some(late_s)
    }

    /// Returns the number of cores in use at a time.
    pub fn busy_cores(&self, time_s: u64) -> u64 {
        let free = self.system.free_at(NCPUS, time_s);
        self.system.available(NCPUS).saturating_sub(free)
    }
}
