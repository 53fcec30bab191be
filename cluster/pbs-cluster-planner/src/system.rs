// SPDX-License-Identifier: GPL-2.0
//! Amounts of the cluster as a whole, and the part available to a user over time: Keller's sRS,
//! usdRS and uRS (4.1, 5.1).
//!
//! Keller makes the uRS for each request. He adds the sRS and the amounts that pools keep free; the
//! minimum of limit and own use restricts the result. Here each of the three is a profile that
//! bookings update, and a search asks all of them. Nothing is copied for a request.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use pbs_profile::{find_first_hole, Need as Hole, Profile, FOREVER};
use pbs_site::{Whom, MOST_POOLS};

use crate::account::{Account, Exceeded};
use crate::budget::PROFILE_LOOKS;
use crate::machine::{Machine, ResourceId};
use crate::memory::Memory;
use crate::need::amount_of;
use crate::rules::{Limit, OfRequest, Pool, Rules};
use crate::soft::SoftHole;
use crate::throttle::Throttles;
use crate::types::{Cause, Holder, Sums, Who, NOTHING};

/// The sRS as those see it whom these pools do not let in.
#[derive(Clone, Debug)]
struct View {
    resource: ResourceId,
    /// The pools, by their place in the rules, as bits.
    pools: u64,
    profile: Profile,
}

