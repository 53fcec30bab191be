// SPDX-License-Identifier: GPL-2.0
//! What a benchmark of the cluster measures, row by row: as text, or with `--json` as lines of
//! `{name, value, unit, target, met, what}`, which `scripts/bench-cluster` puts together.
//! Benchmarks take it in by its path: for a crate it is too little.

use std::io::Write;

/// What a row is meant to reach.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // Not every benchmark has both.
pub(crate) enum Bar {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// It stands beside another row.
    None,
}

/// How rows are told, and which of them are wanted.
pub(crate) struct Rows {
    is_json: bool,
    wanted: Vec<String>,
}

impl Rows {
    /// By the command line: `--json`, and names of parts; without any, all parts. `None` where
    /// cargo only wants to know that it can be called.
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

    /// Tells a row as soon as it is known: some take long.
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
