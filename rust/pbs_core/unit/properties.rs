// SPDX-License-Identifier: GPL-2.0

//! Properties of all plans and all processes.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::wire::{IDLE, NO_DEADLINE, NO_SLOT};
use crate::{
    Cause, Config, Dispatch, Event, EventKind, IdlePolicy, Plan, PreemptionWay, StdMemory,
    Threshold,
};

use super::driver::{Machine, Task, Work};
use super::random::cases;
use super::scene::CONFIG;
use super::text::{self, Cpu};

/// A slot and the task that was planned for it.
#[derive(Clone, Debug)]
struct Place {
    process: u32,
    length_insns: u64,
    /// The real length as a share of the planned one.
    real_permille: u64,
    block: Option<(u64, u64)>,
}

fn place(processes: u32, real: impl Strategy<Value = u64>) -> impl Strategy<Value = Place> {
    let process = prop_oneof![4 => 0..processes, 1 => Just(IDLE)];
    let length = prop_oneof![1..100u64, 1..20_000u64, 1..2_000_000u64];
    let block = option::weighted(0.2, (0..1_000_000u64, 1..3_000_000u64));
    (process, length, real, block).prop_map(|(process, length_insns, real_permille, block)| Place {
        process,
        length_insns,
        real_permille,
        block,
    })
}

fn config() -> impl Strategy<Value = Config> {
    let window = (1_000_000..20_000_000u64, 10..900u64);
    (
        1001..3000u64,
        0..100_000u64,
        0..=1000u64,
        1000..5000u64,
        window,
        (idle(), select(&Dispatch::ALL[..])),
    )
        .prop_map(
            |(sigma, limit, share, factor, (period_ns, unallocated_permille), (idle, dispatch))| {
                let config = Config {
                    sigma_t1_permille: sigma,
                    preemption_limit_ns: limit,
                    no_preemption_ns: limit * share / 1000,
                    ceiling_factor_permille: factor,
                    ceiling_extra_ns: 100_000,
                    window_period_ns: period_ns,
                    window_unallocated_ns: (period_ns * unallocated_permille).div_ceil(1000),
                    thresholds: Threshold::T1 as u64,
                    idle_policy: idle.0 as u64,
                    preemption_way: idle.1 as u64,
                    idle_piece_ns: idle.2,
                    dispatch: dispatch as u64,
                    ..CONFIG
                };
                assert_eq!(config.check(), Ok(()));
                config
            },
        )
}

/// Policy of idle slots, treatment of tasks that are preempted again, and pieces.
fn idle() -> impl Strategy<Value = (IdlePolicy, PreemptionWay, u64)> {
    let piece_ns = prop_oneof![1 => Just(0), 5 => 100_000..500_000u64];
    let ways = select(&PreemptionWay::ALL[..]);
    (select(&IdlePolicy::ALL[..]), ways, piece_ns)
}

/// [`config`] with all prediction failures; t2_process rises less than half as fast as the
/// lateness, for the buffers of [`plan`].
fn failure_config() -> impl Strategy<Value = Config> {
    let least = || prop_oneof![Just(0), 0..2000u64, 0..200_000u64];
    let t2_task = (1..2000u64, least(), least());
    let process = (1000..1490u64, 0..=1000u64, least(), least());
    let node = (1000..1500u64, 0..=300u64, 1..4u64, least());
    let stress = (0..100u64, least(), 100_000..1_000_000u64);
    let switches = (0..=Threshold::ALL_BITS, any::<bool>(), 0..=3u64);
    (config(), t2_task, process, node, stress, switches).prop_map(
        |(config, t2_task, process, node, stress, (bits, all, flags))| {
            let config = Config {
                sigma_t2_permille: config.sigma_t1_permille + t2_task.0,
                t2_spacer_ns: config.no_preemption_ns + 1 + t2_task.1,
                t2_task_signaling_limit_ns: config.preemption_limit_ns + 1 + t2_task.2,
                capacity_buffer_permille: process.0,
                available_plan_buffer_permille: process.1,
                reschedule_time_ns: process.2,
                t2_min_process_ns: process.3,
                tm2_node_lower_bound_ns: node.3,
                t2_message_ns: node.3,
                tm2_message_ns: process.3 / 8,
                timeliness_ns: node.3 / 2,
                t2_node_lateness_cap_permille: node.0,
                tm2_node_earliness_cap_permille: node.1,
                max_preemptions: node.2,
                stress_reset: stress.0,
                stress_gain_ns: stress.1,
                nominal_tick_ns: stress.2,
                thresholds: if all { Threshold::ALL_BITS } else { bits },
                idle_is_lateness: flags & 1,
                t1_spares_last_slot: flags >> 1,
                ..config
            };
            assert_eq!(config.check(), Ok(()));
            config
        },
    )
}

