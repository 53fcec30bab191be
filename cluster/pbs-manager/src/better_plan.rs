// SPDX-License-Identifier: GPL-2.0
//! Search for a better plan between the calls of a service, and what it has reached.

use pbs_cluster_planner::optimise::{Cost, Improvement, Improving, EARLIER_ORDERS};
use pbs_cluster_planner::RequestId;

use crate::engine::Engine;
use crate::manager::Manager;

/// Search for a better plan.
#[derive(Debug, Default)]
pub(crate) struct BetterPlan {
    search: Option<Improvement>,
    /// Best order of a search that a change of the plan has interrupted; none: there was no such
    /// search, or its order was tried again.
    earlier: Vec<RequestId>,
    /// Version of the plan whose search has ended.
    sought_version: u64,
    report: SearchReport,
}

/// Work and results of the search for better plans, since the service started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchReport {
    /// Number of searches that have ended. After an interruption, a search of two orders tries the
    /// best order up to then again; it counts as well.
    pub searches: u64,
    /// Number of searches that a change of the plan, or of what run times are expected, has
    /// interrupted.
    pub interrupted: u64,
    /// Number of orders that were scored.
    pub orders: u64,
    /// Number of requests that were placed, over all orders.
    pub placements: u64,
    /// Number of better plans that were taken.
    pub plans: u64,
    /// Number of requests that moved to another place by these plans.
    pub moved: u64,
    /// Last search that has ended; `None`: none has.
    pub last: Option<LastSearch>,
}

/// A search that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastSearch {
    /// Time of its end.
    pub clock_s: u64,
    /// Number of requests that it could move.
    pub requests: usize,
    /// Number of orders that were scored.
    pub orders: u64,
    /// Number of requests that moved; 0: no better plan was found.
    pub moved: usize,
    /// Cost of the plan before.
    pub before: Cost,
    /// Cost of the plan afterwards.
    pub after: Cost,
}

impl BetterPlan {
    /// Whether the search in this version of the plan has ended.
    pub(crate) fn is_sought(&self, version: u64) -> bool {
        self.sought_version == version
    }

    /// Makes another search begin in the same plan: costs have changed.
    pub(crate) fn seek_again(&mut self) {
        if let Some(search) = self.search.take() {
            self.interrupt(&search);
        }
        self.sought_version = 0;
    }

    /// Counts a search that does not go on, and keeps its best order.
    fn interrupt(&mut self, search: &Improvement) {
        self.add_work(search);
        self.report.interrupted += 1;
        self.earlier = search.best_order();
    }

    /// Adds the work of a search.
    fn add_work(&mut self, search: &Improvement) {
        self.report.orders += search.orders();
        self.report.placements += search.placements();
    }

    /// Returns the search in this version of the plan, if one has begun. A search in another version
    /// has ended, and its best order is kept.
    fn begun(&mut self, version: u64) -> Option<Improvement> {
        let search = self.search.take()?;
        if search.is_of(version) {
            return Some(search);
        }
        self.interrupt(&search);
        None
    }
}

impl<E: Engine> Manager<E> {
    /// Returns the work and the results of the search for better plans; `None`: the site does not
    /// want it.
    pub fn search_report(&self) -> Option<&SearchReport> {
        self.site.optimise.as_ref().map(|_| &self.better_plan.report)
    }

    /// Places so many requests in the search for a better plan, and takes the plan at its end. A
    /// plan that has changed meanwhile has a new search.
    pub(crate) fn improve_some(&mut self, most: usize) {
        let (clock_s, version) = (self.clock_s, self.planner.version());
        if self.better_plan.is_sought(version) {
            return;
        }
        let begun = self.better_plan.begun(version);
        let Some(mut search) = begun.or_else(|| self.search_again(version)) else {
            self.better_plan.sought_version = version;
            return;
        };
        if search.run(most as u64) {
            self.better_plan.search = Some(search);
            return;
        }
        let (requests, orders) = (search.requests(), search.orders());
        let before = search.standing_cost();
        self.better_plan.add_work(&search);
        let (moved, after) = self.planner.take_improvement(clock_s, search);
        let report = &mut self.better_plan.report;
        report.searches += 1;
        report.plans += u64::from(moved > 0);
        report.moved += moved as u64;
        report.last = Some(LastSearch { clock_s, requests, orders, moved, before, after });
        if self.better_plan.earlier.is_empty() {
            self.better_plan.sought_version = self.planner.version();
        }
        self.better_plan.earlier.clear();
    }

    /// Begins a search for a better plan. After a search that a change of the plan has interrupted,
    /// a short one scores its best order: this way plans also improve where changes leave no time
    /// for a whole search, which follows.
    fn search_again(&mut self, version: u64) -> Option<Improvement> {
        let earlier = &self.better_plan.earlier;
        let mut improving = Improving::of_site(&self.site, version)?;
        if !earlier.is_empty() {
            improving.budget.orders = improving.budget.orders.min(EARLIER_ORDERS);
        }
        let mut search =
            self.planner.improvement(self.clock_s, &improving, &|id| self.weighed_run_s(id))?;
        if !earlier.is_empty() {
            search.try_order(earlier);
        }
        Some(search)
    }
}
