// SPDX-License-Identifier: GPL-2.0
//! The instruction clock: each tier executes a plan, and a counter that fails
//! while a plan runs is replaced until it can be had again.
//!
//! The faults are made by the plan process itself, in the middle of its slot:
//! on one CPU nobody else runs then, and only there are counts exact.

use std::fs;

use pbs_uapi::{Event, EventKind, Grant, Tier, TierCause};

use crate::harness::{
    burn, kernel_is_watched, line, overshoot_limit_insns, set_sysfs, skip, sleep_ms, sysfs,
    sysfs_number, Context, Counting, Node, Plan, Random, Scene, Verdict, OVERHEAD_INSNS,
};
use crate::{check, check_eq, Test};

pub const TESTS: &[(&str, Test)] = &[
    ("tier-pmu-overflow", tier_pmu_overflow),
    ("tier-pmu", tier_pmu),
    ("tier-clock", tier_clock),
    ("unknown-tier-is-not-taken", tier_pmu),
    ("unknown-fault-is-refused", unknown_fault_is_refused),
    ("stopped-counter-falls-and-returns", stopped_counter),
    ("taken-counter-falls-and-returns", taken_counter),
    ("multiplexed-counter-falls-and-returns", multiplexed_counter),
    ("silent-counter-falls-and-returns", silent_counter),
    ("counter-fails-without-a-plan", counter_fails_without_a_plan),
    (
        "counts-of-random-swaps-add-up",
        counts_of_random_swaps_add_up,
    ),
];

/// How much later than the counter's interrupt the timer comes, which stands in
/// for one that QEMU delivers late: 50 us.
const BACKSTOP_INSNS: u64 = 12_500;

/// The longest that a stopped counter goes unnoticed: 20 ms and a few ticks.
const UNNOTICED_INSNS: u64 = 10_000_000;

/// The emulated x86-64 has no PMU; elsewhere a machine that finds none has failed.
fn needs_pmu() {
    if cfg!(target_arch = "x86_64") {
        skip("there is no PMU here, and so only one tier");
    }
}

/// Process 1 is cut by its t1, 2 too, 3 stays in its slots.
const BURNS: [&[u64]; 3] = [
    &[5_000_000, 2_000_000],
    &[4_500_000, 2_000_000],
    &[3_500_000, 3_500_000],
];

/// Slots of 4,000,000 for both tasks of the three.
fn plan() -> Plan {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..2 {
        for process in 1..=3 {
            plan = plan.slot(process, task, 4_000_000);
        }
    }
    plan
}

fn tier_pmu_overflow() -> Verdict {
    needs_pmu();
    agrees(Tier::PmuOverflow)?;
    let before = sysfs_number("cpu0/overflows")?;
    executes_exactly(BACKSTOP_INSNS + overshoot_limit_insns())?;
    let interrupts = sysfs_number("cpu0/overflows")? - before;
    println!("{interrupts} interrupts of the counter");
    check!(interrupts > 0, "the counter never interrupted");
    agrees(Tier::PmuOverflow)
}

fn tier_pmu() -> Verdict {
    needs_pmu();
    agrees(Tier::Pmu)?;
    executes_exactly(overshoot_limit_insns())?;
    check_eq!(
        sysfs_number("cpu0/overflows")?,
        0,
        "interrupts of a counter that was not set to"
    );
    agrees(Tier::Pmu)
}

fn tier_clock() -> Verdict {
    agrees(Tier::Clock)?;
    let node = executes()?;
    by_the_clock(&node)?;
    agrees(Tier::Clock)
}

/// The device and sysfs, for the node and its CPU, say the same of the tier and
/// of the rate.
fn agrees(tier: Tier) -> Verdict {
    let info = Node::open()?.device.info().context("info")?;
    check_eq!(Tier::from_raw(info.tier), Some(tier), "tier by the device");
    check!(info.rate_insns_per_ms > 0, "no rate");
    for place in ["", "cpu0/"] {
        check_eq!(sysfs(&format!("{place}tier"))?, tier.name(), "{place}tier");
        check_eq!(
            sysfs_number(&format!("{place}rate_insns_per_ms"))?,
            info.rate_insns_per_ms as i64,
            "{place}rate"
        );
        check_eq!(
            sysfs_number(&format!("{place}rate_spread_permille"))?,
            info.rate_spread_permille as i64,
            "{place}spread of the rate"
        );
    }
    Ok(())
}

