// SPDX-License-Identifier: GPL-2.0

//! The watchdog: a CPU whose plan goes wrong is given back to the rest of Linux.
//!
//! It trusts nothing that the class does. A timer of its own, on another CPU where there is one,
//! has every CPU that has a plan look at itself in an interrupt, four times in the time that
//! [`Pbs::watchdog_ms`](crate::plans::global::Pbs::watchdog_ms) says. A look compares what is counted
//! anyway with what the last one saw, and costs nothing in between. If four in a row find the same
//! fault, the plan of the CPU is dropped by a work item, and its threads go to the fair class.
//!
//! Looks are counted, and not time: a machine that stood still, or a virtual CPU that was not
//! emulated, has not looked meanwhile.

use crate::{
    linux::{
        entity,
        sched_class::{self, RunQueue},
    },
    percpu::cpu::Cpu,
    plans::global::{pbs, Pbs},
    state::{
        watch::{Progress, Watch},
        State,
    },
};
use core::sync::atomic::Ordering;
use kernel::{
    bindings, clock,
    cpu::PossibleCpu,
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    irq_work::{IrqWork, IrqWorkCallback},
    prelude::*,
};

/// How many looks in a row have to find a fault, and are done in the time of the watchdog.
const LOOKS: u32 = 4;

/// The time of the watchdog that may be asked for, 0 for none beside, and the one that it has by
/// itself.
pub(crate) const LEAST_MS: u32 = 500;
pub(crate) const MOST_MS: u32 = 30_000;
pub(crate) const DEFAULT_MS: u32 = 5_000;

/// Why a plan is dropped: `enum pbs_drop`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Why {
    /// By `PBS_IOC_DROP`.
    Call = bindings::pbs_drop_PBS_DROP_CALL,
    /// By an operator's SysRq key.
    SysRq = bindings::pbs_drop_PBS_DROP_SYSRQ,
    /// Nobody has renewed its lease.
    Lease = bindings::pbs_drop_PBS_DROP_LEASE,
    /// The CPU decides no more.
    Decision = bindings::pbs_drop_PBS_DROP_DECISION,
    /// A thread was granted the CPU and not woken up for it.
    WakeUp = bindings::pbs_drop_PBS_DROP_WAKE_UP,
    /// A process was granted the CPU and got nowhere.
    Progress = bindings::pbs_drop_PBS_DROP_PROGRESS,
    /// The state of the plan contradicts itself.
    State = bindings::pbs_drop_PBS_DROP_STATE,
}

impl Why {
    const ALL: [Why; 7] = [
        Why::Call,
        Why::SysRq,
        Why::Lease,
        Why::Decision,
        Why::WakeUp,
        Why::Progress,
        Why::State,
    ];

    /// The reason of that number.
    pub(crate) fn from_number(number: u32) -> Option<Why> {
        Why::ALL.into_iter().find(|why| *why as u32 == number)
    }

    /// Its name in sysfs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Why::Call => "call",
            Why::SysRq => "sysrq",
            Why::Lease => "lease",
            Why::Decision => "decision",
            Why::WakeUp => "wake_up",
            Why::Progress => "progress",
            Why::State => "state",
        }
    }

    /// What the log says of it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Why::Call => "by PBS_IOC_DROP",
            Why::SysRq => "by SysRq",
            Why::Lease => "nobody has renewed its lease",
            Why::Decision => "the CPU decides no more",
            Why::WakeUp => "a thread was granted the CPU and not woken up for it",
            Why::Progress => "a process was granted the CPU and got nowhere",
            Why::State => "its state contradicts itself",
        }
    }

    /// Whether the class, or what it builds on, is in error.
    pub(crate) fn is_fault(self) -> bool {
        !matches!(self, Why::Call | Why::SysRq | Why::Lease)
    }

    /// Why the threads leave.
    pub(crate) fn of_threads(self) -> u32 {
        if self.is_fault() {
            bindings::pbs_eject_PBS_EJECT_FAULT
        } else {
            bindings::pbs_eject_PBS_EJECT_DROPPED
        }
    }
}

