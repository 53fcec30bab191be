// SPDX-License-Identifier: GPL-2.0
//! One try to reserve all that a job needs (Glaß 2024, listing 5), without its
//! recursion: a queue of the tasks that can be planned next.
//!
//! A process holds its memory and its resources from its first task's start. When its end is not
//! known yet it holds it for as long as nobody else has reserved it, so that
//! all that is planned meanwhile has to do without (requirement 5 of 5.1.4).
//! With its end known the rest is given back.

mod stop;

use pbs_profile::Error;

use super::choose::{self, Claims, CoreInterval, Goal, Nowhere, Want, PROFILE};
use super::net::Net;
use super::ready::{Ready, ReadyOrder};
use super::{Progress, Refusal, Request};
use crate::budget::Budget;
use crate::store::{Booking, Run};
use crate::{MessageReservation, ProcessReservation, TaskReservation};
use stop::Stop;

/// Steps of work that a task counts as that comes out of the queue, which is a heap.
const QUEUED: u64 = 8;

/// Way in which a job is planned.
#[derive(Clone, Debug)]
pub(crate) struct PlanningWay {
    pub(crate) order: ReadyOrder,
    pub(crate) goal: Goal,
    /// Per process: the core that it must run on, if any. May be empty.
    pub(crate) cores: Vec<Option<usize>>,
}

impl PlanningWay {
    /// Both lead to the same plan.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.goal == other.goal && self.cores == other.cores && self.order.is_like(&other.order)
    }
}

/// Outcome of a try.
pub(crate) enum Outcome {
    Planned(Run),
    Refused(Refusal),
    /// This process needs its memory for so long: what it held was not enough,
    /// since somebody else has reserved it afterwards.
    Longer {
        refusal: Refusal,
        span_ns: u64,
    },
}

/// Tries once. What was taken remains taken, whatever comes of it.
pub(crate) fn attempt(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    net: &Net,
    way: &PlanningWay,
    spans_ns: &[u64],
    work: &Budget,
) -> Outcome {
    let job = request.job;
    let mut attempt = Attempt {
        request,
        net,
        way,
        spans_ns,
        work,
        waits_for: net.waits_for.clone(),
        ready_ns: vec![request.start_ns; job.tasks.len()],
        claims: Claims::new(booking.store()),
        held: vec![None; job.processes.len()],
        ready: Ready::new(&way.order),
        work_next: None,
        waiting: Vec::new(),
        too_much_bytes: u64::MAX,
        open_tasks: net.open_tasks,
        processes: Vec::with_capacity(job.processes.len()),
        tasks: Vec::with_capacity(net.open_tasks),
        ends: vec![None; job.tasks.len()],
        messages: Vec::new(),
        booking,
    };
    match attempt.run() {
        Ok(()) => {
            let Attempt { mut processes, mut tasks, mut messages, .. } = attempt;
            processes.sort_unstable_by_key(|process| process.process);
            tasks.sort_unstable_by_key(|task| task.task);
            messages.sort_unstable_by_key(|message| (message.start_ns, message.from));
            Outcome::Planned(Run { processes, tasks, messages, ..Run::default() })
        }
        Err(Stop { task, lack, longer }) => {
            let process = job.tasks[task].process;
            let refusal = Refusal { process, task, lack, open_tasks: attempt.open_tasks };
            match longer {
                Some(span_ns) => Outcome::Longer { refusal, span_ns },
                None => Outcome::Refused(refusal),
            }
        }
    }
}

/// An open process with its core and what it holds.
#[derive(Clone, Copy, Debug)]
struct OpenProcess {
    core: usize,
    start_ns: u64,
    /// End of the time for which the process has all that it holds.
    until_ns: u64,
}

