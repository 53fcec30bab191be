// SPDX-License-Identifier: GPL-2.0
//! Bounded local search: the best plan so far, with one thing changed.
//!
//! What a change is made of is what delays the job: the tasks on the chain that
//! ends last, each of which starts when the one before it in the net or on its
//! core ends. A process of it goes to another core, or comes earlier in the
//! order. What doesn't end earlier than the best so far is given up at once,
//! since that is the deadline of the tries.

use super::random::Random;
use super::{Options, Strategy};
use crate::critical::critical_path;
use crate::reserve::attempt::Way;
use crate::reserve::choose::Goal;
use crate::reserve::net::Net;
use crate::reserve::ready::Order;
use crate::reserve::{self, Request};
use crate::store::{Booking, Run};

/// Tasks that may be planned in all tries together: large nets get few tries.
const MOST_TASKS: usize = 100_000;

/// Looks for a plan that ends earlier than `best`.
pub(super) fn search(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    net: &Net,
    options: &Options,
    best: &Run,
) -> Option<Run> {
    let most = MOST_TASKS / net.open_tasks.max(1);
    let mut random = Random::new(options.seed);
    let mut better: Option<Run> = None;
    let mut way = kept(request, net, best);
    for _ in 0..options.local_search_tries.min(most) {
        let best = better.as_ref().unwrap_or(best);
        let end_ns = best.end_ns();
        let Some(deadline_ns) = end_ns.checked_sub(1).filter(|&end| end > request.start_ns) else {
            break;
        };
        let chain = last_chain(request, best);
        if chain.is_empty() {
            break;
        }
        let process = chain[random.below(chain.len() as u64) as usize];
        let mut changed = way.clone();
        if random.below(2) == 0 {
            let cores = booking.store().sites().len() as u64;
            changed.cores[process] = Some(random.below(cores) as usize);
        } else {
            // Any core again, and earlier by up to a half of the whole job.
            changed.cores[process] = None;
            if let Order::Rank(ranks) = &mut changed.order {
                let most_ns = (end_ns - request.start_ns) / 2;
                let by_ns = random.below(most_ns.saturating_add(1));
                for &task in &request.job.processes[process].tasks {
                    ranks[task].0 = ranks[task].0.saturating_add(by_ns);
                }
            }
        }
        let mark = booking.mark();
        let earlier = Request {
            deadline_ns,
            ..*request
        };
        if let Ok(run) = reserve::reserve(booking, &earlier, net, &changed) {
            booking.rollback(mark);
            better = Some(run);
            way = changed;
        }
    }
    better
}

/// The way that leads to a plan like that one: its cores, and the order of the
/// starts in it.
fn kept(request: &Request<'_>, net: &Net, run: &Run) -> Way {
    let end_ns = run.end_ns();
    let mut way = Way {
        order: Order::Rank(Strategy::CriticalPath.ranks(request, net)),
        goal: Goal::ProcessEnd,
        cores: vec![None; request.job.processes.len()],
    };
    if let Order::Rank(ranks) = &mut way.order {
        for task in &run.tasks {
            ranks[task.task] = (end_ns - task.start_ns.min(end_ns), ranks[task.task].0);
        }
    }
    for process in &run.processes {
        way.cores[process.process] = Some(process.core);
    }
    way
}

/// The processes of the critical path, each once.
fn last_chain(request: &Request<'_>, run: &Run) -> Vec<usize> {
    let path = critical_path(request.job, run).into_iter();
    let mut processes: Vec<_> = path
        .map(|critical| request.job.tasks[critical.task].process)
        .collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}
