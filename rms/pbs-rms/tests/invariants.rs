// SPDX-License-Identifier: GPL-2.0
//! Random messages, with what has to hold whatever applications send.

mod driver;

use std::collections::BTreeMap;

use driver::policy;
use pbs_gen::{Random, Stream};
use pbs_rms::{
    AppId, Ask, Event, Kind, Limits, PlacementOrder, Policy, Relation, RequestId, Rms, Update,
    Views, FOREVER,
};

struct Run {
    random: Random,
    rms: Rms,
    now_ns: u64,
    apps: Vec<AppId>,
    seen: BTreeMap<(AppId, usize), Views>,
    /// Numbers may be as large as can be, and clusters, requests and nodes be none.
    is_wild: bool,
}

impl Run {
    fn new(seed: u64, is_wild: bool) -> Self {
        let mut random = Random::new(seed, Stream::Messages);
        let policy = Policy {
            order: [PlacementOrder::Connection, PlacementOrder::Request][random.index(2)],
            is_strict: random.below(4) == 0,
            limits: Limits {
                nodes: [u64::MAX, 9][usize::from(random.below(4) == 0)],
                requests: 12,
                preferred: 16,
            },
            ..policy()
        };
        Self {
            rms: Rms::new(policy, &[12, 5], 0),
            random,
            now_ns: 0,
            apps: Vec::new(),
            seen: BTreeMap::new(),
            is_wild,
        }
    }

    /// A number, or if all is wild perhaps one that is as large as can be, or nothing.
    fn wild(&mut self, number: u64) -> u64 {
        if !self.is_wild || self.random.below(3) > 0 {
            return number;
        }
        let near = self.random.below(3);
        let far = [0, FOREVER, FOREVER - self.now_ns, FOREVER / 2, 1 << 32];
        far[self.random.index(far.len())].wrapping_sub(near)
    }

    fn request(&mut self, app: AppId) -> Option<(RequestId, Vec<u32>)> {
        let requests = &self.rms.session(app)?.requests;
        let request = requests.get(self.random.index(requests.len().max(1)))?;
        let count = self.random.index(request.nodes.len() + 1);
        let (id, mut nodes) = (request.id, request.nodes[..count].to_vec());
        if self.is_wild && self.random.below(8) == 0 {
            nodes.extend([0, u32::MAX, 3, 3]);
            return Some((RequestId(self.wild(id.0)), nodes));
        }
        Some((id, nodes))
    }

    fn ask(&mut self, app: AppId) -> Ask {
        let kinds = [Kind::PreAllocation, Kind::NonPreemptible, Kind::Preemptible];
        let parent = self.request(app).map(|it| it.0);
        let relation = match (self.random.below(3), parent) {
            (1, Some(parent)) => Relation::Coalloc(parent),
            (2, Some(parent)) => Relation::Next(parent),
            _ => Relation::Free,
        };
        let duration_ns = match self.random.below(3) {
            0 => FOREVER,
            _ => 1 + self.random.below(20),
        };
        let mut ask = Ask {
            cluster: self.random.index(2),
            nodes: 1 + self.random.below(6),
            duration_ns,
            kind: kinds[self.random.index(3)],
            relation,
            preferred: vec![u32::try_from(self.random.below(14)).expect("few")],
        };
        let of_parent = parent.and_then(|id| {
            let requests = &self.rms.session(app)?.requests;
            requests.iter().find(|r| r.id == id)
        });
        if let (Relation::Next(_), Some(parent)) = (relation, of_parent) {
            ask.kind = parent.ask.kind;
            ask.cluster = parent.ask.cluster;
        }
        if self.is_wild {
            ask.nodes = self.wild(ask.nodes);
            ask.duration_ns = self.wild(ask.duration_ns);
            if self.random.below(30) == 0 {
                ask.cluster = [2, usize::MAX][self.random.index(2)];
                ask.preferred = vec![u32::MAX; self.random.index(20)];
            }
        }
        ask
    }

    fn message(&mut self) {
        let is_late = self.is_wild && self.random.below(4) == 0;
        let now_ns = if is_late { self.random.below(self.now_ns + 1) } else { self.now_ns };
        if self.apps.len() < 2 || self.random.below(40) == 0 {
            self.apps.push(self.rms.connect("it", now_ns));
        }
        let app = self.apps[self.random.index(self.apps.len())];
        let before = self.rms.session(app).map(|s| s.requests.clone());
        let is_refused = match self.random.below(16) {
            0..=7 => {
                let ask = self.ask(app);
                self.rms.request(app, ask, now_ns).is_err()
            }
            8..=11 => self
                .request(app)
                .is_some_and(|(id, nodes)| self.rms.done(app, id, &nodes, now_ns).is_err()),
            12..=14 => self.request(app).is_some_and(|(of, released)| {
                let update = Update {
                    of,
                    nodes: 1 + self.random.below(8),
                    duration_ns: [FOREVER, 15][self.random.index(2)],
                    announce_ns: [0, 7][self.random.index(2)],
                    released,
                };
                let update = Update {
                    nodes: self.wild(update.nodes),
                    duration_ns: self.wild(update.duration_ns),
                    announce_ns: self.wild(update.announce_ns),
                    ..update
                };
                self.rms.update(app, &update, now_ns).is_err()
            }),
            _ => {
                if self.is_wild {
                    let _ = self.rms.waste(app, u128::MAX);
                }
                if self.random.below(8) == 0 {
                    let _ = self.rms.disconnect(app, now_ns);
                    self.apps.retain(|&other| other != app);
                }
                return;
            }
        };
        let over = before.iter().flatten().any(|r| r.end_ns().is_some_and(|ns| ns <= self.now_ns));
        if is_refused && !over {
            assert_eq!(before, self.rms.session(app).map(|s| s.requests.clone()));
        }
    }

