// SPDX-License-Identifier: GPL-2.0
//! The planner's rows, from what its benchmarks leave behind.
//!
//! Every benchmark that was run becomes a row: with a throughput the elements in a
//! second, else the time that it takes. So does every figure of `benches/figures.rs`,
//! which tells what is no time. To give one a target, name it in [`TARGETS`].

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{figures, json, rst, table, Bound, Measurement};

/// Target of a row, and its words for people.
struct RowTarget {
    /// Criterion's, GROUP/FUNCTION, or that of a figure.
    name: &'static str,
    bound: Option<Bound>,
    what: &'static str,
}

const fn known(name: &'static str, bound: Option<Bound>, what: &'static str) -> RowTarget {
    RowTarget { name, bound, what }
}

const TARGETS: &[RowTarget] = &[
    known(
        "family-job/makespan",
        Some(Bound::AtMost(20.0)),
        "three processes on two nodes; the optimum: 20",
    ),
    known("family-job/late", Some(Bound::AtMost(0.0)), "its end after its deadline"),
    known(
        "family-job/memory-over",
        Some(Bound::AtMost(0.0)),
        "memory in use beyond what there is, the greatest",
    ),
    known(
        "planner/large-net",
        Some(Bound::AtMost(1000.0)),
        "30,000 tasks, 800 processes, 64 x 16 cores, all strategies",
    ),
    known(
        "planner/large-net-memory",
        Some(Bound::AtMost(200.0)),
        "the peak of a process that does that",
    ),
    known("planner/replan", Some(Bound::AtMost(20.0)), "10,000 open tasks planned anew"),
    known(
        "planner/admission",
        Some(Bound::AtLeast(2000.0)),
        "jobs validated and planned beside 15,000, the first plan",
    ),
    known(
        "planner/admission-best",
        Some(Bound::AtLeast(2000.0)),
        "the same, the best plan of all strategies",
    ),
    known(
        "quality/optimal",
        Some(Bound::AtLeast(70.0)),
        "small nets whose plan is the best that there is",
    ),
    known(
        "quality/p90",
        Some(Bound::AtMost(1.04)),
        "the end of plans by that of the best: nine of ten",
    ),
    known("quality/worst", Some(Bound::AtMost(1.2)), "the same, the worst"),
    known(
        "quality/admitted-100",
        Some(Bound::AtLeast(65.0)),
        "small nets admitted by the end of the best plan",
    ),
    known("quality/admitted-105", Some(Bound::AtLeast(90.0)), "the same, in 1.05 times the time"),
    known("quality/admitted-120", Some(Bound::AtLeast(99.0)), "the same, in 1.2 times the time"),
    known("quality/invalid", Some(Bound::AtMost(0.0)), "plans that break a rule, or beat the best"),
    known(
        "quality/unplanned",
        Some(Bound::AtMost(0.0)),
        "small nets that get no plan, without a deadline",
    ),
    known(
        "quality/told-and-declined",
        Some(Bound::AtMost(0.0)),
        "deadlines that were told and then declined",
    ),
    known(
        "quality/told-worst",
        Some(Bound::AtMost(1.0)),
        "deadlines told by the end of the best plan found",
    ),
    known(
        "quality/time-worst",
        Some(Bound::AtMost(20.0)),
        "planning a net of 14 processes, all strategies",
    ),
    known(
        "shapes/fan-400-of-1-gib/plan",
        Some(Bound::AtMost(1.0)),
        "400 processes of 1 GiB that wait for one, 16 cores, 256 GiB",
    ),
    known(
        "shapes/fan-1000-begun-of-many-sizes/plan",
        Some(Bound::AtMost(1.0)),
        "1,000 processes that wait for memory",
    ),
    known(
        "shapes/fan-1000-begun-of-many-sizes/earliest",
        Some(Bound::AtMost(1.0)),
        "the earliest deadline of these",
    ),
    known(
        "shapes/800-alone-of-512-mib/declined",
        Some(Bound::AtMost(1.0)),
        "800 processes that wait for nothing, with the demand test",
    ),
    known("quality/nets", None, "small nets whose best plan is proven"),
    known("quality/told-p90", None, "as told-worst, of nine of ten"),
    known("quality/refused-100", None, "refused by the validation, although there is a plan"),
    known(
        "profile/replay",
        Some(Bound::AtLeast(100_000.0)),
        "rigid jobs placed at submit, earliest fit, synthetic",
    ),
    known(
        "profile/replay-with-ends",
        None,
        "the same; what an estimate was too long is given back",
    ),
    known(
        "profile/first-fit",
        Some(Bound::AtLeast(20_000.0)),
        "found, booked and revoked beside 1,000,000 reservations",
    ),
    known(
        "profile/first-fit-packed",
        None,
        "the same beside 10,000 planned at once, the worst case",
    ),
    known("profile/find-first-hole/1000000", None, "the search alone, in so many steps"),
    known(
        "profile/small/find-first-hole-of-two",
        None,
        "a core and its node's memory, 40 steps each",
    ),
];

/// Benchmarks that are told in milliseconds, as others in nanoseconds.
const IN_MS: &[&str] = &["planner/large-net", "planner/replan"];

/// Content of criterion's benchmark.json.
#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    throughput: Option<Throughput>,
}

#[derive(Deserialize)]
struct Throughput {
    #[serde(rename = "Elements")]
    elements: Option<u64>,
}

