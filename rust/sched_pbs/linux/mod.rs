// SPDX-License-Identifier: GPL-2.0

//! The parts of Linux that the class uses: the core scheduler's interface, the fields of the class
//! in Linux's structures, memory, tracepoints, records for user space.

pub(crate) mod entity;
pub(crate) mod published;
pub(crate) mod sched_class;
pub(crate) mod storage;
pub(crate) mod table;
pub(crate) mod trace;
pub(crate) mod wire;
