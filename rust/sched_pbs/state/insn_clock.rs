// SPDX-License-Identifier: GPL-2.0

//! The instruction clock of a CPU: it counts the instructions that a thread has retired.
//!
//! The clock has three tiers, see [`Tier`]. The tier of a CPU is detected when it comes up
//! ([`crate::plans::calibrate`]). A counter that fails while the CPU runs is noticed when it is
//! read, and the tier falls; [`crate::plans::calibrate::recover`] brings it up again.

use crate::{linux::sched_class::RunQueue, pbs_core::Rate};
use core::sync::atomic::{AtomicU32, Ordering};
use kernel::{
    bindings,
    perf_event::{KernelCounter, Reading},
    str::CStr,
};

/// Ways to count instructions: `enum pbs_tier`, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u32)]
pub(crate) enum Tier {
    /// A counter that interrupts at a threshold.
    PmuOverflow = bindings::pbs_tier_PBS_TIER_PMU_OVERFLOW,
    /// A counter.
    Pmu = bindings::pbs_tier_PBS_TIER_PMU,
    /// The task's time at the calibrated rate.
    #[default]
    Clock = bindings::pbs_tier_PBS_TIER_CLOCK,
}

impl Tier {
    const ALL: [Tier; 3] = [Tier::PmuOverflow, Tier::Pmu, Tier::Clock];

    /// The tier of that number; the last for any other.
    pub(crate) fn from_number(number: u32) -> Tier {
        let known = Tier::ALL.iter().find(|tier| **tier as u32 == number);
        known.copied().unwrap_or_default()
    }

    /// The name of the tier, in sysfs and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tier::PmuOverflow => "pmu_overflow",
            Tier::Pmu => "pmu",
            Tier::Clock => "clock",
        }
    }
}

/// Reason why a CPU counts in another way than before: `enum pbs_tier_cause`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum TierCause {
    /// The counter stands still while user code runs.
    Stopped = bindings::pbs_tier_cause_PBS_TIER_STOPPED as u16,
    /// The counter is not on the PMU.
    Taken = bindings::pbs_tier_cause_PBS_TIER_TAKEN as u16,
    /// The counter was not on the PMU all the time.
    Multiplexed = bindings::pbs_tier_cause_PBS_TIER_MULTIPLEXED as u16,
    /// The counter passed a threshold without an interrupt.
    Silent = bindings::pbs_tier_cause_PBS_TIER_SILENT as u16,
    /// The counter works again.
    Returned = bindings::pbs_tier_cause_PBS_TIER_RETURNED as u16,
}

impl TierCause {
    /// The tier that is left.
    fn leads_to(self) -> Tier {
        match self {
            TierCause::Silent => Tier::Pmu,
            _ => Tier::Clock,
        }
    }
}

/// The tier that the command line requests, 0: none.
static ASKED: AtomicU32 = AtomicU32::new(0);

kernel::boot_param!("pbs.tier=", ask);

/// Sets the tier to use, instead of the best that is found.
fn ask(text: &CStr) -> bool {
    let tier = Tier::ALL
        .iter()
        .find(|tier| tier.name().as_bytes() == text.as_bytes());
    if let Some(tier) = tier {
        ASKED.store(*tier as u32, Ordering::Relaxed);
    }
    tier.is_some()
}

/// The tier that the command line requests.
pub(crate) fn asked() -> Option<Tier> {
    match ASKED.load(Ordering::Relaxed) {
        0 => None,
        number => Some(Tier::from_number(number)),
    }
}

/// Number of checks with a thread in user space after which a counter that stood still counts as
/// stopped, if it did so for [`STILL_NS`], too. The interrupts of a slow kernel may follow so fast
/// that the thread makes no progress between them.
const STILL_LOOKS: u32 = 3;

/// See [`STILL_LOOKS`], in the time of the task.
const STILL_NS: u64 = 20_000_000;

/// Number of checks in a row that may find a threshold passed before an interrupt has arrived: it
/// may wait for the end of another one.
const SILENT_LOOKS: u32 = 4;

/// The instruction clock of a CPU, under the lock of its run queue.
#[derive(Default)]
pub(crate) struct InsnClock {
    counter: Option<KernelCounter>,
    tier: Tier,
    rate: Option<Rate>,
    /// The counter at the last reading.
    last_count: u64,
    /// The task clock at the last reading of it, where it stands for the counter.
    last_task_ns: u64,
    /// All instructions that were ever counted here.
    total_insns: u64,
    /// Total count at which the counter will interrupt; `None`: it was not set to.
    overflow_at_insns: Option<u64>,
    /// Number of checks that found that count passed.
    silent_looks: u32,
    /// Checks with a thread in user space since the counter moved, and the task clock then.
    still_looks: u32,
    moved_task_ns: u64,
    /// The counter's times at the last check.
    last_times: Option<Reading>,
    /// Fault of the counter, until it is dealt with.
    fault: Option<TierCause>,
}

impl InsnClock {
    /// Takes the counter that was found and its tier, and returns the counter before.
    pub(crate) fn install(
        &mut self,
        counter: Option<KernelCounter>,
        tier: Tier,
    ) -> Option<KernelCounter> {
        self.tier = if counter.is_some() { tier } else { Tier::Clock };
        self.forget_counter();
        // A counter that is wanted and not available is as good as one that was taken.
        self.fault = (self.tier != tier).then_some(TierCause::Taken);
        core::mem::replace(&mut self.counter, counter)
    }