impl State {
    /// Looks at the CPU that this is called on, in an interrupt. Returns what its plan is to be
    /// dropped for, if that is so.
    ///
    /// Nothing is settled here: what the class has missed is not to be made up for.
    fn look(&mut self, rq: &RunQueue) -> Option<Why> {
        if self.node.is_none() {
            self.watch = Watch::default();
            return None;
        }
        if self.search() {
            return Some(Why::State);
        }
        if entity::in_class(rq, rq.current()) {
            rq.update_current();
        }
        self.charge(rq);
        let undecided = self.is_undecided();
        let stands = self.stands(rq);
        let found = match (undecided, stands) {
            (true, _) => Some(Why::Decision),
            (false, Stands::Yes(why)) => Some(why),
            (false, Stands::No) => None,
            // A look in unallocated time shows nothing.
            (false, Stands::Unknown) => return None,
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
    fn stands(&mut self, rq: &RunQueue) -> Stands {
        if self.is_unallocated() {
            return Stands::Unknown;
        }
        let (number, runs) = (self.occupancy.granted(), self.occupancy.runs_granted());
        let total_insns = self.insn_clock.total_insns();
        let seat = self.threads.as_ref().and_then(|t| t.get(number));
        let Some((seat, task)) = seat.and_then(|seat| Some((seat, seat.task.as_ref()?))) else {
            self.watch.note_nobody();
            return Stands::No;
        };
        let (parked, run_time_ns) = (seat.is_parked(), entity::run_time_ns(rq, task));
        // Another class has it, or the freezer, or it is about to leave or to die.
        let elsewhere =
            seat.boosted_at_ns.is_some() || seat.leaving != 0 || sched_class::is_frozen(task);
        let Progress {
            counted,
            same,
            ran,
            was_parked,
        } = self
            .watch
            .note_granted(number, parked, run_time_ns, total_insns);
        if elsewhere {
            return Stands::No;
        }
        if same && !ran && parked && was_parked {
            return Stands::Yes(Why::WakeUp);
        }
        // In the kernel nothing is counted; in user code something is.
        let in_kernel = same && ran && !(runs && sched_class::interrupted_user());
        if counted || in_kernel {
            Stands::No
        } else {
            Stands::Yes(Why::Progress)
        }
    }
}

/// Whether a plan stands still.
enum Stands {
    Yes(Why),
    No,
    /// It is not to run now.
    Unknown,
}

/// Has a CPU look at itself.
pub(crate) struct Look(pub(crate) PossibleCpu);

impl IrqWorkCallback for Look {
    fn run(this: &IrqWork<Self>) {
        let Some(pbs) = pbs() else { return };
        let Some(cpu) = pbs.cpu(this.0.number()) else {
            return;
        };
        if cpu.carries_watchdog.swap(false, Ordering::Relaxed) {
            pbs.begin_watch();
        }
        if let Some(why) = cpu.lock(|rq, _, state| state.look(rq)).flatten() {
            pbs.ask_to_drop(cpu, why);
        }
    }
}

/// Drops a plan whose lease is over.
pub(crate) struct LeaseEnd(pub(crate) PossibleCpu);

impl HrTimerCallback for LeaseEnd {
    fn expired(this: &HrTimer<Self>) -> Restart {
        let Some(pbs) = pbs() else { return Restart::No };
        let Some(cpu) = pbs.cpu(this.0.number()) else {
            return Restart::No;
        };
        let ends_ns = cpu.lock(|_, _, state| {
            let lease = state.lease?;
            if state
                .threads
                .as_ref()
                .is_some_and(|threads| threads.used() == 0)
            {
                // There is nothing to give back. Who comes has a whole lease at most.
                return Some(state.clock.now_ns().saturating_add(lease.length_ns()));
            }
            Some(lease.end_ns())
        });
        match ends_ns.flatten() {
            None => Restart::No,
            Some(ends_ns) if ends_ns > clock::monotonic_ns() => Restart::At(ends_ns),
            Some(_) => {
                pbs.ask_to_drop(cpu, Why::Lease);
                Restart::No
            }
        }
    }
}

/// Expires when it is time to look.
pub(crate) struct WatchTime;

impl HrTimerCallback for WatchTime {
    fn expired(_this: &HrTimer<Self>) -> Restart {
        let (Some(pbs), here) = (pbs(), kernel::cpu::current()) else {
            return Restart::No;
        };
        let Some(period_ns) = pbs.watch_period_ns() else {
            return Restart::No;
        };
        let carrier = carrier(pbs, here);
        if let Some(cpu) = carrier {
            cpu.carries_watchdog.store(true, Ordering::Relaxed);
        }
        let mut any = false;
        for cpu in online(pbs).filter(|cpu| cpu.has_plan()) {
            any = true;
            cpu.look.queue_on(cpu.id());
        }
        match carrier {
            _ if !any => Restart::No,
            Some(cpu) => {
                cpu.look.queue_on(cpu.id());
                Restart::No
            }
            // From now on: time that the machine stood still is not to be made up for.
            None => Restart::At(clock::monotonic_ns() + period_ns),
        }
    }
}

/// Which CPU is to have the timer from now on, if another one: if this one fails, nobody else would
/// look at it. One without a plan is left where it is.
fn carrier(pbs: &Pbs, here: u32) -> Option<&'static Cpu> {
    if !pbs.cpu(here)?.has_plan() {
        return None;
    }
    let others = || online(pbs).filter(|cpu| cpu.number() != here);
    let without = others().find(|cpu| !cpu.has_plan());
    let next = || others().find(|cpu| cpu.number() > here);
    without.or_else(next).or_else(|| others().next())
}

fn online(pbs: &Pbs) -> impl Iterator<Item = &'static Cpu> + '_ {
    pbs.cpus()
        .filter(|cpu| kernel::cpu::is_online(cpu.number()))
}

impl Pbs {
    /// How long after another every CPU is looked at; `None`: it is not.
    fn watch_period_ns(&self) -> Option<u64> {
        let ms = self.watchdog_ms.load(Ordering::Relaxed);
        (ms != 0).then(|| u64::from(ms) * 1_000_000 / u64::from(LOOKS))
    }

    /// Has the CPUs that have a plan looked at from now on, unless they are already. Any context but
    /// NMI.
    pub(crate) fn begin_watch(&self) {
        if let Some(period_ns) = self.watch_period_ns() {
            if !self.watchdog.is_armed() {
                self.watchdog.start_rel(period_ns);
            }
        }
    }

    /// Sets the time of the watchdog, 0: none.
    pub(crate) fn set_watchdog_ms(&self, ms: u32) -> Result {
        if ms != 0 && !(LEAST_MS..=MOST_MS).contains(&ms) {
            pr_warn!("watchdog_ms: {ms} is not 0, nor between {LEAST_MS} and {MOST_MS}\n");
            return Err(EINVAL);
        }
        self.watchdog_ms.store(ms, Ordering::Relaxed);
        match self.watch_period_ns() {
            Some(period_ns) => self.watchdog.start_rel(period_ns),
            None => {
                self.watchdog.try_cancel();
            }
        }
        Ok(())
    }
}
