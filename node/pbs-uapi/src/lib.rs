// SPDX-License-Identifier: GPL-2.0
//! The Rust side of `include/uapi/linux/pbs.h`.
//!
//! [`record`] mirrors the structures, [`kind`] the numbers, and [`Device`] is
//! `/dev/pbs_plan`; [`Rings`] are the events of it that are mapped. [`Inputs`] is `/dev/pbs_inputs`. The header is the one definition; a test compiles a C
//! program against it and compares sizes, offsets and constants.

pub mod clock;
mod device;
mod inputs;
mod ioctl;
pub mod kind;
pub mod record;
mod ring;
pub mod task;

pub use device::{Device, Refused, DEVICE_PATH};
pub use inputs::{Inputs, SnapshotOf, StoredPlan, TakenSnapshot, INPUTS_PATH};
pub use kind::{Cause, Drop, Eject, EventKind, Grant, ProcessState, Tier, TierCause, Wait};
pub use record::{Config, Event, Info, Input, Process};
pub use ring::{InRing, Ring, RingRead, Rings};

/// Version of the wire format.
pub const VERSION: u16 = 3;
/// Version of the rings of events.
pub const RING_VERSION: u16 = 1;
/// Version of the rings of inputs.
pub const INPUTS_VERSION: u16 = 1;
/// First word of a ring of inputs.
pub const INPUTS_MAGIC: u32 = 0x504e_4942;
/// Maximum number of plans that are stored for a recorder.
pub const MAX_KEPT_PLANS: u32 = 256;
/// Maximum number of words of a snapshot of a node.
pub const MAX_SNAPSHOT_WORDS: u32 = 1 << 17;
/// First word of a plan.
pub const PLAN_MAGIC: u32 = 0x4e4c_5042;
/// First word of a ring of events.
pub const RING_MAGIC: u32 = 0x474e_5242;
/// Process of an idle slot.
pub const IDLE: u32 = u32::MAX;
/// Task of an idle slot; also "whichever it is" and "that was the last".
pub const NO_TASK: u32 = u32::MAX;
/// Slot of an event that has none.
pub const NO_SLOT: u64 = u64::MAX;
/// Deadline of a process that has none.
pub const NO_DEADLINE: u64 = u64::MAX;
/// `PBS_NO_ARRIVAL`: the edge is no message.
pub const NO_ARRIVAL: u64 = u64::MAX;
/// `PBS_PLAN_ARRIVALS`: flag of a plan whose edges have planned arrivals.
pub const PLAN_ARRIVALS: u64 = 1 << 0;
/// Slots in the plan of one CPU.
pub const MAX_SLOTS: u32 = 1 << 22;
/// Edges in the plan of one CPU.
pub const MAX_EDGES: u32 = 1 << 22;
/// Processes in the plan of one CPU.
pub const MAX_PROCESSES: u32 = 1024;
/// Longest slot.
pub const MAX_SLOT_INSNS: u64 = 1 << 48;
/// Largest plan buffer of a process.
pub const MAX_BUFFER_INSNS: u64 = 1 << 56;

/// Flag of [`record::Attach`]: the thread's exit ends one task, not the process.
pub const ATTACH_ONE_TASK: u32 = 1 << 0;

/// Numbers of the `PBS_IOC_*` calls.
pub mod ioc {
    use crate::record;

    const MAGIC: u32 = 0xbc;
    const WRITE: u32 = 1;
    const READ: u32 = 2;

    // The generic encoding, which arm64, x86, RISC-V and most others share.
    const fn number(direction: u32, call: u32, bytes: usize) -> u32 {
        direction << 30 | (bytes as u32) << 16 | MAGIC << 8 | call
    }

    pub const INFO: u32 = number(READ, 0, size_of::<record::Info>());
    pub const ATTACH: u32 = number(WRITE, 1, size_of::<record::Attach>());
    pub const TASK_END: u32 = number(READ | WRITE, 2, size_of::<record::TaskEnd>());
    pub const DETACH: u32 = number(WRITE, 3, size_of::<i32>());
    pub const DROP: u32 = number(WRITE, 4, size_of::<u32>());
    pub const SEEK: u32 = number(WRITE, 5, size_of::<u64>());
    pub const ERROR: u32 = number(READ, 6, size_of::<record::Error>());
    pub const GET_PLAN: u32 = number(READ | WRITE, 7, size_of::<record::GetPlan>());
    /// `PBS_IOC_RENEW`
    pub const RENEW: u32 = number(WRITE, 8, size_of::<u32>());
    pub const GET_PROCESS: u32 = number(READ | WRITE, 9, size_of::<record::Process>());
    /// `PBS_IOC_CONFIGURE`
    pub const CONFIGURE: u32 = number(WRITE, 10, size_of::<record::Configure>());
    /// `PBS_IOC_INPUTS_INFO`, of `/dev/pbs_inputs`
    pub const INPUTS_INFO: u32 = number(READ, 16, size_of::<record::InputsInfo>());
    pub const KEPT_PLAN: u32 = number(READ | WRITE, 17, size_of::<record::KeptPlan>());
    pub const SNAPSHOT: u32 = number(READ | WRITE, 18, size_of::<record::Snapshot>());
}
