// SPDX-License-Identifier: GPL-2.0
//! Several strategies, one after the other, and the best plan of all (Glaß
//! 2024, 5.1.4.5 and 7.1, item 5).
//!
//! The thesis plans greedily once and then, if that was refused, with cores
//! picked at random. Here each try follows another rule, and the same request
//! on the same store always gets the same plan.

use std::fmt;

use pbs_random::Random;

use crate::admission::demand::CoreOverload;
use crate::bounds;
use crate::budget::Budget;
use crate::reserve::attempt::PlanningWay;
use crate::reserve::choose::Goal;
use crate::reserve::net::Net;
use crate::reserve::ready::ReadyOrder;
use crate::reserve::{self, Lack, Refusal, Request};
use crate::search;
use crate::store::{Booking, Run, Store};

mod cut;

pub use cut::CutShort;

/// Steps of work that a task counts as when its net is measured, before anything is tried.
const NET: u64 = 8;

/// A rule by which tasks are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The thesis's first try: a child with all of its tasks before its parent
    /// goes on, on the core where its first task ends first.
    EarliestFinish,
    /// The task that must start first if the job shall not be delayed: the time from the task's end
    /// to the job's end, the longest first.
    LatestFinish,
    /// The task that needs the most memory, while there is most to choose from.
    MemoryFirst,
    /// The task that has the longest chain of tasks behind it.
    CriticalPath,
    /// The best plans of the others with changes, of which those are kept that make
    /// them end earlier, or not much later: threshold accepting.
    LocalSearch,
    /// The thesis's further tries: the order of the first, with cores picked at random. Each time
    /// that it is tried, it picks others.
    RandomCores,
    /// Earliest deadline first: the demand test places all independent processes of a core again
    /// ([`admit_beside`](crate::admit_beside)). The search does not use this strategy.
    EarliestDeadline,
}

/// Condition under which the planner stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// The plan that ends first of those of all strategies.
    #[default]
    Best,
    /// The first plan that keeps the deadline.
    Deadline,
}

/// Options of the search for a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Strategies to try, in that order. [`Strategy::LocalSearch`] changes the plans of the
    /// strategies before it.
    pub strategies: Vec<Strategy>,
    /// No more than so many of them: `MAX_SCHEDULE_TRIES` of the thesis.
    pub max_schedule_tries: usize,
    /// Condition under which the planner stops.
    pub aim: Aim,
    /// Number of changes that [`Strategy::LocalSearch`] tries in a net of 75 tasks and 9 processes.
    /// A net of more tasks gets fewer, to take the same time. A net of fewer tasks gets more, but
    /// one of fewer processes gets fewer.
    pub local_search_tries: usize,
    /// Seed of the pseudo-random numbers.
    pub seed: u64,
    /// Steps of work that the answer to one question may take: a plan, the new plan of all runs, or
    /// the earliest deadline. The best plan found until then is the answer ([`CutShort`]). A step is
    /// an element of a list that is walked, a place that is tried, or a piece of a profile that is
    /// looked at; a core does [`Options::MAX_WORK`] of them in less than a second.
    pub max_work: u64,
}

/// Result of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The strategy.
    pub strategy: Strategy,
    /// End of the strategy's plan, or the reason for which there is none.
    pub end_ns: Result<u64, Refusal>,
}

/// A job that was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Strategy that found the plan.
    pub strategy: Strategy,
    /// Requested start of the run; no task starts earlier.
    pub start_ns: u64,
    /// End of its last task.
    pub end_ns: u64,
    /// All that was tried.
    pub attempts: Vec<Attempt>,
    /// Whether the search ended before it was through: a better plan may exist.
    pub cut_short: Option<CutShort>,
}

