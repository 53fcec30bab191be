// SPDX-License-Identifier: GPL-2.0
//! Killed at every step of the protocol: this program starts itself again,
//! and that process kills itself before its n-th change of shared memory, for all n.
#![allow(unsafe_code)] // Tests kill themselves, which std can't.

mod common;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{all_on_gpu, claim_of, csi_name, devices, master, task, Directory};
use pbs_csi::layout::CsimfHeader;
use pbs_csi::{Claimed, Node, Options, Owner, Status};

const AT: &str = "PBS_CSI_TEST_AT";
const SHARED: &str = "PBS_CSI_TEST_SHARED";
/// In the place of a step: a page of another file is lost.
const BUS: &str = "bus";
/// The signal is sent.
const SENT_BUS: &str = "sent-bus";
/// A process ignores a sent SIGBUS, and then a page of our file is lost.
const SENT_BUS_IGNORED: &str = "sent-bus-ignored";
/// The child registers, becomes master, and is another program then.
const BEFORE_EXEC: &str = "before-exec";
const AFTER_EXEC: &str = "after-exec";

static LEFT: AtomicU32 = AtomicU32::new(u32::MAX);

fn on_step() {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
        // SAFETY: a signal to this process; it does not return.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

/// The child's entry: all of the protocol.
#[test]
#[ignore = "a part of other tests"]
fn child() {
    let at = std::env::var(AT).expect("a test runs this child");
    let shared = std::env::var(SHARED).unwrap();
    match at.as_str() {
        BUS => return lose_a_page(&shared),
        SENT_BUS => return send_bus(&shared),
        SENT_BUS_IGNORED => return send_bus_ignored(&shared),
        BEFORE_EXEC => return before_exec(&shared),
        AFTER_EXEC => return after_exec(&shared),
        _ => {}
    }
    LEFT.store(at.parse().unwrap(), Ordering::Relaxed);
    let mut options = Options::new(shared);
    options.on_step = Some(on_step);
    let node = Node::open(&options).unwrap();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    let tasks = [task(1, &[]), task(2, &[]), task(3, &[2])];
    let slots = node.lock().unwrap().register(&tasks).unwrap();
    let own: Vec<(u32, u64)> = slots.into_iter().zip(1..).collect();
    let snapshot = master(&node);
    let placements = all_on_gpu(&snapshot);
    node.lock().unwrap().publish(snapshot.generation, &placements).unwrap();
    let (generation, _) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
    // On the CPU, where nobody else is before.
    let (slot, number) = own[1];
    let claimed = node.lock().unwrap().claim(claim_of(slot, number, generation, 0, 1, 1));
    assert!(matches!(claimed, Ok(Claimed::Started { .. })), "{claimed:?}");
    node.lock().unwrap().finish(slot, number, &[own[2]]).unwrap();
    for (slot, number) in [own[0], own[2]] {
        node.lock().unwrap().withdraw(slot, number).unwrap();
    }
}

/// Returns the holder of the lock, according to the file.
fn holder(directory: &Directory) -> u32 {
    let bytes = std::fs::read(directory.csimf()).unwrap();
    let mut header = [0; CsimfHeader::BYTES];
    header.copy_from_slice(&bytes[..CsimfHeader::BYTES]);
    CsimfHeader::from_bytes(&header).holder_pid
}

/// This program, to do that.
fn child_at(directory: &Path, at: &str) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--ignored", "--nocapture"]);
    child.env(AT, at).env(SHARED, directory);
    child.stdout(Stdio::null());
    child
}

/// Whether the child was killed at this step; else it has come to its end.
fn killed_at(directory: &Directory, step: u32) -> bool {
    let mut child = child_at(directory.path(), &step.to_string());
    let status = child.status().unwrap();
    let is_killed = status.signal() == Some(libc::SIGKILL);
    assert!(is_killed || status.success(), "step {step}: {status}");
    is_killed
}

