// SPDX-License-Identifier: GPL-2.0
//! Names with a number in them: `node%03d`.

use std::fmt;

use pbs_resources::is_word;

/// A name, or many that differ by a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    before: String,
    /// With how many digits, and what follows.
    number: Option<(usize, String)>,
}

/// Digits of a number; it has no more.
const MOST_DIGITS: usize = 9;

impl Pattern {
    /// `None` if it is no name.
    pub(crate) fn read(text: &str) -> Option<Self> {
        // Beside the number there may be nothing.
        let is_name = |part: &str| part.is_empty() || is_word(part);
        let Some((before, rest)) = text.split_once('%') else {
            return is_word(text).then(|| Self { before: text.into(), number: None });
        };
        let (width, after) = rest.split_once('d')?;
        let digits = match width {
            "" => 1,
            _ => width.strip_prefix('0')?.parse().ok()?,
        };
        let is_right = (1..=MOST_DIGITS).contains(&digits) && is_name(before) && is_name(after);
        is_right.then(|| Self { before: before.into(), number: Some((digits, after.into())) })
    }

    pub(crate) fn has_number(&self) -> bool {
        self.number.is_some()
    }

    /// The name with that number.
    pub(crate) fn with(&self, number: u64) -> String {
        match &self.number {
            None => self.before.clone(),
            Some((digits, after)) => format!("{}{number:0digits$}{after}", self.before),
        }
    }
}

/// The patterns of names like this one, which ends with a number, and that number.
pub(crate) fn patterns(name: &str) -> Option<([Pattern; 2], u64)> {
    let before = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.len() - before.len();
    if !(1..=MOST_DIGITS).contains(&digits) {
        return None;
    }
    let number = name[before.len()..].parse().ok()?;
    // n10 may follow n9 or precede n100, or it may have two digits as n09 has.
    let pattern = |digits| Pattern { before: before.into(), number: Some((digits, String::new())) };
    Some(([pattern(1), pattern(digits)], number))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        match &self.number {
            None => Ok(()),
            Some((1, after)) => write!(f, "%d{after}"),
            Some((digits, after)) => write!(f, "%0{digits}d{after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_in() {
        for (text, name) in
            [("smp%d", "smp7"), ("node%03d", "node007"), ("r%02d-n", "r07-n"), ("login", "login")]
        {
            let pattern = Pattern::read(text).unwrap();
            assert_eq!(pattern.with(7), name);
            assert_eq!(pattern.to_string(), text);
        }
        for text in ["", "a%", "a%s", "a%3d", "a%d%d", "a b", "%00d", "%010d", "ä", "%d%"] {
            assert_eq!(Pattern::read(text), None, "{text}");
        }
    }
}
