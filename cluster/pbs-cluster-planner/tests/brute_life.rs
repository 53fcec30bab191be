// SPDX-License-Identifier: GPL-2.0
//! Random operations of all kinds beside a brute force that looks at each second: submissions,
//! ends, alterations, extensions, reservations with requests in them, and lost nodes, under a pool
//! and a resource with a validity. `PBS_SEEDS` says how many sequences there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use pbs_cluster_planner::{
    Machine, NodeSpec, Planner, Pool, Request, RequestId, Resource, Rules, State, When,
};
use pbs_gen::{Random, Stream};
use pbs_resources::{Arrangement, Condition, Rset};
use pbs_site::Share;

const OPERATIONS: usize = 150;
/// Time that the brute force looks ahead: longer than all that is planned.
const AHEAD_S: u64 = 2_000;
/// Times without the second resource.
const INVALID: [std::ops::Range<u64>; 2] = [20..60, 90..100];
/// Start of the pool's validity.
const POOL_FROM_S: u64 = 30;

/// Cores and accelerators.
type Amounts = [u64; 2];

/// A request as the brute force sees it.
#[derive(Clone, Debug)]
struct Wanted {
    chunks: Vec<Amounts>,
    scatter: bool,
    duration_s: u64,
}

impl Wanted {
    fn sums(&self) -> Amounts {
        self.chunks.iter().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
    }
}

/// A plan, second by second from now on.
struct Seconds {
    from_s: u64,
    /// Free amounts of each usable node.
    free: Vec<Vec<Amounts>>,
    /// Free amounts of all usable nodes together.
    sums: Vec<Amounts>,
    /// Cores that are kept for small requests.
    kept: u64,
    has_rules: bool,
}

impl Seconds {
    /// The plan of a planner without one of its requests; its nodes and what they have.
    fn of(planner: &Planner, now_s: u64, kept: Option<u64>, without: Option<RequestId>) -> Self {
        let machine = planner.machine();
        let nodes = (0..machine.node_count()).filter(|&node| planner.is_usable(node));
        let mut free: BTreeMap<usize, Vec<Amounts>> = nodes
            .map(|node| {
                (node, vec![[machine.has(node, 0), machine.has(node, 1)]; AHEAD_S as usize])
            })
            .collect();
        for id in planner.requests().filter(|&id| Some(id) != without) {
            let standing = planner.standing(id).unwrap();
            let Some(start_s) = standing.start_s else {
                continue;
            };
            for (node, used) in planner.used_by(id) {
                // What runs on a lost node takes nothing of the cluster.
                let Some(free) = free.get_mut(&node) else {
                    continue;
                };
                for time_s in start_s.max(now_s)..start_s + standing.duration_s {
                    let free = &mut free[(time_s - now_s) as usize];
                    for (free, used) in free.iter_mut().zip(&used) {
                        *free = free.checked_sub(*used).expect("a node has more than it has");
                    }
                }
            }
        }
        let sums = (0..AHEAD_S as usize).map(|at| {
            free.values().fold([0, 0], |sum, of| [sum[0] + of[at][0], sum[1] + of[at][1]])
        });
        let sums = sums.collect();
        let (has_rules, kept) = (kept.is_some(), kept.unwrap_or(0));
        Self { from_s: now_s, free: free.into_values().collect(), sums, kept, has_rules }
    }

    /// Whether the cluster as a whole lets a request have so much at a time.
    fn may(&self, time_s: u64, wanted: Amounts) -> bool {
        let sums = self.sums[(time_s - self.from_s) as usize];
        let is_kept_from = self.has_rules && wanted[0] >= 3 && time_s >= POOL_FROM_S;
        let kept = if is_kept_from { self.kept } else { 0 };
        let is_invalid = self.has_rules && INVALID.iter().any(|times| times.contains(&time_s));
        // A request that asks for none of a resource asks nobody.
        (wanted[0] == 0 || wanted[0] + kept <= sums[0])
            && (wanted[1] == 0 || wanted[1] <= sums[1] && !is_invalid)
    }

    /// Whether the chunks from `next` on fit, by trying all.
    fn fits(free: &mut [Amounts], taken: &mut [bool], next: usize, wanted: &Wanted) -> bool {
        let Some(chunk) = wanted.chunks.get(next) else {
            return true;
        };
        for node in 0..free.len() {
            let left = free[node];
            if wanted.scatter && taken[node] || left[0] < chunk[0] || left[1] < chunk[1] {
                continue;
            }
            let was = taken[node];
            free[node] = [left[0] - chunk[0], left[1] - chunk[1]];
            taken[node] = true;
            let fits = Self::fits(free, taken, next + 1, wanted);
            free[node] = left;
            taken[node] = was;
            if fits {
                return true;
            }
        }
        false
    }

