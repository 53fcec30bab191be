// SPDX-License-Identifier: GPL-2.0
//! Views of a cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use pbs_cluster_api::Cause;
use pbs_cluster_planner::When;
use pbs_manager::ledger::{
    Access, ClosedRow, DefectRow, Event, NodeRow, NodeState, Phase, Row, State,
};
use pbs_manager::Usage;
use pbs_resources::{format_duration, format_size};
use pbs_site::{format_time, Whom};
use pbs_text::{grouped, shown as foreign, Format, Table};
use serde::Serialize;

use super::ask::{after, awaited, broken, places, status};
use super::ledger::{clock, duration_s, end, failure, login, start, Cluster, LedgerOptions};
use super::reach::ReachOptions;
use crate::failure::Failure;
use crate::files::{picture, write};
use crate::output::{counted, Output};

#[derive(Args, Debug)]
pub(super) struct InfoOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Show only this request, with its requirements, place and events
    #[arg(value_name = "ID")]
    id: Option<u64>,

    /// List ended requests too
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

#[derive(Args, Debug)]
pub(super) struct WhyOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Number of the request
    #[arg(value_name = "ID")]
    id: u64,
}

#[derive(Args, Debug)]
pub(super) struct NodeOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// New state of the nodes; without it, the nodes out of use are listed
    #[arg(value_enum, value_name = "STATE", requires = "names")]
    state: Option<NodeWill>,

    /// Names of the nodes
    #[arg(value_name = "NODE")]
    names: Vec<String>,

    /// All defective parts of each node, for defect: ncpus=2:mem=16g, or none once it is repaired
    #[arg(long, value_name = "PARTS")]
    parts: Option<String>,

    /// Reason, shown to others
    #[arg(long, value_name = "TEXT", default_value = "")]
    why: String,
}

/// Change that an operator makes to a node.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum NodeWill {
    /// Start nothing new there; let running requests end
    Offline,
    /// The node has failed: abort its requests or start them again elsewhere
    Down,
    /// Use the node again, except for defective parts
    Online,
    /// Use only the other parts of the node: --parts names the defective ones
    Defect,
}

