// SPDX-License-Identifier: GPL-2.0
//! Fluid timing, and the search for orders.

mod made;

use made::{key, seeded};
use pbs_interference::{
    arrange, Effort, Entry, Fluid, Lane, Level, Sharing, Slowdowns, Task, Timing,
};
use pbs_random::Random;

fn table(pairs: &[(u64, u64, f64)]) -> Slowdowns {
    let entries = pairs.iter().map(|&(victim, aggressor, slowdown)| Entry {
        victim: key(victim),
        beside: vec![(Level::Node, key(aggressor))],
        slowdown,
        low: slowdown,
        high: slowdown,
        samples: 10,
    });
    Slowdowns::new(entries.collect())
}

const MS: u64 = 1_000_000;

/// Returns tasks with these keys and times alone, in milliseconds.
fn tasks(of: &[(u64, u64)]) -> Vec<Task> {
    let tasks =
        of.iter().map(|&(who, ms)| Task { key: key(who), alone_ns: ms * MS, ..Task::default() });
    tasks.collect()
}

fn lanes(orders: &[&[usize]], fixed: usize) -> Vec<Lane> {
    let lanes = orders.iter().zip(0..).map(|(order, cpu)| Lane {
        cpu,
        order: order.to_vec(),
        fixed: fixed.min(order.len()),
    });
    lanes.collect()
}

fn time(tasks: &[Task], table: &Slowdowns, orders: &[&[usize]]) -> Timing {
    let sharing = Sharing::default();
    let mut fluid = Fluid::new(tasks, table, &sharing);
    fluid.time(&lanes(orders, 0)).expect("it ends")
}

/// In microseconds, rounded.
fn ends(timing: &Timing) -> Vec<u64> {
    let times = timing.times.iter().flatten();
    times.map(|&(_, end_ns)| (end_ns + 500) / 1000).collect()
}

#[test]
fn a_task_alone_again_runs_at_full_speed() {
    let tasks = tasks(&[(1, 60), (2, 100)]);
    let table = table(&[(1, 2, 2.0), (2, 1, 1.25)]);
    let timing = time(&tasks, &table, &[&[0], &[1]]);
    // By 120 the second has done 96; it is not slowed for what is left.
    assert_eq!(ends(&timing), [120_000, 124_000]);
    assert_eq!(timing.makespan_ns, 124 * MS);
    assert_eq!(timing.sum_ns, u128::from(244 * MS));
}

/// Timing ends also with the least slow-down, where rounding leaves the most of a long task.
#[test]
fn timing_ends_with_the_least_slowdown() {
    let table = table(&[(1, 2, 0.1), (2, 1, 0.1)]);
    let mut random = seeded(11);
    for _ in 0..2000 {
        let mut task = |who: u64| Task {
            key: key(who),
            alone_ns: 1 + random.below(1_000_000_000_000_000),
            ..Task::default()
        };
        let tasks = [task(1), task(2), task(1), task(2), task(1), task(2)];
        let timing = time(&tasks, &table, &[&[0, 2, 4], &[1, 3, 5]]);
        let sum = |first: usize| -> u64 {
            tasks.iter().skip(first).step_by(2).map(|task| task.alone_ns).sum()
        };
        let longest = sum(0).max(sum(1));
        let bounds = longest / 10..=longest;
        assert!(bounds.contains(&timing.makespan_ns), "{tasks:?}: {timing:?}");
    }
}

#[test]
fn tasks_that_slow_each_other_run_one_after_the_other() {
    let tasks = tasks(&[(1, 100), (2, 100)]);
    let table = table(&[(1, 2, 2.5), (2, 1, 2.5)]);
    assert_eq!(time(&tasks, &table, &[&[0], &[1]]).makespan_ns, 250 * MS);
    assert_eq!(time(&tasks, &table, &[&[0, 1], &[]]).makespan_ns, 200 * MS);
    let sharing = Sharing::default();
    let given = lanes(&[&[0], &[1]], 0);
    let found = arrange(&tasks, &given, &table, &sharing, Effort::default());
    let found = found.expect("it ends");
    assert_eq!(found.given.makespan_ns, 250 * MS);
    assert_eq!(found.timing.makespan_ns, 200 * MS);
    assert!(found.lanes.iter().any(|lane| lane.order.len() == 2));
    // If they run already, nothing can be done any more.
    let running = lanes(&[&[0], &[1]], 1);
    let found = arrange(&tasks, &running, &table, &sharing, Effort::default());
    assert_eq!(found.map(|found| found.lanes), Some(running));
}

