// SPDX-License-Identifier: GPL-2.0
//! Local search: plans that end earlier than those of the rules.
//!
//! A plan is coded as a list of all tasks and a core for each process, from which
//! serial schedule generation makes it ([`schedule`]): each task of the list is
//! placed at the first time that its process's core and its node's memory have for
//! it. The search changes a code, makes its plan, and goes on from there unless
//! that ends later by more than a threshold that falls to nothing (threshold
//! accepting, Dueck and Scheuer 1990; the threshold of a try is drawn at random
//! below that). Changes aim at the critical path of the plan ([`moves`]).
//!
//! It begins at several plans: the best of the rules, and those that come of
//! having the longest process on each kind of core. Half of all tries are shared
//! among them, and the best found goes on with the other half.

mod memory;
mod model;
mod moves;
mod schedule;

use std::cmp::Reverse;

use crate::budget::Budget;
use crate::reserve::attempt::PlanningWay;
use crate::reserve::choose::Goal;
use crate::reserve::net::Net;
use crate::reserve::ready::ReadyOrder;
use crate::reserve::Request;
use crate::store::{Run, Store};

use model::{Model, NONE};
use moves::Moves;
use pbs_random::Random;
use schedule::{Code, Schedule};

/// Plans that the search begins at.
const STARTS: usize = 4;
/// The greatest threshold at the beginning, in permille of the plan's length, for
/// each start and for the best of what they led to.
const FIRST_PERMILLE: u64 = 100;
const LAST_PERMILLE: u64 = 40;
/// Codes made at random where no rule has found a plan.
const RANDOM_CODES: usize = 1000;
/// The tasks, and the processes but one, of a net that gets as many tries as are
/// asked for. In smaller ones there is less to change; larger ones get fewer, so that
/// they take as long.
const TASKS: usize = 75;
const OTHERS: usize = 8;

/// Looks for a plan that ends earlier than all of `runs`, which rules have led to,
/// until one ends at `enough_ns`: the way that leads to it. Where processes are confined
/// by themselves, who did that has looked already. Makes fewer tries if `work` is not enough for
/// all, and notes that there.
pub(crate) fn search(
    request: &Request<'_>,
    net: &Net,
    store: &Store,
    runs: &[&Run],
    enough_ns: u64,
    (tries, seed): (usize, u64),
    work: &Budget,
) -> Option<PlanningWay> {
    let first_ns = runs.iter().map(|run| run.end_ns()).min();
    let tasks = net.open_tasks.max(1);
    let others = request.job.processes.len().saturating_sub(1);
    let tries = (tries.saturating_mul(TASKS) / tasks)
        .min(tries.saturating_mul(others.pow(3) * tasks) / (OTHERS.pow(3) * TASKS));
    let is_empty = net.open_tasks == 0 || store.sites().is_empty();
    let mut processes = 0..request.job.processes.len();
    let are_placed = processes.any(|process| net.is_confined(process));
    if is_empty
        || are_placed
        || tries == 0
        || first_ns.is_some_and(|first_ns| first_ns <= enough_ns)
    {
        return None;
    }
    let mut search = Search::new(request, net, store, runs, seed, work);
    let best = search.run(runs, enough_ns, tries)?;
    let is_better = first_ns.is_none_or(|first_ns| best.end_ns < first_ns);
    is_better.then(|| search.way(request, &best))
}

/// A code and the end of the plan that it leads to.
#[derive(Clone)]
struct CodedPlan {
    end_ns: u64,
    code: Code,
}

/// Changes from code to code.
struct Walk {
    /// Changes that are tried.
    tries: usize,
    /// The greatest threshold at the beginning, in permille of the plan's length.
    permille: u64,
    /// Steps for all of the tries.
    work: u64,
}

