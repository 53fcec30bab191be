// SPDX-License-Identifier: GPL-2.0
//! The planner: requests come, are planned, start and end (Keller, 5).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use pbs_site::{Mapping, Promise};

use crate::budget::SearchBudget;
use crate::choice::price;
use crate::counts::Counts;
use crate::followers::Followers;
use crate::machine::{Machine, ResourceId, NCPUS};
use crate::map::map_empty;
use crate::memory::Memory;
use crate::need::{amount_of, Kind, Need};
use crate::nodes::Nodes;
use crate::placed::{by_node, taken, Placed};
use crate::policy::Policy;
use crate::queues::Queues;
use crate::request::{Refusal, Request, State, When, MOST_DURATION_S};
use crate::rules::Rules;
use crate::search::{Place, Search};
use crate::sweep::Sweep;
use crate::system::System;
use crate::types::{Cause, RequestId, Turn, Who};
use crate::waiting::Waiting;

/// A request that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) need: Arc<Need>,
    pub(crate) who: Arc<Who>,
    pub(crate) when: When,
    pub(crate) priority: i64,
    pub(crate) submit_s: u64,
    /// Duration of the request before any change.
    pub(crate) first_duration_s: u64,
    pub(crate) is_of_array: bool,
    pub(crate) promise: Promise,
    /// Unfinished requests that must end before the request starts.
    pub(crate) after: Vec<RequestId>,
    /// Whether the request has no place until it is released.
    pub(crate) is_held: bool,
    pub(crate) is_running: bool,
    /// `None`: it waits.
    pub(crate) place: Option<Place>,
    /// Planner of the nodes of a reservation, for the requests in it.
    pub(crate) inside: Option<Box<Planner>>,
}

impl Entry {
    /// From its start to its end.
    pub(crate) fn over(&self) -> Option<Range<u64>> {
        let place = self.place.as_ref()?;
        Some(place.start_s..place.start_s + self.need.duration_s)
    }

    /// Whether it has not started, and need not by now.
    pub(crate) fn is_to_start(&self, now_s: u64) -> bool {
        let is_late = |place: &Place| place.start_s < now_s;
        !self.is_running && !self.place.as_ref().is_some_and(is_late)
    }

    /// Whether it keeps its place when a node of it is out of use: it runs there, or is a
    /// reservation, which has the other nodes.
    pub(crate) fn keeps_lost_nodes(&self) -> bool {
        self.is_running || self.inside.is_some()
    }

    /// Returns the order in which requests are planned anew: priority, time of submission, number.
    pub(crate) fn turn(&self, id: RequestId) -> Turn {
        (Reverse(self.priority), self.submit_s, id)
    }
}

/// Plans requests on a machine. Times are seconds, and never go back from call to call.
#[derive(Clone, Debug)]
pub struct Planner {
    pub(crate) machine: Arc<Machine>,
    pub(crate) nodes: Nodes,
    pub(crate) system: System,
    pub(crate) policy: Policy,
    pub(crate) entries: BTreeMap<RequestId, Entry>,
    pub(crate) next_id: RequestId,
    /// Requests that have not started.
    pub(crate) queues: Queues,
    pub(crate) backfill: Sweep,
    pub(crate) waiting: Waiting,
    /// Number of followers that were checked because a request changed that they follow.
    pub(crate) order_checks: u64,
    counts: Counts,
    pub(crate) followers: Followers,
    /// Requests that have not started, and whose places were told before the policy's time.
    told: HashSet<RequestId>,
    /// Changed requests, if they are recorded.
    pub(crate) changes: Option<BTreeSet<RequestId>>,
    /// Number of changes of the plan up to now.
    pub(crate) version: u64,
}

impl Planner {
    /// Creates a planner with an empty plan, all of whose nodes are in order.
    pub fn new(machine: Arc<Machine>, rules: Rules) -> Self {
        Self::with_policy(machine, rules, Policy::default())
    }

