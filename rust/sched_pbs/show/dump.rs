// SPDX-License-Identifier: GPL-2.0

//! Description of a CPU's plan in words: for the kernel's log and for debugfs.
//!
//! The state is copied piece by piece, with the run queue locked for each only, and written with no
//! lock held. A run queue that stays locked is not waited for: therefore this can be called
//! anywhere.

use crate::{
    linux::sched_class::RunQueueGuard,
    pbs_core::{EventKind, Grant},
    percpu::{access, cpu::Cpu, drop_request::DropReason},
    rings::events,
    state::{
        threads::{Parked, Seat, SeatNumber},
        State,
    },
};
use core::fmt::{self, Write};
use kernel::{alloc::KVVec, prelude::*, record_ring::Look, task_ext::give_way};

/// Number of the last events that are shown.
const EVENTS: u64 = 64;

/// Number of seats that are checked, and of threads that are copied, with the run queue locked.
const SEATS_A_LOCK: SeatNumber = 128;
const THREADS_A_LOCK: usize = 8;

/// Greatest number of threads in the log.
pub(crate) const THREADS_IN_LOG: usize = 64;

/// Number of attempts to lock a run queue.
const TRIES: usize = 10_000;

/// Calls `function` with the state of a CPU; `None`: its run queue stays locked.
fn look<R>(cpu: &Cpu, tries: usize, function: impl FnOnce(&mut State) -> R) -> Option<R> {
    let mut rq = (0..tries).find_map(|_| {
        let rq = RunQueueGuard::try_lock(cpu.id());
        if rq.is_none() {
            core::hint::spin_loop();
        }
        rq
    })?;
    rq.update_clock();
    access::with_state(rq.as_mut(), |_, _, state| function(state))
}

/// The state of the plan as a whole.
struct PlanSummary {
    plan_id: u64,
    ended: bool,
    unallocated: bool,
    slot: (u32, u32),
    granted: Option<u32>,
    reason: Grant,
    granted_pid: i32,
    running_pid: i32,
    now_ns: u64,
    settled_ns: u64,
    until_ns: Option<u64>,
    left_insns: Option<u64>,
    total_insns: u64,
    lateness_insns: i64,
    processes: usize,
    unfinished: u32,
    threads: u32,
    contradiction: Option<&'static str>,
}

impl PlanSummary {
    fn of(state: &mut State) -> Option<PlanSummary> {
        let now_ns = state.clock.now_ns();
        let node = state.node.as_ref()?;
        let pid = |number| {
            let seat = state.threads.as_ref().and_then(|t| t.get(number));
            seat.and_then(|seat| seat.task.as_ref())
                .map_or(0, |task| task.pid())
        };
        let (granted, reason) = node.granted();
        Some(PlanSummary {
            plan_id: node.plan_id(),
            ended: node.ended(),
            unallocated: node.is_unallocated(),
            slot: (node.cursor(), node.slots()),
            granted: granted.and_then(|p| Some(node.plan().process(p)?.id)),
            reason,
            granted_pid: pid(state.occupancy.granted()),
            running_pid: pid(state.occupancy.running()),
            now_ns,
            settled_ns: node.settled_ns(),
            until_ns: node.until_ns(),
            left_insns: node.left_insns(),
            total_insns: state.insn_clock.total_insns(),
            lateness_insns: node.lateness_insns(),
            processes: node.plan().processes().len(),
            unfinished: node.unfinished(),
            threads: state.threads.as_ref().map_or(0, |threads| threads.used()),
            contradiction: state.watch.contradiction(),
        })
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Default)]
struct ThreadSummary {
    pid: i32,
    /// Process and task of the thread.
    of: Option<(u32, u32)>,
    /// The process and the task that the thread waits for.
    after: Option<(u32, u32)>,
    active: bool,
    state: &'static str,
    leaving: u16,
}