/// The plan with buffers up to the planned length of each process.
fn plan(
    slots: &[(u32, u64)],
    buffers_permille: &[u64],
    deadlines_ns: &[u64],
    edges: &[(usize, usize)],
) -> Plan<StdMemory> {
    let mut cpu = Cpu::numbered(0, slots);
    cpu.deadlines = (0..).zip(deadlines_ns.iter().copied()).collect();
    cpu.edges = text::edges(slots, edges);
    cpu.arrivals_ns = text::arrivals_ns(
        cpu.edges.len(),
        deadlines_ns.iter().fold(0, |sum, &ns| ns.wrapping_add(sum)),
    );
    for (id, buffer_insns) in &mut cpu.processes {
        let own = slots.iter().filter(|slot| slot.0 == *id);
        let planned_insns: u64 = own.map(|slot| slot.1).sum();
        *buffer_insns = planned_insns * buffers_permille[*id as usize] / 1000;
    }
    text::plan_of(cpu)
}

/// Parameters of a machine.
#[derive(Clone, Debug)]
struct Case {
    places: Vec<Place>,
    arrivals: Vec<u64>,
    buffers_permille: Vec<u64>,
    deadlines_ns: Vec<u64>,
    edges: Vec<(usize, usize)>,
    config: Config,
}

/// Deadlines that can't be kept, can be kept, are far, and none.
fn deadlines() -> impl Strategy<Value = Vec<u64>> {
    let deadline = prop_oneof![
        1 => Just(NO_DEADLINE),
        1 => 0..100_000u64,
        3 => 0..10_000_000u64,
        2 => 0..1_000_000_000u64,
    ];
    vec(deadline, 6)
}

/// Pairs of slots, the later of which waits.
fn edges() -> impl Strategy<Value = Vec<(usize, usize)>> {
    let slot = || 0..1000usize;
    prop_oneof![
        Just(Vec::new()),
        vec((slot(), slot()), 0..6),
        vec((slot(), slot()), 0..200)
    ]
}

fn case(place: impl Strategy<Value = Place>, most: usize) -> impl Strategy<Value = Case> {
    let arrival = prop_oneof![Just(0), 0..5_000_000u64];
    let buffer = prop_oneof![Just(0), 0..=1000u64];
    (
        vec(place, 0..most),
        vec(arrival, 6),
        vec(buffer, 6),
        deadlines(),
        edges(),
        failure_config(),
    )
        .prop_map(
            |(places, arrivals, buffers_permille, deadlines_ns, edges, config)| Case {
                places,
                arrivals,
                buffers_permille,
                deadlines_ns,
                edges,
                config,
            },
        )
}

impl Case {
    fn machine(&self, config: Config, delay_ns: u64) -> Machine {
        let slots = slots(&self.places);
        let plan = plan(
            &slots,
            &self.buffers_permille,
            &self.deadlines_ns,
            &self.edges,
        );
        let works = works(&with_last(self.places.clone()), &self.arrivals);
        Machine::new(plan, config, works, delay_ns)
    }

    /// A run under `config`, by a timer that is exact.
    fn ran(&self, config: Config) -> Machine {
        let mut machine = self.machine(config, 0);
        machine.run();
        machine.check_end();
        machine
    }

