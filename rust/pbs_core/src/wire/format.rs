// SPDX-License-Identifier: GPL-2.0

//! Numbers of the wire format.

use super::super::config::Config;

/// `PBS_PLAN_MAGIC`
pub const MAGIC: u32 = 0x4e4c_5042;
/// `PBS_VERSION`: what is written.
pub const VERSION: u16 = 3;
/// The version before, without deadlines; still read.
pub const VERSION_2: u16 = 2;
/// The first version, without edges, memory and rates, and with a configuration
/// in instructions; still read.
pub const VERSION_1: u16 = 1;
/// `PBS_IDLE`: process of an idle slot.
pub const IDLE: u32 = u32::MAX;
/// `PBS_NO_TASK`
pub const NO_TASK: u32 = u32::MAX;
/// `PBS_NO_DEADLINE`
pub const NO_DEADLINE: u64 = u64::MAX;
/// `PBS_NO_SLOT`
pub const NO_SLOT: u64 = u64::MAX;
/// `PBS_MAX_SLOTS` of one CPU.
pub const MAX_SLOTS: u64 = 1 << 22;
/// `PBS_MAX_PROCESSES` of one CPU.
pub const MAX_PROCESSES: u32 = 1024;
/// `PBS_MAX_EDGES` of one CPU.
pub const MAX_EDGES: u64 = 1 << 22;
/// `PBS_MAX_SLOT_INSNS`
pub const MAX_SLOT_INSNS: u64 = 1 << 48;
/// `PBS_MAX_BUFFER_INSNS`
pub const MAX_BUFFER_INSNS: u64 = 1 << 56;
/// Range of the length of a lease, if there is one.
pub const LEASE_NS: core::ops::RangeInclusive<u64> = 100_000_000..=3_600_000_000_000;
/// The slots of a CPU together: leaves room for lateness in an `i64`.
pub const MAX_PLAN_INSNS: u64 = 1 << 62;

/// Size of `struct pbs_plan_header`.
pub const HEADER_BYTES: usize = 64;
/// Size of `struct pbs_config`.
pub const CONFIG_BYTES: usize = 8 * Config::COUNT;
/// Size of the shortest configuration of a plan, which ends with `dispatch`.  Numbers that a
/// plan leaves out at the end have their defaults.
pub const LEAST_CONFIG_BYTES: usize = 256;
/// Size of `struct pbs_plan_cpu`.
pub const CPU_BYTES: usize = 32;
/// Size of `struct pbs_plan_process`.
pub const PROCESS_BYTES: usize = 40;
/// Size of `struct pbs_plan_process` in versions 1 and 2, where it ends before the
/// deadline.
pub const PROCESS_BYTES_2: usize = 32;
/// Size of `struct pbs_plan_slot`.
pub const SLOT_BYTES: usize = 16;
/// Size of `struct pbs_plan_edge`.
pub const EDGE_BYTES: usize = 16;
/// Size of the planned arrival of an edge.
pub const ARRIVAL_BYTES: usize = 8;
/// `PBS_NO_ARRIVAL`: the edge is no message.
pub const NO_ARRIVAL: u64 = u64::MAX;
/// `PBS_PLAN_ARRIVALS`: flag of a plan whose edges have planned arrivals.
pub const PLAN_ARRIVALS: u64 = 1 << 0;
