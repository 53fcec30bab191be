// SPDX-License-Identifier: GPL-2.0
//! Mapping of chunks to nodes (Keller, 5.2, table 1).

mod common;

use common::*;
use pbs_cluster_planner::{
    Impossible, Machine, NodeSpec, Planner, Policy, Refusal, Rules, SMALL_CHUNKS,
};
use pbs_gen::Random;
use pbs_site::{Mapping, Site};

/// Nodes at switches, cheap ones first where one is.
fn with_policy(nodes: &[(u64, &str)], policy: Policy) -> Planner {
    let specs = nodes.iter().enumerate().map(|(at, &(cores, switch))| NodeSpec {
        switch: (!switch.is_empty()).then(|| switch.into()),
        ..spec(&format!("n{}", at + 1), cores)
    });
    let specs: Vec<_> = specs.collect();
    let machine = Machine::new(vec![ncpus()], &specs);
    Planner::with_policy(machine.into(), Rules::default(), policy)
}

fn by(mapping: Mapping) -> Policy {
    Policy { mapping, ..Policy::default() }
}

/// Submits a request that can start at once and returns its nodes.
fn at_once(planner: &mut Planner, rset: &str) -> Vec<String> {
    let id = planner.submit(0, &ask(rset, 10)).unwrap();
    assert_eq!(start(planner, id), Some(0), "{rset}");
    names(planner, id)
}

#[test]
fn free_chunks_go_where_there_is_room() {
    let mut planner = nodes(&[4, 4, 8]);
    assert_eq!(at_once(&mut planner, "5:ncpus=2"), ["n1", "n2", "n3"]);
    assert_eq!(at_once(&mut planner, "3:ncpus=2,place=free"), ["n3"]);
}

#[test]
fn packed_chunks_are_on_one_node() {
    let mut planner = nodes(&[4, 4, 8]);
    assert_eq!(at_once(&mut planner, "3:ncpus=2,place=pack"), ["n3"]);
    assert_eq!(at_once(&mut planner, "2:ncpus=2,place=pack"), ["n1"]);
    assert!(planner.submit(0, &ask("5:ncpus=2,place=pack", 10)).is_err());
}

#[test]
fn scattered_chunks_are_one_a_node() {
    let mut planner = nodes(&[4, 4, 8]);
    let rset = "3:ncpus=1,place=scatter";
    assert_eq!(at_once(&mut planner, rset), ["n1", "n2", "n3"]);
    assert!(planner.submit(0, &ask("4:ncpus=1,place=scatter", 10)).is_err());
}

/// Nodes that a request avoids are never taken, and one that is none of the cluster excludes
/// nothing.
#[test]
fn avoided_nodes_are_not_taken() {
    let mut planner = nodes(&[4, 4, 8]);
    assert_eq!(at_once(&mut planner, "ncpus=2,avoid=n1:n3:other"), ["n2"]);
    assert_eq!(at_once(&mut planner, "2:ncpus=1,place=scatter,avoid=n2"), ["n1", "n3"]);
    let mut planner = nodes(&[4, 4, 8]);
    assert_eq!(at_once(&mut planner, "ncpus=1+ncpus=2,avoid=n1:n3"), ["n2", "n2"]);
    for rset in ["ncpus=1,avoid=n1:n2:n3", "ncpus=8,avoid=n3", "2:ncpus=8,avoid=n1"] {
        assert!(planner.submit(0, &ask(rset, 10)).is_err(), "{rset}");
    }
    assert!(planner.submit(0, &ask("3:ncpus=1,place=scatter,avoid=n2", 10)).is_err());
}

#[test]
fn mappings_are_chosen_by_policy() {
    let nodes = [(4, "a"), (4, "b"), (4, "b")];
    let mut planner = with_policy(&nodes, by(Mapping::Cheapest));
    assert_eq!(at_once(&mut planner, "2:ncpus=4"), ["n1", "n2"]);
    let mut planner = with_policy(&nodes, by(Mapping::Switches));
    assert_eq!(at_once(&mut planner, "2:ncpus=4"), ["n2", "n3"]);
}

#[test]
fn weights_order_the_nodes() {
    // The one with an accelerator is dear by that, the large one by its cores.
    let special = NodeSpec { has: vec![8, 1], ..spec("special", 8) };
    let large = spec("large", 32);
    let small = NodeSpec { prio: 1, ..spec("last", 8) };
    let nodes = [special, large, spec("small", 8), small];
    let planner = on(&[("gpu", None)], &nodes, Rules::default());
    let machine = planner.machine();
    let order: Vec<_> =
        (0..4).map(|node| (machine.node_name(node), machine.weight(node))).collect();
    let expected = [("small", 8), ("large", 32), ("special", 56), ("last", 64)];
    assert_eq!(order, expected);
}

