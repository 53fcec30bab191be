// SPDX-License-Identifier: GPL-2.0
//! Failures of commands, and their exit statuses.

use std::fmt;
use std::io;
use std::path::Path;

use pbs_node::{Declined, Error};
use pbs_text::Problem;
use pbs_uapi::Refused;
use serde_json::{json, Value};

/// The exit statuses; `--help` lists them.
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const INVALID_PLAN: u8 = 3;
pub(crate) const INCOMPLETE: u8 = 4;
pub(crate) const NOT_ENDED: u8 = 5;
pub(crate) const DECLINED: u8 = 6;
pub(crate) const DEADLINE_MISSED: u8 = 7;
pub(crate) const DIFFERS: u8 = 8;
pub(crate) const INTERRUPTED: u8 = 130;
/// The status that shells have for a program which SIGPIPE ended.
pub(crate) const NO_READER: u8 = 141;

/// Description of [`Failure::NoReader`].
const GONE: &str = "the reader of the output has gone";

/// Number of problems of a schedule that are printed as text. Those of a file are no more
/// ([`pbs_text::Problems`]).
const SHOWN_PROBLEMS: usize = 12;

/// Reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An option is out of range, or does not go with the others.
    Usage(String),
    /// An error of another kind.
    Failed(String),
    /// The plan of the file is not valid.
    Invalid { file: String, problems: Vec<Problem> },
    /// The service said what is not valid.
    NotValid(Vec<String>),
    /// The job of the file was declined.
    Declined(Declined),
    /// A request to a cluster was declined; why.
    NotPlanned(String),
    /// The reader of the output has gone, as `head` does when it has seen enough.
    NoReader,
}

impl Failure {
    pub(crate) fn file(file: impl AsRef<Path>, error: &io::Error) -> Self {
        let file = file.as_ref().display();
        Self::Failed(match error.kind() {
            io::ErrorKind::IsADirectory => {
                format!("{file}: it is a directory; name a file in it")
            }
            _ => format!("{file}: {error}"),
        })
    }

    /// Failure to write standard output, or a pipe in its place.
    pub(crate) fn output(name: impl AsRef<Path>, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NoReader,
            _ => Self::file(name, error),
        }
    }

    /// Whether nobody is to be told: who has enough of the output needs no message.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::NoReader)
    }

    /// Refusal of `what` by the kernel.
    pub(crate) fn refused(what: &str, refused: &Refused) -> Self {
        Self::Failed(format!("{what}: {refused}"))
    }

    /// The exit status.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Failed(_) => FAILED,
            Self::Invalid { .. } | Self::NotValid(_) => INVALID_PLAN,
            Self::Declined(_) | Self::NotPlanned(_) => DECLINED,
            Self::NoReader => NO_READER,
        }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Usage(message) | Self::Failed(message) => json!({ "error": message }),
            Self::Invalid { file, problems } => {
                let problems: Vec<_> = problems
                    .iter()
                    .map(|problem| {
                        let line = problem.line;
                        json!({ "file": file, "line": line, "message": problem.message })
                    })
                    .collect();
                json!({ "valid": false, "problems": problems })
            }
            Self::NotValid(problems) => {
                let problems = problems.iter().map(|message| json!({ "message": message }));
                json!({ "valid": false, "problems": problems.collect::<Vec<_>>() })
            }
            Self::NotPlanned(why) => json!({ "declined": { "why": why } }),
            Self::NoReader => json!({ "error": GONE }),
            Self::Declined(declined) => {
                let Declined { file, job, why, earliest_deadline_ns } = declined;
                json!({
                    "declined": { "file": file, "job": job, "why": why,
                                  "earliest_deadline_ns": earliest_deadline_ns },
                })
            }
        }
    }
}

/// Errors of the history name their remedy themselves.
impl From<pbs_history::Error> for Failure {
    fn from(error: pbs_history::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Errors of shared memory name their remedy themselves.
impl From<pbs_csi::Error> for Failure {
    fn from(error: pbs_csi::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Errors of a study describe themselves.
impl From<pbs_study::node::Error> for Failure {
    fn from(error: pbs_study::node::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Errors of a simulated cluster describe themselves.
impl From<pbs_cluster_sim::whole::Error> for Failure {
    fn from(error: pbs_cluster_sim::whole::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// And so does the node.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid { file, problems } => Self::Invalid { file, problems },
            Error::Declined(declined) => Self::Declined(declined),
            Error::SeveralNodes(_) | Error::NoRate(_) => Self::Usage(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => write!(f, "pbsctl: {message}"),
            Self::Invalid { file, problems } => {
                let lines = problems.iter().map(|problem| problem.in_file(file).to_string());
                f.write_str(&lines.collect::<Vec<_>>().join("\n"))
            }
            Self::NotValid(problems) => {
                // A line for the last one is as long as a line that says that there is one more.
                let shown = match problems.len() {
                    few if few <= SHOWN_PROBLEMS + 1 => few,
                    _ => SHOWN_PROBLEMS,
                };
                f.write_str(&problems[..shown].join("\n"))?;
                match problems.len() - shown {
                    0 => Ok(()),
                    more => write!(f, "\n{more} more; --json has all"),
                }
            }
            Self::Declined(declined) => declined.fmt(f),
            Self::NotPlanned(why) => write!(f, "pbsctl: the request is declined: {why}"),
            Self::NoReader => write!(f, "pbsctl: {GONE}"),
        }
    }
}
