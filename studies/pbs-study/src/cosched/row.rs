// SPDX-License-Identifier: GPL-2.0
//! A claim beside what comes out.

use std::collections::BTreeMap;

use serde::Serialize;

/// Result of the recomputation of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds as printed.
    Holds,
    /// The recomputation differs from the claim.
    Off,
    /// The thesis gives no figure, or left it open: this is ours.
    Ours,
}

/// A claim of the thesis, as printed and as recomputed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedClaim {
    /// The first section and the words of the claim, in small letters with hyphens: no two rows
    /// have the same.
    pub id: String,
    /// The claim.
    pub claim: String,
    /// Section of the claim.
    pub section: &'static str,
    /// The figure as printed; empty if there is none.
    pub published: String,
    /// The recomputed figure.
    pub recomputed: String,
    /// Result of the comparison.
    pub verdict: Verdict,
    /// Method of the recomputation, or the deviation.
    pub remark: String,
    /// The numbers of what comes out; `value` where there is one alone, in the unit of what was
    /// published.
    pub figures: BTreeMap<&'static str, f64>,
}

impl ComparedClaim {
    /// A figure as printed, with its unit, and its value.  It holds if the value, rounded to as
    /// many decimals or cut off there, is the same.
    pub(crate) fn figure(
        claim: &str,
        section: &'static str,
        (printed, unit): (&str, &str),
        value: f64,
        remark: &str,
    ) -> Self {
        let as_printed = as_printed(printed, value);
        let decimals = decimals(printed);
        let with_unit = |number: &str| format!("{number} {unit}").trim_end().to_owned();
        let mut remark = remark.to_owned();
        if as_printed == Some(Printed::CutOff) {
            remark = format!("{remark}; printed cut off, not rounded");
        }
        Self {
            id: id(section, claim),
            claim: claim.to_owned(),
            section,
            published: with_unit(printed),
            recomputed: with_unit(&format!("{value:.decimals$}")),
            verdict: if as_printed.is_some() { Verdict::Holds } else { Verdict::Off },
            remark,
            figures: BTreeMap::from([("value", value)]),
        }
    }

    /// A statement, what comes out, and whether it holds.
    pub(crate) fn statement(
        claim: &str,
        section: &'static str,
        published: &str,
        recomputed: String,
        holds: bool,
        remark: &str,
    ) -> Self {
        Self {
            id: id(section, claim),
            claim: claim.to_owned(),
            section,
            published: published.to_owned(),
            recomputed,
            verdict: if holds { Verdict::Holds } else { Verdict::Off },
            remark: remark.to_owned(),
            figures: BTreeMap::new(),
        }
    }

    /// A figure of ours where the thesis has none.
    pub(crate) fn ours(claim: &str, section: &'static str, found: String, remark: &str) -> Self {
        Self {
            id: id(section, claim),
            claim: claim.to_owned(),
            section,
            published: String::new(),
            recomputed: found,
            verdict: Verdict::Ours,
            remark: remark.to_owned(),
            figures: BTreeMap::new(),
        }
    }

    /// Adds a number of the result.
    pub(crate) fn with(mut self, name: &'static str, value: f64) -> Self {
        self.figures.insert(name, value);
        self
    }
}

fn id(section: &str, claim: &str) -> String {
    let first = section.split(',').next().unwrap_or_default();
    let text = format!("{first} {claim}").to_lowercase();
    let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '.'));
    parts
        .map(|part| part.trim_end_matches('.'))
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

/// Way from a value to its printed figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    Rounded,
    CutOff,
}

/// Whether a value could be printed so.
pub(crate) fn as_printed(printed: &str, value: f64) -> Option<Printed> {
    let decimals = decimals(printed);
    let plain = printed.replace(',', "");
    let last = 10_f64.powi(decimals as i32);
    // What is a hair below a round figure for want of precision is that figure.
    let cut_off = (value * last + 1e-6).floor() / last;
    if format!("{value:.decimals$}") == plain {
        Some(Printed::Rounded)
    } else if format!("{cut_off:.decimals$}") == plain {
        Some(Printed::CutOff)
    } else {
        None
    }
}

fn decimals(printed: &str) -> usize {
    printed.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}
