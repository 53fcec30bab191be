// SPDX-License-Identifier: GPL-2.0

//! Scheduling classes.
//!
//! A scheduling class is a table of callbacks that the core scheduler calls with a run queue
//! locked. Here it is a trait, [`SchedClass`], whose functions get the run queue as `Pin<&mut`
//! [`RunQueue`]`>`: there is one of it at a time, and its owner may make calls that end in a
//! callback. A `&RunQueue`, of which there may be many, is the proof that the lock is held, and
//! leads to no callback. The [`declare_sched_class!`] macro makes the C table of an implementation
//! and puts it into the linker section that gives the class its place among the others.
//!
//! This is the one abstraction that is not in the `kernel` crate: it needs the scheduler's private
//! header, which is not for modules. Therefore it has bindings of its own for that header, and its
//! helpers, in `sched_class.c`, are not exported.
//!
//! C header: [`kernel/sched/sched.h`](srctree/kernel/sched/sched.h)

use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ops::Deref,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering},
};
use kernel::{
    bindings as public,
    cpu::{InterruptsOff, PossibleCpu},
    error::{to_result, Result},
    ffi::{c_int, c_uint, c_void},
    prelude::*,
    task::Task,
    task_ext::Affinity,
    types::Opaque,
};

/// Bindings of `sched_class.c` and of the private header.
#[allow(
    clippy::all,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]
#[cfg_attr(CONFIG_RUSTC_HAS_UNNECESSARY_TRANSMUTES, allow(unnecessary_transmutes))]
pub(crate) mod bindings {
    pub(crate) use kernel::bindings::{cpumask, task_struct};

    include!(concat!(
        env!("OBJTREE"),
        "/kernel/sched/pbs/sched_pbs/linux/sched_class_generated.rs"
    ));
}

/// Not to be sent to another thread: a lock or a state belongs to the thread that took it.
type NotThreadSafe = PhantomData<*mut ()>;

/// Reason why a task enters a run queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enqueue {
    /// The task has not slept: the core takes it off and puts it on again to change a property of
    /// it, or it moves here from another class.
    Changed,
    /// The task has woken up.
    WakesUp,
    /// The task has woken up on the run queue, where it had stayed, see [`Dequeue::SleepsHere`].
    WakesUpHere,
}

/// Reason why a task leaves a run queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dequeue {
    /// The task does not sleep, see [`Enqueue::Changed`].
    Changed,
    /// The task goes to sleep.
    Sleeps,
    /// The task goes to sleep, and may stay on the run queue meanwhile, where a wake-up costs less.
    ///
    /// Any wake-up may end the sleep, not only a special one, and the core has nothing to count
    /// when the task really leaves.
    SleepsHere,
}

const fn has(flags: c_int, flag: u32) -> bool {
    flags & flag as c_int != 0
}

/// A locked run queue.
///
/// A run queue can't be moved: therefore two of them can't be swapped.
///
/// # Invariants
///
/// A reference to it exists only while the lock of the run queue is held, interrupts are off, and
/// the run queue is valid. At most one `Pin<&mut RunQueue>` is in use at a time: callbacks of a
/// class, which get one, are called by the core, or by a function here that takes one.
#[repr(transparent)]
pub(crate) struct RunQueue {
    rq: Opaque<bindings::rq>,
    _not_thread_safe: NotThreadSafe,
}

impl RunQueue {
    /// Makes a reference from the pointer that a callback of a class was given.
    ///
    /// # Safety
    ///
    /// `rq` is valid and its lock is held with interrupts off for all of `'a`, and no other
    /// reference made by this function is in use.
    unsafe fn from_raw<'a>(rq: *mut bindings::rq) -> Pin<&'a mut Self> {
        // SAFETY: `RunQueue` is a transparent wrapper of `struct rq` except for a zero-sized field;
        // validity and exclusiveness are the caller's promise. Run queues stay where they are.
        unsafe { Pin::new_unchecked(&mut *rq.cast()) }
    }