/// A [`Cause`] that nobody has asked for yet.
#[derive(Clone, Copy, Debug)]
enum Why<'a> {
    Used(ResourceId),
    Pool(&'a str),
    Items(&'a Whom, ResourceId),
    Duration(&'a Whom, ResourceId),
    Area(&'a Whom, ResourceId),
    Locked(&'a Whom),
    Throttle(u64),
}

impl Why<'_> {
    fn cause(self) -> Cause {
        match self {
            Self::Used(resource) => Cause::Used(resource),
            Self::Pool(name) => Cause::Pool(name.into()),
            Self::Items(whom, resource) => Cause::Items(whom.clone(), resource),
            Self::Duration(whom, resource) => Cause::Duration(whom.clone(), resource),
            Self::Area(whom, resource) => Cause::Area(whom.clone(), resource),
            Self::Locked(whom) => Cause::Locked(whom.clone()),
            Self::Throttle(most) => Cause::Throttle(most),
        }
    }
}

/// Conditions of a search on the cluster: profiles with the amounts needed, and blocked times.
pub(crate) struct Ask<'a> {
    holes: Vec<(Why<'a>, Hole<'a>)>,
    soft: Vec<(Why<'a>, SoftHole<'a>)>,
    blocked: Vec<(Why<'a>, &'a [Range<u64>])>,
    pub(crate) horizon_s: u64,
    /// Looks of the questions that were asked.
    looks: Cell<usize>,
}

/// The profiles of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct System {
    /// Available amount of each resource: maxAvl without defective items.
    available: Vec<u64>,
    /// sRS, by resource.
    profiles: Vec<Profile>,
    rules: Rules,
    views: Vec<View>,
    /// Use by the users whom a pool admits, for each pool that counts it.
    inside: Vec<Profile>,
    /// Accounts of the users and groups that have submitted requests, by resource; `None`: no
    /// limit.
    accounts: HashMap<Holder, Vec<Option<Account>>>,
    /// Sets of requests of which only some may run at the same time.
    pub(crate) throttles: Throttles,
    names: Vec<String>,
}

impl System {
    pub(crate) fn new(machine: &Machine, rules: Rules) -> Self {
        let available = machine.totals.clone();
        let free = available.iter().map(|free| Profile::new(NOTHING + free));
        Self {
            profiles: free.collect(),
            available,
            inside: vec![Profile::new(0); rules.pools.len()],
            rules,
            views: Vec::new(),
            accounts: HashMap::new(),
            throttles: Throttles::default(),
            names: machine.resources().iter().map(|of| of.name.clone()).collect(),
        }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Creates the accounts of a consumer: one for each resource that users know and on which the
    /// consumer has a limit.
    fn make_accounts(&mut self, holder: &Holder) {
        let resources = 0..self.names.len();
        let account = |of| Account::new(&self.rules, &holder.whom, of, self.available[of]);
        let accounts = resources.map(account);
        let accounts = accounts.collect();
        self.accounts.insert(holder.clone(), accounts);
    }

    /// The pools that keep a resource from a request, as bits.
    fn closed(&self, resource: ResourceId, asked: &Sums, duration_s: u64, who: &Who) -> u64 {
        let amounts = |name: &str| {
            let resource = self.names.iter().position(|known| known == name)?;
            Some(amount_of(asked, resource))
        };
        let facts =
            OfRequest { amounts: &amounts, duration_s, user: &who.user.name, group: &who.group };
        let pools = self.rules.pools.iter().enumerate().take(MOST_POOLS);
        let is_asked = amount_of(asked, resource) > 0;
        let keeps = |pool: &Pool| {
            pool.resource == resource
                && (is_asked || !pool.for_askers)
                && !pool.access.holds(&facts)
        };
        pools.filter(|(_, pool)| keeps(pool)).fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Makes the profiles that a request needs, if there are none: of its consumers, and of
    /// what it is kept from, by what it asked for.
    pub(crate) fn prepare(&mut self, asked: &Sums, duration_s: u64, who: &Who) {
        if !self.rules.limits.is_empty() {
            for holder in who.holders() {
                // A group that no rule names leaves nothing: anybody may invent one.
                let is_limited = self.rules.whose(&holder.whom).next().is_some();
                if is_limited && !self.accounts.contains_key(holder) {
                    self.make_accounts(holder);
                }
            }
        }
        let of_pools: Vec<_> = self.rules.pools.iter().map(|pool| pool.resource).collect();
        for resource in of_pools {
            let pools = self.closed(resource, asked, duration_s, who);
            let is_it = |view: &View| (view.resource, view.pools) == (resource, pools);
            if pools == 0 || self.views.iter().any(is_it) {
                continue;
            }
            let mut profile = self.profiles[resource].clone();
            for (index, pool) in self.rules.pools.iter().enumerate().take(MOST_POOLS) {
                if pools & (1 << index) == 0 {
                    continue;
                }
                let free = pool.free.of(self.available[resource]);
                for valid in &pool.valid {
                    for (part, kept) in kept(&self.inside[index], pool.share, free, valid.clone()) {
                        let done = profile.subtract(part, kept);
                        debug_assert_eq!(done, Ok(()));
                    }
                }
            }
            self.views.push(View { resource, pools, profile });
        }
    }

    /// ⊕: so much of each resource is used, or given back. `need` and `who` are the
    /// request's: a pool that counts its users knows them by that.
    pub(crate) fn book(
        &mut self,
        sums: &Sums,
        asked: (&Sums, u64),
        who: &Who,
        over: Range<u64>,
        is_more: bool,
    ) {
        let span_s = over.end - over.start;
        for &(resource, amount) in sums {
            // Sums of all requests are checked against the cluster, which is far smaller
            // than what is between.
            let change = |profile: &mut Profile, over: Range<u64>| {
                let done = if is_more {
                    profile.subtract(over, amount)
                } else {
                    profile.add(over, amount)
                };
                debug_assert_eq!(done, Ok(()));
            };
            change(&mut self.profiles[resource], over.clone());
            for view in &mut self.views {
                if view.resource == resource {
                    change(&mut view.profile, over.clone());
                }
            }
            for holder in who.holders() {
                let account =
                    self.accounts.get_mut(holder).and_then(|of| of.get_mut(resource)?.as_mut());
                let Some(account) = account else { continue };
                for allowance in &mut account.allowances {
                    change(&mut allowance.profile, over.clone());
                }
                account.count_area(amount, span_s, is_more);
            }
            if self.rules.pools.iter().any(|pool| pool.share && pool.resource == resource) {
                let closed = self.closed(resource, asked.0, asked.1, who);
                self.count_inside(resource, closed, amount, over.clone(), is_more);
            }
        }
    }

    /// Adds the items and seconds of an accepted request to its consumers' accounts, or removes
    /// them.
    pub(crate) fn count_area(&mut self, sums: &Sums, span_s: u64, who: &Who, is_more: bool) {
        for holder in who.holders() {
            let Some(accounts) = self.accounts.get_mut(holder) else {
                continue;
            };
            for &(resource, amount) in sums {
                if let Some(Some(account)) = accounts.get_mut(resource) {
                    account.count_area(amount, span_s, is_more);
                }
            }
        }
    }

    /// Pools that count their users keep less free for them.
    fn count_inside(
        &mut self,
        resource: ResourceId,
        closed: u64,
        amount: u64,
        over: Range<u64>,
        is_more: bool,
    ) {
        for (index, pool) in self.rules.pools.iter().enumerate().take(MOST_POOLS) {
            if pool.resource != resource || !pool.share || closed & (1 << index) != 0 {
                continue;
            }
            let free = pool.free.of(self.available[resource]);
            let before = self.inside[index].clone();
            let done = if is_more {
                self.inside[index].add(over.clone(), amount)
            } else {
                self.inside[index].subtract(over.clone(), amount)
            };
            debug_assert_eq!(done, Ok(()));
            for view in &mut self.views {
                if view.resource != resource || view.pools & (1 << index) == 0 {
                    continue;
                }
                for valid in &pool.valid {
                    let part = valid.start.max(over.start)..valid.end.min(over.end);
                    for (part, kept) in kept(&before, true, free, part.clone()) {
                        let done = view.profile.add(part, kept);
                        debug_assert_eq!(done, Ok(()));
                    }
                    for (part, kept) in kept(&self.inside[index], true, free, part) {
                        let done = view.profile.subtract(part, kept);
                        debug_assert_eq!(done, Ok(()));
                    }
                }
            }
        }
    }

    /// Returns all conditions on a request, or on a part of one, that takes these sums for a
    /// duration. Pools judge the request by what it asks for in all: the requested sums are smaller
    /// if nodes are taken whole. [`Self::prepare`] must be called before.
    pub(crate) fn ask<'a>(
        &'a self,
        sums: &Sums,
        duration_s: u64,
        asked: (&Sums, u64),
        who: &'a Who,
    ) -> Ask<'a> {
        let mut ask = Ask {
            holes: Vec::new(),
            soft: Vec::new(),
            blocked: Vec::new(),
            horizon_s: self.rules.horizon_s,
            looks: Cell::new(0),
        };
        let is_locked = |whom: &Whom| who.holders().iter().any(|holder| holder.whom == *whom);
        let locks = self.rules.locks.iter().filter(|(whom, _)| is_locked(whom));
        if let Some((most, hole)) = self.throttles.hole(who) {
            ask.holes.push((Why::Throttle(most), hole));
        }
        ask.blocked.extend(locks.map(|(whom, times)| (Why::Locked(whom), &times[..])));
        for &(resource, amount) in sums {
            let mut hole = |cause, profile| {
                let amount = NOTHING + amount;
                ask.holes.push((cause, Hole { profile, amount }));
            };
            hole(Why::Used(resource), &self.profiles[resource]);
            let pools = if self.rules.pools.is_empty() {
                0
            } else {
                self.closed(resource, asked.0, asked.1, who)
            };
            if pools != 0 {
                let is_it = |view: &&View| (view.resource, view.pools) == (resource, pools);
                if let Some(view) = self.views.iter().find(is_it) {
                    let named = &self.rules.pools[pools.trailing_zeros() as usize].name;
                    hole(Why::Pool(named), &view.profile);
                }
            }
            for holder in who.holders() {
                let whom = &holder.whom;
                let account = self.accounts.get(holder).and_then(|of| of.get(resource)?.as_ref());
                let Some(account) = account else { continue };
                for allowance in &account.allowances {
                    let cause = Why::Items(whom, resource);
                    let Some(permille) = allowance.soft_permille else {
                        hole(cause, &allowance.profile);
                        continue;
                    };
                    let available = self.available[resource];
                    let usable = u128::from(available) * u128::from(permille.min(1000)) / 1000;
                    let kept = available - u64::try_from(usable).unwrap_or(available);
                    let soft = SoftHole {
                        allowance: &allowance.profile,
                        amount: NOTHING + amount,
                        free: &self.profiles[resource],
                        free_amount: NOTHING + kept + amount,
                    };
                    ask.soft.push((cause, soft));
                }
                for (exceeded, valid) in account.exceeded(amount, duration_s) {
                    let cause = match exceeded {
                        Exceeded::Duration => Why::Duration(whom, resource),
                        Exceeded::Area => Why::Area(whom, resource),
                    };
                    ask.blocked.push((cause, valid));
                }
            }
        }
        ask
    }

    /// Defective items are not available, from a time on; or are again.
    pub(crate) fn set_defect(&mut self, has: &Sums, from_s: u64, is: bool) {
        for &(resource, amount) in has {
            let (profile, available) =
                (&mut self.profiles[resource], &mut self.available[resource]);
            let done = if is {
                profile.subtract(from_s..FOREVER, amount)
            } else {
                profile.add(from_s..FOREVER, amount)
            };
            debug_assert_eq!(done, Ok(()));
            let before = *available;
            *available = if is { available.saturating_sub(amount) } else { *available + amount };
            let amounts = (before, *available);
            self.set_defect_of_views(resource, amounts, from_s);
            self.set_defect_of_accounts(resource, amounts, from_s);
        }
    }

    /// Items of a closed node are not available for a time; or are again. Limits that are parts of
    /// what is available stay the same, since the node is still there.
    pub(crate) fn set_closed(&mut self, has: &Sums, over: Range<u64>, is: bool) {
        for &(resource, amount) in has {
            let views = self.views.iter_mut().filter(|view| view.resource == resource);
            let views = views.map(|view| &mut view.profile);
            for profile in std::iter::once(&mut self.profiles[resource]).chain(views) {
                let done = if is {
                    profile.subtract(over.clone(), amount)
                } else {
                    profile.add(over.clone(), amount)
                };
                debug_assert_eq!(done, Ok(()));
            }
        }
    }

    /// Limits may be parts of what is available.
    fn set_defect_of_accounts(&mut self, resource: ResourceId, amounts: (u64, u64), from_s: u64) {
        let is_part = |limit: &Limit| limit.items.is_some_and(|items| items.permille.is_some());
        if !self.rules.limits.iter().any(is_part) {
            return;
        }
        for (holder, accounts) in &mut self.accounts {
            if let Some(Some(account)) = accounts.get_mut(resource) {
                account.set_available(&self.rules, (&holder.whom, resource), amounts, from_s);
            }
        }
    }

    /// Views lose what the cluster loses. What their pools keep free may be a part of what is
    /// available.
    fn set_defect_of_views(
        &mut self,
        resource: ResourceId,
        (before, available): (u64, u64),
        from_s: u64,
    ) {
        for view in self.views.iter_mut().filter(|view| view.resource == resource) {
            let profile = &mut view.profile;
            let done = if available < before {
                profile.subtract(from_s..FOREVER, before - available)
            } else {
                profile.add(from_s..FOREVER, available - before)
            };
            debug_assert_eq!(done, Ok(()));
            for (index, pool) in self.rules.pools.iter().enumerate().take(MOST_POOLS) {
                let (old, new) = (pool.free.of(before), pool.free.of(available));
                if view.pools & (1 << index) == 0 || old == new {
                    continue;
                }
                for valid in &pool.valid {
                    let part = valid.start.max(from_s)..valid.end;
                    for (part, kept) in kept(&self.inside[index], pool.share, old, part.clone()) {
                        let done = profile.add(part, kept);
                        debug_assert_eq!(done, Ok(()));
                    }
                    for (part, kept) in kept(&self.inside[index], pool.share, new, part) {
                        let done = profile.subtract(part, kept);
                        debug_assert_eq!(done, Ok(()));
                    }
                }
            }
        }
    }

    /// Returns the available amount of a resource: avl (Keller, 4).
    pub(crate) fn available(&self, resource: ResourceId) -> u64 {
        self.available[resource]
    }

    /// Returns the free amount of a resource at a time; a negative amount counts as zero.
    pub(crate) fn free_at(&self, resource: ResourceId, time_s: u64) -> u64 {
        self.profiles[resource].value_at(time_s).saturating_sub(NOTHING)
    }

    /// The times at which what is free of a resource changes, with what is free from then.
    pub(crate) fn free(&self, resource: ResourceId) -> impl Iterator<Item = (u64, u64)> + '_ {
        let steps = self.profiles[resource].iter();
        steps.map(|step| (step.from, step.value.saturating_sub(NOTHING)))
    }

    pub(crate) fn step_count(&self, resource: ResourceId) -> usize {
        self.profiles[resource].step_count()
    }

    pub(crate) fn count_memory(&self, memory: &mut Memory) {
        let views = self.views.iter().map(|view| &view.profile);
        for of in self.profiles.iter().chain(views).chain(&self.inside) {
            let bytes = size_of::<Profile>() + of.heap_bytes();
            memory.system.count(of.step_count(), bytes);
        }
        for account in self.accounts.values().flatten().flatten() {
            account.count_memory(memory);
        }
        self.throttles.count_memory(memory);
    }

    pub(crate) fn forget_before(&mut self, time_s: u64) {
        let views = self.views.iter_mut().map(|view| &mut view.profile);
        let accounts = self.accounts.values_mut().flatten().flatten();
        let allowances = accounts.flat_map(|of| of.allowances.iter_mut().map(|of| &mut of.profile));
        for profile in self.profiles.iter_mut().chain(views).chain(allowances) {
            profile.forget_before(time_s);
        }
        for profile in &mut self.inside {
            profile.forget_before(time_s);
        }
        self.throttles.forget_before(time_s);
    }
}

