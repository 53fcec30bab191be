// SPDX-License-Identifier: GPL-2.0
//! The pass (A.4.4): what could start is placed, what is placed at this time starts, and
//! everybody is told.
//!
//! 1. Requests of which the duration is over end; what was to follow them follows.
//! 2. What is not booked yet is placed, on a copy of what is free: pre-allocations and what is
//!    not inside one on what nobody has for good, then what is inside.
//! 3. What is left is divided among the preemptible requests.
//! 4. What is placed now is booked.
//! 5. Who keeps preemptible nodes for too long loses its session.
//! 6. Node numbers are given out, and views and starts are told.
//!
//! Takes O(log n) of n requests for each request that waits, each one of it that does not fit
//! where it is tried, and each change of what is booked.

use std::collections::{BTreeMap, BTreeSet};

use pbs_view::{find_shape, segments};

use crate::holes::Holes;
use crate::place::{find_first, find_in_both, parts, Anchor, Placed};
use crate::preemptible::{grant, wants_of};
use crate::rms::rebook;
use crate::session::Tree;
use crate::share::Shares;
use crate::{AppId, Event, Kind, Notice, Order, Relation, Rms, Session};

/// The trees of some sessions, in the order in which they are placed.
type Trees = Vec<(AppId, Tree)>;

impl Rms {
    /// Answers all messages since the last one, and what has happened by itself: what
    /// applications are to be told, in this order.
    ///
    /// Whoever calls it keeps to [`Rms::next_pass_ns`]; one too many does no harm.
    pub fn pass(&mut self, now_ns: u64) -> Vec<Notice> {
        self.advance(now_ns);
        let now_ns = self.now_ns;
        self.passed_ns = Some(self.now_ns);
        for app in self.marked(|marks| marks.first_end_ns <= now_ns || marks.waits) {
            self.run_out(app);
            while self.follow(app) {
                // What started late may be over already.
                self.run_out(app);
            }
        }
        self.is_due = false;
        for profile in &mut self.profiles {
            profile.forget_before(self.now_ns);
        }

        let before = std::mem::take(&mut self.shares);
        let waiting = self.marked(|marks| marks.waits);
        let (firm, preemptible) = self.trees(&waiting);
        let mut changed = self.place(&firm, &preemptible);
        changed.append(&mut self.grant_all(&preemptible));
        self.book(&changed);
        for app in waiting {
            self.mark(app);
        }
        self.watch();
        let started = self.hand_out();

        let mut notices = std::mem::take(&mut self.notices);
        notices.extend(self.changed_views(&before));
        notices.extend(started);
        notices
    }

    /// Starts what is to start with a request that has started by itself: as the successor of
    /// another one. Was there something?
    fn follow(&mut self, app: AppId) -> bool {
        let next = |session: &Session| {
            session.requests.iter().find_map(|request| {
                let Relation::Coalloc(parent) = request.ask.relation else {
                    return None;
                };
                let parent = &session.requests[session.place(parent)?];
                let is_same = parent.ask.kind == request.ask.kind;
                let is_late = is_same && request.started_ns.is_none();
                Some((request.id, parent.started_ns.filter(|_| is_late)?))
            })
        };
        let mut is_any = false;
        while let Some((id, start_ns)) = self.sessions.get(&app).and_then(next) {
            is_any = true;
            let started = self.change(app, |session, _| {
                if let Some(place) = session.place(id) {
                    session.requests[place].start(start_ns);
                }
                Ok(())
            });
            if started.is_err() {
                let mut refused = Vec::new();
                if let Some(session) = self.sessions.get_mut(&app) {
                    session.withdraw(id, &mut refused);
                }
                self.tell_refused(app, refused);
            }
        }
        is_any
    }

    /// What has to be placed: what is not preempted, in the order of the policy, and what is.
    fn trees(&mut self, waiting: &[AppId]) -> (Trees, Trees) {
        let mut trees = Trees::new();
        for &app in waiting {
            let Some(session) = self.sessions.get_mut(&app) else {
                continue;
            };
            for planned in session.planned.iter_mut().filter(|steps| !steps.is_zero()) {
                *planned = pbs_view::Steps::default();
            }
            let spans = session.spans();
            trees.extend(session.trees(&spans).into_iter().map(|tree| (app, tree)));
            for (request, span) in session.requests.iter_mut().zip(spans) {
                let is_started = request.started_ns.is_some();
                request.scheduled_ns = span.map(|span| span.start).filter(|_| !is_started);
            }
        }
        let root = |it: &(AppId, Tree)| &self.sessions[&it.0].requests[it.1.root];
        if self.policy.order == Order::Request {
            trees.sort_by_key(|tree| root(tree).id);
        }
        let is_firm = |tree: &(AppId, Tree)| root(tree).ask.kind < Kind::Preemptible;
        trees.into_iter().partition(is_firm)
    }

