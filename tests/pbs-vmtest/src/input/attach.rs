// SPDX-License-Identifier: GPL-2.0
//! Attaching, ending tasks and detaching where it can't be.

use libc::{EBUSY, EFAULT, EINVAL, ENODEV, ENOENT, ESRCH};
use pbs_uapi::record::{Attach, TaskEnd};
use pbs_uapi::{ioc, Device, ATTACH_ONE_TASK};

use super::kit::{ioctl, refused, Running};
use crate::harness::{fork, now_ns, sleep_ms, Child, Context, Node, Plan, Verdict};
use crate::linux::policy::{cpuset, set_policy};
use crate::linux::scene::{
    affinity_of, ends_well, policy_of, reaches_state, set_affinity, SharedWords, ENDLESS_INSNS,
    PLAN_CPU,
};
use crate::{check, check_eq};

/// The kernel's thread that makes kernel threads.
const KTHREADD: i32 = 2;

pub fn wrong_attachments_are_refused() -> Verdict {
    let device = Device::open().context("open")?;
    let words = SharedWords::shared()?;
    let mut child = fork(|| words.block())?;
    let pid = child.pid;
    refused("attach without a plan", device.attach(pid, 1, 0), ENOENT)?;
    refused("drop without a plan", device.drop_plan(PLAN_CPU), ENOENT)?;
    refused("drop on no CPU", device.drop_plan(77), ENODEV)?;
    refused("renew without a plan", device.renew(PLAN_CPU), ENOENT)?;
    refused("renew on no CPU", device.renew(77), ENODEV)?;
    refused("plan of a CPU without one", device.get_plan(PLAN_CPU), ENOENT)?;
    refused("plan of no CPU", device.get_plan(77), ENODEV)?;

    let running = Running::new()?;
    refused("unknown process", device.attach(pid, 9, 0), ENOENT)?;
    refused("idle as a process", device.attach(pid, pbs_uapi::IDLE, 0), ENOENT)?;
    refused("process that has a thread", device.attach(pid, 2, 0), EBUSY)?;
    refused(
        "process whose thread is not for one task",
        device.attach(pid, 2, ATTACH_ONE_TASK),
        EBUSY,
    )?;
    let attached = running.pids()[1];
    refused("thread that is attached", device.attach(attached, 1, 0), EBUSY)?;
    refused("kernel thread", device.attach(KTHREADD, 3, 0), EINVAL)?;
    refused("no thread", device.attach(i32::MAX, 3, 0), ESRCH)?;
    refused("negative thread", device.attach(-1, 3, 0), ESRCH)?;
    refused("unknown flag", device.attach(pid, 3, 2), EINVAL)?;
    let mut attach = Attach { pid, process: 3, ..Attach::default() };
    attach.reserved[4] = 1;
    let result = ioctl(&device, ioc::ATTACH, &raw const attach as usize);
    check_eq!(result, Err(EINVAL), "reserved field");
    check_eq!(ioctl(&device, ioc::ATTACH, 8), Err(EFAULT), "attach from nowhere");

    refused("task end outside the plan", device.task_end(None), ESRCH)?;
    let mut end = TaskEnd::default();
    end.reserved[0] = 1;
    let result = ioctl(&device, ioc::TASK_END, &raw mut end as usize);
    check_eq!(result, Err(EINVAL), "reserved field of a task end");
    refused("detach outside the plan", device.detach(0), ESRCH)?;
    refused("detach another outside the plan", device.detach(pid), ESRCH)?;
    refused("detach nobody", device.detach(i32::MAX), ESRCH)?;

    words.release();
    reaches_state(pid, 'Z')?;
    refused("dead thread", device.attach(pid, 3, 0), ESRCH)?;
    ends_well(&mut child, "the child")?;
    check_eq!(policy_of(0)?, libc::SCHED_OTHER, "policy of the test");
    running.completes()
}

