// SPDX-License-Identifier: GPL-2.0
//! A counter that fails while a plan runs is replaced until it can be had again.
//!
//! The faults are made by the plan process itself, in the middle of its slot:
//! on one CPU nobody else runs then, and only there are counts exact.

use std::fs;
use std::io::Read;
use std::os::fd::FromRawFd;

use pbs_uapi::{Event, EventKind, Grant, Tier, TierCause};

use super::{
    agrees, by_the_clock, executes, executes_exactly, is_about, is_exact, needs_pmu, tier_pmu,
    tier_pmu_overflow, BACKSTOP_INSNS, BURNS,
};
use crate::harness::{
    burn, cvt, kernel_is_watched, line, overshoot_limit_insns, set_sysfs, sysfs, sysfs_number,
    Context, Node, Plan, Scene, Verdict, OVERHEAD_INSNS,
};
use crate::linux::scene::eventually;
use crate::policy_cpus::uncounted;
use crate::{check, check_eq};

/// The longest that a stopped counter goes unnoticed: 20 ms and a few ticks.
const UNNOTICED_INSNS: u64 = 10_000_000;

/// Instructions retired between two ticks, and somewhat more.
const TICK_INSNS: u64 = 1_250_000;

/// Values of the events of the tier for a counter that is taken, and returns.
const FALLS_AND_RETURNS: [(u64, u16); 2] =
    [(Tier::Clock as u64, TierCause::Taken as u16), (Tier::Pmu as u64, TierCause::Returned as u16)];

/// A word that names no fault is refused, and nothing happens.
pub fn unknown_fault_is_refused() -> Verdict {
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

pub fn stopped_counter_falls_and_returns() -> Verdict {
    let fallen = falls_to_the_clock("stop", TierCause::Stopped)?;
    let lost_insns = fallen.burned_insns.saturating_sub(fallen.counted_insns);
    println!("{lost_insns} instructions went uncounted");
    check!(lost_insns < UNNOTICED_INSNS, "{lost_insns} went uncounted\n{}", fallen.log);
    Ok(())
}

pub fn taken_counter_falls_and_returns() -> Verdict {
    let fallen = falls_to_the_clock("take", TierCause::Taken)?;
    // What was retired up to the next look, a tick at most, is lost.
    is_near(&fallen, TICK_INSNS)
}

pub fn multiplexed_counter_falls_and_returns() -> Verdict {
    let fallen = falls_to_the_clock("multiplex", TierCause::Multiplexed)?;
    is_near(&fallen, TICK_INSNS)
}

/// Result of the process whose counter failed.
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
    check!(told.seq < preempted.seq, "told after the slot was over\n{log}");
    check_eq!(node.first(EventKind::Preempted, 2)?.slot, 2, "preempted slot of process 2\n{log}");
    for (process, burns) in (2..).zip(&BURNS[1..]) {
        for (task, &burned_insns) in (0..).zip(*burns) {
            is_about(&node.task_ended(process, task)?, burned_insns)?;
        }
    }
    let counted_insns = node.task_ended(1, 0)?.retired_insns;
    returns(&mut node, Tier::Pmu)?;
    executes_exactly(overshoot_limit_insns())?;
    Ok(Fallen { burned_insns: BEFORE_INSNS + AFTER_INSNS, counted_insns, log })
}

/// For a child: makes the counter fail between two loops.
fn fail_between(fault: &str, before_insns: u64, after_insns: u64) {
    burn(before_insns);
    set_sysfs("cpu0/fault", fault).expect("making the fault");
    burn(after_insns);
}

