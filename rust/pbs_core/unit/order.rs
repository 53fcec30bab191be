// SPDX-License-Identifier: GPL-2.0

//! The order of tasks: edges as they are written, and the processes that they hold back.

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use crate::wire::PROCESS_BYTES;
use crate::{Ended, EventKind, Fault, Grant, Presence, Refusal, Wait};

use super::scene::{Scene, CONFIG};
use super::text::{self, net, Cpu};

fn refusal(cpus: &[Cpu]) -> Refusal {
    text::read(&text::write(1, None, cpus))
        .err()
        .expect("a refusal")
}

#[test]
fn edges_are_by_process_and_position() {
    let slots = [(1, 10), (5, 10), (1, 10), (9, 10), (5, 10), (9, 10)];
    let edges = [(1, 1, 9, 0), (5, 0, 1, 0), (5, 1, 9, 1), (9, 1, 1, 1)];
    let plan = text::plan_of(net(&slots, &edges));
    let ids: Vec<u32> = plan.predecessors().iter().map(|after| after.id).collect();
    assert_eq!(ids, [1, 9]);
    let edges = [0, 1, 2].map(|process| {
        let edges = plan.edges_of(process).iter();
        edges
            .map(|edge| (edge.position, edge.predecessor, edge.task))
            .collect::<Vec<_>>()
    });
    let expected = [vec![(1, 1, 0)], vec![(0, 0, 0), (1, 1, 1)], vec![(1, 0, 1)]];
    assert_eq!(edges, expected);
    // Each is 12 bytes in the node, and 16 as it is written.
    assert!(size_of::<crate::Edge>() <= 16);
}

#[test]
fn wrong_edges_are_refused() {
    let slots = [(1, 10), (5, 10), (5, 10)];
    let at = |edge: usize| 64 + 32 + 2 * PROCESS_BYTES + 3 * 16 + 16 * edge;
    let cases = [
        (
            vec![(5, 0, 1, 0), (5, 0, 1, 0)],
            Fault::EdgeOrder { cpu: 0, edge: 1 }.at(at(1)),
        ),
        (
            vec![(5, 2, 1, 0)],
            Fault::EdgeTask {
                cpu: 0,
                edge: 0,
                process: 5,
                task: 2,
            }
            .at(at(0)),
        ),
        (
            vec![(3, 0, 1, 0)],
            Fault::EdgeTask {
                cpu: 0,
                edge: 0,
                process: 3,
                task: 0,
            }
            .at(at(0)),
        ),
        (
            vec![(5, 0, 1, 0), (5, 1, 1, 1)],
            Fault::EdgeAfter {
                cpu: 0,
                edge: 1,
                process: 1,
                task: 1,
            }
            .at(at(1)),
        ),
        (
            vec![(5, 1, 4, 0)],
            Fault::EdgeAfter {
                cpu: 0,
                edge: 0,
                process: 4,
                task: 0,
            }
            .at(at(0)),
        ),
        (
            vec![(5, 1, 5, 0)],
            Fault::EdgeSelf {
                cpu: 0,
                edge: 0,
                process: 5,
            }
            .at(at(0)),
        ),
    ];
    for (edges, expected) in cases {
        assert_eq!(refusal(&[net(&slots, &edges)]), expected, "{edges:?}");
    }
}

#[test]
fn circles_are_refused_with_their_path() {
    let slots = [(1, 10), (1, 10), (2, 10), (2, 10), (3, 10)];
    // 1/0 for 3/0, 3/0 for 2/1, and 2/0, which comes before that, for 1/1.
    let edges = [(1, 0, 3, 0), (2, 0, 1, 1), (3, 0, 2, 1)];
    let text = refusal(&[net(&slots, &edges)]).to_string();
    let path = "tasks wait in a circle: 1/0 for 3/0, 3/0 for 2/1, 2/0 for 1/1; \
                leave one of these edges out";
    assert_eq!(text, path);
    // Over two CPUs, with a process that is no part of it but waits for one that is.
    let cpus = [
        net(&[(1, 10), (2, 10)], &[(1, 0, 2, 0), (2, 0, 3, 0)]),
        Cpu {
            cpu: 1,
            ..net(&[(3, 10)], &[(3, 0, 2, 0)])
        },
    ];
    let text = refusal(&cpus).to_string();
    assert!(
        text.contains(": 2/0 for 3/0, 3/0 for 2/0;")
            || text.contains(": 3/0 for 2/0, 2/0 for 3/0;"),
        "{text}"
    );
}