impl Ask<'_> {
    /// The first time in the window from which on the request may run for its duration.
    pub(crate) fn next_start_s(&self, duration_s: u64, window: Range<u64>) -> Option<u64> {
        let holes: Vec<_> = self.holes.iter().map(|(_, hole)| *hole).collect();
        let window = window.start..window.end.min(self.horizon_s);
        let mut time_s = window.start;
        loop {
            self.looks.set(self.looks.get() + PROFILE_LOOKS);
            time_s = find_first_hole(&holes, duration_s, time_s..window.end)?;
            let soft = self.soft.iter();
            let soft_s = soft.map(|(_, hole)| hole.next_start_s(duration_s, time_s, &self.looks));
            let free_s = soft_s.fold(self.unblocked_s(duration_s, time_s), u64::max);
            if free_s == time_s {
                return Some(time_s);
            }
            if free_s == FOREVER {
                return None;
            }
            time_s = free_s;
        }
    }

    /// The first time from then on at which no limit that is exceeded is overlapped.
    fn unblocked_s(&self, duration_s: u64, mut time_s: u64) -> u64 {
        loop {
            let before_s = time_s;
            for (_, blocked) in &self.blocked {
                let at = blocked.partition_point(|blocked| blocked.end <= time_s);
                if let Some(blocked) = blocked.get(at) {
                    if blocked.start < time_s.saturating_add(duration_s) {
                        time_s = blocked.end;
                    }
                }
            }
            if before_s == time_s {
                return time_s;
            }
        }
    }

    /// Returns the time of the next change in any of the conditions.
    pub(crate) fn next_change_s(&self, after_s: u64) -> u64 {
        let ends = self.holes.iter().map(|(_, hole)| {
            let mut steps = hole.profile.steps_from(after_s);
            steps.next().map_or(FOREVER, |step| step.until)
        });
        let soft = self.soft.iter().map(|(_, hole)| hole.next_change_s(after_s));
        ends.chain(soft).min().unwrap_or(FOREVER)
    }

    /// Returns the time from which on no profile changes.
    pub(crate) fn tail_s(&self) -> u64 {
        let soft = self.soft.iter().flat_map(|(_, hole)| [hole.allowance, hole.free]);
        let profiles = self.holes.iter().map(|(_, hole)| hole.profile).chain(soft);
        let last = profiles.filter_map(|profile| profile.steps_from(FOREVER - 1).next());
        last.map(|step| step.from).max().unwrap_or(0)
    }

    /// Returns the looks of the questions since the last call.
    pub(crate) fn take_looks(&self) -> usize {
        self.looks.take()
    }

    /// Returns the number of times at which something changes of what is asked, about.
    pub(crate) fn change_count(&self) -> usize {
        let holes = self.holes.iter().map(|(_, hole)| hole.profile.step_count());
        let blocked = self.blocked.iter().map(|(_, blocked)| blocked.len());
        let soft = self.soft.iter().map(|(_, hole)| hole.change_count());
        holes.chain(blocked).chain(soft).sum()
    }

    /// The times at which something changes of what is asked.
    pub(crate) fn changes(&self) -> impl Iterator<Item = u64> + '_ {
        let holes = self.holes.iter();
        let steps = holes.flat_map(|(_, hole)| hole.profile.iter().map(|step| step.from));
        let blocked = self.blocked.iter().flat_map(|(_, blocked)| blocked.iter());
        let soft = self.soft.iter().flat_map(|(_, hole)| hole.changes());
        steps.chain(blocked.map(|blocked| blocked.start)).chain(soft)
    }

    /// Returns each cause with the earliest start if no other cause existed; `None` means never.
    pub(crate) fn causes(&self, duration_s: u64, window: &Range<u64>) -> Vec<(Cause, Option<u64>)> {
        let window = window.start..window.end.min(self.horizon_s);
        let holes = self.holes.iter().map(|(why, hole)| {
            let start_s = find_first_hole(&[*hole], duration_s, window.clone());
            (why.cause(), start_s)
        });
        let alone = |soft, blocked| {
            let looks = Cell::new(0);
            let alone = Ask { holes: Vec::new(), soft, blocked, horizon_s: self.horizon_s, looks };
            alone.next_start_s(duration_s, window.clone())
        };
        let soft = self.soft.iter().map(|&(why, hole)| {
            let start_s = alone(vec![(why, hole)], Vec::new());
            (why.cause(), start_s)
        });
        let blocked = self.blocked.iter().map(|&(why, blocked)| {
            let start_s = alone(Vec::new(), vec![(why, blocked)]);
            (why.cause(), start_s)
        });
        holes.chain(soft).chain(blocked).collect()
    }
}

