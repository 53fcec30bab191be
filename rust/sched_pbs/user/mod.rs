// SPDX-License-Identifier: GPL-2.0

//! What user space opens: the devices, sysfs, and what an operator has at hand.

pub(crate) mod device;
pub(crate) mod inputs;
pub(crate) mod operator;
pub(crate) mod sysfs;
