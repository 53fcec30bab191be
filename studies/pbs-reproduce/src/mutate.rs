// SPDX-License-Identifier: GPL-2.0
//! Mutations of measured figures, and the verdicts that they turn.
//!
//! A verdict that stays when the measured figure is half again as great proves little. A mutation
//! stands for a fault of the code behind a figure: a factor, a comparison the other way round,
//! counting from the wrong end, nothing found. It is applied to the figures that were measured, and
//! the declaration judges them again; no command runs.

use std::fmt;

use pbs_random::Random;
use serde_json::Value;

use crate::result::draws_of;
use crate::verdict::short;
use crate::{judge, Better, Bound, Claim, Claims, Figure, Reproduction, TriedClaim, Verdict};

/// A change of a measured figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The number is multiplied with a factor.
    Times(f64),
    /// One more is counted.
    OneMore,
    /// Zero, or an empty text: the measurement finds nothing.
    Nothing,
    /// A yes is a no, or the other way round.
    Not,
    /// The figure and the one that it is compared with have changed their places.
    Exchanged(String),
    /// A cost half again as great as the document reports, or a yield as small.
    WorseThanReported,
}

/// A change of a figure of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// Name of the figure.
    pub figure: String,
    /// The change.
    pub change: Change,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = &self.figure;
        match &self.change {
            Change::Times(factor) => write!(f, "{figure} times {}", short(*factor)),
            Change::OneMore => write!(f, "{figure} plus one"),
            Change::Nothing => write!(f, "{figure} is nothing"),
            Change::Not => write!(f, "{figure} negated"),
            Change::Exchanged(other) => write!(f, "{figure} exchanged with {other}"),
            Change::WorseThanReported => {
                write!(f, "{figure} worse than reported by a factor of {}", short(FACTOR))
            }
        }
    }
}

/// A claim with a positive verdict, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutated {
    /// Id of the claim.
    pub id: String,
    /// Mutations that turn the verdict, each with the new verdict.
    pub turning: Vec<(Mutation, Verdict)>,
    /// Figures with a claim that no mutation refutes.
    pub firm: Vec<String>,
}

impl Mutated {
    /// Whether a mutation turns the verdict.
    pub fn is_turned(&self) -> bool {
        !self.turning.is_empty()
    }

    /// The mutation that turns the verdict and looks most like a result: finding nothing at all is
    /// noticed most easily.
    fn strongest(&self) -> Option<&(Mutation, Verdict)> {
        let is_result = |(mutation, _): &&(Mutation, Verdict)| mutation.change != Change::Nothing;
        self.turning.iter().find(is_result).or(self.turning.first())
    }

    /// Whether nothing but an empty result turns the verdict.
    fn is_weak(&self) -> bool {
        self.strongest().is_some_and(|(mutation, _)| mutation.change == Change::Nothing)
    }
}

/// Factor of a fault that a verdict has to notice.
const FACTOR: f64 = 1.5;

/// Mutates the figures of all claims with a positive verdict that the results have.
pub fn mutate_all(claims: &Claims, results: &Reproduction) -> Vec<Mutated> {
    let rows = results.claims.iter().filter(|row| is_positive(&row.verdict));
    let of = |row: &TriedClaim| {
        let claim = claims.claims.iter().find(|claim| claim.id == row.id)?;
        Some(mutate(claim, &values(claim, row)?, &draws_of(claim, row)))
    };
    rows.filter_map(of).collect()
}

/// The mutation that turns the verdict of a row, in words; nothing if the verdict is not positive or
/// stays.
pub(crate) fn turned_by(claim: &Claim, row: &TriedClaim) -> Option<String> {
    if !is_positive(&row.verdict) {
        return None;
    }
    let mutated = mutate(claim, &values(claim, row)?, &draws_of(claim, row));
    let words = mutated.strongest()?.0.to_string();
    let fault = claim.mutation.as_ref().map(|mutation| format!(" ({})", mutation.fault));
    Some(words + &fault.unwrap_or_default())
}

/// The measured values of a claim's figures; nothing if one was not measured.
fn values(claim: &Claim, row: &TriedClaim) -> Option<Vec<Value>> {
    let values = claim.figures.iter().map(|figure| {
        let measured = row.figures.iter().find(|measured| measured.name == figure.name);
        measured.map(|measured| measured.measured.clone())
    });
    values.collect()
}

