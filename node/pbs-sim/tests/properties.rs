// SPDX-License-Identifier: GPL-2.0
//! Properties that hold for the simulation of any plan.

mod common;

use std::collections::HashMap;

use pbs_core::wire::MAX_SLOT_INSNS;
use pbs_plan::{
    After, Config, Cpu, Dispatch, IdlePolicy, Plan, PreemptionWay, Process, Slot, Task, Threshold,
};
use pbs_sim::{simulate, JobScheduler, NoAnswer, Options, Resolution, Simulation, Stretch, Timing};
use pbs_uapi::EventKind;
use proptest::prelude::*;

/// Tasks from 2/3 early to 1/2 late, or four times over.
fn task() -> impl Strategy<Value = Task> {
    let real = prop_oneof![9 => 333u64..1500, 1 => Just(4000)];
    let wait = prop_oneof![4 => Just(None), 1 => (1u64..20_000_000).prop_map(Some)];
    (1u64..60_000_000, real, wait).prop_map(|(planned_insns, permille, wait_insns)| Task {
        planned_insns,
        real_insns: Some(planned_insns * permille / 1000),
        wait_insns,
        ..Task::default()
    })
}

fn config() -> impl Strategy<Value = Config> {
    (
        0..=Threshold::ALL_BITS,
        0..IdlePolicy::ALL.len() as u64,
        0..PreemptionWay::ALL.len() as u64,
        prop_oneof![Just(0), 1_000_000..100_000_000u64],
        0u64..3,
        (0u64..2, prop::sample::select(&Dispatch::ALL[..])),
    )
        .prop_map(
            |(thresholds, idle_policy, preemption_way, idle_piece_ns, scale, (idle, dispatch))| {
                Config {
                    thresholds,
                    idle_policy,
                    preemption_way,
                    idle_piece_ns,
                    idle_is_lateness: idle,
                    dispatch: dispatch as u64,
                    // More signals, and answers that come soon or at once.
                    t2_min_process_ns: Config::DEFAULT.t2_min_process_ns >> (4 * scale),
                    reschedule_time_ns: [10_000_000, 100_000, 0][scale as usize],
                    stress_reset: 50 >> (2 * scale),
                    max_preemptions: 5 - 2 * scale,
                    ..Config::DEFAULT
                }
            },
        )
}

prop_compose! {
    fn plan()(
        tasks in prop::collection::vec(prop::collection::vec(task(), 1..8), 1..6),
        buffers in prop::collection::vec(0u64..200_000_000, 6),
        deadlines in prop::collection::vec(prop::option::weighted(0.8, 0u64..2_000_000_000), 6),
        config in config(),
    )(
        slots in slots(&tasks),
        tasks in Just(tasks),
        buffers in Just(buffers),
        deadlines in Just(deadlines),
        config in Just(config),
    ) -> Plan {
        let processes = tasks.into_iter().zip(buffers.into_iter().zip(deadlines)).zip(0..);
        let processes = processes.map(|((tasks, (buffer_insns, deadline_ns)), id)| Process {
            id: 3 * id + 1,
            buffer_insns,
            deadline_ns,
            tasks: tasks.into_iter().zip(0..).map(|(task, id)| Task { id, ..task }).collect(),
            ..Process::default()
        });
        Plan {
            plan_id: 1,
            config: Some(config),
            processes: processes.collect(),
            cpus: vec![Cpu { slots, ..Cpu::default() }],
            ..Plan::default()
        }
    }
}

prop_compose! {
    /// Plans in which the CPU and the processes declare rates, some of them 0.
    fn rated()(
        mut plan in plan(),
        cpu in prop::sample::select(RATES),
        processes in prop::collection::vec(prop::sample::select(RATES), 6),
    ) -> Plan {
        plan.cpus[0].rate_insns_per_ms = cpu;
        for (process, rate_insns_per_ms) in plan.processes.iter_mut().zip(processes) {
            process.rate_insns_per_ms = rate_insns_per_ms;
        }
        plan
    }
}

const RATES: &[u64] = &[0, 125_000, 333_333, 900_000, 2_000_000];

