// SPDX-License-Identifier: GPL-2.0
//! Results of the claims: the format of `claims.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Verdict;

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
    /// Claims in the order of the declaration.
    pub claims: Vec<TriedClaim>,
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

    /// The claims that have another verdict than `before`, a line each; what was not tried
    /// in one of the two is not compared, nor in which words.
    pub fn others(&self, before: &Reproduction) -> Vec<String> {
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
            (rough(&old.verdict) != rough(&row.verdict))
                .then(|| format!("{}: was {}, is {}", row.id, old.verdict, row.verdict))
        })
        .collect()
    }
}