/// A job that was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The try that came furthest: that left the fewest tasks without a
    /// reservation.
    pub best: Refusal,
    /// All that was tried.
    pub attempts: Vec<Attempt>,
    /// Whether the search ended before it was through: a plan may exist.
    pub cut_short: Option<CutShort>,
    /// Overload that the demand test found, if the test was made and time is what is missing.
    pub demand: Option<CoreOverload>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strategies: Strategy::ALL.to_vec(),
            max_schedule_tries: Strategy::ALL.len(),
            aim: Aim::default(),
            local_search_tries: 3600,
            seed: 0,
            max_work: Self::MAX_WORK,
        }
    }
}

impl Options {
    /// The steps of work that a question may take where nobody sets another number.
    pub const MAX_WORK: u64 = 40_000_000;
}

/// Reserves all that a run of a job needs, or nothing.
///
/// # Errors
///
/// What every strategy lacked; the store is as it was then.
pub fn reserve(
    store: &mut Store,
    request: &Request<'_>,
    options: &Options,
) -> Result<Planned, Box<Refused>> {
    let mut booking = store.book();
    let planned = reserve_in(&mut booking, request, options)?;
    booking.commit();
    Ok(planned)
}

/// Like [`reserve`], as a part of a larger change. First, existing reservations of the run are
/// released, also if the job is refused afterwards.
///
/// # Errors
///
/// The same as those of [`reserve`].
pub fn reserve_in(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    options: &Options,
) -> Result<Planned, Box<Refused>> {
    reserve_within(booking, request, options, &Budget::new(options.max_work))
}

/// Like [`reserve_in`], as a part of a question: with what is left of its work.
pub(crate) fn reserve_within(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    options: &Options,
    work: &Budget,
) -> Result<Planned, Box<Refused>> {
    work.part(work.left(), |work| reserve_counted(booking, request, options, work))
}

fn reserve_counted(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    options: &Options,
    work: &Budget,
) -> Result<Planned, Box<Refused>> {
    booking.remove_within(request.run, work);
    let request = &request.not_before(booking.store().now_ns());
    work.add(NET * request.job.tasks.len() as u64);
    let net = Net::new(request, booking.store());
    let refused = |process: usize, task: usize, lack: Lack| {
        let best = Refusal { process, task, lack, open_tasks: net.open_tasks };
        Box::new(Refused { best, attempts: Vec::new(), cut_short: None, demand: None })
    };
    let missing = request.job.missing_cpus(booking.store().machine());
    if let Some(&cpu) = missing.first() {
        return Err(refused(0, 0, Lack::Cpu { cpu }));
    }
    if let Some((process, place)) = request.job.missing_resource(booking.store().machine()) {
        let task = request.job.processes[process].tasks[0];
        return Err(refused(process, task, Lack::NoResource { place }));
    }
    let bound_ns = bounds::lower(request, &net, booking.store()).end_ns;
    // Where the search may stop.
    let enough_ns = match options.aim {
        Aim::Best => bound_ns,
        Aim::Deadline => bound_ns.max(request.deadline_ns),
    };
    let mut tried: Vec<Tried> = Vec::new();
    let mut first_cut = None;
    for &strategy in options.strategies.iter().take(options.max_schedule_tries) {
        let next = match strategy {
            Strategy::EarliestDeadline => continue,
            Strategy::LocalSearch if bound_ns > request.deadline_ns => continue,
            Strategy::LocalSearch => {
                let found = search_plan(booking, request, &net, options, &tried, enough_ns, work);
                first_cut = first_cut.or(work.is_cut().then_some(strategy));
                let Some(found) = found else { continue };
                Tried { strategy, way: None, found }
            }
            // The other half is for the strategies after it.
            _ => work.part(work.left() / 2, |work| {
                let seed = options.seed.wrapping_add(tried.len() as u64);
                try_rule(booking, request, &net, &tried, (strategy, seed), work)
            }),
        };
        first_cut = first_cut.or(work.is_cut().then_some(strategy));
        let is_enough = (next.found.as_ref()).is_ok_and(|run| run.end_ns() <= enough_ns);
        tried.push(next);
        if is_enough {
            break;
        }
    }
    let attempts: Vec<_> = tried.iter().map(Tried::attempt).collect();
    let max_work = options.max_work;
    let cut_short = first_cut.map(|strategy| CutShort { strategy, max_work });
    // The refusals are reported as attempts above.
    let runs = tried.into_iter().filter_map(|tried| Some((tried.strategy, tried.found.ok()?)));
    // The first of those that end first.
    if let Some((strategy, run)) = runs.min_by_key(|(_, run)| run.end_ns()) {
        let end_ns = run.end_ns();
        // It was reserved before, of the same store.
        if booking.reserve(request.run, run).is_ok() {
            let end_ns = end_ns.max(request.start_ns);
            return Ok(Planned {
                strategy,
                start_ns: request.start_ns,
                end_ns,
                attempts,
                cut_short,
            });
        }
    }
    let refusals = attempts.iter().filter_map(|attempt| attempt.end_ns.err());
    let best = refusals.min_by_key(|refusal| refusal.open_tasks);
    let mut best = best.unwrap_or(Refusal {
        process: 0,
        task: 0,
        lack: Lack::Untried,
        open_tasks: net.open_tasks,
    });
    if cut_short.is_some() {
        best.lack = Lack::Work;
    }
    Err(Box::new(Refused { best, attempts, cut_short, demand: None }))
}

