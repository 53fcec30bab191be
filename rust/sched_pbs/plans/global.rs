// SPDX-License-Identifier: GPL-2.0

//! What there is once in the kernel: the CPUs, the events, and the control of plans.

use crate::{
    pbs_core::{Config, Rate},
    percpu::{cpu::Cpu, events::Events},
    plans::{calibrate, change, fronts::Fronts, usage},
    protect::watchdog::{self, WatchTime, Why},
    state::insn_clock::Tier,
    thread::attach,
    user::inputs::{Inputs, Kept},
};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use kernel::{
    alloc::KBox,
    alloc::KVec,
    cpu::PossibleCpu,
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    new_mutex, new_work,
    prelude::*,
    sync::{Arc, Mutex},
    task_ext::may_log,
    workqueue::{self, impl_has_work, Work, WorkItem},
};

/// How long after its failure a counter is tried again, and so on until it works.
const RECOVERY_NS: u64 = 1_000_000_000;

/// What changes plans, one at a time.
pub(crate) struct Control {
    /// The configuration of plans that bring none.
    pub(crate) config: Config,
    /// The processes that other CPUs wait for.
    pub(crate) fronts: Fronts,
    /// The plans that were written while somebody records.
    pub(crate) kept: Kept,
}

/// The class, from the initcall on.
#[pin_data]
pub(crate) struct Pbs {
    cpus: KVec<Option<&'static Cpu>>,
    /// The ring of events.
    #[pin]
    pub(crate) events: Events,
    /// The rings of what the policy is told.
    pub(crate) inputs: Inputs,
    /// Taken before the lock of any run queue, and after the one of CPU hotplug.
    #[pin]
    pub(crate) control: Mutex<Control>,
    ejection: Arc<Ejection>,
    recovery: Arc<Recovery>,
    /// Expires when it is time to try to recover counters that have failed.
    #[pin]
    recovery_timer: HrTimer<RecoveryTime>,
    /// In how much time a plan that goes wrong is dropped, 0: never.
    pub(crate) watchdog_ms: AtomicU32,
    /// Expires when it is time to look for such plans.
    #[pin]
    pub(crate) watchdog: HrTimer<WatchTime>,
    dropping: Arc<Dropping>,
}

static PBS: AtomicPtr<Pbs> = AtomicPtr::new(core::ptr::null_mut());

/// The class, once it is up.
pub(crate) fn pbs() -> Option<&'static Pbs> {
    // SAFETY: The pointer is null or what `Pbs::publish` leaked.
    unsafe { PBS.load(Ordering::Acquire).as_ref() }
}

impl Pbs {
    /// Makes the one instance.
    pub(crate) fn publish() -> Result<&'static Pbs> {
        let mut cpus = KVec::new();
        for number in 0..kernel::cpu::nr_cpu_ids() {
            let cpu = match PossibleCpu::new(number) {
                Some(id) => Some(leak(KBox::pin_init(Cpu::new(id), GFP_KERNEL)?)),
                None => None,
            };
            cpus.push(cpu, GFP_KERNEL)?;
        }
        let events = Events::new()?;
        let ejection = Arc::pin_init(
            pin_init!(Ejection { work <- new_work!("pbs_ejection") }),
            GFP_KERNEL,
        )?;
        let recovery = Arc::pin_init(
            pin_init!(Recovery { work <- new_work!("pbs_recovery") }),
            GFP_KERNEL,
        )?;
        let dropping = Arc::pin_init(
            pin_init!(Dropping { work <- new_work!("pbs_dropping") }),
            GFP_KERNEL,
        )?;
        let pbs = leak(KBox::try_pin_init(
            try_pin_init!(Pbs {
                cpus,
                events <- events,
                inputs: Inputs::new()?,
                control <- new_mutex!(
                    Control {
                        config: Config::DEFAULT,
                        fronts: Fronts::default(),
                        kept: Kept::default(),
                    },
                    "pbs_control"
                ),
                ejection,
                recovery,
                recovery_timer <- HrTimer::new(RecoveryTime),
                watchdog_ms: AtomicU32::new(watchdog::DEFAULT_MS),
                watchdog <- HrTimer::new(WatchTime),
                dropping,
            }? Error),
            GFP_KERNEL,
        )?);
        PBS.store(core::ptr::from_ref(pbs).cast_mut(), Ordering::Release);
        Ok(pbs)
    }

    /// The CPU of that number, if there can be one.
    pub(crate) fn cpu(&self, number: u32) -> Option<&'static Cpu> {
        self.cpus.get(number as usize).copied().flatten()
    }

    /// The CPU whose ring is mapped at that offset, where each has `RING_BYTES`. Fails with
    /// [`EINVAL`] within a ring, and with [`ENODEV`] where there is no such CPU.
    pub(crate) fn cpu_of_ring<const RING_BYTES: usize>(
        &self,
        offset_bytes: u64,
    ) -> Result<&'static Cpu> {
        if offset_bytes % RING_BYTES as u64 != 0 {
            return Err(EINVAL);
        }
        u32::try_from(offset_bytes / RING_BYTES as u64)
            .ok()
            .and_then(|number| self.cpu(number))
            .ok_or(ENODEV)
    }

    /// All possible CPUs.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = &'static Cpu> + '_ {
        self.cpus.iter().copied().flatten()
    }

    /// Has the threads that should leave the class leave it soon. Any context but NMI, but not
    /// with a run queue locked.
    pub(crate) fn queue_ejection(&self) {
        // It fails if the work is queued already, which is as good.
        let _ = workqueue::system().enqueue(self.ejection.clone());
    }

    /// Has the plan that a CPU has now dropped soon. Any context but NMI, but not with a run queue
    /// locked.
    pub(crate) fn ask_to_drop(&self, cpu: &Cpu, why: Why) {
        cpu.ask_to_drop(why);
        // Not bound to this CPU, which may be the one that does not get to it. It fails if the work
        // is queued already, which is as good.
        let _ = workqueue::system_unbound().enqueue(self.dropping.clone());
    }

    /// Has counters that have failed tried again in a while. Interrupt or process context.
    pub(crate) fn recover_soon(&self) {
        for cpu in online().filter(|cpu| cpu.tier() > cpu.best_tier()) {
            if may_log() {
                pr_warn!(
                    "CPU {}: its counter has failed; it counts by the {} until that works again\n",
                    cpu.number(),
                    cpu.tier().name(),
                );
            }
        }
        self.recovery_timer.start_rel(RECOVERY_NS);
    }
}

