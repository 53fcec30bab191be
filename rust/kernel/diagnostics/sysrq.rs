// SPDX-License-Identifier: GPL-2.0

//! SysRq keys: what an operator can have the kernel do when little else works.
//!
//! C header: [`include/linux/sysrq.h`](srctree/include/linux/sysrq.h)

use crate::{
    bindings,
    error::{to_result, Result},
    str::CStr,
};

/// A key, and what it does.
#[repr(transparent)]
pub struct Key(bindings::sysrq_key_op);

// SAFETY: Nothing in it changes, and its texts are immutable and live for ever.
unsafe impl Sync for Key {}

impl Key {
    /// `handler` is called with the key, mostly in hard interrupt context: it must not sleep, and
    /// may find any lock taken by whom it has interrupted that is taken with interrupts on.
    ///
    /// `help` is the line in the list of keys, `action` what is logged before the handler is
    /// called. The sysctl `kernel.sysrq` says whether a key may be used; these are among those that
    /// have to do with priorities of tasks.
    pub const fn new(
        help: &'static CStr,
        action: &'static CStr,
        handler: extern "C" fn(u8),
    ) -> Self {
        Self(bindings::sysrq_key_op {
            handler: Some(handler),
            help_msg: help.as_char_ptr(),
            action_msg: action.as_char_ptr(),
            enable_mask: bindings::SYSRQ_ENABLE_RTNICE as _,
        })
    }

    /// Registers the key for ever. Fails with `EBUSY` if it is taken.
    pub fn register(&'static self, key: u8) -> Result {
        // SAFETY: The table lives for ever.
        match unsafe { bindings::register_sysrq_key(key, &self.0) } {
            0 => Ok(()),
            _ => to_result(-(bindings::EBUSY as i32)),
        }
    }
}
