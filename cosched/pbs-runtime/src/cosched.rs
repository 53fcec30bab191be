// SPDX-License-Identifier: GPL-2.0
//! This process among the others: registering, deciding, computing, fetching (§4.3).

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pbs_cosched::{necessary, Cost, Determination, Necessity, Objective};
use pbs_csi::{
    Begun, Claim, Claimed, Csi, Device, Entry, Error, Fetched, NewTask, Node, Snapshot, State,
    Waiting,
};
use pbs_uapi::clock::monotonic_ns;

use crate::mapping::{decide, View};
use crate::profile::Profiles;

pub use pbs_cosched::Scheduler;

/// Looks again at what a master does after so long.
const AGAIN: Duration = Duration::from_micros(50);
/// Maximum wait for a result, in multiples of a master's maximum time.
const MASTERS: u32 = 4;
/// Number of tasks that are registered before other processes get the lock.
const AT_ONCE: usize = 64;

/// Options of this process's co-scheduling.
#[derive(Clone, Debug)]
pub struct CoScheduling {
    /// Directory of the shared memory, and the group that shares it.
    pub shared: pbs_csi::Options,
    /// Determination of the times to co-schedule (§5.1).
    pub determination: Determination,
    /// Scheduler that decides the mapping, if this process is master.
    pub scheduler: Scheduler,
    /// Objective that it minimises.
    pub objective: Objective,
    /// Cost of co-scheduling, as long as none was measured.
    pub cost: Cost,
    /// Maximum search time of schedulers that could search for ever; a search also takes no more
    /// than a twentieth of the time that the waiting tasks need without co-scheduling.
    pub search: Duration,
}

impl CoScheduling {
    /// With shared memory in this directory, the evolutionary scheduler, and the determination of
    /// the seed.
    pub fn new(shared: pbs_csi::Options) -> Self {
        Self {
            shared,
            determination: Determination::default(),
            scheduler: Scheduler::default(),
            objective: Objective::default(),
            cost: Cost::constant(1e6),
            search: Duration::from_millis(50),
        }
    }
}

/// Returns the name under which costs are stored.
fn name(scheduler: &Scheduler) -> &'static str {
    match scheduler {
        Scheduler::Greedy(_) => "greedy",
        Scheduler::PlainRandom(_) => "plain-random",
        Scheduler::EnhancedRandom(..) => "enhanced-random",
        Scheduler::Evolutionary(_) => "evolutionary",
        Scheduler::Heft => "heft",
        Scheduler::BruteForce => "brute-force",
    }
}

/// A task to enter, as this process knows it.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// Index in the graph.
    pub(crate) task: usize,
    /// Dependencies, by index in the graph.
    pub(crate) after: Vec<usize>,
    pub(crate) successors: Vec<usize>,
    /// With devices by their place in the runtime's list.
    pub(crate) variants: Vec<pbs_csi::Variant>,
    pub(crate) transfer_ns: u64,
    pub(crate) is_ready: bool,
    /// The variant that it would run as without the others.
    pub(crate) own_choice: Option<usize>,
}

/// Decision on a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    /// Index among the offered variants.
    pub(crate) variant: usize,
    pub(crate) place: (u32, std::cmp::Reverse<u64>, u64),
}

/// Shared memory, as a runtime has it.
#[derive(Debug)]
pub(crate) struct Member {
    node: Node,
    how: CoScheduling,
    /// Tasks that could not be withdrawn when their graph ended: slot and number.
    left: Mutex<Vec<(u32, u64)>>,
}

impl Member {
    /// Opens the shared memory.
    pub(crate) fn open(how: &CoScheduling) -> Result<Self, Error> {
        Ok(Self { node: Node::open(&how.shared)?, how: how.clone(), left: Mutex::default() })
    }

