// SPDX-License-Identifier: GPL-2.0
//! Rearrangement of planned runs: several runs are planned again together, in an order of tasks
//! chosen by a caller that considers all of them at once.
//!
//! Admission plans one job after the other, each beside the earlier ones. A caller that knows which
//! tasks slow each other, or which tasks of several jobs belong side by side, declares the order in
//! which tasks have their turns and the time that they take there. Each process stays on its core.
//! The tasks that are left of a run that has begun have turns.

use std::collections::BTreeMap;

use crate::store::Store;
use crate::{ProcessReservation, Progress, Request, Run, RunId, TaskReservation};

/// A task that has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Run of the task, one of those that the caller wants to rearrange.
    pub run: RunId,
    /// Index of the task in its job. Tasks without instructions have no turn.
    pub task: usize,
    /// Time that the task takes in this turn, in permille of the time that it takes alone; at least
    /// 1000.
    pub stretch_permille: u64,
}

/// Reason for which runs stay as they were planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotArranged {
    /// A run is not planned, has begun where it must not have, or sends messages over links, which
    /// are not moved.
    NotWaiting(RunId),
    /// A task has no turn, several, or one before a task that it waits for.
    Turns {
        /// Run of the task.
        run: RunId,
        /// Index of the task in the job.
        task: usize,
    },
    /// A run would miss its deadline.
    Late {
        /// The run.
        run: RunId,
        /// End of the run.
        end_ns: u64,
    },
    /// A core has no time left, or there is no memory.
    NoPlace(RunId),
}

/// Plans those runs anew, each task that has a reservation on the core that its process has, in the
/// order of the turns. On a core tasks come in that order, and beside what others have reserved there.
///
/// # Errors
///
/// Why not; the store is as it was then.
pub fn arrange(
    store: &mut Store,
    requests: &[Request<'_>],
    turns: &[Turn],
) -> Result<(), NotArranged> {
    let mut booking = store.book();
    let mut places = Vec::with_capacity(requests.len());
    for request in requests {
        let run = booking.store().run(request.run).cloned();
        let run = run.filter(|run| run.messages.is_empty());
        places.push(ArrangedRun::new(request, run.ok_or(NotArranged::NotWaiting(request.run))?));
    }
    for request in requests {
        booking.remove(request.run);
    }
    let of: BTreeMap<RunId, usize> =
        (requests.iter().map(|request| request.run)).zip(0..).collect();
    // Until when each core has had its turns.
    let mut taken_ns: BTreeMap<usize, u64> = BTreeMap::new();
    for place in &mut places {
        place.settle((0..place.request.job.tasks.len()).collect());
    }
    for turn in turns {
        let wrong = NotArranged::Turns { run: turn.run, task: turn.task };
        let place = of.get(&turn.run).and_then(|&place| places.get_mut(place));
        let place = place.ok_or(wrong)?;
        let job = place.request.job;
        let task = job.tasks.get(turn.task).ok_or(wrong)?;
        if place.waits_for[turn.task] != Some(0) || task.insns == 0 {
            return Err(wrong);
        }
        let process = &job.processes[task.process];
        let core = place.cores[task.process];
        let store = booking.store();
        let left_insns = task.insns.saturating_sub(place.done_insns(turn.task)).max(1);
        let alone_ns = store.duration_ns(core, store.core_insns(process, left_insns));
        let stretched = u128::from(alone_ns) * u128::from(turn.stretch_permille.max(1000));
        let length_ns = store.machine().whole_ticks(stretched.div_ceil(1000));
        let from_ns = place.ready_ns[turn.task]
            .max(store.now_ns())
            .max(taken_ns.get(&core).copied().unwrap_or(0));
        let found = store.core(core).find_first_hole(1, length_ns, from_ns..u64::MAX);
        let start_ns = found.ok_or(NotArranged::NoPlace(turn.run))?;
        let end_ns = start_ns.saturating_add(length_ns);
        taken_ns.insert(core, end_ns);
        let after = place.note(turn.task, start_ns, end_ns);
        place.settle(after);
    }
    for place in places {
        let id = place.request.run;
        let run = place.finish()?;
        booking.reserve(id, run).map_err(|_| NotArranged::NoPlace(id))?;
    }
    booking.commit();
    Ok(())
}

/// A run that is being arranged.
struct ArrangedRun<'a> {
    request: &'a Request<'a>,
    /// Core of each process.
    cores: Vec<usize>,
    /// Number of predecessors without a place, by task; `None`: the task has a place itself.
    waits_for: Vec<Option<usize>>,
    /// Latest end of the predecessors that have a place, by task.
    ready_ns: Vec<u64>,
    times_ns: Vec<(u64, u64)>,
    /// The run as it was reserved: of one that has begun, what is left of it.
    reserved: Run,
}

