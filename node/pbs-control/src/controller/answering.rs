// SPDX-License-Identifier: GPL-2.0
//! Answers to prediction failures: what is left is planned anew, and promises stand.
//!
//! A job that does what was declared is *innocent*, and its promise is its deadline. An
//! answer keeps every promise that can be kept: it first leaves the innocent where they
//! are, then moves more and more of them, and at last plans without the capacity buffer,
//! which is there to be used up. A *rogue*, a process that is beyond t2_task and goes on,
//! has no claim to the time of others: its job is planned last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pbs_plan::Config;
use pbs_planner::{keep, lower_bound, Budget, Progress, Replan, Request, RunId};
use pbs_text::Problem;
use pbs_uapi::MAX_SLOT_INSNS;

use super::awaited::{Holders, Waiting};
use super::best_effort::set_aside;
use super::{ActiveRun, Answer, Controller, Missed};
use crate::outlook::scaled;
use crate::track::Track;

/// Extent of the changes that an answer makes to a plan. Each step is tried if the one before it
/// does not keep all promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    /// Executed jobs whose reservations suffice stay, and the other executed ones are
    /// planned anew.
    Late,
    /// All executed jobs are planned anew.
    Executed,
    /// All jobs are planned anew.
    All,
    /// No memory is reserved only because processes might grow.
    Lean,
    /// No time is reserved for the capacity buffer.
    Unbuffered,
}

/// Tries of an answer that may each take all steps of a try ([`pbs_planner::Options::max_work`]):
/// all tries together take no more.
const TRIES_OF_ANSWER: u64 = 2;

/// Steps of work in which a run is placed in any case, if the tries of an answer were too many.
const LEAST_WORK: u64 = 100_000;

/// Steps of work that each task of such a run adds: its reservations are taken and given back.
const STEPS_OF_TASK: u64 = 256;

/// The claim that a job has, where it is not that of the innocent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// A job with a rogue keeps its deadline behind all others.
    Behind,
    /// The task of the rogue is not much too long, and its job has a place among the
    /// others as long as all of them keep their deadlines.
    Among,
    /// The deadline can't be kept: the job goes on behind all others.
    Late,
    /// The job has no place.
    Nowhere,
}

pub(super) type Claims = BTreeMap<RunId, Claim>;

impl Effort {
    fn next(self) -> Option<Self> {
        match self {
            Self::Late => Some(Self::Executed),
            Self::Executed => Some(Self::All),
            Self::All => Some(Self::Lean),
            Self::Lean => Some(Self::Unbuffered),
            Self::Unbuffered => None,
        }
    }
}

impl Controller {
    /// Answers the prediction failures that were signalled since the last plan.
    ///
    /// # Errors
    ///
    /// Fails if the node would refuse the plan.
    pub fn answer(&mut self, now_ns: u64) -> Result<Answer, Vec<Problem>> {
        self.cancel_at_once();
        if !self.is_asked() {
            return Ok(Answer::Nothing);
        }
        if now_ns < self.pace.next_ns() {
            return Ok(Answer::NotBefore(self.pace.next_ns()));
        }
        self.cancel_cut();
        if self.has_nothing_to_plan() {
            return Ok(Answer::Nothing);
        }
        let missed = self.plan_needed(now_ns);
        let plan = self.plan(now_ns).inspect_err(|_| {
            // Not at every event that comes.
            self.failed = true;
            self.pace.made(now_ns);
        })?;
        Ok(plan.map_or(Answer::Nothing, |plan| Answer::Plan { plan: Box::new(plan), missed }))
    }

    /// Plans anew what is left of the runs that are being executed, so that others can be
    /// admitted beside it; those to come stay where they are, if they can. The node is to
    /// get the plan ([`Controller::plan`]) in any case. Returns who will be late by it.
    pub fn renew(&mut self, now_ns: u64) -> Vec<Missed> {
        self.cancel_cut();
        self.plan_needed(now_ns)
    }

    /// Returns the steps of work that the last answer has taken, and the last renewal.
    pub fn answer_steps(&self) -> u64 {
        self.answer_steps
    }

