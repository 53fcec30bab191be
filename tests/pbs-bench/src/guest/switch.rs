// SPDX-License-Identifier: GPL-2.0
//! From one process to the next: the end of a task, and what is nearest to it in
//! another class.

use std::thread;

use pbs_core::{Config, Dispatch};
use pbs_uapi::{Device, Inputs};
use pbs_vmtest::harness::{burn, Plan, CONFIG};

use super::class::{run, Class};
use super::probe::Probe;

/// Switches that are measured, there and back, and those before and after them.
const PAIRS: u64 = 10_000;
const MARGIN: u64 = 50;

/// All those of a measurement that is not profiled.
pub const SWITCHES: u64 = 2 * (PAIRS + 2 * MARGIN);

/// Few enough that their instructions can be written down one by one.
const PROFILED_PAIRS: u64 = 100;

fn pairs(probe: &Probe) -> u64 {
    if probe.is_profiled() {
        PROFILED_PAIRS
    } else {
        PAIRS
    }
}

/// A plan in which two processes take turns, with so many slots each.
fn in_turn(mut plan: Plan, slots: u64, slot_insns: u64) -> Plan {
    for task in 0..slots as u32 {
        plan = plan.slot(1, task, slot_insns).slot(2, task, slot_insns);
    }
    plan
}

/// Ends so many tasks of this length.
fn end_tasks(device: &Device, tasks: u64, task_insns: u64) {
    for _ in 0..tasks {
        burn(task_insns);
        device.task_end(None).expect("task end");
    }
}

/// Kernel instructions of a task's end, of its process's way to sleep and of the
/// next one's way back: two processes take turns, slot by slot.
fn task_ends(probe: &Probe, task_insns: u64, planned_insns: u64) -> Result<f64, String> {
    let tasks = pairs(probe) + 2 * MARGIN;
    let plan = in_turn(Plan::new(1).lead_in(), tasks, planned_insns);
    ends_of(probe, task_insns, plan)
}

/// Like [`task_ends`], for a plan in which two processes take turns.
fn ends_of(probe: &Probe, task_insns: u64, plan: Plan) -> Result<f64, String> {
    let pairs = pairs(probe);
    let tasks = pairs + 2 * MARGIN;
    let device = Device::open().map_err(|error| error.to_string())?;
    let work = |tasks| end_tasks(&device, tasks, task_insns);
    probe.of_each(2 * pairs, || {
        run(
            &Class::Pbs(plan.into()),
            vec![
                Box::new(|| {
                    work(MARGIN);
                    probe.measure(|| work(pairs));
                    work(MARGIN);
                }),
                Box::new(|| work(tasks)),
            ],
        )
    })
}

/// Tasks that end far from every threshold: hardly anything but switches.
pub fn early_tasks(probe: &Probe) -> Result<f64, String> {
    task_ends(probe, 5_000, 10_000)
}

/// [`early_tasks`] while somebody records what the policy is told.
pub fn recorded_tasks(probe: &Probe) -> Result<f64, String> {
    let _recorder = record()?;
    early_tasks(probe)
}

/// [`preemptions`] likewise.
pub fn recorded_preemptions(probe: &Probe) -> Result<f64, String> {
    let _recorder = record()?;
    preemptions(probe)
}

/// Opens the device of inputs: as long as it is open the inputs of the policy are recorded. Like
/// the events, they are not read.
fn record() -> Result<Inputs, String> {
    Inputs::open().map_err(|error| format!("{}: {error}", pbs_uapi::INPUTS_PATH))
}

/// Tasks that end just before they are late, for which the class has its timer
/// expire.
pub fn near_tasks(probe: &Probe) -> Result<f64, String> {
    task_ends(probe, 9_800, 10_000)
}

/// [`early_tasks`] where each task waits for the one before it: with each end of
/// a task one begins to wait, and one goes on.
pub fn waiting_tasks(probe: &Probe) -> Result<f64, String> {
    let tasks = pairs(probe) + 2 * MARGIN;
    let mut plan = in_turn(Plan::new(1).lead_in(), tasks, 10_000);
    for task in 0..tasks as u32 {
        plan = plan.edge(2, task, 1, task);
        if task != 0 {
            plan = plan.edge(1, task, 2, task - 1);
        }
    }
    ends_of(probe, 5_000, plan)
}

