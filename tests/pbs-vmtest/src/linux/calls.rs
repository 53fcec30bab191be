// SPDX-License-Identifier: GPL-2.0
//! System calls that sleep, yield and wake, made by plan processes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::EventKind;

use crate::harness::{burn, fork, now_ns, sleep_ms, Context, Plan, Verdict};
use crate::linux::scene::{
    ends_well, eventually, futex, Scene, SharedWords, ENDLESS_INSNS, PLAN_CPU,
};
use crate::linux::sleeps::own_voluntary_switches;
use crate::{check, check_eq};

/// sched_yield(2) gives nothing away: there is nobody to yield to in a slot.
pub fn yield_keeps_the_slot() -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(61).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS).slot(2, 0, 1_000_000);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let mut yielder = scene.spawn(1, || {
        while words.go.load(SeqCst) == 0 {
            words.progress.fetch_add(1, SeqCst);
            // SAFETY: no memory is involved.
            unsafe { libc::sched_yield() };
        }
    })?;
    words.runs("the process that yields")?;
    let others = SharedWords::shared()?;
    let mut other = scene.spawn(2, || others.spin())?;
    let before = words.progress();
    eventually("the process yields 1000 times more", || words.progress() >= before + 1000)?;
    check_eq!(others.progress(), 0, "turns of the other in the slot of the one that yields");
    words.release();
    ends_well(&mut yielder, "the process that yields")?;
    others.runs("the other")?;
    others.release();
    ends_well(&mut other, "the other")?;
    scene.plan_ends()
}

/// A sleep in a slot takes as long as it takes elsewhere, and the slot is still
/// there.
pub fn sleep_in_a_slot() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(62).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let words = SharedWords::shared()?;
    let mut child = scene.spawn(1, || {
        for _ in 0..20 {
            let before_ns = now_ns();
            sleep_ms(7);
            let slept_ns = now_ns() - before_ns;
            // One period of windows later at most.
            let right = (7_000_000..107_000_000).contains(&slept_ns);
            words.note.fetch_add(u32::from(right), SeqCst);
            burn(10_000);
        }
    })?;
    ends_well(&mut child, "the process that sleeps")?;
    check_eq!(words.note.load(SeqCst), 20, "sleeps of the right length");
    scene.plan_ends()?;
    check_eq!(scene.count(EventKind::TaskEnded)?, 1, "tasks that ended");
    check_eq!(scene.count(EventKind::Ceiling)?, 0, "slots that reached their ceiling");
    Ok(())
}

/// Bytes go to and fro between a plan process and a normal one on another CPU.
pub fn talks_to_a_normal_process() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(63).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let (near, far) = UnixStream::pair().context("socket pair")?;
    let words = SharedWords::shared()?;
    let mut normal = fork(|| {
        let mut byte = [0];
        while (&near).read_exact(&mut byte).is_ok() {
            if byte[0] == 200 || (&near).write_all(&[byte[0] + 1]).is_err() {
                return;
            }
        }
    })?;
    let mut child = scene.spawn(1, || {
        for turn in 0..200 {
            let mut byte = [0];
            let right = (&far).write_all(&[turn]).is_ok() && (&far).read_exact(&mut byte).is_ok();
            words.note.fetch_add(u32::from(right && byte[0] == turn + 1), SeqCst);
        }
        let _ = (&far).write_all(&[200]);
    })?;
    ends_well(&mut child, "the plan process")?;
    ends_well(&mut normal, "the normal process")?;
    check_eq!(words.note.load(SeqCst), 200, "answers");
    scene.plan_ends()
}

