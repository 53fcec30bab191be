// SPDX-License-Identifier: GPL-2.0
//! What the tests in the virtual machine share with what is measured there.

pub mod counter;
pub mod harness;
pub mod sched_attr;
pub mod shared;
