// SPDX-License-Identifier: GPL-2.0

//! Messages: planned arrivals as they are written, and the signals about messages that deviate
//! from them.

use std::vec;
use std::vec::Vec;

use crate::wire::{encode, Message, NO_ARRIVAL, PLAN_ARRIVALS, VERSION_2};
use crate::{
    Cause, Config, Dispatch, EventKind, Fault, Node, Part, Plan, Presence, StdMemory, Threshold,
};

use super::scene::{self, Scene, CONFIG};
use super::text::{self, Cpu};

/// Messages alone, without stress.
const MESSAGES: Config = Config {
    thresholds: Threshold::T1 as u64
        | Threshold::T2Message as u64
        | Threshold::Tm2Message as u64
        | Threshold::Info as u64,
    t2_message_ns: 400,
    tm2_message_ns: 1000,
    stress_reset: 0,
    ..CONFIG
};

/// Late messages alone, without information on the way.
const MESSAGES_LATE: Config = Config {
    thresholds: Threshold::T1 as u64 | Threshold::T2Message as u64,
    ..MESSAGES
};

/// CPU 0 with these slots (process, length), edges and planned arrivals.
fn net(slots: &[(u32, u64)], edges: &[(u32, u32, u32, u32)], arrivals_ns: &[u64]) -> Cpu {
    Cpu {
        arrivals_ns: arrivals_ns.to_vec(),
        ..text::net(slots, edges)
    }
}

fn plan(
    slots: &[(u32, u64)],
    edges: &[(u32, u32, u32, u32)],
    arrivals_ns: &[u64],
) -> Plan<StdMemory> {
    text::plan_of(net(slots, edges, arrivals_ns))
}

/// Process 2 waits for the message of 1/0, in a slot that comes before that of 1/0.
fn missed(config: Config, arrival_ns: u64) -> Scene {
    let slots = [(2, 1000), (1, 1000), (2, 1000)];
    Scene::ready(config, plan(&slots, &[(2, 0, 1, 0)], &[arrival_ns]))
}

/// Lets time pass as the node asks for it, up to that moment.
fn wait_as_told(scene: &mut Scene, until_ns: u64) {
    while let Some(left_ns) = scene.left_ns().filter(|ns| scene.now_ns + ns <= until_ns) {
        scene.wait(left_ns);
    }
}

/// (moment, level, lateness) of the signals about messages.
fn told(scene: &Scene) -> Vec<(u64, u32, u64)> {
    let signals = scene.log.signals().into_iter().map(|(_, event)| event);
    let of_messages = signals.filter(|event| event.reason == Cause::Message as u16);
    of_messages
        .map(|event| (event.time_ns, event.level_percent, event.retired_insns))
        .collect()
}

#[test]
fn planned_arrivals_are_read_as_they_were_written() {
    let cpus = [
        net(
            &[(1, 10), (2, 10), (2, 10)],
            &[(2, 0, 1, 0), (2, 1, 3, 0)],
            &[77, NO_ARRIVAL],
        ),
        Cpu {
            cpu: 1,
            ..net(&[(3, 10)], &[], &[])
        },
    ];
    let bytes = text::write(1, None, &cpus);
    let plans = text::read(&bytes).unwrap();
    let arrivals = [0, 1, 2].map(|edge| plans[0].1.arrival_ns(edge));
    assert_eq!(arrivals, [Some(77), None, None]);
    assert!(!plans[1].1.has_arrivals());
    let mut written = Vec::new();
    let sink = |piece: &[u8]| {
        written.extend_from_slice(piece);
        Ok::<(), ()>(())
    };
    plans[0].1.encode(0, &Config::DEFAULT, 1, sink).unwrap();
    assert_eq!(plans[0].1.encoded_bytes(), written.len() as u64);
    let message = Message::parse::<StdMemory>(&written).unwrap();
    let again = Plan::<StdMemory>::build(&message.sections().next().unwrap()).unwrap();
    assert_eq!([0, 1].map(|edge| again.arrival_ns(edge)), [Some(77), None]);
}

