// SPDX-License-Identifier: GPL-2.0
//! Whatever goes wrong gives the CPU back: each fault that can be made on purpose
//! ends with all threads of the plan in the fair class, is told in an event, in
//! the log and in sysfs, and the CPU takes a new plan.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::{Drop, Eject, Event, EventKind};

use crate::harness::{
    fork, needs_counter, set_sysfs, sleep_ms, sysfs, sysfs_number, Context, Plan, Verdict,
};
use crate::linux::policy::{is_logged, log};
use crate::linux::scene::{
    ends_well, eventually, policy_of, reaches_state, Actor, Scene, SharedWords, Trio, PLAN_CPU,
};
use crate::{check, check_eq};

/// The shortest time that the watchdog can be given.
const SHORTEST_MS: &str = "500";

fn make(fault: &str) -> Verdict {
    set_sysfs(&format!("cpu{PLAN_CPU}/fault"), fault)
}

pub fn fault_of_decisions() -> Verdict {
    given_back(Drop::Decision, |_| make("decision"))
}

pub fn fault_of_wake_ups() -> Verdict {
    given_back(Drop::WakeUp, |trio| {
        make("wake_up")?;
        // Who waits is granted the CPU when the running one has ended.
        trio.running.ends()
    })
}

pub fn fault_of_the_timer() -> Verdict {
    given_back(Drop::Decision, |_| make("timer"))
}

pub fn fault_of_the_count() -> Verdict {
    needs_counter("a clock does not stand still");
    given_back(Drop::Progress, |_| make("count"))
}

pub fn fault_of_the_state() -> Verdict {
    given_back(Drop::State, |_| make("state"))
}

pub fn hogging_stopper() -> Verdict {
    given_back(Drop::Progress, |_| {
        // Somebody else waits for it to end.
        std::mem::forget(fork(|| make("hog").expect("the hog"))?);
        Ok(())
    })
}

/// The fault is found, and all are given back.
fn given_back(why: Drop, fault: impl FnOnce(&mut Trio) -> Verdict) -> Verdict {
    set_sysfs("watchdog_ms", SHORTEST_MS)?;
    check_eq!(sysfs(&format!("cpu{PLAN_CPU}/dropped"))?, "no", "dropped");
    let mut trio = Trio::new()?;
    fault(&mut trio)?;
    let dropped = is_dropped(&mut trio.scene, why)?;
    check_eq!(dropped.plan_id, 11, "plan");
    for actor in [&mut trio.blocked, &mut trio.running, &mut trio.waiting] {
        if actor.words.go.load(SeqCst) != 0 {
            // It has ended, and that was a part of the fault.
            continue;
        }
        let event = trio.scene.wait_kind(EventKind::Ejected, actor.process)?;
        check_eq!(event.reason, Eject::Fault as u16, "why {} left", actor.name);
        is_fair(actor)?;
        actor.ends()?;
    }
    is_logged(&format!("CPU {PLAN_CPU}: the plan was dropped: "))?;
    // The dump: the CPU, a thread that waited, and an event.
    is_logged(&format!("pbs: cpu {PLAN_CPU} tier "))?;
    is_logged(&format!("thread {} ", trio.waiting.pid()))?;
    is_logged("plan_installed reason 0 plan 11")?;
    takes_a_plan(trio.scene)
}

/// The plan was dropped for this reason.
pub fn is_dropped(scene: &mut Scene, why: Drop) -> Result<Event, String> {
    let dropped = scene.wait_for("says that the plan was dropped", |event| {
        event.kind == EventKind::PlanDropped as u16
    })?;
    check_eq!(
        Drop::from_raw(dropped.reason),
        Some(why),
        "why it was dropped\n{}",
        scene.node.log()
    );
    check_eq!(dropped.cpu, PLAN_CPU, "CPU");
    let in_sysfs = sysfs(&format!("cpu{PLAN_CPU}/dropped"))?;
    check_eq!(in_sysfs, why.name(), "reason in sysfs");
    Ok(dropped)
}

/// The CPU takes a new plan, and it runs to its end.
pub fn takes_a_plan(mut scene: Scene) -> Verdict {
    let plan = Plan::new(12)
        .cpu(PLAN_CPU)
        .slot(7, 0, 5_000_000)
        .slot(8, 0, 5_000_000)
        .slot(7, 1, 5_000_000);
    scene.node.load(&plan)?;
    let mut children = Vec::new();
    for process in [7, 8] {
        let words = SharedWords::shared()?;
        children.push(scene.spawn(process, || words.spin())?);
        words.runs("a process of the new plan")?;
        words.release();
    }
    for child in &mut children {
        ends_well(child, "a process of the new plan")?;
    }
    scene.plan_ends()
}

/// A watchdog that is off finds nothing, and one that is switched on does.
pub fn watchdog_can_be_off() -> Verdict {
    set_sysfs("watchdog_ms", "0")?;
    let mut trio = Trio::new()?;
    make("decision")?;
    sleep_ms(3000);
    check_eq!(trio.scene.count(EventKind::PlanDropped)?, 0, "plans dropped");
    trio.is_in_class()?;
    set_sysfs("watchdog_ms", SHORTEST_MS)?;
    is_dropped(&mut trio.scene, Drop::Decision)?;
    for actor in [&mut trio.blocked, &mut trio.running, &mut trio.waiting] {
        actor.ends()?;
    }
    takes_a_plan(trio.scene)
}