/// The worst tier of any CPU that is online.
pub(crate) fn tier() -> Tier {
    online().map(Cpu::tier).max().unwrap_or_default()
}

/// The rate of the slowest CPU that is online.
pub(crate) fn rate() -> Rate {
    let rates = online().map(|cpu| cpu.rate().insns_per_ms());
    Rate::new(rates.min().unwrap_or(0))
}

/// The greatest spread of the rate of any CPU that is online.
pub(crate) fn rate_spread_permille() -> u64 {
    online().map(Cpu::rate_spread_permille).max().unwrap_or(0)
}

fn online() -> impl Iterator<Item = &'static Cpu> {
    let cpus = pbs().into_iter().flat_map(Pbs::cpus);
    cpus.filter(|cpu| kernel::cpu::is_online(cpu.number()))
}

/// The class is built in: what it is made of stays for ever.
fn leak<T>(pinned: Pin<KBox<T>>) -> &'static T {
    // SAFETY: Nobody moves out of a shared reference, and the memory is never freed.
    unsafe { &*KBox::into_raw(Pin::into_inner_unchecked(pinned)) }
}

/// Takes threads out of the class, which only process context can.
#[pin_data]
struct Ejection {
    #[pin]
    work: Work<Ejection>,
}

impl_has_work! {
    impl HasWork<Self> for Ejection { self.work }
}

impl WorkItem for Ejection {
    type Pointer = Arc<Ejection>;

    fn run(_this: Arc<Ejection>) {
        let Some(pbs) = pbs() else { return };
        for cpu in pbs.cpus() {
            attach::eject_leaving(cpu);
        }
        usage::give_all_back(pbs);
    }
}

/// Drops plans, which only process context can.
#[pin_data]
struct Dropping {
    #[pin]
    work: Work<Dropping>,
}

impl_has_work! {
    impl HasWork<Self> for Dropping { self.work }
}

impl WorkItem for Dropping {
    type Pointer = Arc<Dropping>;

    fn run(_this: Arc<Dropping>) {
        let Some(pbs) = pbs() else { return };
        for cpu in pbs.cpus().filter(|cpu| cpu.is_drop_asked()) {
            change::drop_asked(pbs, cpu);
        }
    }
}

/// Tries to get counters back that have failed, which only process context can.
#[pin_data]
struct Recovery {
    #[pin]
    work: Work<Recovery>,
}

impl_has_work! {
    impl HasWork<Self> for Recovery { self.work }
}

impl WorkItem for Recovery {
    type Pointer = Arc<Recovery>;

    fn run(_this: Arc<Recovery>) {
        let Some(pbs) = pbs() else { return };
        let _hotplug = kernel::cpu::hotplug_read_lock();
        // No CPU takes a counter for its first plan meanwhile, or gives one back.
        let _control = pbs.control.lock();
        let mut all = true;
        for cpu in online() {
            all &= calibrate::recover(cpu);
        }
        if !all {
            pbs.recovery_timer.start_rel(RECOVERY_NS);
        }
    }
}

struct RecoveryTime;

impl HrTimerCallback for RecoveryTime {
    fn expired(_this: &HrTimer<Self>) -> Restart {
        if let Some(pbs) = pbs() {
            // It fails if the work is queued already, which is as good.
            let _ = workqueue::system().enqueue(pbs.recovery.clone());
        }
        Restart::No
    }
}
