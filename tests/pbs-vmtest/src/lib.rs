// SPDX-License-Identifier: GPL-2.0
//! Common parts of the tests and the measurements in the virtual machine.

pub mod counter;
pub mod harness;
pub mod sched_attr;
pub mod shared;