/// Times out of the bounds are refused, and change nothing.
pub fn watchdog_bounds() -> Verdict {
    check_eq!(sysfs_number("watchdog_ms")?, 5000, "time by itself");
    for refused in ["499", "30001", "-1", "1", "soon"] {
        let path = "/sys/kernel/pbs/watchdog_ms";
        let errno = fs::write(path, refused).err();
        let errno = errno.and_then(|error| error.raw_os_error());
        check_eq!(errno, Some(libc::EINVAL), "errno of {refused}");
        check_eq!(sysfs_number("watchdog_ms")?, 5000, "time after {refused}");
    }
    for taken in ["500", "30000", "0"] {
        set_sysfs("watchdog_ms", taken)?;
        check_eq!(sysfs("watchdog_ms")?, taken, "time");
    }
    Ok(())
}

/// A process that is stopped or blocked for long is not at fault, nor is one that runs
/// in a long slot.
pub fn watchdog_leaves_who_stands_still() -> Verdict {
    const LONG_MS: u64 = 4000;
    set_sysfs("watchdog_ms", SHORTEST_MS)?;
    let mut trio = Trio::new()?;
    sleep_ms(LONG_MS);
    trio.is_in_class()?;
    trio.running.child.kill(libc::SIGSTOP)?;
    reaches_state(trio.running.pid(), 'T')?;
    sleep_ms(LONG_MS);
    trio.waiting.child.kill(libc::SIGSTOP)?;
    reaches_state(trio.waiting.pid(), 'T')?;
    // Now nobody can run.
    sleep_ms(LONG_MS);
    trio.is_in_class()?;
    check_eq!(trio.scene.count(EventKind::PlanDropped)?, 0, "plans dropped");
    for actor in [&trio.running, &trio.waiting] {
        actor.child.kill(libc::SIGCONT)?;
    }
    trio.running.ends()?;
    trio.waiting.ends()?;
    trio.blocked.ends()?;
    check!(
        trio.scene.count(EventKind::Ejected)? == 0,
        "somebody had to leave:\n{}",
        trio.scene.node.log()
    );
    trio.scene.plan_ends()
}

/// The file in debugfs has the plan, each thread with what it does, and the events.
pub fn dump_tells_all() -> Verdict {
    let path = "/sys/kernel/debug/pbs";
    check_eq!(fs::read_to_string(path).context(path)?, "", "without a plan");
    let mode = fs::metadata(path).context(path)?.permissions().mode();
    check_eq!(mode & 0o777, 0o400, "mode");
    let trio = Trio::new()?;
    tells_of(&trio, &fs::read_to_string(path).context(path)?)?;
    trio.goes_on_to_the_end()?;
    let after = fs::read_to_string(path).context(path)?;
    check!(after.contains("plan 11 state ended"), "at the end:\n{after}");
    Ok(())
}

fn tells_of(trio: &Trio, dump: &str) -> Verdict {
    let actors = [
        (&trio.blocked, "blocked process 1 task 0 active"),
        (&trio.running, "runs process 2 task 0 active"),
        (&trio.waiting, "waits process 3 task 0 active"),
    ];
    for (actor, does) in actors {
        let line = format!("thread {} {does}", actor.pid());
        check!(dump.contains(&line), "no line '{line}' in\n{dump}");
    }
    // The window may be at its end.
    let states = ["execution", "unallocated"];
    let state = states.iter().find(|state| dump.contains(&format!("plan 11 state {state} ")));
    check!(state.is_some(), "no state of the plan in\n{dump}");
    for line in [
        &format!("cpu {PLAN_CPU} tier "),
        " slot 1 of 3 processes 3 unfinished 3",
        &format!("granted process 2 for Slot thread {}", trio.running.pid()),
        "counts plan_installed 1 attached 3",
        "attached reason 0 plan 11 process 3",
    ] {
        check!(dump.contains(line), "no line '{line}' in\n{dump}");
    }
    Ok(())
}

fn press(key: &str) -> Verdict {
    let path = "/proc/sysrq-trigger";
    fs::write(path, key).context(path)
}

/// A key writes the dump to the log.
pub fn sysrq_dumps() -> Verdict {
    let trio = Trio::new()?;
    press("B")?;
    tells_of(&trio, &log()?)?;
    trio.goes_on_to_the_end()
}

/// A key gives all threads of all plans back, and new plans are taken.
pub fn sysrq_drops_all_plans() -> Verdict {
    let mut trio = Trio::new()?;
    // One on the CPU of the test as well, for a process that never comes.
    let plan = Plan::new(13).slot(9, 0, 1 << 30);
    trio.scene.node.load(&plan)?;
    press("P")?;
    trio.scene.node.read_until(EventKind::PlanDropped, 2)?;
    let dropped = trio.scene.node.of(EventKind::PlanDropped);
    let mut said: Vec<_> = dropped.iter().map(|e| (e.cpu, e.plan_id, e.reason)).collect();
    said.sort_unstable();
    let sysrq = Drop::Sysrq as u16;
    check_eq!(said, [(0, 13, sysrq), (PLAN_CPU, 11, sysrq)], "what was dropped");
    for cpu in 0..2 {
        check_eq!(sysfs(&format!("cpu{cpu}/dropped"))?, "sysrq", "reason in sysfs");
    }
    for actor in [&mut trio.blocked, &mut trio.running, &mut trio.waiting] {
        let event = trio.scene.wait_kind(EventKind::Ejected, actor.process)?;
        check_eq!(event.reason, Eject::Dropped as u16, "why {} left", actor.name);
        is_fair(actor)?;
        actor.ends()?;
    }
    is_logged(&format!("CPU {PLAN_CPU}: the plan was dropped: by SysRq"))?;
    takes_a_plan(trio.scene)
}

fn is_fair(actor: &Actor) -> Verdict {
    eventually(&format!("{} is in the fair class", actor.name), || {
        policy_of(actor.pid()) == Ok(libc::SCHED_OTHER)
    })
}
