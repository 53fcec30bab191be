// SPDX-License-Identifier: GPL-2.0
//! Decisions per second on a machine like OCuLUS (Keller, 6).

use std::sync::Arc;
use std::time::Instant;

use pbs_cluster::{Machine, NodeSpec, Planner, Request, Resource, State};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }
    fn unit(&mut self) -> f64 {
        (self.next() as f64 + 0.5) / (1u64 << 31) as f64
    }
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn oculus(nodes: usize) -> Machine {
    let names = ["ncpus", "mem", "vmem", "tesla", "mic"];
    let resources = names.map(|name| Resource { name: name.into(), job_wide: None });
    let g = 1u64 << 30;
    let specs: Vec<NodeSpec> = (0..nodes)
        .map(|n| {
            let (cores, mem) = if n >= nodes - 4 { (32, 1024) } else if n % 31 == 0 { (16, 256) } else { (16, 64) };
            let tesla = u64::from(n % 19 == 3 && n < 608);
            let mic = u64::from(n % 77 == 5);
            NodeSpec {
                name: format!("n{n:03}"), has: vec![cores, mem * g, (mem + 16) * g, tesla, mic],
                words: Vec::new(), prio: 0, only_if: None, kept: None,
            }
        })
        .collect();
    Machine::new(resources.to_vec(), &specs)
}

/// Cores, jobs, mean walltime in hours, accuracy in percent (Keller, example 3).
const MIX: [(u64, u64, f64, f64); 10] = [
    (16, 57516, 10.0, 41.67), (32, 9701, 25.83, 39.68), (1024, 277, 19.0, 65.3), (768, 468, 10.0, 55.91),
    (64, 3883, 13.0, 46.0), (128, 14002, 1.0, 26.43), (256, 684, 13.0, 39.3), (1536, 77, 16.0, 64.01),
    (1, 1480565, 1.0, 21.39), (512, 151, 16.0, 62.61),
];

fn request(random: &mut Random, least: u64, max: u64) -> Request {
    let total: u64 = MIX.iter().filter(|m| m.0 >= least && m.0 <= max).map(|m| m.1).sum();
    let mut pick = random.below(total);
    let &(cores, _, hours, accuracy) = MIX.iter().filter(|m| m.0 >= least && m.0 <= max).find(|m| {
        if pick < m.1 { true } else { pick -= m.1; false }
    }).unwrap();
    let mean_s = hours * 3600.0 / accuracy * 100.0;
    let s = (mean_s * (1.2 * random.normal() - 0.72).exp()).clamp(60.0, 60.0 * 86400.0);
    let duration_s = (s as u64).div_ceil(600) * 600;
    let text = if cores < 16 { format!("ncpus={cores}:mem=2g") } else { format!("{}:ncpus=16:mem=30g", cores / 16) };
    Request::new(text.parse().unwrap(), duration_s)
}

fn main() {
    for (nodes, jobs, least, max) in [(616, 10_000, 1, 4096), (62, 10_000, 1, 512), (616, 2_000, 512, 4096), (616, 100_000, 1, 4096)] {
        let mut random = Random(7);
        let mut planner = Planner::new(Arc::new(oculus(nodes)), pbs_cluster::Rules::default());
        let begin = Instant::now();
        let mut ids = Vec::new();
        for _ in 0..jobs {
            let request = request(&mut random, least, max.min(nodes as u64 * 16));
            ids.push(planner.submit(0, &request).unwrap());
        }
        let submits = jobs as f64 / begin.elapsed().as_secs_f64();
        let last = ids.iter().filter_map(|&id| match planner.state(id) { Some(State::Planned { start_s }) => Some(start_s), _ => None }).max();
        let begin = Instant::now();
        let (before, mut moved) = (planner.decisions(), 0);
        while begin.elapsed().as_secs_f64() < 3.0 {
            let at = random.below(ids.len() as u64) as usize;
            let id = ids.swap_remove(at);
            planner.remove(0, id);
            moved += planner.backfill(0, 2000);
        }
        let took_s = begin.elapsed().as_secs_f64();
        let decisions = planner.decisions() - before;
        let mut literal = pbs_cluster::literal::Literal::of(&planner);
        let begin2 = Instant::now();
        let mut count = 0;
        let planned: Vec<_> = planner.requests().collect();
        while begin2.elapsed().as_secs_f64() < 2.0 && jobs <= 10_000 {
            let id = planned[random.below(planned.len() as u64) as usize];
            literal.decide(&planner, 0, id);
            count += 1;
        }
        println!("literal: {:.0}/s", count as f64 / begin2.elapsed().as_secs_f64());
        println!("{nodes} nodes, {jobs} jobs of {least}+ cores: {submits:.0} submits/s, {:.0} decisions/s, {moved} moved of {decisions}, last start {:.1} d, {} steps",
            decisions as f64 / took_s, last.unwrap_or(0) as f64 / 86400.0, planner.steps());
    }
}