    /// Plans anew what is left, in any case: if all tries together take too many steps of work, each
    /// run has the first place that is found for it.
    fn plan_needed(&mut self, now_ns: u64) -> Vec<Missed> {
        let steps = self.options.replanning.max_work.saturating_mul(TRIES_OF_ANSWER);
        let work = Budget::new(steps);
        let missed = self.plan_the_rest(now_ns, &work);
        let missed = missed.unwrap_or_else(|| self.place_each(self.start_ns(now_ns), &work));
        self.has_answered();
        self.answer_steps = work.done();
        missed
    }

    /// Plans anew like [`Controller::renew`], as a part of a request: all tries together may take
    /// so many steps of work. Returns also how many they took. `None`: these steps do not suffice,
    /// and this controller is of no more use.
    pub fn renew_within(&mut self, now_ns: u64, steps: u64) -> Option<(Vec<Missed>, u64)> {
        self.cancel_cut();
        let work = Budget::new(steps);
        let missed = self.plan_the_rest(now_ns, &work)?;
        self.has_answered();
        Some((missed, work.done()))
    }

    /// Plans anew like [`Controller::renew_within`], not sooner after another plan than an answer to
    /// a prediction failure. `None`: a plan was made a moment ago, or these steps do not suffice;
    /// all reservations stay then.
    pub fn renew_in_pace(&mut self, now_ns: u64, steps: u64) -> Option<Vec<Missed>> {
        if now_ns < self.pace.next_ns() {
            return None;
        }
        let mut renewed = self.clone();
        let Some((missed, _)) = renewed.renew_within(now_ns, steps) else {
            // Not at every program that comes late.
            self.pace.made(now_ns);
            return None;
        };
        *self = renewed;
        Some(missed)
    }

    /// `work`: that of all tries together. Returns `None` if it does not suffice.
    fn plan_the_rest(&mut self, now_ns: u64, work: &Budget) -> Option<Vec<Missed>> {
        self.look_ahead();
        self.replan(self.start_ns(now_ns), work)
    }

    fn has_answered(&mut self) {
        self.failed = false;
        self.failed_on.clear();
    }

    /// Estimates anew what is left of the processes that have begun.
    fn look_ahead(&mut self) {
        let outlook = self.options.outlook;
        let sigma_t2_permille = self.options.config.unwrap_or(Config::DEFAULT).sigma_t2_permille;
        for active in self.runs.values_mut() {
            let job = &active.job;
            let mut changed = Vec::new();
            for (process, track) in active.tracks.iter().enumerate() {
                let (expected_insns, mut retired_insns) = track.sums_insns();
                let tasks = &job.processes[process].tasks;
                let mut sum_insns = expected_insns;
                for (position, &task) in tasks.iter().enumerate().skip(track.position()) {
                    let expected_insns = active.expected_insns[task];
                    let known_insns = job.tasks[task].insns;
                    let insns = if position == track.position() && track.retired_insns() > 0 {
                        let now_insns = track.retired_insns();
                        // The signal may be among events that were lost.
                        let is_late = track.is_signalled()
                            || now_insns >= scaled(expected_insns, sigma_t2_permille);
                        let insns = if is_late {
                            outlook.of_running(known_insns.max(1), now_insns)
                        } else {
                            outlook.of_unsignalled(expected_insns, now_insns)
                        };
                        if now_insns > expected_insns {
                            sum_insns = sum_insns.saturating_add(expected_insns);
                            retired_insns = retired_insns.saturating_add(now_insns);
                        }
                        insns
                    } else {
                        outlook.of_coming(expected_insns, sum_insns, retired_insns)
                    };
                    // A plan with a longer one is no plan, for nobody.
                    let insns = insns.min(MAX_SLOT_INSNS);
                    if insns != known_insns {
                        changed.push((task, insns));
                    }
                }
            }
            // Copies of the controller share a job until it changes.
            if !changed.is_empty() {
                let job = Arc::make_mut(&mut active.job);
                changed.into_iter().for_each(|(task, insns)| job.tasks[task].insns = insns);
            }
        }
    }

