// SPDX-License-Identifier: GPL-2.0

//! One CPU: its timer and its irq_work, its counts of events, and the way to its [`State`].

use crate::{
    engine::settle::Wake,
    linux::{
        entity,
        sched_class::{self, RunQueue, RunQueueGuard},
    },
    pbs_core::{EventKind, Rate},
    plans::{calibrate::MeasuredRate, global::pbs},
    protect::watchdog::{LeaseEnd, Look, Why},
    state::{insn_clock::Tier, State},
};
use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
use kernel::{
    cpu::PossibleCpu,
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    irq_work::{IrqWork, IrqWorkCallback},
    new_mutex,
    perf_event::OverflowHandler,
    prelude::*,
    sync::Mutex,
    task::Task,
    types::ARef,
};

/// What a CPU can be asked to do, as a bit.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Request {
    /// Some thread has to leave the class, which takes process context.
    Eject = 1 << 0,
    /// Its counter has failed, which process context may mend.
    Recover = 1 << 1,
    /// It has no tick of its own, and another CPU found it due.
    Tick = 1 << 2,
    /// A task on another CPU has ended that somebody here may wait for.
    Order = 1 << 3,
}

/// One CPU, for as long as the kernel runs.
#[pin_data]
pub(crate) struct Cpu {
    id: PossibleCpu,
    /// How many events of each kind there were, since boot.
    counts: [AtomicU64; EventKind::END],
    /// What is to be done in interrupt context on it: [`Request`]s.
    requests: AtomicU32,
    /// How it counts instructions, and how it did when it came up: [`Tier`].
    tier: AtomicU32,
    best_tier: AtomicU32,
    /// What was measured when it came up.
    measured_insns_per_ms: AtomicU64,
    rate_spread_permille: AtomicU64,
    /// The rate that an operator has said, 0: none.
    said_insns_per_ms: AtomicU64,
    /// How often its counter has interrupted.
    overflows: AtomicU64,
    /// How often its timer has expired.
    timer_interrupts: AtomicU64,
    /// A test has its interrupts not come.
    silent: AtomicBool,
    /// It has a plan, or threads of one; see [`crate::plans::usage`].
    used: AtomicBool,
    /// It has a plan.
    has_plan: AtomicBool,
    /// Why its plan is to be dropped, 0: it is not; and how many plans there were when that was
    /// asked for.
    drop_asked: AtomicU32,
    drop_asked_at: AtomicU64,
    /// Why its last plan was dropped: [`Why`], 0: it was not.
    dropped: AtomicU32,
    /// It is to have the watchdog's timer.
    pub(crate) carries_watchdog: AtomicBool,
    state: UnsafeCell<State>,
    /// Held by who has a thread enter or leave the class here, so that nobody else does so with the
    /// same thread meanwhile. Taken after the control lock and before the lock of the run queue.
    /// Who holds it may be a thread that waits for this CPU, so nothing else is to wait for it
    /// while a plan is in the way.
    #[pin]
    pub(crate) seats: Mutex<()>,
    /// Expires at the next moment that the clock brings, or that the count is predicted to.
    #[pin]
    timer: HrTimer<Expiry>,
    /// Does on the CPU, outside the lock, what could not be done where it was found necessary.
    #[pin]
    kick: IrqWork<Kick>,
    /// Does what the counter's interrupt, which may be an NMI, must not.
    #[pin]
    overflowed: IrqWork<Overflowed>,
    /// Expires when the lease of its plan may be over.
    #[pin]
    pub(crate) lease: HrTimer<LeaseEnd>,
    /// Looks at it for the watchdog.
    #[pin]
    pub(crate) look: IrqWork<Look>,
}

// SAFETY: The state is reached through `entity::with_state` only, under the lock of the CPU's run
// queue; all else is `Sync` itself.
unsafe impl Sync for Cpu {}
// SAFETY: Nothing in it belongs to a thread.
unsafe impl Send for Cpu {}