impl<'a> ArrangedRun<'a> {
    fn new(request: &'a Request<'a>, run: Run) -> Self {
        let job = request.job;
        let tasks = 0..job.tasks.len();
        let mut has_ended = vec![true; job.tasks.len()];
        for task in &run.tasks {
            has_ended[task.task] = false;
        }
        let mut cores = vec![0; job.processes.len()];
        for process in &run.processes {
            cores[process.process] = process.core;
        }
        let open =
            |task: usize| job.predecessors(task).filter(|&before| !has_ended[before]).count();
        let waits_for = tasks.clone().map(|task| (!has_ended[task]).then(|| open(task)));
        Self {
            cores,
            waits_for: waits_for.collect(),
            ready_ns: vec![request.start_ns; job.tasks.len()],
            times_ns: tasks.map(|_| (0, 0)).collect(),
            request,
            reserved: run,
        }
    }

    /// Returns the instructions that a task has retired.
    fn done_insns(&self, task: usize) -> u64 {
        let of = &self.request.job.tasks[task];
        match self.request.progress_of(of.process) {
            Progress::Running { position, retired_insns, .. } if position == of.position => {
                retired_insns
            }
            _ => 0,
        }
    }

    /// Gives places to those of the tasks `open`, and of their successors, that take no time. Their
    /// place is the time at which they are ready.
    fn settle(&mut self, mut open: Vec<usize>) {
        let job = self.request.job;
        while let Some(task) = open.pop() {
            if self.waits_for[task] == Some(0) && job.tasks[task].insns == 0 {
                let ready_ns = self.ready_ns[task];
                open.extend(self.note(task, ready_ns, ready_ns));
            }
        }
    }

    /// A task has its place; the tasks that wait for it.
    fn note(&mut self, task: usize, start_ns: u64, end_ns: u64) -> Vec<usize> {
        self.times_ns[task] = (start_ns, end_ns);
        self.waits_for[task] = None;
        let after: Vec<usize> = self.request.job.successors(task).collect();
        for &next in &after {
            self.waits_for[next] = self.waits_for[next].map(|open| open.saturating_sub(1));
            self.ready_ns[next] = self.ready_ns[next].max(end_ns);
        }
        after
    }

    /// Returns the new run, if all tasks have their place and the deadline is kept.
    fn finish(self) -> Result<Run, NotArranged> {
        let Request { run, deadline_ns, .. } = *self.request;
        if let Some(task) = self.waits_for.iter().position(Option::is_some) {
            return Err(NotArranged::Turns { run, task });
        }
        let tasks = self.reserved.tasks.iter().map(|reserved| {
            let (start_ns, end_ns) = self.times_ns[reserved.task];
            TaskReservation { start_ns, end_ns, ..*reserved }
        });
        let processes = self.reserved.processes.iter().map(|reserved| {
            let of_process = self.reserved.tasks.iter();
            let of_process = of_process.filter(|task| task.process == reserved.process);
            let times = of_process.map(|task| self.times_ns[task.task]);
            let start_ns = times.clone().map(|(start_ns, _)| start_ns).min();
            let has_begun =
                matches!(self.request.progress_of(reserved.process), Progress::Running { .. });
            ProcessReservation {
                // What has begun has its memory.
                start_ns: start_ns.filter(|_| !has_begun).unwrap_or(reserved.start_ns),
                end_ns: times.map(|(_, end_ns)| end_ns).max().unwrap_or(reserved.end_ns),
                ..reserved.clone()
            }
        });
        let arranged =
            Run { processes: processes.collect(), tasks: tasks.collect(), ..Run::default() };
        let end_ns = arranged.end_ns();
        if end_ns > deadline_ns {
            return Err(NotArranged::Late { run, end_ns });
        }
        Ok(arranged)
    }
}
