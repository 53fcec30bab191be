// SPDX-License-Identifier: GPL-2.0
//! Results of the claims: the format of `claims.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{judge, Claim, Claims, Verdict};

/// Share by which a figure of virtual time may differ between two machines, whose libraries round
/// differently.
const SAME: f64 = 1e-6;

/// Whether two measured values are the same.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= SAME * one.abs().max(other.abs()),
        _ => one == other,
    }
}

/// A figure, measured.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Measured {
    /// Name of the figure.
    pub name: String,
    /// Unit of the figure.
    pub unit: Option<String>,
    /// The published value.
    pub published: Option<Value>,
    /// Claims about the figure beside that, in words.
    pub bound: Option<String>,
    /// The measured value.
    pub measured: Value,
    /// Whether it is as claimed; `None`: nothing is claimed.
    pub holds: Option<bool>,
    /// Share of the published value by which the figure differs, if that is a number.
    pub differs_by: Option<f64>,
    /// Number of draws of which the figure is a share or a count; `None`: it is none.
    #[serde(default)]
    pub draws: Option<u64>,
    /// Interval of 95 % of the figure over all draws, in its unit.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
}

/// A claim that was tried.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct TriedClaim {
    /// Id of the claim.
    pub id: String,
    /// The document.
    pub document: String,
    /// The section of that.
    pub section: String,
    /// The claim in words.
    pub says: String,
    /// The setup with which the claim was tried.
    pub setup: String,
    /// The command.
    pub command: Option<String>,
    /// The program of jq that its output went through.
    #[serde(default)]
    pub filter: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Figures that led to the verdict.
    pub figures: Vec<Measured>,
    /// A picture, as SVG: its file, in the folder of what commands leave.
    pub picture: Option<String>,
    /// Content of the published picture.
    pub drawn: Option<String>,
    /// A remark.
    pub note: Option<String>,
    /// Time that the command took; claims of one command share it.
    pub took_ms: Option<u64>,
    /// The commit that it was measured at; `None`: it was not tried, or before commits were
    /// recorded.
    #[serde(default)]
    pub commit: Option<String>,
}

/// All claims that were tried.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Reproduction {
    /// `pbs.reproduction`
    pub kind: String,
    /// Version of this format.
    pub version: u32,
    /// The machine that it was measured on.
    pub machine: String,
    /// The commit of the last measurement, with `-dirty` if files differed from it.
    #[serde(default)]
    pub commit: Option<String>,
    /// Claims in the order of the declaration.
    pub claims: Vec<TriedClaim>,
}

/// The numbers of draws that were measured of a claim's figures.
pub(crate) fn draws_of(claim: &Claim, row: &TriedClaim) -> Vec<Option<u64>> {
    let measured = |name: &String| row.figures.iter().find(|measured| measured.name == *name);
    claim.figures.iter().map(|figure| measured(&figure.name)?.draws).collect()
}

impl Reproduction {
    /// The kind of the file.
    pub const KIND: &'static str = "pbs.reproduction";

    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// Reads `claims.json`.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if read.kind != Self::KIND || read.version != Self::VERSION {
            return Err(format!("it is no {} of version {}", Self::KIND, Self::VERSION));
        }
        Ok(read)
    }

    /// This, and of `before` what was not tried in this one; of the claims with these ids,
    /// in their order.
    pub fn onto(self, before: Reproduction, ids: &[String]) -> Self {
        let is_tried = |row: &TriedClaim| !matches!(row.verdict, Verdict::NotTried { .. });
        let mut rows: BTreeMap<String, TriedClaim> = BTreeMap::new();
        for row in before.claims.into_iter().chain(self.claims) {
            if is_tried(&row) || !rows.contains_key(&row.id) {
                rows.insert(row.id.clone(), row);
            }
        }
        Self { claims: ids.iter().filter_map(|id| rows.remove(id)).collect(), ..self }
    }

    /// Whether a command has failed.
    pub fn has_failed(&self) -> bool {
        let failed = |row: &TriedClaim| matches!(row.verdict, Verdict::Failed { .. });
        self.claims.iter().any(failed)
    }

    /// These results with verdicts that follow from the same measured figures by another
    /// declaration. A claim whose figures the declaration has not as they were measured keeps its
    /// own; ids that are not declared are left out.
    pub fn judged(self, claims: &Claims) -> Self {
        let rows = self.claims.into_iter().filter_map(|row| {
            let claim = claims.claims.iter().find(|claim| claim.id == row.id)?;
            let values = claim.figures.iter().map(|figure| {
                let measured = row.figures.iter().find(|measured| measured.name == figure.name);
                measured.map(|measured| measured.measured.clone())
            });
            let values: Option<Vec<_>> = values.collect();
            let (verdict, figures) = match (&claim.cannot, values) {
                (Some(because), _) => {
                    (Verdict::CannotBeTried { because: because.clone() }, Vec::new())
                }
                (None, Some(values)) if !values.is_empty() => {
                    judge(claim, &values, &draws_of(claim, &row))
                }
                _ => (row.verdict.clone(), row.figures.clone()),
            };
            let claimed = |text: &String| text.clone();
            Some(TriedClaim {
                verdict,
                figures,
                says: claim.says.clone(),
                command: claim.command.as_ref().map(claimed),
                note: claim.note.as_ref().map(claimed),
                ..row
            })
        });
        Self { claims: rows.collect(), ..self }
    }

    /// The claims that differ from `before`, a line each: in their verdict, or, if their commands
    /// measure no time, in a figure. What was not tried in one of the two is not compared, nor in
    /// which words. Claims that `before` has and that are not declared any more differ, too.
    pub fn others(&self, before: &Reproduction, claims: &Claims) -> Vec<String> {
        let declared = |row: &&TriedClaim| claims.claims.iter().any(|claim| claim.id == row.id);
        let gone = before.claims.iter().filter(|row| !declared(row));
        let gone = gone.map(|row| format!("{}: was {}, is not declared", row.id, row.verdict));
        let timed = |row: &TriedClaim| {
            claims
                .claims
                .iter()
                .any(|claim| claim.id == row.id && (claim.alone || claim.needs.is_some()))
        };
        let tried = |row: &&TriedClaim| !matches!(row.verdict, Verdict::NotTried { .. });
        // Reproduced exactly or within a tolerance is the same to who relies on it.
        let rough = |verdict: &Verdict| match verdict {
            Verdict::Within { .. } => Verdict::Reproduced.name(),
            other => other.name(),
        };
        let rows = self.claims.iter().filter(tried);
        rows.filter_map(|row| {
            let same = |other: &&TriedClaim| other.id == row.id;
            let old = before.claims.iter().filter(tried).find(same)?;
            if rough(&old.verdict) != rough(&row.verdict) {
                return Some(format!("{}: was {}, is {}", row.id, old.verdict, row.verdict));
            }
            let of = |figure: &Measured| {
                let old = old.figures.iter().find(|old| old.name == figure.name)?;
                (!is_same(&old.measured, &figure.measured)).then(|| {
                    format!(
                        "{}: {} was {}, is {}",
                        row.id, figure.name, old.measured, figure.measured
                    )
                })
            };
            row.figures.iter().filter(|_| !timed(row)).find_map(of)
        })
        .chain(gone)
        .collect()
    }
}
