// SPDX-License-Identifier: GPL-2.0
//! Requests of users about the jobs of a node: to accept, hold and end them.

use std::collections::BTreeSet;
use std::time::Instant;

use pbs_history::{Kind, NewRun, Outcome, RunId};
use pbs_job::Worth;
use pbs_planner::validate_machine;

use crate::admission::{Allowance, Trial};
use crate::admitting::ASKED;
use crate::allocation::Allocations;
use crate::amounts::AmountsNow;
use crate::candidate::Candidate;
use crate::clock::{monotonic_ns, unix_ns};
use crate::jobs::Jobs;
use crate::orders::{deadline_fault, Ended, Ending, Noted, Order, Waiting, Waits};
use crate::submission::by_priority;
use crate::value::{second_order, second_results, Entrant};
use crate::{Declined, Error, Expected, Listener, News, NotRun, Submission};

/// Orders that are planned in a round at most: what the node hears must not wait for hundreds.
const TRIED_AT_ONCE: usize = 16;

/// Name of the plan in messages.
pub(super) const ALL_JOBS: &str = "the plan of all jobs";

/// Changes to a run.
#[derive(Clone, Debug, Default)]
pub struct Alteration {
    /// Deadline of the run, counted from its submission.
    pub deadline_ns: Option<u64>,
    /// Priority of the run.
    pub priority: Option<u32>,
    /// The job itself.
    pub rewrite: Option<Rewrite>,
}

/// Another job in the place of one that waits. Only the owner of the job may write what is run
/// as the owner.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The user who wrote it.
    pub uid: u32,
    /// The job.
    pub submission: Submission,
}

/// A round in which the orders that wait are checked.
#[derive(Default)]
struct Round {
    /// All that are tried in a round are planned once, with the work of one request.
    trial: Option<Trial>,
    tried: usize,
    /// Whether a job declares a value or a penalty: refusals wait for the end of the round.
    weighs: bool,
    /// Orders that the trial has taken.
    taken: Vec<Waiting>,
    /// Orders that were tried, where values are weighed: `taken` is made of them.
    tries: Vec<Try>,
    /// Orders that go on waiting.
    left: Vec<Waiting>,
    /// Orders about which the command is to be asked.
    undecided: Vec<RunId>,
    /// Number of orders about which the command is not asked, since too many wait.
    beyond: usize,
    /// Whether as many were tried as a round has work for: the rest is not checked.
    is_full: bool,
    /// Knowledge of the amounts of resources in this round.
    amounts: AmountsNow,
}

/// An order that was tried, and its result.
struct Try {
    order: Waiting,
    result: Result<(), Error>,
}

/// A second trial of a round, which loses less value than the first.
struct SecondTry {
    trial: Trial,
    /// Indices of the orders, as they were tried.
    places: Vec<usize>,
    /// Result of each order, at its index.
    results: Vec<Result<(), Error>>,
}

/// Listener to which nothing matters.
struct Nobody;

impl Listener for Nobody {}

impl Round {
    fn has_ended(&mut self) -> bool {
        let is_spent = self.trial.as_ref().is_some_and(Trial::is_spent);
        self.is_full |= self.tried == TRIED_AT_ONCE || is_spent;
        self.is_full
    }
}