    /// The C run queue.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut bindings::rq {
        self.rq.get()
    }

    /// The CPU of this run queue.
    #[inline]
    pub(crate) fn cpu(&self) -> u32 {
        // SAFETY: By the type invariants the run queue is valid; its CPU never changes.
        unsafe { (*self.as_ptr()).cpu as u32 }
    }

    /// Whether this is the run queue of the CPU that executes the call.
    #[inline]
    pub(crate) fn is_local(&self) -> bool {
        kernel::cpu::current() == self.cpu()
    }

    /// Interrupts are off as long as the lock is held.
    #[inline]
    pub(crate) fn interrupts_off(&self) -> InterruptsOff<'_> {
        // SAFETY: By the type invariants.
        unsafe { InterruptsOff::new() }
    }

    /// The task that the CPU executes.
    #[inline]
    pub(crate) fn current(&self) -> &Task {
        // SAFETY: By the type invariants the lock is held; therefore `curr` is stable and valid,
        // and stays so while `self` is borrowed. `Task` is a transparent wrapper.
        unsafe { &*bindings::rq_current(self.as_ptr()).cast() }
    }

    /// Whether the CPU executes `task`.
    #[inline]
    pub(crate) fn is_current(&self, task: &Task) -> bool {
        ptr::eq(self.current(), task)
    }

    /// Makes the CPU choose a task anew.
    #[inline]
    pub(crate) fn reschedule(&self) {
        // SAFETY: By the type invariants the lock is held, which is the only requirement.
        unsafe { bindings::resched_curr(self.as_ptr()) };
    }

    /// Whether a task of the deadline class waits here; the fair server counts as one.
    #[inline]
    pub(crate) fn has_deadline_waiter(&self) -> bool {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::rq_has_dl_waiter(self.as_ptr()) }
    }

    /// Whether a class below that of plans has a task to run.
    #[inline]
    pub(crate) fn has_lower_task(&self) -> bool {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::rq_has_lower_task(self.as_ptr()) }
    }

    /// Whether the first of the waiting or running real-time tasks is a thread of the kernel.
    #[inline]
    pub(crate) fn has_kernel_thread(&self) -> bool {
        // SAFETY: By the type invariants the lock is held.
        unsafe {
            (*self.as_ptr()).rt.rt_nr_running != 0
                && bindings::rq_has_rt_kernel_thread(self.as_ptr())
        }
    }

    /// Counts one more runnable task.
    ///
    /// # Safety
    ///
    /// Once in each [`SchedClass::enqueue_task`].
    #[inline]
    pub(crate) unsafe fn add_running(&self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::add_nr_running(self.as_ptr(), 1) };
    }

    /// Counts one runnable task less.
    ///
    /// # Safety
    ///
    /// Once in each [`SchedClass::dequeue_task`].
    #[inline]
    pub(crate) unsafe fn sub_running(&self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::sub_nr_running(self.as_ptr(), 1) };
    }

    /// Brings the run queue's clock up to date.
    ///
    /// The core does so before it calls a class; only code that locks the run queue itself calls
    /// this.
    #[inline]
    pub(crate) fn update_clock(&self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::update_rq_clock(self.as_ptr()) };
    }

    /// Charges the current task's run time to it, its group and its cgroup.
    ///
    /// Only for a current task of the calling class.
    #[inline]
    pub(crate) fn update_current(&self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::update_curr_common(self.as_ptr()) };
    }

    /// Adds the time since the last call to the load of real time: the fair class gets the rest of
    /// a CPU's capacity. `running`: the class has had the CPU in that time.
    ///
    /// The run queue's clock is up to date.
    #[inline]
    pub(crate) fn update_real_time_load(&self, running: bool) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::update_rt_load(self.as_ptr(), running) };
    }

    /// The run queue's clock as it was read last, in nanoseconds.
    #[inline]
    pub(crate) fn clock_ns(&self) -> u64 {
        // SAFETY: By the type invariants the lock is held.
        unsafe { (*self.as_ptr()).clock }
    }

    /// The clock of task time, in nanoseconds: it stands still in interrupts.
    #[inline]
    pub(crate) fn clock_task_ns(&self) -> u64 {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::rq_clock_task(self.as_ptr()) }
    }
}

/// A run queue that the holder of the guard has locked.
pub(crate) struct RunQueueGuard {
    rq: *mut bindings::rq,
    flags: bindings::rq_flags,
    _not_thread_safe: NotThreadSafe,
}