    /// All its events.
    fn run(&self, config: Config) -> Vec<Event> {
        self.ran(config).log.0
    }
}

fn is_signal(event: &Event) -> bool {
    [EventKind::Late, EventKind::Early, EventKind::Info].contains(&event.kind)
}

/// Whether the event reports an untimely task.
fn is_about_time(event: &Event) -> bool {
    [Cause::Start as u16, Cause::End as u16].contains(&event.reason)
}

/// The signals of `events` that are not about `off`.
fn without(events: &[Event], off: Threshold) -> Vec<Event> {
    let (early, late) = (EventKind::Early, EventKind::Late);
    let gone = |event: &Event| match off {
        Threshold::T1 => false,
        Threshold::T2Task => event.kind == late && event.reason == Cause::Task as u16,
        Threshold::T2Process => event.reason == Cause::Process as u16,
        Threshold::T2Node => event.kind != early && event.reason == Cause::Node as u16,
        Threshold::T2Preemptions => event.reason == Cause::Preemptions as u16,
        Threshold::Tm2Task => event.kind == early && event.reason == Cause::Task as u16,
        Threshold::Tm2Node => event.kind == early && event.reason == Cause::Node as u16,
        Threshold::Info => event.kind == EventKind::Info && !is_about_time(event),
        Threshold::T2Memory => {
            let causes = [Cause::Memory as u16, Cause::NodeMemory as u16];
            causes.contains(&event.reason)
        }
        Threshold::T2Message => event.kind != early && event.reason == Cause::Message as u16,
        Threshold::Tm2Message => event.kind == early && event.reason == Cause::Message as u16,
    };
    let signals = events.iter().copied().filter(is_signal);
    signals.filter(|event| !gone(event)).collect()
}

/// Time at which each failure of a process or of the node was reported.
fn held_back(events: &[Event]) -> Vec<((EventKind, u16, u32), u64)> {
    let failures = events.iter().filter(|event| event.kind != EventKind::Info);
    let by_stress = [Cause::Process as u16, Cause::Node as u16];
    failures
        .filter(|event| is_signal(event) && by_stress.contains(&event.reason))
        .map(|event| {
            let process = match event.reason {
                reason if reason == Cause::Process as u16 => event.process,
                _ => IDLE,
            };
            ((event.kind, event.reason, process), event.time_ns)
        })
        .collect()
}

/// The processes as they really are, by their index in the plan.
fn works(places: &[Place], arrivals: &[u64]) -> Vec<Work> {
    let mut ids: Vec<u32> = places.iter().map(|place| place.process).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|&id| id != IDLE);
    ids.into_iter()
        .map(|id| Work {
            arrival_ns: arrivals[id as usize],
            tasks: places
                .iter()
                .filter(|place| place.process == id)
                .map(|place| Task {
                    real_insns: (place.length_insns * place.real_permille / 1000).max(1),
                    block: place.block,
                })
                .collect(),
        })
        .collect()
}

fn slots(places: &[Place]) -> Vec<(u32, u64)> {
    let slots = places
        .iter()
        .map(|place| (place.process, place.length_insns));
    // At least one process.
    slots.chain([(0, 1000)]).collect()
}

fn with_last(mut places: Vec<Place>) -> Vec<Place> {
    places.push(Place {
        process: 0,
        length_insns: 1000,
        real_permille: 1000,
        block: None,
    });
    places
}