#[test]
fn plan_without_messages_has_no_room_for_them() {
    let edges = [(2, 0, 1, 0)];
    let plain = text::write(1, None, &[net(&[(1, 10), (2, 10)], &edges, &[])]);
    let flags = &plain[32..40];
    assert_eq!(flags, [0; 8]);
    let with = text::write(1, None, &[net(&[(1, 10), (2, 10)], &edges, &[5])]);
    assert_eq!(
        with.len() as u64 - encode::arrivals_bytes(1),
        plain.len() as u64
    );
}

#[test]
fn wrong_arrivals_are_refused() {
    let bytes = text::write(1, None, &[net(&[(1, 10), (2, 10)], &[(2, 0, 1, 0)], &[5])]);
    let refusal = |bytes: &[u8]| text::read(bytes).err().expect("a refusal");
    let mut short = bytes[..bytes.len() - 8].to_vec();
    let total_bytes = short.len() as u64;
    short[8..16].copy_from_slice(&total_bytes.to_ne_bytes());
    let truncated = Fault::Truncated {
        part: Part::Arrival,
        need_bytes: 8,
        have_bytes: 0,
    };
    assert_eq!(refusal(&short), truncated.at(bytes.len() - 8));
    // No other flag is known, and none in an earlier version.
    for (version, flags) in [(3, PLAN_ARRIVALS | 2), (VERSION_2, PLAN_ARRIVALS)] {
        let mut other = bytes.clone();
        other[4..6].copy_from_slice(&version.to_ne_bytes());
        other[32..40].copy_from_slice(&flags.to_ne_bytes());
        let refusal = refusal(&other);
        assert_eq!(refusal.offset_bytes, 32);
        assert!(matches!(refusal.fault, Fault::Flags { .. }));
    }
}

/// The lateness reaches each level at a moment that the node foresees.
#[test]
fn late_message_is_signalled_with_both_ends() {
    let mut scene = missed(MESSAGES, 100);
    wait_as_told(&mut scene, 3000);
    let levels = [
        (201, 25, 101),
        (301, 50, 201),
        (401, 75, 301),
        (501, 100, 401),
    ];
    assert_eq!(told(&scene), levels);
    let late = scene.log.of(EventKind::Late);
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].process, late[0].task), (2, 0));
    assert_eq!((late[0].value, late[0].planned_insns), (1 << 32, 1000));
    // Its process has not deviated.
    assert_eq!(
        (late[0].lateness_insns, late[0].node_lateness_insns),
        (0, 0)
    );
    // Nothing more is signalled when the message arrives.
    assert_eq!(scene.granted(), 1);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    assert_eq!(told(&scene).len(), 4);
}

#[test]
fn message_that_nobody_misses_is_not_late() {
    // The slot of the receiver comes after that of the sender, which is late.
    let slots = [(1, 1000), (2, 1000)];
    let mut scene = Scene::ready(MESSAGES, plan(&slots, &[(2, 0, 1, 0)], &[100]));
    scene.finish(900);
    assert_eq!(scene.granted(), 2);
    assert_eq!(told(&scene), []);
    // A message that is there before its receiver has ended no wait.
    let slots = [(1, 1000), (2, 1000), (2, 1000)];
    let mut scene = Scene::ready(MESSAGES, plan(&slots, &[(2, 1, 1, 0)], &[100]));
    scene.finish(1000);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    assert_eq!(told(&scene), []);
}

/// A wait beyond the slot of the receiver is signalled when it ends.
#[test]
fn late_message_of_a_slot_that_has_passed_is_signalled_at_the_end_of_the_wait() {
    let mut scene = missed(MESSAGES, 3500);
    wait_as_told(&mut scene, 3000);
    assert_eq!((scene.granted(), told(&scene)), (1, vec![]));
    scene.finish(1000);
    assert_eq!(told(&scene), [(4000, 100, 500)]);
}

#[test]
fn stress_holds_a_late_message_back() {
    let stressed = Config {
        stress_reset: 2,
        stress_gain_ns: 300,
        nominal_tick_ns: 600,
        thresholds: Threshold::T1 as u64 | Threshold::T2Message as u64,
        ..MESSAGES
    };
    let mut scene = missed(stressed, 100);
    wait_as_told(&mut scene, 3000);
    // 400 ns, with the 300 ns that one point of stress adds from 600 ns on.
    assert_eq!(told(&scene), [(801, 100, 701)]);
}

