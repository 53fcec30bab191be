// SPDX-License-Identifier: GPL-2.0
//! The manager and the messages that it takes (3.1).

use std::collections::BTreeSet;

use pbs_profile::view::{Steps, FOREVER};
use pbs_profile::{Profile, Transaction};

use crate::overstay::Overstay;
use crate::pool::Pool;
use crate::session::{Booked, End, LastView, RunOut};
use crate::sessions::Sessions;
use crate::share::Shares;
use crate::{
    Account, AppId, Ask, Event, Kind, Notice, Policy, Refusal, Relation, RequestId, Session, Update,
};

/// A resource manager of some clusters, each of nodes that are all the same.
///
/// A message is answered at once as far as it can be: what cannot be is refused and changes
/// nothing. What it leads to follows from the next [pass](Rms::pass).
#[derive(Debug)]
pub struct Rms {
    pub(crate) policy: Policy,
    /// Number of nodes of each cluster.
    pub(crate) sizes: Vec<u32>,
    pub(crate) pools: Vec<Pool>,
    /// For each cluster what is not booked for good, and then for each what is not booked by
    /// requests that run to completion.
    pub(crate) profiles: Vec<Profile>,
    pub(crate) sessions: Sessions,
    /// Shares of each cluster, since the last pass.
    pub(crate) shares: Vec<Shares>,
    /// Origins of the views of sessions that have ended since the last pass.
    pub(crate) gone: Vec<(AppId, Vec<LastView>)>,
    /// Notices since the last pass.
    pub(crate) notices: Vec<Notice>,
    pub(crate) closed: Vec<Closed>,
    /// Sessions of which what is kept of them is old.
    pub(crate) changed: BTreeSet<AppId>,
    pub(crate) next_app: u64,
    pub(crate) next_request: u64,
    pub(crate) now_ns: u64,
    pub(crate) passed_ns: Option<u64>,
    /// A pass would answer something.
    pub(crate) is_due: bool,
}

/// A session that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Number of the session.
    pub app: AppId,
    /// Name of the application.
    pub name: String,
    /// Account of the session.
    pub account: Account,
}

impl Rms {
    /// A manager of clusters of so many nodes each, from a time on.
    pub fn new(policy: Policy, sizes: &[u32], now_ns: u64) -> Self {
        let of_cluster = |&nodes: &u32| Profile::starting_at(now_ns, u64::from(nodes));
        let both = sizes.iter().chain(sizes);
        Self {
            policy,
            sizes: sizes.to_vec(),
            pools: sizes.iter().map(|&nodes| Pool::new(nodes)).collect(),
            profiles: both.map(of_cluster).collect(),
            sessions: Sessions::default(),
            shares: vec![Shares::default(); sizes.len()],
            gone: Vec::new(),
            notices: Vec::new(),
            closed: Vec::new(),
            changed: BTreeSet::new(),
            next_app: 1,
            next_request: 1,
            now_ns,
            passed_ns: None,
            is_due: false,
        }
    }

    /// Begins a session. Its views come with the next pass.
    pub fn connect(&mut self, name: impl Into<String>, now_ns: u64) -> AppId {
        self.advance(now_ns);
        let app = AppId(self.next_app);
        self.next_app += 1;
        let session = Session::new(name.into(), self.sizes.len(), self.now_ns);
        self.sessions.insert(app, session);
        self.changed.insert(app);
        self.is_due = true;
        app
    }

    /// request(): takes a request, which starts when there is room for it.
    pub fn request(&mut self, app: AppId, ask: Ask, now_ns: u64) -> Result<RequestId, Refusal> {
        self.advance(now_ns);
        self.run_out(app);
        if self.sessions.get(app).is_none() {
            return Err(Refusal::UnknownSession);
        }
        self.check(&ask)?;
        self.check_count(app)?;
        self.check_preferred(app, &ask)?;
        let id = RequestId(self.next_request);
        let can_wait = match ask.relation {
            Relation::Next(_) => true,
            Relation::Coalloc(parent) => {
                let session = self.sessions.get(app);
                let parent = session.and_then(|s| Some(&s.requests[s.place(parent)?]));
                parent.is_some_and(|parent| parent.started_ns.is_none())
            }
            Relation::Free => false,
        };
        let hangs = ask.relation != Relation::Free;
        let most = if hangs { self.most() } else { Vec::new() };
        let submitted = self.change(app, |session, now_ns| {
            session.submit(id, ask.clone(), true, now_ns)?;
            // What hangs on nothing was checked by itself.
            if hangs {
                session.check_shape(id, &most)?;
            }
            Ok(())
        });
        match submitted {
            // There may be room once it starts.
            Err(Refusal::NoRoom) if can_wait => {
                self.change(app, |session, now_ns| session.submit(id, ask, false, now_ns))?;
            }
            other => other?,
        }
        self.next_request += 1;
        Ok(id)
    }