/// Memory and core: memory hogs slow each other, and a little do others slow them.
fn mixed() -> (Vec<Task>, Slowdowns) {
    let (memory, core) = (1, 2);
    let tasks = tasks(&[(memory, 100), (core, 100), (memory, 100), (core, 100)]);
    let table = table(&[
        (memory, memory, 1.8),
        (memory, core, 1.1),
        (core, memory, 1.0),
        (core, core, 1.0),
    ]);
    (tasks, table)
}

#[test]
fn the_order_on_one_cpu_decides_for_the_other() {
    let (tasks, table) = mixed();
    let timing = time(&tasks, &table, &[&[0, 1], &[2, 3]]);
    assert_eq!(timing.makespan_ns, 280 * MS);
    let timing = time(&tasks, &table, &[&[0, 1], &[3, 2]]);
    assert_eq!(timing.makespan_ns.div_ceil(10_000), 21_637);
    assert_eq!(ends(&timing), [116_364, 216_364, 216_364, 100_000]);
}

#[test]
fn the_search_finds_the_best_order_and_keeps_fixed_tasks() {
    let (tasks, table) = mixed();
    let mut given = lanes(&[&[0, 1], &[2, 3]], 0);
    given[0].fixed = 2;
    let sharing = Sharing::default();
    let found = arrange(&tasks, &given, &table, &sharing, Effort::default());
    let found = found.expect("it ends");
    assert_eq!(found.lanes[0].order[..2], [0, 1]);
    assert_eq!(found.given.makespan_ns, 280 * MS);
    assert!(found.timing.makespan_ns <= 216_363_637, "{found:?}");
}

#[test]
fn tasks_wait_for_others_and_for_their_time() {
    let mut tasks = tasks(&[(1, 10), (2, 10), (3, 10), (3, 0)]);
    tasks[1].after = vec![0];
    tasks[2].release_ns = 50 * MS;
    // It takes no time, and begins after the one before.
    tasks[3].after = vec![2];
    let table = Slowdowns::default();
    let timing = time(&tasks, &table, &[&[0, 3], &[1, 2]]);
    assert_eq!(ends(&timing), [10_000, 20_000, 60_000, 60_000]);
    let sharing = Sharing::default();
    let mut fluid = Fluid::new(&tasks, &table, &sharing);
    // 1 waits for 0, which comes after it.
    assert_eq!(fluid.time(&lanes(&[&[1, 0]], 0)), None);
    // One that nobody runs never ends.
    assert_eq!(fluid.time(&lanes(&[&[1]], 0)), None);
    assert_eq!(fluid.time(&lanes(&[&[]], 0)).map(|of| of.makespan_ns), Some(0));
    assert_eq!(arrange(&tasks, &lanes(&[&[1, 0]], 0), &table, &sharing, Effort::default()), None);
}

fn random_table(random: &mut Random, kinds: u64) -> Slowdowns {
    let mut pairs = Vec::new();
    for victim in 0..kinds {
        for aggressor in 0..kinds {
            pairs.push((victim, aggressor, 1.0 + 1.5 * random.unit()));
        }
    }
    table(&pairs)
}

