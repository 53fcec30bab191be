// SPDX-License-Identifier: GPL-2.0
//! A random stream of jobs of three users, of their changes, and of mishaps: no job ends that its
//! user, the batch system or its limit did not end.
//!
//! `PBS_SEED=7` begins with another stream, `PBS_SEEDS=100` takes more of them, `PBS_SECONDS=3600`
//! makes them longer; `make soak C=slurm` takes new ones for `MINUTES`.

mod common;

use common::*;
use pbs_gen::{Random, Stream};
use pbs_slurm::steer::{By, Closing, Hold, JobState, Key, NodeState, Simulated};
use pbs_slurm::{Demands, Gres, Per};

const USERS: [&str; 3] = ["anna", "ben", "cleo"];
const NODES: [&str; 4] = ["n01", "n02", "n03", "n04"];

/// Two of the nodes have accelerators, and the cluster has licences.
const WITH_RESOURCES: &str = "
name = 'lab'
allocate_timeout = '4s'
release_timeout = 'RELEASE'
[resource.license-matlab]
scope = 'job'
amount = 2
[[nodes]]
name = 'n%02d'
count = 2
has = 'ncpus=2:mem=1g:gres-gpu=2'
[[nodes]]
name = 'n%02d'
first = 3
count = 2
has = 'ncpus=2:mem=1g'
";

/// A cluster and what has happened to it.
struct World {
    lab: Lab,
    random: Random,
    keys: Vec<Key>,
    /// Older states of the batch system, the oldest first.
    saved: Vec<Simulated>,
    away_s: u64,
    dead_s: u64,
    /// Whether requests move up between turns, as in the service.
    is_deferred: bool,
}

impl World {
    fn below(&mut self, most: u64) -> u64 {
        self.random.below(most)
    }

    fn one(&mut self, of: JobState) -> Option<Key> {
        let alike = |state: &JobState| std::mem::discriminant(state) == std::mem::discriminant(&of);
        let slurm = &self.lab.slurm;
        let keys = self.keys.iter().copied();
        let keys: Vec<Key> =
            keys.filter(|&key| slurm.job(key).is_some_and(|job| alike(&job.state))).collect();
        (!keys.is_empty()).then(|| keys[self.random.index(keys.len())])
    }

    fn pending(&mut self) -> Option<Key> {
        self.one(JobState::Pending(Hold::No))
    }

    fn submit(&mut self) {
        let number = self.keys.iter().map(|key| key.job).max().unwrap_or(0) + 1;
        let nodes = 1 + self.below(4);
        let cpus = nodes * (1 + self.below(2));
        let limit_s = 60 * (1 + self.below(3));
        let run_s = 1 + self.below(limit_s + 60);
        let key = self.lab.slurm.submit(number, nodes, cpus, limit_s, run_s);
        self.keys.push(key);
        let user = USERS[self.random.index(USERS.len())];
        let (shape, words) = (self.below(5), self.below(8));
        let begin_s = self.lab.now_s + self.below(60);
        let demands = self.demands();
        self.lab.slurm.alter(key, |job| {
            (job.user, job.demands) = (user.into(), demands);
            match shape {
                // sbatch -N2-4
                0 => (job.max_nodes, job.cpus, job.tasks) = (Some(4), 1, nodes),
                // sbatch --mincpus=2
                1 => (job.cpus, job.min_cpus) = (nodes, 2),
                // sbatch -c2
                2 => (job.cpus, job.tasks, job.cpus_per_task) = (2 * nodes, nodes, 2),
                _ => {}
            }
            match words {
                0 => job.words = "pbs deadline=5m".into(),
                1 => job.words = "pbs deadline=3m late".into(),
                2 => job.start_s = Some(begin_s),
                _ => {}
            }
        });
        // Some ignore SIGTERM, as long as KillWait and longer.
        if self.below(3) == 0 {
            let lingers_s = self.below(45);
            self.lab.slurm.lingers(key, lingers_s);
        }
    }

    fn demands(&mut self) -> Demands {
        let count = 1 + self.below(2);
        let gpu = Gres { name: "gpu".into(), kind: None, count };
        match self.below(3) {
            0 => Demands { gres: vec![(Per::Node, gpu)], ..Demands::default() },
            1 => Demands { licenses: vec![("matlab".into(), count)], ..Demands::default() },
            _ => Demands::default(),
        }
    }

