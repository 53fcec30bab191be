// SPDX-License-Identifier: GPL-2.0
//! The file of all runs, for the commands that read it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use pbs_cosched::Cost;
use pbs_history::{Options, Store, TimePrediction, VariantKey};

use crate::failure::Failure;

/// The file of all runs, wherever it is needed.
#[derive(Args, Debug)]
pub(crate) struct HistoryFile {
    /// File with the figures of earlier runs
    #[arg(
        id = "history",
        long,
        env = "PBS_HISTORY",
        value_name = "FILE",
        default_value = HISTORY
    )]
    pub(crate) path: PathBuf,
}

/// History of the service, and of pbsctl run.
const HISTORY: &str = "/var/lib/pbs/history.db";

impl HistoryFile {
    /// Whether no other was named.
    pub(crate) fn is_usual(&self) -> bool {
        self.path == Path::new(HISTORY)
    }
}

/// Predictions for variants of tasks from earlier runs; empty if there is no history.
pub(crate) fn variants(history: &Path) -> Result<BTreeMap<VariantKey, TimePrediction>, Failure> {
    if !history.exists() {
        return Ok(BTreeMap::new());
    }
    let store = Store::open_read_only(history, Options::DEFAULT)?;
    Ok(store.variants(None)?.into_iter().collect())
}

/// Cost of a decision of a scheduler, from its earlier decisions (Rados 2019, 4.1).
pub(crate) fn decision_cost(history: &Path, scheduler: &str) -> Result<Option<Cost>, Failure> {
    if !history.exists() {
        return Ok(None);
    }
    let store = Store::open_read_only(history, Options::DEFAULT)?;
    let cost = store.decision_cost(scheduler)?;
    Ok(cost.map(|cost| Cost { a: cost.square_ns, b: cost.linear_ns, c: cost.constant_ns }))
}
