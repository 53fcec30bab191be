// SPDX-License-Identifier: GPL-2.0
//! The adaptive mesh (Klein and Pérez 2011, 5.1.1), by itself and beside a sweep.

mod common;

use common::{mesh, run, steps, Course};
use pbs_rms_apps::{
    seconds, Allocation, Amr, Application, KillOrder, Kind, Label, SpeedUp, Updates, Wish,
    WorkingSet, FOREVER, MOST_MIB, SECOND_NS,
};

const S: u64 = SECOND_NS;
const TASK_NS: u64 = 600 * S;

/// Small, large, small.
fn small() -> Allocation {
    let set = WorkingSet::of(vec![100.0, 1000.0, 100.0]);
    Allocation::new(&set, MOST_MIB, 0.75, SpeedUp::default())
}

fn update(nodes: u64, announce_ns: u64) -> Wish {
    Wish::Update { label: Label(1), nodes, duration_ns: FOREVER, announce_ns }
}

#[test]
fn spontaneous_updates_are_sent_with_each_step() {
    let steps = small();
    let [low, high] = [steps.nodes[0], steps.nodes[1]];
    let mut app = Amr::new(steps, 1400, Updates::Spontaneous);
    assert_eq!((high, app.wanted(1)), (1511, 1400));
    let kinds = app.connect(0).into_iter().map(|wish| match wish {
        Wish::Request(request) => (request.kind, request.nodes),
        other => panic!("{other:?}"),
    });
    let expected = [(Kind::PreAllocation, 1400), (Kind::NonPreemptible, low)];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(app.started(0, Label(0), 0), []);
    assert_eq!(app.started(0, Label(1), low), []);
    let first_ns = app.step_ns(0, low);
    assert_eq!(app.next_ns(), Some(first_ns));
    // The step begins with the nodes that there are, unless the others come at once.
    assert_eq!(app.wake(first_ns), [update(1400, 0)]);
    assert_eq!(app.working(), low);
    assert_eq!(app.next_ns(), Some(first_ns + app.step_ns(1, low)));
    assert_eq!(app.started(first_ns, Label(1), 1400), []);
    let second_ns = first_ns + app.step_ns(1, 1400);
    assert_eq!((app.working(), app.next_ns()), (1400, Some(second_ns)));
    // Nodes that it gives back do not work any more, whenever the manager takes them.
    assert_eq!(app.wake(second_ns), [update(low, 0)]);
    assert_eq!((app.working(), app.held()), (low, 1400));
    assert_eq!(app.started(second_ns + S, Label(1), low), []);
    let third_ns = second_ns + app.step_ns(2, low);
    let ended = app.wake(third_ns);
    assert!(matches!(ended[..], [Wish::Done { .. }, Wish::Done { .. }]), "{ended:?}");
    assert_eq!((app.ended_ns(), app.next_ns()), (Some(third_ns), None));
}

#[test]
fn late_nodes_work_from_the_next_step_on() {
    let steps = small();
    let low = steps.nodes[0];
    let mut app = Amr::new(steps, 1400, Updates::Spontaneous);
    app.connect(0);
    app.started(0, Label(1), low);
    let first_ns = app.step_ns(0, low);
    app.wake(first_ns);
    let ends_ns = app.next_ns();
    app.started(first_ns + S, Label(1), 1400);
    assert_eq!((app.working(), app.held(), app.next_ns()), (low, 1400, ends_ns));
}

#[test]
fn static_allocations_stay() {
    let mut app = Amr::new(small(), 1000, Updates::Never);
    app.connect(0);
    app.started(0, Label(1), 1000);
    let mut sum_ns = 0;
    for step in 0..3 {
        sum_ns += app.step_ns(step, 1000);
        assert_eq!(app.next_ns(), Some(sum_ns));
        let wishes = app.wake(sum_ns);
        assert!(wishes.iter().all(|wish| matches!(wish, Wish::Done { .. })));
    }
    assert_eq!(app.ended_ns(), Some(sum_ns));
}

