// SPDX-License-Identifier: GPL-2.0
//! The kernel does what the simulator says.
//!
//! Generated plans of every scenario are simulated and executed: children
//! retire the real lengths of their tasks, and the events of the class must be
//! those of the simulation, one by one, with the same counts.
//!
//! A kernel takes time for itself, and its timer comes some instructions late.
//! So a plan can be ambiguous: where a task ends just as its slot does, either
//! may come first. Such plans are left out. They are found by simulating each
//! plan with several such delays, and the test says how many they were.
//!
//! The same is done with the commands that a user has: `pbsctl gen --runnable`
//! and `pbsctl run`, which starts real programs.

pub mod two_cpus;

use std::process::Command;
use std::time::Duration;

use pbs_core::{Config, Dispatch, IdlePolicy, PreemptionWay, Threshold};
use pbs_gen::{generate, Parameters, Scenario, Span};
use pbs_plan::{from_toml, to_toml, wire, After, Plan, Process, Slot, Start, Task};
use pbs_sim::{simulate, NoAnswer, Options, Timing};
use pbs_uapi::{Cause, Event, EventKind, Grant};

use crate::harness::{
    burn, kernel_is_watched, line, needs_counter, now_ns, ns, skip, sysfs_number, Context, Node,
    Random, Scene, Verdict, CONFIG, LEAD_IN_INSNS, OVERHEAD_INSNS,
};
use crate::{check, check_eq};

/// Number of plans of each scenario that are executed.
const PLANS: usize = 36;

/// Number of nets with messages that are made from each net.
const VARIANTS: u64 = 4;

/// Greatest difference of the counts in thousandths, beside [`OVERHEAD_INSNS`].
const OFF_PERMILLE: u64 = 1;

/// An endless loop need not be longer than this to look like one.
const ENDLESS_INSNS: u64 = 20_000_000;

/// Cost of the kernel itself.
struct Cost {
    timing: Timing,
    /// Instructions that a child retires around the call that ends a task.
    task_end_insns: u64,
}

/// The first is nearest to what it does take, the others lie around it. While
/// nothing is retired the timer is put off, each time for twice as long: that
/// makes it as late as 5,000 instructions.
const COSTS: [Cost; 9] = [
    cost(100, 40_000, 35_000, 150),
    // As late as that a look is seldom; and not all looks before it were.
    cost(1_000, 40_000, 35_000, 150),
    cost(2_000, 40_000, 35_000, 150),
    cost(0, 0, 0, 0),
    cost(0, 40_000, 35_000, 400),
    cost(5_000, 40_000, 35_000, 0),
    cost(5_000, 20_000, 10_000, 400),
    cost(100, 70_000, 35_000, 150),
    cost(100, 70_000, 120_000, 150),
];

const fn cost(timer_delay_insns: u64, look_ns: u64, switch_ns: u64, task_end_insns: u64) -> Cost {
    Cost { timing: Timing { timer_delay_insns, look_ns, switch_ns }, task_end_insns }
}