    fn pass(&mut self) {
        self.pass_once();
        // With nothing new there are few more at this time: for who has lost its session, and for
        // preemptible nodes of requests that have started without having been divided for.
        let mut passes = 0;
        while self.rms.next_pass_ns().is_some_and(|ns| ns <= self.now_ns) {
            self.pass_once();
            passes += 1;
            assert!(passes < 6, "it never rests");
        }
        if self.random.below(8) == 0 {
            self.crash();
        }
    }

    fn pass_once(&mut self) {
        let told = self.rms.pass(self.now_ns);
        for notice in &told {
            if let Event::Violation { .. } = notice.event {
                self.apps.retain(|&app| app != notice.app);
            }
        }
        self.seen.retain(|key, _| self.apps.contains(&key.0));
        for &app in &self.apps {
            for cluster in 0..2 {
                let views = self.rms.views(app, cluster).expect("both are there");
                let event = Event::Views { cluster };
                let is_told = told.iter().any(|n| n.app == app && n.event == event);
                let old = self.seen.insert((app, cluster), views.clone());
                let same = old.is_some_and(|old| {
                    let soon = self.now_ns..self.now_ns.saturating_add(300);
                    let times = soon.chain([FOREVER / 2, FOREVER - 1]);
                    let times = times.filter(|&ns| ns >= self.now_ns);
                    let of = |v: &Views, ns| (v.non_preemptible.at(ns), v.preemptible.at(ns));
                    times.into_iter().all(|ns| of(&old, ns) == of(&views, ns))
                });
                assert!(is_told || same, "{app:?} was not told of {cluster}");
            }
        }
        self.check();
    }

    /// Restores the manager from its stored state, which must be sufficient.
    fn crash(&mut self) {
        let kept = self.rms.sessions().map(|(app, session)| {
            let text = serde_json::to_string(session).expect("plain values");
            (app, serde_json::from_str(&text).expect("its own"))
        });
        let kept: Vec<_> = kept.collect();
        let (policy, counters) = (self.rms.policy().clone(), self.rms.counters());
        let restored = Rms::restore(policy, counters, kept, self.now_ns);
        self.rms = restored.expect("it was right before");
    }

    /// Each node has one owner, and nothing is promised twice at any time.
    fn check(&self) {
        for (cluster, &size) in self.rms.sizes().iter().enumerate() {
            let sessions = || self.rms.sessions().map(|it| it.1);
            let requests = || sessions().flat_map(|s| &s.requests);
            let requests = || requests().filter(|r| r.ask.cluster == cluster);
            let mut nodes: Vec<u32> = requests().flat_map(|r| r.nodes.clone()).collect();
            let lacks: u64 = requests().map(pbs_rms::Request::lacks).sum();
            let idle = self.rms.idle(cluster);
            let held = nodes.len();
            nodes.extend(&idle);
            nodes.sort_unstable();
            nodes.dedup();
            assert!(nodes.iter().all(|&node| node < size));
            assert_eq!(nodes.len(), held + idle.len(), "a node has two owners");
            let free = u64::from(size) - held as u64;
            assert_eq!(idle.len() as u64, free.saturating_sub(lacks));
            let firm: u64 = requests()
                .filter(|r| r.started_ns.is_some() && r.ask.kind == Kind::NonPreemptible)
                .map(|r| r.granted)
                .sum();
            assert!(firm <= u64::from(size), "{firm} nodes run to completion");
            for request in requests().filter(|r| r.ask.kind == Kind::PreAllocation) {
                assert!(request.nodes.is_empty());
            }
            for request in requests() {
                let is_over = request.end_ns().is_some_and(|ns| ns <= self.now_ns);
                assert!(!is_over, "{request:?} is over");
                assert!(request.nodes.len() as u64 <= request.ask.nodes);
                assert!(request.scheduled_ns.is_none_or(|ns| ns >= self.now_ns));
            }
        }
    }
}

fn run(seed: u64, messages: usize, is_wild: bool) {
    let mut run = Run::new(seed, is_wild);
    for _ in 0..messages {
        run.message();
        if run.random.below(3) == 0 {
            run.pass();
        }
        run.now_ns += run.random.below(3);
        if is_wild && run.random.below(60) == 0 {
            // Half of what is left of time.
            run.now_ns += (FOREVER - run.now_ns) / 2;
        }
    }
    run.pass();
}

#[test]
fn no_message_breaks_an_invariant() {
    for seed in 0..400 {
        run(seed, 150, false);
    }
}

#[test]
fn no_number_breaks_it_either() {
    for seed in 1000..1200 {
        run(seed, 150, true);
    }
}
