// SPDX-License-Identifier: GPL-2.0

//! The watchdog: a CPU whose plan goes wrong is given back to the rest of Linux.
//!
//! The watchdog relies on nothing in the class. A timer of its own, on another CPU where there is
//! one, makes every CPU that has a plan check itself in an interrupt, four times in the time
//! `watchdog_ms` of sysfs. A check compares counts that exist anyway with those of the last check,
//! and costs nothing in between. If four in a row find the same fault, a work item drops the plan
//! of the CPU, and its threads go to the fair class.
//!
//! Checks are counted, and not time: a machine that stood still, or a virtual CPU that was not
//! emulated, has not checked meanwhile.

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

/// Number of checks in a row that must find a fault; they are made in the time of the watchdog.
const LOOKS: u32 = 4;

/// Limits of the time of the watchdog, besides 0 for none, and its default.
const LEAST_MS: u32 = 500;
const MOST_MS: u32 = 30_000;
const DEFAULT_MS: u32 = 5_000;

impl State {
    /// Checks the CPU that this is called on, in an interrupt. Returns the reason why its plan is
    /// to be dropped, if there is one.
    ///
    /// The check settles nothing: it does not make up for anything that the class has missed.
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
            // A check in unallocated time shows nothing.
            (false, Standstill::Unknown) => return None,
        };
        let in_a_row = self.watch.note_fault(found.is_some());
        found.filter(|_| in_a_row >= LOOKS)
    }

    /// Searches the state of the node and some of its processes for contradictions.
    fn search(&mut self) -> bool {
        let Some(node) = &self.node else { return false };
        self.watch.search(node)
    }

    /// Whether a decision was due at the last check already, or soon after it, and was not made.
    fn is_undecided(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        let Some(node) = &self.node else { return false };
        let due = node.until_ns().is_some_and(|at_ns| at_ns < now_ns);
        let settled_ns = node.settled_ns();
        let is_same = self.watch.note_decision(settled_ns);
        due && is_same
    }

    /// Whether no plan process makes progress, though one is granted the CPU.
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
        // In the kernel nothing is counted; in user code something is. Where this interrupt does
        // not tell, the last look of the timer or the tick does.
        let in_user = sched_class::interrupted().unwrap_or(self.looks.in_user());
        let in_kernel = same && ran && !(runs && in_user);
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
    /// The plan is not to run now.
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
    /// Time in which a plan that goes wrong is dropped, 0: never.
    ms: AtomicU32,
    /// Timer that expires when such plans must be searched for.
    #[pin]
    timer: HrTimer<WatchTime>,
}

static WATCHDOG: Published<Watchdog> = Published::none();

/// Makes the watchdog, which checks nothing yet.
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

/// Timer callback that starts a round of checks.
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
            // From now on: there is no need to make up for time in which the machine stood still.
            None => Restart::At(clock::monotonic_ns() + period_ns),
        }
    }
}

/// The CPU that is to have the timer from now on, if another one: if this CPU fails, no other CPU
/// would check it. The timer stays on a CPU without a plan.
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
    /// Time between two checks of a CPU; `None`: no checks.
    fn period_ns(&self) -> Option<u64> {
        let ms = self.ms.load(Ordering::Relaxed);
        (ms != 0).then(|| u64::from(ms) * 1_000_000 / u64::from(LOOKS))
    }

    /// Begins the checks of the CPUs that have a plan, unless they have begun already.
    fn begin(&self) {
        if let Some(period_ns) = self.period_ns() {
            if !self.timer.is_armed() {
                self.timer.start_rel(period_ns);
            }
        }
    }
}

/// Begins the checks of the CPUs that have a plan, unless they have begun already. Any context but
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
