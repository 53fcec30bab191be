// SPDX-License-Identifier: GPL-2.0

//! Capabilities of the current task.
//!
//! C header: [`include/linux/capability.h`](srctree/include/linux/capability.h)

use crate::bindings;

/// A capability, see `capabilities(7)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Capability {
    /// Administration of the system.
    SysAdmin = bindings::CAP_SYS_ADMIN,
    /// Priorities, scheduling policies and affinities of all tasks.
    SysNice = bindings::CAP_SYS_NICE,
}

/// Returns whether the current task has a capability in the initial user namespace.
///
/// If so, the task is marked as having used it. Not for interrupt context.
///
/// # Examples
///
/// ```
/// use kernel::capability::{capable, Capability};
///
/// fn may_schedule() -> Result {
///     if capable(Capability::SysNice) { Ok(()) } else { Err(EPERM) }
/// }
/// ```
pub fn capable(capability: Capability) -> bool {
    // SAFETY: All values of the enum are valid capabilities.
    unsafe { bindings::capable(capability as _) }
}
