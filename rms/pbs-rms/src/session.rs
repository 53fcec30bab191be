// SPDX-License-Identifier: GPL-2.0
//! One application's requests: what they have for sure, and the trees that still have to be
//! placed. A session knows nothing of the others; the manager lets it have what there is.

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_profile::view::{segments, Part, Steps, FOREVER};
use serde::{Deserialize, Serialize};

use crate::chains::chains;
use crate::overstay::Overstay;
use crate::{Account, Ask, Kind, Refusal, Relation, Request, RequestId, Update};

/// An application that has connected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Name of the application.
    pub name: String,
    /// Unfinished requests, in the order of submission.
    pub requests: Vec<Request>,
    /// Node-time used up to now.
    pub account: Account,
    /// Time up to which the account is complete.
    pub(crate) accounted_ns: u64,
    /// Preemptible nodes of each cluster that the session keeps although others should have them.
    /// They are not stored: nobody can give back anything while there is no manager.
    #[serde(skip)]
    pub(crate) overstays: Vec<Overstay>,
    /// Booked nodes of each cluster; derived from the requests.
    #[serde(skip)]
    pub(crate) booked: Vec<Booked>,
    /// Expected use of each cluster by requests that have no room yet.
    #[serde(skip)]
    pub(crate) planned: Vec<Steps>,
    /// Origin of the last view of each cluster.
    #[serde(skip)]
    pub(crate) told: Vec<LastView>,
    /// Searches that took more than one pass, by the root of their tree.
    #[serde(skip)]
    pub(crate) searches: BTreeMap<RequestId, Search>,
}

/// Search for the place of a tree, which goes on in the next pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Search {
    /// Time before which the tree does not fit; 0: the next search begins anew.
    pub(crate) reached_ns: u64,
    /// Place that was found last. The tree keeps it while there may be an earlier one.
    pub(crate) found_ns: Option<u64>,
}

/// Nodes of a cluster for a session's requests that have started, or depend on one that has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Booked {
    pub(crate) pre_allocated: Steps,
    pub(crate) non_preemptible: Steps,
    /// Nodes that preemptible requests want: all that were requested.
    pub(crate) preemptible: Steps,
    /// Nodes that other sessions can't have for good. A non-preemptible request outside
    /// pre-allocations counts as if it were inside one of its size. If it outgrows a
    /// pre-allocation, the rest counts this way.
    pub(crate) outer: Steps,
}

/// Origin of a session's view when it was sent last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastView {
    /// A view has been sent.
    pub(crate) is_any: bool,
    pub(crate) outer: Steps,
    pub(crate) planned: Steps,
}

/// Marks for work that a pass must do for a session. Most sessions have no work in most passes, and
/// are not even read then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Earliest end of the session's requests.
    pub(crate) first_end_ns: u64,
    /// A request has to be placed: it has not started, and does not follow one that has. Or what
    /// is known of when requests start is old.
    pub(crate) waits: bool,
    /// Whether a request must start together with another one that has started.
    pub(crate) is_late: bool,
    /// A request that is not preempted has started of which the application does not know yet.
    pub(crate) is_open: bool,
    /// A preemptible one has.
    pub(crate) is_open_preemptible: bool,
    /// Whether the session has preemptible requests.
    pub(crate) is_preemptible: bool,
    /// Whether the origin of the view has changed since the last view was sent.
    pub(crate) is_stale: bool,
}

/// Requests of one type that hang together, by their places in the session.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The one that hangs on nothing of the tree.
    pub(crate) root: usize,
    /// All, with how long after the root they begin.
    pub(crate) members: Vec<(usize, u64)>,
}

/// Returns the needs of a tree's requests.
pub(crate) fn parts(session: &Session, tree: &Tree) -> Vec<Part> {
    let members = tree.members.iter();
    let part = |&(place, offset_ns): &(usize, u64)| {
        let ask = &session.requests[place].ask;
        Part { profile: ask.cluster, offset_ns, duration_ns: ask.duration_ns, nodes: ask.nodes }
    };
    members.map(part).collect()
}

