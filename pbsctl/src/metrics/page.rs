// SPDX-License-Identifier: GPL-2.0
//! A page of metrics, in OpenMetrics and in Prometheus's older text format.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    prometheus_text, text, DescriptorEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use serde::Serialize;

/// Content type of the page in OpenMetrics.
pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A number that only grows. Its name ends in `_total` on the page.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// A distribution of times.
    Histogram,
}

/// Value of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Value {
    Number(f64),
    Times {
        sum_s: f64,
        count: u64,
        /// The greatest time and the number of all that were not longer, ascending.
        within_s: Vec<(f64, u64)>,
    },
}

/// A series of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Series {
    #[serde(serialize_with = "as_map")]
    labels: Labels,
    value: Value,
}

/// A metric with its series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    help: &'static str,
    series: Vec<Series>,
}

/// All metrics, each once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Page {
    metrics: Vec<Metric>,
}

fn as_map<S: serde::Serializer>(labels: &Labels, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(labels.iter().map(|(name, value)| (name, value)))
}

impl Metric {
    /// A metric without any series. `name` ends with its unit; a counter's has no `_total`.
    pub(super) fn new(kind: Kind, name: &'static str, help: &'static str) -> Self {
        Self { name, kind, help, series: Vec::new() }
    }

    /// Adds a series.
    pub(super) fn add<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: f64) {
        self.push(labels, Value::Number(value));
    }

    /// Adds a series of a histogram. `within_s`: the greatest time and the number of all that
    /// were not longer, ascending.
    pub(super) fn add_times<const N: usize>(
        &mut self,
        labels: [(&'static str, &str); N],
        sum_s: f64,
        count: u64,
        within_s: Vec<(f64, u64)>,
    ) {
        self.push(labels, Value::Times { sum_s, count, within_s });
    }

    fn push<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: Value) {
        let labels = labels.map(|(name, value)| (name, value.to_string())).into();
        self.series.push(Series { labels, value });
    }
}

impl Page {
    /// Adds metrics. One without a series is left out.
    pub(super) fn extend(&mut self, metrics: impl IntoIterator<Item = Metric>) {
        self.metrics.extend(metrics.into_iter().filter(|metric| !metric.series.is_empty()));
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        registry
    }

    /// The page in OpenMetrics.
    pub(super) fn open_metrics(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry())?;
        Ok(page)
    }

    /// The page as collectors of text files read it.
    pub(super) fn prometheus(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        prometheus_text::encode(&mut page, &self.registry())?;
        Ok(page)
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Metric { name, kind, help, series } in &self.metrics {
            let kind = match kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for one in series {
                one.encode(kind, metric.encode_family(&one.labels)?)?;
            }
        }
        Ok(())
    }
}

impl Series {
    fn encode(&self, kind: MetricType, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match &self.value {
            Value::Number(value) if matches!(kind, MetricType::Counter) => {
                encoder.encode_counter::<NoLabelSet, _, f64>(value, None)
            }
            Value::Number(value) => encoder.encode_gauge(value),
            Value::Times { sum_s, count, within_s } => {
                let mut before = 0;
                let all = within_s.iter().copied().chain([(f64::INFINITY, *count)]);
                let each = all.map(|(bound, up_to)| {
                    let more = up_to.saturating_sub(before);
                    before = up_to;
                    (bound, more)
                });
                let each: Vec<_> = each.collect();
                encoder.encode_histogram::<NoLabelSet>(*sum_s, *count, &each, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut jobs = Metric::new(Kind::Gauge, "pbs_jobs", "Number of jobs");
        jobs.add([("state", "held")], 2.0);
        jobs.add([("state", "a \"b\"\n")], -0.5);
        let mut ended = Metric::new(Kind::Counter, "pbs_jobs_ended", "Number of jobs that ended");
        ended.add([], 7.0);
        let mut times = Metric::new(Kind::Histogram, "pbs_call_seconds", "Time to the answer");
        times.add_times([("method", "List")], 1.5, 4, vec![(0.001, 1), (0.1, 3)]);
        let nothing = Metric::new(Kind::Gauge, "pbs_nothing", "Left out");
        let mut page = Page::default();
        page.extend([jobs, ended, times, nothing]);
        page
    }

    /// Expected by the specification of OpenMetrics 1.0: a name per family, counters that end in
    /// `_total`, cumulative buckets up to infinity, escapes, and the mark of the end.
    #[test]
    fn a_page_is_open_metrics() {
        let expected = "\
# HELP pbs_jobs Number of jobs
# TYPE pbs_jobs gauge
pbs_jobs{state=\"held\"} 2.0
pbs_jobs{state=\"a \\\"b\\\"\\n\"} -0.5
# HELP pbs_jobs_ended Number of jobs that ended
# TYPE pbs_jobs_ended counter
pbs_jobs_ended_total 7.0
# HELP pbs_call_seconds Time to the answer
# TYPE pbs_call_seconds histogram
pbs_call_seconds_sum{method=\"List\"} 1.5
pbs_call_seconds_count{method=\"List\"} 4
pbs_call_seconds_bucket{le=\"0.001\",method=\"List\"} 1
pbs_call_seconds_bucket{le=\"0.1\",method=\"List\"} 3
pbs_call_seconds_bucket{le=\"+Inf\",method=\"List\"} 4
# EOF
";
        assert_eq!(page().open_metrics().unwrap(), expected);
    }

    /// The older format names a counter's family like its series, and has no mark of the end.
    #[test]
    fn a_page_is_prometheus_text() {
        let page = page().prometheus().unwrap();
        assert!(page.contains("# TYPE pbs_jobs_ended_total counter\npbs_jobs_ended_total 7.0\n"));
        assert!(
            page.contains("pbs_call_seconds_bucket{method=\"List\",le=\"+Inf\"} 4\n"),
            "{page}"
        );
        assert!(!page.contains("EOF"));
    }

    #[test]
    fn a_page_is_json() {
        let json = serde_json::to_value(page()).unwrap();
        let metrics = json["metrics"].as_array().unwrap();
        assert_eq!(metrics.len(), 3);
        assert_eq!(metrics[0]["series"][0]["labels"]["state"], "held");
        assert_eq!(metrics[0]["series"][0]["value"], 2.0);
        assert_eq!(metrics[2]["series"][0]["value"]["within_s"][1][1], 3);
    }
}
