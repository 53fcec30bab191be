// SPDX-License-Identifier: GPL-2.0
//! Errors as numbers and words, and the guard around each function.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

use pbs_runtime::Error;

/// A failure: its number, and what is said of it.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) c_int, pub(crate) String);

pub(crate) const EINVAL: c_int = -1;
pub(crate) const EUNAVAILABLE: c_int = -9;
const EPANIC: c_int = -10;

/// Names of the errors, by number from 0 down.
const NAMES: [&CStr; 13] = [
    c"success",
    c"an argument can't be",
    c"tasks wait for each other",
    c"something of the graph can't be",
    c"something of the options can't be",
    c"a task fits no device",
    c"variants have never run",
    c"a task has failed",
    c"a device has failed",
    c"there is no such device, or no shared memory",
    c"a mistake in the library",
    c"the graph was written to a file, and not run",
    c"the process of the plan can't be used",
];

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let number = match &error {
            Error::Cycle(_) => -2,
            Error::Graph(_) => -3,
            Error::Options(_) => -4,
            Error::NothingFits(_) => -5,
            Error::Unprofiled(_) => -6,
            Error::Failed { .. } => -7,
            Error::Device { .. } => -8,
            Error::Announced(_) => -11,
            Error::Plan(_) => -12,
            _ => EINVAL,
        };
        Self(number, error.to_string())
    }
}

pub(crate) fn invalid(why: impl Into<String>) -> Failure {
    Failure(EINVAL, why.into())
}

/// Returns the failure of a call that has panicked.
pub(crate) fn panicked() -> Failure {
    Failure(EPANIC, "a mistake in the library".into())
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

pub(crate) fn remember(text: String) {
    // The zeros were replaced, therefore this succeeds.
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    // Only at the end of a thread there is none.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    let done = catch_unwind(AssertUnwindSafe(call));
    let done = done.unwrap_or_else(|_| Err(panicked()));
    done.map_err(|Failure(number, text)| {
        remember(text);
        number
    })
}

/// Calls it; the answer is its number, or that of the failure.
pub(crate) fn number(call: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    guarded(call).unwrap_or_else(|number| number)
}

/// Calls it; the answer is a new handle, or null.
pub(crate) fn handle<T>(call: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    guarded(call).map_or_else(|_| null_mut(), |made| Box::into_raw(Box::new(made)))
}

/// Frees a handle.
///
/// # Safety
///
/// It is null, or of [`handle`] and not freed.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: as the caller has said.
        let own = unsafe { Box::from_raw(handle) };
        number(|| {
            drop(own);
            Ok(0)
        });
    }
}

/// Returns the object of a handle.
///
/// # Safety
///
/// The handle is null, or valid and not changed meanwhile.
pub(crate) unsafe fn shared<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: as the caller has said.
    unsafe { handle.as_ref() }.ok_or_else(|| invalid("a handle is NULL"))
}

/// Returns the object of a handle, to change it.
///
/// # Safety
///
/// The handle is null, or valid and not used by others meanwhile.
pub(crate) unsafe fn exclusive<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller has said.
    unsafe { handle.as_mut() }.ok_or_else(|| invalid("a handle is NULL"))
}

/// A text; nothing if it is null.
///
/// # Safety
///
/// It is null, or ends with a zero.
pub(crate) unsafe fn text(text: *const c_char) -> Result<Option<String>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller has said.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(|text| Some(text.to_string())).map_err(|_| invalid("a text is not UTF-8"))
}

/// Reads a text that must not be null.
///
/// # Safety
///
/// As for [`text`].
pub(crate) unsafe fn needed(own: *const c_char) -> Result<String, Failure> {
    // SAFETY: as the caller has said.
    unsafe { text(own) }?.ok_or_else(|| invalid("a text is NULL"))
}

/// Returns the name of an error.
#[unsafe(no_mangle)]
pub extern "C" fn pbs_rt_strerror(error: c_int) -> *const c_char {
    let name = usize::try_from(error.unsigned_abs()).ok();
    let name = name.filter(|_| error <= 0).and_then(|index| NAMES.get(index));
    name.map_or(c"no error of this library", |name| name).as_ptr()
}

/// The last failure in this thread, until the next.
#[unsafe(no_mangle)]
pub extern "C" fn pbs_rt_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