/// All orders on two lanes, one after the other.
fn best(tasks: &[Task], table: &Slowdowns) -> u64 {
    fn permute(order: &mut Vec<usize>, from: usize, each: &mut dyn FnMut(&[usize])) {
        if from == order.len() {
            return each(order);
        }
        for place in from..order.len() {
            order.swap(from, place);
            permute(order, from + 1, each);
            order.swap(from, place);
        }
    }
    let sharing = Sharing::default();
    let mut fluid = Fluid::new(tasks, table, &sharing);
    let mut least = u64::MAX;
    let mut order: Vec<_> = (0..tasks.len()).collect();
    permute(&mut order, 0, &mut |order| {
        for cut in 0..=order.len() {
            let (one, other) = order.split_at(cut);
            let timing = fluid.time(&lanes(&[one, other], 0));
            least = least.min(timing.map_or(u64::MAX, |timing| timing.makespan_ns));
        }
    });
    least
}

#[test]
fn the_search_never_worsens_its_input_and_is_nearly_optimal() {
    let mut random = seeded(34);
    let (mut optimal, rounds) = (0, 60);
    for _ in 0..rounds {
        let table = random_table(&mut random, 3);
        let of: Vec<_> = (0..5).map(|_| (random.below(3), 20 + random.below(100))).collect();
        let tasks = tasks(&of);
        let given = lanes(&[&[0, 1, 2], &[3, 4]], 0);
        let sharing = Sharing::default();
        let found = arrange(&tasks, &given, &table, &sharing, Effort::default());
        let found = found.expect("it ends");
        assert!(found.timing.makespan_ns <= found.given.makespan_ns);
        let least = best(&tasks, &table);
        assert!(found.timing.makespan_ns >= least);
        assert!(found.timing.makespan_ns <= least + least / 5);
        optimal += usize::from(found.timing.makespan_ns == least);
    }
    assert!(5 * optimal >= 4 * rounds, "{optimal} of {rounds}");
}

#[test]
fn the_search_keeps_all_tasks_on_any_number_of_cpus() {
    let mut random = seeded(5);
    for round in 0..40 {
        let table = random_table(&mut random, 4);
        let of: Vec<_> = (0..9).map(|_| (random.below(4), random.below(90))).collect();
        let mut tasks = tasks(&of);
        tasks[8].after = vec![random.below(8) as usize];
        let cpus = 1 + round % 4;
        let mut given: Vec<Lane> =
            (0..cpus as u32).map(|cpu| Lane { cpu, ..Lane::default() }).collect();
        for task in 0..9 {
            given[task % cpus].order.push(task);
        }
        given[0].fixed = 1;
        let sharing = Sharing::new(vec![(Level::Llc, vec![0, 1])]);
        let effort = Effort { orders: 300, seed: round as u64 };
        let found = arrange(&tasks, &given, &table, &sharing, effort).expect("it ends");
        assert_eq!(found.lanes[0].order[0], 0);
        let mut all: Vec<_> = found.lanes.iter().flat_map(|lane| &lane.order).collect();
        all.sort_unstable();
        assert_eq!(all, (0..9).collect::<Vec<_>>().iter().collect::<Vec<_>>());
        let rank = |timing: &Timing| (timing.makespan_ns, timing.sum_ns);
        assert!(rank(&found.timing) <= rank(&found.given));
        assert!(found.timed <= 300);
        // The same again.
        let again = arrange(&tasks, &given, &table, &sharing, effort);
        assert_eq!(again, Some(found));
    }
}

#[test]
fn only_known_sharing_levels_count() {
    let tasks = tasks(&[(1, 100), (1, 100)]);
    let entry = Entry {
        victim: key(1),
        beside: vec![(Level::Llc, key(1))],
        slowdown: 2.0,
        low: 2.0,
        high: 2.0,
        samples: 1,
    };
    let table = Slowdowns::new(vec![entry]);
    let given = lanes(&[&[0], &[1]], 0);
    for (sharing, ms) in
        [(Sharing::new(vec![(Level::Llc, vec![0, 1])]), 200), (Sharing::default(), 100)]
    {
        let timing = Fluid::new(&tasks, &table, &sharing).time(&given);
        assert_eq!(timing.map(|timing| timing.makespan_ns), Some(ms * MS));
    }
}
