// SPDX-License-Identifier: GPL-2.0
//! The thread that has the cluster: it alone plans, starts and writes the ledger.
//!
//! It takes the calls that wait, writes what they changed in one transaction, and answers them
//! then. Better places are looked for in short pieces when no call waits. Without a call and
//! without such work it sleeps until the next request is due.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pbs_cluster_api::{
    Cause, Changed, Filter, Listed, NodesChanged, Notice, Object, Reasons, Refusal, Shown, Status,
};
use pbs_launch::signals::{wait_for, Signals};
use pbs_manager::ledger::{account_user, DefectRow, Event, NodeState, Row};
use pbs_manager::{without_reason, Caller, Engine, Error, Held, Manager, Replanned, Wish};
use pbs_resources::Rset;
use pbs_site::{zone_text, User};
use pbs_socket::{journal, Inbox};

use crate::call::{Answer, Call, Method, NodesWanted};
use crate::limits::{Limits, ARRAY_REQUESTS, CALL_REQUESTS, LISTED, NAME_BYTES, REQUEST_AFTER};
use crate::optimiser::optimiser;
use crate::pace::Pace;
use crate::session::Notices;

/// Calls that are answered together.
const AT_ONCE: usize = 256;
/// Time after which no further call is taken before those are answered.
const TURN: Duration = Duration::from_millis(5);
/// Time for which better places are looked for before calls are looked at again.
const PIECE: Duration = Duration::from_micros(500);
/// Requests that have their turn for a better place between two looks at the time.
const PIECE_REQUESTS: usize = 4;
/// Time for which better places are kept in memory only: nobody has been told of them.
const UNWRITTEN: Duration = Duration::from_millis(20);

/// Sends an answer, once the changes are written or could not be.
type Later = Box<dyn FnOnce(Result<(), Refusal>)>;

/// The service of a cluster.
pub struct Service<E, P> {
    cluster: Manager<E>,
    pace: P,
    signals: Signals,
    limits: Limits,
    notices: Notices,
    /// Answers that wait until the changes are written.
    answers: Vec<Later>,
    /// Time of the first change of a place that is not written.
    unwritten: Option<Instant>,
}

impl<E: Engine, P: Pace<E>> Service<E, P> {
    /// The service of a cluster. `signals` are those of the thread that runs it.
    pub fn new(
        mut cluster: Manager<E>,
        pace: P,
        signals: Signals,
        limits: Limits,
        notices: Notices,
    ) -> Self {
        cluster.defer();
        cluster.learn();
        cluster.look_again();
        Self { cluster, pace, signals, limits, notices, answers: Vec::new(), unwritten: None }
    }

    /// Serves until somebody wants it to stop.
    ///
    /// # Errors
    ///
    /// The disk failed: what is in memory can't be relied on, and the service must end.
    pub fn run(&mut self, inbox: &mut Inbox<Call>) -> Result<(), String> {
        // The clock of the ledger may be of long ago, and nothing is to be planned in the past.
        self.pass_time()?;
        self.pace.begin(&mut self.cluster);
        loop {
            let failed = |error| format!("signals: {error}");
            if self.signals.want_stop().map_err(failed)? {
                return self.write();
            }
            self.pass_time()?;
            let version = self.cluster.planner().version();
            let called = self.take_calls(inbox);
            self.settle(called > 0, self.cluster.planner().version() != version);
            self.learn();
            let is_settling = self.cluster.is_settling();
            let is_old = self.unwritten.is_some_and(|since| since.elapsed() >= UNWRITTEN);
            if called > 0 || !is_settling || is_old || self.pace.has_orders() {
                self.write()?;
            }
            // More may wait than was taken, and their bell has been heard.
            let is_busy = called > 0 || is_settling || self.cluster.is_learning();
            let timeout_ms = if is_busy { 0 } else { self.pace.timeout_ms(&mut self.cluster) };
            let waited = wait_for([self.signals.as_fd(), inbox.as_fd()], timeout_ms);
            waited.map_err(|error| format!("events: {error}"))?;
        }
    }