struct Attempt<'a, 's> {
    request: &'a Request<'a>,
    net: &'a Net,
    way: &'a PlanningWay,
    spans_ns: &'a [u64],
    work: &'a Budget,
    booking: &'a mut Booking<'s>,
    /// Per task: how many open tasks without reservation it waits for.
    waits_for: Vec<u32>,
    /// Per task: when it can start, as far as is known.
    ready_ns: Vec<u64>,
    claims: Claims,
    /// Per process.
    held: Vec<Option<OpenProcess>>,
    ready: Ready<'a>,
    /// The next task of a process that begins with its work: it comes before all that is ready, so
    /// that its time is taken before another process looks for a core.
    work_next: Option<usize>,
    /// First tasks of processes that have to wait for memory or resources.
    waiting: Vec<usize>,
    /// Smallest amount of memory that was not available on any core that the job may use, since a
    /// process last returned some.
    too_much_bytes: u64,
    open_tasks: usize,
    processes: Vec<ProcessReservation>,
    tasks: Vec<TaskReservation>,
    /// Per task that has its place: the node, and its end.
    ends: Vec<Option<(usize, u64)>>,
    messages: Vec<MessageReservation>,
}

impl Attempt<'_, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        self.take_up()?;
        // What has begun is not interrupted.
        let (begun, others): (Vec<_>, Vec<_>) =
            self.net.first().partition(|&task| self.request.is_executed(task));
        for task in begun {
            self.plan(task)?;
        }
        for task in others {
            self.ready.push(task);
        }
        loop {
            while let Some(task) = self.work_next.take().or_else(|| self.ready.pop()) {
                self.plan(task)?;
            }
            if self.open_tasks == 0 {
                return Ok(());
            }
            // Nothing goes on but what had too little memory, and perhaps it
            // was not even asked for since.
            let waiting = std::mem::take(&mut self.waiting);
            let Some(&first) = waiting.first() else {
                return Err(self.stuck());
            };
            let open_tasks = self.open_tasks;
            for task in waiting {
                self.too_much_bytes = u64::MAX;
                self.plan(task)?;
            }
            if self.open_tasks == open_tasks {
                return Err(self.no_needs(first));
            }
        }
    }

    /// The processes that have begun have their cores and what they hold.
    fn take_up(&mut self) -> Result<(), Stop> {
        let now_ns = self.request.start_ns;
        for (index, process) in self.request.job.processes.iter().enumerate() {
            if self.request.holds_without_thread(index, &self.net.needs[index]) {
                let core = self.a_running_core();
                let place = CoreInterval { core, start_ns: now_ns, end_ns: now_ns };
                self.hold(process.tasks[0], place)?;
            }
            if let Progress::Running { core, position, .. } = self.request.progress_of(index) {
                let task = process.tasks[position];
                if core >= self.booking.store().sites().len() {
                    return Err(self.too_late(task, u64::MAX));
                }
                let store = self.booking.store();
                let left_ns = store.duration_ns(core, self.net.process_insns[index]);
                self.claims.add(store, core, left_ns);
                let place = CoreInterval { core, start_ns: now_ns, end_ns: now_ns };
                self.hold(task, place)?;
            }
        }
        Ok(())
    }

    /// Returns the core of a process that runs, or the first one.
    fn a_running_core(&self) -> usize {
        let processes = 0..self.request.job.processes.len();
        let mut cores = processes.filter_map(|process| match self.request.progress_of(process) {
            Progress::Running { core, .. } => Some(core),
            _ => None,
        });
        cores.next().unwrap_or(0)
    }

    fn want(&self, task: usize) -> Want<'_> {
        let process = self.request.job.tasks[task].process;
        Want {
            ready_ns: self.ready_ns[task],
            deadline_ns: self.request.deadline_ns,
            task_insns: self.net.first_insns[process],
            process_insns: self.net.process_insns[process],
            needs: &self.net.needs[process],
            span_ns: self.spans_ns[process],
            goal: self.way.goal,
        }
    }

    /// Reserves what the task needs, or lets its process wait for memory.
    fn plan(&mut self, task: usize) -> Result<(), Stop> {
        if self.work.is_spent() {
            return Err(self.no_work(task));
        }
        self.work.add(QUEUED);
        let process = self.request.job.tasks[task].process;
        let place = match self.held[process] {
            Some(OpenProcess { core, .. }) => {
                self.receive(task, core)?;
                self.next_on(task, core)?
            }
            None => {
                let want = self.want(task);
                let pinned = self.way.cores.get(process).copied().flatten();
                let pinned = self.request.attached_to(process).or(pinned);
                if pinned.is_none() && want.needs.memory_bytes >= self.too_much_bytes {
                    self.waiting.push(task);
                    return Ok(());
                }
                let store = self.booking.store();
                let found = match (pinned, &self.net.confined) {
                    (Some(core), _) => choose::on_core(store, &want, core, self.work),
                    (None, None) => choose::best(store, &want, &self.claims, self.work, |_| true),
                    (None, Some(confined)) => {
                        let is_allowed = |core| confined.allows_process(process, core);
                        choose::best(store, &want, &self.claims, self.work, is_allowed)
                    }
                };
                match found {
                    Ok(place) => {
                        let own_ns = store.duration_ns(place.core, self.net.insns[task]);
                        let place =
                            CoreInterval { end_ns: place.start_ns.saturating_add(own_ns), ..place };
                        let left_ns = store.duration_ns(place.core, want.process_insns);
                        self.claims.add(store, place.core, left_ns);
                        self.hold(task, place)?;
                        place
                    }
                    Err(Nowhere::Work) => return Err(self.no_work(task)),
                    Err(Nowhere::Time { end_ns }) => return Err(self.too_late(task, end_ns)),
                    Err(Nowhere::Needs) => {
                        // Of cores that were named, or of resources, which says nothing of others.
                        let is_memory = want.needs.resources.is_empty();
                        if pinned.is_none() && is_memory && !self.net.is_confined(process) {
                            self.too_much_bytes = want.needs.memory_bytes;
                        }
                        self.waiting.push(task);
                        return Ok(());
                    }
                }
            }
        };
        self.keep(task, place)
    }

    /// The task can't start before the messages are there that it waits for. One
    /// from another node takes its time on the link; where both are on the same, or
    /// the nodes have no link, it is there when it was sent.
    fn receive(&mut self, task: usize, core: usize) -> Result<(), Stop> {
        let job = self.request.job;
        for &from in &job.tasks[task].senders {
            // What ended under an earlier plan is there.
            let Some((node, sent_ns)) = self.ends[from] else {
                continue;
            };
            let store = self.booking.store();
            let machine = store.machine();
            let Some(link) = machine.link(node, store.sites()[core].node) else {
                continue;
            };
            let bytes = job.tasks[from].message_bytes.unwrap_or(0);
            let transfer_ns = machine.transfer_ns(link, bytes);
            let latency_ns = machine.latency_ns(link);
            let window = sent_ns..u64::MAX;
            let link_profile = store.link(link);
            let start_ns = choose::first_hole(link_profile, 1, transfer_ns, window, self.work);
            let start_ns = start_ns.ok_or_else(|| self.too_late(task, u64::MAX))?;
            let end_ns = start_ns.saturating_add(transfer_ns);
            let taken = self.booking.take_link(link, start_ns..end_ns);
            taken.map_err(|_: Error| self.too_late(task, end_ns))?;
            let message = MessageReservation {
                from,
                to: task,
                link,
                start_ns,
                end_ns,
                arrival_ns: end_ns.saturating_add(latency_ns),
            };
            self.messages.push(message);
            self.ready_ns[task] = self.ready_ns[task].max(message.arrival_ns);
        }
        Ok(())
    }

    /// The first place for a task on the core of its process.
    fn next_on(&self, task: usize, core: usize) -> Result<CoreInterval, Stop> {
        let store = self.booking.store();
        let task_ns = store.duration_ns(core, self.net.insns[task]);
        let window = self.ready_ns[task]..u64::MAX;
        let start_ns = choose::first_hole(store.core(core), 1, task_ns, window, self.work);
        let start_ns = start_ns.ok_or_else(|| self.too_late(task, u64::MAX))?;
        let end_ns = start_ns.saturating_add(task_ns);
        if end_ns > self.request.deadline_ns || end_ns == u64::MAX {
            return Err(self.too_late(task, end_ns));
        }
        Ok(CoreInterval { core, start_ns, end_ns })
    }

    /// The process of a first task takes what it holds, from its start to wherever
    /// somebody else has reserved it.
    fn hold(&mut self, task: usize, place: CoreInterval) -> Result<(), Stop> {
        self.work.add(PROFILE);
        let CoreInterval { core, start_ns, .. } = place;
        let process = self.request.job.tasks[task].process;
        let needs = &self.net.needs[process];
        let window = start_ns..self.request.deadline_ns;
        let taken = needs.first_lack(self.booking.store(), core, window);
        let until_ns = taken.unwrap_or(self.request.deadline_ns);
        let over = start_ns..until_ns;
        let held = self.booking.take_needs(core, over, needs);
        held.map_err(|_: Error| self.no_needs(task))?;
        self.held[process] = Some(OpenProcess { core, start_ns, until_ns });
        Ok(())
    }

    /// Reserves the time of a task; all that waits for it may follow.
    fn keep(&mut self, task: usize, place: CoreInterval) -> Result<(), Stop> {
        let CoreInterval { core, start_ns, end_ns } = place;
        let job = self.request.job;
        let process = job.tasks[task].process;
        self.work.add(PROFILE);
        let taken = self.booking.take_core(core, start_ns..end_ns);
        taken.map_err(|_: Error| self.too_late(task, end_ns))?;
        let store = self.booking.store();
        self.claims.subtract(store, core, end_ns - start_ns);
        if let Some(held) = self.held[process].filter(|held| held.until_ns < end_ns) {
            return Err(self.held_too_briefly(task, held, end_ns));
        }
        self.tasks.push(TaskReservation {
            task,
            process,
            core,
            start_ns,
            end_ns,
            memory_bytes: job.tasks[task].memory_bytes,
        });
        self.ends[task] = Some((self.booking.store().sites()[core].node, end_ns));
        self.open_tasks -= 1;
        if job.processes[process].tasks.last() == Some(&task) {
            self.close(process, end_ns).map_err(|_: Error| self.no_needs(task))?;
        }
        for after in self.net.successors(job, task) {
            self.work.add(1);
            self.ready_ns[after] = self.ready_ns[after].max(end_ns);
            if self.waits_for[after] > 0 {
                self.waits_for[after] -= 1;
                if self.waits_for[after] > 0 {
                    continue;
                }
                if end_ns == start_ns && self.net.begins_with_work(job, process, after) {
                    self.work_next = Some(after);
                } else {
                    self.ready.push(after);
                }
            }
        }
        Ok(())
    }

    /// The end of the process is known.
    fn close(&mut self, process: usize, end_ns: u64) -> Result<(), Error> {
        let Some(held) = self.held[process] else {
            return Ok(());
        };
        let needs = &self.net.needs[process];
        let rest = end_ns..held.until_ns;
        self.booking.give_needs(held.core, rest, needs)?;
        self.processes.push(ProcessReservation {
            process,
            node: self.booking.store().sites()[held.core].node,
            core: held.core,
            start_ns: held.start_ns,
            end_ns,
            memory_bytes: needs.memory_bytes,
            resources: needs.resources.clone(),
        });
        self.too_much_bytes = u64::MAX;
        for task in self.waiting.drain(..) {
            self.ready.push(task);
        }
        Ok(())
    }
}
