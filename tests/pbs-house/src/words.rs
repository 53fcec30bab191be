// SPDX-License-Identifier: GPL-2.0
//! Openings of doc comments.
//!
//! A reader looks for the noun. A comment that opens with a question word or a pronoun makes the
//! reader translate: "What the command reads." instead of "Input of the command."

/// Words with which a doc comment does not open.
const UNWANTED: &str = "What Who Whom Whose How Why Which When Where By As It Its Those These So \
                        Nothing Nobody Something That There";

/// Openings that point to the comment before.
const POINTING: [&str; 2] = ["The same", "It."];

/// A doc comment: consecutive lines of `///` or `//!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocComment {
    /// Number of its first line in the file, from 1.
    pub line: usize,
    /// Text of its first line, without the mark.
    pub opening: String,
}

impl DocComment {
    /// Whether the comment opens with a word that names nothing.
    pub fn opens_badly(&self) -> bool {
        self.points_back() || UNWANTED.split(' ').any(|word| word == first_word(&self.opening))
    }

    /// Whether the comment cannot be read without the one before: "The same …", "It."
    pub fn points_back(&self) -> bool {
        POINTING.iter().any(|words| self.opening.starts_with(words))
    }
}

fn first_word(text: &str) -> &str {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.trim_end_matches(['.', ',', ';', ':', '!', '?'])
}

/// Doc comments of a Rust file, in order.
pub fn doc_comments(text: &str) -> Vec<DocComment> {
    let mut found = Vec::new();
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        let here = mark(line);
        if let Some((kind, words)) = here.filter(|(kind, _)| before != Some(*kind)) {
            found.push(DocComment { line: index + 1, opening: words.trim().into() });
            before = Some(kind);
        } else {
            before = here.map(|(kind, _)| kind);
        }
    }
    found
}

/// The mark of a line of a doc comment, and the text after it.
fn mark(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let (mark, rest) = line.split_at_checked(3)?;
    (["///", "//!"].contains(&mark) && !rest.starts_with('/')).then_some((mark, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_counted_once() {
        let text =
            "//! File.\n\n/// What it does.\n/// How.\nfn a() {}\n    /// Length.\n//// no\n";
        let found = doc_comments(text);
        let lines: Vec<_> = found.iter().map(|comment| comment.line).collect();
        assert_eq!(lines, [1, 3, 6]);
        let bad: Vec<_> = found.iter().map(DocComment::opens_badly).collect();
        assert_eq!(bad, [false, true, false]);
    }

    #[test]
    fn openings_are_whole_words() {
        let comment = |opening: &str| DocComment { line: 1, opening: opening.into() };
        for bad in ["It.", "It is late.", "The same for jobs.", "Who runs", "Its end."] {
            assert!(comment(bad).opens_badly(), "{bad}");
        }
        for good in ["Item of a list.", "Iterations.", "The sum.", "Assigns.", "Bytes."] {
            assert!(!comment(good).opens_badly(), "{good}");
        }
        assert!(comment("The same for jobs.").points_back());
        assert!(!comment("What it is.").points_back());
    }
}
