// SPDX-License-Identifier: GPL-2.0
//! `/dev/pbs_inputs` as an open file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::ioctl::ioctl;
use crate::record::{Input, InputsInfo, KeptPlan, Snapshot};
use crate::{ioc, Ring};

/// Path of the device.
pub const INPUTS_PATH: &str = "/dev/pbs_inputs";

/// A plan that was written while the inputs of the policy are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlan {
    /// The rate of the CPU when it was written.
    pub rate_insns_per_ms: u64,
    /// The configuration that is in force there, a `struct pbs_config`, and then what
    /// was written.
    pub bytes: Vec<u8>,
}

/// The policy of a CPU between two inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenSnapshot {
    /// Number of the first input after it.
    pub next_input: u64,
    /// Time of the snapshot.
    pub time_ns: u64,
    /// Time at which the plan came into force.
    pub installed_ns: u64,
    /// The plan in the wire format, as a plan of one CPU with its configuration.
    pub plan: Vec<u8>,
    /// The words of the node, whose meaning is that of the version in the first one.
    pub words: Vec<u64>,
}

/// Result of the request for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotOf {
    /// The snapshot.
    Taken(TakenSnapshot),
    /// The CPU has no plan.
    NoPlan,
    /// The plan has too many processes and awaited tasks, or the kernel has no memory for them.
    TooLarge,
    /// The kernel takes no snapshots: it is older than this program.
    Unknown,
}

/// An open `/dev/pbs_inputs`: as long as there is one, what the policy of each CPU is
/// told is recorded.
#[derive(Debug)]
pub struct Inputs {
    file: File,
    info: InputsInfo,
}

impl Inputs {
    /// Opens [`INPUTS_PATH`].
    pub fn open() -> io::Result<Self> {
        Self::open_path(Path::new(INPUTS_PATH))
    }

    /// Opens the device at `path`.
    pub fn open_path(path: &Path) -> io::Result<Self> {
        let mut inputs = Self {
            // Rings are mapped as memory that is only read, which is all that it takes.
            file: OpenOptions::new().read(true).open(path)?,
            info: InputsInfo::default(),
        };
        inputs.info = inputs.info()?;
        Ok(inputs)
    }

    /// Returns the kernel's description of the rings of inputs.
    pub fn info(&self) -> io::Result<InputsInfo> {
        let mut info = InputsInfo::default();
        ioctl(&self.file, ioc::INPUTS_INFO, &mut info)?;
        Ok(info)
    }

    /// CPUs that may have a ring are those from 0 to one less than this.
    pub fn cpu_ids(&self) -> u32 {
        self.info.nr_cpu_ids
    }

    /// The ring of a CPU; `None`: it has had no plan yet, or there is no such CPU.
    pub fn ring(&self, cpu: u32) -> io::Result<Option<Ring<Input>>> {
        match Ring::map(self.file.as_fd(), self.info.ring_bytes, cpu) {
            Ok(ring) => Ok(Some(ring)),
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// The plan that is kept under a number, for one of its CPUs; `None`: it is not
    /// kept.
    pub fn kept_plan(&self, number: u64, cpu: u32) -> io::Result<Option<StoredPlan>> {
        let kept = with_room(|buffer| {
            let mut kept = KeptPlan {
                number,
                cpu,
                buffer: buffer.as_mut_ptr() as u64,
                bytes: buffer.len() as u64,
                ..KeptPlan::default()
            };
            let result = ioctl(&self.file, ioc::KEPT_PLAN, &mut kept);
            (result, kept.bytes, kept.rate_insns_per_ms)
        });
        match kept {
            Ok((bytes, rate_insns_per_ms)) => Ok(Some(StoredPlan { rate_insns_per_ms, bytes })),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes a snapshot of the policy of a CPU, for a replay that begins there.
    pub fn snapshot(&self, cpu: u32) -> io::Result<SnapshotOf> {
        let taken = with_room(|buffer| {
            let mut of = Snapshot {
                cpu,
                buffer: buffer.as_mut_ptr() as u64,
                bytes: buffer.len() as u64,
                ..Snapshot::default()
            };
            let result = ioctl(&self.file, ioc::SNAPSHOT, &mut of);
            (result, of.bytes, of)
        });
        let (mut plan, of) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENODEV) => Ok(SnapshotOf::NoPlan),
                    Some(libc::E2BIG | libc::ENOMEM) => Ok(SnapshotOf::TooLarge),
                    Some(libc::ENOTTY) => Ok(SnapshotOf::Unknown),
                    _ => Err(error),
                }
            }
        };
        let plan_bytes = usize::try_from(of.plan_bytes).unwrap_or(usize::MAX);
        let (words, _) = plan.get(plan_bytes..).unwrap_or_default().as_chunks();
        let words = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        plan.truncate(plan_bytes);
        Ok(SnapshotOf::Taken(TakenSnapshot {
            next_input: of.next_input,
            time_ns: of.time_ns,
            installed_ns: of.installed_ns,
            plan,
            words,
        }))
    }
}

/// Calls with a buffer that grows for as long as the kernel says that it needs more: what is asked
/// for may be larger the next time. `call` returns the size, and what else the kernel answered.
/// Returns the bytes of the answer with that.
fn with_room<A>(
    mut call: impl FnMut(&mut [u8]) -> (io::Result<()>, u64, A),
) -> io::Result<(Vec<u8>, A)> {
    let mut buffer = vec![0_u8; 1 << 16];
    loop {
        let (result, bytes, answer) = call(&mut buffer);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match result {
            Ok(()) => {
                buffer.truncate(bytes);
                return Ok((buffer, answer));
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) && bytes > buffer.len() => {
                buffer.resize(bytes, 0);
            }
            Err(error) => return Err(error),
        }
    }
}
