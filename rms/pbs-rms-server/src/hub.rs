// SPDX-License-Identifier: GPL-2.0
//! The manager, whose sessions are, and what they have not been told yet.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use pbs_rms::{AppId, Ask, Event, Kind, Policy, Relation, Request, RequestId, Rms};
use pbs_rms_api::{
    Account, Asked, Change, Cluster, ClusterNodes, Connected, Made, Notice, Refusal, Session, View,
};
use pbs_socket::{user_name, Caller};
use pbs_text::span;
use pbs_uapi::clock::unix_ns;
use tokio::sync::Notify;

use crate::budget::Budget;
use crate::convert::{self, Over};
use crate::firm::firm_nodes;
use crate::journal::{Error, Journal};
use crate::kept::{kept_around, kept_before_next, Kept};

/// Requests of all sessions of one user, unless an operator's: what a pass takes grows with the
/// square of how many there are, if they are made for that.
const MOST_REQUESTS: usize = 1024;
/// Notices that wait for one who monitors, besides views, and the nodes that they name.
const MOST_NOTICES: usize = 4096;
const MOST_NOTICED: usize = 1 << 20;
/// Accounts of sessions of one user that are over; of earlier ones there is the sum.
const MOST_OVER: usize = 200;
/// Name of the sum.
const EARLIER: &str = "(earlier)";
/// After a pass that has taken longer than that, others get as much time.
const LONG_PASS_NS: u64 = 5_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The longest name of a session.
const NAME_BYTES: usize = 200;

/// A cluster that is managed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// Name of the cluster.
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// CPU of this machine for each node; `None`: the nodes are not CPUs of this machine.
    pub cpus: Option<Vec<u32>>,
}

impl Managed {
    /// Creates a cluster of that many nodes elsewhere.
    pub fn new(name: impl Into<String>, nodes: u32) -> Self {
        Self { name: name.into(), nodes, cpus: None }
    }
}

/// Settings of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The clusters.
    pub clusters: Vec<Managed>,
    /// Policy of the manager.
    pub policy: Policy,
    /// Time after which a session that is not monitored ends.
    pub absence_grace_ns: u64,
    /// Sessions of one user at a time, unless an operator's.
    pub most_sessions: usize,
    /// Longest time for which requests that run to completion keep nodes, one after the other,
    /// unless an operator's. Preemptible requests lose their nodes anyway.
    pub longest_ns: u64,
}

/// The time since 1970, as it was at first: a clock that is set moves no deadline.
#[derive(Debug)]
struct Clock {
    began_ns: u64,
    began: Instant,
}

/// The manager, whose sessions are, and what they have not been told yet.
#[derive(Debug)]
pub struct Hub {
    rms: Rms,
    settings: Settings,
    clock: Clock,
    owners: BTreeMap<AppId, Owner>,
    /// Bytes that each user has added to the journal.
    budgets: BTreeMap<u32, Budget>,
    /// Accounts of each user's ended sessions, the latest last.
    over: BTreeMap<u32, VecDeque<Over>>,
    /// Time before which there is no pass.
    rests_until_ns: u64,
    journal: Option<Journal>,
    bell: Rc<Notify>,
    failed: Option<io::Error>,
    monitors: u64,
}

#[derive(Debug)]
struct Owner {
    uid: u32,
    /// Number of the monitor; 0: the session is not monitored, since `absent_since_ns`.
    monitor: u64,
    absent_since_ns: u64,
    waiting: VecDeque<Event>,
    /// The nodes that those name.
    noticed: usize,
    is_lagged: bool,
    /// The manager does not have it any more; who monitors it has not heard all of that.
    is_over: bool,
    bell: Rc<Notify>,
}

/// The next notice for a monitor.
pub(crate) enum NextNotice {
    Notice(Box<Notice>),
    /// No notice is available yet; the bell rings when there is one.
    Wait(Rc<Notify>),
    Lagged,
    Over,
}

