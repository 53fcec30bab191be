// SPDX-License-Identifier: GPL-2.0

//! The engine of a CPU: from an interrupt, or a call of the core scheduler, to the thread that runs
//! next.

pub(crate) mod arm;
pub(crate) mod charge;
pub(crate) mod choose;
pub(crate) mod class;
pub(crate) mod emitter;
pub(crate) mod interrupts;
pub(crate) mod lock;
pub(crate) mod members;
pub(crate) mod running;
pub(crate) mod settle;
pub(crate) mod stop;
pub(crate) mod tell;
pub(crate) mod turns;