impl Jobs {
    /// Takes orders in: all of them, or none. What nothing keeps from it is admitted,
    /// and is in the next plan; the rest waits.
    ///
    /// # Errors
    ///
    /// Why one is declined, or what it waits for will never come. One whose CPUs the
    /// machine does not have is declined at once, also if it is to wait.
    pub(crate) fn order(
        &mut self,
        orders: Vec<Order>,
        listener: &mut dyn Listener,
    ) -> Result<Vec<RunId>, Error> {
        let (now_ns, now_unix_ns) = (monotonic_ns(), unix_ns());
        let mut ready = Vec::with_capacity(orders.len());
        let mut before = BTreeSet::new();
        for order in &orders {
            order.has_possible_times()?;
            self.has_cpus_of(&order.submission)?;
            before.extend(order.terms.after.iter().chain(&order.terms.after_ok).copied());
        }
        // Each is asked of the history once, however many elements of an array name it.
        for id in before {
            self.ledger.run(RunId(id))?;
        }
        for order in &orders {
            ready.push(match order.waits(|id| self.ended(id)) {
                Waits::No if self.backlog.is_drained() || self.asks_first() => false,
                Waits::No if self.awaited_amount(&order.submission.job).is_some() => false,
                Waits::No => self.take_room(order),
                Waits::For(_) => false,
                Waits::Never(why) => {
                    return Err(Error::Declined(Declined {
                        file: order.submission.file.clone(),
                        job: order.submission.job.name.clone(),
                        why,
                        earliest_deadline_ns: None,
                    }));
                }
            });
        }
        let mut candidates: Vec<_> = orders
            .iter()
            .zip(&ready)
            .filter(|(_, ready)| **ready)
            .map(|(order, _)| Candidate {
                submission: order.submission.clone(),
                id: None,
                submitted_ns: now_ns,
                terms: Some(order.terms.clone()),
                kind: Kind::Plan,
            })
            .collect();
        // The sort is stable, so the numbers are given back in the same order below.
        by_priority(&mut candidates, |candidate| &candidate.submission.job);
        // Orders that only wait change no plan.
        let mut planned = None;
        if !candidates.is_empty() {
            let allowance = Allowance::new(self.max_work, candidates.len());
            let mut trial = self.trial_within(now_ns, allowance);
            for candidate in candidates {
                self.take(&mut trial, candidate)?;
            }
            let plan = trial.plan(ALL_JOBS)?;
            planned = Some((trial, plan));
        }
        let notes = orders.iter().map(|order| {
            let noted = Noted { terms: order.terms.clone(), ending: Ending::default() };
            noted.order()
        });
        let notes: Vec<_> = notes.collect();
        let runs = orders.iter().zip(&notes).map(|(order, note)| NewRun {
            job: &order.submission.job.name,
            kind: Kind::Plan,
            submitted_unix_ns: now_unix_ns,
            request: &order.submission.request,
            reservation: "",
            order: Some(note),
        });
        let ids = self.ledger.take_in(&runs.collect::<Vec<_>>())?;

        if let Some((trial, plan)) = planned {
            let first = self.commit(trial, plan, listener);
            let mut admitted: Vec<_> = orders
                .iter()
                .zip(&ids)
                .zip(&ready)
                .filter(|(_, ready)| **ready)
                .map(|((order, id), _)| (order, *id))
                .collect();
            by_priority(&mut admitted, |(order, _)| &order.submission.job);
            for (run, (_, id)) in self.runs[first..].iter_mut().zip(admitted) {
                run.id = Some(id);
                run.submitted_at(now_unix_ns);
            }
            self.tell_moved(first, listener);
        }
        let waiting = orders.into_iter().zip(&ids).zip(&ready);
        for ((order, &id), _) in waiting.filter(|(_, ready)| !**ready) {
            let waits_for_room = order.waits(|id| self.ended(id)) == Waits::No;
            let why = self.awaited_amount(&order.submission.job).or_else(|| self.asks_in_words());
            let why = why.unwrap_or_else(|| Error::NoRoom.to_string());
            let not_started = waits_for_room.then_some(why);
            self.backlog.push(Waiting {
                id,
                order,
                submitted_ns: now_ns,
                submitted_unix_ns: now_unix_ns,
                not_started,
                decision: None,
            });
        }
        if self.asks_first() {
            self.backlog.check_again();
        }
        Ok(ids)
    }

    /// Takes room for the programs of an order. Whether there was any; otherwise the order waits
    /// and is checked again when that may have changed.
    fn take_room(&mut self, order: &Order) -> bool {
        let fits = self.room.take(order.terms.owner.uid, order.held().programs);
        if !fits {
            self.backlog.check_in_a_while();
        }
        fits
    }

    /// Whether the machine has the CPUs that the job is confined to, and resources for it.
    fn has_cpus_of(&self, submission: &Submission) -> Result<(), Error> {
        let Submission { file, job, .. } = submission;
        let has = validate_machine(job, &self.most_machine());
        has.map_err(|rejection| {
            Error::Declined(Declined {
                file: file.clone(),
                job: job.name.clone(),
                why: rejection.describe(job, 0),
                earliest_deadline_ns: None,
            })
        })
    }

