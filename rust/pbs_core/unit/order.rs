// SPDX-License-Identifier: GPL-2.0

//! The order of tasks: edges as they are written, and who is held back by them.

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use crate::{EventKind, Fault, Grant, Refusal, Wait};

use super::scene::{Scene, CONFIG};
use super::text::{self, Cpu};

/// CPU 0 with these slots (process, length) and edges.
fn net(slots: &[(u32, u64)], edges: &[(u32, u32, u32, u32)]) -> Cpu {
    Cpu {
        edges: edges.to_vec(),
        ..Cpu::numbered(0, slots)
    }
}

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
    let at = |edge: usize| 64 + 32 + 2 * 32 + 3 * 16 + 16 * edge;
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

/// The slot of who waits is filled, that is told once, and the wait ends with
/// the task.
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
