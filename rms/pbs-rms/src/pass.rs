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
//! where it is tried, and each change of what is booked. The tries of requests that hang together
//! are counted ([`QUERIES`]): beyond that, their search goes on in the next pass.

use std::collections::BTreeSet;
use std::ops::Range;

use pbs_profile::view::{find_shape_within, segments, Segment, Steps};
use pbs_profile::Profile;

use crate::holes::Holes;
use crate::place::{find_first, find_in_both, without, Anchor, Found, Home, Placed};
use crate::preemptible::{grant, wants_of};
use crate::rms::rebook;
use crate::session::{parts, Marks, Search, Tree};
use crate::share::Shares;
use crate::{AppId, Event, Kind, Notice, PlacementOrder, RequestId, Rms, Session};

/// Queries of profiles in a pass, for trees of several requests and where a session has a limit.
/// One tree may take as many queries as the square of its requests, for each change of what is
/// booked.
const QUERIES: u64 = 200_000;
/// Queries of the search for one tree: an eighth of those that are left, and no more than this.
const TREE_QUERIES: u64 = 20_000;
/// Queries that each search has, beside two for each of its segments: none stands still.
const LEAST_QUERIES: u64 = 64;

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
        for app in self.sessions.marked(|marks| marks.first_end_ns <= now_ns || marks.is_late) {
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
        let mut violations = Vec::new();
        changed.append(&mut self.grant_all(&preemptible, &mut violations));
        self.book(&changed);
        self.end_all(violations);

        let mut notices = std::mem::take(&mut self.notices);
        self.changed_views(&before, &mut notices);
        self.hand_out(&mut notices);
        debug_assert!(self.sessions.is_marked(), "what a session has to do is known");
        notices
    }

    /// Starts what is late. Returns whether there was something.
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
        let (clusters, now_ns, order) = (self.sizes.len(), self.now_ns, self.policy.order);
        let sizes = self.sizes.iter().map(|&nodes| u64::from(nodes));
        let mut plan = Plan {
            now_ns,
            limit: self.policy.limits.nodes,
            profiles: self.profiles[..clusters].to_vec(),
            holes: sizes.map(Holes::new).collect(),
            taken: vec![Vec::new(); clusters],
            changed: BTreeSet::new(),
            queries: QUERIES,
            is_unfinished: false,
        };
        let waiting = self.sessions.iter_mut().filter(|it| it.2.waits);
        let mut waiting: Vec<Waiting> = waiting.map(Waiting::new).collect();
        let (mut firm, mut preemptible) = (Vec::new(), Trees::new());
        for place in 0..waiting.len() {
            waiting[place].trees(place, &mut firm, &mut preemptible);
            if order == PlacementOrder::Connection {
                // While its memory is at hand.
                plan.place(&mut waiting, &mut firm);
                waiting[place].mark();
            }
        }
        if order == PlacementOrder::Request {
            plan.place(&mut waiting, &mut firm);
            waiting.iter_mut().for_each(Waiting::mark);
        }

        // The searches go on, also if no message arrives.
        self.is_due |= plan.is_unfinished;

        let all = self.profiles[clusters..].iter().zip(&plan.taken);
        let left: Vec<Profile> = all.map(|(profile, taken)| without(profile, taken)).collect();
        for (cluster, nodes) in left.iter().enumerate() {
            let mut waiting = by_app(&preemptible);
            let claimants = self.sessions.iter().filter(|it| it.2.is_preemptible);
            let wants = claimants.filter_map(|(app, session, _)| {
                let wants = wants_of(session, waiting(app), cluster, now_ns)?;
                Some((app, wants))
            });
            let shares = Shares::new(nodes, wants.collect(), now_ns, self.policy.is_strict);
            self.shares.push(shares);
        }
        (plan.changed, preemptible)
    }

    /// Determines the nodes that preemptible requests get which have started or can start, and the
    /// sessions that have kept preemptible nodes for longer than the grace. Returns the sessions in
    /// which a request starts.
    fn grant_all(&mut self, trees: &Trees, violations: &mut Vec<Violation>) -> BTreeSet<AppId> {
        let mut changed = BTreeSet::new();
        let mut waiting = by_app(trees);
        let mut wants: Vec<_> = self.shares.iter().map(Shares::wants_in_order).collect();
        let mut taken = vec![0; self.shares.len()];
        let (now_ns, grace_ns) = (self.now_ns, self.policy.release_grace_ns);
        for (app, session, marks) in self.sessions.iter_mut().filter(|it| it.2.is_preemptible) {
            let is_granted = marks.waits || marks.is_open_preemptible;
            let waiting = waiting(app);
            if is_granted && grant(app, session, waiting, &self.shares, &mut taken, now_ns) {
                changed.insert(app);
            }
            for (cluster, shares) in self.shares.iter().enumerate() {
                let held = session.preemptible_held(cluster);
                let allowed = shares.at_with(wants[cluster](app), app, now_ns);
                let over = held.saturating_sub(allowed);
                if over != session.overstays[cluster].nodes() {
                    session.account_until(now_ns);
                    session.overstays[cluster].ask_for(over, now_ns);
                }
                let since_ns = session.overstays[cluster].since_ns();
                if since_ns.is_some_and(|ns| now_ns.saturating_sub(ns) >= grace_ns) {
                    violations.push((app, cluster, held, allowed));
                }
            }
        }
        // The nodes of requests that were not divided for are divided by the next pass.
        self.is_due |= taken.iter().any(|&nodes| nodes > 0);
        changed
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
    fn end_all(&mut self, violations: Vec<Violation>) {
        for (app, cluster, held, allowed) in violations {
            // Of two clusters the first will do.
            if let Some(killed) = self.close(app) {
                let event = Event::Violation { cluster, held, allowed, killed };
                self.notices.push(Notice { app, event });
            }
        }
    }

    /// Gives out node numbers (A.5): to what is not preempted first, and to nobody what an
    /// earlier one still waits for.
    fn hand_out(&mut self, notices: &mut Vec<Notice>) {
        let mut kept = vec![0; self.sizes.len()];
        for is_preemptible in [false, true] {
            for (app, session, marks) in self.sessions.iter_mut() {
                let is_open = if is_preemptible {
                    &mut marks.is_open_preemptible
                } else {
                    &mut marks.is_open
                };
                if !std::mem::take(is_open) {
                    continue;
                }
                // What it has until now.
                session.account_until(self.now_ns);
                let waiting = session.requests.iter_mut().filter(|request| {
                    let is_open = !request.is_notified && request.started_ns.is_some();
                    is_open && (request.ask.kind == Kind::Preemptible) == is_preemptible
                });
                for request in waiting {
                    let (pool, lacks) = (&mut self.pools[request.ask.cluster], request.lacks());
                    let kept = &mut kept[request.ask.cluster];
                    if pool.free().saturating_sub(*kept) < lacks {
                        *kept += lacks;
                        *is_open = true;
                        continue;
                    }
                    let choice = self.policy.choice;
                    let taken = pool.take(lacks, &request.ask.preferred, choice);
                    request.nodes.extend(taken);
                    request.is_notified = true;
                    self.changed.insert(app);
                    let event =
                        Event::Started { request: request.id, nodes: request.nodes.clone() };
                    notices.push(Notice { app, event });
                }
            }
        }
    }
}

