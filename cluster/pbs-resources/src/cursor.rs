// SPDX-License-Identifier: GPL-2.0
//! A text that is read from the left to the right.

use crate::Error;

#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    /// Characters that have been read.
    read: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, read: 0 }
    }

    /// The column of the next character.
    pub(crate) fn column(&self) -> usize {
        self.read + 1
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Whether the text goes on like that; then it is read.
    pub(crate) fn take(&mut self, expected: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(expected) else {
            return false;
        };
        self.rest = rest;
        self.read += expected.chars().count();
        true
    }

    pub(crate) fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.read += taken.chars().count();
        taken
    }

    /// Returns the next character as a message names it.
    pub(crate) fn found(&self) -> String {
        match self.rest.chars().next() {
            None => "the end".into(),
            Some(c) if c.is_whitespace() => "a space".into(),
            Some(c) => format!("{:?}", c.to_string()),
        }
    }

    /// An error at the next character.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.column(), message)
    }
}

/// Whether names of resources and words may hold the character.
pub(crate) fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@')
}

/// Whether a text can be the name of a resource, a user or a group, or a word: letters and
/// digits of ASCII, and any of `_ - . / @`.
pub fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_word)
}
