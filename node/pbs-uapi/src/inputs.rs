// SPDX-License-Identifier: GPL-2.0
//! `/dev/pbs_inputs` as an open file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::ioctl::ioctl;
use crate::record::{Input, InputsInfo, KeptPlan};
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
        let mut buffer = vec![0_u8; 1 << 16];
        loop {
            let mut kept = KeptPlan {
                number,
                cpu,
                buffer: buffer.as_mut_ptr() as u64,
                bytes: buffer.len() as u64,
                ..KeptPlan::default()
            };
            let result = ioctl(&self.file, ioc::KEPT_PLAN, &mut kept);
            let bytes = usize::try_from(kept.bytes).unwrap_or(usize::MAX);
            match result {
                Ok(()) => {
                    buffer.truncate(bytes);
                    return Ok(Some(StoredPlan {
                        rate_insns_per_ms: kept.rate_insns_per_ms,
                        bytes: buffer,
                    }));
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT) => return Ok(None),
                    Some(libc::ENOSPC) if bytes > buffer.len() => buffer.resize(bytes, 0),
                    _ => return Err(error),
                },
            }
        }
    }
}
