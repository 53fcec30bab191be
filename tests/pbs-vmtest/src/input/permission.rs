// SPDX-License-Identifier: GPL-2.0
//! A user other than root may not open the device, and may not change anything with a device that
//! another process has opened.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;

use libc::{EACCES, EINVAL, EPERM, ESRCH};
use pbs_uapi::{Device, Ring};

use super::kit::{refused, Running};
use crate::harness::{cvt, fork, Context, Plan, Verdict};
use crate::linux::scene::{ends_well, SharedWords, PLAN_CPU};
use crate::{check, check_eq};

const NOBODY: libc::uid_t = 65534;

/// Tries all calls in the unprivileged child.
fn try_all(device: &Device, parent: i32) -> Verdict {
    // SAFETY: no memory is involved; the child has one thread.
    cvt(unsafe { libc::setresgid(NOBODY, NOBODY, NOBODY) }).context("setresgid")?;
    // SAFETY: as above.
    cvt(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }).context("setresuid")?;
    let errno = Device::open().err().and_then(|error| error.raw_os_error());
    check_eq!(errno, Some(EACCES), "errno of open");

    let plan = Plan::new(9).cpu(PLAN_CPU).slot(1, 0, 1000);
    refused("write", device.write_plan(&plan.bytes()), EPERM)?;
    refused("write of nonsense", device.write_plan(b"no plan"), EPERM)?;
    refused("attach", device.attach(0, 2, 0), EPERM)?;
    // What sched_setscheduler(2) says before it asks who the caller is.
    refused("attach nobody", device.attach(i32::MAX, 2, 0), ESRCH)?;
    refused("attach in an unknown way", device.attach(0, 2, 2), EINVAL)?;
    refused("attach a thread of the kernel", device.attach(2, 2, 0), EPERM)?;
    refused("attach another", device.attach(parent, 2, 0), EPERM)?;
    refused("detach another", device.detach(parent), EPERM)?;
    refused("drop", device.drop_plan(PLAN_CPU), EPERM)?;
    refused("renew", device.renew(PLAN_CPU), EPERM)?;
    refused("get the plan", device.get_plan(PLAN_CPU), EPERM)?;
    refused("configure", device.configure(PLAN_CPU, 9, 0, &[]), EPERM)?;
    refused("ask for a process", device.process(1), EPERM)?;
    // Who has been handed the device may look at it.
    let info = device.info().context("info")?;
    check_eq!(info.version, u32::from(pbs_uapi::VERSION), "version");
    let ring: Ring = Ring::map(device.as_fd(), info.ring_bytes, PLAN_CPU).context("map")?;
    check!(ring.bounds().1 > 0, "no event in the ring");
    Ok(())
}

pub fn nobody_may_not_plan() -> Verdict {
    let running = Running::new()?;
    let device = Device::open().context("open")?;
    let words = SharedWords::shared()?;
    // SAFETY: no memory is involved.
    let parent = unsafe { libc::getpid() };
    let mut child = fork(|| match try_all(&device, parent) {
        Ok(()) => words.note.store(1, SeqCst),
        Err(why) => println!("{why}"),
    })?;
    ends_well(&mut child, "the unprivileged child")?;
    check_eq!(words.note.load(SeqCst), 1, "all was as it should be (see above)");
    running.completes()
}
