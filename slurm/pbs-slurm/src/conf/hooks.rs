// SPDX-License-Identifier: GPL-2.0
//! The hooks where Slurm looks for them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::conf::entry::MOST_FILE_BYTES;

/// Compilers that say whether Lua can be read, the one of Slurm's Lua first.
const COMPILERS: [&str; 2] = ["luac5.1", "luac"];

/// A file that slurmctld runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Expected place of the file.
    pub path: PathBuf,
    /// Whether it is there.
    pub is_there: bool,
    /// Whether it may be run.
    pub is_executable: bool,
    /// Content of the file, if it can be read.
    pub text: String,
    /// Reason for which the file is there and can't be read.
    pub unread: Option<String>,
}

impl Hook {
    pub(crate) fn look(path: &Path) -> Self {
        // A hook that is not there is no hook.
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        let read = match &metadata {
            Some(of) if of.len() > MOST_FILE_BYTES => Err("is too long".to_string()),
            Some(_) => fs::read(path).map_err(|error| error.to_string()),
            None => Ok(Vec::new()),
        };
        // Lua and the shell read bytes: letters of other encodings stand in comments.
        let text = read.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        Self {
            path: path.into(),
            is_there: metadata.is_some(),
            // By its bits: who asks may be another user than SlurmUser.
            is_executable: metadata.is_some_and(|of| of.mode() & 0o111 != 0),
            text,
            unread: read.err(),
        }
    }

    /// The value of a line `local NAME = VALUE` or `NAME=VALUE`, and which line it is.
    pub fn value(&self, name: &str) -> Option<(&str, usize)> {
        self.text.lines().zip(1..).find_map(|(line, number)| {
            let line = line.strip_prefix("local ").unwrap_or(line);
            let rest = line.strip_prefix(name)?.trim_start();
            let value = rest.strip_prefix('=')?.trim();
            Some((value.trim_matches('"'), number))
        })
    }
}

/// A script in Lua that slurmctld runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lua {
    /// The file.
    pub hook: Hook,
    /// Error message of the compiler, if there is one.
    pub fault: Option<String>,
    /// Whether a compiler looked at it.
    pub is_compiled: bool,
}

impl Lua {
    pub(crate) fn look(path: &Path) -> Self {
        let hook = Hook::look(path);
        let mut lua = Self { fault: None, is_compiled: false, hook };
        if !lua.hook.is_there {
            return lua;
        }
        for compiler in COMPILERS {
            let mut command = Command::new(compiler);
            let ran = command.arg("-p").arg("--").arg(path).stdin(Stdio::null());
            match ran.output() {
                Ok(output) => {
                    lua.is_compiled = true;
                    if !output.status.success() {
                        let said = String::from_utf8_lossy(&output.stderr);
                        lua.fault = Some(said.lines().next().unwrap_or_default().to_string());
                    }
                    break;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) => break,
            }
        }
        lua
    }
}