/// Content of criterion's estimates.json, in nanoseconds.
#[derive(Deserialize)]
struct Estimates {
    mean: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

/// A row with its target and words.
fn row(name: &str, value: f64, unit: &str) -> Measurement {
    let known = TARGETS.iter().find(|known| known.name == name);
    let (bound, what) = known.map_or((None, ""), |known| (known.bound, known.what));
    Measurement::new(name.into(), value, unit, bound, what)
}

/// The row of one benchmark.
fn row_of(benchmark: &Benchmark, estimates: &Estimates) -> Measurement {
    let name = &benchmark.full_id;
    let took_ns = estimates.mean.point_estimate;
    match benchmark.throughput.as_ref().and_then(|of| of.elements) {
        Some(elements) => row(name, elements as f64 * 1e9 / took_ns, "per second"),
        None if IN_MS.contains(&name.as_str()) => row(name, took_ns / 1e6, "ms"),
        None => row(name, took_ns, "ns"),
    }
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, String> {
    let error = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|e| error(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| error(e.to_string()))
}

/// The rows of all benchmarks below a folder, where criterion has a folder `new`
/// for each.
fn collect(folder: &Path, rows: &mut Vec<Measurement>) -> Result<(), String> {
    let error = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if !path.is_dir() {
            continue;
        }
        let benchmark = path.join("benchmark.json");
        if path.ends_with("new") && benchmark.exists() {
            let estimates = read(&path.join("estimates.json"))?;
            rows.push(row_of(&read(&benchmark)?, &estimates));
        } else {
            collect(&path, rows)?;
        }
    }
    Ok(())
}

/// Place of a row: rows with a target come first, in the order of [`TARGETS`].
fn place(row: &Measurement) -> (usize, String) {
    let known = TARGETS.iter().position(|known| known.name == row.name);
    let place = known.filter(|_| row.target.is_some());
    (place.unwrap_or(TARGETS.len()), row.name.clone())
}

/// `pbs-bench planner FOLDER`: makes `planner.json` and `planner.rst` of what was
/// measured, criterion's output and `figures.jsonl` in `criterion` there, and prints
/// the table.
pub fn planner(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let (Some(folder), None) = (words.next(), words.next()) else {
        return Err("planner wants the folder of what was measured".into());
    };
    let folder = Path::new(&folder);
    let mut rows = Vec::new();
    let measured = folder.join("criterion");
    collect(&measured, &mut rows)?;
    let told = measured.join("figures.jsonl");
    if told.exists() {
        let text = fs::read_to_string(&told).map_err(|e| format!("{}: {e}", told.display()))?;
        let told = figures(&text)?.into_values();
        rows.extend(told.map(|figure| row(&figure.name, figure.value, &figure.unit)));
    }
    rows.sort_by_cached_key(place);
    for (name, text) in [("planner.json", json(&rows)?), ("planner.rst", rst(&rows))] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    print!("{}", table(&rows));
    let names = TARGETS.iter().map(|known| known.name);
    let missing: Vec<_> = names.filter(|name| rows.iter().all(|row| row.name != *name)).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("not measured: {}", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benched(id: &str, throughput: &str, mean_ns: f64) -> Measurement {
        let benchmark = format!(r#"{{"full_id": "{id}", "throughput": {throughput}}}"#);
        let estimates = format!(r#"{{"mean": {{"point_estimate": {mean_ns}}}}}"#);
        row_of(
            &serde_json::from_str(&benchmark).unwrap(),
            &serde_json::from_str(&estimates).unwrap(),
        )
    }

    #[test]
    fn throughput_is_told_in_a_second() {
        let replay = benched("profile/replay", r#"{"Elements": 28000}"#, 140e6);
        assert_eq!((replay.value, replay.met), (200_000.0, Some(true)));
        let slow = benched("profile/replay", r#"{"Elements": 28000}"#, 560e6);
        assert_eq!((slow.value, slow.met), (50_000.0, Some(false)));
        assert_eq!(slow.target, Some(100_000.0));
    }

    #[test]
    fn other_benchmarks_are_rows_as_well() {
        let other = benched("some/other", "null", 12.5);
        assert_eq!((other.value, other.unit.as_str()), (12.5, "ns"));
        assert_eq!((other.target, other.met), (None, None));
        let bytes = benched("some/bytes", r#"{"Bytes": 5}"#, 12.5);
        assert_eq!(bytes.unit, "ns");
    }

    #[test]
    fn long_ones_are_told_in_milliseconds() {
        let replan = benched("planner/replan", "null", 19e6);
        assert_eq!((replan.value, replan.unit.as_str()), (19.0, "ms"));
        assert_eq!((replan.target, replan.met), (Some(20.0), Some(true)));
        assert_eq!(benched("planner/replan", "null", 21e6).met, Some(false));
        let is_known = |name: &&str| TARGETS.iter().any(|known| known.name == *name);
        assert!(IN_MS.iter().all(is_known));
    }

    #[test]
    fn figures_are_rows_with_targets() {
        let makespan = row("family-job/makespan", 21.0, "time units");
        assert_eq!((makespan.target, makespan.met), (Some(20.0), Some(false)));
    }

    #[test]
    fn rows_with_targets_are_first() {
        let plain = benched("a", "null", 1.0);
        let target = benched("profile/first-fit", "null", 1.0);
        assert!(place(&target) < place(&plain));
    }
}
