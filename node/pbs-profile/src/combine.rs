// SPDX-License-Identifier: GPL-2.0
//! Profiles made of two others, value by value.
//!
//! A result begins where both have begun. All take the time to go through the
//! steps of both.

use std::convert::Infallible;

use crate::tree::Builder;
use crate::{Error, Profile, Step, Steps, FOREVER};

impl Profile {
    /// Returns the sum of both profiles: Keller's +, and + of Klein and Pérez 2011, A.3.
    ///
    /// # Errors
    ///
    /// [`Error::TooMuch`] if a value exceeds 64 bits.
    pub fn sum(a: &Self, b: &Self) -> Result<Self, Error> {
        combine(a, b, |time, a, b| {
            a.checked_add(b).ok_or(Error::TooMuch { time, value: a, amount: b })
        })
    }

    /// Returns the difference of `a` and `b`: Keller's −, and − of Klein and Pérez 2011, A.3.
    ///
    /// # Errors
    ///
    /// [`Error::TooLittle`] if `b` is more than `a` at some time.
    pub fn difference(a: &Self, b: &Self) -> Result<Self, Error> {
        combine(a, b, |time, a, b| {
            a.checked_sub(b).ok_or(Error::TooLittle { time, value: a, amount: b })
        })
    }

    /// The smaller of both at each time: what is there in both. Of two profiles of
    /// what is free this is Keller's ∩. With a limit it is his minFree (mf). The formula
    /// that he prints has the maximum, and is of what is *used*: the most of that and of
    /// what the limit leaves unused is what is available less this minimum.
    ///
    /// ```
    /// # use pbs_profile::Profile;
    /// // 16 cores, of which jobs use 4 and 14; a user may have 10 of them.
    /// let available = Profile::new(16);
    /// let used = Profile::from_steps([(0, 4), (50, 14), (90, 0)])?;
    /// let limit = Profile::new(10);
    /// let min_free = Profile::minimum(&Profile::difference(&available, &used)?, &limit);
    /// assert_eq!(min_free, Profile::from_steps([(0, 10), (50, 2), (90, 10)])?);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn minimum(a: &Self, b: &Self) -> Self {
        always(a, b, u64::min)
    }

    /// The greater of both at each time: ∪ of Klein and Pérez 2011, A.3.
    pub fn maximum(a: &Self, b: &Self) -> Self {
        always(a, b, u64::max)
    }
}

/// The value at `time` of both from those of each.
fn combine<E>(
    a: &Profile,
    b: &Profile,
    mut value: impl FnMut(u64, u64, u64) -> Result<u64, E>,
) -> Result<Profile, E> {
    let start = a.start().max(b.start());
    let (mut a, mut b) = (a.steps_from(start), b.steps_from(start));
    let end = Step { from: start, until: FOREVER, value: 0 };
    let next = |of: &mut Steps<'_>| of.next().unwrap_or(end);
    let (mut left, mut right) = (next(&mut a), next(&mut b));
    let mut builder = Builder::new(start, value(start, left.value, right.value)?);
    loop {
        let time = left.until.min(right.until);
        if time == FOREVER {
            return Ok(Profile::built(builder));
        }
        if left.until == time {
            left = next(&mut a);
        }
        if right.until == time {
            right = next(&mut b);
        }
        builder.push(time, value(time, left.value, right.value)?);
    }
}

fn always(a: &Profile, b: &Profile, value: impl Fn(u64, u64) -> u64) -> Profile {
    let combined = combine(a, b, |_, a, b| Ok::<_, Infallible>(value(a, b)));
    match combined {
        Ok(profile) => profile,
        Err(never) => match never {},
    }
}
