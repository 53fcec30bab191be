// SPDX-License-Identifier: GPL-2.0

//! What gives a CPU back to the rest of Linux whose plan goes wrong, and faults made to test that.

mod dropping;
pub(crate) mod fault;
mod lease;
pub(crate) mod watchdog;
