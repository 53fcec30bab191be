// SPDX-License-Identifier: GPL-2.0

//! Memory use of a task.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h)

use crate::{bindings, page::PAGE_SIZE};

/// The memory of an address space at one moment.
///
/// # Examples
///
/// ```
/// use kernel::mm::MemoryUse;
///
/// let less = MemoryUse { total_vm_bytes: 8192, rss_bytes: 4096 };
/// let more = MemoryUse { rss_bytes: 8192, ..less };
/// assert!(less.is_within(&less) && less.is_within(&more) && !more.is_within(&less));
///
/// // This runs in a thread of the kernel.
/// assert_eq!(MemoryUse::of_current(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// Address space mapped (`total_vm`).
    pub total_vm_bytes: u64,
    /// Memory resident.
    ///
    /// C code stores this in counters of which each CPU holds back a part, and sums up only the
    /// parts that were handed in. Therefore it is off by up to a batch (`percpu_counter_batch`
    /// pages, at least 32) for each CPU and each of three kinds of pages.
    pub rss_bytes: u64,
}

impl MemoryUse {
    /// Whether this is no more than `other`, of either.
    #[inline]
    pub fn is_within(&self, other: &Self) -> bool {
        self.total_vm_bytes <= other.total_vm_bytes && self.rss_bytes <= other.rss_bytes
    }

    /// Samples the current task. `None` if it is a kernel thread or has given up its memory.
    ///
    /// May be called in any context but an NMI, in particular with a run-queue lock held, while the
    /// task that is being switched out is still current. Neither sleeps nor faults.
    #[inline]
    pub fn of_current() -> Option<Self> {
        // SAFETY: The current task is valid, and it is current.
        unsafe { Self::of(bindings::get_current()) }
    }

    /// Samples a task that is current on this CPU. See [`MemoryUse::of_current`].
    ///
    /// # Safety
    ///
    /// `task` must be the current task of this CPU: any other may give up its `mm` meanwhile.
    #[inline]
    pub unsafe fn of(task: *mut bindings::task_struct) -> Option<Self> {
        // SAFETY: By the function's requirements, `task` is valid; nobody but the current task
        // changes these two fields.
        let (flags, mm) = unsafe { ((*task).flags, (*task).mm) };

        // A kernel thread may borrow an `mm`, which is not its own.
        if flags & bindings::PF_KTHREAD != 0 || mm.is_null() {
            return None;
        }
        // SAFETY: The `mm` of the current task lives at least until the task itself gives it up,
        // which it can't do before this function has returned.
        let (total_vm, rss) =
            unsafe { (bindings::mm_total_vm_pages(mm), bindings::get_mm_rss(mm)) };

        Some(Self {
            total_vm_bytes: pages_to_bytes(total_vm as u64),
            rss_bytes: pages_to_bytes(rss as u64),
        })
    }
}

#[inline]
fn pages_to_bytes(pages: u64) -> u64 {
    pages.saturating_mul(PAGE_SIZE as u64)
}
