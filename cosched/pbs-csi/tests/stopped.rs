// SPDX-License-Identifier: GPL-2.0
//! Processes that are stopped with a device or with the lock: this program starts itself again as
//! each of them.
#![allow(unsafe_code)] // Tests stop processes, which std can't.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;

use common::{all_on_gpu, claim_of, devices, master, task, Directory, MILLISECOND};
use pbs_csi::{clean, list, Claim, Claimed, Entry, Error, Node, Options, Owner, Removal, State};
use pbs_uapi::clock::monotonic_ns;

const SHARED: &str = "PBS_CSI_TEST_SHARED";
const ROLE: &str = "PBS_CSI_TEST_ROLE";
/// Maximum number of tries; a test that waits longer has failed.
const TRIES: u32 = 20_000;

fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if is() {
            return;
        }
        sleep(MILLISECOND);
    }
    panic!("{what} has not happened");
}

/// Options with which a task of 1 ns is overdue 5 ms after its expected end.
fn impatient(directory: &std::path::Path) -> Options {
    let mut options = Options::new(directory);
    options.patience = 5 * MILLISECOND;
    options
}

static LEFT: AtomicU32 = AtomicU32::new(u32::MAX);

fn stop_here() {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
        // SAFETY: a signal to this thread, which therefore goes no further.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
}

/// The child's entry.
#[test]
#[ignore = "a part of other tests"]
fn child() {
    let role = std::env::var(ROLE).expect("a test runs this child");
    let directory = std::path::PathBuf::from(std::env::var(SHARED).unwrap());
    let mut options = Options::new(&directory);
    options.on_step = Some(stop_here);
    let node = Node::open(&options).unwrap();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    let slots = node.lock().unwrap().register(&[task(1, &[]), task(2, &[])]).unwrap();
    if role.starts_with("waits") {
        wait_in_the_queue(&directory, &node, &slots);
    } else {
        hold_the_gpu(&directory, &node, &slots, &role);
    }
}

/// Fetches a decision about two tasks, and starts none of them.
fn wait_in_the_queue(directory: &Path, node: &Node, slots: &[u32]) {
    std::fs::write(directory.join("registered"), "").unwrap();
    let own: Vec<(u32, u64)> = slots.iter().copied().zip([1, 2]).collect();
    until("the parent publishes", || directory.join("published").exists());
    node.lock().unwrap().fetch(&own).unwrap().expect("there is no master");
    std::fs::write(directory.join("fetched"), "").unwrap();
    until("the parent lets it end", || directory.join("end").exists());
}

/// A process that has the GPU for the first of two tasks until the parent lets it end.
fn hold_the_gpu(directory: &Path, node: &Node, slots: &[u32], role: &str) {
    if role == "stopped-with-the-lock" {
        // After it has entered itself as the holder, and before it has the device.
        LEFT.store(1, Ordering::Relaxed);
    }
    let claim = claim_of(slots[0], 1, node.generation(), 1, 1, 1);
    let claimed = node.lock().unwrap().claim(claim).unwrap();
    assert_eq!(claimed, Claimed::Started { instance: Some(0) });
    std::fs::write(directory.join("holds"), "").unwrap();
    until("the parent lets it go", || directory.join("continue").exists());
    node.lock().unwrap().renew(&[(slots[0], 1)]).unwrap();
    std::fs::write(directory.join("renewed"), "").unwrap();
    until("the parent lets it end", || directory.join("end").exists());
    node.lock().unwrap().finish(slots[0], 1, &[]).unwrap();
    node.lock().unwrap().withdraw(slots[1], 2).unwrap();
}

/// A child with its directory.
struct Holder {
    directory: Directory,
    child: Child,
}

