// SPDX-License-Identifier: GPL-2.0
//! Ways to a cluster: its service, or the file of its ledger.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use jiff::tz::TimeZone;
use pbs_cluster_api::{
    Alteration, Cause, Client, Filter, NodesChanged, Optimiser, Refusal, Status, Submission, SOCKET,
};
use pbs_manager::ledger::{self, Access, ClosedRow, DefectRow, Event, NodeRow, NodeState, Row};
use pbs_manager::{Caller, Change, Error, Replanned, Wish};
use pbs_resources::{Rset, Value};
use pbs_site::{parse_zone, Privilege, User};
use serde::Serialize;

use super::blocks;
use super::ledger::{declined, failure, login, open, user_of, Cluster, FILE};
use crate::failure::Failure;
use crate::output::report;

/// Numbers of requests that one call of the service ends.
const CALL_REQUESTS: usize = 1000;

/// Time for which requests move up before other processes may write.
const PIECE: Duration = Duration::from_millis(500);

/// Requests that have their turn to move up before the time is looked at.
const PIECE_REQUESTS: usize = 16;

/// Number of times that others may write while requests move up, after which these keep their
/// places: each time, all have their turn again.
const MOST_INTERRUPTIONS: usize = 10;

/// Resources that are counted in bytes on any site.
const MEMORY: [&str; 2] = ["mem", "vmem"];

/// Less memory is a number without its unit: users of other systems write MiB so.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;

/// Service or ledger of the cluster, and the user that a request is for.
#[derive(Args, Debug)]
pub(super) struct ReachOptions {
    /// The ledger, without a service; by default the service is called if it is there, and
    /// otherwise the ledger is cluster.db
    #[arg(long, value_name = "FILE", env = "PBS_LEDGER")]
    ledger: Option<PathBuf>,

    /// Socket of the cluster's service (pbs-clusterd); takes precedence over a ledger
    #[arg(long, value_name = "PATH")]
    service: Option<PathBuf>,

    /// Act as this user, with the rights that the site gives that user only
    ///
    /// Without this option, write access to the ledger makes you an operator. The service knows who
    /// calls: with it, the option names the user of a new request or of a list.
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
}

/// A cluster that a command has reached.
pub(super) enum Reached<'a> {
    File(Box<Cluster>, &'a ReachOptions),
    Service(Box<Called>, &'a ReachOptions),
}

/// A service that was called.
pub(super) struct Called {
    client: Client,
    status: Status,
    zone: TimeZone,
}

/// Answer of a service, or the reason for which there is none.
type Answered<T> = Result<T, pbs_cluster_api::Failure>;

/// Causes that keep a request from an earlier start, with the request.
pub(super) type Reasons = (Row, Vec<Cause>);

/// Nodes that are out of use, and what became of requests there.
#[derive(Default, Serialize)]
pub(super) struct NodesNow {
    pub(super) total: usize,
    pub(super) out: Vec<NodeRow>,
    pub(super) defects: Vec<DefectRow>,
    pub(super) closed: Vec<ClosedRow>,
    pub(super) moved: Vec<u64>,
    pub(super) aborted: Vec<u64>,
    pub(super) waiting: Vec<u64>,
}

impl ReachOptions {
    pub(super) fn reach(&self, access: Access) -> Result<Reached<'_>, Failure> {
        let own = Path::new(SOCKET);
        let socket = match (&self.service, &self.ledger) {
            (Some(socket), _) => Some(socket.as_path()),
            (None, None) if own.exists() => Some(own),
            (None, _) => None,
        };
        if let Some(socket) = socket {
            return Ok(Reached::Service(Box::new(Called::new(socket)?), self));
        }
        Ok(Reached::File(Box::new(open(self.ledger(), access)?), self))
    }

    /// Ledger of a command that calls no service.
    fn ledger(&self) -> &Path {
        self.ledger.as_deref().unwrap_or(Path::new(FILE))
    }

    /// Caller of an operation on the file. Write access makes an operator.
    fn caller(&self, cluster: &Cluster, group: &str) -> Result<Caller, Failure> {
        Ok(match &self.user {
            Some(user) => Caller {
                is_operator: cluster.site().may(user, group, Privilege::Operator),
                user: user_of(user)?,
            },
            None => Caller { user: user_of(&login())?, is_operator: true },
        })
    }

    /// Refuses to act as another user where the service knows who calls.
    fn as_oneself(&self) -> Result<(), Failure> {
        match &self.user {
            None => Ok(()),
            Some(user) => Err(Failure::Usage(format!(
                "the service knows who calls, and does not act as {user}; leave out --user, or \
                 become that user"
            ))),
        }
    }
}