#[test]
fn who_is_waited_for_from_another_cpu_is_marked() {
    let cpus = [
        net(&[(1, 10), (2, 10)], &[(1, 0, 3, 0)]),
        Cpu {
            cpu: 1,
            ..net(&[(3, 10), (4, 10)], &[(4, 0, 3, 0)])
        },
    ];
    let plans = text::read(&text::write(1, None, &cpus)).unwrap();
    let shared = |plan: usize| plans[plan].1.processes().iter().map(|p| p.shared);
    assert_eq!(shared(0).collect::<Vec<_>>(), [false, false]);
    assert_eq!(shared(1).collect::<Vec<_>>(), [true, false]);
    assert!(plans[0].1.predecessors()[0].is_elsewhere());
    assert!(!plans[1].1.predecessors()[0].is_elsewhere());
}

fn scene(slots: &[(u32, u64)], edges: &[(u32, u32, u32, u32)]) -> Scene {
    Scene::ready(CONFIG, text::plan_of(net(slots, edges)))
}

/// The slot of a waiting process is filled, that is reported once, and the wait ends with the task.
#[test]
fn task_waits_for_another() {
    let mut scene = scene(
        &[(1, 1000), (2, 1000), (1, 1000), (2, 1000)],
        &[(2, 0, 1, 1)],
    );
    scene.run(1000);
    scene.finish(0);
    // The slot of process 2, and its task waits for 1/1, whose slot has not come.
    assert_eq!((scene.last.grant, scene.last.reason), (None, Grant::None));
    assert_eq!(scene.node.waits_for(1), Some((1, 1)));
    let waits = scene.log.of(EventKind::Waits);
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].process, waits[0].task), (2, 0));
    assert_eq!(
        (waits[0].reason, waits[0].value),
        (Wait::Task as u16, 1 << 32 | 1)
    );
    assert_eq!(waits[0].lateness_insns, 0);
}

#[test]
fn who_waited_goes_on_when_the_task_has_ended() {
    let mut scene = scene(
        &[(1, 1000), (2, 1000), (1, 1000), (2, 1000)],
        &[(2, 0, 1, 1)],
    );
    scene.run(1000);
    scene.finish(0);
    // The ceiling of its slot: it is pushed on to the next one, as if it were blocked.
    scene.wait(3000);
    assert_eq!((scene.granted(), scene.last.reason), (1, Grant::Slot));
    scene.finish(1000);
    assert_eq!(scene.node.waits_for(1), None);
    assert_eq!((scene.granted(), scene.last.reason), (2, Grant::Slot));
    scene.finish(1000);
    scene.finish(1000);
    let ended = scene.log.of(EventKind::TaskEnded);
    let lateness = ended
        .iter()
        .map(|event| (event.process, event.lateness_insns));
    // It waited, but was not late.
    assert_eq!(
        lateness.collect::<Vec<_>>(),
        [(1, 0), (1, 0), (2, 0), (2, 0)]
    );
    assert_eq!(ended[2].preemptions, 0);
    assert_eq!(scene.log.of(EventKind::Waits).len(), 1);
}

/// A task that joins many waits for all of them, however many there are, and a decision checks a
/// bounded number of edges.
#[test]
fn task_waits_for_a_thousand() {
    const MANY: u32 = 1000;
    let mut slots: Vec<(u32, u64)> = (0..MANY).map(|process| (process, 10)).collect();
    slots.push((MANY, 10));
    let edges: Vec<_> = (0..MANY).map(|process| (MANY, 0, process, 0)).collect();
    let mut scene = scene(&slots, &edges);
    scene.decide_all();
    for process in (0..MANY).rev() {
        assert!(scene.node.waits_for(MANY).is_some(), "{process}");
        // They end on the way to where they wait, in any order.
        scene.node.end_task(process, scene.now_ns, &mut scene.log);
    }
    let mut decisions = 1;
    while scene.decide().again {
        decisions += 1;
    }
    // 64 edges a decision, and 128 slots.
    assert!((16..=18).contains(&decisions), "{decisions}");
    assert_eq!(scene.node.waits_for(MANY), None);
    assert_eq!(scene.granted(), MANY);
}

