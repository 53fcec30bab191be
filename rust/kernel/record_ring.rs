// SPDX-License-Identifier: GPL-2.0

//! Rings of records that one writer fills and many readers follow, in the kernel and by `mmap(2)`.
//!
//! The writer does not wait, and takes no lock: its owner ensures that there is only one, which an
//! `&mut` [`RingWriter`] proves. A reader has a position of its own, and detects when the writer
//! has overtaken it.
//!
//! A ring is never freed.
//!
//! # Examples
//!
//! ```
//! use kernel::record_ring::{Look, RecordRing, RingName};
//!
//! let name = RingName { magic: 0x474e5252, version: 1, number: 0 };
//! let (ring, mut writer) = RecordRing::<u64, 4>::new(name)?;
//! for value in 0..6 {
//!     writer.write(|| value * value, |_| ());
//! }
//! // One is given up for the next one before that is written.
//! assert_eq!(ring.bounds(), (2, 6));
//! assert!(matches!(ring.look(1), Look::Lost));
//! assert!(matches!(ring.look(2), Look::Record(4)));
//! assert!(matches!(ring.look(6), Look::NotYet));
//! # Ok::<(), Error>(())
//! ```

use crate::{
    alloc::KVec,
    mmap::{MmapArea, UserMemory},
    page::PAGE_SIZE,
    prelude::*,
    types::{AsBytes, FromBytes},
};
use core::{
    mem::size_of,
    ptr,
    sync::atomic::{fence, AtomicPtr, AtomicU64, Ordering},
};

/// Identity of a ring for user space that has mapped it.
pub struct RingName {
    /// Kind of the ring.
    pub magic: u32,
    /// The version of its format.
    pub version: u16,
    /// Number of the ring among several.
    pub number: u32,
}

/// The head of a ring, as user space sees it.
#[repr(C)]
pub struct RingHeader {
    magic: u32,
    version: u16,
    record_bytes: u16,
    number: u32,
    records_offset_bytes: u32,
    capacity_records: u64,
    reserved: [u64; 5],
    /// The number of the next record.
    head: AtomicU64,
    /// The number of the oldest record that is whole.
    tail: AtomicU64,
}

impl RingHeader {
    /// Offset of the number of the next record.
    pub const HEAD_OFFSET: usize = core::mem::offset_of!(Self, head);
    /// Offset of the number of the oldest record.
    pub const TAIL_OFFSET: usize = core::mem::offset_of!(Self, tail);
}

/// A ring of `CAPACITY` records, a power of two.
///
/// # Invariants
///
/// `memory` is of [`RecordRing::BYTES`]; it begins with a [`RingHeader`], which is initialised, and
/// has the records, all initialised, from [`RecordRing::RECORDS_OFFSET`] on. The one [`RingWriter`]
/// alone writes to it, and user space can't.
pub struct RecordRing<T, const CAPACITY: usize> {
    memory: UserMemory,
    _records: core::marker::PhantomData<T>,
}

/// Result of a read at a position.
pub enum Look<T> {
    /// The record.
    Record(T),
    /// No record has been written there yet.
    NotYet,
    /// The record was overwritten.
    Lost,
}

impl<T: Copy + AsBytes + FromBytes, const CAPACITY: usize> RecordRing<T, CAPACITY> {
    /// The records begin on a page of their own.
    pub const RECORDS_OFFSET: usize = PAGE_SIZE;

    /// Size of the mapping in user space: the whole ring.
    pub const BYTES: usize = Self::RECORDS_OFFSET + CAPACITY * size_of::<T>();

    const VALID: () = assert!(
        CAPACITY.is_power_of_two()
            && CAPACITY > 1
            && size_of::<T>() <= u16::MAX as usize
            && core::mem::align_of::<T>() <= PAGE_SIZE
            && size_of::<RingHeader>() <= Self::RECORDS_OFFSET
    );

    /// A ring without records, for ever, and its one writer. Sleeps.
    pub fn new(name: RingName) -> Result<(&'static Self, RingWriter<T, CAPACITY>)> {
        let () = Self::VALID;
        let memory = UserMemory::zeroed(Self::BYTES)?;
        let header = RingHeader {
            magic: name.magic,
            version: name.version,
            record_bytes: size_of::<T>() as u16,
            number: name.number,
            records_offset_bytes: Self::RECORDS_OFFSET as u32,
            capacity_records: CAPACITY as u64,
            reserved: [0; 5],
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
        };
        // SAFETY: The memory begins with a page, has room for it, and is nobody else's yet.
        unsafe { memory.as_ptr().cast::<RingHeader>().write(header) };
        // INVARIANT: The header is written; of a `T`, which is `FromBytes`, zeroes are a value.
        let ring = Self {
            memory,
            _records: core::marker::PhantomData,
        };
        let ring: &'static Self = KBox::leak(KBox::new(ring, GFP_KERNEL)?);
        let writer = RingWriter {
            header: ring.header(),
            records: ring.records(),
        };
        Ok((ring, writer))
    }

    fn header(&self) -> &RingHeader {
        // SAFETY: By the type invariant. What changes in it is atomic.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    fn records(&self) -> *mut T {
        self.memory
            .as_ptr()
            .wrapping_add(Self::RECORDS_OFFSET)
            .cast()
    }

