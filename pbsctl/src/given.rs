// SPDX-License-Identifier: GPL-2.0
//! Options that the command line has, apart from those that have their default.
//!
//! An option that only some modes of a command read would be ignored in the others. Commands refuse
//! it there, with what it needs.

use std::ops::Deref;

use clap::error::Error;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};

use crate::failure::Failure;

/// Options, and the names of those that stand on the command line.
#[derive(Debug)]
pub(crate) struct Given<T> {
    options: T,
    on_line: Vec<String>,
}

/// An option that not all modes of a command read.
pub(crate) struct Conditional {
    /// Name of its field.
    pub(crate) field: &'static str,
    /// Whether this mode reads it.
    pub(crate) is_read: bool,
    /// Options that it needs, in words.
    pub(crate) needs: &'static str,
}

impl<T> Given<T> {
    /// Whether the command line has the option of a field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.on_line.iter().any(|id| id == field)
    }

    /// Refuses options that nothing would read.
    pub(crate) fn refuse_unread(&self, options: &[Conditional]) -> Result<(), Failure> {
        let unread = options.iter().find(|of| !of.is_read && self.has(of.field));
        unread.map_or(Ok(()), |Conditional { field, needs, .. }| {
            let option = field.replace('_', "-");
            Err(Failure::Usage(format!(
                "--{option} has no effect here: it needs {needs}; add that, or leave --{option} out"
            )))
        })
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.options
    }
}

fn on_line(matches: &ArgMatches) -> Vec<String> {
    let is_given = |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    matches.ids().filter(is_given).map(ToString::to_string).collect()
}

impl<T: FromArgMatches> FromArgMatches for Given<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { on_line: on_line(matches), options: T::from_arg_matches(matches)? })
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        // Reading takes the values away.
        let on_line = on_line(matches);
        Ok(Self { options: T::from_arg_matches_mut(matches)?, on_line })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.on_line = on_line(matches);
        self.options.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Given<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Args, Debug)]
    struct Options {
        #[arg(long, default_value_t = 3)]
        most_jobs: u32,

        #[arg(long)]
        flag: bool,
    }

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Given<Options>,
    }

    #[test]
    fn only_options_of_the_command_line_are_refused() {
        let read = |words: &[&str]| {
            let words = std::iter::once(&"test").chain(words);
            Line::try_parse_from(words).unwrap().options
        };
        let jobs = |is_read| Conditional { field: "most_jobs", is_read, needs: "--flag" };
        assert!(read(&[]).refuse_unread(&[jobs(false)]).is_ok());
        let options = read(&["--most-jobs", "3"]);
        assert_eq!((options.most_jobs, options.has("flag"), options.flag), (3, false, false));
        assert!(options.refuse_unread(&[jobs(true)]).is_ok());
        let refused = options.refuse_unread(&[jobs(false)]).unwrap_err().to_string();
        assert_eq!(
            refused,
            "pbsctl: --most-jobs has no effect here: it needs --flag; add that, or leave \
             --most-jobs out"
        );
    }
}