/// The first event of the tier says this; at most the return follows it, as the plan is over.
fn tells(node: &Node, tier: Tier, cause: TierCause) -> Result<Event, String> {
    let told = node.of(EventKind::Tier);
    check!((1..=2).contains(&told.len()), "{} events of the tier\n{}", told.len(), node.log());
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
    node.read_until(EventKind::Tier, 2)?;
    let told = node.of(EventKind::Tier)[1];
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
pub fn silent_counter_falls_and_returns() -> Verdict {
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
        preempted.iter().filter(|event| event.seq > told.seq).count() > 5,
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
    check!(beside_insns < 10 * OVERHEAD_INSNS, "{beside_insns} too many\n{log}");
    returns(&mut node, Tier::PmuOverflow)?;
    tier_pmu_overflow()
}

/// Without a plan there is no counter that could fail. If others have all of them when a plan comes
/// the clock counts; when they are free again the next plan has one.
pub fn counter_fails_without_a_plan() -> Verdict {
    needs_pmu();
    agrees(Tier::Pmu)?;
    let mut node = Node::open()?;
    for fault in ["stop", "take", "multiplex", "silence"] {
        let errno = fs::write("/sys/kernel/pbs/cpu0/fault", fault).map_err(|e| e.raw_os_error());
        check_eq!(errno, Err(Some(libc::ENODEV)), "errno of '{fault}'");
    }
    let held = Counters::hold_all(0)?;
    agrees(Tier::Pmu)?;
    by_the_clock(&executes()?)?;
    node.read()?;
    tells(&node, Tier::Clock, TierCause::Taken)?;
    // It is not used any more.
    returns(&mut node, Tier::Pmu)?;
    drop(held);
    eventually_free(0)?;
    agrees(Tier::Pmu)?;
    executes_exactly(overshoot_limit_insns())
}

/// Counters of a CPU's PMU that somebody else has.
struct Counters(Vec<fs::File>);

impl Counters {
    /// Takes all that are left, each for itself.
    fn hold_all(cpu: u32) -> Result<Self, String> {
        let mut counters = Vec::new();
        // More than any PMU has.
        while counters.len() < 64 {
            let mut counter = pinned_counter(cpu)?;
            // One that found no place on the PMU reads nothing.
            let mut value = [0; 8];
            if counter.read(&mut value).context("reading a counter")? == 0 {
                return Ok(Self(counters));
            }
            counters.push(counter);
        }
        Err("the PMU has counters without end".into())
    }
}

/// A counter of instructions for all that runs on a CPU.
fn pinned_counter(cpu: u32) -> Result<fs::File, String> {
    const PERF_TYPE_HARDWARE: u32 = 0;
    const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
    const PINNED: u64 = 1 << 2;
    // type and size, config, period, sample_type, read_format, flags: up to PERF_ATTR_SIZE_VER0.
    let mut attr = [0u64; 8];
    attr[0] = u64::from(PERF_TYPE_HARDWARE) | 64 << 32;
    attr[1] = PERF_COUNT_HW_INSTRUCTIONS;
    attr[5] = PINNED;
    // SAFETY: the attributes have the size that they name, and the new file is ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_perf_event_open, &attr, -1, cpu, -1, 0);
        let fd = cvt(fd as i32).context("perf_event_open")?;
        Ok(fs::File::from_raw_fd(fd))
    }
}

/// The class holds no counter of the CPU any more.
fn eventually_free(cpu: u32) -> Verdict {
    eventually("the class gives its counter back", || {
        sysfs_number(&format!("cpu{cpu}/counters")) == Ok(0)
    })
}

/// Each CPU that has a plan holds one counter as long as that goes on, and no other CPU any.
pub fn counters_belong_to_plans() -> Verdict {
    needs_pmu();
    let free = || -> Result<_, String> {
        let free = |cpu| Ok::<_, String>(Counters::hold_all(cpu)?.0.len());
        let held = |cpu: u32| sysfs_number(&format!("cpu{cpu}/counters"));
        Ok((free(0)?, free(1)?, held(0)?, held(1)?))
    };
    let before = free()?;
    let (all, timer_interrupts) = (before.0, sysfs_number("cpu1/timer_interrupts")?);
    check!(all > 1, "{all} counters");
    check_eq!(before, (all, all, 0, 0), "counters without a plan");
    check_eq!(timer_interrupts, 0, "the timer without a plan");

    let with_plan = (all, all - 1, 0, 1);
    let plan = Plan::new(3).cpu(1).idle(1_000_000).slot(1, 0, 1_000_000);
    // Its last slot may be one of a process, or an idle one.
    for plan in [plan, Plan::new(3).cpu(1).slot(1, 0, 1_000_000).idle(5_000_000)] {
        let mut scene = Scene::new()?;
        scene.process(1, |_| burn(500_000))?;
        let mut node = Node::open()?;
        node.load(&plan)?;
        check_eq!(free()?, with_plan, "counters with a plan");
        let mut scene = scene.attach_and_open()?;
        scene.node.read_until(EventKind::PlanEnded, 1)?;
        scene.finish()?;
        eventually_free(1)?;
        check_eq!(free()?, before, "counters after a plan");
        check_eq!(sysfs("cpu1/state")?, "ended", "state");
        node.read()?;
    }
    let node = Node::open()?;
    for id in 5..7 {
        node.load(&Plan::new(id).cpu(1).slot(1, 0, 1_000_000))?;
        check_eq!(free()?, with_plan, "counters with plan {id}");
    }
    node.device.drop_plan(1).context("drop")?;
    check_eq!(free()?, before, "counters after the plan was dropped");
    Ok(())
}

