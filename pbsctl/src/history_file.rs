// SPDX-License-Identifier: GPL-2.0
//! The file of all runs, for the commands that read it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use pbs_cosched::Cost;
use pbs_history::{Options, Store, TimePrediction, VariantKey};

use crate::failure::Failure;

/// The file of all runs, wherever it is needed.
#[derive(Args, Debug)]
pub(crate) struct HistoryFile {
    /// File with the figures of earlier runs [default: /var/lib/pbs/history.db for root,
    /// ~/.local/state/pbs/history.db for other users]
    #[arg(id = "history", long, env = "PBS_HISTORY", value_name = "FILE")]
    named: Option<PathBuf>,
}

/// History of the service, and of pbsctl run.
const HISTORY: &str = "/var/lib/pbs/history.db";

impl HistoryFile {
    /// The file that was named, or the usual one of this user.
    pub(crate) fn path(&self) -> PathBuf {
        self.named.clone().unwrap_or_else(|| {
            let variable = |name| std::env::var_os(name).map(PathBuf::from);
            usual(is_root(), variable("XDG_STATE_HOME"), variable("HOME"))
        })
    }

    /// Whether a file was named.
    pub(crate) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Whether no other was named.
    pub(crate) fn is_usual(&self) -> bool {
        self.named.as_deref().is_none_or(|named| named == Path::new(HISTORY))
    }
}

/// The history that a user has without naming one. Root's is that of the node, which other users
/// can neither read nor write.
fn usual(is_root: bool, state: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    let home = home.map(|home| home.join(".local/state"));
    // A relative path is not valid there (XDG Base Directory Specification).
    let mut places = [state, home].into_iter().flatten().filter(|path| path.is_absolute());
    match places.next().filter(|_| !is_root) {
        Some(state) => state.join("pbs/history.db"),
        None => HISTORY.into(),
    }
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    own_uid() == Some(0)
}

/// The user of this process; `None`: there is no `/proc`.
pub(crate) fn own_uid() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|process| process.uid())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_other_than_root_have_a_history_of_their_own() {
        let path = |text: &str| Some(PathBuf::from(text));
        let home = || path("/home/anna");
        assert_eq!(usual(true, path("/state"), home()), Path::new(HISTORY));
        assert_eq!(usual(false, path("/state"), home()), Path::new("/state/pbs/history.db"));
        let of_home = Path::new("/home/anna/.local/state/pbs/history.db");
        assert_eq!(usual(false, None, home()), of_home);
        assert_eq!(usual(false, path("state"), home()), of_home);
        assert_eq!(usual(false, None, None), Path::new(HISTORY));
    }
}
