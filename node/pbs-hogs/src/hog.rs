// SPDX-License-Identifier: GPL-2.0
//! Programs that use one thing and little else.

use std::collections::TryReserveError;
use std::hint::black_box;

/// Resource that a hog uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The bandwidth of memory: it streams through more than any cache has.
    Memory,
    /// The cache of last level: it follows pointers through a part of it, so each
    /// step waits for the one before.
    Cache,
    /// The core: it multiplies in registers.
    Compute,
}

impl Kind {
    /// All, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Cache, Self::Compute];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cache => "cache",
            Self::Compute => "compute",
        }
    }

    /// The hog of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Amounts of memory that the hogs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Memory of all hogs of [`Kind::Memory`] together: several times the last cache.
    pub memory_bytes: usize,
    /// Memory of a hog of [`Kind::Cache`].
    pub cache_bytes: usize,
}

impl Sizes {
    /// For a cache of last level of that size. The cache hog takes an eighth: a
    /// virtual machine is told of more cache than it has, and what does not fit
    /// alone is slowed by nobody any more.
    pub const fn for_cache(llc_bytes: usize) -> Self {
        Self { memory_bytes: 6 * llc_bytes, cache_bytes: llc_bytes / 8 }
    }
}

/// A program that can be worked piece by piece, without an end.
///
/// All pieces of one kind are of the same work, some ten microseconds of it, so
/// that pieces can be counted where instructions cannot.
#[derive(Debug)]
pub struct Hog {
    state: State,
}

#[derive(Debug)]
enum State {
    Memory { to: Vec<u64>, from: Vec<u64>, at: usize },
    Cache { next: Vec<Line>, at: usize },
    Compute { number: u64 },
}

/// A line of the cache: there is no second pointer on it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line {
    next: usize,
}

/// Words of a piece of [`Kind::Memory`].
const STREAMED: usize = 1 << 14;
/// Steps of one of [`Kind::Cache`].
const STEPS: usize = 1 << 10;
/// Multiplications of one of [`Kind::Compute`].
const ROUNDS: usize = 1 << 13;

impl Hog {
    /// One that begins; it has touched all its memory. `seed`: two of the same
    /// seed follow their pointers in the same order.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn new(kind: Kind, sizes: Sizes, seed: u64) -> Result<Self, TryReserveError> {
        let state = match kind {
            Kind::Memory => {
                let half = sizes.memory_bytes / 2 / size_of::<u64>();
                let words = (half / STREAMED).max(1) * STREAMED;
                let to = filled(words, |_| 1)?;
                State::Memory { to, from: filled(words, |word| word as u64)?, at: 0 }
            }
            Kind::Cache => {
                State::Cache { next: circle(sizes.cache_bytes / size_of::<Line>(), seed)?, at: 0 }
            }
            Kind::Compute => State::Compute { number: seed | 1 },
        };
        Ok(Self { state })
    }

    /// Works one piece.
    pub fn work(&mut self) {
        match &mut self.state {
            State::Memory { to, from, at } => {
                let piece = *at..*at + STREAMED;
                for (to, from) in to[piece.clone()].iter_mut().zip(&from[piece]) {
                    *to = to.wrapping_add(*from);
                }
                *at = (*at + STREAMED) % from.len();
                black_box(to);
            }
            State::Cache { next, at } => {
                for _ in 0..STEPS {
                    *at = next[*at].next;
                }
                black_box(*at);
            }
            State::Compute { number } => {
                for _ in 0..ROUNDS {
                    *number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(31) | 1;
                }
                black_box(*number);
            }
        }
    }
}

/// Values by their places.
fn filled<T>(count: usize, value: impl Fn(usize) -> T) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(count)?;
    values.extend((0..count).map(value));
    Ok(values)
}

/// A circle through all lines, in an order that no prefetcher follows
/// (Sattolo's algorithm).
fn circle(lines: usize, seed: u64) -> Result<Vec<Line>, TryReserveError> {
    let lines = lines.max(2);
    let mut next = filled(lines, |next| Line { next })?;
    let mut bits = seed;
    for last in (1..lines).rev() {
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let other = ((u128::from(bits) * last as u128) >> 64) as usize;
        next.swap(last, other);
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_comes_back_after_all_lines() {
        for lines in [2, 3, 10, 1000] {
            let next = circle(lines, 7).unwrap();
            let (mut at, mut steps) = (0, 0);
            loop {
                at = next[at].next;
                steps += 1;
                if at == 0 {
                    break;
                }
            }
            assert_eq!(steps, lines);
        }
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let sizes = Sizes { memory_bytes: usize::MAX, cache_bytes: usize::MAX };
        assert!(Hog::new(Kind::Memory, sizes, 1).is_err());
        assert!(Hog::new(Kind::Cache, sizes, 1).is_err());
        assert!(Hog::new(Kind::Compute, sizes, 1).is_ok());
    }

    #[test]
    fn each_works_on() {
        let sizes = Sizes { memory_bytes: 1 << 20, cache_bytes: 1 << 12 };
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            let mut hog = Hog::new(kind, sizes, 1).unwrap();
            // More than once through all of it.
            for _ in 0..10 {
                hog.work();
            }
            match hog.state {
                State::Memory { to, at, .. } => {
                    let words = to.len();
                    assert_eq!(at, 10 * STREAMED % words);
                    // Once through and once more, or twice.
                    let rounds = (10 * STREAMED / words) as u64;
                    assert_eq!(to[words - 1], 1 + (words as u64 - 1) * rounds);
                }
                State::Cache { next, at } => {
                    assert_eq!(next.len(), 64);
                    // 1,024 steps are sixteen times round.
                    assert_eq!(at, 0);
                }
                State::Compute { number } => assert_ne!(number, 1),
            }
        }
    }
}
