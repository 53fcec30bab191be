// SPDX-License-Identifier: GPL-2.0
//! Every start is the one that trying all times finds.
//!
//! The oracle knows nothing of steps, gaps and events: it holds who uses what, and tries
//! one second after the other with all ways to map. `PBS_REQUESTS` says how many requests
//! there are.

use std::sync::Arc;

use pbs_cluster_planner::literal::Literal;
use pbs_cluster_planner::{
    Limit, Limited, Machine, NodeSpec, Planner, Pool, Request, RequestId, Resource, Rules, State,
    When, NCPUS,
};
use pbs_gen::{Random, Stream};
use pbs_resources::{Arrangement, Rset, Sharing};
use pbs_site::{Share, Whom};

/// Use of nodes by a request: nodes with amounts, and the interval.
struct Used {
    nodes: Vec<(usize, [u64; 2])>,
    from_s: u64,
    until_s: u64,
}

struct Oracle {
    has: Vec<[u64; 2]>,
    used: Vec<(RequestId, Used)>,
}

struct Wanted {
    chunks: Vec<[u64; 2]>,
    scatter: bool,
    exclusive: bool,
    duration_s: u64,
    /// Nodes on which nothing of it may be.
    avoided: Vec<usize>,
}

impl Oracle {
    /// Returns the free amounts of a node throughout the wanted duration; `None` if the request
    /// avoids the node, or is exclusive and the node is in use.
    fn free(&self, node: usize, from_s: u64, wanted: &Wanted) -> Option<[u64; 2]> {
        if wanted.avoided.contains(&node) {
            return None;
        }
        let mut least = self.has[node];
        for time_s in from_s..from_s + wanted.duration_s {
            let mut free = self.has[node];
            for (_, used) in &self.used {
                if (used.from_s..used.until_s).contains(&time_s) {
                    for (on, amounts) in &used.nodes {
                        if *on == node {
                            free[0] -= amounts[0];
                            free[1] -= amounts[1];
                        }
                    }
                }
            }
            least = [least[0].min(free[0]), least[1].min(free[1])];
        }
        (!wanted.exclusive || least == self.has[node]).then_some(least)
    }

    /// Whether the chunks from `next` on fit, by trying all.
    fn fits(
        free: &mut [Option<[u64; 2]>],
        taken: &mut [bool],
        next: usize,
        wanted: &Wanted,
    ) -> bool {
        let Some(chunk) = wanted.chunks.get(next) else {
            return true;
        };
        for node in 0..free.len() {
            let Some(left) = free[node] else { continue };
            if (wanted.scatter && taken[node]) || left[0] < chunk[0] || left[1] < chunk[1] {
                continue;
            }
            let was = taken[node];
            free[node] = Some([left[0] - chunk[0], left[1] - chunk[1]]);
            taken[node] = true;
            if Self::fits(free, taken, next + 1, wanted) {
                return true;
            }
            free[node] = Some(left);
            taken[node] = was;
        }
        false
    }

    fn earliest(&self, from_s: u64, wanted: &Wanted, may: impl Fn(u64) -> bool) -> Option<u64> {
        (from_s..from_s + 2000).find(|&time_s| {
            if !(time_s..time_s + wanted.duration_s).all(&may) {
                return false;
            }
            let nodes = 0..self.has.len();
            let mut free: Vec<_> = nodes.map(|node| self.free(node, time_s, wanted)).collect();
            let mut taken = vec![false; free.len()];
            Self::fits(&mut free, &mut taken, 0, wanted)
        })
    }
}

fn machine(random: &mut Random) -> (Machine, Vec<[u64; 2]>) {
    let nodes: Vec<NodeSpec> = (0..2 + random.below(4))
        .map(|node| {
            let has = vec![1 + random.below(4), 2 + 2 * random.below(3)];
            let prio = random.below(2) as i64;
            NodeSpec { prio, ..NodeSpec::new(format!("n{node}"), has) }
        })
        .collect();
    let resources = ["ncpus", "mem"].map(|name| Resource { name: name.into(), job_wide: None });
    let machine = Machine::new(resources.to_vec(), &nodes);
    let has =
        (0..machine.node_count()).map(|node| [machine.has(node, NCPUS), machine.has(node, 1)]);
    let has = has.collect();
    (machine, has)
}

