// SPDX-License-Identifier: GPL-2.0
//! Styles that distinguish processes in pictures: a colour, a letter, and a pattern if there are
//! more processes than colours. In print, and for people who don't see colours, the letters remain.

/// Okabe and Ito's colours, which the colour-blind can tell apart, with the
/// colour of letters on them.
const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#ffffff"),
    ("#e69f00", "#000000"),
    ("#009e73", "#000000"),
    ("#cc79a7", "#000000"),
    ("#56b4e9", "#000000"),
    ("#d55e00", "#000000"),
    ("#f0e442", "#000000"),
    ("#999999", "#000000"),
];

/// The names of the patterns in [`PATTERNS`]: the first eight processes have none.
const NAMES: [Option<&str>; 4] = [None, Some("stripes"), Some("dots"), Some("grid")];

/// Patterns that lie over the colours; they go into `<defs>`.
pub(crate) const PATTERNS: &str = "\
<pattern id=\"stripes\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(-45)\">\
<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#ffffff\" stroke-opacity=\"0.75\" \
stroke-width=\"3\"/></pattern>\n\
<pattern id=\"dots\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<circle cx=\"3\" cy=\"3\" r=\"1.7\" fill=\"#ffffff\" fill-opacity=\"0.85\"/></pattern>\n\
<pattern id=\"grid\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<path d=\"M 0 1 H 6 M 1 0 V 6\" stroke=\"#ffffff\" stroke-opacity=\"0.8\" \
stroke-width=\"1.6\"/></pattern>\n";

/// The letters of processes; those after the last have a number besides.
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Colours, pattern and letter of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStyle {
    /// The colour of its boxes.
    pub(crate) fill: &'static str,
    /// The colour of letters on them.
    pub(crate) ink: &'static str,
    /// Pattern over its boxes.
    pub(crate) pattern: Option<&'static str>,
    /// Name of the process in its boxes.
    pub(crate) letter: String,
}

impl ProcessStyle {
    /// Returns the style of the process at this index of the list of all processes.
    pub(crate) fn of(index: usize) -> Self {
        let (fill, ink) = COLOURS[index % COLOURS.len()];
        let pattern = NAMES[index / COLOURS.len() % NAMES.len()];
        let letter = char::from(LETTERS[index % LETTERS.len()]);
        Self {
            fill,
            ink,
            pattern,
            letter: match index / LETTERS.len() {
                0 => letter.to_string(),
                more => format!("{letter}{more}"),
            },
        }
    }
}

/// The letter of a process where only one has room; `None` after the last.
pub(crate) fn letter(index: usize) -> Option<char> {
    LETTERS.get(index).copied().map(char::from)
}

/// Number of processes that have a letter of their own.
pub(crate) const ALONE: usize = LETTERS.len();

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_look_the_same() {
        let looks: Vec<_> = (0..200).map(ProcessStyle::of).collect();
        let letters: HashSet<_> = looks.iter().map(|look| &look.letter).collect();
        assert_eq!(letters.len(), 200);
        let first = looks[..32].iter();
        let first: HashSet<_> = first.map(|look| (look.fill, look.pattern)).collect();
        assert_eq!(first.len(), 32);
    }

    #[test]
    fn every_pattern_is_defined() {
        for name in NAMES.into_iter().flatten() {
            assert!(PATTERNS.contains(&format!("id=\"{name}\"")), "{name}");
        }
    }
}