    /// done(): ends a request, or takes it back if it has not started. With a successor, as
    /// many of its nodes have to be given back as that wants fewer.
    pub fn done(
        &mut self,
        app: AppId,
        id: RequestId,
        released: &[u32],
        now_ns: u64,
    ) -> Result<(), Refusal> {
        self.advance(now_ns);
        self.run_out(app);
        let (end, cluster) = self.change(app, |session, now_ns| {
            let cluster = session.place(id).map(|place| session.requests[place].ask.cluster);
            let end = session.done(id, released, now_ns)?;
            Ok((end, cluster.unwrap_or(0)))
        })?;
        self.has_ended(app, cluster, end);
        Ok(())
    }

    /// An update, spontaneous or announced (3.1.3), of a request that has started or has not:
    /// the number of the request that takes its place.
    pub fn update(
        &mut self,
        app: AppId,
        update: &Update,
        now_ns: u64,
    ) -> Result<RequestId, Refusal> {
        self.advance(now_ns);
        self.run_out(app);
        let session = self.sessions.get(app).ok_or(Refusal::UnknownSession)?;
        let place = session.place(update.of);
        let place = place.ok_or(Refusal::UnknownRequest(update.of))?;
        let old = session.requests[place].ask.clone();
        let ask = Ask { nodes: update.nodes, duration_ns: update.duration_ns, ..old };
        // Nodes can be given back beyond any limit, and by a session without room for a request.
        let Ask { nodes, duration_ns, .. } = session.requests[place].ask;
        // Also a shorter one can make others meet that depend on its end.
        let is_other = ask.nodes > nodes || ask.duration_ns != duration_ns;
        if ask.nodes > nodes {
            self.check(&ask)?;
        }
        check_empty(&ask)?;
        if update.announce_ns > 0 {
            self.check_count(app)?;
        }
        let ids = [0, 1].map(|place| RequestId(self.next_request + place));
        let waits = session.requests[place].started_ns.is_none();
        let most = if waits { self.most() } else { Vec::new() };
        let updated = self.change(app, |session, now_ns| {
            let updated = session.update(update, ids, now_ns)?;
            if waits && is_other {
                session.check_shape(update.of, &most)?;
            }
            Ok(updated)
        });
        let (id, end) = updated?;
        self.next_request += 2;
        self.has_ended(app, ask.cluster, end);
        Ok(id)
    }

    /// Ends a session with all that it has.
    pub fn disconnect(&mut self, app: AppId, now_ns: u64) -> Result<(), Refusal> {
        self.advance(now_ns);
        self.run_out(app);
        self.close(app).map(drop).ok_or(Refusal::UnknownSession)
    }

    /// An application says what it has lost by killing.
    pub fn waste(&mut self, app: AppId, node_ns: u128) -> Result<(), Refusal> {
        let session = self.sessions.get_mut(app);
        let account = &mut session.ok_or(Refusal::UnknownSession)?.account;
        account.wasted_node_ns = account.wasted_node_ns.saturating_add(node_ns);
        if node_ns > 0 {
            self.changed.insert(app);
        }
        Ok(())
    }

    /// Returns the time at which a pass is needed if no message arrives before; `None`: never.
    pub fn next_pass_ns(&self) -> Option<u64> {
        let earliest_ns =
            (self.passed_ns).map_or(0, |ns| ns.saturating_add(self.policy.interval_ns));
        if self.is_due {
            return Some(earliest_ns.max(self.now_ns));
        }
        let mut next_ns = FOREVER;
        for (_, session, marks) in self.sessions.iter() {
            next_ns = next_ns.min(marks.first_end_ns);
            if marks.waits || marks.is_preemptible {
                let starts = session.requests.iter().filter_map(|r| r.scheduled_ns);
                let since = session.overstays.iter().filter_map(Overstay::since_ns);
                let grace_ns = self.policy.release_grace_ns;
                let deadlines = since.map(|ns| ns.saturating_add(grace_ns));
                next_ns = starts.chain(deadlines).fold(next_ns, u64::min);
            }
        }
        (next_ns < FOREVER).then(|| next_ns.max(earliest_ns))
    }

    /// The sessions in the order of connection.
    pub fn sessions(&self) -> impl Iterator<Item = (AppId, &Session)> {
        self.sessions.iter().map(|(app, session, _)| (app, session))
    }

    /// A session.
    pub fn session(&self, app: AppId) -> Option<&Session> {
        self.sessions.get(app)
    }