impl Called {
    fn new(socket: &Path) -> Result<Self, Failure> {
        let path = socket.display();
        let mut client = Client::connect(socket).map_err(|error| {
            Failure::Failed(format!(
                "{path}: {error}. See systemctl status pbs-clusterd; or name the file of a ledger \
                 with --ledger"
            ))
        })?;
        let status = client.status()?;
        let zone = parse_zone(&status.time_zone).ok_or_else(|| {
            let zone = &status.time_zone;
            Failure::Failed(format!("{path}: this system does not know the time zone {zone}"))
        })?;
        Ok(Self { client, status, zone })
    }
}

impl Reached<'_> {
    /// The present time.
    pub(super) fn clock_s(&self) -> u64 {
        match self {
            Self::File(cluster, _) => cluster.clock_s(),
            Self::Service(called, _) => called.status.clock_s,
        }
    }

    /// The time zone of the site.
    pub(super) fn zone(&self) -> &TimeZone {
        match self {
            Self::File(cluster, _) => &cluster.site().time_zone,
            Self::Service(called, _) => &called.zone,
        }
    }

    /// The user that a request is for. The service knows the number, and who calls if the name is
    /// empty.
    pub(super) fn user(&self) -> Result<User, Failure> {
        match self {
            Self::File(_, options) => user_of(&options.user.clone().unwrap_or_else(login)),
            Self::Service(_, options) => Ok(options.user.clone().unwrap_or_default().into()),
        }
    }

    /// A user's own account; empty: the service chooses it.
    pub(super) fn own_group(&self, user: &str) -> String {
        match self {
            Self::File(cluster, _) => {
                cluster.site().own_group(user).map_or_else(String::new, String::from)
            }
            Self::Service(..) => String::new(),
        }
    }

    /// Reports memory of less than a MiB, which is meant in another unit, and items that ask for none
    /// of a resource which the site does not have. The site of a service is not known here.
    pub(super) fn note_doubtful(&self, rset: &Rset) {
        for item in rset.chunks.iter().flat_map(|chunk| &chunk.items) {
            let (name, Value::Amount(bytes @ 1..LEAST_MEMORY_BYTES)) =
                (&item.resource, &item.value)
            else {
                continue;
            };
            if MEMORY.contains(&name.as_str()) {
                report(&format!(
                    "pbsctl: {item} is {bytes} bytes; write a unit, as in {name}={bytes}m for MiB or \
                     {name}={bytes}g for GiB"
                ));
            }
        }
        let Self::File(cluster, _) = self else {
            return;
        };
        for item in cluster.site().unknown_none(rset) {
            let name = &item.resource;
            report(&format!("pbsctl: the site has no {name}; {item} is satisfied by all nodes"));
        }
    }

    /// The nodes that are out of use.
    pub(super) fn nodes_out(&self) -> Vec<NodeRow> {
        match self {
            Self::File(cluster, _) => cluster.nodes_out().cloned().collect(),
            Self::Service(called, _) => {
                called.status.nodes_out.iter().map(|node| node.0.clone()).collect()
            }
        }
    }

    /// The nodes with defective parts.
    pub(super) fn defects(&self) -> Vec<DefectRow> {
        match self {
            Self::File(cluster, _) => cluster.defects().cloned().collect(),
            Self::Service(called, _) => {
                called.status.defects.iter().map(|defect| defect.0.clone()).collect()
            }
        }
    }

    /// The nodes that are closed in some times. Only a planner for a batch system closes nodes, and
    /// the service is none.
    pub(super) fn closed(&self) -> Vec<ClosedRow> {
        match self {
            Self::File(cluster, _) => cluster.closed().cloned().collect(),
            Self::Service(..) => Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, wish: &Wish) -> Result<Vec<Row>, Failure> {
        match self {
            Self::File(cluster, options) => {
                let caller = options.caller(cluster, &wish.group)?;
                let ids = cluster.submit(&caller, wish);
                rows(cluster, &ids.map_err(|error| declined(error, cluster))?)
            }
            Self::Service(called, _) => blocks::submit(&mut called.client, wish),
        }
    }

    pub(super) fn reserve(&mut self, wish: &Wish) -> Result<Vec<Row>, Failure> {
        match self {
            Self::File(cluster, options) => {
                let caller = options.caller(cluster, &wish.group)?;
                let id = cluster.reserve(&caller, wish);
                rows(cluster, &[id.map_err(|error| declined(error, cluster))?])
            }
            Self::Service(called, _) => Ok(called.client.reserve(&Submission::from(wish))?),
        }
    }

    pub(super) fn alter(&mut self, id: u64, change: &Change) -> Result<Vec<Row>, Failure> {
        self.change(
            &[id],
            |cluster, caller, id| cluster.alter(caller, id, change),
            |client| client.alter(id, &Alteration::from(change)),
        )
    }

    pub(super) fn resize(&mut self, id: u64, rset: &Rset) -> Result<Vec<Row>, Failure> {
        self.change(
            &[id],
            |cluster, caller, id| cluster.resize(caller, id, rset),
            |client| client.resize(id, &rset.to_string()),
        )
    }

    pub(super) fn extend(&mut self, id: u64, by_s: u64) -> Result<Vec<Row>, Failure> {
        self.change(
            &[id],
            |cluster, caller, id| cluster.extend(caller, id, by_s),
            |client| client.extend(id, by_s),
        )
    }

    pub(super) fn confirm(&mut self, ids: &[u64]) -> Result<Vec<Row>, Failure> {
        self.change(
            ids,
            |cluster, caller, id| cluster.confirm(caller, id),
            |client| client.confirm(ids),
        )
    }

    /// Ends requests. If one of them can't be ended, none is, where one call ends all.
    pub(super) fn kill(&mut self, ids: &[u64]) -> Result<Vec<Row>, Failure> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let ids = &ids[..];
        if let Self::File(cluster, options) = self {
            let caller = options.caller(cluster, "")?;
            let allowed = ids.iter().try_for_each(|&id| cluster.check_kill(&caller, id));
            allowed.map_err(|error| declined(error, cluster))?;
        }
        self.change(
            ids,
            // Requests that follow one, or are inside it, may have ended with it.
            |cluster, caller, id| match cluster.kill(caller, id) {
                Err(Error::NoRequest(_)) => Ok(()),
                done => done,
            },
            |client| {
                let killed = ids.chunks(CALL_REQUESTS).map(|part| client.kill(part));
                Ok(killed.collect::<Result<Vec<_>, _>>()?.concat())
            },
        )
    }

    /// Moves requests of a ledger file up where they can start earlier, in pieces: between them,
    /// other processes write. A service does this itself.
    pub(super) fn settle(self) -> Result<(), Failure> {
        let Self::File(mut cluster, options) = self else {
            return Ok(());
        };
        let mut interruptions = 0;
        while cluster.is_settling() {
            let begun = Instant::now();
            while cluster.is_settling() && begun.elapsed() < PIECE {
                cluster.settle_some(PIECE_REQUESTS);
            }
            match cluster.let_others_write() {
                Ok(true) => {}
                Ok(false) if interruptions < MOST_INTERRUPTIONS => {
                    interruptions += 1;
                    // Its claim ends before the next one.
                    drop(cluster);
                    cluster = Box::new(open(options.ledger(), Access::Write)?);
                    cluster.defer();
                    cluster.look_again();
                }
                Ok(false) | Err(Error::Ledger(ledger::Error::Busy(_))) => {
                    report(&format!(
                        "pbsctl: {}: others write to it again and again; some requests that could \
                         start earlier now keep their planned starts",
                        options.ledger().display()
                    ));
                    return Ok(());
                }
                Err(error) => return Err(failure(error)),
            }
        }
        cluster.write().map(drop).map_err(failure)
    }

    /// Changes requests: one after the other in the file, or by one call. Others move up after the
    /// answer: see [`Self::settle`].
    fn change(
        &mut self,
        ids: &[u64],
        in_file: impl Fn(&mut Cluster, &Caller, u64) -> Result<(), Error>,
        by_call: impl FnOnce(&mut Client) -> Answered<Vec<Row>>,
    ) -> Result<Vec<Row>, Failure> {
        match self {
            Self::File(cluster, options) => {
                let caller = options.caller(cluster, "")?;
                cluster.defer();
                let done = ids.iter().try_for_each(|&id| in_file(cluster, &caller, id));
                // Of several requests, the first ones may have been changed.
                cluster.write().map_err(failure)?;
                done.map_err(|error| declined(error, cluster))?;
                rows(cluster, ids)
            }
            Self::Service(called, options) => {
                options.as_oneself()?;
                Ok(by_call(&mut called.client)?)
            }
        }
    }

    /// Returns a request with its events.
    pub(super) fn show(&mut self, id: u64) -> Result<(Row, Vec<Event>), Failure> {
        match self {
            Self::File(cluster, _) => {
                let found = cluster.details(id);
                found.map_err(|error| Failure::Failed(error.describe(cluster.site())))
            }
            Self::Service(called, options) => {
                options.as_oneself()?;
                let shown = called.client.show(id)?;
                Ok((shown.request.0, shown.events.into_iter().map(|event| event.0).collect()))
            }
        }
    }

    /// Returns the requests of the user that was named, or of all; `ended`: with those that have
    /// ended.
    pub(super) fn list(&mut self, ended: bool) -> Result<Vec<Row>, Failure> {
        match self {
            Self::File(cluster, options) => {
                let rows =
                    if ended { cluster.rows().map_err(failure)? } else { cluster.open_rows() };
                let user = options.user.as_ref();
                let is_wanted = |row: &Row| user.is_none_or(|user| row.user == *user);
                Ok(rows.into_iter().filter(is_wanted).collect())
            }
            Self::Service(called, options) => {
                let filter = Filter { user: options.user.clone(), ended: Some(ended), above: None };
                Ok(called.client.list(&filter)?.1)
            }
        }
    }

    pub(super) fn why(&mut self, id: u64) -> Result<Reasons, Failure> {
        match self {
            Self::File(cluster, _) => {
                let causes = cluster.why(id).map_err(failure)?;
                let causes = causes.into_iter().map(|(cause, until_s)| Cause {
                    what: cause.describe(cluster.machine()),
                    until_s,
                });
                let causes = causes.collect();
                Ok((cluster.current_row(id).map_err(failure)?, causes))
            }
            Self::Service(called, options) => {
                options.as_oneself()?;
                let reasons = called.client.why(id)?;
                Ok((reasons.request.0, reasons.causes))
            }
        }
    }

    /// Returns the nodes.
    pub(super) fn nodes(&self) -> NodesNow {
        let total = match self {
            Self::File(cluster, _) => cluster.machine().node_count(),
            Self::Service(called, _) => called.status.nodes as usize,
        };
        let (out, defects, closed) = (self.nodes_out(), self.defects(), self.closed());
        NodesNow { total, out, defects, closed, ..NodesNow::default() }
    }

    /// Takes nodes out of use, or back: `None`.
    pub(super) fn set_nodes(
        &mut self,
        names: &[String],
        state: Option<NodeState>,
        why: &str,
    ) -> Result<NodesNow, Failure> {
        self.change_nodes(
            names,
            |cluster, caller, names| match state {
                Some(state) => cluster.nodes_out_of_use(caller, names, state, why),
                None => cluster.nodes_back(caller, names),
            },
            |client, names| client.set_nodes(names, state.map_or("online", NodeState::name), why),
        )
    }

    /// Takes parts of nodes out of use, or `none` of them.
    pub(super) fn set_defect(
        &mut self,
        names: &[String],
        parts: &str,
        why: &str,
    ) -> Result<NodesNow, Failure> {
        self.change_nodes(
            names,
            |cluster, caller, names| {
                let mut all = Replanned::default();
                for name in names {
                    let replanned = cluster.set_defect(caller, name, parts, why)?;
                    all.moved.extend(replanned.moved);
                    all.aborted.extend(replanned.aborted);
                    all.waiting.extend(replanned.waiting);
                }
                Ok(all)
            },
            |client, names| client.set_defect(names, parts, why),
        )
    }

    /// Changes nodes, in the file or by one call. Others move up after the answer: see
    /// [`Self::settle`].
    fn change_nodes(
        &mut self,
        names: &[String],
        in_file: impl FnOnce(&mut Cluster, &Caller, &[&str]) -> Result<Replanned, Error>,
        by_call: impl FnOnce(&mut Client, &[&str]) -> Answered<NodesChanged>,
    ) -> Result<NodesNow, Failure> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match self {
            Self::File(cluster, options) => {
                let caller = options.caller(cluster, "")?;
                cluster.defer();
                let replanned = in_file(cluster, &caller, &names);
                cluster.write().map_err(failure)?;
                let replanned = replanned.map_err(failure)?;
                let Replanned { moved, aborted, waiting, .. } = replanned;
                Ok(NodesNow { moved, aborted, waiting, ..self.nodes() })
            }
            Self::Service(called, options) => {
                options.as_oneself()?;
                let changed = by_call(&mut called.client, &names)?;
                Ok(NodesNow {
                    total: changed.nodes as usize,
                    out: changed.nodes_out.into_iter().map(|node| node.0).collect(),
                    defects: changed.defects.into_iter().map(|defect| defect.0).collect(),
                    closed: Vec::new(),
                    moved: changed.moved,
                    aborted: changed.aborted,
                    waiting: changed.waiting,
                })
            }
        }
    }

    /// Hands over events of all requests, or of one, until `goes_on` is false for one.
    pub(super) fn watch(
        self,
        id: Option<u64>,
        mut goes_on: impl FnMut(Event) -> bool,
    ) -> Result<(), Failure> {
        match self {
            Self::File(..) => Err(Failure::Usage(
                "a file reports no events; name the socket of a service with --service".into(),
            )),
            Self::Service(called, options) => {
                options.as_oneself()?;
                Ok(called.client.watch(id, |notice| goes_on(notice.event.0))?)
            }
        }
    }

    /// Returns the report of the search for better plans, which only a service makes.
    pub(super) fn optimiser(&mut self) -> Result<Optimiser, Failure> {
        match self {
            Self::File(..) => Err(Failure::Usage(
                "only a service searches for better plans; name its socket with --service".into(),
            )),
            Self::Service(called, options) => {
                options.as_oneself()?;
                Ok(called.client.optimiser()?)
            }
        }
    }

    /// The cluster in a file, for what the service does not answer.
    pub(super) fn in_file(&self, what: &str) -> Result<&Cluster, Failure> {
        match self {
            Self::File(cluster, _) => Ok(cluster),
            Self::Service(..) => Err(Failure::Usage(format!(
                "the service does not answer {what}; name the file of its ledger with --ledger"
            ))),
        }
    }
}

/// Returns requests as they stand or ended.
fn rows(cluster: &Cluster, ids: &[u64]) -> Result<Vec<Row>, Failure> {
    let rows = ids.iter().map(|&id| cluster.current_row(id));
    rows.collect::<Result<_, _>>().map_err(failure)
}

/// A refusal of the service has the exit status that it has without a service.
impl From<pbs_cluster_api::Failure> for Failure {
    fn from(failure: pbs_cluster_api::Failure) -> Self {
        match failure {
            pbs_cluster_api::Failure::Refused(Refusal::Declined { why }) => Self::NotPlanned(why),
            other => Self::Failed(other.to_string()),
        }
    }
}
