// SPDX-License-Identifier: GPL-2.0
//! Ends of children: their order, and whether this process has told them to end.

#![allow(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use pbs_launch::{prepare_plan, Child, Gate};
use pbs_uapi::Device;

fn wait(child: &mut Child) {
    let until = Instant::now() + Duration::from_secs(60);
    while !child.has_ended() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A signal of somebody else does not count as told, and the order is that of the ends.
#[test]
fn a_child_is_marked_when_it_is_signalled() {
    let text = "[[process]]\nid = 1\n\
                commands = [{ command = ['sleep', '600'] }, { command = ['sleep', '600'] }]\n\
                tasks = [1, 1]\n[[cpu]]\ncpu = 0\nslots = [1, 1]\n";
    let plan = pbs_plan::from_toml(text).unwrap();
    let prepared = prepare_plan(&plan, Path::new("/dev/null"), true).unwrap();
    // SAFETY: a set without signals is all zeroes.
    let signals = unsafe { std::mem::zeroed() };
    let gate = Gate::new(None).unwrap();
    let mut children: Vec<_> =
        prepared.iter().map(|one| gate.fork(one, None, &signals).unwrap()).collect();
    children[1].signal(libc::SIGTERM);
    wait(&mut children[1]);
    // SAFETY: the child was not waited for.
    assert_eq!(unsafe { libc::kill(children[0].pid, libc::SIGTERM) }, 0);
    wait(&mut children[0]);
    // One that has ended is not told any more.
    children[0].signal(libc::SIGKILL);
    let device = Device::open_path(Path::new("/dev/null"), false).unwrap();
    let refused = children[0].attach(&device).unwrap_err();
    assert_eq!(refused.error.raw_os_error(), Some(libc::ESRCH));
    assert!(children[0].is_ready().is_err());
    drop(gate);
    let [first, second] = [0, 1].map(|place: usize| children[place].exited());
    let by = |exited: &pbs_launch::Exited| exited.exit.signal;
    assert_eq!((by(&first), by(&second)), (Some(libc::SIGTERM), Some(libc::SIGTERM)));
    assert!(second.was_signalled && !first.was_signalled);
    assert!(0 < second.end && second.end < first.end);
}
