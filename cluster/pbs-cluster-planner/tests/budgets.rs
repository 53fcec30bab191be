// SPDX-License-Identifier: GPL-2.0
//! Budgets of searches: a call does no more work than its budget has, whatever the plan is like.

mod common;

use common::{ask, nodes, start, HOUR};
use pbs_cluster_planner::{Cause, Planner, Refusal, Request, RequestId, SearchBudget, When};

const NODES: usize = 12;
/// Time from which on half of the nodes are free.
const HALF_S: u64 = 10 * HOUR;
/// End of the plan.
const END_S: u64 = 20 * HOUR;
/// Chunks of two kinds, of which each kind has room on all nodes beside the others, and both
/// together have not.
const HARD: &str = "7:ncpus=5+7:ncpus=4";

/// A plan with a change in each minute, in which [`HARD`] has no place before [`HALF_S`].
fn busy() -> Planner {
    let mut planner = nodes(&[16; NODES]);
    for node in 0..NODES {
        let duration_s = if node % 2 == 0 { HALF_S } else { END_S };
        planner.submit(0, &ask("ncpus=10", duration_s)).unwrap();
    }
    let mut last = None;
    for at in 0..HALF_S / 60 {
        let rset = if at % 2 == 0 { "ncpus=1" } else { "ncpus=2" };
        let step = Request { after: last.into_iter().collect(), ..ask(rset, 60) };
        last = Some(planner.submit(0, &step).unwrap());
    }
    planner
}

/// Looks that are far fewer than a search for [`HARD`] needs.
const FEW: u64 = 20_000;

fn move_up(planner: &mut Planner) {
    while planner.is_backfilling() {
        planner.backfill(0, 8);
    }
}

/// A search whose budget is spent finds a place at the end of the plan, from where the request
/// moves up later.
#[test]
fn a_search_ends_at_the_end_of_the_plan() {
    let mut planner = busy();
    let ample = SearchBudget::default();
    let id = planner.submit_within(0, &ask(HARD, HOUR), &ample).unwrap();
    assert_eq!((start(&planner, id), ample.is_cut()), (Some(HALF_S), false));
    assert!(ample.used() > 10 * FEW, "{}", ample.used());
    planner.remove(0, id);
    move_up(&mut planner);

    let budget = SearchBudget::of_looks(FEW);
    let id = planner.submit_within(0, &ask(HARD, HOUR), &budget).unwrap();
    assert_eq!((start(&planner, id), budget.is_cut()), (Some(END_S), true));
    assert!(planner.is_backfilling());
    move_up(&mut planner);
    assert_eq!(start(&planner, id), Some(HALF_S));
}

/// The requests of a call share its budget: all of them have places, and together they take no more
/// looks than one.
#[test]
fn all_requests_of_a_call_share_a_budget() {
    let mut planner = busy();
    let budget = SearchBudget::of_looks(FEW);
    let ids: Vec<RequestId> =
        (0..20).map(|_| planner.submit_within(0, &ask(HARD, HOUR), &budget).unwrap()).collect();
    assert!(budget.is_empty() && budget.used() == FEW);
    let starts: Vec<_> = ids.iter().filter_map(|&id| start(&planner, id)).collect();
    let expected: Vec<_> = (0..20).map(|at| END_S + at * HOUR).collect();
    assert_eq!(starts, expected);
}

/// A request that may be nowhere else than in its time is refused without a claim about that time.
#[test]
fn a_search_that_ends_early_says_so() {
    let mut planner = busy();
    let until = |end_s, late| Request { when: When::Deadline { end_s, late }, ..ask(HARD, HOUR) };
    // A late place is sought from the end, where the first look finds it.
    for (request, looks) in [(until(END_S, false), FEW), (until(END_S, true), 100)] {
        let budget = SearchBudget::of_looks(looks);
        let refused = planner.submit_within(0, &request, &budget);
        assert_eq!(refused, Err(Refusal::GaveUp));
        assert!(Refusal::GaveUp.to_string().contains("fewer"));
        let id = planner.submit(0, &request).unwrap();
        planner.remove(0, id);
    }
}

/// The causes name the time up to which was looked, and never say that there is none.
#[test]
fn causes_are_sought_within_a_budget() {
    let mut planner = busy();
    let id = planner.submit(0, &ask(HARD, HOUR)).unwrap();
    assert_eq!(planner.why(0, id), [(Cause::Nodes, Some(HALF_S))]);
    let causes = planner.why_within(0, id, &SearchBudget::of_looks(FEW));
    let [(Cause::Nodes, Some(until_s)), (Cause::Unsought, Some(same_s))] = causes[..] else {
        panic!("{causes:?}");
    };
    assert!(until_s == same_s && until_s > 0 && until_s < HALF_S, "{until_s}");
    assert_eq!(start(&planner, id), Some(HALF_S));
}

/// A request whose alteration can't be sought to its end keeps its place, and is not moved to the
/// end of the plan.
#[test]
fn an_alteration_that_ends_early_leaves_the_place() {
    let mut planner = busy();
    let id = planner.submit(0, &ask(HARD, HOUR)).unwrap();
    let shorter = ask(HARD, HOUR / 2);
    let refused = planner.alter_within(0, id, &shorter, &SearchBudget::of_looks(FEW));
    assert_eq!((refused, start(&planner, id)), (Err(Refusal::GaveUp), Some(HALF_S)));
    move_up(&mut planner);
    planner.alter(0, id, &shorter).unwrap();
    assert_eq!(start(&planner, id), Some(HALF_S));
}
