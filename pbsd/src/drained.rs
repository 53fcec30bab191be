// SPDX-License-Identifier: GPL-2.0
//! A drain that outlives the service: a node that an operator has drained plans no new jobs after a
//! restart, an update or a reboot, either.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::beside::{beside, sync_folder};

/// End of the name of the mark, after that of the history.
const MARK: &str = "-drained";

/// The mark of a drained node: an empty file beside the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    mark: PathBuf,
}

impl Drained {
    /// The mark beside a history.
    pub fn beside(history: &Path) -> Self {
        Self { mark: beside(history, MARK) }
    }

    /// Whether the node is drained. A mark that cannot be looked at is an error, and does not count
    /// as absent.
    pub fn is_set(&self) -> io::Result<bool> {
        match fs::symlink_metadata(&self.mark) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the mark, or removes it. It is on the disk when this returns.
    pub fn set(&self, drained: bool) -> io::Result<()> {
        if drained {
            OpenOptions::new().append(true).create(true).mode(0o600).open(&self.mark)?;
        } else {
            match fs::remove_file(&self.mark) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        sync_folder(&self.mark)
    }

    /// Path of the mark.
    pub fn path(&self) -> &Path {
        &self.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_found_by_the_next_service_until_it_is_resumed() {
        let folder = std::env::temp_dir().join(format!("pbsd-drained-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let history = folder.join("history.db");
        let of = || Drained::beside(&history);
        assert_eq!(of().path(), folder.join("history.db-drained"));
        assert!(!of().is_set().unwrap());
        for drained in [true, true, false, false] {
            of().set(drained).unwrap();
            assert_eq!(of().is_set().unwrap(), drained);
        }
        // A folder that is none can't have a mark, and that is no answer.
        let nowhere = Drained::beside(&history.join("more"));
        fs::write(&history, "").unwrap();
        assert!(nowhere.is_set().is_err() && nowhere.set(true).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
