// SPDX-License-Identifier: GPL-2.0
//! What the kernel allocates for plans it frees again.

use pbs_uapi::Device;

use super::kit::{refused, Running};
use crate::check;
use crate::harness::{Context, Plan, Verdict};
use crate::linux::scene::PLAN_CPU;

/// What the machine says is still to be had.
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
    check!(
        lost < LIMIT_BYTES,
        "{lost} bytes are gone with refused plans"
    );
    running.completes()?;

    device.write_plan(&right).context("write a plan")?;
    let before = available_bytes()?;
    for _ in 0..PLANS {
        device.write_plan(&right).context("write a plan")?;
    }
    device.drop_plan(PLAN_CPU).context("drop")?;
    let lost = before.saturating_sub(available_bytes()?);
    println!("replaced plans took {} KiB", lost >> 10);
    check!(
        lost < LIMIT_BYTES,
        "{lost} bytes are gone with replaced plans"
    );
    Ok(())
}