proptest! {
    #![proptest_config(cases(1500))]

    /// Whatever is late, early, blocked or absent, and whichever process waits: each task ends
    /// once, in order and after those it waits for, having retired what it really needs.
    #[test]
    fn every_task_ends_once_and_in_order(
        places in vec(place(6, 100..3000u64), 0..60),
        arrivals in vec(prop_oneof![Just(0), 0..5_000_000u64, 0..1_000_000_000u64], 6),
        config in config(),
        deadlines_ns in deadlines(),
        edges in edges(),
        delay_ns in prop_oneof![Just(0), 0..5000u64],
    ) {
        let plan = plan(&slots(&places), &[0; 6], &deadlines_ns, &edges);
        let mut machine = Machine::new(plan, config, works(&with_last(places), &arrivals), delay_ns);
        machine.run();
        machine.check_end();
    }

    /// With prediction failures, each report is true and made once, and nothing true is left
    /// unreported: the machine checks after every decision, and at every end of a task.
    #[test]
    fn signals_are_true_and_complete(
        case in case(place(6, 100..3000u64), 60),
        delay_ns in prop_oneof![Just(0), 0..5000u64],
    ) {
        let mut machine = case.machine(case.config, delay_ns);
        machine.run();
        machine.check_end();
    }

    /// Signals never change which process runs, and a threshold that is switched off changes no
    /// signal of the others.
    #[test]
    fn thresholds_are_independent(case in case(place(6, 100..3000u64), 40)) {
        let all = case.ran(Config { thresholds: Threshold::ALL_BITS, ..case.config });
        // A grant that does not last is reported before a signal, and otherwise not.
        let plain = |events: &[Event]| -> Vec<Event> {
            let plain = events.iter().filter(|event| !is_signal(event) && event.kind != EventKind::Grant);
            plain.copied().collect()
        };
        let none = case.ran(Config { thresholds: Threshold::T1 as u64, ..case.config });
        prop_assert_eq!(plain(&none.log.0), plain(&all.log.0));
        prop_assert_eq!(none.grants, &*all.grants);
        for off in Threshold::ALL {
            if off == Threshold::T1 {
                // That affects which process runs.
                continue;
            }
            let thresholds = Threshold::ALL_BITS & !(off as u64);
            let rest = case.ran(Config { thresholds, ..case.config });
            prop_assert_eq!(plain(&rest.log.0), plain(&all.log.0));
            prop_assert_eq!(rest.grants, &*all.grants);
            let signals: Vec<_> = rest.log.0.into_iter().filter(is_signal).collect();
            prop_assert_eq!(signals, without(&all.log.0, off));
        }
    }

    /// More stress reports nothing of a process or of the node earlier.
    #[test]
    fn more_stress_is_never_earlier(case in case(place(6, 100..3000u64), 40), more in 1..100u64) {
        let config = Config { thresholds: Threshold::ALL_BITS, ..case.config };
        let less = held_back(&case.run(config));
        let stress_reset = config.stress_reset + more;
        for (failure, later_ns) in held_back(&case.run(Config { stress_reset, ..config })) {
            let before = less.iter().find(|other| other.0 == failure);
            prop_assert!(before.is_some_and(|&(_, ns)| ns <= later_ns), "{failure:?}");
        }
    }

    /// If no process is late, blocked or absent, the order of execution is the plan.
    #[test]
    fn order_is_the_plan_when_all_is_as_planned(
        places in vec(place(6, 100..=1000u64), 0..60),
        config in config(),
    ) {
        let mut places = with_last(places);
        for place in &mut places {
            place.block = None;
        }
        let slots = slots(&places[..places.len() - 1]);
        let planned: Vec<u32> = slots.iter().map(|slot| slot.0).filter(|&id| id != IDLE).collect();
        let works = works(&places, &[0; 6]);
        let mut machine = Machine::new(text::plan(&slots), config, works, 0);
        machine.run();
        machine.check_end();
        let ended: Vec<u32> =
            machine.log.tasks(EventKind::TaskEnded).iter().map(|task| task.0).collect();
        prop_assert_eq!(ended, planned);
        let counts = machine.node.counts();
        prop_assert_eq!(counts.get(EventKind::Preempted), 0);
        prop_assert_eq!(counts.get(EventKind::Ceiling), 0);
    }

    /// A plan of one process without idle slots takes as long as its work.
    #[test]
    fn one_process_never_waits(places in vec(place(1, 100..3000u64), 0..60)) {
        let mut places = with_last(places);
        places.retain(|place| place.process != IDLE);
        for place in &mut places {
            place.block = None;
        }
        let slots = slots(&places[..places.len() - 1]);
        let works = works(&places, &[0]);
        let real_ns: u64 = works[0].tasks.iter().map(|task| task.real_insns).sum();
        let mut machine = Machine::new(text::plan(&slots), CONFIG, works, 0);
        prop_assert_eq!(machine.run(), real_ns);
        machine.check_end();
    }
}

