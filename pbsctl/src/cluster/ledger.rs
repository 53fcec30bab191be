// SPDX-License-Identifier: GPL-2.0
//! The ledger of a cluster: making it, opening it, and its clock.

use std::path::PathBuf;

use clap::Args;
use jiff::tz::TimeZone;
use pbs_cluster_planner::{Cause, Machine, Refusal};
use pbs_manager::ledger::{Access, Row};
use pbs_manager::{Caller, Error, Manager, Recovered, Simulated};
use pbs_site::{format_time, next_time_s, parse_time_s, Privilege, Site};
use pbs_uapi::clock::unix_s;
use serde::Serialize;

use super::site::read_site;
use crate::failure::Failure;
use crate::files::read;
use crate::output::{counted, Output};

/// A cluster in virtual time.
pub(super) type Cluster = Manager<Simulated>;

/// Ledger, and the user that a request is for.
#[derive(Args, Debug)]
pub(super) struct LedgerOptions {
    /// The ledger
    #[arg(long, value_name = "FILE", env = "PBS_LEDGER", default_value = "cluster.db")]
    pub(super) ledger: PathBuf,

    /// Act as this user, with the rights that the site gives that user only
    ///
    /// Without this option, write access to the ledger makes you an operator.
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct NewOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    /// Site file: the description of the cluster
    #[arg(long, value_name = "SITE")]
    site: PathBuf,

    /// Time at which the clock of the ledger begins: 2026-08-01T08:00 or @1785571200; the present
    /// time by default
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct SiteOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    /// New site file: the description of the cluster
    #[arg(value_name = "SITE")]
    site: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct AdvanceOptions {
    #[command(flatten)]
    ledger: LedgerOptions,

    /// Time to advance to: +2h, 2026-08-01T08:00, @1785571200; without it, the end of the last
    /// request
    #[arg(value_name = "TIME")]
    until: Option<String>,
}

/// The clock of a ledger, and its number of requests.
#[derive(Serialize)]
struct Clock {
    site: String,
    clock_s: u64,
    requests: usize,
    moved: Vec<u64>,
    lost: Vec<u64>,
}

impl LedgerOptions {
    pub(super) fn open(&self, access: Access) -> Result<Cluster, Failure> {
        let opened = Manager::open(&self.ledger, access, Simulated::default());
        Ok(opened.map_err(failure)?.0)
    }

    /// The user in whose name a request is made, and whether it is an operator for that group.
    pub(super) fn caller(&self, cluster: &Cluster, group: &str) -> Caller {
        match &self.user {
            Some(user) => Caller {
                is_operator: cluster.site().may(user, group, Privilege::Operator),
                user: user.clone(),
            },
            None => Caller { user: login(), is_operator: true },
        }
    }

