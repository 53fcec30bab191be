// SPDX-License-Identifier: GPL-2.0
//! The parameter sweep (Klein and Pérez 2011, 5.1.2).

use pbs_gen::{Random, Stream};
use pbs_rms_apps::{Application, KillOrder, Psa, Step, View, Views, Wish, FOREVER, SECOND_NS};

const S: u64 = SECOND_NS;

fn see(psa: &mut Psa, now_s: u64, steps: &[(u64, u64)]) -> Vec<Wish> {
    let steps = steps.iter().map(|&(duration_s, nodes)| match duration_s {
        FOREVER => Step::new(FOREVER, nodes),
        _ => Step::new(duration_s * S, nodes),
    });
    let view = View::new(now_s * S, &steps.collect::<Vec<_>>());
    let views = Views { non_preemptible: &View::default(), preemptible: &view };
    psa.views(now_s * S, views)
}

/// Returns the wanted number of nodes, if a wish contains one.
fn wanted(wishes: &[Wish]) -> Option<u64> {
    let mut nodes = wishes.iter().filter_map(|wish| match wish {
        Wish::Request(request) => Some(request.nodes),
        Wish::Update { nodes, .. } => Some(*nodes),
        Wish::Done { .. } => Some(0),
        _ => None,
    });
    nodes.next_back()
}

/// Grants the wanted nodes at once.
fn give(psa: &mut Psa, now_s: u64, nodes: u64) -> Vec<Wish> {
    psa.started(now_s * S, Psa::NODES, nodes)
}

#[test]
fn an_announced_drop_wastes_nothing() {
    let mut psa = Psa::new(60 * S);
    psa.connect(0);
    // Of 10 nodes a mesh has 4, and has announced 6 in 100 s.
    let asked = see(&mut psa, 0, &[(100, 6), (FOREVER, 4)]);
    assert_eq!(wanted(&asked), Some(6), "it holds 6 now, not 4");
    assert_eq!(give(&mut psa, 0, 6), [Wish::Start { tasks: 0..6 }]);
    assert_eq!((psa.draining(), psa.next_ns()), (2, Some(60 * S)));
    let next = psa.wake(60 * S);
    assert_eq!((next.first(), wanted(&next)), (Some(&Wish::Start { tasks: 6..10 }), Some(4)));
    assert_eq!((psa.running(), psa.held()), (4, 4));
    for s in [100, 120, 180] {
        psa.wake(s * S);
    }
    let account = psa.account();
    assert_eq!((account.killed, account.wasted_node_ns, account.done), (0, 0, 14));
    assert_eq!(psa.draining(), 0);
}

#[test]
fn a_spontaneous_drop_wastes_the_work_done() {
    for order in [KillOrder::Youngest, KillOrder::Oldest] {
        let mut psa = Psa::new(60 * S).with_kill_order(order);
        see(&mut psa, 0, &[(FOREVER, 6)]);
        give(&mut psa, 0, 6);
        let wishes = see(&mut psa, 30, &[(FOREVER, 4)]);
        assert!(matches!(&wishes[0], Wish::Kill { tasks } if tasks.len() == 2), "{wishes:?}");
        assert_eq!(wanted(&wishes), Some(4));
        assert_eq!((psa.account().wasted_node_ns, psa.held()), (60 * u128::from(S), 4));
    }
}

#[test]
fn killing_the_youngest_tasks_loses_least() {
    let wasted = |order| {
        let mut psa = Psa::new(60 * S).with_kill_order(order);
        see(&mut psa, 0, &[(FOREVER, 2)]);
        give(&mut psa, 0, 2);
        see(&mut psa, 50, &[(FOREVER, 4)]);
        give(&mut psa, 50, 4);
        let wishes = see(&mut psa, 55, &[(FOREVER, 2)]);
        (wishes[0].clone(), psa.account().wasted_node_ns / u128::from(S))
    };
    let kill = |tasks| Wish::Kill { tasks };
    assert_eq!(wasted(KillOrder::Youngest), (kill(vec![3, 2]), 10));
    assert_eq!(wasted(KillOrder::Oldest), (kill(vec![0, 1]), 110));
}