    /// Plans anew what is left. A run that can't keep its deadline goes on behind all
    /// others; a run for which there is no place at all goes. A try that had too little work says
    /// nothing about that: it ends the search (`None`).
    fn replan(&mut self, start_ns: u64, work: &Budget) -> Option<Vec<Missed>> {
        for (&run, active) in &self.runs {
            if active.is_over() {
                self.store.remove(run);
            }
        }
        let progress = self.progress(start_ns);
        self.store.forget_before(start_ns);
        // What is left of it is placed anew in any case.
        set_aside(&mut self.store, &self.runs, &progress, start_ns);
        let buffer_permille = self.store.capacity().capacity_buffer_permille;
        let mut claims = self.first_claims(start_ns, &progress);
        let holders = self.holders(&progress, work);
        let mut effort = if self.floats() { Effort::Late } else { Effort::Executed };
        // Each turn but the last goes on to the next effort, or takes a claim away.
        loop {
            let waiting = holders.waiting(&claims, work);
            let awaited_by_ns = |run| holders.awaited_by_ns(&waiting, run);
            let tried = self.try_replan(start_ns, &progress, effort, &claims, &awaited_by_ns, work);
            let Err(refused) = tried else {
                break;
            };
            if work.is_spent() {
                self.store.set_capacity_buffer(buffer_permille);
                return None;
            }
            self.yield_claim(&mut claims, &mut effort, refused, (&holders, &waiting), work);
            if effort >= Effort::Lean {
                self.runs.values_mut().for_each(ActiveRun::reserve_no_growth);
            }
            if effort == Effort::Unbuffered {
                self.store.set_capacity_buffer(1000);
            }
        }
        self.store.set_capacity_buffer(buffer_permille);
        self.unbuffered_since_ns = (effort == Effort::Unbuffered).then_some(start_ns);
        Some(self.replanned(start_ns, claims, work))
    }

