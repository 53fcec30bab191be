// SPDX-License-Identifier: GPL-2.0
//! A CPU goes with its plan, and takes a new one when it comes back.

use std::fs;

use pbs_uapi::{Eject, EventKind};

use crate::harness::{Context, Plan, Verdict};
use crate::linux::scene::{ends_well, policy_of, Scene, Trio, Words, PLAN_CPU};
use crate::{check, check_eq};

fn set_online(online: u8) -> Verdict {
    let path = format!("/sys/devices/system/cpu/cpu{PLAN_CPU}/online");
    fs::write(&path, online.to_string()).context(&path)
}

/// Its processes, in whatever state, go on as normal ones elsewhere; a plan for
/// it is refused until it is back.
pub fn cpu_goes_and_comes() -> Verdict {
    for round in 0..3 {
        let mut trio = Trio::new()?;
        set_online(0).map_err(|why| format!("round {round}: {why}"))?;
        let gone = trio.scene.wait_for("says that the CPU is gone", |event| {
            event.kind == EventKind::CpuGone as u16
        })?;
        check_eq!(gone.cpu, PLAN_CPU, "the CPU that is gone");
        for actor in [&trio.blocked, &trio.running, &trio.waiting] {
            let event = trio.scene.wait_kind(EventKind::Ejected, actor.process)?;
            check_eq!(
                event.reason,
                Eject::CpuGone as u16,
                "reason of {}",
                actor.name
            );
            check_eq!(event.pid, actor.pid(), "thread of {}", actor.name);
            check_eq!(
                policy_of(actor.pid())?,
                libc::SCHED_OTHER,
                "policy of {}",
                actor.name
            );
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
        let words = Words::shared()?;
        let mut child = scene.spawn(1, || words.spin())?;
        words.runs("the process of the new plan")?;
        words.release();
        ends_well(&mut child, "the process of the new plan")?;
        let ended = scene.wait_kind(EventKind::TaskEnded, 1)?;
        check!(
            ended.retired_insns > 0,
            "nothing was counted on the CPU that came back"
        );
        scene.plan_ends()?;
    }
    Ok(())
}