/// Executes the plan: in its order, with a preemption at t1.
fn executes() -> Result<Node, String> {
    let mut scene = Scene::new()?;
    for (process, burns) in (1..).zip(BURNS) {
        scene.tasks(process, burns)?;
    }
    let node = scene.run(&plan())?;
    check_eq!(
        node.grants(Grant::Slot),
        [(1, 1), (2, 2), (3, 3), (1, 4), (2, 5), (3, 6)],
        "granted slots\n{}",
        node.log()
    );
    for process in 1..=2u32 {
        let event = node.first(EventKind::Preempted, process)?;
        check_eq!(
            event.slot,
            u64::from(process),
            "preempted slot\n{}",
            node.log()
        );
    }
    Ok(node)
}

/// The counts are exact, and t1 is met by this much at most.
fn executes_exactly(overshoot_limit_insns: u64) -> Verdict {
    let node = executes()?;
    for event in node.of(EventKind::Preempted) {
        let overshoot_insns = event.retired_insns.wrapping_sub(event.value);
        println!("preempted {overshoot_insns} instructions after t1");
        check!(
            overshoot_insns < overshoot_limit_insns,
            "overshoot {overshoot_insns}: {}",
            line(&event)
        );
    }
    for (event, burned_insns) in ends(&node)? {
        is_exact(&event, burned_insns)?;
    }
    Ok(())
}

fn by_the_clock(node: &Node) -> Verdict {
    for (event, burned_insns) in ends(node)? {
        is_about(&event, burned_insns)?;
    }
    Ok(())
}

/// Each end of a task, with what the task burned.
fn ends(node: &Node) -> Result<Vec<(Event, u64)>, String> {
    let mut ends = Vec::new();
    for (process, burns) in (1..).zip(BURNS) {
        for (task, &burned_insns) in (0..).zip(burns) {
            ends.push((node.task_ended(process, task)?, burned_insns));
        }
    }
    Ok(ends)
}

fn is_exact(event: &Event, burned_insns: u64) -> Verdict {
    check!(
        event.retired_insns.wrapping_sub(burned_insns) < OVERHEAD_INSNS,
        "burned {burned_insns}, but: {}",
        line(event)
    );
    Ok(())
}

/// As good as the clock is: time in the kernel is counted too, here and when the
/// rate is measured.
fn is_about(event: &Event, burned_insns: u64) -> Verdict {
    let share = if kernel_is_watched() { 4 } else { 20 };
    check!(
        event.retired_insns.abs_diff(burned_insns) < burned_insns / share,
        "burned {burned_insns}, but: {}",
        line(event)
    );
    Ok(())
}

/// A word that names no fault is refused, and nothing happens.
fn unknown_fault_is_refused() -> Verdict {
    needs_pmu();
    let path = "/sys/kernel/pbs/cpu0/fault";
    for word in ["smash", "", "sto", "stop take"] {
        let errno = fs::write(path, word).err().and_then(|e| e.raw_os_error());
        // Writing nothing is no write at all.
        let expected = Some(libc::EINVAL).filter(|_| !word.is_empty());
        check_eq!(errno, expected, "errno of '{word}'");
    }
    tier_pmu()
}

fn stopped_counter() -> Verdict {
    let fallen = falls_to_the_clock("stop", TierCause::Stopped)?;
    let lost_insns = fallen.burned_insns.saturating_sub(fallen.counted_insns);
    println!("{lost_insns} instructions went uncounted");
    check!(
        lost_insns < UNNOTICED_INSNS,
        "{lost_insns} went uncounted\n{}",
        fallen.log
    );
    Ok(())
}

fn taken_counter() -> Verdict {
    let fallen = falls_to_the_clock("take", TierCause::Taken)?;
    // What was retired up to the next look, a tick at most, is lost.
    is_near(&fallen, 1_250_000)
}

fn multiplexed_counter() -> Verdict {
    let fallen = falls_to_the_clock("multiplex", TierCause::Multiplexed)?;
    is_near(&fallen, 1_250_000)
}

/// What came of the process whose counter failed.
struct Fallen {
    burned_insns: u64,
    counted_insns: u64,
    log: String,
}

/// All but `lost_insns` was counted, as well as the clock can.
fn is_near(fallen: &Fallen, lost_insns: u64) -> Verdict {
    let by_clock_insns = fallen.burned_insns / if kernel_is_watched() { 4 } else { 20 };
    check!(
        fallen.counted_insns.abs_diff(fallen.burned_insns) < lost_insns + by_clock_insns,
        "burned {}, {} were counted\n{}",
        fallen.burned_insns,
        fallen.counted_insns,
        fallen.log
    );
    Ok(())
}

