// SPDX-License-Identifier: GPL-2.0

//! Functions that are called while the kernel boots.
//!
//! C header: [`include/linux/init.h`](srctree/include/linux/init.h)

/// Registers a function to be called at boot, after subsystems and drivers are set up.
///
/// The function takes no arguments and returns a [`Result`](crate::error::Result). Invoke the macro
/// only in code that is part of the kernel image, once a module, outside of functions.
///
/// # Examples
///
/// ```ignore
/// fn init() -> Result {
///     pr_info!("everything is there\n");
///     Ok(())
/// }
///
/// kernel::late_initcall!(init);
/// ```
#[macro_export]
macro_rules! late_initcall {
    ($function:ident) => {
        // Inline assembly for a section must stand in a module.
        mod __late_initcall {
            extern "C" fn call() -> $crate::ffi::c_int {
                let result: $crate::error::Result = super::$function();
                match result {
                    Ok(()) => 0,
                    Err(error) => error.to_errno(),
                }
            }

            // The entries of the section are offsets on the architectures that have these
            // relocations, and pointers on the others.
            #[cfg(CONFIG_HAVE_ARCH_PREL32_RELOCATIONS)]
            ::core::arch::global_asm!(
                ".section \".initcall7.init\", \"a\"",
                ".balign 4",
                ".long {} - .",
                ".previous",
                sym call,
            );

            #[cfg(not(CONFIG_HAVE_ARCH_PREL32_RELOCATIONS))]
            #[link_section = ".initcall7.init"]
            #[used(compiler)]
            static ENTRY: extern "C" fn() -> $crate::ffi::c_int = call;
        }
    };
}
pub use late_initcall;
