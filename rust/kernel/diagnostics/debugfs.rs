// SPDX-License-Identifier: GPL-2.0

//! Files of text in debugfs.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h)
//! C header: [`include/linux/seq_file.h`](srctree/include/linux/seq_file.h)
//!
//! # Examples
//!
//! ```
//! use core::fmt::{self, Write};
//! use kernel::{c_str, diagnostics::debugfs::{TextFile, Text}};
//!
//! struct Lamp;
//!
//! impl Text for Lamp {
//!     fn write(out: &mut impl Write) -> fmt::Result {
//!         writeln!(out, "60 W")
//!     }
//! }
//!
//! let file = TextFile::<Lamp>::new(c_str!("lamp"))?;
//! # Ok::<(), Error>(())
//! ```

use crate::{
    bindings,
    error::{from_err_ptr, Result},
    ffi::{c_int, c_void},
    str::CStr,
};
use core::{
    fmt::{self, Write},
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

/// Content of a file.
pub trait Text {
    /// Writes it. Called for each reader, in process context, and once more with more room if there
    /// was too little.
    fn write(out: &mut impl Write) -> fmt::Result;
}

/// A file that root may read. Dropping it removes it.
///
/// # Invariants
///
/// `entry` is what debugfs has made.
pub struct TextFile<T: Text> {
    entry: NonNull<bindings::dentry>,
    _text: PhantomData<fn() -> T>,
}

// SAFETY: debugfs has locks of its own, and the text is that of no object.
unsafe impl<T: Text> Send for TextFile<T> {}

// SAFETY: As above.
unsafe impl<T: Text> Sync for TextFile<T> {}

impl<T: Text> TextFile<T> {
    const OPERATIONS: bindings::file_operations = bindings::file_operations {
        open: Some(Self::open),
        read: Some(bindings::seq_read),
        llseek: Some(bindings::seq_lseek),
        release: Some(bindings::single_release),
        // SAFETY: All fields are integers, pointers and optional functions, so zero is valid.
        ..unsafe { MaybeUninit::zeroed().assume_init() }
    };

    /// Makes the file in the root of debugfs. Sleeps.
    pub fn new(name: &CStr) -> Result<Self> {
        // SAFETY: The name is copied; the table lives for ever.
        let entry = from_err_ptr(unsafe {
            bindings::debugfs_create_file(
                name.as_char_ptr(),
                0o400,
                ptr::null_mut(),
                ptr::null_mut(),
                &Self::OPERATIONS,
            )
        })?;
        // INVARIANT: It was just made.
        Ok(Self {
            entry: NonNull::new(entry).ok_or(crate::error::code::ENOMEM)?,
            _text: PhantomData,
        })
    }

    /// # Safety
    ///
    /// C code must call this to open the file.
    unsafe extern "C" fn open(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: `file` is being opened.
        unsafe { bindings::single_open(file, Some(Self::show), ptr::null_mut()) }
    }

    /// # Safety
    ///
    /// C code must call this for a file that `open` has opened.
    unsafe extern "C" fn show(file: *mut bindings::seq_file, _: *mut c_void) -> c_int {
        // What does not fit is written again to a larger buffer, which C code sees to.
        let _ = T::write(&mut Buffer(file));
        0
    }
}

impl<T: Text> Drop for TextFile<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody uses it any more. It waits for readers.
        unsafe { bindings::debugfs_remove(self.entry.as_ptr()) };
    }
}

/// The buffer of a `seq_file` that is being shown.
struct Buffer(*mut bindings::seq_file);

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: The file is valid while it is shown, and nobody else writes to its buffer.
        let full = unsafe { bindings::seq_write(self.0, text.as_ptr().cast(), text.len()) } != 0;
        if full {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}
