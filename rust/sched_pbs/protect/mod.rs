// SPDX-License-Identifier: GPL-2.0

//! Protection of a CPU: a plan that goes wrong is dropped. Tests make faults to try that.

mod dropping;
pub(crate) mod fault;
mod lease;
pub(crate) mod watchdog;
