// SPDX-License-Identifier: GPL-2.0
//! Large plans: what it takes to install one, and to live with it.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use pbs_core::wire::encode;
use pbs_core::{Config, IdlePolicy};
use pbs_uapi::Device;
use pbs_vmtest::check;
use pbs_vmtest::harness::{burn, sysfs_number, Child, Context, Gate, Node, Plan, CONFIG};
use pbs_vmtest::shared;

use super::class::{run, Class};
use super::named::Named;
use super::probe::Probe;

/// Processes of a plan that has few, and the most that a CPU may have.
const FEW: u32 = 8;
const MANY: u32 = 1024;

/// A plan of this many tasks, for processes in turn.
fn plan_of(id: u64, tasks: u32, processes: u32, task_insns: u64) -> Plan {
    let mut plan = Plan::new(id).lead_in();
    for number in 0..tasks {
        plan = plan.slot(1 + number % processes, number / processes, task_insns);
    }
    plan
}

/// Kernel instructions of a task's end and switch, by how large the plan is: the
/// median, so that interrupts do not matter.
pub fn decision(probe: &Probe) -> Result<Vec<Named>, String> {
    let mut named = Vec::new();
    for (name, tasks) in
        [("decision-100", 100), ("decision-10000", 10_000), ("decision-1000000", 1_000_000)]
    {
        named.push(Named::insns(name, switch_in_plan(probe, tasks)?));
    }
    Ok(named)
}

fn switch_in_plan(probe: &Probe, tasks: u32) -> Result<f64, String> {
    // All that the smallest plan has, but for the first and the last ones.
    const PAIRS: usize = 40;
    const MARGIN: usize = 4;
    let plan = plan_of(1, tasks, 2, 10_000);
    let samples = shared::of_processes(PAIRS)?;
    let device = Device::open().context("device")?;
    let task = || {
        burn(5_000);
        device.task_end(None).expect("task end");
    };
    run(
        &Class::Pbs(plan.into()),
        vec![
            Box::new(|| {
                (0..MARGIN).for_each(|_| task());
                for sample in samples {
                    let start = probe.read();
                    task();
                    sample.store(probe.read() - start, SeqCst);
                }
            }),
            Box::new(|| (0..PAIRS + 2 * MARGIN).for_each(|_| task())),
        ],
    )?;
    let mut reads: Vec<u64> = (0..PAIRS)
        .map(|_| {
            let start = probe.read();
            probe.read() - start
        })
        .collect();
    let mut insns: Vec<u64> = samples.iter().map(|sample| sample.load(SeqCst)).collect();
    check!(!insns.contains(&0), "not all tasks were measured");
    Ok((median(&mut insns) - median(&mut reads)) / 2.0)
}

fn median(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    (values[middle - 1] + values[middle]) as f64 / 2.0
}

/// Kernel instructions of an installation by task, and how long the CPU was held
/// for it at most. A plan as large, of the same processes, is replaced each time.
pub fn install(probe: &Probe) -> Result<Vec<Named>, String> {
    let node = Node::open()?;
    // Before there is much memory that each of them would have a copy of.
    let gate = Gate::new()?;
    let children: Result<Vec<Child>, String> = (0..MANY).map(|_| gate.child(|| ())).collect();
    let children = children?;
    let mut named = vec![
        Named::new("install-100000", install_twice(probe, &node, 100_000, FEW, &[])?, PER_TASK),
        Named::new(
            "install-1000000",
            install_twice(probe, &node, 1_000_000, FEW, &children[..FEW as usize])?,
            PER_TASK,
        ),
    ];
    // It is the longest since boot, so the one of few processes comes first.
    named.push(Named::new("swap", longest_swap_us()?, "us"));
    named.push(Named::new(
        "install-1000000-of-1024",
        install_twice(probe, &node, 1_000_000, MANY, &children[FEW as usize..])?,
        PER_TASK,
    ));
    named.push(Named::new("swap-of-1024", longest_swap_us()?, "us"));
    named.push(Named::new("configure-of-1024", configure_us(&node)?, "us"));
    // The longest time of both kinds of change.
    named.push(Named::new("configure-hold-of-1024", longest_swap_us()?, "us"));
    node.device.drop_plan(0).context("drop the plan")?;
    Ok(named)
}

