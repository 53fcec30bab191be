// SPDX-License-Identifier: GPL-2.0

//! Plans are installed, dropped and read back; CPUs come and go.

pub(crate) mod calibrate;
pub(crate) mod change;
pub(crate) mod control;
pub(crate) mod fronts;
pub(crate) mod hotplug;
pub(crate) mod kept;
pub(crate) mod read_back;
pub(crate) mod recorder;
pub(crate) mod snapshot;
pub(crate) mod usage;
pub(crate) mod works;
