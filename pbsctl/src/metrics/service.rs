// SPDX-License-Identifier: GPL-2.0
//! Metrics of the service of this node.

use pbs_node_api::{Failure, Metrics, Status};
use pbs_text::user_name;

use super::page::{Kind, Metric};
use crate::socket::Socket;

/// Answers of the service.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    status: Status,
    counted: Metrics,
}

/// Asks the service; the reason for which it did not answer.
pub(super) fn ask(socket: &Socket) -> Result<Answers, String> {
    let mut client = socket.connect().map_err(|failure| {
        let told = failure.to_string();
        told.strip_prefix("pbsctl: ").map_or_else(|| told.clone(), Into::into)
    })?;
    let mut ask = || Ok(Answers { status: client.status()?, counted: client.metrics()? });
    ask().map_err(|failure: Failure| failure.to_string())
}

/// Metrics of the service, by its answers and the names of users in a passwd file. `None`: it did
/// not answer.
pub(super) fn metrics(answers: Option<&Answers>, users: &str) -> Vec<Metric> {
    let mut metrics = vec![up(answers.is_some())];
    if let Some(Answers { status, counted }) = answers {
        metrics.extend(of_status(status));
        metrics.extend(of_results(counted));
        metrics.push(of_open_jobs(counted));
        metrics.extend(of_users(counted, users));
        metrics.extend(of_methods(counted));
    }
    metrics
}

fn up(is_up: bool) -> Metric {
    let mut up = Metric::new(Kind::Gauge, "pbs_service_up", "Whether the service answers");
    up.add([], f64::from(u8::from(is_up)));
    up
}

fn of_status(status: &Status) -> [Metric; 4] {
    let mut info = Metric::new(
        Kind::Gauge,
        "pbs_service_info",
        "1 for the version of the service, and the release of the kernel",
    );
    info.add([("version", &*status.version), ("kernel", &*status.kernel)], 1.0);
    let mut since = Metric::new(
        Kind::Gauge,
        "pbs_service_start_time_seconds",
        "Start of the service, counted from 1970",
    );
    since.add([], status.since_unix_ns as f64 / 1e9);
    let mut draining =
        Metric::new(Kind::Gauge, "pbs_service_draining", "Whether the service plans no new jobs");
    draining.add([], f64::from(u8::from(status.state == "draining")));
    let mut recorded = Metric::new(
        Kind::Gauge,
        "pbs_service_recorded",
        "Whether the last attempt to record something has succeeded",
    );
    recorded.add([], f64::from(u8::from(status.recorded)));
    [info, since, draining, recorded]
}

/// Results that are not in the history; a service of an earlier version does not say.
fn of_results(counted: &Metrics) -> [Metric; 2] {
    let mut waiting = Metric::new(
        Kind::Gauge,
        "pbs_results_unrecorded",
        "Number of results of jobs that wait to be recorded",
    );
    let mut lost =
        Metric::new(Kind::Counter, "pbs_results_lost", "Number of results of jobs that are lost");
    if let Some(results) = counted.results_unrecorded {
        waiting.add([], results as f64);
    }
    if let Some(results) = counted.results_lost {
        lost.add([], results as f64);
    }
    [waiting, lost]
}

fn of_open_jobs(counted: &Metrics) -> Metric {
    let mut metric = Metric::new(Kind::Gauge, "pbs_jobs", "Number of jobs that are not over");
    for open in &counted.open_jobs {
        metric.add([("state", &*open.state)], open.jobs as f64);
    }
    metric
}

/// Name of a user by the lines of a passwd file, or the number. Without a number it is "(others)", as
/// no user is called.
fn name(uid: Option<u32>, users: &str) -> String {
    let named = |uid| user_name(users, uid).unwrap_or_else(|| uid.to_string());
    uid.map_or_else(|| "(others)".into(), named)
}

fn of_users(counted: &Metrics, users: &str) -> [Metric; 6] {
    let mut submitted =
        Metric::new(Kind::Counter, "pbs_jobs_submitted", "Number of jobs that were submitted");
    let mut ended = Metric::new(
        Kind::Counter,
        "pbs_jobs_ended",
        "Number of jobs that have ended, by their outcomes",
    );
    let mut kept = Metric::new(
        Kind::Counter,
        "pbs_deadlines_kept",
        "Number of jobs that have kept the deadline that they were promised",
    );
    let mut missed = Metric::new(
        Kind::Counter,
        "pbs_deadlines_missed",
        "Number of jobs that have missed the deadline that they were promised",
    );
    let mut used = Metric::new(
        Kind::Gauge,
        "pbs_user_budget_used",
        "Amount that the open jobs of the user have of a limited resource",
    );
    let mut limit = Metric::new(
        Kind::Gauge,
        "pbs_user_budget_limit",
        "Amount of the resource that a user may have who is no operator",
    );
    for user in &counted.users {
        let name = name(user.uid, users);
        submitted.add([("user", &*name)], user.submitted as f64);
        for outcome in &user.ended {
            ended.add([("user", &*name), ("outcome", &outcome.outcome)], outcome.jobs as f64);
        }
        kept.add([("user", &*name)], user.deadlines_kept as f64);
        missed.add([("user", &*name)], user.deadlines_missed as f64);
        for budget in &user.budgets {
            let labels = [("user", &*name), ("resource", &*budget.resource)];
            used.add(labels, budget.used as f64);
            limit.add(labels, budget.limit as f64);
        }
    }
    [submitted, ended, kept, missed, used, limit]
}

