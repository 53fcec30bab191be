// SPDX-License-Identifier: GPL-2.0

//! The rings of events, and their readers.
//!
//! Every CPU has a ring of its own from its first plan on, as there are no events before. Its one
//! [`EventWriter`] is a part of the CPU's state: a writer has the run queue locked, and therefore
//! needs no other lock. Readers map the rings, or have them merged by `read(2)`: the numbers of
//! events are dense over all CPUs. Therefore the next event of a reader is the one with the next
//! number, in whichever ring.
//!
//! A reader that was too slow receives the number of events that it lost. Readers that wait are
//! woken by an irq_work, since no thread may be woken under the lock of a run queue; it is queued
//! only if a reader waits.

use crate::{
    linux::{published::Published, storage::table, wire::Wire},
    pbs_core::{self, EventKind},
};
use core::{
    mem::{offset_of, size_of},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};
use kernel::{
    alloc::KVVec,
    bindings,
    irq_work::{IrqWork, IrqWorkCallback},
    new_wait_queue,
    poll::{self, PollTable},
    prelude::*,
    record_ring::{Look, RecordRing, RingHeader, RingName, RingTable, RingWriter},
    wait_queue::WaitQueue,
};

/// An event as it is on the wire.
pub(crate) type Record = bindings::pbs_event;

/// Events held of each CPU: 8 MiB. A reader on a plan's CPU gets the CPU in the unallocated time at
/// the latest, every 95 ms by default; a slot makes a handful of events.
const CAPACITY: usize = 1 << 16;

/// The events of one CPU.
pub(crate) type Ring = RecordRing<Wire<Record>, CAPACITY>;

/// Size of the mapping of each ring in user space.
pub(crate) const RING_BYTES: usize = Ring::BYTES;

/// The number of the next event of any CPU.
static NEXT_SEQ: AtomicU64 = AtomicU64::new(0);

/// Whether a reader waits for events: set by a reader that is about to wait before it checks the
/// rings, cleared by a writer that has added an event.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Wakes the readers up, outside every lock.
struct Notify;

impl IrqWorkCallback for Notify {
    fn run(_this: &IrqWork<Self>) {
        if let Some(events) = get() {
            events.queue.wake_all();
        }
    }
}

/// Position of a reader.
pub(crate) struct Reader {
    /// The number of the next event.
    seq: u64,
    /// For each ring, by its place, the first record that may have that number or a greater one.
    cursors: KVVec<u64>,
    /// The place of the ring that had the last event: mostly it has the next one, too.
    last: usize,
    /// The first event of those that are lost and were not reported yet, and their number.
    lost: Option<(u64, u64)>,
}

impl Reader {
    /// The number of the next event.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Moves on behind the event that [`Events::next`] has returned.
    pub(crate) fn pass(&mut self) {
        if self.lost.take().is_none() {
            self.seq += 1;
            if let Some(cursor) = self.cursors.get_mut(self.last) {
                *cursor += 1;
            }
        }
    }
}

/// The rings of events.
#[pin_data]
pub(crate) struct Events {
    rings: RingTable<Wire<Record>, CAPACITY>,
    /// Queue of the readers that wait for events.
    #[pin]
    queue: WaitQueue,
    #[pin]
    notify: IrqWork<Notify>,
}

static EVENTS: Published<Events> = Published::none();

/// Makes the table of rings; there is no ring yet.
pub(crate) fn publish() -> Result {
    let rings = RingTable::new(kernel::cpu::nr_cpu_ids() as usize)?;
    EVENTS.publish(KBox::pin_init(
        pin_init!(Events {
            rings,
            queue <- new_wait_queue!("pbs_events"),
            notify <- IrqWork::new(Notify),
        }),
        GFP_KERNEL,
    )?);
    Ok(())
}

/// The rings, once the class is up.
pub(crate) fn get() -> Option<&'static Events> {
    EVENTS.get()
}

