// SPDX-License-Identifier: GPL-2.0
//! State of a cluster, its opening and its storage.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use pbs_cluster_planner::{Machine, Planner, Policy, Refusal, Request, RequestId, Rules};
use pbs_resources::{format_duration, Rset};
use pbs_site::{Site, User};

use crate::better_plan::BetterPlan;
use crate::deadlines::Deadlines;
use crate::engine::Engine;
use crate::error::Error;
use crate::journal::Journal;
use crate::ledger::{
    Access, ClosedRow, DefectRow, Event, Ledger, NodeRow, NodeState, Page, Paged, Row, State,
};
use crate::record::{Parts, RequestRecord};
use crate::records::{Held, Records};
use crate::run_times::{RunTimes, Unlearned};
use crate::usage::Usages;
use crate::wish::Wish;

/// Validities that repeat are told for so long: nothing is planned beyond it.
const HORIZON_S: u64 = 2 * 366 * 86_400;

/// A cluster.
#[derive(Debug)]
pub struct Manager<E> {
    pub(crate) site: Site,
    pub(crate) machine: Arc<Machine>,
    pub(crate) planner: Planner,
    pub(crate) engine: E,
    pub(crate) journal: Journal,
    /// All requests that have not ended.
    pub(crate) records: Records,
    pub(crate) reservations: BTreeSet<RequestId>,
    pub(crate) deadlines: Deadlines,
    pub(crate) nodes_out: BTreeMap<String, NodeRow>,
    /// Nodes with parts that are out of use.
    pub(crate) defects: BTreeMap<String, DefectRow>,
    pub(crate) closed: BTreeMap<String, ClosedRow>,
    /// Usage of the requests that are not in the ledger any more.
    pub(crate) forgotten: Usages,
    pub(crate) clock_s: u64,
    /// Whether the last piece of work tried requests that wait.
    pub(crate) has_tried_waiting: bool,
    /// The planner that looked for better places last: a reservation's, or the cluster's.
    pub(crate) settled: Option<RequestId>,
    pub(crate) better_plan: BetterPlan,
    /// Run times that are learned from ended requests; `None`: the site wants none, or nothing was
    /// learned.
    pub(crate) run_times: Option<RunTimes>,
    /// Ended requests that are still to be learned from; `None`: there are none.
    pub(crate) unlearned: Option<Unlearned>,
    /// Whether operations leave writing and settling to the caller.
    pub(crate) is_deferred: bool,
}

/// Result of opening a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Number of requests that have not ended.
    pub requests: usize,
    /// Their places are no more, as the site is another: they are planned anew, or wait.
    pub moved: Vec<RequestId>,
    /// Requests that ran on removed nodes, and have ended.
    pub lost: Vec<RequestId>,
}

impl<E: Engine> Manager<E> {
    /// Makes a ledger for a site.
    ///
    /// # Errors
    ///
    /// [`Error::Site`], and what is wrong with the file.
    pub fn create(path: &Path, site: &str, clock_s: u64, engine: E) -> Result<Self, Error> {
        let parsed = read_site(site)?;
        let ledger = Ledger::create(path, site, clock_s)?;
        let journal = Journal::new(ledger, clock_s, 1);
        let mut this = Self::empty(parsed, journal, clock_s, engine);
        this.planner.follow_changes();
        Ok(this)
    }

    /// Opens a ledger: every request stands where it stood, and what ran is told to the
    /// engine again. With [`Access::Read`] nothing can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Site`], and what is wrong with the file.
    pub fn open(path: &Path, access: Access, engine: E) -> Result<(Self, Recovered), Error> {
        let (mut this, recovered) = Self::restore(path, access, engine)?;
        this.plan_all_waiting();
        if access == Access::Write {
            this.commit()?;
        }
        Ok((this, recovered))
    }

    /// Opens a ledger for a service, as [`Self::open`] and [`Self::defer`] do. Requests without a
    /// place keep waiting until [`Self::settle_some`] tries them: however many they are, the
    /// service is ready before.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::open`].
    pub fn open_deferred(path: &Path, engine: E) -> Result<(Self, Recovered), Error> {
        let (mut this, recovered) = Self::restore(path, Access::Write, engine)?;
        this.commit()?;
        this.defer();
        Ok((this, recovered))
    }