/// Returns the amounts that a pool keeps free over time: all, or the rest that its users leave.
fn kept(inside: &Profile, share: bool, free: u64, over: Range<u64>) -> Vec<(Range<u64>, u64)> {
    if over.is_empty() {
        return Vec::new();
    }
    if !share {
        return vec![(over, free)];
    }
    let steps = inside.steps_from(over.start);
    steps
        .take_while(|step| step.from < over.end)
        .map(|step| {
            let part = step.from.max(over.start)..step.until.min(over.end);
            (part, free.saturating_sub(step.value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::machine::{NodeSpec, Resource};
    use crate::request::Request;
    use crate::rules::Limited;
    use pbs_site::Share;

    /// A group that no rule names leaves neither accounts nor counts.
    #[test]
    fn invented_groups_leave_nothing() {
        let ncpus = Resource { name: "ncpus".into(), job_wide: None };
        let machine = Machine::new(vec![ncpus], &[NodeSpec::new("a", vec![8])]);
        let limit = |whom| Limit {
            whom,
            of: Limited::Resource(0),
            items: Some(Share { least: Some(4), permille: None }),
            soft_permille: None,
            duration_s: None,
            area_s: None,
            valid: std::iter::once(0..FOREVER).collect(),
        };
        let limits = vec![limit(Whom::Everyone), limit(Whom::Group("known".into()))];
        let mut system = System::new(&machine, Rules { limits, ..Rules::default() });
        let mut counts = Counts::default();
        for group in ["known", "x1", "x2", "x3"] {
            let request = Request {
                user: "anna".into(),
                group: group.into(),
                ..Request::new("ncpus=1".parse().unwrap(), 10)
            };
            let who = Who::of(&request);
            system.prepare(&[(0, 1)], 10, &who);
            for is_more in [true, false] {
                counts.count(system.rules(), &who, false, is_more);
            }
        }
        let mut names: Vec<_> = system.accounts.keys().map(|of| of.whom.to_string()).collect();
        names.sort();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(counts.is_empty());
    }
}