    fn left(&self) -> MutexGuard<'_, Vec<(u32, u64)>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws what is left. What can't be withdrawn stays.
    fn withdraw(&self) {
        let mut left = self.left();
        while !left.is_empty() {
            // Others wait for the lock.
            let Ok(mut locked) = self.node.lock() else {
                return;
            };
            for _ in 0..AT_ONCE {
                let Some(&(slot, number)) = left.last() else {
                    return;
                };
                if locked.withdraw(slot, number).is_err() {
                    return;
                }
                left.pop();
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// The tasks of a graph in shared memory. What is left of them goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    member: Arc<Member>,
    /// Index in shared memory of each of the runtime's devices.
    devices: Vec<u32>,
    /// Slot and number of each entered task, by index in the graph.
    entered: HashMap<usize, (u32, u64)>,
    /// CSIs of this process, by number: its own files need not be read.
    own: HashMap<u64, Csi>,
    pub(crate) generation: u64,
}

/// Numbers of tasks are never used again in a process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl Session {
    /// Enters devices and tasks.
    pub(crate) fn enter(
        member: &Arc<Member>,
        devices: &[Device],
        offers: &[Offer],
    ) -> Result<Self, Error> {
        member.withdraw();
        let node = &member.node;
        let mut locked = node.lock()?;
        let devices = locked.join_devices(devices)?;
        let generation = locked.generation();
        let mut session = Self {
            member: member.clone(),
            devices,
            entered: HashMap::new(),
            own: HashMap::new(),
            generation,
        };
        let numbers: HashMap<usize, u64> = offers
            .iter()
            .map(|offer| (offer.task, NUMBERS.fetch_add(1, Ordering::Relaxed)))
            .collect();
        let known = |tasks: &[usize]| {
            let numbers = tasks.iter().filter_map(|task| numbers.get(task));
            numbers.copied().collect::<Vec<_>>()
        };
        let tasks: Vec<NewTask> = offers
            .iter()
            .map(|offer| {
                let variants: Vec<_> = offer
                    .variants
                    .iter()
                    .map(|variant| pbs_csi::Variant {
                        device: session.devices[variant.device as usize],
                        ..*variant
                    })
                    .collect();
                let own = offer.own_choice.and_then(|choice| variants.get(choice));
                NewTask {
                    is_ready: offer.is_ready,
                    device: own.map(|own| own.device),
                    units: own.map_or(0, |own| own.threads),
                    runtime_ns: own.map_or(0, |own| own.runtime_ns),
                    csi: Csi {
                        owner: node.owner(),
                        task: numbers[&offer.task],
                        dependencies: known(&offer.after),
                        reverse_dependencies: known(&offer.successors),
                        best_index: None,
                        variants,
                        transfer_ns: offer.transfer_ns,
                        is_transfer: false,
                    },
                }
            })
            .collect();
        let own = tasks.iter().map(|task| (task.csi.task, task.csi.clone()));
        session.own = own.collect();
        // The first with the same lock: without a task the devices may go.
        let mut first = Some(locked);
        for (offers, tasks) in offers.chunks(AT_ONCE).zip(tasks.chunks(AT_ONCE)) {
            // What was entered before goes with the session if this fails.
            let slots = match first.take() {
                Some(mut locked) => locked.register(tasks)?,
                None => node.lock()?.register(tasks)?,
            };
            let entered = offers.iter().zip(tasks).zip(slots);
            let entered = entered.map(|((offer, task), slot)| (offer.task, (slot, task.csi.task)));
            session.entered.extend(entered);
        }
        Ok(session)
    }

    /// Whether to co-schedule (listing 5.2).
    pub(crate) fn necessary(&self, profiles: &dyn Profiles) -> Result<Necessity, Error> {
        if self.member.how.determination.always {
            return Ok(Necessity::Always);
        }
        let mut locked = self.member.node.lock()?;
        locked.sweep()?;
        let (devices, entries) = (locked.devices()?, locked.entries()?);
        let own = self.member.node.owner();
        let is_other = |of: &&Entry| of.state == State::Waiting && of.owner != own;
        let mut others = entries.iter().filter(is_other);
        if others.next().is_none() {
            return Ok(Necessity::Alone);
        }
        // Of the others counts that they wait, and how long their tasks are in the queues.
        let mut waiting = Vec::new();
        for entry in entries.iter().filter(|of| of.state == State::Waiting) {
            let csi = if entry.owner == own {
                self.own.get(&entry.task).cloned()
            } else {
                Some(stand_in(entry, &devices))
            };
            waiting.extend(csi.map(|csi| Waiting { entry: entry.clone(), csi }));
        }
        drop(locked);
        let now_ns = monotonic_ns();
        let counts = |of: &&Entry| {
            of.state == State::InExecution && !of.is_lent(now_ns, &self.member.how.shared)
        };
        let running: Vec<Entry> = entries.iter().filter(counts).cloned().collect();
        let mut view = View::new(&devices, &waiting, &running, now_ns);
        view.queue_waiting(&entries);
        let process = view.index(own).unwrap_or(usize::MAX);
        let cost = profiles.cost(name(&self.member.how.scheduler)).unwrap_or(self.member.how.cost);
        Ok(necessary(
            &view.workload,
            &view.platform,
            &view.queues,
            process,
            &self.member.how.determination,
            &cost,
        ))
    }

    /// Becomes master and computes, or waits for the one who does. The answer is whether it
    /// was this process.
    pub(crate) fn co_schedule(&self, profiles: &dyn Profiles) -> Result<bool, Error> {
        let began = Instant::now();
        let begun = self.member.node.lock()?.begin()?;
        let snapshot = match begun {
            Begun::Master(snapshot) => snapshot,
            Begun::Other(_) => return Ok(false),
        };
        // A mistake in what decides must not leave the others waiting.
        let decided = catch_unwind(AssertUnwindSafe(|| self.decide(&snapshot)));
        let mut locked = self.member.node.lock()?;
        match decided {
            Ok(placements) => match locked.publish(snapshot.generation, &placements) {
                Err(Error::Superseded) => Ok(false),
                Err(error) => Err(error),
                Ok(()) => {
                    drop(locked);
                    let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    let tasks = snapshot.waiting.len();
                    profiles.co_scheduled(name(&self.member.how.scheduler), tasks, took_ns);
                    Ok(true)
                }
            },
            Err(_) => locked.abandon(snapshot.generation).map(|()| false),
        }
    }

    fn decide(&self, snapshot: &Snapshot) -> Vec<pbs_csi::Placement> {
        // Who is slower than the others' patience has computed in vain.
        let search = self.member.how.search.min(self.member.how.shared.patience / 2);
        let until = Instant::now() + search;
        let mut keep_going = || Instant::now() < until;
        decide(snapshot, &self.member.how.scheduler, self.member.how.objective, &mut keep_going)
    }

    /// Waits until no master computes.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.fetched(&[]).map(|_| ())
    }

    /// Fetches when there is no master at work. Each has his time, but not one after the
    /// other for ever.
    fn fetched(&self, own: &[(u32, u64)]) -> Result<(u64, Vec<Fetched>), Error> {
        let until = Instant::now() + MASTERS * self.member.how.shared.patience;
        loop {
            if let Some(fetched) = self.member.node.lock()?.fetch(own)? {
                return Ok(fetched);
            }
            if Instant::now() >= until {
                return Err(Error::Superseded);
            }
            sleep(AGAIN);
        }
    }

    /// Fetches what was decided of these tasks, by place in the graph, when the master has
    /// come to an end.
    pub(crate) fn fetch(&mut self, tasks: &[usize]) -> Result<HashMap<usize, Decided>, Error> {
        let own: Vec<(u32, u64)> =
            tasks.iter().filter_map(|task| self.entered.get(task).copied()).collect();
        let places: HashMap<u64, usize> =
            tasks.iter().filter_map(|task| Some((self.entered.get(task)?.1, *task))).collect();
        let (generation, fetched) = self.fetched(&own)?;
        self.generation = generation;
        let decided = fetched.into_iter().filter_map(|of| {
            let decided = Decided { variant: of.best_index? as usize, place: of.place };
            Some((*places.get(&of.task)?, decided))
        });
        Ok(decided.collect())
    }

    /// Returns the maximum wait for other processes' tasks that are before in a queue, but do not
    /// start.
    pub(crate) fn patience(&self) -> Duration {
        self.member.how.shared.patience
    }

    /// The check before a task: one load (§5.6.2).
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.member.node.generation() != self.generation
    }

