// SPDX-License-Identifier: GPL-2.0
//! Several resources at once.

use std::ops::Range;

use crate::Profile;

/// Required amount of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// Profile of the resource.
    pub profile: &'a Profile,
    /// The least that there must be, in the unit of the profile.
    pub amount: u64,
}

/// The first time in the window from which on all that is needed is there for
/// `duration`, all of it in the window. As [`Profile::find_first_hole`], which it
/// asks of one profile after the other until all agree. If nothing is needed, the
/// window's begin is.
///
/// ```
/// use pbs_profile::{find_first_hole, Need, Profile};
///
/// let mut cores = Profile::new(8);
/// let mut memory_bytes = Profile::new(1 << 30);
/// cores.subtract(0..100, 6)?;
/// memory_bytes.subtract(120..200, 1 << 30)?;
/// let needs = [
///     Need { profile: &cores, amount: 4 },
///     Need { profile: &memory_bytes, amount: 1 << 20 },
/// ];
/// assert_eq!(find_first_hole(&needs, 20, 0..1000), Some(100));
/// assert_eq!(find_first_hole(&needs, 30, 0..1000), Some(200));
/// # Ok::<(), pbs_profile::Error>(())
/// ```
pub fn find_first_hole(needs: &[Need<'_>], duration: u64, window: Range<u64>) -> Option<u64> {
    let mut time = window.start;
    if time.saturating_add(duration) > window.end {
        return None;
    }
    let mut agreed = 0;
    for need in needs.iter().cycle() {
        if agreed == needs.len() {
            break;
        }
        let rest = time..window.end;
        let found = need.profile.find_first_hole(need.amount, duration, rest)?;
        agreed = if found == time { agreed + 1 } else { 1 };
        time = found;
    }
    Some(time)
}