    /// Returns the plan that an order would have; nothing changes.
    ///
    /// # Errors
    ///
    /// The reason for which it would be declined.
    pub(crate) fn would_order(&self, order: &Order) -> Result<Expected, Error> {
        order.has_possible_times()?;
        if let Some(why) = self.awaited_amount(&order.submission.job) {
            self.has_cpus_of(&order.submission)?;
            return Err(Error::Declined(Declined {
                file: order.submission.file.clone(),
                job: order.submission.job.name.clone(),
                why: format!("no deadline is promised yet: {why}"),
                earliest_deadline_ns: None,
            }));
        }
        let now_ns = monotonic_ns();
        let mut trial = self.trial_within(now_ns, Allowance::new(self.max_work, 1));
        let candidate = Candidate {
            submission: order.submission.clone(),
            id: None,
            submitted_ns: now_ns,
            terms: Some(order.terms.clone()),
            kind: Kind::Plan,
        };
        self.take(&mut trial, candidate)?;
        trial.plan(&order.submission.file)?;
        // The trial has the job that it has just taken.
        Ok(trial.expected().unwrap_or_default())
    }

    /// Takes in what waits in the history, as another service has left it.
    pub(crate) fn find_orders(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        let (now_ns, now_unix_ns) = (monotonic_ns(), unix_ns());
        for (id, ago_ns, request) in self.ledger.waiting()? {
            let Some(order) = self.ledger.order(id)? else {
                // It waits for pbsctl run.
                continue;
            };
            let Some(noted) = Noted::of(&order) else {
                // Nobody knows as whom it would run. The record stays as it is.
                let job = self.ledger.run(id)?.job;
                self.ledger.close_unrun(id, Outcome::Declined, None)?;
                let error = Error::UnreadableOrder(id, job.clone());
                listener.not_run(&NotRun { run: id, job: &job, why: &error.to_string() });
                listener.news(News::NotAdmitted(error));
                continue;
            };
            match Submission::from_text(request, format!("run {id}")) {
                Ok(submission) => self.backlog.push(Waiting {
                    id,
                    order: Order::new(submission, noted.terms),
                    submitted_ns: now_ns.saturating_sub(ago_ns),
                    submitted_unix_ns: now_unix_ns.saturating_sub(ago_ns),
                    not_started: None,
                    decision: None,
                }),
                Err(error) => {
                    let why = error.to_string();
                    let ending = Ending { why: Some(why.clone()), ..Ending::default() };
                    let order = noted.over(ending).order();
                    self.ledger.close_unrun(id, Outcome::Declined, Some(&order))?;
                    let job = self.ledger.run(id)?.job;
                    listener.not_run(&NotRun { run: id, job: &job, why: &why });
                    listener.news(News::NotAdmitted(error));
                }
            }
        }
        self.backlog.check_again();
        Ok(())
    }

    /// Admits what waits and need not any more. What is declined by now, or waits for
    /// what never comes, is over.
    pub(crate) fn promote(&mut self, listener: &mut dyn Listener) {
        if self.backlog.is_due() {
            self.settle_amounts();
        }
        let due = self.backlog.take_due();
        if self.ledger.owes() {
            self.ledger.keep_in_time(listener);
            self.backlog.check_in_a_while();
        }
        let Some(mut waiting) = due else {
            return;
        };
        by_priority(&mut waiting, |waiting| &waiting.order.submission.job);
        let has_value = |one: &Waiting| {
            one.order.submission.job.worth != Worth::default()
                && matches!(one.order.waits(|id| self.ended(id)), Waits::No)
        };
        let mut round = Round { weighs: waiting.iter().any(has_value), ..Round::default() };
        for one in waiting {
            self.check(one, &mut round, listener);
        }
        self.weigh(&mut round, listener);
        let Round { trial, taken, mut left, undecided, beyond, is_full, .. } = round;
        if let Some(trial) = trial {
            left.extend(self.admit_taken(trial, taken, listener));
        }
        self.backlog.put_back(left);
        self.ask_about(undecided, beyond, listener);
        if is_full {
            self.backlog.check_in_next_round();
        }
    }