#[test]
fn one_update_is_announced_at_a_time() {
    let set = WorkingSet::new(4);
    let steps = Allocation::new(&set, MOST_MIB, 0.75, SpeedUp::default());
    let interval_ns = 300 * S;
    let mut app = Amr::new(steps, 1400, Updates::Announced { interval_ns });
    app.connect(0);
    let mut announced: Option<(u64, u64)> = None;
    let mut wishes = app.started(0, Label(1), app.wanted(0));
    let (mut now_ns, mut last_ns, mut count) = (0, 0, 0);
    while !app.has_ended() {
        for wish in wishes.drain(..) {
            let Wish::Update { nodes, announce_ns, .. } = wish else {
                continue;
            };
            assert_eq!((announce_ns, announced), (interval_ns, None));
            // The node count of the moment of the announcement.
            assert_eq!(nodes, app.wanted(app.step()));
            announced = Some((now_ns + announce_ns, nodes));
            count += 1;
        }
        let step_ns = app.next_ns().expect("a step runs");
        match announced.filter(|&(ns, _)| ns < step_ns) {
            Some((ns, nodes)) => {
                now_ns = ns;
                assert!(app.working() <= nodes.min(app.held()), "they work and are taken");
                announced = None;
                wishes = app.started(now_ns, Label(1), nodes);
                // The next one follows at once, so holes are as long as the interval.
                assert!(
                    last_ns == 0
                        || now_ns - last_ns == interval_ns
                        || nodes == app.wanted(app.step())
                );
                last_ns = now_ns;
            }
            None => {
                now_ns = step_ns;
                wishes = app.wake(now_ns);
            }
        }
    }
    assert!(count > 20, "{count} updates in {} s", seconds(now_ns));
}

/// Ten meshes beside sweeps, with what is known of the update for so long before.
fn courses(interval_s: u64) -> Vec<Course> {
    let updates = Updates::Announced { interval_ns: interval_s * S };
    let of = |seed| run(1400, mesh(seed, updates), TASK_NS, KillOrder::Youngest);
    (0..10).map(of).collect()
}

fn median(of: &[Course], value: impl Fn(&Course) -> f64) -> f64 {
    let mut values: Vec<f64> = of.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn announcements_help_sweeps_and_cost_the_mesh() {
    // Figure 10, of a manager that needs no time.
    let all = [0, 250, 300, 350, 550, 600, 650].map(courses);
    let waste = all.each_ref().map(|of| 100.0 * median(of, Course::waste));
    let used = all.each_ref().map(|of| 100.0 * median(of, Course::used));
    let end = all.each_ref().map(|of| median(of, |course| seconds(course.ended_ns)));
    for (found, expected) in [(waste[0], 1.8), (waste[2], 0.8), (waste[4], 0.1)] {
        assert!((found - expected).abs() < 0.2, "{waste:?}");
    }
    for (found, expected) in [(used[2], 99.2), (used[5], 100.0), (used[4], 98.6)] {
        assert!((found - expected).abs() < 0.3, "{used:?}");
    }
    // Peaks where the holes fit tasks, and a dip before the second.
    assert!(used[1] < used[2] && used[2] > used[3] && used[4] < used[5] && used[5] > used[6]);
    assert!(end.is_sorted(), "{end:?}");
    assert!((end[5] / end[0] - 1.17).abs() < 0.02, "{end:?}");
    // With announcements as long as a task, nothing at all is wasted.
    for course in all[5].iter().chain(&all[6]) {
        assert_eq!((course.sweep.killed, course.sweep.wasted_node_ns), (0, 0));
    }
}

/// The report does not say which tasks a sweep kills first. The choice changes the waste without
/// announcements.
#[test]
fn the_order_of_kills_changes_the_waste() {
    let waste = |order| {
        let of = |seed| run(1400, mesh(seed, Updates::Spontaneous), TASK_NS, order);
        let all: Vec<Course> = (0..10).map(of).collect();
        100.0 * median(&all, Course::waste)
    };
    let [least, most] = [KillOrder::Youngest, KillOrder::Oldest].map(waste);
    // Between those is all that it may do.
    assert!((least - 1.8).abs() < 0.2 && most > 4.7, "{least} and {most}");
}

#[test]
fn a_mesh_takes_as_long_as_its_steps() {
    for seed in 0..3 {
        let steps = steps(seed);
        let course = run(1400, mesh(seed, Updates::Spontaneous), TASK_NS, KillOrder::Youngest);
        let alone = steps.at_most(steps.equivalent_nodes());
        assert!((seconds(course.ended_ns) / alone.seconds() - 1.0).abs() < 1e-6);
        let area = course.mesh_node_ns as f64 / S as f64;
        assert!((area / alone.area() - 1.0).abs() < 1e-6);
        // Figure 9: less is wasted than a static allocation would use for nothing.
        let twice = steps.overcommitted(2.0);
        let wide = Amr::new(steps.clone(), twice, Updates::Spontaneous);
        let course = run(2800, wide, TASK_NS, KillOrder::Youngest);
        let wasted = course.sweep.wasted_node_ns as f64 / S as f64;
        assert!(wasted < steps.static_area(twice as f64) - steps.area());
    }
}
