// SPDX-License-Identifier: GPL-2.0
//! Plans of all waiting jobs on one pool of cores, made better at each event by
//! `pbs_cluster_planner::optimise`.

use std::collections::{BTreeMap, HashMap};

use pbs_cluster_planner::optimise::{optimise, Budget, Objective, Pool, WaitingJob};
use pbs_cluster_planner::run_times::{Expect, JobKind};
use pbs_site::Promise;

use crate::running::{RunningJobs, Starting};
use crate::{NeverRan, Policy, TraceJob, Work};

/// Parameters of the plans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimising {
    /// Cost of a plan.
    pub objective: Objective,
    /// Work at each event.
    pub budget: Budget,
    /// Promise to users: a later plan keeps a start that was reported, and an accepted deadline.
    pub promise: Promise,
    /// Run times by which the cost of waiting is computed. Plans book each job up to its limit.
    pub expect: Expect,
    /// Cores for short jobs only.
    pub express: Option<Express>,
    /// Seed of the searches.
    pub seed: u64,
}

/// Cores that only short jobs use: where long jobs have all others, short ones can start soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Express {
    /// Number of cores.
    pub cores: u64,
    /// Longest limit of a short job.
    pub most_s: u64,
}

/// Scheduler that plans all waiting jobs at each event.
#[derive(Clone, Debug)]
pub struct Optimised {
    name: String,
    cores: u64,
    with: Optimising,
    /// In the order of submission.
    waiting: Vec<Waiter>,
    running: RunningJobs,
    next_s: Option<u64>,
    /// Jobs that can't meet their deadlines.
    declined: BTreeMap<usize, NeverRan>,
    work: Work,
    broken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    job: usize,
    kind: JobKind<u64>,
    submit_s: u64,
    /// Start in the current plan; the end of all time before the first plan.
    planned_s: u64,
    /// Latest start that was promised.
    told_s: Option<u64>,
    /// Latest start with which a deadline is kept, until it is promised or the job is declined.
    wanted_s: Option<u64>,
}

/// Returns the name of a scheduler in tables.
fn name(promise: Promise, expect: Expect) -> String {
    let mut name = String::from("optimised");
    match promise {
        Promise::None => {}
        Promise::Start => name += ", start promised",
        Promise::Deadline => name += ", deadlines promised",
    }
    if let Expect::Learned(learner) = expect {
        name += ", ";
        name += learner.name();
    }
    name
}

impl Optimised {
    /// Creates a scheduler for that many idle cores.
    pub fn new(cores: u64, with: Optimising) -> Self {
        Self {
            name: name(with.promise, with.expect),
            cores,
            with,
            waiting: Vec::new(),
            running: RunningJobs::new(cores, with.expect),
            next_s: None,
            declined: BTreeMap::new(),
            work: Work::default(),
            broken: 0,
        }
    }

    /// Returns the number of cores that a job leaves to short ones.
    fn spare_cores(&self, of: &Waiter) -> u64 {
        let express = self.with.express.filter(|express| of.kind.limit_s > express.most_s);
        express.map_or(0, |express| express.cores.min(self.cores - of.kind.cores))
    }

    /// Whether a new plan can change anything: a job can start, or wants to be told its start or
    /// whether its deadline is kept.
    fn needs_plan(&self) -> bool {
        let mut waiting = self.waiting.iter();
        let free_cores = self.running.free_cores();
        self.with.promise == Promise::Start
            || waiting.any(|of| of.kind.cores <= free_cores || of.wanted_s.is_some())
    }

    /// Promises the deadlines that the plan keeps, and declines the jobs whose deadlines it misses.
    fn answer_deadlines(&mut self) {
        let declined = &mut self.declined;
        self.waiting.retain_mut(|of| {
            let Some(wanted_s) = of.wanted_s.take() else {
                return true;
            };
            of.told_s = Some(wanted_s);
            let is_kept = of.planned_s <= wanted_s;
            if !is_kept {
                declined.insert(of.job, NeverRan::Deadline);
            }
            is_kept
        });
    }

