// SPDX-License-Identifier: GPL-2.0

//! A node that receives any inputs, in any order, with any numbers: it neither panics nor
//! contradicts itself, nor grants to a process that cannot run.

use std::boxed::Box;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::wire::{IDLE, MAX_BUFFER_INSNS, NO_DEADLINE};
use crate::{
    Config, Dispatch, Ended, EventKind, IdlePolicy, Node, Plan, Presence, Rate, StdMemory,
};

use super::random::{any_config, cases};
use super::scene::Log;
use super::text::{self, Cpu};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Charge(u32, u64),
    Memory(u32, u64, u64),
    Presence(u32, Presence),
    EndTask(u32),
    EndProcess(u32),
    Later(u64),
    Earlier(u64),
    Rate(u64),
    /// Progress of a process on another CPU.
    Elsewhere(u32, Ended),
    Swap(Box<Part>, u64),
    /// Another configuration, which need not have the dispatch of the plan.
    Configure(Box<Config>),
}

/// A plan with its configuration.
#[derive(Clone, Debug)]
pub(super) struct Part {
    config: Config,
    slots: Vec<(u32, u64)>,
    edges: Vec<(usize, usize)>,
    elsewhere: Vec<(usize, u32, u32)>,
    buffers_insns: [u64; 5],
    deadlines_ns: [u64; 5],
}

/// First of the processes on another CPU, each with several tasks.
const FIRST_ELSEWHERE: u32 = 100;
const ELSEWHERE: u32 = 3;
const TASKS_ELSEWHERE: u32 = 5;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..3000u64, 0..1_000_000_000u64, any::<u64>()]
}

fn slots() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let process = prop_oneof![4 => 0..5u32, 1 => Just(IDLE)];
    let length = prop_oneof![1..3000u64, 1..=1u64 << 48];
    vec((process, length), 1..300).prop_map(|mut slots| {
        slots.push((1, 1));
        slots
    })
}

pub(super) fn part() -> impl Strategy<Value = Part> {
    let buffer = || prop_oneof![Just(0), 0..10_000u64, 0..=MAX_BUFFER_INSNS];
    let buffers = (buffer(), buffer(), buffer(), buffer(), buffer());
    let config = prop_oneof![1 => Just(Config::DEFAULT), 3 => any_config()];
    let slot = || 0..1000usize;
    let edges = prop_oneof![Just(Vec::new()), vec((slot(), slot()), 0..300)];
    let elsewhere = prop_oneof![
        Just(Vec::new()),
        vec((slot(), 0..ELSEWHERE, 0..TASKS_ELSEWHERE), 0..40)
    ];
    let deadline = || prop_oneof![2 => Just(NO_DEADLINE), 6 => number()];
    let deadlines = (deadline(), deadline(), deadline(), deadline(), deadline());
    let dispatch = select(&Dispatch::ALL[..]);
    let processes = (buffers, deadlines, dispatch);
    (config, slots(), edges, elsewhere, processes).prop_map(
        |(config, slots, edges, elsewhere, (buffers, deadlines, dispatch))| Part {
            config: Config {
                dispatch: dispatch as u64,
                ..config
            },
            slots,
            edges,
            elsewhere,
            buffers_insns: buffers.into(),
            deadlines_ns: deadlines.into(),
        },
    )
}

/// A configuration for a change: mostly another policy alone.
fn configured() -> impl Strategy<Value = Config> {
    let dispatch = select(&Dispatch::ALL[..]);
    let policy = select(&IdlePolicy::ALL[..]);
    let config = prop_oneof![1 => Just(Config::DEFAULT), 1 => any_config()];
    (config, dispatch, policy).prop_map(|(config, dispatch, policy)| Config {
        dispatch: dispatch as u64,
        idle_policy: policy as u64,
        ..config
    })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    // One more than there can be.
    let p = || 0..6u32;
    let presence = prop_oneof![
        1 => Just(Presence::Absent),
        1 => Just(Presence::Blocked),
        3 => Just(Presence::Ready),
    ];
    prop_oneof![
        6 => (p(), number()).prop_map(|(p, insns)| Step::Charge(p, insns)),
        1 => (p(), number(), number()).prop_map(|(p, vm, rss)| Step::Memory(p, vm, rss)),
        4 => (p(), presence).prop_map(|(p, presence)| Step::Presence(p, presence)),
        6 => p().prop_map(Step::EndTask),
        1 => p().prop_map(Step::EndProcess),
        6 => number().prop_map(Step::Later),
        1 => number().prop_map(Step::Earlier),
        1 => number().prop_map(Step::Rate),
        2 => (0..ELSEWHERE, 0..=TASKS_ELSEWHERE, any::<bool>()).prop_map(|(p, before_task, is_last)| {
            Step::Elsewhere(p, Ended { before_task, is_last })
        }),
        2 => prop_oneof![
            (part(), number()).prop_map(|(part, dealt_seq)| Step::Swap(Box::new(part), dealt_seq)),
            configured().prop_map(|config| Step::Configure(Box::new(config))),
        ],
    ]
}

pub(super) fn node(part: &Part, now_ns: u64) -> Node<StdMemory> {
    let rate = Rate::new(1_000_000);
    Node::new(plan(part), part.config, rate, 1, now_ns).unwrap()
}