/// Makes the ring of a CPU that has none. Returns its writer. Sleeps.
pub(crate) fn add(cpu: u32) -> Result<EventWriter> {
    let (ring, writer) = Ring::new(RingName {
        magic: bindings::PBS_RING_MAGIC,
        version: bindings::PBS_RING_VERSION as u16,
        number: cpu,
    })?;
    get().ok_or(ENODEV)?.rings.add(ring)?;
    Ok(EventWriter(writer))
}

/// The ring of a CPU, if it has one.
pub(crate) fn of_cpu(cpu: u32) -> Option<&'static Ring> {
    get()?.rings.iter().find(|ring| ring.number() == cpu)
}

/// The number of the next event.
pub(crate) fn next_seq() -> u64 {
    NEXT_SEQ.load(Ordering::Relaxed)
}

impl Events {
    /// Number of CPUs that have a ring.
    pub(crate) fn rings(&self) -> usize {
        self.rings.iter().count()
    }

    /// The oldest event from which on all are held.
    pub(crate) fn first_seq(&self) -> u64 {
        self.rings.iter().map(oldest_seq).max().unwrap_or(0)
    }

    /// A reader that gets the events from `seq` on.
    pub(crate) fn reader(&self, seq: u64) -> Result<Reader> {
        let mut reader = Reader {
            seq,
            cursors: table(self.rings.room(), || 0)?,
            last: 0,
            lost: None,
        };
        self.seek(&mut reader, seq);
        Ok(reader)
    }

    /// Makes a reader get the events from `seq` on.
    pub(crate) fn seek(&self, reader: &mut Reader, seq: u64) {
        reader.seq = seq;
        reader.lost = None;
        for (cursor, ring) in reader.cursors.iter_mut().zip(self.rings.iter()) {
            *cursor = first_from(ring, seq);
        }
    }

    /// The reader's next event, which it gets again until it passes it; `None`: there is none yet,
    /// or it is being written.
    ///
    /// If events are lost, the result is an overrun record with their number.
    pub(crate) fn next(&self, reader: &mut Reader) -> Option<Record> {
        if reader.lost.is_none() {
            match self.look(reader) {
                Look::Record(record) => return Some(record),
                Look::NotYet => return None,
                Look::Lost => {}
            }
            let (from, to) = (reader.seq, self.first_seq());
            self.seek(reader, to.max(from));
            reader.lost = (to > from).then(|| (from, to - from));
        }
        reader.lost.map(|(seq, events)| overrun(seq, events))
    }

    /// Searches for the reader's next event in one ring after the other, first where the last was.
    fn look(&self, reader: &mut Reader) -> Look<Record> {
        let mut overtaken = false;
        for turn in 0..=self.rings.room() {
            let place = turn.checked_sub(1).unwrap_or(reader.last);
            let ring = self.rings.get(place);
            let (Some(ring), Some(cursor)) = (ring, reader.cursors.get_mut(place)) else {
                break;
            };
            match look(ring, cursor, reader.seq) {
                Look::Record(record) => {
                    reader.last = place;
                    return Look::Record(record);
                }
                Look::NotYet => {}
                Look::Lost => overtaken = true,
            }
        }
        if overtaken {
            Look::Lost
        } else {
            Look::NotYet
        }
    }

    /// Waits until there is an event at `seq`.
    pub(crate) fn wait(&self, seq: u64) -> Result {
        self.queue.wait_interruptible(|| self.ready(seq))
    }

    /// Answer of `poll(2)` for a reader at `seq`.
    pub(crate) fn poll<'a>(&'a self, seq: u64, table: &PollTable<'a>) -> u32 {
        table.register(&self.queue);
        if self.ready(seq) {
            poll::IN | poll::RDNORM
        } else {
            0
        }
    }

    /// Whether there is an event for a reader at `seq`; if not, the next event will wake the
    /// waiters.
    fn ready(&self, seq: u64) -> bool {
        WAITING.store(true, Ordering::SeqCst);
        self.rings.iter().any(|ring| {
            let mut cursor = first_from(ring, seq);
            !matches!(look(ring, &mut cursor, seq), Look::NotYet)
        })
    }
}