    /// Checks whether an order still waits, and for what.
    fn check(&mut self, one: Waiting, round: &mut Round, listener: &mut dyn Listener) {
        if round.has_ended() {
            round.left.push(one);
            return;
        }
        if let Some(next) = self.backlog.retries.next(one.id, Instant::now()) {
            self.backlog.check_at(next);
            round.left.push(one);
            return;
        }
        match one.order.waits(|id| self.ended(id)) {
            Waits::No => self.check_ready(one, round, listener),
            Waits::For(_) => round.left.push(one),
            Waits::Never(why) => self.close(one, Outcome::Cancelled, why, listener),
        }
    }

    /// Checks an order that need not wait for other runs.
    fn check_ready(&mut self, mut one: Waiting, round: &mut Round, listener: &mut dyn Listener) {
        if let Some(why) = one.declined().map(str::to_owned) {
            self.close_declined(one, why, listener);
        } else if self.backlog.is_drained() {
            round.left.push(one);
        } else if self.is_undecided(&one) && round.undecided.len() < ASKED {
            round.undecided.push(one.id);
            one.not_started = self.asks_in_words();
            round.left.push(one);
        } else if let Some(why) =
            self.awaited_amount_with(&one.order.submission.job, &mut round.amounts)
        {
            if one.deadline_unix_ns() < unix_ns() {
                let why = format!("its deadline has passed; {why}");
                return self.close_declined(one, why, listener);
            }
            self.backlog.check_in_a_while();
            one.not_started = Some(why);
            round.left.push(one);
        } else if self.take_room(&one.order) {
            self.try_ready(one, round, listener);
        } else {
            one.not_started = Some(Error::NoRoom.to_string());
            round.left.push(one);
        }
    }

    /// Plans the job of an order beside those that the round has taken.
    fn try_ready(&mut self, one: Waiting, round: &mut Round, listener: &mut dyn Listener) {
        let mut trial = round
            .trial
            .take()
            .unwrap_or_else(|| self.trial_within(monotonic_ns(), Allowance::new(self.max_work, 1)));
        round.tried += 1;
        round.beyond += usize::from(self.is_undecided(&one));
        match self.take_decided(&mut trial, &one, listener) {
            result if round.weighs => round.tries.push(Try { order: one, result }),
            Ok(()) => round.taken.push(one),
            Err(error) => round.left.extend(self.not_admitted(one, error, listener)),
        }
        round.trial = Some(trial);
    }

    /// Tries the orders of a round once more by their value, if one was declined. The order of the
    /// trial that loses less value decides. Both trials share the work of one request.
    fn weigh(&mut self, round: &mut Round, listener: &mut dyn Listener) {
        let tries = std::mem::take(&mut round.tries);
        let (orders, mut results): (Vec<_>, Vec<_>) =
            tries.into_iter().map(|tried| (tried.order, tried.result)).unzip();
        let mut places: Vec<usize> = (0..orders.len()).collect();
        if let Some(second) = self.second_try(round, &orders, &results) {
            (round.trial, places, results) = (Some(second.trial), second.places, second.results);
        }
        let mut all: Vec<_> = orders.into_iter().zip(results).map(Some).collect();
        for place in places {
            match all[place].take() {
                Some((one, Ok(()))) => round.taken.push(one),
                Some((one, Err(error))) => {
                    round.left.extend(self.not_admitted(one, error, listener));
                }
                None => {}
            }
        }
    }

    /// Tries orders by their value; `None`: there is no such order, or it does not lose less.
    fn second_try(
        &self,
        round: &Round,
        orders: &[Waiting],
        results: &[Result<(), Error>],
    ) -> Option<SecondTry> {
        let entrants = orders.iter().map(|one| Entrant {
            job: &one.order.submission.job,
            uid: Some(one.order.terms.owner.uid),
        });
        let entrants: Vec<_> = entrants.collect();
        let places = second_order(&entrants, results)?;
        let first = round.trial.as_ref()?;
        let mut trial = self.trial_within(first.now_ns(), first.rest()?);
        let mut others = Vec::with_capacity(places.len());
        for &place in &places {
            if trial.is_spent() {
                // A job would be declined for the work that others took.
                return None;
            }
            // What a command chose in vain is told of the first order alone.
            others.push(self.take_decided(&mut trial, &orders[place], &mut Nobody));
        }
        let results = second_results(&entrants, results, &places, others)?;
        trial.has_plan().then_some(SecondTry { trial, places, results })
    }