/// A strategy, and what it has led to.
struct Tried {
    strategy: Strategy,
    /// The way of a rule; `None`: the same as that of a rule before, or a search.
    way: Option<PlanningWay>,
    found: Result<Run, Refusal>,
}

impl Tried {
    fn attempt(&self) -> Attempt {
        let found = self.found.as_ref();
        Attempt {
            strategy: self.strategy,
            end_ns: found.map(Run::end_ns).map_err(|&refusal| refusal),
        }
    }
}

/// Tries a rule. In small nets several rules may lead to the same plan, which is then made only
/// once.
fn try_rule(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    net: &Net,
    tried: &[Tried],
    (strategy, seed): (Strategy, u64),
    work: &Budget,
) -> Tried {
    let way = strategy.way(request, net, booking.store(), seed);
    let is_like = |tried: &&Tried| (tried.way.as_ref()).is_some_and(|known| known.is_like(&way));
    let (way, found) = match tried.iter().find(is_like) {
        Some(known) => (None, known.found.clone()),
        None => {
            let found = reserve::reserve(booking, request, net, &way, work);
            (Some(way), found)
        }
    };
    Tried { strategy, way, found }
}

/// Looks for a plan that is better than all that was `tried`; where rules have found
/// none that keeps the deadline, from those on that don't keep it. `None`: there is
/// nothing to begin at.
fn search_plan(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    net: &Net,
    options: &Options,
    tried: &[Tried],
    enough_ns: u64,
    work: &Budget,
) -> Option<Result<Run, Refusal>> {
    let late = request.without_deadline();
    let mut runs: Vec<&Run> = tried.iter().filter_map(|it| it.found.as_ref().ok()).collect();
    let mut late_runs = Vec::new();
    if runs.is_empty() {
        let ways = tried.iter().filter_map(|it| it.way.as_ref());
        late_runs.extend(ways.filter_map(|way| {
            work.part(work.left() / 4, |work| reserve::reserve(booking, &late, net, way, work).ok())
        }));
        runs.extend(&late_runs);
    }
    let is_in_time = late_runs.is_empty() && !runs.is_empty();
    let tries = (options.local_search_tries, options.seed);
    let mut found = Vec::new();
    // Where memory is scarce, a plan of the search may end later in the store. Then
    // one that keeps the deadline will do, as if nothing else had been asked for.
    for enough_ns in [enough_ns, enough_ns.max(request.deadline_ns)] {
        let store = booking.store();
        // A part is for the plan in the store, and half of all for the second search.
        let most = if is_in_time { work.left() } else { work.left() / 2 };
        let way = work.part(most / 4 * 3, |work| {
            search::search(request, net, store, &runs, enough_ns, tries, work)
        });
        let Some(way) = way else { break };
        found.extend(reserve::reserve(booking, &late, net, &way, work));
        let kept = found.iter().chain(runs.iter().copied()).map(Run::end_ns).min();
        if kept.is_some_and(|end_ns| end_ns <= request.deadline_ns) {
            break;
        }
    }
    runs.extend(&found);
    let run = runs.into_iter().min_by_key(|run| run.end_ns())?;
    let last = run.tasks.iter().max_by_key(|task| task.end_ns)?;
    if last.end_ns <= request.deadline_ns {
        return Some(Ok(run.clone()));
    }
    Some(Err(Refusal {
        process: request.job.tasks[last.task].process,
        task: last.task,
        lack: Lack::Time { end_ns: last.end_ns, deadline_ns: request.deadline_ns },
        open_tasks: 1,
    }))
}

