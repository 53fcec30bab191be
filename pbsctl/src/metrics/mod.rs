// SPDX-License-Identifier: GPL-2.0
//! Metrics of this node and of its service, for monitoring systems.
//!
//! - [`page`] has the formats.
//! - [`kernel`] and [`service`] have what is measured.
//! - [`serve`] answers collectors over HTTP.

mod kernel;
mod page;
mod serve;
mod service;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};
use crate::socket::Socket;
use crate::{quantities, watch};
use page::{Page, OPEN_METRICS};

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
    if let Some(address) = options.listen {
        return listen(address, device.into(), options.socket);
    }
    let Some(file) = &options.output else {
        let (page, why) = page(device, &options.socket);
        tell(why.as_deref());
        let text = page.open_metrics().map_err(not_written)?;
        out.print(&page, || text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut told = None;
    let count = options.interval.is_none().then_some(1);
    watch::repeat(options.interval.unwrap_or(0), count, || {
        let (page, why) = page(device, &options.socket);
        if why != told {
            tell(why.as_deref());
            told = why;
        }
        let text = page.prometheus().map_err(not_written)?;
        files::write(file, &text)
    })
}

/// The present metrics, and the reason for which there is none of the service.
fn page(device: &Path, socket: &Socket) -> (Page, Option<String>) {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let (of_service, why) = service::metrics(socket, &users);
    let mut page = Page::default();
    page.extend(kernel::metrics(device));
    page.extend(of_service);
    (page, why)
}

fn tell(why: Option<&str>) {
    if let Some(why) = why {
        output::report(&format!("no metrics of the service: {why}"));
    }
}

fn not_written(_: std::fmt::Error) -> Failure {
    Failure::Failed("the page of metrics could not be written".into())
}

fn listen(address: SocketAddr, device: PathBuf, socket: Socket) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::Failed(format!("{address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    output::report(&format!("the metrics are at http://{bound}/metrics"));
    let page = move || page(&device, &socket).0.open_metrics().unwrap_or_default();
    serve::serve(&listener, OPEN_METRICS, page)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::page::Kind;
    use super::{kernel, service};

    const DOCUMENT: &str = include_str!("../../../Documentation/metrics.rst");
    const ALERTS: &str = include_str!("../../../packaging/monitoring/alerts.yml");
    const DASHBOARD: &str = include_str!("../../../packaging/monitoring/dashboard.json");

    /// Names as they stand on the page, without those of the parts of a histogram.
    fn names() -> BTreeSet<String> {
        let metrics = kernel::all().into_iter().chain(service::all());
        let name = |(name, kind): (&str, Kind)| match kind {
            Kind::Counter => format!("{name}_total"),
            Kind::Gauge | Kind::Histogram => name.into(),
        };
        metrics.map(name).collect()
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
        for (name, kind) in kernel::all().into_iter().chain(service::all()) {
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
