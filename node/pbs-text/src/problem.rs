// SPDX-License-Identifier: GPL-2.0
//! Problems of a plan, with their place.

use std::fmt;
use std::num::NonZeroU32;

/// A line of the file a thing was read from.
pub type Line = Option<NonZeroU32>;

/// One thing that is wrong, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, `None` where it is about the whole.
    pub line: Line,
    /// Description of the problem, and what to write instead.
    pub message: String,
}

impl Problem {
    /// A problem at a line.
    pub fn at(line: Line, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }

    /// The problem as `file:line: message`.
    pub fn in_file<'a>(&'a self, file: &'a str) -> impl fmt::Display + 'a {
        InFile { file, problem: self }
    }
}

/// Problems of one text: the first ones, and the number of all others.
///
/// A text can have about as many problems as it has bytes, and each problem is a sentence. Of a
/// text that nobody has checked yet, only the first [`Problems::MOST`] are therefore kept, and no
/// words are made of the others ([`Problems::add`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Ascending by line; those of one line are in the order in which they were found.
    first: Vec<Problem>,
    /// Number of all problems.
    count: usize,
}

impl Problems {
    /// Number of problems that are kept.
    pub const MOST: usize = 12;

    /// Adds a problem. The message is not made if the problem is only counted.
    pub fn add(&mut self, line: Line, message: impl FnOnce() -> String) {
        self.count += 1;
        let place = self.first.partition_point(|known| known.line <= line);
        if place < Self::MOST {
            self.first.truncate(Self::MOST - 1);
            self.first.insert(place, Problem::at(line, message()));
        }
    }

    /// Adds a problem whose message was made already.
    pub fn push(&mut self, problem: Problem) {
        self.add(problem.line, || problem.message);
    }

    /// Adds all problems of another check of the same text.
    pub fn append(&mut self, others: Self) {
        let more = others.count - others.first.len();
        self.extend(others.first);
        self.count += more;
    }

    /// Number of all problems.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the first problems by line, and after them one that says how many more there are.
    pub fn into_vec(self) -> Vec<Problem> {
        let Self { mut first, count } = self;
        match count - first.len() {
            0 => {}
            1 => first.push(Problem::at(None, "and 1 more problem")),
            more => first.push(Problem::at(None, format!("and {more} more problems"))),
        }
        first
    }

    /// Fails if there are problems, with [`Problems::into_vec`].
    pub fn none(self) -> Result<(), Vec<Problem>> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.into_vec())
        }
    }
}

impl Extend<Problem> for Problems {
    fn extend<T: IntoIterator<Item = Problem>>(&mut self, problems: T) {
        problems.into_iter().for_each(|problem| self.push(problem));
    }
}

struct InFile<'a> {
    file: &'a str,
    problem: &'a Problem,
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem.message),
            None => write!(f, "{}: {}", self.file, self.problem.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize) -> Line {
        u32::try_from(number).ok().and_then(NonZeroU32::new)
    }

    /// Only those that are told cost memory, and the work of finding words.
    #[test]
    fn a_million_problems_are_a_dozen() {
        let mut made = 0;
        let mut problems = Problems::default();
        for number in 1..=1_000_000 {
            problems.add(line(number), || {
                made += 1;
                format!("problem {number}")
            });
            assert!(problems.first.len() <= Problems::MOST);
        }
        problems.add(None, || "about the whole".into());
        assert_eq!((made, problems.count()), (Problems::MOST, 1_000_001));
        let told = problems.into_vec();
        assert_eq!(told.len(), Problems::MOST + 1);
        assert_eq!(told[0].message, "about the whole");
        assert_eq!(told[11].message, "problem 11");
        assert_eq!(told[12], Problem::at(None, "and 999989 more problems"));
    }

    #[test]
    fn a_dozen_problems_are_all_told() {
        let mut problems = Problems::default();
        assert_eq!(problems.clone().none(), Ok(()));
        // Those of one line stay in their order.
        problems.extend([(2, "b"), (1, "a"), (2, "c")].map(|(at, it)| Problem::at(line(at), it)));
        let told = problems.none().unwrap_err();
        let told: Vec<_> = told.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(told, ["a", "b", "c"]);
        // Of many, those of the first lines are told, in whatever order they were found.
        let mut problems = Problems::default();
        problems.extend((1..=13).rev().map(|at| Problem::at(line(at), "x")));
        let told = problems.into_vec();
        assert_eq!((told[0].line, told[11].line), (line(1), line(12)));
        assert_eq!(told[12].message, "and 1 more problem");
    }
}