fn wanted(random: &mut Random, machine: &Machine) -> (Wanted, Rset) {
    let mut text = String::new();
    let mut chunks = Vec::new();
    for part in 0..1 + random.below(2) {
        let (count, cores, mem) = (1 + random.below(3), random.below(4), random.below(4));
        let cores = cores.max(u64::from(mem == 0));
        text += if part > 0 { "+" } else { "" };
        text += &format!("{count}:ncpus={cores}:mem={mem}");
        chunks.extend((0..count).map(|_| [cores, mem]));
    }
    let mut rset: Rset = text.parse().unwrap();
    let arrangement = random.below(6);
    if arrangement == 0 {
        rset.place.arrangement = Arrangement::Pack;
        let sum = chunks.iter().fold([0, 0], |sum, chunk| [sum[0] + chunk[0], sum[1] + chunk[1]]);
        chunks = vec![sum];
    } else if arrangement == 1 {
        rset.place.arrangement = Arrangement::Scatter;
    }
    let exclusive = random.below(5) == 0;
    if exclusive {
        rset.place.sharing = Some(Sharing::Exclusive);
    }
    let mut avoided = Vec::new();
    if random.below(4) == 0 {
        avoided.extend((0..machine.node_count()).filter(|_| random.below(3) == 0));
        rset.avoid = avoided.iter().map(|&node| machine.node_name(node).into()).collect();
    }
    let scatter = arrangement == 1;
    let duration_s = 1 + random.below(20);
    (Wanted { chunks, scatter, exclusive, duration_s, avoided }, rset)
}

/// Converts the planner's placement for the oracle. Panics if the placement is invalid.
fn used(planner: &Planner, id: RequestId, wanted: &Wanted, start_s: u64, has: &[[u64; 2]]) -> Used {
    let mut nodes: Vec<(usize, [u64; 2])> = Vec::new();
    // Kinds are sorted by the planner; by their counts and sums they are found again.
    for (node, amounts) in planner.used_by(id) {
        let amounts = [amounts[0], amounts[1]];
        assert!(amounts[0] <= has[node][0] && amounts[1] <= has[node][1]);
        assert!(!wanted.avoided.contains(&node));
        nodes.push((node, amounts));
    }
    if !wanted.exclusive {
        let sum = nodes.iter().fold([0, 0], |sum, (_, of)| [sum[0] + of[0], sum[1] + of[1]]);
        let all = wanted.chunks.iter().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
        assert_eq!(sum, all);
    }
    Used { nodes, from_s: start_s, until_s: start_s + wanted.duration_s }
}

#[test]
fn every_start_is_the_earliest() {
    let requests = std::env::var("PBS_REQUESTS").map_or(3000, |text| text.parse().unwrap());
    let mut asked = 0;
    let mut seed = 0;
    while asked < requests {
        seed += 1;
        let mut random = Random::new(seed, Stream::Scenario);
        let (machine, has) = machine(&mut random);
        let mut planner = Planner::new(Arc::new(machine), Rules::default());
        let mut oracle = Oracle { has: has.clone(), used: Vec::new() };
        let mut wants: Vec<(RequestId, Wanted)> = Vec::new();
        for _ in 0..30 {
            asked += 1;
            let (wanted, rset) = wanted(&mut random, planner.machine());
            let from_s = random.below(30);
            let mut request = Request::new(rset, wanted.duration_s);
            request.when = When::After { start_s: from_s };
            let literal = Literal::of(&planner).plan(from_s, &request);
            let found = planner.submit(0, &request);
            let expected = oracle.earliest(from_s, &wanted, |_| true);
            let id = match (found, expected) {
                (Err(_), None) => continue,
                (Ok(id), Some(_)) => id,
                (found, expected) => panic!("seed {seed}: {found:?}, not {expected:?}"),
            };
            let Some(State::Planned { start_s }) = planner.state(id) else {
                panic!("seed {seed}: it has no place");
            };
            assert_eq!(Some(start_s), expected, "seed {seed}: {}", request.rset.chunks.len());
            // Keller's procedure finds nothing earlier.
            if let (Ok(Some(literal)), false) = (literal, wanted.exclusive) {
                assert!(start_s <= literal.start_s, "seed {seed}");
            }
            oracle.used.push((id, used(&planner, id, &wanted, start_s, &has)));
            wants.push((id, wanted));
            // Somebody does not want any more, and others take the place.
            if random.below(4) == 0 {
                let at = random.index(wants.len());
                let (gone, _) = wants.remove(at);
                oracle.used.retain(|(id, _)| *id != gone);
                planner.remove(0, gone);
                let before: Vec<_> = wants.iter().map(|(id, _)| planner.state(*id)).collect();
                planner.backfill(0, usize::MAX);
                for ((id, wanted), before) in wants.iter().zip(before) {
                    let now = planner.state(*id);
                    let (Some(State::Planned { start_s: was_s }), Some(State::Planned { start_s })) =
                        (before, now)
                    else {
                        panic!("seed {seed}: it has no place");
                    };
                    assert!(start_s <= was_s, "seed {seed}: nobody moves to later");
                    let place = oracle.used.iter_mut().find(|(of, _)| of == id).unwrap();
                    place.1 = used(&planner, *id, wanted, start_s, &has);
                }
                // No node is asked for more than it has.
                for time_s in 0..200 {
                    for (node, has) in has.iter().enumerate() {
                        let of_node = oracle.used.iter().flat_map(|(_, used)| {
                            let is_then = (used.from_s..used.until_s).contains(&time_s);
                            used.nodes.iter().filter(move |(on, _)| is_then && *on == node)
                        });
                        let sum =
                            of_node.fold([0, 0], |sum, (_, of)| [sum[0] + of[0], sum[1] + of[1]]);
                        assert!(sum[0] <= has[0] && sum[1] <= has[1], "seed {seed}");
                    }
                }
            }
        }
    }
}