#[test]
fn early_message_is_signalled_when_it_ends_a_wait() {
    let slots = [(1, 1000), (2, 1000)];
    let edges = [(2, 0, 1, 0)];
    for (arrival_ns, early) in [(2000, None), (2001, Some(1001)), (900, None)] {
        let mut scene = Scene::ready(MESSAGES, plan(&slots, &edges, &[arrival_ns]));
        scene.finish(1000);
        let events = scene.log.of(EventKind::Early);
        let early_ns = events.first().map(|event| event.retired_insns);
        assert_eq!(early_ns, early, "{arrival_ns}");
        if let Some(event) = events.first() {
            assert_eq!((event.process, event.task, event.value), (2, 0, 1 << 32));
            assert_eq!(event.reason, Cause::Message as u16);
        }
    }
    // As tm2_node, it is not signalled under stress.
    let stressed = Config {
        stress_reset: 1,
        ..MESSAGES
    };
    let mut scene = Scene::ready(stressed, plan(&slots, &edges, &[5000]));
    scene.finish(1000);
    assert_eq!(told(&scene), []);
}

#[test]
fn each_message_of_a_task_is_signalled_once() {
    // 2/0 waits for 1/0 and 3/0, whose tasks end on the way to where their threads wait.
    let slots = [(2, 10_000), (1, 1000), (3, 1000)];
    let edges = [(2, 0, 1, 0), (2, 0, 3, 0)];
    let config = Config {
        thresholds: Threshold::T2Message as u64,
        ..MESSAGES
    };
    let mut scene = Scene::ready(config, plan(&slots, &edges, &[100, 700]));
    wait_as_told(&mut scene, 600);
    assert_eq!(told(&scene), [(501, 100, 401)]);
    let p = scene.index(1);
    scene.node.end_task(p, 600, &mut scene.log);
    scene.wait(600 - scene.now_ns);
    wait_as_told(&mut scene, 2000);
    assert_eq!(told(&scene), [(501, 100, 401), (1101, 100, 401)]);
    let late = scene.log.of(EventKind::Late);
    assert_eq!([late[0].value, late[1].value], [1 << 32, 3 << 32]);
}

#[test]
fn plan_that_follows_has_arrivals_of_its_own() {
    let config = Config {
        thresholds: Threshold::T2Message as u64,
        ..MESSAGES
    };
    let mut scene = missed(config, 100);
    wait_as_told(&mut scene, 2000);
    assert_eq!(told(&scene), [(501, 100, 401)]);
    scene.wait(1999 - scene.now_ns);
    let slots = [(2, 1000), (1, 1000), (2, 1000)];
    let next = plan(&slots, &[(2, 0, 1, 0)], &[200]);
    scene.swap_with(config, next, scene.log.next_seq());
    let begin_ns = scene.now_ns;
    wait_as_told(&mut scene, begin_ns + 3000);
    assert_eq!(told(&scene)[1..], [(begin_ns + 601, 100, 401)]);
}

/// A plan that declares no new arrival, as its 0 says, does not signal the message again; another
/// message is signalled.
#[test]
fn late_message_without_a_new_arrival_is_signalled_once() {
    let config = Config {
        thresholds: Threshold::T2Message as u64,
        ..MESSAGES
    };
    let again = |sender: u32, until_ns: u64| {
        let slots = [(2, 1000), (1, 1000), (2, 1000), (3, 1000)];
        let edges = [(2, 0, 1, 0)];
        let mut scene = Scene::ready(config, plan(&slots, &edges, &[100]));
        wait_as_told(&mut scene, until_ns);
        let before = told(&scene).len();
        scene.wait(1999 - scene.now_ns);
        let next = plan(&slots, &[(2, 0, sender, 0)], &[0]);
        scene.swap_with(config, next, 0);
        let begin_ns = scene.now_ns;
        wait_as_told(&mut scene, begin_ns + 3000);
        (before, told(&scene).len() - before)
    };
    assert_eq!(again(1, 600), (1, 0));
    assert_eq!(again(3, 600), (1, 1));
}