impl Holder {
    fn start(name: &str) -> Self {
        let directory = Directory::new(name);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(ROLE, name)
            .env(SHARED, directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { directory, child }
    }

    /// A child with the GPU.
    fn with_the_gpu(name: &str) -> Self {
        let holder = Self::start(name);
        until("the child has the GPU", || holder.path("holds").exists());
        holder
    }

    /// A child with two tasks that are first in the queue of the two threads, and take that many
    /// each. It has fetched this, and starts none of them. Behind them are two tasks of this
    /// process.
    fn before_the_threads(name: &str, units: u32) -> (Self, Other) {
        let holder = Self::start(name);
        until("the child has registered", || holder.path("registered").exists());
        let other = Other::new(&impatient(holder.directory.path()));
        let snapshot = master(&other.node);
        let mut placements = all_on_gpu(&snapshot);
        for placement in &mut placements {
            placement.device = 0;
            placement.best_index = 0;
            let is_own = placement.owner == other.node.owner();
            placement.units = if is_own { 1 } else { units };
        }
        other.node.lock().unwrap().publish(snapshot.generation, &placements).unwrap();
        let own: Vec<(u32, u64)> = other.slots.iter().copied().zip([8, 9]).collect();
        other.node.lock().unwrap().fetch(&own).unwrap().expect("there is no master");
        holder.say("published");
        until("the child has fetched", || holder.path("fetched").exists());
        (holder, other)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn say(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: a signal to a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    /// The child's task that has the GPU.
    fn entry(&self) -> Entry {
        let listed = list(&impatient(self.directory.path())).unwrap().unwrap();
        let mut entries = listed.entries.into_iter();
        entries.find(|of| of.owner.pid == self.child.id() && of.task == 1).unwrap()
    }

    fn owner(&self) -> Owner {
        self.entry().owner
    }

    fn is_overdue(&self) -> bool {
        let options = impatient(self.directory.path());
        self.entry().overdue_ns(monotonic_ns(), &options).is_some()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Another process, with two tasks for the GPU.
struct Other {
    node: Node,
    slots: Vec<u32>,
}

impl Other {
    fn new(options: &Options) -> Self {
        let node = Node::open(options).unwrap();
        let slots = node.lock().unwrap().register(&[task(8, &[]), task(9, &[])]).unwrap();
        Self { node, slots }
    }

    /// Claims the GPU for the first or the second task.
    fn claim(&self, index: usize) -> Claimed {
        self.claim_on(1, index, false)
    }

    /// Claims a thread for the first or the second task.
    fn claim_thread(&self, index: usize) -> Claimed {
        self.claim_on(0, index, false)
    }

    fn claim_on(&self, device: u32, index: usize, overtakes: bool) -> Claimed {
        let (slot, number) = (self.slots[index], 8 + index as u64);
        let claim = claim_of(slot, number, self.node.generation(), device, 1, 1);
        self.node.lock().unwrap().claim(Claim { overtakes, ..claim }).unwrap()
    }
}

/// A device of a stopped child is lent, and the child has it again when it continues.
fn is_lent_while_stopped(holder: &mut Holder, lets_continue: impl FnOnce(&Holder)) {
    let options = impatient(holder.directory.path());
    let other = Other::new(&options);
    until("it is stopped", || holder.owner().is_stopped());
    until("it is overdue", || holder.is_overdue());
    // Its other task waits, and nobody plans it.
    let snapshot = master(&other.node);
    let waiting: Vec<u64> = snapshot.waiting.iter().map(|of| of.entry.task).collect();
    assert_eq!(waiting, [8, 9]);
    assert!(snapshot.in_execution.is_empty());
    other.node.lock().unwrap().abandon(snapshot.generation).unwrap();
    assert_eq!(other.claim(0), Claimed::Started { instance: Some(0) });
    other.node.lock().unwrap().finish(other.slots[0], 8, &[]).unwrap();
    // Nobody has removed its entry meanwhile, or ended it.
    assert_eq!(holder.entry().state, State::InExecution);
    assert!(holder.child.try_wait().unwrap().is_none());

    lets_continue(holder);
    let mut patient = Options::new(holder.directory.path());
    patient.overdue_factor = None;
    let patient = Node::open(&patient).unwrap();
    let before_ns = holder.entry().expected_end_ns;
    holder.say("continue");
    until("it continues", || holder.path("renewed").exists());
    assert!(!holder.owner().is_stopped());
    assert!(holder.entry().expected_end_ns > before_ns);
    // It has the device: one that lends nothing waits for it.
    let claim = claim_of(other.slots[1], 9, patient.generation(), 1, 1, 1);
    let claimed = patient.lock().unwrap().claim(claim).unwrap();
    assert!(matches!(claimed, Claimed::Busy { until_ns: 1.. }), "{claimed:?}");
    holder.say("end");
    assert!(holder.child.wait().unwrap().success());
    assert_eq!(other.claim(1), Claimed::Started { instance: Some(0) });
}

#[test]
fn a_device_of_a_stopped_process_is_lent_until_it_continues() {
    let mut holder = Holder::with_the_gpu("sigstop");
    holder.signal(libc::SIGSTOP);
    is_lent_while_stopped(&mut holder, |holder| holder.signal(libc::SIGCONT));
}

/// A debugger stops all threads of a process.
#[test]
fn a_device_of_a_traced_process_is_lent_until_it_continues() {
    let mut holder = Holder::with_the_gpu("ptrace");
    let null = std::ptr::null_mut::<libc::c_void>();
    let threads: Vec<libc::pid_t> = std::fs::read_dir(format!("/proc/{}/task", holder.child.id()))
        .unwrap()
        .map(|thread| thread.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    for &thread in &threads {
        // SAFETY: of threads of the own child; nothing is read or written through the pointers.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, thread, null, null), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, thread, null, null), 0);
            libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL);
        }
    }
    is_lent_while_stopped(&mut holder, |_| {
        for thread in threads {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, null, null) }, 0);
        }
    });
}

/// A slow or stuck task of a process that runs keeps its device until somebody removes it.
#[test]
fn an_overdue_task_of_a_running_process_keeps_its_device() {
    let mut holder = Holder::with_the_gpu("slow");
    until("it is overdue", || holder.is_overdue());
    let options = impatient(holder.directory.path());
    let other = Other::new(&options);
    assert!(matches!(other.claim(0), Claimed::Busy { until_ns: 1.. }));
    // Schedules include it, and the waiting task of its process.
    let snapshot = master(&other.node);
    assert_eq!(snapshot.in_execution, [holder.entry()]);
    let waiting: Vec<u64> = snapshot.waiting.iter().map(|of| of.entry.task).collect();
    assert_eq!(waiting, [2, 8, 9]);
    other.node.lock().unwrap().abandon(snapshot.generation).unwrap();
    let cleaned = clean(&options, Removal::Overdue).unwrap();
    assert_eq!((cleaned.entries, cleaned.overdue), (0, 1));
    assert_eq!(other.claim(0), Claimed::Started { instance: Some(0) });
    assert!(holder.child.try_wait().unwrap().is_none());
}

/// Others don't wait for tasks that a stopped process can't start.
#[test]
fn waiting_tasks_of_a_stopped_process_keep_nobody_from_free_devices() {
    let (holder, other) = Holder::before_the_threads("waits-stopped", 1);
    assert_eq!(other.claim_thread(0), Claimed::Busy { until_ns: 0 });
    holder.signal(libc::SIGSTOP);
    until("it is stopped", || holder.owner().is_stopped());
    assert_eq!(other.claim_thread(0), Claimed::Started { instance: Some(0) });
    assert_eq!(other.claim_thread(1), Claimed::Started { instance: Some(1) });
    // Its tasks are still there.
    let tasks = other.node.lock().unwrap().entries().unwrap();
    assert_eq!(tasks.iter().map(|of| of.task).collect::<Vec<_>>(), [1, 2, 8, 9]);
}

/// Patience with a task that could start runs also while others of the type are busy.
#[test]
fn a_process_behind_an_idle_one_is_told_that_devices_are_free() {
    let (_holder, other) = Holder::before_the_threads("waits-idle", 1);
    let started = other.claim_on(0, 0, true);
    assert_eq!(started, Claimed::Started { instance: Some(0) });
    assert_eq!(other.claim_thread(1), Claimed::Busy { until_ns: 0 });
}

/// A task that needs more threads than are free waits for the end of others, and is not idle.
#[test]
fn a_process_behind_a_wide_task_is_told_when_threads_may_be_free() {
    let (_holder, other) = Holder::before_the_threads("waits-wide", 2);
    let started = other.claim_on(0, 0, true);
    assert_eq!(started, Claimed::Started { instance: Some(0) });
    let claimed = other.claim_thread(1);
    assert!(matches!(claimed, Claimed::Busy { until_ns: 1.. }), "{claimed:?}");
}

/// A debugger may stop one thread while the others run.
#[test]
fn a_process_with_one_stopped_thread_is_not_stopped() {
    let holder = Holder::with_the_gpu("one-thread");
    let first = holder.child.id() as libc::pid_t;
    let null = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: of a thread of the own child; nothing is read or written through the pointers.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, first, null, null), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, first, null, null), 0);
        assert_eq!(libc::waitpid(first, std::ptr::null_mut(), libc::__WALL), first);
    }
    until("it is overdue", || holder.is_overdue());
    assert!(!holder.owner().is_stopped());
    let other = Other::new(&impatient(holder.directory.path()));
    assert!(matches!(other.claim(0), Claimed::Busy { until_ns: 1.. }));
}

