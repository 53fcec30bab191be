// SPDX-License-Identifier: GPL-2.0
//! Changes of a profile.

use std::ops::Range;

use crate::{Error, Profile, FOREVER};

impl Profile {
    /// Adds to all values of an interval: Keller's ⊕ on what is used.
    ///
    /// # Errors
    ///
    /// [`Error::TooMuch`] if a value would exceed 64 bits, [`Error::Backwards`] if
    /// the interval ends before it begins. Nothing is changed then.
    pub fn add(&mut self, over: Range<u64>, amount: u64) -> Result<(), Error> {
        let Some(over) = self.changed(over, amount)? else {
            return Ok(());
        };
        let most = u64::MAX - amount;
        if self.tree.extremes_over(&over).1 > most {
            let mut steps = self.steps_from(over.start);
            // There is one, by its greatest value.
            let full = steps.find(|step| step.value > most);
            return full.map_or(Ok(()), |step| {
                Err(Error::TooMuch { time: step.from.max(over.start), value: step.value, amount })
            });
        }
        self.tree.raise(over, amount);
        Ok(())
    }

    /// Subtracts from all values of an interval: Keller's ⊖ on what is used, his ⊕
    /// on what is free.
    ///
    /// # Errors
    ///
    /// [`Error::TooLittle`] if less than `amount` is there at some time of it,
    /// [`Error::Backwards`] if the interval ends before it begins. Nothing is
    /// changed then.
    ///
    /// ```
    /// use pbs_profile::{Error, Profile};
    ///
    /// let mut free = Profile::new(8);
    /// free.subtract(10..20, 5)?;
    /// let refused = free.subtract(0..15, 4);
    /// let why = Error::TooLittle { time: 10, value: 3, amount: 4 };
    /// assert_eq!(refused, Err(why));
    /// assert_eq!(free.value_at(5), 8);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn subtract(&mut self, over: Range<u64>, amount: u64) -> Result<(), Error> {
        let Some(over) = self.changed(over, amount)? else {
            return Ok(());
        };
        if let Some(time) = self.tree.first_below(amount, &over) {
            return Err(Error::TooLittle { time, value: self.value_at(time), amount });
        }
        self.tree.raise(over, amount.wrapping_neg());
        Ok(())
    }

    /// Returns the part of an interval that a change affects, if any.
    fn changed(&self, over: Range<u64>, amount: u64) -> Result<Option<Range<u64>>, Error> {
        if over.start > over.end {
            return Err(Error::Backwards { from: over.start, until: over.end });
        }
        Ok(self.within(&over).filter(|_| amount != 0))
    }

    /// Forgets what was before `time`, which becomes the start. Nothing happens if
    /// it isn't after the start; [`FOREVER`] is taken as one just before. Takes the
    /// time to free what is forgotten; the memory serves later steps.
    ///
    /// ```
    /// # use pbs_profile::Profile;
    /// let mut free = Profile::new(8);
    /// free.subtract(10..20, 5)?;
    /// free.forget_before(15);
    /// assert_eq!((free.start(), free.step_count()), (15, 2));
    /// // The rest of what began before the start is given back as all of it is.
    /// free.add(10..20, 5)?;
    /// assert_eq!(free.value_at(15), 8);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn forget_before(&mut self, time: u64) {
        let time = time.min(FOREVER - 1);
        if time > self.start() {
            self.tree.forget_before(time);
        }
    }
}
