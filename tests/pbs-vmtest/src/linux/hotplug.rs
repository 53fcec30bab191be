// SPDX-License-Identifier: GPL-2.0
//! A CPU goes with its plan, and takes a new one when it comes back.

use std::fs;

use pbs_uapi::{Eject, EventKind};

use crate::harness::{burn, sleep_ms, Context, Counting, Plan, Random, Verdict};
use crate::linux::scene::{ends_well, policy_of, Scene, SharedWords, Trio, Waits, PLAN_CPU};
use crate::{check, check_eq};

fn set_online(online: u8) -> Verdict {
    let path = format!("/sys/devices/system/cpu/cpu{PLAN_CPU}/online");
    fs::write(&path, online.to_string()).context(&path)
}

/// Processes of a CPU that goes offline, in whatever state, continue as normal ones elsewhere. A
/// plan for it is refused until it is back.
pub fn cpu_goes_and_comes() -> Verdict {
    for (round, waits) in
        [Waits::AtACall, Waits::InUserCode, Waits::AtACall].into_iter().enumerate()
    {
        let mut trio = Trio::waiting(waits)?;
        set_online(0).map_err(|why| format!("round {round}: {why}"))?;
        let gone = trio.scene.wait_for("says that the CPU is gone", |event| {
            event.kind == EventKind::CpuGone as u16
        })?;
        check_eq!(gone.cpu, PLAN_CPU, "the CPU that is gone");
        for actor in [&trio.blocked, &trio.running, &trio.waiting] {
            let event = trio.scene.wait_kind(EventKind::Ejected, actor.process)?;
            check_eq!(event.reason, Eject::CpuGone as u16, "reason of {}", actor.name);
            check_eq!(event.pid, actor.pid(), "thread of {}", actor.name);
            check_eq!(policy_of(actor.pid())?, libc::SCHED_OTHER, "policy of {}", actor.name);
        }
        trio.running.runs()?;
        trio.waiting.runs()?;

        let plan = Plan::new(41).cpu(PLAN_CPU).slot(1, 0, 1_000_000);
        match trio.scene.node.device.write_plan(&plan.bytes()) {
            Ok(()) => return Err("a plan for a CPU that is gone was taken".into()),
            Err(refused) => {
                check_eq!(refused.error.raw_os_error(), Some(libc::ENODEV), "errno");
                let reason = refused.reason.unwrap_or_default();
                check!(reason.contains("not online"), "reason: {reason}");
            }
        }
        for actor in [&mut trio.running, &mut trio.waiting, &mut trio.blocked] {
            actor.ends()?;
        }

        set_online(1).map_err(|why| format!("round {round}: {why}"))?;
        let mut scene = Scene::new()?;
        scene.node.load(&plan)?;
        let words = SharedWords::shared()?;
        let mut child = scene.spawn(1, || words.spin())?;
        words.runs("the process of the new plan")?;
        words.release();
        ends_well(&mut child, "the process of the new plan")?;
        let ended = scene.wait_kind(EventKind::TaskEnded, 1)?;
        check!(ended.retired_insns > 0, "nothing was counted on the CPU that came back");
        scene.plan_ends()?;
    }
    Ok(())
}

/// The CPU goes at any moment of slots that t1 ends one after the other, with its
/// timer armed. Back again it counts as before, and executes a plan.
pub fn cpu_goes_with_armed_timer() -> Verdict {
    const BURN_INSNS: u64 = 3_000_000;
    let counting = Counting::here();
    let least_insns = counting.least_insns(BURN_INSNS);
    let mut random = Random::new(5);
    for round in 0..5 {
        let mut scene = Scene::new()?;
        let mut plan = Plan::new(42).cpu(PLAN_CPU);
        for task in 0..1000 {
            plan = plan.slot(1, task, 1_000_000).slot(2, task, 1_000_000);
        }
        scene.node.load(&plan)?;
        let mut spinning = Vec::new();
        for process in 1..=2 {
            let words = SharedWords::shared()?;
            spinning.push((scene.spawn(process, || words.spin())?, words, process));
        }
        for process in 1..=2 {
            scene.wait_kind(EventKind::Preempted, process)?;
        }
        sleep_ms(random.between(1, 40));
        set_online(0).map_err(|why| format!("round {round}: {why}"))?;
        scene.wait_for("says that the CPU is gone", |event| {
            event.kind == EventKind::CpuGone as u16 && event.cpu == PLAN_CPU
        })?;
        for (child, words, process) in &mut spinning {
            let ejected = scene.wait_kind(EventKind::Ejected, *process)?;
            check_eq!(ejected.reason, Eject::CpuGone as u16, "why it was ejected");
            check_eq!(policy_of(child.pid)?, libc::SCHED_OTHER, "its policy");
            words.runs("a process whose CPU is gone")?;
            words.release();
            ends_well(child, "a process whose CPU is gone")?;
        }
        set_online(1).map_err(|why| format!("round {round}: {why}"))?;
        // QEMU's overflow interrupt is in time or not by chance, so not the very tier.
        check_eq!(Counting::here(), counting, "how the CPU that came back counts");

        let mut scene = Scene::new()?;
        let plan = Plan::new(43).cpu(PLAN_CPU).slot(1, 0, BURN_INSNS);
        scene.node.load(&plan)?;
        let mut child = scene.spawn(1, || burn(BURN_INSNS))?;
        ends_well(&mut child, "the process of the new plan")?;
        let ended = scene.wait_kind(EventKind::TaskEnded, 1)?;
        // The emulated counters count the instructions of the other CPU, too.
        check!(
            (least_insns..2 * BURN_INSNS).contains(&ended.retired_insns),
            "round {round}: burned {BURN_INSNS}, {} were counted",
            ended.retired_insns
        );
        scene.plan_ends()?;
    }
    Ok(())
}