    /// Whether a command is to be asked about an order that need not wait.
    fn is_undecided(&self, one: &Waiting) -> bool {
        one.decision.is_none() && self.asks_first()
    }

    /// Closes an order that a command has declined.
    fn close_declined(&mut self, one: Waiting, why: String, listener: &mut dyn Listener) {
        listener.news(News::NotAdmitted(Error::Declined(Declined {
            file: one.order.submission.file.clone(),
            job: one.order.submission.job.name.clone(),
            why: why.clone(),
            earliest_deadline_ns: None,
        })));
        self.close(one, Outcome::Declined, why, listener);
    }

    /// Admits the orders that a trial has taken. Returns those that wait again.
    fn admit_taken(
        &mut self,
        mut trial: Trial,
        taken: Vec<Waiting>,
        listener: &mut dyn Listener,
    ) -> Vec<Waiting> {
        if taken.is_empty() {
            return Vec::new();
        }
        if let Ok(plan) = trial.plan(ALL_JOBS) {
            let first = self.commit(trial, plan, listener);
            for (run, one) in self.runs[first..].iter_mut().zip(&taken) {
                run.submitted_at(one.submitted_unix_ns);
            }
            self.tell_moved(first, listener);
            return Vec::new();
        }
        // The node would refuse the plan of all of them: which of them it can have is found out one
        // by one.
        let mut left = Vec::new();
        for one in taken {
            if let Err(error) = self.admit_one(&one, listener) {
                left.extend(self.not_admitted(one, error, listener));
            }
        }
        left
    }

    /// Closes an order that was not admitted, or returns it if it is to wait.
    fn not_admitted(
        &mut self,
        mut one: Waiting,
        error: Error,
        listener: &mut dyn Listener,
    ) -> Option<Waiting> {
        // The plan of all jobs may be one that the node takes when another job has ended.
        if let Error::History(_) | Error::Invalid { .. } = error {
            self.backlog.check_in_a_while();
            // Until then others are tried.
            self.backlog.retries.later(one.id, Instant::now());
            one.not_started = Some(error.to_string());
            return Some(one);
        }
        let why = error.to_string();
        listener.news(News::NotAdmitted(error));
        self.close(one, Outcome::Declined, why, listener);
        None
    }

    fn admit_one(&mut self, one: &Waiting, listener: &mut dyn Listener) -> Result<(), Error> {
        let now_ns = monotonic_ns();
        let mut trial = self.trial_within(now_ns, Allowance::new(self.max_work, 1));
        self.take_decided(&mut trial, one, listener)?;
        let plan = trial.plan(&one.order.submission.file)?;
        let first = self.commit(trial, plan, listener);
        self.runs[first].submitted_at(one.submitted_unix_ns);
        self.tell_moved(first, listener);
        Ok(())
    }

    /// Closes a waiting order, with its outcome and the reason.
    fn close(&mut self, one: Waiting, outcome: Outcome, why: String, listener: &mut dyn Listener) {
        let ending = Ending {
            why: Some(why.clone()),
            deadline_unix_ns: Some(one.deadline_unix_ns()),
            best_effort: Some(one.order.submission.job.best_effort),
            cpus: one.order.submission.job.cpus.clone(),
            kept: Some(false),
            ..Ending::default()
        };
        let order = one.noted().over(ending).order();
        self.ledger.close_waiting(one.id, outcome, Some(order), listener);
        self.backlog.retries.forget(one.id);
        self.backlog.settled(one.id);
        let job = &one.order.submission.job.name;
        listener.not_run(&NotRun { run: one.id, job, why: &why });
        self.backlog.check_again();
    }

