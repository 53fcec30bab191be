// SPDX-License-Identifier: GPL-2.0
//! Operations of users.

use pbs_cluster_planner::{Cause, Refusal, Request, RequestId, SearchBudget, State, When};
use pbs_launch::NoticeSignal;
use pbs_resources::{format_duration, Rset};
use pbs_site::{format_time, Privilege, Promise, User};

use crate::engine::Engine;
use crate::error::Error;
use crate::followers::has_begun;
use crate::ledger::{Phase, Row};
use crate::manager::Manager;
use crate::outcome::KILLED;
use crate::phases::run_end_s;
use crate::record::{is_held, numbers, RequestRecord};
use crate::wish::{Caller, Change, Wish};

/// The numbers of what was planned, or why it was not.
pub type Planned = Result<Vec<RequestId>, Error>;

/// The refusal of a promise of a deadline that the request does not have.
const NO_DEADLINE: &str =
    "a request without a deadline can't have the promise deadline; add --deadline";

/// Whether the promise is that of a deadline, and there is none.
fn lacks_deadline(promise: Promise, when: When) -> bool {
    promise == Promise::Deadline && !matches!(when, When::Deadline { .. } | When::Between { .. })
}

impl<E: Engine> Manager<E> {
    /// Plans what is asked for; of an array all requests, or none.
    ///
    /// # Errors
    ///
    /// [`Error::Declined`] with why, [`Error::NotPermitted`] for another user.
    pub fn submit(&mut self, caller: &Caller, wish: &Wish) -> Result<Vec<RequestId>, Error> {
        let planned = self.plan(caller, wish);
        // What was taken back may have let others move up.
        self.commit()?;
        planned
    }