impl Clock {
    /// Creates a clock that does not begin before that time.
    fn new(earliest_ns: u64) -> Self {
        Self { began_ns: unix_ns().max(earliest_ns), began: Instant::now() }
    }

    fn now_ns(&self) -> u64 {
        let ns = u64::try_from(self.began.elapsed().as_nanos());
        self.began_ns.saturating_add(ns.unwrap_or(u64::MAX))
    }
}

impl Hub {
    /// A manager of these clusters, that goes on with what the file of that name says and keeps
    /// there what happens. Without one, nothing outlives it.
    pub fn open(settings: Settings, journal: Option<&Path>) -> Result<Self, Error> {
        let sizes: Vec<u32> = settings.clusters.iter().map(|cluster| cluster.nodes).collect();
        let policy = settings.policy.clone();
        let opened = journal.map(Journal::open).transpose()?;
        let kept = opened.iter().flat_map(|(_, (_, kept))| kept.values());
        let times = kept.flat_map(|kept| {
            let starts = kept.session.requests.iter().filter_map(|request| request.started_ns);
            starts.chain([kept.session.accounted_ns()])
        });
        // What has started, or is paid, was before now, whatever the clock says after a crash.
        let clock = Clock::new(times.max().unwrap_or(0));
        let now_ns = clock.now_ns();
        let mut hub = Self {
            rms: Rms::new(policy.clone(), &sizes, now_ns),
            settings,
            clock,
            owners: BTreeMap::new(),
            budgets: BTreeMap::new(),
            over: BTreeMap::new(),
            rests_until_ns: 0,
            journal: None,
            bell: Rc::default(),
            failed: None,
            monitors: 0,
        };
        let (Some(path), Some((mut journal, (counters, kept)))) = (journal, opened) else {
            return Ok(hub);
        };
        if let Some(counters) = counters {
            let unusable = |why| Error::Unusable(path.into(), why);
            if counters.sizes != sizes {
                let were = counters.sizes;
                return Err(unusable(pbs_rms::Unusable::Sizes { were }));
            }
            for (&app, kept) in &kept {
                hub.owners.insert(app, Owner::new(kept.uid, now_ns));
            }
            let sessions = kept.into_iter().map(|(app, kept)| (app, kept.session));
            let restored = Rms::restore(policy, counters, sessions, now_ns);
            hub.rms = restored.map_err(unusable)?;
        }
        let rewritten = journal.rewrite(now_ns, hub.rms.counters(), all(&hub.rms, &hub.owners));
        rewritten.map_err(|error| Error::Io(path.into(), error))?;
        hub.journal = Some(journal);
        Ok(hub)
    }

    /// Returns the number of sessions.
    pub fn session_count(&self) -> usize {
        self.rms.sessions().count()
    }

    /// Rings when it may be time to work.
    pub(crate) fn bell(&self) -> Rc<Notify> {
        Rc::clone(&self.bell)
    }

    /// Returns the time without work if nobody rings.
    pub(crate) fn wait_ns(&self) -> Option<u64> {
        let absent = self.owners.values().filter(|owner| owner.monitor == 0 && !owner.is_over);
        let grace_ns = self.settings.absence_grace_ns;
        let ends = absent.map(|owner| owner.absent_since_ns.saturating_add(grace_ns));
        let next_ns = ends.chain(self.next_pass_ns()).min()?;
        Some(next_ns.saturating_sub(self.clock.now_ns()))
    }

    fn next_pass_ns(&self) -> Option<u64> {
        let next_ns = self.rms.next_pass_ns();
        next_ns.map(|ns| ns.max(self.rests_until_ns))
    }

