// SPDX-License-Identifier: GPL-2.0
//! The class is entered by attaching alone and left by choosing another policy;
//! in it the CPU is fixed.

use std::fs;

use pbs_uapi::{Eject, EventKind};

use crate::harness::{cvt, fork, Context, Plan, Verdict};
use crate::input::kit::refused;
use crate::linux::scene::{
    affinity_of, ends_well, eventually, policy_of, set_affinity, Scene, SharedWords, Trio,
    ENDLESS_INSNS, PLAN_CPU, SCHED_PBS,
};
use crate::{check, check_eq};

/// `struct sched_attr` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SchedAttr {
    pub size: u32,
    pub policy: u32,
    pub flags: u64,
    pub nice: i32,
    pub priority: u32,
    pub runtime_ns: u64,
    pub deadline_ns: u64,
    pub period_ns: u64,
    pub util_min: u32,
    pub util_max: u32,
}

/// sched_setattr(2) for `pid`, 0 being the caller; the errno if it fails.
pub fn set_attr(pid: i32, mut attr: SchedAttr) -> Result<(), i32> {
    attr.size = size_of::<SchedAttr>() as u32;
    // SAFETY: a structure of the size that it names.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attr, 0) };
    cvt(result as i32).map(|_| ()).map_err(|error| error.raw_os_error().unwrap_or(0))
}

pub fn set_policy(pid: i32, policy: i32, priority: u32) -> Result<(), i32> {
    set_attr(pid, SchedAttr { policy: policy as u32, priority, ..SchedAttr::default() })
}

/// No way but attaching leads into the class.
pub fn class_is_not_for_all() -> Verdict {
    check_eq!(set_policy(0, SCHED_PBS, 0), Err(libc::EPERM), "sched_setattr");
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is valid.
    let result = unsafe { libc::sched_setscheduler(0, SCHED_PBS, &param) };
    let errno = cvt(result).err().and_then(|error| error.raw_os_error());
    check_eq!(errno, Some(libc::EPERM), "errno of sched_setscheduler");
    check_eq!(policy_of(0)?, libc::SCHED_OTHER, "policy after that");
    // Also not for one in another class.
    check_eq!(set_policy(0, libc::SCHED_FIFO, 5), Ok(()), "to SCHED_FIFO");
    check_eq!(set_policy(0, SCHED_PBS, 0), Err(libc::EPERM), "from SCHED_FIFO");
    check_eq!(policy_of(0)?, libc::SCHED_FIFO, "policy after that");
    Ok(())
}

/// The policy has no priorities, as that of normal tasks.
pub fn policy_has_no_priorities() -> Verdict {
    // SAFETY: no memory is involved.
    let range = |policy| unsafe {
        (libc::sched_get_priority_min(policy), libc::sched_get_priority_max(policy))
    };
    check_eq!(range(SCHED_PBS), (0, 0), "priorities of SCHED_PBS");
    check_eq!(range(libc::SCHED_OTHER), (0, 0), "of SCHED_OTHER");
    check_eq!(range(SCHED_PBS + 1), (-1, -1), "of no policy");
    Ok(())
}

/// The affinity of a plan process stays what attaching made it.
pub fn affinity_is_fixed() -> Verdict {
    let trio = Trio::new()?;
    for actor in [&trio.blocked, &trio.running, &trio.waiting] {
        for cpus in [&[0][..], &[1], &[0, 1]] {
            check_eq!(
                set_affinity(actor.pid(), cpus),
                Err(libc::EBUSY),
                "affinity of {} to {cpus:?}",
                actor.name
            );
        }
    }
    trio.goes_on_to_the_end()
}

const CGROUP: &str = "/sys/fs/cgroup";

/// A plan process can't be moved to another cpuset; a normal one can.
pub fn cpuset_is_fixed() -> Verdict {
    fs::write(format!("{CGROUP}/cgroup.subtree_control"), "+cpuset").context("+cpuset")?;
    let group = format!("{CGROUP}/elsewhere");
    fs::create_dir(&group).context(&group)?;
    fs::write(format!("{group}/cpuset.cpus"), "0").context("cpuset.cpus")?;
    let trio = Trio::new()?;
    let procs = format!("{group}/cgroup.procs");
    for actor in [&trio.blocked, &trio.running, &trio.waiting] {
        let refused = fs::write(&procs, actor.pid().to_string());
        let errno = refused.err().and_then(|error| error.raw_os_error());
        check_eq!(errno, Some(libc::EINVAL), "errno of moving {}", actor.name);
        check_eq!(policy_of(actor.pid())?, SCHED_PBS, "its policy");
    }
    fs::write(&procs, "0").context("moving the test")?;
    trio.goes_on_to_the_end()
}

