// SPDX-License-Identifier: GPL-2.0
//! The search for a better plan, against all plans that there are.

use pbs_cluster_planner::optimise::{optimise, BestPlan, Budget, Objective, Pool, WaitingJob};
use pbs_gen::{Random, Stream};

const CORES: u64 = 8;
/// No plan of eight jobs of at most 20 s, after jobs that run for 20 s more, is longer.
const HORIZON_S: usize = 200;
const BUDGET: Budget = Budget { orders: 1_000, placements: 1_000_000 };

struct Instance {
    running: Vec<(u64, u64)>,
    jobs: Vec<WaitingJob>,
    objective: Objective,
}

impl Instance {
    fn draw(random: &mut Random) -> Self {
        let mut held = 0;
        let mut running = Vec::new();
        while held < CORES && random.below(4) > 0 {
            let cores = 1 + random.below(CORES - held);
            held += cores;
            running.push((1 + random.below(20), cores));
        }
        let jobs = (0..1 + random.below(8)).map(|_| {
            let duration_s = 1 + random.below(20);
            let job = WaitingJob::new(1 + random.below(CORES), duration_s);
            let expected_s = 1 + random.below(duration_s);
            WaitingJob { expected_s, waited_s: random.below(50), ..job }
        });
        let jobs = jobs.collect();
        let growth_per_s = [0.0, 0.01][random.index(2)];
        let slowdown = [0.0, 5.0, 50.0][random.index(3)];
        let objective = Objective { slowdown, growth_per_s, ..Objective::default() };
        Self { running, jobs, objective }
    }

    fn pool(&self) -> Pool {
        Pool::with_running(0, CORES, self.running.iter().copied())
    }

    fn optimise(&self, seed: u64) -> BestPlan {
        let order: Vec<u32> = (0..self.jobs.len() as u32).collect();
        optimise(0, &self.pool(), &self.jobs, &order, self.objective, BUDGET, seed).unwrap()
    }

    /// Free cores of each second.
    fn free(&self) -> Vec<u64> {
        let mut free = vec![CORES; HORIZON_S];
        for &(end_s, cores) in &self.running {
            free[..end_s as usize].iter_mut().for_each(|free| *free -= cores);
        }
        free
    }

    fn cost(&self, job: usize, start_s: usize) -> f64 {
        let job = &self.jobs[job];
        let wait_s = (job.waited_s + start_s as u64) as f64;
        let slowdown = wait_s / job.expected_s.max(10) as f64;
        let cost = wait_s * self.objective.wait_per_s + slowdown * self.objective.slowdown;
        cost * (1.0 + wait_s * self.objective.growth_per_s)
    }

    /// Returns the least cost of all orders, second by second.
    fn least(&self, free: &[u64], placed: u32, cost: f64, least: &mut f64) {
        if placed.count_ones() as usize == self.jobs.len() {
            *least = least.min(cost);
            return;
        }
        for (place, job) in self.jobs.iter().enumerate().filter(|(of, _)| placed >> of & 1 == 0) {
            let span = job.duration_s as usize;
            let fits = |start: &usize| free[*start..start + span].iter().all(|&of| of >= job.cores);
            let start_s = (0..HORIZON_S).find(fits).unwrap();
            let cost = cost + self.cost(place, start_s);
            if cost < *least {
                let mut free = free.to_vec();
                free[start_s..start_s + span].iter_mut().for_each(|free| *free -= job.cores);
                self.least(&free, placed | 1 << place, cost, least);
            }
        }
    }

    /// Returns the cost of starts; they are checked against the free cores of each second.
    fn checked_cost(&self, starts_s: &[u64]) -> f64 {
        let mut free = self.free();
        let mut cost = 0.0;
        for (place, (job, &start_s)) in self.jobs.iter().zip(starts_s).enumerate() {
            for free in &mut free[start_s as usize..(start_s + job.duration_s) as usize] {
                *free = free.checked_sub(job.cores).unwrap();
            }
            cost += self.cost(place, start_s as usize);
        }
        cost
    }
}

#[test]
fn small_plans_are_nearly_always_optimal() {
    let mut random = Random::new(1, Stream::Trace);
    let (mut optimal, mut worst, mut improved) = (0, 1.0_f64, 0);
    for seed in 0..200 {
        let instance = Instance::draw(&mut random);
        let found = instance.optimise(seed);
        let cost = instance.checked_cost(&found.starts_s);
        assert!((cost - found.cost).abs() <= 1e-6 * cost, "{cost} is not {}", found.cost);
        let mut least = f64::INFINITY;
        instance.least(&instance.free(), 0, 0.0, &mut least);
        let ratio = if cost > 0.0 { cost / least } else { 1.0 };
        optimal += u32::from(ratio < 1.0 + 1e-9);
        improved += u32::from(found.cost < found.first_cost);
        worst = worst.max(ratio);
    }
    println!("optimal: {optimal} of 200, worst: {worst:.4}, better than in order: {improved}");
    assert!(optimal >= 190, "{optimal} of 200 are optimal");
    assert!(worst <= 1.05, "the worst costs {worst} times the optimum");
    assert!(improved > 100, "{improved} are better than the order of submission");
}