impl Cpu {
    /// The CPU of that number, without a plan.
    pub(crate) fn new(id: PossibleCpu) -> impl PinInit<Self> {
        pin_init!(Self {
            id,
            counts: [const { AtomicU64::new(0) }; EventKind::END],
            requests: AtomicU32::new(0),
            tier: AtomicU32::new(Tier::Clock as u32),
            best_tier: AtomicU32::new(Tier::Clock as u32),
            measured_insns_per_ms: AtomicU64::new(1),
            rate_spread_permille: AtomicU64::new(0),
            said_insns_per_ms: AtomicU64::new(0),
            overflows: AtomicU64::new(0),
            timer_interrupts: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            used: AtomicBool::new(false),
            has_plan: AtomicBool::new(false),
            drop_asked: AtomicU32::new(0),
            drop_asked_at: AtomicU64::new(0),
            dropped: AtomicU32::new(0),
            carries_watchdog: AtomicBool::new(false),
            state: UnsafeCell::new(State::default()),
            seats <- new_mutex!((), "pbs_seats"),
            timer <- HrTimer::new(Expiry(*id)),
            kick <- IrqWork::new_hard(Kick(*id)),
            overflowed <- IrqWork::new_hard(Overflowed(*id)),
            lease <- HrTimer::new(LeaseEnd(*id)),
            look <- IrqWork::new_hard(Look(*id)),
        })
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.id.number()
    }

    /// The same, as the proof that there is such a CPU.
    pub(crate) fn id(&self) -> PossibleCpu {
        self.id
    }

