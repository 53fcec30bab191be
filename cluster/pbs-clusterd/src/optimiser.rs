// SPDX-License-Identifier: GPL-2.0
//! Report of the search for better plans, and of the errors of expected run times.

use pbs_cluster_api::{Optimiser, PlanCost, PlanSearch, RunTimeErrors};
use pbs_manager::{Caller, Cost, Engine, LastSearch, Manager, UserErrors};
use pbs_site::User;

/// Number of users whose errors are reported.
const MOST_USERS: usize = 20;

/// Returns the report for a caller: who is no operator sees no errors of other users.
pub(crate) fn optimiser<E: Engine>(cluster: &Manager<E>, caller: &Caller) -> Optimiser {
    let report = cluster.search_report();
    let work = report.cloned().unwrap_or_default();
    let rule = cluster.site().optimise.as_ref().and_then(|of| of.run_times);
    Optimiser {
        clock_s: cluster.clock_s(),
        is_on: report.is_some(),
        is_searching: cluster.is_seeking(),
        searches: work.searches,
        interrupted: work.interrupted,
        orders: work.orders,
        placements: work.placements,
        plans: work.plans,
        moved: work.moved,
        last: work.last.map(search),
        run_times: rule.map(|rule| rule.name().into()),
        errors: shown_errors(cluster, caller),
    }
}

fn search(of: LastSearch) -> PlanSearch {
    PlanSearch {
        clock_s: of.clock_s,
        requests: of.requests as u64,
        orders: of.orders,
        moved: of.moved as u64,
        before: cost(&of.before),
        after: cost(&of.after),
    }
}

fn cost(of: &Cost) -> PlanCost {
    PlanCost {
        total: of.total(),
        wait: of.wait,
        slowdown: of.slowdown,
        fairness: of.fairness,
        missed_deadlines: of.missed_deadlines,
        length: of.length,
    }
}

/// Returns the errors of all users together, and those of users that the caller may see.
fn shown_errors<E: Engine>(cluster: &Manager<E>, caller: &Caller) -> Vec<RunTimeErrors> {
    let Some(all) = cluster.run_time_errors() else {
        return Vec::new();
    };
    let of_users = if caller.is_operator {
        cluster.run_time_errors_by_user(MOST_USERS)
    } else {
        cluster.run_time_errors_of(&caller.user).into_iter().collect()
    };
    let of_users = of_users.into_iter().map(|(user, of)| of_user(Some(user), of));
    std::iter::once(of_user(None, all)).chain(of_users).collect()
}

fn of_user(user: Option<&User>, of: &UserErrors) -> RunTimeErrors {
    let learned = &of.learned;
    RunTimeErrors {
        user: user.map(|user| user.name.clone()),
        requests: learned.jobs(),
        limit_accuracy: of.limit.accuracy(),
        accuracy: learned.accuracy(),
        error_s: learned.mean_error_s(),
        too_short: learned.too_short(),
    }
}