#[test]
fn equal_seeds_have_equal_plans() {
    let mut random = Random::new(2, Stream::Trace);
    let jobs = (0..60).map(|_| {
        let duration_s = 1 + random.below(1_000);
        WaitingJob::new(1 + random.below(CORES), duration_s)
    });
    let jobs: Vec<_> = jobs.collect();
    let order: Vec<u32> = (0..60).collect();
    let find = |orders, seed| {
        let budget = Budget { orders, placements: u64::MAX };
        let pool = Pool::new(0, CORES);
        optimise(0, &pool, &jobs, &order, Objective::default(), budget, seed).unwrap()
    };
    assert_eq!(find(300, 5), find(300, 5));
    // More work is never worse, since the search has the best plan at any time; less is kept, too.
    assert!(find(2_000, 5).cost <= find(20, 5).cost);
    assert!(find(1, 5).cost == find(1, 5).first_cost);
}

#[test]
fn a_promised_start_is_kept_by_every() {
    let mut random = Random::new(3, Stream::Trace);
    let mut moved = 0;
    for seed in 0..200 {
        let mut instance = Instance::draw(&mut random);
        let order: Vec<u32> = (0..instance.jobs.len() as u32).collect();
        let mut pool = instance.pool();
        // Each is promised its start in the order of submission.
        let first: Vec<u64> = instance
            .jobs
            .iter_mut()
            .map(|job| {
                job.latest_start_s = pool.place(job.cores, job.duration_s).unwrap();
                job.latest_start_s
            })
            .collect();
        let pool = instance.pool();
        let objective = instance.objective;
        let found = optimise(0, &pool, &instance.jobs, &order, objective, BUDGET, seed).unwrap();
        let late = found.starts_s.iter().zip(&first).any(|(start_s, told_s)| start_s > told_s);
        assert!(!late, "{:?} is later than {first:?}", found.starts_s);
        moved += u32::from(found.cost < found.first_cost);
    }
    println!("better with all promises kept: {moved} of 200");
}

/// Two jobs that need all cores: which of them goes first?
#[test]
fn each_cost_decides_of_an_order() {
    let nothing = Objective {
        wait_per_s: 0.0,
        slowdown: 0.0,
        fairness: 0.0,
        growth_per_s: 0.0,
        missed_deadline: 0.0,
        length_per_s: 0.0,
    };
    let starts_s = |jobs: [WaitingJob; 2], objective| {
        let pool = Pool::new(0, CORES);
        optimise(0, &pool, &jobs, &[0, 1], objective, BUDGET, 1).unwrap().starts_s
    };
    let (long, short) = (WaitingJob::new(CORES, 100), WaitingJob::new(CORES, 10));
    assert_eq!(starts_s([long, short], nothing), [0, 100]);
    assert_eq!(starts_s([long, short], Objective { wait_per_s: 1.0, ..nothing }), [10, 0]);
    assert_eq!(starts_s([long, short], Objective { slowdown: 1.0, ..nothing }), [10, 0]);
    // Who has used more waits longer for a unit of normalised wait.
    let heavy = WaitingJob { user_core_s: 10_000, ..short };
    let light = WaitingJob { user_core_s: 10, ..short };
    assert_eq!(starts_s([heavy, light], Objective { fairness: 1.0, ..nothing }), [10, 0]);
    // Who has waited longer goes first only if waits are to be even.
    let new = WaitingJob { waited_s: 0, ..short };
    let old = WaitingJob { waited_s: 1_000, ..short };
    let wait = Objective { wait_per_s: 1.0, ..nothing };
    assert_eq!(starts_s([new, old], wait), [0, 10]);
    assert_eq!(starts_s([new, old], Objective { growth_per_s: 0.1, ..wait }), [10, 0]);
    // A deadline that is not promised.
    let due = WaitingJob { wanted_start_s: 5, ..long };
    assert_eq!(starts_s([short, due], wait), [0, 10]);
    assert_eq!(starts_s([short, due], Objective { missed_deadline: 1e6, ..wait }), [100, 0]);
    // A narrow job beside another one, or behind a wide one that then ends last.
    let jobs = [
        WaitingJob::new(CORES / 2, 50),
        WaitingJob::new(CORES, 10),
        WaitingJob::new(CORES / 2, 50),
    ];
    let length = Objective { length_per_s: 1.0, ..nothing };
    let found = optimise(0, &Pool::new(0, CORES), &jobs, &[0, 1, 2], length, BUDGET, 1).unwrap();
    assert_eq!(found.cost, 60.0, "{:?}", found.starts_s);
}
