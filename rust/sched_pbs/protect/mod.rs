// SPDX-License-Identifier: GPL-2.0

//! What gives a CPU back to the rest of Linux whose plan goes wrong, and faults made to test that.

pub(crate) mod fault;
pub(crate) mod watchdog;