/// Two plan processes of one CPU wake each other by futex: each blocks in its
/// slot until the ceiling gives the other its turn, and both come to their end.
pub fn plan_processes_wake_each_other() -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(64).cpu(PLAN_CPU).slot(1, 0, 1_000_000).slot(2, 0, 1_000_000);
    let words = SharedWords::shared()?;
    scene.node.load(&plan)?;
    let talk = move |odd: u32| {
        for _ in 0..50 {
            loop {
                let turn = words.note.load(SeqCst);
                if turn % 2 == odd {
                    break;
                }
                futex(&words.note, libc::FUTEX_WAIT, turn);
            }
            words.note.fetch_add(1, SeqCst);
            futex(&words.note, libc::FUTEX_WAKE, 1);
        }
    };
    let mut first = scene.spawn(1, || talk(0))?;
    let mut second = scene.spawn(2, || talk(1))?;
    ends_well(&mut first, "the first")?;
    ends_well(&mut second, "the second")?;
    check_eq!(words.note.load(SeqCst), 100, "turns");
    scene.plan_ends()
}

/// Plan processes that have to wait hold nothing that a normal task needs:
/// both sides create and rename files in one directory, and no call of the
/// normal side sleeps for long.
pub fn shared_directory_is_never_held_up() -> Verdict {
    const RUNS: u32 = 50;
    // Who waited while it holds something would hold it for the long slot.
    const LONG_SLOT_INSNS: u64 = 50_000_000;
    const LONG_NS: u64 = 150_000_000;
    let work = |name: &str, turn: u32| -> std::io::Result<()> {
        let (from, to) = (format!("/tmp/shared/{name}{turn}"), format!("/tmp/shared/to-{name}"));
        std::fs::write(&from, "")?;
        std::fs::rename(&from, &to)
    };
    std::fs::create_dir("/tmp/shared").context("/tmp/shared")?;
    let (mut worst_ns, mut awake_ns, mut calls, mut passed) = (0, 0, 0u32, 0usize);
    for run in 0..RUNS {
        let mut scene = Scene::new()?;
        let mut plan = Plan::new(1000 + u64::from(run)).cpu(PLAN_CPU);
        for task in 0..4 {
            for process in 1..=3 {
                plan = plan.slot(process, task, 20_000);
            }
            if task == 1 {
                plan = plan.slot(4, 0, LONG_SLOT_INSNS);
            }
        }
        scene.node.load(&plan)?;
        let words = SharedWords::shared()?;
        let mut children = Vec::new();
        for process in 1..=3 {
            children.push(scene.spawn(process, move || {
                let name = format!("plan{process}-");
                for turn in 0..60 {
                    if work(&name, turn).is_ok() {
                        words.note.fetch_add(1, SeqCst);
                    }
                }
            })?);
        }
        children.push(scene.spawn(4, || burn(LONG_SLOT_INSNS * 9 / 10))?);
        while scene.count(EventKind::PlanEnded)? == 0 {
            let (before_ns, before) = (now_ns(), own_voluntary_switches());
            work("normal-", calls).context("the normal side")?;
            // In a call without sleep nothing but the emulated machine holds it up.
            let worst_ns =
                if own_voluntary_switches() == before { &mut awake_ns } else { &mut worst_ns };
            *worst_ns = (*worst_ns).max(now_ns() - before_ns);
            calls += 1;
            // An emulated machine hardly gets on with one CPU while another is busy.
            std::thread::sleep(std::time::Duration::from_micros(100));
            check!(calls < 1_000_000, "the plan does not end");
        }
        for child in &mut children {
            ends_well(child, "a plan process")?;
        }
        check_eq!(words.note.load(SeqCst), 180, "calls of the plan's side in run {run}");
        passed += scene.count(EventKind::Preempted)? + scene.count(EventKind::Ceiling)?;
    }
    println!(
        "{RUNS} runs, {calls} calls of the normal side, the longest took {} us, {} us without \
         sleep; plan processes were sent to wait {passed} times",
        worst_ns / 1000,
        awake_ns / 1000
    );
    check!(passed > RUNS as usize, "plan processes hardly ever had to wait: {passed} times");
    check!(worst_ns < LONG_NS, "a call took {worst_ns} ns");
    Ok(())
}
