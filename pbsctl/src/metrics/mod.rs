// SPDX-License-Identifier: GPL-2.0
//! Metrics of this node and of its service, for monitoring systems.
//!
//! - [`page`] has the formats.
//! - [`kernel`] and [`service`] have what is measured.
//! - [`patience`] waits for the service with a bound.
//! - [`serve`] answers collectors over HTTP.

mod kernel;
mod page;
mod patience;
mod serve;
mod service;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use pbs_text::span;

use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};
use crate::socket::Socket;
use crate::{quantities, watch};
use page::{Kind, Metric, Page, OPEN_METRICS};
use patience::Patience;

/// Time for the answers of the service.
const SERVICE_TIME: Duration = Duration::from_secs(2);
/// Time for which a page is served.
const PAGE_TIME: Duration = Duration::from_secs(1);

const METRICS_HELP: &str = "\
Examples:
  pbsctl node metrics                          Print them once, in OpenMetrics
  pbsctl node metrics --listen 9845            Serve them at http://127.0.0.1:9845/metrics
  pbsctl node metrics --interval 15 \\
    --output /var/lib/prometheus/node-exporter/pbs.prom
                                               Keep a file for node_exporter up to date
  pbsctl --json node metrics                   Print them as JSON

The page metrics.rst of the documentation explains each metric, and has alerts. What is not there
is told by pbs_class_up and pbs_service_up, which are 0 then. Only who may read plans gets
pbs_plan_utilization_ratio.";

/// Options of `pbsctl node metrics`.
#[derive(Args, Debug)]
#[command(after_help = METRICS_HELP)]
pub(crate) struct MetricsOptions {
    /// Serve the metrics over HTTP at this port of this machine, or at ADDRESS:PORT
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = serve::address,
          conflicts_with_all = ["output", "interval"])]
    listen: Option<SocketAddr>,

    /// Write the metrics to a file, which is replaced as a whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the file again and again, at this interval in seconds or with a unit, such as 250ms
    #[arg(long, value_name = "S", value_parser = quantities::interval, requires = "output")]
    interval: Option<u64>,

    #[command(flatten)]
    socket: Socket,
}

