// SPDX-License-Identifier: GPL-2.0
//! The runtime: devices and workers.

use std::sync::{Arc, Mutex};

use crate::accelerator::Accelerator;
use crate::cosched::{CoScheduling, Member};
use crate::cpus;
use crate::memory::Memory;
use crate::model::Model;
use crate::pool::Pool;
use crate::profile::{InMemory, Key, Profiles};
use crate::Error;

/// Maximum number of threads, or of devices of a type, of a runtime.
pub const MOST_UNITS: u32 = 1024;
/// The name of the CPU among the devices.
const CPU: &str = "cpu";
const NS_PER_S: u128 = 1_000_000_000;

/// Accelerators of one type.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// The name of the type: the same in all processes.
    pub name: String,
    /// The devices. All know the same models.
    pub instances: Vec<Arc<dyn Accelerator>>,
    /// Expected rate of transfers between the host and a device, until one was measured. `None`:
    /// transfers are expected to take no time until then.
    pub link_bytes_per_s: Option<u64>,
}

/// Treatment of variants that have never run (§5.6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unprofiled {
    /// The graph is run once to measure them, without co-scheduling: each variant runs.
    #[default]
    Calibrate,
    /// The graph is refused, and the variants are named.
    Refuse,
}

/// Options of a runtime.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs that may be used; thread n is on the one at n modulo their number.
    pub cpus: Vec<u32>,
    /// Threads of the CPU.
    pub threads: u32,
    /// Accelerators by type.
    pub devices: Vec<DeviceSpec>,
    /// Treatment of variants that have never run.
    pub unprofiled: Unprofiled,
    /// Storage of measured runtimes.
    pub profiles: Arc<dyn Profiles>,
    /// Options of co-scheduling. `None`: it is off, and no shared memory is used.
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
    /// Memory of each accelerator.
    pub(crate) memories: Vec<Arc<Memory>>,
    link_bytes_per_s: Option<u64>,
}

impl Installed {
    /// Returns the expected time of a transfer between the host and a device of this type.
    pub(crate) fn transfer_ns(&self, profiles: &dyn Profiles, bytes: u64) -> u64 {
        let declared = || {
            let Some(rate) = self.link_bytes_per_s else {
                return 0;
            };
            let rate = u128::from(rate.max(1));
            u64::try_from((u128::from(bytes) * NS_PER_S).div_ceil(rate)).unwrap_or(u64::MAX)
        };
        profiles.transfer_ns(&self.shared.name, bytes).unwrap_or_else(declared)
    }
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
    pub(crate) options: Arc<Options>,
    pub(crate) devices: Arc<[Installed]>,
    pub(crate) pool: Pool,
    pub(crate) shared: Result<Arc<Member>, Option<String>>,
    /// Lock for running one graph at a time: each graph uses the devices as its own.
    pub(crate) turn: Mutex<()>,
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
            link_bytes_per_s: None,
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
                link_bytes_per_s: spec.link_bytes_per_s,
            });
        }
        let accelerators: usize = devices.iter().map(|of| of.memories.len()).sum();
        // One more brings data while all others are at work.
        let workers = options.threads as usize + accelerators + 1;
        let pool = Pool::new(workers)
            .map_err(|error| Error::Options(format!("worker threads: {error}")))?;
        let shared = match &options.co_scheduling {
            None => Err(None),
            Some(how) => Member::open(how).map(Arc::new).map_err(|error| Some(error.to_string())),
        };
        Ok(Self {
            options: Arc::new(options),
            devices: devices.into(),
            pool,
            shared,
            turn: Mutex::new(()),
        })
    }

    /// Returns the reason for which there is no co-scheduling although it is wanted.
    pub fn alone_because(&self) -> Option<&str> {
        self.shared.as_ref().err()?.as_deref()
    }

    /// Bytes of device memory in use, of all accelerators.
    pub fn device_memory_bytes(&self) -> u64 {
        memory_bytes(&self.devices)
    }
}

/// Bytes in use of the memory of all accelerators.
pub(crate) fn memory_bytes(devices: &[Installed]) -> u64 {
    devices.iter().flat_map(|of| &of.memories).map(|memory| memory.used_bytes()).sum()
}

impl Options {
    /// The CPUs of a task.
    pub(crate) fn cpus_of(&self, candidate: &Candidate, instance: Option<u32>) -> Vec<u32> {
        let all = &self.cpus;
        match instance.filter(|_| candidate.device == 0) {
            Some(first) => {
                let threads = first..first + candidate.units;
                let mut cpus: Vec<u32> =
                    threads.map(|thread| all[thread as usize % all.len()]).collect();
                cpus.sort_unstable();
                cpus.dedup();
                cpus
            }
            None => all.clone(),
        }
    }
}