    /// Returns the number of nodes of each cluster.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Returns the operator's policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The nodes of a cluster that nobody has or waits for: they may be switched off.
    pub fn idle(&self, cluster: usize) -> Vec<u32> {
        let sessions = self.sessions.iter();
        let requests = sessions.flat_map(|(_, session, _)| &session.requests);
        let of_cluster = requests.filter(|r| r.ask.cluster == cluster);
        let lacks: u64 = of_cluster.map(crate::Request::lacks).sum();
        let pool = self.pools.get(cluster);
        let free = pool.map_or(0, |pool| pool.free().saturating_sub(lacks));
        let free = usize::try_from(free).unwrap_or(usize::MAX);
        // The lowest are those that are given out first.
        let all: Vec<u32> = pool.map_or_else(Vec::new, |pool| pool.iter().collect());
        all[all.len() - free.min(all.len())..].to_vec()
    }

    /// The sessions that have ended since this was called last.
    pub fn take_closed(&mut self) -> Vec<Closed> {
        std::mem::take(&mut self.closed)
    }

    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Checks the number of nodes of a request.
    fn check(&self, ask: &Ask) -> Result<(), Refusal> {
        let size = self.sizes.get(ask.cluster);
        let size = *size
            .ok_or(Refusal::UnknownCluster { cluster: ask.cluster, clusters: self.sizes.len() })?;
        check_empty(ask)?;
        let limit = match ask.kind {
            Kind::Preemptible => u64::MAX,
            Kind::PreAllocation | Kind::NonPreemptible => self.policy.limits.nodes,
        };
        let most = u64::from(size).min(limit);
        if ask.nodes > most {
            let nodes = ask.nodes;
            return Err(Refusal::TooMany { nodes, most });
        }
        Ok(())
    }

    /// Checks whether a session may have one more request.
    fn check_count(&self, app: AppId) -> Result<(), Refusal> {
        let session = self.sessions.get(app).ok_or(Refusal::UnknownSession)?;
        let most = self.policy.limits.requests;
        if session.requests.len() >= most {
            return Err(Refusal::TooManyRequests(most));
        }
        Ok(())
    }

    /// The most nodes of each cluster that what runs to completion can ever have.
    fn most(&self) -> Vec<u64> {
        let limit = self.policy.limits.nodes;
        let sizes = self.sizes.iter().map(|&size| u64::from(size));
        sizes.map(|size| size.min(limit)).collect()
    }

    /// Whether there is room for the nodes that a request prefers: they are copied and kept with
    /// the session whenever it changes.
    fn check_preferred(&self, app: AppId, ask: &Ask) -> Result<(), Refusal> {
        let requests = self.sessions.get(app).map(|session| &session.requests);
        let asks = requests.into_iter().flatten().map(|request| &request.ask);
        let preferred = asks.chain([ask]).map(|ask| ask.preferred.len());
        let most = self.policy.limits.preferred;
        if preferred.sum::<usize>() > most {
            Err(Refusal::TooManyPreferred(most))
        } else {
            Ok(())
        }
    }

    /// Changes the requests of a session, and nothing else of it; or, if that is refused or
    /// there is no room for it, nothing.
    pub(crate) fn change<T>(
        &mut self,
        app: AppId,
        how: impl FnOnce(&mut Session, u64) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let now_ns = self.now_ns;
        let (limit, profiles) = (self.policy.limits.nodes, &mut self.profiles);
        let session = self.sessions.get_mut(app).ok_or(Refusal::UnknownSession)?;
        session.account_until(now_ns);
        // To write to a copy of all of it would scatter the session over the memory.
        let before = session.requests.clone();
        let book = |session: &mut Session| {
            let value = how(session, now_ns)?;
            let booked = session.book(session.booked.len());
            let most = |booked: &Booked| booked.outer.most();
            let mut both = booked.iter().zip(&session.booked);
            // Who had more when the limit was set may always have less.
            if both.any(|(is, was)| most(is) > limit.max(most(was))) {
                return Err(Refusal::NoRoom);
            }
            rebook(profiles, &session.booked, &booked, now_ns)?;
            session.booked = booked;
            session.has_given_back(&before);
            Ok(value)
        };
        let value = match book(session) {
            Ok(value) => value,
            Err(refusal) => {
                session.requests = before;
                return Err(refusal);
            }
        };
        if session.requests.iter().all(|r| r.started_ns.is_some()) {
            session.planned.fill(Steps::default());
        }
        self.sessions.mark(app);
        self.changed.insert(app);
        self.is_due = true;
        Ok(value)
    }

    fn has_ended(&mut self, app: AppId, cluster: usize, end: End) {
        self.pools[cluster].put(&end.freed);
        self.tell_refused(app, end.refused);
    }

    pub(crate) fn tell_refused(&mut self, app: AppId, refused: Vec<RequestId>) {
        let event = |request| Event::Refused { request };
        let refused = refused.into_iter().map(|request| Notice { app, event: event(request) });
        self.notices.extend(refused);
    }