/// A session that keeps so many nodes of a cluster where fewer are allowed.
type Violation = (AppId, usize, u64, u64);

/// A session of which a request has to be placed.
struct Waiting<'a> {
    app: AppId,
    session: &'a mut Session,
    marks: &'a mut Marks,
    /// Placed requests on each cluster; empty if nothing depends on them.
    placed: Vec<Placed>,
}

/// A tree that is not preempted.
struct Firm {
    /// The place of its session among those that wait.
    place: usize,
    tree: Tree,
    /// Nodes from which it has its own. Pre-allocations are placed before what uses them.
    home: Home,
    id: RequestId,
}

impl<'a> Waiting<'a> {
    fn new((app, session, marks): (AppId, &'a mut Session, &'a mut Marks)) -> Self {
        Self { app, session, marks, placed: Vec::new() }
    }

    /// Collects the trees that are not placed yet: non-preemptible ones and preemptible ones.
    fn trees(&mut self, place: usize, firm: &mut Vec<Firm>, preemptible: &mut Trees) {
        let session = &mut *self.session;
        session.planned.iter_mut().for_each(Steps::clear);
        let spans = session.spans();
        for tree in session.trees(&spans) {
            let root = &session.requests[tree.root];
            if root.ask.kind == Kind::Preemptible {
                preemptible.push((self.app, tree));
            } else {
                firm.push(Firm { place, id: root.id, home: tree.home(session), tree });
            }
        }
        self.marks.waits = false;
        for (request, span) in session.requests.iter_mut().zip(spans) {
            let is_started = request.started_ns.is_some();
            self.marks.waits |= !is_started && span.is_none();
            request.scheduled_ns = span.map(|span| span.start).filter(|_| !is_started);
        }
    }