/// A thread that is not attached may run where it could before: another one, and the caller.
pub fn refused_attach_changes_nothing() -> Verdict {
    let device = Device::open().context("open")?;
    let words = SharedWords::shared()?;
    let mut child = fork(|| words.block())?;
    let pid = child.pid;
    let both = affinity_of(pid)?;
    check_eq!(both, [0, 1], "affinity of a new process");
    let running = Running::new()?;
    check_eq!(set_affinity(0, &both), Ok(()), "affinity of the test");

    for pid in [pid, 0] {
        refused("unknown process", device.attach(pid, 9, 0), ENOENT)?;
        refused("process that has a thread", device.attach(pid, 2, 0), EBUSY)?;
        check_eq!(affinity_of(pid)?, both, "affinity after a refusal");
        check_eq!(set_affinity(pid, &[0]), Ok(()), "setting the affinity");
        refused("process that has a thread", device.attach(pid, 2, 0), EBUSY)?;
        check_eq!(affinity_of(pid)?, [0], "affinity after another");
        check_eq!(set_affinity(pid, &both), Ok(()), "setting it back");
    }
    let group = cpuset("elsewhere", "0")?;
    std::fs::write(format!("{group}/cgroup.procs"), pid.to_string()).context("move")?;
    let reason = refused("not in its cpuset", device.attach(pid, 3, 0), EINVAL)?;
    check!(reason.contains("cpuset"), "reason: {reason}");
    check_eq!(affinity_of(pid)?, [0], "affinity in the cpuset");
    check_eq!(policy_of(pid)?, libc::SCHED_OTHER, "policy of the child");

    words.release();
    ends_well(&mut child, "the child")?;
    running.completes()
}

/// Attaches itself again and again, where it is refused or where it has to wait until somebody
/// detaches it.
fn attacher(number: u32, words: &'static SharedWords) -> Result<Child, String> {
    fork(|| {
        let _ = set_policy(0, libc::SCHED_OTHER, 0);
        let Ok(device) = Device::open() else { return };
        while words.go.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            let _ = match number % 2 {
                0 => device.attach(0, 1, 0),
                _ => device.attach(0, 2, ATTACH_ONE_TASK),
            };
            let _ = set_affinity(0, &[0, 1]);
            words.progress.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    })
}

/// Number of times that the caller has slept so far.
fn sleeps() -> i64 {
    // SAFETY: plain memory, which the call fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_nvcsw
    }
}

/// Time to drop the plan of CPU 2, as a median and at most, in ns, and the number of sleeps of the
/// caller meanwhile.
fn drop_ns(node: &Node) -> Result<(u64, u64, i64), String> {
    const ROUNDS: usize = 31;
    let plan = Plan::new(5).cpu(2).slot(9, 0, ENDLESS_INSNS);
    let mut took_ns = Vec::new();
    let mut slept = 0;
    for _ in 0..ROUNDS {
        node.load(&plan)?;
        sleep_ms(3);
        slept -= sleeps();
        let since_ns = now_ns();
        node.device.drop_plan(2).context("drop")?;
        took_ns.push(now_ns() - since_ns);
        slept += sleeps();
    }
    took_ns.sort_unstable();
    Ok((took_ns[ROUNDS / 2], took_ns[ROUNDS - 1], slept))
}

/// A hundred threads that attach themselves to the plan of a busy CPU hold up nobody who drops that
/// of another one.
pub fn drop_beside_attachers() -> Verdict {
    const ATTACHERS: u32 = 100;
    let node = Node::open()?;
    set_affinity(0, &[0]).map_err(|errno| format!("affinity: {errno}"))?;
    // The measuring one has its CPU for itself: what it waits for is not the CPU.
    check_eq!(set_policy(0, libc::SCHED_FIFO, 50), Ok(()), "SCHED_FIFO");
    let plan = Plan::new(4).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS).slot(2, 0, ENDLESS_INSNS);
    node.load(&plan)?;
    let spinner_words = SharedWords::shared()?;
    let spinner = fork(|| {
        if Device::open().is_ok_and(|device| device.attach(0, 1, 0).is_ok()) {
            spinner_words.spin();
        }
    })?;
    spinner_words.runs("the plan process")?;
    let alone = drop_ns(&node)?;

    let words = SharedWords::shared()?;
    let mut attachers = Vec::new();
    for number in 0..ATTACHERS {
        attachers.push(attacher(number, words)?);
    }
    let pids: Vec<i32> = attachers.iter().map(|child| child.pid).collect();
    let detacher = fork(|| {
        let _ = set_policy(0, libc::SCHED_OTHER, 0);
        let Ok(device) = Device::open() else { return };
        while words.go.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            for &pid in &pids {
                let _ = device.detach(pid);
            }
            sleep_ms(1);
        }
    })?;
    words.runs("those who attach themselves")?;
    let before = words.progress();
    let beside = drop_ns(&node)?;
    let turns = words.progress() - before;
    println!("to drop a plan: alone {alone:?}, beside {turns} attachments {beside:?} (median ns, maximum ns, sleeps)");
    words.release();
    node.device.drop_plan(PLAN_CPU).context("drop")?;
    drop((attachers, detacher, spinner));
    check!(turns > 0, "nobody came to attach itself");
    check_eq!(beside.2, 0, "how often it had to wait for somebody");
    Ok(())
}
