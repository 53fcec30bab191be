// SPDX-License-Identifier: GPL-2.0
//! Passes over a graph, until all of it has run (listing 5.4): what is decided.
//! [`crate::running`] has the threads.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pbs_csi::Claimed;
use pbs_uapi::clock::monotonic_ns;

use crate::behind::Behind;
use crate::cosched::Session;
use crate::execute::Ran;
use crate::graph::{Graph, Task};
use crate::local::Units;
use crate::profile::learn;
use crate::region::{Region, Transferred};
use crate::report::{Report, TaskReport};
use crate::running::Work;
use crate::runtime::{memory_bytes, Candidate, Installed, Options, Runtime};
use crate::Error;

/// A device that others have is looked at again after so long, at least and at most.
const SOON: Duration = Duration::from_micros(100);
const LATER: Duration = Duration::from_millis(2);
/// Number of passes without a started task that indicates a hostile writer instead of
/// co-scheduling.
const FRUITLESS: u32 = 64;

/// Position in the queue of a device.
type Place = (u32, Reverse<u64>, u64);

/// Planned execution of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    /// Index of the chosen candidate.
    pub(crate) candidate: usize,
    /// Position in the queue of the device.
    pub(crate) place: Place,
    pub(crate) is_co_scheduled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// On the first of these devices, and so many.
    Running(Option<u32>, u32),
    Done,
}

/// Outcome of a pass.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Ended,
    /// Another mapping exists: tasks that have not started are mapped anew.
    Changed,
}

enum Started {
    Yes,
    /// Others have the device, perhaps until then.
    Busy(u64),
    /// The process itself has it.
    Own,
    Changed,
}

/// A graph on its way.
pub(crate) struct Pass {
    options: Arc<Options>,
    devices: Arc<[Installed]>,
    tasks: Vec<Arc<Task>>,
    candidates: Arc<[Vec<Candidate>]>,
    successors: Vec<Vec<usize>>,
    /// Regions of the graph.
    regions: Arc<[Region]>,
    /// Number of unfinished dependencies of each task.
    open: Vec<usize>,
    states: Vec<State>,
    mapped: Vec<Mapped>,
    /// Queue of each device: tasks that wait for nothing else.
    ready: Vec<BTreeSet<(Place, usize)>>,
    is_staged: Vec<bool>,
    behind: Behind,
    units: Vec<Units>,
    session: Option<Session>,
    /// Running tasks of a process that goes alone, which keep their devices until they end.
    leaving: Option<Session>,
    report: Report,
    /// Pieces of work that were given to workers and have not ended.
    at_work: usize,
    /// What was started and is not with a worker yet.
    started: Vec<Work>,
    /// Outcome of the pass, which is over when no work is left.
    outcome: Option<Outcome>,
    /// Time at which a device that others have is looked at again.
    again: Option<Instant>,
    /// End of the last wait of the thread that runs the graph.
    awake: Instant,
    /// Passes since a task has started.
    fruitless: u32,
    failed: Option<Error>,
}

impl Pass {
    pub(crate) fn new(
        runtime: &Runtime,
        graph: &Graph,
        candidates: Vec<Vec<Candidate>>,
        mapped: Vec<Mapped>,
        session: Option<Session>,
        mut report: Report,
    ) -> Self {
        let tasks = graph.tasks.iter().zip(&mapped).zip(&candidates);
        report.tasks = tasks
            .map(|((task, mapped), own)| {
                let candidate = &own[mapped.candidate];
                TaskReport {
                    name: task.name.clone(),
                    variant: candidate.variant,
                    model: candidate.key.model,
                    device: candidate.key.device.clone(),
                    instance: None,
                    started_ns: 0,
                    ended_ns: 0,
                    reruns: 0,
                    is_co_scheduled: false,
                }
            })
            .collect();
        let mut pass = Self {
            options: runtime.options.clone(),
            devices: runtime.devices.clone(),
            tasks: graph.tasks.clone(),
            candidates: candidates.into(),
            successors: graph.successors(),
            regions: graph.regions().into(),
            open: graph.tasks.iter().map(|task| task.after.len()).collect(),
            states: vec![State::Waiting; graph.tasks.len()],
            is_staged: vec![false; graph.tasks.len()],
            behind: Behind::new(runtime.devices.len()),
            units: runtime.devices.iter().map(|of| Units::new(of.shared.count)).collect(),
            ready: vec![BTreeSet::new(); runtime.devices.len()],
            mapped,
            session,
            leaving: None,
            report,
            at_work: 0,
            started: Vec::new(),
            outcome: None,
            again: None,
            awake: Instant::now(),
            fruitless: 0,
            failed: None,
        };
        for task in 0..pass.states.len() {
            if pass.open[task] == 0 {
                pass.queue(task);
            }
        }
        pass
    }

