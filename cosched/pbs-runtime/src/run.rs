// SPDX-License-Identifier: GPL-2.0
//! A run of a graph: candidates for its tasks, an own mapping, and the co-scheduling.

use std::cmp::Reverse;
use std::sync::PoisonError;

use pbs_cosched::{GreedyOptions, Objective, Scheduler};
use pbs_csi::{Csi, Entry, Owner, Snapshot, State, Waiting};
use pbs_uapi::clock::monotonic_ns;

use crate::announce::announce;
use crate::cosched::{Decided, Offer, Session};
use crate::graph::Graph;
use crate::mapping::decide;
use crate::pass::{Mapped, Pass};
use crate::planned::place;
use crate::profile::Key;
use crate::report::Report;
use crate::running::Running;
use crate::runtime::{Candidate, Runtime, Unprofiled};
use crate::Error;

/// Tries to be master so often before going on as it is.
const ATTEMPTS: u32 = 8;

impl Runtime {
    /// Executes a graph to its end, after those that other threads have it run. Afterwards
    /// all data are in host memory.
    ///
    /// A task runs no graph on its own runtime, which is at work until the task has ended.
    /// On another one it may. A thread that runs a graph for a task has the task's
    /// [`Nesting`](crate::Nesting).
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
        announce(self, graph, &candidates)?;
        if let Some(place) = place()? {
            return self.run_planned(graph, &candidates, &place);
        }
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
        Running::run(Pass::new(self, graph, candidates, own, session, report), self.pool.entrance())
    }

    /// Returns the candidates of each task: its variants that devices here can execute.
    pub(crate) fn candidates(&self, graph: &Graph) -> Result<Vec<Vec<Candidate>>, Error> {
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
                let bytes = task.transfer_bytes();
                let transfer_ns = |device: usize| match device {
                    0 => 0,
                    _ => self.devices[device].transfer_ns(&*self.options.profiles, bytes),
                };
                let devices = candidates[index].iter().map(|of| of.device);
                // A decision adds the time of a transfer between two tasks.  The first ones of a
                // graph get their data from the host.
                let is_first = task.after.is_empty();
                let brought_ns = |device| if is_first { transfer_ns(device) } else { 0 };
                Offer {
                    task: index,
                    after: task.after.iter().map(|before| before.0).collect(),
                    successors: successors[index].clone(),
                    variants: candidates[index]
                        .iter()
                        .map(|of| pbs_csi::Variant {
                            model: of.key.model.number(),
                            threads: of.units,
                            runtime_ns: of.runtime_ns.saturating_add(brought_ns(of.device)),
                            device: of.device as u32,
                        })
                        .collect(),
                    transfer_ns: devices.map(transfer_ns).max().unwrap_or(0),
                    is_ready: task.after.is_empty(),
                    own_choice: None,
                }
            })
            .collect()
    }

    /// Returns the mapping of this process's tasks without the others: by the same scheduler, as if
    /// it had the devices to itself.
    fn own_mapping(&self, offers: &[Offer]) -> Vec<Mapped> {
        let nobody = Owner { pid: std::process::id(), start_ticks: 0 };
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
    fn enter(&self, offers: &[Offer], report: &mut Report) -> Option<Session> {
        let member = match &self.shared {
            Ok(member) => member,
            Err(why) => {
                report.alone_because.clone_from(why);
                return None;
            }
        };
        let devices: Vec<_> = self.devices.iter().map(|of| of.shared.clone()).collect();
        let profiles = &*self.options.profiles;
        let entered = Session::enter(member, &devices, offers).and_then(|session| {
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
    /// Converts the decision of a co-scheduling.
    pub(crate) fn decided(decided: Decided) -> Self {
        Self { candidate: decided.variant, place: decided.place, is_co_scheduled: true }
    }
}

fn unprofiled(graph: &Graph, candidates: &[Vec<Candidate>]) -> Vec<String> {
    let mut named = Vec::new();
    for (task, own) in graph.tasks.iter().zip(candidates) {
        for candidate in own.iter().filter(|of| !of.is_profiled) {
            let Key { model, threads, device, .. } = &candidate.key;
            let name = format!("{} as {model} with {threads} threads on {device}", task.kind);
            if !named.contains(&name) {
                named.push(name);
            }
        }
    }
    named
}