    /// Returns the end of a run; `None`: it has not ended. A run that is no longer known has ended
    /// in an unknown way.
    pub(crate) fn ended(&self, id: RunId) -> Option<Ended> {
        // An end is remembered, and never becomes undone: what is open is looked at second.
        self.backlog.end_of(id, || {
            if self.backlog.has(id) || self.runs.iter().any(|run| run.id == Some(id)) {
                return None;
            }
            let outcome = match self.ledger.run(id) {
                Ok(run) => run.outcome?,
                Err(Error::History(pbs_history::Error::NoRun(_))) => Outcome::Unknown,
                // A history that others keep busy answers later; until then nothing has ended.
                Err(_) => return None,
            };
            let Ok(order) = self.ledger.order(id) else {
                return None;
            };
            let well = |order| Noted::of(&order).is_some_and(|noted| noted.ending.succeeded);
            let succeeded = order.is_none_or(well);
            Some(Ended { outcome, well: outcome == Outcome::Complete && succeeded })
        })
    }

    /// Holds a waiting run, or releases it. A held run is not planned until it is released.
    ///
    /// # Errors
    ///
    /// Fails if the run does not wait.
    pub(crate) fn hold(&mut self, id: RunId, hold: bool) -> Result<(), Error> {
        let mut waiting = self.waiting(id)?.clone();
        waiting.order.terms.hold = hold;
        // What a command decided may be hours old when the run is released.
        waiting.decision = None;
        self.ledger.set_order(id, &waiting.noted().order())?;
        self.is_undecided_again(id);
        self.backlog.replace(waiting);
        Ok(())
    }

    /// Stops the admission of new jobs, or resumes it.
    pub(crate) fn drain(&mut self, drained: bool) {
        self.backlog.drain(drained);
        self.undecide_all();
    }

    /// From now on those are all the allocations.
    pub(crate) fn allocate(&mut self, allocations: Allocations) {
        let touched = self.allocations.difference(&allocations);
        self.allocations = allocations;
        self.undecide_touched(&touched);
        self.backlog.check_again();
    }

    fn waiting(&self, id: RunId) -> Result<&Waiting, Error> {
        self.backlog.find(id).ok_or_else(|| match self.ledger.run(id) {
            Ok(run) => Error::DoesNotWait(id, run.job),
            Err(error) => error,
        })
    }

    /// Changes what is known of a run.
    ///
    /// # Errors
    ///
    /// It has a plan that does not keep the deadline, or that has the job as it was; the
    /// machine does not have the CPUs of the new one; another user than its owner wrote that;
    /// or it is over.
    pub(crate) fn alter(
        &mut self,
        id: RunId,
        alteration: Alteration,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        let Alteration { deadline_ns, priority, rewrite } = alteration;
        let place = self.runs.iter().position(|run| run.id == Some(id));
        let Some(place) = place else {
            return self.alter_waiting(id, deadline_ns, priority, rewrite);
        };
        let run = &self.runs[place];
        if rewrite.is_some() {
            return Err(Error::DoesNotWait(id, run.job.name.clone()));
        }
        let terms = run.terms.clone();
        let mut terms = terms.ok_or_else(|| Error::UnreadableOrder(id, run.job.name.clone()))?;
        terms.priority = priority.or(terms.priority);
        terms.deadline_ns = deadline_ns.or(terms.deadline_ns);
        if let Some(why) = deadline_ns.and_then(deadline_fault) {
            return Err(Error::Declined(Declined {
                file: format!("run {id}"),
                job: run.job.name.clone(),
                why,
                earliest_deadline_ns: None,
            }));
        }
        let noted = Noted { terms: terms.clone(), ending: Ending::default() };
        let at_ns = deadline_ns.map(|ns| {
            let at_ns = run.after_submission_ns(ns);
            self.allocations.deadline_ns(run.allocation(), at_ns, monotonic_ns())
        });
        let mut controller = self.controller.clone();
        if let Some(at_ns) = at_ns {
            if let Err(end_ns) = controller.set_deadline(run.run, at_ns) {
                return Err(Error::Declined(Declined {
                    file: format!("run {id}"),
                    job: run.job.name.clone(),
                    why: "it is planned to end later".into(),
                    earliest_deadline_ns: end_ns.map(|ns| run.since_submission_ns(ns)),
                }));
            }
        }
        if let Some(priority) = priority {
            controller.set_priority(run.run, priority);
        }
        self.ledger.set_order(id, &noted.order())?;
        self.controller = controller;
        let run = &mut self.runs[place];
        run.terms = Some(terms);
        run.job.priority = priority.unwrap_or(run.job.priority);
        run.job.deadline_ns = at_ns.unwrap_or(run.job.deadline_ns);
        let deadline_ns = run.job.deadline_ns.saturating_sub(run.submitted_ns);
        let priority = run.job.priority;
        let changed = self.ledger.changed(id, |saved| {
            saved.job.priority = priority;
            saved.job.deadline_ns = deadline_ns;
        });
        // It has its new terms by now, whether another service would know of it or not.
        if let Err(error) = changed {
            listener.news(News::NotRecorded(error));
        }
        Ok(())
    }

