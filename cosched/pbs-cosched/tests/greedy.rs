// SPDX-License-Identifier: GPL-2.0
//! The round-based greedy scheduler, feature by feature.

mod common;

use common::{build, cpu, platform, start, GPU};
use pbs_cosched::{
    greedy, Choice, ExecutionTarget, GreedyOptions, Hold, Priority, Queues, Slot, Where,
};

const OTHER: ExecutionTarget = ExecutionTarget::Device(1);

fn choice(variant: usize, round: u32, place: u32) -> Option<Choice> {
    Some(Choice { variant, round, place, hold: Hold::default() })
}

#[test]
fn greedy_rounds_serve_urgent_tasks_first_and_share_the_threads() {
    let mut all = build(&[0, 1]);
    let both = [(GPU, 1), (cpu(1), 50), (cpu(2), 30), (cpu(3), 25)];
    all.heap(0, 3, &both);
    all.task(1, &[], &[(GPU, 90)]);
    all.task(1, &[(3, 0)], &[(cpu(4), 5)]);
    let on = platform(5, &[1]);
    let mapping = greedy(&all.0, &on, &Queues::idle(&on), &GreedyOptions::default());
    // Three of five threads: 1 + 5 mod 3 of them one more.
    assert_eq!(
        mapping.choices,
        [choice(2, 1, 1), choice(2, 1, 2), choice(1, 1, 3), choice(0, 1, 0), choice(0, 2, 0)]
    );
    // Two urgent tasks for one device: the loser waits for the next round.
    let mut all = build(&[0]);
    all.heap(0, 2, &[(GPU, 5)]);
    let mapping = greedy(&all.0, &on, &Queues::idle(&on), &GreedyOptions::default());
    assert_eq!(mapping.choices, [choice(0, 1, 0), choice(0, 2, 0)]);
    // More tasks than threads.
    let mut all = build(&[0]);
    all.heap(0, 7, &[(cpu(1), 5), (cpu(2), 3)]);
    let mapping = greedy(&all.0, &on, &Queues::idle(&on), &GreedyOptions::default());
    let of_round = |round| mapping.choices.iter().flatten().filter(move |of| of.round == round);
    assert_eq!((of_round(1).count(), of_round(2).count()), (5, 2));
    assert!(of_round(1).all(|of| of.variant == 0) && of_round(2).all(|of| of.variant == 1));
}

#[test]
fn a_task_that_needs_more_than_its_share_still_runs() {
    let mut all = build(&[0]);
    all.heap(0, 2, &[(cpu(3), 5)]);
    all.task(0, &[], &[(cpu(1), 5)]);
    let on = platform(4, &[]);
    let mapping = greedy(&all.0, &on, &Queues::idle(&on), &GreedyOptions::default());
    assert_eq!(mapping.choices, [choice(0, 1, 0), choice(0, 2, 0), choice(0, 1, 1)]);
}

#[test]
fn running_tasks_hold_their_devices_for_the_first_round() {
    let mut all = build(&[0, 0]);
    all.task(0, &[], &[(GPU, 9)]);
    all.task(0, &[(0, 0)], &[(GPU, 9), (cpu(1), 20)]);
    all.task(1, &[], &[(GPU, 9), (cpu(2), 20)]);
    all.task(1, &[], &[(cpu(1), 20)]);
    let on = platform(2, &[1]);
    let mut queues = Queues::idle(&on);
    let place = Where::Device { device: 0, instance: 0 };
    start(&mut queues, 4, 0, 0, Slot { start_ns: 0, end_ns: 9, place });
    queues.now_ns = 1;
    let mapping = greedy(&all.0, &on, &queues, &GreedyOptions::default());
    assert_eq!(mapping.choices[0], None);
    // Not on the accelerator, which is taken, but on both threads.
    assert_eq!(mapping.choices[2], choice(1, 1, 0));
    // Ready with the second round, by age before the other.
    assert_eq!(mapping.choices[1], choice(0, 2, 0));
    assert_eq!(mapping.choices[3], choice(0, 2, 1));
    // Ended at this very time: free, and who waited for it is ready.
    queues.now_ns = 9;
    let mapping = greedy(&all.0, &on, &queues, &GreedyOptions::default());
    assert_eq!(mapping.choices[1], choice(0, 1, 0));
}

