// SPDX-License-Identifier: GPL-2.0
//! Futexes with priority inheritance between plan processes and others.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use pbs_uapi::EventKind;

use crate::harness::{fork, Child, Context, Plan, Verdict, LEAD_IN_INSNS};
use crate::linux::accounts::all_at_rest;
use crate::linux::policy::{set_attr, SchedAttr};
use crate::linux::scene::{
    dies, ends_well, eventually, futex, policy_of, reaches_state, set_affinity, Scene, SharedWords,
    Waits, ENDLESS_INSNS, PLAN_CPU, SCHED_PBS,
};
use crate::{check, check_eq};

/// Priority in `/proc` of a deadline task, or of one that is boosted to one.
const DEADLINE_PRIORITY: i32 = -101;
/// Priority in `/proc` of a plan process.
const PBS_PRIORITY: i32 = -100;

/// The effective priority of a thread, as `/proc` shows it.
fn priority_of(pid: i32) -> Result<i32, String> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).context(&path)?;
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // The 18th, of which two stand before the bracket.
    let field = fields.split(' ').nth(15).unwrap_or_default();
    field.parse().context(&path)
}

fn lock(word: &AtomicU32) -> bool {
    futex(word, libc::FUTEX_LOCK_PI, 0) == 0
}

fn unlock(word: &AtomicU32) -> bool {
    futex(word, libc::FUTEX_UNLOCK_PI, 0) == 0
}

/// Forks a child of the deadline class that takes the lock, counts in `note`,
/// and gives the lock back.
fn deadline_waiter(words: &'static SharedWords) -> Result<Child, String> {
    fork(|| {
        let attr = SchedAttr {
            policy: libc::SCHED_DEADLINE as u32,
            runtime_ns: 20_000_000,
            deadline_ns: 100_000_000,
            period_ns: 100_000_000,
            ..SchedAttr::default()
        };
        // The deadline class wants all CPUs.
        let ready = set_affinity(0, &[0, 1]).and_then(|()| set_attr(0, attr));
        let right = ready.is_ok() && lock(&words.other);
        words.note.fetch_add(1, SeqCst);
        let right = right && unlock(&words.other);
        // SAFETY: ends the child.
        unsafe { libc::_exit(if right { 0 } else { 97 }) };
    })
}

/// A normal task waits for a lock that a running plan process holds, and gets it.
pub fn normal_task_waits_for_plan_process() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(51).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let words = SharedWords::shared()?;
    let mut holder = scene.spawn(1, || {
        if !lock(&words.other) {
            return;
        }
        words.spin();
        unlock(&words.other);
    })?;
    words.runs("the holder")?;
    let mut waiter = fork(|| {
        if lock(&words.other) {
            words.note.fetch_add(1, SeqCst);
            unlock(&words.other);
        }
    })?;
    reaches_state(waiter.pid, 'S')?;
    words.runs("the holder")?;
    check_eq!(words.note.load(SeqCst), 0, "the waiter got the lock too early");
    words.release();
    ends_well(&mut holder, "the holder")?;
    ends_well(&mut waiter, "the waiter")?;
    check_eq!(words.note.load(SeqCst), 1, "the waiter got the lock");
    scene.plan_ends()
}

/// A plan process waits for a lock that a normal task holds; it sleeps in its
/// slot meanwhile, and goes on in it.
pub fn plan_process_waits_for_normal_task() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(52).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let words = SharedWords::shared()?;
    let mut holder = fork(|| {
        let right = lock(&words.other);
        words.note.store(1, SeqCst);
        words.block();
        if right {
            unlock(&words.other);
        }
    })?;
    eventually("the holder has the lock", || words.note.load(SeqCst) == 1)?;
    let mut waiter = scene.spawn(1, || {
        let right = lock(&words.other);
        words.note.fetch_add(u32::from(right), SeqCst);
        unlock(&words.other);
    })?;
    reaches_state(waiter.pid, 'S')?;
    check_eq!(words.note.load(SeqCst), 1, "the waiter got the lock too early");
    words.release();
    ends_well(&mut holder, "the holder")?;
    ends_well(&mut waiter, "the waiter")?;
    check_eq!(words.note.load(SeqCst), 2, "the waiter got the lock");
    check_eq!(scene.count(EventKind::TaskEnded)?, 1, "tasks that ended");
    scene.plan_ends()
}

/// A deadline task that wants the lock of `holder`, which runs boosted by it.
fn boosting_waiter(words: &'static SharedWords, holder: &Child) -> Result<Child, String> {
    let waiter = deadline_waiter(words)?;
    eventually("the holder is boosted", || priority_of(holder.pid) == Ok(DEADLINE_PRIORITY))?;
    words.runs("the boosted holder")?;
    check_eq!(words.note.load(SeqCst), 0, "the waiter got the lock too early");
    Ok(waiter)
}