    fn submit_array(&mut self) {
        let number = self.keys.iter().map(|key| key.job).max().unwrap_or(0) + 1;
        let (count, run_s, most) = (1 + self.below(6), 1 + self.below(60), self.below(3));
        let keys = self.lab.slurm.submit_array(number, count as u32, run_s, most);
        let user = USERS[self.random.index(USERS.len())];
        for key in keys {
            self.lab.slurm.alter(key, |job| job.user = user.into());
            self.keys.push(key);
        }
    }

    /// An operator reserves a node.
    fn reserve(&mut self) {
        let from_s = self.lab.now_s + self.below(60);
        let until_s = from_s + 30 + self.below(120);
        let node = NODES[self.random.index(4)].to_string();
        let name = format!("r{}", self.lab.slurm.closed.len());
        self.lab.slurm.closed.push(Closing {
            why: format!("reservation {name}"),
            name,
            nodes: vec![node],
            times: std::iter::once(from_s..until_s).collect(),
            ..Closing::default()
        });
    }

    /// A user, an operator or a mishap.
    fn act(&mut self) {
        match self.below(44) {
            0..=5 => self.submit(),
            6..=8 => {
                let nodes = 1 + self.below(5);
                if let Some(key) = self.pending() {
                    self.lab.slurm.alter(key, |job| {
                        job.nodes_wanted = nodes;
                        job.cpus = job.cpus.max(nodes);
                        job.max_nodes = Some(nodes);
                    });
                }
            }
            9..=11 => {
                let limit_s = 60 * (1 + self.below(3));
                if let Some(key) = self.pending() {
                    self.lab.slurm.alter(key, |job| job.limit_s = Some(limit_s));
                }
            }
            12 => {
                // Users may only shorten what runs.
                if let Some(key) = self.one(JobState::Running) {
                    self.lab.slurm.alter(key, |job| {
                        job.limit_s = job.limit_s.map(|limit_s| limit_s.min(60));
                        job.end_s =
                            job.start_s.zip(job.limit_s).map(|(start, limit)| start + limit);
                    });
                }
            }
            13..=15 => {
                if let Some(key) = self.pending() {
                    self.lab.slurm.cancel(key);
                }
            }
            16..=18 => {
                if let Some(key) = self.one(JobState::Running) {
                    self.lab.slurm.cancel(key);
                }
            }
            32 | 33 => {
                let words = ["pbs", "pbs pbs-held", "pbs-held-by-operator"][self.random.index(3)];
                if let Some(key) = self.pending() {
                    self.lab.slurm.alter(key, |job| job.words = words.into());
                }
            }
            19 | 20 => {
                let hold = [Hold::No, Hold::User, Hold::Admin][self.random.index(3)];
                if let Some(key) = self.pending() {
                    self.lab.slurm.alter(key, |job| job.state = JobState::Pending(hold));
                }
            }
            21 => {
                let node = NODES[self.random.index(4)];
                self.lab.slurm.node(node, NodeState::Drained);
            }
            22 => {
                // What runs there goes on, as with --no-kill.
                let node = NODES[self.random.index(4)];
                self.lab.slurm.node(node, NodeState::Down);
            }
            23..=26 => NODES.iter().for_each(|node| self.lab.slurm.node(node, NodeState::Up)),
            27 => {
                if let Some(key) = self.one(JobState::Running) {
                    let slurm = &mut self.lab.slurm;
                    let is_held = self.random.below(2) == 0;
                    let again = if is_held { slurm.requeue_held(key) } else { slurm.requeue(key) };
                    self.keys.retain(|&of| of != key);
                    self.keys.push(again);
                }
            }
            28 => {
                if let Some(key) = self.one(JobState::Running) {
                    self.lab.slurm.launch_failed(key);
                }
            }
            29 if self.dead_s == 0 => {
                self.lab.restart();
                self.dead_s = self.below(30);
            }
            30 if self.away_s == 0 => self.away_s = self.below(30),
            31 => {
                if let Some(saved) = self.saved.first().cloned() {
                    self.lab.slurm.crash_to(&saved);
                    // What came after that state never was.
                    self.saved.truncate(1);
                    let slurm = &self.lab.slurm;
                    self.keys.retain(|&key| slurm.job(key).is_some());
                }
            }
            34 | 35 => self.submit_array(),
            36 | 37 => {
                let most = self.below(4);
                if let Some(key) = self.pending().filter(|key| key.index.is_some()) {
                    let of_array = |of: &&Key| (of.job, of.submit_s) == (key.job, key.submit_s);
                    for of in self.keys.clone().iter().filter(of_array) {
                        self.lab.slurm.alter(*of, |job| job.demands.throttle = most);
                    }
                }
            }
            38 | 39 => {
                let demands = self.demands();
                if let Some(key) = self.pending() {
                    self.lab.slurm.alter(key, |job| {
                        job.demands = Demands { throttle: job.demands.throttle, ..demands };
                    });
                }
            }
            40 => self.reserve(),
            41 => self.lab.slurm.closed.clear(),
            42 => self.lab.slurm.most_of_user = Some(1 + self.random.index(3)),
            43 => self.lab.slurm.most_of_user = None,
            _ => {}
        }
    }

