// SPDX-License-Identifier: GPL-2.0
//! Memory is sampled while tasks run; the peak of each is told at its end.

use pbs_core::Config;

use crate::harness::{burn, Counting, Mapping, Plan, Scene, Verdict};
use crate::{check, check_eq};

/// The resident size is a sum over CPUs that is exact to their batches only.
const SLACK_BYTES: u64 = 1 << 20;

/// A task that maps and touches 64 MiB has them in its peak; the next task of
/// the same process, after they are unmapped, has not.
pub fn memory_peaks_by_task() -> Verdict {
    let config = Config {
        // Page faults take time in the kernel, where nothing is counted.
        ceiling_extra_ns: 10_000_000_000,
        ..Config::DEFAULT
    };
    let mut plan = Plan::new(1).config(config).lead_in();
    for task in 0..3 {
        // Page faults are long, where the clock counts them.
        plan = plan.slot(1, task, 50_000_000 * Counting::here().scale());
    }
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        burn(1_000_000);
        device.task_end(None).expect("task end");
        let memory = Mapping::touched();
        // Long enough for a tick to see it.
        burn(10_000_000);
        drop(memory);
        device.task_end(None).expect("task end");
        burn(10_000_000);
    })?;
    let node = scene.run(&plan)?;
    let mut peaks = Vec::new();
    for task in 0..3 {
        let event = node.task_ended(1, task)?;
        println!(
            "task {task}: vm {} rss {}",
            event.peak_vm_bytes, event.peak_rss_bytes
        );
        check_eq!(
            event.preemptions,
            0,
            "preemptions of task {task}\n{}",
            node.log()
        );
        peaks.push(event);
    }
    let map_bytes = Mapping::BYTES as u64;
    for task in [0, 2] {
        let vm_bytes = peaks[1].peak_vm_bytes - peaks[task].peak_vm_bytes;
        check!(
            vm_bytes.abs_diff(map_bytes) <= SLACK_BYTES,
            "virtual size: {vm_bytes} bytes more than task {task}"
        );
        let rss_bytes = peaks[1].peak_rss_bytes - peaks[task].peak_rss_bytes;
        check!(
            rss_bytes.abs_diff(map_bytes) <= SLACK_BYTES,
            "resident size: {rss_bytes} bytes more than task {task}"
        );
    }
    check!(
        peaks[0].peak_rss_bytes > 0,
        "the first task has no memory at all"
    );
    let largest: u64 = crate::harness::sysfs_number("cpu0/peak_rss_bytes")? as u64;
    check_eq!(largest, peaks[1].peak_rss_bytes, "peak of the process");
    Ok(())
}