    /// Number of the ring among several.
    pub fn number(&self) -> u32 {
        self.header().number
    }

    /// The numbers of the oldest record that is whole, and of the next one.
    pub fn bounds(&self) -> (u64, u64) {
        // In this order: the oldest one is never younger than the next one.
        let tail = self.header().tail.load(Ordering::Acquire);
        (tail, self.header().head.load(Ordering::SeqCst))
    }

    /// Copies the record `number`.
    pub fn look(&self, number: u64) -> Look<T> {
        if number >= self.header().head.load(Ordering::Acquire) {
            return Look::NotYet;
        }
        // SAFETY: By the type invariant, there is an initialised record at each place. The writer
        // may be about to overwrite it, which is why it is read as what may change, may be of any
        // value, and counts only if it was not being overwritten.
        let record = unsafe { place::<T, CAPACITY>(self.records(), number).read_volatile() };
        // Pairs with the one of the writer: who has seen anything of its new record here sees the
        // new tail below.
        fence(Ordering::Acquire);
        if number < self.header().tail.load(Ordering::Relaxed) {
            return Look::Lost;
        }
        Look::Record(record)
    }

    /// Maps all of it, to be read. Fails as [`UserMemory::map`].
    pub fn map(&self, area: &mut MmapArea<'_>) -> Result {
        self.memory.map(area)
    }
}

/// Address of the record `number`.
#[inline(always)]
fn place<T, const CAPACITY: usize>(records: *mut T, number: u64) -> *mut T {
    records.wrapping_add(number as usize % CAPACITY)
}

/// The one that writes to a ring.
///
/// # Invariants
///
/// The header and the records are those of one [`RecordRing`], which is never freed, and no other
/// writer has them.
pub struct RingWriter<T, const CAPACITY: usize> {
    header: &'static RingHeader,
    records: *mut T,
}

// SAFETY: It belongs to no thread; it may write wherever it is.
unsafe impl<T: Send, const CAPACITY: usize> Send for RingWriter<T, CAPACITY> {}

impl<T: Copy, const CAPACITY: usize> RingWriter<T, CAPACITY> {
    /// Adds what `fill` makes, in the place where it stays, and shows it to `look` there.
    ///
    /// The new head is stored sequentially consistent, and [`RecordRing::bounds`] loads it so. So
    /// of a writer that then looks whether readers wait, and a reader that says that it waits and
    /// then looks at the bounds, both in this order too, one sees the other.
    #[inline(always)]
    pub fn write(&mut self, fill: impl FnOnce() -> T, look: impl FnOnce(&T)) {
        let next = self.header.head.load(Ordering::Relaxed);
        let oldest = (next + 1).saturating_sub(CAPACITY as u64);
        self.header.tail.store(oldest, Ordering::Relaxed);
        // What is written below is seen by nobody who does not see the tail above.
        fence(Ordering::Release);
        let place = place::<T, CAPACITY>(self.records, next);
        // SAFETY: By the type invariant, it is valid and there is no other writer. Readers that
        // come upon it meanwhile copy it as what may be of any value, and drop the copy.
        unsafe { place.write(fill()) };
        self.header.head.store(next + 1, Ordering::SeqCst);
        // SAFETY: It was just written, and is not written again before this call has returned, as
        // this has the one writer.
        look(unsafe { &*place });
    }
}

/// The rings of several writers, in the order in which they were added. None is taken away.
pub struct RingTable<T: 'static, const CAPACITY: usize> {
    /// Null from the first free place on; else leaked by [`RecordRing::new`].
    rings: KVec<AtomicPtr<RecordRing<T, CAPACITY>>>,
}

impl<T, const CAPACITY: usize> RingTable<T, CAPACITY> {
    /// Creates a table with room for `room` rings.
    pub fn new(room: usize) -> Result<Self> {
        let mut rings = KVec::with_capacity(room, GFP_KERNEL)?;
        for _ in 0..room {
            rings.push(AtomicPtr::new(ptr::null_mut()), GFP_KERNEL)?;
        }
        Ok(Self { rings })
    }

    /// Adds a ring. Fails with [`ENOSPC`] if there is no room for another.
    pub fn add(&self, ring: &'static RecordRing<T, CAPACITY>) -> Result {
        let ring = ptr::from_ref(ring).cast_mut();
        let add = |place: &AtomicPtr<_>| {
            let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
            place
                .compare_exchange(ptr::null_mut(), ring, release, relaxed)
                .is_ok()
        };
        self.rings.iter().any(add).then_some(()).ok_or(ENOSPC)
    }

    /// Greatest number of rings in the table.
    pub fn room(&self) -> usize {
        self.rings.len()
    }

    /// The ring that was added at that place.
    pub fn get(&self, place: usize) -> Option<&'static RecordRing<T, CAPACITY>> {
        // SAFETY: The pointer is null or what `add` was given.
        unsafe { self.rings.get(place)?.load(Ordering::Acquire).as_ref() }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &'static RecordRing<T, CAPACITY>> + '_ {
        (0..).map_while(|place| self.get(place))
    }
}