impl Walk {
    /// Returns the number of tries that the work left is for. The second half of the work brings
    /// it down from all tries to none, and with it the threshold: a walk that has too little work
    /// for its tries still ends where only better plans are accepted.
    fn tries_left(&self, done: u64) -> u64 {
        let left = u128::from(self.work.saturating_sub(done));
        let tries = left * 2 * self.tries as u128 / u128::from(self.work.max(1));
        u64::try_from(tries).unwrap_or(u64::MAX)
    }
}

struct Search<'a> {
    model: Model<'a>,
    schedule: Schedule,
    moves: Moves,
    random: Random,
}

impl<'a> Search<'a> {
    fn new(
        request: &Request<'_>,
        net: &Net,
        store: &'a Store,
        runs: &[&Run],
        seed: u64,
        work: &'a Budget,
    ) -> Self {
        let latest_ns = runs.iter().map(|run| run.end_ns()).max();
        // Tries may end later for a while.
        let horizon_ns = latest_ns.map_or(u64::MAX, |latest_ns| {
            let length_ns = latest_ns.saturating_sub(request.start_ns);
            latest_ns.saturating_add(length_ns / 1000 * FIRST_PERMILLE)
        });
        let model = Model::new(request, net, store, runs, horizon_ns, work);
        Self {
            schedule: Schedule::new(&model),
            moves: Moves::default(),
            random: Random::new(seed),
            model,
        }
    }