prop_compose! {
    /// Plans on several CPUs, with tasks that wait for others.
    fn net()(
        plan in plan(),
        cpus in 1..4usize,
    )(
        edges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
        cpus in Just(cpus),
        mut plan in Just(plan),
    ) -> Plan {
        // Along this order there is no circle.
        let mut tasks: Vec<(usize, usize)> = plan.processes.iter().enumerate()
            .flat_map(|(process, known)| (0..known.tasks.len()).map(move |task| (task, process)))
            .collect();
        tasks.sort_unstable();
        for (one, other) in edges {
            let (one, other) = (one.index(tasks.len()), other.index(tasks.len()));
            let (after_task, after) = tasks[one.min(other)];
            let (task, process) = tasks[one.max(other)];
            let after = After {
                process: plan.processes[after].id,
                task: plan.processes[after].tasks[after_task].id,
                ..After::default()
            };
            let waits = &mut plan.processes[process].tasks[task].after;
            if after.process != 3 * process as u32 + 1 && !waits.contains(&after) {
                waits.push(after);
            }
        }
        let slots = std::mem::take(&mut plan.cpus[0].slots);
        let on = |cpu| move |slot: &Slot| match slot {
            Slot::Process { process } => process % cpus == cpu,
            Slot::Idle { .. } => cpu == 0,
        };
        plan.cpus = (0..cpus)
            .map(|cpu| Cpu {
                cpu: cpu as u32,
                slots: slots.iter().copied().filter(on(cpu)).collect(),
                ..Cpu::default()
            })
            .filter(|cpu| cpu.slots.iter().any(|slot| matches!(slot, Slot::Process { .. })))
            .collect();
        plan
    }
}

/// The slots of the tasks in any order, some idle ones between.
fn slots(tasks: &[Vec<Task>]) -> impl Strategy<Value = Vec<Slot>> {
    let mut slots = Vec::new();
    for (process, tasks) in tasks.iter().enumerate() {
        slots.extend(tasks.iter().map(|_| Slot::Process { process }));
    }
    for number in 0..slots.len() as u64 / 4 {
        slots.push(Slot::Idle { length_insns: 1_000_000 + 9_000_000 * number, real_insns: None });
    }
    Just(slots).prop_shuffle()
}

fn options() -> impl Strategy<Value = Options> {
    let rates = prop_oneof![Just(1_000_000u64), Just(250_000), Just(333_333), Just(3_100_000)];
    (rates, any::<bool>(), 0u64..50_000, 0u64..20_000, any::<bool>()).prop_map(
        |(rate_insns_per_ms, tick, timer_delay_insns, switch_ns, linux_is_idle)| Options {
            linux_is_idle,
            rate_insns_per_ms,
            resolution: if tick { Resolution::Tick } else { Resolution::Event },
            timing: Timing { timer_delay_insns, look_ns: switch_ns / 10, switch_ns },
            ..Options::default()
        },
    )
}

fn check(plan: &Plan, simulation: &Simulation) {
    // Every task ended, once, in order, with its real length.
    assert!(simulation.ended());
    let real: HashMap<_, _> = plan
        .processes
        .iter()
        .flat_map(|process| process.tasks.iter().map(move |task| ((process.id, task.id), task)))
        .collect();
    assert_eq!(simulation.tasks.len(), real.len());
    for task in &simulation.tasks {
        let known = real[&(task.process, task.task)];
        assert_eq!(Some(task.retired_insns), known.real_insns);
        assert_eq!(task.real_insns, task.retired_insns);
        assert_eq!(task.planned_insns, known.planned_insns);
        assert!(task.ended_ns.is_some());
    }
    let mut last: HashMap<u32, u32> = HashMap::new();
    for event in &simulation.events {
        if event.kind == EventKind::TaskEnded as u16 {
            let before = last.insert(event.process, event.task);
            assert!(before.is_none_or(|before| before < event.task));
            let task = real[&(event.process, event.task)];
            assert_eq!(Some(event.retired_insns), task.real_insns);
        }
    }
    // Time adds up.
    let cpu = &simulation.cpus[0];
    assert_eq!(cpu.running_ns + cpu.lost_ns + cpu.idle_ns + cpu.unallocated_ns, cpu.ended_ns);
    assert!(cpu.running_unallocated_ns <= cpu.running_ns);
    let retired: u64 = simulation.tasks.iter().map(|task| task.retired_insns).sum();
    assert_eq!(cpu.retired_insns, retired);
    let in_order = simulation.events.windows(2);
    assert!(in_order
        .into_iter()
        .all(|pair| pair[0].time_ns <= pair[1].time_ns && pair[0].seq + 1 == pair[1].seq));
    for process in &simulation.processes {
        let tasks = simulation.tasks.iter();
        let ends = tasks.filter(|task| task.process == process.id);
        assert_eq!(process.ended_ns, ends.filter_map(|task| task.ended_ns).max());
        assert_eq!(process.kept, process.ended_ns.unwrap() <= process.deadline_ns);
    }
}