    fn plan(&mut self, now_s: u64) {
        let pool = Pool::with_running(now_s, self.cores, self.running.ends());
        let mut user_core_s: HashMap<u64, u64> = HashMap::new();
        for of in &self.waiting {
            let area = of.kind.cores.saturating_mul(of.kind.limit_s);
            let of_user = user_core_s.entry(of.kind.user).or_default();
            *of_user = of_user.saturating_add(area);
        }
        let jobs: Vec<WaitingJob> = self
            .waiting
            .iter()
            .map(|of| WaitingJob {
                cores: of.kind.cores,
                duration_s: of.kind.limit_s,
                expected_s: self.running.expected_s(&of.kind),
                waited_s: now_s - of.submit_s,
                latest_start_s: of.told_s.unwrap_or(u64::MAX),
                wanted_start_s: of.wanted_s.unwrap_or(u64::MAX),
                spare_cores: self.spare_cores(of),
                user_core_s: user_core_s.get(&of.kind.user).copied().unwrap_or(0),
            })
            .collect();
        // In the order of its starts, the current plan starts no job later than before, as cores
        // only become free earlier than planned.
        let mut current: Vec<u32> = (0..jobs.len() as u32).collect();
        current.sort_by_key(|&place| self.waiting[place as usize].planned_s);
        let seed = self.with.seed.wrapping_add(self.work.plans);
        let (objective, budget) = (self.with.objective, self.with.budget);
        let search = |jobs: &[WaitingJob], current: &[u32]| {
            optimise(now_s, &pool, jobs, current, objective, budget, seed)
        };
        let found = search(&jobs, &current).or_else(|| {
            // Long jobs may be later than planned behind short ones, and delay others. All promises
            // are kept if those with one go first, and leave no cores.
            let is_promised = |place: usize| self.waiting[place].told_s.is_some();
            current.sort_by_key(|&place| !is_promised(place as usize));
            let all = jobs.iter().enumerate().map(|(place, job)| {
                let spare_cores = if is_promised(place) { 0 } else { job.spare_cores };
                WaitingJob { spare_cores, ..*job }
            });
            search(&all.collect::<Vec<_>>(), &current)
        });
        self.work.plans += 1;
        let Some(found) = found else { return };
        self.work.orders += found.orders;
        self.work.placements += found.placements;
        for (of, start_s) in self.waiting.iter_mut().zip(found.starts_s) {
            of.planned_s = start_s;
            if self.with.promise == Promise::Start {
                of.told_s.get_or_insert(start_s);
            }
        }
        self.answer_deadlines();
    }

    fn begin(&mut self, now_s: u64, waiter: &Waiter) {
        let &Waiter { job, kind, .. } = waiter;
        self.running.begin(now_s, Starting { job, kind, booked_s: kind.limit_s });
        self.broken += usize::from(waiter.told_s.is_some_and(|told_s| now_s > told_s));
    }
}

impl Policy for Optimised {
    fn name(&self) -> &str {
        &self.name
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        if (1..=self.cores).contains(&what.cores) {
            let limit_s = what.requested_s.max(1);
            let has_promise = self.with.promise == Promise::Deadline;
            let deadline_s = what.deadline_s.filter(|_| has_promise);
            // A deadline before the end of the limit is missed by every plan, also by one that begins
            // at time 0.
            let wanted_s = deadline_s.map(|deadline_s| deadline_s.checked_sub(limit_s));
            if wanted_s == Some(None) {
                self.declined.insert(job, NeverRan::Deadline);
                return;
            }
            let wanted_s = wanted_s.flatten();
            self.waiting.push(Waiter {
                job,
                kind: what.kind(),
                submit_s: now_s,
                planned_s: u64::MAX,
                told_s: None,
                wanted_s,
            });
        }
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        self.running.ended(now_s, job);
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.work.events += 1;
        self.running.correct(now_s);
        if self.needs_plan() {
            self.plan(now_s);
            let waiting = std::mem::take(&mut self.waiting);
            for waiter in waiting {
                if waiter.planned_s == now_s {
                    self.begin(now_s, &waiter);
                    started.push(waiter.job);
                } else {
                    self.waiting.push(waiter);
                }
            }
        }
        // Nothing may happen at a planned start, nor at an expected end.
        let starts_s = self.waiting.iter().map(|of| of.planned_s).filter(|&of| of > now_s);
        let ends_s =
            self.running.ends().map(|(end_s, _)| end_s).filter(|_| !self.waiting.is_empty());
        self.next_s = starts_s.chain(ends_s).filter(|&of| of < u64::MAX).min();
    }

    fn next_s(&self) -> Option<u64> {
        self.next_s
    }

    fn work(&self) -> Option<Work> {
        Some(self.work)
    }

    fn declined(&self) -> BTreeMap<usize, NeverRan> {
        self.declined.clone()
    }

    fn broken_promises(&self) -> Option<usize> {
        (self.with.promise != Promise::None).then_some(self.broken)
    }
}
