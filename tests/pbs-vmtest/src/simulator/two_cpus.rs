// SPDX-License-Identifier: GPL-2.0
//! The kernel does on two CPUs what the simulator says, with tasks that wait for each other.
//!
//! QEMU's counter of each CPU counts what all retire, so the CPUs count by the clock here, and a
//! task is a time on the CPU. QEMU lets the CPUs take turns, which makes a task up to some
//! milliseconds longer than its program was to be, and timers as late. So each plan is executed
//! first, and simulated with the lengths that the kernel counted and with several delays of the
//! timer: a CPU agrees if it has the events of one of the simulations. The turns are the shorter as
//! after each CPU of the plan comes one that sets its timer again and again. Delays in between
//! remain, so that many plans must agree, not all: if CPUs waited for each other in another way
//! than simulated, none of those with waits would.

use std::time::Duration;

use pbs_core::{Config, Dispatch, Threshold};
use pbs_gen::{generate, Parameters, Scenario, Span};
use pbs_plan::{wire, After, Plan, Slot};
use pbs_sim::{simulate, NoAnswer, Options, Timing};
use pbs_uapi::{Event, EventKind};

use super::{config, steps};
use crate::harness::{
    cputime_ns, fork, sysfs_number, Child, Context, Counting, Node, Random, Scene, Verdict,
};
use crate::linux::scene::move_to;
use crate::{check, check_eq};

/// Number of plans of each scenario that are executed.
const PLANS: u64 = 3;

/// Least share of the plans that must agree; 59 % did when this was written.
const AGREE_PERCENT: usize = 35;

/// CPUs of the plan.
const CPUS: [u32; 2] = [0, 2];

/// The CPUs whose timers end the turns of the others.
const BEATING_CPUS: [usize; 2] = [1, 3];

/// Time between two timers of each.
const BEAT_NS: u64 = 100_000;

/// Factor between the lengths here and those of [`super::plan`].
const SCALE: u64 = 60;

/// Difference between the numbers of the processes of one CPU and of the next.
const IDS: u32 = 100;

/// Idle slot in front, to attach the children in.
const LEAD_IN_MS: u64 = 20;

/// Delays of the timer in microseconds, and of the second CPU's begin.
const DELAYS_US: ([u64; 6], [u64; 2]) = ([100, 20, 500, 1_500, 3_000, 6_000], [0, 200]);

/// Compares the kernel with the simulator for `PLANS` plans of each scenario.
pub fn two_cpus_equal_the_simulator() -> Verdict {
    check_eq!(Counting::here(), Counting::Clock, "way of counting");
    let rate_insns_per_ms = sysfs_number("rate_insns_per_ms")? as u64;
    let beating: Result<Vec<_>, _> = BEATING_CPUS.into_iter().map(beat).collect();
    let beating = beating?;
    let (mut executed, mut agreed, mut waits) = (0, 0, 0);
    for scenario in Scenario::ALL {
        for seed in 1..=PLANS {
            let mut plan = plan(scenario, seed, rate_insns_per_ms)?;
            let name = format!("{} {seed}", scenario.name());
            let node = execute(&plan, rate_insns_per_ms).context(&name)?;
            take_lengths(&mut plan, &node.events);
            let simulated = simulated(&plan, rate_insns_per_ms).context(&name)?;
            executed += 1;
            match CPUS.into_iter().find(|&cpu| !agrees(cpu, &node.events, &simulated)) {
                None => {
                    agreed += 1;
                    let is_wait = |event: &&Event| event.kind == EventKind::Waits as u16;
                    waits += node.events.iter().filter(is_wait).count();
                }
                Some(cpu) => println!("{name}: CPU {cpu} was delayed"),
            }
        }
    }
    drop(beating);
    println!("{agreed} of {executed} plans of two CPUs as simulated, with {waits} waits");
    check!(agreed * 100 >= executed * AGREE_PERCENT, "{agreed} of {executed} plans agree");
    check!(waits >= 5, "only {waits} tasks waited for one of the other CPU");
    Ok(())
}

/// A child that sets a timer on that CPU again and again, until it is dropped.
fn beat(cpu: usize) -> Result<Child, String> {
    fork(|| {
        move_to(&[cpu]).expect("a CPU beside those of the plan");
        loop {
            std::thread::sleep(Duration::from_nanos(BEAT_NS));
        }
    })
}

/// A plan of two CPUs, whose tasks wait for tasks that are planned to end before on the other.
fn plan(scenario: Scenario, seed: u64, rate_insns_per_ms: u64) -> Result<Plan, String> {
    let mut random = Random::new(seed);
    let mut plan = Plan::default();
    for (number, cpu) in (0u32..).zip(CPUS) {
        let parameters = Parameters {
            scenario,
            processes: random.between(2, 3),
            tasks: Span::new(2, 3),
            task_insns: Span::new(100_000 * SCALE, 1_000_000 * SCALE),
            idle_permille: random.between(0, 250),
            idle_insns: Span::new(100_000 * SCALE, 600_000 * SCALE),
            buffer_permille: Span::new(0, 2_000),
            task_sigma_permille: random.one_of(&[50, 150, 300]),
            seed: 2 * seed + u64::from(number),
            plan_id: seed,
            cpu,
            ..Parameters::default()
        };
        let mut part = generate(&parameters).map_err(|error| error.to_string())?;
        for process in &mut part.processes {
            process.id += number * IDS;
            for task in &mut process.tasks {
                task.real_insns = task.real_insns.map(|insns| insns.min(4_000_000 * SCALE));
            }
        }
        let known = plan.processes.len();
        for cpu in &mut part.cpus {
            for slot in &mut cpu.slots {
                if let Slot::Process { process } = slot {
                    *process += known;
                }
            }
            let length_insns = LEAD_IN_MS * rate_insns_per_ms;
            cpu.slots.insert(0, Slot::Idle { length_insns, real_insns: None });
            cpu.slot_lines.insert(0, None);
        }
        plan.plan_id = part.plan_id;
        plan.processes.append(&mut part.processes);
        plan.cpus.append(&mut part.cpus);
    }
    wait_across(&mut plan, &mut random);
    // Information comes at so many moments that few plans are not ambiguous.
    let config = config(&mut random, SCALE);
    plan.config = Some(Config {
        dispatch: Dispatch::Thesis as u64,
        // Longer than the plan: windows are compared on one CPU.
        window_period_ns: 10_000_000_000,
        window_unallocated_ns: 100_000_000,
        thresholds: config.thresholds & !(Threshold::Info as u64),
        ..config
    });
    Ok(plan)
}