fn schedulers() -> [Box<dyn JobScheduler>; 2] {
    [Box::new(NoAnswer), Box::new(Stretch::default())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_task_ends_and_all_adds_up(plan in plan(), options in options()) {
        prop_assert!(pbs_plan::check(&plan).is_ok());
        for mut scheduler in schedulers() {
            let simulation = simulate(&plan, &options, &mut *scheduler).unwrap();
            check(&plan, &simulation);
            if options.rate_insns_per_ms == 1_000_000 {
                let cpu = &simulation.cpus[0];
                prop_assert_eq!(cpu.running_ns, cpu.retired_insns);
            }
        }
    }

    /// States at ticks change nothing, and each is the state at which a simulation stops at that
    /// tick.
    #[test]
    fn each_tick_has_the_state_at_which_a_simulation_stops_there(
        plan in prop_oneof![rated(), net()],
        options in options(),
        every_ns in 1_000_000u64..8_000_000,
        of in any::<prop::sample::Index>(),
    ) {
        let noting = Options { note_every_ns: Some(every_ns), ..options.clone() };
        for scheduler in 0..schedulers().len() {
            let simulated = |options| {
                let scheduler = &mut schedulers()[scheduler];
                simulate(&plan, options, &mut **scheduler).unwrap()
            };
            let (silent, noted) = (simulated(&options), simulated(&noting));
            prop_assert_eq!(&silent.events, &noted.events);
            prop_assert_eq!(&silent.held, &noted.held);
            for cpu in &silent.cpus {
                let here = noted.ticks.iter().filter(|state| state.cpu == cpu.cpu);
                prop_assert_eq!(here.count() as u64, cpu.ended_ns / every_ns);
            }
            if noted.ticks.is_empty() {
                continue;
            }
            let tick = of.get(&noted.ticks);
            let until = Options { limit_ns: Some(tick.now_ns), ..options.clone() };
            let stopped = simulated(&until).held;
            let stopped = stopped.iter().find(|state| state.cpu == tick.cpu);
            prop_assert_eq!(Some(tick), stopped);
        }
    }

    /// The CPU idles only while no process can run, if slots float. Unallocated time is used if
    /// Linux has nothing to run.
    #[test]
    fn no_time_is_unused_where_slots_float(mut plan in plan(), linux_is_idle in any::<bool>()) {
        let config = plan.config.unwrap();
        plan.config = Some(Config { dispatch: Dispatch::Deadline as u64, ..config });
        for task in plan.processes.iter_mut().flat_map(|process| &mut process.tasks) {
            task.wait_insns = None;
        }
        let options = Options { linux_is_idle, ..Options::default() };
        for mut scheduler in schedulers() {
            let simulation = simulate(&plan, &options, &mut *scheduler).unwrap();
            check(&plan, &simulation);
            let cpu = &simulation.cpus[0];
            prop_assert_eq!(cpu.idle_ns, 0);
            prop_assert!(!linux_is_idle || cpu.unallocated_ns == 0);
            prop_assert_eq!(cpu.running_ns, cpu.retired_insns);
        }
    }

    #[test]
    fn each_process_takes_the_time_of_its_rate(plan in rated(), options in options()) {
        prop_assert!(pbs_plan::check(&plan).is_ok());
        let mut least_ns = 0;
        for process in &plan.processes {
            let rates = [process.rate_insns_per_ms, plan.cpus[0].rate_insns_per_ms];
            let rate = rates.into_iter().find(|&rate| rate != 0);
            let rate = rate.unwrap_or(options.rate_insns_per_ms);
            let real_insns = process.tasks.iter().filter_map(|task| task.real_insns);
            least_ns += real_insns.map(|insns| insns * 1_000_000 / rate).sum::<u64>();
        }
        for mut scheduler in schedulers() {
            let simulation = simulate(&plan, &options, &mut *scheduler).unwrap();
            check(&plan, &simulation);
            // Each time that it is looked at up to one instruction is rounded away.
            let running_ns = simulation.cpus[0].running_ns;
            let most_ns = least_ns + least_ns / 100 + 1_000_000;
            prop_assert!((least_ns..most_ns).contains(&running_ns), "{running_ns} {least_ns}");
        }
    }

    /// No task begins before those have ended that it waits for, on whichever CPU.
    #[test]
    fn no_task_begins_before_those_it_waits_for(plan in net(), timing in options()) {
        prop_assert!(pbs_plan::check(&plan).is_ok());
        let options = Options { rate_insns_per_ms: 1_000_000, ..timing };
        for mut scheduler in schedulers() {
            let simulation = simulate(&plan, &options, &mut *scheduler).unwrap();
            prop_assert!(simulation.ended());
            let outcomes: HashMap<_, _> = simulation.tasks.iter()
                .map(|task| ((task.process, task.task), task))
                .collect();
            for process in &plan.processes {
                for task in &process.tasks {
                    let outcome = outcomes[&(process.id, task.id)];
                    prop_assert_eq!(Some(outcome.retired_insns), task.real_insns);
                    for after in &task.after {
                        let before = outcomes[&(after.process, after.task)];
                        let begun_ns = outcome.ended_ns.unwrap() - outcome.retired_insns;
                        prop_assert!(before.ended_ns.unwrap() <= begun_ns, "{:?}", task);
                    }
                }
            }
            let in_order = simulation.events.windows(2);
            prop_assert!(in_order.into_iter().all(|pair| pair[0].time_ns <= pair[1].time_ns));
        }
    }

    #[test]
    fn the_same_again_is_the_same(plan in plan(), options in options()) {
        let run = || simulate(&plan, &options, &mut Stretch::default()).unwrap();
        let (first, second) = (run(), run());
        prop_assert_eq!(first.events, second.events);
        prop_assert_eq!(first.cpus, second.cpus);
    }

    #[test]
    fn the_limit_stops_everything(plan in plan(), permille in 1u64..1000) {
        let whole = simulate(&plan, &Options::default(), &mut NoAnswer).unwrap();
        let limit_ns = whole.ended_ns() * permille / 1000;
        let options = Options { limit_ns: Some(limit_ns), ..Options::default() };
        let part = simulate(&plan, &options, &mut NoAnswer).unwrap();
        prop_assert!(!part.ended());
        prop_assert_eq!(part.ended_ns(), limit_ns);
        // It is the beginning of the whole.
        prop_assert_eq!(&part.events[..], &whole.events[..part.events.len()]);
        let retired: u64 = part.tasks.iter().map(|task| task.retired_insns).sum();
        prop_assert_eq!(retired, part.cpus[0].retired_insns);
    }

    /// If no slot is ended by t1 or the clock, the result does not depend on when the node checks.
    #[test]
    fn ticks_matter_only_to_what_is_late(mut plan in plan()) {
        plan.config = Some(common::config());
        for process in &mut plan.processes {
            for task in &mut process.tasks {
                task.real_insns = task.real_insns.map(|real| real.min(task.planned_insns));
                task.wait_insns = None;
            }
        }
        let slots = &mut plan.cpus[0].slots;
        slots.retain(|slot| matches!(slot, Slot::Process { .. }));
        let tick = Options { resolution: Resolution::Tick, ..Options::default() };
        let tick = simulate(&plan, &tick, &mut NoAnswer).unwrap();
        let event = simulate(&plan, &Options::default(), &mut NoAnswer).unwrap();
        prop_assert_eq!(tick.events, event.events);
    }

    /// And a slot that ends by t1 ends at t1 where the node looks at the event,
    /// and at the next tick where it has only that.
    #[test]
    fn t1_is_noticed_when_the_node_looks(mut plan in plan()) {
        plan.config = Some(common::config());
        for task in plan.processes.iter_mut().flat_map(|process| &mut process.tasks) {
            task.wait_insns = None;
        }
        let tick_ns = common::config().nominal_tick_ns;
        for resolution in [Resolution::Event, Resolution::Tick] {
            let options = Options { resolution, ..Options::default() };
            let simulation = simulate(&plan, &options, &mut NoAnswer).unwrap();
            let mut began_ns = 0;
            let mut count_ended_ns = 0;
            for event in &simulation.events {
                match EventKind::from_raw(event.kind) {
                    Some(EventKind::Grant) => began_ns = event.time_ns,
                    Some(EventKind::TaskEnded) => count_ended_ns = event.time_ns,
                    Some(EventKind::Preempted) => {
                        let count_insns = event.time_ns - began_ns;
                        if resolution == Resolution::Event {
                            prop_assert_eq!(count_insns, event.value);
                        } else {
                            // A decision is also made where a task ends.
                            let looked = event.time_ns % tick_ns == 0 || event.time_ns == count_ended_ns;
                            prop_assert!(looked);
                            prop_assert!(count_insns >= event.value);
                            prop_assert!(count_insns < event.value + tick_ns);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn answers_never_make_lengths_that_no_plan_may_have(plan in plan(), late_permille in 1u64..1_000_000) {
        let mut stretch = Stretch { late_permille, early_permille: 1 };
        let options = Options { limit_ns: Some(20_000_000_000), ..Options::default() };
        let simulation = simulate(&plan, &options, &mut stretch).unwrap();
        let plans = simulation.replans.iter().map(|replan| &replan.plan);
        let tasks = plans.flat_map(|plan| plan.processes.iter().flat_map(|process| &process.tasks));
        for task in tasks {
            prop_assert!((1..=MAX_SLOT_INSNS).contains(&task.planned_insns));
        }
    }
}
