// SPDX-License-Identifier: GPL-2.0

//! The ring of events, and its readers.
//!
//! Events are written under the lock of a run queue, so the ring has a raw lock of its own that
//! nests inside and is held for one copy. Every reader has a position; who was too slow is told
//! how much it lost. Readers that wait are woken by an irq_work, since nobody may be woken under
//! the lock of a run queue; it is queued only if somebody waits.

use super::{
    cpu::Cpu,
    global::pbs,
    pbs_core::{self, EventKind, PresentSlot},
    storage::table,
    trace,
};
use core::sync::atomic::{AtomicBool, Ordering};
use kernel::{
    alloc::KVVec,
    bindings,
    irq_work::{IrqWork, IrqWorkCallback},
    new_raw_spinlock, new_wait_queue,
    poll::{self, PollTable},
    prelude::*,
    raw_spinlock::RawSpinLock,
    sync::Arc,
    wait_queue::WaitQueue,
};

/// An event as it is on the wire.
pub(crate) type Record = bindings::pbs_event;

/// Events held: 8 MiB. A reader on a plan's CPU gets the CPU in the unallocated time at the
/// latest, every 95 ms by default; a slot makes a handful of events.
pub(crate) const CAPACITY: usize = 1 << 16;

struct Ring {
    records: KVVec<Record>,
    next_seq: u64,
}

impl Ring {
    fn first_seq(&self) -> u64 {
        self.next_seq.saturating_sub(CAPACITY as u64)
    }
}

/// Who waits for events, and whether anybody does.
#[pin_data]
struct Waiters {
    /// Set by who is about to wait before it looks at the ring; taken by who adds an event.
    waiting: AtomicBool,
    #[pin]
    queue: WaitQueue,
}

/// Wakes the readers up, outside every lock.
pub(crate) struct Notify(Arc<Waiters>);

impl IrqWorkCallback for Notify {
    fn run(this: &IrqWork<Self>) {
        this.0.queue.wake_all();
    }
}

/// The ring of events.
#[pin_data]
pub(crate) struct Events {
    #[pin]
    ring: RawSpinLock<Ring>,
    waiters: Arc<Waiters>,
    #[pin]
    notify: IrqWork<Notify>,
}

impl Events {
    /// An empty ring.
    pub(crate) fn new() -> Result<impl PinInit<Self, Error>> {
        let ring = Ring {
            records: table(CAPACITY, Record::default)?,
            next_seq: 0,
        };
        let waiters = Arc::pin_init(
            pin_init!(Waiters {
                waiting: AtomicBool::new(false),
                queue <- new_wait_queue!("pbs_events"),
            }),
            GFP_KERNEL,
        )?;
        let notified = waiters.clone();
        Ok(try_pin_init!(Self {
            ring <- new_raw_spinlock!(ring, "pbs_events"),
            waiters,
            notify <- IrqWork::new(Notify(notified)),
        }))
    }

    /// Adds an event and returns its number. Any context but NMI, also with a run queue locked.
    /// Its number is written there, too.
    pub(crate) fn push(&self, record: &mut Record) -> u64 {
        {
            let mut ring = self.ring.lock();
            record.seq = ring.next_seq;
            let place = (ring.next_seq % CAPACITY as u64) as usize;
            if let Some(entry) = ring.records.get_mut(place) {
                *entry = *record;
            }
            ring.next_seq += 1;
        }
        // The ring's lock orders this after the event for whoever sets it and then looks there.
        if self.waiters.waiting.load(Ordering::Relaxed)
            && self.waiters.waiting.swap(false, Ordering::AcqRel)
        {
            self.notify.queue();
        }
        record.seq
    }