/// The counter fails in the middle of a slot: the class tells it, goes on by the
/// clock, in this slot and those that follow, and has a counter again later.
fn falls_to_the_clock(fault: &str, cause: TierCause) -> Result<Fallen, String> {
    const BEFORE_INSNS: u64 = 5_000_000;
    const AFTER_INSNS: u64 = 40_000_000;
    const SLOT_INSNS: u64 = 20_000_000;
    needs_pmu();
    agrees(Tier::Pmu)?;
    let mut scene = Scene::new()?;
    scene.process(1, |_| fail_between(fault, BEFORE_INSNS, AFTER_INSNS))?;
    for (process, burns) in (2..).zip(&BURNS[1..]) {
        scene.tasks(process, burns)?;
    }
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, SLOT_INSNS)
        .slot(2, 0, 4_000_000)
        .slot(3, 0, 4_000_000)
        .slot(2, 1, 4_000_000)
        .slot(3, 1, 4_000_000);
    let mut node = scene.run(&plan)?;
    let log = node.log();

    let told = tells(&node, Tier::Clock, cause)?;
    check_eq!(told.cpu, 0, "CPU\n{log}");
    // By the clock: t1 ends the slot, and those that follow.
    check_eq!(
        node.grants(Grant::Slot),
        [(1, 1), (2, 2), (3, 3), (2, 4), (3, 5)],
        "granted slots\n{log}"
    );
    let preempted = node.first(EventKind::Preempted, 1)?;
    check_eq!(preempted.slot, 1, "preempted slot\n{log}");
    check!(
        told.seq < preempted.seq,
        "told after the slot was over\n{log}"
    );
    check_eq!(
        node.first(EventKind::Preempted, 2)?.slot,
        2,
        "preempted slot of process 2\n{log}"
    );
    for (process, burns) in (2..).zip(&BURNS[1..]) {
        for (task, &burned_insns) in (0..).zip(*burns) {
            is_about(&node.task_ended(process, task)?, burned_insns)?;
        }
    }
    let counted_insns = node.task_ended(1, 0)?.retired_insns;
    returns(&mut node, Tier::Pmu)?;
    executes_exactly(overshoot_limit_insns())?;
    Ok(Fallen {
        burned_insns: BEFORE_INSNS + AFTER_INSNS,
        counted_insns,
        log,
    })
}

/// For a child: makes the counter fail between two loops.
fn fail_between(fault: &str, before_insns: u64, after_insns: u64) {
    burn(before_insns);
    set_sysfs("cpu0/fault", fault).expect("making the fault");
    burn(after_insns);
}

/// The one event of the tier says this.
fn tells(node: &Node, tier: Tier, cause: TierCause) -> Result<Event, String> {
    let told = node.of(EventKind::Tier);
    check_eq!(told.len(), 1, "events of the tier\n{}", node.log());
    check_eq!(
        (told[0].value, told[0].reason),
        (tier as u64, cause as u16),
        "tier and cause\n{}",
        node.log()
    );
    Ok(told[0])
}

/// The counter comes back, with an event.
fn returns(node: &mut Node, tier: Tier) -> Verdict {
    let before = node.of(EventKind::Tier).len();
    node.read_until(EventKind::Tier, before + 1)?;
    let told = node.of(EventKind::Tier)[before];
    check_eq!(
        (told.value, told.reason),
        (tier as u64, TierCause::Returned as u16),
        "tier and cause\n{}",
        node.log()
    );
    agrees(tier)
}

/// A counter that does not interrupt counts all the same: the tier falls by one,
/// and no count is lost. The timer stands in where t1 is passed meanwhile.
fn silent_counter() -> Verdict {
    const TASK_INSNS: u64 = 12_000_000;
    needs_pmu();
    agrees(Tier::PmuOverflow)?;
    let mut plan = Plan::new(1).lead_in();
    for task in 0..16 {
        plan = plan.slot(1, task, 1_000_000).slot(2, task, 1_000_000);
    }
    let mut scene = Scene::new()?;
    scene.process(1, |_| fail_between("silence", 100_000, TASK_INSNS))?;
    scene.tasks(2, &[TASK_INSNS])?;
    let mut node = scene.run(&plan)?;
    let log = node.log();
    let told = tells(&node, Tier::Pmu, TierCause::Silent)?;
    let preempted = node.of(EventKind::Preempted);
    check!(
        preempted
            .iter()
            .filter(|event| event.seq > told.seq)
            .count()
            > 5,
        "t1 no longer ends slots\n{log}"
    );
    for process in 1..=2 {
        let mut before_insns = 0;
        for event in preempted.iter().filter(|event| event.process == process) {
            // Its one task goes on in slot after slot.
            let in_slot_insns = event.retired_insns - before_insns;
            let overshoot_insns = in_slot_insns.wrapping_sub(event.value);
            check!(
                overshoot_insns < BACKSTOP_INSNS + overshoot_limit_insns(),
                "overshoot {overshoot_insns}: {}\n{log}",
                line(event)
            );
            before_insns = event.retired_insns;
        }
    }
    is_exact(&node.task_ended(2, 0)?, TASK_INSNS)?;
    // The system call that made the fault is around it.
    let beside_insns = node.task_ended(1, 0)?.retired_insns - 100_000 - TASK_INSNS;
    check!(
        beside_insns < 10 * OVERHEAD_INSNS,
        "{beside_insns} too many\n{log}"
    );
    returns(&mut node, Tier::PmuOverflow)?;
    tier_pmu_overflow()
}

