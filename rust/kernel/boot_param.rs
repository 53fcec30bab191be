// SPDX-License-Identifier: GPL-2.0

//! Parameters of the kernel's command line, for code that is part of the kernel image.
//!
//! C header: [`include/linux/init.h`](srctree/include/linux/init.h)

use crate::{
    ffi::{c_char, c_int},
    str::CStr,
};

/// An entry of the table of parameters: `struct obs_kernel_param`, which the header gives to code
/// of the image only, and so not to `bindgen`.
#[repr(C)]
pub struct Entry {
    name: *const c_char,
    setup: unsafe extern "C" fn(*mut c_char) -> c_int,
    early: c_int,
}

// SAFETY: The entry is never written, and points to a static string and a function.
unsafe impl Sync for Entry {}

impl Entry {
    /// Makes the entry of [`boot_param!`](crate::boot_param).
    #[doc(hidden)]
    pub const fn new(
        name: &'static CStr,
        setup: unsafe extern "C" fn(*mut c_char) -> c_int,
    ) -> Self {
        Self {
            name: name.as_char_ptr(),
            setup,
            early: 0,
        }
    }
}

/// Registers a function to be called at boot, before the initcalls, if the command line has a
/// parameter.
///
/// The name ends with `=`. The function receives the text after it, and returns whether it accepted
/// the text. If it did not, the kernel reports that on the console. Invoke the macro once a module,
/// outside of functions.
///
/// # Examples
///
/// ```ignore
/// fn set_lamps(text: &CStr) -> bool {
///     text.as_bytes() == b"on"
/// }
///
/// kernel::boot_param!("lamps=", set_lamps);
/// ```
#[macro_export]
macro_rules! boot_param {
    ($name:literal, $function:ident) => {
        mod __boot_param {
            /// # Safety
            ///
            /// `text` is a C string that is valid during the call.
            unsafe extern "C" fn setup(text: *mut $crate::ffi::c_char) -> $crate::ffi::c_int {
                // SAFETY: By the function's requirements.
                let text = unsafe { $crate::str::CStr::from_char_ptr(text) };
                // For any life of the text: the function can't keep it.
                let function: fn(&$crate::str::CStr) -> bool = super::$function;
                function(text).into()
            }

            #[link_section = ".init.setup"]
            #[used(compiler)]
            static ENTRY: $crate::boot_param::Entry =
                $crate::boot_param::Entry::new($crate::c_str!($name), setup);
        }
    };
}
pub use boot_param;
