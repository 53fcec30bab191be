// SPDX-License-Identifier: GPL-2.0
//! Sentences of documents, and their lengths.
//!
//! Prose only: literal blocks, tables, directives and headings are left out.

/// Greatest number of words of a sentence.
pub const MOST_WORDS: usize = 40;

/// A sentence of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Number of the line where its paragraph begins, from 1.
    pub line: usize,
    /// Number of its words.
    pub words: usize,
    /// Text of the sentence on one line.
    pub text: String,
}

/// Sentences of a document in reStructuredText or Markdown.
pub fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        let mut rest = paragraph.as_str();
        while !rest.is_empty() {
            let (sentence, after) = rest.split_at(end(rest));
            let words = sentence.split_whitespace().filter(|word| is_word(word)).count();
            if words > 0 {
                found.push(Sentence { line, words, text: sentence.trim().into() });
            }
            rest = after;
        }
    }
    found
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

/// Byte at which the first sentence of a paragraph ends.
fn end(paragraph: &str) -> usize {
    let mut before = ' ';
    let mut ended = false;
    for (at, letter) in paragraph.char_indices() {
        if ended && letter.is_whitespace() {
            let next = paragraph[at..].trim_start().chars().next();
            if next.is_none_or(|next| !next.is_lowercase()) {
                return at;
            }
            ended = false;
        }
        // A mark of the end may be followed by closing quotes and brackets.
        let closes = ['"', '\'', ')', '`', '*'].contains(&letter);
        ended = ['.', '!', '?'].contains(&letter) && before != '.' || ended && closes;
        before = letter;
    }
    paragraph.len()
}

/// Paragraphs of prose with the numbers of their first lines.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        match (reader.read(line), found.last_mut()) {
            (Line::Continues(words), Some((_, paragraph))) => {
                paragraph.push(' ');
                paragraph.push_str(words);
            }
            (Line::Begins(words) | Line::Continues(words), _) => {
                found.push((index + 1, words.into()));
            }
            (Line::Other, _) => {}
        }
    }
    found
}

/// A line of a document.
enum Line<'a> {
    /// The first line of a paragraph or of an item of a list.
    Begins(&'a str),
    /// Another line of the paragraph before.
    Continues(&'a str),
    /// No prose.
    Other,
}

/// State from the lines read so far.
#[derive(Default)]
struct Reader {
    /// Whether a fence of Markdown is open.
    fenced: bool,
    /// Indentation of the paragraph or directive to which a literal block belongs.
    literal: Option<usize>,
    /// Whether a table is open.
    table: bool,
    /// Indentation of the open paragraph; none after an empty line.
    paragraph: Option<usize>,
}

impl Reader {
    fn read<'a>(&mut self, line: &'a str) -> Line<'a> {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        if !self.is_prose(words, indent) {
            self.paragraph = None;
            return Line::Other;
        }
        let item = ["- ", "* "].iter().find_map(|mark| words.strip_prefix(mark));
        let continues = item.is_none() && self.paragraph == Some(indent);
        self.paragraph = Some(if item.is_some() { indent + 2 } else { indent });
        if words.ends_with("::") {
            self.literal = Some(indent);
        }
        let words = item.unwrap_or(words);
        if continues {
            Line::Continues(words)
        } else {
            Line::Begins(words)
        }
    }

    fn is_prose(&mut self, words: &str, indent: usize) -> bool {
        if words.starts_with("```") {
            self.fenced = !self.fenced;
            return false;
        }
        self.literal = self.literal.filter(|&at| words.is_empty() || indent > at);
        let border = words.contains(' ') && is_rule(&words.replace(' ', ""));
        self.table = border || self.table && !words.is_empty();
        if self.fenced || self.literal.is_some() || self.table {
            return false;
        }
        let directive = words.starts_with(".. ") || words.starts_with("<!--") || words == "::";
        if directive {
            self.literal = Some(indent);
        }
        let drawn = words.is_empty() || words.starts_with(['#', '|', '+', ':']) || is_rule(words);
        !directive && !drawn
    }
}

/// Whether a line is drawn: the underline of a title or the border of a table.
fn is_rule(words: &str) -> bool {
    let first = words.chars().next();
    let drawn = first.is_some_and(|first| "=-~^+*\"#".contains(first));
    drawn && words.len() >= 3 && words.chars().all(|letter| Some(letter) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<usize> {
        sentences(text).iter().map(|sentence| sentence.words).collect()
    }

    #[test]
    fn sentences_end_with_a_mark_and_a_capital() {
        assert_eq!(lengths("One two. Three\nfour five. See 3.2.2 here, e.g. this.\n"), [2, 3, 5]);
        assert_eq!(lengths("It is \"done.\" Then more (of it). End"), [3, 4, 1]);
    }

    #[test]
    fn only_prose_counts() {
        let text = "Title\n=====\n\nA sentence::\n\n    no prose at all\n\nAnother one.\n\n\
                    ====  ====\na b   c d\n====  ====\n\n.. note:: no\n   more\n\n::\n\n   none of it\n\n\
                    - item one\n  goes on\n- item two\n\n```\ncode is none\n```\n| a | b |\n";
        assert_eq!(lengths(text), [1, 2, 2, 4, 2]);
    }
}