/// The arrival lies in a later window, and the decision after it comes late, too: the gap until
/// the arrival is plan time.
#[test]
fn planned_gap_that_ends_in_a_later_window_is_plan_time() {
    let config = Config {
        idle_is_lateness: 1,
        tm2_node_lower_bound_ns: 1_000,
        tm2_node_earliness_cap_permille: 0,
        thresholds: Threshold::Tm2Node as u64,
        window_period_ns: 2_000,
        window_unallocated_ns: 1_000,
        ..MESSAGES
    };
    // 1/0 is early by 900.  The slot of 2/0 ends at 6100, and nobody runs in its last 50.
    let slots = [(1, 1000), (2, 1000), (1, 1000), (1, 1000)];
    let mut scene = Scene::ready(config, plan(&slots, &[(2, 0, 1, 2)], &[6_050]));
    scene.finish(100);
    scene.wait(6_000);
    assert_eq!(scene.granted(), 1);
    scene.finish(600);
    let early = scene.log.of(EventKind::Early);
    let lateness = early.first().map(|event| event.node_lateness_insns);
    assert_eq!(lateness, Some(-1250));
}

/// Eight edges are followed when a task ends.  The task of the ninth has ended before, too: its
/// message is there, though a later decision finds that.
#[test]
fn message_that_was_there_before_a_ninth_edge_is_not_early() {
    let mut slots = vec![(2, 1000)];
    slots.extend((11..20).map(|sender| (sender, 100)));
    slots.push((2, 1000));
    let edges: Vec<_> = (11..20).map(|sender| (2, 1, sender, 0)).collect();
    let far = [NO_ARRIVAL; 8].into_iter().chain([1_000_000]);
    let arrivals: Vec<u64> = far.collect();
    let mut scene = Scene::ready(MESSAGES, plan(&slots, &edges, &arrivals));
    for sender in 11..20 {
        let p = scene.index(sender);
        scene.node.end_task(p, 0, &mut scene.log);
    }
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
    assert_eq!(told(&scene), []);
}

#[test]
fn threshold_that_is_off_signals_nothing() {
    let without = |off: Threshold| Config {
        thresholds: MESSAGES.thresholds & !(off as u64),
        ..MESSAGES
    };
    let mut scene = missed(without(Threshold::T2Message), 100);
    wait_as_told(&mut scene, 3000);
    assert_eq!(told(&scene), []);
    let mut scene = missed(without(Threshold::Info), 100);
    wait_as_told(&mut scene, 3000);
    assert_eq!(told(&scene), [(501, 100, 401)]);
    let slots = [(1, 1000), (2, 1000)];
    let of = plan(&slots, &[(2, 0, 1, 0)], &[5000]);
    let mut scene = Scene::ready(without(Threshold::Tm2Message), of);
    scene.finish(1000);
    assert_eq!(told(&scene), []);
}

/// Lateness where slots float is checked when the turn of the receiver comes, and when its wait
/// ends.
#[test]
fn late_message_is_signalled_where_slots_float() {
    let config = Config {
        dispatch: Dispatch::Deadline as u64,
        thresholds: Threshold::T2Message as u64,
        ..MESSAGES
    };
    let mut cpu = net(&[(2, 1000), (1, 3000)], &[(2, 0, 1, 0)], &[1000]);
    cpu.deadlines = vec![(2, 5000), (1, 9000)];
    let mut scene = Scene::ready(config, text::plan_of(cpu));
    assert_eq!(scene.granted(), 1);
    assert_eq!(scene.log.tasks(EventKind::Waits), [(2, 0)]);
    scene.finish(3000);
    assert_eq!(told(&scene), [(3000, 100, 2000)]);
}

/// Time until the planned arrival of a message is a gap of the plan, and does not make the node
/// less early.
#[test]
fn planned_gap_is_no_idle_time() {
    let config = Config {
        idle_is_lateness: 1,
        tm2_node_lower_bound_ns: 300,
        tm2_node_earliness_cap_permille: 0,
        thresholds: Threshold::Tm2Node as u64,
        ..MESSAGES
    };
    // 1/0 is early by 900, and nobody runs for 500 in the slot of 2/0, which waits for 1/1.
    let lateness = |arrival_ns: u64| {
        let slots = [(1, 1000), (2, 1000), (1, 1000), (1, 1000)];
        let of = plan(&slots, &[(2, 0, 1, 2)], &[arrival_ns]);
        let config = Config {
            tm2_node_lower_bound_ns: 1_000,
            ..config
        };
        let mut scene = Scene::ready(config, of);
        scene.finish(100);
        wait_as_told(&mut scene, 3100);
        assert_eq!(scene.granted(), 1);
        scene.finish(600);
        let early = scene.log.of(EventKind::Early);
        early.first().map(|event| event.node_lateness_insns)
    };
    assert_eq!(lateness(1_000_000), Some(-1300));
    assert_eq!(lateness(NO_ARRIVAL), None);
    // Beyond the arrival the plan waits for the process again.
    assert_eq!(lateness(3050), Some(-1250));
}