    /// Places what is not preempted, and divides what is left among the others. Says of which
    /// sessions something starts now.
    fn place(&mut self, firm: &Trees, preemptible: &Trees) -> BTreeSet<AppId> {
        let (clusters, now_ns) = (self.sizes.len(), self.now_ns);
        let limit = self.policy.limits.nodes;
        let claimants = self.marked(|marks| marks.is_preemptible);
        let mut placed: BTreeMap<AppId, Vec<Placed>> = BTreeMap::new();
        let mut changed = BTreeSet::new();
        // What is placed may be placed elsewhere next time: it is not booked.
        let mut plan = self.profiles.clone();
        let sizes = self.sizes.iter().map(|&nodes| u64::from(nodes));
        let mut holes: Vec<Holes> = sizes.map(Holes::new).collect();
        let is_inside = |it: &&(AppId, Tree)| it.1.is_inside(&self.sessions[&it.0]);
        let (inside, outside): (Vec<_>, Vec<_>) = firm.iter().partition(is_inside);
        let outside = outside.into_iter().map(|it| (it, false));
        let inside = inside.into_iter().map(|it| (it, true));
        for ((app, tree), is_inside) in outside.chain(inside) {
            let Some(session) = self.sessions.get_mut(app) else {
                continue;
            };
            let of_app = placed.entry(*app);
            let of_app = of_app.or_insert_with(|| vec![Placed::default(); clusters]);
            let shape = segments(&parts(session, tree));
            let anchor = Anchor::of(session, tree, now_ns);
            let begin_ns = anchor.earliest_ns(now_ns).and_then(|from_ns| {
                let nobodys = &plan[..clusters];
                let both = session.booked.iter().zip(of_app.iter());
                if is_inside {
                    let inside: Vec<_> = both.map(|(b, p)| p.inside(b, now_ns)).collect();
                    find_shape(&inside, &shape, from_ns)
                } else if limit == u64::MAX {
                    find_first(nobodys, &mut holes, &shape, from_ns, now_ns)
                } else {
                    let own: Vec<_> = both.map(|(b, p)| p.below(limit, b, now_ns)).collect();
                    find_in_both(nobodys, &own, &shape, from_ns)
                }
            });
            let Some(begin_ns) = begin_ns.filter(|&ns| anchor.allows(ns)) else {
                continue;
            };
            let is_firm = session.requests[tree.root].ask.kind == Kind::NonPreemptible;
            for segment in &shape {
                let start_ns = begin_ns + segment.offset_ns;
                let over = start_ns..start_ns.saturating_add(segment.duration_ns);
                of_app[segment.profile].add(is_firm, over.clone(), segment.nodes);
                if !is_inside && begin_ns > now_ns {
                    session.planned[segment.profile].add(over.clone(), segment.nodes);
                }
                let taken = [
                    (!is_inside).then_some(segment.profile),
                    is_firm.then_some(clusters + segment.profile),
                ];
                for profile in taken.into_iter().flatten() {
                    let booked = plan[profile].subtract(over.clone(), segment.nodes);
                    debug_assert_eq!(booked, Ok(()), "there was a hole");
                }
            }
            if tree.schedule(session, begin_ns, now_ns) {
                changed.insert(*app);
            }
        }

        let left = &plan[clusters..];
        let waiting = by_app(preemptible);
        for cluster in 0..clusters {
            let wants = claimants.iter().filter_map(|&app| {
                let session = self.sessions.get(&app)?;
                let waiting = waiting.get(&app).map_or(&[][..], |trees| trees);
                let wants = wants_of(session, waiting, cluster, left, now_ns)?;
                Some((app, wants))
            });
            let (nodes, is_strict) = (&left[cluster], self.policy.is_strict);
            let shares = Shares::new(nodes, wants.collect(), now_ns, is_strict);
            self.shares.push(shares);
        }
        changed
    }

