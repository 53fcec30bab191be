// SPDX-License-Identifier: GPL-2.0
//! TOML with the lines that things stand at, and the first problems at once.

mod value;

use std::collections::HashMap;
use std::num::NonZeroU32;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::{Line, Problem, Problems};

pub use value::closest;

/// A value with the place that it stands at.
pub type Value<'i> = Spanned<DeValue<'i>>;

/// A table whose keys are taken out one by one; what is left is unknown.
pub struct Table<'a, 'i> {
    /// The keys that have not been taken yet, with their lines and values.
    pub entries: HashMap<&'a str, (Line, &'a Value<'i>)>,
    /// Line of the file at which the table begins.
    pub line: Line,
}

/// Reads one document and collects what is wrong with it.
pub struct Reader {
    line_starts: Vec<usize>,
    problems: Problems,
}

/// Reads a document with `read`; fails if it has problems.
pub fn read<T>(
    text: &str,
    read: impl FnOnce(&mut Reader, &DeTable<'_>) -> T,
) -> Result<T, Vec<Problem>> {
    let mut reader = Reader { line_starts: line_starts(text), problems: Problems::default() };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().and_then(|span| reader.line(span.start));
            let message = format!("this is no TOML: {}", error.message().replace('\n', "; "));
            return Err(vec![Problem::at(line, message)]);
        }
    };
    let result = read(&mut reader, document.get_ref());
    reader.problems.none().map(|()| result)
}

fn line_starts(text: &str) -> Vec<usize> {
    let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    std::iter::once(0).chain(newlines.map(|(position, _)| position + 1)).collect()
}

impl Reader {
    /// The line of that byte.
    pub fn line(&self, offset: usize) -> Line {
        let number = self.line_starts.partition_point(|&start| start <= offset);
        u32::try_from(number).ok().and_then(NonZeroU32::new)
    }

    /// The line of a value.
    pub fn line_of(&self, value: &Value<'_>) -> Line {
        self.line(value.span().start)
    }

    /// Notes that something is wrong.
    pub fn problem(&mut self, line: Line, message: impl Into<String>) {
        self.problems.add(line, || message.into());
    }

    /// Notes that something is wrong. The message is made only if it is to be told: use this where
    /// that takes long, or where a file can have a great many problems of the kind.
    pub fn problem_with(&mut self, line: Line, message: impl FnOnce() -> String) {
        self.problems.add(line, message);
    }

    /// Whether nothing is wrong so far.
    pub fn is_content(&self) -> bool {
        self.problems.is_empty()
    }
}
