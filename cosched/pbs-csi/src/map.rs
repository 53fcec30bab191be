// SPDX-License-Identifier: GPL-2.0
#![allow(unsafe_code)] // mmap, and a signal handler: nothing safe does either.
//! The one page that is mapped: the generation, which is loaded before every task.
//!
//! All else is read and written with `pread` and `pwrite`, which answer with an error
//! where the file has become shorter. Of the mapped page the kernel can only tell with
//! `SIGBUS`, and somebody of the group may make the file shorter at any time. So there is
//! a handler that puts a page of zeros in its place, and leaves every other `SIGBUS` to
//! whoever had it before. Zero is no generation, so the next check takes the long way,
//! where the length of the file is found wrong.

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::mem::{zeroed, MaybeUninit};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::layout::GENERATION_AT;

/// Length of the mapping in bytes: at most the page size of any architecture.
const MAPPED_BYTES: usize = 4096;
/// Maximum number of files that are open at once in a process.
const MAPS: usize = 256;

/// Addresses of the pages for which the handler is responsible; 0: none.
static PAGES: [AtomicUsize; MAPS] = [const { AtomicUsize::new(0) }; MAPS];
/// Whether the handler has replaced each page.
static LOST: [AtomicBool; MAPS] = [const { AtomicBool::new(false) }; MAPS];
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Previous handler of the signal.
struct Before {
    is_set: AtomicBool,
    action: UnsafeCell<MaybeUninit<libc::sigaction>>,
}

// SAFETY: written once, before `is_set` becomes true, and only read after that.
unsafe impl Sync for Before {}

static BEFORE: Before =
    Before { is_set: AtomicBool::new(false), action: UnsafeCell::new(MaybeUninit::uninit()) };

/// The mapped page.
#[derive(Debug)]
pub(crate) struct Page {
    start: usize,
    slot: usize,
}

impl Page {
    /// Maps the first page of the file.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        install()?;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                MAPPED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start as usize;
        for (slot, page) in PAGES.iter().enumerate() {
            let taken = page.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_ok() {
                return Ok(Self { start, slot });
            }
        }
        // SAFETY: mapped above, and nobody knows of it.
        unsafe { libc::munmap(start as *mut libc::c_void, MAPPED_BYTES) };
        Err(io::Error::other("too many files of this kind are open"))
    }

    /// Whether it is not that of the file any more, as that was made shorter: what others
    /// store there is not seen here, even if the file has its length again.
    pub(crate) fn is_lost(&self) -> bool {
        LOST[self.slot].load(Ordering::Acquire)
    }

    /// The generation. All that others may write there is a number.
    pub(crate) fn generation(&self) -> &AtomicU64 {
        // SAFETY: in the page, which lives as long as `self`, and aligned as the page is.
        // Others write it too, but as it is only used as an atomic no value is invalid.
        unsafe { AtomicU64::from_ptr((self.start + GENERATION_AT) as *mut u64) }
    }
}

const _: () = assert!(GENERATION_AT.is_multiple_of(8) && GENERATION_AT + 8 <= MAPPED_BYTES);

impl Drop for Page {
    fn drop(&mut self) {
        LOST[self.slot].store(false, Ordering::Relaxed);
        PAGES[self.slot].store(0, Ordering::Release);
        // SAFETY: mapped by `new`; references to it have ended with `self`.
        unsafe { libc::munmap(self.start as *mut libc::c_void, MAPPED_BYTES) };
    }
}