fn of_methods(counted: &Metrics) -> [Metric; 2] {
    let mut times = Metric::new(
        Kind::Histogram,
        "pbs_call_seconds",
        "Time from the call of a method to its answer",
    );
    let mut refused = Metric::new(
        Kind::Counter,
        "pbs_calls_refused",
        "Number of calls of a method that were refused",
    );
    for method in &counted.methods {
        let within = method.answers.iter().map(|it| (it.within_ns as f64 / 1e9, it.calls));
        let labels = [("method", &*method.method)];
        times.add_times(labels, method.answer_ns as f64 / 1e9, method.calls, within.collect());
        refused.add(labels, method.refused as f64);
    }
    [times, refused]
}

/// Names and kinds of all metrics of a service.
#[cfg(test)]
pub(super) fn all() -> Vec<(&'static str, Kind)> {
    let counted = Metrics::default();
    let parts = [
        vec![up(true), of_open_jobs(&counted)],
        of_status(&Status::default()).into(),
        of_results(&counted).into(),
        of_users(&counted, "").into(),
        of_methods(&counted).into(),
    ];
    parts.iter().flatten().map(|metric| (metric.name, metric.kind)).collect()
}

#[cfg(test)]
mod tests {
    use pbs_node_api::{AnswersWithin, Budget, EndedJobs, MethodMetrics, OpenJobs, UserMetrics};

    use super::super::page::Page;
    use super::*;

    #[test]
    fn users_have_names_and_methods_have_times() {
        let anna = UserMetrics {
            uid: Some(1000),
            submitted: 5,
            ended: vec![EndedJobs { outcome: "complete".into(), jobs: 3 }],
            deadlines_kept: 2,
            deadlines_missed: 1,
            budgets: vec![Budget { resource: "tasks".into(), used: 7, limit: 100 }],
        };
        let unknown = UserMetrics { uid: Some(1001), submitted: 1, ..UserMetrics::default() };
        let others = UserMetrics { uid: None, submitted: 9, ..UserMetrics::default() };
        let within = |within_ns, calls| AnswersWithin { within_ns, calls };
        let list = MethodMetrics {
            method: "List".into(),
            calls: 4,
            refused: 1,
            answer_ns: 2_500_000_000,
            answers: vec![within(1_000_000, 1), within(100_000_000, 3)],
        };
        let open = OpenJobs { state: "held".into(), jobs: 3 };
        let counted = Metrics {
            open_jobs: vec![open],
            users: vec![anna, unknown, others],
            methods: vec![list],
            results_unrecorded: Some(4),
            results_lost: Some(2),
        };
        let passwd = "root:x:0:0::/:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n";
        let mut page = Page::default();
        page.extend(of_results(&counted));
        page.extend([of_open_jobs(&counted)]);
        page.extend(of_users(&counted, passwd));
        page.extend(of_methods(&counted));
        let page = page.open_metrics().unwrap();
        for line in [
            "pbs_results_unrecorded 4.0",
            "pbs_results_lost_total 2.0",
            "pbs_jobs{state=\"held\"} 3.0",
            "pbs_jobs_submitted_total{user=\"anna\"} 5.0",
            "pbs_jobs_submitted_total{user=\"1001\"} 1.0",
            "pbs_jobs_submitted_total{user=\"(others)\"} 9.0",
            "pbs_jobs_ended_total{user=\"anna\",outcome=\"complete\"} 3.0",
            "pbs_deadlines_kept_total{user=\"anna\"} 2.0",
            "pbs_deadlines_missed_total{user=\"anna\"} 1.0",
            "pbs_user_budget_used{user=\"anna\",resource=\"tasks\"} 7.0",
            "pbs_user_budget_limit{user=\"anna\",resource=\"tasks\"} 100.0",
            "pbs_call_seconds_sum{method=\"List\"} 2.5",
            "pbs_call_seconds_bucket{le=\"0.1\",method=\"List\"} 3",
            "pbs_call_seconds_bucket{le=\"+Inf\",method=\"List\"} 4",
            "pbs_calls_refused_total{method=\"List\"} 1.0",
        ] {
            assert!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
        }
    }
}
