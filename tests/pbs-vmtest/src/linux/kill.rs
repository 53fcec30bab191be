// SPDX-License-Identifier: GPL-2.0
//! kill -9 ends a plan process whatever it does, and the plan goes on.

use pbs_uapi::EventKind;

use crate::harness::{now_ns, Context, Counting, Verdict};
use crate::linux::scene::{Actor, Scene, Trio, Waits, PLAN_CPU};
use crate::{check, check_eq};

/// An exiting thread is a normal one: in the next unallocated time it gets on.
const PROMPT_NS: u64 = 1_000_000_000;

/// Kills a process of the plan; `unended` of its tasks have not begun by then.
fn kill(scene: &mut Scene, actor: &mut Actor, unended: u64) -> Verdict {
    let before_ns = now_ns();
    actor.child.kill(libc::SIGKILL)?;
    // Without a look in between, which would disturb the other CPU.
    let status = actor.child.wait()?;
    let took_ns = now_ns() - before_ns;
    println!("{} died in {} us", actor.name, took_ns / 1000);
    check!(took_ns < PROMPT_NS, "{} took {took_ns} ns to die", actor.name);
    check_eq!(status, libc::SIGKILL, "wait status of {}", actor.name);
    let event = scene.wait_kind(EventKind::ProcessEnded, actor.process)?;
    check_eq!(event.value, unended, "tasks that {} did not end", actor.name);
    check_eq!(event.pid, actor.pid(), "thread of {}", actor.name);
    Ok(())
}

/// The next slot begins, and the rest of the plan is executed.
pub fn kill_running() -> Verdict {
    let mut trio = Trio::new()?;
    kill(&mut trio.scene, &mut trio.running, 0)?;
    trio.waiting.runs()?;
    trio.waiting.ends()?;
    trio.blocked.ends()?;
    trio.scene.plan_ends()
}

/// A waiting process dies without its slot, and the running one continues.
pub fn kill_waiting() -> Verdict {
    let mut trio = Trio::new()?;
    let unended = Counting::here().unended_by_death();
    kill(&mut trio.scene, &mut trio.waiting, unended)?;
    check_eq!(trio.waiting.words.progress(), 0, "user code of the killed one");
    trio.running.runs()?;
    trio.running.ends()?;
    trio.blocked.ends()?;
    trio.scene.plan_ends()
}

/// A process that t1 has sent to wait dies: the task that it has begun ends with it, and the next
/// one never begins.
pub fn kill_preempted() -> Verdict {
    let mut trio = Trio::waiting(Waits::InUserCode)?;
    let before = trio.waiting.words.progress();
    kill(&mut trio.scene, &mut trio.waiting, 1)?;
    check_eq!(trio.waiting.words.progress(), before, "user code of the killed one");
    trio.running.runs()?;
    trio.running.ends()?;
    trio.blocked.ends()?;
    trio.scene.plan_ends()
}

/// A blocked process dies out of its sleep, and the others continue.
pub fn kill_blocked() -> Verdict {
    let mut trio = Trio::new()?;
    kill(&mut trio.scene, &mut trio.blocked, 0)?;
    trio.running.runs()?;
    trio.running.ends()?;
    trio.waiting.runs()?;
    trio.waiting.ends()?;
    trio.scene.plan_ends()
}

/// They die although a normal process wants their CPU, too: the third one,
/// detached from the plan.
pub fn kill_beside_a_normal_process() -> Verdict {
    for round in 0..10 {
        let mut trio = Trio::new()?;
        let pid = trio.waiting.pid();
        trio.scene.node.device.detach(pid).context("detach")?;
        trio.waiting.runs()?;
        kill(&mut trio.scene, &mut trio.blocked, 0).map_err(|why| format!("{round}: {why}"))?;
        kill(&mut trio.scene, &mut trio.running, 0).map_err(|why| format!("{round}: {why}"))?;
        trio.waiting.ends()?;
        // The next plan begins anew.
        let device = &trio.scene.node.device;
        device.drop_plan(PLAN_CPU).context("drop")?;
    }
    Ok(())
}