/// Makes a group with these CPUs.
pub fn cpuset(name: &str, cpus: &str) -> Result<String, String> {
    fs::write(format!("{CGROUP}/cgroup.subtree_control"), "+cpuset").context("+cpuset")?;
    let group = format!("{CGROUP}/{name}");
    fs::create_dir(&group).context(&group)?;
    fs::write(format!("{group}/cpuset.cpus"), cpus).context("cpuset.cpus")?;
    Ok(group)
}

/// A CPU for plans alone, as in operating.rst: an isolated partition. Threads that are started
/// there can be attached, others never arrive there.
pub fn isolated_cpu_takes_a_plan() -> Verdict {
    let group = cpuset("plans", "1")?;
    let partition = format!("{group}/cpuset.cpus.partition");
    fs::write(&partition, "isolated").context("isolated")?;
    let says = fs::read_to_string(&partition).context(&partition)?;
    check_eq!(says.trim(), "isolated", "the partition");
    check_eq!(affinity_of(0)?, [0], "where normal threads may run");

    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(1).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let words = SharedWords::shared()?;
    let mut child = fork(|| {
        let moved = fs::write(format!("{group}/cgroup.procs"), "0");
        moved.expect("into the group");
        scene.node.device.attach(0, 1, 0).expect("attach");
        words.spin();
    })?;
    words.runs("the process in the partition")?;
    check_eq!(policy_of(child.pid)?, SCHED_PBS, "its policy");
    words.release();
    ends_well(&mut child, "the process in the partition")?;
    scene.plan_ends()
}

/// A cpuset that loses the plan's CPU takes its threads out of the plan, whatever they do, and
/// they go where it still is.
pub fn cpuset_shrinks() -> Verdict {
    let group = cpuset("shrinks", "0-1")?;
    fs::write(format!("{group}/cgroup.procs"), "0").context("into the group")?;
    let mut trio = Trio::new()?;
    fs::write(format!("{CGROUP}/cgroup.procs"), "0").context("out of the group")?;

    let cpus = format!("{group}/cpuset.cpus");
    fs::write(&cpus, "1").context("to the plan's CPU")?;
    trio.is_in_class()?;
    fs::write(&cpus, "0").context("to the other CPU")?;
    for actor in [&trio.waiting, &trio.blocked, &trio.running] {
        let event = trio.scene.wait_kind(EventKind::Ejected, actor.process)?;
        check_eq!(event.reason, Eject::Cpuset as u16, "reason");
        check_eq!(event.pid, actor.pid(), "thread that left");
        let pid = actor.pid();
        eventually("it goes on as a normal thread", || policy_of(pid) == Ok(libc::SCHED_OTHER))?;
        eventually("it may use what the cpuset has", || affinity_of(pid).as_deref() == Ok(&[0]))?;
    }
    trio.running.runs()?;
    trio.waiting.runs()?;
    // It can't come back before the cpuset has the CPU again.
    let device = &trio.scene.node.device;
    let pid = trio.waiting.pid();
    refused("attach outside of the cpuset", device.attach(pid, 3, 0), libc::EINVAL)?;
    fs::write(&cpus, "0-1").context("to both CPUs")?;
    device.attach(pid, 3, 0).context("attach again")?;
    check_eq!(policy_of(pid)?, SCHED_PBS, "policy after attaching again");
    for actor in [&mut trio.running, &mut trio.blocked] {
        actor.ends()?;
    }
    check_eq!(trio.scene.count(EventKind::Ejected)?, 3, "threads that left");
    trio.scene.node.device.drop_plan(PLAN_CPU).context("drop")?;
    trio.waiting.ends()
}

/// The kernel's log.
pub fn log() -> Result<String, String> {
    const READ_ALL: i32 = 3;
    let mut text = vec![0u8; 1 << 18];
    // SAFETY: memory of that length.
    let bytes = unsafe { libc::klogctl(READ_ALL, text.as_mut_ptr().cast(), text.len() as i32) };
    let bytes = cvt(bytes).context("klogctl")?;
    Ok(String::from_utf8_lossy(&text[..bytes as usize]).into_owned())
}

pub fn is_logged(line: &str) -> Verdict {
    let log = log()?;
    check!(log.contains(line), "the log does not say: {line}\n{log}");
    Ok(())
}