pub(super) fn plan(part: &Part) -> Plan<StdMemory> {
    let mut cpu = Cpu::numbered(0, &part.slots);
    for (id, buffer_insns) in &mut cpu.processes {
        *buffer_insns = part.buffers_insns[*id as usize];
    }
    cpu.deadlines = (0..).zip(part.deadlines_ns).collect();
    cpu.edges = text::edges(&part.slots, &part.edges);
    for &(slot, process, task) in &part.elsewhere {
        let (_, waits, waiting_task) = cpu.slots[slot % cpu.slots.len()];
        if waits != IDLE {
            cpu.edges
                .push((waits, waiting_task, FIRST_ELSEWHERE + process, task));
        }
    }
    cpu.edges.sort_unstable();
    cpu.edges.dedup();
    cpu.arrivals_ns = text::arrivals_ns(cpu.edges.len(), part.deadlines_ns[0]);
    let tasks = (0..ELSEWHERE * TASKS_ELSEWHERE).map(|n| (FIRST_ELSEWHERE + n % ELSEWHERE, 1));
    let other = Cpu::numbered(1, &tasks.collect::<Vec<_>>());
    text::read(&text::write(1, None, &[cpu, other]))
        .unwrap()
        .remove(0)
        .1
}

impl Step {
    /// Passes the step to the node, at `now_ns`.
    pub(super) fn tell(self, node: &mut Node<StdMemory>, now_ns: &mut u64, log: &mut Log) {
        match self {
            Step::Charge(p, insns) => node.charge(p, insns),
            Step::Memory(p, vm_bytes, rss_bytes) => {
                node.memory(p, vm_bytes, rss_bytes);
                node.watch_memory(p, vm_bytes, *now_ns, log);
            }
            Step::Presence(p, presence) => {
                node.set_presence(p, presence);
            }
            Step::EndTask(p) => {
                node.end_task(p, *now_ns, log);
            }
            Step::EndProcess(p) => node.end_process(p, *now_ns, log),
            Step::Later(ns) => *now_ns = now_ns.saturating_add(ns),
            Step::Earlier(ns) => *now_ns = now_ns.saturating_sub(ns),
            Step::Rate(insns_per_ms) => node.set_rate(Rate::new(insns_per_ms)),
            Step::Elsewhere(process, ended) => {
                log.1.insert(FIRST_ELSEWHERE + process, ended);
                let predecessors = node.plan().predecessors().iter();
                log.2 = predecessors.map(|after| after.id).collect();
                node.look_elsewhere(log);
            }
            Step::Swap(part, dealt_seq) => {
                let mut new = self::node(&part, *now_ns);
                new.begin(Some(node), dealt_seq, *now_ns);
                *node = new;
            }
            Step::Configure(config) => {
                let before = *node.config();
                let changed = node.configure(&config, *now_ns, log);
                let has_begun_without =
                    config.timeliness_ns != 0 && before.timeliness_ns == 0 && before.dispatch == 0;
                match changed {
                    Ok(changed) => {
                        assert_eq!(config.dispatch, before.dispatch);
                        assert_eq!(node.config(), &*config);
                        assert_eq!(changed == 0, before == *config);
                    }
                    Err(_) => {
                        assert!(config.dispatch != before.dispatch || has_begun_without);
                        assert_eq!(node.config(), &before);
                    }
                }
            }
        }
        node.check_invariants();
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn any_inputs(first in part(), steps in vec(step(), 1..150)) {
        let mut now_ns = 0u64;
        let mut node = node(&first, now_ns);
        let mut log = Log::default();
        for step in steps {
            step.tell(&mut node, &mut now_ns, &mut log);
            let cursor = node.cursor();
            let decision = node.decide(now_ns, &mut log);
            node.check_invariants();
            prop_assert!(node.cursor() - cursor <= 128);
            if let Some(info) = decision.grant.map(|p| node.process(p).unwrap()) {
                prop_assert!(info.presence == Presence::Ready && !info.done);
                prop_assert_eq!(node.waits_for(decision.grant.unwrap()), None);
            }
            let can_run = |p| node.process(p).is_some_and(|info| {
                info.presence == Presence::Ready && !info.done && node.waits_for(p).is_none()
            });
            if node.config().dispatch() == Dispatch::Deadline && !decision.again {
                // The first of those that can run has the CPU; it idles if none can.
                let mut others = (0..5).filter(|&p| can_run(p));
                match decision.grant {
                    Some(p) => prop_assert!(others.all(|other| !node.comes_before(other, p))),
                    None => prop_assert_eq!(others.next(), None),
                }
            }
            if !decision.again {
                let events = log.0.len();
                node.forget_decision();
                let mut anew = node.decide(now_ns, &mut log);
                // A crossing that is nearer can be foreseen better.
                prop_assert!(anew.until_insns >= decision.until_insns);
                anew.until_insns = decision.until_insns;
                prop_assert_eq!(anew, decision);
                prop_assert_eq!(log.0.len(), events);
            }
        }
        // All reported events were counted, over all plans.
        for kind in EventKind::ALL {
            prop_assert_eq!(node.counts().get(kind), log.of(kind).len() as u64);
        }
    }
}