#[test]
fn chunks_are_counted_over_nodes_and_time() {
    // From 20 on two nodes take 2 each, until 30 when the third takes 4 more.
    let mut planner = nodes(&[4, 4, 8]);
    for (rset, until_s) in [("ncpus=4", 20), ("ncpus=4", 20), ("ncpus=8", 30)] {
        planner.submit(0, &ask(rset, until_s)).unwrap();
    }
    for (count, start_s) in [(1, 20), (4, 20), (5, 30), (8, 30)] {
        let mut planner = planner.clone();
        let rset = format!("{count}:ncpus=2");
        assert_eq!(submit(&mut planner, 0, &ask(&rset, 10)), start_s, "{rset}");
    }
    // Both kinds at once: the intersection.
    assert_eq!(submit(&mut planner, 0, &ask("4:ncpus=2+ncpus=8", 10)), 30);
}

#[test]
fn without_a_mapping_the_next_slot_is_tried() {
    // 8 cores are free from 0 on, and 5 on one node only from 10.
    let mut planner = nodes(&[8, 8]);
    planner.submit(0, &ask("2:ncpus=4,place=scatter", 10)).unwrap();
    assert_eq!(submit(&mut planner, 0, &ask("ncpus=5", 10)), 10);
    assert_eq!(submit(&mut planner, 0, &ask("2:ncpus=4", 10)), 0);
}

#[test]
fn the_mapping_is_chosen_again_at_allocation() {
    let mut planner = nodes(&[4, 16]);
    let short = planner.submit(0, &ask("ncpus=4", 100)).unwrap();
    planner.start(0, &mut Vec::new());
    let next = planner.submit(0, &fixed("ncpus=4", 50, 100)).unwrap();
    assert_eq!(names(&planner, next), ["n2"], "a mapping is held from the first");
    // The cheap node becomes free; a fixed start is not planned anew.
    planner.remove(20, short);
    while planner.is_backfilling() {
        planner.backfill(20, 10);
    }
    assert_eq!(names(&planner, next), ["n2"]);
    planner.start(50, &mut Vec::new());
    assert_eq!((names(&planner, next), start(&planner, next)), (vec!["n1".into()], Some(50)));
    // The large one is whole again.
    assert_eq!(submit(&mut planner, 50, &ask("ncpus=16", 10)), 50);
    // Where nothing is better it stays.
    let other = planner.submit(50, &fixed("ncpus=4", 70, 10)).unwrap();
    planner.start(70, &mut Vec::new());
    assert_eq!(names(&planner, other), ["n2"]);
}

#[test]
fn the_number_of_threads_changes_no_result() {
    let mut random = Random::new(58, pbs_gen::Stream::Scenario);
    let cores: Vec<u64> = (0..37).map(|_| 4 * (1 + random.below(4))).collect();
    let machine = nodes(&cores).machine().clone();
    let planners = [1, 2, 3, 8, 100].map(|threads| {
        let policy = Policy { threads, ..Policy::default() };
        Planner::with_policy(machine.clone().into(), Rules::default(), policy)
    });
    let mut planners = planners;
    for turn in 0..300 {
        let exclusive = if random.below(5) == 0 { ",place=free:excl" } else { "" };
        let rset = format!(
            "{}:ncpus={}+{}:ncpus={}{exclusive}",
            1 + random.below(20),
            1 + random.below(8),
            1 + random.below(9),
            1 + random.below(4)
        );
        let request = ask(&rset, 1 + random.below(500));
        let planned = planners.each_mut().map(|planner| {
            let planned = planner.submit(turn, &request);
            planned.map(|id| (planner.state(id), planner.placed(id).to_vec()))
        });
        for other in &planned[1..] {
            assert_eq!(other, &planned[0], "{rset}");
        }
    }
}

#[test]
fn the_site_chooses_the_number_of_threads() {
    let of_site = |key: &str| {
        let text = format!("{key}[[nodes]]\nname = 'n'\nhas = 'ncpus=4'\n");
        Policy::of_site(&Site::from_toml(&text).unwrap()).threads
    };
    assert_eq!((of_site(""), of_site("planning_threads = 3\n")), (1, 3));
}

