// SPDX-License-Identifier: GPL-2.0
//! The rings of events, and of inputs, mapped: records without a system call.

use std::io;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU64, Ordering};

use crate::record::{Event, Info, Input, Record, RingHeader};
use crate::{
    EventKind, IDLE, INPUTS_MAGIC, INPUTS_VERSION, NO_SLOT, NO_TASK, RING_MAGIC, RING_VERSION,
};

/// Record in the rings of a device.
pub trait InRing: Record {
    /// Magic number of rings with such records.
    const MAGIC: u32;
    /// The version that is known here.
    const VERSION: u16;
}

impl InRing for Event {
    const MAGIC: u32 = RING_MAGIC;
    const VERSION: u16 = RING_VERSION;
}

impl InRing for Input {
    const MAGIC: u32 = INPUTS_MAGIC;
    const VERSION: u16 = INPUTS_VERSION;
}

/// The ring of one CPU: a mapping of the kernel's memory, for reading.
///
/// A forked child does not have the mapping: its pages would count as the child's own, and a job
/// would be charged with the megabytes of the service's rings.
#[derive(Debug)]
pub struct Ring<T = Event> {
    /// The mapping, of which the header and all records are a part.
    start: NonNull<u8>,
    bytes: usize,
    cpu: u32,
    records_offset_bytes: usize,
    capacity_records: u64,
    records: PhantomData<T>,
}

// SAFETY: the mapping belongs to no thread.
#[allow(unsafe_code)]
unsafe impl<T: InRing> Send for Ring<T> {}

/// Result of reading a ring at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The one large variant is the common one.
#[allow(clippy::large_enum_variant)]
pub enum RingRead<T = Event> {
    /// The record.
    Record(T),
    /// The record has not been written yet.
    NotYet,
    /// The record is overwritten.
    Lost,
}

impl<T: InRing> Ring<T> {
    /// Maps the ring of `cpu`, of which `fd`, an open device, says that it has as
    /// many bytes.
    pub fn map(fd: BorrowedFd<'_>, ring_bytes: u64, cpu: u32) -> io::Result<Self> {
        let bytes = usize::try_from(ring_bytes).unwrap_or(0);
        let offset = u64::from(cpu).checked_mul(ring_bytes);
        let offset = offset.and_then(|offset| libc::off_t::try_from(offset).ok());
        let (Some(offset), true) = (offset, bytes >= size_of::<RingHeader>()) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // SAFETY: a new mapping, wherever there is room.
        #[allow(unsafe_code)]
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut ring = Self {
            start: NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?,
            bytes,
            cpu,
            records_offset_bytes: 0,
            capacity_records: 0,
            records: PhantomData,
        };
        // SAFETY: the range is that of the mapping, and no child uses a ring.
        #[allow(unsafe_code)]
        if unsafe { libc::madvise(start, bytes, libc::MADV_DONTFORK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is long enough, pages are aligned, and nobody changes what is
        // looked at here.
        #[allow(unsafe_code)]
        let header = unsafe { ring.start.cast::<RingHeader>().as_ptr().read_volatile() };
        ring.records_offset_bytes = header.records_offset_bytes as usize;
        ring.capacity_records = header.capacity_records;
        let records = usize::try_from(header.capacity_records).unwrap_or(usize::MAX);
        let end = records
            .checked_mul(size_of::<T>())
            .and_then(|records| records.checked_add(ring.records_offset_bytes));
        let is_known = header.magic == T::MAGIC
            && header.version == T::VERSION
            && usize::from(header.record_bytes) == size_of::<T>()
            && header.capacity_records.is_power_of_two()
            && ring.records_offset_bytes.is_multiple_of(align_of::<T>())
            && ring.records_offset_bytes >= size_of::<RingHeader>()
            && end.is_some_and(|end| end <= bytes);
        is_known.then_some(ring).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "this is no ring of a kind that this version knows",
            )
        })
    }

    /// Returns the CPU of the ring.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    #[allow(unsafe_code)]
    fn number(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: called with the offsets of two aligned fields of the header, which
        // lies in the mapping; others change them atomically.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    fn head(&self) -> &AtomicU64 {
        self.number(offset_of!(RingHeader, head))
    }

    fn tail(&self) -> &AtomicU64 {
        self.number(offset_of!(RingHeader, tail))
    }

    /// The numbers, in this ring, of the oldest record and of the next one.
    pub fn bounds(&self) -> (u64, u64) {
        // In this order: the oldest one is never younger than the next one.
        let tail = self.tail().load(Ordering::Acquire);
        (tail, self.head().load(Ordering::Acquire))
    }

    /// Copies the record `number`.
    pub fn look(&self, number: u64) -> RingRead<T> {
        if number >= self.head().load(Ordering::Acquire) {
            return RingRead::NotYet;
        }
        // Less than the mapping's length, which is a usize.
        let place = (number & (self.capacity_records - 1)) as usize;
        let offset = self.records_offset_bytes + place * size_of::<T>();
        // SAFETY: the record lies in the mapping, aligned, as `map` has checked. The
        // kernel may be overwriting it, so what is read may be of any value, which all
        // are values of a record; it counts only if the tail has not passed it.
        #[allow(unsafe_code)]
        let record = unsafe { self.start.add(offset).cast::<T>().read_volatile() };
        fence(Ordering::Acquire);
        if number < self.tail().load(Ordering::Relaxed) {
            return RingRead::Lost;
        }
        RingRead::Record(record)
    }
}