/// Effects of the end of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    /// Nodes that are free now.
    pub(crate) freed: Vec<u32>,
    /// Requests that hung on it, and are gone.
    pub(crate) refused: Vec<RequestId>,
}

/// A request of which the duration was over.
#[derive(Clone, Debug)]
pub(crate) struct RunOut {
    pub(crate) request: RequestId,
    pub(crate) ask: Ask,
    pub(crate) end_ns: u64,
    pub(crate) end: End,
}

impl Session {
    pub(crate) fn new(name: String, clusters: usize, now_ns: u64) -> Self {
        Self {
            name,
            requests: Vec::new(),
            account: Account::default(),
            accounted_ns: now_ns,
            overstays: vec![Overstay::default(); clusters],
            booked: vec![Booked::default(); clusters],
            planned: vec![Steps::default(); clusters],
            told: vec![LastView::default(); clusters],
            searches: BTreeMap::new(),
        }
    }

    pub(crate) fn marks(&self) -> Marks {
        let mut marks = Marks {
            first_end_ns: FOREVER,
            waits: self.planned.iter().any(|planned| !planned.is_zero()),
            is_open: false,
            is_open_preemptible: false,
            is_preemptible: false,
            is_late: false,
            is_stale: self.is_stale(),
        };
        let mut is_started = true;
        for request in &self.requests {
            let end_ns = request.end_ns();
            marks.first_end_ns = marks.first_end_ns.min(end_ns.unwrap_or(FOREVER));
            is_started &= end_ns.is_some();
            let is_preemptible = request.ask.kind == Kind::Preemptible;
            let is_open = end_ns.is_some() && !request.is_notified;
            marks.is_open |= is_open && !is_preemptible;
            marks.is_open_preemptible |= is_open && is_preemptible;
            marks.is_preemptible |= is_preemptible;
        }
        if !is_started {
            let mut both = self.requests.iter().zip(self.spans());
            marks.waits |= both.any(|(request, span)| {
                let start_ns = span.map(|span| span.start);
                let is_old = start_ns.is_none() || start_ns != request.scheduled_ns;
                request.started_ns.is_none() && is_old
            });
            marks.is_late = self.first_late().is_some();
        }
        marks
    }

    /// Whether the origin of the view has changed since the last view was sent.
    pub(crate) fn is_stale(&self) -> bool {
        let now = self.booked.iter().zip(&self.planned);
        let mut both = self.told.iter().zip(now);
        both.any(|(told, (booked, planned))| {
            !told.is_any || told.outer != booked.outer || told.planned != *planned
        })
    }

    pub(crate) fn place(&self, id: RequestId) -> Option<usize> {
        self.requests.binary_search_by_key(&id, |r| r.id).ok()
    }

    fn live(&self, id: RequestId) -> Result<usize, Refusal> {
        self.place(id).ok_or(Refusal::UnknownRequest(id))
    }

    fn successor(&self, id: RequestId) -> Option<usize> {
        let next = Relation::Next(id);
        self.requests.iter().position(|r| r.ask.relation == next && r.started_ns.is_none())
    }

    /// The first request that is to start with one of its type that has started by itself: as
    /// the successor of another one. And when that was.
    pub(crate) fn first_late(&self) -> Option<(RequestId, u64)> {
        self.requests.iter().find_map(|request| {
            let Relation::Coalloc(parent) = request.ask.relation else {
                return None;
            };
            let parent = &self.requests[self.place(parent)?];
            let is_same = parent.ask.kind == request.ask.kind;
            let is_late = is_same && request.started_ns.is_none();
            Some((request.id, parent.started_ns.filter(|_| is_late)?))
        })
    }

