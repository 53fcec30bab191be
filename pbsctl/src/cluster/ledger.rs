// SPDX-License-Identifier: GPL-2.0
//! The ledger of a cluster: making it, opening it, and its clock.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::tz::TimeZone;
use pbs_manager::ledger::{account_user, Access, Ledger, Row, Served};
use pbs_manager::{Error, Manager, Recovered, Simulated};
use pbs_site::{format_time, next_time_s, parse_time_s, User};
use pbs_uapi::clock::unix_s;
use serde::Serialize;

use super::site::read_site;
use crate::failure::Failure;
use crate::files::read;
use crate::output::{counted, report, Output};

/// A cluster in virtual time.
pub(super) type Cluster = Manager<Simulated>;

/// File of the ledger, unless another is named.
pub(super) const FILE: &str = "cluster.db";

/// The ledger, for commands that work on the file alone.
#[derive(Args, Debug)]
pub(super) struct LedgerOptions {
    /// The ledger
    #[arg(long, value_name = "FILE", env = "PBS_LEDGER", default_value = FILE)]
    pub(super) ledger: PathBuf,
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
        open(&self.ledger, access)
    }
}

/// Opens a ledger. One of an older version that is to be written gets the numbers of its owners
/// before.
pub(super) fn open(ledger: &Path, access: Access) -> Result<Cluster, Failure> {
    if access == Access::Write {
        attribute(ledger)?;
    }
    let opened = Manager::open(ledger, access, Simulated::default());
    Ok(opened.map_err(failure)?.0)
}

/// Gives the owners in a ledger of an older version the numbers of their accounts, and reports
/// those who have none.
pub(super) fn attribute(ledger: &Path) -> Result<(), Failure> {
    let attributed = Ledger::attribute(ledger).map_err(|error| failure(error.into()))?;
    if let Some(without) = attributed.and_then(|attributed| attributed.describe()) {
        report(&format!("pbsctl: {}: {without}", ledger.display()));
    }
    Ok(())
}

/// Returns the user of a name, with the number of the account that has it on this machine.
pub(super) fn user_of(name: &str) -> Result<User, Failure> {
    account_user(name).map_err(|error| failure(error.into()))
}

/// Name of the account of this process.
fn own_name() -> String {
    let process = std::fs::metadata("/proc/self");
    process.map_or_else(|_| "nobody".into(), |of| pbs_socket::user_name(of.uid()))
}

/// Name of the user who is logged in; it gives no rights.
pub(super) fn login() -> String {
    let named = std::env::var("USER").ok().filter(|name| !name.is_empty());
    named.unwrap_or_else(own_name)
}

pub(super) fn new(out: Output, options: &NewOptions) -> Result<(), Failure> {
    let text = read(&options.site)?;
    let site = read_site(&options.site)?;
    let clock_s = match &options.at {
        Some(text) => time_s(text, unix_s(), &site.time_zone)?,
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
    attribute(&options.ledger.ledger)?;
    let opened = Manager::set_site(&options.ledger.ledger, &text, Simulated::default());
    let (cluster, recovered) = opened.map_err(failure)?;
    told(out, &cluster, &recovered)
}

pub(super) fn advance(out: Output, options: &AdvanceOptions) -> Result<(), Failure> {
    // The time of a ledger that is carried out is that of the machine.
    let _served = Served::take(&options.ledger.ledger).map_err(|error| failure(error.into()))?;
    let mut cluster = options.ledger.open(Access::Write)?;
    match &options.until {
        Some(text) => {
            let zone = &cluster.site().time_zone;
            let until_s = time_s(text, cluster.clock_s(), zone)?;
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
pub(super) fn time_s(text: &str, now_s: u64, zone: &TimeZone) -> Result<u64, Failure> {
    let time_s = match text.strip_prefix('+') {
        Some(duration) => duration_s(duration).map(|duration_s| now_s.saturating_add(duration_s)),
        None => match next_time_s(text, now_s, zone) {
            Some(time_s) => Ok(time_s),
            None => parse_time_s(text, zone).map_err(|error| {
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
        Error::Declined(_) => Failure::NotPlanned(cluster.in_words(&error)),
        _ => failure(error),
    }
}