/// Nobody notices before there is something to count; then the clock counts.
fn counter_fails_without_a_plan() -> Verdict {
    needs_pmu();
    agrees(Tier::Pmu)?;
    let mut node = Node::open()?;
    set_sysfs("cpu0/fault", "take")?;
    agrees(Tier::Pmu)?;
    by_the_clock(&executes()?)?;
    node.read()?;
    tells(&node, Tier::Clock, TierCause::Taken)?;
    returns(&mut node, Tier::Pmu)?;
    executes_exactly(overshoot_limit_insns())
}

/// Whatever plans come while processes compute, what is told of their tasks is
/// what they burned, in sum and one by one.
fn counts_of_random_swaps_add_up() -> Verdict {
    const PROCESSES: u32 = 4;
    const TASKS: u32 = 150;
    const SWAPS: u64 = 20;
    let counting = Counting::here();
    let mut random = Random::new(11);
    let mut scene = Scene::new()?;
    let mut burns = Vec::new();
    for process in 1..=PROCESSES {
        let of_process: Vec<u64> = (0..TASKS)
            .map(|_| random.between(200_000, 1_500_000))
            .collect();
        scene.tasks(process, &of_process)?;
        burns.push(of_process);
    }
    let mut scene = scene.start(&random_plan(Plan::new(1).lead_in(), &mut random, &burns))?;
    for swap in 0..SWAPS {
        sleep_ms(random.between(1, 30));
        let plan = random_plan(Plan::new(2 + swap), &mut random, &burns);
        scene.node.load(&plan)?;
        scene.node.read()?;
    }
    let node = scene.finish()?;
    let log = node.log();
    let installed = node.of(EventKind::PlanInstalled).len() as u64;
    check_eq!(installed, 1 + SWAPS, "plans in force\n{log}");
    let ended = node.of(EventKind::TaskEnded);
    check_eq!(
        ended.len() as u32,
        PROCESSES * TASKS,
        "tasks that ended\n{log}"
    );
    let mut counted_insns = 0;
    for event in &ended {
        let burned_insns = burns[event.process as usize - 1][event.task as usize];
        check!(
            counting.agrees(event.retired_insns, burned_insns),
            "burned {burned_insns}, but: {}",
            line(event)
        );
        counted_insns += event.retired_insns;
    }
    let burned_insns: u64 = burns.iter().flatten().sum();
    println!("{burned_insns} burned, {counted_insns} counted");
    let over_insns = u64::from(PROCESSES * TASKS) * OVERHEAD_INSNS;
    check!(
        counting.agrees_within(over_insns, counted_insns, burned_insns),
        "burned {burned_insns}, {counted_insns} were counted\n{log}"
    );
    let met_running = node
        .of(EventKind::PlanInstalled)
        .iter()
        .filter(|plan| ended.iter().any(|end| end.seq > plan.seq))
        .count();
    println!("{met_running} plans came while tasks ran");
    check!(
        met_running as u64 > SWAPS / 2,
        "too few swaps met a running plan\n{log}"
    );
    Ok(())
}

/// All tasks, those of different processes in any order, in slots that are too
/// short or too long.
fn random_plan(mut plan: Plan, random: &mut Random, burns: &[Vec<u64>]) -> Plan {
    let mut next = vec![0; burns.len()];
    loop {
        let open: Vec<usize> = (0..burns.len())
            .filter(|&process| next[process] < burns[process].len())
            .collect();
        if open.is_empty() {
            return plan;
        }
        let process = random.one_of(&open);
        let task = next[process];
        let length_insns = burns[process][task] * random.between(60, 150) / 100;
        plan = plan.slot(process as u32 + 1, task as u32, length_insns);
        next[process] += 1;
    }
}