    /// Says what preemptible requests get that have started or can. Says of which sessions
    /// something starts.
    fn grant_all(&mut self, trees: &Trees) -> BTreeSet<AppId> {
        let waiting = by_app(trees);
        let apps = self.marked(|marks| marks.is_preemptible && (marks.waits || marks.is_open));
        let (sessions, shares, now_ns) = (&mut self.sessions, &self.shares, self.now_ns);
        let granted = apps.into_iter().filter(|app| {
            let waiting = waiting.get(app).map_or(&[][..], |trees| trees);
            let session = sessions.get_mut(app);
            session.is_some_and(|session| grant(*app, session, waiting, shares, now_ns))
        });
        granted.collect()
    }

    /// Books what starts now; what is placed later remains a plan.
    fn book(&mut self, changed: &BTreeSet<AppId>) {
        for app in changed {
            if let Some(session) = self.sessions.get_mut(app) {
                let booked = session.book(self.sizes.len());
                let done = rebook(&mut self.profiles, &session.booked, &booked, self.now_ns);
                debug_assert_eq!(done, Ok(()), "what was placed has room");
                session.booked = booked;
                self.changed.insert(*app);
            }
        }
    }

    /// Ends the sessions that have kept preemptible nodes for longer than the grace.
    fn watch(&mut self) {
        let (now_ns, grace_ns) = (self.now_ns, self.policy.release_grace_ns);
        let mut violations = Vec::new();
        for app in self.marked(|marks| marks.is_preemptible) {
            let Some(session) = self.sessions.get_mut(&app) else {
                continue;
            };
            for (cluster, shares) in self.shares.iter().enumerate() {
                let held = session.preemptible_held(cluster);
                let allowed = shares.at(app, now_ns);
                let before = session.overstays[cluster];
                let since_ns = before.map_or(now_ns, |(_, since_ns)| since_ns);
                let over = (held > allowed).then(|| (held - allowed, since_ns));
                if over != before {
                    session.account_until(now_ns);
                    session.overstays[cluster] = over;
                }
                if over.is_some() && now_ns.saturating_sub(since_ns) >= grace_ns {
                    violations.push((app, cluster, held, allowed));
                }
            }
        }
        for (app, cluster, held, allowed) in violations {
            // Of two clusters the first will do.
            if let Some(killed) = self.close(app) {
                let event = Event::Violation {
                    cluster,
                    held,
                    allowed,
                    killed,
                };
                self.notices.push(Notice { app, event });
            }
        }
    }

    /// Gives out node numbers (A.5): to what is not preempted first, and to nobody what an
    /// earlier one still waits for.
    fn hand_out(&mut self) -> Vec<Notice> {
        let mut started = Vec::new();
        let mut kept = vec![0; self.sizes.len()];
        let open = self.marked(|marks| marks.is_open);
        for is_preemptible in [false, true] {
            for &app in &open {
                let Some(session) = self.sessions.get_mut(&app) else {
                    continue;
                };
                // What it has until now.
                session.account_until(self.now_ns);
                let waiting = session.requests.iter_mut().filter(|request| {
                    let is_started = request.started_ns.is_some() && !request.is_notified;
                    is_started && (request.ask.kind == Kind::Preemptible) == is_preemptible
                });
                for request in waiting {
                    let (pool, lacks) = (&mut self.pools[request.ask.cluster], request.lacks());
                    let kept = &mut kept[request.ask.cluster];
                    if pool.free().saturating_sub(*kept) < lacks {
                        *kept += lacks;
                        continue;
                    }
                    let choice = self.policy.choice;
                    let taken = pool.take(lacks, &request.ask.preferred, choice);
                    request.nodes.extend(taken);
                    request.is_notified = true;
                    self.changed.insert(app);
                    let event = Event::Started {
                        request: request.id,
                        nodes: request.nodes.clone(),
                    };
                    started.push(Notice { app, event });
                }
                if let Some(marks) = self.marks.get_mut(&app) {
                    let mut requests = session.requests.iter();
                    marks.is_open = requests.any(|r| r.started_ns.is_some() && !r.is_notified);
                }
            }
        }
        started
    }
}

fn by_app(trees: &Trees) -> BTreeMap<AppId, Vec<&Tree>> {
    let mut all: BTreeMap<AppId, Vec<&Tree>> = BTreeMap::new();
    for (app, tree) in trees {
        all.entry(*app).or_default().push(tree);
    }
    all
}
