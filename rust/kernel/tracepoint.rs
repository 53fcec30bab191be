// SPDX-License-Identifier: GPL-2.0

//! Tracepoints that are declared and defined in C, for Rust to go through.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)
//!
//! The fields, the text and the assignment of a tracepoint are C, in a header of
//! `include/trace/events/` as for every other one, so that `perf`, `trace-cmd` and BPF know
//! nothing of Rust. `include/trace/rust_trace.h` makes the functions that are called here.

/// Declares functions that go through tracepoints.
///
/// For a tracepoint `foo` there are `foo()`, with the arguments that the tracepoint has, and
/// `foo_enabled()`, for arguments that take work to gather: as in C, and as cheap, see
/// [`static_branch_unlikely`](crate::static_branch_unlikely). Arguments are integers, or references
/// where the tracepoint takes `const` pointers.
///
/// In every context but NMI, with RCU watching.
///
/// # Examples
///
/// ```ignore
/// kernel::declare_trace! {
///     /// A request was queued.
///     fn foo_queue(sector: u64, bytes: u32);
///     /// A request was done.
///     fn foo_done(request: &bindings::foo_request);
/// }
///
/// foo_queue(request.sector, request.bytes);
/// if foo_done_enabled() {
///     foo_done(&summary_of(request));
/// }
/// ```
#[macro_export]
macro_rules! declare_trace {
    ($($(#[$attr:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {$(
        $crate::macros::paste! {
            #[doc = concat!("Whether anybody listens to `", stringify!($name), "`.")]
            #[inline(always)]
            #[allow(dead_code)]
            $vis fn [<$name _enabled>]() -> bool {
                #[cfg(CONFIG_TRACEPOINTS)]
                // SAFETY: The tracepoint is defined where the function is that is called below,
                // in what is built in.
                return unsafe {
                    $crate::static_branch_unlikely!(
                        $crate::bindings::[<__tracepoint_ $name>],
                        $crate::bindings::tracepoint,
                        key
                    )
                };
                #[cfg(not(CONFIG_TRACEPOINTS))]
                false
            }

            $(#[$attr])*
            #[inline(always)]
            // It has as many as the tracepoint.
            #[allow(clippy::too_many_arguments)]
            $vis fn $name($($arg: $type),*) {
                #[cfg(CONFIG_TRACEPOINTS)]
                #[cold]
                #[inline(never)]
                #[allow(clippy::too_many_arguments)]
                fn call($($arg: $type),*) {
                    // SAFETY: The arguments are integers, or valid pointers for the length of the
                    // call to what is not written, as `Argument` says.
                    unsafe {
                        $crate::bindings::[<rust_do_trace_ $name>](
                            $($crate::tracepoint::Argument::to_c($arg)),*
                        )
                    }
                }
                #[cfg(CONFIG_TRACEPOINTS)]
                if [<$name _enabled>]() {
                    call($($arg),*);
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                let _ = ($($arg,)*);
            }
        }
    )*};
}

/// Type of an argument of a tracepoint.
///
/// # Safety
///
/// The result of `to_c` is a valid argument for C: an integer, or a pointer that is valid for reads
/// as long as the value exists.
#[doc(hidden)]
pub unsafe trait Argument {
    /// The type in C.
    type C;

    /// The argument in C.
    fn to_c(self) -> Self::C;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        // SAFETY: An integer.
        unsafe impl Argument for $type {
            type C = $type;

            fn to_c(self) -> $type {
                self
            }
        }
    )*};
}

integers!(bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize);

// SAFETY: A reference is valid for reads.
unsafe impl<T> Argument for &T {
    type C = *const T;

    fn to_c(self) -> *const T {
        self
    }
}