    /// Starts and ends what is due.
    fn pass_time(&mut self) -> Result<(), String> {
        self.pace.pass_time(&mut self.cluster).map_err(|error| error.to_string())
    }

    /// Performs some calls; they are answered when their changes are written. Returns their number.
    fn take_calls(&mut self, inbox: &mut Inbox<Call>) -> usize {
        let begun = Instant::now();
        let mut called = 0;
        inbox.begin();
        while called < AT_ONCE && (called == 0 || begun.elapsed() < TURN) {
            let Some((peer, call)) = inbox.take() else {
                break;
            };
            called += 1;
            let is_operator = peer.is_operator || self.cluster.site().is_operator(&call.user.name);
            let caller = Caller { user: User::clone(&call.user), is_operator };
            self.perform(&caller, call.method);
        }
        called
    }

    /// Looks for better places for a while. Behind calls, the next ones have their turn first: only
    /// one step is made. If the calls have changed the plan, no better one is sought: the search
    /// begins with a copy of the plan, which the next call may discard.
    fn settle(&mut self, is_short: bool, is_changed: bool) {
        if !self.cluster.is_settling() || is_changed && !self.cluster.is_moving_up() {
            return;
        }
        self.unwritten.get_or_insert_with(Instant::now);
        let begun = Instant::now();
        loop {
            // A step of the search for a better plan takes as long as several turns.
            let is_moving_up = self.cluster.is_moving_up();
            self.cluster.settle_some(if is_moving_up { PIECE_REQUESTS } else { 1 });
            if is_short || !self.cluster.is_settling() || begun.elapsed() >= PIECE {
                return;
            }
        }
    }

    /// Learns run times from some ended requests of the ledger.
    fn learn(&mut self) {
        if let Err(error) = self.cluster.learn_some() {
            let why = self.cluster.in_words(&error);
            journal::warning(&format!(
                "pbs-clusterd: run times of some ended requests are not learned: {why}"
            ));
        }
    }

    /// Writes all changes, answers the calls that made them, and reports events.
    fn write(&mut self) -> Result<(), String> {
        self.unwritten = None;
        let written = self.cluster.write().map_err(|error| self.cluster.in_words(&error));
        if written.is_ok() {
            self.pace.written();
        }
        for answer in self.answers.drain(..) {
            answer(written.as_ref().map(drop).map_err(|why| Refusal::Failed { why: why.clone() }));
        }
        for event in written? {
            // An event without a listener has no receiver.
            let _ = self.notices.send(Notice { event: Object(public(event)) });
        }
        Ok(())
    }

