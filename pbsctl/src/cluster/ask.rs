// SPDX-License-Identifier: GPL-2.0
//! Requests for nodes, and operations on them.

use std::process::ExitCode;

use clap::Args;
use pbs_manager::ledger::{Access, After, Outcome, Phase, Row};
use pbs_manager::Change;
use pbs_resources::{format_duration, Rset};
use serde::Serialize;

use super::ledger::{end, run_time_s, start};
use super::reach::{ReachOptions, Reached};
use super::requirements::{rset, Requirements, WhenOptions};
use super::script_options::{of_script, refuse_misplaced};
use crate::failure::{Failure, DEADLINE_MISSED};
use crate::output::Output;

#[derive(Args, Debug)]
pub(super) struct AllocOptions {
    #[command(flatten)]
    reach: ReachOptions,

    #[command(flatten)]
    asked: Requirements,

    /// Words before --, as of sbatch: they are refused with a hint
    #[arg(value_name = "SCRIPT", hide = true)]
    misplaced: Vec<String>,

    /// Command to start, with its arguments; #CCS lines of a script are options
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct ReserveOptions {
    #[command(flatten)]
    reach: ReachOptions,

    #[command(flatten)]
    asked: Requirements,
}

#[derive(Args, Debug)]
pub(super) struct AlterOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Number of the request
    #[arg(value_name = "ID")]
    id: u64,

    /// New resources and placement
    #[arg(long, value_name = "RSET", value_parser = rset)]
    res: Option<Rset>,

    /// New longest run time
    #[arg(short = 't', long = "time", value_name = "DURATION", value_parser = run_time_s)]
    duration_s: Option<u64>,

    #[command(flatten)]
    when: WhenOptions,
}

#[derive(Args, Debug)]
pub(super) struct ResizeOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Number of the request
    #[arg(value_name = "ID")]
    id: u64,

    /// The chunks of the request, with new counts
    #[arg(long, value_name = "RSET", value_parser = rset)]
    res: Rset,
}

#[derive(Args, Debug)]
pub(super) struct ExtendOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Number of the request
    #[arg(value_name = "ID")]
    id: u64,

    /// Additional time
    #[arg(value_name = "DURATION", value_parser = run_time_s)]
    by_s: u64,
}

#[derive(Args, Debug)]
pub(super) struct IdsOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Numbers of the requests
    #[arg(value_name = "ID", required = true)]
    ids: Vec<u64>,
}

/// Requests that were planned or changed.
#[derive(Serialize)]
struct Requests {
    requests: Vec<Row>,
}

pub(super) fn alloc(out: Output, options: &AllocOptions) -> Result<ExitCode, Failure> {
    refuse_misplaced(&options.misplaced)?;
    let script = of_script(&options.command, !options.asked.has_resources())?;
    let asked = options.asked.completed(&script);
    let mut cluster = options.reach.reach(Access::Write)?;
    let wish = asked.wish(&cluster, &options.command)?;
    let requests = cluster.submit(&wish)?;
    print(out, &cluster, requests)
}

pub(super) fn reserve(out: Output, options: &ReserveOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Write)?;
    let wish = options.asked.wish(&cluster, &[])?;
    let requests = cluster.reserve(&wish)?;
    print(out, &cluster, requests).map(drop)
}

pub(super) fn alter(out: Output, options: &AlterOptions) -> Result<ExitCode, Failure> {
    let mut cluster = options.reach.reach(Access::Write)?;
    let change = Change {
        rset: options.res.clone(),
        duration_s: options.duration_s,
        when: options.when.when(&cluster)?,
        ..Change::default()
    };
    if change == Change::default() {
        let what = "nothing to change is given; add --res, -t, --deadline or another option";
        return Err(Failure::Usage(what.into()));
    }
    if let Some(rset) = &change.rset {
        cluster.note_doubtful(rset);
    }
    let requests = cluster.alter(options.id, &change)?;
    answer(out, cluster, requests)
}

