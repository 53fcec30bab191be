// SPDX-License-Identifier: GPL-2.0
//! Stretches of time in which resources are free.

use std::iter::{FusedIterator, Peekable};
use std::ops::Range;

use crate::{find_first_hole, Need};

/// The stretches of a window in which all that is needed is there, in the order of
/// time: Keller's getFreeSlots. Each is as long as can be in the window, no shorter
/// than asked for, and apart from the next. One is found in the time of
/// [`find_first_hole`].
///
/// ```
/// use pbs_profile::{FreeSlots, Need, Profile};
///
/// let cores = Profile::from_steps([(0, 8), (40, 2), (60, 8)])?;
/// assert_eq!(cores.free_slots(4, 10, 0..100).collect::<Vec<_>>(), [0..40, 60..100]);
/// // Of several resources, when all are there.
/// let memory = Profile::from_steps([(0, 0), (35, 500), (80, 100)])?;
/// let needs = [(&cores, 4), (&memory, 300)];
/// let needs = needs.map(|(profile, amount)| Need { profile, amount });
/// assert_eq!(FreeSlots::new(needs, 10, 0..100).collect::<Vec<_>>(), [60..80]);
/// # Ok::<(), pbs_profile::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FreeSlots<'a> {
    needs: Vec<Need<'a>>,
    duration: u64,
    window: Range<u64>,
}

impl<'a> FreeSlots<'a> {
    /// Iterates over the slots that are no shorter than `duration`, and never empty.
    pub fn new(needs: impl Into<Vec<Need<'a>>>, duration: u64, window: Range<u64>) -> Self {
        Self { needs: needs.into(), duration: duration.max(1), window }
    }
}

impl Iterator for FreeSlots<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let from = find_first_hole(&self.needs, self.duration, self.window.clone())?;
        let rest = from..self.window.end;
        let ends = self.needs.iter().filter_map(|need| {
            let Need { profile, amount } = need;
            profile.first_below(*amount, rest.clone())
        });
        let until = ends.min().unwrap_or(rest.end);
        self.window.start = until;
        Some(from..until)
    }
}

impl FusedIterator for FreeSlots<'_> {}

/// The stretches of time that are in both, of stretches in the order of time that
/// do not overlap: Keller's ∩ as his planning uses it (section 5.1), on the free
/// slots of different resources, whose amounts can't be compared. Two profiles of
/// the same resource are intersected by [`Profile::minimum`](crate::Profile::minimum).
///
/// ```
/// use pbs_profile::intersection;
///
/// let both = intersection([0..40, 60..100], [20..70, 90..95]);
/// assert_eq!(both.collect::<Vec<_>>(), [20..40, 60..70, 90..95]);
/// ```
pub fn intersection<A, B>(a: A, b: B) -> Intersection<A::IntoIter, B::IntoIter>
where
    A: IntoIterator<Item = Range<u64>>,
    B: IntoIterator<Item = Range<u64>>,
{
    Intersection { a: a.into_iter().peekable(), b: b.into_iter().peekable() }
}

/// See [`intersection`].
pub struct Intersection<A: Iterator, B: Iterator> {
    a: Peekable<A>,
    b: Peekable<B>,
}

impl<A, B> Iterator for Intersection<A, B>
where
    A: Iterator<Item = Range<u64>>,
    B: Iterator<Item = Range<u64>>,
{
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        loop {
            let (a, b) = (self.a.peek()?, self.b.peek()?);
            let both = a.start.max(b.start)..a.end.min(b.end);
            // The one that ends first can't be in anything else.
            if a.end < b.end {
                self.a.next();
            } else {
                self.b.next();
            }
            if !both.is_empty() {
                return Some(both);
            }
        }
    }
}
