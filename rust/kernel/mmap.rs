// SPDX-License-Identifier: GPL-2.0

//! Support of `mmap(2)` for files: the area that is to be filled, and memory of the kernel to fill
//! it with, for user space to read.
//!
//! C headers: [`include/linux/mm.h`](srctree/include/linux/mm.h),
//! [`include/linux/vmalloc.h`](srctree/include/linux/vmalloc.h)

use crate::{
    bindings,
    error::to_result,
    page::{PAGE_SHIFT, PAGE_SIZE},
    prelude::*,
};
use core::{marker::PhantomData, ptr::NonNull};

/// The part of an address space that an `mmap(2)` under way is to fill.
///
/// # Invariants
///
/// `vma` is what C code handed to the file's `mmap` function, which has not returned yet. So the
/// address space is locked for writing, and the area is not a part of it yet.
pub struct MmapArea<'a> {
    vma: *mut bindings::vm_area_struct,
    _vma: PhantomData<&'a mut bindings::vm_area_struct>,
}

impl MmapArea<'_> {
    /// Wraps the argument of a file's `mmap` function.
    ///
    /// # Safety
    ///
    /// `vma` must be that argument, and the new value be gone before that function returns. No
    /// other may be made of it.
    pub(crate) unsafe fn new(vma: *mut bindings::vm_area_struct) -> Self {
        // INVARIANT: By the function's requirements.
        Self {
            vma,
            _vma: PhantomData,
        }
    }

    /// Length of the area: whole pages.
    pub fn bytes(&self) -> usize {
        // SAFETY: By the type invariant, the area is valid, and nobody changes it meanwhile.
        let area = unsafe { &(*self.vma).__bindgen_anon_1.__bindgen_anon_1 };
        area.vm_end - area.vm_start
    }

    /// Offset in the file at which the area begins.
    pub fn offset_bytes(&self) -> u64 {
        // SAFETY: As above.
        (unsafe { (*self.vma).vm_pgoff } as u64) << PAGE_SHIFT
    }

    fn has(&self, flags: u32) -> bool {
        // SAFETY: As above.
        let of_area = unsafe { (*self.vma).__bindgen_anon_2.vm_flags };
        of_area & flags as bindings::vm_flags_t != 0
    }
}

/// Memory of the kernel that user space may map, to read it. It begins with a page, and all of it
/// is zero at first.
///
/// # Examples
///
/// ```
/// use kernel::{mmap::UserMemory, page::PAGE_SIZE};
///
/// let memory = UserMemory::zeroed(PAGE_SIZE + 1)?;
/// let last = memory.as_ptr().wrapping_add(2 * PAGE_SIZE - 1);
/// // SAFETY: The length is rounded up to two pages.
/// assert_eq!(unsafe { last.read() }, 0);
/// assert!(UserMemory::zeroed(usize::MAX).is_err());
/// # Ok::<(), Error>(())
/// ```
///
/// # Invariants
///
/// `start` is what `vmalloc_user` has returned for `bytes`.
pub struct UserMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: The memory belongs to no thread.
unsafe impl Send for UserMemory {}

// SAFETY: A shared reference gives nothing but the address, and the functions of C code that map
// the memory, which any thread may call at any time.
unsafe impl Sync for UserMemory {}

impl UserMemory {
    /// Allocates so much, rounded up to pages. Sleeps.
    pub fn zeroed(bytes: usize) -> Result<Self> {
        let bytes = bytes.checked_next_multiple_of(PAGE_SIZE).ok_or(ENOMEM)?;
        // SAFETY: May be called whenever sleeping is allowed.
        let start = unsafe { bindings::vmalloc_user(bytes as _) };
        // INVARIANT: That is what it has returned.
        Ok(Self {
            start: NonNull::new(start.cast()).ok_or(ENOMEM)?,
            bytes,
        })
    }

    /// Address of the memory, valid for reads and writes of its length until this is dropped.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Maps all of it, to be read only, also later and by whatever means: nobody but the kernel
    /// changes it. It stays mapped, and what is mapped is not freed, when this is dropped.
    ///
    /// Fails with [`EINVAL`] if the area is not exactly as long, or private, and with [`EPERM`] if
    /// it is writable.
    pub fn map(&self, area: &mut MmapArea<'_>) -> Result {
        // A file that was opened for reading only has no `VM_SHARED`.
        if area.bytes() != self.bytes || !area.has(bindings::VM_MAYSHARE) {
            return Err(EINVAL);
        }
        if area.has(bindings::VM_WRITE) {
            return Err(EPERM);
        }
        // SAFETY: By the type invariant of `MmapArea`, the area may be changed. By the one of this
        // type, the memory is such as may be mapped, which C code checks as well; each mapped page
        // holds a reference of its own.
        unsafe {
            bindings::vm_flags_clear(area.vma, bindings::VM_MAYWRITE as _);
            to_result(bindings::remap_vmalloc_range(
                area.vma,
                self.start.as_ptr().cast(),
                0,
            ))
        }
    }
}

impl Drop for UserMemory {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and nobody has a reference to it any more.
        unsafe { bindings::vfree(self.start.as_ptr().cast()) };
    }
}