/// The counter fails in the middle of a long slot and works again in it: what the
/// process retires is counted by the clock between the two, and by the counter
/// before and after them.
pub fn counter_returns_in_a_slot() -> Verdict {
    const BEFORE_INSNS: u64 = 5_000_000;
    const AFTER_INSNS: u64 = 445_000_000;
    const NEXT: [u64; 2] = [4_500_000, 3_500_000];
    needs_pmu();
    agrees(Tier::Pmu)?;
    let plan = Plan::new(1)
        .lead_in()
        .slot(1, 0, BEFORE_INSNS + AFTER_INSNS)
        .slot(2, 0, 4_000_000)
        .slot(1, 1, 4_000_000)
        .slot(2, 1, 4_000_000)
        .slot(1, 2, 4_000_000);
    let mut scene = Scene::new()?;
    scene.process(1, |device| {
        fail_between("take", BEFORE_INSNS, AFTER_INSNS);
        for burned_insns in NEXT {
            device.task_end(None).expect("task end");
            burn(burned_insns);
        }
    })?;
    scene.tasks(2, BURNS[1])?;
    let node = scene.run(&plan)?;
    let log = node.log();

    let told = node.of(EventKind::Tier);
    let said: Vec<_> = told.iter().map(|event| (event.value, event.reason)).collect();
    check_eq!(said, FALLS_AND_RETURNS, "tiers and causes\n{log}");
    let ended = node.task_ended(1, 0)?;
    check!(told[1].seq < ended.seq, "the counter returned after the task\n{log}");
    check_eq!(
        node.grants(Grant::Slot),
        [(1, 1), (2, 2), (1, 3), (2, 4), (1, 5)],
        "granted slots\n{log}"
    );
    // What was retired up to the next look, a tick at most, is lost. By the clock the
    // kernel's own time is counted too.
    let by_clock_ns = told[1].time_ns - told[0].time_ns;
    let rate_insns_per_ms = sysfs_number("cpu0/rate_insns_per_ms")? as u64;
    let by_clock_insns = by_clock_ns * rate_insns_per_ms / 1_000_000;
    println!(
        "of {} instructions {by_clock_insns} by the clock; {} counted",
        BEFORE_INSNS + AFTER_INSNS,
        ended.retired_insns
    );
    // A watched kernel has measured the rate of the CPU with its own long interrupts.
    let (less, more) = if kernel_is_watched() { (10, 4) } else { (100, 20) };
    let least_insns = BEFORE_INSNS + AFTER_INSNS - TICK_INSNS - by_clock_insns / less;
    let most_insns = BEFORE_INSNS + AFTER_INSNS + by_clock_insns / more;
    check!(
        (least_insns..most_insns).contains(&ended.retired_insns),
        "{} were counted\n{log}",
        ended.retired_insns
    );
    // From then on all is as ever.
    for (task, burned_insns) in (1..).zip(NEXT) {
        is_exact(&node.task_ended(1, task)?, burned_insns)?;
    }
    for (task, &burned_insns) in (0..).zip(BURNS[1]) {
        is_exact(&node.task_ended(2, task)?, burned_insns)?;
    }
    for event in node.of(EventKind::Preempted) {
        let overshoot_insns = event.retired_insns.wrapping_sub(event.value);
        check!(
            overshoot_insns < overshoot_limit_insns(),
            "overshoot {overshoot_insns}: {}",
            line(&event)
        );
    }
    agrees(Tier::Pmu)
}

/// Two counters fail and work again while a plan process runs on each of their CPUs.
pub fn counters_of_two_cpus_return() -> Verdict {
    const BURN_INSNS: u64 = 300_000_000;
    needs_pmu();
    let mut plan = Plan::new(1).config(uncounted());
    let mut scene = Scene::new()?;
    for cpu in 0..2 {
        check_eq!(sysfs(&format!("cpu{cpu}/tier"))?, Tier::Pmu.name(), "tier");
        plan = plan.cpu(cpu).idle(20_000_000).slot(cpu, 0, BURN_INSNS);
        scene.process(cpu, |_| fail_before(cpu, BURN_INSNS))?;
    }
    let mut scene = scene.start(&plan)?;
    scene.node.read_until(EventKind::PlanEnded, 2)?;
    let node = scene.finish()?;
    let log = node.log();
    for cpu in 0..2 {
        let told: Vec<_> =
            node.of(EventKind::Tier).into_iter().filter(|event| event.cpu == cpu).collect();
        let said: Vec<_> = told.iter().map(|event| (event.value, event.reason)).collect();
        // The emulator may keep a CPU standing for so long that its counter seems to
        // have stopped once more.
        check!(
            said.starts_with(&FALLS_AND_RETURNS),
            "tiers and causes of CPU {cpu}: {said:?}\n{log}"
        );
        let ended = node.task_ended(cpu, 0)?;
        check!(told[1].seq < ended.seq, "the counter of CPU {cpu} returned after the task\n{log}");
        // The emulated counters, and the clock, go on while the other CPU is emulated.
        let least_insns = BURN_INSNS - BURN_INSNS / 100 - TICK_INSNS;
        check!(
            (least_insns..3 * BURN_INSNS).contains(&ended.retired_insns),
            "CPU {cpu}: burned {BURN_INSNS}, counted {}\n{log}",
            ended.retired_insns
        );
    }
    Ok(())
}

/// For a child: makes the counter of its CPU fail, then burns.
fn fail_before(cpu: u32, burn_insns: u64) {
    set_sysfs(&format!("cpu{cpu}/fault"), "take").expect("making the fault");
    burn(burn_insns);
}
