// SPDX-License-Identifier: GPL-2.0
//! Results of the cluster's benchmarks, row by row: text, or with `--json` lines of `{name, value,
//! unit, target, met, what}`, which `scripts/bench-cluster` collects. Benchmarks include this file
//! by its path, because it is too small for a crate.

use std::io::Write;

/// Target of a row.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // Not every benchmark has both.
pub(crate) enum Bar {
    /// Minimum.
    AtLeast(f64),
    /// Maximum.
    AtMost(f64),
    /// No target: the row stands beside another row.
    None,
}

/// Output format of rows, and the selected parts.
pub(crate) struct Rows {
    is_json: bool,
    wanted: Vec<String>,
}

impl Rows {
    /// Parses the command line: `--json`, and names of parts; without any name, all parts. Returns
    /// `None` if cargo only checks that the benchmark can run.
    pub(crate) fn from_arguments() -> Option<Self> {
        let mut rows = Self { is_json: false, wanted: Vec::new() };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--test" => return None,
                "--json" => rows.is_json = true,
                // Cargo says so to every benchmark.
                "--bench" => {}
                part => rows.wanted.push(part.into()),
            }
        }
        Some(rows)
    }

    /// Whether a part is measured.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == part)
    }

    /// Prints a row as soon as it is known, because some rows take long.
    pub(crate) fn tell(&self, name: &str, value: f64, unit: &str, bar: Bar, what: &str) {
        let (target, met) = match bar {
            Bar::AtLeast(target) => (Some(target), value >= target),
            Bar::AtMost(target) => (Some(target), value <= target),
            Bar::None => (None, true),
        };
        let line = if self.is_json {
            let (target, met) = match target {
                Some(target) => (target.to_string(), met.to_string()),
                None => ("null".into(), "null".into()),
            };
            // Names, units and words are ours: nothing in them has to be quoted.
            format!(
                r#"{{"name":"{name}","value":{value},"unit":"{unit}","target":{target},"met":{met},"what":"{what}"}}"#
            )
        } else {
            let target = match bar {
                Bar::AtLeast(target) => format!(">= {target}"),
                Bar::AtMost(target) => format!("<= {target}"),
                Bar::None => String::new(),
            };
            format!("{name:<34} {value:>14.3} {unit:<12} {target:<12} {what}")
        };
        let mut out = std::io::stdout().lock();
        // Who has closed the pipe wants no more of it.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
