// SPDX-License-Identifier: GPL-2.0
//! Planning anew what is left of running jobs, after a prediction failure.
//!
//! What has begun remains where it is and holds its memory; all else of the
//! running jobs is planned as if it were new. Where that does not keep their
//! deadlines, jobs that have not begun make room, if their own deadlines allow.

use std::cmp::Reverse;
use std::ops::Range;

use crate::admission::{is_independent, place_anew, DemandTest};
use crate::budget::Budget;
use crate::store::{Booking, Needs, Run, Store};
use crate::strategies::{reserve_within, Aim, Options, Planned, Refused, Strategy};
use crate::{Progress, Request, RunId};

/// Parameters of a new plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replan {
    /// Time at which the new plan comes into force. Nothing is planned earlier.
    pub now_ns: u64,
    /// Options for planning each job.
    pub options: Options,
    /// At most so many jobs that have not begun are moved.
    pub max_moved_runs: usize,
    /// Test by which independent processes are placed where the search does not keep all deadlines;
    /// `None`: they are not placed.
    pub demand: Option<DemandTest>,
}

/// Changes that a new plan has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replanned {
    /// The running jobs.
    pub running: Vec<(RunId, Planned)>,
    /// The jobs that had to be moved.
    pub moved: Vec<(RunId, Planned)>,
}

/// Refusal of a new plan: none keeps all deadlines. The old one remains valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReplanned {
    /// The running job that could not be planned while all others stay.
    pub run: RunId,
    /// Reason of the refusal.
    pub refused: Refused,
}

impl Replan {
    /// A plan from then on, as fast as can be: the first strategy whose plan
    /// keeps the deadline.
    pub fn at(now_ns: u64) -> Self {
        let strategies = vec![
            Strategy::CriticalPath,
            Strategy::EarliestFinish,
            Strategy::LatestFinish,
            Strategy::MemoryFirst,
        ];
        Self {
            now_ns,
            options: Options { strategies, aim: Aim::Deadline, ..Options::default() },
            max_moved_runs: 16,
            demand: None,
        }
    }