    /// Notes whether its view is made of something else now.
    fn mark(&mut self) {
        self.marks.is_stale = self.session.is_stale();
    }
}

/// Placements of a pass. They are not booked: the next pass may choose others.
struct Plan {
    now_ns: u64,
    /// Number of nodes of a cluster that a session may take from others.
    limit: u64,
    /// Nodes of each cluster that remain free.
    profiles: Vec<Profile>,
    holes: Vec<Holes>,
    /// Nodes of each cluster that are taken from preemptible requests.
    taken: Vec<Vec<(Range<u64>, u64)>>,
    /// Sessions in which a request starts.
    changed: BTreeSet<AppId>,
    /// Queries that are left.
    queries: u64,
    /// Whether the search for a tree is to go on in the next pass.
    is_unfinished: bool,
}

impl Plan {
    /// Places trees in the order of submission, first those that need nodes of the cluster.
    fn place(&mut self, waiting: &mut [Waiting], firm: &mut Vec<Firm>) {
        firm.sort_unstable_by_key(|it| (it.home == Home::Inside, it.id));
        if self.limit < u64::MAX || firm.iter().any(|it| it.home != Home::Outside) {
            // Else nothing depends on what a session has itself.
            for it in firm.iter() {
                let placed = &mut waiting[it.place].placed;
                placed.resize(self.profiles.len(), Placed::default());
            }
        }
        for Firm { place, tree, home, .. } in firm.drain(..) {
            self.place_one(&mut waiting[place], &tree, home);
        }
    }