    /// Ends the requests of a session of which the duration is over: all of them in one change,
    /// since a change takes as long as the session is large.
    pub(crate) fn run_out(&mut self, app: AppId) {
        let now_ns = self.now_ns;
        if self.sessions.get(app).and_then(|session| session.first_over(now_ns)).is_none() {
            return;
        }
        let all = self.change(app, |session, _| {
            let mut all = Vec::new();
            while let Some((place, end_ns)) = session.first_over(now_ns) {
                all.push(session.run_out_at(place, end_ns));
            }
            Ok(all)
        });
        match all {
            Ok(all) => all.into_iter().for_each(|ended| self.has_run_out(app, ended)),
            Err(_) => self.run_out_singly(app),
        }
    }

    /// Ends the requests one by one: a successor for which no nodes were kept may find none.
    fn run_out_singly(&mut self, app: AppId) {
        let now_ns = self.now_ns;
        let over = |session: &Session| session.first_over(now_ns);
        while let Some((place, end_ns)) = self.sessions.get(app).and_then(over) {
            let ended = self.change(app, |session, _| Ok(session.run_out_at(place, end_ns)));
            let ended = ended.or_else(|_| {
                self.change(app, |session, _| {
                    let id = session.requests[place].id;
                    let mut refused = Vec::new();
                    session.refuse_children(id, &mut refused);
                    // Children may be younger or older: the place may be another one now.
                    let place = session.place(id).ok_or(Refusal::UnknownRequest(id))?;
                    let mut ended = session.run_out_at(place, end_ns);
                    ended.end.refused.append(&mut refused);
                    Ok(ended)
                })
            });
            let Ok(ended) = ended else {
                return;
            };
            self.has_run_out(app, ended);
        }
    }

    fn has_run_out(&mut self, app: AppId, ended: RunOut) {
        let RunOut { request, ask, end_ns, end } = ended;
        // It has had its nodes until now; of a pass that could not come earlier.
        let late_ns = (self.now_ns - end_ns).min(self.policy.interval_ns);
        if let Some(session) = self.sessions.get_mut(app) {
            session.account.count_late(ask.kind, end.freed.len(), late_ns);
        }
        let event = Event::Ended { request, killed: end.freed.clone() };
        self.notices.push(Notice { app, event });
        self.has_ended(app, ask.cluster, end);
    }

    /// Ends a session: the nodes that it had of each cluster.
    pub(crate) fn close(&mut self, app: AppId) -> Option<Vec<Vec<u32>>> {
        let mut session = self.sessions.remove(app)?;
        self.changed.insert(app);
        session.account_until(self.now_ns);
        let none = vec![Booked::default(); self.sizes.len()];
        let freed = rebook(&mut self.profiles, &session.booked, &none, self.now_ns);
        debug_assert_eq!(freed, Ok(()), "what is only freed has room");
        let mut nodes = vec![Vec::new(); self.sizes.len()];
        for request in &session.requests {
            nodes[request.ask.cluster].extend(&request.nodes);
        }
        for (pool, nodes) in self.pools.iter_mut().zip(&nodes) {
            pool.put(nodes);
        }
        if session.told.iter().any(|told| told.is_any) {
            self.gone.push((app, session.told));
        }
        self.closed.push(Closed { app, name: session.name, account: session.account });
        self.is_due = true;
        Some(nodes)
    }
}

fn check_empty(ask: &Ask) -> Result<(), Refusal> {
    if ask.nodes == 0 || ask.duration_ns == 0 {
        return Err(Refusal::Empty);
    }
    Ok(())
}

/// Subtracts the new bookings from the profiles and adds the old ones: all or nothing.
pub(crate) fn rebook(
    profiles: &mut [Profile],
    before: &[Booked],
    after: &[Booked],
    now_ns: u64,
) -> Result<(), Refusal> {
    let clusters = before.len();
    let mut changes = Vec::new();
    for (cluster, (before, after)) in before.iter().zip(after).enumerate() {
        let outer = before.outer.differences(&after.outer);
        changes.extend(outer.into_iter().map(|change| (cluster, change)));
        let inner = before.non_preemptible.differences(&after.non_preemptible);
        changes.extend(inner.into_iter().map(|change| (clusters + cluster, change)));
    }
    let mut booking = Transaction::new(profiles);
    // What is given back first may be what is taken then.
    for is_more in [false, true] {
        for (profile, (over, was, is)) in &changes {
            let over = over.start.max(now_ns)..over.end;
            if over.is_empty() || (is > was) != is_more {
                continue;
            }
            let booked = if is_more {
                booking.subtract(*profile, over, is - was)
            } else {
                booking.add(*profile, over, was - is)
            };
            booked.map_err(|_| Refusal::NoRoom)?;
        }
    }
    booking.commit();
    Ok(())
}
