// SPDX-License-Identifier: GPL-2.0

//! The interfaces that user space opens: the devices, sysfs, debugfs and SysRq keys.

pub(crate) mod device;
pub(crate) mod inputs;
pub(crate) mod operator;
pub(crate) mod sysfs;
