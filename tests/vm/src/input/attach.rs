// SPDX-License-Identifier: GPL-2.0
//! Attaching, ending tasks and detaching where it can't be.

use libc::{EBUSY, EFAULT, EINVAL, ENODEV, ENOENT, ESRCH};
use pbs_uapi::record::{Attach, TaskEnd};
use pbs_uapi::{ioc, Device, ATTACH_ONE_TASK};

use super::kit::{ioctl, refused, Running};
use crate::check_eq;
use crate::harness::{fork, Context, Verdict};
use crate::linux::scene::{ends_well, policy_of, reaches_state, Words, PLAN_CPU};

/// The kernel's thread that makes kernel threads.
const KTHREADD: i32 = 2;

pub fn wrong_attachments_are_refused() -> Verdict {
    let device = Device::open().context("open")?;
    let words = Words::shared()?;
    let mut child = fork(|| words.block())?;
    let pid = child.pid;
    refused("attach without a plan", device.attach(pid, 1, 0), ENOENT)?;
    refused("drop without a plan", device.drop_plan(PLAN_CPU), ENOENT)?;
    refused("drop on no CPU", device.drop_plan(77), ENODEV)?;
    refused(
        "plan of a CPU without one",
        device.get_plan(PLAN_CPU),
        ENOENT,
    )?;
    refused("plan of no CPU", device.get_plan(77), ENODEV)?;

    let running = Running::new()?;
    refused("unknown process", device.attach(pid, 9, 0), ENOENT)?;
    refused(
        "idle as a process",
        device.attach(pid, pbs_uapi::IDLE, 0),
        ENOENT,
    )?;
    refused("process that has a thread", device.attach(pid, 2, 0), EBUSY)?;
    refused(
        "process whose thread is not for one task",
        device.attach(pid, 2, ATTACH_ONE_TASK),
        EBUSY,
    )?;
    let attached = running.pids()[1];
    refused(
        "thread that is attached",
        device.attach(attached, 1, 0),
        EBUSY,
    )?;
    refused("kernel thread", device.attach(KTHREADD, 3, 0), EINVAL)?;
    refused("no thread", device.attach(i32::MAX, 3, 0), ESRCH)?;
    refused("negative thread", device.attach(-1, 3, 0), ESRCH)?;
    refused("unknown flag", device.attach(pid, 3, 2), EINVAL)?;
    let mut attach = Attach {
        pid,
        process: 3,
        ..Attach::default()
    };
    attach.reserved[4] = 1;
    let result = ioctl(&device, ioc::ATTACH, &raw const attach as usize);
    check_eq!(result, Err(EINVAL), "reserved field");
    check_eq!(
        ioctl(&device, ioc::ATTACH, 8),
        Err(EFAULT),
        "attach from nowhere"
    );

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