    /// How many events of the kind with that number there were.
    pub(crate) fn count(&self, kind: usize) -> u64 {
        self.counts
            .get(kind)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts one more event of `kind`. With the run queue locked, so that nobody else does.
    #[inline]
    pub(crate) fn count_one(&self, kind: EventKind) {
        if let Some(count) = self.counts.get(kind as usize) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// For [`entity::with_state`] only.
    pub(crate) fn state(&self) -> *mut State {
        self.state.get()
    }

    /// Locks the run queue of this CPU and calls `function` with the state.
    pub(crate) fn lock<R>(
        &self,
        function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
    ) -> Option<R> {
        finish(RunQueueGuard::lock(self.id), function)
    }

    /// Has the threads that should leave the class leave it soon. Any context but NMI.
    pub(crate) fn request_ejection(&self) {
        self.request(Request::Eject);
    }

    /// Whether it has what it needs for plans. See [`crate::plans::usage`], as for the next one.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Notes that, and returns what was noted before.
    pub(crate) fn set_used(&self, used: bool) -> bool {
        self.used.swap(used, Ordering::Relaxed)
    }

    /// How it counts instructions.
    pub(crate) fn tier(&self) -> Tier {
        Tier::from_number(self.tier.load(Ordering::Relaxed))
    }

    /// How it counted when it came up.
    pub(crate) fn best_tier(&self) -> Tier {
        Tier::from_number(self.best_tier.load(Ordering::Relaxed))
    }

    /// Notes how it counts from now on.
    pub(crate) fn set_tier(&self, tier: Tier) {
        self.silent.store(false, Ordering::Relaxed);
        self.tier.store(tier as u32, Ordering::Relaxed);
    }

    /// Notes what was found when it came up.
    pub(crate) fn set_found(&self, tier: Tier, rate: &MeasuredRate) {
        self.set_tier(tier);
        self.best_tier.store(tier as u32, Ordering::Relaxed);
        self.measured_insns_per_ms
            .store(rate.rate.insns_per_ms(), Ordering::Relaxed);
        self.rate_spread_permille
            .store(rate.spread_permille, Ordering::Relaxed);
    }

    /// The rate at which it retires instructions: as an operator has said it, or else as measured.
    pub(crate) fn rate(&self) -> Rate {
        match self.said_insns_per_ms.load(Ordering::Relaxed) {
            0 => Rate::new(self.measured_insns_per_ms.load(Ordering::Relaxed)),
            insns_per_ms => Rate::new(insns_per_ms),
        }
    }

    /// The fastest that a thread on it is expected to be. Who is said to be slow may be as fast as
    /// was measured, and is to be stopped in time all the same.
    pub(crate) fn fastest_rate(&self) -> Rate {
        let said = self.said_insns_per_ms.load(Ordering::Relaxed);
        Rate::new(said.max(self.measured_insns_per_ms.load(Ordering::Relaxed)))
    }

    /// Has it be taken for that fast from now on, 0: as fast as was measured. A CPU that is offline
    /// begins with it when it comes up. Process context, without the control lock.
    pub(crate) fn say_rate(&'static self, insns_per_ms: u32) -> Result {
        let pbs = pbs().ok_or(ENODEV)?;
        let _hotplug = kernel::cpu::hotplug_read_lock();
        // A plan that is being prepared with the old rate would miss the new one.
        let _control = pbs.control.lock_killable()?;
        self.said_insns_per_ms
            .store(insns_per_ms.into(), Ordering::Relaxed);
        if !kernel::cpu::is_online(self.number()) {
            return Ok(());
        }
        // On the CPU itself: what has been retired up to here is charged at the old rate.
        sched_class::call_on(self.number(), || {
            self.lock(|rq, cpu, state| {
                state.charge(rq);
                state.set_rate(cpu);
                state.settle(rq, cpu);
            });
        })
    }

    /// How much the rate varied while it was measured.
    pub(crate) fn rate_spread_permille(&self) -> u64 {
        self.rate_spread_permille.load(Ordering::Relaxed)
    }

    /// Whether it has a plan.
    pub(crate) fn has_plan(&self) -> bool {
        self.has_plan.load(Ordering::Relaxed)
    }

    /// Notes that its plan has changed. With the run queue locked.
    pub(crate) fn set_has_plan(&self, has_plan: bool) {
        self.has_plan.store(has_plan, Ordering::Relaxed);
    }

    /// Notes that its plan is to be dropped; one that comes meanwhile is not.
    pub(crate) fn ask_to_drop(&self, why: Why) {
        let plans = self.count(EventKind::PlanInstalled as usize);
        self.drop_asked_at.store(plans, Ordering::Relaxed);
        self.drop_asked.store(why as u32, Ordering::Release);
    }

    /// Whether its plan is to be dropped.
    pub(crate) fn is_drop_asked(&self) -> bool {
        self.drop_asked.load(Ordering::Relaxed) != 0
    }

    /// Why its plan is to be dropped, if it still is the one that was meant: an operator means
    /// whichever there is. With the control lock held.
    pub(crate) fn take_drop(&self) -> Option<Why> {
        let asked = self.drop_asked.swap(0, Ordering::Acquire);
        let plans = self.count(EventKind::PlanInstalled as usize);
        let same = self.drop_asked_at.load(Ordering::Relaxed) == plans;
        Why::from_number(asked).filter(|why| same || *why == Why::SysRq)
    }

    /// Why its last plan was dropped, if it was.
    pub(crate) fn dropped(&self) -> Option<Why> {
        Why::from_number(self.dropped.load(Ordering::Relaxed))
    }

    /// Notes why its plan was dropped.
    pub(crate) fn set_dropped(&self, why: Why) {
        self.dropped.store(why as u32, Ordering::Relaxed);
    }

    /// How often its counter has interrupted.
    pub(crate) fn overflows(&self) -> u64 {
        self.overflows.load(Ordering::Relaxed)
    }

    /// How often its timer has expired.
    pub(crate) fn timer_interrupts(&self) -> u64 {
        self.timer_interrupts.load(Ordering::Relaxed)
    }

    /// Has its counter's interrupts not come until it has another counter.
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    pub(crate) fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Has somebody try to get the counter back. Any context but NMI.
    pub(crate) fn request_recovery(&self) {
        self.request(Request::Recover);
    }

    /// Has the tick done on the CPU itself. Any context but NMI.
    pub(crate) fn request_tick(&self) {
        self.request(Request::Tick);
    }

    /// Has it look at the tasks on other CPUs that somebody here waits for. Any context but NMI.
    pub(crate) fn request_order(&self) {
        self.request(Request::Order);
    }

    fn request(&self, request: Request) {
        self.requests.fetch_or(request as u32, Ordering::Relaxed);
        self.kick();
    }

    /// Whether that was requested since the last call.
    fn take(&self, request: Request) -> bool {
        let bit = request as u32;
        self.requests.load(Ordering::Relaxed) & bit != 0
            && self.requests.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }

    /// Has the timer expire at that monotonic time. On the CPU itself.
    pub(crate) fn arm(&self, at_ns: u64) {
        self.timer.start_abs(at_ns);
    }

    /// Settles in interrupt context on the CPU itself.
    pub(crate) fn kick(&self) {
        self.kick.queue_on(self.id);
    }
}

/// Calls `function` with the state of the locked run queue's CPU, wakes up who the settling found to
/// be woken, and drops the lock. Not for the callbacks of the class, whose lock is the core's.
pub(crate) fn finish<R>(
    mut rq: RunQueueGuard,
    function: impl FnOnce(&RunQueue, &'static Cpu, &mut State) -> R,
) -> Option<R> {
    rq.update_clock();
    let (result, wake, boosted) = entity::with_state(rq.as_mut(), |rq, cpu, state| {
        let result = function(rq, cpu, state);
        (result, state.take_wake(rq), state.take_boosted(cpu))
    })?;
    let granted = wake_granted(rq.as_mut(), wake);
    drop(rq);
    for task in [granted, boosted].into_iter().flatten() {
        sched_class::wake_up(&task);
    }
    Some(result)
}

/// Wakes up who is granted the CPU where it waits, with its run queue locked. Returns whom that can't
/// be done to before the lock is dropped.
pub(crate) fn wake_granted(rq: Pin<&mut RunQueue>, wake: Wake) -> Option<ARef<Task>> {
    match wake {
        Wake::Nobody => None,
        Wake::Here(task) => {
            // SAFETY: `State::take_wake` found this with the lock that is still held, so the seat
            // keeps the task, which sleeps on this run queue.
            unsafe { sched_class::wake_delayed(rq, task) };
            None
        }
        Wake::Later(task) => Some(task),
    }
}

struct Expiry(PossibleCpu);

impl HrTimerCallback for Expiry {
    fn expired(this: &HrTimer<Self>) -> Restart {
        finish(RunQueueGuard::lock(this.0), |rq, cpu, state| {
            cpu.timer_interrupts.fetch_add(1, Ordering::Relaxed);
            state.expire(rq, cpu)
        });
        // Settling has armed the timer itself if there is something to wait for.
        Restart::No
    }
}

struct Kick(PossibleCpu);

impl IrqWorkCallback for Kick {
    fn run(this: &IrqWork<Self>) {
        let Some(pbs) = pbs() else { return };
        let Some(cpu) = pbs.cpu(this.0.number()) else {
            return;
        };
        let tick = cpu.take(Request::Tick);
        // Before the look: what is told from now on comes with a request of its own.
        let order = cpu.take(Request::Order);
        cpu.lock(|rq, cpu, state| {
            if order {
                state.look_elsewhere(cpu);
            }
            if tick {
                state.tick(rq, cpu);
            } else {
                state.charge(rq);
                state.settle(rq, cpu);
            }
        });
        if cpu.take(Request::Eject) {
            pbs.queue_ejection();
        }
        if cpu.take(Request::Recover) {
            pbs.recover_soon();
        }
    }
}

impl OverflowHandler for Cpu {
    fn overflow(&self) {
        if cfg!(CONFIG_SCHED_CLASS_PBS_FAULTS) && self.silent.load(Ordering::Relaxed) {
            return;
        }
        self.overflows.fetch_add(1, Ordering::Relaxed);
        self.overflowed.queue();
    }
}

struct Overflowed(PossibleCpu);

impl IrqWorkCallback for Overflowed {
    fn run(this: &IrqWork<Self>) {
        finish(RunQueueGuard::lock(this.0), |rq, cpu, state| {
            state.overflow(rq, cpu)
        });
    }
}