impl RunQueueGuard {
    /// Locks the run queue of `cpu`. Its clock is not up to date until [`RunQueue::update_clock`]
    /// is called.
    ///
    /// Any context but NMI; not with another run queue locked.
    pub(crate) fn lock(cpu: PossibleCpu) -> RunQueueGuard {
        let mut flags = MaybeUninit::<bindings::rq_flags>::zeroed();
        // SAFETY: Every possible CPU has a run queue, for ever.
        let rq = unsafe { bindings::cpu_rq(cpu.number()) };
        // SAFETY: `rq` is valid, and `flags` may hold the state of interrupts.
        unsafe { bindings::rq_lock_irqsave(rq, flags.as_mut_ptr()) };
        RunQueueGuard {
            rq,
            // SAFETY: All fields are integers, for which zeroes are valid, and the call above has
            // filled in the fields that the unlocking needs.
            flags: unsafe { flags.assume_init() },
            _not_thread_safe: PhantomData,
        }
    }

    /// Locks the run queue of `cpu`, unless it is already locked. As to the clock see
    /// [`RunQueueGuard::lock`].
    ///
    /// Any context, NMIs and sections with a run queue locked included.
    pub(crate) fn try_lock(cpu: PossibleCpu) -> Option<RunQueueGuard> {
        let mut flags = MaybeUninit::<bindings::rq_flags>::zeroed();
        // SAFETY: Every possible CPU has a run queue, for ever.
        let rq = unsafe { bindings::cpu_rq(cpu.number()) };
        // SAFETY: `rq` is valid, and `flags` may hold the state of interrupts.
        if !unsafe { bindings::rq_trylock_irqsave(rq, flags.as_mut_ptr()) } {
            return None;
        }
        Some(RunQueueGuard {
            rq,
            // SAFETY: As in `lock`.
            flags: unsafe { flags.assume_init() },
            _not_thread_safe: PhantomData,
        })
    }

    /// Locks the run queue of the CPU that executes the call. As to the clock see
    /// [`RunQueueGuard::lock`].
    ///
    /// Any context but NMI; not with another run queue locked.
    pub(crate) fn lock_local() -> RunQueueGuard {
        let mut flags = MaybeUninit::<bindings::rq_flags>::zeroed();
        // SAFETY: `flags` may hold the state of interrupts.
        let rq = unsafe { bindings::this_rq_lock_irqsave(flags.as_mut_ptr()) };
        RunQueueGuard {
            rq,
            // SAFETY: As in `lock`.
            flags: unsafe { flags.assume_init() },
            _not_thread_safe: PhantomData,
        }
    }
}

impl Deref for RunQueueGuard {
    type Target = RunQueue;

    fn deref(&self) -> &RunQueue {
        // SAFETY: The guard holds the lock, and is borrowed while the reference lives.
        unsafe { &*self.rq.cast() }
    }
}

impl RunQueueGuard {
    /// The run queue, for calls that end in a callback.
    #[inline]
    pub(crate) fn as_mut(&mut self) -> Pin<&mut RunQueue> {
        // SAFETY: The guard holds the lock, and is borrowed mutably while the reference lives.
        unsafe { RunQueue::from_raw(self.rq) }
    }
}

impl Drop for RunQueueGuard {
    fn drop(&mut self) {
        // SAFETY: `lock` or `lock_local` took the lock with these flags.
        unsafe { bindings::rq_unlock_irqrestore(self.rq, &mut self.flags) };
    }
}

/// A scheduling class.
///
/// All functions are called with the run queue locked and interrupts off: they must not sleep,
/// allocate, wake a task up or take a lock that is held elsewhere with interrupts on. They may be
/// called for a run queue of another CPU, see [`RunQueue::is_local`]. The comments describe the
/// differences from the C table; see there for the rest.
///
/// A task wakes up where it was, and the run time of a task that the CPU is to execute begins
/// before the class is notified.
///
/// # Safety
///
/// [`SchedClass::pick_task`] returns only a task that was enqueued by [`SchedClass::enqueue_task`]
/// on the same run queue and not dequeued since. A task that stays on the run queue though it
/// sleeps counts as dequeued.
pub(crate) unsafe trait SchedClass {
    /// `task` becomes runnable on `rq`.
    fn enqueue_task(rq: Pin<&mut RunQueue>, task: &Task, why: Enqueue);

