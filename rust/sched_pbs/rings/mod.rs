// SPDX-License-Identifier: GPL-2.0

//! The rings that a CPU writes with its run queue locked and user space maps: its events, and the
//! inputs of its policy.

pub(crate) mod events;
pub(crate) mod inputs;