    /// The oldest event held and the number of the next one.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let ring = self.ring.lock();
        (ring.first_seq(), ring.next_seq)
    }

    /// Copies events from `position` on into `batch`, moves the position past them, and returns
    /// how many there were.
    ///
    /// If the position is not held any more, the first is an overrun record that says how many
    /// events are lost.
    pub(crate) fn take(&self, position: &mut u64, batch: &mut [Record]) -> usize {
        let ring = self.ring.lock();
        let mut filled = 0;
        if *position < ring.first_seq() {
            let Some(entry) = batch.first_mut() else {
                return 0;
            };
            *entry = Record {
                seq: *position,
                kind: EventKind::Overrun as u16,
                process: bindings::PBS_IDLE,
                task: bindings::PBS_NO_TASK,
                slot: pbs_core::wire::NO_SLOT,
                value: ring.first_seq() - *position,
                ..Record::default()
            };
            *position = ring.first_seq();
            filled = 1;
        }
        for entry in batch.iter_mut().skip(filled) {
            if *position >= ring.next_seq {
                break;
            }
            let place = (*position % CAPACITY as u64) as usize;
            let Some(record) = ring.records.get(place) else {
                break;
            };
            *entry = *record;
            *position += 1;
            filled += 1;
        }
        filled
    }

    /// Waits until there is an event at `position`.
    pub(crate) fn wait(&self, position: u64) -> Result {
        self.waiters
            .queue
            .wait_interruptible(|| self.ready(position))
    }

    /// What `poll(2)` says of a reader at `position`.
    pub(crate) fn poll<'a>(&'a self, position: u64, table: &PollTable<'a>) -> u32 {
        table.register(&self.waiters.queue);
        if self.ready(position) {
            poll::IN | poll::RDNORM
        } else {
            0
        }
    }

    /// Whether there is an event at `position`; if not, the next one will wake the waiters.
    fn ready(&self, position: u64) -> bool {
        self.waiters.waiting.store(true, Ordering::Release);
        self.bounds().1 > position
    }
}

/// Takes the events of a CPU's node: adds what only the kernel knows.
pub(crate) struct Emitter<'a> {
    cpu: &'a Cpu,
    plan_id: u64,
    pid: i32,
}

impl<'a> Emitter<'a> {
    /// For events of the plan `plan_id` on `cpu`, about the thread `pid`, 0 if it is not known.
    pub(crate) fn new(cpu: &'a Cpu, plan_id: u64, pid: i32) -> Self {
        Self { cpu, plan_id, pid }
    }
}

impl pbs_core::Sink for Emitter<'_> {
    fn emit(&mut self, event: &pbs_core::Event) -> u64 {
        self.cpu.count_one(event.kind);
        // Without a ring the class is not up, and nothing happens.
        let Some(pbs) = pbs() else { return 0 };
        let mut record = Record {
            seq: 0,
            time_ns: event.time_ns,
            plan_id: self.plan_id,
            kind: event.kind as u16,
            reason: event.reason,
            cpu: self.cpu.number(),
            process: event.process,
            task: event.task,
            slot: event.slot,
            planned_insns: event.planned_insns,
            retired_insns: event.retired_insns,
            lateness_insns: event.lateness_insns,
            value: event.value,
            peak_vm_bytes: event.peak_vm_bytes,
            peak_rss_bytes: event.peak_rss_bytes,
            preemptions: event.preemptions,
            pid: self.pid,
            node_lateness_insns: event.node_lateness_insns,
            stress: event.stress,
            level_percent: event.level_percent,
            reserved: 0,
        };
        let seq = pbs.events.push(&mut record);
        trace::event(event.kind, &record);
        seq
    }

    fn slot_begin(&mut self, slot: impl FnOnce() -> Option<PresentSlot>) {
        trace::slot_begin(self.cpu.number(), self.plan_id, slot);
    }

    fn slot_end(&mut self, slot: impl FnOnce() -> Option<PresentSlot>) {
        trace::slot_end(self.cpu.number(), self.plan_id, slot);
    }
}

// The wire format and the policy count the same things.
const _: () = assert!(core::mem::size_of::<Record>() == 128);
const _: () = assert!(bindings::pbs_event_kind_PBS_EV_TIER == EventKind::Tier as u32);