    /// Creates a planner that follows a policy.
    pub fn with_policy(machine: Arc<Machine>, rules: Rules, policy: Policy) -> Self {
        Self {
            policy,
            nodes: Nodes::new(&machine),
            system: System::new(&machine, rules),
            machine,
            entries: BTreeMap::new(),
            next_id: 1,
            queues: Queues::default(),
            backfill: Sweep::default(),
            waiting: Waiting::default(),
            order_checks: 0,
            counts: Counts::default(),
            followers: Followers::default(),
            told: HashSet::new(),
            changes: None,
            version: 0,
        }
    }

    /// The machine that is planned on.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Sets which requests keep their nodes because somebody was told their places, in addition to
    /// those that start soon ([`Policy::fixed_before_s`]).
    pub fn set_told(&mut self, told: HashSet<RequestId>) {
        self.told = told;
    }

    /// Whether a request that has a place keeps its nodes.
    pub(crate) fn is_told(&self, now_s: u64, id: RequestId, start_s: u64) -> bool {
        let fixed_s = self.policy.fixed_before_s;
        let is_soon = fixed_s.is_some_and(|fixed_s| start_s <= now_s.saturating_add(fixed_s));
        is_soon || self.told.contains(&id)
    }

    /// Plans a request behind and between those that there are; none of them moves.
    ///
    /// Where nothing but a node that is out of use keeps it from a place, it waits.
    ///
    /// # Errors
    ///
    /// Why it is declined; nothing is changed then.
    pub fn submit(&mut self, now_s: u64, request: &Request) -> Result<RequestId, Refusal> {
        self.submit_within(now_s, request, &SearchBudget::default())
    }

    /// Plans one of several requests of a call, whose searches share a budget; see
    /// [`Self::submit`]. If the budget does not suffice, the request is planned at the end of the
    /// plan, where others can be in its way no more, and may move up from there.
    ///
    /// # Errors
    ///
    /// Why it is declined; nothing is changed then.
    pub fn submit_within(
        &mut self,
        now_s: u64,
        request: &Request,
        budget: &SearchBudget,
    ) -> Result<RequestId, Refusal> {
        if request.duration_s.saturating_add(request.margin_s) > MOST_DURATION_S {
            return Err(Refusal::TooLong { most_s: MOST_DURATION_S });
        }
        let duration_s = self.policy.point_s(request.duration_s.max(1));
        let margin_s = self.policy.point_s(request.margin_s);
        let need = Need::new(&self.machine, &request.rset, duration_s)?.with_margin(margin_s);
        if !map_empty(&self.machine, &need, budget) {
            if !budget.is_exact() {
                return Err(Refusal::GaveUp);
            }
            return Err(crate::Impossible::NoMapping.into());
        }
        let who = Who::of(request);
        self.counts.check(self.system.rules(), now_s, &who, request.is_of_array)?;
        self.system.prepare(&need.sums, need.asked_s(), &who);
        self.system.throttles.prepare(&who);
        let mut entry = Entry {
            first_duration_s: need.duration_s,
            need: Arc::new(need),
            who: Arc::new(who),
            when: self.in_points(request.when),
            priority: request.priority,
            submit_s: now_s,
            is_of_array: request.is_of_array,
            promise: request.promise,
            after: self.unfinished(&request.after),
            is_held: request.is_held,
            is_running: false,
            place: None,
            inside: None,
        };
        self.nodes.renew_gaps(&self.machine, budget);
        entry.place = self.seek(now_s, &entry, budget);
        let (is_cut, is_exact) = (budget.is_cut(), budget.is_exact());
        if entry.place.is_none() && !self.may_wait(now_s, &entry, budget) {
            let refusal =
                if is_exact { self.refusal(now_s, &entry, budget) } else { Refusal::GaveUp };
            self.system.throttles.declined(&entry.who);
            return Err(refusal);
        }
        if let Some(place) = &entry.place {
            budget.take(self.nodes.booking_looks(&place.nodes));
        }
        let id = self.next_id;
        self.next_id += 1;
        self.insert(id, entry);
        if is_cut {
            self.backfill.add(now_s);
        }
        Ok(id)
    }

