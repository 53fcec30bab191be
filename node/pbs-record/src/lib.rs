// SPDX-License-Identifier: GPL-2.0
//! What the policy of a node was told, recorded, and told again.
//!
//! The policy decides by what it is told and by nothing else (`pbs_core`,
//! `record.rs`). [`Recorder`] takes that from the kernel and [`Writer`] puts it into a
//! file, which [`Recording`] reads; [`Recording::replay`] tells it all to the same code
//! once more and says whether the same comes of it, and where it does not.
//!
//! A file can be replayed from where a plan comes into force that takes over from
//! none. What comes before that on a CPU, or after inputs that are lost, is counted as
//! skipped, until there is such a plan again.

mod file;
mod recorder;
mod replay;
mod simulated;

pub use file::{
    Damage, Hole, InputPart, KeptPlan, ReadError, Recording, Stretch, Writer, FORMAT_VERSION,
};
pub use recorder::Recorder;
pub use replay::{CpuReplay, Difference, Emitted};
pub use simulated::write_simulated;
