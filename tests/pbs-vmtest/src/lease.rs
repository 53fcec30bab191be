// SPDX-License-Identifier: GPL-2.0
//! A plan with a lease goes on for as long as its planner says that it is there.

use std::fs;
use std::process::{Command, Stdio};

use pbs_uapi::{Drop, Eject, EventKind};

use crate::harness::{sleep_ms, Child, Context, Node, Plan, Verdict};
use crate::linux::policy::is_logged;
use crate::linux::scene::{
    ends_well, eventually, policy_of, Scene, SharedWords, ENDLESS_INSNS, PLAN_CPU, SCHED_PBS,
};
use crate::watch::{is_dropped, takes_a_plan};
use crate::{check, check_eq};

const LEASE_NS: u64 = 500_000_000;
/// Several times as long.
const LONG_MS: u64 = 3000;

fn plan(id: u64) -> Plan {
    Plan::new(id).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS)
}

/// A plan that is in force, and a thread of it that runs.
fn running(plan: &Plan) -> Result<(Scene, Child, &'static SharedWords), String> {
    let mut scene = Scene::new()?;
    scene.node.load(plan)?;
    let words = SharedWords::shared()?;
    let child = scene.spawn(1, || words.spin())?;
    words.runs("the process of the plan")?;
    Ok((scene, child, words))
}

/// The plan is dropped for its lease, and its thread is given back.
fn expires(mut scene: Scene, mut child: Child, words: &SharedWords) -> Verdict {
    is_dropped(&mut scene, Drop::Lease)?;
    let event = scene.wait_kind(EventKind::Ejected, 1)?;
    check_eq!(event.reason, Eject::Dropped as u16, "why it left");
    is_fair(child.pid)?;
    is_logged(&format!("CPU {PLAN_CPU}: the plan was dropped: nobody has renewed its lease"))?;
    words.runs("the process without its plan")?;
    words.release();
    ends_well(&mut child, "the process without its plan")?;
    takes_a_plan(scene)
}

fn is_fair(pid: i32) -> Verdict {
    eventually("it is in the fair class", || policy_of(pid) == Ok(libc::SCHED_OTHER))
}

/// A plan continues while its lease is renewed, and ends when it is not any more.
pub fn lease_is_renewed() -> Verdict {
    let plan = plan(21).lease(LEASE_NS);
    let (mut scene, child, words) = running(&plan)?;
    let read_back = scene.node.device.get_plan(PLAN_CPU).context("get the plan")?;
    check_eq!(read_back, plan.read_back(PLAN_CPU), "the plan read back");
    for _ in 0..LONG_MS / 100 {
        sleep_ms(100);
        scene.node.device.renew(PLAN_CPU).context("renew")?;
    }
    check_eq!(scene.count(EventKind::PlanDropped)?, 0, "plans dropped");
    check_eq!(policy_of(child.pid)?, SCHED_PBS, "policy");
    expires(scene, child, words)
}

/// A plan that follows has a lease of its own, or none.
pub fn lease_is_taken_over() -> Verdict {
    let (mut scene, child, words) = running(&plan(22).lease(LEASE_NS))?;
    scene.node.load(&plan(23))?;
    sleep_ms(LONG_MS);
    // To renew what has no lease does nothing.
    scene.node.device.renew(PLAN_CPU).context("renew")?;
    check_eq!(scene.count(EventKind::PlanDropped)?, 0, "plans dropped");
    scene.node.load(&plan(24).lease(LEASE_NS))?;
    expires(scene, child, words)
}

/// Without a thread there is nothing to give back; who comes later has a lease.
pub fn lease_of_nobody() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&plan(25).lease(LEASE_NS))?;
    sleep_ms(LONG_MS);
    check_eq!(scene.count(EventKind::PlanDropped)?, 0, "plans dropped");
    let words = SharedWords::shared()?;
    let child = scene.spawn(1, || words.spin())?;
    words.runs("the process that came late")?;
    expires(scene, child, words)
}

/// pbsctl renews what it was asked to lease; when it is killed the CPU comes back, and its
/// program goes on.
pub fn leased_planner_is_killed() -> Verdict {
    let text = format!(
        "plan_id = 26\n[[process]]\nid = 1\ntasks = [{ENDLESS_INSNS}]\n\
         command = [\"/bin/busybox\", \"sh\", \"-c\", \"while :; do :; done\"]\n\
         [[cpu]]\ncpu = {PLAN_CPU}\nslots = [1]\n"
    );
    fs::write("/tmp/leased.toml", text).context("plan")?;
    for refused in ["0", "0.09", "3601", "-1", "soon", "nan"] {
        let lease = format!("--lease={refused}");
        let said = Command::new("pbsctl")
            .args(["run", &lease, "/tmp/leased.toml"])
            .output()
            .context("pbsctl")?;
        let stderr = String::from_utf8_lossy(&said.stderr);
        check_eq!(said.status.code(), Some(2), "status of {lease}: {stderr}");
        check!(stderr.contains("0.1 to 3600"), "reason: {stderr}");
    }
    let mut node = Node::open()?;
    let mut planner = Command::new("pbsctl")
        .args(["run", "--lease", "1", "/tmp/leased.toml"])
        .stdout(Stdio::null())
        .spawn()
        .context("pbsctl")?;
    node.read_until(EventKind::Attached, 1)?;
    let pid = node.of(EventKind::Attached)[0].pid;
    sleep_ms(2 * LONG_MS);
    node.read()?;
    check_eq!(node.of(EventKind::PlanDropped).len(), 0, "plans dropped");
    check_eq!(policy_of(pid)?, SCHED_PBS, "policy of the program");
    planner.kill().context("kill")?;
    planner.wait().context("wait")?;
    node.read_until(EventKind::PlanDropped, 1)?;
    let dropped = node.of(EventKind::PlanDropped)[0];
    check_eq!(dropped.reason, Drop::Lease as u16, "why it was dropped");
    is_fair(pid)?;
    // SAFETY: no memory is involved.
    let killed = unsafe { libc::kill(pid, libc::SIGKILL) };
    check_eq!(killed, 0, "the program goes on");
    Ok(())
}
