// SPDX-License-Identifier: GPL-2.0
//! Stages of jobs: what is late is announced, and what comes next.

use pbs_rms_apps::{Application, How, Kind, Request, Staged, Step, Wish, FOREVER, SECOND_NS as S};

fn update(nodes: u64, duration_s: u64, announce_s: u64) -> Wish {
    Wish::Update {
        label: Staged::NODES,
        nodes,
        duration_ns: duration_s * S,
        announce_ns: announce_s * S,
    }
}

fn start(tasks: std::ops::Range<u64>) -> Wish {
    Wish::Start { tasks }
}

fn done() -> Vec<Wish> {
    let labels = [Staged::NODES, Staged::PRE_ALLOCATION];
    let done = |label| Wish::Done { label, released: 0 };
    labels.map(done).to_vec()
}

/// Two stages, of 1 and of 3 nodes for 20 s each, of which the first has its node.
fn begun(announce_s: u64) -> Staged {
    let stages = [1, 3].map(|nodes| Step::new(20 * S, nodes));
    let mut staged = Staged::new(stages.to_vec(), announce_s * S);
    staged.connect(0);
    assert_eq!(staged.started(0, Staged::PRE_ALLOCATION, 0), []);
    assert_eq!(staged.started(0, Staged::NODES, 1), [start(0..1)]);
    staged
}

#[test]
fn the_pre_allocation_is_for_the_largest_stage() {
    let stages = [(20, 1), (0, 9), (10, 3)].map(|(s, nodes)| Step::new(s * S, nodes));
    let wishes = Staged::new(stages.to_vec(), 0).connect(0);
    let request = |label, kind, nodes, duration_ns, how| {
        Wish::Request(Request { label, kind, nodes, duration_ns, how })
    };
    let (all, mine) = (Staged::PRE_ALLOCATION, Staged::NODES);
    let expected = [
        request(all, Kind::PreAllocation, 3, FOREVER, How::Free),
        request(mine, Kind::NonPreemptible, 1, 20 * S, How::Coalloc(all)),
    ];
    assert_eq!(wishes, expected);
    assert!(Staged::new(Vec::new(), 0).has_ended());
}

#[test]
fn the_next_stage_asks_when_the_one_before_has_ended() {
    let mut staged = begun(0);
    assert_eq!(staged.next_ns(), None);
    assert_eq!(staged.task_expected(S, 0, 15 * S), []);
    assert_eq!(staged.task_ended(14 * S, 0), [update(3, 20, 0)]);
    assert_eq!(staged.started(15 * S, Staged::NODES, 3), [start(1..4)]);
    for task in 1..3 {
        assert_eq!(staged.task_ended(20 * S, task), []);
    }
    assert_eq!(staged.task_ended(21 * S, 3), done());
    assert!(staged.has_ended());
    assert_eq!(staged.extended(), 0);
}

#[test]
fn the_next_stage_is_announced_for_the_end_of_this_one() {
    let mut staged = begun(5);
    assert_eq!(staged.task_expected(S, 0, 15 * S), []);
    assert_eq!(staged.next_ns(), Some(10 * S));
    assert_eq!(staged.wake(10 * S), [update(3, 20, 5)]);
    // Said once.
    assert_eq!(staged.next_ns(), None);
    assert_eq!(staged.task_expected(11 * S, 0, 16 * S), []);
    // One node is still used by the first stage when the second one begins.
    assert_eq!(staged.started(15 * S, Staged::NODES, 3), [start(1..3)]);
    assert_eq!(staged.task_ended(16 * S, 0), [start(3..4)]);
}

#[test]
fn a_late_task_announces_that_it_needs_its_nodes_for_longer() {
    let mut staged = begun(0);
    // 8 s more than there are, and a quarter of that to spare; from 20 s on.
    assert_eq!(staged.task_expected(4 * S, 0, 28 * S), [update(1, 10, 16)]);
    assert_eq!(staged.task_expected(5 * S, 0, 29 * S), []);
    // More than that, before it has begun: it becomes longer.
    assert_eq!(staged.task_expected(6 * S, 0, 34 * S), [update(1, 15, 0)]);
    assert_eq!(staged.started(20 * S, Staged::NODES, 1), []);
    // It ends at 35 s now.
    assert_eq!(staged.task_expected(21 * S, 0, 35 * S), []);
    assert_eq!(staged.task_expected(22 * S, 0, 39 * S), [update(1, 5, 13)]);
    assert_eq!(staged.extended(), 3);
}

