// SPDX-License-Identifier: GPL-2.0
//! Gains of one policy over others, on several traces of the same kind.

use pbs_text::{Format, Table};
use serde::Serialize;

use crate::metrics::Metrics;
use crate::{Compared, Comparison};

/// Gains of one policy over another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Policy whose gains are listed.
    pub policy: String,
    /// Policy with which it is compared.
    pub against: String,
    /// On each trace, in their order.
    pub gains: Vec<Gain>,
}

/// On one trace. Times that are a part of the other's are less than 1 where it is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Mean wait, as a part of the other's; `None` if the other's is 0 alone.
    pub wait_times: Option<f64>,
    /// Mean bounded slowdown, as a part of the other's; `None` if the other's is 0 alone.
    pub bounded_slowdown_times: Option<f64>,
    /// Gain in utilisation from the first submission to the last end, in percentage points.
    pub used_points: f64,
    /// Gain in utilisation while jobs arrive, in percentage points.
    pub used_loaded_points: f64,
    /// Gain in the share of deadlines that are kept, in percentage points.
    pub deadlines_kept_points: f64,
}

impl Gain {
    fn of(this: &Metrics, other: &Metrics) -> Self {
        let times = |of: f64, by: f64| match (of, by) {
            (of, by) if of == by => Some(1.0),
            (_, 0.0) => None,
            (of, by) => Some(of / by),
        };
        let kept = |of: &Metrics| of.deadlines_kept as f64 / of.deadlines.max(1) as f64;
        let points = |of: fn(&Metrics) -> f64| 100.0 * (of(this) - of(other));
        Self {
            wait_times: times(this.wait_s.mean, other.wait_s.mean),
            bounded_slowdown_times: times(this.bounded_slowdown.mean, other.bounded_slowdown.mean),
            used_points: points(|of| of.utilisation),
            used_loaded_points: points(|of| of.utilisation_loaded),
            deadlines_kept_points: 100.0 * (kept(this) - kept(other)),
        }
    }
}

/// Computes the gains of each comparison's last policy over the other policies. All comparisons
/// have the same policies.
pub fn against(comparisons: &[Comparison]) -> Vec<Against> {
    let last = |of: &Comparison| of.policies.last().cloned();
    let Some(policy) = comparisons.first().and_then(last) else {
        return Vec::new();
    };
    let named = |of: &Comparison, name: &str| -> Option<Compared> {
        of.policies.iter().find(|of| of.policy == name).cloned()
    };
    let others = comparisons.first().map_or(&[][..], |of| &of.policies);
    let others = others.iter().filter(|other| other.policy != policy.policy);
    let all = others.map(|other| Against {
        policy: policy.policy.clone(),
        against: other.policy.clone(),
        gains: comparisons
            .iter()
            .filter_map(|of| {
                let (this, other) = (named(of, &policy.policy)?, named(of, &other.policy)?);
                Some(Gain::of(&this.metrics, &other.metrics))
            })
            .collect(),
    });
    all.collect()
}

/// A table: a row for each trace.
pub fn against_text(all: &[Against], format: Format) -> String {
    let titles = [
        "policy",
        "against",
        "wait, times",
        "bounded slowdown, times",
        "used, points",
        "used while jobs come, points",
        "deadlines kept, points",
    ];
    let mut table = Table::new(&titles, 2);
    for of in all {
        let times = |of: Option<f64>| of.map_or("-".into(), |times| format!("{times:.3}"));
        for gain in &of.gains {
            table.push(vec![
                of.policy.clone(),
                of.against.clone(),
                times(gain.wait_times),
                times(gain.bounded_slowdown_times),
                format!("{:+.1}", gain.used_points),
                format!("{:+.1}", gain.used_loaded_points),
                format!("{:+.1}", gain.deadlines_kept_points),
            ]);
        }
    }
    table.print(format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay, Easy, Fcfs, Policy, TraceJob};

    #[test]
    fn gains_worked_by_hand() {
        // The second waits for the first with both; the third goes before it with EASY.
        let mut jobs = [
            TraceJob::new(0, 100, 100, 2),
            TraceJob::new(0, 100, 100, 4),
            TraceJob::new(0, 100, 100, 2),
        ];
        jobs[2].deadline_s = Some(150);
        let mut comparison = Comparison::new("", &jobs, 4);
        let (mut fcfs, mut easy) = (Fcfs::new(4), Easy::new(4));
        let all: [&mut dyn Policy; 2] = [&mut fcfs, &mut easy];
        for policy in all {
            let outcomes = replay(&jobs, policy, |_| ()).unwrap();
            comparison.push(policy.name(), &jobs, &outcomes);
        }
        let found = against(&[comparison.clone(), comparison]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].against.as_str(), found[0].gains.len()), ("FCFS", 2));
        let gain = found[0].gains[0];
        assert!((gain.wait_times.unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert!((gain.bounded_slowdown_times.unwrap() - 4.0 / 6.0).abs() < 1e-9);
        // 800 core seconds in 200 s instead of 300 s.
        assert!((gain.used_points - 100.0 * (1.0 - 8.0 / 12.0)).abs() < 1e-9);
        assert_eq!(gain.deadlines_kept_points, 100.0);
        assert!(against_text(&found, Format::Text).contains("+100.0"));
        assert!(against(&[]).is_empty());
    }
}
