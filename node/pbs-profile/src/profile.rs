// SPDX-License-Identifier: GPL-2.0
//! The profile itself, and what can be asked of it.

use std::fmt;
use std::ops::Range;

use crate::tree::{Builder, Tree};
use crate::{Error, FreeSlots, Need, Steps, FOREVER};

/// A step function over time: how much of something there is from when to when.
///
/// Time and amounts are whole numbers in units of the caller's. A profile begins
/// at its [`start`](Self::start) and has no end: its last value holds for ever.
/// Every time before the start counts as the start, in questions and in changes:
/// so what [`forget_before`](Self::forget_before) removed is nobody's concern.
///
/// Neighbouring steps are never equal; what is added and subtracted again leaves
/// the profile as it was. A clone copies the steps as they lie in memory.
///
/// With n steps, what has no costs beside it takes O(log n).
///
/// ```
/// use pbs_profile::Profile;
///
/// // 64 cores, of which a job takes 48 from 100 to 400.
/// let mut free = Profile::new(64);
/// free.subtract(100..400, 48)?;
/// assert_eq!(free.value_at(250), 16);
/// // 32 cores for 200 units of time are free after it; for 50, before it.
/// assert_eq!(free.find_first_hole(32, 200, 0..1000), Some(400));
/// assert_eq!(free.find_first_hole(32, 50, 0..1000), Some(0));
/// # Ok::<(), pbs_profile::Error>(())
/// ```
#[derive(Clone)]
pub struct Profile {
    pub(crate) tree: Tree,
}

impl Profile {
    /// Creates a profile with one value from 0 on.
    pub fn new(value: u64) -> Self {
        Self::starting_at(0, value)
    }

    /// Creates a profile with one value from `start` on. A start at [`FOREVER`] is replaced by one
    /// just before.
    pub fn starting_at(start: u64, value: u64) -> Self {
        Self::built(Builder::new(start.min(FOREVER - 1), value))
    }