#[derive(Args, Debug)]
pub(super) struct LimitsOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    /// Show the limits of this user instead of your own
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Show the limits of this group; the limits of all groups by default
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct PlanOptions {
    #[command(flatten)]
    reach: ReachOptions,

    /// Draw the plan to FILE, with a row for each node, as SVG
    #[arg(long, value_name = "FILE", value_parser = picture())]
    gantt: Option<PathBuf>,

    /// Time span to draw; the whole plan by default
    #[arg(long, value_name = "DURATION", value_parser = duration_s, requires = "gantt")]
    span: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct StatOptions {
    #[command(flatten)]
    ledger: LedgerOptions,
}

#[derive(Serialize)]
struct Shown {
    clock_s: u64,
    requests: Vec<Row>,
}

#[derive(Serialize)]
struct Details {
    request: Row,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct StartReason {
    id: u64,
    start_s: Option<u64>,
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Limits {
    limits: Vec<OneLimit>,
}

#[derive(Serialize)]
struct OneLimit {
    whom: String,
    resource: String,
    items: Option<String>,
    duration_s: Option<u64>,
    area_s: Option<u64>,
    validity: String,
    holds: bool,
}

#[derive(Serialize)]
struct Stat {
    clock_s: u64,
    states: BTreeMap<&'static str, u64>,
    outcomes: BTreeMap<String, u64>,
    decisions: u64,
    plan_steps: usize,
    vectors: Vec<VectorsOf>,
    users: Vec<Used>,
    groups: Vec<Used>,
    cores: Vec<Used>,
}

/// Memory that the plan takes.
#[derive(Serialize)]
struct VectorsOf {
    name: &'static str,
    vectors: usize,
    slots: usize,
    bytes: usize,
}

#[derive(Serialize)]
struct Used {
    name: String,
    requests: u64,
    ran: u64,
    core_s: u64,
    ran_core_s: u64,
    asked_core_s: u64,
    mean_wait_s: Option<u64>,
}

pub(super) fn info(out: Output, options: &InfoOptions) -> Result<ExitCode, Failure> {
    let mut cluster = options.reach.reach(Access::Read)?;
    if let Some(id) = options.id {
        let (request, events) = cluster.show(id)?;
        let details = Details { request, events };
        out.named("cluster-request").print(&details, || one(cluster.zone(), &details))?;
        return Ok(status(std::slice::from_ref(&details.request)));
    }
    let requests = cluster.list(options.all)?;
    let shown = Shown { clock_s: cluster.clock_s(), requests };
    out.named("cluster-requests").print(&shown, || {
        let zone = cluster.zone();
        let requests = counted(shown.requests.len() as u64, "request", "requests");
        let (clock, list) = (format_time(shown.clock_s, zone), list(zone, &shown.requests));
        let out = nodes_out(zone, &cluster.nodes_out()) + &defects(zone, &cluster.defects());
        let out = out + &closed(zone, &cluster.closed());
        format!("{clock}, {requests}\n{out}{list}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each node that is out of use.
fn nodes_out(zone: &TimeZone, out: &[NodeRow]) -> String {
    let lines = out.iter().map(|node| {
        let since = format_time(node.since_s, zone);
        let state = if node.is_late() { "late" } else { node.state.name() };
        format!("  {} {state} since {since}  {}\n", node.name, foreign(&node.why))
    });
    lines.collect()
}

/// A line for each node with defective parts.
fn defects(zone: &TimeZone, defects: &[DefectRow]) -> String {
    let lines = defects.iter().map(|defect| {
        let since = format_time(defect.since_s, zone);
        let (name, parts) = (&defect.name, &defect.parts);
        format!("  {name} defective {parts} since {since}  {}\n", foreign(&defect.why))
    });
    lines.collect()
}

/// A line for each node that is closed in some times.
fn closed(zone: &TimeZone, closed: &[ClosedRow]) -> String {
    let lines = closed.iter().filter_map(|row| {
        let &(from_s, until_s) = row.times.first()?;
        let (from, until) = (format_time(from_s, zone), format_time(until_s, zone));
        let more = match row.times.len() - 1 {
            0 => String::new(),
            more => format!(" and {}", counted(more as u64, "later time", "later times")),
        };
        Some(format!("  {} closed {from} to {until}{more}  {}\n", row.name, foreign(&row.why)))
    });
    lines.collect()
}

fn list(zone: &TimeZone, rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let titles = ["id", "user", "group", "name", "state", "nodes", "start", "end", "cores"];
    let mut table = Table::new(&titles, 8);
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| (row.start_s.unwrap_or(u64::MAX), row.id));
    for row in rows {
        let index = row.array_index.map_or(String::new(), |of| format!("[{of}]"));
        let state = row.phase.map_or(row.state.name(), Phase::name);
        let state = match &row.outcome {
            Some(outcome) if row.phase.is_none() => outcome,
            _ => state,
        };
        let kind = if row.is_reservation { " (reservation)" } else { "" };
        table.push(vec![
            row.id.to_string(),
            row.user.clone(),
            row.group.clone(),
            format!("{}{index}", row.name),
            format!("{state}{kind}"),
            places(row),
            start(row, zone),
            end(row, zone),
            row.cores.to_string(),
        ]);
    }
    table.print(Format::Text)
}

fn one(zone: &TimeZone, details: &Details) -> String {
    let row = &details.request;
    let name = foreign(&row.name);
    let mut text = format!("request {} {name}: {}", row.id, row.state.name());
    if let Some(outcome) = &row.outcome {
        text += &format!(", {}", foreign(outcome));
    }
    // Users chose much of it: each value stays on its line.
    let mut line = |name: &str, what: String| {
        text += &format!("\n  {name:<10} {}", foreign(&what));
    };
    line("user", format!("{} of {}", row.user, row.group));
    line("resources", row.rset.clone());
    line("duration", format_duration(row.duration_s));
    if let Some(expected) = expected(row) {
        line("expected", expected);
    }
    line("when", when_text(&row.when, zone));
    line("promise", row.promise.clone());
    if let Some(broken) = broken(row) {
        line("agreement", broken);
    }
    line("priority", row.priority.to_string());
    line("submitted", format_time(row.submit_s, zone));
    line("start", start(row, zone));
    line("end", end(row, zone));
    line("nodes", places(row));
    if !row.after.is_empty() {
        line("after", after(&row.after));
    }
    if let Some(within) = row.within {
        line("within", format!("reservation {within}"));
    }
    if !row.command.is_empty() {
        line("command", row.command.join(" "));
    }
    for event in &details.events {
        let at = format_time(event.time_s, zone);
        text += &format!("\n{at}  {}  {}", event.what, foreign(&event.text));
    }
    text + "\n"
}

/// Expected run time of a request in words.
fn expected(row: &Row) -> Option<String> {
    let expected = format_duration(row.expected_run_s?);
    Some(format!("{expected}, learned from the user's earlier requests"))
}

/// Desired time of a request in words.
fn when_text(when: &str, zone: &TimeZone) -> String {
    let at = |time_s| format_time(time_s, zone);
    let late = |late| if late { ", as late as possible" } else { "" };
    match when.parse() {
        Ok(When::BestEffort) => "as early as possible".into(),
        Ok(When::Fixed { start_s }) => format!("start at {}", at(start_s)),
        Ok(When::After { start_s }) => format!("start at {} or later", at(start_s)),
        Ok(When::Deadline { end_s, late: is_late }) => {
            format!("end by {}{}", at(end_s), late(is_late))
        }
        Ok(When::Between { start_s, end_s, late: is_late }) => {
            format!("from {} to {}{}", at(start_s), at(end_s), late(is_late))
        }
        Ok(When::Provisional { until_s }) => format!("provisional until {}", at(until_s)),
        Ok(When::Agreement { end_s }) => format!("end by {} if possible", at(end_s)),
        Err(_) => when.into(),
    }
}

pub(super) fn why(out: Output, options: &WhyOptions) -> Result<ExitCode, Failure> {
    let mut cluster = options.reach.reach(Access::Read)?;
    let (row, causes) = cluster.why(options.id)?;
    let why = StartReason { id: options.id, start_s: row.start_s, causes };
    out.named("cluster-why").print(&why, || {
        let zone = cluster.zone();
        let id = why.id;
        let mut text = match row.start_s {
            None => format!("request {id} waits, {}\n", awaited(&row)),
            Some(_) if row.state == State::Running => format!("request {id} runs\n"),
            Some(start_s) => format!("request {id} starts {}\n", format_time(start_s, zone)),
        };
        if let Some(broken) = broken(&row) {
            text += &format!("  {broken}\n");
        }
        if let Some(expected) = expected(&row) {
            text += &format!("  expected run time: {expected}\n");
        }
        for cause in &why.causes {
            let until = match cause.until_s {
                Some(until_s) => format!("until {}", format_time(until_s, zone)),
                None => "at all times".into(),
            };
            text += &format!("  {}: {until}\n", cause.what);
        }
        if why.causes.is_empty() && row.state != State::Running {
            text += "  no cause keeps it from an earlier start\n";
        }
        text
    })?;
    Ok(status(&[row]))
}

pub(super) fn node(out: Output, options: &NodeOptions) -> Result<(), Failure> {
    let access = match options.state {
        Some(_) => Access::Write,
        None => Access::Read,
    };
    let mut cluster = options.reach.reach(access)?;
    let (names, why) = (&options.names, &options.why);
    let nodes = match (options.state, &options.parts) {
        (None, None) => cluster.nodes(),
        (Some(NodeWill::Offline), None) => {
            cluster.set_nodes(names, Some(NodeState::Offline), why)?
        }
        (Some(NodeWill::Down), None) => cluster.set_nodes(names, Some(NodeState::Down), why)?,
        (Some(NodeWill::Online), None) => cluster.set_nodes(names, None, why)?,
        (Some(NodeWill::Defect), Some(parts)) => cluster.set_defect(names, parts, why)?,
        (Some(NodeWill::Defect), None) | (_, Some(_)) => {
            let what = "defect and --parts go together; write node defect n03 --parts \
                        ncpus=2:mem=16g, or --parts none for a repaired node";
            return Err(Failure::Usage(what.into()));
        }
    };
    let printed = out.named("cluster-nodes").print(&nodes, || {
        let all = counted(nodes.total as u64, "node", "nodes");
        let mut text = format!("{all}, {} out of use\n", nodes.out.len());
        text += &nodes_out(cluster.zone(), &nodes.out);
        text += &defects(cluster.zone(), &nodes.defects);
        text += &closed(cluster.zone(), &nodes.closed);
        for (ids, what) in [
            (&nodes.aborted, "aborted"),
            (&nodes.moved, "moved"),
            (&nodes.waiting, "waiting for a node"),
        ] {
            const SHOWN: usize = 12;
            if ids.is_empty() {
                continue;
            }
            let some: Vec<_> = ids.iter().take(SHOWN).map(u64::to_string).collect();
            let more = if ids.len() > SHOWN {
                format!(" and {} more", ids.len() - SHOWN)
            } else {
                String::new()
            };
            text += &format!("{what}: {}{more}\n", some.join(", "));
        }
        text
    });
    if access == Access::Write {
        // Others move up, whether somebody reads the answer or not.
        cluster.settle()?;
    }
    printed
}

pub(super) fn limits(out: Output, options: &LimitsOptions) -> Result<(), Failure> {
    let cluster = options.ledger.open(Access::Read)?;
    let user = options.user.clone().unwrap_or_else(login);
    let site = cluster.site();
    let of = |whom: &Whom| match whom {
        Whom::Everyone => true,
        Whom::User(name) => *name == user,
        Whom::Group(name) => options.group.as_ref().is_none_or(|group| group == name),
    };
    let limits = site.limits.iter().filter(|limit| of(&limit.whom)).map(|limit| OneLimit {
        whom: limit.whom.to_string(),
        resource: limit.resource.clone(),
        items: limit.items.map(|items| items.to_string()),
        duration_s: limit.duration_s,
        area_s: limit.area_s,
        validity: limit.validity.to_text(&site.time_zone),
        holds: limit.validity.holds_at(cluster.clock_s()),
    });
    let limits = Limits { limits: limits.collect() };
    out.named("cluster-limits").print(&limits, || {
        if limits.limits.is_empty() {
            return format!("{user} has no limits\n");
        }
        let titles = ["whom", "resource", "items", "duration", "area", "validity", "now"];
        let mut table = Table::new(&titles, titles.len());
        let time = |time_s: Option<u64>| time_s.map_or("-".into(), format_duration);
        for limit in &limits.limits {
            table.push(vec![
                limit.whom.clone(),
                limit.resource.clone(),
                limit.items.clone().unwrap_or_else(|| "-".into()),
                time(limit.duration_s),
                time(limit.area_s),
                limit.validity.clone(),
                if limit.holds { "holds" } else { "does not hold" }.into(),
            ]);
        }
        table.print(Format::Text)
    })
}

pub(super) fn plan(out: Output, options: &PlanOptions) -> Result<(), Failure> {
    let mut cluster = options.reach.reach(Access::Read)?;
    if let Some(file) = &options.gantt {
        write(file, &cluster.in_file("with a picture")?.gantt(options.span))?;
    }
    let shown = Shown { clock_s: cluster.clock_s(), requests: cluster.list(false)? };
    out.named("cluster-requests").print(&shown, || match &options.gantt {
        Some(file) => {
            let clock = format_time(shown.clock_s, cluster.zone());
            format!("{} shows the plan from {clock} on\n", file.display())
        }
        None => list(cluster.zone(), &shown.requests),
    })
}

fn vectors(cluster: &Cluster) -> Vec<VectorsOf> {
    let memory = cluster.planner().memory();
    let all =
        [("cluster", memory.system), ("nodes", memory.nodes), ("consumers", memory.consumers)];
    let of = all.map(|(name, of)| VectorsOf {
        name,
        vectors: of.vectors,
        slots: of.slots,
        bytes: of.bytes,
    });
    of.into()
}

pub(super) fn stat(out: Output, options: &StatOptions) -> Result<(), Failure> {
    let cluster = options.ledger.open(Access::Read)?;
    let usages = cluster.usage().map_err(failure)?;
    let mut states = BTreeMap::new();
    for row in cluster.open_rows() {
        *states.entry(row.state.name()).or_default() += 1;
    }
    let used = |name: String, of: &Usage| Used {
        name,
        requests: of.requests,
        ran: of.ran,
        core_s: of.core_s,
        ran_core_s: of.ran_core_s,
        asked_core_s: of.asked_core_s,
        mean_wait_s: of.wait_s.checked_div(of.started),
    };
    let named = |of: &BTreeMap<String, Usage>| {
        of.iter().map(|(name, of)| used(name.clone(), of)).collect::<Vec<_>>()
    };
    let stat = Stat {
        clock_s: cluster.clock_s(),
        states,
        outcomes: usages.outcomes.clone(),
        decisions: cluster.planner().decisions(),
        plan_steps: cluster.planner().steps(),
        vectors: vectors(&cluster),
        users: named(&usages.users),
        groups: named(&usages.groups),
        cores: usages.cores.iter().map(|(cores, of)| used(format_size(*cores), of)).collect(),
    };
    out.named("cluster-stat").print(&stat, || {
        let mut text = format!("{}, {}\n", cluster.site().name, clock(&cluster));
        let counts = stat.states.iter().map(|(name, count)| (name.to_string(), *count));
        let outcomes = stat.outcomes.iter().map(|(name, count)| (name.clone(), *count));
        for (name, count) in counts.chain(outcomes) {
            text += &format!("  {:>8} {}\n", grouped(count), foreign(&name));
        }
        for (title, rows) in
            [("user", &stat.users), ("group", &stat.groups), ("cores", &stat.cores)]
        {
            let titles = [title, "requests", "ran", "core hours", "of asked", "mean wait"];
            let mut table = Table::new(&titles, 1);
            for row in rows {
                let hours = row.core_s as f64 / 3600.0;
                let share = match row.asked_core_s {
                    0 => "-".into(),
                    asked => format!("{:.1} %", 100.0 * row.ran_core_s as f64 / asked as f64),
                };
                table.push(vec![
                    row.name.clone(),
                    grouped(row.requests),
                    grouped(row.ran),
                    format!("{hours:.2}"),
                    share,
                    row.mean_wait_s.map_or("-".into(), format_duration),
                ]);
            }
            if !rows.is_empty() {
                text += &format!("\n{}", table.print(Format::Text));
            }
        }
        let mut table = Table::new(&["vectors of", "vectors", "slots", "KiB"], 1);
        for of in &stat.vectors {
            let counts = [of.vectors as u64, of.slots as u64, of.bytes as u64 / 1024];
            let mut row = vec![of.name.to_string()];
            row.extend(counts.map(grouped));
            table.push(row);
        }
        text + &format!("\n{}", table.print(Format::Text))
    })
}
