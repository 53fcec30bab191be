// SPDX-License-Identifier: GPL-2.0
//! Slurm's own functions, which are found in the daemon that loads the plugin; and its
//! numbers, as the spank.h of 22.05 has them.

use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr;

/// Slurm's data of a plugin, whose content only Slurm knows.
#[repr(C)]
#[derive(Debug)]
pub struct Plugin {
    _unknown: [u8; 0],
}

// enum spank_context: in slurmstepd.
const S_CTX_REMOTE: c_int = 2;

// enum spank_item, with what spank_get_item() has as its last argument.
/// `uid_t *`
const S_JOB_UID: c_int = 0;
/// `uint32_t *`
const S_JOB_ID: c_int = 2;
/// `uint32_t *`
const S_JOB_STEPID: c_int = 3;
/// `char **`
const S_JOB_ALLOC_CORES: c_int = 25;
/// `uint64_t *`
const S_JOB_ALLOC_MEM: c_int = 26;

const ESPANK_SUCCESS: c_int = 0;

#[allow(unsafe_code)]
extern "C" {
    fn spank_context() -> c_int;
    fn spank_get_item(spank: *mut Plugin, item: c_int, ...) -> c_int;
    fn slurm_verbose(format: *const c_char, ...);
    fn slurm_error(format: *const c_char, ...);
}

/// Slurm's information about a step, during a call of a hook.
pub(crate) struct Spank(*mut Plugin);

#[allow(unsafe_code)]
impl Spank {
    /// # Safety
    ///
    /// It is what Slurm has given to a hook, which has not returned as long as this is used.
    pub(crate) unsafe fn new(spank: *mut Plugin) -> Self {
        Self(spank)
    }

    /// Whether this is `slurmstepd`: hooks are called in `srun` and `sbatch`, too, as the
    /// user.
    pub(crate) fn is_in_stepd(&self) -> bool {
        // SAFETY: it only answers.
        unsafe { spank_context() == S_CTX_REMOTE }
    }

    pub(crate) fn uid(&self) -> Option<u32> {
        self.number(S_JOB_UID)
    }

    pub(crate) fn job(&self) -> Option<u32> {
        self.number(S_JOB_ID)
    }

    pub(crate) fn step(&self) -> Option<u32> {
        self.number(S_JOB_STEPID)
    }

    /// An item that is a `uint32_t`, as `uid_t` is.
    fn number(&self, item: c_int) -> Option<u32> {
        let mut number = 0u32;
        // SAFETY: the handle is Slurm's (`new`); of those items the argument is a pointer to
        // 32 bits, which are valid for writing.
        let got = unsafe { spank_get_item(self.0, item, &raw mut number) };
        (got == ESPANK_SUCCESS).then_some(number)
    }

    /// The memory of the job on this node, of which Slurm says 0 where it has no limit.
    pub(crate) fn memory_mib(&self) -> Option<u64> {
        let mut mib = 0u64;
        // SAFETY: as in `number`; of this item it is a pointer to 64 bits.
        let got = unsafe { spank_get_item(self.0, S_JOB_ALLOC_MEM, &raw mut mib) };
        (got == ESPANK_SUCCESS && mib > 0).then_some(mib)
    }

    /// The cores of the job on this node, such as `0-3,8`.
    pub(crate) fn cores(&self) -> Option<String> {
        let mut cores: *const c_char = ptr::null();
        // SAFETY: as in `number`; of this item it is a pointer to a pointer.
        let got = unsafe { spank_get_item(self.0, S_JOB_ALLOC_CORES, &raw mut cores) };
        if got != ESPANK_SUCCESS || cores.is_null() {
            return None;
        }
        // SAFETY: it is not null, so Slurm has made it point to a string of its own, which it
        // keeps at least until the hook returns.
        let cores = unsafe { CStr::from_ptr(cores) };
        // A list of cores is ASCII; another text is none.
        cores.to_str().ok().map(str::to_string)
    }
}

/// A line in Slurm's log, if that is to have much.
#[allow(unsafe_code)]
pub(crate) fn verbose(text: &str) {
    let text = line(text);
    // SAFETY: both are C strings, and the format takes one.
    unsafe { slurm_verbose(c"%s".as_ptr(), text.as_ptr()) }
}

/// A line in Slurm's log, in any case.
#[allow(unsafe_code)]
pub(crate) fn error(text: &str) {
    let text = line(text);
    // SAFETY: as above.
    unsafe { slurm_error(c"%s".as_ptr(), text.as_ptr()) }
}

/// One line, whatever is in it.
fn line(text: &str) -> CString {
    const MOST_CHARS: usize = 400;
    let shown = |c: char| if c.is_ascii_graphic() { c } else { ' ' };
    let text: String = text.chars().take(MOST_CHARS).map(shown).collect();
    // There is no zero byte in it.
    CString::new(text).unwrap_or_default()
}