    /// A request without a place waits for a node, for what it follows, or until it is
    /// nearer.
    fn may_wait(&self, now_s: u64, entry: &Entry, budget: &SearchBudget) -> bool {
        let Some(window) = self.window(now_s, entry) else {
            return true;
        };
        if entry.when.is_bound() {
            return false;
        }
        self.is_defective()
            || self.policy.horizon_s.is_some()
                && self.search(&entry.who, budget).earliest(&entry.need, window).is_some()
    }

    /// A fixed start is a point of the plan.
    fn in_points(&self, when: When) -> When {
        match when {
            When::Fixed { start_s } => When::Fixed { start_s: self.policy.point_s(start_s) },
            other => other,
        }
    }

    fn unfinished(&self, of: &[RequestId]) -> Vec<RequestId> {
        let known = |id: &RequestId| self.entries.contains_key(id);
        of.iter().copied().filter(known).collect()
    }

    /// The best place for a request, by its type.
    pub(crate) fn seek(&self, now_s: u64, entry: &Entry, budget: &SearchBudget) -> Option<Place> {
        let need = &entry.need;
        budget.begin_search();
        budget.take(entry.after.len());
        let mut window = self.window(now_s, entry)?;
        if let (false, Some(horizon_s)) = (entry.when.is_bound(), self.policy.horizon_s) {
            let last_s = now_s.saturating_add(horizon_s);
            window.end = window.end.min(last_s.saturating_add(need.duration_s));
        }
        let search = self.search(&entry.who, budget);
        if entry.when.is_late() {
            search.latest(need, window)
        } else {
            search.earliest(need, window)
        }
    }

    /// Returns the reason for which there is no place.
    fn refusal(&self, now_s: u64, entry: &Entry, budget: &SearchBudget) -> Refusal {
        let need = &entry.need;
        if let When::Fixed { start_s } = entry.when {
            if start_s < now_s {
                return Refusal::Past { time_s: start_s };
            }
            let later = self.search(&entry.who, budget).earliest(need, start_s..u64::MAX);
            // The end of the plan is not the earliest place.
            let later = later.filter(|_| !budget.is_cut());
            return Refusal::NotThen { earliest_start_s: later.map(|place| place.start_s) };
        }
        if entry.when.is_bound() {
            let any = self.search(&entry.who, budget).earliest(need, now_s..u64::MAX);
            let any = any.filter(|_| !budget.is_cut());
            Refusal::NotInTime { earliest_end_s: any.map(|place| place.start_s + need.duration_s) }
        } else {
            let causes = self.causes(now_s, entry, budget).into_iter();
            let never = causes.filter(|(_, start_s)| start_s.is_none());
            Refusal::Never(never.map(|(cause, _)| cause).collect())
        }
    }

    fn count(&mut self, entry: &Entry, is_more: bool) {
        let rules = self.system.rules();
        self.counts.count(rules, &entry.who, entry.is_of_array, is_more);
        self.system.throttles.count(&entry.who, is_more);
    }

    /// Inserts a request, with its place.
    pub(crate) fn insert(&mut self, id: RequestId, mut entry: Entry) {
        self.changed(id);
        if let When::Provisional { until_s } = entry.when {
            self.queues.drop_at(until_s, id);
        }
        self.count(&entry, true);
        self.followers.add(id, &entry.after);
        match entry.place.take() {
            None => {
                let submit_s = entry.submit_s;
                self.queues.wait(entry.turn(id));
                self.entries.insert(id, entry);
                self.queues.check_again(submit_s, self.policy.horizon_s);
            }
            Some(place) => {
                self.entries.insert(id, entry);
                self.set_place(id, place);
            }
        }
    }