impl Ring {
    /// Looks for the event `seq`, of which none before `cursor` can be it. It is taken
    /// for lost if the ring may have had it: if all that the ring holds is younger.
    fn find(&self, cursor: &mut u64, seq: u64) -> RingRead {
        loop {
            match self.look(*cursor) {
                // It was being written when the reader came to stand behind it.
                RingRead::Record(event) if event.seq < seq => *cursor += 1,
                RingRead::Record(event) if event.seq == seq => return RingRead::Record(event),
                RingRead::Record(_) if *cursor != 0 && self.bounds().0 >= *cursor => {
                    return RingRead::Lost
                }
                RingRead::Record(_) | RingRead::NotYet => return RingRead::NotYet,
                RingRead::Lost => return RingRead::Lost,
            }
        }
    }

    /// The first record that is the event `seq` or a later one.
    fn first_from(&self, seq: u64) -> u64 {
        let (mut low, mut high) = self.bounds();
        while low < high {
            let middle = low + (high - low) / 2;
            match self.look(middle) {
                RingRead::Record(event) if event.seq >= seq => high = middle,
                // What is overwritten was older.
                _ => low = middle + 1,
            }
        }
        low
    }

    /// The oldest event that it holds, 0 if it holds all.
    fn oldest_seq(&self) -> u64 {
        /// Number of attempts: a record may be overwritten between two reads, but not for ever.
        const TRIES: usize = 4;
        for _ in 0..TRIES {
            match self.bounds() {
                (0, _) => return 0,
                (tail, _) => {
                    if let RingRead::Record(event) = self.look(tail) {
                        return event.seq;
                    }
                }
            }
        }
        // The youngest stays for a while.
        match self.look(self.bounds().1.saturating_sub(1)) {
            RingRead::Record(event) => event.seq,
            RingRead::NotYet | RingRead::Lost => 0,
        }
    }
}

impl<T> Drop for Ring<T> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping, to which nobody has a reference any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The rings of all CPUs, as one stream: what `read(2)` gives.
#[derive(Debug, Default)]
pub struct Rings {
    /// With the first record that may be the next event, or a later one.
    rings: Vec<(Ring, u64)>,
    /// The number of the next event.
    seq: u64,
    /// The ring that had the last event: mostly it has the next one, too.
    last: usize,
}

impl Rings {
    /// No ring; the first event is number `seq`.
    pub fn new(seq: u64) -> Self {
        Self { seq, ..Self::default() }
    }

    /// Maps the rings that have come since the last call. `info` is what `fd`, an open
    /// device, tells now.
    pub fn renew(&mut self, fd: BorrowedFd<'_>, info: &Info) -> io::Result<()> {
        if self.rings.len() as u64 >= u64::from(info.nr_rings) {
            return Ok(());
        }
        for cpu in 0..info.nr_cpu_ids {
            if self.rings.iter().any(|(ring, _)| ring.cpu == cpu) {
                continue;
            }
            match Ring::map(fd, info.ring_bytes, cpu) {
                Ok(ring) => {
                    let cursor = ring.first_from(self.seq);
                    self.rings.push((ring, cursor));
                }
                // It has no ring, or there is no such CPU.
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENODEV) => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Returns the number of mapped rings.
    pub fn len(&self) -> usize {
        self.rings.len()
    }

    /// Whether none is mapped.
    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// The number of the next event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The next event is number `seq`.
    pub fn seek(&mut self, seq: u64) {
        self.seq = seq;
        for (ring, cursor) in &mut self.rings {
            *cursor = ring.first_from(seq);
        }
    }

    /// Takes events in the order of their numbers, as many as there are and fit. If
    /// some are lost, an overrun record says how many.
    pub fn read(&mut self, events: &mut [Event]) -> usize {
        let mut filled = 0;
        for place in events {
            let next = match self.next() {
                RingRead::Record(event) => Some(event),
                RingRead::NotYet => None,
                RingRead::Lost => self.overrun(),
            };
            let Some(event) = next else { break };
            *place = event;
            filled += 1;
        }
        filled
    }

    fn next(&mut self) -> RingRead {
        let mut overtaken = false;
        let places = std::iter::once(self.last).chain(0..self.rings.len());
        for place in places {
            let Some((ring, cursor)) = self.rings.get_mut(place) else {
                continue;
            };
            match ring.find(cursor, self.seq) {
                RingRead::Record(event) => {
                    *cursor += 1;
                    self.seq += 1;
                    self.last = place;
                    return RingRead::Record(event);
                }
                RingRead::NotYet => {}
                RingRead::Lost => overtaken = true,
            }
        }
        if overtaken {
            RingRead::Lost
        } else {
            RingRead::NotYet
        }
    }

    /// Goes on with the oldest event from which on all are held. Tells of those before
    /// it, if there are any.
    fn overrun(&mut self) -> Option<Event> {
        let from = self.seq;
        let oldest = self.rings.iter().map(|(ring, _)| ring.oldest_seq()).max();
        self.seek(oldest.unwrap_or(from).max(from));
        (self.seq > from).then(|| Event {
            seq: from,
            kind: EventKind::Overrun as u16,
            process: IDLE,
            task: NO_TASK,
            slot: NO_SLOT,
            value: self.seq - from,
            ..Event::default()
        })
    }
}
