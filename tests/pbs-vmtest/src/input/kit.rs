// SPDX-License-Identifier: GPL-2.0
//! A plan that runs while bad input comes, and must not be touched by it.

use std::os::fd::{AsFd, AsRawFd};

use pbs_uapi::record::Error;
use pbs_uapi::{ioc, Device, EventKind, Refused};

use crate::harness::{Child, Context, Plan, Verdict};
use crate::linux::scene::{ends_well, Scene, SharedWords, ENDLESS_INSNS, PLAN_CPU};
use crate::{check, check_eq};

/// The id of the plan that runs.
pub const RUNNING_PLAN: u64 = 4711;

/// CPU 1 executes a plan: process 1 runs, process 2 waits, process 3 is absent.
pub struct Running {
    pub scene: Scene,
    children: Vec<(Child, &'static SharedWords)>,
    plan: Vec<u8>,
}

impl Running {
    pub fn new() -> Result<Self, String> {
        let mut scene = Scene::new()?;
        let plan = Plan::new(RUNNING_PLAN)
            .cpu(PLAN_CPU)
            .slot(1, 0, ENDLESS_INSNS)
            .idle(1_000_000)
            .slot(2, 7, 5_000_000)
            .slot(3, 0, 1_000_000);
        scene.node.load(&plan)?;
        let mut children = Vec::new();
        for process in 1..=2 {
            let words = SharedWords::shared()?;
            // Sleeps most of the time: the machine has better things to do.
            let child = scene.spawn(process, || {
                while words.go.load(std::sync::atomic::Ordering::SeqCst) == 0 {
                    words.progress.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    crate::harness::sleep_ms(5);
                }
            })?;
            children.push((child, words));
        }
        let plan = scene.node.device.get_plan(PLAN_CPU).context("get the plan")?;
        let running = Self { scene, children, plan };
        running.is_untouched()?;
        Ok(running)
    }

    /// The plan is the same, the one process runs and the other waits.
    pub fn is_untouched(&self) -> Verdict {
        let plan = self.scene.node.device.get_plan(PLAN_CPU).context("get the plan")?;
        check!(plan == self.plan, "the running plan is another one");
        check_eq!(self.children.len(), 2, "plan processes");
        self.children[0].1.runs("the running process")?;
        check_eq!(self.children[1].1.progress(), 0, "progress of the waiting process");
        Ok(())
    }

    /// The plan, as the kernel gives it.
    pub fn plan(&self) -> &[u8] {
        &self.plan
    }

    /// Their thread ids, by process.
    pub fn pids(&self) -> [i32; 2] {
        [self.children[0].0.pid, self.children[1].0.pid]
    }

    /// And it comes to its end as if nothing had been.
    pub fn completes(mut self) -> Verdict {
        self.is_untouched()?;
        for (child, words) in &mut self.children {
            words.runs("a plan process")?;
            words.release();
            ends_well(child, "a plan process")?;
        }
        self.scene.plan_ends()?;
        check_eq!(self.scene.count(EventKind::PlanInstalled)?, 1, "plans installed");
        check_eq!(self.scene.count(EventKind::Ejected)?, 0, "threads ejected");
        check_eq!(self.scene.count(EventKind::Attached)?, 2, "threads attached");
        let ended: Vec<(u32, u32, u64)> = self
            .scene
            .node
            .of(EventKind::TaskEnded)
            .iter()
            .map(|event| (event.process, event.task, event.plan_id))
            .collect();
        check_eq!(ended, [(1, 0, RUNNING_PLAN), (2, 7, RUNNING_PLAN)], "tasks that ended");
        Ok(())
    }
}

/// A call was refused with this errno, and with a reason; gives the reason.
pub fn refused<T>(what: &str, result: Result<T, Refused>, errno: i32) -> Result<String, String> {
    match result {
        Ok(_) => Err(format!("{what}: this was not refused")),
        Err(refused) => {
            let found = refused.error.raw_os_error();
            check_eq!(found, Some(errno), "errno of {what} ({refused})");
            match refused.reason {
                Some(reason) if reason.len() > 10 => Ok(reason),
                other => Err(format!("{what}: no reason in words, but {other:?}")),
            }
        }
    }
}

/// ioctl(2) with a number and an argument that may be anything; the errno if it
/// fails. Whoever passes an address of its own must know what is written there.
pub fn ioctl(device: &Device, number: u32, argument: usize) -> Result<i32, i32> {
    // SAFETY: by the promise of the caller.
    let result = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), number as _, argument) };
    if result < 0 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        Ok(result)
    }
}

/// The reason that the kernel keeps for the last refusal.
pub fn last_refusal(device: &Device) -> Result<Error, String> {
    let mut error = Error::default();
    let result = ioctl(device, ioc::ERROR, &raw mut error as usize);
    check_eq!(result, Ok(0), "PBS_IOC_ERROR");
    Ok(error)
}