    /// Refuses `what`, which concerns the whole cluster, to users whom the site of the ledger does
    /// not make operators. Without `--user`, the ledger is not read: its site may be unreadable.
    pub(super) fn as_operator(&self, what: &str) -> Result<(), Failure> {
        if self.user.is_none() {
            return Ok(());
        }
        let cluster = self.open(Access::Read)?;
        self.caller(&cluster, "").as_operator(what).map_err(failure)
    }
}

/// Name of the user who is logged in; it gives no rights.
pub(super) fn login() -> String {
    std::env::var("USER").unwrap_or_else(|_| "nobody".into())
}

pub(super) fn new(out: Output, options: &NewOptions) -> Result<(), Failure> {
    let text = read(&options.site)?;
    let site = read_site(&options.site)?;
    let clock_s = match &options.at {
        Some(text) => time_s(text, unix_s(), &site)?,
        None => unix_s(),
    };
    let ledger = &options.ledger.ledger;
    let made = Manager::create(ledger, &text, clock_s, Simulated::default());
    told(out, &made.map_err(failure)?, &Recovered::default())
}

pub(super) fn site(out: Output, options: &SiteOptions) -> Result<(), Failure> {
    // Problems of the file are reported line by line.
    read_site(&options.site)?;
    let text = read(&options.site)?;
    options.ledger.as_operator("give the cluster another site")?;
    let opened = Manager::set_site(&options.ledger.ledger, &text, Simulated::default());
    let (cluster, recovered) = opened.map_err(failure)?;
    told(out, &cluster, &recovered)
}

pub(super) fn advance(out: Output, options: &AdvanceOptions) -> Result<(), Failure> {
    options.ledger.as_operator("advance the clock")?;
    let mut cluster = options.ledger.open(Access::Write)?;
    match &options.until {
        Some(text) => {
            let until_s = time_s(text, cluster.clock_s(), cluster.site())?;
            if until_s < cluster.clock_s() {
                let now = clock(&cluster);
                let what = format!(
                    "{text} is in the past: the clock of the ledger is at {now}, \
                                    and time does not go back; write a later time"
                );
                return Err(Failure::Usage(what));
            }
            cluster.advance(until_s).map_err(failure)?;
        }
        None => {
            while let Some(next_s) = cluster.next_s() {
                cluster.advance(next_s).map_err(failure)?;
            }
        }
    }
    told(out, &cluster, &Recovered::default())
}

fn told(out: Output, cluster: &Cluster, recovered: &Recovered) -> Result<(), Failure> {
    let clock = Clock {
        site: cluster.site().name.clone(),
        clock_s: cluster.clock_s(),
        requests: cluster.open_rows().len(),
        moved: recovered.moved.clone(),
        lost: recovered.lost.clone(),
    };
    out.named("cluster-clock").print(&clock, || {
        let requests = counted(clock.requests as u64, "request", "requests");
        let mut text = format!("{}: {}, {requests}\n", clock.site, self::clock(cluster));
        for (ids, what) in [
            (&clock.moved, "planned again"),
            (&clock.lost, "ended, since the cluster has no place for them any more"),
        ] {
            if !ids.is_empty() {
                let ids: Vec<_> = ids.iter().take(12).map(u64::to_string).collect();
                text += &format!("{what}: {}\n", ids.join(", "));
            }
        }
        text
    })
}

/// The present time of a cluster.
pub(super) fn clock(cluster: &Cluster) -> String {
    format_time(cluster.clock_s(), &cluster.site().time_zone)
}

/// Start of a request, if it has one.
pub(super) fn start(row: &Row, zone: &TimeZone) -> String {
    row.start_s.map_or_else(|| "-".into(), |time_s| format_time(time_s, zone))
}

/// End of a request.
pub(super) fn end(row: &Row, zone: &TimeZone) -> String {
    row.end_s.map_or_else(|| "-".into(), |time_s| format_time(time_s, zone))
}

/// `+2h` from now, `16:00` for the next such time, or a time.
pub(super) fn time_s(text: &str, now_s: u64, site: &Site) -> Result<u64, Failure> {
    let time_s = match text.strip_prefix('+') {
        Some(duration) => duration_s(duration).map(|duration_s| now_s.saturating_add(duration_s)),
        None => match next_time_s(text, now_s, &site.time_zone) {
            Some(time_s) => Ok(time_s),
            None => parse_time_s(text, &site.time_zone).map_err(|error| {
                format!("{}; 16:00 is the next such time, +2h is two hours from now", error.message)
            }),
        },
    };
    time_s.map_err(|why| Failure::Usage(format!("{text}: {why}")))
}

/// `4h`, `1h30m`, `00:10:00`.
pub(super) fn duration_s(text: &str) -> Result<u64, String> {
    pbs_resources::parse_duration_s(text).map_err(|error| error.message)
}

/// Run time of a request: `4h`, and not 0.
pub(super) fn run_time_s(text: &str) -> Result<u64, String> {
    match duration_s(text)? {
        0 => Err("a request runs for at least a second; leave the option out for the time that \
                  the site takes by default"
            .into()),
        seconds => Ok(seconds),
    }
}

/// Converts an error to a failure with its exit status.
pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::Declined(why) => Failure::NotPlanned(why.to_string()),
        other => Failure::Failed(other.to_string()),
    }
}

/// Like [`failure`], with times of the site and the causes that keep a request out.
pub(super) fn declined(error: Error, cluster: &Cluster) -> Failure {
    match &error {
        Error::Declined(Refusal::Never(causes)) if !causes.is_empty() => {
            let causes: Vec<_> = causes.iter().map(|it| words(it, cluster.machine())).collect();
            let causes = causes.join(", ");
            Failure::NotPlanned(format!("there is no time at which it could run: {causes}"))
        }
        Error::Declined(why) => Failure::NotPlanned(why.describe(cluster.site())),
        _ => failure(error),
    }
}

/// Describes a cause that keeps a request from a place.
pub(super) fn words(cause: &Cause, machine: &Machine) -> String {
    let name = |resource: usize| {
        let resource = machine.resources().get(resource);
        resource.map_or("cores that are reserved for others", |of| &of.name)
    };
    match cause {
        Cause::Used(resource) => format!("{} in use", name(*resource)),
        Cause::Pool(pool) => format!("pool {pool}"),
        Cause::Items(whom, resource) => format!("limit of {whom} on {}", name(*resource)),
        Cause::Duration(whom, resource) => {
            format!("limit of {whom} on the duration for {}", name(*resource))
        }
        Cause::Area(whom, resource) => {
            format!("limit of {whom} on the area of {}", name(*resource))
        }
        Cause::Nodes => "no nodes with room for its chunks".into(),
        Cause::After(request) => format!("request {request}, which must end first"),
    }
}