    /// Adds a task that waits for nothing else to the queue of its device.
    fn queue(&mut self, task: usize) {
        let device = self.candidate(task).device;
        self.ready[device].insert((self.mapped[task].place, task));
    }

    /// Takes a task out of the queue of its device.
    fn unqueue(&mut self, task: usize) {
        let device = self.candidate(task).device;
        self.ready[device].remove(&(self.mapped[task].place, task));
    }

    /// Ends a pass after which no work is left, and prepares the next one. Returns the end of the
    /// graph, if that was the last pass.
    pub(crate) fn end(&mut self) -> Option<Result<Report, Error>> {
        let before = memory_bytes(&self.devices);
        self.data_home();
        if let Some(failed) = self.failed.take() {
            return Some(Err(failed));
        }
        if let Some(Outcome::Changed) = self.outcome {
            self.outcome = None;
            self.report.freed_on_exit_bytes += before;
            self.rebuild();
            return None;
        }
        Some(Ok(std::mem::take(&mut self.report)))
    }

    /// Ends the pass with an error. What was started and is not with a worker does not begin.
    pub(crate) fn abort(&mut self, error: Error) {
        self.fail(error);
        self.at_work -= self.started.len();
        self.started.clear();
        self.outcome = Some(Outcome::Ended);
    }