#[test]
fn a_booking_is_whole_or_absent() {
    let mut planner = nodes(&[4, 4]);
    planner.submit(0, &ask("ncpus=3", 100)).unwrap();
    let before: Vec<_> = planner.free(0).collect();
    for request in
        [fixed("2:ncpus=2+2:ncpus=1", 50, 100), fixed("2:ncpus=4", 0, 10), ask("3:ncpus=4", 10)]
    {
        assert!(planner.submit(0, &request).is_err());
        assert_eq!(planner.free(0).collect::<Vec<_>>(), before);
        assert_eq!(planner.requests().count(), 1);
    }
    let id = planner.submit(0, &ask("2:ncpus=2", 10)).unwrap();
    planner.remove(0, id);
    assert_eq!(planner.free(0).collect::<Vec<_>>(), before);
}

#[test]
fn chunks_are_grouped_by_switches() {
    let nodes = [(4, "a"), (4, "b"), (4, "a"), (4, "b"), (4, "b"), (4, "")];
    let mut planner = with_policy(&nodes, by(Mapping::Switches));
    // The switch with the least that is enough.
    assert_eq!(at_once(&mut planner, "2:ncpus=3"), ["n1", "n3"]);
    assert_eq!(at_once(&mut planner, "3:ncpus=3"), ["n2", "n4", "n5"]);
    assert_eq!(at_once(&mut planner, "ncpus=4"), ["n6"]);
    // No switch is enough: the largest first.
    let mut planner = with_policy(&nodes, by(Mapping::Switches));
    let four = at_once(&mut planner, "4:ncpus=3");
    assert_eq!(four, ["n1", "n2", "n4", "n5"]);
    // Chunks of several kinds are kept together, too.
    let mut planner = with_policy(&nodes, by(Mapping::Switches));
    assert_eq!(at_once(&mut planner, "ncpus=4+ncpus=3"), ["n1", "n3"]);
    // Not at the cost of its start.
    let mut planner = with_policy(&nodes, by(Mapping::Switches));
    for _ in 0..2 {
        planner.submit(0, &ask("2:ncpus=4", 50)).unwrap();
    }
    assert_eq!(at_once(&mut planner, "2:ncpus=4"), ["n5", "n6"]);
}

#[test]
fn sleeping_nodes_are_left_asleep() {
    let nodes = [(4, ""), (8, ""), (16, "")];
    let mut planner = with_policy(&nodes, by(Mapping::Busy));
    assert_eq!(at_once(&mut planner, "ncpus=6"), ["n2"]);
    assert_eq!(at_once(&mut planner, "2:ncpus=1"), ["n2"]);
    assert_eq!(at_once(&mut planner, "ncpus=4"), ["n1"]);
    assert_eq!(at_once(&mut planner, "ncpus=1+ncpus=2"), ["n3", "n3"]);
    let mut planner = with_policy(&nodes, by(Mapping::Cheapest));
    assert_eq!(at_once(&mut planner, "ncpus=6"), ["n2"]);
    assert_eq!(at_once(&mut planner, "2:ncpus=1"), ["n1"]);
}

/// Chunks that take nothing fit any number of times, and a plan lists each chunk of several kinds.
#[test]
fn chunks_are_bounded_by_the_machine() {
    let refused = |rset: &str| {
        let host = NodeSpec { has: vec![16, 1 << 40], ..spec("n1", 16) };
        let mut planner = on(&[("mem", None)], &[host], Rules::default());
        match planner.submit(0, &ask(rset, 10)) {
            Err(Refusal::Impossible(why)) => why,
            other => panic!("{rset}: {other:?}"),
        }
    };
    let nothing = Impossible::Nothing { chunk: 2 };
    assert_eq!(refused("4000000000:ncpus=0+ncpus=1"), nothing);
    assert_eq!(refused("4000000000:ompthreads=4+ncpus=1"), nothing);
    assert_eq!(refused("ncpus=0"), Impossible::Nothing { chunk: 1 });
    let many = Impossible::TooManyChunks { wanted: 4_000_000_001, most: SMALL_CHUNKS };
    assert_eq!(refused("4000000000:mem=1+ncpus=1"), many);
    // All on one node are one chunk, and a node that is taken whole is something.
    let mut planner = nodes(&[16, 16]);
    assert_eq!(at_once(&mut planner, "2000:ncpus=0+ncpus=1,place=pack"), ["n1"]);
    let mut planner = nodes(&[16, 16]);
    assert_eq!(at_once(&mut planner, "2:ncpus=0,place=scatter:excl"), ["n1", "n2"]);
}
