// SPDX-License-Identifier: GPL-2.0
//! Looking into shared memory, and removing what is of no use any more, for operators.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pbs_uapi::clock::monotonic_ns;

use crate::devices::Device;
use crate::layout::CSIMF_NAME;
use crate::node::{Node, Options, Status};
use crate::table::{owner_of, Entry};
use crate::Error;

/// Contents of the shared memory.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Status of co-scheduling.
    pub status: Status,
    /// The generation.
    pub generation: u64,
    /// The devices.
    pub devices: Vec<Device>,
    /// The tasks.
    pub entries: Vec<Entry>,
    /// Number of CSIs.
    pub csis: usize,
}

/// Entries and files to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// Entries and files of processes that are gone.
    #[default]
    Gone,
    /// Entries and files of processes that are gone, and the entries of overdue tasks.
    Overdue,
    /// All files, whatever they are.
    Everything,
}

/// Numbers of removed items, and the overdue tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Entries of processes that are gone.
    pub entries: usize,
    /// Entries of overdue tasks, whose processes continue.
    pub overdue: usize,
    /// Overdue tasks that are left.
    pub left: Vec<Entry>,
    /// CSIs.
    pub csis: usize,
    /// The CSIMF was removed, too.
    pub csimf: bool,
}

/// Lists the contents of a directory without changing it; `None` if there is no CSIMF.
///
/// # Errors
///
/// As for [`Node::open`].
pub fn list(options: &Options) -> Result<Option<Listed>, Error> {
    let Some(node) = Node::attach(&of_its_group(options))? else {
        return Ok(None);
    };
    let locked = node.lock()?;
    Ok(Some(Listed {
        status: locked.status(),
        generation: locked.generation(),
        devices: locked.devices()?,
        entries: locked.entries()?,
        csis: files(&options.directory)?.len(),
    }))
}

/// Removes entries and files. Processes that use them continue without co-scheduling.
///
/// # Errors
///
/// Errors of [`Node::open`]; with [`Removal::Everything`] only those that keep a file from being
/// removed.
pub fn clean(options: &Options, what: Removal) -> Result<Cleaned, Error> {
    let mut cleaned = Cleaned::default();
    if what == Removal::Everything {
        cleaned.csimf = remove(&options.directory.join(CSIMF_NAME))?;
        for path in files(&options.directory)? {
            cleaned.csis += usize::from(remove(&path)?);
        }
        return Ok(cleaned);
    }
    let Some(node) = Node::attach(&of_its_group(options))? else {
        return Ok(cleaned);
    };
    let before = files(&options.directory)?.len();
    let mut locked = node.lock()?;
    cleaned.entries = locked.sweep()?;
    if what == Removal::Overdue {
        cleaned.overdue = locked.remove_overdue()?;
    }
    let now_ns = monotonic_ns();
    let is_overdue = |of: &Entry| of.overdue_ns(now_ns, options).is_some();
    cleaned.left = locked.entries()?.into_iter().filter(is_overdue).collect();
    drop(locked);
    node.remove_orphans(usize::MAX);
    cleaned.csis = before.saturating_sub(files(&options.directory)?.len());
    Ok(cleaned)
}

/// Returns the options with the group of the existing CSIMF. Operators who only list or clean need
/// not name the group, because nothing is decided with it.
fn of_its_group(options: &Options) -> Options {
    let group = fs::symlink_metadata(options.directory.join(CSIMF_NAME)).map(|about| about.gid());
    // Without a CSIMF there is nothing to clean.
    Options { group: options.group.or(group.ok()), ..options.clone() }
}

fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, error)),
    }
}

/// The files of CSIs in a directory, and of management files that were being made.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = fs::read_dir(directory).map_err(|error| Error::io(directory, error))?;
    let names = read.flatten().map(|file| file.file_name());
    Ok(names
        .filter(|name| name.to_str().and_then(owner_of).is_some())
        .map(|name| directory.join(name))
        .collect())
}
