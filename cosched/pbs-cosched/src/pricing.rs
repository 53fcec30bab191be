// SPDX-License-Identifier: GPL-2.0
//! Slow-downs in the schedulers that decide once: greedy and HEFT (ours).
//!
//! Both decide by times alone.  Then each task in turn tries other threads, and waiting for the end
//! of a task beside it; with HEFT also its other variants.  It keeps what makes the whole schedule
//! better.

use crate::mapping::Hold;
use crate::model::ExecutionTarget;
use crate::objective::Objective;
use crate::problem::{Decisions, Problem};
use crate::queues::{Slot, Where};
use crate::state::State;

/// Tasks in all schedules together that are timed, at most.
const MOST_PLACED: usize = 1_000_000;
/// Pairs of neighbours in all schedules together, at most.  Where many tasks run side by side, most
/// of the time is spent on them.
const MOST_PAIRS: usize = 15_000_000;
/// Sweeps over all tasks, at most.
const SWEEPS: u32 = 3;
/// Other threads, and tasks to wait for, that a task tries at most.
const MOST_TRIES: usize = 16;

/// Variants that tasks try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ways {
    /// The decided one.
    Decided,
    /// All.
    All,
}

/// Holds tasks back from others that they would slow; may choose other ways.
///
/// The work is bounded, and `keep_going` is asked before each task.
pub(crate) fn price(
    problem: &Problem<'_>,
    objective: Objective,
    order: &[usize],
    ways: &mut [usize],
    tried: Ways,
    keep_going: &mut dyn FnMut() -> bool,
) -> Vec<Hold> {
    let mut pricing = Pricing {
        problem,
        objective,
        state: problem.start(),
        ends_ns: Vec::new(),
        order,
        left_tasks: MOST_PLACED,
        left_pairs: MOST_PAIRS,
    };
    let mut holds = vec![Hold::default(); ways.len()];
    let mut best = pricing.key(ways, &holds);
    for _ in 0..SWEEPS {
        let before = best;
        for &job in order {
            if pricing.is_over() || !keep_going() {
                return holds;
            }
            let (way, hold) = (ways[job], holds[job]);
            let mut found = (way, hold);
            for (other_way, other_hold) in pricing.alternatives(job, ways, &holds, tried) {
                if pricing.is_over() {
                    break;
                }
                (ways[job], holds[job]) = (other_way, other_hold);
                let key = pricing.key(ways, &holds);
                if key < best {
                    (best, found) = (key, (other_way, other_hold));
                }
            }
            (ways[job], holds[job]) = found;
        }
        if best == before {
            break;
        }
    }
    holds
}

struct Pricing<'a> {
    problem: &'a Problem<'a>,
    objective: Objective,
    state: State,
    ends_ns: Vec<u64>,
    order: &'a [usize],
    /// Tasks that may still be timed.
    left_tasks: usize,
    /// Pairs of neighbours that may still be timed.
    left_pairs: usize,
}

impl Pricing<'_> {
    fn is_over(&self) -> bool {
        self.left_tasks == 0 || self.left_pairs == 0
    }

    /// Counts the work of the last timeline.
    fn count(&mut self) {
        self.left_tasks = self.left_tasks.saturating_sub(self.order.len());
        self.left_pairs = self.left_pairs.saturating_sub(self.state.pairs);
    }

    fn key(&mut self, ways: &[usize], holds: &[Hold]) -> [u64; 3] {
        let decisions = Decisions { order: self.order, ways, holds };
        let key =
            self.problem.key_of(&mut self.state, &mut self.ends_ns, decisions, self.objective);
        self.count();
        key
    }

    /// Other ways and holds of a job.
    fn alternatives(
        &mut self,
        job: usize,
        ways: &[usize],
        holds: &[Hold],
        tried: Ways,
    ) -> Vec<(usize, Hold)> {
        let decisions = Decisions { order: self.order, ways, holds };
        let timeline = self.problem.slowed_timeline(&mut self.state, decisions);
        self.count();
        let of = &self.problem.jobs[job];
        let own = timeline.slots[of.task].as_ref();
        // The end of a task that began earlier, or together with it, may be waited for.
        let overlaps = |slot: &Slot| {
            let own = own.map_or((0, 0), |own| (own.start_ns, own.end_ns));
            slot.start_ns < own.1 && own.0 < slot.end_ns
        };
        let on_threads = |slot: &&Slot| matches!(slot.place, Where::Threads(_));
        let mut waits: Vec<Option<usize>> = vec![None];
        for (task, slot) in timeline.slots.iter().enumerate() {
            let slot = slot.as_ref().filter(on_threads).filter(|slot| overlaps(slot));
            if slot.is_some() && task != of.task && waits.len() <= MOST_TRIES {
                waits.push(Some(task));
            }
        }
        let mut found = Vec::new();
        let all = match tried {
            Ways::Decided => ways[job]..ways[job] + 1,
            Ways::All => 0..of.ways.len(),
        };
        for way in all {
            match of.ways[way].place {
                ExecutionTarget::Device(_) => found.push((way, Hold::default())),
                ExecutionTarget::Threads(needed) => {
                    let most = self.problem.threads().saturating_sub(needed);
                    // Other threads first: jobs keep the order on a CPU, but not all waits.
                    for &wait in &waits {
                        let skips = 0..=most.min(MOST_TRIES as u32);
                        found.extend(skips.map(|skip| (way, Hold { wait, skip })));
                    }
                }
            }
        }
        found.retain(|&(way, hold)| (way, hold) != (ways[job], holds[job]));
        found
    }
}