/// [`early_tasks`] where processes run by deadline: after a task, the other process has the earlier
/// deadline.
pub fn tasks_by_deadline(probe: &Probe) -> Result<f64, String> {
    let plan = Plan::new(1).config(by_deadline(CONFIG)).lead_in();
    let plan = in_turn(plan, pairs(probe) + 2 * MARGIN, 10_000);
    ends_of(probe, 5_000, with_deadlines(plan))
}

fn by_deadline(config: Config) -> Config {
    Config { dispatch: Dispatch::Deadline as u64, ..config }
}

/// Gives the processes a deadline that they keep, so that the order of their slots is that of the
/// plan.
fn with_deadlines(plan: Plan) -> Plan {
    const DEADLINE_NS: u64 = 1_000_000_000_000;
    plan.deadline(1, DEADLINE_NS).deadline(2, DEADLINE_NS)
}

/// Kernel instructions of a task's end behind which the same process goes on: there is
/// no other, and nothing is switched.
pub fn same_process(probe: &Probe) -> Result<f64, String> {
    const TASK_INSNS: u64 = 5_000;
    let tasks = 2 * pairs(probe);
    let all = tasks + 2 * MARGIN;
    let mut plan = Plan::new(1).lead_in();
    for task in 0..all as u32 {
        plan = plan.slot(1, task, 2 * TASK_INSNS);
    }
    let device = Device::open().map_err(|error| error.to_string())?;
    let work = |tasks| end_tasks(&device, tasks, TASK_INSNS);
    probe.of_each(tasks, || {
        run(
            &Class::Pbs(plan.into()),
            vec![Box::new(|| {
                work(MARGIN);
                probe.measure(|| work(tasks));
                work(MARGIN);
            })],
        )
    })
}

/// [`early_tasks`] with t1 instead of the task's end: the one task of each process
/// never ends, and takes all of its slots.
pub fn preemptions(probe: &Probe) -> Result<f64, String> {
    preemptions_of(probe, CONFIG, |plan| plan)
}

/// [`preemptions`] where processes run by deadline.
pub fn preemptions_by_deadline(probe: &Probe) -> Result<f64, String> {
    preemptions_of(probe, by_deadline(CONFIG), with_deadlines)
}

fn preemptions_of(
    probe: &Probe,
    mut config: Config,
    change: impl Fn(Plan) -> Plan,
) -> Result<f64, String> {
    const SLOT_INSNS: u64 = 10_000;
    // The least t1.
    const T1_INSNS: u64 = SLOT_INSNS + SLOT_INSNS / 1000;
    let pairs = pairs(probe);
    config.sigma_t1_permille = 1001;
    config.no_preemption_ns = 0;
    config.max_preemptions = 1_000_000;
    let slots = pairs + 3 * MARGIN;
    let plan = change(in_turn(Plan::new(1).config(config).lead_in(), slots, SLOT_INSNS));
    let work = |slots: u64| burn(slots * T1_INSNS);
    probe.of_each(2 * pairs, || {
        run(
            &Class::Pbs(plan.into()),
            vec![
                Box::new(|| {
                    work(MARGIN);
                    probe.measure(|| work(pairs));
                    work(MARGIN);
                }),
                Box::new(|| work(pairs + 2 * MARGIN)),
            ],
        )
    })
}

fn yield_pairs(pairs: u64) {
    for _ in 0..pairs {
        thread::yield_now();
    }
}

/// Kernel instructions of sched_yield(2) and the switch that it brings, between
/// two threads of one process.
pub fn yield_threads(probe: &Probe) -> Result<f64, String> {
    let pairs = pairs(probe);
    probe.of_each(2 * pairs, || {
        run(
            &Class::Fifo,
            vec![Box::new(|| {
                // It is in the same class, at the same priority.
                let other = thread::spawn(move || yield_pairs(pairs + 2 * MARGIN));
                yield_pairs(MARGIN);
                probe.measure(|| yield_pairs(pairs));
                other.join().expect("the other thread");
            })],
        )
    })
}

/// Measures yields between two processes.
fn yield_processes(probe: &Probe, class: &Class) -> Result<f64, String> {
    let pairs = pairs(probe);
    probe.of_each(2 * pairs, || {
        run(
            class,
            vec![
                Box::new(|| {
                    yield_pairs(MARGIN);
                    probe.measure(|| yield_pairs(pairs));
                }),
                Box::new(|| yield_pairs(pairs + 2 * MARGIN)),
            ],
        )
    })
}

pub fn yield_fifo(probe: &Probe) -> Result<f64, String> {
    yield_processes(probe, &Class::Fifo)
}

pub fn yield_other(probe: &Probe) -> Result<f64, String> {
    yield_processes(probe, &Class::Other)
}