/// A process with a slow task keeps the device of that task from its own next one.
#[test]
fn a_process_is_not_lent_its_own_device() {
    let directory = Directory::new("own");
    let options = impatient(directory.path());
    let node = Node::open(&options).unwrap();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    let other = Other::new(&options);
    assert_eq!(other.claim(0), Claimed::Started { instance: Some(0) });
    until("it is overdue", || {
        let entries = node.lock().unwrap().entries().unwrap();
        entries.iter().any(|of| of.overdue_ns(monotonic_ns(), &options).is_some())
    });
    assert!(matches!(other.claim(1), Claimed::Busy { until_ns: 1.. }));
    other.node.lock().unwrap().finish(other.slots[0], 8, &[]).unwrap();
    assert_eq!(other.claim(1), Claimed::Started { instance: Some(0) });
}

#[test]
fn overdue_tasks_are_removed_only_on_request() {
    let holder = Holder::with_the_gpu("clean");
    holder.signal(libc::SIGSTOP);
    until("it is overdue", || holder.is_overdue());
    let options = impatient(holder.directory.path());
    let cleaned = clean(&options, Removal::Gone).unwrap();
    assert_eq!((cleaned.entries, cleaned.overdue), (0, 0));
    assert_eq!(cleaned.left, [holder.entry()]);
    let cleaned = clean(&options, Removal::Overdue).unwrap();
    assert_eq!((cleaned.entries, cleaned.overdue), (0, 1));
    assert!(cleaned.left.is_empty());
    // Its task that waits stays, and it can be continued.
    let listed = list(&options).unwrap().unwrap();
    let tasks: Vec<u64> = listed.entries.iter().map(|of| of.task).collect();
    assert_eq!(tasks, [2]);
    holder.say("continue");
    holder.say("end");
    holder.signal(libc::SIGCONT);
    let mut holder = holder;
    assert!(holder.child.wait().unwrap().success());
}

