// SPDX-License-Identifier: GPL-2.0
//! Requests for nodes, and operations on them.

use clap::Args;
use pbs_cluster_planner::When;
use pbs_manager::ledger::{Access, After, Outcome, Phase, Row};
use pbs_manager::{Change, Wish};
use pbs_resources::{format_duration, Rset};
use pbs_site::Site;
use serde::Serialize;

use super::ledger::{
    declined, duration_s, end, failure, login, run_time_s, start, time_s, Cluster, LedgerOptions,
};
use super::numbers::{array, depend, Array, Dependencies};
use super::script_options::of_script;
use crate::failure::Failure;
use crate::output::Output;

/// Requirements of a request, from the command line or a script.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Requirements {
    /// Resources and placement, such as rset=5:ncpus=16:mem=12g+ncpus=1,sw=g03,place=scatter:excl
    #[arg(long, value_name = "RSET", value_parser = rset)]
    res: Option<Rset>,

    /// Longest run time: 4h, 1h30m, 7d, 00:10:00
    #[arg(short = 't', long = "time", value_name = "DURATION", value_parser = run_time_s)]
    duration_s: Option<u64>,

    /// Group that the request is charged to
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,

    /// Name of the request
    #[arg(short = 'N', long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    when: WhenOptions,

    /// Submit one request for each number: 0-99, 1-10:2 or 1,3,5
    #[arg(short = 'J', long, value_name = "NUMBERS", value_parser = array)]
    array: Option<Array>,

    /// Run inside this reservation
    #[arg(long, value_name = "ID")]
    within: Option<u64>,

    /// Run after other requests: afterok:7 (if 7 completed), afternotok:7, afterany:7; several as
    /// afterok:7:8, an array as afterok:7-16
    #[arg(long, value_name = "HOW:ID,...", value_delimiter = ',', value_parser = depend)]
    depend: Vec<Dependencies>,

    /// Real run time, for the simulation
    #[arg(long, value_name = "DURATION", value_parser = duration_s)]
    run: Option<u64>,

    /// Notify the user this long before the end
    #[arg(long, value_name = "DURATION", value_parser = duration_s)]
    notify: Option<u64>,

    /// Start the request again if its node fails
    #[arg(long)]
    restartable: bool,
}

/// Planned time of a request; as early as possible if none is given.
#[derive(Args, Clone, Debug, Default)]
#[group(multiple = true)]
struct WhenOptions {
    /// Start exactly at this time: +2h, 16:00 (the next), 2026-08-01T08:00, @1785571200
    #[arg(long, value_name = "TIME", conflicts_with_all = ["after", "deadline", "provisional", "sla"])]
    start: Option<String>,

    /// Start at this time or later
    #[arg(long, value_name = "TIME", conflicts_with_all = ["deadline", "provisional", "sla"])]
    after: Option<String>,

    /// End by this time; decline the request if that is impossible
    #[arg(long, value_name = "TIME", conflicts_with_all = ["provisional", "sla"])]
    deadline: Option<String>,

    /// Start as late as the deadline allows
    #[arg(long, requires = "deadline")]
    late: bool,

    /// Drop the request at this time unless it is confirmed
    #[arg(long, value_name = "TIME", conflicts_with = "sla")]
    provisional: Option<String>,

    /// End by this time if possible; report it otherwise
    #[arg(long, value_name = "TIME")]
    sla: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct AllocOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    #[command(flatten)]
    asked: Requirements,

    /// Command to start, with its arguments; #CCS lines of a script are options
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct ReserveOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    #[command(flatten)]
    asked: Requirements,
}

#[derive(Args, Debug)]
pub(super) struct AlterOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

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
    ledger: LedgerOptions,

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
    ledger: LedgerOptions,

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
    ledger: LedgerOptions,

    /// Numbers of the requests
    #[arg(value_name = "ID", required = true)]
    ids: Vec<u64>,
}

/// Requests that were planned or changed.
#[derive(Serialize)]
struct Requests {
    requests: Vec<Row>,
}

fn rset(text: &str) -> Result<Rset, String> {
    let parsed = text.parse();
    parsed.map_err(|error: pbs_resources::Error| {
        format!("column {}: {}", error.column, error.message)
    })
}

impl WhenOptions {
    /// `None`: nothing is said.
    fn when(&self, cluster: &Cluster) -> Result<Option<When>, Failure> {
        let (now_s, site): (u64, &Site) = (cluster.clock_s(), cluster.site());
        let time = |text: &String| time_s(text, now_s, site);
        Ok(match self {
            Self { start: Some(at), .. } => Some(When::Fixed { start_s: time(at)? }),
            Self { after: Some(at), .. } => Some(When::After { start_s: time(at)? }),
            Self { deadline: Some(at), .. } => {
                Some(When::Deadline { end_s: time(at)?, late: self.late })
            }
            Self { provisional: Some(at), .. } => Some(When::Provisional { until_s: time(at)? }),
            Self { sla: Some(at), .. } => Some(When::Agreement { end_s: time(at)? }),
            Self { .. } => None,
        })
    }

    fn is_said(&self) -> bool {
        let all = [&self.start, &self.after, &self.deadline, &self.provisional, &self.sla];
        all.iter().any(|it| it.is_some())
    }
}

