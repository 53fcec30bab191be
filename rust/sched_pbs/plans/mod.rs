// SPDX-License-Identifier: GPL-2.0

//! Plans are installed, dropped and read back; CPUs come and go.

pub(crate) mod calibrate;
pub(crate) mod change;
pub(crate) mod fronts;
pub(crate) mod global;
pub(crate) mod usage;