pub(crate) fn metrics(
    out: Output,
    device: &Path,
    options: MetricsOptions,
) -> Result<ExitCode, Failure> {
    let mut pages = Pages { device: device.into(), socket: options.socket, asked: Patience::new() };
    if let Some(address) = options.listen {
        return listen(address, pages);
    }
    let Some(file) = &options.output else {
        let (page, why) = pages.make();
        tell(why.as_deref());
        let text = page.open_metrics().map_err(not_written)?;
        out.print(&page, || text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut told = None;
    let mut write = |pages: &mut Pages| {
        let (page, why) = pages.make();
        if why != told {
            tell(why.as_deref());
            told = why;
        }
        files::write(file, &page.prometheus().map_err(not_written)?)
    };
    let Some(interval_ns) = options.interval else {
        write(&mut pages)?;
        return Ok(ExitCode::SUCCESS);
    };
    watch::repeat(interval_ns, None, || {
        // There may be room on the disk the next time.
        if let Err(failure) = write(&mut pages) {
            output::report(&failure.to_string());
        }
        Ok(())
    })
}

/// Pages of a node, one after the other.
struct Pages {
    device: PathBuf,
    socket: Socket,
    asked: Patience<Result<service::Answers, String>>,
}

impl Pages {
    /// The present metrics, and the reason for which there is none of the service.
    fn make(&mut self) -> (Page, Option<String>) {
        // A user without a name is shown by number.
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let socket = self.socket.clone();
        let answers = self.asked.ask(move || service::ask(&socket), SERVICE_TIME);
        let answers = answers.unwrap_or_else(|| {
            Err(format!("it did not answer within {}", span(SERVICE_TIME.as_nanos() as u64)))
        });
        let mut page = Page::default();
        page.extend([made_at(SystemTime::now())]);
        page.extend(kernel::metrics(&self.device));
        // The reason is returned beside the page.
        page.extend(service::metrics(answers.as_ref().ok(), &users));
        (page, answers.err())
    }
}

fn made_at(now: SystemTime) -> Metric {
    let mut metric = Metric::new(
        Kind::Gauge,
        "pbs_page_time_seconds",
        "Time at which these metrics were read, counted from 1970",
    );
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    metric.add([], since.as_secs_f64().floor());
    metric
}

fn tell(why: Option<&str>) {
    if let Some(why) = why {
        output::report(&format!("no metrics of the service: {why}"));
    }
}

fn not_written(_: std::fmt::Error) -> Failure {
    Failure::Failed("the page of metrics could not be written".into())
}

/// Serves pages at an address, or at the socket that was handed over. All who call within a second
/// get the same page, so that callers make the node no work.
fn listen(address: SocketAddr, pages: Pages) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::Failed(format!("{address}: {error}"));
    let count = pbs_socket::handed_over_count();
    if count > 1 {
        let why = format!("{count} sockets were handed over; name one ListenStream only");
        return Err(Failure::Usage(why));
    }
    let listener = match pbs_socket::handed_over() {
        Some(socket) => TcpListener::from(socket),
        None => TcpListener::bind(address).map_err(failed)?,
    };
    let bound = listener.local_addr().map_err(failed)?;
    let bound = serve::of_this_machine(bound).map_err(Failure::Usage)?;
    output::report(&format!("the metrics are at http://{bound}/metrics"));
    let last: Mutex<(Pages, Option<(Instant, String)>)> = Mutex::new((pages, None));
    let page = move || {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let (pages, made) = &mut *last;
        match made {
            Some((at, text)) if at.elapsed() < PAGE_TIME => Some(text.clone()),
            _ => {
                // A page that cannot be written is answered as an error, and tried again.
                let text = pages.make().0.open_metrics().ok()?;
                *made = Some((Instant::now(), text.clone()));
                Some(text)
            }
        }
    };
    serve::serve(&listener, OPEN_METRICS, page)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DOCUMENT: &str = include_str!("../../../Documentation/metrics.rst");
    const ALERTS: &str = include_str!("../../../packaging/monitoring/alerts.yml");
    const DASHBOARD: &str = include_str!("../../../packaging/monitoring/dashboard.json");

    fn all() -> impl Iterator<Item = (&'static str, Kind)> {
        let of_page = made_at(SystemTime::UNIX_EPOCH);
        let all = kernel::all().into_iter().chain(service::all());
        all.chain([(of_page.name, of_page.kind)])
    }

    /// Names as they stand on the page, without those of the parts of a histogram.
    fn names() -> BTreeSet<String> {
        let name = |(name, kind): (&str, Kind)| match kind {
            Kind::Counter => format!("{name}_total"),
            Kind::Gauge | Kind::Histogram => name.into(),
        };
        all().map(name).collect()
    }

    /// The words of a text that begin like a metric.
    fn words(text: &str) -> impl Iterator<Item = &str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("pbs_"))
    }

    #[test]
    fn the_documentation_has_each_metric_with_its_kind() {
        let row = |line: &str| line.starts_with("pbs_").then(|| line.to_string());
        let rows: Vec<_> = DOCUMENT.lines().filter_map(row).collect();
        let documented: BTreeSet<_> =
            rows.iter().filter_map(|row| row.split(' ').next()).map(String::from).collect();
        assert_eq!(documented, names());
        for (name, kind) in all() {
            let kind = format!("{kind:?}").to_lowercase();
            let row = rows.iter().find(|row| {
                row.split(' ').next().is_some_and(|it| it == name || it == format!("{name}_total"))
            });
            assert_eq!(row.unwrap().split_whitespace().nth(1), Some(&*kind), "{name}");
        }
    }

    #[test]
    fn alerts_and_dashboard_name_metrics_that_exist() {
        let names = names();
        for (file, text) in [("alerts", ALERTS), ("dashboard", DASHBOARD)] {
            let mut count = 0;
            for word in words(text) {
                let name = word.strip_suffix("_bucket").unwrap_or(word);
                assert!(names.contains(name), "{file}: {word}");
                count += 1;
            }
            assert!(count >= 8, "{file}: {count}");
        }
        let alerts = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
        for alert in alerts {
            assert!(DOCUMENT.contains(&format!("\n{alert} ")), "{alert} is not documented");
        }
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
        assert_eq!(dashboard["panels"].as_array().unwrap().len(), 8);
    }
}