    /// Performs the work that is due.
    pub(crate) fn work(&mut self) -> io::Result<()> {
        let now_ns = self.clock.now_ns();
        let grace_ns = self.settings.absence_grace_ns;
        let is_gone = |owner: &Owner| {
            let absent_ns = now_ns.saturating_sub(owner.absent_since_ns);
            owner.monitor == 0 && !owner.is_over && absent_ns >= grace_ns
        };
        let gone = self.owners.iter().filter(|(_, owner)| is_gone(owner));
        let gone: Vec<AppId> = gone.map(|(&app, _)| app).collect();
        for app in gone {
            // An application that has disconnected itself is gone as well.
            let _ = self.rms.disconnect(app, now_ns);
            self.end(app);
        }
        if self.next_pass_ns().is_some_and(|ns| ns <= now_ns) {
            let notices = self.rms.pass(now_ns);
            // Before anybody hears of it.
            for (uid, bytes) in self.keep() {
                self.spend(uid, bytes);
            }
            let end_ns = self.clock.now_ns();
            let took_ns = end_ns - now_ns;
            if took_ns > LONG_PASS_NS {
                self.rests_until_ns = end_ns.saturating_add(took_ns);
            }
            for notice in notices {
                let is_over = matches!(notice.event, Event::Violation { .. });
                if let Some(owner) = self.owners.get_mut(&notice.app) {
                    owner.push(notice.event);
                }
                if is_over {
                    self.end(notice.app);
                }
            }
        }
        self.keep();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Stores all changes. Returns the bytes that the sessions of each user have added.
    fn keep(&mut self) -> Vec<(u32, u64)> {
        let changed = self.rms.take_changed();
        for closed in self.rms.take_closed() {
            let uid = self.owners.get(&closed.app).map_or(u32::MAX, |owner| owner.uid);
            // Of who has had nothing there is nothing to say.
            if closed.account != pbs_rms::Account::default() {
                self.note_over(uid, closed);
            }
        }
        // After a line that was cut off there must be no other.
        let can_keep = !changed.is_empty() && self.failed.is_none();
        let Some(journal) = self.journal.as_mut().filter(|_| can_keep) else {
            return Vec::new();
        };
        let now_ns = self.clock.now_ns();
        let (rms, owners) = (&self.rms, &self.owners);
        let changed = changed.into_iter().map(|app| {
            let owner = owners.get(&app);
            let kept = rms.session(app).and_then(|it| Some((owner?.uid, it)));
            (app, kept)
        });
        match journal.keep(rms.counters(), changed) {
            Err(error) => {
                self.failed = Some(error);
                self.bell.notify_one();
                Vec::new()
            }
            Ok(added) => {
                if journal.is_long(now_ns) {
                    // If there is no room for a second one, the first goes on and grows.
                    let _ = journal.rewrite(now_ns, rms.counters(), all(rms, owners));
                }
                added
            }
        }
    }

    fn note_over(&mut self, uid: u32, closed: pbs_rms::Closed) {
        let over = self.over.entry(uid).or_default();
        over.push_back(closed);
        if over.len() > MOST_OVER {
            // Nobody's account is forgotten because he, or another, has had many.
            if let (Some(first), Some(second)) = (over.pop_front(), over.front_mut()) {
                second.account.add(&first.account);
                second.name = EARLIER.into();
            }
        }
    }

    /// Simulates a failure of the journal.
    #[cfg(test)]
    pub(crate) fn fail(&mut self) {
        self.failed = Some(io::Error::from(io::ErrorKind::StorageFull));
    }

    /// A session is over; who monitors it hears of that.
    fn end(&mut self, app: AppId) {
        // Its account has its owner.
        self.keep();
        if let Some(owner) = self.owners.get_mut(&app) {
            owner.is_over = true;
            owner.bell.notify_one();
            if owner.monitor == 0 {
                self.owners.remove(&app);
            }
        }
    }

    /// Whether a user may change something that is not less than before.
    fn check_budget(&self, caller: &Caller) -> Result<(), Refusal> {
        let budget = self.budgets.get(&caller.uid).copied().unwrap_or_default();
        let wait_ns = budget.wait_ns(self.clock.now_ns()).filter(|_| !caller.is_operator);
        wait_ns.map_or(Ok(()), |wait_ns| {
            let why = format!(
                "these changes are too many, or too large; try again in {}",
                span(wait_ns.next_multiple_of(SECOND_NS))
            );
            Err(Refusal::Refused { why })
        })
    }

    /// Notes that a user has added bytes to the journal.
    pub(crate) fn spend(&mut self, uid: u32, bytes: u64) {
        let now_ns = self.clock.now_ns();
        self.budgets.entry(uid).or_default().add(now_ns, bytes);
    }

    /// Bytes that a user has added, as they were noted last.
    #[cfg(test)]
    pub(crate) fn spent_bytes(&self, uid: u32) -> u64 {
        self.budgets.get(&uid).map_or(0, |budget| budget.added_bytes)
    }

    /// Keeps what a message of a user has changed, without which it has no other answer.
    fn changed<T>(
        &mut self,
        caller: &Caller,
        answer: Result<T, pbs_rms::Refusal>,
    ) -> Result<T, Refusal> {
        // Whoever makes the changes, of whatever session, has added them.
        let added = self.keep().into_iter().map(|added| added.1);
        self.spend(caller.uid, added.fold(0, u64::saturating_add));
        self.bell.notify_one();
        match &self.failed {
            Some(error) => Err(Refusal::Refused {
                why: format!("changes can't be stored, and the service ends: {error}"),
            }),
            None => answer.map_err(convert::refused),
        }
    }

    /// Stores the changes of a call that has asked for nodes of a cluster for a time.
    fn changed_or_no_room(
        &mut self,
        caller: &Caller,
        made: Result<RequestId, pbs_rms::Refusal>,
        (cluster, nodes, duration_ns): (usize, u64, u64),
    ) -> Result<RequestId, Refusal> {
        let has_room = !matches!(made, Err(pbs_rms::Refusal::NoRoom));
        let changed = self.changed(caller, made);
        changed
            .map_err(|why| if has_room { why } else { self.no_room(cluster, nodes, duration_ns) })
    }

    /// Refusal of nodes for which there is no room at the only time at which they could be had.
    fn no_room(&self, cluster: usize, nodes: u64, duration_ns: u64) -> Refusal {
        let name = self.settings.clusters.get(cluster).map_or("", |cluster| &cluster.name);
        let (long, write) = match convert::finite(duration_ns) {
            Some(ns) => (format!("for {}", span(ns)), "for a shorter time"),
            None => ("without an end".into(), "with a duration"),
        };
        let why = format!(
            "cluster {name} has no room for {nodes} nodes {long} at the time at which they must be \
             had; ask for fewer nodes, or {write}"
        );
        Refusal::Refused { why }
    }

    fn own(&self, caller: &Caller, session: u64) -> Result<AppId, Refusal> {
        let app = AppId(session);
        let owner = self.owners.get(&app).filter(|owner| !owner.is_over);
        let owner = owner.ok_or(Refusal::NoSuchSession { session })?;
        if caller.may(Some(owner.uid)) {
            return Ok(app);
        }
        Err(Refusal::NotPermitted { what: format!("using session {session}") })
    }

    /// Whether a session's user may have one more request.
    fn check_requests(&self, caller: &Caller, app: AppId) -> Result<(), Refusal> {
        let uid = self.owners.get(&app).map(|owner| owner.uid);
        let own = self.owners.iter().filter(|(_, it)| Some(it.uid) == uid);
        let own = own.filter_map(|(&app, _)| self.rms.session(app));
        let count: usize = own.map(|session| session.requests.len()).sum();
        if count >= MOST_REQUESTS && !caller.is_operator {
            let why = format!("a user may have at most {MOST_REQUESTS} requests; end some first");
            return Err(Refusal::Refused { why });
        }
        Ok(())
    }

    /// Checks the number of nodes of a new request: the limit of nodes is that of all sessions of a
    /// user together. The manager itself applies it to each session.
    fn check_nodes(&self, caller: &Caller, app: AppId, ask: &Ask) -> Result<(), Refusal> {
        let limit = self.settings.policy.limits.nodes;
        if limit == u64::MAX || ask.kind == Kind::Preemptible || caller.is_operator {
            return Ok(());
        }
        let uid = self.owners.get(&app).map(|owner| owner.uid);
        let others = self.owners.iter().filter(|&(&other, it)| Some(it.uid) == uid && other != app);
        let others = others.filter_map(|(&other, _)| self.rms.session(other));
        let others = others.map(|other| firm_nodes(other, ask.cluster, None).min(limit));
        let others = others.fold(0, u64::saturating_add);
        let own = self.rms.session(app).map_or(0, |own| firm_nodes(own, ask.cluster, Some(ask)));
        // A single session may ask for more, one after the other: the manager places that.
        if others == 0 || own <= limit.saturating_sub(others) {
            return Ok(());
        }
        let why = format!(
            "a user may have at most {limit} nodes of a cluster, in all sessions; the others ask for \
             {others}, and this one with that request for {own}: ask for fewer, or end others first"
        );
        Err(Refusal::Refused { why })
    }

    /// Checks how long a request may last, whose nodes others keep before and after it.
    fn check_duration(
        &self,
        caller: &Caller,
        kind: Kind,
        kept: Kept,
        duration_ns: u64,
    ) -> Result<(), Refusal> {
        let longest_ns = self.settings.longest_ns;
        let is_short = kept.sum_ns().saturating_add(duration_ns) <= longest_ns;
        if is_short || kind == Kind::Preemptible || caller.is_operator {
            return Ok(());
        }
        let longest = span(longest_ns);
        let why = match longest_ns.saturating_sub(kept.sum_ns()) {
            _ if kept.sum_ns() == 0 => {
                format!("a request may last at most {longest}; write a duration")
            }
            0 => format!(
                "nodes may be kept for at most {longest}, which other requests one after the other \
                 take already; release the nodes"
            ),
            left_ns => format!(
                "nodes may be kept for at most {longest}, also by requests one after the other; \
                 write a duration of at most {}",
                span(left_ns)
            ),
        };
        Err(Refusal::Refused { why })
    }

    pub(crate) fn connect(&mut self, caller: &Caller, name: &str) -> Result<Connected, Refusal> {
        let is_name = !name.trim().is_empty() && name.len() <= NAME_BYTES;
        if !is_name || !name.chars().all(is_plain) {
            let why = format!("the name of a session must have 1 to {NAME_BYTES} printable bytes");
            return Err(Refusal::Refused { why });
        }
        by_themselves(caller)?;
        self.check_budget(caller)?;
        let own = self.owners.values().filter(|owner| owner.uid == caller.uid);
        let most = self.settings.most_sessions;
        if own.count() >= most && !caller.is_operator {
            let most = most as u64;
            return Err(Refusal::TooManySessions { most });
        }
        let now_ns = self.clock.now_ns();
        let app = self.rms.connect(name, now_ns);
        self.owners.insert(app, Owner::new(caller.uid, now_ns));
        let clusters = self.settings.clusters.iter().map(|cluster| Cluster {
            name: cluster.name.clone(),
            nodes: u64::from(cluster.nodes),
            cpus: cluster.cpus.clone(),
        });
        let connected = Connected { session: app.0, clusters: clusters.collect() };
        self.changed(caller, Ok(connected))
    }

    pub(crate) fn disconnect(&mut self, caller: &Caller, session: u64) -> Result<(), Refusal> {
        let app = self.own(caller, session)?;
        let gone = self.rms.disconnect(app, self.clock.now_ns());
        self.end(app);
        self.changed(caller, gone)
    }

    pub(crate) fn request(
        &mut self,
        caller: &Caller,
        session: u64,
        asked: Asked,
    ) -> Result<u64, Refusal> {
        let app = self.own(caller, session)?;
        self.check_budget(caller)?;
        self.check_requests(caller, app)?;
        let now_ns = self.clock.now_ns();
        let ask = convert::ask(asked)?;
        let before_ns = match ask.relation {
            Relation::Next(before) => {
                self.rms.session(app).map_or(0, |session| kept_before_next(session, before))
            }
            Relation::Free | Relation::Coalloc(_) => 0,
        };
        let kept = Kept { before_ns, after_ns: 0 };
        self.check_duration(caller, ask.kind, kept, ask.duration_ns)?;
        self.check_nodes(caller, app, &ask)?;
        let (cluster, nodes, duration_ns) = (ask.cluster, ask.nodes, ask.duration_ns);
        let id = self.rms.request(app, ask, now_ns);
        let id = self.changed_or_no_room(caller, id, (cluster, nodes, duration_ns))?;
        Ok(id.0)
    }

    pub(crate) fn done(
        &mut self,
        caller: &Caller,
        session: u64,
        request: u64,
        released: &[u32],
    ) -> Result<(), Refusal> {
        let app = self.own(caller, session)?;
        let now_ns = self.clock.now_ns();
        let done = self.rms.done(app, RequestId(request), released, now_ns);
        self.changed(caller, done)
    }

    pub(crate) fn update(
        &mut self,
        caller: &Caller,
        session: u64,
        update: Change,
    ) -> Result<Made, Refusal> {
        let app = self.own(caller, session)?;
        let update = convert::update(update);
        let own = self.rms.session(app);
        let requests = own.map(|session| &session.requests);
        let of = requests.and_then(|all| all.iter().find(|request| request.id == update.of));
        // What waits gives no nodes back.
        let gives_back = |of: &Request| of.started_ns.is_some() && update.nodes < of.ask.nodes;
        let is_less = of.is_some_and(gives_back) && update.announce_ns == 0;
        if !is_less {
            self.check_budget(caller)?;
        }
        if update.announce_ns > 0 {
            // That makes one more.
            self.check_requests(caller, app)?;
        }
        let now_ns = self.clock.now_ns();
        // A request that is not there is refused for that.
        if let (Some(own), Some(of)) = (own, of) {
            let mut kept = kept_around(own, of.id);
            if of.started_ns.is_some() {
                kept.before_ns = of.kept_until(now_ns).saturating_add(update.announce_ns);
            }
            let until_ns = now_ns.saturating_add(update.duration_ns);
            let is_no_later = of.end_ns().is_some_and(|end_ns| until_ns <= end_ns);
            if !is_less || !is_no_later {
                self.check_duration(caller, of.ask.kind, kept, update.duration_ns)?;
            }
            if update.nodes > of.ask.nodes {
                let (nodes, relation) = (update.nodes, Relation::Next(update.of));
                let successor = Ask { nodes, relation, preferred: Vec::new(), ..of.ask };
                self.check_nodes(caller, app, &successor)?;
            }
        }
        let cluster = of.map_or(0, |of| of.ask.cluster);
        let id = self.rms.update(app, &update, now_ns);
        let asked = (cluster, update.nodes, update.duration_ns);
        let id = self.changed_or_no_room(caller, id, asked)?;
        let requests = self.rms.session(app).map(|session| &session.requests);
        let made = requests.and_then(|all| all.iter().find(|request| request.id == id));
        // What had not started before has become another, and nothing has the nodes until then.
        let waits = made.filter(|made| made.started_ns.is_none() && id != update.of);
        let until = waits.and_then(|request| request.ask.relation.parent());
        Ok(Made { request: id.0, until: until.map(|id| id.0) })
    }

    pub(crate) fn waste(
        &mut self,
        caller: &Caller,
        session: u64,
        node_ns: u64,
    ) -> Result<(), Refusal> {
        let app = self.own(caller, session)?;
        self.check_budget(caller)?;
        let wasted = self.rms.waste(app, u128::from(node_ns));
        self.changed(caller, wasted)
    }

    pub(crate) fn sessions(&self) -> Vec<Session> {
        let all = self.rms.sessions().filter_map(|(app, session)| {
            let owner = self.owners.get(&app)?;
            Some(Session {
                session: app.0,
                name: session.name.clone(),
                uid: owner.uid,
                is_monitored: owner.monitor != 0,
                requests: session.requests.iter().map(convert::request).collect(),
            })
        });
        all.collect()
    }

    pub(crate) fn nodes(&self) -> Vec<ClusterNodes> {
        let clusters = self.settings.clusters.iter().enumerate();
        let nodes = clusters.map(|(place, cluster)| ClusterNodes {
            name: cluster.name.clone(),
            nodes: u64::from(cluster.nodes),
            idle: self.rms.idle(place),
        });
        nodes.collect()
    }

    pub(crate) fn views(&self, caller: &Caller, session: u64) -> Result<Vec<View>, Refusal> {
        let app = self.own(caller, session)?;
        let clusters = 0..self.settings.clusters.len();
        let views = clusters.filter_map(|cluster| {
            let views = self.rms.views(app, cluster)?;
            Some(convert::views(cluster, &views))
        });
        Ok(views.collect())
    }

    pub(crate) fn accounts(&self, caller: &Caller) -> Vec<Account> {
        let prices = &self.settings.policy.prices;
        let now_ns = self.clock.now_ns();
        let live = self.rms.sessions().filter_map(|(app, session)| {
            let uid = self.owners.get(&app)?.uid;
            let account = || session.account_at(now_ns);
            let over = caller.may(Some(uid)).then(|| Over {
                app,
                name: session.name.clone(),
                account: account(),
            });
            Some(convert::account(&over?, uid, false, prices))
        });
        let over = self.over.iter().filter(|(&uid, _)| caller.may(Some(uid)));
        let mut over: Vec<(u32, &Over)> =
            over.flat_map(|(&uid, all)| all.iter().map(move |over| (uid, over))).collect();
        over.sort_by_key(|(_, over)| over.app);
        let over = over.into_iter();
        live.chain(over.map(|(uid, over)| convert::account(over, uid, true, prices))).collect()
    }

    /// Begins to monitor a session, from how it is: whoever did before does not any more.
    pub(crate) fn monitor(&mut self, caller: &Caller, session: u64) -> Result<u64, Refusal> {
        let app = self.own(caller, session)?;
        let requests = self.rms.session(app).map(|session| &session.requests);
        let started = requests.into_iter().flatten().filter(|request| request.is_notified);
        let started = started
            .map(|request| Event::Started { request: request.id, nodes: request.nodes.clone() });
        let views = (0..self.settings.clusters.len()).map(|cluster| Event::Views { cluster });
        self.monitors += 1;
        if let Some(owner) = self.owners.get_mut(&app) {
            owner.waiting = views.chain(started).collect();
            owner.noticed = owner.waiting.iter().map(nodes_of).sum();
            owner.is_lagged = false;
            owner.monitor = self.monitors;
            owner.bell.notify_waiters();
            owner.bell = Rc::default();
        }
        Ok(self.monitors)
    }

    /// The next notice for a monitor.
    pub(crate) fn next(&mut self, session: u64, monitor: u64) -> NextNotice {
        let app = AppId(session);
        let owner = self.owners.get_mut(&app).filter(|owner| owner.monitor == monitor);
        let Some(owner) = owner else {
            return NextNotice::Over;
        };
        if owner.is_lagged {
            return NextNotice::Lagged;
        }
        let notice = Notice { unix_ns: self.clock.now_ns(), ..Notice::default() };
        let Some(event) = owner.waiting.pop_front() else {
            if !owner.is_over {
                return NextNotice::Wait(Rc::clone(&owner.bell));
            }
            self.owners.remove(&app);
            let kind = "closed".into();
            return NextNotice::Notice(Box::new(Notice { kind, ..notice }));
        };
        owner.noticed -= nodes_of(&event);
        let why = self.why(&event);
        let (kind, request, nodes) = match event {
            Event::Views { cluster } => {
                let views = self.rms.views(app, cluster);
                let views = views.map(|views| convert::views(cluster, &views));
                let kind = "views".into();
                return NextNotice::Notice(Box::new(Notice { kind, views, ..notice }));
            }
            Event::Started { request, nodes } => ("started", Some(request.0), nodes),
            Event::Ended { request, killed } => ("ended", Some(request.0), killed),
            Event::Refused { request } => ("refused", Some(request.0), Vec::new()),
            Event::Violation { killed, .. } => ("violation", None, killed.concat()),
        };
        NextNotice::Notice(Box::new(Notice {
            kind: kind.into(),
            request,
            nodes: Some(nodes),
            why,
            ..notice
        }))
    }

    /// In words, of what an application has not asked for.
    fn why(&self, event: &Event) -> Option<String> {
        match event {
            Event::Views { .. } | Event::Started { .. } => None,
            Event::Ended { .. } => Some("its time has ended".into()),
            Event::Refused { .. } => {
                Some("there are too few nodes, or the request that it depended on has ended".into())
            }
            Event::Violation { cluster, held, allowed, .. } => {
                let name = &self.settings.clusters.get(*cluster)?.name;
                Some(format!(
                    "{held} preemptible nodes of cluster {name} were kept, and {allowed} are \
                     permitted"
                ))
            }
        }
    }

    /// Marks a session as not monitored, if the given monitor was its last.
    pub(crate) fn left(&mut self, session: u64, monitor: u64) {
        let app = AppId(session);
        let now_ns = self.clock.now_ns();
        let owner = self.owners.get_mut(&app).filter(|owner| owner.monitor == monitor);
        if let Some(owner) = owner {
            owner.monitor = 0;
            owner.absent_since_ns = now_ns;
            owner.waiting = VecDeque::new();
            owner.noticed = 0;
            if owner.is_over {
                self.owners.remove(&app);
            }
            self.bell.notify_one();
        }
    }
}

/// Refuses a subordinate user, such as one of a user namespace. Limits count what a user has, and
/// one account has many subordinate users.
fn by_themselves(caller: &Caller) -> Result<(), Refusal> {
    if caller.uid == caller.account {
        return Ok(());
    }
    let owner = user_name(caller.account);
    let why = format!(
        "user {} is subordinate to {owner} in /etc/subuid; leave the user namespace, and connect \
         as {owner}",
        caller.uid
    );
    Err(Refusal::Refused { why })
}

/// Returns the number of nodes that an event names.
fn nodes_of(event: &Event) -> usize {
    match event {
        Event::Views { .. } | Event::Refused { .. } => 0,
        Event::Started { nodes, .. } | Event::Ended { killed: nodes, .. } => nodes.len(),
        Event::Violation { killed, .. } => killed.iter().map(Vec::len).sum(),
    }
}

/// Whether it can be seen in a table, and moves nothing else there.
fn is_plain(character: char) -> bool {
    // What has no width, ends a line or turns the direction of what is written.
    let is_odd = matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
    );
    !character.is_control() && !is_odd
}