    /// Returns the span of each request, if it is certain: the request has started, or it depends
    /// on one that has and its nodes are kept for it (toView, A.4.1).
    pub(crate) fn spans(&self) -> Vec<Option<Range<u64>>> {
        let mut spans: Vec<Option<Range<u64>>> = Vec::with_capacity(self.requests.len());
        for request in &self.requests {
            let of_parent = |id| {
                let place = self.place(id).filter(|_| request.is_reserved)?;
                let parent = &self.requests[place];
                // Of another type it is an anchor: it has to be placed.
                let is_same = parent.ask.kind == request.ask.kind;
                spans.get(place).cloned().flatten().filter(|_| is_same)
            };
            let begin_ns = request.started_ns.or_else(|| match request.ask.relation {
                Relation::Free => None,
                Relation::Coalloc(id) => of_parent(id).map(|span| span.start),
                Relation::Next(id) => of_parent(id).map(|span| span.end),
            });
            let begin_ns = begin_ns.filter(|&ns| ns < FOREVER);
            spans.push(begin_ns.map(|ns| request.span_from(ns)));
        }
        spans
    }

    /// Returns the certain bookings of each cluster.
    pub(crate) fn book(&self, clusters: usize) -> Vec<Booked> {
        let mut booked = vec![Booked::default(); clusters];
        for (request, span) in self.requests.iter().zip(self.spans()) {
            let (Some(span), Some(cluster)) = (span, booked.get_mut(request.ask.cluster)) else {
                continue;
            };
            let steps = match request.ask.kind {
                Kind::PreAllocation => &mut cluster.pre_allocated,
                Kind::NonPreemptible => &mut cluster.non_preemptible,
                Kind::Preemptible => &mut cluster.preemptible,
            };
            steps.add(span, request.ask.nodes);
        }
        for cluster in &mut booked {
            cluster.outer = cluster.pre_allocated.maximum(&cluster.non_preemptible);
        }
        booked
    }

    /// The trees that have to be placed, in the order of submission. What hangs on a request
    /// without end has no place, nor has what hangs on one that has started without having
    /// found room.
    pub(crate) fn trees(&self, spans: &[Option<Range<u64>>]) -> Vec<Tree> {
        let mut trees: Vec<Tree> = Vec::new();
        // Of each request in which tree it is, and when there.
        let mut places: Vec<Option<(usize, u64)>> = Vec::with_capacity(self.requests.len());
        for (place, request) in self.requests.iter().enumerate() {
            let is_sure = spans[place].is_some();
            let parent = request.ask.relation.parent().and_then(|id| self.place(id));
            let parent = parent.filter(|&p| self.requests[p].ask.kind == request.ask.kind);
            // A request that is to start with one that has ended starts with its successor, which
            // may be younger, and has started: it starts late, and has no place here.
            let known = |parent: usize| places.get(parent).copied().flatten();
            let found = match (is_sure, parent, request.ask.relation) {
                (true, _, _) => None,
                (false, None, _) => {
                    trees.push(Tree { root: place, members: Vec::new() });
                    Some((trees.len() - 1, 0))
                }
                (false, Some(parent), Relation::Next(_)) => {
                    let end = |ns: u64| ns.checked_add(self.requests[parent].ask.duration_ns);
                    known(parent).and_then(|(tree, ns)| Some((tree, end(ns)?)))
                }
                (false, Some(parent), _) => known(parent),
            };
            if let Some((tree, offset_ns)) = found {
                trees[tree].members.push((place, offset_ns));
            }
            places.push(found);
        }
        trees
    }

    /// Refuses requests that hang together and want more nodes of a cluster at a time than it
    /// can ever give: they would wait for ever.
    pub(crate) fn check_shape(&self, id: RequestId, most: &[u64]) -> Result<(), Refusal> {
        let place = self.live(id)?;
        if self.requests[place].ask.kind == Kind::Preemptible {
            // It may have fewer.
            return Ok(());
        }
        let mut trees = self.trees(&self.spans()).into_iter();
        let has = |tree: &Tree| tree.members.iter().any(|member| member.0 == place);
        let Some(tree) = trees.find(has).filter(|tree| tree.members.len() > 1) else {
            return Ok(());
        };
        for segment in segments(&parts(self, &tree)) {
            let most = most.get(segment.profile).copied().unwrap_or(0);
            if segment.nodes > most {
                let nodes = segment.nodes;
                return Err(Refusal::TooMany { nodes, most });
            }
        }
        Ok(())
    }

