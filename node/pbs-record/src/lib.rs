// SPDX-License-Identifier: GPL-2.0
//! Recording and replay of all inputs of a node's policy.
//!
//! The policy decides by its inputs and by nothing else (`pbs_core`, `record.rs`). [`Recorder`]
//! reads the inputs from the kernel and [`Writer`] writes them to a file, which [`Recording`]
//! reads. [`Recording::replay`] feeds them to the same code once more. It reports whether the
//! results are equal, and the place of the first difference.
//!
//! A file can be replayed from the first plan that comes into force without taking over from
//! another. Earlier inputs of a CPU, and inputs after lost ones, are counted as skipped until there
//! is such a plan again.

mod beginning;
mod file;
mod recorder;
mod replay;
mod simulated;
mod source;
mod what_if;

pub use beginning::Beginning;
pub use file::{
    is_recording, Damage, Hole, InputPart, KeptPlan, ReadError, Recording, Stretch, Writer,
    FORMAT_VERSION,
};
pub use recorder::Recorder;
pub use replay::{CpuReplay, Difference, Emitted};
pub use simulated::write_simulated;
pub use source::{InputRing, Source};
pub use what_if::{CpuWhatIf, Parting, PartingCause};
