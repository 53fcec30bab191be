// SPDX-License-Identifier: GPL-2.0

//! Scheduling classes.
//!
//! A scheduling class is a table of callbacks that the core scheduler calls with a run queue
//! locked. Here it is a trait, [`SchedClass`], whose functions get the run queue as
//! `&mut` [`RunQueue`]: to hold one is the proof that its lock is held. The
//! [`declare_sched_class!`] macro makes the C table of an implementation and puts it into the
//! linker section that gives the class its place among the others.
//!
//! C header: [`kernel/sched/sched.h`](srctree/kernel/sched/sched.h)

use crate::{
    bindings,
    error::{to_result, Result},
    ffi::{c_int, c_uint, c_void},
    prelude::*,
    task::Task,
    types::Opaque,
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering},
};

/// Not to be sent to another thread: a lock or a state belongs to the thread that took it.
type NotThreadSafe = PhantomData<*mut ()>;

/// Why a task enters or leaves a run queue: `ENQUEUE_*` and `DEQUEUE_*`, which match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueFlags(c_int);

impl QueueFlags {
    /// The task goes to sleep (`DEQUEUE_SLEEP`) or has woken up (`ENQUEUE_WAKEUP`).
    ///
    /// False for the pairs of dequeue and enqueue by which the core changes a property of a task
    /// that stays runnable.
    pub fn is_sleep_or_wakeup(self) -> bool {
        self.0 & bindings::DEQUEUE_SLEEP as c_int != 0
    }

    /// The task sleeps in a state that only its own kind of wake-up may end (`DEQUEUE_SPECIAL`).
    pub fn is_special(self) -> bool {
        self.0 & bindings::DEQUEUE_SPECIAL as c_int != 0
    }

    /// The task sleeps and its dequeue was delayed, which is made up for (`DEQUEUE_DELAYED`), or it
    /// wakes up instead (`ENQUEUE_DELAYED`).
    pub fn is_delayed(self) -> bool {
        self.0 & bindings::DEQUEUE_DELAYED as c_int != 0
    }
}

/// A locked run queue.
///
/// # Invariants
///
/// A reference to it exists only while the lock of the run queue is held, interrupts are off, and
/// the run queue is valid. There is at most one `&mut` reference to it at a time. No function of
/// this type calls back into a scheduling class.
#[repr(transparent)]
pub struct RunQueue {
    rq: Opaque<bindings::rq>,
    _not_thread_safe: NotThreadSafe,
}

impl RunQueue {
    /// Makes a reference from the pointer that a callback of a class was given.
    ///
    /// # Safety
    ///
    /// `rq` is valid and its lock is held with interrupts off for all of `'a`, and no other
    /// reference made by this function is alive.
    unsafe fn from_raw<'a>(rq: *mut bindings::rq) -> &'a mut Self {
        // SAFETY: `RunQueue` is a transparent wrapper of `struct rq` but for a zero-sized field;
        // validity and exclusiveness are the caller's promise.
        unsafe { &mut *rq.cast() }
    }

    /// The C run queue.
    #[inline]
    pub fn as_ptr(&self) -> *mut bindings::rq {
        self.rq.get()
    }

    /// The CPU of this run queue.
    #[inline]
    pub fn cpu(&self) -> u32 {
        // SAFETY: By the type invariants the run queue is valid; its CPU never changes.
        unsafe { (*self.as_ptr()).cpu as u32 }
    }

    /// Whether this is the run queue of the CPU that executes the call.
    #[inline]
    pub fn is_local(&self) -> bool {
        crate::cpu::current() == self.cpu()
    }

    /// The task that the CPU executes.
    #[inline]
    pub fn current(&self) -> &Task {
        // SAFETY: By the type invariants the lock is held, so `curr` is stable and valid, and
        // stays so while `self` is borrowed. `Task` is a transparent wrapper.
        unsafe { &*bindings::rq_current(self.as_ptr()).cast() }
    }

    /// Whether the CPU executes `task`.
    #[inline]
    pub fn is_current(&self, task: &Task) -> bool {
        ptr::eq(self.current(), task)
    }

    /// Makes the CPU choose a task anew.
    #[inline]
    pub fn reschedule(&mut self) {
        // SAFETY: By the type invariants the lock is held, which is all it asks for.
        unsafe { bindings::resched_curr(self.as_ptr()) };
    }