pub(super) fn resize(out: Output, options: &ResizeOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Write)?;
    cluster.note_doubtful(&options.res);
    let requests = cluster.resize(options.id, &options.res)?;
    answer(out, cluster, requests).map(drop)
}

pub(super) fn extend(out: Output, options: &ExtendOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Write)?;
    let requests = cluster.extend(options.id, options.by_s)?;
    answer(out, cluster, requests).map(drop)
}

pub(super) fn confirm(out: Output, options: &IdsOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Write)?;
    let requests = cluster.confirm(&options.ids)?;
    answer(out, cluster, requests).map(drop)
}

pub(super) fn kill(out: Output, options: &IdsOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Write)?;
    let requests = cluster.kill(&options.ids)?;
    answer(out, cluster, requests).map(drop)
}

/// Prints requests that were changed, before others move up.
fn answer(out: Output, cluster: Reached<'_>, requests: Vec<Row>) -> Result<ExitCode, Failure> {
    let printed = print(out, &cluster, requests);
    // Others move up, whether somebody reads the answer or not.
    cluster.settle()?;
    printed
}

/// Prints requests as they stand. The exit status is 7 if one of them breaks its agreement.
fn print(out: Output, cluster: &Reached<'_>, requests: Vec<Row>) -> Result<ExitCode, Failure> {
    let answer = Requests { requests };
    out.named("cluster-requests").print(&answer, || {
        const SHOWN: usize = 12;
        let zone = cluster.zone();
        let mut text = String::new();
        for row in answer.requests.iter().take(SHOWN) {
            let (id, state) = (row.id, row.phase.map_or(row.state.name(), Phase::name));
            text += &match (&row.outcome, row.start_s) {
                (Some(outcome), _) => format!("request {id}: {outcome}\n"),
                (None, None) => format!("request {id}: {state}, {}\n", awaited(row)),
                (None, Some(_)) => {
                    let (start, end) = (start(row, zone), end(row, zone));
                    let broken = broken(row).map_or(String::new(), |text| format!("; {text}"));
                    format!("request {id}: {state}, {start} to {end}, {}{broken}\n", places(row))
                }
            };
        }
        if answer.requests.len() > SHOWN {
            text += &format!("and {} more\n", answer.requests.len() - SHOWN);
        }
        text
    })?;
    Ok(status(&answer.requests))
}

/// Exit status of a command that shows requests: whether an agreement is broken.
pub(super) fn status(requests: &[Row]) -> ExitCode {
    if requests.iter().any(|row| broken(row).is_some()) {
        ExitCode::from(DEADLINE_MISSED)
    } else {
        ExitCode::SUCCESS
    }
}

/// Condition that a request without a place waits for.
pub(super) fn awaited(row: &Row) -> String {
    if row.after.is_empty() {
        "for a node or a part of one that is out of use, or until its time is within the planning \
         horizon"
            .into()
    } else {
        after(&row.after)
    }
}

/// Describes the breach of an agreement that is broken, or will be by the plan; `None`: it is kept.
pub(super) fn broken(row: &Row) -> Option<String> {
    let late_s = row.end_s.and_then(|end_s| row.broken_by_s(end_s))?;
    let end = if row.outcome.is_some() { "ended" } else { "ends" };
    Some(format!("it {end} {} later than agreed", format_duration(late_s)))
}

/// Dependencies of a request, in words.
pub(super) fn after(after: &[After]) -> String {
    let words = after.iter().map(|after| {
        let how = match after.outcome {
            Outcome::Ok => "afterok",
            Outcome::NotOk => "afternotok",
            Outcome::Any => "afterany",
        };
        format!("{how}:{}", after.request)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The nodes that a request has.
pub(super) fn places(row: &Row) -> String {
    const SHOWN: usize = 4;
    let mut nodes: Vec<&str> = row.nodes.iter().map(|part| part.node.as_str()).collect();
    nodes.dedup();
    match nodes.len() {
        0 => "-".into(),
        len if len <= SHOWN => nodes.join(" "),
        len => format!("{} and {} more", nodes[..SHOWN - 1].join(" "), len + 1 - SHOWN),
    }
}
