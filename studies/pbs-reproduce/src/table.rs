// SPDX-License-Identifier: GPL-2.0
//! The table.

use std::collections::BTreeMap;

use pbs_text::{Format, Table};

use crate::{Measured, Reproduction, TriedClaim};

/// All claims, a line each.
pub fn table(reproduction: &Reproduction) -> String {
    let mut table = Table::new(&["claim", "published", "measured", "verdict"], 4);
    for row in &reproduction.claims {
        table.push(vec![
            row.id.clone(),
            published(row),
            measured(row),
            cut(&row.verdict.to_string(), 72),
        ]);
    }
    table.print(Format::Text)
}

/// Number of claims of each verdict, in a line.
pub fn summary(reproduction: &Reproduction) -> String {
    const ORDER: [&str; 9] = [
        "reproduced",
        "within",
        "better",
        "consistent by construction",
        "undecided",
        "refuted",
        "can't be tried",
        "not tried",
        "failed",
    ];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &reproduction.claims {
        *counts.entry(row.verdict.name()).or_default() += 1;
    }
    let of = |name: &&str| {
        let words = match *name {
            "within" => "reproduced within a tolerance",
            "better" => "better than reported",
            name => name,
        };
        Some(format!("{} {words}", counts.get(name)?))
    };
    let parts: Vec<_> = ORDER.iter().filter_map(of).collect();
    format!("{} claims: {}", reproduction.claims.len(), parts.join(", "))
}

/// The figure that a line has room for: one that is not as claimed, or else the first that
/// decides.
fn told(row: &TriedClaim) -> Option<&Measured> {
    let wrong = row.figures.iter().find(|figure| figure.holds == Some(false));
    wrong.or_else(|| row.figures.iter().find(|figure| figure.holds.is_some()))
}

fn published(row: &TriedClaim) -> String {
    told(row).map_or_else(String::new, |figure| {
        let (_, published) = figure.words();
        cut(&published.or(figure.bound.clone()).unwrap_or_default(), 28)
    })
}

fn measured(row: &TriedClaim) -> String {
    told(row).map_or_else(String::new, |figure| {
        let unit = figure.unit.as_deref().unwrap_or_default();
        cut(format!("{} {unit}", figure.words().0).trim_end(), 24)
    })
}

/// Cuts a text to a width; a longer text ends in dots.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => {
            let kept: String = text.chars().take(most - 1).collect();
            format!("{}…", kept.trim_end())
        }
        None => text.into(),
    }
}
