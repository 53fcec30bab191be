// SPDX-License-Identifier: GPL-2.0

//! The watchdog: a CPU whose plan goes wrong is given back to the rest of Linux.
//!
//! It trusts nothing that the class does. A timer of its own, on another CPU where there is one,
//! has every CPU that has a plan look at itself in an interrupt, four times in the time that
//! `watchdog_ms` in sysfs says. A look compares what is counted
//! anyway with what the last one saw, and costs nothing in between. If four in a row find the same
//! fault, the plan of the CPU is dropped by a work item, and its threads go to the fair class.
//!
//! Looks are counted, and not time: a machine that stood still, or a virtual CPU that was not
//! emulated, has not looked meanwhile.

use crate::{
    linux::{
        entity,
        published::Published,
        sched_class::{self, RunQueue},
    },
    percpu::{cpu::Cpu, cpus, drop_request::DropReason, inspection::WatchdogLook, works},
    state::{
        watch::{ProgressSinceLook, Watch},
        State,
    },
};
use core::sync::atomic::{AtomicU32, Ordering};
use kernel::{
    clock,
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    irq_work::{IrqWork, IrqWorkCallback},
    prelude::*,
};

/// How many looks in a row have to find a fault, and are done in the time of the watchdog.
const LOOKS: u32 = 4;

/// The time of the watchdog that may be asked for, 0 for none beside, and the one that it has by
/// itself.
const LEAST_MS: u32 = 500;
const MOST_MS: u32 = 30_000;
const DEFAULT_MS: u32 = 5_000;

impl State {
    /// Looks at the CPU that this is called on, in an interrupt. Returns what its plan is to be
    /// dropped for, if that is so.
    ///
    /// Nothing is settled here: what the class has missed is not to be made up for.
    fn look(&mut self, rq: &RunQueue) -> Option<DropReason> {
        if self.node.is_none() {
            self.watch = Watch::default();
            return None;
        }
        if self.search() {
            return Some(DropReason::State);
        }
        if entity::in_class(rq, rq.current()) {
            rq.update_current();
        }
        self.charge(rq);
        let undecided = self.is_undecided();
        let stands = self.stands(rq);
        let found = match (undecided, stands) {
            (true, _) => Some(DropReason::Decision),
            (false, Standstill::Yes(reason)) => Some(reason),
            (false, Standstill::No) => None,
            // A look in unallocated time shows nothing.
            (false, Standstill::Unknown) => return None,
        };
        let in_a_row = self.watch.note_fault(found.is_some());
        found.filter(|_| in_a_row >= LOOKS)
    }

    /// Searches some processes, and what there is once, for contradictions.
    fn search(&mut self) -> bool {
        let Some(node) = &self.node else { return false };
        self.watch.search(node)
    }

    /// Whether it was time to decide at the last look already, or was soon after it, and nobody has.
    fn is_undecided(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        let Some(node) = &self.node else { return false };
        let due = node.until_ns().is_some_and(|at_ns| at_ns < now_ns);
        let settled_ns = node.settled_ns();
        let is_same = self.watch.note_decision(settled_ns);
        due && is_same
    }

    /// Whether no plan process gets anywhere, though one is granted the CPU.
    fn stands(&mut self, rq: &RunQueue) -> Standstill {
        if self.is_unallocated() {
            return Standstill::Unknown;
        }
        let (number, runs) = (self.occupancy.granted(), self.occupancy.runs_granted());
        let total_insns = self.insn_clock.total_insns();
        let seat = self.threads.as_ref().and_then(|t| t.get(number));
        let Some((seat, task)) = seat.and_then(|seat| Some((seat, seat.task.as_ref()?))) else {
            self.watch.note_nobody();
            return Standstill::No;
        };
        let (parked, run_time_ns) = (seat.is_parked(), entity::run_time_ns(rq, task));
        // Another class has it, or the freezer, or it is about to leave or to die.
        let elsewhere =
            seat.boosted_at_ns.is_some() || seat.leaving != 0 || sched_class::is_frozen(task);
        let ProgressSinceLook {
            counted,
            same,
            ran,
            was_parked,
        } = self
            .watch
            .note_granted(number, parked, run_time_ns, total_insns);
        if elsewhere {
            return Standstill::No;
        }
        if same && !ran && parked && was_parked {
            return Standstill::Yes(DropReason::WakeUp);
        }
        // In the kernel nothing is counted; in user code something is.
        let in_kernel = same && ran && !(runs && sched_class::interrupted_user());
        if counted || in_kernel {
            Standstill::No
        } else {
            Standstill::Yes(DropReason::Progress)
        }
    }
}