impl ThreadSummary {
    fn of(state: &State, number: SeatNumber, seat: &Seat) -> Option<ThreadSummary> {
        let threads = state.threads.as_ref()?;
        let process = threads.rows().process(seat.row);
        let info = process.and_then(|p| state.node.as_ref()?.process(p));
        Some(ThreadSummary {
            pid: seat.task.as_ref()?.pid(),
            of: info.map(|info| (info.id, info.task)),
            after: process.and_then(|p| state.node.as_ref()?.waits_for(p)),
            active: threads.process_if_active(number).is_some(),
            state: match seat.parked {
                _ if number == state.occupancy.running() => "runs",
                _ if seat.boosted_at_ns.is_some() => "boosted",
                Parked::Going | Parked::Interrupted => "goes_to_wait",
                Parked::Asleep => "waits",
                Parked::No if seat.queued && seat.stopping => "stops",
                Parked::No if seat.queued => "runnable",
                Parked::No => "blocked",
            },
            leaving: seat.leaving,
        })
    }
}

/// Writes the state of a CPU's plan, and of at most `most_threads` threads.
pub(crate) fn write(out: &mut impl Write, cpu: &Cpu, most_threads: usize) -> fmt::Result {
    let number = cpu.number();
    let tier = cpu.counter.tier().name();
    write!(
        out,
        "cpu {number} tier {tier} overflows {}",
        cpu.counter.overflows()
    )?;
    writeln!(
        out,
        " timer_interrupts {} dropped {}",
        cpu.alarm.interrupts(),
        cpu.drop_request.last().map_or("no", DropReason::name)
    )?;
    match look(cpu, TRIES, PlanSummary::of) {
        None => writeln!(out, "  its run queue is locked")?,
        Some(None) => writeln!(out, "  no plan")?,
        Some(Some(head)) => {
            write_head(out, &head)?;
            write_threads(out, cpu, most_threads)?;
        }
    }
    write!(out, "  counts")?;
    for kind in EventKind::ALL {
        let count = cpu.counts.get(kind as usize);
        if count != 0 {
            write!(out, " {} {count}", kind.name())?;
        }
    }
    writeln!(out)?;
    write_events(out, cpu)
}

/// Writes the main facts of a CPU's plan in one line, without waiting for anything: for a kernel
/// that panics.
pub(crate) fn write_line(out: &mut impl Write, cpu: &Cpu) -> fmt::Result {
    let number = cpu.number();
    match look(cpu, 1, PlanSummary::of) {
        None => writeln!(out, "cpu {number} has a plan; its run queue is locked"),
        Some(None) => Ok(()),
        Some(Some(head)) => writeln!(
            out,
            "cpu {number} plan {} slot {} of {} granted thread {} running {} threads {}",
            head.plan_id,
            head.slot.0,
            head.slot.1,
            head.granted_pid,
            head.running_pid,
            head.threads
        ),
    }
}

fn write_head(out: &mut impl Write, head: &PlanSummary) -> fmt::Result {
    let state = match head {
        PlanSummary { ended: true, .. } => "ended",
        PlanSummary {
            unallocated: true, ..
        } => "unallocated",
        _ => "execution",
    };
    writeln!(
        out,
        "  plan {} state {state} slot {} of {} processes {} unfinished {} lateness_insns {}",
        head.plan_id,
        head.slot.0,
        head.slot.1,
        head.processes,
        head.unfinished,
        head.lateness_insns
    )?;
    write!(
        out,
        "  decided_ns -{}",
        head.now_ns - head.settled_ns.min(head.now_ns)
    )?;
    match head.until_ns {
        Some(until_ns) => write!(out, " until_ns {}", until_ns as i64 - head.now_ns as i64)?,
        None => write!(out, " until_ns never")?,
    }
    match head.left_insns {
        Some(left_insns) => write!(out, " left_insns {left_insns}")?,
        None => write!(out, " left_insns any")?,
    }
    writeln!(out, " counted_insns {}", head.total_insns)?;
    match head.granted {
        Some(id) => write!(out, "  granted process {id} for {:?}", head.reason)?,
        None => write!(out, "  granted nobody")?,
    }
    writeln!(
        out,
        " thread {} running {} threads {}",
        head.granted_pid, head.running_pid, head.threads
    )?;
    match head.contradiction {
        Some(what) => writeln!(out, "  contradiction: {what}"),
        None => Ok(()),
    }
}