impl Requirements {
    /// Takes from the script the options that the command line leaves out.
    fn completed(&self, script: &Self) -> Self {
        Self {
            res: self.res.clone().or_else(|| script.res.clone()),
            duration_s: self.duration_s.or(script.duration_s),
            group: self.group.clone().or_else(|| script.group.clone()),
            name: self.name.clone().or_else(|| script.name.clone()),
            when: if self.when.is_said() { self.when.clone() } else { script.when.clone() },
            array: self.array.clone().or_else(|| script.array.clone()),
            within: self.within.or(script.within),
            depend: if self.depend.is_empty() {
                script.depend.clone()
            } else {
                self.depend.clone()
            },
            run: self.run.or(script.run),
            notify: self.notify.or(script.notify),
            restartable: self.restartable || script.restartable,
        }
    }

    fn wish(&self, cluster: &Cluster, user: &str, command: &[String]) -> Result<Wish, Failure> {
        let rset = self.res.clone().ok_or_else(|| {
            let what = "the request names no resources; add --res, such as --res rset=ncpus=4, or \
                        a line #CCS --res=… to the script";
            Failure::Usage(what.into())
        })?;
        // Without a word a user's own account: the first group that the site says it has.
        let own = cluster.site().user(user).and_then(|of| of.groups.first());
        let group = self.group.clone().or_else(|| own.cloned());
        Ok(Wish {
            duration_s: self.duration_s.unwrap_or(0),
            when: self.when.when(cluster)?.unwrap_or(When::BestEffort),
            name: self.name.clone().unwrap_or_default(),
            command: command.to_vec(),
            run_s: self.run,
            notify_s: self.notify,
            is_restartable: self.restartable,
            array: self.array.clone().map(|array| array.0),
            within: self.within,
            after: self.depend.iter().flat_map(|of| &of.0).copied().collect(),
            ..Wish::new(rset, user, &group.unwrap_or_default())
        })
    }
}

pub(super) fn alloc(out: Output, options: &AllocOptions) -> Result<(), Failure> {
    let asked = options.asked.completed(&of_script(&options.command)?);
    let mut cluster = options.ledger.open(Access::Write)?;
    let user = options.ledger.user.clone().unwrap_or_else(login);
    let wish = asked.wish(&cluster, &user, &options.command)?;
    let caller = options.ledger.caller(&cluster, &wish.group);
    let ids = cluster.submit(&caller, &wish);
    let ids = ids.map_err(|error| declined(error, &cluster))?;
    print(out, &cluster, &ids)
}

pub(super) fn reserve(out: Output, options: &ReserveOptions) -> Result<(), Failure> {
    let mut cluster = options.ledger.open(Access::Write)?;
    let user = options.ledger.user.clone().unwrap_or_else(login);
    let wish = options.asked.wish(&cluster, &user, &[])?;
    let caller = options.ledger.caller(&cluster, &wish.group);
    let id = cluster.reserve(&caller, &wish);
    let id = id.map_err(|error| declined(error, &cluster))?;
    print(out, &cluster, &[id])
}

pub(super) fn alter(out: Output, options: &AlterOptions) -> Result<(), Failure> {
    let mut cluster = options.ledger.open(Access::Write)?;
    let change = Change {
        rset: options.res.clone(),
        duration_s: options.duration_s,
        when: options.when.when(&cluster)?,
    };
    if change == Change::default() {
        let what = "nothing to change is given; add --res, -t, --deadline or another option";
        return Err(Failure::Usage(what.into()));
    }
    let caller = options.ledger.caller(&cluster, "");
    let altered = cluster.alter(&caller, options.id, &change);
    altered.map_err(|error| declined(error, &cluster))?;
    print(out, &cluster, &[options.id])
}

pub(super) fn resize(out: Output, options: &ResizeOptions) -> Result<(), Failure> {
    let mut cluster = options.ledger.open(Access::Write)?;
    let caller = options.ledger.caller(&cluster, "");
    let resized = cluster.resize(&caller, options.id, &options.res);
    resized.map_err(|error| declined(error, &cluster))?;
    print(out, &cluster, &[options.id])
}

pub(super) fn extend(out: Output, options: &ExtendOptions) -> Result<(), Failure> {
    let mut cluster = options.ledger.open(Access::Write)?;
    let caller = options.ledger.caller(&cluster, "");
    cluster.extend(&caller, options.id, options.by_s).map_err(failure)?;
    print(out, &cluster, &[options.id])
}

pub(super) fn confirm(out: Output, options: &IdsOptions) -> Result<(), Failure> {
    let mut cluster = options.ledger.open(Access::Write)?;
    let caller = options.ledger.caller(&cluster, "");
    for &id in &options.ids {
        cluster.confirm(&caller, id).map_err(failure)?;
    }
    print(out, &cluster, &options.ids)
}

pub(super) fn kill(out: Output, options: &IdsOptions) -> Result<(), Failure> {
    let mut cluster = options.ledger.open(Access::Write)?;
    let caller = options.ledger.caller(&cluster, "");
    for &id in &options.ids {
        cluster.kill(&caller, id).map_err(failure)?;
    }
    print(out, &cluster, &options.ids)
}

/// Prints the present state of requests.
fn print(out: Output, cluster: &Cluster, ids: &[u64]) -> Result<(), Failure> {
    let rows = ids.iter().map(|&id| cluster.details(id).map(|(row, _)| row));
    let requests = rows.collect::<Result<Vec<_>, _>>().map_err(failure)?;
    let answer = Requests { requests };
    out.named("cluster-requests").print(&answer, || {
        const SHOWN: usize = 12;
        let zone = &cluster.site().time_zone;
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
    })
}

/// Condition that a request without a place waits for.
pub(super) fn awaited(row: &Row) -> String {
    if row.after.is_empty() {
        "for a node that is out of use, or until its time is within the planning horizon".into()
    } else {
        after(&row.after)
    }
}

/// What is said of an agreement that is broken, or will be by the plan.
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