    fn second(&mut self) {
        self.lab.now_s += 1;
        self.lab.slurm.tick();
        self.saved.push(self.lab.slurm.save());
        if self.saved.len() > 6 {
            self.saved.remove(0);
        }
        self.dead_s = self.dead_s.saturating_sub(1);
        self.away_s = self.away_s.saturating_sub(1);
        self.lab.slurm.is_away = self.away_s > 0;
        if self.dead_s == 0 && self.is_deferred {
            self.lab.manager().defer();
            self.lab.turn();
            while self.lab.manager().is_settling() {
                self.lab.manager().settle_some(8);
            }
        }
        if self.dead_s == 0 {
            self.lab.turn();
        }
        let _ = self.lab.steer.news();
    }

    /// Everything is in order again, and what can run does.
    fn settle(&mut self, seed: u64) {
        (self.away_s, self.dead_s) = (0, 0);
        (self.lab.slurm.most_of_user, self.lab.slurm.closed) = (None, Vec::new());
        NODES.iter().for_each(|node| self.lab.slurm.node(node, NodeState::Up));
        let is_over = |slurm: &Simulated, key| {
            slurm.job(key).is_none_or(|job| matches!(job.state, JobState::Over(_)))
        };
        for round in 0.. {
            for _ in 0..60 {
                self.second();
            }
            let slurm = &self.lab.slurm;
            let left: Vec<Key> =
                self.keys.iter().copied().filter(|&key| !is_over(slurm, key)).collect();
            if left.is_empty() {
                break;
            }
            for &key in &left {
                // What was declined waits for its user.
                let told = self.lab.slurm.told.get(&key).cloned().unwrap_or_default();
                if told.contains("declined") || told.starts_with("held by") {
                    self.lab.slurm.cancel(key);
                }
            }
            let why =
                left.iter().map(|key| (self.lab.slurm.job(*key), self.lab.slurm.told.get(key)));
            assert!(round < 40 + self.keys.len(), "{seed}: {:?}", why.collect::<Vec<_>>());
        }
        for _ in 0..60 {
            self.second();
        }
    }
}

/// A lab where nodes are booked for so long after a job, until they are clean.
fn lab(name: &str, release: &str) -> Lab {
    let site = WITH_RESOURCES.replace("RELEASE", release);
    let mut lab = Lab::of_site(name, &site, &NODES);
    for node in &NODES[..2] {
        lab.slurm.has(node, Gres { name: "gpu".into(), kind: None, count: 2 });
    }
    lab.slurm.licenses.insert("matlab".into(), 2);
    lab
}

fn stream(seed: u64, seconds: u64) {
    let mut world = World {
        lab: lab(&format!("stream{seed}"), ["2s", "40s"][(seed % 2) as usize]),
        random: Random::new(seed, Stream::Scenario),
        keys: Vec::new(),
        saved: Vec::new(),
        away_s: 0,
        dead_s: 0,
        is_deferred: seed.is_multiple_of(3),
    };
    for _ in 0..seconds {
        world.act();
        world.second();
    }
    world.settle(seed);
    let by_planner = world.lab.slurm.ends.iter().filter(|end| end.3 == By::Planner);
    for (at_s, key, limit_s, _) in by_planner {
        assert!(at_s >= limit_s, "{seed}: job {key} ended at {at_s}, its limit at {limit_s}");
    }
    let out: Vec<_> = world.lab.manager().nodes_out().map(|row| row.why.clone()).collect();
    assert!(out.is_empty(), "{seed}: {out:?}");
    let open = world.lab.manager().open_rows();
    assert!(open.is_empty(), "{seed}: {open:?}");
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_job_ends_that_its_user_slurm_or_its_limit_did_not_end() {
    let first = number("PBS_SEED", 1);
    for seed in first..first + number("PBS_SEEDS", 6) {
        stream(seed, number("PBS_SECONDS", 240));
    }
}