/// Returns when each process ends its tasks, by deadlines alone.  Of the processes that are there,
/// the one whose task is due first has the CPU.  A task is due when what is planned after it can
/// still be retired.
fn ends_by_deadline(
    works: &[Work],
    planned: &[Vec<u64>],
    deadlines_ns: &[u64],
) -> Vec<(u64, usize)> {
    let mut now_ns = 0;
    let mut ended = Vec::new();
    let mut tasks = std::vec![0; works.len()];
    let mut retired_insns = std::vec![0; works.len()];
    loop {
        let left = |p: usize| tasks[p] < works[p].tasks.len();
        let due_ns = |p: usize| deadlines_ns[p] - planned[p][tasks[p] + 1..].iter().sum::<u64>();
        let there = (0..works.len()).filter(|&p| left(p) && works[p].arrival_ns <= now_ns);
        let first = there.min_by_key(|&p| due_ns(p));
        let arrivals = (0..works.len())
            .filter(|&p| left(p))
            .map(|p| works[p].arrival_ns);
        let next_ns = arrivals.filter(|&at_ns| at_ns > now_ns).min();
        let Some(p) = first else {
            match next_ns {
                Some(next_ns) => now_ns = next_ns,
                None => return ended,
            }
            continue;
        };
        let end_ns = now_ns + works[p].tasks[tasks[p]].real_insns - retired_insns[p];
        let until_ns = next_ns.map_or(end_ns, |next_ns| next_ns.min(end_ns));
        retired_insns[p] += until_ns - now_ns;
        now_ns = until_ns;
        if now_ns == end_ns {
            ended.push((now_ns, p));
            (tasks[p], retired_insns[p]) = (tasks[p] + 1, 0);
        }
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    /// The order is that of the deadlines, if nothing is late and all deadlines can be kept.
    #[test]
    fn order_is_that_of_the_deadlines(
        places in vec(place(6, 100..=1000u64), 0..60),
        arrivals in vec(prop_oneof![Just(0), 0..5_000_000u64], 6),
        deadlines in vec(0..1_000_000u64, 6),
    ) {
        let mut places = with_last(places);
        for place in &mut places {
            place.block = None;
        }
        // Far enough, and no two the same.
        let deadlines_ns: Vec<u64> = (0..).zip(deadlines).map(|(at, far)| 1_000_000_000 + 6 * far + at).collect();
        let slots = slots(&places[..places.len() - 1]);
        let plan = plan(&slots, &[0; 6], &deadlines_ns, &[]);
        let works = works(&places, &arrivals);
        let ids: Vec<u32> = plan.processes().iter().map(|process| process.id).collect();
        let of = |id: &u32| places.iter().filter(|place| place.process == *id).map(|place| place.length_insns).collect();
        let planned: Vec<Vec<u64>> = ids.iter().map(of).collect();
        let deadlines: Vec<u64> = ids.iter().map(|&id| deadlines_ns[id as usize]).collect();
        let expected = ends_by_deadline(&works, &planned, &deadlines);
        let config = Config { dispatch: Dispatch::Deadline as u64, ..CONFIG };
        let mut machine = Machine::new(plan, config, works, 0);
        machine.run();
        machine.check_end();
        let ended = machine.log.of(EventKind::TaskEnded).into_iter();
        let ended: Vec<_> = ended
            .map(|event| (event.time_ns, ids.iter().position(|&id| id == event.process).unwrap()))
            .collect();
        prop_assert_eq!(ended, expected);
    }
}

/// Lengths for which every instruction can be looked at.
fn short_place() -> impl Strategy<Value = Place> {
    place(3, 100..3000u64).prop_map(|place| Place {
        length_insns: place.length_insns % 400 + 1,
        block: place.block.map(|(at, for_ns)| (at % 400, for_ns)),
        ..place
    })
}

proptest! {
    #![proptest_config(cases(400))]

    /// A machine that runs until it must ask reports the same at the same moments as one that asks
    /// after every instruction.
    #[test]
    fn what_the_node_says_until_leads_to_every_first_moment(
        case in case(short_place(), 8),
        scale in prop_oneof![Just(1), Just(40), Just(1000u64)],
    ) {
        let config = Config {
            preemption_limit_ns: case.config.preemption_limit_ns / scale,
            no_preemption_ns: case.config.no_preemption_ns / scale,
            t2_spacer_ns: case.config.t2_spacer_ns / scale + 1,
            t2_task_signaling_limit_ns: case.config.t2_task_signaling_limit_ns / scale + 1,
            reschedule_time_ns: case.config.reschedule_time_ns / scale,
            t2_min_process_ns: case.config.t2_min_process_ns / scale / scale,
            t2_message_ns: case.config.t2_message_ns / scale,
            tm2_message_ns: case.config.tm2_message_ns / scale,
            tm2_node_lower_bound_ns: case.config.tm2_node_lower_bound_ns / scale / scale,
            stress_gain_ns: case.config.stress_gain_ns / scale / scale,
            idle_piece_ns: case.config.idle_piece_ns / 1000 / scale,
            ..case.config
        };
        let told = case.run(config);
        let mut by_one = case.machine(config, 0);
        by_one.step_insns = 1;
        by_one.run();
        prop_assert_eq!(told, by_one.log.0);
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    /// A decision that continues the one before is the same as a new one.
    #[test]
    fn what_is_settled_changes_nothing(
        case in case(place(6, 100..3000u64), 60),
        delay_ns in prop_oneof![Just(0), 0..5000u64],
    ) {
        let run = |forgets| {
            let mut machine = case.machine(case.config, delay_ns);
            machine.forgets = forgets;
            machine.run();
            (machine.log.0, machine.grants)
        };
        prop_assert_eq!(run(false), run(true));
    }

    /// The reported grants are some of all grants, in their order.  None is missing that was the
    /// first in its slot, or lasted, or stood when something else was reported.
    #[test]
    fn grants_that_last_are_told(case in case(place(6, 100..3000u64), 60)) {
        let machine = case.ran(case.config);
        let events = &machine.log.0;
        let slots = machine.node.plan().slots().len();
        let process = |p: Option<u32>| p.map_or(IDLE, |p| machine.node.plan().processes()[p as usize].id);
        let on_wire = |slot: u32| if (slot as usize) < slots { slot.into() } else { NO_SLOT };
        let mut told = events.iter().filter(|event| event.kind == EventKind::Grant).peekable();
        for (place, &(at_ns, who, why, slot)) in machine.grants.iter().enumerate() {
            let next = told.peek().copied();
            let is_told = next.is_some_and(|event| {
                let same = (event.process, event.reason, event.slot) == (process(who), why as u16, on_wire(slot));
                same && event.time_ns == at_ns
            });
            if is_told {
                told.next();
                continue;
            }
            let (before, now) = (&machine.grants[..place], on_wire(slot));
            let first = match case.config.dispatch() {
                Dispatch::Thesis => before.last().is_none_or(|before| on_wire(before.3) != now),
                // Slots change as often as processes do; each is told once.
                Dispatch::Deadline => {
                    now != NO_SLOT && before.iter().all(|before| on_wire(before.3) != now)
                }
            };
            let until_ns = machine.grants.get(place + 1).map_or(at_ns, |after| after.0);
            // It lasts, or is the last report; after the last one no more decisions are made.
            let last_told = events.iter().rfind(|event| event.kind == EventKind::Grant && event.time_ns <= at_ns);
            let known = last_told.is_some_and(|event| {
                (event.process, event.reason, event.slot) == (process(who), why as u16, on_wire(slot))
            });
            prop_assert!(known || (!first && until_ns - at_ns < 100_000), "{place}: {:?}", machine.grants);
        }
        prop_assert!(told.next().is_none());
    }
}