    fn place_one(&mut self, waiting: &mut Waiting, tree: &Tree, home: Home) {
        let (now_ns, limit) = (self.now_ns, self.limit);
        let shape = segments(&parts(waiting.session, tree));
        let both = waiting.session.booked.iter().zip(&waiting.placed);
        let own: Vec<Profile> = match home {
            Home::Inside => both.clone().map(|(b, p)| p.inside(b, now_ns)).collect(),
            _ if limit == u64::MAX => Vec::new(),
            Home::Outside => both.clone().map(|(b, p)| p.below(limit, b, now_ns)).collect(),
            Home::Beyond => both.clone().map(|(b, p)| p.below_in_all(limit, b, now_ns)).collect(),
        };
        let all = (home == Home::Beyond).then(|| {
            let both = both.map(|(b, p)| p.inside(b, now_ns)).zip(&self.profiles);
            // There are not so many nodes that they could not be counted.
            let sum =
                |(inside, free): (Profile, &Profile)| Profile::sum(&inside, free).unwrap_or(inside);
            both.map(sum).collect::<Vec<_>>()
        });
        let (profiles, holes) = (all.as_ref().unwrap_or(&self.profiles), &mut self.holes);
        let find = |from_ns, queries: &mut u64| {
            if home == Home::Inside {
                find_shape_within(&own, &shape, from_ns, queries)
            } else if limit < u64::MAX {
                find_in_both(profiles, &own, &shape, from_ns, queries)
            } else if home == Home::Beyond {
                find_shape_within(profiles, &shape, from_ns, queries)
            } else {
                find_first(profiles, holes, &shape, from_ns, now_ns, queries)
            }
        };
        let begin_ns = match Anchor::of(waiting.session, tree, now_ns) {
            Anchor::At(ns) => ns.filter(|&ns| fits_at(find, &shape, ns)),
            Anchor::None => {
                let most = (self.queries / 8).min(TREE_QUERIES);
                let root = waiting.session.requests[tree.root].id;
                let search = waiting.session.searches.remove(&root);
                let searched = search_on(search.unwrap_or_default(), most, now_ns, &shape, find);
                // Those that each has are nobody's.
                let queries = searched.queries.saturating_sub(LEAST_QUERIES);
                self.queries = self.queries.saturating_sub(queries);
                self.is_unfinished |= searched.is_unfinished;
                if let Some(next) = searched.next {
                    waiting.session.searches.insert(root, next);
                }
                searched.begin_ns
            }
        };
        let Some(begin_ns) = begin_ns else {
            return;
        };
        let Waiting { app, session, placed, .. } = waiting;
        let is_firm = session.requests[tree.root].ask.kind == Kind::NonPreemptible;
        for segment in &shape {
            let start_ns = begin_ns + segment.offset_ns;
            let over = start_ns..start_ns.saturating_add(segment.duration_ns);
            let cluster = segment.profile;
            let before =
                (home == Home::Beyond).then(|| placed[cluster].outer(&session.booked[cluster]));
            if let Some(placed) = placed.get_mut(cluster) {
                placed.add(is_firm, over.clone(), segment.nodes);
            }
            let taken = match (home, before) {
                (Home::Inside, _) => Vec::new(),
                (_, None) => vec![(over.clone(), segment.nodes)],
                (_, Some(before)) => {
                    let after = placed[cluster].outer(&session.booked[cluster]);
                    let more = after.differences(&before).into_iter();
                    more.map(|(over, is, was)| (over, is.saturating_sub(was))).collect()
                }
            };
            for (over, nodes) in taken {
                if begin_ns > now_ns {
                    session.planned[cluster].add(over.clone(), nodes);
                }
                let booked = self.profiles[cluster].subtract(over, nodes);
                debug_assert_eq!(booked, Ok(()), "there was a hole");
            }
            if is_firm {
                self.taken[segment.profile].push((over, segment.nodes));
            }
        }
        if tree.schedule(session, begin_ns, now_ns) {
            self.changed.insert(*app);
        }
    }
}

/// Whether a shape fits at a time.
fn fits_at(mut find: impl FnMut(u64, &mut u64) -> Found, shape: &[Segment], begin_ns: u64) -> bool {
    // Where it fits, there is one query of each profile for each segment.
    let mut queries = 2 * shape.len() as u64;
    find(begin_ns, &mut queries) == Ok(Some(begin_ns))
}

/// Result of a search in this pass.
struct Searched {
    begin_ns: Option<u64>,
    /// Queries that it took.
    queries: u64,
    is_unfinished: bool,
    /// State for the next pass.
    next: Option<Search>,
}

/// Searches for the place of a tree with about so many queries, and beyond that goes on in the next
/// pass. Meanwhile the tree has the place that was found for it last, if it still fits there.
fn search_on(
    search: Search,
    most: u64,
    now_ns: u64,
    shape: &[Segment],
    mut find: impl FnMut(u64, &mut u64) -> Found,
) -> Searched {
    let all = most.max(LEAST_QUERIES + 2 * shape.len() as u64);
    let mut left = all;
    let from_ns = search.reached_ns.max(now_ns);
    match find(from_ns, &mut left) {
        Ok(begin_ns) => {
            // One that takes long may find fewer queries left the next time.
            let is_long = from_ns > now_ns || left < all / 2;
            let next = Search { reached_ns: 0, found_ns: begin_ns };
            let next = is_long.then_some(next);
            Searched { begin_ns, queries: all - left, is_unfinished: false, next }
        }
        Err(reached_ns) => {
            let found_ns = search.found_ns.filter(|&ns| ns >= now_ns);
            let found_ns = found_ns.filter(|&ns| fits_at(&mut find, shape, ns));
            // There is none before that one.
            let is_over = found_ns.is_some_and(|ns| ns <= reached_ns);
            let reached_ns = if is_over { 0 } else { reached_ns };
            let next = Some(Search { reached_ns, found_ns });
            Searched { begin_ns: found_ns, queries: all, is_unfinished: !is_over, next }
        }
    }
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