    /// Claims a device of the runtime's list for a task.
    pub(crate) fn claim(
        &mut self,
        task: usize,
        device: usize,
        units: u32,
        runtime_ns: u64,
        overtakes: bool,
    ) -> Result<Claimed, Error> {
        let Some(&(slot, number)) = self.entered.get(&task) else {
            return Ok(Claimed::Gone);
        };
        self.member.node.lock()?.claim(Claim {
            slot,
            task: number,
            generation: self.generation,
            device: self.devices[device],
            units,
            runtime_ns,
            overtakes,
        })
    }

    /// Expects the end of running tasks a whole runtime from now: the process was stopped.
    pub(crate) fn renew(&mut self, tasks: &[usize]) -> Result<(), Error> {
        let own: Vec<(u32, u64)> =
            tasks.iter().filter_map(|task| self.entered.get(task).copied()).collect();
        self.member.node.lock()?.renew(&own)
    }

    /// A task has ended, and these are ready now.
    pub(crate) fn finish(&mut self, task: usize, now_ready: &[usize]) -> Result<(), Error> {
        let Some(&(slot, number)) = self.entered.get(&task) else {
            return Ok(());
        };
        let ready: Vec<(u32, u64)> =
            now_ready.iter().filter_map(|task| self.entered.get(task).copied()).collect();
        // Until it has left shared memory it is still to be withdrawn.
        self.member.node.lock()?.finish(slot, number, &ready)?;
        self.entered.remove(&task);
        Ok(())
    }

    /// Withdraws all tasks except these, which run: the others see their devices taken until
    /// [`Session::finish`].
    pub(crate) fn leave(&mut self, running: &[usize]) {
        let left = self.entered.extract_if(|task, _| !running.contains(task));
        self.member.left().extend(left.map(|(_, entry)| entry));
        self.member.withdraw();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.member.left().extend(self.entered.values());
        // What can't be now is when the next graph begins, or the runtime goes.
        self.member.withdraw();
    }
}

/// A CSI for a task of which only counts that it waits.
fn stand_in(entry: &Entry, devices: &[Device]) -> Csi {
    let device = entry.device.unwrap_or(0);
    let models = devices.get(device as usize).map_or(1, |of| of.models);
    Csi {
        owner: entry.owner,
        task: entry.task,
        dependencies: Vec::new(),
        reverse_dependencies: Vec::new(),
        best_index: None,
        variants: vec![pbs_csi::Variant {
            model: models.trailing_zeros(),
            threads: 1,
            runtime_ns: entry.runtime_ns,
            device,
        }],
        transfer_ns: 0,
        is_transfer: false,
    }
}