    /// Books a place for a request that has none (Keller, 5.3).
    pub(crate) fn set_place(&mut self, id: RequestId, place: Place) {
        self.changed(id);
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let over = place.start_s..place.start_s + entry.need.duration_s;
        self.nodes.book(&self.machine, &entry.need, &place.nodes, over.clone());
        let asked = (&entry.need.sums[..], entry.need.asked_s());
        self.system.book(&place.sums, asked, &entry.who, over.clone(), true);
        self.system.throttles.book(&entry.who, over, true);
        self.queues.stop_waiting(&entry.turn(id));
        if !entry.is_running {
            self.queues.plan(place.start_s, entry.turn(id));
        }
        entry.place = Some(place);
    }

    /// Revokes the place of a request, from a time on; returns it.
    pub(crate) fn take_place(&mut self, from_s: u64, id: RequestId) -> Option<Place> {
        self.changed(id);
        let entry = self.entries.get_mut(&id)?;
        let over = entry.over()?;
        let place = entry.place.take()?;
        let point_s = self.policy.point_s(from_s).min(over.end);
        // What it had counts no more, either.
        let had_s = point_s.saturating_sub(over.start);
        self.system.count_area(&place.sums, had_s, &entry.who, false);
        let over = over.start.max(point_s)..over.end;
        if !over.is_empty() {
            self.nodes.revoke(&self.machine, &entry.need, &place.nodes, over.clone());
            let asked = (&entry.need.sums[..], entry.need.asked_s());
            self.system.book(&place.sums, asked, &entry.who, over.clone(), false);
            self.system.throttles.book(&entry.who, over, false);
        }
        self.queues.unplan(place.start_s, &entry.turn(id));
        Some(place)
    }

    /// Returns the state of a request; `None` once it has ended.
    pub fn state(&self, id: RequestId) -> Option<State> {
        let entry = self.entries.get(&id)?;
        Some(match entry.over() {
            None => State::Waiting,
            Some(over) if entry.is_running => {
                State::Running { start_s: over.start, end_s: over.end }
            }
            Some(over) => State::Planned { start_s: over.start },
        })
    }