#[test]
fn too_short_holes_are_left_to_others() {
    let mut psa = Psa::new(600 * S);
    // 10 nodes for 599 s, and 3 for ever.
    assert_eq!(wanted(&see(&mut psa, 0, &[(599, 10), (FOREVER, 3)])), Some(3));
    // For 600 s they are worth it.
    assert_eq!(wanted(&see(&mut psa, 0, &[(600, 10), (FOREVER, 3)])), Some(10));
    give(&mut psa, 0, 10);
    assert_eq!(psa.running(), 10);
    // A second later they would not have been.
    let mut late = Psa::new(600 * S);
    see(&mut late, 0, &[(600, 10), (FOREVER, 3)]);
    assert_eq!(wanted(&give(&mut late, 1, 10)), Some(3));
    assert_eq!((late.running(), late.held()), (3, 3));
}

#[test]
fn a_shrunk_request_is_not_enlarged_at_once() {
    let mut psa = Psa::new(60 * S);
    see(&mut psa, 0, &[(FOREVER, 6)]);
    let wishes = give(&mut psa, 0, 4);
    assert_eq!((wanted(&wishes), psa.running()), (None, 4));
    assert_eq!(wanted(&see(&mut psa, 1, &[(FOREVER, 6)])), Some(6));
}

#[test]
fn a_request_for_no_node_ends_and_a_later_one_is_new() {
    let mut psa = Psa::new(60 * S);
    assert_eq!(see(&mut psa, 0, &[(FOREVER, 0)]), []);
    see(&mut psa, 1, &[(FOREVER, 2)]);
    give(&mut psa, 1, 2);
    let gone = see(&mut psa, 2, &[(FOREVER, 0)]);
    assert!(matches!(gone.last(), Some(Wish::Done { .. })), "{gone:?}");
    let again = see(&mut psa, 3, &[(FOREVER, 1)]);
    assert!(matches!(again[..], [Wish::Request(_)]), "{again:?}");
    give(&mut psa, 3, 1);
    assert!(matches!(psa.stop(4 * S)[..], [Wish::Done { .. }]));
    assert!(psa.has_ended() && psa.next_ns().is_none() && psa.wake(5 * S).is_empty());
}

#[test]
fn idle_nodes_are_counted() {
    let mut psa = Psa::new(10 * S);
    see(&mut psa, 0, &[(FOREVER, 3)]);
    give(&mut psa, 0, 3);
    // Somebody wakes it 5 s too late.
    psa.wake(15 * S);
    assert_eq!(psa.account().idle_node_ns, 15 * u128::from(S));
    assert_eq!((psa.running(), psa.account().done), (3, 3));
}

/// Free nodes in each of many seconds, and the part that a manager knows.
struct Future {
    nodes: Vec<u64>,
}

impl Future {
    fn new(random: &mut Random) -> Self {
        let mut nodes = Vec::new();
        while nodes.len() < 400 {
            let (many, long) = (random.below(12), 1 + random.below(50));
            nodes.extend((0..long).map(|_| many));
        }
        Self { nodes }
    }

    /// The truth for so long, and then something else.
    fn view(&self, now_s: usize, known_s: usize, later: u64) -> Vec<(u64, u64)> {
        let known = self.nodes[now_s..].iter().take(known_s);
        let mut steps: Vec<_> = known.map(|&nodes| (1, nodes)).collect();
        steps.push((FOREVER, later));
        steps
    }
}

/// Tasks of the random courses.
const TASK_S: u64 = 20;

/// Drives a sweep for a while: either with a view as long as a task, or now and then with a shorter
/// one.
fn course(seed: u64, is_foreseen: bool) -> Psa {
    let random = &mut Random::new(seed, Stream::Trace);
    let future = Future::new(random);
    let mut psa = Psa::new(TASK_S * S);
    let mut asked: Option<u64> = None;
    for now_s in 0..300 {
        let now = now_s as u64;
        let mut wishes = Vec::new();
        // Mostly it acts by itself, but nobody leaves it with too many.
        let is_told = is_foreseen
            || now_s == 0
            || future.nodes[now_s] != future.nodes[now_s - 1]
            || random.below(4) == 0;
        if is_told {
            let more_s = random.below(60) as usize;
            let known_s = if is_foreseen { TASK_S as usize } else { 1 } + more_s;
            let view = future.view(now_s, known_s, random.below(12));
            wishes.extend(see(&mut psa, now, &view));
        }
        if psa.next_ns().is_some_and(|ns| ns <= now * S) {
            wishes.extend(psa.wake(now * S));
        }
        assert!(psa.running() <= future.nodes[now_s], "seed {seed}, {now_s} s");
        asked = wanted(&wishes).or(asked);
        // A manager that takes its time, and does not always have all.
        if random.below(3) > 0 {
            if let Some(nodes) = asked.take().filter(|&nodes| nodes > psa.held()) {
                let given = (nodes - random.below(2)).min(future.nodes[now_s]);
                if given >= psa.held() {
                    asked = wanted(&give(&mut psa, now, given));
                }
            }
        }
        assert!(psa.running() <= psa.held() && psa.running() <= future.nodes[now_s]);
        let killed = u128::from(psa.account().killed);
        assert!(psa.account().wasted_node_ns < killed * u128::from(TASK_S * S) + 1);
    }
    psa
}