/// The log tells an operator who was not there what became of a plan.
pub fn log_says_who_had_to_leave() -> Verdict {
    let mut trio = Trio::new()?;
    let id = trio.scene.node.of(EventKind::PlanInstalled)[0].plan_id;
    let plan = trio.scene.node.device.get_plan(PLAN_CPU).context("get the plan")?;
    // A second planner writes the same and ends.
    let planner = pbs_uapi::Device::open().context("open")?;
    planner.write_plan(&plan).context("write it again")?;
    drop(planner);
    is_logged(&format!("plan {id} goes on without who wrote it"))?;
    trio.scene.node.device.drop_plan(PLAN_CPU).context("drop")?;
    let me = std::process::id();
    is_logged(&format!("CPU {PLAN_CPU}: thread {me} has dropped the plan"))?;
    for actor in [&mut trio.running, &mut trio.waiting, &mut trio.blocked] {
        actor.ends()?;
        let line = format!("thread {} has left the plan: the plan was dropped", actor.pid());
        is_logged(&line)?;
    }
    Ok(())
}

/// A thread that leaves the class by its policy is reported, and continues as others do.
pub fn policy_leads_away() -> Verdict {
    let mut trio = Trio::new()?;
    let ways = [
        (&trio.waiting, libc::SCHED_FIFO, 3),
        (&trio.blocked, libc::SCHED_BATCH, 0),
        (&trio.running, libc::SCHED_OTHER, 0),
    ];
    for (actor, policy, priority) in ways {
        check_eq!(set_policy(actor.pid(), policy, priority), Ok(()), "leave by policy");
        check_eq!(policy_of(actor.pid())?, policy, "policy of {}", actor.name);
        let event = trio.scene.wait_kind(EventKind::Ejected, actor.process)?;
        check_eq!(event.reason, Eject::Policy as u16, "reason");
        check_eq!(event.pid, actor.pid(), "thread that left");
    }
    // Nobody waits any more: all run without a slot of theirs.
    trio.waiting.runs()?;
    trio.waiting.ends()?;
    trio.running.runs()?;
    trio.running.ends()?;
    // It can be moved again.
    check_eq!(set_affinity(trio.blocked.pid(), &[0, 1]), Ok(()), "affinity outside the class");
    trio.blocked.ends()?;
    check_eq!(trio.scene.count(EventKind::Ejected)?, 3, "threads that left");
    check_eq!(trio.scene.count(EventKind::TaskEnded)?, 0, "tasks that ended");
    // The plan still has them, but is of no use any more.
    trio.scene.node.device.drop_plan(PLAN_CPU).context("drop")?;
    trio.scene.wait_for("says that the plan was dropped", |event| {
        event.kind == EventKind::PlanDropped as u16
    })?;
    Ok(())
}

/// The highest real-time priority is, as a number, that of the class: a thread
/// that changes to it has to be moved to the queue of real time all the same.
pub fn policy_leads_to_the_top() -> Verdict {
    let mut trio = Trio::new()?;
    let running = &mut trio.running;
    check_eq!(set_policy(running.pid(), libc::SCHED_FIFO, 99), Ok(()), "leave by policy");
    let event = trio.scene.wait_kind(EventKind::Ejected, running.process)?;
    check_eq!(event.pid, running.pid(), "thread that left");
    running.runs()?;
    running.ends()?;
    trio.scene.node.device.drop_plan(PLAN_CPU).context("drop")?;
    trio.waiting.ends()?;
    trio.blocked.ends()
}

/// A thread that left can be attached again and finishes its task.
pub fn attach_again() -> Verdict {
    let mut trio = Trio::new()?;
    let pid = trio.waiting.pid();
    check_eq!(set_policy(pid, libc::SCHED_OTHER, 0), Ok(()), "leave by policy");
    // Its CPU is the running one's; it gets the unallocated time.
    trio.waiting.runs()?;
    trio.scene.node.device.attach(pid, 3, 0).context("attach")?;
    check_eq!(policy_of(pid)?, SCHED_PBS, "policy after attaching again");
    trio.waiting.rests()?;
    trio.scene.node.device.detach(pid).context("detach")?;
    check_eq!(policy_of(pid)?, libc::SCHED_OTHER, "policy after detaching");
    trio.waiting.runs()?;
    trio.scene.node.device.attach(pid, 3, 0).context("attach")?;
    trio.running.ends()?;
    trio.waiting.runs()?;
    trio.waiting.words.release();
    ends_well(&mut trio.waiting.child, trio.waiting.name)?;
    trio.scene.wait_kind(EventKind::TaskEnded, 3)?;
    let reasons: Vec<u16> =
        trio.scene.node.of(EventKind::Ejected).iter().map(|e| e.reason).collect();
    check_eq!(reasons, [Eject::Policy as u16, Eject::Detached as u16], "reasons of leaving");
    trio.blocked.ends()?;
    check!(trio.scene.count(EventKind::Attached)? == 5, "threads attached");
    trio.scene.plan_ends()
}