/// A thousand tasks wait for one, and all continue when it ends.
#[test]
fn thousand_tasks_wait_for_one() {
    const MANY: u32 = 1000;
    let mut slots = vec![(0, 10)];
    slots.extend((1..=MANY).map(|process| (process, 10)));
    let edges: Vec<_> = (1..=MANY).map(|process| (process, 0, 0, 0)).collect();
    let mut scene = scene(&slots, &edges);
    scene.decide_all();
    let waiting = |scene: &Scene| {
        let waits = (1..=MANY).filter(|&p| scene.node.waits_for(p).is_some());
        waits.count()
    };
    assert_eq!(waiting(&scene), MANY as usize);
    scene.finish(10);
    assert!(scene.last.again);
    assert!(waiting(&scene) >= MANY as usize - 64);
    scene.decide_all();
    assert_eq!(waiting(&scene), 0);
}

#[test]
fn who_waits_for_a_dead_process_is_told_so() {
    let slots = [(1, 1000), (1, 1000), (2, 1000), (3, 1000)];
    let mut scene = scene(&slots, &[(2, 0, 1, 1), (3, 0, 1, 0)]);
    let p = scene.index(1);
    scene.finish(1000);
    assert_eq!(scene.node.waits_for(2), None);
    // In its last task: whether that has ended depends on how it died.
    scene.node.die(p);
    scene.exit(1);
    assert_eq!(scene.log.tasks(EventKind::TaskEnded), [(1, 0), (1, 1)]);
    let waits = scene.log.of(EventKind::Waits);
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].process, waits[0].reason), (2, Wait::Gone as u16));
    // It waits on, and its slot passes as if it were blocked.
    scene.wait(3000);
    assert_eq!(scene.granted(), 3);
    scene.finish(1000);
    scene.exit(3);
    assert_eq!(scene.granted(), crate::wire::IDLE);
    assert_eq!(scene.node.waits_for(1), Some((1, 1)));
    // It is the same under a plan that still has the edge.
    scene.swap_with(
        CONFIG,
        text::plan_of(net(
            &[(1, 10), (1, 10), (1, 10), (2, 1000)],
            &[(2, 0, 1, 1)],
        )),
        0,
    );
    assert_eq!(scene.node.waits_for(1), Some((1, 1)));
    assert_eq!(scene.log.of(EventKind::Waits).len(), 2);
    // The planner decides: without the edge it continues.
    scene.swap_with(CONFIG, text::plan(&[(2, 1000)]), 0);
    assert_eq!(scene.granted(), 2);
}

/// Tasks that have ended under the old plan have ended under the new one.
#[test]
fn plan_that_follows_knows_what_has_ended() {
    let slots = [(1, 1000), (2, 1000), (1, 1000), (2, 1000)];
    let mut scene = scene(&slots, &[(2, 0, 1, 1)]);
    scene.finish(1000);
    // The same edges once more, with a task that has ended, and one of which the
    // plan no longer knows.
    let with = |edges: &[(u32, u32, u32, u32)]| {
        let slots = [(1000, 2, 0), (1000, 1, 1), (1000, 2, 1)];
        text::plan_of(Cpu {
            cpu: 0,
            processes: vec![(1, 0), (2, 0)],
            slots: slots.to_vec(),
            edges: edges.to_vec(),
            deadlines: vec![],
            arrivals_ns: vec![],
        })
    };
    scene.swap_with(CONFIG, with(&[(2, 0, 1, 0), (2, 1, 1, 1)]), 0);
    assert_eq!((scene.granted(), scene.node.waits_for(1)), (2, None));
    scene.swap_with(CONFIG, with(&[(2, 0, 1, 0), (2, 0, 1, 1)]), 0);
    assert_eq!(scene.node.waits_for(1), Some((1, 1)));
    assert_eq!(scene.granted(), crate::wire::IDLE);
    scene.wait(3000);
    scene.finish(1000);
    assert_eq!(scene.granted(), 2);
}

