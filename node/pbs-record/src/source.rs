// SPDX-License-Identifier: GPL-2.0
//! Sources of inputs for a recorder: the kernel, or rings that a test makes.

use std::fmt::Debug;
use std::io;

use pbs_uapi::{Inputs, Ring, RingRead, SnapshotOf, StoredPlan};

/// Source of the inputs of all CPUs.
pub trait Source {
    /// The ring of a CPU.
    type Ring: InputRing;

    /// CPUs that may have a ring are those from 0 to one less than this.
    fn cpu_ids(&self) -> u32;

    /// The ring of a CPU; `None`: it has none yet, or there is no such CPU.
    fn ring(&self, cpu: u32) -> io::Result<Option<Self::Ring>>;

    /// The plan that is stored under a number, for one of its CPUs; `None`: it is not stored.
    fn kept_plan(&self, number: u64, cpu: u32) -> io::Result<Option<StoredPlan>>;

    /// Takes a snapshot of the policy of a CPU, for a replay that begins there.
    fn snapshot(&self, cpu: u32) -> io::Result<SnapshotOf>;
}

/// Ring of the inputs of one CPU.
pub trait InputRing: Debug {
    /// The CPU of the ring.
    fn cpu(&self) -> u32;

    /// The numbers of the oldest input and of the next one.
    fn bounds(&self) -> (u64, u64);

    /// Copies the input `number`.
    fn look(&self, number: u64) -> RingRead<pbs_uapi::Input>;
}

impl Source for Inputs {
    type Ring = Ring<pbs_uapi::Input>;

    fn cpu_ids(&self) -> u32 {
        Inputs::cpu_ids(self)
    }

    fn ring(&self, cpu: u32) -> io::Result<Option<Self::Ring>> {
        Inputs::ring(self, cpu)
    }

    fn kept_plan(&self, number: u64, cpu: u32) -> io::Result<Option<StoredPlan>> {
        Inputs::kept_plan(self, number, cpu)
    }

    fn snapshot(&self, cpu: u32) -> io::Result<SnapshotOf> {
        Inputs::snapshot(self, cpu)
    }
}

impl InputRing for Ring<pbs_uapi::Input> {
    fn cpu(&self) -> u32 {
        Ring::cpu(self)
    }

    fn bounds(&self) -> (u64, u64) {
        Ring::bounds(self)
    }

    fn look(&self, number: u64) -> RingRead<pbs_uapi::Input> {
        Ring::look(self, number)
    }
}
