// SPDX-License-Identifier: GPL-2.0

//! What a subsystem says of itself when it is asked, and when the kernel dies.

#[cfg(CONFIG_DEBUG_FS)]
pub mod debugfs;
pub mod panic;
#[cfg(CONFIG_MAGIC_SYSRQ)]
pub mod sysrq;