    /// Whether a task of the deadline class, which the fair server counts as, waits here.
    #[inline]
    pub fn has_deadline_waiter(&self) -> bool {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::rq_has_dl_waiter(self.as_ptr()) }
    }

    /// Counts `count` more runnable tasks.
    #[inline]
    pub fn add_running(&mut self, count: u32) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::add_nr_running(self.as_ptr(), count) };
    }

    /// Counts `count` runnable tasks less.
    #[inline]
    pub fn sub_running(&mut self, count: u32) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::sub_nr_running(self.as_ptr(), count) };
    }

    /// Brings the run queue's clock up to date.
    ///
    /// The core has done so before it calls a class; only who locked the run queue himself calls
    /// this.
    #[inline]
    pub fn update_clock(&self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::update_rq_clock(self.as_ptr()) };
    }

    /// Charges the current task's run time to it, its group and its cgroup.
    ///
    /// Only for a current task of the calling class.
    #[inline]
    pub fn update_current(&mut self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::update_curr_common(self.as_ptr()) };
    }

    /// Begins a stretch of run time of `task`, which the CPU is about to execute.
    #[inline]
    pub fn begin_execution(&mut self, task: &Task) {
        // SAFETY: By the type invariants the lock is held, which protects the entity of a task
        // that is on this run queue.
        unsafe { (*task.as_ptr()).se.exec_start = self.clock_task_ns() };
    }

    /// The run queue's clock as it was read last, in nanoseconds.
    #[inline]
    pub fn clock_ns(&self) -> u64 {
        // SAFETY: By the type invariants the lock is held.
        unsafe { (*self.as_ptr()).clock }
    }

    /// The clock of task time, in nanoseconds: it stands still in interrupts.
    #[inline]
    pub fn clock_task_ns(&self) -> u64 {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::rq_clock_task(self.as_ptr()) }
    }
}

/// A run queue that the holder of the guard has locked.
pub struct RunQueueGuard {
    rq: *mut bindings::rq,
    flags: bindings::rq_flags,
    _not_thread_safe: NotThreadSafe,
}

impl RunQueueGuard {
    /// Locks the run queue of `cpu`. Its clock is an old one until
    /// [`RunQueue::update_clock`] is called.
    ///
    /// Any context but NMI; not with another run queue locked.
    pub fn lock(cpu: u32) -> RunQueueGuard {
        let mut flags = MaybeUninit::<bindings::rq_flags>::zeroed();
        // SAFETY: Every possible CPU has a run queue, for ever.
        let rq = unsafe { bindings::cpu_rq(cpu) };
        // SAFETY: `rq` is valid, `flags` is where the state of interrupts may be kept.
        unsafe { bindings::rq_lock_irqsave(rq, flags.as_mut_ptr()) };
        RunQueueGuard {
            rq,
            // SAFETY: All fields are integers, for which zeroes are valid, and the call above has
            // filled in what the unlocking needs.
            flags: unsafe { flags.assume_init() },
            _not_thread_safe: PhantomData,
        }
    }

