// SPDX-License-Identifier: GPL-2.0

//! Static branches: code that is switched on and off by rewriting it.
//!
//! C header: [`include/linux/jump_label.h`](srctree/include/linux/jump_label.h)

/// Whether a static key that is off most of the time is on.
///
/// Where the kernel has jump labels this is a `nop`, which the kernel replaces by a jump while the
/// key is on: code behind a key that is off costs one instruction and no memory access.
/// Without them, or with a compiler that knows no `label` in `asm!`, the key is read.
///
/// The key is a field of a `static`, of type `static_key` or one that consists of one: its path,
/// the type of the `static`, and the field.
///
/// # Safety
///
/// To name a C `static` is unsafe. It must be defined and be a valid key for as long as the kernel
/// runs.
///
/// # Examples
///
/// ```ignore
/// // SAFETY: The tracepoint is defined in `kernel/sched/core.c`.
/// if unsafe {
///     kernel::static_branch_unlikely!(
///         kernel::bindings::__tracepoint_sched_switch,
///         kernel::bindings::tracepoint,
///         key
///     )
/// } {
///     pr_info!("somebody traces\n");
/// }
/// ```
#[macro_export]
macro_rules! static_branch_unlikely {
    ($path:path, $type:ty, $field:ident) => {{
        // The type is that of the `static`, and the field is a key.
        const OFFSET_BYTES: usize = {
            const fn is_key<T, K: $crate::jump_label::Key>(_: fn(*const T) -> *const K) {}
            is_key::<$type, _>(|base| {
                // SAFETY: The pointer is to the `static`; the place is not read.
                unsafe { ::core::ptr::addr_of!((*base).$field) }
            });
            ::core::mem::offset_of!($type, $field)
        };
        let _: *const $type = ::core::ptr::addr_of!($path);
        $crate::__static_branch_unlikely!($path, OFFSET_BYTES)
    }};
}

/// A C structure that begins with the count of a static key.
///
/// # Safety
///
/// The type is as said.
#[doc(hidden)]
pub unsafe trait Key {}

// SAFETY: `enabled` is its first field.
unsafe impl Key for crate::bindings::static_key {}
// SAFETY: It consists of a `static_key`.
unsafe impl Key for crate::bindings::static_key_false {}

/// A `nop` as long as a jump, and its entry in the table of jumps: where it is, where it jumps to
/// while the key is on, and the key with its lowest bit unset, as the branch is not taken at first.
#[doc(hidden)]
#[macro_export]
macro_rules! __static_branch_jump {
    ($path:path, $offset_bytes:expr, $nop:literal, $($syntax:ident)?) => {
        'branch: {
            ::core::arch::asm!(
                $nop,
                ".pushsection __jump_table, \"aw\"",
                ".balign 8",
                ".long 2b - ., {on} - .",
                ".quad {key} + {offset} - .",
                ".popsection",
                key = sym $path,
                offset = const $offset_bytes,
                on = label { break 'branch true },
                options($($syntax,)? nostack, preserves_flags),
            );
            false
        }
    };
}

/// On arm64 all instructions are of one length.
#[doc(hidden)]
#[macro_export]
#[cfg(all(CONFIG_JUMP_LABEL, CONFIG_RUSTC_HAS_ASM_LABEL, CONFIG_ARM64))]
macro_rules! __static_branch_unlikely {
    ($path:path, $offset_bytes:expr) => {
        $crate::__static_branch_jump!($path, $offset_bytes, "2: nop",)
    };
}

/// On x86-64 the jump has five bytes.
#[doc(hidden)]
#[macro_export]
#[cfg(all(CONFIG_JUMP_LABEL, CONFIG_RUSTC_HAS_ASM_LABEL, CONFIG_X86_64))]
macro_rules! __static_branch_unlikely {
    ($path:path, $offset_bytes:expr) => {
        $crate::__static_branch_jump!(
            $path,
            $offset_bytes,
            "2: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
            att_syntax
        )
    };
}

/// Elsewhere the key is read.
#[doc(hidden)]
#[macro_export]
#[cfg(not(all(
    CONFIG_JUMP_LABEL,
    CONFIG_RUSTC_HAS_ASM_LABEL,
    any(CONFIG_ARM64, CONFIG_X86_64)
)))]
macro_rules! __static_branch_unlikely {
    ($path:path, $offset_bytes:expr) => {
        // The count is negative while the key is being switched on.
        ::core::ptr::addr_of!($path)
            .cast::<i32>()
            .byte_add($offset_bytes)
            .read_volatile()
            != 0
    };
}
