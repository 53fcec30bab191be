// SPDX-License-Identifier: GPL-2.0

//! Information about a subsystem, on request and when the kernel dies.

#[cfg(CONFIG_DEBUG_FS)]
pub mod debugfs;
pub mod panic;
#[cfg(CONFIG_MAGIC_SYSRQ)]
pub mod sysrq;