    /// Plans anew with little work: each run after the other, those with the earliest deadlines
    /// first, while the reservations of those behind it stay. A run that does not keep its deadline
    /// this way goes where there is room.
    fn place_each(&mut self, start_ns: u64, work: &Budget) -> Vec<Missed> {
        let progress = self.progress(start_ns);
        set_aside(&mut self.store, &self.runs, &progress, start_ns);
        let mut claims = self.first_claims(start_ns, &progress);
        let promised = self.runs.iter().filter(|(_, active)| active.is_promised());
        let mut runs: Vec<RunId> = promised.map(|(&run, _)| run).collect();
        runs.sort_by_key(|run| (claims.contains_key(run), self.runs[run].job.deadline_ns, *run));
        let replan = Replan { options: self.options.replanning.clone(), ..Replan::at(start_ns) };
        let each = (replan.options.max_work / runs.len().max(1) as u64).max(LEAST_WORK);
        // A run that lacks work alone would lose its place. All of them together have as much
        // again.
        let more = Budget::new(replan.options.max_work);
        let mut nowhere = Vec::new();
        for run in runs {
            let request = self.runs[&run].request(run, &progress);
            if keep(&mut self.store, &request, start_ns) {
                continue;
            }
            let store = &mut self.store;
            let each =
                each.saturating_add(STEPS_OF_TASK.saturating_mul(request.job.tasks.len() as u64));
            let mut place = |request: Request<'_>, steps: u64| {
                let of_run = Budget::new(steps);
                let is_placed = replan.run_within(store, &[request], &[], &of_run).is_ok();
                work.add(of_run.done());
                more.add(of_run.done().saturating_sub(each));
                is_placed
            };
            let is_late = claims.get(&run) == Some(&Claim::Late);
            if !is_late && place(request, each) {
                continue;
            }
            let is_placed = place(request.without_deadline(), each.saturating_add(more.left()));
            let claim = if is_placed { Claim::Late } else { Claim::Nowhere };
            claims.insert(run, claim);
            if claim == Claim::Nowhere {
                nowhere.push(run);
            }
        }
        nowhere.into_iter().for_each(|run| self.lose_place(run));
        self.unbuffered_since_ns = None;
        self.replanned(start_ns, claims, work)
    }

    /// Ends an answer by which the runs have these claims: places best effort behind them. Returns
    /// who will be late.
    fn replanned(&mut self, start_ns: u64, claims: Claims, work: &Budget) -> Vec<Missed> {
        work.add(self.place_behind_within(start_ns, Some(work.left())).done());
        let permille = self.buffer_permille();
        for (run, active) in &mut self.runs {
            let is_behind = matches!(claims.get(run), Some(Claim::Behind | Claim::Late));
            // The node puts an innocent run behind others by itself once it has to.
            let is_innocent = !active.has_rogue() && active.beyond_buffer_insns(permille) == 0;
            active.is_behind = is_behind && !is_innocent;
        }
        self.keep_turns(start_ns);
        let missed = claims.into_keys().filter_map(|run| {
            let deadline_ns = self.runs[&run].job.deadline_ns;
            let end_ns = self.store.run(run).map(pbs_planner::Run::end_ns);
            let by_ns = end_ns.map(|end_ns| end_ns.saturating_sub(deadline_ns));
            (by_ns != Some(0)).then_some(Missed { run, by_ns })
        });
        missed.collect()
    }

    /// There is no place for a run: it is not planned any more.
    fn lose_place(&mut self, run: RunId) {
        self.store.remove(run);
        if let Some(active) = self.runs.get_mut(&run) {
            active.has_no_place = true;
        }
    }

    /// The claims of those that are not innocent, and of those that can't keep their
    /// deadlines even if they were alone.
    fn first_claims(&mut self, start_ns: u64, progress: &BTreeMap<RunId, Vec<Progress>>) -> Claims {
        let buffer_permille = self.store.capacity().capacity_buffer_permille;
        self.store.set_capacity_buffer(1000);
        let mut claims = Claims::new();
        for (&run, active) in self.runs.iter().filter(|(_, active)| active.is_promised()) {
            let request = active.request(run, progress).not_before(start_ns);
            let earliest_ns = lower_bound(&self.store, &request).end_ns;
            if earliest_ns > active.job.deadline_ns {
                claims.insert(run, Claim::Late);
            } else if active.has_rogue() {
                claims.insert(run, Claim::Behind);
            }
        }
        self.store.set_capacity_buffer(buffer_permille);
        claims
    }

    /// Plans once with that effort; an error is the run that found no place.
    fn try_replan(
        &mut self,
        start_ns: u64,
        progress: &BTreeMap<RunId, Vec<Progress>>,
        effort: Effort,
        claims: &Claims,
        awaited_by_ns: &dyn Fn(RunId) -> Option<u64>,
        work: &Budget,
    ) -> Result<(), RunId> {
        let (mut running, mut later) = (Vec::new(), Vec::new());
        // Where slots stay, a process that is to run soon follows those before it closely.
        let is_running = if self.floats() { ActiveRun::has_executed } else { ActiveRun::has_begun };
        for (&run, active) in self.runs.iter().filter(|(_, active)| active.is_promised()) {
            let request: Request<'_> = active.request(run, progress);
            let reserved_ns = self.store.run(run).and_then(pbs_planner::Run::start_ns);
            let is_running = is_running(active) || reserved_ns.is_none_or(|at_ns| at_ns < start_ns);
            match claims.get(&run) {
                Some(Claim::Nowhere) => {}
                Some(claim @ (Claim::Late | Claim::Behind)) => {
                    let awaited_by_ns = awaited_by_ns(run);
                    let request = request.awaited_by(awaited_by_ns);
                    let is_late = *claim == Claim::Late;
                    let request = if is_late { request.without_deadline() } else { request };
                    // Behind a run that waits for what it holds, it would never end.
                    let is_last = !is_urgent(awaited_by_ns);
                    running.push(if is_last { request.last() } else { request });
                }
                Some(Claim::Among) => running.push(request),
                None if is_running && effort == Effort::Late => {
                    if !keep(&mut self.store, &request, start_ns) {
                        running.push(request);
                    }
                }
                None if is_running || effort >= Effort::All => running.push(request),
                None => later.push(request),
            }
        }
        let replan = Replan {
            options: self.options.replanning.clone(),
            demand: self.demand_test(),
            ..Replan::at(start_ns)
        };
        let store = &mut self.store;
        let replanned = work
            .part(replan.options.max_work, |work| replan.run_within(store, &running, &later, work));
        replanned.map(|_| ()).map_err(|not| not.run)
    }

    /// The run that has used up most beyond its capacity buffer, of those that have the
    /// claim of the innocent.
    fn latest(&self, claims: &Claims) -> Option<RunId> {
        let buffer_permille = self.buffer_permille();
        let runs = self
            .runs
            .iter()
            .filter(|(run, active)| !claims.contains_key(run) && active.is_promised());
        let late = runs.map(|(&run, active)| (active.beyond_buffer_insns(buffer_permille), run));
        late.filter(|(late_insns, _)| *late_insns > 0).max().map(|(_, run)| run)
    }

    /// Returns the latest of the runs behind all others that have a place before them, and keep
    /// that run from its own: it waits for what they hold, or they have a core on which it is to
    /// run.
    fn in_the_way(
        &self,
        claims: &Claims,
        run: RunId,
        (holders, waiting): (&Holders, &Waiting<'_>),
        work: &Budget,
    ) -> Option<RunId> {
        let planned = self.store.run(run).map_or(&[][..], |run| &run.tasks);
        let cores: BTreeSet<usize> = planned.iter().map(|task| task.core).collect();
        let has_core = |of: &ActiveRun| {
            let mut has = of.tracks.iter().filter_map(Track::core);
            has.any(|core| cores.contains(&core))
        };
        let blocking = holders.late_before(claims, run, work);
        let behind = claims.iter().filter(|(_, claim)| **claim == Claim::Behind);
        let in_the_way = behind.map(|(run, _)| *run).filter(|run| {
            let is_before = is_urgent(holders.awaited_by_ns(waiting, *run));
            blocking.contains(run) || is_before && has_core(&self.runs[run])
        });
        let permille = self.buffer_permille();
        in_the_way.max_by_key(|run| {
            let late_insns = self.runs[run].beyond_buffer_insns(permille);
            (blocking.contains(run), late_insns, Reverse(*run))
        })
    }

    /// The run found no place: more effort, or one claim less. `awaited`: the runs that hold
    /// something, and those that wait by the present claims.
    fn yield_claim(
        &mut self,
        claims: &mut Claims,
        effort: &mut Effort,
        refused: RunId,
        awaited: (&Holders, &Waiting<'_>),
        work: &Budget,
    ) {
        let is_among = |claims: &Claims| claims.values().any(|claim| *claim == Claim::Among);
        match claims.get(&refused) {
            Some(Claim::Late | Claim::Nowhere) if *effort < Effort::Lean => *effort = Effort::Lean,
            Some(Claim::Late | Claim::Nowhere) => {
                claims.insert(refused, Claim::Nowhere);
                self.lose_place(refused);
            }
            Some(Claim::Behind) => {
                let active = &self.runs[&refused];
                let is_bounded = active.is_bounded(&self.options.outlook);
                let next = if is_bounded { Claim::Among } else { Claim::Late };
                claims.insert(refused, next);
            }
            None | Some(Claim::Among) if is_among(claims) => {
                let among = claims.values_mut().filter(|claim| **claim == Claim::Among);
                among.for_each(|claim| *claim = Claim::Late);
            }
            None | Some(Claim::Among) => match effort.next() {
                Some(next) => *effort = next,
                // Before an innocent run misses its deadline all others have gone behind it, and
                // those for which others wait have lost theirs.
                None => match self.latest(claims) {
                    Some(run) if run != refused => {
                        claims.insert(run, Claim::Behind);
                    }
                    _ => {
                        let in_the_way = self.in_the_way(claims, refused, awaited, work);
                        claims.insert(in_the_way.unwrap_or(refused), Claim::Late);
                    }
                },
            },
        }
    }
}

/// Whether a run that is not behind all others waits.
fn is_urgent(awaited_by_ns: Option<u64>) -> bool {
    awaited_by_ns.is_some_and(|deadline_ns| deadline_ns < u64::MAX)
}