/// Stopped with the lock, and then killed there: the others are told at first, and then repair.
#[test]
fn a_process_killed_while_stopped_with_the_lock_leaves_it_free() {
    let mut holder = Holder::start("stopped-with-the-lock");
    let options = impatient(holder.directory.path());
    let pid = holder.child.id();
    until("it is stopped with the lock", || {
        let listed = list(&options);
        matches!(listed, Err(Error::Locked { holder_pid, .. }) if holder_pid == pid)
    });
    holder.signal(libc::SIGKILL);
    holder.child.wait().unwrap();
    let other = Other::new(&options);
    let tasks: Vec<u64> =
        other.node.lock().unwrap().entries().unwrap().iter().map(|of| of.task).collect();
    assert_eq!(tasks, [8, 9]);
    assert_eq!(other.claim(0), Claimed::Started { instance: Some(0) });
}

/// Any multiple counts from the start, and some patience after the expected end is always there.
#[test]
fn the_limit_is_a_multiple_of_the_expected_runtime() {
    let directory = Directory::new("limit");
    let node = directory.node();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    let slots = node.lock().unwrap().register(&[task(1, &[])]).unwrap();
    let generation = node.generation();
    let mut locked = node.lock().unwrap();
    let waiting = locked.entries().unwrap().remove(0);
    locked.claim(claim_of(slots[0], 1, generation, 1, 1, 1_000_000_000)).unwrap();
    let running = locked.entries().unwrap().remove(0);
    let mut options = directory.options();
    options.patience = 1000 * MILLISECOND;
    let end_ns = running.expected_end_ns;
    let overdue_ns = |factor, after_ns| {
        let options = Options { overdue_factor: factor, ..options.clone() };
        running.overdue_ns(end_ns + after_ns, &options)
    };
    assert_eq!(overdue_ns(Some(10), 9_000_000_000), None);
    assert_eq!(overdue_ns(Some(10), 9_000_000_007), Some(7));
    assert_eq!(overdue_ns(Some(3), 2_000_000_001), Some(1));
    for no_multiple in [0, 1] {
        assert_eq!(overdue_ns(Some(no_multiple), 1_000_000_000), None);
        assert_eq!(overdue_ns(Some(no_multiple), 1_000_000_001), Some(1));
    }
    assert_eq!(overdue_ns(None, u64::MAX - end_ns), None);
    assert_eq!(waiting.overdue_ns(u64::MAX, &options), None);
}
