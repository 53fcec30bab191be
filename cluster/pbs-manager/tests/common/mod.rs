// SPDX-License-Identifier: GPL-2.0
//! A small cluster with a ledger.

#![allow(dead_code)] // No test needs all of it.

use std::path::PathBuf;

use pbs_cluster_planner::{RequestId, When};
use pbs_gen::Random;
use pbs_manager::ledger::{Access, After, NodeState, Outcome, Row};
use pbs_manager::{
    Allocation, Caller, Change, Engine, Happened, Manager, Recovered, Simulated, Wish,
};

/// Initial time of the clock.
pub(crate) const T: u64 = 1_800_000_000;

pub(crate) const SITE: &str = r#"
name = "small"
[[nodes]]
name = "n%d"
count = 2
has = "ncpus=8"
[[limit]]
for = "everyone"
resource = "jobs"
items = 12
"#;

pub(crate) struct Cluster {
    pub(crate) manager: Manager<Simulated>,
    pub(crate) path: PathBuf,
}

pub(crate) fn directory(test: &str) -> PathBuf {
    let of_process = format!("pbs-manager-{test}-{}", std::process::id());
    let directory = std::env::temp_dir().join(of_process);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Two nodes of eight cores, and at most twelve requests of each user.
pub(crate) fn small(test: &str) -> Cluster {
    let path = directory(test).join("ledger");
    let manager = Manager::create(&path, SITE, T, Simulated::default()).unwrap();
    Cluster { manager, path }
}

pub(crate) fn user(name: &str) -> Caller {
    Caller { user: name.into(), is_operator: false }
}

pub(crate) fn operator() -> Caller {
    Caller { user: "op".into(), is_operator: true }
}

/// Builds a wish of user `u`, group `g`.
pub(crate) fn wish(rset: &str, duration_s: u64) -> Wish {
    Wish { duration_s, ..Wish::new(rset.parse().unwrap(), "u", "g") }
}

impl Cluster {
    /// A planner that is killed and comes again: nothing of it is left but the file.
    pub(crate) fn reopen(&mut self) {
        let before = self.rows();
        let text = None;
        let recovered = self.again(text);
        assert_eq!(recovered.requests, before.len());
        assert_eq!((recovered.moved.len(), recovered.lost.len()), (0, 0));
        assert_eq!(self.rows(), before);
    }

    pub(crate) fn reopen_with(&mut self, site: &str) -> Recovered {
        self.again(Some(site))
    }

    fn again(&mut self, site: Option<&str>) -> Recovered {
        let nowhere = self.path.with_extension("nowhere");
        let _ = std::fs::remove_file(&nowhere);
        let other = Manager::create(&nowhere, SITE, T, Simulated::default()).unwrap();
        drop(std::mem::replace(&mut self.manager, other));
        let engine = Simulated::default();
        let opened = match site {
            None => Manager::open(&self.path, Access::Write, engine),
            Some(text) => Manager::set_site(&self.path, text, engine),
        };
        let (manager, recovered) = opened.unwrap();
        self.manager = manager;
        recovered
    }

    pub(crate) fn submit(&mut self, wish: &Wish) -> RequestId {
        let caller = Caller { user: wish.user.clone(), is_operator: false };
        self.manager.submit(&caller, wish).unwrap()[0]
    }

    pub(crate) fn row(&self, id: RequestId) -> Row {
        self.manager.details(id).unwrap().0
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.manager.open_rows()
    }

    /// The first node that it has or had.
    pub(crate) fn node_of(&self, id: RequestId) -> String {
        self.row(id).nodes[0].node.clone()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(directory) = self.path.parent() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// Performs a random operation of a user or an operator; refused operations are included.
pub(crate) fn operate(manager: &mut Manager<Simulated>, random: &mut Random) {
    let open: Vec<u64> = manager.open_rows().iter().map(|row| row.id).collect();
    let one = |random: &mut Random| match open.len() {
        0 => 1,
        len => open[random.index(len)],
    };
    let (caller, op) = (user("u"), operator());
    let now_s = manager.clock_s();
    match random.below(13) {
        0..=4 => {
            let rsets = ["ncpus=3", "2:ncpus=5", "3:ncpus=2,place=scatter:excl", "ncpus=8"];
            let when = match random.below(6) {
                0 => When::After { start_s: now_s + 40 },
                1 => When::Deadline { end_s: now_s + 300, late: random.below(2) == 0 },
                2 => When::Provisional { until_s: now_s + 30 },
                _ => When::BestEffort,
            };
            let wish = Wish {
                when,
                run_s: Some(1 + random.below(60)),
                notify_s: Some(10),
                is_restartable: random.below(2) == 0,
                array: (random.below(6) == 0).then(|| vec![1, 2, 3]),
                within: (random.below(6) == 0).then(|| one(random)),
                after: match random.below(4) {
                    0 => vec![After {
                        request: one(random),
                        outcome: [Outcome::Ok, Outcome::NotOk, Outcome::Any][random.index(3)],
                    }],
                    _ => Vec::new(),
                },
                ..wish(rsets[random.index(rsets.len())], 10 + random.below(50))
            };
            let _ = manager.submit(&caller, &wish);
        }
        5 => {
            let when = When::After { start_s: now_s + random.below(100) };
            let held = Wish { when, ..wish("2:ncpus=4", 60) };
            let _ = manager.reserve(&caller, &held);
        }
        6 => drop(manager.kill(&caller, one(random))),
        7 => {
            let change = Change { duration_s: Some(5 + random.below(80)), ..Change::default() };
            drop(manager.alter(&caller, one(random), &change));
        }
        8 => drop(manager.extend(&caller, one(random), 3)),
        9 => drop(manager.confirm(&caller, one(random))),
        10 => {
            let node = ["n1", "n2"][random.index(2)];
            let _ = match random.below(3) {
                0 => manager.node_out(&op, node, NodeState::Offline, "test"),
                1 => manager.node_out(&op, node, NodeState::Down, "test"),
                _ => manager.node_back(&op, node),
            };
        }
        11 => {
            let rset = format!("{}:ncpus=5", 1 + random.below(3)).parse().unwrap();
            drop(manager.resize(&caller, one(random), &rset));
        }
        _ => manager.advance(now_s + random.below(50)).unwrap(),
    }
}

/// Simulated engine that notes what it was told, and reports what a test wants.
#[derive(Default)]
pub(crate) struct Observed {
    simulated: Simulated,
    /// The threads of each request that was started.
    pub(crate) threads: Vec<Option<u64>>,
    /// Number of started requests that are in the ledger.
    pub(crate) written: usize,
    /// The nodes that were heard of, and when.
    pub(crate) heard: Vec<(String, u64)>,
    /// A request, and its end, which is predicted once.
    pub(crate) predicted: Option<(u64, u64)>,
}

impl Engine for Observed {
    fn start(&mut self, allocation: &Allocation) {
        self.threads.push(allocation.omp_threads);
        self.simulated.start(allocation);
    }

    fn stop(&mut self, request: u64) {
        self.simulated.stop(request);
    }

    fn extend(&mut self, _: u64, _: u64) {}

    fn notify(&mut self, _: u64) {}

    fn written(&mut self) {
        self.written = self.threads.len();
    }

    fn heard(&self) -> Vec<(String, u64)> {
        self.heard.clone()
    }

    fn next_s(&self) -> Option<u64> {
        self.simulated.next_s()
    }

    fn happened(&mut self, now_s: u64) -> Vec<Happened> {
        let predicted = self.predicted.take();
        let predicted = predicted.map(|(request, end_s)| Happened::PredictedEnd { request, end_s });
        predicted.into_iter().chain(self.simulated.happened(now_s)).collect()
    }
}