/// Searches for the event `seq` in a ring, in which no record before `cursor` can be it.
///
/// The event counts as lost if the ring may have had it: if all events in the ring are younger.
fn look(ring: &Ring, cursor: &mut u64, seq: u64) -> Look<Record> {
    loop {
        match ring.look(*cursor) {
            // It was being written when the reader was placed behind it.
            Look::Record(record) if record.0.seq < seq => *cursor += 1,
            Look::Record(record) if record.0.seq == seq => return Look::Record(record.0),
            Look::Record(_) if *cursor != 0 && ring.bounds().0 >= *cursor => return Look::Lost,
            Look::Record(_) | Look::NotYet => return Look::NotYet,
            Look::Lost => return Look::Lost,
        }
    }
}

/// The first record of a ring that is the event `seq` or a later one.
fn first_from(ring: &Ring, seq: u64) -> u64 {
    let (mut low, mut high) = ring.bounds();
    // A waiting reader has mostly read them all.
    let mut middle = high.saturating_sub(1);
    while low < high {
        match ring.look(middle) {
            Look::Record(record) if record.0.seq >= seq => high = middle,
            // Overwritten records were older.
            _ => low = middle + 1,
        }
        middle = low + (high - low) / 2;
    }
    low
}

/// The oldest event that a ring holds, 0 if it holds all.
fn oldest_seq(ring: &Ring) -> u64 {
    /// The oldest record may be overwritten between two looks, but not for ever.
    const TRIES: usize = 4;
    for _ in 0..TRIES {
        match ring.bounds() {
            (0, _) => return 0,
            (tail, _) => {
                if let Look::Record(record) = ring.look(tail) {
                    return record.0.seq;
                }
            }
        }
    }
    next_seq()
}

/// Record for a reader that was too slow.
fn overrun(seq: u64, events: u64) -> Record {
    Record {
        seq,
        kind: EventKind::Overrun as u16,
        process: bindings::PBS_IDLE,
        task: bindings::PBS_NO_TASK,
        slot: pbs_core::wire::NO_SLOT,
        value: events,
        ..Record::default()
    }
}

/// Writer of the events of one CPU. It is a part of the CPU's state: therefore its user has locked
/// the run queue, and is the only one.
pub(crate) struct EventWriter(RingWriter<Wire<Record>, CAPACITY>);

impl EventWriter {
    /// Writes the event that `record` makes of its number, and calls `trace` with it. Returns the
    /// number.
    #[inline]
    pub(crate) fn write(
        &mut self,
        record: impl FnOnce(u64) -> Record,
        trace: impl FnOnce(&Record),
    ) -> u64 {
        let seq = NEXT_SEQ.fetch_add(1, Ordering::Relaxed);
        self.0
            .write(|| Wire(record(seq)), |record| trace(&record.0));
        if WAITING.load(Ordering::SeqCst) {
            wake();
        }
        seq
    }
}

/// Wakes up the readers that wait for events, once for all events until they wait again.
#[cold]
fn wake() {
    if WAITING.swap(false, Ordering::AcqRel) {
        if let Some(events) = get() {
            events.notify.queue();
        }
    }
}

// The wire format and the policy count the same things, and a ring has the described layout.
const _: () = {
    assert!(size_of::<Record>() == 128);
    assert!(bindings::pbs_event_kind_PBS_EV_TIER == EventKind::Tier as u32);
    assert!(size_of::<RingHeader>() == size_of::<bindings::pbs_ring>());
    assert!(RingHeader::HEAD_OFFSET == offset_of!(bindings::pbs_ring, head));
    assert!(RingHeader::TAIL_OFFSET == offset_of!(bindings::pbs_ring, tail));
};
