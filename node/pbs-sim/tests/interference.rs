// SPDX-License-Identifier: GPL-2.0
//! Tasks on different CPUs that slow each other. One instruction takes a nanosecond
//! alone.

mod common;

use common::{ended, of_kind, plan, run, run_with};
use pbs_core::EventKind;
use pbs_interference::{planned_on_clock_insns, Entry, Fluid, Key, Lane, Level, Sharing, Task};
use pbs_plan::{from_toml, Config, Plan};
use pbs_random::Random;
use pbs_sim::{Interference, Options, Resolution, Simulation, Timing};

/// Options with slow-downs between processes, given as victim, aggressor and factor.
fn slowed(plan: &Plan, pairs: &[(u32, u32, f64)]) -> Options {
    let entries = pairs.iter().map(|&(victim, aggressor, slowdown)| Entry {
        victim: victim.to_string(),
        beside: vec![(Level::Node, aggressor.to_string())],
        slowdown,
        low: slowdown,
        high: slowdown,
        samples: 10,
    });
    let entries: Vec<_> = entries.collect();
    Options {
        interference: Some(Interference::of_plan(plan, &entries, Sharing::default())),
        ..Options::default()
    }
}

/// CPU 1 after CPU 0.
fn cpus(text: &str) -> Plan {
    let mut plan = plan(text);
    for (cpu, number) in plan.cpus.iter_mut().zip(0..) {
        cpu.cpu = number;
    }
    plan
}

const T7: &str = "1: 60000000\n2: 100000000\nslots: 1\nslots: 2";

#[test]
fn a_task_alone_again_runs_at_full_speed() {
    let plan = cpus(T7);
    assert_eq!(ended(&run(&plan)), [(1, 0, 60_000_000), (2, 0, 100_000_000)]);
    let options = slowed(&plan, &[(1, 2, 2.0), (2, 1, 1.25)]);
    let simulation = run_with(&plan, &options);
    assert_eq!(ended(&simulation), [(1, 0, 120_000_000), (2, 0, 124_000_000)]);
    // Lengths are in instructions, and stay.
    let cpus = &simulation.cpus;
    let retired: Vec<_> = cpus.iter().map(|cpu| cpu.retired_insns).collect();
    assert_eq!(retired, [60_000_000, 100_000_000]);
    assert_eq!(cpus[1].running_ns, 124_000_000);
    assert!(simulation.ended());
}

#[test]
fn without_slowdowns_nothing_changes() {
    let text = "1: 40000000 60000000/70000000\n2: 100000000 20000000/25000000\n3: 7000000\n\
                slots: 1 i3000000 1\nslots: 2 3 2";
    let mut plan = cpus(text);
    plan.config = Some(Config::DEFAULT);
    let told = |simulation: &Simulation| format!("{simulation:?}");
    let before = told(&run(&plan));
    for pairs in [&[][..], &[(1, 2, 1.0), (2, 1, 1.0)], &[(8, 9, 2.0)]] {
        let simulation = run_with(&plan, &slowed(&plan, pairs));
        assert_eq!(told(&simulation), before);
    }
    assert_ne!(told(&run_with(&plan, &slowed(&plan, &[(1, 2, 1.5)]))), before);
}

/// M1, C1 on CPU 0; what CPU 1 runs first decides.
#[test]
fn the_order_on_one_cpu_decides_for_the_other() {
    let pairs = [(1, 3, 1.8), (3, 1, 1.8), (1, 4, 1.1), (3, 2, 1.1)];
    let all = "1: 100000000\n2: 100000000\n3: 100000000\n4: 100000000\n";
    for (slots, makespan_us) in [("3 4", 280_000), ("4 3", 216_364)] {
        let mut plan = cpus(&format!("{all}slots: 1 2\nslots: {slots}"));
        // Nothing but what is planned is to happen.
        plan.config = Some(Config { thresholds: 0, ..common::config() });
        let simulation = run_with(&plan, &slowed(&plan, &pairs));
        assert_eq!((simulation.ended_ns() + 500) / 1000, makespan_us, "{slots}");
    }
}

/// A slowed process retires its planned instructions, but later than its slot allows.
#[test]
fn slowed_tasks_need_a_raised_ceiling() {
    let text = "1: 1000000000\n2: 1000\n3: 5000000000\nslots: 1 2\nslots: 3";
    let mut plan = cpus(text);
    plan.config = Some(Config::DEFAULT);
    let options = slowed(&plan, &[(1, 3, 2.5)]);
    let simulation = run_with(&plan, &options);
    let ceiling = of_kind(&simulation, EventKind::Ceiling);
    assert_eq!(ceiling[0].process, 1);
    assert_eq!(ceiling[0].value, 2_010_000_000);
    assert_eq!(1_000_000_000 - ceiling[0].retired_insns, 196_000_000);
    // Without the other there is none.
    assert!(of_kind(&run(&plan), EventKind::Ceiling).is_empty());

    let now = Config::DEFAULT.ceiling_factor_permille;
    let worst = options.interference.as_ref().map(|of| of.slowdowns.worst());
    let raised = pbs_interference::ceiling_factor_permille(worst.unwrap_or(1.0), 50, now);
    plan.config = Some(Config { ceiling_factor_permille: raised, ..Config::DEFAULT });
    let simulation = run_with(&plan, &slowed(&plan, &[(1, 3, 2.5)]));
    assert!(of_kind(&simulation, EventKind::Ceiling).is_empty());
    assert_eq!(ended(&simulation)[0], (1, 0, 2_500_000_000 + 26 * 5_000_000));
}

