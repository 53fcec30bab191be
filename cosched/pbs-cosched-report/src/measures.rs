// SPDX-License-Identifier: GPL-2.0
//! Measures of schedules, side by side.

use pbs_cosched::{measure, speed_up, Platform, Timeline, Workload};
use pbs_text::{ms, Format, Table};
use serde::Serialize;

use crate::Names;

/// Measures of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// From the first arrival to the last end.
    pub makespan_ns: u64,
    /// Turnaround of each process.
    pub turnarounds: Vec<Turnaround>,
    /// The sum of them.
    pub turnarounds_ns: u64,
    /// Δ: between the longest and the shortest (§6.4.2).
    pub delta_ns: u64,
    /// Processes that end after their deadline.
    pub misses: u64,
    /// The part of all threads' and accelerators' time that is used (§2.5.1), up to 1.
    pub load: f64,
    /// Used part of the devices' time with the CPU as one device, which is busy if any thread is.
    pub load_monolithic: f64,
}

/// Turnaround of a process, from its arrival to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turnaround {
    /// Name of the process.
    pub process: String,
    /// Turnaround time.
    pub turnaround_ns: Option<u64>,
    /// End of the process.
    pub end_ns: Option<u64>,
    /// Deadline, in nanoseconds from the submission of all, as `end_ns`.
    pub deadline_ns: Option<u64>,
    /// Whether the process ends after its deadline.
    pub misses: bool,
}

/// Figures without co-scheduling and with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WithAndWithout {
    /// Without.
    pub without: Measured,
    /// With, even if that was not taken.
    pub with: Measured,
    /// The makespan without over that with.
    pub speed_up: f64,
}

impl WithAndWithout {
    pub(crate) fn new(
        workload: &Workload,
        platform: &Platform,
        names: &Names,
        without: &Timeline,
        with: &Timeline,
    ) -> Self {
        let of = |timeline: &Timeline| measure(workload, platform, timeline);
        let speed_up = speed_up(&of(without), &of(with));
        Self {
            without: Measured::new(workload, platform, names, without),
            with: Measured::new(workload, platform, names, with),
            // Of nothing it is no number.
            speed_up: if speed_up.is_finite() { speed_up } else { 1.0 },
        }
    }

    /// A line for each measure; `title`: that of the column of the other schedule.
    pub(crate) fn text(&self, title: &str) -> String {
        self.table(title).print(Format::Text)
    }

    /// A row for each measure.
    pub(crate) fn table(&self, title: &str) -> Table {
        let (without, with) = (&self.without, &self.with);
        let row = |what: &str, one: String, other: String| vec![what.to_string(), one, other];
        let mut rows = Vec::new();
        let times = |what: &str, one: u64, other: u64| row(what, ms(one), ms(other));
        rows.push(times("makespan, ms", without.makespan_ns, with.makespan_ns));
        for (one, other) in without.turnarounds.iter().zip(&with.turnarounds) {
            rows.push(row(&format!("turnaround of {}, ms", one.process), one.text(), other.text()));
            let deadline_ns = one.deadline_ns.filter(|_| one.misses || other.misses);
            if let Some(deadline_ns) = deadline_ns {
                rows.push(row(
                    &format!("end of {}, deadline {}, ms", one.process, ms(deadline_ns)),
                    one.end_text(),
                    other.end_text(),
                ));
            }
        }
        if without.turnarounds.len() > 1 {
            let sums = (without.turnarounds_ns, with.turnarounds_ns);
            rows.push(times("sum of turnarounds, ms", sums.0, sums.1));
            rows.push(times("their Δ, ms", without.delta_ns, with.delta_ns));
        }
        let loads = |what: &str, one: f64, other: f64| row(what, percent(one), percent(other));
        rows.push(loads("load, threads and accelerators", without.load, with.load));
        rows.push(loads(
            "load, the CPU as one device",
            without.load_monolithic,
            with.load_monolithic,
        ));
        let mut table = Table::new(&["", "NOT CO-SCHEDULED", title], 1);
        rows.into_iter().for_each(|row| table.push(row));
        table
    }
}

impl Measured {
    pub(crate) fn new(
        workload: &Workload,
        platform: &Platform,
        names: &Names,
        timeline: &Timeline,
    ) -> Self {
        let measures = measure(workload, platform, timeline);
        let processes = workload.processes.iter().enumerate();
        let turnarounds = processes.map(|(index, process)| {
            let turnaround_ns = measures.turnarounds_ns.get(index).copied().flatten();
            let end_ns = turnaround_ns.map(|ns| ns.saturating_add(process.arrival_ns));
            let is_late = |deadline_ns: u64| end_ns.is_some_and(|end_ns| end_ns > deadline_ns);
            Turnaround {
                process: names.processes[index].clone(),
                turnaround_ns,
                end_ns,
                deadline_ns: process.deadline_ns,
                misses: process.deadline_ns.is_some_and(is_late),
            }
        });
        Self {
            makespan_ns: measures.score.makespan_ns,
            turnarounds: turnarounds.collect(),
            turnarounds_ns: measures.score.turnarounds_ns,
            delta_ns: measures.delta_ns,
            misses: measures.score.misses,
            load: measures.load,
            load_monolithic: measures.load_monolithic,
        }
    }
}

impl Turnaround {
    fn text(&self) -> String {
        self.turnaround_ns.map_or_else(|| "-".into(), ms)
    }

    /// Formats the end. A deadline does not count from the arrival, as the turnaround does.
    fn end_text(&self) -> String {
        let late = if self.misses { "late " } else { "" };
        self.end_ns.map_or_else(|| "-".into(), |ns| format!("{late}{}", ms(ns)))
    }
}

/// A part of 1 as `93.98 %`.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

/// The title of the column of what is done.
pub(crate) const CO_SCHEDULED: &str = "CO-SCHEDULED";

/// A speed-up as `26.4 % faster`.
pub(crate) fn faster(speed_up: f64) -> String {
    let percent = (speed_up - 1.0) * 100.0;
    match percent {
        percent if percent.abs() < 0.05 => "as fast".into(),
        percent if percent > 0.0 => format!("{percent:.1} % faster"),
        percent => format!("{:.1} % slower", -percent),
    }
}