    /// Whether the session has a pre-allocation of a cluster.
    pub(crate) fn has_pre_allocation(&self, cluster: usize) -> bool {
        let mut asks = self.requests.iter().map(|r| &r.ask);
        asks.any(|ask| ask.kind == Kind::PreAllocation && ask.cluster == cluster)
    }

    /// Returns the nodes of a cluster that the pre-allocations of the session could have together
    /// for a time. Of those that follow one another the largest counts, for the time of all.
    pub(crate) fn pre_allocated_at_most(&self, cluster: usize, duration_ns: u64) -> u64 {
        let asks = self.requests.iter().map(|request| (Some(request.id), &request.ask));
        let all = chains(asks, cluster, Kind::PreAllocation);
        let long = all.filter(|chain| chain.lasts_ns >= duration_ns);
        long.fold(0, |sum, chain| sum.saturating_add(chain.nodes))
    }

    /// Adds a request, whose cluster is known to exist. The request starts at once if it must start
    /// with one that has.
    pub(crate) fn submit(
        &mut self,
        id: RequestId,
        ask: Ask,
        is_reserved: bool,
        now_ns: u64,
    ) -> Result<(), Refusal> {
        let mut request = Request::new(id, ask);
        request.is_reserved = is_reserved;
        if let Some(parent_id) = request.ask.relation.parent() {
            let parent = &self.requests[self.live(parent_id)?];
            match request.ask.relation {
                Relation::Next(_) => {
                    let of = |ask: &Ask| (ask.kind, ask.cluster);
                    if of(&parent.ask) != of(&request.ask) {
                        return Err(Refusal::OtherNodes(parent_id));
                    }
                    if self.successor(parent_id).is_some() {
                        return Err(Refusal::HasSuccessor(parent_id));
                    }
                }
                _ if parent.ask.kind > request.ask.kind => {
                    return Err(Refusal::NotFirmer(parent_id));
                }
                _ => {
                    let is_same = parent.ask.kind == request.ask.kind;
                    if is_same && parent.started_ns.is_some() {
                        request.start(now_ns);
                    }
                }
            }
        }
        self.requests.push(request);
        // A tree that has grown may not fit where it did.
        self.searches.clear();
        Ok(())
    }

    /// Ends a request: by done(), with the nodes that its successor does not get.
    pub(crate) fn done(
        &mut self,
        id: RequestId,
        released: &[u32],
        now_ns: u64,
    ) -> Result<End, Refusal> {
        let place = self.live(id)?;
        let request = &self.requests[place];
        check_held(&request.nodes, released)?;
        if let Some(successor) = self.successor(id).filter(|_| request.started_ns.is_some()) {
            let needed = self.surplus(place, successor);
            if released.len() != needed {
                return Err(Refusal::Released { named: released.len(), needed });
            }
        }
        Ok(self.end(place, released, now_ns))
    }