/// A deadline task boosts the plan process whose lock it wants. The process
/// comes back into its slot, and what it retired meanwhile is accounted.
pub fn deadline_task_boosts_plan_process() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(53).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let (words, after) = (SharedWords::shared()?, SharedWords::shared()?);
    let mut holder = scene.spawn(1, || {
        let right = lock(&words.other);
        words.spin();
        if right && unlock(&words.other) {
            after.spin();
        }
    })?;
    words.runs("the holder")?;
    check_eq!(priority_of(holder.pid)?, PBS_PRIORITY, "priority of the holder");
    let mut waiter = boosting_waiter(words, &holder)?;
    let boosted_turns = words.progress();
    words.release();
    ends_well(&mut waiter, "the deadline task")?;
    after.runs("the holder, no longer boosted,")?;
    check_eq!(policy_of(holder.pid)?, SCHED_PBS, "policy of the holder");
    check_eq!(priority_of(holder.pid)?, PBS_PRIORITY, "priority of the holder");
    after.release();
    ends_well(&mut holder, "the holder")?;
    let ended = scene.wait_kind(EventKind::TaskEnded, 1)?;
    check!(
        ended.retired_insns > 2 * u64::from(boosted_turns),
        "{} instructions are accounted to the holder for {boosted_turns} turns",
        ended.retired_insns
    );
    check_eq!(scene.count(EventKind::Ejected)?, 0, "threads ejected");
    scene.plan_ends()
}

/// The slot of the holder ends while it is boosted: it goes on until it gives
/// the lock back, and then waits.
pub fn boosted_beyond_its_slot() -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(54).cpu(PLAN_CPU).slot(1, 0, 200_000_000).slot(2, 0, ENDLESS_INSNS);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let others = SharedWords::shared()?;
    let mut holder = scene.spawn(1, || {
        let right = lock(&words.other);
        // Until its slot is over, by the count or by the clock.
        while words.go.load(SeqCst) == 0 && right {
            words.progress.fetch_add(1, SeqCst);
        }
        unlock(&words.other);
        loop {
            others.note.fetch_add(1, SeqCst);
            if others.other.load(SeqCst) != 0 {
                return;
            }
        }
    })?;
    words.runs("the holder")?;
    let mut owner = scene.spawn(2, || others.spin())?;
    let mut waiter = deadline_waiter(words)?;
    eventually("the holder is boosted", || priority_of(holder.pid) == Ok(DEADLINE_PRIORITY))?;
    // Its slot passes, and it is boosted: it goes on beside the plan.
    scene.wait_for("grants the second slot", |event| {
        event.kind == EventKind::Grant as u16 && event.process == 2
    })?;
    words.runs("the boosted holder")?;
    words.release();
    ends_well(&mut waiter, "the deadline task")?;
    check_eq!(words.note.load(SeqCst), 1, "the deadline task got the lock");
    reaches_state(holder.pid, 'S')?;
    let at_rest = others.note.load(SeqCst);
    others.runs("the owner of the second slot")?;
    check_eq!(others.note.load(SeqCst), at_rest, "turns of the holder out of its slot");
    others.release();
    ends_well(&mut owner, "the owner of the second slot")?;
    others.other.store(1, SeqCst);
    check_eq!(dies(&mut holder, "the holder")?, 0, "wait status of the holder");
    scene.plan_ends()
}

/// A plan process has a lock and waits for its slot when a deadline task wants the lock: it
/// is boosted out of its wait, goes on beside the plan, gives the lock back and waits again.
pub fn deadline_task_boosts_waiting_process() -> Verdict {
    for waits in [Waits::AtACall, Waits::InUserCode] {
        boosts_waiting(waits).map_err(|why| format!("{waits:?}: {why}"))?;
    }
    Ok(())
}

fn boosts_waiting(waits: Waits) -> Verdict {
    let mut scene = Scene::new()?;
    let mut plan = Plan::new(55).cpu(PLAN_CPU).idle(LEAD_IN_INSNS);
    let mut last_task = 0;
    if waits == Waits::InUserCode {
        plan = plan.slot(1, 0, 1_000_000);
        last_task = 1;
    }
    let plan = plan.slot(2, 0, ENDLESS_INSNS).slot(1, last_task, 50_000_000);
    scene.node.load(&plan)?;
    let (words, after, owners) =
        (SharedWords::shared()?, SharedWords::shared()?, SharedWords::shared()?);
    let device = &scene.node.device;
    let mut holder = fork(|| {
        let right = lock(&words.other);
        // By now it has the lock, wherever it is sent to wait.
        if device.attach(0, 1, 0).is_err() {
            return;
        }
        words.spin();
        if right && unlock(&words.other) {
            after.spin();
        }
    })?;
    scene.wait_kind(EventKind::Attached, 1)?;
    let mut owner = scene.spawn(2, || owners.spin())?;
    owners.runs("the owner of the slot")?;
    reaches_state(holder.pid, 'S')?;
    words.rests("the holder")?;
    check_eq!(words.progress() != 0, waits == Waits::InUserCode, "the holder has run");

    let mut waiter = boosting_waiter(words, &holder)?;
    words.release();
    ends_well(&mut waiter, "the deadline task")?;
    reaches_state(holder.pid, 'S')?;
    check_eq!(policy_of(holder.pid)?, SCHED_PBS, "policy of the holder");
    check_eq!(priority_of(holder.pid)?, PBS_PRIORITY, "priority of the holder");
    after.rests("the holder, no longer boosted,")?;
    owners.runs("the owner of the slot")?;
    owners.release();
    ends_well(&mut owner, "the owner of the slot")?;
    after.runs("the holder in its slot")?;
    after.release();
    ends_well(&mut holder, "the holder")?;
    scene.plan_ends()?;
    all_at_rest()
}
