// SPDX-License-Identifier: GPL-2.0
//! Tasks that hardly retire user instructions end their slots by the clock: at
//! the ceiling, or, where the clock is all that counts, at t1.

use std::fs::File;
use std::io::Read;

use pbs_uapi::{Device, EventKind, Grant};

use crate::harness::{now_ns, Counting, Plan, Scene, Verdict};
use crate::{check, check_eq};

/// A task that does nothing but getppid(2).
pub fn getppid_ends_at_ceiling() -> Verdict {
    ends_at_ceiling(|_| {
        let start_ns = now_ns();
        while now_ns() - start_ns < 200_000_000 {
            for _ in 0..100 {
                // SAFETY: no memory is involved.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
        }
    })
}

/// A task that does nothing but read zeroes.
pub fn zero_reader_ends_at_ceiling() -> Verdict {
    ends_at_ceiling(|_| {
        let mut zero = File::open("/dev/zero").expect("/dev/zero");
        let mut buffer = vec![1; 1 << 20];
        let start_ns = now_ns();
        while now_ns() - start_ns < 200_000_000 {
            zero.read_exact(&mut buffer).expect("zeroes");
        }
    })
}

/// Both slots of a process that works for longer end so, and the process between
/// them has its own in time.
fn ends_at_ceiling(work: impl FnOnce(&Device)) -> Verdict {
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        .slot(1, 1, 1_000_000)
        .slot(2, 1, 1_000_000);
    let mut scene = Scene::new()?;
    scene.process(1, work)?;
    scene.tasks(2, &[900_000, 900_000])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    let counting = Counting::here();
    let (end, other) = match counting {
        Counting::Exact => (EventKind::Ceiling, EventKind::Preempted),
        Counting::Clock => (EventKind::Preempted, EventKind::Ceiling),
    };
    let ends: Vec<_> = node.of(end).iter().map(|event| (event.process, event.slot)).collect();
    check_eq!(ends, [(1, 1), (1, 3)], "ends by {}\n{log}", end.name());
    check_eq!(node.of(other).len(), 0, "ends by {}\n{log}", other.name());
    for event in node.of(end) {
        println!("{} of {} after {} instructions", end.name(), event.value, event.retired_insns);
        check!(
            counting == Counting::Clock || event.retired_insns < 1_000_000,
            "it retired the whole slot, so this proves nothing\n{log}"
        );
        // The slot really ended then: the next one has the CPU.
        let next = node
            .of(EventKind::Grant)
            .into_iter()
            .find(|grant| grant.seq > event.seq)
            .ok_or("no grant after the ceiling")?;
        check_eq!(
            (next.process, next.reason, next.slot),
            (2, Grant::Slot as u16, event.slot + 1),
            "grant after the ceiling\n{log}"
        );
    }
    check_eq!(node.task_ended(2, 0)?.slot, 2, "slot of the other process\n{log}");
    check_eq!(node.task_ended(2, 1)?.slot, 4, "second slot of the other process\n{log}");
    Ok(())
}
