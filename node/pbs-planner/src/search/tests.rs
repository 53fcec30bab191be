// SPDX-License-Identifier: GPL-2.0
//! Tests: a plan that the search finds in its model is a plan in the store.

use pbs_gen::nets::{machine, random_job, Random as Cases};

use super::*;
use crate::reserve;
use crate::store::{Balancing, Booking, RunId};
use crate::{Options, Strategy};

const S: u64 = 1_000_000_000;

/// Plans that rules lead to, each by itself.
fn runs(booking: &mut Booking<'_>, request: &Request<'_>) -> Vec<Run> {
    let rules = Strategy::ALL.into_iter();
    let rules = rules.filter(|rule| *rule != Strategy::LocalSearch);
    let found = rules.filter_map(|rule| {
        let mark = booking.mark();
        let options = Options { strategies: vec![rule], ..Options::default() };
        crate::reserve_in(booking, request, &options).ok()?;
        let run = booking.store().run(request.run).cloned();
        booking.rollback(mark);
        run
    });
    found.collect()
}

/// On machines of two nodes, memory from plenty to scarce, beside other jobs: what the
/// search finds to be better than all rules is that in the store as well, with few
/// exceptions.
#[test]
fn the_store_agrees_with_the_model() {
    let (mut found, mut better) = (0, 0);
    for seed in 0..120 {
        let cases = &mut Cases::new(seed);
        let bytes = cases.of(&[300, 600, 2000]);
        let rates: &[u64] = cases.of(&[&[1, 1], &[1, 2, 3]]);
        let machine = machine(S, &[(bytes, rates), (300, &[2])]);
        let balancing = cases.of(&[Balancing::Static, Balancing::Dynamic]);
        let mut store = Store::new(machine, balancing);
        for number in 1..=cases.below(4) {
            let other = random_job(cases, 3, 4, 200);
            let request = Request::new(RunId(number), &other).not_before(cases.below(60) * S);
            _ = crate::reserve(&mut store, &request, &Options::default());
        }
        let job = random_job(cases, 8, 4, 200);
        let mut booking = store.book();
        let request = Request::new(RunId(0), &job);
        let runs = runs(&mut booking, &request);
        let net = Net::new(&request, booking.store());
        let known: Vec<&Run> = runs.iter().collect();
        let work = Budget::unbounded();
        let Some(way) = search(&request, &net, booking.store(), &known, 0, (3000, seed), &work)
        else {
            continue;
        };
        found += 1;
        let rules_ns = runs.iter().map(Run::end_ns).min().unwrap_or(u64::MAX);
        let run = reserve::reserve(&mut booking, &request, &net, &way, &work);
        let is_better = run.is_ok_and(|run| run.end_ns() < rules_ns);
        better += u64::from(is_better);
    }
    println!("{better} of {found} plans are better in the store, too");
    assert!(found >= 40, "{found}");
    assert!(better * 20 >= found * 19, "{better} of {found}");
}