/// On the clock tier a task that is slowed by half counts 1.5·10⁹ of 10⁹.
#[test]
fn lengths_are_planned_longer_on_the_clock_tier() {
    let run_planned = |planned: u64| {
        let text = format!("1: {planned}/1500000000 1000\n2: 1000\nslots: 1 2 1");
        let mut plan = cpus(&text);
        plan.config = Some(Config { t1_spares_last_slot: 0, ..Config::DEFAULT });
        run_with(&plan, &Options::default())
    };
    let preempted = of_kind(&run_planned(1_000_000_000), EventKind::Preempted);
    assert_eq!(preempted[0].value, 1_050_000_000);
    let planned = planned_on_clock_insns(1_000_000_000, 1.5);
    assert_eq!(planned, 1_500_000_000);
    assert!(of_kind(&run_planned(planned), EventKind::Preempted).is_empty());
}

/// Two cores in step, one idle slot: late processes fill it and run beside the other
/// all the same.
#[test]
fn an_idle_slot_does_not_isolate() {
    let text = "1: 50000000/100000000\n2: 1000\n3: 100000000\nslots: 1 2 i50000000\nslots: 3";
    let mut plan = cpus(text);
    plan.config = Some(Config { t1_spares_last_slot: 0, ..common::config() });
    let options = slowed(&plan, &[(1, 3, 2.0), (3, 1, 2.0)]);
    let simulation = run_with(&plan, &options);
    let third = simulation.processes.iter().find(|process| process.id == 3);
    // Longer than beside its first slot alone, 50 ms of which take it 50 more.
    let ended_ns = third.and_then(|process| process.ended_ns).unwrap_or(0);
    assert!(ended_ns > 170_000_000, "{ended_ns}");
}

/// Fluid timing of plans equals the result of the policy if no process is late.
#[test]
fn fluid_timing_and_the_simulator_agree() {
    let mut random = Random::new(33);
    for round in 0..40 {
        let (mut text, mut slots, mut lanes) = (String::new(), String::new(), Vec::new());
        let (mut tasks, mut number) = (Vec::new(), 0);
        for cpu in 0..2 + round % 2 {
            let mut order = Vec::new();
            let mut ids = Vec::new();
            for _ in 0..1 + random.next() % 4 {
                let insns = 1_000_000 + random.next() % 200_000_000;
                text.push_str(&format!("{number}: {insns}\n"));
                let key = Key { fingerprint: number, ..Key::default() };
                tasks.push(Task { key, alone_ns: insns, ..Task::default() });
                ids.push(number.to_string());
                order.push(number as usize);
                number += 1;
            }
            slots.push_str(&format!("slots: {}\n", ids.join(" ")));
            lanes.push(Lane { cpu, order, fixed: 0 });
        }
        let mut plan = cpus(&(text + &slots));
        plan.config = Some(Config {
            thresholds: 0,
            ceiling_factor_permille: 100_000,
            window_period_ns: 10_000_000_000,
            window_unallocated_ns: 100_000_000,
            ..Config::DEFAULT
        });
        let mut pairs = Vec::new();
        for victim in 0..number as u32 {
            for aggressor in 0..number as u32 {
                let slowdown = 1.0 + (random.next() % 1500) as f64 / 1000.0;
                pairs.push((victim, aggressor, slowdown));
            }
        }
        let options = slowed(&plan, &pairs);
        let simulation = run_with(&plan, &options);
        let of = options.interference.as_ref().expect("it was given");
        let timing = Fluid::new(&tasks, &of.slowdowns, &of.sharing).time(&lanes);
        let timing = timing.expect("it ends");
        for task in &simulation.tasks {
            let (_, fluid_ns) = timing.times[task.process as usize].expect("it is on a lane");
            let ended_ns = task.ended_ns.expect("it ended");
            // Rates are whole instructions in a millisecond.
            let off_ns = ended_ns.abs_diff(fluid_ns);
            assert!(off_ns < 10_000, "round {round}: {task:?}, {fluid_ns}");
        }
    }
}

/// With a coarse clock and times of its own the node still does all there is to do.
#[test]
fn slowdowns_work_together_with_waits_memory_and_a_coarse_clock() {
    let text = "plan_id = 1
memory_bytes = 1000
[[process]]
id = 1
name = \"a\"
memory_bytes = 800
tasks = [30_000_000, 30_000_000]
[[process]]
id = 2
name = \"b\"
memory_bytes = 800
tasks = [{ planned_insns = 20_000_000, wait_insns = 5_000_000 }, { planned_insns = 40_000_000, after = [\"a/0\"] }]
[[cpu]]
cpu = 0
slots = [\"a\", \"a\"]
[[cpu]]
cpu = 1
slots = [\"b\", \"b\"]
";
    let plan = from_toml(text).unwrap();
    for resolution in [Resolution::Event, Resolution::Tick] {
        let mut before = 0;
        for slowdown in [1.0, 1.5, 3.0] {
            let options = Options {
                resolution,
                timing: Timing { timer_delay_insns: 1000, look_ns: 2000, switch_ns: 3000 },
                memory_over: pbs_sim::MemoryOver::Swap { slowdown: 5 },
                ..slowed(&plan, &[])
            };
            let entry = |victim: &str, by: &str| Entry {
                victim: victim.into(),
                beside: vec![(Level::Node, by.into())],
                slowdown,
                low: slowdown,
                high: slowdown,
                samples: 1,
            };
            let entries = [entry("a/0", "b"), entry("b", "a")];
            let options = Options {
                interference: Some(Interference::of_plan(&plan, &entries, Sharing::default())),
                ..options
            };
            let simulation = run_with(&plan, &options);
            assert!(simulation.ended());
            let ended_ns = simulation.ended_ns();
            assert!(ended_ns > before, "{slowdown}: {ended_ns}");
            before = ended_ns;
        }
    }
}
