// SPDX-License-Identifier: GPL-2.0
//! Iterated local search: the plan that was found last, with a thing changed.
//!
//! What a change is made of is what delays the job: the tasks on the chain that
//! ends last, each of which starts when the one before it in the net or on its
//! core ends. A process of it goes to another core, alone or with all that it
//! forks, or changes cores with another one, or comes earlier in the order; the
//! others stay where they are, or look for a core anew. A plan that ends as early
//! as the one before is taken, too: that leads along plateaus. What ends later
//! is given up at once, since that is the deadline of the tries.

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

/// Tries for each process but one: of few there is little to change.
const TRIES_A_PROCESS: usize = 32;

/// Looks for a plan that ends earlier than `first`, until one ends at
/// `enough_ns`.
pub(super) fn search(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    net: &Net,
    options: &Options,
    first: &Run,
    enough_ns: u64,
) -> Option<Run> {
    let others = request.job.processes.len().saturating_sub(1);
    let most = (MOST_TASKS / net.open_tasks.max(1)).min(TRIES_A_PROCESS * others);
    let mut random = Random::new(options.seed);
    let mut better: Option<Run> = None;
    let mut way = kept(request, net, first);
    let mut chain = last_chain(request, first);
    let mut end_ns = first.end_ns();
    for _ in 0..options.local_search_tries.min(most) {
        if end_ns <= enough_ns.max(request.start_ns) || chain.is_empty() {
            break;
        }
        let process = chain[random.below(chain.len() as u64) as usize];
        let cores = booking.store().sites().len();
        let changed = changed(&mut random, request, &way, process, cores, end_ns);
        let mark = booking.mark();
        let no_later = Request {
            deadline_ns: end_ns,
            ..*request
        };
        let found = reserve::reserve(booking, &no_later, net, &changed);
        booking.rollback(mark);
        let Ok(run) = found else { continue };
        way = kept(request, net, &run);
        chain = last_chain(request, &run);
        if run.end_ns() < end_ns {
            end_ns = run.end_ns();
            better = Some(run);
        }
    }
    better
}

/// The way with one thing changed about a process.
fn changed(
    random: &mut Random,
    request: &Request<'_>,
    way: &Way,
    process: usize,
    cores: usize,
    end_ns: u64,
) -> Way {
    let job = request.job;
    let mut changed = way.clone();
    let mut below = |end: usize| random.below(end as u64) as usize;
    if below(2) == 0 {
        changed.cores.fill(None);
    }
    match below(8) {
        0..=2 => changed.cores[process] = Some(below(cores)),
        3 => {
            let other = below(job.processes.len());
            changed.cores[process] = way.cores[other];
            changed.cores[other] = way.cores[process];
        }
        4 => {
            // All that it forks looks for a core anew.
            let mut open = vec![process];
            while let Some(process) = open.pop() {
                changed.cores[process] = None;
                open.extend(job.children(process));
            }
            changed.cores[process] = Some(below(cores));
        }
        _ => {
            // Any core again, and earlier by up to a half of the whole job.
            changed.cores[process] = None;
            if let Order::Rank(ranks) = &mut changed.order {
                let most_ns = (end_ns - request.start_ns) / 2;
                let by_ns = random.below(most_ns.saturating_add(1));
                for &task in &job.processes[process].tasks {
                    ranks[task].0 = ranks[task].0.saturating_add(by_ns);
                }
            }
        }
    }
    changed
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