    fn run(&mut self, runs: &[&Run], enough_ns: u64, tries: usize) -> Option<CodedPlan> {
        let starts = self.starts(runs);
        let share = tries / 2 / starts.len().max(1);
        let work_share = self.model.work.left() / 2 / starts.len().max(1) as u64;
        let mut best: Option<CodedPlan> = None;
        for start in starts {
            let walk = Walk { tries: share, permille: FIRST_PERMILLE, work: work_share };
            let found = self.improve(start, enough_ns, &walk);
            if best.as_ref().is_none_or(|best| found.end_ns < best.end_ns) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.end_ns <= enough_ns) {
                return best;
            }
        }
        let work = self.model.work.left();
        let walk = Walk { tries: tries / 2, permille: LAST_PERMILLE, work };
        Some(self.improve(best?, enough_ns, &walk))
    }

    /// The best code of those that a walk from the first one comes by.
    fn improve(&mut self, first: CodedPlan, enough_ns: u64, walk: &Walk) -> CodedPlan {
        let mut best = first.clone();
        let CodedPlan { mut end_ns, mut code, .. } = first;
        let mut changed = code.clone();
        let begin = self.model.work.done();
        // Of the first code, which was made before others were.
        if (self.schedule).make(&self.model, &mut code, u64::MAX).is_none() {
            if self.model.work.is_spent() {
                self.model.work.cut();
            }
            return best;
        }
        self.moves.look(&self.model, &self.schedule, &mut code);
        for left in (1..=walk.tries as u64).rev() {
            if best.end_ns <= enough_ns {
                break;
            }
            let by_work = walk.tries_left(self.model.work.done() - begin);
            if by_work < left {
                self.model.work.cut();
            }
            let left = left.min(by_work);
            if left == 0 {
                break;
            }
            changed.clone_from(&code);
            (self.moves).change(&self.model, &mut self.random, &mut changed);
            let length_ns = u128::from(end_ns - self.model.start_ns);
            let thousandths = u128::from(walk.permille * left);
            let most_ns = length_ns * thousandths / (1000 * walk.tries as u128);
            let threshold_ns = self.random.below(most_ns as u64 + 1);
            let limit_ns = end_ns.saturating_add(threshold_ns);
            let made = (self.schedule).make(&self.model, &mut changed, limit_ns);
            let Some(made_ns) = made else { continue };
            end_ns = made_ns;
            std::mem::swap(&mut code, &mut changed);
            if end_ns < best.end_ns {
                best.end_ns = end_ns;
                best.code.clone_from(&code);
            }
            self.moves.look(&self.model, &self.schedule, &mut code);
        }
        best
    }

    /// Returns the plans at which the search begins, the best first.
    fn starts(&mut self, runs: &[&Run]) -> Vec<CodedPlan> {
        let mut codes: Vec<Code> = runs.iter().filter_map(|run| self.code_of(run)).collect();
        let mut list: Vec<u32> = (0..self.model.tasks.len() as u32).collect();
        list.sort_by_key(|&task| Reverse(self.model.rank_ns(task)));
        let processes = self.model.processes.iter().enumerate();
        let longest = processes.max_by_key(|(_, process)| process.span_ns);
        if let Some((longest, _)) = longest.filter(|(_, process)| process.has_core.is_none()) {
            for core in self.model.kinds_of_cores().into_iter().take(2 * STARTS) {
                let mut cores: Vec<u32> = self.model.held_cores().collect();
                cores[longest] = core;
                let list = list.clone();
                codes.push(Code { list, cores });
            }
        }
        let mut starts: Vec<CodedPlan> = Vec::new();
        for code in codes {
            starts.extend(self.found(code));
        }
        starts.sort_by_key(|start| start.end_ns);
        starts.dedup_by_key(|start| start.end_ns);
        starts.truncate(STARTS);
        if starts.is_empty() {
            let half = self.model.work.left() / 2;
            starts.extend((0..RANDOM_CODES).find_map(|_| {
                if self.model.work.left() <= half {
                    self.model.work.cut();
                    return None;
                }
                let mut cores: Vec<u32> = self.model.held_cores().collect();
                for core in cores.iter_mut().filter(|core| **core == NONE) {
                    *core = self.random.below(self.model.open_cores as u64) as u32;
                }
                let list = list.clone();
                self.found(Code { list, cores })
            }));
        }
        starts
    }

    fn found(&mut self, mut code: Code) -> Option<CodedPlan> {
        let end_ns = self.schedule.make(&self.model, &mut code, u64::MAX)?;
        Some(CodedPlan { end_ns, code })
    }

    /// A plan's cores, and its tasks in the order in which they start.
    fn code_of(&self, run: &Run) -> Option<Code> {
        let start_ns = |task: u32| {
            let index = self.model.tasks[task as usize].index;
            let found = run.tasks.binary_search_by_key(&index, |task| task.task);
            found.map_or(u64::MAX, |found| run.tasks[found].start_ns)
        };
        let mut list: Vec<u32> = (0..self.model.tasks.len() as u32).collect();
        list.sort_by_cached_key(|&task| start_ns(task));
        let cores = self.model.processes.iter().map(|process| {
            let index = process.index;
            let found = run.processes.binary_search_by_key(&index, |process| process.process);
            let core = run.processes[found.ok()?].core;
            let found = self.model.cores.iter().position(|of| of.index == core)?;
            // A thread is there that was put where nothing else may go.
            let is_alone = found >= self.model.open_cores && process.has_core.is_none();
            Some(if is_alone { NONE } else { found as u32 })
        });
        let cores = cores.collect::<Option<Vec<u32>>>()?;
        Some(Code { list, cores })
    }

    /// The way that leads to that plan in the store.
    fn way(&self, request: &Request<'_>, found: &CodedPlan) -> PlanningWay {
        let job = request.job;
        let mut ranks = vec![(0, 0); job.tasks.len()];
        for (place, &task) in found.code.list.iter().enumerate() {
            let places_left = (found.code.list.len() - place) as u64;
            ranks[self.model.tasks[task as usize].index] = (places_left, 0);
        }
        let mut cores = vec![None; job.processes.len()];
        for (process, &core) in self.model.processes.iter().zip(&found.code.cores) {
            cores[process.index] = Some(self.model.cores[core as usize].index);
        }
        PlanningWay { order: ReadyOrder::Rank(ranks), goal: Goal::ProcessEnd, cores }
    }
}

#[cfg(test)]
mod tests;
