// SPDX-License-Identifier: GPL-2.0
//! A machine without a PMU: the clock stands in for the count. The kernel is
//! booted without the PMU's driver (see tests.list).

use pbs_uapi::{EventKind, Grant, Tier};

use crate::harness::{kernel_is_watched, line, sysfs, Context, Plan, Scene, Verdict};
use crate::{check, check_eq};

/// The class says that it counts by the clock, and executes a plan all the same,
/// t1 included.
pub fn without_pmu_clock_counts() -> Verdict {
    let mut scene = Scene::new()?;
    let info = scene.node.device.info().context("info")?;
    check_eq!(Tier::from_raw(info.tier), Some(Tier::Clock), "tier by the device");
    check_eq!(sysfs("tier")?, "clock", "tier");
    check_eq!(sysfs("cpu0/tier")?, "clock", "counter of the CPU");
    check!(info.rate_insns_per_ms > 0, "no rate");
    println!("{} instructions per ms", info.rate_insns_per_ms);

    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, 4_000_000)
        .slot(2, 0, 4_000_000)
        .slot(1, 1, 4_000_000)
        .slot(2, 1, 4_000_000);
    scene.tasks(1, &[5_000_000, 2_000_000])?;
    scene.tasks(2, &[3_500_000, 3_500_000])?;
    let node = scene.run(&plan)?;
    let log = node.log();
    check_eq!(node.grants(Grant::Slot), [(1, 1), (2, 2), (1, 3), (2, 4)], "granted slots\n{log}");
    check_eq!(node.first(EventKind::Preempted, 1)?.slot, 1, "preempted slot\n{log}");
    let share = if kernel_is_watched() { 4 } else { 20 };
    for (process, task, burned_insns) in
        [(1, 0, 5_000_000), (1, 1, 2_000_000), (2, 0, 3_500_000), (2, 1, 3_500_000u64)]
    {
        let event = node.task_ended(process, task)?;
        println!("{}", line(&event));
        // Time in the kernel is counted too, here and when the rate is measured.
        check!(
            event.retired_insns.abs_diff(burned_insns) < burned_insns / share,
            "burned {burned_insns}, {} were counted\n{log}",
            event.retired_insns
        );
    }
    Ok(())
}