/// An event without its time and its numbers.
type Step = (EventKind, u32, u32, &'static str, u32);

/// Signals that must have occurred at least once for the test to be meaningful.
const SIGNALS: [(EventKind, Cause); 13] = [
    (EventKind::Info, Cause::Process),
    (EventKind::Info, Cause::Node),
    (EventKind::Late, Cause::Task),
    (EventKind::Late, Cause::Process),
    (EventKind::Late, Cause::Node),
    (EventKind::Late, Cause::Preemptions),
    (EventKind::Early, Cause::Task),
    (EventKind::Early, Cause::Node),
    (EventKind::Info, Cause::Message),
    (EventKind::Late, Cause::Message),
    (EventKind::Early, Cause::Message),
    (EventKind::Info, Cause::Start),
    (EventKind::Info, Cause::End),
];

/// Compares the kernel with the simulator for `PLANS` plans of each scenario.
pub fn kernel_equals_simulator() -> Verdict {
    if kernel_is_watched() {
        skip("this kernel watches itself, which takes it longer than a slot");
    }
    needs_counter("counts as close as the simulated ones");
    let rate_insns_per_ms = sysfs_number("rate_insns_per_ms")? as u64;
    let (mut executed, mut ambiguous, mut nets, mut with_messages) = (0, 0, 0, 0);
    let mut of_each = [0; Dispatch::ALL.len()];
    let mut told = Vec::new();
    for scenario in Scenario::ALL {
        let before = (executed, ambiguous);
        let mut seed = 0;
        while executed - before.0 < PLANS {
            seed += 1;
            let plan = plan(scenario, seed)?;
            let name = format!("{} {seed}", scenario.name());
            let events = expected(&plan, rate_insns_per_ms).context(&name)?;
            let run = |events: &Vec<Event>| execute(&plan, events, rate_insns_per_ms);
            match events.as_ref().map(run).transpose().context(&name)? {
                Some(true) => {
                    executed += 1;
                    let dispatch = plan.config.map_or(Dispatch::Thesis, |config| config.dispatch());
                    of_each[dispatch as usize] += 1;
                    let mut tasks = plan.processes.iter().flat_map(|process| &process.tasks);
                    nets += usize::from(tasks.any(|task| !task.after.is_empty()));
                    told.extend(events.iter().flat_map(|events| steps(events)));
                    for variant in 0..VARIANTS {
                        let Some(plan) = sending(&plan, seed * VARIANTS + variant) else {
                            continue;
                        };
                        if let Some(events) = expected(&plan, rate_insns_per_ms).context(&name)? {
                            with_messages += 1;
                            execute(&plan, &events, rate_insns_per_ms)
                                .context(&format!("{name}, messages {variant}"))?;
                            told.extend(steps(&events));
                        }
                    }
                }
                Some(false) | None => ambiguous += 1,
            }
            check!(seed < 1000, "{name}: too few plans are not ambiguous");
        }
        println!(
            "{}: {} plans as simulated, {} ambiguous ones left out",
            scenario.name(),
            executed - before.0,
            ambiguous - before.1
        );
    }
    for (dispatch, number) in Dispatch::ALL.into_iter().zip(of_each) {
        println!("dispatch {}: {number} plans", dispatch.name());
        check!(number >= PLANS, "only {number} plans with dispatch = {}", dispatch.name());
    }
    println!("all: {executed} plans as simulated, {ambiguous} ambiguous ones left out");
    let waits = told.iter().filter(|step| step.0 == EventKind::Waits);
    let waits = waits.count();
    println!("waits: {waits}, in {nets} nets; {with_messages} nets with messages");
    check!(nets >= 200, "{nets} nets only");
    check!(with_messages >= 200, "{with_messages} nets with messages only");
    check!(waits > 0, "no plan has a task that waited for another");
    for (kind, cause) in SIGNALS {
        let number = told.iter().filter(|step| (step.0, step.3) == (kind, cause.name()));
        let number = number.count();
        println!("{} by {}: {number}", kind.name(), cause.name());
        check!(number > 0, "no plan has a signal {} by {}", kind.name(), cause.name());
    }
    Ok(())
}

/// A small plan of either order, which begins when all children are attached.
fn plan(scenario: Scenario, seed: u64) -> Result<Plan, String> {
    let mut random = Random::new(seed);
    let parameters = Parameters {
        scenario,
        processes: random.between(2, 5),
        tasks: Span::new(3, 6),
        task_insns: Span::new(100_000, 1_000_000),
        idle_permille: random.between(0, 250),
        idle_insns: Span::new(100_000, 600_000),
        buffer_permille: Span::new(0, 2_000),
        task_sigma_permille: random.one_of(&[50, 150, 300]),
        edge_permille: random.one_of(&[0, 200, 500, 1000]),
        seed,
        plan_id: seed,
        ..Parameters::default()
    };
    let mut plan = generate(&parameters).map_err(|error| error.to_string())?;
    for task in plan.processes.iter_mut().flat_map(|p| &mut p.tasks) {
        task.real_insns = task.real_insns.map(|insns| insns.min(ENDLESS_INSNS));
    }
    let config = Config { timeliness_ns: timeliness_ns(seed), ..config(&mut random, 1) };
    match config.dispatch() {
        Dispatch::Thesis => lead_in(&mut plan),
        Dispatch::Deadline => wait_for_starter(&mut plan, &mut random),
    }
    plan.config = Some(config);
    Ok(plan)
}

/// Deviation of starts and ends that is not reported, for one plan in three; 0 for the others. The
/// seed alone decides it, and the rest of a plan is the same with and without it.
fn timeliness_ns(seed: u64) -> u64 {
    let mut random = Random::new(!seed);
    random.one_of(&[0, 0, 1]) * ns(random.between(100_000, 1_000_000))
}

/// An idle slot in front, to attach the children in.
fn lead_in(plan: &mut Plan) {
    for cpu in &mut plan.cpus {
        let lead_in = Slot::Idle { length_insns: LEAD_IN_INSNS, real_insns: None };
        cpu.slots.insert(0, lead_in);
        cpu.slot_lines.insert(0, None);
    }
}

/// The plan with messages in the place of most dependencies, which arrive anywhere in the plan;
/// `None` without dependencies. Where slots float, the begin of the first task depends on the
/// children, and arrivals would be ambiguous.
fn sending(plan: &Plan, seed: u64) -> Option<Plan> {
    let config = plan.config.filter(|config| config.dispatch() == Dispatch::Thesis)?;
    let mut random = Random::new(seed);
    let mut plan = plan.clone();
    let slots = plan.cpus.iter().flat_map(|cpu| plan.place(cpu));
    let length_insns: u64 = slots.map(|slot| slot.length_insns).sum();
    for task in plan.processes.iter_mut().flat_map(|process| &mut process.tasks) {
        for after in &mut task.after {
            let arrival_ns = ns(random.between(LEAD_IN_INSNS, length_insns));
            after.arrival_ns = random.one_of(&[Some(arrival_ns), Some(arrival_ns), None]);
        }
    }
    plan.config = Some(Config {
        t2_message_ns: ns(random.between(20_000, 400_000)),
        tm2_message_ns: ns(random.between(20_000, 600_000)),
        ..config
    });
    plan.has_messages().then_some(plan)
}

/// The process for which all others wait where slots float. Its child is the last that
/// comes to the gate, and the last that goes on.
const STARTER: u32 = 1_000_000;

/// Length of its task.
const STARTER_INSNS: u64 = 150_000;

/// About as many instructions as a CPU retires in a window.
const WINDOW_INSNS: u64 = 25_000_000;

/// All processes wait for the end of another one, and have deadlines: far ones, none, or
/// one that can't be kept. How long it takes to attach the children does not matter then, but for
/// the time of the window in which they begin. The starter waits, so that this is any.
fn wait_for_starter(plan: &mut Plan, random: &mut Random) {
    for process in &mut plan.processes {
        let far_ns = 10_000_000_000 + 10_000_000 * random.between(0, 100);
        process.deadline_ns = random.one_of(&[Some(far_ns), Some(far_ns), None, Some(0)]);
        if let Some(first) = process.tasks.first_mut() {
            first.after.push(After { process: STARTER, task: 0, ..After::default() });
        }
    }
    plan.processes.push(Process {
        id: STARTER,
        deadline_ns: Some(5_000_000_000),
        tasks: vec![Task {
            planned_insns: 200_000,
            real_insns: Some(STARTER_INSNS),
            wait_insns: Some(random.between(1, WINDOW_INSNS)),
            ..Task::default()
        }],
        ..Process::default()
    });
    let process = plan.processes.len() - 1;
    for cpu in &mut plan.cpus {
        cpu.slots.insert(0, Slot::Process { process });
        cpu.slot_lines.insert(0, None);
    }
}

/// The steps after the end of the starter, if there is one. Who waits for it is reported in
/// the order in which the children are attached.
fn steps_after_start(events: &[Event]) -> Vec<Step> {
    let mut steps = steps(events);
    let ended = (EventKind::ProcessEnded, STARTER);
    if let Some(start) = steps.iter().position(|step| (step.0, step.1) == ended) {
        steps.drain(..=start);
        steps.retain(|step| step.0 != EventKind::Waits || step.2 != 0);
    }
    steps
}

/// Thresholds for tasks of a few hundred thousand instructions, times `scale`.
fn config(random: &mut Random, scale: u64) -> Config {
    let ns = |insns: u64| ns(insns * scale);
    // One threshold is switched off now and then, and information, which comes
    // at so many moments that few plans are not ambiguous, more often. Those of messages, which are
    // behind all others, stay on.
    let others = Threshold::T2Message as u64;
    let off = (random.one_of(&[0, 0, 0, 1]) << random.below(others.trailing_zeros() as usize))
        | random.one_of(&[0, 0, Threshold::Info as u64]);
    Config {
        sigma_t1_permille: random.between(1020, 1100),
        preemption_limit_ns: ns(100_000),
        no_preemption_ns: ns(5_000),
        sigma_t2_permille: random.between(1101, 1500),
        t2_spacer_ns: ns(random.between(6_000, 100_000)),
        t2_task_signaling_limit_ns: ns(random.between(100_001, 1_000_000)),
        max_preemptions: random.between(1, 4),
        capacity_buffer_permille: random.between(1000, 1200),
        available_plan_buffer_permille: random.between(0, 1000),
        reschedule_time_ns: ns(random.between(0, 50_000)),
        t2_min_process_ns: ns(random.between(20_000, 300_000)),
        tm2_node_lower_bound_ns: ns(random.between(20_000, 600_000)),
        t2_node_lateness_cap_permille: random.between(1000, 1200),
        tm2_node_earliness_cap_permille: random.between(0, 200),
        stress_reset: random.between(0, 20) * random.between(0, 1),
        stress_gain_ns: ns(random.between(0, 20_000)),
        nominal_tick_ns: 4_000_000,
        thresholds: Threshold::ALL_BITS & !off,
        idle_policy: random.one_of(&IdlePolicy::ALL) as u64,
        preemption_way: random.one_of(&PreemptionWay::ALL) as u64,
        dispatch: random.one_of(&Dispatch::ALL) as u64,
        idle_piece_ns: ns(random.between(50_000, 300_000)).max(100_000),
        idle_is_lateness: random.between(0, 1),
        t1_spares_last_slot: random.between(0, 1),
        ..CONFIG
    }
}

/// Events that the simulator predicts, if it predicts the same at all costs.
fn expected(plan: &Plan, rate_insns_per_ms: u64) -> Result<Option<Vec<Event>>, String> {
    let mut first: Option<Vec<Event>> = None;
    for cost in COSTS {
        let options = Options { rate_insns_per_ms, timing: cost.timing, ..Options::default() };
        let mut plan = plan.clone();
        for task in plan.processes.iter_mut().flat_map(|p| &mut p.tasks) {
            task.real_insns = task.real_insns.map(|insns| insns + cost.task_end_insns);
        }
        let simulation =
            simulate(&plan, &options, &mut NoAnswer).map_err(|error| error.to_string())?;
        check!(simulation.ended(), "the simulation did not end");
        match &first {
            None => first = Some(simulation.events),
            Some(first) if steps_after_start(first) == steps_after_start(&simulation.events) => {}
            Some(_) => return Ok(None),
        }
    }
    Ok(first)
}

/// Time from the plan to the end of the starter, if there is one.
fn started_after_ns(events: &[Event]) -> Option<u64> {
    let time_ns = |wanted: EventKind, process: u32| {
        let found = events.iter().find(|event| {
            EventKind::from_raw(event.kind) == Some(wanted) && event.process == process
        });
        found.map(|event| event.time_ns)
    };
    let end_ns = time_ns(EventKind::ProcessEnded, STARTER)?;
    Some(end_ns.saturating_sub(time_ns(EventKind::PlanInstalled, pbs_uapi::IDLE)?))
}

/// The plan whose starter ends at that time.
fn started_after(plan: &Plan, after_ns: u64, rate_insns_per_ms: u64) -> Plan {
    let mut plan = plan.clone();
    let starter = plan.processes.iter_mut().filter(|process| process.id == STARTER);
    for task in starter.flat_map(|process| &mut process.tasks) {
        let end_insns = after_ns / 1000 * rate_insns_per_ms / 1000;
        task.wait_insns = Some(end_insns.saturating_sub(STARTER_INSNS).max(1));
    }
    plan
}

/// Executes the plan; its events must be those. Where slots float, they are predicted again for the
/// time at which the starter did end. False: the plan is ambiguous at that time.
fn execute(plan: &Plan, expected: &[Event], rate_insns_per_ms: u64) -> Result<bool, String> {
    let mut scene = Scene::new()?;
    for process in &plan.processes {
        scene.process(process.id, |device| {
            let mut begun_ns = now_ns();
            for (index, task) in process.tasks.iter().enumerate() {
                if index != 0 {
                    begun_ns = now_ns();
                    device.task_end(None).expect("task end");
                }
                if let Some(wait_insns) = task.wait_insns {
                    sleep_until(begun_ns + wait_insns * 1_000_000 / rate_insns_per_ms);
                }
                burn(task.real_insns.unwrap_or(task.planned_insns));
            }
        })?;
    }
    let encoded = wire::encode(plan);
    let written = scene.node.device.write_plan(&encoded.bytes);
    written.context("write the plan")?;
    let node = scene.attach_and_open()?.finish()?;
    // The next plan must not go on in the rhythm of this one's windows.
    node.device.drop_plan(0).context("drop the plan")?;
    let Some(after_ns) = started_after_ns(&node.events) else {
        compare(plan, &node, expected, steps_after_start)?;
        return Ok(true);
    };
    let plan = started_after(plan, after_ns, rate_insns_per_ms);
    let Some(expected) = self::expected(&plan, rate_insns_per_ms)? else {
        return Ok(false);
    };
    compare(&plan, &node, &expected, steps_after_start)?;
    Ok(true)
}

/// The events of the class must be the expected ones, as `steps` tells them, and
/// have their counts.
fn compare(
    plan: &Plan,
    node: &Node,
    expected: &[Event],
    steps: impl Fn(&[Event]) -> Vec<Step>,
) -> Verdict {
    let (theirs, ours) = (steps(&node.events), steps(expected));
    let differ = (0..theirs.len().max(ours.len())).find(|&i| theirs.get(i) != ours.get(i));
    check!(
        differ.is_none(),
        "step {}: the kernel has {:?}, the simulator {:?}\nkernel:\n{}simulator:\n{}plan:\n{}",
        differ.unwrap_or(0),
        differ.and_then(|i| theirs.get(i)),
        differ.and_then(|i| ours.get(i)),
        node.log(),
        log(expected),
        pbs_plan::to_toml(plan)
    );
    for (theirs, ours) in counted(&node.events).zip(counted(expected)) {
        let off_insns = theirs.retired_insns.abs_diff(ours.retired_insns);
        let most_insns = ours.retired_insns * OFF_PERMILLE / 1000 + OVERHEAD_INSNS;
        check!(
            off_insns <= most_insns,
            "{off_insns} instructions apart:\n{}\n{}\nkernel:\n{}",
            line(theirs),
            line(ours),
            node.log()
        );
    }
    Ok(())
}

/// Number of generated plans of each scenario that are run by `pbsctl run`.
const RUN_PLANS: usize = 6;

/// Generated plans with programs do what the simulator says: the same ends of
/// tasks, preemptions and signals in the same order, with the same counts.
pub fn generated_plans_run() -> Verdict {
    if kernel_is_watched() {
        skip("this kernel watches itself, which takes it longer than a slot");
    }
    needs_counter("counts as close as the simulated ones");
    let rate_insns_per_ms = sysfs_number("rate_insns_per_ms")? as u64;
    for scenario in Scenario::ALL {
        let mut ambiguous = 0;
        let mut ran = 0;
        let mut seed = 0;
        while ran < RUN_PLANS {
            seed += 1;
            check!(seed < 100, "{scenario}: too few plans are not ambiguous");
            let plan = runnable(scenario, seed)?;
            match expected(&plan, rate_insns_per_ms)? {
                Some(events) => {
                    run(&plan, &events).context(&format!("{scenario} {seed}"))?;
                    ran += 1;
                }
                None => ambiguous += 1,
            }
        }
        println!("{scenario}: {ran} plans as simulated, {ambiguous} ambiguous ones left out");
    }
    Ok(())
}

/// Plan of `pbsctl gen`, with thresholds for tasks as short as these.
fn runnable(scenario: Scenario, seed: u64) -> Result<Plan, String> {
    let mut command = Command::new("pbsctl");
    command.args(["gen", scenario.name(), "--runnable", "--processes", "3"]);
    command.args(["--tasks", "3..5", "--task-insns", "200_000..2_000_000"]);
    command.args(["--idle-insns", "200_000..1_000_000", "--plan-id", "7"]);
    let made = command.args(["--seed", &seed.to_string()]).output();
    let made = made.context("pbsctl gen")?;
    let said = String::from_utf8_lossy(&made.stderr);
    check_eq!(made.status.code(), Some(0), "pbsctl gen: {said}");
    let plan = from_toml(&String::from_utf8_lossy(&made.stdout));
    let mut plan = plan.map_err(|problems| format!("{problems:?}"))?;
    // Programs attach one after the other, which matters where slots float.
    let dispatch = Dispatch::Thesis as u64;
    plan.config = Some(Config { dispatch, ..config(&mut Random::new(seed), 1) });
    // What the endless task retires is said twice: to the simulator and to its program.
    for process in &mut plan.processes {
        let Start::Itself(Some(command)) = &mut process.start else {
            return Err(format!("process {} has no program", process.id));
        };
        for task in &mut process.tasks {
            if let Some(endless) = task.real_insns.filter(|&insns| insns > 1 << 30) {
                let mut words = command.argv.iter_mut();
                let word = words.find(|word| **word == endless.to_string());
                *word.ok_or("no word for the endless task")? = ENDLESS_INSNS.to_string();
                task.real_insns = Some(ENDLESS_INSNS);
            }
        }
    }
    Ok(plan)
}

/// Executes the plan with `pbsctl run`; its events must be the expected ones.
fn run(plan: &Plan, expected: &[Event]) -> Verdict {
    const FILE: &str = "/tmp/runnable.toml";
    std::fs::write(FILE, to_toml(plan)).context(FILE)?;
    let mut node = Node::open()?;
    let ran = Command::new("pbsctl").args(["run", FILE]).output();
    let ran = ran.context("pbsctl run")?;
    let said = String::from_utf8_lossy(&ran.stderr);
    check_eq!(ran.status.code(), Some(0), "pbsctl run: {said}");
    node.read()?;
    node.device.drop_plan(0).context("drop the plan")?;
    // Who may run while the programs are loaded is no matter of the plan.
    compare(plan, &node, expected, |events| {
        let mut steps = steps(events);
        steps.retain(|step| step.0 != EventKind::Grant);
        steps
    })
}

/// Waits for what comes at `at_ns`, if it has not come yet.
fn sleep_until(at_ns: u64) {
    let left_ns = at_ns.saturating_sub(now_ns());
    if left_ns != 0 {
        std::thread::sleep(Duration::from_nanos(left_ns));
    }
}

/// The events whose count is that of a program. Where a slot ended by the clock,
/// or a threshold was passed, it depends on what the kernel took for itself. That of a message is a
/// time on the clock.
fn counted(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| match kind(event) {
        Some(EventKind::TaskEnded) => true,
        Some(EventKind::Early) => event.reason != Cause::Message as u16,
        _ => false,
    })
}

/// The kind of an event that the policy tells.
fn kind(event: &Event) -> Option<EventKind> {
    EventKind::from_raw(event.kind).filter(|kind| {
        matches!(
            kind,
            EventKind::PlanEnded
                | EventKind::Grant
                | EventKind::TaskEnded
                | EventKind::Preempted
                | EventKind::Ceiling
                | EventKind::Late
                | EventKind::Early
                | EventKind::Info
                | EventKind::ProcessEnded
                | EventKind::Waits
        )
    })
}

fn steps(events: &[Event]) -> Vec<Step> {
    let step = |event: &Event| {
        let kind = kind(event)?;
        let reason = match kind {
            EventKind::Grant => Grant::from_raw(event.reason).map(Grant::name),
            EventKind::Late | EventKind::Early | EventKind::Info => {
                Cause::from_raw(event.reason).map(Cause::name)
            }
            _ => None,
        };
        let reason = reason.unwrap_or("");
        Some((kind, event.process, event.task, reason, event.level_percent))
    };
    events.iter().filter_map(step).collect()
}

fn log(events: &[Event]) -> String {
    events.iter().map(|event| line(event) + "\n").collect()
}