/// One decision follows some of the edges of a task.  The messages of the others are there, too.
#[test]
fn message_that_is_there_is_not_late_though_a_task_has_many_edges() {
    let senders = 11..91;
    let mut slots = vec![(2, 1000)];
    slots.extend(senders.clone().map(|sender| (sender, 100)));
    slots.push((2, 1000));
    let edges: Vec<_> = senders.clone().map(|sender| (2, 1, sender, 0)).collect();
    let arrivals = [1; 80];
    let mut scene = Scene::ready(MESSAGES, plan(&slots, &edges, &arrivals));
    for sender in senders {
        let p = scene.index(sender);
        scene.node.end_task(p, 0, &mut scene.log);
    }
    scene.finish(1000);
    scene.decide_all();
    assert_eq!(scene.granted(), 2);
    assert_eq!(told(&scene), []);
    assert_eq!(scene.log.of(EventKind::Waits).len(), 0);
}

/// Process 2 misses the message of the last of `edges` senders; the others have sent theirs.
fn missed_after(edges: u32, arrival_ns: u64) -> (Scene, impl Fn(u64) -> Plan<StdMemory>) {
    let senders = 11..11 + edges;
    let mut slots = vec![(2, 10_000)];
    slots.extend(
        senders
            .clone()
            .flat_map(|sender| [(sender, 100), (sender, 100)]),
    );
    let of: Vec<_> = senders.clone().map(|sender| (2, 0, sender, 0)).collect();
    let net = move |arrival_ns| plan(&slots, &of, &vec![arrival_ns; of.len()]);
    let config = Config {
        thresholds: Threshold::T2Message as u64,
        ..MESSAGES
    };
    let mut scene = Scene::absent(config, net(arrival_ns));
    scene.set(2, Presence::Ready);
    for sender in senders.clone().take(edges as usize - 1) {
        let p = scene.index(sender);
        scene.node.end_task(p, 0, &mut scene.log);
    }
    scene.decide();
    scene.decide_all();
    (scene, net)
}

#[test]
fn late_message_beyond_the_eighth_edge_is_signalled_once() {
    let (mut scene, net) = missed_after(40, 100);
    wait_as_told(&mut scene, 1000);
    assert_eq!(told(&scene), [(501, 100, 401)]);
    scene.swap_with(*scene.node.config(), net(0), 0);
    wait_as_told(&mut scene, 3000);
    assert_eq!(told(&scene).len(), 1);
}

/// The process has not reached the edge of the message again when the third plan takes over.
#[test]
fn late_message_is_signalled_once_though_two_plans_follow_at_once() {
    let (mut scene, net) = missed_after(40, 100);
    wait_as_told(&mut scene, 1000);
    assert_eq!(told(&scene).len(), 1);
    let config = *scene.node.config();
    let mut between = Node::new(net(0), config, scene::RATE, 8, scene.now_ns).unwrap();
    between.begin(Some(&scene.node), 0, scene.now_ns);
    scene.node = between;
    scene.swap_with(config, net(0), 0);
    wait_as_told(&mut scene, 3000);
    assert_eq!(told(&scene).len(), 1);
}

/// Plans that come closer together than t2_message do not hide a message that never arrives.
#[test]
fn wait_for_a_message_continues_under_the_next_plan() {
    let (mut scene, net) = missed_after(1, 100);
    let config = *scene.node.config();
    for until_ns in [300, 600, 900] {
        wait_as_told(&mut scene, until_ns);
        scene.wait(until_ns - scene.now_ns);
        scene.swap_with(config, net(0), 0);
    }
    assert_eq!(told(&scene), [(501, 100, 401)]);
    // A plan that declares another arrival begins anew.
    scene.swap_with(config, net(200), 0);
    wait_as_told(&mut scene, 3000);
    assert_eq!(told(&scene)[1..], [(900 + 601, 100, 401)]);
}