/// A task may end on the way to where its thread waits, though it was to wait.
#[test]
fn task_that_ends_while_it_waits_has_ended() {
    let slots = [(1, 1000), (2, 1000), (2, 1000), (3, 1000)];
    let mut scene = scene(&slots, &[(2, 0, 1, 0), (3, 0, 2, 0)]);
    let p = scene.index(2);
    assert_eq!(scene.node.waits_for(p), Some((1, 0)));
    scene.node.end_task(p, scene.now_ns, &mut scene.log);
    scene.decide();
    assert_eq!(scene.node.waits_for(p), None);
    assert_eq!(scene.node.waits_for(scene.index(3)), None);
}

/// After that its next task is a candidate, and the ones behind wait as they are to.
#[test]
fn who_did_not_wait_goes_on_and_waits_later() {
    // Process 2 comes into its slots late: therefore all are behind the cursor.
    let slots = [(2, 1), (2, 1), (2, 1), (1, 1000), (1, 1000)];
    let mut scene = scene(&slots, &[(2, 0, 1, 0), (2, 2, 1, 1)]);
    let p = scene.index(2);
    scene.set(2, Presence::Blocked);
    for _ in 0..3 {
        scene.wait(2000);
    }
    assert_eq!(scene.granted(), 1);
    scene.set(2, Presence::Ready);
    for _ in 0..2 {
        scene.node.end_task(p, scene.now_ns, &mut scene.log);
        assert_eq!(scene.node.contradiction(0, 2), None);
        scene.decide();
    }
    assert_eq!(scene.node.waits_for(p), Some((1, 1)));
}

/// A process on another CPU is asked about when a process begins to wait for it, and when its
/// progress is reported.
#[test]
fn process_on_another_cpu_is_waited_for() {
    let cpus = [
        net(&[(1, 1000), (1, 1000)], &[(1, 0, 9, 0), (1, 1, 9, 3)]),
        Cpu {
            cpu: 1,
            ..net(&[(9, 10), (9, 10), (9, 10), (9, 10)], &[])
        },
    ];
    let plan = text::read(&text::write(1, None, &cpus))
        .unwrap()
        .remove(0)
        .1;
    let mut scene = Scene::absent(CONFIG, plan);
    scene.log.2 = vec![9];
    let come = |scene: &mut Scene, before_task, is_last| {
        let ended = Ended {
            before_task,
            is_last,
        };
        scene.log.1.insert(9, ended);
        scene.node.look_elsewhere(&mut scene.log);
        scene.decide();
        assert!(!scene.last.again);
    };
    scene.set(1, Presence::Ready);
    assert_eq!(scene.node.waits_for(0), Some((9, 0)));
    come(&mut scene, 2, false);
    assert_eq!((scene.granted(), scene.node.waits_for(0)), (1, None));
    scene.finish(1000);
    assert_eq!(scene.node.waits_for(0), Some((9, 3)));
    come(&mut scene, 3, true);
    let waits = scene.log.of(EventKind::Waits);
    assert_eq!(
        waits.last().map(|event| event.reason),
        Some(Wait::Gone as u16)
    );
    // Another plan there has it once more, and it continues.
    let told = scene.log.of(EventKind::Waits).len();
    come(&mut scene, 3, true);
    assert_eq!(scene.log.of(EventKind::Waits).len(), told);
    come(&mut scene, 4, false);
    assert_eq!((scene.granted(), scene.node.waits_for(0)), (1, None));
}

/// A process that reaches the limit of edges of one decision has asked there, too: no report of it
/// arrives again.
#[test]
fn many_on_another_cpu_are_all_asked_about() {
    const MANY: u32 = 200;
    let there: Vec<_> = (0..MANY).map(|process| (100 + process, 10)).collect();
    let cpus = [
        net(
            &[(1, 1000)],
            &there
                .iter()
                .map(|&(id, _)| (1, 0, id, 0))
                .collect::<Vec<_>>(),
        ),
        Cpu {
            cpu: 1,
            ..net(&there, &[])
        },
    ];
    let plan = text::read(&text::write(1, None, &cpus))
        .unwrap()
        .remove(0)
        .1;
    let mut scene = Scene::absent(CONFIG, plan);
    scene.log.2 = there.iter().map(|&(id, _)| id).collect();
    let all = Ended {
        before_task: 1,
        is_last: false,
    };
    scene.log.1 = there.iter().map(|&(id, _)| (id, all)).collect();
    scene.set(1, Presence::Ready);
    assert!(scene.last.again);
    scene.decide_all();
    assert_eq!((scene.granted(), scene.node.waits_for(0)), (1, None));
}