fn all<'a>(
    rms: &'a Rms,
    owners: &'a BTreeMap<AppId, Owner>,
) -> impl Iterator<Item = (AppId, u32, &'a pbs_rms::Session)> {
    let sessions = rms.sessions();
    sessions.filter_map(|(app, session)| Some((app, owners.get(&app)?.uid, session)))
}

impl Owner {
    fn new(uid: u32, now_ns: u64) -> Self {
        Self {
            uid,
            monitor: 0,
            absent_since_ns: now_ns,
            waiting: VecDeque::new(),
            noticed: 0,
            is_lagged: false,
            is_over: false,
            bell: Rc::default(),
        }
    }

    fn push(&mut self, event: Event) {
        if self.monitor == 0 {
            // Who comes is told how things are then.
            return;
        }
        // Views are made when they are read, so that one is enough.
        let is_view = matches!(event, Event::Views { .. });
        if is_view && self.waiting.contains(&event) {
            return;
        }
        let noticed = self.noticed + nodes_of(&event);
        // One is told, however many it names.
        let is_much = noticed > MOST_NOTICED && self.noticed > 0;
        if self.waiting.len() >= MOST_NOTICES || is_much {
            self.is_lagged = true;
            self.waiting = VecDeque::new();
            self.noticed = 0;
        } else if !self.is_lagged {
            self.waiting.push_back(event);
            self.noticed = noticed;
        }
        self.bell.notify_one();
    }
}