    /// `task` is runnable on `rq` no more. Returns whether it is to stay on the run queue though it
    /// sleeps, which counts if `why` is [`Dequeue::SleepsHere`].
    ///
    /// The core then wakes it up with the lock of the run queue alone (`ttwu_runnable()`), and the
    /// class may do so itself, see [`wake_delayed`].
    fn dequeue_task(rq: Pin<&mut RunQueue>, task: &Task, why: Dequeue) -> bool;

    /// `task`, which stayed on the run queue though it sleeps, sleeps on and leaves it now.
    fn dequeue_sleeping(rq: Pin<&mut RunQueue>, task: &Task);

    /// `task` of this class has woken up while another one of this class runs.
    fn wakeup_preempt(rq: Pin<&mut RunQueue>, task: &Task);

    /// Whether the class has a task to run, before lower classes are asked.
    fn balance(rq: Pin<&mut RunQueue>) -> bool;

    /// The task that should run next, if the class has one.
    fn pick_task(rq: Pin<&mut RunQueue>) -> Option<&Task>;

    /// `task` stops running, or is taken off the CPU for a change; `next` runs after it if the core
    /// has chosen already.
    fn put_prev_task(rq: Pin<&mut RunQueue>, task: &Task, next: Option<&Task>);

    /// `task` starts running.
    fn set_next_task(rq: Pin<&mut RunQueue>, task: &Task);

    /// The timer interrupt occurred while `task` was running.
    fn task_tick(rq: Pin<&mut RunQueue>, task: &Task);

    /// `task` has left the class: by a change of policy, or boosted into another class.
    fn switched_from(rq: Pin<&mut RunQueue>, task: &Task);

    /// `task` has entered the class: by a change of policy, or when a boost ended.
    fn switched_to(rq: Pin<&mut RunQueue>, task: &Task);
}

/// The C table of a class, as [`declare_sched_class!`] places it.
#[repr(transparent)]
pub(crate) struct Table(bindings::sched_class);

// SAFETY: The table is never written, and the pointers in it are to functions.
unsafe impl Sync for Table {}

impl Table {
    /// Builds the table of `T`.
    ///
    /// Used by [`declare_sched_class!`]: a table elsewhere has no place among the classes.
    #[doc(hidden)]
    pub(crate) const fn new<T: SchedClass>() -> Self {
        // SAFETY: Zeroes are null pointers and false, which for all optional callbacks mean that
        // the class does not have them.
        let mut table: bindings::sched_class = unsafe { MaybeUninit::zeroed().assume_init() };
        table.enqueue_task = Some(Callbacks::<T>::enqueue_task);
        table.dequeue_task = Some(Callbacks::<T>::dequeue_task);
        table.yield_task = Some(Callbacks::<T>::yield_task);
        table.wakeup_preempt = Some(Callbacks::<T>::wakeup_preempt);
        table.pick_task = Some(Callbacks::<T>::pick_task);
        table.put_prev_task = Some(Callbacks::<T>::put_prev_task);
        table.set_next_task = Some(Callbacks::<T>::set_next_task);
        table.task_tick = Some(Callbacks::<T>::task_tick);
        table.switched_from = Some(Callbacks::<T>::switched_from);
        table.switched_to = Some(Callbacks::<T>::switched_to);
        table.prio_changed = Some(Callbacks::<T>::prio_changed);
        table.update_curr = Some(Callbacks::<T>::update_curr);
        table.balance = Some(Callbacks::<T>::balance);
        table.select_task_rq = Some(Callbacks::<T>::select_task_rq);
        table.set_cpus_allowed = Some(bindings::set_cpus_allowed_common);
        Self(table)
    }
}

/// Targets of the pointers in the C table.
///
/// The core scheduler calls with the lock of the run queue held and interrupts off, does not use
/// the run queue while a callback runs, and keeps the tasks that it names for the length of the
/// call. `select_task_rq` alone is called without a run queue.
struct Callbacks<T: SchedClass>(PhantomData<T>);

/// Makes a reference from the task pointer of a callback.
///
/// # Safety
///
/// `task` is valid for all of `'a`.
unsafe fn task_ref<'a>(task: *mut bindings::task_struct) -> &'a Task {
    // SAFETY: The caller's promise; `Task` is a transparent wrapper.
    unsafe { &*task.cast() }
}

