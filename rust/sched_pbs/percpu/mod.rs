// SPDX-License-Identifier: GPL-2.0

//! What there is of each CPU.

pub(crate) mod cpu;
pub(crate) mod events;