#[test]
fn a_process_killed_anywhere_leaves_no_lock_no_ghost_and_no_stuck_status() {
    let mut steps = 0;
    loop {
        let directory = Directory::new("anywhere");
        // Somebody is there before, with a task that waits.
        let node = directory.node();
        node.lock().unwrap().join_devices(&devices()).unwrap();
        let slots = node.lock().unwrap().register(&[task(9, &[])]).unwrap();
        let own = [(slots[0], 9)];
        if !killed_at(&directory, steps) {
            break;
        }
        // Whoever comes next finds it as if it had never been there.
        let snapshot = master(&node);
        let tasks: Vec<u64> = snapshot.waiting.iter().map(|of| of.entry.task).collect();
        assert_eq!(tasks, [9], "step {steps}");
        assert!(snapshot.in_execution.is_empty(), "step {steps}");
        let placements = all_on_gpu(&snapshot);
        node.lock().unwrap().publish(snapshot.generation, &placements).unwrap();
        let (generation, fetched) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
        assert_eq!(fetched[0].best_index, Some(1), "step {steps}");
        let mut locked = node.lock().unwrap();
        assert_eq!(locked.status(), Status::NotStarted, "step {steps}");
        let claimed = locked.claim(claim_of(own[0].0, 9, generation, 1, 1, 1)).unwrap();
        assert_eq!(claimed, Claimed::Started { instance: Some(0) }, "step {steps}");
        locked.finish(own[0].0, 9, &[]).unwrap();
        drop(locked);
        // Files without an entry go with the next who opens.
        drop(directory.node());
        assert_eq!(directory.files(), ["pbs-csimf"], "step {steps}");
        steps += 1;
    }
    assert!(steps > 40, "{steps} steps are not all of the protocol");
}

/// The others are not held up, even if nobody becomes master: who fetches, or claims,
/// takes a dead master's part away.
#[test]
fn a_fetch_replaces_a_dead_master() {
    let mut steps = 0;
    let (mut was_running, mut with_lock) = (0, 0);
    loop {
        let directory = Directory::new("fetch");
        let node = directory.node();
        node.lock().unwrap().join_devices(&devices()).unwrap();
        let slots = node.lock().unwrap().register(&[task(9, &[])]).unwrap();
        let own = [(slots[0], 9)];
        if !killed_at(&directory, steps) {
            break;
        }
        if holder(&directory) != 0 {
            // Who takes the lock next has repaired, before anything else.
            let entries = node.lock().unwrap().entries().unwrap();
            assert_eq!(entries.len(), 1, "step {steps}");
            with_lock += 1;
        }
        was_running += u32::from(matches!(node.lock().unwrap().status(), Status::Running(_)));
        let (generation, _) = node.lock().unwrap().fetch(&own).unwrap().unwrap();
        let mut locked = node.lock().unwrap();
        locked.sweep().unwrap();
        assert_eq!(locked.status(), Status::NotStarted, "step {steps}");
        assert_eq!(locked.entries().unwrap().len(), 1, "step {steps}");
        let claimed = locked.claim(claim_of(own[0].0, 9, generation, 1, 1, 1)).unwrap();
        assert_eq!(claimed, Claimed::Started { instance: Some(0) }, "step {steps}");
        steps += 1;
    }
    assert!(was_running > 0, "no master was killed at work");
    assert!(with_lock > 20, "{with_lock} were killed with the lock");
}

/// Reads a mapped page of a file that has become shorter, with a node open.
fn lose_a_page(directory: &str) {
    let _node = Node::open(&Options::new(directory)).unwrap();
    let path = std::path::Path::new(directory).join("other");
    std::fs::write(&path, [1; 4096]).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // SAFETY: a new mapping, of which nobody else knows; the read is what is tried.
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ,
            libc::MAP_SHARED,
            std::os::fd::AsRawFd::as_raw_fd(&file),
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        file.set_len(0).unwrap();
        std::ptr::read_volatile(page.cast::<u8>());
    }
}