/// Id of the plan that is in force after [`install_twice`].
const INSTALLED: u64 = 2;

const PER_TASK: &str = "insns/task";

/// Installs a plan, attaches children to its last processes, and replaces it by
/// one that is alike; kernel instructions of the latter, by task.
fn install_twice(
    probe: &Probe,
    node: &Node,
    tasks: u32,
    processes: u32,
    children: &[Child],
) -> Result<f64, String> {
    node.load(&plan_of(1, tasks, processes, 10_000))?;
    for (process, child) in (1..=processes).rev().zip(children) {
        node.attach(child, process)?;
    }
    let bytes = plan_of(INSTALLED, tasks, processes, 10_000).bytes();
    let start = probe.read();
    node.device.write_plan(&bytes).context("write the plan")?;
    Ok((probe.read() - start) as f64 / f64::from(tasks))
}

/// Median time of a change of the configuration of the plan in force, in which each process is
/// visited: the whole call, for a part of which the CPU is held.
fn configure_us(node: &Node) -> Result<f64, String> {
    const CHANGES: usize = 40;
    let policies = [(IdlePolicy::Pieces, 1_200), (IdlePolicy::LeastSlack, 1_300)];
    let mut times_ns = Vec::new();
    let (_, mut generation) = node.device.get_plan_and_generation(0).context("get the plan")?;
    for (policy, sigma_memory_permille) in policies.into_iter().cycle().take(CHANGES) {
        let idle_policy = policy as u64;
        let config = encode::config(&Config { idle_policy, sigma_memory_permille, ..CONFIG });
        let begun = Instant::now();
        node.device.configure(0, INSTALLED, generation, &config).context("configure")?;
        times_ns.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        generation = generation.wrapping_add(1);
    }
    Ok(median(&mut times_ns) / 1000.0)
}

/// Longest time for which a change of plans or of a configuration has held the CPU, in
/// microseconds.
fn longest_swap_us() -> Result<f64, String> {
    Ok(sysfs_number("cpu0/longest_swap_ns")? as f64 / 1000.0)
}

const PER_TASK_BYTES: &str = "bytes/task";

/// Kernel memory that a plan takes, by task.
pub fn memory() -> Result<Vec<Named>, String> {
    const TASKS: u32 = 1_000_000;
    let node = Node::open()?;
    // What is allocated once.
    node.load(&plan_of(1, 100, FEW, 10_000))?;
    let mut named = Vec::new();
    for (name, processes) in [("plan-memory", FEW), ("plan-memory-of-1024", MANY)] {
        let bytes = plan_of(2, TASKS, processes, 10_000).bytes();
        let before = kernel_bytes()?;
        node.device.write_plan(&bytes).context("write the plan")?;
        let after = kernel_bytes()?;
        node.load(&plan_of(3, 100, FEW, 10_000))?;
        let each = (after - before) / f64::from(TASKS);
        named.push(Named::new(name, each, PER_TASK_BYTES));
    }
    node.device.drop_plan(0).context("drop the plan")?;
    Ok(named)
}

/// Memory that the kernel has for itself, by /proc/meminfo. What it frees stays
/// on a CPU's list for a while, so free memory says little.
fn kernel_bytes() -> Result<f64, String> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let mut sum_kib = 0.0;
    for name in ["VmallocUsed:", "Slab:", "Percpu:"] {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        sum_kib += kib.ok_or_else(|| format!("/proc/meminfo has no {name}"))?;
    }
    Ok(sum_kib * 1024.0)
}
