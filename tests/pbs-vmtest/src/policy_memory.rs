// SPDX-License-Identifier: GPL-2.0
//! Memory is sampled while tasks run; the peak of each is told at its end.

use pbs_core::{Config, Threshold};
use pbs_uapi::{Cause, EventKind};

use crate::harness::{
    burn, sleep_ms, Context, Counting, Mapping, Node, Plan, Scene, Verdict, CONFIG,
};
use crate::{check, check_eq};

/// The resident size is a sum over CPUs that is exact to their batches only.
const SLACK_BYTES: u64 = 1 << 20;

/// A task that maps and touches 64 MiB has them in its peak; the next task of
/// the same process, after they are unmapped, has not.
pub fn memory_peaks_by_task() -> Verdict {
    let config = Config {
        // Page faults take time in the kernel, where nothing is counted.
        ceiling_extra_ns: 10_000_000_000,
        ..CONFIG
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
        println!("task {task}: vm {} rss {}", event.peak_vm_bytes, event.peak_rss_bytes);
        check_eq!(event.preemptions, 0, "preemptions of task {task}\n{}", node.log());
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
    check!(peaks[0].peak_rss_bytes > 0, "the first task has no memory at all");
    let largest: u64 = crate::harness::sysfs_number("cpu0/peak_rss_bytes")? as u64;
    check_eq!(largest, peaks[1].peak_rss_bytes, "peak of the process");
    Ok(())
}

/// Only memory is watched, and page faults have the time they take.
fn watched() -> Config {
    Config {
        ceiling_extra_ns: 10_000_000_000,
        thresholds: Threshold::T1 as u64 | Threshold::T2Memory as u64,
        ..CONFIG
    }
}

/// Memory that is enough for a process that touches one mapping, and memory that is not.
const ENOUGH_BYTES: u64 = 2 * Mapping::BYTES as u64;
const TOO_LITTLE_BYTES: u64 = Mapping::BYTES as u64 / 2;

/// Touches memory and keeps it for as long as it runs; long enough for a tick.
fn touch_and_burn() {
    let memory = Mapping::touched();
    burn(20_000_000 * Counting::here().scale());
    drop(memory);
}

/// (cause, process) of the failures.
fn failures(node: &Node) -> Vec<(u16, u32)> {
    let late = node.of(EventKind::Late);
    late.iter().map(|event| (event.reason, event.process)).collect()
}

/// A process that uses more than its planned peak is told, and one within is not.
pub fn memory_beyond_the_planned_peak_is_told() -> Verdict {
    let insns = 60_000_000 * Counting::here().scale();
    let plan = Plan::new(1)
        .config(watched())
        .peak(1, ENOUGH_BYTES)
        .peak(2, TOO_LITTLE_BYTES)
        .lead_in()
        .slot(1, 0, insns)
        .slot(2, 0, insns);
    let mut scene = Scene::new()?;
    scene.process(1, |_| touch_and_burn())?;
    scene.process(2, |_| touch_and_burn())?;
    let node = scene.run(&plan)?;
    let expected = [(Cause::Memory as u16, 2)];
    check_eq!(failures(&node), expected, "failures\n{}", node.log());
    let late = node.of(EventKind::Late)[0];
    let threshold_bytes = watched().t2_memory_bytes(TOO_LITTLE_BYTES);
    check_eq!(late.value, threshold_bytes, "threshold");
    check!(
        late.memory_bytes > threshold_bytes && late.memory_bytes <= late.peak_rss_bytes,
        "{} bytes are compared with {threshold_bytes}, of {}",
        late.memory_bytes,
        late.peak_rss_bytes
    );
    Ok(())
}

/// Two processes, each on its CPU, are too much for the node together, not alone;
/// each is told on the way.
pub fn memory_of_the_node_is_that_of_all_cpus() -> Verdict {
    let insns = 100_000_000 * Counting::here().scale();
    // Both with some megabytes of their program.
    let limit_bytes = 3 * Mapping::BYTES as u64 / 2;
    let config = Config { thresholds: watched().thresholds | Threshold::Info as u64, ..watched() };
    let plan = Plan::new(1)
        .config(config)
        .memory(limit_bytes)
        .lead_in()
        .slot(1, 0, insns)
        .cpu(1)
        .lead_in()
        .slot(2, 0, insns);
    let mut scene = Scene::new()?;
    for process in [1, 2] {
        scene.process(process, |_| {
            let memory = Mapping::touched();
            // Until the other one has touched its own, too.
            burn(80_000_000 * Counting::here().scale());
            drop(memory);
        })?;
    }
    let node = scene.run(&plan)?;
    let late = node.of(EventKind::Late);
    check!(!late.is_empty(), "the node is not told\n{}", node.log());
    for event in late.iter().chain(&node.of(EventKind::Info)) {
        check_eq!(event.reason, Cause::NodeMemory as u16, "\n{}", node.log());
        check_eq!(event.value, limit_bytes, "limit");
        check!(
            u128::from(event.memory_bytes) * 100
                > u128::from(limit_bytes) * u128::from(event.level_percent),
            "{} bytes are not {} % of {limit_bytes}",
            event.memory_bytes,
            event.level_percent
        );
        check!(
            event.level_percent != 100 || event.peak_rss_bytes < limit_bytes,
            "one process is too much alone\n{}",
            node.log()
        );
    }
    let mut cpus: Vec<_> = late.iter().map(|event| event.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    check_eq!(cpus.len(), late.len(), "once for each CPU\n{}", node.log());
    Ok(())
}

/// While process 1 is beyond its planned peak and the node beyond its limit, both are
/// in sysfs and in what is known of the process.
fn shown_beyond(node: &Node, planned_bytes: u64) -> Verdict {
    let threshold_bytes = watched().t2_memory_bytes(planned_bytes);
    let number = |file| crate::harness::sysfs_number(file).map(|number| number as u64);
    check_eq!(number("cpu0/memory_limit_bytes")?, planned_bytes, "limit");
    check_eq!(number("cpu0/processes_beyond_memory")?, 1, "beyond");
    let used_bytes = number("cpu0/memory_bytes")?;
    check!(used_bytes > threshold_bytes, "{used_bytes} bytes are in use");
    check!(number("memory_bytes")? >= used_bytes, "of all CPUs");
    let known = node.device.process(1).context("ask for process 1")?;
    let known = known.ok_or("process 1 is not known")?;
    check_eq!(known.memory_bytes, planned_bytes, "planned peak");
    check_eq!(known.t2_memory_bytes, threshold_bytes, "threshold");
    check!(known.peak_rss_bytes > threshold_bytes, "{known:?}");
    Ok(())
}

/// A plan that deals with it silences it; another one has it told again.
pub fn dealt_memory_is_silent() -> Verdict {
    for (dealt, of_each) in [(true, 1), (false, 2)] {
        let plan = |id| {
            Plan::new(id)
                .config(watched())
                .peak(1, TOO_LITTLE_BYTES)
                .memory(TOO_LITTLE_BYTES)
                .idle(5_000_000)
                .slot(1, 0, 1_000_000_000 * Counting::here().scale())
        };
        let mut scene = Scene::new()?;
        scene.process(1, |_| {
            let memory = Mapping::touched();
            burn(400_000_000 * Counting::here().scale());
            drop(memory);
        })?;
        let mut scene = scene.start(&plan(1))?;
        scene.node.read_until(EventKind::Late, 2)?;
        shown_beyond(&scene.node, TOO_LITTLE_BYTES)?;
        let seq = scene.node.of(EventKind::Late)[1].seq;
        let dealt_seq = if dealt { seq + 1 } else { 0 };
        scene.node.load(&plan(2).dealt(dealt_seq))?;
        sleep_ms(20);
        let node = scene.finish()?;
        // Of one look both are told, of several the one that has no room first.
        let mut failures = failures(&node);
        failures.sort_unstable();
        let [process, limit] = [Cause::Memory, Cause::NodeMemory].map(|cause| (cause as u16, 1));
        let expected = [vec![process; of_each], vec![limit; of_each]].concat();
        check_eq!(failures, expected, "dealt with: {dealt}\n{}", node.log());
        let installed = node.of(EventKind::PlanInstalled);
        check!(
            installed[1].seq < node.task_ended(1, 0)?.seq,
            "the second plan came too late to prove anything\n{}",
            node.log()
        );
    }
    Ok(())
}