    /// Whether the pass is over.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome.is_some() && self.at_work == 0
    }

    /// Time at which [`Pass::traverse`] is to be called again, although no work has ended.
    pub(crate) fn again(&self) -> Option<Instant> {
        self.again
    }

    /// What goes with the graph: its tasks in shared memory, its functions and its regions. The
    /// worker of the last task may have the pass for a moment longer.
    pub(crate) fn leave(&mut self) -> (Vec<Session>, Vec<Arc<Task>>, Arc<[Region]>) {
        let sessions = self.session.take().into_iter().chain(self.leaving.take());
        let regions = std::mem::replace(&mut self.regions, Vec::new().into());
        (sessions.collect(), std::mem::take(&mut self.tasks), regions)
    }

    /// Brings all data to host memory, as after each traversal (§5.6.5), and gives the
    /// memory of the devices back, that of skipped tasks, too.
    fn data_home(&mut self) {
        for region in self.regions.clone().iter() {
            match region.go_home() {
                Ok(transferred) => self.learn(transferred.as_slice()),
                Err(why) => self.fail(Error::Device { device: "memory".into(), why }),
            }
        }
        self.is_staged.fill(false);
    }

    /// Marks what was skipped for rerun, and gives each task the one candidate that was
    /// chosen for it (§5.6.2).
    fn rebuild(&mut self) {
        self.report.rebuilds += 1;
        self.behind.forget_all();
        let tasks = 0..self.states.len();
        let rerun: Vec<usize> = tasks.filter(|&task| self.states[task] == State::Waiting).collect();
        for &task in &rerun {
            self.report.tasks[task].reruns += 1;
        }
        self.fruitless += 1;
        if self.fruitless > FRUITLESS {
            self.go_alone("mappings have changed so fast that no task could start".into());
        }
        let Some(session) = &mut self.session else {
            return;
        };
        match session.fetch(&rerun) {
            Ok(decided) => {
                for (task, decided) in decided {
                    if decided.variant < self.candidates[task].len() {
                        self.unqueue(task);
                        self.mapped[task] = Mapped::decided(decided);
                        if self.open[task] == 0 {
                            self.queue(task);
                        }
                    }
                }
            }
            Err(error) => self.go_alone(error.to_string()),
        }
    }

    /// Starts what can be started. Returns what workers have to do for it.
    pub(crate) fn traverse(&mut self) -> Vec<Work> {
        self.again = None;
        if self.outcome.is_none() {
            self.outcome = self.start_ready();
        }
        std::mem::take(&mut self.started)
    }

    /// Starts ready tasks. Returns the outcome of the pass, if there is one now.
    fn start_ready(&mut self) -> Option<Outcome> {
        let mut is_blocked = vec![false; self.units.len()];
        // Queues are first in, first out.
        while let Some(task) = self.first_ready(&is_blocked) {
            if self.failed.is_some() {
                return Some(Outcome::Ended);
            }
            if self.session.as_ref().is_some_and(Session::has_changed) {
                return Some(Outcome::Changed);
            }
            match self.start(task) {
                Started::Yes => {}
                Started::Changed => return Some(Outcome::Changed),
                Started::Own => self.block(task, &mut is_blocked),
                Started::Busy(until_ns) => {
                    self.block(task, &mut is_blocked);
                    let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
                    let again = Instant::now() + left.clamp(SOON, LATER);
                    self.again = Some(self.again.map_or(again, |other| other.min(again)));
                }
            }
        }
        (self.at_work == 0 && self.again.is_none()).then_some(Outcome::Ended)
    }

    /// The first task that can begin, of all devices that no task before it waits for.
    fn first_ready(&self, is_blocked: &[bool]) -> Option<usize> {
        let queues = self.ready.iter().zip(is_blocked).filter(|(_, is_blocked)| !**is_blocked);
        queues.filter_map(|(queue, _)| queue.first()).min().map(|&(_, task)| task)
    }

    /// Longest wait of the thread that runs the graph, and how much longer it may have taken: a
    /// longer one shows that the process was stopped. A task is overdue a whole patience after
    /// its expected end, and stops of half of that are noticed.
    pub(crate) fn slice(&self) -> Option<Duration> {
        let session = self.session.as_ref().or(self.leaving.as_ref());
        session.map(|session| session.patience() / 4)
    }

    /// Notes the end of a wait that was to take that long.
    ///
    /// Running tasks are renewed if the process was stopped meanwhile, since others may have them
    /// for overdue. Tasks are not renewed for being overdue: one that is stuck in a process that
    /// runs must be seen as such.
    pub(crate) fn woke(&mut self, waited: Duration) {
        let Some(slice) = self.slice() else {
            return;
        };
        let was_absent = self.awake.elapsed() > waited + slice;
        self.awake = Instant::now();
        if was_absent {
            self.renew();
        }
    }

    fn running(&self) -> Vec<usize> {
        let tasks = 0..self.states.len();
        tasks.filter(|&task| matches!(self.states[task], State::Running(..))).collect()
    }

    fn renew(&mut self) {
        let running = self.running();
        if let Some(session) = &mut self.session {
            if let Err(error) = session.renew(&running) {
                self.go_alone(error.to_string());
            }
        } else if let Some(leaving) = &mut self.leaving {
            if leaving.renew(&running).is_err() {
                self.leaving = None;
            }
        }
    }

    fn candidate(&self, task: usize) -> &Candidate {
        &self.candidates[task][self.mapped[task].candidate]
    }

    /// A task waits for its device: its data can go there meanwhile, if it is known which
    /// one of the type it will be.
    fn block(&mut self, task: usize, is_blocked: &mut [bool]) {
        let device = self.candidate(task).device;
        is_blocked[device] = true;
        let [memory] = &self.devices[device].memories[..] else {
            return;
        };
        if std::mem::replace(&mut self.is_staged[task], true) {
            return;
        }
        self.at_work += 1;
        self.started.push(Work::Stage {
            of: self.tasks[task].clone(),
            memory: memory.clone(),
            cpus: self.options.cpus.clone(),
        });
    }

    fn start(&mut self, task: usize) -> Started {
        let candidate = self.candidate(task);
        let (device, units) = (candidate.device, candidate.units);
        let runtime_ns = candidate.runtime_ns;
        // Then nobody else needs to be asked.
        if !self.units[device].has_room(units) {
            self.behind.forget(device);
            return Started::Own;
        }
        let claimed = match &mut self.session {
            Some(session) => {
                // Those before may be stopped, or mean harm.
                let patience = session.patience();
                let overtakes = self.behind.is_over(device, task, patience, Instant::now());
                session.claim(task, device, units, runtime_ns, overtakes)
            }
            None => match self.units[device].take(units) {
                Some(instance) => {
                    self.dispatch(task, instance);
                    return Started::Yes;
                }
                None => return Started::Own,
            },
        };
        match claimed {
            Ok(Claimed::Started { instance }) => {
                // Only threads may be where they are not beside each other.
                let is_ours = match instance {
                    Some(first) => self.units[device].is_free(first, units),
                    None => device == 0,
                };
                if !is_ours {
                    self.go_alone("the place of a task is not here, or is taken".into());
                    return self.start(task);
                }
                self.behind.forget(device);
                self.units[device].note(instance, units);
                self.dispatch(task, instance);
                Started::Yes
            }
            Ok(Claimed::Changed) => Started::Changed,
            Ok(Claimed::Busy { until_ns }) => {
                match until_ns {
                    0 => self.behind.note(device, task, Instant::now()),
                    _ => self.behind.forget(device),
                }
                Started::Busy(until_ns)
            }
            Ok(Claimed::Gone) => {
                self.go_alone("the entry of a task was removed by another process".into());
                self.start(task)
            }
            Err(error) => {
                self.go_alone(error.to_string());
                self.start(task)
            }
        }
    }

    /// From now on without the others: what they have decided so far stays. Running tasks keep
    /// their devices.
    fn go_alone(&mut self, why: String) {
        if let Some(mut session) = self.session.take() {
            session.leave(&self.running());
            self.leaving = Some(session);
        }
        self.report.alone_because.get_or_insert(why);
    }

    /// Lets a worker execute a task on devices that the task has.
    fn dispatch(&mut self, task: usize, instance: Option<u32>) {
        self.unqueue(task);
        let candidate = &self.candidates[task][self.mapped[task].candidate];
        let own = &mut self.report.tasks[task];
        own.variant = candidate.variant;
        own.model = candidate.key.model;
        own.device.clone_from(&candidate.key.device);
        own.instance = instance;
        own.is_co_scheduled = self.mapped[task].is_co_scheduled;
        self.states[task] = State::Running(instance, candidate.units);
        self.fruitless = 0;
        self.at_work += 1;
        let memories = &self.devices[candidate.device].memories;
        self.started.push(Work::Run {
            task,
            of: self.tasks[task].clone(),
            variant: candidate.variant,
            memory: memories.get(instance.unwrap_or(0) as usize).cloned(),
            regions: self.regions.clone(),
            cpus: self.options.cpus_of(candidate, instance),
        });
    }

    /// Data of a task have been brought to its device.
    pub(crate) fn staged(&mut self, transfers: &[Transferred]) {
        self.at_work -= 1;
        self.learn(transfers);
    }

    /// A task has ended.
    pub(crate) fn ended(&mut self, task: usize, ran: Result<Ran, String>) {
        self.at_work -= 1;
        if let State::Running(instance, units) = self.states[task] {
            let device = self.candidate(task).device;
            self.units[device].give_back(instance, units);
        }
        self.states[task] = State::Done;
        let successors = std::mem::take(&mut self.successors[task]);
        let mut now_ready = Vec::new();
        for next in successors {
            self.open[next] -= 1;
            if self.open[next] == 0 {
                now_ready.push(next);
                self.queue(next);
            }
        }
        if let Some(session) = &mut self.session {
            if let Err(error) = session.finish(task, &now_ready) {
                self.go_alone(error.to_string());
            }
        } else if let Some(leaving) = &mut self.leaving {
            // Each failure takes all the patience with the lock.
            if leaving.finish(task, &[]).is_err() {
                self.leaving = None;
            }
        }
        match ran {
            Ok(ran) => {
                let own = &mut self.report.tasks[task];
                (own.started_ns, own.ended_ns) = (ran.started_ns, ran.ended_ns);
                let took_ns = ran.ended_ns - ran.started_ns;
                self.options.profiles.ran(&self.candidate(task).key, took_ns);
                self.learn(&ran.transfers);
            }
            Err(why) => self.fail(Error::Failed { task: self.tasks[task].name.clone(), why }),
        }
    }

    fn learn(&self, transfers: &[Transferred]) {
        learn(&*self.options.profiles, transfers);
    }

    /// The first failure is what is told.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Variant;

    /// The tasks before it in a new mapping are others.
    #[test]
    fn patience_begins_anew_with_a_new_mapping() {
        let runtime = Runtime::new(Options { threads: 1, ..Options::default() }).unwrap();
        let mut graph = Graph::new();
        graph.add(Task::new("behind").variant(Variant::cpu(|_| Ok(())).taking(LATER)));
        let candidates = runtime.candidates(&graph).unwrap();
        let mapped = Mapped { candidate: 0, place: (1, Reverse(0), 0), is_co_scheduled: true };
        let mut pass =
            Pass::new(&runtime, &graph, candidates, vec![mapped], None, Report::default());
        let begin = Instant::now();
        pass.behind.note(0, 0, begin);
        let is_over = |pass: &Pass| pass.behind.is_over(0, 0, LATER, begin + 2 * LATER);
        assert!(is_over(&pass));
        pass.rebuild();
        assert!(!is_over(&pass));
    }
}