    /// Answers when the changes are written.
    fn later<T: 'static>(&mut self, answer: Answer<T>, result: Result<T, Refusal>) {
        self.answers.push(Box::new(move |written| {
            // The caller may have gone.
            let _ = answer.send(written.and(result));
        }));
    }

    fn perform(&mut self, caller: &Caller, method: Method) {
        match method {
            Method::Submit(part, answer) => {
                let result = part.read().and_then(|wish| self.submit(caller, *wish));
                self.later(answer, result);
            }
            Method::Reserve(part, answer) => {
                let result = part.read().and_then(|wish| self.reserve(caller, *wish));
                self.later(answer, result);
            }
            Method::Alter(id, part, answer) => {
                let result = part.read().and_then(|change| {
                    self.allow_other(caller, id, change.rset.as_ref())?;
                    let altered = self.cluster.alter(caller, id, &change);
                    self.changed(caller, altered, &[id])
                });
                self.later(answer, result);
            }
            Method::Resize(id, rset, answer) => {
                let result = self.allow_other(caller, id, Some(&rset)).and_then(|()| {
                    let resized = self.cluster.resize(caller, id, &rset);
                    self.changed(caller, resized, &[id])
                });
                self.later(answer, result);
            }
            Method::Extend(id, by_s, answer) => {
                let extended = self.cluster.extend(caller, id, by_s);
                let result = self.changed(caller, extended, &[id]);
                self.later(answer, result);
            }
            Method::Confirm(ids, answer) => {
                let result = self.each(caller, &ids, |cluster, id| cluster.confirm(caller, id));
                self.later(answer, result);
            }
            Method::Kill(mut ids, answer) => {
                ids.sort_unstable();
                ids.dedup();
                let allowed = ids.iter().try_for_each(|&id| self.cluster.check_kill(caller, id));
                let result = match allowed {
                    Ok(()) => self.each(caller, &ids, |cluster, id| {
                        // Requests that follow one, or are inside it, may have ended with it.
                        match cluster.kill(caller, id) {
                            Err(Error::NoRequest(_)) => Ok(()),
                            done => done,
                        }
                    }),
                    Err(error) => Err(self.refusal(&error)),
                };
                self.later(answer, result);
            }
            Method::Show(id, answer) => {
                let result = self.show(caller, id);
                self.later(answer, result);
            }
            Method::List(filter, answer) => {
                let result = self.list(caller, &filter);
                self.later(answer, result);
            }
            Method::Why(id, answer) => {
                let result = self.why(caller, id);
                self.later(answer, result);
            }
            Method::SetNodes(wanted, answer) => {
                let result = self.set_nodes(caller, &wanted);
                self.later(answer, result);
            }
            Method::SetDefect(wanted, answer) => {
                let result = self.each_node(&wanted.names, |cluster, name| {
                    cluster.set_defect(caller, name, &wanted.parts, &wanted.why)
                });
                self.later(answer, result);
            }
            Method::Status(answer) => {
                let status = self.status();
                self.later(answer, Ok(status));
            }
            Method::Optimiser(answer) => {
                let optimiser = optimiser(&self.cluster, caller);
                self.later(answer, Ok(optimiser));
            }
        }
    }

    fn submit(&mut self, caller: &Caller, wish: Wish) -> Result<Changed, Refusal> {
        let wish = self.completed(caller, wish, false)?;
        let ids = self.cluster.submit(caller, &wish);
        let ids = ids.map_err(|error| self.refusal(&error))?;
        self.rows(caller, &ids)
    }

    fn reserve(&mut self, caller: &Caller, wish: Wish) -> Result<Changed, Refusal> {
        let wish = self.completed(caller, wish, true)?;
        let id = self.cluster.reserve(caller, &wish);
        let id = id.map_err(|error| self.refusal(&error))?;
        self.rows(caller, &[id])
    }

    /// Returns the request with the user and the group that it is for, if it is within the limits.
    fn completed(
        &self,
        caller: &Caller,
        mut wish: Wish,
        is_reservation: bool,
    ) -> Result<Wish, Refusal> {
        wish.user = self.owner(caller, &wish.user.name)?;
        if wish.group.is_empty() {
            let own = self.cluster.site().own_group(&wish.user.name);
            wish.group = own.map_or_else(String::new, String::from);
        }
        for (what, name) in
            [("name", &wish.name), ("user", &wish.user.name), ("group", &wish.group)]
        {
            if name.len() > NAME_BYTES {
                let what =
                    format!("the {what} is longer than {NAME_BYTES} bytes; write a shorter one");
                return Err(Refusal::Invalid { what });
            }
        }
        if wish.after.len() > REQUEST_AFTER {
            let what = format!(
                "a request can depend on at most {REQUEST_AFTER} others, and this one names {}; \
                 name fewer",
                wish.after.len()
            );
            return Err(Refusal::Invalid { what });
        }
        let requests = wish.array.as_ref().map_or(1, Vec::len);
        if requests > ARRAY_REQUESTS {
            let what = format!(
                "an array of {requests} requests is too long for one call; submit at most \
                 {ARRAY_REQUESTS} at once"
            );
            return Err(Refusal::Invalid { what });
        }
        let more = self.cluster.held_more(&wish, is_reservation);
        self.allow(caller, &wish.user, more)?;
        Ok(wish)
    }

    /// Returns the user whom a submission names: the caller, or the account that has the name.
    fn owner(&self, caller: &Caller, name: &str) -> Result<User, Refusal> {
        if name.is_empty() || name == caller.user.name {
            return Ok(caller.user.clone());
        }
        if !caller.is_operator {
            // The cluster refuses the request: a name alone is nobody who calls.
            return Ok(name.into());
        }
        account_user(name).map_err(|error| Refusal::Failed { why: error.to_string() })
    }

    /// Checks that the caller may add that to what a user has.
    fn allow(&self, caller: &Caller, user: &User, more: Held) -> Result<(), Refusal> {
        let own = self.cluster.held_by(user);
        self.limits.allow(caller, own, self.cluster.held_by_all(), more)
    }

    /// Checks that a request may have other resources within the limits of its user.
    fn allow_other(&self, caller: &Caller, id: u64, rset: Option<&Rset>) -> Result<(), Refusal> {
        let Some(rset) = rset else {
            return Ok(());
        };
        let more = self.cluster.held_more_with(id, rset);
        let (user, more) = more.map_err(|error| self.refusal(&error))?;
        // The operation refuses others by itself, and less is allowed always.
        if more == Held::default() || (caller.user != *user && !caller.is_operator) {
            return Ok(());
        }
        self.allow(caller, user, more)
    }

    /// Changes several requests, until one of them is refused.
    fn each(
        &mut self,
        caller: &Caller,
        ids: &[u64],
        mut change: impl FnMut(&mut Manager<E>, u64) -> Result<(), Error>,
    ) -> Result<Changed, Refusal> {
        if ids.len() > CALL_REQUESTS {
            let what = format!("name at most {CALL_REQUESTS} requests in one call");
            return Err(Refusal::Invalid { what });
        }
        let changed = ids.iter().try_for_each(|&id| change(&mut self.cluster, id));
        self.changed(caller, changed, ids)
    }

    /// Returns requests as they stand after a change.
    fn changed(
        &self,
        caller: &Caller,
        change: Result<(), Error>,
        ids: &[u64],
    ) -> Result<Changed, Refusal> {
        change.map_err(|error| self.refusal(&error))?;
        self.rows(caller, ids)
    }

    fn rows(&self, caller: &Caller, ids: &[u64]) -> Result<Changed, Refusal> {
        let rows = ids.iter().map(|&id| self.row(caller, id).map(Object));
        Ok(Changed { requests: rows.collect::<Result<_, _>>()? })
    }

    /// Returns a request as it stands or ended.
    fn row(&self, caller: &Caller, id: u64) -> Result<Row, Refusal> {
        let row = self.cluster.current_row(id).map_err(|error| self.refusal(&error))?;
        Ok(shown_to(caller, row))
    }

    fn show(&self, caller: &Caller, id: u64) -> Result<Shown, Refusal> {
        let (row, events) = self.cluster.details(id).map_err(|error| self.refusal(&error))?;
        let is_foreign = is_foreign(caller, &row);
        let events = events.into_iter().map(|event| {
            let event = if is_foreign { public(event) } else { event };
            Object(event)
        });
        let events = events.collect();
        Ok(Shown { request: Object(shown_to(caller, row)), events })
    }

    fn list(&self, caller: &Caller, filter: &Filter) -> Result<Listed, Refusal> {
        let (above, user) = (filter.above.unwrap_or(0), filter.user.as_deref());
        let paged = if filter.ended == Some(true) {
            let paged = self.cluster.rows_above(above, LISTED);
            paged.map_err(|error| self.refusal(&error))?
        } else {
            self.cluster.open_rows_above(above, user, LISTED)
        };
        let last = paged.rows.last().map(|row| row.id);
        let next = last.filter(|_| !paged.is_last);
        let of_user = paged.rows.into_iter().filter(|row| user.is_none_or(|user| row.user == user));
        let requests = of_user.map(|row| Object(shown_to(caller, row))).collect();
        Ok(Listed { clock_s: self.cluster.clock_s(), requests, next })
    }

    fn why(&mut self, caller: &Caller, id: u64) -> Result<Reasons, Refusal> {
        let causes = self.cluster.why(id).map_err(|error| self.refusal(&error))?;
        let machine = self.cluster.machine();
        let causes = causes
            .into_iter()
            .map(|(cause, until_s)| Cause { what: cause.describe(machine), until_s });
        let causes = causes.collect();
        Ok(Reasons { request: Object(self.row(caller, id)?), causes })
    }

    fn set_nodes(
        &mut self,
        caller: &Caller,
        wanted: &NodesWanted,
    ) -> Result<NodesChanged, Refusal> {
        let state = match wanted.state.as_str() {
            "offline" => Some(NodeState::Offline),
            "down" => Some(NodeState::Down),
            "online" => None,
            other => {
                let what = format!("{other} is no state of a node; write offline, down or online");
                return Err(Refusal::Invalid { what });
            }
        };
        let names: Vec<&str> = wanted.names.iter().map(String::as_str).collect();
        let replanned = match state {
            Some(state) => self.cluster.nodes_out_of_use(caller, &names, state, &wanted.why),
            None => self.cluster.nodes_back(caller, &names),
        };
        let replanned = replanned.map_err(|error| self.refusal(&error))?;
        Ok(self.nodes_changed(replanned))
    }

    /// Changes several nodes, until one of them is refused.
    fn each_node(
        &mut self,
        names: &[String],
        mut change: impl FnMut(&mut Manager<E>, &str) -> Result<Replanned, Error>,
    ) -> Result<NodesChanged, Refusal> {
        let mut all = Replanned::default();
        for name in names {
            let replanned = change(&mut self.cluster, name);
            let replanned = replanned.map_err(|error| self.refusal(&error))?;
            all.moved.extend(replanned.moved);
            all.aborted.extend(replanned.aborted);
            all.waiting.extend(replanned.waiting);
        }
        Ok(self.nodes_changed(all))
    }

    /// Returns the nodes, and what became of requests there.
    fn nodes_changed(&self, replanned: Replanned) -> NodesChanged {
        let (nodes, nodes_out) = self.nodes();
        let Replanned { moved, aborted, waiting, .. } = replanned;
        NodesChanged { nodes, nodes_out, defects: self.defects(), moved, aborted, waiting }
    }

    fn defects(&self) -> Vec<Object<DefectRow>> {
        self.cluster.defects().cloned().map(Object).collect()
    }

    fn nodes(&self) -> (u64, Vec<Object<pbs_manager::ledger::NodeRow>>) {
        let out = self.cluster.nodes_out().cloned().map(Object).collect();
        (self.cluster.machine().node_count() as u64, out)
    }

    fn status(&self) -> Status {
        let (nodes, nodes_out) = self.nodes();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            time_zone: zone_text(&self.cluster.site().time_zone),
            clock_s: self.cluster.clock_s(),
            requests: self.cluster.held_by_all().requests as u64,
            nodes,
            nodes_out,
            defects: self.defects(),
            is_settling: self.cluster.is_settling(),
        }
    }

    fn refusal(&self, error: &Error) -> Refusal {
        Refusal::of(error, self.cluster.in_words(error))
    }
}

/// Leaves out what only the owner and operators see.
fn shown_to(caller: &Caller, mut row: Row) -> Row {
    if is_foreign(caller, &row) {
        row.command.clear();
        row.outcome = row.outcome.map(|outcome| without_reason(&outcome).into());
    }
    row
}

/// Whether a request is that of another user, who alone sees its files beside operators.
fn is_foreign(caller: &Caller, row: &Row) -> bool {
    !caller.is_operator && row.owner() != caller.user
}

/// Returns an event without what only the owner of its request sees.
fn public(event: Event) -> Event {
    Event { text: without_reason(&event.text).into(), ..event }
}