    /// Made of the times at which steps begin, with their values; O(n). Equal
    /// neighbours become one step.
    ///
    /// Keller's slots and the list of Klein and Pérez 2011, A.3, say where a value
    /// ends as well; here the next step says it.
    ///
    /// # Errors
    ///
    /// [`Error::NoStep`] if there is none, [`Error::StepOutOfOrder`] if one is not
    /// after the one before it, or not before [`FOREVER`].
    ///
    /// ```
    /// use pbs_profile::Profile;
    ///
    /// // 4 nodes for an hour, 3 for another one, none afterwards.
    /// let view = Profile::from_steps([(0, 4), (3600, 3), (7200, 0)])?;
    /// assert_eq!(view.value_at(1800), 4);
    /// assert_eq!(view.value_at(3600), 3);
    /// assert_eq!(view.value_at(7200), 0);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn from_steps(steps: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, Error> {
        let in_order = |time: u64, before: Option<u64>| {
            if time < FOREVER && before.is_none_or(|before| before < time) {
                Ok(Some(time))
            } else {
                Err(Error::StepOutOfOrder { time })
            }
        };
        let mut steps = steps.into_iter();
        let (start, value) = steps.next().ok_or(Error::NoStep)?;
        let mut before = in_order(start, None)?;
        let mut builder = Builder::new(start, value);
        for (time, value) in steps {
            before = in_order(time, before)?;
            builder.push(time, value);
        }
        Ok(Self::built(builder))
    }

    pub(crate) fn built(builder: Builder) -> Self {
        Self { tree: builder.finish() }
    }

    /// Returns the beginning of the profile.
    pub fn start(&self) -> u64 {
        self.tree.start()
    }

    /// Returns the number of steps: 1 if the value is the same for ever.
    pub fn step_count(&self) -> usize {
        self.tree.steps()
    }

    /// Returns the memory that the profile uses besides itself, in bytes.
    ///
    /// ```
    /// use pbs_profile::Profile;
    ///
    /// let mut profile = Profile::new(0);
    /// let small = profile.heap_bytes();
    /// for time in 1..1000 {
    ///     profile.add(time..2 * time, 1)?;
    /// }
    /// assert!(profile.heap_bytes() > 20 * small);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn heap_bytes(&self) -> usize {
        self.tree.heap_bytes()
    }

    /// The steps in the order of time; the last reaches to [`FOREVER`].
    ///
    /// ```
    /// use pbs_profile::{Profile, Step, FOREVER};
    ///
    /// let mut used = Profile::new(0);
    /// used.add(10..30, 2)?;
    /// let steps: Vec<Step> = used.iter().collect();
    /// assert_eq!(steps[1], Step { from: 10, until: 30, value: 2 });
    /// assert_eq!(steps[2], Step { from: 30, until: FOREVER, value: 0 });
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn iter(&self) -> Steps<'_> {
        self.steps_from(self.start())
    }

    /// The steps from the one on that `time` is in.
    pub fn steps_from(&self, time: u64) -> Steps<'_> {
        Steps::new(self, time)
    }

    /// The value at a time: `cap` of Klein and Pérez 2011, A.3.
    pub fn value_at(&self, time: u64) -> u64 {
        self.tree.value_at(time)
    }

    /// The part of an interval that is not before the start; `None` if that is
    /// nothing.
    pub(crate) fn within(&self, over: &Range<u64>) -> Option<Range<u64>> {
        let part = over.start.max(self.start())..over.end;
        (!part.is_empty()).then_some(part)
    }

    /// The least value in an interval; `None` if nothing of it is after the start.
    ///
    /// With the duration of a request, this is what `alloc` of Klein and Pérez
    /// 2011, A.3, may give it at most.
    pub fn min_over(&self, over: Range<u64>) -> Option<u64> {
        let over = self.within(&over)?;
        Some(self.tree.extremes_over(&over).0)
    }

    /// The greatest value in an interval; `None` if nothing of it is after the
    /// start.
    pub fn max_over(&self, over: Range<u64>) -> Option<u64> {
        let over = self.within(&over)?;
        Some(self.tree.extremes_over(&over).1)
    }

    /// Values times the time for which they hold, summed over an interval: Keller's
    /// area, in units of time times units of the value. What is before the start
    /// is nothing. Takes the time to go through the steps of the interval.
    ///
    /// What remains of the memory in a stretch of time is compared with what a job
    /// needs of it in this unit (Glaß 2024, 5.1.3).
    ///
    /// ```
    /// # use pbs_profile::Profile;
    /// let mut free = Profile::new(10);
    /// free.subtract(20..30, 4)?;
    /// assert_eq!(free.integral(0..40), 40 * 10 - 10 * 4);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn integral(&self, over: Range<u64>) -> u128 {
        let Some(over) = self.within(&over) else {
            return 0;
        };
        let steps = self.steps_from(over.start);
        steps
            .take_while(|step| step.from < over.end)
            .map(|step| {
                let span = step.until.min(over.end) - step.from.max(over.start);
                u128::from(span) * u128::from(step.value)
            })
            .sum()
    }

    /// The first time in the window from which on at least `need` is there for
    /// `duration`, all of it in the window: `findHole` of Klein and Pérez 2011,
    /// A.3. A window that ends at [`FOREVER`] has no end, nor has a duration of
    /// [`FOREVER`]; one of 0 is found where the window begins.
    ///
    /// Usually O(log n). At worst, where `need` is there again and again, but always
    /// too briefly, linear in the steps before the hole; and no more than O(log n)
    /// for each time that `duration` fits into that time.
    pub fn find_first_hole(&self, need: u64, duration: u64, window: Range<u64>) -> Option<u64> {
        self.count_first_hole(need, duration, window).0
    }

    /// The first hole like [`find_first_hole`](Self::find_first_hole), with the number of steps and
    /// nodes that were looked at: a measure of the time that the question took.
    ///
    /// ```
    /// # use pbs_profile::Profile;
    /// let mut free = Profile::new(1);
    /// for time in 0..1000 {
    ///     free.subtract(10 * time..10 * time + 1, 1)?;
    /// }
    /// // Each of the stretches is too short by one.
    /// let (found, looked_at) = free.count_first_hole(1, 10, 0..u64::MAX);
    /// assert_eq!(found, Some(9_991));
    /// assert!(looked_at >= 1000);
    /// # Ok::<(), pbs_profile::Error>(())
    /// ```
    pub fn count_first_hole(
        &self,
        need: u64,
        duration: u64,
        window: Range<u64>,
    ) -> (Option<u64>, u64) {
        let window = window.start.max(self.start())..window.end;
        if window.start > window.end {
            return (None, 0);
        }
        if duration == 0 {
            return (Some(window.start), 0);
        }
        self.tree.first_hole(need, duration, &window)
    }

    /// The first time in an interval at which less than `need` is there.
    pub fn first_below(&self, need: u64, over: Range<u64>) -> Option<u64> {
        let over = self.within(&over)?;
        self.tree.first_below(need, &over)
    }

    /// The first time in an interval at which at least `need` is there.
    pub fn first_at_least(&self, need: u64, over: Range<u64>) -> Option<u64> {
        let over = self.within(&over)?;
        self.tree.first_hole(need, 1, &over).0
    }

    /// The stretches of the window in which at least `need` is there all the time,
    /// and which are no shorter than `duration`: Keller's getFreeSlots. Each is as
    /// long as can be in the window. See [`FreeSlots`].
    pub fn free_slots(&self, need: u64, duration: u64, window: Range<u64>) -> FreeSlots<'_> {
        let need = Need { profile: self, amount: need };
        FreeSlots::new(vec![need], duration, window)
    }
}

/// They begin at the same time and have the same values.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.step_count() == other.step_count() && self.iter().eq(other.iter())
    }
}

impl Eq for Profile {}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.iter().map(|step| (step.from, step.value));
        f.debug_map().entries(steps).finish()
    }
}

impl<'a> IntoIterator for &'a Profile {
    type Item = crate::Step;
    type IntoIter = Steps<'a>;

    fn into_iter(self) -> Steps<'a> {
        self.iter()
    }
}