    /// The first start from a time on with an end by another.
    fn earliest(&self, from_s: u64, end_s: u64, wanted: &Wanted) -> Option<u64> {
        let sums = wanted.sums();
        (from_s..).take_while(|time_s| time_s + wanted.duration_s <= end_s).find(|&time_s| {
            let over = time_s..time_s + wanted.duration_s;
            if !over.clone().all(|time_s| self.may(time_s, sums)) {
                return false;
            }
            let least = |free: &Vec<Amounts>| {
                let then = &free[(over.start - self.from_s) as usize..];
                let then = then.iter().take(wanted.duration_s as usize);
                then.fold([u64::MAX; 2], |least, of| [least[0].min(of[0]), least[1].min(of[1])])
            };
            let mut free: Vec<Amounts> = self.free.iter().map(least).collect();
            let mut taken = vec![false; free.len()];
            Self::fits(&mut free, &mut taken, 0, wanted)
        })
    }
}

/// A planner with the same cluster as the brute force sees.
struct World {
    planner: Planner,
    now_s: u64,
    kept: u64,
    wanted: BTreeMap<RequestId, Wanted>,
    /// Numbers of operations that were checked, by kind.
    checked: BTreeMap<&'static str, usize>,
}

fn world(random: &mut Random) -> World {
    let nodes: Vec<NodeSpec> = (0..2 + random.below(3))
        .map(|node| {
            let has = vec![1 + random.below(4), random.below(3)];
            let prio = random.below(2) as i64;
            NodeSpec { prio, ..NodeSpec::new(format!("n{node}"), has) }
        })
        .collect();
    let resources = ["ncpus", "gpu"].map(|name| Resource { name: name.into(), job_wide: None });
    let machine = Machine::new(resources.to_vec(), &nodes);
    let total: u64 = (0..machine.node_count()).map(|node| machine.has(node, 0)).sum();
    let kept = random.below(total);
    let pool = |name: &str, resource, free, access, for_askers, valid| Pool {
        name: String::from(name),
        resource,
        free,
        access,
        share: false,
        for_askers,
        valid,
    };
    let of_small = Share { least: Some(kept), permille: None };
    let all = Share { least: None, permille: Some(1000) };
    let rules = Rules {
        pools: vec![
            pool(
                "small",
                0,
                of_small,
                "ncpus<3".parse().unwrap(),
                false,
                std::iter::once(POOL_FROM_S..u64::MAX).collect(),
            ),
            pool("validity", 1, all, Condition::Any(Vec::new()), true, INVALID.to_vec()),
        ],
        ..Rules::default()
    };
    let planner = Planner::new(Arc::new(machine), rules);
    World { planner, now_s: 0, kept, wanted: BTreeMap::new(), checked: BTreeMap::new() }
}

fn wanted(random: &mut Random) -> (Wanted, Rset) {
    let (mut text, mut chunks) = (String::new(), Vec::new());
    for part in 0..1 + random.below(2) {
        let (count, cores, gpus) = (1 + random.below(3), random.below(4), random.below(5) / 3);
        let cores = cores.max(u64::from(gpus == 0));
        text += if part > 0 { "+" } else { "" };
        text += &format!("{count}:ncpus={cores}");
        text += &if gpus > 0 { format!(":gpu={gpus}") } else { String::new() };
        chunks.extend((0..count).map(|_| [cores, gpus]));
    }
    let mut rset: Rset = text.parse().unwrap();
    let scatter = random.below(5) == 0;
    if scatter {
        rset.place.arrangement = Arrangement::Scatter;
    }
    (Wanted { chunks, scatter, duration_s: 1 + random.below(20) }, rset)
}

impl World {
    fn seconds(&self, without: Option<RequestId>) -> Seconds {
        Seconds::of(&self.planner, self.now_s, Some(self.kept), without)
    }

    fn one(&self, random: &mut Random, is_wanted: impl Fn(&State) -> bool) -> Option<RequestId> {
        let state = |id: &RequestId| self.planner.state(*id);
        let ids = self.planner.requests().filter(|id| state(id).is_some_and(|of| is_wanted(&of)));
        let ids: Vec<RequestId> = ids.collect();
        (!ids.is_empty()).then(|| ids[random.index(ids.len())])
    }

    fn is_reservation(&self, id: RequestId) -> bool {
        self.planner.inside(id).is_some()
    }

    fn checked(&mut self, what: &'static str) {
        *self.checked.entry(what).or_default() += 1;
    }