/// Whether a plan stands still.
enum Standstill {
    Yes(DropReason),
    No,
    /// It is not to run now.
    Unknown,
}

impl IrqWorkCallback for WatchdogLook {
    fn run(this: &IrqWork<Self>) {
        let Some(cpu) = cpus::get(this.0.number()) else {
            return;
        };
        if cpu.inspection.take_watchdog() {
            begin();
        }
        if let Some(reason) = cpu.lock(|rq, _, state| state.look(rq)).flatten() {
            works::drop_soon(cpu, reason);
        }
    }
}

/// The watchdog of the machine.
#[pin_data]
struct Watchdog {
    /// In how much time a plan that goes wrong is dropped, 0: never.
    ms: AtomicU32,
    /// Expires when it is time to look for such plans.
    #[pin]
    timer: HrTimer<WatchTime>,
}

static WATCHDOG: Published<Watchdog> = Published::none();

/// Makes the watchdog, which looks at nothing yet.
pub(crate) fn publish() -> Result {
    WATCHDOG.publish(KBox::pin_init(
        pin_init!(Watchdog {
            ms: AtomicU32::new(DEFAULT_MS),
            timer <- HrTimer::new(WatchTime),
        }),
        GFP_KERNEL,
    )?);
    Ok(())
}

/// Expires when it is time to look.
struct WatchTime;

impl HrTimerCallback for WatchTime {
    fn expired(_this: &HrTimer<Self>) -> Restart {
        let Some(period_ns) = WATCHDOG.get().and_then(Watchdog::period_ns) else {
            return Restart::No;
        };
        let carrier = carrier(kernel::cpu::current());
        if let Some(cpu) = carrier {
            cpu.inspection.hand_over_watchdog();
        }
        let mut any = false;
        for cpu in cpus::online().filter(|cpu| cpu.usage.has_plan()) {
            any = true;
            cpu.inspection.queue();
        }
        match carrier {
            _ if !any => Restart::No,
            Some(cpu) => {
                cpu.inspection.queue();
                Restart::No
            }
            // From now on: time that the machine stood still is not to be made up for.
            None => Restart::At(clock::monotonic_ns() + period_ns),
        }
    }
}

/// Which CPU is to have the timer from now on, if another one: if this one fails, nobody else would
/// look at it. One without a plan is left where it is.
fn carrier(here: u32) -> Option<&'static Cpu> {
    if !cpus::get(here)?.usage.has_plan() {
        return None;
    }
    let others = || cpus::online().filter(|cpu| cpu.number() != here);
    let without = others().find(|cpu| !cpu.usage.has_plan());
    let next = || others().find(|cpu| cpu.number() > here);
    without.or_else(next).or_else(|| others().next())
}

impl Watchdog {
    /// How long after another every CPU is looked at; `None`: it is not.
    fn period_ns(&self) -> Option<u64> {
        let ms = self.ms.load(Ordering::Relaxed);
        (ms != 0).then(|| u64::from(ms) * 1_000_000 / u64::from(LOOKS))
    }

    /// Has the CPUs that have a plan looked at from now on, unless they are already.
    fn begin(&self) {
        if let Some(period_ns) = self.period_ns() {
            if !self.timer.is_armed() {
                self.timer.start_rel(period_ns);
            }
        }
    }
}

/// Has the CPUs that have a plan looked at from now on, unless they are already. Any context but
/// NMI.
pub(crate) fn begin() {
    if let Some(watchdog) = WATCHDOG.get() {
        watchdog.begin();
    }
}

/// The time in which a plan that goes wrong is dropped, 0: it is not.
pub(crate) fn ms() -> u32 {
    WATCHDOG
        .get()
        .map_or(0, |watchdog| watchdog.ms.load(Ordering::Relaxed))
}

/// Sets the time in which a plan that goes wrong is dropped, 0: it is not.
pub(crate) fn set_ms(ms: u32) -> Result {
    let watchdog = WATCHDOG.get().ok_or(ENODEV)?;
    if ms != 0 && !(LEAST_MS..=MOST_MS).contains(&ms) {
        pr_warn!("watchdog_ms: {ms} is not 0, nor between {LEAST_MS} and {MOST_MS}\n");
        return Err(EINVAL);
    }
    watchdog.ms.store(ms, Ordering::Relaxed);
    match watchdog.period_ns() {
        Some(period_ns) => watchdog.timer.start_rel(period_ns),
        None => {
            watchdog.timer.try_cancel();
        }
    }
    Ok(())
}
