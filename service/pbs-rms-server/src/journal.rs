// SPDX-License-Identifier: GPL-2.0
//! What is kept for after a crash: a line for each change of a session, with all of it.
//!
//! A line is written before anybody hears of what it says, so that no crash of the service
//! makes a node have two owners. It is not waited for until it is on the disk: what a
//! failure of power loses is what ran on the same machine's nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use pbs_rms::{AppId, Counters, Session};
use serde::{Deserialize, Serialize};

/// Larger than that, and so many times larger than what it says, it is written anew.
const MOST_BYTES: u64 = 16 << 20;
const MOST_TIMES: u64 = 4;

/// A session and whose it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) uid: u32,
    pub(crate) session: Session,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Counters(Counters),
    Session(AppId, Box<Kept>),
    Gone(AppId),
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Written<'a> {
    Counters(&'a Counters),
    Session(AppId, WrittenSession<'a>),
    Gone(AppId),
}

#[derive(Serialize)]
struct WrittenSession<'a> {
    uid: u32,
    session: &'a Session,
}

/// Why a file is not one of these.
#[derive(Debug)]
pub enum Error {
    /// It can't be read or written.
    Io(PathBuf, io::Error),
    /// A line other than the last one is none of ours.
    Line(PathBuf, usize, String),
    /// What it says can't be.
    Unusable(PathBuf, pbs_rms::Unusable),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line, why) => {
                write!(
                    f,
                    "{}:{line}: this is not a kept session: {why}",
                    path.display()
                )
            }
            Self::Unusable(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// What was kept.
pub(crate) type All = (Option<Counters>, BTreeMap<AppId, Kept>);

/// The file.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    whole_bytes: u64,
    counters: Option<Counters>,
}

impl Journal {
    /// Opens it, with what it says.
    pub(crate) fn open(path: &Path) -> Result<(Self, All), Error> {
        let failed = |error| Error::Io(path.into(), error);
        let all = match File::open(path) {
            Ok(file) => read(path, file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => All::default(),
            Err(error) => return Err(failed(error)),
        };
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(path)
            .map_err(failed)?;
        let journal = Self {
            path: path.into(),
            bytes: 0,
            whole_bytes: 0,
            file,
            counters: None,
        };
        Ok((journal, all))
    }

    /// Writes what has changed: each session as it is, or that it is gone.
    pub(crate) fn keep<'a>(
        &mut self,
        counters: Counters,
        changed: impl Iterator<Item = (AppId, Option<(u32, &'a Session)>)>,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        if self.counters.as_ref() != Some(&counters) {
            line(&mut text, &Written::Counters(&counters))?;
            self.counters = Some(counters);
        }
        for (app, kept) in changed {
            let written = match kept {
                Some((uid, session)) => Written::Session(app, WrittenSession { uid, session }),
                None => Written::Gone(app),
            };
            line(&mut text, &written)?;
        }
        self.bytes += text.len() as u64;
        self.file.write_all(&text)
    }

    /// Is it time to write it anew?
    pub(crate) fn is_long(&self) -> bool {
        self.bytes > MOST_BYTES.max(MOST_TIMES * self.whole_bytes)
    }

    /// Writes it anew, with all sessions.
    pub(crate) fn rewrite<'a>(
        &mut self,
        counters: Counters,
        all: impl Iterator<Item = (AppId, u32, &'a Session)>,
    ) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let file = File::create(&beside)?;
        let old = std::mem::replace(&mut self.file, file);
        self.counters = None;
        self.bytes = 0;
        let kept = all.map(|(app, uid, session)| (app, Some((uid, session))));
        let written = self.keep(counters, kept).and_then(|()| {
            self.file.sync_all()?;
            fs::rename(&beside, &self.path)
        });
        if written.is_err() {
            self.file = old;
        }
        self.whole_bytes = self.bytes;
        written
    }
}

fn line(text: &mut Vec<u8>, written: &Written<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *text, written)?;
    text.push(b'\n');
    Ok(())
}

fn read(path: &Path, file: File) -> Result<All, Error> {
    let mut all = All::default();
    let mut torn: Option<Error> = None;
    for (number, text) in BufReader::new(file).lines().enumerate() {
        let text = text.map_err(|error| Error::Io(path.into(), error))?;
        // Only the last line may have been cut off.
        if let Some(error) = torn {
            return Err(error);
        }
        match serde_json::from_str(&text) {
            Ok(Line::Counters(counters)) => all.0 = Some(counters),
            Ok(Line::Session(app, kept)) => {
                all.1.insert(app, *kept);
            }
            Ok(Line::Gone(app)) => {
                all.1.remove(&app);
            }
            Err(error) => torn = Some(Error::Line(path.into(), number + 1, error.to_string())),
        }
    }
    Ok(all)
}
