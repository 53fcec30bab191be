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
//! 6. Views are told, and node numbers given out: starts are told.
//!
//! Takes O(log n) of n requests for each request that waits, each one of it that does not fit
//! where it is tried, and each change of what is booked.

use std::collections::BTreeSet;

use pbs_profile::Profile;
use pbs_view::{find_shape, segments, Steps};

use crate::holes::Holes;
use crate::place::{find_first, find_in_both, parts, without, Anchor, Placed};
use crate::preemptible::{grant, wants_of};
use crate::rms::rebook;
use crate::session::Tree;
use crate::share::Shares;
use crate::{AppId, Event, Kind, Notice, Order, Rms, Session};

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
        for app in self
            .sessions
            .marked(|marks| marks.first_end_ns <= now_ns || marks.is_late)
        {
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
        let (mut changed, preemptible) = self.place();
        changed.append(&mut self.grant_all(&preemptible));
        self.book(&changed);
        self.watch();

        let mut notices = std::mem::take(&mut self.notices);
        self.changed_views(&before, &mut notices);
        self.hand_out(&mut notices);
        debug_assert!(
            self.sessions.is_marked(),
            "what a session has to do is known"
        );
        notices
    }

    /// Starts what is late. Was there something?
    fn follow(&mut self, app: AppId) -> bool {
        let mut is_any = false;
        while let Some((id, start_ns)) = self.sessions.get(app).and_then(Session::first_late) {
            is_any = true;
            let started = self.change(app, |session, _| {
                if let Some(place) = session.place(id) {
                    session.requests[place].start(start_ns);
                }
                Ok(())
            });
            if started.is_err() {
                let mut refused = Vec::new();
                if let Some(session) = self.sessions.get_mut(app) {
                    session.withdraw(id, &mut refused);
                }
                self.sessions.mark(app);
                self.tell_refused(app, refused);
            }
        }
        is_any
    }

    /// Places what is not preempted, and divides what is left among the others. Says of which
    /// sessions something starts now, and what has to be placed of the others.
    fn place(&mut self) -> (BTreeSet<AppId>, Trees) {
        let (clusters, now_ns) = (self.sizes.len(), self.now_ns);
        let limit = self.policy.limits.nodes;
        let waiting = self.sessions.iter_mut().filter(|it| it.2.waits);
        let mut waiting: Vec<Waiting> = waiting
            .map(|(app, session, _)| Waiting {
                app,
                session,
                placed: Vec::new(),
            })
            .collect();
        let (firm, preemptible) = trees(&mut waiting, self.policy.order);
        // On what a session has itself it depends only what is inside, and what a limit clips.
        for (place, _, is_inside) in &firm {
            if *is_inside || limit < u64::MAX {
                waiting[*place].placed.resize(clusters, Placed::default());
            }
        }
        let mut changed = BTreeSet::new();
        // What is placed may be placed elsewhere next time: it is not booked.
        let mut plan = self.profiles[..clusters].to_vec();
        let mut taken = vec![Vec::new(); clusters];
        let sizes = self.sizes.iter().map(|&nodes| u64::from(nodes));
        let mut holes: Vec<Holes> = sizes.map(Holes::new).collect();
        for (place, tree, is_inside) in &firm {
            let Waiting {
                app,
                session,
                placed,
            } = &mut waiting[*place];
            let shape = segments(&parts(session, tree));
            let anchor = Anchor::of(session, tree, now_ns);
            let begin_ns = anchor.earliest_ns(now_ns).and_then(|from_ns| {
                let both = session.booked.iter().zip(placed.iter());
                if *is_inside {
                    let inside: Vec<_> = both.map(|(b, p)| p.inside(b, now_ns)).collect();
                    find_shape(&inside, &shape, from_ns)
                } else if limit == u64::MAX {
                    find_first(&plan, &mut holes, &shape, from_ns, now_ns)
                } else {
                    let own: Vec<_> = both.map(|(b, p)| p.below(limit, b, now_ns)).collect();
                    find_in_both(&plan, &own, &shape, from_ns)
                }
            });
            let Some(begin_ns) = begin_ns.filter(|&ns| anchor.allows(ns)) else {
                continue;
            };
            let is_firm = session.requests[tree.root].ask.kind == Kind::NonPreemptible;
            for segment in &shape {
                let start_ns = begin_ns + segment.offset_ns;
                let over = start_ns..start_ns.saturating_add(segment.duration_ns);
                if let Some(placed) = placed.get_mut(segment.profile) {
                    placed.add(is_firm, over.clone(), segment.nodes);
                }
                if !is_inside && begin_ns > now_ns {
                    session.planned[segment.profile].add(over.clone(), segment.nodes);
                }
                if !is_inside {
                    let booked = plan[segment.profile].subtract(over.clone(), segment.nodes);
                    debug_assert_eq!(booked, Ok(()), "there was a hole");
                }
                if is_firm {
                    taken[segment.profile].push((over, segment.nodes));
                }
            }
            if tree.schedule(session, begin_ns, now_ns) {
                changed.insert(*app);
            }
        }

        let preemptible = preemptible.into_iter();
        let preemptible: Trees = preemptible
            .map(|(place, tree)| (waiting[place].app, tree))
            .collect();
        let all = self.profiles[clusters..].iter().zip(&taken);
        let left: Vec<Profile> = all
            .map(|(profile, taken)| without(profile, taken))
            .collect();
        for (cluster, nodes) in left.iter().enumerate() {
            let mut waiting = by_app(&preemptible);
            let claimants = self.sessions.iter().filter(|it| it.2.is_preemptible);
            let wants = claimants.filter_map(|(app, session, _)| {
                let wants = wants_of(session, waiting(app), cluster, &left, now_ns)?;
                Some((app, wants))
            });
            let shares = Shares::new(nodes, wants.collect(), now_ns, self.policy.is_strict);
            self.shares.push(shares);
        }
        (changed, preemptible)
    }

    /// Says what preemptible requests get that have started or can. Says of which sessions
    /// something starts.
    fn grant_all(&mut self, trees: &Trees) -> BTreeSet<AppId> {
        let mut waiting = by_app(trees);
        let (shares, now_ns) = (&self.shares, self.now_ns);
        let all = self.sessions.iter_mut();
        let open =
            all.filter(|(_, _, marks)| marks.is_preemptible && (marks.waits || marks.is_open));
        let granted = open.filter_map(|(app, session, _)| {
            grant(app, session, waiting(app), shares, now_ns).then_some(app)
        });
        granted.collect()
    }

    /// Books what starts now; what is placed later remains a plan.
    fn book(&mut self, changed: &BTreeSet<AppId>) {
        for app in changed {
            if let Some(session) = self.sessions.get_mut(*app) {
                let booked = session.book(self.sizes.len());
                let done = rebook(&mut self.profiles, &session.booked, &booked, self.now_ns);
                debug_assert_eq!(done, Ok(()), "what was placed has room");
                session.booked = booked;
                self.changed.insert(*app);
                self.sessions.mark(*app);
            }
        }
    }

    /// Ends the sessions that have kept preemptible nodes for longer than the grace.
    fn watch(&mut self) {
        let (now_ns, grace_ns) = (self.now_ns, self.policy.release_grace_ns);
        let mut violations = Vec::new();
        for (app, session, _) in self.sessions.iter_mut().filter(|it| it.2.is_preemptible) {
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
    fn hand_out(&mut self, notices: &mut Vec<Notice>) {
        let mut kept = vec![0; self.sizes.len()];
        for is_preemptible in [false, true] {
            for (app, session, marks) in self.sessions.iter_mut().filter(|it| it.2.is_open) {
                if is_preemptible && !marks.is_preemptible {
                    continue;
                }
                // What it has until now.
                session.account_until(self.now_ns);
                let mut is_open = false;
                for request in &mut session.requests {
                    if request.started_ns.is_none() || request.is_notified {
                        continue;
                    }
                    if (request.ask.kind == Kind::Preemptible) != is_preemptible {
                        is_open = true;
                        continue;
                    }
                    let (pool, lacks) = (&mut self.pools[request.ask.cluster], request.lacks());
                    let kept = &mut kept[request.ask.cluster];
                    if pool.free().saturating_sub(*kept) < lacks {
                        *kept += lacks;
                        is_open = true;
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
                    notices.push(Notice { app, event });
                }
                marks.is_open = is_open;
            }
        }
    }
}

/// A session of which a request has not started.
struct Waiting<'a> {
    app: AppId,
    session: &'a mut Session,
    /// What has been placed of it on each cluster; none where nothing depends on that.
    placed: Vec<Placed>,
}

/// A tree that has to be placed, with the place of its session among those that wait.
type Firm = (usize, Tree, bool);

/// What has to be placed: what is not preempted, in the order of the policy and first what is
/// not inside a pre-allocation, and what is preempted, in the order of connection.
fn trees(waiting: &mut [Waiting], order: Order) -> (Vec<Firm>, Vec<(usize, Tree)>) {
    let (mut firm, mut preemptible) = (Vec::new(), Vec::new());
    for (place, Waiting { session, .. }) in waiting.iter_mut().enumerate() {
        session.planned.iter_mut().for_each(Steps::clear);
        let spans = session.spans();
        for tree in session.trees(&spans) {
            let kind = session.requests[tree.root].ask.kind;
            if kind == Kind::Preemptible {
                preemptible.push((place, tree));
            } else {
                let is_inside = tree.is_inside(session);
                firm.push((place, tree, is_inside));
            }
        }
        for (request, span) in session.requests.iter_mut().zip(spans) {
            let is_started = request.started_ns.is_some();
            request.scheduled_ns = span.map(|span| span.start).filter(|_| !is_started);
        }
    }
    match order {
        Order::Connection => firm.sort_by_key(|it| it.2),
        Order::Request => {
            firm.sort_by_key(|it| (it.2, waiting[it.0].session.requests[it.1.root].id));
        }
    }
    (firm, preemptible)
}

/// The trees of each session, if asked for in the order of connection.
fn by_app<'a>(trees: &'a Trees) -> impl FnMut(AppId) -> &'a [(AppId, Tree)] + use<'a> {
    let mut rest = &trees[..];
    move |app| {
        rest = &rest[rest.partition_point(|tree| tree.0 < app)..];
        let count = rest.iter().take_while(|tree| tree.0 == app).count();
        let of_app;
        (of_app, rest) = rest.split_at(count);
        of_app
    }
}