#[test]
fn a_refused_update_changes_nothing() {
    let mut staged = begun(5);
    assert_eq!(staged.task_expected(4 * S, 0, 28 * S), [update(1, 10, 16)]);
    assert_eq!(staged.refused(4 * S, Staged::NODES), []);
    // Asked again when something else is expected, from the same end on.
    assert_eq!(staged.task_expected(10 * S, 0, 24 * S), [update(1, 5, 10)]);
    assert_eq!(staged.refused(10 * S, Staged::NODES), []);
    assert_eq!(staged.run_out(20 * S, Staged::NODES), done());
    assert!(staged.has_ended());
}

#[test]
fn without_more_nodes_the_tasks_run_a_few_at_a_time() {
    let mut staged = begun(5);
    assert_eq!(staged.task_expected(S, 0, 15 * S), []);
    assert_eq!(staged.wake(10 * S), [update(3, 20, 5)]);
    assert_eq!(staged.refused(10 * S, Staged::NODES), []);
    // It is not announced again; but asked for when it is needed.
    assert_eq!(staged.next_ns(), None);
    assert_eq!(staged.task_ended(15 * S, 0), [update(3, 20, 0)]);
    // With the one node that it has, the first of three jobs will end at 32 s: 12 s late.
    assert_eq!(staged.refused(15 * S, Staged::NODES), [start(1..2)]);
    assert_eq!(staged.task_expected(16 * S, 1, 32 * S), [update(1, 15, 4)]);
    assert_eq!(staged.started(20 * S, Staged::NODES, 1), []);
    assert_eq!(staged.task_ended(30 * S, 1), [start(2..3)]);
    assert_eq!(staged.running(), 1);
}

#[test]
fn tasks_of_an_ended_request_are_not_waited_for() {
    let mut staged = begun(0);
    assert_eq!(staged.run_out(20 * S, Staged::NODES), done());
    assert_eq!(staged.task_ended(20 * S, 0), []);
    assert_eq!((staged.held(), staged.next_ns()), (0, None));
}

#[test]
fn an_extension_becomes_part_of_the_next_stage() {
    let mut staged = begun(5);
    assert_eq!(staged.task_expected(4 * S, 0, 28 * S), [update(1, 10, 16)]);
    // It is to end at 28 s, and would have its node for longer from 20 s on.
    assert_eq!(staged.task_expected(12 * S, 0, 21 * S), []);
    assert_eq!(staged.next_ns(), Some(16 * S));
    assert_eq!(staged.wake(16 * S), [update(3, 20, 0)]);
    assert_eq!(staged.next_ns(), None);
    assert_eq!(staged.started(20 * S, Staged::NODES, 3), [start(1..3)]);
    assert_eq!(staged.task_ended(21 * S, 0), [start(3..4)]);
    // What is refused is for longer again.
    let mut staged = begun(5);
    staged.task_expected(4 * S, 0, 28 * S);
    staged.task_expected(12 * S, 0, 21 * S);
    staged.wake(16 * S);
    assert_eq!(staged.refused(16 * S, Staged::NODES), []);
    assert_eq!(staged.next_ns(), None, "it is not announced again until then");
    assert_eq!(staged.started(20 * S, Staged::NODES, 1), [update(3, 20, 1)]);
    // If it is said earlier when that has begun, it is said then.
    let mut staged = begun(12);
    staged.task_expected(4 * S, 0, 36 * S);
    assert_eq!(staged.task_expected(9 * S, 0, 29 * S), []);
    assert_eq!((staged.next_ns(), staged.wake(17 * S)), (Some(17 * S), vec![]));
    assert_eq!(staged.next_ns(), None);
    assert_eq!(staged.started(20 * S, Staged::NODES, 1), [update(3, 20, 9)]);
}
