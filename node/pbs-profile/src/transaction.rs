// SPDX-License-Identifier: GPL-2.0
//! All or nothing.

use std::ops::Range;

use crate::{Error, Profile};

/// Changes of some profiles that are taken back unless they are committed: a job
/// that is refused leaves no trace. What is taken back costs as much as what was
/// done, however large the profiles are.
///
/// ```
/// use pbs_profile::{Error, Profile, Transaction};
///
/// let mut cores = vec![Profile::new(1); 4];
/// let before = cores.clone();
///
/// let mut booking = Transaction::new(&mut cores);
/// booking.subtract(0, 10..20, 1)?;
/// assert_eq!(booking.profiles()[0].value_at(15), 0);
/// assert!(booking.subtract(0, 15..30, 1).is_err());
/// drop(booking);
/// assert_eq!(cores, before);
///
/// let mut booking = Transaction::new(&mut cores);
/// booking.subtract(1, 10..20, 1)?;
/// booking.commit();
/// assert_eq!(cores[1].value_at(15), 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "what is not committed is taken back"]
pub struct Transaction<'a> {
    profiles: &'a mut [Profile],
    done: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    index: usize,
    over: Range<u64>,
    amount: u64,
    added: bool,
}

impl<'a> Transaction<'a> {
    /// Begins a transaction; nothing is changed yet.
    pub fn new(profiles: &'a mut [Profile]) -> Self {
        Self { profiles, done: Vec::new() }
    }

    /// The profiles as they are with the changes so far.
    pub fn profiles(&self) -> &[Profile] {
        self.profiles
    }

    /// [`Profile::add`] on one of the profiles.
    ///
    /// # Errors
    ///
    /// As [`Profile::add`], and [`Error::NoProfile`] if there is none of that
    /// index. What was done before remains, until the end of the transaction.
    pub fn add(&mut self, index: usize, over: Range<u64>, amount: u64) -> Result<(), Error> {
        self.change(index, over, amount, true)
    }

    /// [`Profile::subtract`] on one of the profiles.
    ///
    /// # Errors
    ///
    /// As [`Profile::subtract`], and [`Error::NoProfile`] if there is none of that
    /// index. What was done before remains, until the end of the transaction.
    pub fn subtract(&mut self, index: usize, over: Range<u64>, amount: u64) -> Result<(), Error> {
        self.change(index, over, amount, false)
    }

    fn change(
        &mut self,
        index: usize,
        over: Range<u64>,
        amount: u64,
        added: bool,
    ) -> Result<(), Error> {
        let profiles = self.profiles.len();
        let no_profile = Error::NoProfile { index, profiles };
        let profile = self.profiles.get_mut(index).ok_or(no_profile)?;
        if added {
            profile.add(over.clone(), amount)?;
        } else {
            profile.subtract(over.clone(), amount)?;
        }
        self.done.push(Change { index, over, amount, added });
        Ok(())
    }

    /// Keeps what was done.
    pub fn commit(mut self) {
        self.done.clear();
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        for change in self.done.drain(..).rev() {
            let profile = &mut self.profiles[change.index];
            // The values are those that were there before, so neither can fail.
            let back = if change.added {
                profile.subtract(change.over, change.amount)
            } else {
                profile.add(change.over, change.amount)
            };
            debug_assert_eq!(back, Ok(()));
        }
    }
}