/// 2/0 waits for 1/0, and misses the message of 3/0 meanwhile: it is signalled in time, and once.
#[test]
fn late_message_behind_the_awaited_one_is_signalled() {
    let slots = [(2, 10_000), (1, 1000), (3, 1000)];
    let edges = [(2, 0, 1, 0), (2, 0, 3, 0)];
    for (first_ns, of_first) in [(NO_ARRIVAL, None), (300, Some(701))] {
        let mut scene = Scene::ready(MESSAGES_LATE, plan(&slots, &edges, &[first_ns, 100]));
        wait_as_told(&mut scene, 1000);
        let mut expected = vec![(501, 100, 401)];
        expected.extend(of_first.map(|at_ns| (at_ns, 100, 401)));
        assert_eq!(told(&scene), expected);
        let late = scene.log.of(EventKind::Late);
        assert_eq!(
            (late[0].process, late[0].task, late[0].value),
            (2, 0, 3 << 32)
        );
        // The process comes to wait for the message that was signalled.
        let p = scene.index(1);
        scene.node.end_task(p, scene.now_ns, &mut scene.log);
        scene.decide();
        wait_as_told(&mut scene, 5000);
        assert_eq!(scene.node.waits_for(scene.index(2)), Some((3, 0)));
        assert_eq!(told(&scene), expected);
    }
}

/// A message that arrives in time while the task waits for another one is not late.
#[test]
fn message_behind_the_awaited_one_that_is_there_is_not_late() {
    let slots = [(2, 10_000), (1, 1000), (3, 1000)];
    let edges = [(2, 0, 1, 0), (2, 0, 3, 0)];
    let mut scene = Scene::ready(MESSAGES_LATE, plan(&slots, &edges, &[NO_ARRIVAL, 100]));
    wait_as_told(&mut scene, 200);
    let p = scene.index(3);
    scene.node.end_task(p, scene.now_ns, &mut scene.log);
    scene.decide();
    wait_as_told(&mut scene, 5000);
    assert_eq!(told(&scene), []);
}

/// The next plan lets the task wait for another message first.  The message that was signalled is
/// not signalled again, neither behind the other one nor when its turn comes.
#[test]
fn late_message_is_signalled_once_though_another_comes_before_it() {
    let slots = [(2, 10_000), (1, 1000), (3, 1000)];
    let first = plan(&slots, &[(2, 0, 3, 0)], &[100]);
    let mut scene = Scene::ready(MESSAGES_LATE, first);
    wait_as_told(&mut scene, 1000);
    assert_eq!(told(&scene), [(501, 100, 401)]);
    scene.wait(1000 - scene.now_ns);
    let edges = [(2, 0, 1, 0), (2, 0, 3, 0)];
    scene.swap_with(MESSAGES_LATE, plan(&slots, &edges, &[200, 0]), 0);
    wait_as_told(&mut scene, 4000);
    assert_eq!(told(&scene)[1..], [(1601, 100, 401)]);
    let late = scene.log.of(EventKind::Late);
    assert_eq!(late[1].value, 1 << 32);
    let p = scene.index(1);
    scene.node.end_task(p, scene.now_ns, &mut scene.log);
    scene.decide();
    wait_as_told(&mut scene, 8000);
    assert_eq!(told(&scene).len(), 2);
}

/// The next plan declares no new arrival of messages that were signalled: the one behind is silent
/// until the task waits for it.
#[test]
fn message_behind_without_a_new_arrival_is_signalled_once() {
    let slots = [(2, 10_000), (1, 1000), (3, 1000)];
    let edges = [(2, 0, 1, 0), (2, 0, 3, 0)];
    let mut scene = Scene::ready(MESSAGES_LATE, plan(&slots, &edges, &[300, 100]));
    wait_as_told(&mut scene, 1000);
    assert_eq!(told(&scene).len(), 2);
    for _ in 0..3 {
        scene.swap_with(MESSAGES_LATE, plan(&slots, &edges, &[0, 0]), 0);
        let until_ns = scene.now_ns + 2000;
        wait_as_told(&mut scene, until_ns);
        assert_eq!(told(&scene).len(), 2);
    }
}