impl Planned {
    /// From the earliest start to the end of the last task.
    pub fn makespan_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

impl Strategy {
    /// All of them, in the order in which they are tried by default.
    pub const ALL: [Self; 5] = [
        Self::EarliestFinish,
        Self::CriticalPath,
        Self::LatestFinish,
        Self::MemoryFirst,
        Self::LocalSearch,
    ];

    /// Returns the name of the strategy.
    pub fn name(self) -> &'static str {
        match self {
            Self::EarliestFinish => "earliest finish",
            Self::LatestFinish => "latest finish",
            Self::MemoryFirst => "memory first",
            Self::CriticalPath => "critical path",
            Self::LocalSearch => "local search",
            Self::RandomCores => "random cores",
            Self::EarliestDeadline => "earliest deadline",
        }
    }

    /// `seed`: of the random numbers of this try.
    fn way(self, request: &Request<'_>, net: &Net, store: &Store, seed: u64) -> PlanningWay {
        let (order, goal) = match self {
            Self::EarliestFinish | Self::RandomCores => (ReadyOrder::Depth, Goal::TaskEnd),
            _ => (ReadyOrder::Rank(self.ranks(request, net)), Goal::ProcessEnd),
        };
        let cores = match self {
            Self::RandomCores => random_cores(request, net, store, seed),
            _ => Vec::new(),
        };
        PlanningWay { order, goal, cores }
    }

    /// Per task: the greatest is planned first of those that can be.
    fn ranks(self, request: &Request<'_>, net: &Net) -> Vec<(u64, u64)> {
        let job = request.job;
        let ranks = job.tasks.iter().enumerate().map(|(index, task)| {
            let rank_ns = net.rank_ns[index];
            match self {
                Self::LatestFinish => (rank_ns.saturating_sub(net.shortest_ns[index]), 0),
                Self::MemoryFirst => (job.processes[task.process].memory_bytes, rank_ns),
                Self::EarliestFinish
                | Self::CriticalPath
                | Self::LocalSearch
                | Self::RandomCores
                | Self::EarliestDeadline => (rank_ns, 0),
            }
        });
        ranks.collect()
    }
}

/// A core for each process, picked at random from those that it may use.
fn random_cores(request: &Request<'_>, net: &Net, store: &Store, seed: u64) -> Vec<Option<usize>> {
    let mut random = Random::new(seed);
    let processes = 0..request.job.processes.len();
    let picks = processes.map(|process| {
        let is_allowed = |core: &usize| {
            net.confined.as_ref().is_none_or(|confined| confined.allows_process(process, *core))
        };
        let allowed: Vec<usize> = (0..store.sites().len()).filter(is_allowed).collect();
        // Where no core is allowed, the refusal says so.
        let place = random.below((allowed.len() as u64).max(1));
        allowed.get(place as usize).copied()
    });
    picks.collect()
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