/// Whether `__block_task()` has nothing to count when such a task sleeps.
///
/// # Safety
///
/// `task` is valid, and on a run queue that is locked.
#[inline]
unsafe fn nothing_to_count(task: *mut bindings::task_struct) -> bool {
    // SAFETY: The caller's promise: the lock protects the one, and the other is the task's own,
    // which goes to sleep.
    unsafe { (*task).sched_contributes_to_load() == 0 && (*task).in_iowait() == 0 }
}

impl<T: SchedClass> Callbacks<T> {
    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn enqueue_task(
        rq: *mut bindings::rq,
        task: *mut bindings::task_struct,
        flags: c_int,
    ) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        let (rq, task) = unsafe { (RunQueue::from_raw(rq), task_ref(task)) };
        let delayed = is_delayed(&rq, task);
        if delayed {
            if !has(flags, bindings::ENQUEUE_DELAYED) {
                // The task sleeps on; a property of it was changed.
                return;
            }
            // SAFETY: The task is on the run queue that is locked, which protects the field.
            unsafe { (*task.as_ptr()).se.sched_delayed = 0 };
        }
        let why = if delayed {
            Enqueue::WakesUpHere
        } else if has(flags, bindings::ENQUEUE_WAKEUP) {
            Enqueue::WakesUp
        } else {
            Enqueue::Changed
        };
        T::enqueue_task(rq, task, why)
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn dequeue_task(
        rq: *mut bindings::rq,
        task: *mut bindings::task_struct,
        flags: c_int,
    ) -> bool {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        let (mut rq, task) = unsafe { (RunQueue::from_raw(rq), task_ref(task)) };
        if is_delayed(&rq, task) {
            if has(flags, bindings::DEQUEUE_DELAYED) {
                // The task sleeps already, and leaves the run queue now.
                T::dequeue_sleeping(rq.as_mut(), task);
                // SAFETY: The task is valid, and its dequeue on this run queue is delayed.
                unsafe { bindings::block_delayed_task(rq.as_ptr(), task.as_ptr()) };
            }
            return true;
        }
        // SAFETY: The task is valid, and on the run queue that is locked.
        let may_stay = || unsafe { nothing_to_count(task.as_ptr()) };
        let why = if !has(flags, bindings::DEQUEUE_SLEEP) {
            Dequeue::Changed
        } else if !has(flags, bindings::DEQUEUE_SPECIAL) && may_stay() {
            Dequeue::SleepsHere
        } else {
            Dequeue::Sleeps
        };
        let stays = T::dequeue_task(rq, task, why) && why == Dequeue::SleepsHere;
        if stays {
            // SAFETY: The task is on the run queue that is locked, which protects the field.
            unsafe { (*task.as_ptr()).se.sched_delayed = 1 };
        }
        !stays
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn yield_task(_rq: *mut bindings::rq) {}

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn wakeup_preempt(
        rq: *mut bindings::rq,
        task: *mut bindings::task_struct,
        _flags: c_int,
    ) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        unsafe { T::wakeup_preempt(RunQueue::from_raw(rq), task_ref(task)) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn balance(
        rq: *mut bindings::rq,
        _prev: *mut bindings::task_struct,
        _rf: *mut bindings::rq_flags,
    ) -> c_int {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        T::balance(unsafe { RunQueue::from_raw(rq) }).into()
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn pick_task(rq: *mut bindings::rq) -> *mut bindings::task_struct {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        match T::pick_task(unsafe { RunQueue::from_raw(rq) }) {
            Some(task) => task.as_ptr(),
            None => ptr::null_mut(),
        }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn put_prev_task(
        rq: *mut bindings::rq,
        task: *mut bindings::task_struct,
        next: *mut bindings::task_struct,
    ) {
        let next = if next.is_null() {
            None
        } else {
            // SAFETY: As below; the same holds for `next`.
            Some(unsafe { task_ref(next) })
        };
        // SAFETY: The core scheduler calls as `Callbacks` says.
        unsafe { T::put_prev_task(RunQueue::from_raw(rq), task_ref(task), next) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn set_next_task(
        rq: *mut bindings::rq,
        task: *mut bindings::task_struct,
        _first: bool,
    ) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        let (rq, task) = unsafe { (RunQueue::from_raw(rq), task_ref(task)) };
        // SAFETY: The lock of the run queue protects the entity of a task that is on it.
        unsafe { (*task.as_ptr()).se.exec_start = rq.clock_task_ns() };
        T::set_next_task(rq, task)
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn select_task_rq(
        _task: *mut bindings::task_struct,
        cpu: c_int,
        _flags: c_int,
    ) -> c_int {
        cpu
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn task_tick(
        rq: *mut bindings::rq,
        task: *mut bindings::task_struct,
        _queued: c_int,
    ) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        unsafe { T::task_tick(RunQueue::from_raw(rq), task_ref(task)) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn switched_from(rq: *mut bindings::rq, task: *mut bindings::task_struct) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        unsafe { T::switched_from(RunQueue::from_raw(rq), task_ref(task)) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn switched_to(rq: *mut bindings::rq, task: *mut bindings::task_struct) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        unsafe { T::switched_to(RunQueue::from_raw(rq), task_ref(task)) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn prio_changed(
        _rq: *mut bindings::rq,
        _task: *mut bindings::task_struct,
        _oldprio: c_int,
    ) {
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn update_curr(rq: *mut bindings::rq) {
        // SAFETY: The core scheduler calls as `Callbacks` says, with a current task of this class.
        unsafe { RunQueue::from_raw(rq) }.update_current()
    }
}

/// Declares a scheduling class: its symbol in C, the linker section that places it (see
/// `SCHED_DATA` in `include/asm-generic/vmlinux.lds.h`), and the type that implements it.
///
/// ```ignore
/// declare_sched_class!(pbs_sched_class, "__pbs_sched_class", Pbs);
/// ```
macro_rules! declare_sched_class {
    ($symbol:ident, $section:literal, $class:ty) => {
        #[no_mangle]
        #[link_section = $section]
        #[used]
        #[allow(non_upper_case_globals)]
        static $symbol: $crate::linux::sched_class::Table =
            $crate::linux::sched_class::Table::new::<$class>();
    };
}
pub(crate) use declare_sched_class;

/// Changes the policy of `task`, without checking whether the caller may.
///
/// `nice` is for the fair policies. Sleeps.
pub(crate) fn set_policy(task: &Task, policy: u32, nice: i32) -> Result {
    let attr = public::sched_attr {
        size: core::mem::size_of::<public::sched_attr>() as u32,
        sched_policy: policy,
        sched_nice: nice,
        ..public::sched_attr::default()
    };
    // SAFETY: `task` is valid, and `attr` is read only during the call.
    to_result(unsafe { public::sched_setattr_nocheck(task.as_ptr(), &attr) })
}

/// Whether `task` is on a run queue; its run queue is locked, as `_rq` witnesses.
#[inline]
pub(crate) fn is_queued(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid, and the lock keeps the answer true.
    unsafe { bindings::task_on_rq_queued(task.as_ptr()) }
}

/// Whether the dequeue of `task` is delayed: it sleeps, and stays on its run queue, which is locked
/// as `_rq` witnesses. See [`Dequeue::SleepsHere`].
#[inline]
fn is_delayed(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid. A task of another run queue may be changed meanwhile: then the
    // answer is no more than a hint.
    unsafe { ptr::addr_of!((*task.as_ptr()).se.sched_delayed).read_volatile() != 0 }
}

/// Takes `task` off the run queue if it is of this class and stays there though it sleeps, without
/// [`SchedClass::dequeue_sleeping`]. From then on another CPU may wake it up.
pub(crate) fn block_delayed(rq: &RunQueue, class: &'static Table, task: &Task) {
    // SAFETY: The task and the class are valid, and the run queue is locked; the function checks
    // whether the task is in that state.
    unsafe {
        bindings::block_if_delayed(rq.as_ptr(), ptr::from_ref(class).cast(), task.as_ptr());
    }
}

/// Wakes up a task that stays on the run queue though it sleeps: calls
/// [`SchedClass::enqueue_task`] of its class. The run queue's clock is up to date.
///
/// # Safety
///
/// `task` is valid, [`end_sleep`] has returned [`Awake::Delayed`] for it, and the run queue, `rq`,
/// was locked since.
pub(crate) unsafe fn wake_delayed(rq: Pin<&mut RunQueue>, task: NonNull<bindings::task_struct>) {
    // SAFETY: The caller's promise. No other `Pin<&mut RunQueue>` is in use: therefore the callback
    // may.
    unsafe { bindings::wake_delayed_task(rq.as_ptr(), task.as_ptr()) };
}

/// The state of a [`Sleep`].
const SLEEPS: c_uint = (public::TASK_INTERRUPTIBLE | public::TASK_FREEZABLE) as c_uint;

/// Remaining step to end a [`Sleep`], see [`end_sleep`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awake {
    /// No step.
    Done,
    /// [`wake_delayed`].
    Delayed,
    /// [`wake_up`], without the lock.
    Blocked,
}

/// Ends the [`Sleep`] of `task`, as far as that can be done with its run queue locked.
///
/// A thread that has not slept yet does not sleep any more. A task that the freezer has frozen
/// where it sleeps will not sleep there any more when it thaws.
#[inline]
pub(crate) fn end_sleep(rq: &RunQueue, task: &Task) -> Awake {
    let delayed = is_delayed(rq, task);
    let task = task.as_ptr();
    // SAFETY: The task is valid. While it is on this run queue, which is locked, only the task
    // itself, if it is running, writes its states without the lock. It may do so at any time:
    // therefore the state is exchanged.
    unsafe {
        if core::ptr::addr_of!((*task).on_rq).read_volatile() == 0 {
            return Awake::Blocked;
        }
        let state = core::ptr::addr_of_mut!((*task).__state);
        match state.read_volatile() {
            public::TASK_FROZEN => {
                let saved = core::ptr::addr_of_mut!((*task).saved_state);
                if saved.read_volatile() == SLEEPS {
                    saved.write_volatile(public::TASK_RUNNING as c_uint);
                }
                Awake::Done
            }
            SLEEPS if delayed => Awake::Delayed,
            SLEEPS => {
                // Another waker has set the state already.
                let _ = AtomicU32::from_ptr(state).compare_exchange(
                    SLEEPS,
                    public::TASK_RUNNING as c_uint,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                Awake::Done
            }
            _ => Awake::Done,
        }
    }
}

/// Makes the current thread, which was interrupted in user space, sleep on its way back there, as
/// in a [`Sleep`]. It must be made to reschedule, and [`end_sleep`] be called for it if it is
/// chosen to run instead.
///
/// Fails if the thread has other work to do first.
pub(crate) fn sleep_interrupted(rq: &RunQueue) -> bool {
    // SAFETY: This reads the interrupt's registers and the flags of the current thread.
    let may = rq.is_local() && interrupted_user() && unsafe { bindings::exit_only_schedules() };
    if may {
        // SAFETY: The current thread was interrupted in user space: therefore nothing else depends
        // on its state. Interrupts are off.
        unsafe { bindings::set_current_state(SLEEPS) };
    }
    may
}

/// The current thread is about to wait: it is not runnable from its next [`Sleep::schedule`] until
/// a wake-up.
///
/// A wake-up after [`Sleep::interruptible`] makes `schedule` return at once: therefore the awaited
/// condition must be checked between the two.
#[must_use]
pub(crate) struct Sleep(NotThreadSafe);

impl Sleep {
    /// Prepares a sleep until a wake-up or a signal; the freezer may freeze the thread where it
    /// sleeps.
    #[inline]
    pub(crate) fn interruptible() -> Self {
        // SAFETY: A thread may change its own state at any time.
        unsafe { bindings::set_current_state(SLEEPS) };
        Self(PhantomData)
    }

    /// Sleeps. No lock may be held and interrupts must be on.
    pub(crate) fn schedule(self) {
        // SAFETY: The caller can sleep, as the documentation asks for.
        unsafe { public::schedule() };
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // SAFETY: A thread may change its own state at any time.
        unsafe { bindings::__set_current_state(public::TASK_RUNNING as c_uint) };
    }
}

/// Wakes `task` up if it sleeps interruptibly, as in [`Sleep`]. Not with a run queue locked.
pub(crate) fn wake_up(task: &Task) {
    // SAFETY: `task` is valid.
    unsafe { public::wake_up_state(task.as_ptr(), public::TASK_INTERRUPTIBLE as c_uint) };
}

/// Whether the linker has put a class between those of deadline and real time, as `sched_init()`
/// checks for the others.
pub(crate) fn is_between_deadline_and_real_time(class: &'static Table) -> bool {
    // SAFETY: It compares the address with those of the others.
    unsafe { bindings::sched_class_in_order(ptr::from_ref(class).cast()) }
}

/// Whether a task is to be killed or frozen: then nothing is gained from keeping it.
pub(crate) fn must_not_wait(task: &Task) -> bool {
    // SAFETY: `task` is valid; its flags and its set of pending signals may be read at any time.
    unsafe { bindings::must_not_wait(task.as_ptr()) }
}

/// Whether the freezer has frozen a task, or is about to: it may be frozen where it sleeps, and
/// then can't be woken up.
pub(crate) fn is_frozen(task: &Task) -> bool {
    // SAFETY: `task` is valid; its state may change at any time, hence the volatile access.
    let state = unsafe { ptr::addr_of!((*task.as_ptr()).__state).read_volatile() };
    state & public::TASK_FROZEN as c_uint != 0 || must_not_wait(task)
}

/// Whether the interrupt that is being handled arrived while user code was executed; `None`: that
/// is not known, as in an irq_work on x86-64.
#[inline]
pub(crate) fn interrupted() -> Option<bool> {
    // SAFETY: This reads this CPU's registers of the interrupt, if there is one.
    match unsafe { bindings::interrupted_user() } {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Whether the interrupt that is being handled is known to have arrived while user code was
/// executed.
#[inline]
pub(crate) fn interrupted_user() -> bool {
    interrupted() == Some(true)
}

/// Whether the present interrupt has interrupted a softirq.
#[inline]
pub(crate) fn interrupted_softirq() -> bool {
    // SAFETY: This reads a word of the current CPU.
    unsafe { bindings::interrupted_softirq() }
}

/// Runs `function` on `cpu`, in interrupt context there, and waits for it.
///
/// Fails with `ENXIO` if the CPU is not online. Not with interrupts off.
pub(crate) fn call_on<F: FnMut() + Send>(cpu: u32, mut function: F) -> Result {
    /// # Safety
    ///
    /// `data` points to an `F` that nothing else uses during the call.
    unsafe extern "C" fn call<F: FnMut()>(data: *mut c_void) {
        // SAFETY: `data` is the closure below, which its owner does not touch while it waits.
        unsafe { (*data.cast::<F>())() }
    }

    // SAFETY: The closure outlives the call, since the call waits for its end, and may be sent.
    to_result(unsafe {
        public::smp_call_function_single(
            cpu as c_int,
            Some(call::<F>),
            ptr::addr_of_mut!(function).cast(),
            1,
        )
    })
}

/// Lets a task run on this CPU only, and moves it there: sleeps until it is there, if it is the
/// current one. Ignores its cpuset.
///
/// Fails with [`EINVAL`] if the CPU does not accept it.
pub(crate) fn bind_to_cpu(task: &Task, cpu: PossibleCpu) -> Result {
    // SAFETY: The task is valid, and there is such a CPU.
    to_result(unsafe { bindings::task_bind_to_cpu(task.as_ptr(), cpu.number()) })
}

/// Lets a task run where it could before, as far as its cpuset still has these CPUs. Sleeps.
pub(crate) fn set_affinity(task: &Task, affinity: &Affinity) -> Result {
    // SAFETY: The task and the mask are valid.
    to_result(unsafe { bindings::task_set_cpus(task.as_ptr(), affinity.as_ptr()) })
}

/// Lets a task run on all CPUs that its cpuset and its user allow it. Sleeps.
pub(crate) fn reset_affinity(task: &Task) -> Result {
    // SAFETY: The task is valid; no mask means the CPUs that its user wants.
    to_result(unsafe { bindings::task_set_cpus(task.as_ptr(), ptr::null()) })
}

/// The clock of the scheduler on this CPU, in nanoseconds, which is also the source of the run
/// queues' clocks. With preemption off.
#[inline]
pub(crate) fn clock_ns() -> u64 {
    // SAFETY: This only reads a clock. If the caller may move to another CPU, the answer may be
    // that of another moment, no worse.
    unsafe { bindings::local_scheduler_clock() }
}
