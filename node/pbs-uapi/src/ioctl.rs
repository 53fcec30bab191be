// SPDX-License-Identifier: GPL-2.0
//! The calls of both devices.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::record::Record;

/// Makes the call `number`, one of [`ioc`](crate::ioc), whose argument is a `T`.
#[allow(unsafe_code)]
pub(crate) fn ioctl<T: Record>(file: &File, number: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: the number carries the size of `T`, to which `argument` points exclusively;
    // what the kernel writes there is a value of `T`. The buffers of GET_PLAN, KEPT_PLAN
    // and CONFIGURE are live, and of the length given.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), number as _, std::ptr::from_mut(argument)) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