    /// Returns the number of nodes that a request's successor does not get.
    fn surplus(&self, place: usize, successor: usize) -> usize {
        let held = self.requests[place].nodes.len();
        let wanted = self.requests[successor].ask.nodes;
        held.saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX))
    }

    /// Ends the request at a place, by itself or not.
    fn end(&mut self, place: usize, released: &[u32], now_ns: u64) -> End {
        let request = self.requests.remove(place);
        let mut end = End::default();
        let successor = self.successor(request.id);
        if let Some(next) = successor.filter(|_| request.started_ns.is_some()) {
            let gone = sorted(released);
            let kept = request.nodes.iter();
            let kept = kept.filter(|node| gone.binary_search(node).is_err());
            let successor = &mut self.requests[next];
            successor.nodes = kept.copied().collect();
            successor.kept_ns = request.kept_until(now_ns);
            successor.start(now_ns);
            let heir = successor.id;
            end.freed = released.to_vec();
            // What is to start with it may as well start with what takes its place.
            for other in &mut self.requests {
                if other.ask.relation == Relation::Coalloc(request.id) {
                    other.ask.relation = Relation::Coalloc(heir);
                }
            }
        } else {
            end.freed = request.nodes;
        }
        self.refuse_children(request.id, &mut end.refused);
        end
    }

    /// Deletes what hangs on a request that is gone, unless it has started.
    pub(crate) fn refuse_children(&mut self, of: RequestId, refused: &mut Vec<RequestId>) {
        let mut gone = vec![of];
        // Children come after their parents.
        self.requests.retain(|request| {
            let parent = request.ask.relation.parent();
            let hangs = request.started_ns.is_none() && parent.is_some_and(|id| gone.contains(&id));
            if hangs {
                gone.push(request.id);
                refused.push(request.id);
            }
            !hangs
        });
    }

    /// Withdraws a request that has not started, with all requests that depend on it.
    pub(crate) fn withdraw(&mut self, id: RequestId, refused: &mut Vec<RequestId>) {
        if let Some(place) = self.place(id) {
            self.requests.remove(place);
            refused.push(id);
            self.refuse_children(id, refused);
        }
    }

    /// The request of which the duration is over first, if one is.
    pub(crate) fn first_over(&self, now_ns: u64) -> Option<(usize, u64)> {
        let all = self.requests.iter().enumerate();
        let ends = all.filter_map(|(place, r)| Some((place, r.end_ns()?)));
        let over = ends.filter(|&(_, end_ns)| end_ns <= now_ns && end_ns < FOREVER);
        over.min_by_key(|&(_, end_ns)| end_ns)
    }

    /// Ends the request at a place because its duration is over, and says which nodes it no
    /// longer has.
    fn run_out(&mut self, place: usize, end_ns: u64) -> End {
        let request = &self.requests[place];
        let surplus = self.successor(request.id).map(|next| self.surplus(place, next));
        let released = match surplus {
            None => Vec::new(),
            Some(count) if request.leaving.len() == count => request.leaving.clone(),
            // The last of its nodes are those it got last.
            Some(count) => request.nodes[request.nodes.len() - count..].to_vec(),
        };
        self.end(place, &released, end_ns)
    }

    /// [`Session::run_out`], with the request that has ended.
    pub(crate) fn run_out_at(&mut self, place: usize, end_ns: u64) -> RunOut {
        let Request { id: request, ask, .. } = self.requests[place].clone();
        RunOut { request, ask, end_ns, end: self.run_out(place, end_ns) }
    }

    /// An update, with numbers for the requests that it may make: the one that is to be given
    /// new nodes, and before it, if it is announced, the one that waits for that.
    pub(crate) fn update(
        &mut self,
        update: &Update,
        ids: [RequestId; 2],
        now_ns: u64,
    ) -> Result<(RequestId, End), Refusal> {
        let place = self.live(update.of)?;
        let request = &mut self.requests[place];
        if request.started_ns.is_none() {
            if update.announce_ns > 0 || !update.released.is_empty() {
                return Err(Refusal::NotStarted(update.of));
            }
            request.ask.nodes = update.nodes;
            request.ask.duration_ns = update.duration_ns;
            // A smaller one may fit earlier.
            self.searches.clear();
            return Ok((update.of, End::default()));
        }
        let old = request.ask.clone();
        let is_announced = update.announce_ns > 0;
        let mut of = update.of;
        if is_announced {
            let wait = Ask {
                duration_ns: update.announce_ns,
                relation: Relation::Next(of),
                preferred: Vec::new(),
                ..old.clone()
            };
            self.submit(ids[0], wait, true, now_ns)?;
            of = ids[0];
        }
        let next = Ask {
            nodes: update.nodes,
            duration_ns: update.duration_ns,
            relation: Relation::Next(of),
            ..old
        };
        self.submit(ids[1], next, true, now_ns)?;
        if !is_announced {
            return Ok((ids[1], self.done(update.of, &update.released, now_ns)?));
        }
        // What it waits for in vain it need not wait for any more.
        let end = self.done(update.of, &[], now_ns)?;
        let needed = self.live(ids[0]).and_then(|wait| {
            let next = self.live(ids[1])?;
            self.requests[wait].leaving.clone_from(&update.released);
            Ok(self.surplus(wait, next))
        })?;
        let named = update.released.len();
        if named != 0 && named != needed {
            return Err(Refusal::Released { named, needed });
        }
        let held = self.live(ids[0]).map(|wait| &self.requests[wait].nodes)?;
        check_held(held, &update.released)?;
        Ok((ids[1], end))
    }

    /// Preemptible nodes of a cluster that it has.
    pub(crate) fn preemptible_held(&self, cluster: usize) -> u64 {
        preemptible_held(&self.requests, cluster)
    }

    /// Notes what it has given back, since these were its requests, of the preemptible nodes that
    /// it was to give back.
    pub(crate) fn has_given_back(&mut self, before: &[Request]) {
        for cluster in 0..self.overstays.len() {
            if self.overstays[cluster].nodes() > 0 {
                let given = preemptible_held(before, cluster);
                let given = given.saturating_sub(self.preemptible_held(cluster));
                self.overstays[cluster].give_back(given);
            }
        }
    }

    /// Returns the time up to which the account is complete.
    pub fn accounted_ns(&self) -> u64 {
        self.accounted_ns
    }

    /// Returns the account up to a time.
    pub fn account_at(&self, now_ns: u64) -> Account {
        let mut until = self.clone();
        until.account_until(now_ns);
        until.account
    }

    /// Counts what it had up to a time.
    pub(crate) fn account_until(&mut self, now_ns: u64) {
        let over = self.accounted_ns..now_ns;
        if over.is_empty() {
            return;
        }
        for booked in &self.booked {
            self.account.count(&booked.pre_allocated, &booked.non_preemptible, &over);
        }
        for (nodes, since_ns) in self.overstays.iter().flat_map(Overstay::iter) {
            let from_ns = over.start.max(since_ns);
            let ns = u128::from(over.end.saturating_sub(from_ns));
            self.account.overstayed_node_ns += ns * u128::from(nodes);
        }
        for request in self.requests.iter().filter(|r| r.ask.kind == Kind::Preemptible) {
            let end_ns = request.end_ns().unwrap_or(0).min(over.end);
            let from_ns = request.started_ns.unwrap_or(0).max(over.start);
            let ns = u128::from(end_ns.saturating_sub(from_ns));
            self.account.preemptible_node_ns += ns * request.nodes.len() as u128;
        }
        self.accounted_ns = now_ns;
    }
}

/// Nodes that are given back have to be held, and named once. There may be as many as a
/// cluster has.
fn check_held(held: &[u32], released: &[u32]) -> Result<(), Refusal> {
    if released.is_empty() {
        return Ok(());
    }
    let (held, once) = (sorted(held), sorted(released));
    let is_held = |node: &u32| held.binary_search(node).is_ok();
    let strange = released.iter().find(|node| !is_held(node));
    let twice = || once.windows(2).find(|two| two[0] == two[1]);
    match strange.or_else(|| twice().map(|two| &two[0])) {
        Some(&node) => Err(Refusal::NotHeld(node)),
        None => Ok(()),
    }
}

fn sorted(nodes: &[u32]) -> Vec<u32> {
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Preemptible nodes of a cluster that requests have.
fn preemptible_held(requests: &[Request], cluster: usize) -> u64 {
    let requests = requests.iter();
    let of = requests.filter(|r| r.ask.kind == Kind::Preemptible && r.ask.cluster == cluster);
    of.map(|r| r.nodes.len() as u64).sum()
}