    /// A request starts when the brute force says.
    fn submit(&mut self, random: &mut Random, is_reservation: bool) {
        let (wanted, rset) = wanted(random);
        let from_s = self.now_s + random.below(30);
        let when = When::After { start_s: from_s };
        let request = Request { when, ..Request::new(rset, wanted.duration_s) };
        let seconds = self.seconds(None);
        let expected = seconds.earliest(from_s, self.now_s + AHEAD_S, &wanted);
        let found = if is_reservation {
            self.planner.reserve(self.now_s, &request)
        } else {
            self.planner.submit(self.now_s, &request)
        };
        let start_s = found.as_ref().ok().and_then(|&id| self.planner.standing(id)?.start_s);
        assert_eq!(start_s, expected, "{wanted:?}: {found:?}");
        if let Ok(id) = found {
            self.wanted.insert(id, wanted);
        }
        self.checked(if is_reservation { "reserve" } else { "submit" });
    }

    /// A request in a reservation starts when the brute force says of the nodes that it has.
    fn submit_in(&mut self, random: &mut Random) {
        let placed = self.planner.requests().filter(|&id| {
            self.is_reservation(id) && self.planner.standing(id).unwrap().start_s.is_some()
        });
        let Some(reservation) = placed.last() else {
            return;
        };
        let standing = self.planner.standing(reservation).unwrap();
        let start_s = standing.start_s.unwrap();
        let (from_s, end_s) = (self.now_s.max(start_s), start_s + standing.duration_s);
        let (wanted, rset) = wanted(random);
        let inside = self.planner.inside(reservation).unwrap();
        let seconds = Seconds::of(inside, from_s, None, None);
        let expected = seconds.earliest(from_s, end_s, &wanted);
        let request = Request::new(rset, wanted.duration_s);
        let found = self.planner.submit_in(self.now_s, reservation, &request);
        let inside = self.planner.inside(reservation).unwrap();
        let start_s = found.as_ref().ok().and_then(|&id| inside.standing(id)?.start_s);
        assert_eq!(start_s, expected, "in {reservation}: {wanted:?}: {found:?}");
        self.checked("submit in a reservation");
    }

    /// An altered request has the start of the brute force, or stays as it was.
    fn alter(&mut self, random: &mut Random) {
        let planned = |state: &State| !matches!(state, State::Running { .. });
        let Some(id) = self.one(random, planned).filter(|&id| !self.is_reservation(id)) else {
            return;
        };
        let (wanted, rset) = wanted(random);
        let request = Request::new(rset, wanted.duration_s);
        let expected = self.seconds(Some(id));
        let expected = expected.earliest(self.now_s, self.now_s + AHEAD_S, &wanted);
        let before = self.planner.standing(id);
        match self.planner.alter(self.now_s, id, &request) {
            Ok(()) => {
                assert_eq!(self.planner.standing(id).unwrap().start_s, expected, "{wanted:?}");
                self.wanted.insert(id, wanted);
            }
            Err(_) => {
                assert_eq!(expected, None, "{wanted:?}");
                assert_eq!(self.planner.standing(id), before);
            }
        }
        self.checked("alter");
    }

    /// A running request is extended exactly where the brute force finds its nodes free.
    fn extend(&mut self, random: &mut Random) {
        let Some(id) = self.one(random, |state| matches!(state, State::Running { .. })) else {
            return;
        };
        let Some(State::Running { end_s, .. }) = self.planner.state(id) else {
            return;
        };
        let by_s = 1 + random.below(10);
        let used = self.planner.used_by(id);
        let seconds = self.seconds(None);
        let sums = used.iter().fold([0, 0], |sum, (_, of)| [sum[0] + of[0], sum[1] + of[1]]);
        let usable: Vec<usize> = (0..self.planner.machine().node_count())
            .filter(|&node| self.planner.is_usable(node))
            .collect();
        let expected = (end_s..end_s + by_s).all(|time_s| {
            let at = (time_s - self.now_s) as usize;
            seconds.may(time_s, sums)
                && used.iter().all(|(node, used)| {
                    let place = usable.iter().position(|of| of == node);
                    let free = place.map(|place| seconds.free[place][at]);
                    free.is_some_and(|free| used[0] <= free[0] && used[1] <= free[1])
                })
        });
        let extended = self.planner.extend(id, by_s, u64::MAX);
        assert_eq!(extended.is_ok(), expected, "{id} by {by_s}: {extended:?}");
        self.checked("extend");
    }