    /// Reads a ledger. Requests without a place are still to be planned.
    fn restore(path: &Path, access: Access, engine: E) -> Result<(Self, Recovered), Error> {
        let ledger = Ledger::open(path, access)?;
        let (site, clock_s, next_id) = ledger.site()?;
        let rows = ledger.open_rows()?;
        let nodes_out = ledger.nodes_out()?;
        let defects = ledger.defects()?;
        let closed = ledger.closed()?;
        let forgotten = Usages::of_totals(&ledger.totals()?)
            .ok_or_else(|| ledger.damaged("the usage of forgotten requests can't be read"))?;
        let journal = Journal::new(ledger, clock_s, next_id);
        let mut this = Self::empty(read_site(&site)?, journal, clock_s, engine);
        this.planner.continue_from(next_id);
        this.forgotten = forgotten;
        for node in nodes_out {
            if let Some(place) = this.machine.node_by_name(&node.name) {
                this.planner.node_offline(clock_s, place);
            }
            this.nodes_out.insert(node.name.clone(), node);
        }
        let mut recovered = Recovered { requests: rows.len(), ..Recovered::default() };
        this.planner.follow_changes();
        for row in &rows {
            this.put_back(row, &mut recovered);
        }
        // Each stands in the file as it does here, but for these.
        this.planner.take_changes();
        let moved = recovered.moved.iter().filter_map(|&id| this.row(id));
        let moved: Vec<Row> = moved.collect();
        this.journal.rows(moved);
        this.restore_defects(defects)?;
        this.restore_closed(closed);
        this.follow_lost();
        this.planner.keep_order_behind(clock_s, &recovered.moved);
        this.planner.plan_waiting_later();
        Ok((this, recovered))
    }

    fn empty(site: Site, journal: Journal, clock_s: u64, engine: E) -> Self {
        let machine = Arc::new(Machine::of_site(&site));
        let rules = Rules::of_site(&site, &machine, clock_s..clock_s + HORIZON_S);
        let policy = Policy { fixed_before_s: engine.fixed_before_s(), ..Policy::of_site(&site) };
        Self {
            planner: Planner::with_policy(machine.clone(), rules, policy),
            site,
            machine,
            engine,
            journal,
            records: Records::default(),
            reservations: BTreeSet::new(),
            deadlines: Deadlines::default(),
            nodes_out: BTreeMap::new(),
            defects: BTreeMap::new(),
            closed: BTreeMap::new(),
            forgotten: Usages::default(),
            clock_s,
            has_tried_waiting: false,
            settled: None,
            better_plan: BetterPlan::default(),
            run_times: None,
            unlearned: None,
            is_deferred: false,
        }
    }

    /// The site that is planned for.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Returns the machine, with its nodes.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The planner, to look at.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Sets which requests keep their nodes because the engine knows their places already
    /// ([`Planner::set_told`]). They are told anew after a restart.
    pub fn set_told(&mut self, told: HashSet<RequestId>) {
        self.planner.set_told(told);
    }

    /// Returns the engine that carries out allocations.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Returns the current time.
    pub fn clock_s(&self) -> u64 {
        self.clock_s
    }

    /// The nodes that are out of use.
    pub fn nodes_out(&self) -> impl Iterator<Item = &NodeRow> {
        self.nodes_out.values()
    }

    /// The nodes with parts that are out of use.
    pub fn defects(&self) -> impl Iterator<Item = &DefectRow> {
        self.defects.values()
    }

    /// Nodes that are closed in some times, by name.
    pub fn closed(&self) -> impl Iterator<Item = &ClosedRow> {
        self.closed.values()
    }

    /// All requests that have not ended, as they stand.
    pub fn open_rows(&self) -> Vec<Row> {
        let rows = self.records.keys().filter_map(|&id| self.row(id));
        rows.collect()
    }

    /// A request that has not ended, as it stands.
    pub fn open_row(&self, id: RequestId) -> Option<Row> {
        self.row(id)
    }

