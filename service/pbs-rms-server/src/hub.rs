// SPDX-License-Identifier: GPL-2.0
//! The manager, whose sessions are, and what they have not been told yet.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use pbs_rms::{AppId, Event, Policy, RequestId, Rms};
use pbs_rms_wire::{
    Account, Asked, Change, Cluster, ClusterNodes, Connected, Made, Notice, Refusal, Session, View,
};
use pbs_socket::Caller;
use tokio::sync::Notify;

use crate::convert;
use crate::journal::{Error, Journal};

/// Sessions of one user, unless an operator's.
const MOST_SESSIONS: usize = 64;
/// Notices that wait for one who monitors, besides views.
const MOST_NOTICES: usize = 4096;
/// Accounts of sessions that are over.
const MOST_OVER: usize = 10_000;
/// The longest name of a session.
const NAME_BYTES: usize = 200;

/// A cluster that is managed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// Which CPU of this machine each of them is; `None`: they are no CPUs of it.
    pub cpus: Option<Vec<u32>>,
}

impl Managed {
    /// So many nodes that are elsewhere.
    pub fn new(name: impl Into<String>, nodes: u32) -> Self {
        Self {
            name: name.into(),
            nodes,
            cpus: None,
        }
    }
}

/// What an operator says.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The clusters.
    pub clusters: Vec<Managed>,
    /// How the manager decides.
    pub policy: Policy,
    /// How long a session goes on that nobody monitors.
    pub absence_grace_ns: u64,
}

/// The manager, whose sessions are, and what they have not been told yet.
#[derive(Debug)]
pub struct Hub {
    rms: Rms,
    settings: Settings,
    owners: BTreeMap<AppId, Owner>,
    over: VecDeque<Account>,
    journal: Option<Journal>,
    bell: Rc<Notify>,
    failed: Option<io::Error>,
    monitors: u64,
}

#[derive(Debug)]
struct Owner {
    uid: u32,
    /// Who monitors it; 0: nobody does, since then.
    monitor: u64,
    absent_since_ns: u64,
    waiting: VecDeque<Event>,
    is_lagged: bool,
    /// The manager does not have it any more; who monitors it has not heard all of that.
    is_over: bool,
    bell: Rc<Notify>,
}

