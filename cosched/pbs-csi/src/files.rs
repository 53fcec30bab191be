// SPDX-License-Identifier: GPL-2.0
//! Files that others can write, too: how they are made, and what is asked before use.
//!
//! Members of the group can do to each other what the files can do: take devices, keep the
//! lock, give wrong runtimes, remove entries. They can't do more than that. No path comes
//! out of shared memory, links and pipes are not followed, and a file is used only if
//! nobody but its owner and the group can write it.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{fchown, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::{Error, Options};

/// Returns the mode of files: read and write access for the user, and for the group if the files
/// are shared.
fn mode(group: Option<u32>) -> u32 {
    match group {
        Some(_) => 0o660,
        None => 0o600,
    }
}

/// Users with whom files are shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    /// This group, beside root and this user.
    pub(crate) group: Option<u32>,
    /// This user.
    pub(crate) user: u32,
}

impl Trust {
    #[allow(unsafe_code)] // A system call that std has not.
    pub(crate) fn new(group: Option<u32>) -> Self {
        // SAFETY: it only answers.
        let user = unsafe { libc::geteuid() };
        Self { group, user }
    }
}

/// Opens a file that is there, if it is one of ours.
pub(crate) fn open(path: &Path, trust: Trust, bytes: u64) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    // A link leads elsewhere, a pipe would block.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.read(true).write(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => not_trusted(path, "it is a symbolic link"),
        _ => Error::io(path, error),
    })?;
    let about = file.metadata().map_err(|error| Error::io(path, error))?;
    if !about.is_file() {
        return Err(not_trusted(path, "it is no file"));
    }
    if about.nlink() > 1 {
        return Err(not_trusted(path, "it has another name, too"));
    }
    if about.mode() & 0o002 != 0 {
        return Err(not_trusted(path, "everybody may write it"));
    }
    let is_of_group = trust.group.is_some_and(|group| group == about.gid());
    if ![0, trust.user].contains(&about.uid()) && !is_of_group {
        let why = format!("it is of user {} and group {}", about.uid(), about.gid());
        return Err(not_trusted(path, why));
    }
    if about.mode() & 0o020 != 0 && !is_of_group {
        let why = format!("group {} may write it, which was not named", about.gid());
        return Err(not_trusted(path, why));
    }
    if about.len() != bytes {
        let why = format!("it has {} bytes instead of {bytes}", about.len());
        return Err(Error::damaged(path, why));
    }
    Ok(file)
}

fn not_trusted(path: &Path, why: impl Into<String>) -> Error {
    Error::NotTrusted { path: path.to_path_buf(), why: why.into() }
}

/// Makes a new file with this content; there must not be one.
pub(crate) fn make(path: &Path, group: Option<u32>, content: &[u8]) -> io::Result<File> {
    use std::os::unix::fs::FileExt;
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let filled = file.write_all_at(content, 0).and_then(|()| {
        if let Some(group) = group {
            fchown(&file, None, Some(group))?;
        }
        // Whatever the mask of the process is. Last: before, nobody else can open it.
        file.set_permissions(Permissions::from_mode(mode(group)))
    });
    match filled {
        Ok(()) => Ok(file),
        Err(error) => {
            // The error of filling the file is the one to report.
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

/// The other name is that of the process: one thread at a time.
static PUBLISHING: Mutex<()> = Mutex::new(());

/// Makes a file that appears under its name with its content or not at all; if somebody
/// was faster it is his. It never has two names: who is killed here leaves one that can be
/// used, or one that nobody looks for.
pub(crate) fn publish(path: &Path, options: &Options, content: &[u8]) -> Result<(), Error> {
    let _one = PUBLISHING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut other = path.as_os_str().to_owned();
    other.push(format!(".{}", std::process::id()));
    let other = PathBuf::from(other);
    options.step();
    // Left by one who was killed and had our pid.
    let _ = fs::remove_file(&other);
    make(&other, options.group, content).map_err(|error| Error::io(&other, error))?;
    options.step();
    let Err(error) = rename_new(&other, path) else {
        return Ok(());
    };
    // The error of the renaming is the one to report. A process with this pid removes the rest.
    let _ = fs::remove_file(&other);
    match error.raw_os_error() {
        Some(libc::EEXIST) => Ok(()),
        Some(libc::EINVAL | libc::ENOSYS) => {
            let why = "this file system can't rename without replacing; \
                       name a directory of another, as of tmpfs";
            Err(Error::io(path, io::Error::new(error.kind(), why)))
        }
        _ => Err(Error::io(path, error)),
    }
}

/// Renames a file, if there is none of the new name.
#[allow(unsafe_code)] // A system call that std has not.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let from = CString::new(from.as_os_str().as_bytes())?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let here = libc::AT_FDCWD;
    // SAFETY: both are strings that live through the call.
    let answer =
        unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), libc::RENAME_NOREPLACE) };
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