    /// Returns the requests of a user, or of all, that have not ended and have a number above
    /// that: as many of them as fit into the page, in the order of their numbers.
    pub fn open_rows_above(&self, id: RequestId, user: Option<&str>, page: Page) -> Paged {
        let above = self.records.range(id.saturating_add(1)..);
        let of_user = above.filter(|(_, of)| user.is_none_or(|user| of.request.user.name == user));
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for (&id, record) in of_user {
            if page.is_full(rows.len(), bytes) {
                return Paged { rows, is_last: false };
            }
            bytes += record.held_bytes;
            if let Some(row) = self.row(id) {
                let names = row.nodes.iter().map(|part| size_of_val(part) + part.node.len());
                bytes += names.sum::<usize>();
                rows.push(row);
            }
        }
        Paged { rows, is_last: true }
    }

    /// Returns what a user's requests that have not ended take.
    pub fn held_by(&self, user: &User) -> Held {
        self.records.held_by(user)
    }

    /// Returns what the requests of all users that have not ended take.
    pub fn held_by_all(&self) -> Held {
        self.records.held_by_all()
    }

    /// Returns what a wish would add to what its user has.
    pub fn held_more(&self, wish: &Wish, is_reservation: bool) -> Held {
        let requests = wish.array.as_ref().map_or(1, Vec::len);
        let bytes = wish.parts(is_reservation).held_bytes(&self.machine);
        Held {
            requests,
            reservations: usize::from(is_reservation),
            bytes: requests.saturating_mul(bytes),
        }
    }

    /// Returns the user of a request, and what other resources of it would add to what this user
    /// has.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`].
    pub fn held_more_with(&self, id: RequestId, rset: &Rset) -> Result<(&User, Held), Error> {
        let record = self.records.get(&id).ok_or(Error::NoRequest(id))?;
        let parts = Parts { rset, ..record.parts() };
        let bytes = parts.held_bytes(&self.machine);
        let more = Held { bytes: bytes.saturating_sub(record.held_bytes), ..Held::default() };
        Ok((&record.request.user, more))
    }

    /// Counts the memory of a request again, which has other resources now.
    pub(crate) fn count_again(&mut self, id: RequestId) {
        if let Some(record) = self.records.get(&id) {
            let held_bytes = record.parts().held_bytes(&self.machine);
            self.records.count_again(id, held_bytes);
        }
    }