    /// Plans what is left of the running jobs anew, the most important first; if that
    /// does not keep all deadlines, the most urgent first. `later` are the jobs that
    /// may be moved; those of them that nothing is reserved for, and those that
    /// begin before the new plan does, are not. A running job that is to be the
    /// [last](Request::last) has its place after all others, also after those that
    /// move. No job moves for it.
    ///
    /// # Errors
    ///
    /// Why a running job can't be planned; the store is as it was then. It is the first that has no
    /// place by priority, or the first by deadline: the less important of the two, if all others
    /// keep their deadlines once it has none. A job that is to go on although it will be late is
    /// asked for once more with a later deadline.
    pub fn run(
        &self,
        store: &mut Store,
        running: &[Request<'_>],
        later: &[Request<'_>],
    ) -> Result<Replanned, Box<NotReplanned>> {
        self.run_within(store, running, later, &Budget::new(self.options.max_work))
    }

    /// Plans like [`Replan::run`], as a part of a question: with what is left of its work.
    ///
    /// # Errors
    ///
    /// Fails as [`Replan::run`] does.
    pub fn run_within(
        &self,
        store: &mut Store,
        running: &[Request<'_>],
        later: &[Request<'_>],
        work: &Budget,
    ) -> Result<Replanned, Box<NotReplanned>> {
        let mut running = running.to_vec();
        let lacks_memory = lacks_memory(store, &running);
        let order = |request: &Request<'_>| order(request, lacks_memory);
        running.sort_by_cached_key(order);
        // All orders are tried without their reservations.
        let mut booking = store.book();
        for request in &running {
            booking.remove_within(request.run, work);
        }
        let found = self.in_order(&mut booking, &running, later, work).or_else(|why| {
            // What is more important goes first, but not where it has time and others
            // have not.
            let before = running.clone();
            let by_deadline = |request: &Request<'_>| {
                let awaited_by_ns = request.awaited_by_ns.unwrap_or(u64::MAX);
                (request.is_last, request.deadline_ns.min(awaited_by_ns))
            };
            running.sort_by_cached_key(|request| (by_deadline(request), order(request)));
            if work.is_spent() || same_order(&before, &running) {
                Err(why)
            } else {
                let found = self.in_order(&mut booking, &running, later, work);
                found.map_err(|last| {
                    self.that_yields(&mut booking, &running, later, [why, last], work)
                })
            }
        });
        if found.is_ok() {
            booking.commit();
        } else {
            drop(booking);
        }
        found.or_else(|why| self.by_deadline(store, &running, later, work).ok_or(why))
    }

    /// Returns the first of two refusals after which the others could be planned, and the second if
    /// there is none. Late jobs for which others wait come first, and then the less important one.
    fn that_yields(
        &self,
        booking: &mut Booking<'_>,
        running: &[Request<'_>],
        later: &[Request<'_>],
        mut refusals: [Box<NotReplanned>; 2],
        work: &Budget,
    ) -> Box<NotReplanned> {
        let last = refusals[1].clone();
        if refusals[0].run == last.run {
            return last;
        }
        refusals.sort_by_key(|refused| {
            let mut of_run = running.iter().filter(|request| request.run == refused.run);
            let request = of_run.next();
            request.map(|it| (it.awaited_by_ns.is_none(), it.job.priority, Reverse(it.deadline_ns)))
        });
        let mut refusals = refusals.into_iter();
        let found =
            refusals.find(|refused| self.suffices(booking, running, later, refused.run, work));
        found.unwrap_or(last)
    }

    /// Whether the running jobs can be planned in the given order, once one of them has no deadline
    /// and goes behind all others, unless it holds something. Nothing changes.
    fn suffices(
        &self,
        booking: &mut Booking<'_>,
        running: &[Request<'_>],
        later: &[Request<'_>],
        last: RunId,
        work: &Budget,
    ) -> bool {
        // A job that holds what others may wait for keeps its place.
        let is_free = |it: &Request<'_>| !holds(it, true) && it.awaited_by_ns.is_none();
        let mut all = running.to_vec();
        for request in all.iter_mut().filter(|request| request.run == last) {
            let yielding = request.without_deadline();
            *request = if is_free(request) { yielding.last() } else { yielding };
        }
        all.sort_by_key(|request| request.is_last);
        let start = booking.mark();
        let suffices = self.in_order(booking, &all, later, work).is_ok();
        booking.rollback(start);
        suffices
    }

    /// Plans nets by the search and all that is independent by the demand test, with
    /// those of the runs to come that are.
    fn by_deadline(
        &self,
        store: &mut Store,
        running: &[Request<'_>],
        later: &[Request<'_>],
        work: &Budget,
    ) -> Option<Replanned> {
        let test = self.demand.as_ref()?;
        let mut booking = store.book();
        let moving = later.iter().filter(|request| {
            let run = booking.store().run(request.run);
            run.and_then(Run::start_ns).is_some_and(|start_ns| start_ns >= self.now_ns)
                && is_independent(request.job)
        });
        let all = running.iter().chain(moving).map(|request| request.not_before(self.now_ns));
        let all: Vec<_> = all.collect();
        let placed = place_anew(&mut booking, &all, test, work, |booking, net| {
            // A request without a place stays where it was.
            self.plan(booking, net, work).ok()
        })?;
        let mut replanned = Replanned::default();
        for (request, planned) in placed {
            let end_ns = booking.store().run(request.run).map_or(request.start_ns, Run::end_ns);
            let planned = planned.unwrap_or(Planned {
                strategy: Strategy::EarliestDeadline,
                start_ns: request.start_ns,
                end_ns,
                attempts: Vec::new(),
                cut_short: None,
            });
            if running.iter().any(|running| running.run == request.run) {
                replanned.running.push((request.run, planned));
            } else {
                replanned.moved.push((request.run, planned));
            }
        }
        booking.commit();
        Some(replanned)
    }

    /// Plans the running jobs in the given order; otherwise like [`run`](Self::run). Nothing is
    /// reserved for them before, nor afterwards if it fails.
    fn in_order(
        &self,
        booking: &mut Booking<'_>,
        running: &[Request<'_>],
        later: &[Request<'_>],
        work: &Budget,
    ) -> Result<Replanned, Box<NotReplanned>> {
        let later = self.movable(booking.store(), running, later);
        self.making_room(booking, running, &later, work)
    }

    /// Plans the running jobs in the given order, while more and more of the others make room.
    fn making_room(
        &self,
        booking: &mut Booking<'_>,
        running: &[Request<'_>],
        later: &[Request<'_>],
        work: &Budget,
    ) -> Result<Replanned, Box<NotReplanned>> {
        let start = booking.mark();
        let mut why = None;
        // None, 1, 2, 4, ... of them make room.
        let mut moved = 0;
        loop {
            let mut moving = later[..moved].to_vec();
            // They hold nothing yet.
            moving.sort_by_key(|request| order(request, false));
            match self.try_once(booking, running, &moving, work) {
                Ok(replanned) => return Ok(replanned),
                Err(refused) => {
                    booking.rollback(start);
                    let is_last = |request: &Request<'_>| request.is_last;
                    let mut of_refused = running.iter().filter(|it| it.run == refused.run);
                    if moved == later.len() || of_refused.any(is_last) || work.is_spent() {
                        return Err(why.unwrap_or(refused));
                    }
                    why.get_or_insert(refused);
                }
            }
            moved = (moved * 2).clamp(1, later.len());
        }
    }

    /// The jobs that can make room, as many as may: the least important first, and of those the
    /// first to begin.
    fn movable<'a>(
        &self,
        store: &Store,
        running: &[Request<'_>],
        later: &[Request<'a>],
    ) -> Vec<Request<'a>> {
        let not_last = running.iter().filter(|request| !request.is_last);
        let last_ns = not_last.map(|request| request.deadline_ns).max();
        let last_ns = last_ns.unwrap_or(0);
        let starts = later.iter().filter_map(|request| {
            let start_ns = store.run(request.run)?.start_ns()?;
            let in_the_way = (self.now_ns..last_ns).contains(&start_ns);
            let runs = running.iter().any(|running| running.run == request.run);
            (in_the_way && !runs).then_some((request.job.priority, start_ns, *request))
        });
        let mut starts: Vec<_> = starts.collect();
        starts.sort_by_key(|&(priority, start_ns, _)| (priority, start_ns));
        starts.truncate(self.max_moved_runs);
        starts.into_iter().map(|(.., request)| request).collect()
    }

    fn try_once(
        &self,
        booking: &mut Booking<'_>,
        running: &[Request<'_>],
        moving: &[Request<'_>],
        work: &Budget,
    ) -> Result<Replanned, Box<NotReplanned>> {
        for request in moving {
            booking.remove_within(request.run, work);
        }
        let mut held: Vec<Vec<Hold>> = Vec::with_capacity(running.len());
        for request in running {
            held.push(self.hold(booking, request));
        }
        let mut replanned = Replanned::default();
        // The last ones are at the end, as the running jobs are sorted.
        let first = running.partition_point(|request| !request.is_last);
        let mut held = running.iter().zip(held);
        for (request, held) in held.by_ref().take(first) {
            give_back(booking, held);
            let planned = self.plan(booking, request, work)?;
            replanned.running.push((request.run, planned));
        }
        for request in moving {
            let planned = self.plan(booking, request, work)?;
            replanned.moved.push((request.run, planned));
        }
        for (request, held) in held {
            give_back(booking, held);
            let planned = self.plan(booking, request, work)?;
            replanned.running.push((request.run, planned));
        }
        Ok(replanned)
    }

    fn plan(
        &self,
        booking: &mut Booking<'_>,
        request: &Request<'_>,
        work: &Budget,
    ) -> Result<Planned, Box<NotReplanned>> {
        let request = request.not_before(self.now_ns);
        reserve_within(booking, &request, &self.options, work)
            .map_err(|refused| Box::new(NotReplanned { run: request.run, refused: *refused }))
    }

    /// Holds the memory and resources of processes that have begun, and the time of their present task if the job
    /// has a deadline, while the jobs before it are planned. The memory is held to the deadline, or
    /// as long as no other run has reserved it.
    fn hold(&self, booking: &mut Booking<'_>, request: &Request<'_>) -> Vec<Hold> {
        let mut held = Vec::new();
        for (index, process) in request.job.processes.iter().enumerate() {
            let needs = Needs::new(request.job, index, booking.store());
            if request.holds_without_thread(index, &needs) {
                let needs = Needs { memory_bytes: 0, ..needs };
                let taken = needs.first_lack(booking.store(), 0, self.now_ns..request.deadline_ns);
                let until_ns = taken.unwrap_or(request.deadline_ns).max(self.now_ns);
                let over = self.now_ns..until_ns;
                if booking.take_needs(0, over.clone(), &needs).is_ok() {
                    held.push(Hold { core: 0, over, needs, time: self.now_ns..self.now_ns });
                }
                continue;
            }
            let Progress::Running { core, position, retired_insns } = request.progress_of(index)
            else {
                continue;
            };
            let store = booking.store();
            if core >= store.sites().len() {
                continue;
            }
            let now_ns = self.now_ns;
            let taken = needs.first_lack(store, core, now_ns..request.deadline_ns);
            let over = now_ns..taken.unwrap_or(request.deadline_ns).max(now_ns);
            let mut time = now_ns..now_ns;
            // A job that has missed its deadline already makes others miss theirs no
            // more: its task goes on behind them, as that of a last one does.
            if retired_insns > 0 && request.deadline_ns < u64::MAX && !request.is_last {
                let insns = request.job.tasks[process.tasks[position]].insns;
                let left_insns = insns.saturating_sub(retired_insns).max(1);
                let left_insns = store.core_insns(process, left_insns);
                let end_ns = now_ns.saturating_add(store.duration_ns(core, left_insns));
                if store.core(core).min_over(now_ns..end_ns) == Some(1) {
                    time.end = end_ns;
                }
            }
            let all = booking.take_needs(core, over.clone(), &needs);
            if all.and_then(|()| booking.take_core(core, time.clone())).is_ok() {
                held.push(Hold { core, over, needs, time });
            }
        }
        held
    }
}

/// Memory, resources and time that are held for a while.
#[derive(Clone, Debug)]
struct Hold {
    core: usize,
    /// Time for which memory and resources are held.
    over: Range<u64>,
    needs: Needs,
    /// Time of the core that is held.
    time: Range<u64>,
}

fn give_back(booking: &mut Booking<'_>, held: Vec<Hold>) {
    for hold in held {
        // It was taken, so it can be given back.
        let _ = booking.give_needs(hold.core, hold.over, &hold.needs);
        // The core was taken, therefore it can be given back.
        let _ = booking.give_core(hold.core, hold.time);
    }
}

fn same_order(one: &[Request<'_>], other: &[Request<'_>]) -> bool {
    let runs = one.iter().map(|request| request.run);
    runs.eq(other.iter().map(|request| request.run))
}

/// Whether a job holds what others may wait for; `lacks_memory`: that can be memory.
fn holds(request: &Request<'_>, lacks_memory: bool) -> bool {
    !request.held_resources().is_empty() || lacks_memory && request.held_bytes() > 0
}

/// Whether one of the running jobs needs more memory than the others leave.
fn lacks_memory(store: &Store, running: &[Request<'_>]) -> bool {
    let nodes = store.machine().nodes.iter();
    let all_bytes = nodes.map(|node| store.balancing().memory_bytes(node)).min();
    let held_bytes = running.iter().map(Request::held_bytes).fold(0, u64::saturating_add);
    let left_bytes = all_bytes.unwrap_or(0).saturating_sub(held_bytes);
    running.iter().any(|request| request.awaited_bytes() > left_bytes)
}

/// The runs that hold what others may wait for first; then the most important, and of those the
/// most urgent; the last ones at the end. `lacks_memory`: others may wait for memory.
fn order(request: &Request<'_>, lacks_memory: bool) -> (bool, bool, Reverse<u32>, u64, RunId) {
    let is_free = request.awaited_by_ns.is_none() && !holds(request, lacks_memory);
    let priority = Reverse(request.job.priority);
    (request.is_last, is_free, priority, request.deadline_ns, request.run)
}

#[cfg(test)]
mod tests;