    /// Submits several requests, each independent of the others. They are written together,
    /// therefore the disk is waited for only once.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn submit_all(&mut self, wishes: &[(Caller, Wish)]) -> Result<Vec<Planned>, Error> {
        let planned = wishes.iter().map(|(caller, wish)| self.plan(caller, wish));
        let planned = planned.collect();
        self.commit()?;
        Ok(planned)
    }

    fn plan(&mut self, caller: &Caller, wish: &Wish) -> Planned {
        self.check_permission(caller, &wish.user, "ask in the name of others")?;
        let indices: Vec<Option<u64>> = match &wish.array {
            None => vec![None],
            Some(array) => array.iter().copied().map(Some).collect(),
        };
        if indices.is_empty() {
            let what = "an array has at least one number";
            return Err(Error::Wrong(what.into()));
        }
        check_notice(wish)?;
        self.engine.check(caller, wish).map_err(Error::Wrong)?;
        let mut request = self.completed(self.request_of(wish, self.promise_of(wish)?))?;
        let after = self.open_after(wish)?;
        request.after = numbers(&after);
        request.is_held = is_held(&after);
        let of_call = SearchBudget::default();
        let mut ids = Vec::with_capacity(indices.len());
        for &index in &indices {
            // Nobody waits for the end of the call where there is no service.
            let of_request = SearchBudget::default();
            let budget = if self.is_deferred { &of_call } else { &of_request };
            let planned = match wish.within {
                None => self.planner.submit_within(self.clock_s, &request, budget),
                Some(reservation) => self.in_reservation(caller, reservation, &request, budget)?,
            };
            match planned {
                Ok(id) => ids.push((id, index)),
                Err(why) => {
                    self.take_back(wish.within, &ids);
                    return Err(why.into());
                }
            }
        }
        for &(id, index) in &ids {
            let record = RequestRecord {
                after: after.clone(),
                ..self.record_with_margins(caller, wish, &request, index, false)
            };
            self.take_in(id, record);
            self.tell(Some(id), "submitted", format!("by {}", caller.user));
        }
        Ok(ids.into_iter().map(|(id, _)| id).collect())
    }

    /// Holds what is asked for, for requests that come later.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`]; user or group need the privilege to reserve.
    pub fn reserve(&mut self, caller: &Caller, wish: &Wish) -> Result<RequestId, Error> {
        self.check_permission(caller, &wish.user, "reserve in the name of others")?;
        self.engine.check_reservation().map_err(Error::Wrong)?;
        let may = self.site.may(&wish.user.name, &wish.group, Privilege::Reserve);
        if !may && !caller.is_operator {
            return Err(Error::NotPermitted("reserve; ask an operator".into()));
        }
        if wish.array.is_some() || wish.within.is_some() || !wish.after.is_empty() {
            let what = "a reservation has no array, is inside no other and depends on nothing; \
                        leave out --array, --within and --depend";
            return Err(Error::Wrong(what.into()));
        }
        let mut request = self.completed(self.request_of(wish, self.promise_of(wish)?))?;
        // Nothing is started in it before those that are in it are.
        request.margin_s = 0;
        let of_reservations = self.site.weights.reservation;
        request.priority = request.priority.saturating_add(of_reservations);
        let id = self.planner.reserve(self.clock_s, &request)?;
        let record = self.record_with_margins(caller, wish, &request, None, true);
        self.take_in(id, record);
        self.tell(Some(id), "reserved", format!("by {}", caller.user));
        self.commit()?;
        Ok(id)
    }

    /// Checks that [`Self::kill`] would end a request. Who ends several checks all of them before:
    /// either all end, or none.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`], [`Error::NotPermitted`].
    pub fn check_kill(&self, caller: &Caller, id: RequestId) -> Result<(), Error> {
        let user = self.request(id)?.user.clone();
        self.check_permission(caller, &user, "end requests of others")
    }

    /// A request is not wanted any more; what it has is given back.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`], [`Error::NotPermitted`].
    pub fn kill(&mut self, caller: &Caller, id: RequestId) -> Result<(), Error> {
        self.check_kill(caller, id)?;
        self.end(id, &format!("{KILLED}{}", caller.user));
        self.settle();
        self.commit()
    }

    /// Takes a request that has not started out of the plan, with the reason as its outcome. A
    /// request that has its nodes but does not run gives them back.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`], and [`Error::Wrong`] for a request whose nodes are being cleaned.
    pub fn decline(&mut self, id: RequestId, why: &str) -> Result<(), Error> {
        self.check_unfinished(id)?;
        self.not_started(id, why);
        self.finish(id, why);
        self.settle();
        self.commit()
    }

    /// Takes all requests out of the plan that follow one, directly or by others, and returns them
    /// as they were: they have to wait until that one is planned again. Its end would let them go, or
    /// end them. A follower that has begun goes on.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub fn decline_followers(&mut self, id: RequestId) -> Result<Vec<Row>, Error> {
        let followers = self.all_followers(id);
        let rows = followers.into_iter().filter_map(|id| self.row(id));
        let rows: Vec<Row> = rows.filter(|row| !has_begun(row)).collect();
        if rows.is_empty() {
            return Ok(rows);
        }
        let why = format!("request {id}, which it follows, has no place in the plan now");
        for row in &rows {
            self.finish(row.id, &why);
        }
        self.settle();
        self.commit()?;
        Ok(rows)
    }

    /// Plans a request anew that has its nodes and does not run yet; others are left alone.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`], and [`Error::Wrong`] for a request that is over but for its nodes.
    pub fn send_back(&mut self, id: RequestId, why: &str) -> Result<(), Error> {
        self.check_unfinished(id)?;
        self.not_started(id, why);
        self.commit()
    }

    fn check_unfinished(&self, id: RequestId) -> Result<(), Error> {
        let row = self.open_row(id).ok_or(Error::NoRequest(id))?;
        if row.phase == Some(Phase::Releasing) {
            return Err(Error::Wrong(format!(
                "request {id} is over, and its nodes are being cleaned; wait until they are free"
            )));
        }
        Ok(())
    }

    /// Plans a request that has not started as something else, or leaves it as it is
    /// (Keller, 5.4). It keeps its turn.
    ///
    /// # Errors
    ///
    /// [`Error::Declined`] with why, [`Error::Wrong`] once it runs.
    pub fn alter(&mut self, caller: &Caller, id: RequestId, change: &Change) -> Result<(), Error> {
        let mut request = self.request(id)?.clone();
        self.check_permission(caller, &request.user.clone(), "alter requests of others")?;
        let record = self.records.get(&id).ok_or(Error::NoRequest(id))?;
        if record.is_reservation || record.within.is_some() {
            let what = "reservations and requests inside one can't be changed; end it and submit \
                        it again";
            return Err(Error::Wrong(what.into()));
        }
        self.engine.check_change(caller, &record.command).map_err(Error::Wrong)?;
        if matches!(self.planner.state(id), Some(State::Running { .. })) {
            return Err(Error::Wrong(format!("request {id} is running; extend it, or end it")));
        }
        if change.duration_s == Some(0) {
            let what = "a request runs for at least a second; leave the duration as it is, or \
                        write a longer one";
            return Err(Error::Wrong(what.into()));
        }
        if let Some(rset) = &change.rset {
            request.rset = rset.clone();
        }
        request.duration_s = change.duration_s.unwrap_or(request.duration_s);
        request.when = change.when.unwrap_or(request.when);
        request.throttle = change.throttle.clone().or(request.throttle);
        if lacks_deadline(request.promise, request.when) {
            return Err(Error::Wrong(NO_DEADLINE.into()));
        }
        request.priority = 0;
        if request.user == caller.user {
            // The site may know the user by another name now.
            request.user = caller.user.clone();
        }
        let request = self.completed(request)?;
        if request == *self.request(id)? {
            // It keeps its place, and nobody else gets a turn for that.
            return self.commit();
        }
        self.planner.alter(self.clock_s, id, &request)?;
        if let Some(record) = self.records.get_mut(&id) {
            record.request = request;
        }
        self.count_again(id);
        self.tell(Some(id), "altered", format!("by {}", caller.user));
        self.settle();
        // Requests with later turns may have moved into its old place, and left a better one.
        self.planner.look_again(self.clock_s);
        self.settle();
        self.commit()
    }

    /// Extends a running request, as far as the site permits and nobody else is planned (Keller,
    /// 5.4).
    ///
    /// # Errors
    ///
    /// [`Error::Declined`] with the reason; the user or the group needs the privilege to extend.
    pub fn extend(&mut self, caller: &Caller, id: RequestId, by_s: u64) -> Result<(), Error> {
        let request = self.request(id)?.clone();
        self.check_permission(caller, &request.user, "extend requests of others")?;
        let may = self.site.may(&caller.user.name, &request.group, Privilege::Extend);
        if !may && !caller.is_operator {
            return Err(Error::NotPermitted("extend; ask an operator".into()));
        }
        self.lengthen(id, by_s)?;
        self.tell(Some(id), "extended", format!("by {}", format_duration(by_s)));
        // Its followers have moved, and left places to others.
        self.settle();
        self.commit()
    }

    /// A running request is over later, if that can be.
    pub(crate) fn lengthen(&mut self, id: RequestId, by_s: u64) -> Result<(), Error> {
        let before = self.row(id).ok_or(Error::NoRequest(id))?;
        let most_permille = self.site.max_extension_permille;
        let within = self.records.get(&id).and_then(|record| record.within);
        let planner = self.planner_of_mut(within).ok_or(Error::NoRequest(id))?;
        if !matches!(planner.state(id), Some(State::Running { .. })) {
            return Err(Error::Wrong(format!(
                "request {id} is not running; use pbsctl cluster alter"
            )));
        }
        let state = planner.state(id);
        if let (Some(reservation), Some(State::Running { end_s, .. })) = (within, state) {
            self.check_within(reservation, end_s.saturating_add(by_s))?;
        }
        let planner = self.planner_of_mut(within).ok_or(Error::NoRequest(id))?;
        planner.extend(id, by_s, most_permille)?;
        if let Some(record) = self.records.get_mut(&id) {
            record.request.duration_s += by_s;
        }
        self.forget_end(&before);
        self.expect_end(id);
        if let Some(end_s) = run_end_s(&before) {
            self.engine.extend(id, end_s + by_s);
        }
        Ok(())
    }

    /// Checks that a reservation holds its nodes until a time.
    fn check_within(&self, reservation: RequestId, until_s: u64) -> Result<(), Error> {
        let held = self.row(reservation).ok_or(Error::NoRequest(reservation))?;
        match held.end_s {
            Some(end_s) if end_s < until_s => {
                let end = format_time(end_s, &self.site.time_zone);
                Err(Error::Wrong(format!(
                    "reservation {reservation} ends at {end}, and the request in it can't run \
                     longer; extend the reservation first"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Gives a running request another number of its chunks (Keller, 8): what it gives back
    /// others may have, and more it gets where that is free until its end.
    ///
    /// # Errors
    ///
    /// [`Error::Declined`] with why, [`Error::Wrong`] if it does not run.
    pub fn resize(&mut self, caller: &Caller, id: RequestId, rset: &Rset) -> Result<(), Error> {
        let request = self.request(id)?.clone();
        self.check_permission(caller, &request.user, "resize requests of others")?;
        let record = self.records.get(&id).ok_or(Error::NoRequest(id))?;
        self.engine.check_change(caller, &record.command).map_err(Error::Wrong)?;
        let is_running = matches!(self.planner.state(id), Some(State::Running { .. }));
        if record.is_reservation || record.within.is_some() || !is_running || record.phase.is_some()
        {
            let what = format!(
                "request {id} is not running, or runs inside a reservation; use pbsctl cluster \
                 alter for a planned one"
            );
            return Err(Error::Wrong(what));
        }
        let accepted = self.site.accept(rset, &request.user.name, &request.group);
        let rset = accepted.map_err(Refusal::NotAccepted)?;
        check_length(&rset)?;
        self.planner.resize(self.clock_s, id, &rset)?;
        if let Some(record) = self.records.get_mut(&id) {
            record.request.rset = rset;
        }
        self.count_again(id);
        if let Some(allocation) = self.allocation(id) {
            self.engine.resize(&allocation);
        }
        self.tell(Some(id), "resized", format!("by {}", caller.user));
        self.settle();
        self.commit()
    }

    /// A provisional request is wanted: it stays.
    ///
    /// # Errors
    ///
    /// [`Error::Wrong`] if it is not provisional.
    pub fn confirm(&mut self, caller: &Caller, id: RequestId) -> Result<(), Error> {
        let user = self.request(id)?.user.clone();
        self.check_permission(caller, &user, "confirm requests of others")?;
        if !self.planner.confirm(id) {
            let what = format!("request {id} is not provisional, and needs no confirmation");
            return Err(Error::Wrong(what));
        }
        if let (Some(record), Some(it)) = (self.records.get_mut(&id), self.planner.standing(id)) {
            record.request.when = it.when;
        }
        self.tell(Some(id), "confirmed", format!("by {}", caller.user));
        self.commit()
    }

    /// Returns the causes that keep a request from an earlier start. With each cause goes the
    /// earliest start if no other cause existed; `None` means never.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`].
    pub fn why(&mut self, id: RequestId) -> Result<Vec<(Cause, Option<u64>)>, Error> {
        let within = self.records.get(&id).ok_or(Error::NoRequest(id))?.within;
        let clock_s = self.clock_s;
        let planner = self.planner_of_mut(within).ok_or(Error::NoRequest(id))?;
        Ok(planner.why(clock_s, id))
    }

    /// Checks that the caller is the user, or an operator.
    fn check_permission(&self, caller: &Caller, user: &User, what: &str) -> Result<(), Error> {
        if caller.is_operator || caller.user == *user {
            Ok(())
        } else {
            Err(Error::NotPermitted(format!("{what}; operators may")))
        }
    }

    /// Returns the promise of a request, if the site allows it.
    fn promise_of(&self, wish: &Wish) -> Result<Promise, Error> {
        let allowed = self.site.promises();
        let promise = wish.promise.or(allowed.first().copied()).unwrap_or(Promise::Start);
        if !allowed.contains(&promise) {
            let allowed: Vec<&str> = allowed.iter().map(|of| of.name()).collect();
            return Err(Error::Wrong(format!(
                "the site allows no promise {}; write {}",
                promise.name(),
                allowed.join(" or ")
            )));
        }
        match wish.promise {
            _ if !lacks_deadline(promise, wish.when) => Ok(promise),
            // The site promises the deadlines of those that have one.
            None => Ok(Promise::None),
            Some(_) => Err(Error::Wrong(format!("{NO_DEADLINE}, or leave out --promise"))),
        }
    }

    fn request_of(&self, wish: &Wish, promise: Promise) -> Request {
        Request {
            rset: wish.rset.clone(),
            duration_s: wish.duration_s,
            margin_s: 0,
            when: wish.when,
            user: wish.user.clone(),
            group: wish.group.clone(),
            priority: 0,
            is_of_array: wish.array.is_some(),
            throttle: wish.throttle.clone(),
            promise,
            after: Vec::new(),
            is_held: false,
        }
    }

    fn record_with_margins(
        &self,
        caller: &Caller,
        wish: &Wish,
        request: &Request,
        index: Option<u64>,
        is_reservation: bool,
    ) -> RequestRecord {
        let (allocate_s, release_s) = match request.margin_s {
            0 => (0, 0),
            _ => self.margins_s(),
        };
        RequestRecord {
            allocate_s,
            release_s,
            ..record_of(caller, wish, request, index, is_reservation)
        }
    }

    fn completed(&self, mut request: Request) -> Result<Request, Error> {
        request.complete(&self.site, &self.machine, self.clock_s)?;
        check_length(&request.rset)?;
        let (allocate_s, release_s) = self.margins_s();
        request.margin_s = allocate_s + release_s;
        Ok(request)
    }

    /// Plans in a reservation for its owner, and for the members of its group: users for whom the
    /// site lists the group. Naming a group is not enough.
    fn in_reservation(
        &mut self,
        caller: &Caller,
        reservation: RequestId,
        request: &Request,
        budget: &SearchBudget,
    ) -> Result<Result<RequestId, Refusal>, Error> {
        let held = self.request(reservation)?;
        let user = self.site.user(&request.user.name);
        let is_member =
            held.group == request.group && user.is_some_and(|of| of.groups.contains(&held.group));
        let is_of_it = held.user == request.user || is_member;
        if !is_of_it && !caller.is_operator {
            let what = format!("use reservation {reservation}, which is of {}", held.user);
            return Err(Error::NotPermitted(what));
        }
        let is_reservation = |record: &RequestRecord| record.is_reservation;
        if !self.records.get(&reservation).is_some_and(is_reservation) {
            let what = format!(
                "request {reservation} is a job, and no reservation; reserve nodes with pbsctl \
                 cluster reserve, and write the number that it prints after --within"
            );
            return Err(Error::Wrong(what));
        }
        Ok(self.planner.submit_in_within(self.clock_s, reservation, request, budget))
    }

    fn take_back(&mut self, within: Option<RequestId>, ids: &[(RequestId, Option<u64>)]) {
        let clock_s = self.clock_s;
        if let Some(planner) = self.planner_of_mut(within) {
            for &(id, _) in ids.iter().rev() {
                planner.remove(clock_s, id);
            }
        }
        self.settle();
    }
}

/// Checks that programs can be notified as the request wants it.
fn check_notice(wish: &Wish) -> Result<(), Error> {
    let Some(signal) = &wish.notify_signal else {
        return Ok(());
    };
    if wish.notify_s.is_none() {
        let what = "a signal for the notice is given, and no time; add --notify 10m";
        return Err(Error::Wrong(what.into()));
    }
    signal.parse::<NoticeSignal>().map(drop).map_err(Error::Wrong)
}

/// Checks that resources can be read back from the ledger: the site's defaults make them longer.
fn check_length(rset: &Rset) -> Result<(), Error> {
    let read = rset.to_string().parse::<Rset>();
    read.map(drop).map_err(|error| {
        let what = format!("with the default values of the site, {}", error.message);
        Error::Wrong(what)
    })
}

pub(crate) fn record_of(
    caller: &Caller,
    wish: &Wish,
    request: &Request,
    index: Option<u64>,
    is_reservation: bool,
) -> RequestRecord {
    RequestRecord {
        request: request.clone(),
        within: wish.within,
        is_reservation,
        held_bytes: 0,
        name: wish.name.clone(),
        command: wish.command.clone(),
        array_index: index,
        run_s: wish.run_s,
        notify_s: wish.notify_s,
        notify_signal: wish.notify_signal.clone(),
        submitted_by: Some(caller.user.clone()),
        is_restartable: wish.is_restartable,
        after: Vec::new(),
        allocate_s: 0,
        release_s: 0,
        phase: None,
        ready_s: None,
        outcome: None,
    }
}
