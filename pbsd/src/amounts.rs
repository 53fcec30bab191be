// SPDX-License-Identifier: GPL-2.0
//! Amounts of resources that outlive the service: what an operator has set holds after a restart,
//! an update or a reboot, too.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::beside::{beside, sync_folder};

/// End of the name of the file, after that of the history.
const FILE: &str = "-amounts";

/// Version of the file that is written.
const VERSION: u32 = 1;

/// Amounts by the names of resources.
pub type ByName = BTreeMap<String, u64>;

/// The file beside the history with the amounts that an operator has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    file: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    amounts: ByName,
}

impl Amounts {
    /// The file beside a history.
    pub fn beside(history: &Path) -> Self {
        Self { file: beside(history, FILE) }
    }

    /// Returns the amounts that were set. A file that cannot be read is an error: more might be
    /// promised than there is.
    pub fn read(&self) -> io::Result<ByName> {
        let text = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ByName::new()),
            text => text?,
        };
        let remedy = "remove it, and set the amounts again with pbsctl service set-resource";
        let text: Text = serde_json::from_slice(&text)
            .map_err(|error| io::Error::other(format!("{error}; {remedy}")))?;
        if text.version != VERSION {
            let version = text.version;
            return Err(io::Error::other(format!(
                "it has the unknown version {version}; {remedy}"
            )));
        }
        Ok(text.amounts)
    }

    /// Writes the amounts, in the place of those before. They are on the disk when this returns.
    pub fn write(&self, amounts: ByName) -> io::Result<()> {
        let new = beside(&self.file, ".new");
        let text = serde_json::to_vec(&Text { version: VERSION, amounts })?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, &self.file)?;
        sync_folder(&self.file)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_found_by_the_next_service() {
        let folder = std::env::temp_dir().join(format!("pbsd-amounts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let history = folder.join("history.db");
        let of = || Amounts::beside(&history);
        assert_eq!(of().path(), folder.join("history.db-amounts"));
        assert!(of().read().unwrap().is_empty());
        for amounts in [ByName::from([("matlab".into(), 0), ("tape".into(), 7)]), ByName::new()] {
            of().write(amounts.clone()).unwrap();
            assert_eq!(of().read().unwrap(), amounts);
        }
        // What cannot be read is no absence, and says what to do.
        for text in ["", "{\"version\":2,\"amounts\":{}}", "{\"version\":1}"] {
            fs::write(of().path(), text).unwrap();
            let why = of().read().unwrap_err().to_string();
            assert!(why.contains("remove it, and set"), "{why}");
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(of().write(ByName::new()).is_err());
    }
}