/// A random sample of `number` rows, in their order.
pub fn sample(mut rows: Vec<Mutated>, number: usize, seed: u64) -> Vec<Mutated> {
    let mut random = Random::new(seed);
    while rows.len() > number {
        rows.remove(random.index(rows.len()));
    }
    rows
}

/// Whether a verdict says that a claim holds.
fn is_positive(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Reproduced | Verdict::Within { .. } | Verdict::Better { .. })
}

fn mutate(claim: &Claim, values: &[Value], draws: &[Option<u64>]) -> Mutated {
    let (before, _) = judge(claim, values, draws);
    let mut turning = Vec::new();
    let mut firm = Vec::new();
    for (place, figure) in claim.figures.iter().enumerate() {
        let mut is_firm = true;
        for change in changes(claim, figure, &values[place]) {
            let Some(changed) = changed(claim, values, place, &change) else {
                continue;
            };
            let (verdict, _) = judge(claim, &changed, draws);
            if is_turned(&before, &verdict) {
                is_firm = false;
                turning.push((Mutation { figure: figure.name.clone(), change }, verdict));
            }
        }
        if is_firm && figure.decides() {
            firm.push(figure.name.clone());
        }
    }
    Mutated { id: claim.id.clone(), turning, firm }
}

/// Whether a verdict is another one to who relies on it.
fn is_turned(before: &Verdict, after: &Verdict) -> bool {
    let is_better = |verdict: &Verdict| matches!(verdict, Verdict::Better { .. });
    !is_positive(after) || is_better(before) != is_better(after)
}

/// Changes of a figure; those of the declaration alone if it has some.
fn changes(claim: &Claim, figure: &Figure, value: &Value) -> Vec<Change> {
    if let Some(declared) = &claim.mutation {
        let is_it = declared.figure == figure.name;
        return if is_it { vec![Change::Times(declared.factor)] } else { Vec::new() };
    }
    let mut changes = match value {
        Value::Bool(_) => vec![Change::Not],
        Value::Number(number) if number.as_f64() == Some(0.0) => vec![Change::OneMore],
        Value::Number(_) => {
            vec![Change::Times(FACTOR), Change::Times(1.0 / FACTOR), Change::Nothing]
        }
        _ => vec![Change::Nothing],
    };
    let bounds = figure.bounds().filter_map(|(_, bound)| match bound {
        Bound::Figure(name) => Some(Change::Exchanged(name.clone())),
        Bound::Number(_) => None,
    });
    changes.extend(bounds);
    changes.extend(figure.about.map(|_| Change::WorseThanReported));
    changes
}

/// The values of all figures with one change; nothing if the change does not fit the value.
fn changed(claim: &Claim, values: &[Value], place: usize, change: &Change) -> Option<Vec<Value>> {
    let mut changed = values.to_vec();
    let number = values[place].as_f64();
    changed[place] = match change {
        Change::Times(factor) => Value::from(number? * factor),
        Change::OneMore => Value::from(number? + 1.0),
        Change::Nothing if number.is_some() => Value::from(0),
        Change::Nothing => Value::from(""),
        Change::Not => Value::from(!values[place].as_bool()?),
        Change::Exchanged(other) => {
            let other = claim.figures.iter().position(|figure| figure.name == *other)?;
            changed.swap(place, other);
            changed[place].clone()
        }
        Change::WorseThanReported => {
            let figure = &claim.figures[place];
            match figure.better? {
                Better::Less => Value::from(figure.about? * FACTOR),
                Better::More => Value::from(figure.about? / FACTOR),
            }
        }
    };
    Some(changed)
}

/// A table of rows: the mutation that turns each, the rows that none turns, and the figures that no
/// mutation refutes.
pub fn mutated_text(rows: &[Mutated]) -> String {
    let mut text = String::new();
    for row in rows {
        match row.strongest() {
            Some((mutation, verdict)) => {
                pbs_text::append_line!(text, "{}: {mutation}: {}", row.id, verdict.name());
            }
            None => pbs_text::append_line!(text, "{}: NO MUTATION TURNS IT", row.id),
        }
        if row.is_turned() && !row.firm.is_empty() {
            let firm = row.firm.join(", ");
            pbs_text::append_line!(text, "    no mutation alone refutes: {firm}");
        }
    }
    let turned = rows.iter().filter(|row| row.is_turned()).count();
    let weak = rows.iter().filter(|row| row.is_weak()).count();
    pbs_text::append_line!(
        text,
        "{turned} of {} verdicts turn, {weak} of them only where nothing is found",
        rows.len()
    );
    text
}
