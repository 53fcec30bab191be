// SPDX-License-Identifier: GPL-2.0
//! Files that a child opens, and strings for its system calls.

use std::ffi::{CString, OsStr};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

/// A file that is opened by the child.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) path: CString,
    pub(crate) flags: i32,
    pub(crate) fd: RawFd,
}

/// Words of plans and of the environment hold no NUL; the part before it would
/// do.
pub(crate) fn c_string(text: &OsStr) -> CString {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0);
    // Nothing behind the first zero is left.
    CString::new(&bytes[..end.unwrap_or(bytes.len())]).unwrap_or_default()
}
