// SPDX-License-Identifier: GPL-2.0
//! Report of the search for better plans of a service.

use clap::Args;
use pbs_cluster_api::{Optimiser, PlanCost, PlanSearch, RunTimeErrors};
use pbs_manager::ledger::Access;
use pbs_site::format_time;
use pbs_text::{grouped, shown, Format, Table};

use super::reach::ReachOptions;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Args, Debug)]
pub(super) struct OptimiserOptions {
    #[command(flatten)]
    reach: ReachOptions,
}

pub(super) fn optimiser(out: Output, options: &OptimiserOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Read)?;
    let optimiser = cluster.optimiser()?;
    let time = |clock_s| format_time(clock_s, cluster.zone());
    out.named("cluster-optimiser").print(&optimiser, || text(&optimiser, time))
}

fn text(of: &Optimiser, time: impl Fn(u64) -> String) -> String {
    if !of.is_on {
        return "The plan is not improved: the site file has no table [optimise].\n".into();
    }
    let mut text = format!(
        "Searches since the service started: {} ended, {} interrupted by a change of the plan{}\n\
         Orders tried: {}, requests placed in them: {}\n\
         Better plans: {}, in which {} requests moved\n",
        grouped(of.searches),
        grouped(of.interrupted),
        if of.is_searching { ", one goes on" } else { "" },
        grouped(of.orders),
        grouped(of.placements),
        grouped(of.plans),
        grouped(of.moved),
    );
    match &of.last {
        None => text += "No search has ended yet.\n",
        Some(last) => text += &last_search(last, &time(last.clock_s)),
    }
    match &of.run_times {
        None => text += "\nRun times are not learned: the limits are expected.\n",
        Some(rule) => text += &run_times(rule, &of.errors),
    }
    text
}

/// Returns the parts of a cost with their names, and the sum.
fn parts(of: &PlanCost) -> [(&'static str, f64); 6] {
    [
        ("wait", of.wait),
        ("slowdown", of.slowdown),
        ("fairness", of.fairness),
        ("missed deadlines", of.missed_deadlines),
        ("length", of.length),
        ("all", of.total),
    ]
}

fn last_search(last: &PlanSearch, time: &str) -> String {
    let PlanSearch { requests, orders, moved, before, after, .. } = last;
    let mut table = Table::new(&["cost of the plan", "before", "after"], 1);
    for ((name, before), (_, after)) in parts(before).into_iter().zip(parts(after)) {
        table.push(vec![name.into(), format!("{before:.0}"), format!("{after:.0}")]);
    }
    format!(
        "\nThe last search ended at {time}. It tried {} orders of {} requests; {} moved.\n\n{}",
        grouped(*orders),
        grouped(*requests),
        grouped(*moved),
        table.print(Format::Text)
    )
}

fn run_times(rule: &str, errors: &[RunTimeErrors]) -> String {
    let titles =
        ["user", "requests", "accuracy of limits", "of learned run times", "error", "too short"];
    let mut table = Table::new(&titles, 1);
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    for of in errors {
        table.push(vec![
            of.user.as_deref().map_or_else(|| "all".into(), |user| shown(user).to_string()),
            grouped(of.requests),
            percent(of.limit_accuracy),
            percent(of.accuracy),
            format!("{:.0} s", of.error_s),
            percent(of.too_short),
        ]);
    }
    format!("\nRun times are learned by the rule {rule}:\n\n{}", table.print(Format::Text))
}