    /// Sets the rate at which time is converted to instructions.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = Some(rate);
    }

    /// The tier of this CPU.
    pub(crate) fn tier(&self) -> Tier {
        self.tier
    }

    /// All instructions that were counted, as of the last reading.
    pub(crate) fn total_insns(&self) -> u64 {
        self.total_insns
    }

    /// The counter, if there is one.
    pub(crate) fn counter(&self) -> Option<&KernelCounter> {
        self.counter.as_ref()
    }

    /// Makes the next check find that the counter was not on the PMU all the time.
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    pub(crate) fn pretend_multiplexed(&mut self) -> Option<()> {
        // Without a counter there is nothing to pretend.
        let now = self.counter.as_ref()?.read_local().ok()?;
        self.last_times = Some(Reading {
            running_ns: now.running_ns.saturating_add(1_000_000_000),
            ..now
        });
        Some(())
    }

    /// The instructions retired on this CPU since the last call.
    ///
    /// The run queue is this CPU's.
    pub(crate) fn advance(&mut self, rq: &RunQueue) -> u64 {
        let insns = match self.count(rq) {
            Some(count) => {
                let before = core::mem::replace(&mut self.last_count, count);
                count.saturating_sub(before)
            }
            None => self.task_time_insns(rq),
        };
        if insns != 0 {
            self.still_looks = 0;
        }
        self.total_insns = self.total_insns.wrapping_add(insns);
        insns
    }

    /// The task time since the last call, as instructions.
    fn task_time_insns(&mut self, rq: &RunQueue) -> u64 {
        let now_ns = rq.clock_task_ns();
        let before_ns = match core::mem::replace(&mut self.last_task_ns, now_ns) {
            // The counter has just failed: instructions retired since its last reading are lost.
            0 => now_ns,
            before_ns => before_ns,
        };
        self.rate.map_or(0, |rate| {
            let before_insns = rate.to_insns(before_ns);
            rate.to_insns(now_ns).saturating_sub(before_insns)
        })
    }

    /// Reads the counter, if it is to be used and can be.
    #[inline]
    fn count(&mut self, rq: &RunQueue) -> Option<u64> {
        if self.tier == Tier::Clock {
            return None;
        }
        match self.counter.as_ref()?.read_active(rq.interrupts_off()) {
            Ok(count) => Some(count),
            Err(_) => {
                self.fail(TierCause::Taken);
                None
            }
        }
    }

    /// Makes the counter interrupt after `left_insns` more, or before.
    ///
    /// An interrupt that is set for an earlier moment stays: that costs less than setting it anew.
    pub(crate) fn interrupt_after(&mut self, rq: &RunQueue, left_insns: u64) {
        if self.tier != Tier::PmuOverflow {
            return;
        }
        let at_insns = self.total_insns.wrapping_add(left_insns);
        let is_set = |set_insns: u64| set_insns > self.total_insns && set_insns <= at_insns;
        if self.overflow_at_insns.is_some_and(is_set) {
            return;
        }
        let Some(counter) = &self.counter else { return };
        match counter.overflow_after(rq.interrupts_off(), left_insns) {
            // The silent looks stay: a counter that never interrupts is set anew at each threshold.
            Ok(()) => self.overflow_at_insns = Some(at_insns),
            Err(_) => self.fail(TierCause::Taken),
        }
    }

    /// Notes that the counter has interrupted.
    pub(crate) fn interrupted(&mut self) {
        self.overflow_at_insns = None;
        self.silent_looks = 0;
    }

    /// Checks whether the counter can be believed, from the timer's or the tick's interrupt and
    /// after a reading. `in_user`: user code was interrupted.
    pub(crate) fn look(&mut self, rq: &RunQueue, in_user: bool) {
        if self.tier == Tier::Clock {
            return;
        }
        if self
            .overflow_at_insns
            .is_some_and(|at_insns| self.total_insns >= at_insns)
        {
            self.silent_looks += 1;
            if self.silent_looks > SILENT_LOOKS {
                self.overflow_at_insns = None;
                self.fail(TierCause::Silent);
            }
        }
        if !in_user {
            return;
        }
        self.still_looks = self.still_looks.saturating_add(1);
        if self.still_looks == 1 {
            // The counter has moved, as mostly, and no clock need be read.
            self.moved_task_ns = 0;
            return;
        }
        let task_ns = rq.clock_task_ns();
        if self.moved_task_ns == 0 {
            self.moved_task_ns = task_ns;
        }
        let still_ns = task_ns.saturating_sub(self.moved_task_ns);
        if self.still_looks > STILL_LOOKS && still_ns >= STILL_NS {
            self.fail(TierCause::Stopped);
        }
    }

    /// Checks whether the counter was on the PMU all the time, from the tick's interrupt.
    pub(crate) fn look_at_times(&mut self) {
        if self.tier == Tier::Clock {
            return;
        }
        let Some(Ok(now)) = self.counter.as_ref().map(KernelCounter::read_local) else {
            return;
        };
        if let Some(last) = self.last_times.replace(now) {
            let wanted_ns = now.enabled_ns.saturating_sub(last.enabled_ns);
            let counted_ns = now.running_ns.saturating_sub(last.running_ns);
            // The two are read at once, and are equal as long as nothing is missed.
            if counted_ns < wanted_ns {
                self.fail(TierCause::Multiplexed);
            }
        }
    }

    /// Stops the use of the part that has failed; the first cause is the one that is reported.
    fn fail(&mut self, cause: TierCause) {
        self.tier = self.tier.max(cause.leads_to());
        self.fault = self.fault.or(Some(cause));
        if self.tier == Tier::Clock {
            self.forget_counter();
        }
    }

    fn forget_counter(&mut self) {
        self.overflow_at_insns = None;
        self.silent_looks = 0;
        self.still_looks = 0;
        self.last_times = None;
        self.last_count = u64::MAX;
        self.last_task_ns = 0;
    }

    /// Takes the fault that was found since the last call.
    pub(crate) fn take_fault(&mut self) -> Option<TierCause> {
        self.fault.take()
    }
}
