// SPDX-License-Identifier: GPL-2.0
//! Memory that the kernel allocates for plans is freed again.

use std::fs;

use pbs_uapi::Device;

use super::kit::{refused, Running};
use crate::check;
use crate::harness::{fork, skip, Child, Context, Plan, Verdict};
use crate::linux::scene::{eventually, SharedWords, PLAN_CPU};

/// Available memory, as the machine reports it.
pub fn available_bytes() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/meminfo").context("meminfo")?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: u64 = kib.unwrap_or_default().parse().context("MemAvailable")?;
    Ok(kib << 10)
}

/// 200 large plans that are refused at their end, and 200 that replace each
/// other: kept, either would take more than 100 MiB.
pub fn plans_are_freed() -> Verdict {
    const PLANS: u64 = 200;
    const SLOTS: u32 = 20_000;
    const LIMIT_BYTES: u64 = 32 << 20;
    let device = Device::open().context("open")?;
    let mut plan = Plan::new(1).cpu(PLAN_CPU);
    for task in 0..SLOTS {
        plan = plan.slot(1, task, 1000);
    }
    let right = plan.bytes();
    let wrong = plan.slot(1, 0, 1000).bytes();

    let running = Running::new()?;
    let before = available_bytes()?;
    for _ in 0..PLANS {
        refused("duplicate task", device.write_plan(&wrong), libc::EINVAL)?;
    }
    let lost = before.saturating_sub(available_bytes()?);
    println!("refused plans took {} KiB", lost >> 10);
    check!(lost < LIMIT_BYTES, "{lost} bytes are gone with refused plans");
    running.completes()?;

    device.write_plan(&right).context("write a plan")?;
    let before = available_bytes()?;
    for _ in 0..PLANS {
        device.write_plan(&right).context("write a plan")?;
    }
    device.drop_plan(PLAN_CPU).context("drop")?;
    let lost = before.saturating_sub(available_bytes()?);
    println!("replaced plans took {} KiB", lost >> 10);
    check!(lost < LIMIT_BYTES, "{lost} bytes are gone with replaced plans");
    Ok(())
}

/// A group whose memory is counted.
struct Group(&'static str);

impl Group {
    fn new() -> Result<Self, String> {
        let path = "/sys/fs/cgroup/writers";
        if fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory").is_err() {
            skip("nobody is charged: the kernel is built without CONFIG_MEMCG");
        }
        fs::create_dir(path).context(path)?;
        Ok(Self(path))
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.0)
    }

    fn charged_bytes(&self) -> Result<u64, String> {
        let path = self.path("memory.current");
        let text = fs::read_to_string(&path).context(&path)?;
        text.trim().parse().context(&path)
    }

    /// Somebody of the group writes a plan, and stays until it is told to go.
    fn writer(&self, plan: &[u8], words: &'static SharedWords) -> Result<Child, String> {
        fork(|| {
            fs::write(self.path("cgroup.procs"), "0").expect("into the group");
            let device = Device::open().expect("the device");
            if device.write_plan(plan).is_ok() {
                words.block();
            }
        })
    }
}

/// The memory of a plan is its writer's, who may have no more than its group; who has
/// less gets no plan, and takes nothing from others.
pub fn writer_is_charged() -> Verdict {
    const SLOTS: u32 = 100_000;
    const LEAST_BYTES: u64 = SLOTS as u64 * 16;
    let group = Group::new()?;
    let device = Device::open().context("open")?;
    let mut plan = Plan::new(1).cpu(PLAN_CPU);
    for task in 0..SLOTS {
        plan = plan.slot(1, task, 1000);
    }
    let plan = plan.bytes();

    let words = SharedWords::shared()?;
    let mut writer = group.writer(&plan, words)?;
    eventually("the plan is there", || device.get_plan(PLAN_CPU).is_ok())?;
    let with_bytes = group.charged_bytes()?;
    device.drop_plan(PLAN_CPU).context("drop")?;
    let mut without_bytes = 0;
    eventually("what was charged for the plan is given back", || {
        without_bytes = group.charged_bytes().unwrap_or(u64::MAX);
        without_bytes.saturating_add(LEAST_BYTES) <= with_bytes
    })
    .map_err(|why| format!("{why}: {with_bytes} bytes with it, {without_bytes} without"))?;
    println!("{with_bytes} bytes with the plan, {without_bytes} without");
    words.release();
    writer.wait_ok()?;

    fs::write(group.path("memory.swap.max"), "0").ok();
    let most_bytes = group.charged_bytes()? + LEAST_BYTES / 2;
    fs::write(group.path("memory.max"), most_bytes.to_string()).context("memory.max")?;
    // The call fails, or the kernel kills the only one who could give memory back.
    let mut writer = group.writer(&plan, SharedWords::shared()?)?;
    println!("the one that may not have as much: status {}", writer.wait()?);
    refused("plan", device.get_plan(PLAN_CPU), libc::ENOENT)?;
    device.write_plan(&plan).context("a plan of another group")?;
    device.drop_plan(PLAN_CPU).context("drop")
}
