// SPDX-License-Identifier: GPL-2.0
//! The runtime: devices, workers, and what to do with a graph.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};

use pbs_cosched::{GreedyOptions, Objective, Scheduler};
use pbs_csi::{Csi, Entry, Node, Owner, Snapshot, State, Waiting};
use pbs_uapi::clock::monotonic_ns;

use crate::accelerator::Accelerator;
use crate::cosched::{CoScheduling, Decided, Left, Offer, Session};
use crate::cpus;
use crate::graph::{Graph, Model};
use crate::mapping::decide;
use crate::memory::Memory;
use crate::pass::{Mapped, Pass};
use crate::pool::Pool;
use crate::profile::{InMemory, Key, Profiles};
use crate::report::Report;
use crate::Error;

/// So many threads, or devices of a type, a runtime may have.
pub const MOST_UNITS: u32 = 1024;
/// The name of the CPU among the devices.
const CPU: &str = "cpu";
/// Tries to be master so often before going on as it is.
const ATTEMPTS: u32 = 8;

/// Accelerators of one type.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// The name of the type: the same in all processes.
    pub name: String,
    /// The devices. All know the same models.
    pub instances: Vec<Arc<dyn Accelerator>>,
}

/// What is done with variants that have never run (§5.6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unprofiled {
    /// The graph is run once to measure them, without co-scheduling: each variant runs.
    #[default]
    Calibrate,
    /// The graph is refused, and the variants are named.
    Refuse,
}

/// What a runtime has.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs that may be used; thread n is on the one at n modulo their number.
    pub cpus: Vec<u32>,
    /// Threads of the CPU.
    pub threads: u32,
    /// Accelerators by type.
    pub devices: Vec<DeviceSpec>,
    /// What is done with variants that have never run.
    pub unprofiled: Unprofiled,
    /// Where measured runtimes are kept.
    pub profiles: Arc<dyn Profiles>,
    /// Nothing: off, and no shared memory is touched.
    pub co_scheduling: Option<CoScheduling>,
}

impl Default for Options {
    /// The CPUs of this thread, no accelerator, and no co-scheduling.
    fn default() -> Self {
        let cpus = cpus::allowed().unwrap_or_else(|_| vec![0]);
        Self {
            threads: cpus.len() as u32,
            cpus,
            devices: Vec::new(),
            unprofiled: Unprofiled::default(),
            profiles: Arc::new(InMemory::default()),
            co_scheduling: None,
        }
    }
}

/// A type of device of this process; the first is the CPU.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) shared: pbs_csi::Device,
    /// Of accelerators, each one's memory.
    pub(crate) memories: Vec<Arc<Memory>>,
}

/// A variant of a task that a device here can execute.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) variant: usize,
    pub(crate) device: usize,
    pub(crate) units: u32,
    pub(crate) runtime_ns: u64,
    pub(crate) key: Key,
    pub(crate) is_profiled: bool,
}

/// Executes graphs on the devices of a node.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) options: Options,
    pub(crate) devices: Vec<Installed>,
    pub(crate) pool: Pool,
    shared: Result<Node, Option<String>>,
    /// What is still to be withdrawn of graphs that have ended.
    left: Left,
    /// One graph at a time: each takes the devices to be its own.
    turn: Mutex<()>,
}

impl Runtime {
    /// A runtime with these devices. Where shared memory can't be used it runs without
    /// co-scheduling; reports say why.
    ///
    /// # Errors
    ///
    /// [`Error::Options`].
    pub fn new(options: Options) -> Result<Self, Error> {
        if options.cpus.is_empty() || options.threads == 0 {
            return Err(Error::Options("a runtime needs a CPU and a thread".into()));
        }
        let counts = options.devices.iter().map(|spec| spec.instances.len());
        if counts.max().max(Some(options.threads as usize)) > Some(MOST_UNITS as usize) {
            let why = format!("there can be {MOST_UNITS} threads, or devices of a type");
            return Err(Error::Options(why));
        }
        let of_cpu = Model::ALL.iter().filter(|model| model.is_of_cpu());
        let mut devices = vec![Installed {
            shared: pbs_csi::Device {
                name: CPU.into(),
                models: of_cpu.fold(0, |set, model| set | 1 << model.number()),
                count: options.threads,
            },
            memories: Vec::new(),
        }];
        for spec in &options.devices {
            let known = devices.iter().any(|of| of.shared.name == spec.name);
            let Some(first) = spec.instances.first().filter(|_| !known) else {
                let why = format!("device {} is there twice, or has no instance", spec.name);
                return Err(Error::Options(why));
            };
            let models = first.models();
            if models.iter().any(|model| model.is_of_cpu()) || models.is_empty() {
                let why = format!("device {} has no model, or one of the CPU", spec.name);
                return Err(Error::Options(why));
            }
            let instances = spec.instances.iter();
            devices.push(Installed {
                shared: pbs_csi::Device {
                    name: spec.name.clone(),
                    models: models.iter().fold(0, |set, of| set | 1 << of.number()),
                    count: spec.instances.len() as u32,
                },
                memories: instances
                    .map(|instance| Arc::new(Memory::new(&spec.name, instance.clone())))
                    .collect(),
            });
        }
        let accelerators: usize = devices.iter().map(|of| of.memories.len()).sum();
        // One more brings data while all others are at work.
        let workers = options.threads as usize + accelerators + 1;
        let pool = Pool::new(workers)
            .map_err(|error| Error::Options(format!("worker threads: {error}")))?;
        let shared = match &options.co_scheduling {
            None => Err(None),
            Some(how) => Node::open(&how.shared).map_err(|error| Some(error.to_string())),
        };
        Ok(Self {
            options,
            devices,
            pool,
            shared,
            left: Left::default(),
            turn: Mutex::new(()),
        })
    }

