// SPDX-License-Identifier: GPL-2.0
//! Files beside the history of a service.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the file whose name is that of the history, and this end.
pub(crate) fn beside(history: &Path, end: &str) -> PathBuf {
    let mut file = OsString::from(history);
    file.push(end);
    file.into()
}

/// Waits until the names in the folder of a file are on the disk.
pub(crate) fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
