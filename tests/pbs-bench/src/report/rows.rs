// SPDX-License-Identifier: GPL-2.0
//! Rows of the report, and their targets.

use super::{Boots, Bound, Measurement};

/// The boots that values come from; `scripts/bench` names its files so.
const MAIN: &str = "main";
const CLOCK: &str = "clock";
const DEBUG: &str = "debug";
const WITH: &str = "with";
const WITHOUT: &str = "without";

/// Makes rows, and notes what is missing for them.
struct Maker<'a> {
    boots: &'a Boots,
    rows: Vec<Measurement>,
    missing: Vec<String>,
}

impl Maker<'_> {
    fn row(&mut self, name: &str, value: f64, unit: &str, target: Option<f64>, what: &'static str) {
        let bound = target.map(Bound::AtMost);
        self.rows.push(Measurement::new(name.into(), value, unit, bound, what));
    }

    fn value(&mut self, boot: &str, name: &str) -> Option<f64> {
        let found = self.boots.figure(boot, name).map(|figure| figure.value);
        if found.is_none() {
            self.missing.push(format!("{name} ({boot})"));
        }
        found
    }

    /// A value as it was measured.
    fn plain(
        &mut self,
        boot: &str,
        figure: &str,
        name: &str,
        target: Option<f64>,
        what: &'static str,
    ) {
        if let (Some(value), Some(known)) =
            (self.value(boot, figure), self.boots.figure(boot, figure))
        {
            self.row(name, value, &known.unit.clone(), target, what);
        }
    }

    /// One value by another, both of the main boot.
    fn ratio(
        &mut self,
        name: &str,
        (of, by): (&str, &str),
        target: Option<f64>,
        what: &'static str,
    ) {
        if let (Some(of), Some(by)) = (self.value(MAIN, of), self.value(MAIN, by)) {
            self.row(name, of / by, "x", target, what);
        }
    }

    /// Adds the overhead of the kernel with the class over the one without. With `target` `None` it
    /// should be no more than the difference between boots.
    fn overhead(&mut self, figure: &str, name: &str, target: Option<f64>, what: &'static str) {
        let with = self.boots.repeated(WITH, figure);
        let without = self.boots.repeated(WITHOUT, figure);
        if with.is_empty() || without.is_empty() {
            self.missing.push(format!("{figure} ({WITH}, {WITHOUT})"));
            return;
        }
        let spread = spread_percent(&without).max(spread_percent(&with));
        let percent = (mean(&with) / mean(&without) - 1.0) * 100.0;
        self.row(name, percent, "percent", Some(target.unwrap_or(spread)), what);
        let spread_name = format!("{name}-spread");
        self.row(&spread_name, spread, "percent", None, "greatest less least of repeated boots");
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Between the greatest and the least, in percent of the mean.
fn spread_percent(values: &[f64]) -> f64 {
    let greatest = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    (greatest - least) / mean(values) * 100.0
}

/// The rows, and what was not measured that they need.
pub fn of(boots: &Boots) -> (Vec<Measurement>, Vec<String>) {
    let mut m = Maker { boots, rows: Vec::new(), missing: Vec::new() };
    m.plain(MAIN, "accounting", "accounting-pmu", Some(0.01), "greatest error of a task, PMU");
    m.plain(CLOCK, "accounting", "accounting-clock", Some(1.0), "the same without a PMU");
    m.plain(MAIN, "overshoot-p99", "overshoot-p99", Some(700.0), "beyond t1, of 1,000 preemptions");
    m.plain(MAIN, "overshoot-p50", "overshoot-p50", Some(75.0), "median");
    m.plain(MAIN, "overshoot-max", "overshoot-max", Some(1300.0), "greatest");
    let watched = "the same on the kernel of DEBUG=1";
    m.plain(DEBUG, "overshoot-p99", "overshoot-p99-debug", Some(60_000.0), watched);
    timer(&mut m);

    let by_fifo = "round trip of plan processes by that of SCHED_FIFO";
    m.ratio("pipe-by-fifo", ("pipe-pbs", "pipe-fifo"), Some(1.05), by_fifo);
    let in_slot = "the same, inside the slot of one of them";
    m.ratio("pipe-slot-by-fifo", ("pipe-pbs-slot", "pipe-fifo"), Some(1.25), in_slot);
    m.plain(MAIN, "pipe-pbs", "pipe-pbs", None, "pipe round trip, plan processes after the plan");
    m.plain(MAIN, "pipe-pbs-slot", "pipe-pbs-slot", None, "in the slot of one of them");
    m.plain(MAIN, "pipe-fifo", "pipe-fifo", None, "SCHED_FIFO");
    m.plain(MAIN, "pipe-other", "pipe-other", None, "SCHED_OTHER (EEVDF)");
    m.plain(MAIN, "pipe-deadline", "pipe-deadline", None, "SCHED_DEADLINE");

    let by_yield = "end of a task and switch by a switch of yielding FIFO threads";
    m.ratio("task-end-by-yield", ("task-end", "yield-fifo-threads"), Some(2.2), by_yield);
    m.plain(
        MAIN,
        "task-end",
        "task-end",
        None,
        "end of a task, its process parks, the next one runs",
    );
    m.plain(MAIN, "task-end-near", "task-end-near", None, "the same just before the task is late");
    m.plain(
        MAIN,
        "task-end-net",
        "task-end-net",
        None,
        "the same where each task waits for the one before",
    );
    m.plain(
        MAIN,
        "task-end-by-deadline",
        "task-end-by-deadline",
        None,
        "the same where processes run by deadline",
    );
    m.ratio(
        "task-end-by-dispatch",
        ("task-end-by-deadline", "task-end"),
        Some(1.05),
        "a task's end by deadline by one in the order of slots",
    );
    m.ratio(
        "preemption-by-dispatch",
        ("preemption-by-deadline", "preemption"),
        Some(1.05),
        "a preemption by deadline by one in the order of slots",
    );
    m.plain(
        MAIN,
        "task-end-recorded",
        "task-end-recorded",
        None,
        "the same while somebody records what the policy is told",
    );
    m.ratio(
        "recorded-by-task-end",
        ("task-end-recorded", "task-end"),
        Some(1.05),
        "a task's end that is recorded by one that is not",
    );
    m.ratio(
        "recorded-by-preemption",
        ("preemption-recorded", "preemption"),
        Some(1.05),
        "a preemption that is recorded by one that is not",
    );
    m.plain(
        MAIN,
        "task-end-same",
        "task-end-same",
        Some(1200.0),
        "the same where the process goes on: no switch",
    );
    m.plain(MAIN, "preemption", "preemption", Some(4000.0), "t1 instead of the task's end");
    m.plain(
        MAIN,
        "preemption-by-deadline",
        "preemption-by-deadline",
        None,
        "the same where processes run by deadline",
    );
    m.plain(
        MAIN,
        "yield-fifo-threads",
        "yield-fifo-threads",
        None,
        "sched_yield and switch, threads",
    );
    m.plain(MAIN, "yield-fifo", "yield-fifo", None, "between processes");
    m.plain(MAIN, "yield-other", "yield-other", None, "between processes of SCHED_OTHER");

    decision(&mut m);

    m.ratio(
        "install-linear",
        ("install-1000000", "install-100000"),
        Some(1.1),
        "a task of 1,000,000 by one of 100,000",
    );
    m.plain(MAIN, "install-1000000", "install", Some(300.0), "of 1,000,000 tasks of 8 processes");
    m.plain(MAIN, "install-1000000-of-1024", "install-of-1024", Some(300.0), "of 1,024 processes");
    m.plain(MAIN, "swap", "swap", Some(50.0), "the CPU is held for a change of such plans at most");
    m.plain(
        MAIN,
        "swap-of-1024",
        "swap-of-1024",
        Some(50.0),
        "of 1,024 processes with a thread each",
    );
    m.plain(
        MAIN,
        "configure-of-1024",
        "configure-of-1024",
        Some(1000.0),
        "another configuration for such a plan, the whole call",
    );
    m.plain(
        MAIN,
        "configure-hold-of-1024",
        "configure-hold-of-1024",
        Some(1000.0),
        "the CPU is held for such a change, or one of plans, at most",
    );
    m.plain(MAIN, "plan-memory", "plan-memory", Some(40.0), "kernel memory, 8 processes");
    m.plain(MAIN, "plan-memory-of-1024", "plan-memory-of-1024", Some(40.0), "1,024 processes");

    m.plain(
        MAIN,
        "event-stream",
        "event-stream",
        Some(600.0),
        "of a stream as dense as can be, its reader with it",
    );
    m.plain(
        MAIN,
        "event-stream-lost",
        "event-stream-lost",
        Some(0.0),
        "that the reader did not get",
    );

    let share = Some(0.1);
    m.overhead(
        "pipe-fifo",
        "without-pipe-fifo",
        share,
        "FIFO round trip, the class built in against not",
    );
    m.overhead("hackbench-fifo", "without-hackbench-fifo", share, "FIFO hackbench");
    m.overhead("pipe-other", "without-pipe-other", None, "OTHER round trip");
    m.overhead("hackbench-other", "without-hackbench-other", None, "OTHER hackbench");
    (m.rows, m.missing)
}

/// Expiries of the class's timer in a slot.
fn timer(m: &mut Maker<'_>) {
    let rows = [
        ("timer-per-slot-p50", Some(1.0), "of the class's timer in a slot that t1 ends, median"),
        ("timer-per-slot-p99", Some(2.0), "of 100 slots in 99"),
        ("timer-slots-0", None, "slots with none"),
        ("timer-slots-1", None, "with one"),
        ("timer-slots-2", None, "with two"),
        ("timer-slots-3", None, "with three"),
        ("timer-slots-more", None, "with more"),
        ("timer-per-run", None, "in such a run that is not traced"),
        ("timer-per-run-traced", None, "in the run of these rows"),
        ("timer-per-task-end", Some(0.01), "in a slot whose task ends far from every threshold"),
    ];
    for (name, target, what) in rows {
        m.plain(MAIN, name, name, target, what);
    }
}

fn decision(m: &mut Maker<'_>) {
    let sizes = ["decision-100", "decision-10000", "decision-1000000"];
    let values: Vec<f64> = sizes.iter().filter_map(|size| m.value(MAIN, size)).collect();
    if values.len() == sizes.len() {
        let what = "median task end and switch: plans of 100 to 1,000,000 tasks";
        m.row("decision-flat", spread_percent(&values), "percent", Some(2.0), what);
    }
    for (size, what) in sizes.iter().zip(["in a plan of 100 tasks", "10,000", "1,000,000"]) {
        m.plain(MAIN, size, size, None, what);
    }
    // A row is missing once.
    m.missing.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_a_share_of_the_mean() {
        assert_eq!(spread_percent(&[100.0, 100.0]), 0.0);
        assert_eq!(spread_percent(&[99.0, 101.0]), 2.0);
    }
}