#[test]
fn three_priorities_hold_in_two_situations() {
    // The first is the oldest, the second the fastest, the third has the most successors.
    let mut all = build(&[0, 1, 2]);
    for urgent in [true, false] {
        let slow = (cpu(1), 1000);
        let of = |runtime_ns| {
            let mut of = vec![(if urgent { GPU } else { OTHER }, runtime_ns)];
            if !urgent {
                of.push(slow);
            }
            of
        };
        all.task(0, &[], &of(30));
        all.task(1, &[], &of(10));
        let last = all.task(2, &[], &of(20));
        all.task(2, &[(last, 0)], &[slow]);
    }
    let on = platform(1, &[1, 1]);
    let winners = |contention, leftovers| {
        let options = GreedyOptions { contention, leftovers, stickiness: false };
        let mapping = greedy(&all.0, &on, &Queues::idle(&on), &options);
        let first = |tasks: [usize; 3]| {
            tasks.into_iter().position(|task| {
                mapping.choices[task].is_some_and(|of| {
                    let place = all.0.tasks[task].variants[of.variant].place;
                    of.round == 1 && place != cpu(1)
                })
            })
        };
        [first([0, 1, 2]).unwrap(), first([4, 5, 6]).unwrap()]
    };
    let expected = [(Priority::Age, 0), (Priority::Runtime, 1), (Priority::Successors, 2)];
    for (contention, urgent) in expected {
        for (leftovers, able) in expected {
            assert_eq!(winners(contention, leftovers), [urgent, able]);
        }
    }
}

#[test]
fn ties_go_by_submission_then_owner_then_number() {
    let on = platform(1, &[1]);
    let first = |arrivals_ns: &[u64], owners: [u64; 2]| {
        let mut all = build(arrivals_ns);
        for (of, owner) in all.0.processes.iter_mut().zip(owners) {
            of.owner = owner;
        }
        all.task(0, &[], &[(GPU, 5)]);
        all.task(1, &[], &[(GPU, 5)]);
        for priority in [Priority::Age, Priority::Runtime, Priority::Successors] {
            let options =
                GreedyOptions { contention: priority, leftovers: priority, stickiness: true };
            let mapping = greedy(&all.0, &on, &Queues::idle(&on), &options);
            let winner = usize::from(mapping.choices[1].unwrap().round == 1);
            assert_eq!(mapping.choices[1 - winner].unwrap().round, 2);
            if priority == Priority::Successors {
                return winner;
            }
        }
        unreachable!()
    };
    assert_eq!(first(&[5, 4], [0, 1]), 1);
    assert_eq!(first(&[5, 5], [1, 0]), 1);
    assert_eq!(first(&[5, 5], [1, 1]), 0);
}

#[test]
fn a_lone_task_sticks_to_its_predecessors_device() {
    let on = platform(1, &[1]);
    let place_of = |transfer_ns, stickiness| {
        let mut all = build(&[0]);
        let first = all.task(0, &[], &[(cpu(1), 50)]);
        all.task(0, &[(first, transfer_ns)], &[(GPU, 20), (cpu(1), 50)]);
        let options = GreedyOptions { stickiness, ..GreedyOptions::default() };
        let mapping = greedy(&all.0, &on, &Queues::idle(&on), &options);
        mapping.choices[1].unwrap().variant
    };
    // T(stay) = 50 ≤ T(move) + transfer = 20 + 30.
    assert_eq!(place_of(30, true), 1);
    assert_eq!(place_of(29, true), 0);
    assert_eq!(place_of(30, false), 0);
    // Two ready tasks: it does not apply.
    let mut all = build(&[0]);
    let first = all.task(0, &[], &[(cpu(1), 50)]);
    all.task(0, &[(first, 99)], &[(GPU, 20), (cpu(1), 50)]);
    all.task(0, &[(first, 99)], &[(cpu(1), 50)]);
    let mapping = greedy(&all.0, &on, &Queues::idle(&on), &GreedyOptions::default());
    assert_eq!(mapping.choices[1].unwrap().variant, 0);
    // The predecessor runs, and its device is free from the second round.
    let mut all = build(&[0]);
    let first = all.task(0, &[], &[(GPU, 50)]);
    all.task(0, &[(first, 99)], &[(GPU, 60), (cpu(1), 50)]);
    let mut queues = Queues::idle(&on);
    let place = Where::Device { device: 0, instance: 0 };
    start(&mut queues, 2, 0, 0, Slot { start_ns: 0, end_ns: 50, place });
    let mapping = greedy(&all.0, &on, &queues, &GreedyOptions::default());
    assert_eq!(mapping.choices, [None, choice(0, 2, 0)]);
}