/// The loss of a page that is not ours ends the process, as it would without us.
#[test]
fn the_loss_of_foreign_pages_is_not_hidden() {
    let directory = Directory::new("bus");
    let status = child_at(directory.path(), BUS).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

fn send_bus(directory: &str) {
    let _node = Node::open(&Options::new(directory)).unwrap();
    // SAFETY: a signal to this thread.
    unsafe { libc::raise(libc::SIGBUS) };
}

fn send_bus_ignored(directory: &str) {
    // SAFETY: no handler, and a signal to this thread.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_IGN) };
    let node = Node::open(&Options::new(directory)).unwrap();
    // SAFETY: as above.
    unsafe { libc::raise(libc::SIGBUS) };
    let path = Path::new(directory).join("pbs-csimf");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(node.generation(), 0);
}

/// A sent SIGBUS has the same effect as without us, also the first time. A process that ignores it
/// still has the handler afterwards.
#[test]
fn a_sent_signal_is_not_swallowed() {
    let directory = Directory::new("sent");
    let status = child_at(directory.path(), SENT_BUS).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    let mut ignores = child_at(directory.path(), SENT_BUS_IGNORED);
    let status = ignores.status().unwrap();
    assert!(status.success(), "{status}");
}

fn before_exec(directory: &str) {
    let node = Node::open(&Options::new(directory)).unwrap();
    node.lock().unwrap().join_devices(&devices()).unwrap();
    let tasks = [task(1, &[]), task(2, &[])];
    let slots = node.lock().unwrap().register(&tasks).unwrap();
    let generation = node.generation();
    let claim = claim_of(slots[0], 1, generation, 1, 1, 1);
    let claimed = node.lock().unwrap().claim(claim).unwrap();
    assert_eq!(claimed, Claimed::Started { instance: Some(0) });
    assert_eq!(master(&node).waiting.len(), 1);
    let error = child_at(Path::new(directory), AFTER_EXEC).exec();
    panic!("{error}");
}

fn after_exec(directory: &str) {
    let mut options = Options::new(directory);
    // That it has had its time is not the reason.
    options.patience = Duration::from_secs(3600);
    let node = Node::open(&options).unwrap();
    let locked = node.lock().unwrap();
    assert!(locked.entries().unwrap().is_empty());
    assert_eq!(locked.status(), Status::NotStarted);
    drop(locked);
    let files = std::fs::read_dir(directory).unwrap();
    assert_eq!(files.count(), 1, "only the CSIMF");
    // What this program enters stays, whoever opens the file in it.
    node.lock().unwrap().register(&[task(1, &[])]).unwrap();
    let again = Node::open(&options).unwrap();
    assert_eq!(again.lock().unwrap().entries().unwrap().len(), 1);
}

/// `exec` keeps the pid and the start time.
#[test]
fn the_next_program_of_a_process_has_nothing_of_the_last() {
    let directory = Directory::new("exec");
    let status = child_at(directory.path(), BEFORE_EXEC).status().unwrap();
    assert!(status.success(), "{status}");
}

/// Killed while the CSIMF itself is made: it is not there, or can be used.
#[test]
fn a_csimf_whose_maker_was_killed_can_be_used_or_made() {
    let (mut without, mut steps) = (0, 0);
    // Up to the first step after it.
    while without == steps {
        let directory = Directory::new("publish");
        assert!(killed_at(&directory, steps));
        without += u32::from(!directory.csimf().exists());
        drop(directory.node());
        assert_eq!(directory.files(), ["pbs-csimf"], "step {steps}");
        steps += 1;
    }
    assert!(steps > 2, "before it is made, before it has its name, and after");
}

/// The other name, under which it is made, is the same for all threads.
#[test]
fn threads_that_open_the_csimf_at_once_all_get_it() {
    for _ in 0..40 {
        let directory = Directory::new("threads");
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    directory.node().lock().unwrap();
                });
            }
        });
        assert_eq!(directory.files(), ["pbs-csimf"]);
    }
}

/// Killed while a file was being made: it has no content yet, and nobody's name in it.
#[test]
fn unfinished_files_of_a_killed_process_are_removed() {
    let directory = Directory::new("made");
    let mut child = Command::new("true").spawn().unwrap();
    let here = Owner::this().unwrap();
    let (pid, start_ticks) = (child.id(), here.start_ticks - 1);
    child.wait().unwrap();
    let gone = Owner { pid, ..here };
    let had_our_pid = Owner { start_ticks, ..here };
    for owner in [gone, here, had_our_pid] {
        for name in [csi_name(owner, 1), format!("pbs-csimf.{}", owner.pid)] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
    }
    drop(directory.node());
    let left = [csi_name(here, 1), "pbs-csimf".into()];
    assert_eq!(directory.files(), left);
    // It makes a new one in its place.
    directory.node().lock().unwrap().register(&[task(1, &[])]).unwrap();
}

/// The child of a fork would release, and clear, what is its parent's.
#[test]
fn a_child_of_a_fork_must_open_the_csimf_anew() {
    let directory = Directory::new("fork");
    let node = directory.node();
    // SAFETY: the child takes no lock of this process, allocates nothing, and exits at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_told = matches!(node.lock(), Err(pbs_csi::Error::Forked));
        // SAFETY: ends the child, without anything of the parent's.
        unsafe { libc::_exit(if is_told { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the status is valid, and the child is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    node.lock().unwrap();
}

/// The child of a fork has a copy of the guard, too, and it may come to its end there.
#[test]
fn a_guard_dropped_in_the_child_of_a_fork_releases_nothing() {
    let directory = Directory::new("fork-guard");
    let mut options = directory.options();
    options.patience = Duration::ZERO;
    let (node, other) = (directory.node(), Node::open(&options).unwrap());
    let locked = node.lock().unwrap();
    // SAFETY: the child takes no lock of this process, allocates nothing, and exits at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(locked);
        // SAFETY: ends the child, without anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is valid, and the child is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    assert_eq!(holder(&directory), std::process::id());
    assert!(matches!(other.lock(), Err(pbs_csi::Error::Locked { .. })));
    drop(locked);
    other.lock().unwrap();
}