    /// All requests that have not ended, in the order of their numbers.
    pub fn requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.entries.keys().copied()
    }

    /// Returns the placement of a request's chunks.
    pub fn placed(&self, id: RequestId) -> &[Placed] {
        let place = self.entries.get(&id).and_then(|entry| entry.place.as_ref());
        place.map_or(&[], |place| &place.nodes)
    }

    /// Returns the amount of each resource that a request takes, node by node.
    pub fn used_by(&self, id: RequestId) -> Vec<(usize, Vec<u64>)> {
        let Some(entry) = self.entries.get(&id) else {
            return Vec::new();
        };
        let mut amounts = Vec::new();
        let nodes = by_node(self.placed(id)).map(|on_node| {
            taken(&self.machine, &entry.need, on_node, &mut amounts);
            let mut used = vec![0; self.machine.resources().len()];
            for &(resource, amount) in &amounts {
                if let Some(used) = used.get_mut(resource) {
                    *used += amount;
                }
            }
            (on_node[0].node as usize, used)
        });
        nodes.collect()
    }

    /// Returns the times at which the free amount of a resource changes, in order, each with the
    /// new amount.
    pub fn free(&self, resource: crate::ResourceId) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.system.free(resource)
    }

    /// Returns the available amount of a resource, free or not: avl (Keller, 4).
    pub fn available(&self, resource: crate::ResourceId) -> u64 {
        self.system.available(resource)
    }

    /// Returns the number of steps in the profile of free cores.
    pub fn steps(&self) -> usize {
        self.system.step_count(NCPUS)
    }

    /// Returns the start time of the next request.
    pub fn next_start_s(&self) -> Option<u64> {
        self.queues.next_start_s()
    }

    /// Starts what is to start by now, the earliest first. What starts late has its time
    /// from then on only if nobody else is in the way: so it is called in time.
    pub fn start(&mut self, now_s: u64, started: &mut Vec<RequestId>) {
        let budget = SearchBudget::default();
        while let Some(id) = self.queues.pop_start(now_s) {
            if let Some(entry) = self.entries.get_mut(&id) {
                self.queues.started(&entry.turn(id));
                entry.is_running = true;
                started.push(id);
                self.changed(id);
                self.choose_again(id, &budget);
            }
        }
    }

    /// Chooses the nodes of a starting request again, because better ones may have become free
    /// since it was planned. Keller maps some requests only now (5), which can fail; this step
    /// can't.
    fn choose_again(&mut self, id: RequestId, budget: &SearchBudget) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let (Some(over), need, who) = (entry.over(), entry.need.clone(), entry.who.clone()) else {
            return;
        };
        let is_held = entry.inside.is_some();
        let on_best = entry.place.as_ref().is_some_and(|place| {
            let nodes = place.nodes.iter().map(|placed| placed.node as usize);
            let classes = nodes.map(|node| self.machine.class_of[node]);
            classes.max() == need.kinds.iter().filter_map(Kind::cheapest).max()
        });
        if is_held
            || self.policy.fixed_before_s.is_some()
            || on_best && self.policy.mapping == Mapping::Cheapest
        {
            return;
        }
        let Some(old) = self.take_place(over.start, id) else {
            return;
        };
        let found = self.search(&who, budget).exactly(&need, over.start);
        let price = |place: &Place| {
            let (machine, nodes) = (&self.machine, &self.nodes);
            price(self.policy.mapping, machine, nodes, &place.nodes, &over)
        };
        let better = found.filter(|found| price(found) < price(&old));
        self.set_place(id, better.unwrap_or(old));
    }

    /// Returns the running requests whose time is over: they must be aborted (Keller, 5.4).
    pub fn overdue(&self, now_s: u64) -> Vec<RequestId> {
        let running = self.entries.iter().filter(|(_, entry)| entry.is_running);
        running
            .filter(|(_, entry)| entry.over().is_some_and(|over| over.end <= now_s))
            .map(|(&id, _)| id)
            .collect()
    }

    /// A request has ended or is not wanted any more: what it holds from now on is given
    /// back, and those planned to start later than it get their turn for a better place;
    /// see [`Self::backfill`]. Whether there was one.
    pub fn remove(&mut self, now_s: u64, id: RequestId) -> bool {
        let end_s = self.entries.get(&id).and_then(|entry| Some(entry.over()?.end));
        let place = self.take_place(now_s, id);
        let Some(entry) = self.entries.remove(&id) else {
            return false;
        };
        if let When::Provisional { until_s } = entry.when {
            self.queues.drop_no_more(until_s, id);
        }
        self.count(&entry, false);
        self.unfollow(id, &entry.after);
        match place {
            None => {
                self.queues.stop_waiting(&entry.turn(id));
            }
            // Who ends in time leaves nothing to others.
            Some(place) if end_s.is_some_and(|end_s| end_s > now_s) => {
                self.backfill.add(place.start_s);
            }
            Some(_) => {}
        }
        true
    }

    /// Returns the causes that keep a request from an earlier place, the latest first. With each
    /// cause goes the earliest start if no other cause existed; `None` means never. Causes that
    /// would let the request start at once are left out.
    pub fn why(&mut self, now_s: u64, id: RequestId) -> Vec<(Cause, Option<u64>)> {
        self.why_within(now_s, id, &SearchBudget::default())
    }

    /// Returns the causes as [`Self::why`] does. Where the budget does not suffice,
    /// [`Cause::Unsought`] is among them, and the nodes have no room before its time.
    pub fn why_within(
        &mut self,
        now_s: u64,
        id: RequestId,
        budget: &SearchBudget,
    ) -> Vec<(Cause, Option<u64>)> {
        let known = self.entries.get(&id).filter(|entry| entry.is_to_start(now_s));
        let Some(entry) = known.cloned() else {
            return Vec::new();
        };
        let version = self.version;
        // It does not stand in its own way.
        let place = self.take_place(now_s, id);
        let first_s = entry.when.window(now_s, 1).start;
        let mut causes = self.causes(now_s, &entry, budget);
        if let Some(place) = place {
            self.set_place(id, place);
        }
        self.version = version;
        causes.retain(|(of, start_s)| *start_s != Some(first_s) || *of == Cause::Unsought);
        causes.sort_by_key(|(_, start_s)| Reverse(start_s.unwrap_or(u64::MAX)));
        causes
    }

    fn causes(
        &self,
        now_s: u64,
        entry: &Entry,
        budget: &SearchBudget,
    ) -> Vec<(Cause, Option<u64>)> {
        let need = &entry.need;
        let window = entry.when.window(now_s, need.duration_s);
        let search = self.search(&entry.who, budget);
        let ask = search.ask(need, &need.sums);
        let mut causes = ask.causes(need.duration_s, &window);
        let first_s = window.start;
        let nodes_s = search.on_nodes(need, window);
        causes.push((Cause::Nodes, nodes_s));
        if budget.is_cut() {
            causes.push((Cause::Unsought, nodes_s));
        }
        if nodes_s != Some(first_s) {
            let some = |nodes: Vec<usize>| Some(nodes).filter(|nodes| !nodes.is_empty());
            let out = some(self.out_with_room(need)).map(Cause::Out);
            let defective = some(self.defective_with_room(need)).map(Cause::Defective);
            causes.extend(out.into_iter().chain(defective).map(|cause| (cause, None)));
        }
        causes.extend(entry.after.iter().map(|&before| {
            let over = self.entries.get(&before).and_then(Entry::over);
            (Cause::After(before), over.map(|over| over.end))
        }));
        causes
    }

    /// Nodes that are out of use, and have as much in all as a chunk of a request needs.
    fn out_with_room(&self, need: &Need) -> Vec<usize> {
        let has_room = |node: usize| {
            let class = self.machine.class_of[node];
            need.may_be_on(node) && need.kinds.iter().any(|kind| kind.fits[class].is_some())
        };
        let nodes = 0..self.machine.node_count();
        nodes.filter(|&node| !self.nodes.is_usable(node) && has_room(node)).collect()
    }

    /// Nodes in use that could host more chunks of a request if no part of them were defective.
    fn defective_with_room(&self, need: &Need) -> Vec<usize> {
        let lacks_room = |node: usize| {
            let defect = self.nodes.defect(node);
            let class = self.machine.class_of[node];
            let mut fits = need.kinds.iter().filter_map(|kind| kind.fits[class].as_ref());
            fits.any(|fit| {
                let most_left = |&(resource, amount): &(ResourceId, u64)| {
                    let has = self.machine.class(node).has[resource];
                    has.saturating_sub(amount_of(defect, resource)) / amount
                };
                let most = fit.amounts.iter().map(most_left).min();
                // A node with a defect is never free as a whole.
                need.exclusive || most.is_some_and(|most| most < fit.most)
            })
        };
        let nodes = 0..self.machine.node_count();
        let has_defect =
            |&node: &usize| self.nodes.is_usable(node) && !self.nodes.defect(node).is_empty();
        let nodes = nodes.filter(|&node| has_defect(&node) && need.may_be_on(node));
        nodes.filter(|&node| lacks_room(node)).collect()
    }

    /// Returns the memory use of the plan, without the plans of reservations.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        self.system.count_memory(&mut memory);
        self.nodes.count_memory(&mut memory);
        memory
    }

    /// Forgets what was; the plan from then on is as before.
    pub fn forget_before(&mut self, time_s: u64) {
        self.nodes.forget_before(time_s);
        self.system.forget_before(time_s);
    }

    pub(crate) fn search<'a>(&'a self, who: &'a Who, budget: &'a SearchBudget) -> Search<'a> {
        Search {
            machine: &self.machine,
            nodes: &self.nodes,
            system: &self.system,
            who,
            policy: &self.policy,
            whole: None,
            budget,
        }
    }

    /// Whether a node, or a part of one, is out of use.
    fn is_defective(&self) -> bool {
        self.nodes.has_defects()
            || (0..self.machine.node_count()).any(|node| !self.nodes.is_usable(node))
    }
}
