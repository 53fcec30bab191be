// SPDX-License-Identifier: GPL-2.0
//! A claim beside what comes out.

use serde::Serialize;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It comes out as printed.
    Holds,
    /// It comes out otherwise.
    Off,
    /// The thesis gives no figure, or left it open: this is ours.
    Ours,
}

/// A claim of the thesis, as printed and as recomputed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What is claimed.
    pub claim: String,
    /// Where.
    pub section: &'static str,
    /// As printed; empty if no figure is.
    pub published: String,
    /// As it comes out.
    pub recomputed: String,
    /// What became of it.
    pub verdict: Verdict,
    /// How it was recomputed, or what is wrong.
    pub remark: String,
}

impl Row {
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
            claim: claim.to_owned(),
            section,
            published: with_unit(printed),
            recomputed: with_unit(&format!("{value:.decimals$}")),
            verdict: if as_printed.is_some() {
                Verdict::Holds
            } else {
                Verdict::Off
            },
            remark,
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
            claim: claim.to_owned(),
            section,
            published: published.to_owned(),
            recomputed,
            verdict: if holds { Verdict::Holds } else { Verdict::Off },
            remark: remark.to_owned(),
        }
    }

    /// A figure of ours where the thesis has none.
    pub(crate) fn ours(claim: &str, section: &'static str, found: String, remark: &str) -> Self {
        Self {
            claim: claim.to_owned(),
            section,
            published: String::new(),
            recomputed: found,
            verdict: Verdict::Ours,
            remark: remark.to_owned(),
        }
    }
}

/// How a printed figure came from its value.
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
    printed
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len())
}