    /// All requests in the ledger, as they stand or ended.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn rows(&self) -> Result<Vec<Row>, Error> {
        Ok(self.journal.ledger().rows()?)
    }

    /// Returns a request with its events.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`], [`Error::Forgotten`], and errors of the disk.
    pub fn details(&self, id: RequestId) -> Result<(Row, Vec<Event>), Error> {
        Ok((self.current_row(id)?, self.journal.events_of(id)?))
    }

    /// Returns a request as it stands or ended.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`], and errors of the disk.
    pub fn current_row(&self, id: RequestId) -> Result<Row, Error> {
        match self.row(id) {
            Some(row) => Ok(row),
            None => self.journal.row(id)?.ok_or_else(|| self.no_request(id)),
        }
    }

    /// Returns requests with numbers above that, whether they have ended or not: as many of them
    /// as fit into the page, in the order of their numbers. Changes that are not written are not in
    /// it.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn rows_above(&self, id: RequestId, page: Page) -> Result<Paged, Error> {
        Ok(self.journal.ledger().rows_above(id, page)?)
    }

    /// Plans by another text of the site from now on; the nodes that it names stay out of
    /// use, or in it. What has no place any more is planned anew.
    ///
    /// # Errors
    ///
    /// [`Error::Site`], and what the disk says.
    pub fn set_site(path: &Path, site: &str, engine: E) -> Result<(Self, Recovered), Error> {
        read_site(site)?;
        Ledger::open(path, Access::Write)?.set_site(site)?;
        let (mut this, recovered) = Self::open(path, Access::Write, engine)?;
        // There may be more than before.
        this.planner.look_again(this.clock_s);
        this.settle();
        this.commit()?;
        Ok((this, recovered))
    }

    pub(crate) fn tell(&mut self, request: Option<RequestId>, what: &str, text: String) {
        self.journal.event(Event { time_s: self.clock_s, request, what: what.into(), text });
    }

    /// Writes down all that the operation changed, unless the caller does.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        if self.is_deferred {
            return Ok(());
        }
        self.write().map(drop)
    }

    /// Notes all that the planner changed, to be written down.
    pub(crate) fn note_changes(&mut self) {
        let mut changed: Vec<RequestId> = self.planner.take_changes().into_iter().collect();
        for &reservation in &self.reservations {
            if let Some(inside) = self.planner.inside_mut(reservation) {
                changed.extend(inside.take_changes());
            }
        }
        for id in changed {
            // Those that have ended are among the changes already.
            let row = self.row(id);
            self.journal.rows(row);
        }
    }

    /// Puts a row of the ledger back.
    fn put_back(&mut self, row: &Row, recovered: &mut Recovered) {
        let record = match RequestRecord::of_row(row) {
            Some(record) => record,
            None => {
                recovered.lost.push(row.id);
                self.over(row.clone(), "its row can't be read");
                return;
            }
        };
        let restored = match self.planner_of_mut(row.within) {
            Some(planner) => match record.standing(row, planner.machine()) {
                Some(standing) => planner.restore(row.id, &record.request, &standing),
                None => Err(Refusal::NoSuchRequest(row.id)),
            },
            None => Err(Refusal::NoSuchRequest(row.id)),
        };
        match restored {
            Ok(()) => self.take_in(row.id, record),
            Err(_) if row.state == State::Planned && row.within.is_none() => {
                let Some(standing) = RequestRecord::waiting(row, &record) else {
                    return;
                };
                match self.planner.restore(row.id, &record.request, &standing) {
                    Ok(()) => {
                        recovered.moved.push(row.id);
                        self.take_in(row.id, record);
                    }
                    Err(_) => {
                        recovered.lost.push(row.id);
                        self.over(row.clone(), "the site has nothing for it any more");
                    }
                }
            }
            Err(_) => {
                recovered.lost.push(row.id);
                self.over(row.clone(), "its place is no more");
            }
        }
    }

    /// A request is known from now on; where it runs, the engine and its ends are, too.
    pub(crate) fn take_in(&mut self, id: RequestId, mut record: RequestRecord) {
        record.held_bytes = record.parts().held_bytes(&self.machine);
        let is_reservation = record.is_reservation;
        let within = record.within;
        self.records.insert(id, record);
        if is_reservation {
            self.reservations.insert(id);
        }
        let planner = self.planner_of(within);
        if planner.and_then(|of| of.standing(id)).is_some_and(|it| it.is_running) {
            self.begin(id);
        }
    }

    /// A request that is not known to the planner any more is over.
    pub(crate) fn over(&mut self, row: Row, outcome: &str) {
        let start_s = row.start_s.filter(|&start_s| start_s <= self.clock_s);
        self.tell(Some(row.id), "ended", outcome.into());
        if let Some(late_s) = start_s.and_then(|_| row.broken_by_s(self.clock_s)) {
            let text = format!("ended {} later than agreed", format_duration(late_s));
            self.tell(Some(row.id), "agreement broken", text);
        }
        let row = Row {
            state: State::Ended,
            start_s: start_s.filter(|_| row.state == State::Running),
            end_s: Some(self.clock_s),
            phase: None,
            after: Vec::new(),
            outcome: Some(outcome.into()),
            ..row
        };
        self.learn_from(&row);
        self.journal.rows([row]);
    }

    /// The planner that a request is in.
    pub(crate) fn planner_of(&self, within: Option<RequestId>) -> Option<&Planner> {
        match within {
            None => Some(&self.planner),
            Some(reservation) => self.planner.inside(reservation),
        }
    }

    pub(crate) fn planner_of_mut(&mut self, within: Option<RequestId>) -> Option<&mut Planner> {
        match within {
            None => Some(&mut self.planner),
            Some(reservation) => self.planner.inside_mut(reservation),
        }
    }

    /// Returns the state of a node that is out of use.
    pub fn node_state(&self, name: &str) -> Option<NodeState> {
        self.nodes_out.get(name).map(|row| row.state)
    }

    /// Returns the request as completed by the planner.
    pub(crate) fn request(&self, id: RequestId) -> Result<&Request, Error> {
        let record = self.records.get(&id).ok_or(Error::NoRequest(id))?;
        Ok(&record.request)
    }
}

fn read_site(text: &str) -> Result<Site, Error> {
    Site::from_toml(text).map_err(|problems| {
        let first = problems.first();
        Error::Site(first.map_or_else(String::new, |problem| problem.message.clone()))
    })
}