    /// Why there is no co-scheduling though it is wanted.
    pub fn alone_because(&self) -> Option<&str> {
        self.shared.as_ref().err()?.as_deref()
    }

    /// Bytes of device memory in use, of all accelerators.
    pub fn device_memory_bytes(&self) -> u64 {
        let memories = self.devices.iter().flat_map(|of| &of.memories);
        memories.map(|memory| memory.used_bytes()).sum()
    }

    /// Executes a graph to its end, after those that other threads have it run. Afterwards
    /// all data are in host memory.
    ///
    /// A task runs no graph on its own runtime, which is at work until the task has ended.
    /// On another one it may.
    ///
    /// # Errors
    ///
    /// What is wrong with the graph; what of it has failed. Tasks that then have not run
    /// are withdrawn.
    pub fn run(&self, graph: &Graph) -> Result<Report, Error> {
        if self.pool.is_within() {
            let why = "a task runs a graph on its own runtime: use another runtime for it";
            return Err(Error::Graph(why.into()));
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let order = graph.order()?;
        let candidates = self.candidates(graph)?;
        let unprofiled = unprofiled(graph, &candidates);
        if !unprofiled.is_empty() {
            return match self.options.unprofiled {
                Unprofiled::Refuse => Err(Error::Unprofiled(unprofiled)),
                Unprofiled::Calibrate => self.calibrate(graph, &order, &candidates),
            };
        }
        let mut offers = self.offers(graph, &candidates);
        let own = self.own_mapping(&offers);
        for (offer, mapped) in offers.iter_mut().zip(&own) {
            offer.own_choice = Some(mapped.candidate);
        }
        let mut report = Report::default();
        let session = self.enter(&offers, &mut report);
        Pass::new(self, graph, &candidates, own, session, report).run()
    }

    /// What devices here can execute of each task.
    fn candidates(&self, graph: &Graph) -> Result<Vec<Vec<Candidate>>, Error> {
        let mut all = Vec::with_capacity(graph.tasks.len());
        for task in &graph.tasks {
            let mut own = Vec::new();
            for (variant, of) in task.variants.iter().enumerate() {
                for (device, installed) in self.devices.iter().enumerate() {
                    let shared = &installed.shared;
                    let is_named = of.device.as_ref().is_none_or(|name| *name == shared.name);
                    let fits = device > 0 || of.threads <= shared.count;
                    if shared.models & 1 << of.model.number() == 0 || !is_named || !fits {
                        continue;
                    }
                    let key = Key {
                        task: task.kind.clone(),
                        model: of.model,
                        threads: of.threads,
                        device: shared.name.clone(),
                    };
                    let measured = self.options.profiles.runtime_ns(&key);
                    let told = of.takes.map(|takes| takes.as_nanos());
                    let told = told.map(|ns| u64::try_from(ns).unwrap_or(u64::MAX));
                    own.push(Candidate {
                        variant,
                        device,
                        units: if device == 0 { of.threads } else { 1 },
                        runtime_ns: measured.or(told).unwrap_or(0),
                        key,
                        is_profiled: measured.or(told).is_some(),
                    });
                }
            }
            if own.is_empty() {
                return Err(Error::NothingFits(task.name.clone()));
            }
            all.push(own);
        }
        Ok(all)
    }

    fn offers(&self, graph: &Graph, candidates: &[Vec<Candidate>]) -> Vec<Offer> {
        let successors = graph.successors();
        let tasks = graph.tasks.iter().enumerate();
        tasks
            .map(|(index, task)| {
                let devices = candidates[index].iter().map(|of| of.device);
                let transfer = |device: usize| {
                    let name = &self.devices[device].shared.name;
                    let read = task.regions.iter().filter(|(_, access)| access.reads());
                    let bytes = read.map(|(region, _)| region.len() as u64).sum();
                    self.options.profiles.transfer_ns(name, bytes).unwrap_or(0)
                };
                Offer {
                    task: index,
                    after: task.after.iter().map(|before| before.0).collect(),
                    successors: successors[index].clone(),
                    variants: candidates[index]
                        .iter()
                        .map(|of| pbs_csi::Variant {
                            model: of.key.model.number(),
                            threads: of.units,
                            runtime_ns: of.runtime_ns,
                            device: of.device as u32,
                        })
                        .collect(),
                    transfer_ns: devices
                        .filter(|of| *of > 0)
                        .map(transfer)
                        .max()
                        .unwrap_or(0),
                    is_ready: task.after.is_empty(),
                    own_choice: None,
                }
            })
            .collect()
    }

    /// How this process would map its tasks without the others: by the same scheduler, as if
    /// it had the devices to itself.
    fn own_mapping(&self, offers: &[Offer]) -> Vec<Mapped> {
        let nobody = Owner {
            pid: std::process::id(),
            start_ticks: 0,
        };
        let waiting = offers.iter().zip(0..).map(|(offer, slot)| Waiting {
            entry: Entry {
                slot,
                owner: nobody,
                task: u64::from(slot),
                state: State::Waiting,
                is_scheduled: false,
                is_ready: false,
                submission: u64::from(slot),
                registered_ns: 0,
                priority: 0,
                round: 0,
                capabilities: 0,
                device: None,
                units: 0,
                instance: None,
                expected_end_ns: 0,
                runtime_ns: 0,
                acknowledged: 0,
            },
            csi: Csi {
                owner: nobody,
                task: u64::from(slot),
                dependencies: offer.after.iter().map(|before| *before as u64).collect(),
                reverse_dependencies: Vec::new(),
                best_index: None,
                variants: offer.variants.clone(),
                transfer_ns: offer.transfer_ns,
                is_transfer: false,
            },
        });
        let snapshot = Snapshot {
            generation: 0,
            now_ns: monotonic_ns(),
            devices: self.devices.iter().map(|of| of.shared.clone()).collect(),
            waiting: waiting.collect(),
            in_execution: Vec::new(),
        };
        let greedy = Scheduler::Greedy(GreedyOptions::default());
        let placements = decide(&snapshot, &greedy, Objective::default(), &mut || false);
        // What it says nothing of runs as what is fastest.
        let mut mapped: Vec<Mapped> = offers.iter().map(fastest).collect();
        for placement in placements {
            if let Some(own) = mapped.get_mut(placement.slot as usize) {
                own.candidate = placement.best_index as usize;
                own.place = (placement.round, Reverse(placement.priority), 0);
            }
        }
        mapped
    }

    /// Registers, decides whether to co-schedule, and does.
    fn enter(&self, offers: &[Offer], report: &mut Report) -> Option<Session<'_>> {
        let (node, how) = match (&self.shared, &self.options.co_scheduling) {
            (Ok(node), Some(how)) => (node, how),
            (Err(why), _) => {
                report.alone_because.clone_from(why);
                return None;
            }
            (Ok(_), None) => return None,
        };
        let devices: Vec<_> = self.devices.iter().map(|of| of.shared.clone()).collect();
        let profiles = &*self.options.profiles;
        let entered = Session::enter(node, how, &self.left, &devices, offers).and_then(|session| {
            for _ in 0..ATTEMPTS {
                if !session.necessary(profiles)?.is_necessary() {
                    break;
                }
                if session.co_schedule(profiles)? {
                    report.co_schedulings += 1;
                    break;
                }
                // Another one was faster, and did not know of all of our tasks.
                session.wait()?;
            }
            Ok(session)
        });
        match entered {
            Ok(session) => Some(session),
            Err(error) => {
                report.alone_because = Some(error.to_string());
                None
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Ok(node) = &self.shared {
            self.left.withdraw(node);
        }
    }
}

fn fastest(offer: &Offer) -> Mapped {
    let variants = offer.variants.iter().enumerate();
    let fastest = variants.min_by_key(|(_, variant)| variant.runtime_ns);
    Mapped {
        candidate: fastest.map_or(0, |(index, _)| index),
        place: (u32::MAX, Reverse(0), offer.task as u64),
        is_co_scheduled: false,
    }
}

impl Mapped {
    /// What a co-scheduling has decided.
    pub(crate) fn decided(decided: Decided) -> Self {
        Self {
            candidate: decided.variant,
            place: decided.place,
            is_co_scheduled: true,
        }
    }
}

fn unprofiled(graph: &Graph, candidates: &[Vec<Candidate>]) -> Vec<String> {
    let mut named = Vec::new();
    for (task, own) in graph.tasks.iter().zip(candidates) {
        for candidate in own.iter().filter(|of| !of.is_profiled) {
            let Key {
                model,
                threads,
                device,
                ..
            } = &candidate.key;
            let name = format!(
                "{} as {model} with {threads} threads on {device}",
                task.kind
            );
            if !named.contains(&name) {
                named.push(name);
            }
        }
    }
    named
}