    /// A node is lost, or is back: no request that has not begun is on a lost node, and nobody who
    /// was not moved for it has moved.
    fn change_node(&mut self, random: &mut Random) {
        let node = random.index(self.planner.machine().node_count());
        let is_lost = self.planner.is_usable(node);
        // Others change together with it.
        let nodes: Vec<usize> = (0..self.planner.machine().node_count())
            .filter(|&other| self.planner.is_usable(other) == is_lost)
            .filter(|&other| other == node || random.below(3) == 0)
            .collect();
        let names = nodes.iter().map(|&node| self.planner.machine().node_name(node).to_string());
        let names: Vec<String> = names.collect();
        let running = self
            .planner
            .requests()
            .filter(|&id| self.is_reservation(id) && self.planner.standing(id).unwrap().is_running);
        let running: Vec<RequestId> = running.collect();
        let before: BTreeMap<RequestId, _> =
            self.planner.requests().map(|id| (id, self.planner.standing(id))).collect();
        let now_s = self.now_s;
        let replanned = if is_lost {
            self.planner.nodes_offline(now_s, &nodes)
        } else {
            self.planner.nodes_up(now_s, &nodes)
        };
        let all: Vec<RequestId> = self.planner.requests().collect();
        for id in all {
            // One that has not begun has taken care of it.
            let is_told = running.contains(&id) || !is_lost;
            if let Some(inside) = self.planner.inside_mut(id).filter(|_| is_told) {
                let nodes = names.iter().filter_map(|name| inside.machine().node_by_name(name));
                let nodes: Vec<usize> = nodes.collect();
                let _ = if is_lost {
                    inside.nodes_offline(now_s, &nodes)
                } else {
                    inside.nodes_up(now_s, &nodes)
                };
            }
            let standing = self.planner.standing(id).unwrap();
            let keeps = standing.is_running || standing.is_reservation;
            let on_lost = standing.nodes.iter().any(|of| !self.planner.is_usable(of.node as usize));
            assert!(keeps || !on_lost, "{id} is planned on a lost node");
            let is_changed =
                [&replanned.moved, &replanned.waiting].iter().any(|of| of.contains(&id));
            assert!(is_changed || before[&id] == Some(standing), "{id} has moved");
        }
        self.checked("lose or return nodes");
    }

    /// Requests end, and nobody moves to later.
    fn end(&mut self, random: &mut Random) {
        let Some(id) = self.one(random, |_| true) else {
            return;
        };
        self.planner.remove(self.now_s, id);
        self.wanted.remove(&id);
        let starts = |planner: &Planner| -> BTreeMap<RequestId, Option<u64>> {
            planner.requests().map(|id| (id, planner.standing(id).unwrap().start_s)).collect()
        };
        let before = starts(&self.planner);
        while self.planner.is_backfilling() {
            self.planner.backfill(self.now_s, usize::MAX);
        }
        self.planner.plan_waiting(self.now_s);
        for (id, start_s) in starts(&self.planner) {
            let later = |was_s: u64| start_s.is_none_or(|start_s| start_s > was_s);
            assert!(!before[&id].is_some_and(later), "{id} moves to later");
        }
        self.checked("end");
    }

    /// Time passes: requests start, and end at their ends.
    fn advance(&mut self, by_s: u64) {
        for _ in 0..by_s {
            self.now_s += 1;
            for id in self.planner.overdue(self.now_s) {
                self.planner.remove(self.now_s, id);
                self.wanted.remove(&id);
            }
            self.planner.start(self.now_s, &mut Vec::new());
            let all: Vec<RequestId> = self.planner.requests().collect();
            for id in all {
                let is_running = self.planner.standing(id).unwrap().is_running;
                if let Some(inside) = self.planner.inside_mut(id).filter(|_| is_running) {
                    for id in inside.overdue(self.now_s) {
                        inside.remove(self.now_s, id);
                    }
                    inside.start(self.now_s, &mut Vec::new());
                }
            }
        }
        self.planner.plan_waiting(self.now_s);
        self.planner.forget_before(self.now_s);
        self.checked("advance");
    }
}

#[test]
fn operations_of_all_kinds_agree_with_brute_force() {
    let seeds: usize = std::env::var("PBS_SEEDS").map_or(40, |text| text.parse().unwrap());
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..seeds {
        let mut random = Random::new(seed as u64, Stream::Scenario);
        let mut world = world(&mut random);
        for operation in 0..OPERATIONS {
            let of = random.below(20);
            let context = format!("seed {seed}, operation {operation}, kind {of}");
            let operate = std::panic::AssertUnwindSafe(|| {
                match of {
                    0..=6 => world.submit(&mut random, false),
                    7 => world.submit(&mut random, true),
                    8..=9 => world.submit_in(&mut random),
                    10..=11 => world.alter(&mut random),
                    12..=13 => world.extend(&mut random),
                    14..=15 => world.change_node(&mut random),
                    16 => world.end(&mut random),
                    _ => {
                        let by_s = 1 + random.below(8);
                        world.advance(by_s);
                    }
                }
                // No node has more than it has, at any time.
                let _ = world.seconds(None);
            });
            if let Err(panic) = std::panic::catch_unwind(operate) {
                eprintln!("{context}");
                std::panic::resume_unwind(panic);
            }
        }
        for (what, count) in world.checked {
            *checked.entry(what).or_default() += count;
        }
    }
    assert!(checked.len() == 8 && checked.values().all(|&count| count > 3 * seeds), "{checked:?}");
}