/// What there is for one who monitors.
pub(crate) enum Next {
    Notice(Box<Notice>),
    /// Nothing yet; rings when there is.
    Wait(Rc<Notify>),
    Lagged,
    Over,
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Hub {
    /// A manager of these clusters, that goes on with what the file of that name says and keeps
    /// there what happens. Without one, nothing outlives it.
    pub fn open(settings: Settings, journal: Option<&Path>) -> Result<Self, Error> {
        let sizes: Vec<u32> = settings
            .clusters
            .iter()
            .map(|cluster| cluster.nodes)
            .collect();
        let policy = settings.policy.clone();
        let now_ns = now_ns();
        let mut hub = Self {
            rms: Rms::new(policy.clone(), &sizes, now_ns),
            settings,
            owners: BTreeMap::new(),
            over: VecDeque::new(),
            journal: None,
            bell: Rc::default(),
            failed: None,
            monitors: 0,
        };
        let Some(path) = journal else {
            return Ok(hub);
        };
        let (mut journal, (counters, kept)) = Journal::open(path)?;
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
        let rewritten = journal.rewrite(hub.rms.counters(), all(&hub.rms, &hub.owners));
        rewritten.map_err(|error| Error::Io(path.into(), error))?;
        hub.journal = Some(journal);
        Ok(hub)
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.rms.sessions().count()
    }

    /// Rings when it may be time to work.
    pub(crate) fn bell(&self) -> Rc<Notify> {
        Rc::clone(&self.bell)
    }

    /// How long nothing is to be done if nobody rings.
    pub(crate) fn wait_ns(&self) -> Option<u64> {
        let absent = self
            .owners
            .values()
            .filter(|owner| owner.monitor == 0 && !owner.is_over);
        let grace_ns = self.settings.absence_grace_ns;
        let ends = absent.map(|owner| owner.absent_since_ns.saturating_add(grace_ns));
        let next_ns = ends.chain(self.rms.next_pass_ns()).min()?;
        Some(next_ns.saturating_sub(now_ns()))
    }

    /// Does what is due.
    pub(crate) fn work(&mut self) -> io::Result<()> {
        let now_ns = now_ns();
        let grace_ns = self.settings.absence_grace_ns;
        let is_gone = |owner: &Owner| {
            let absent_ns = now_ns.saturating_sub(owner.absent_since_ns);
            owner.monitor == 0 && !owner.is_over && absent_ns >= grace_ns
        };
        let gone = self.owners.iter().filter(|(_, owner)| is_gone(owner));
        let gone: Vec<AppId> = gone.map(|(&app, _)| app).collect();
        for app in gone {
            let _ = self.rms.disconnect(app, now_ns);
            self.end(app);
        }
        if self.rms.next_pass_ns().is_some_and(|ns| ns <= now_ns) {
            let notices = self.rms.pass(now_ns);
            // Before anybody hears of it.
            self.keep();
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

    fn keep(&mut self) {
        let changed = self.rms.take_changed();
        for closed in self.rms.take_closed() {
            let uid = self
                .owners
                .get(&closed.app)
                .map_or(u32::MAX, |owner| owner.uid);
            let prices = &self.settings.policy.prices;
            let account = &closed.account;
            let over = convert::account(closed.app, &closed.name, uid, true, account, prices);
            self.over.push_back(over);
            if self.over.len() > MOST_OVER {
                self.over.pop_front();
            }
        }
        let Some(journal) = self.journal.as_mut().filter(|_| !changed.is_empty()) else {
            return;
        };
        let (rms, owners) = (&self.rms, &self.owners);
        let changed = changed.into_iter().map(|app| {
            let owner = owners.get(&app);
            let kept = rms.session(app).and_then(|it| Some((owner?.uid, it)));
            (app, kept)
        });
        let mut kept = journal.keep(rms.counters(), changed);
        if kept.is_ok() && journal.is_long() {
            kept = journal.rewrite(rms.counters(), all(rms, owners));
        }
        if let Err(error) = kept {
            self.failed = Some(error);
            self.bell.notify_one();
        }
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

    fn changed<T>(&mut self, answer: T) -> T {
        self.keep();
        self.bell.notify_one();
        answer
    }

    fn own(&self, caller: &Caller, session: u64) -> Result<AppId, Refusal> {
        let app = AppId(session);
        let owner = self.owners.get(&app).filter(|owner| !owner.is_over);
        let owner = owner.ok_or(Refusal::NoSuchSession { session })?;
        if caller.may(Some(owner.uid)) {
            return Ok(app);
        }
        Err(Refusal::NotPermitted {
            what: format!("to do something in session {session}"),
        })
    }

    pub(crate) fn connect(&mut self, caller: &Caller, name: &str) -> Result<Connected, Refusal> {
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES;
        if !is_name || name.chars().any(char::is_control) {
            let why = format!("a name has 1 to {NAME_BYTES} bytes that can be printed");
            return Err(Refusal::Refused { why });
        }
        let own = self.owners.values().filter(|owner| owner.uid == caller.uid);
        if own.count() >= MOST_SESSIONS && !caller.is_operator {
            let most = MOST_SESSIONS as u64;
            return Err(Refusal::TooManySessions { most });
        }
        let now_ns = now_ns();
        let app = self.rms.connect(name, now_ns);
        self.owners.insert(app, Owner::new(caller.uid, now_ns));
        let clusters = self.settings.clusters.iter().map(|cluster| Cluster {
            name: cluster.name.clone(),
            nodes: u64::from(cluster.nodes),
            cpus: cluster.cpus.clone(),
        });
        let connected = Connected {
            session: app.0,
            clusters: clusters.collect(),
        };
        Ok(self.changed(connected))
    }

    pub(crate) fn disconnect(&mut self, caller: &Caller, session: u64) -> Result<(), Refusal> {
        let app = self.own(caller, session)?;
        self.rms
            .disconnect(app, now_ns())
            .map_err(convert::refused)?;
        self.end(app);
        self.changed(());
        Ok(())
    }

    pub(crate) fn request(
        &mut self,
        caller: &Caller,
        session: u64,
        asked: Asked,
    ) -> Result<u64, Refusal> {
        let app = self.own(caller, session)?;
        let id = self.rms.request(app, convert::ask(asked)?, now_ns());
        self.changed(id).map(|id| id.0).map_err(convert::refused)
    }

    pub(crate) fn done(
        &mut self,
        caller: &Caller,
        session: u64,
        request: u64,
        released: &[u32],
    ) -> Result<(), Refusal> {
        let app = self.own(caller, session)?;
        let done = self.rms.done(app, RequestId(request), released, now_ns());
        self.changed(done).map_err(convert::refused)
    }

    pub(crate) fn update(
        &mut self,
        caller: &Caller,
        session: u64,
        update: Change,
    ) -> Result<Made, Refusal> {
        let app = self.own(caller, session)?;
        let id = self.rms.update(app, &convert::update(update), now_ns());
        let id = self.changed(id).map_err(convert::refused)?;
        let requests = self.rms.session(app).map(|session| &session.requests);
        let made = requests.and_then(|all| all.iter().find(|request| request.id == id));
        let waits = made.filter(|request| request.started_ns.is_none());
        let until = waits.and_then(|request| request.ask.relation.parent());
        Ok(Made {
            request: id.0,
            until: until.map(|id| id.0),
        })
    }

    pub(crate) fn waste(
        &mut self,
        caller: &Caller,
        session: u64,
        node_ns: u64,
    ) -> Result<(), Refusal> {
        let app = self.own(caller, session)?;
        self.rms
            .waste(app, u128::from(node_ns))
            .map_err(convert::refused)
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
        let live = self.rms.sessions().filter_map(|(app, session)| {
            let uid = self.owners.get(&app)?.uid;
            let account = session.account_at(now_ns());
            Some(convert::account(
                app,
                &session.name,
                uid,
                false,
                &account,
                prices,
            ))
        });
        let all = live.chain(self.over.iter().cloned());
        all.filter(|account| caller.may(Some(account.uid)))
            .collect()
    }

    /// Begins to monitor a session, from how it is: whoever did before does not any more.
    pub(crate) fn monitor(&mut self, caller: &Caller, session: u64) -> Result<u64, Refusal> {
        let app = self.own(caller, session)?;
        let requests = self.rms.session(app).map(|session| &session.requests);
        let started = requests
            .into_iter()
            .flatten()
            .filter(|request| request.is_notified);
        let started = started.map(|request| Event::Started {
            request: request.id,
            nodes: request.nodes.clone(),
        });
        let views = (0..self.settings.clusters.len()).map(|cluster| Event::Views { cluster });
        self.monitors += 1;
        if let Some(owner) = self.owners.get_mut(&app) {
            owner.waiting = views.chain(started).collect();
            owner.is_lagged = false;
            owner.monitor = self.monitors;
            owner.bell.notify_waiters();
            owner.bell = Rc::default();
        }
        Ok(self.monitors)
    }

    /// What there is for one who monitors.
    pub(crate) fn next(&mut self, session: u64, monitor: u64) -> Next {
        let app = AppId(session);
        let owner = self
            .owners
            .get_mut(&app)
            .filter(|owner| owner.monitor == monitor);
        let Some(owner) = owner else {
            return Next::Over;
        };
        if owner.is_lagged {
            return Next::Lagged;
        }
        let notice = Notice {
            unix_ns: now_ns(),
            ..Notice::default()
        };
        let Some(event) = owner.waiting.pop_front() else {
            if !owner.is_over {
                return Next::Wait(Rc::clone(&owner.bell));
            }
            self.owners.remove(&app);
            let kind = "closed".into();
            return Next::Notice(Box::new(Notice { kind, ..notice }));
        };
        let why = self.why(&event);
        let (kind, request, nodes) = match event {
            Event::Views { cluster } => {
                let views = self.rms.views(app, cluster);
                let views = views.map(|views| convert::views(cluster, &views));
                let kind = "views".into();
                return Next::Notice(Box::new(Notice {
                    kind,
                    views,
                    ..notice
                }));
            }
            Event::Started { request, nodes } => ("started", Some(request.0), nodes),
            Event::Ended { request, killed } => ("ended", Some(request.0), killed),
            Event::Refused { request } => ("refused", Some(request.0), Vec::new()),
            Event::Violation { killed, .. } => ("violation", None, killed.concat()),
        };
        Next::Notice(Box::new(Notice {
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
            Event::Ended { .. } => Some("its time is over".into()),
            Event::Refused { .. } => {
                Some("there are not so many nodes, or what it hung on is gone".into())
            }
            Event::Violation {
                cluster,
                held,
                allowed,
                ..
            } => {
                let name = &self.settings.clusters.get(*cluster)?.name;
                Some(format!(
                    "of cluster {name} {held} preemptible nodes were kept where {allowed} may be"
                ))
            }
        }
    }

    /// Nobody monitors a session any more, if it was that one who did.
    pub(crate) fn left(&mut self, session: u64, monitor: u64) {
        let app = AppId(session);
        let owner = self
            .owners
            .get_mut(&app)
            .filter(|owner| owner.monitor == monitor);
        if let Some(owner) = owner {
            owner.monitor = 0;
            owner.absent_since_ns = now_ns();
            owner.waiting.clear();
            if owner.is_over {
                self.owners.remove(&app);
            }
            self.bell.notify_one();
        }
    }
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
        if self.waiting.len() >= MOST_NOTICES {
            self.is_lagged = true;
        } else {
            self.waiting.push_back(event);
        }
        self.bell.notify_one();
    }
}