/// Under limits of users and groups with limited validity, and under a pool, every start is the
/// earliest. The oracle counts the use of cores by each consumer second by second.
#[test]
fn every_start_is_the_earliest_under_rules() {
    const USERS: [(&str, &str); 3] = [("a", "g"), ("b", "g"), ("c", "h")];
    let mut moved = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed, Stream::Scenario);
        let (machine, has) = machine(&mut random);
        let total: u64 = has.iter().map(|has| has[0]).sum();
        // Whose, how many, and until when.
        let limits = [
            (Whom::User("a".into()), 1 + random.below(total), 60),
            (Whom::Group("g".into()), 1 + random.below(total), u64::MAX),
        ];
        let kept = random.below(total);
        let share = random.below(2) == 0;
        let items = |least| Some(Share { least: Some(least), permille: None });
        let rules = Rules {
            limits: limits
                .iter()
                .map(|(whom, most, until_s)| Limit {
                    whom: whom.clone(),
                    of: Limited::Resource(NCPUS),
                    items: items(*most),
                    soft_permille: None,
                    duration_s: None,
                    area_s: None,
                    valid: std::iter::once(0..*until_s).collect(),
                })
                .collect(),
            pools: vec![Pool {
                name: "small".into(),
                resource: NCPUS,
                free: Share { least: Some(kept), permille: None },
                access: "ncpus<3".parse().unwrap(),
                share,
                for_askers: false,
                valid: std::iter::once(20..u64::MAX).collect(),
            }],
            ..Rules::default()
        };
        let mut planner = Planner::new(Arc::new(machine), rules);
        let mut oracle = Oracle { has: has.clone(), used: Vec::new() };
        // Of each request: user, cores, whether the pool lets it in.
        let mut whose: Vec<(RequestId, usize, u64, bool)> = Vec::new();
        for _ in 0..30 {
            let (mut wanted, mut rset) = wanted(&mut random, planner.machine());
            wanted.exclusive = false;
            rset.place.sharing = None;
            let from_s = random.below(30);
            let user = random.index(3);
            let cores: u64 = wanted.chunks.iter().map(|chunk| chunk[0]).sum();
            let is_in = cores < 3;
            let may = |time_s: u64| {
                let then = oracle
                    .used
                    .iter()
                    .filter(|(_, used)| (used.from_s..used.until_s).contains(&time_s));
                let then: Vec<_> =
                    then.filter_map(|(id, _)| whose.iter().find(|(of, ..)| of == id)).collect();
                let sum = |of: &dyn Fn(usize, bool) -> bool| -> u64 {
                    let of = then.iter().filter(|(_, user, _, is_in)| of(*user, *is_in));
                    of.map(|(_, _, cores, _)| cores).sum()
                };
                let within = limits.iter().all(|(whom, most, until_s)| {
                    let is_of = |user: usize| match whom {
                        Whom::User(name) => USERS[user].0 == name,
                        Whom::Group(name) => USERS[user].1 == name,
                        Whom::Everyone => false,
                    };
                    let most = (*most).min(total);
                    time_s >= *until_s || !is_of(user) || sum(&|of, _| is_of(of)) + cores <= most
                });
                let inside = sum(&|_, is_in| is_in);
                let left = if share { kept.saturating_sub(inside) } else { kept };
                let closed = if is_in || time_s < 20 { 0 } else { left };
                // What asks for no core asks nobody.
                cores == 0 || within && sum(&|_, _| true) + cores + closed <= total
            };
            let expected = oracle.earliest(from_s, &wanted, may);
            moved += u32::from(expected != oracle.earliest(from_s, &wanted, |_| true));
            let mut request = Request::new(rset, wanted.duration_s);
            request.when = When::After { start_s: from_s };
            (request.user, request.group) = (USERS[user].0.into(), USERS[user].1.into());
            let id = match (planner.submit(0, &request), expected) {
                (Err(_), None) => continue,
                (Ok(id), Some(_)) => id,
                (found, expected) => panic!("seed {seed}: {found:?}, not {expected:?}"),
            };
            let start_s = match planner.state(id) {
                Some(State::Planned { start_s }) => start_s,
                state => panic!("seed {seed}: {state:?}"),
            };
            assert_eq!(Some(start_s), expected, "seed {seed}, request {id}");
            let used = used(&planner, id, &wanted, start_s, &has);
            oracle.used.push((id, used));
            whose.push((id, user, cores, is_in));
            if random.below(4) == 0 {
                let at = random.index(whose.len());
                let (gone, ..) = whose.remove(at);
                oracle.used.retain(|(id, _)| *id != gone);
                planner.remove(0, gone);
            }
        }
    }
    assert!(moved > 500, "the rules matter for {moved} alone");
}
