// SPDX-License-Identifier: GPL-2.0
//! Children and sibling threads of a plan process are none of the plan's.

use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::{EventKind, ATTACH_ONE_TASK};

use crate::harness::{burn, fork, Plan, Verdict};
use crate::linux::scene::{
    ends_well, policy_of, set_affinity, Scene, SharedWords, ENDLESS_INSNS, PLAN_CPU,
};
use crate::{check, check_eq};

/// A plan process forks without end. Its children are normal processes without
/// a seat, and the slots of the others come as planned.
pub fn fork_bomb_stays_outside() -> Verdict {
    const CHILDREN: u32 = 60;
    let mut scene = Scene::new()?;
    let plan = Plan::new(31)
        .cpu(PLAN_CPU)
        .slot(1, 0, ENDLESS_INSNS)
        .slot(2, 0, 2_000_000)
        .slot(2, 1, 2_000_000);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let device = &scene.node.device;
    let bomb = || {
        for _ in 0..CHILDREN {
            let _ = fork(|| {
                let outside = policy_of(0) == Ok(libc::SCHED_OTHER)
                    && device.task_end(None).is_err()
                    && device.detach(0).is_err()
                    && set_affinity(0, &[0, 1]) == Ok(());
                words.note.fetch_add(1, SeqCst);
                words.other.fetch_add(u32::from(outside), SeqCst);
                while words.go.load(SeqCst) == 0 {
                    burn(10_000);
                }
            })
            // A child would be killed when it is forgotten.
            .map(std::mem::forget);
        }
    };
    let mut bomber = fork(|| {
        if device.attach(0, 1, 0).is_ok() {
            bomb();
        }
    })?;
    scene.wait_kind(EventKind::Attached, 1)?;
    let mut worker = scene.spawn(2, || burn(1_900_000))?;
    ends_well(&mut bomber, "the process that forks")?;
    ends_well(&mut worker, "the other plan process")?;
    scene.plan_ends()?;
    let counted = crate::linux::scene::eventually("all children have looked", || {
        words.note.load(SeqCst) == CHILDREN
    });
    words.release();
    counted?;
    check_eq!(words.other.load(SeqCst), CHILDREN, "children outside the class");
    check_eq!(scene.count(EventKind::Attached)?, 2, "threads attached");
    Ok(())
}

/// The parent of vfork(2) sleeps in the kernel until its child has become
/// another program; the child gets the CPU although its parent has the slot.
pub fn vfork_in_a_slot() -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(32).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let mut child = scene.spawn(1, || {
        for _ in 0..10 {
            // The library uses vfork for this.
            let status = Command::new("/bin/true").status();
            words.note.fetch_add(u32::from(status.is_ok_and(|s| s.success())), SeqCst);
        }
    })?;
    ends_well(&mut child, "the process that forks")?;
    check_eq!(words.note.load(SeqCst), 10, "programs that ran");
    check_eq!(scene.count(EventKind::TaskEnded)?, 1, "tasks that ended");
    scene.plan_ends()
}

/// A sibling thread that is not attached comes and goes without the plan.
pub fn sibling_thread_is_outside() -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(33).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let mut child = scene.spawn(1, || {
        for _ in 0..5 {
            let policy = std::thread::spawn(|| policy_of(0)).join();
            let outside = matches!(policy, Ok(Ok(libc::SCHED_OTHER)));
            words.note.fetch_add(u32::from(outside), SeqCst);
        }
        words.spin();
    })?;
    words.runs("the process")?;
    check_eq!(words.note.load(SeqCst), 5, "threads outside the class");
    check_eq!(scene.count(EventKind::TaskEnded)?, 0, "tasks ended by siblings");
    words.release();
    ends_well(&mut child, "the process")?;
    scene.plan_ends()
}

/// Two threads of one program are attached to one process of the plan, for one
/// task each: when the first exits, the second has its turn.
pub fn thread_exits_beside_another() -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(34)
        .cpu(PLAN_CPU)
        .slot(1, 4, 10_000_000)
        .slot(1, 5, 10_000_000)
        .slot(2, 0, 1_000_000);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let device = &scene.node.device;
    let mut child = fork(|| {
        std::thread::scope(|scope| {
            for number in 1..=2 {
                scope.spawn(move || {
                    while words.other.load(SeqCst) + 1 != number {
                        crate::harness::sleep_ms(1);
                    }
                    if device.attach(0, 1, ATTACH_ONE_TASK).is_err() {
                        return;
                    }
                    // From here on in its slot; the second must not get here
                    // before the first is through.
                    burn(500_000);
                    let turn = words.note.fetch_add(1, SeqCst) + 1;
                    check_turn(words, turn == number);
                });
                scope.spawn(move || {
                    // The first is attached, and waits or works.
                    crate::harness::sleep_ms(5 * u64::from(number));
                    words.other.store(number, SeqCst);
                });
            }
        });
    })?;
    for _ in 0..2 {
        scene.wait_kind(EventKind::Attached, 1)?;
    }
    let mut last = scene.spawn(2, || burn(100_000))?;
    ends_well(&mut child, "the program with two threads")?;
    ends_well(&mut last, "the process after it")?;
    scene.plan_ends()?;
    check_eq!(words.progress(), 2, "threads that had their turn in order");
    let ended: Vec<(u32, u32)> = scene
        .node
        .of(EventKind::TaskEnded)
        .iter()
        .map(|event| (event.process, event.task))
        .collect();
    check_eq!(ended, [(1, 4), (1, 5), (2, 0)], "tasks in the order of their ends");
    for event in scene.node.of(EventKind::TaskEnded).iter().take(2) {
        check!(
            event.retired_insns >= 500_000,
            "task {} ended with {} instructions",
            event.task,
            event.retired_insns
        );
    }
    Ok(())
}

fn check_turn(words: &SharedWords, right: bool) {
    words.progress.fetch_add(u32::from(right), SeqCst);
}