/// A task in its slot.
struct Place {
    cpu: u32,
    process: usize,
    task: usize,
    begin_insns: u64,
    end_insns: u64,
}

/// Lets about every second task wait for one of the other CPU that is planned to end before it
/// begins: so there is no circle.
fn wait_across(plan: &mut Plan, random: &mut Random) {
    let mut places = Vec::new();
    for cpu in &plan.cpus {
        let mut next_task = vec![0; plan.processes.len()];
        let mut begin_insns = 0;
        for slot in &cpu.slots {
            let end_insns = begin_insns
                + match *slot {
                    Slot::Idle { length_insns, .. } => length_insns,
                    Slot::Process { process } => {
                        let task = next_task[process];
                        next_task[process] += 1;
                        let length_insns = plan.processes[process].tasks[task].planned_insns;
                        let end_insns = begin_insns + length_insns;
                        places.push(Place { cpu: cpu.cpu, process, task, begin_insns, end_insns });
                        length_insns
                    }
                };
            begin_insns = end_insns;
        }
    }
    for place in &places {
        let before: Vec<_> = places
            .iter()
            .filter(|other| other.cpu != place.cpu && other.end_insns <= place.begin_insns)
            .collect();
        if before.is_empty() || random.below(2) == 0 {
            continue;
        }
        let after = before[random.below(before.len())];
        let (process, task) = (&plan.processes[after.process], after.task);
        let after = After { process: process.id, task: process.tasks[task].id, ..After::default() };
        plan.processes[place.process].tasks[place.task].after.push(after);
    }
}

/// Makes each task as long as the kernel counted it.
fn take_lengths(plan: &mut Plan, events: &[Event]) {
    for event in events.iter().filter(|event| event.kind == EventKind::TaskEnded as u16) {
        let process = plan.processes.iter_mut().find(|process| process.id == event.process);
        let mut tasks = process.into_iter().flat_map(|process| &mut process.tasks);
        if let Some(task) = tasks.find(|task| task.id == event.task) {
            task.real_insns = Some(event.retired_insns);
        }
    }
}

/// The events that the simulator predicts under each delay.
fn simulated(plan: &Plan, rate_insns_per_ms: u64) -> Result<Vec<Vec<Event>>, String> {
    let insns = |us: u64| us * rate_insns_per_ms / 1_000;
    let (timer_us, second_us) = DELAYS_US;
    let mut all = Vec::new();
    for (timer_us, second_us) in
        timer_us.into_iter().flat_map(|timer| second_us.map(|second| (timer, second)))
    {
        let timing = Timing { timer_delay_insns: insns(timer_us), ..Timing::default() };
        let options = Options { rate_insns_per_ms, timing, ..Options::default() };
        let mut plan = plan.clone();
        if let Some(Slot::Idle { length_insns, .. }) = plan.cpus[1].slots.first_mut() {
            *length_insns += insns(second_us);
        }
        let simulation =
            simulate(&plan, &options, &mut NoAnswer).map_err(|error| error.to_string())?;
        check!(simulation.ended(), "the simulation did not end");
        all.push(simulation.events);
    }
    Ok(all)
}

/// The events of a CPU.
fn on(cpu: u32, events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.cpu == cpu).copied().collect()
}

/// Executes the plan.
fn execute(plan: &Plan, rate_insns_per_ms: u64) -> Result<Node, String> {
    let mut scene = Scene::new()?;
    move_to(&[0, 1, 2, 3])?;
    for process in &plan.processes {
        scene.process(process.id, |device| {
            for (index, task) in process.tasks.iter().enumerate() {
                if index != 0 {
                    device.task_end(None).expect("task end");
                }
                let real_insns = task.real_insns.unwrap_or(task.planned_insns);
                run_for(real_insns * 1_000_000 / rate_insns_per_ms);
            }
        })?;
    }
    // This process reads events, and would do so beside the plan.
    move_to(&BEATING_CPUS[..1])?;
    let encoded = wire::encode(plan);
    scene.node.device.write_plan(&encoded.bytes).context("write the plan")?;
    let mut scene = scene.attach_and_open()?;
    scene.node.read_until(EventKind::PlanEnded, CPUS.len())?;
    let node = scene.finish()?;
    // The next plan must not go on in the rhythm of this one's windows.
    node.device.drop_plan(0).context("drop the plan")?;
    Ok(node)
}

/// Whether a CPU has the events of one of the simulations.
fn agrees(cpu: u32, events: &[Event], simulated: &[Vec<Event>]) -> bool {
    let kernel = steps(&on(cpu, events));
    simulated.iter().any(|events| steps(&on(cpu, events)) == kernel)
}

/// Runs for a time of this process on its CPU.
fn run_for(ns: u64) {
    let end_ns = cputime_ns() + ns;
    while cputime_ns() < end_ns {
        std::hint::spin_loop();
    }
}