    fn alter_waiting(
        &mut self,
        id: RunId,
        deadline_ns: Option<u64>,
        priority: Option<u32>,
        rewrite: Option<Rewrite>,
    ) -> Result<(), Error> {
        let mut waiting = self.waiting(id)?.clone();
        let mut terms = waiting.order.terms.clone();
        terms.priority = priority.or(terms.priority);
        terms.deadline_ns = deadline_ns.or(terms.deadline_ns);
        if let Some(Rewrite { uid, submission }) = &rewrite {
            if *uid != terms.owner.uid {
                return Err(Error::NotTheOwner(id, waiting.order.submission.job.name));
            }
            self.has_cpus_of(submission)?;
        }
        let is_other = rewrite.is_some();
        let submission = rewrite.map(|rewrite| rewrite.submission);
        let submission = submission.unwrap_or(waiting.order.submission);
        waiting.order = Order::new(submission, terms);
        waiting.decision = None;
        waiting.order.has_possible_times()?;
        let request = is_other.then(|| waiting.order.submission.request.clone());
        self.ledger.replace_order(id, &waiting.noted().order(), request)?;
        self.is_undecided_again(id);
        if is_other {
            self.backlog.retries.forget(id);
        }
        self.backlog.replace(waiting);
        Ok(())
    }

    /// Cancels a run. A waiting run ends at once. Another run ends when its programs have ended,
    /// which the node has to arrange: in this case, returns the number of the run whose programs
    /// they are.
    ///
    /// # Errors
    ///
    /// Fails if the run is over.
    pub(crate) fn cancel(
        &mut self,
        id: RunId,
        why: String,
        listener: &mut dyn Listener,
    ) -> Result<Option<pbs_planner::RunId>, Error> {
        let run = self.begin_to_end(id, why, listener)?;
        let is_started = |run: &pbs_planner::RunId| {
            self.active(*run).is_some_and(|active| active.started_ns.is_some())
        };
        if let Some(run) = run.filter(is_started) {
            self.leave_plan(run);
        }
        Ok(run)
    }

    /// The plan has a run no more that is being cancelled.
    pub(crate) fn leave_plan(&mut self, run: pbs_planner::RunId) {
        self.next_plan = None;
        self.controller.cancel(run);
    }

    /// Cancels a run like [`Jobs::cancel`], and leaves it in the plan if it was started: its
    /// programs save their work in its slots, with its memory and resources.
    ///
    /// # Errors
    ///
    /// Fails if the run is over.
    pub(crate) fn begin_to_end(
        &mut self,
        id: RunId,
        why: String,
        listener: &mut dyn Listener,
    ) -> Result<Option<pbs_planner::RunId>, Error> {
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == Some(id)) {
            let run_id = run.run;
            let why = run.cancelled.get_or_insert(why).clone();
            self.next_plan = None;
            if run.started_ns.is_none() {
                // It is in no plan yet.
                return Ok(Some(run_id));
            }
            // Another service cancels it again. Without a record of that, this one does.
            if let Err(error) = self.ledger.changed(id, |saved| saved.cancelled = Some(why)) {
                listener.news(News::NotRecorded(error));
            }
            return Ok(Some(run_id));
        }
        self.waiting(id).map_err(|error| match error {
            Error::DoesNotWait(id, job) => Error::IsOver(id, job),
            other => other,
        })?;
        self.is_undecided_again(id);
        if let Some(one) = self.backlog.remove(id) {
            self.close(one, Outcome::Cancelled, why, listener);
        }
        Ok(None)
    }
}
