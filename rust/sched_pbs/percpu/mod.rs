// SPDX-License-Identifier: GPL-2.0

//! What there is of each CPU, and how a decision of the policy becomes scheduling.

pub(crate) mod cpu;
pub(crate) mod events;
pub(crate) mod insn_clock;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod threads;