    /// Locks the run queue of the CPU that executes the call. As to the clock see
    /// [`RunQueueGuard::lock`].
    ///
    /// Any context but NMI; not with another run queue locked.
    pub fn lock_local() -> RunQueueGuard {
        let mut flags = MaybeUninit::<bindings::rq_flags>::zeroed();
        // SAFETY: `flags` is where the state of interrupts may be kept.
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

impl DerefMut for RunQueueGuard {
    fn deref_mut(&mut self) -> &mut RunQueue {
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
/// All functions but [`SchedClass::select_task_rq`] are called with the run queue locked and
/// interrupts off: they must not sleep, allocate, wake a task up or take a lock that is held
/// elsewhere with interrupts on. They may be called for a run queue of another CPU, see
/// [`RunQueue::is_local`]. The comments say what differs from the C table; see there for the rest.
#[vtable]
pub trait SchedClass {
    /// `task` becomes runnable on `rq`.
    fn enqueue_task(rq: &mut RunQueue, task: &Task, flags: QueueFlags);

    /// `task` is runnable on `rq` no more. Returns whether it left the queue.
    fn dequeue_task(rq: &mut RunQueue, task: &Task, flags: QueueFlags) -> bool;

    /// The current task calls `sched_yield(2)`.
    fn yield_task(_rq: &mut RunQueue) {}

    /// `task` of this class has woken up while another one of this class runs.
    fn wakeup_preempt(rq: &mut RunQueue, task: &Task);

    /// Whether the class has a task to run, before lower classes are asked.
    fn balance(rq: &mut RunQueue) -> bool;

    /// The task that should run next, if the class has one.
    fn pick_task(rq: &mut RunQueue) -> Option<&Task>;

    /// `task` stops running, or is taken off the CPU for a change; `next` runs after it if the
    /// core knows already.
    fn put_prev_task(rq: &mut RunQueue, task: &Task, next: Option<&Task>);

    /// `task` starts running.
    fn set_next_task(rq: &mut RunQueue, task: &Task);

    /// Which CPU `task` should wake up on; it was on `cpu`. Called with the task's `pi_lock` held
    /// and no run queue locked.
    fn select_task_rq(_task: &Task, cpu: u32) -> u32 {
        cpu
    }

    /// The timer interrupt came while `task` was running.
    fn task_tick(rq: &mut RunQueue, task: &Task);

    /// `task` has left the class: by a change of policy, or boosted into another class.
    fn switched_from(rq: &mut RunQueue, task: &Task);

    /// `task` has entered the class: by a change of policy, or when a boost ended.
    fn switched_to(rq: &mut RunQueue, task: &Task);

    /// The run time of the current task is asked for.
    fn update_curr(rq: &mut RunQueue);
}

/// The C table of a class, as [`declare_sched_class!`] places it.
#[repr(transparent)]
pub struct Table(bindings::sched_class);

// SAFETY: The table is never written, and the pointers in it are to functions.
unsafe impl Sync for Table {}

impl Table {
    /// Builds the table of `T`.
    ///
    /// Used by [`declare_sched_class!`]: a table elsewhere has no place among the classes.
    #[doc(hidden)]
    pub const fn new<T: SchedClass>() -> Self {
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

/// What the C table points to.
///
/// The core scheduler calls with the lock of the run queue held and interrupts off, does not use
/// the run queue while a callback runs, and keeps the tasks that it names for the length of the
/// call. `select_task_rq` alone is called without a run queue.
struct Callbacks<T: SchedClass>(PhantomData<T>);

/// Makes the reference that a callback's task is.
///
/// # Safety
///
/// `task` is valid for all of `'a`.
unsafe fn task_ref<'a>(task: *mut bindings::task_struct) -> &'a Task {
    // SAFETY: The caller's promise; `Task` is a transparent wrapper.
    unsafe { &*task.cast() }
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
        unsafe { T::enqueue_task(RunQueue::from_raw(rq), task_ref(task), QueueFlags(flags)) }
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
        unsafe { T::dequeue_task(RunQueue::from_raw(rq), task_ref(task), QueueFlags(flags)) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn yield_task(rq: *mut bindings::rq) {
        // SAFETY: The core scheduler calls as `Callbacks` says.
        T::yield_task(unsafe { RunQueue::from_raw(rq) })
    }

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
        unsafe { T::set_next_task(RunQueue::from_raw(rq), task_ref(task)) }
    }

    /// # Safety
    ///
    /// For the core scheduler only, as [`Callbacks`] says.
    unsafe extern "C" fn select_task_rq(
        task: *mut bindings::task_struct,
        cpu: c_int,
        _flags: c_int,
    ) -> c_int {
        // SAFETY: The task is valid for the length of the call.
        T::select_task_rq(unsafe { task_ref(task) }, cpu as u32) as c_int
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
        // SAFETY: The core scheduler calls as `Callbacks` says.
        T::update_curr(unsafe { RunQueue::from_raw(rq) })
    }
}

/// Declares a scheduling class: the symbol that C knows it by, the linker section that places it
/// (see `SCHED_DATA` in `include/asm-generic/vmlinux.lds.h`), and the type that implements it.
///
/// ```ignore
/// kernel::declare_sched_class!(pbs_sched_class, "__pbs_sched_class", Pbs);
/// ```
#[macro_export]
macro_rules! declare_sched_class {
    ($symbol:ident, $section:literal, $class:ty) => {
        #[no_mangle]
        #[link_section = $section]
        #[used]
        #[allow(non_upper_case_globals)]
        static $symbol: $crate::sched_class::Table = $crate::sched_class::Table::new::<$class>();
    };
}

/// Changes the policy of `task`, without asking whether the caller may.
///
/// `nice` is for the fair policies. Sleeps.
pub fn set_policy(task: &Task, policy: u32, nice: i32) -> Result {
    let attr = bindings::sched_attr {
        size: core::mem::size_of::<bindings::sched_attr>() as u32,
        sched_policy: policy,
        sched_nice: nice,
        ..bindings::sched_attr::default()
    };
    // SAFETY: `task` is valid, and `attr` is read only during the call.
    to_result(unsafe { bindings::sched_setattr_nocheck(task.as_ptr(), &attr) })
}

/// Whether `task` is on a run queue; its run queue is locked, as `_rq` witnesses.
#[inline]
pub fn is_queued(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid, and the lock keeps the answer true.
    unsafe { bindings::task_on_rq_queued(task.as_ptr()) }
}

/// Whether the dequeue of `task` is delayed: it sleeps, and still stands on its run queue, which is
/// locked as `_rq` witnesses.
///
/// A class delays a dequeue by [`delay_dequeue`] and by returning `false` from
/// [`SchedClass::dequeue_task`]. The core then wakes the task up with the lock of its run queue alone
/// (`ttwu_runnable()`), and a class may do so itself, see [`wake_delayed`]. While it is delayed the
/// task is not counted as runnable, and dequeued and enqueued only with flags that say
/// [`QueueFlags::is_delayed`]; with others nothing is to be done.
#[inline]
pub fn is_delayed(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid, and the lock keeps the answer true.
    unsafe { core::ptr::addr_of!((*task.as_ptr()).se.sched_delayed).read() != 0 }
}

/// Whether the dequeue of a task that goes to sleep may be delayed: the core has nothing to count
/// when it really leaves the run queue.
#[inline]
pub fn may_be_delayed(_rq: &RunQueue, task: &Task) -> bool {
    // SAFETY: The task is valid, and on the run queue that is locked.
    unsafe { bindings::task_may_be_delayed(task.as_ptr()) }
}

/// Notes that the dequeue of `task`, which goes to sleep, is delayed.
#[inline]
pub fn delay_dequeue(_rq: &mut RunQueue, task: &Task) {
    // SAFETY: The task is valid, and on the run queue that is locked, which protects the field.
    unsafe { core::ptr::addr_of_mut!((*task.as_ptr()).se.sched_delayed).write(1) };
}

/// Notes that the dequeue of `task`, which wakes up, is delayed no more.
#[inline]
pub fn forget_delay(_rq: &mut RunQueue, task: &Task) {
    // SAFETY: The task is valid, and on the run queue that is locked, which protects the field.
    unsafe { core::ptr::addr_of_mut!((*task.as_ptr()).se.sched_delayed).write(0) };
}

/// Takes `task` off the run queue if its dequeue is delayed. From then on another CPU may wake it up.
pub fn block_delayed(rq: &mut RunQueue, task: &Task) {
    if is_delayed(rq, task) {
        // SAFETY: The task is valid, and on the run queue that is locked.
        unsafe { bindings::block_delayed_task(rq.as_ptr(), task.as_ptr()) };
    }
}

/// Wakes up a task whose dequeue is delayed, with its run queue locked: calls
/// [`SchedClass::enqueue_task`] of its class. The run queue's clock is up to date.
///
/// # Safety
///
/// `task` is valid, its dequeue on `rq` is delayed, and it is in a [`Sleep`]. The caller holds no
/// reference to what that callback uses.
pub unsafe fn wake_delayed(rq: &mut RunQueue, task: NonNull<bindings::task_struct>) {
    // SAFETY: The caller's promise.
    unsafe { bindings::wake_delayed_task(rq.as_ptr(), task.as_ptr()) };
}

/// The state of a [`Sleep`].
const SLEEPS: c_uint = (bindings::TASK_INTERRUPTIBLE | bindings::TASK_FREEZABLE) as c_uint;

/// What is left to be done to end a [`Sleep`], see [`end_sleep`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Awake {
    /// Nothing.
    Done,
    /// [`wake_delayed`].
    Delayed,
    /// [`wake_up`], without the lock.
    Blocked,
}

/// Ends the [`Sleep`] of `task`, as far as that can be done with its run queue locked.
///
/// Who has not slept yet does not. A task that the freezer has taken where it sleeps will not sleep
/// there any more when it thaws.
#[inline]
pub fn end_sleep(rq: &mut RunQueue, task: &Task) -> Awake {
    let delayed = is_delayed(rq, task);
    let task = task.as_ptr();
    // SAFETY: The task is valid. While it is on this run queue, which is locked, nobody but the task
    // itself, if it is running, writes its states without the lock. It may do so at any time, so the
    // state is exchanged.
    unsafe {
        if core::ptr::addr_of!((*task).on_rq).read_volatile() == 0 {
            return Awake::Blocked;
        }
        let state = core::ptr::addr_of_mut!((*task).__state);
        match state.read_volatile() {
            bindings::TASK_FROZEN => {
                let saved = core::ptr::addr_of_mut!((*task).saved_state);
                if saved.read_volatile() == SLEEPS {
                    saved.write_volatile(bindings::TASK_RUNNING as c_uint);
                }
                Awake::Done
            }
            SLEEPS if delayed => Awake::Delayed,
            SLEEPS => {
                let _ = AtomicU32::from_ptr(state).compare_exchange(
                    SLEEPS,
                    bindings::TASK_RUNNING as c_uint,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                Awake::Done
            }
            _ => Awake::Done,
        }
    }
}

/// Has the current thread, which was interrupted in user space, sleep on its way back there: as in a
/// [`Sleep`]. It must be made to reschedule, and [`end_sleep`] be called for it if it is chosen to
/// run instead.
///
/// Fails if the thread has something to do first.
pub fn sleep_interrupted(rq: &mut RunQueue) -> bool {
    // SAFETY: It looks at the interrupt's registers and the flags of the current thread.
    let may = rq.is_local() && interrupted_user() && unsafe { bindings::exit_only_schedules() };
    if may {
        // SAFETY: The current thread was interrupted in user space, so its state is of no use to
        // anybody else, and interrupts are off.
        unsafe { bindings::set_current_state(SLEEPS) };
    }
    may
}

/// The current thread is about to wait: it is not runnable from its next [`Sleep::schedule`] until
/// somebody wakes it up.
///
/// A wake-up after [`Sleep::interruptible`] makes `schedule` return at once, so what is waited for
/// has to be looked at between the two.
#[must_use]
pub struct Sleep(NotThreadSafe);

impl Sleep {
    /// Sleeps until a wake-up or a signal; the freezer may take the thread where it sleeps.
    #[inline]
    pub fn interruptible() -> Self {
        // SAFETY: A thread may change its own state at any time.
        unsafe { bindings::set_current_state(SLEEPS) };
        Self(PhantomData)
    }

    /// Sleeps. No lock may be held and interrupts must be on.
    pub fn schedule(self) {
        // SAFETY: The caller can sleep, as the documentation asks for.
        unsafe { bindings::schedule() };
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // SAFETY: A thread may change its own state at any time.
        unsafe { bindings::__set_current_state(bindings::TASK_RUNNING as c_uint) };
    }
}

/// Wakes `task` up if it sleeps interruptibly, as in [`Sleep`]. Not with a run queue locked.
pub fn wake_up(task: &Task) {
    // SAFETY: `task` is valid.
    unsafe { bindings::wake_up_state(task.as_ptr(), bindings::TASK_INTERRUPTIBLE as c_uint) };
}

/// Whether the linker has put a class between those of deadline and real time, as `sched_init()`
/// checks of the others.
pub fn is_between_deadline_and_real_time(class: &'static Table) -> bool {
    // SAFETY: It compares the address with those of the others.
    unsafe { bindings::sched_class_in_order(ptr::from_ref(class).cast()) }
}

/// Whether a task is to be killed or frozen, and so nothing is gained from keeping it.
pub fn must_not_wait(task: &Task) -> bool {
    // SAFETY: `task` is valid; its flags and its set of pending signals may be looked at any time.
    unsafe { bindings::must_not_wait(task.as_ptr()) }
}

/// Whether the interrupt that is being handled came while user code was executed.
#[inline]
pub fn interrupted_user() -> bool {
    // SAFETY: It looks at this CPU's registers of the interrupt, if there is one.
    unsafe { bindings::interrupted_user() }
}

/// Runs `function` on `cpu`, in interrupt context there, and waits for it.
///
/// Fails with `ENXIO` if the CPU is not online. Not with interrupts off.
pub fn call_on<F: FnMut() + Send>(cpu: u32, mut function: F) -> Result {
    /// # Safety
    ///
    /// `data` points to an `F` that nobody else uses during the call.
    unsafe extern "C" fn call<F: FnMut()>(data: *mut c_void) {
        // SAFETY: `data` is the closure below, which its owner does not touch while it waits.
        unsafe { (*data.cast::<F>())() }
    }

    // SAFETY: The closure outlives the call, since the call waits for its end, and may be sent.
    to_result(unsafe {
        bindings::smp_call_function_single(
            cpu as c_int,
            Some(call::<F>),
            ptr::addr_of_mut!(function).cast(),
            1,
        )
    })
}
