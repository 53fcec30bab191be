// SPDX-License-Identifier: GPL-2.0
//! Children that this process has not started, in a process without other tests.

#![allow(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use pbs_launch::{ended_children, Gate, Owner, Prepared};

/// Creates a child of this process from a child, as a program of a user can, and ends both.
fn create_stranger() {
    // SAFETY: zeroed arguments ask for nothing; both children only end.
    unsafe {
        let creator = libc::fork();
        if creator == 0 {
            let mut arguments: libc::clone_args = std::mem::zeroed();
            arguments.flags = libc::CLONE_PARENT as u64;
            let bytes = size_of_val(&arguments);
            let created = libc::syscall(libc::SYS_clone3, &raw const arguments, bytes);
            libc::_exit(i32::from(created < 0));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(creator, &mut status, 0), creator);
        assert_eq!(status, 0, "no stranger could be created");
    }
}

/// Whether this process has no child.
fn is_alone() -> bool {
    // SAFETY: the call writes nothing; no child is waited for.
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) == -1 }
}

/// Programs are found to have ended behind strangers, which are counted and gone. A round has
/// a bounded number of strangers.
#[test]
fn strangers_hide_no_program() {
    const STRANGERS: usize = 100;
    for _ in 0..STRANGERS {
        create_stranger();
    }
    let text = "[[process]]\nid = 1\ncommands = [{ command = ['true'] }]\ntasks = [1]\n\
                [[cpu]]\ncpu = 0\nslots = [1]\n";
    let plan = pbs_plan::from_toml(text).unwrap();
    // SAFETY: they only answer.
    let owner = unsafe { Owner::new(libc::getuid(), libc::getgid()) };
    let owner = (owner.uid == 0).then_some(&owner);
    let process = &plan.processes[0];
    let prepared =
        Prepared::of_process(process, 0, Path::new("/dev/null"), false, owner, &[]).unwrap();
    // SAFETY: a set without signals is all zeroes.
    let signals = unsafe { std::mem::zeroed() };
    let gate = Gate::new(None).unwrap();
    let mut child = gate.fork(&prepared[0], None, &signals).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    child.wait_ready(Some(until)).unwrap();
    gate.release().unwrap();
    let (mut strangers, mut rounds) = (0, 0);
    // A stranger may end after the program.
    while (!child.is_reaped() || strangers < STRANGERS) && Instant::now() < until {
        let ended = ended_children(|pid| (pid == child.pid).then(|| child.has_ended()));
        assert!(ended.strangers <= 64, "{ended:?}");
        strangers += ended.strangers;
        rounds += 1;
        if ended.more {
            assert_eq!(ended.strangers, 64);
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(child.exit().success());
    assert_eq!(strangers, STRANGERS);
    assert!(rounds > 1);
    assert!(is_alone());
}