#[test]
fn a_sweep_never_has_more_tasks_than_its_view_allows() {
    let killed = (0..500).map(|seed| {
        let psa = course(seed, false);
        psa.account().killed
    });
    assert!(killed.sum::<u64>() > 0, "nothing was tried");
}

#[test]
fn draining_tasks_waste_nothing() {
    let done = (0..500).map(|seed| {
        let account = course(seed, true).account();
        assert_eq!((account.killed, account.wasted_node_ns), (0, 0), "seed {seed}");
        account.done
    });
    assert!(done.sum::<u64>() > 1_000, "nothing was tried");
}

#[test]
fn jobs_of_a_sweep_run_until_their_end_is_reported() {
    let mut psa = Psa::of_jobs(10 * S, 5);
    psa.connect(0);
    assert_eq!(wanted(&see(&mut psa, 0, &[(FOREVER, 3)])), Some(3));
    assert_eq!(give(&mut psa, 0, 3), [Wish::Start { tasks: 0..3 }]);
    // It is late, and nobody wakes it for that.
    assert_eq!((psa.next_ns(), psa.running()), (None, 3));
    assert_eq!(psa.wake(12 * S), []);
    assert_eq!(
        psa.task_ended(13 * S, 1),
        [Wish::Start { tasks: 3..4 }],
        "its node has the next one"
    );
    psa.task_ended(14 * S, 0);
    // The last one runs; a node is given back.
    assert_eq!(wanted(&psa.task_ended(15 * S, 2)), Some(2));
    assert!(!psa.has_ended());
    assert_eq!(wanted(&psa.task_ended(16 * S, 3)), Some(1));
    assert_eq!(wanted(&psa.task_ended(17 * S, 4)), Some(0));
    assert!(psa.has_ended());
    assert_eq!((psa.account().done, psa.account().killed), (5, 0));
}

#[test]
fn jobs_that_a_drop_would_kill_are_not_started() {
    let mut psa = Psa::of_jobs(10 * S, 100);
    psa.connect(0);
    see(&mut psa, 0, &[(FOREVER, 3)]);
    give(&mut psa, 0, 3);
    // Two go in 15 s: what ends before that may begin.
    assert_eq!(see(&mut psa, 5, &[(15, 3), (FOREVER, 1)]), []);
    let start = |tasks| Wish::Start { tasks };
    assert_eq!(psa.task_ended(7 * S, 0), [start(3..4)], "17 s and 2.5 to spare");
    assert_eq!(psa.task_ended(8 * S, 2), [start(4..5)], "18 s and 2.5 to spare, but one remains");
    // The fourth of them may be late, and then this one would have no node.
    assert_eq!(wanted(&psa.task_ended(11 * S, 1)), Some(2));
    assert_eq!(wanted(&psa.task_ended(18 * S, 3)), Some(1));
    assert_eq!((psa.running(), psa.draining()), (1, 0));
    assert_eq!(psa.wake(20 * S), []);
    assert_eq!(psa.account().killed, 0);
}

#[test]
fn killed_jobs_are_run_again() {
    let mut psa = Psa::of_jobs(10 * S, 3);
    psa.connect(0);
    see(&mut psa, 0, &[(FOREVER, 3)]);
    give(&mut psa, 0, 3);
    let killed = see(&mut psa, 4, &[(FOREVER, 2)]);
    assert_eq!(killed[0], Wish::Kill { tasks: vec![2] });
    assert_eq!(wanted(&killed), Some(2));
    give(&mut psa, 4, 2);
    assert_eq!(psa.task_ended(10 * S, 0), [Wish::Start { tasks: 2..3 }]);
    assert_eq!(psa.account().wasted_node_ns, u128::from(4 * S));
    psa.task_ended(11 * S, 1);
    psa.task_ended(20 * S, 2);
    assert!(psa.has_ended());
}