fn write_threads(out: &mut impl Write, cpu: &Cpu, most: usize) -> fmt::Result {
    let mut from = 1;
    let mut told = 0;
    loop {
        let mut found = [ThreadSummary::default(); THREADS_A_LOCK];
        let mut len = 0;
        let next = look(cpu, TRIES, |state| {
            let threads = state.threads.as_ref()?;
            let end = threads.end().min(from + SEATS_A_LOCK);
            for number in from..end {
                let seat = threads.get(number)?;
                let Some(thread) = ThreadSummary::of(state, number, seat) else {
                    continue;
                };
                let Some(place) = found.get_mut(len) else {
                    return Some(number);
                };
                *place = thread;
                len += 1;
            }
            (end < threads.end()).then_some(end)
        });
        for thread in found.iter().take(len.min(most - told)) {
            write!(out, "  thread {} {}", thread.pid, thread.state)?;
            if let Some((process, task)) = thread.of {
                write!(
                    out,
                    " process {process} task {}",
                    NumberOrDash(u64::from(task))
                )?;
            }
            if let Some((process, task)) = thread.after {
                write!(out, " after process {process} task {task}")?;
            }
            if thread.active {
                write!(out, " active")?;
            }
            if thread.leaving != 0 {
                write!(out, " leaving {}", thread.leaving)?;
            }
            writeln!(out)?;
            told += 1;
        }
        match next.flatten() {
            Some(_) if told == most => return writeln!(out, "  and more threads"),
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// A number, or `-` for the greatest, which stands for none.
struct NumberOrDash(u64);

impl fmt::Display for NumberOrDash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX | 0xffff_ffff => out.write_str("-"),
            number => write!(out, "{number}"),
        }
    }
}

fn write_events(out: &mut impl Write, cpu: &Cpu) -> fmt::Result {
    let Some(ring) = events::of_cpu(cpu.number()) else {
        return Ok(());
    };
    let (tail, head) = ring.bounds();
    for number in tail.max(head.saturating_sub(EVENTS))..head {
        let Look::Record(record) = ring.look(number) else {
            continue;
        };
        let event = record.0;
        let mut known = EventKind::ALL.into_iter();
        let kind = known.find(|kind| *kind as u16 == event.kind);
        writeln!(
            out,
            "  event {} at_ns {} {} reason {} plan {} process {} task {} slot {} value {} pid {}",
            event.seq,
            event.time_ns,
            kind.map_or("?", EventKind::name),
            event.reason,
            event.plan_id,
            NumberOrDash(u64::from(event.process)),
            NumberOrDash(u64::from(event.task)),
            NumberOrDash(event.slot),
            event.value,
            event.pid
        )?;
    }
    Ok(())
}

/// Output buffer of [`text`].
struct Buffer(KVVec<u8>);

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let _ = give_way();
        self.0
            .extend_from_slice(text.as_bytes(), GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

/// The dump of a CPU for the log; cut off where memory is short. Sleeps.
pub(crate) fn text(cpu: &Cpu) -> KVVec<u8> {
    let mut buffer = Buffer(KVVec::new());
    // A text that was cut short is shown as far as it goes.
    let _ = write(&mut buffer, cpu, THREADS_IN_LOG);
    buffer.0
}

/// Writer that logs its input, line by line.
pub(crate) struct Log {
    line: [u8; LINE_BYTES],
    used_bytes: usize,
}

/// The longest line in the log; the rest of a longer one is left out.
const LINE_BYTES: usize = 256;

impl Log {
    /// A log in which no line has begun.
    pub(crate) fn new() -> Self {
        Self {
            line: [0; LINE_BYTES],
            used_bytes: 0,
        }
    }

    fn end_line(&mut self) {
        let used_bytes = core::mem::take(&mut self.used_bytes);
        let line = self.line.get(..used_bytes).unwrap_or_default();
        pr_err!("{}\n", core::str::from_utf8(line).unwrap_or_default());
    }
}

impl Write for Log {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // All of it is ASCII.
        for byte in text.bytes() {
            if byte == b'\n' {
                self.end_line();
            } else if let Some(place) = self.line.get_mut(self.used_bytes) {
                *place = byte;
                self.used_bytes += 1;
            }
        }
        Ok(())
    }
}