/// Installs the handler once.
fn install() -> io::Result<()> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let action = ours();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both are valid, and `answer` only calls what a handler may.
    if unsafe { libc::sigaction(libc::SIGBUS, &action, before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the only writer, under the lock, before readers may read.
    unsafe { *BEFORE.action.get() = before };
    BEFORE.is_set.store(true, Ordering::Release);
    *installed = true;
    Ok(())
}

/// The handler as the kernel wants it.
fn ours() -> libc::sigaction {
    // SAFETY: zeros are a valid `sigaction`: the default handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = answer as *const () as usize;
    // On the stack for signals where there is one, as std's handler wants it.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action
}

/// The handler: only atomics and system calls.
extern "C" fn answer(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid one.
    let code = unsafe { (*info).si_code };
    // Somebody has sent it: there is no access, and no address.
    if code <= 0 {
        return pass_on_sent(signal, info, context);
    }
    // SAFETY: as above; a SIGBUS of the kernel has an address.
    let at = unsafe { (*info).si_addr() } as usize;
    for (page, lost) in PAGES.iter().zip(&LOST) {
        let start = page.load(Ordering::Acquire);
        if start != 0 && (start..start + MAPPED_BYTES).contains(&at) {
            // SAFETY: replaces a page that is ours by one of zeros; `mmap` is a bare
            // system call, and the value of errno that it may change is put back.
            let replaced = unsafe {
                let errno = libc::__errno_location();
                let kept = *errno;
                let new = libc::mmap(
                    start as *mut libc::c_void,
                    MAPPED_BYTES,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                );
                *errno = kept;
                new
            };
            if replaced != libc::MAP_FAILED {
                lost.store(true, Ordering::Release);
                return;
            }
        }
    }
    pass_on_fault(signal, info, context);
}

/// The previous handler of the signal, which was called.
enum PreviousHandler {
    Handler,
    Ignored,
    /// No handler: the default action applies.
    Nobody,
}

/// Calls the handler that was there before us, if there was one.
fn tell(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) -> PreviousHandler {
    if !BEFORE.is_set.load(Ordering::Acquire) {
        return PreviousHandler::Nobody;
    }
    // SAFETY: set, and never written again.
    let before = unsafe { (*BEFORE.action.get()).assume_init_ref() };
    match before.sa_sigaction {
        libc::SIG_DFL => PreviousHandler::Nobody,
        libc::SIG_IGN => PreviousHandler::Ignored,
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with this flag it is a function of these three.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
            PreviousHandler::Handler
        }
        handler => {
            // SAFETY: without the flag it is a function of the signal.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
            PreviousHandler::Handler
        }
    }
}

/// A fault that is not ours, as if we had no handler.
fn pass_on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if matches!(tell(signal, info, context), PreviousHandler::Handler) {
        return;
    }
    // SAFETY: zeros are the default handler. It acts when the access is tried again, also
    // where the signal was ignored: the kernel does not ignore faults.
    unsafe {
        let default: libc::sigaction = zeroed();
        libc::sigaction(signal, &default, null_mut());
    }
}

/// A signal that was sent, as if we had no handler; and we have it afterwards.
fn pass_on_sent(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let is_over = match tell(signal, info, context) {
        PreviousHandler::Ignored => true,
        // That of std takes all for faults: it sets the default, which is to act when the
        // access is tried again. Nothing is tried again here.
        // SAFETY: it only answers, and zeros are a valid place for that.
        PreviousHandler::Handler => unsafe {
            let mut now: libc::sigaction = zeroed();
            libc::sigaction(signal, null_mut(), &mut now);
            now.sa_sigaction != libc::SIG_DFL
        },
        PreviousHandler::Nobody => false,
    };
    if is_over {
        return;
    }
    // SAFETY: system calls that a handler may do, on values that live here. The signal ends
    // the process as soon as it is not blocked; only the init of a container lives on.
    unsafe {
        let default: libc::sigaction = zeroed();
        libc::sigaction(signal, &default, null_mut());
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut before);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        libc::sigaction(signal, &ours(), null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    fn file(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("pbs-csi-map-{}-{name}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(MAPPED_BYTES as u64).unwrap();
        file
    }

    #[test]
    fn what_is_stored_is_in_the_file() {
        let file = file("stored");
        let page = Page::new(&file).unwrap();
        page.generation().store(42, Ordering::Release);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, GENERATION_AT as u64).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 42);
    }

    /// This would end the process if nothing was done about it.
    #[test]
    fn a_shortened_file_reads_as_zero() {
        let file = file("shorter");
        let page = Page::new(&file).unwrap();
        page.generation().store(42, Ordering::Release);
        file.set_len(0).unwrap();
        assert_eq!(page.generation().load(Ordering::Acquire), 0);
        page.generation().store(7, Ordering::Release);
        assert_eq!(page.generation().load(Ordering::Acquire), 7);
    }
}
