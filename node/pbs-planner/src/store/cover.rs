// SPDX-License-Identifier: GPL-2.0
//! Cores whose time up to some point is out of reach for a while.

use pbs_profile::Profile;

use super::gaps::{Gap, Gaps};
use super::{Booking, Store};
use crate::budget::{tally, Budget};

/// Steps that a step of a profile and a gap count as that are covered and uncovered: they are
/// copied twice, and sorted.
const COVERED: u64 = 8;

/// Cores as they were before they were covered.
struct Covered {
    /// Cores with the ends of their covers and their profiles.
    cores: Vec<(usize, u64, Profile)>,
}

impl Booking<'_> {
    /// Changes the store while no time of a core is free before its end in `ends_ns`. Nothing may
    /// be given back of that time meanwhile. What is taken and given behind it remains. Takes the
    /// time to copy the profiles of these cores, however many changes follow.
    pub(crate) fn covered<T>(
        &mut self,
        ends_ns: &[u64],
        work: &Budget,
        changes: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let covered = self.store.cover(ends_ns, work);
        let result = changes(self);
        self.store.uncover(covered);
        result
    }
}

impl Store {
    fn cover(&mut self, ends_ns: &[u64], work: &Budget) -> Covered {
        let mut cores = Vec::new();
        for (core, &end_ns) in ends_ns.iter().enumerate() {
            let before = &self.cores[core];
            if end_ns <= before.start() {
                continue;
            }
            let none = [(before.start(), 0)].into_iter();
            if let Ok(after) = Profile::from_steps(none.chain(steps_from(before, end_ns))) {
                cores.push((core, end_ns, std::mem::replace(&mut self.cores[core], after)));
            }
        }
        let steps: u64 = cores.iter().map(|(.., before)| before.step_count() as u64).sum();
        let steps = steps + self.find_gaps(&cores);
        work.add(COVERED * steps);
        tally::add(2 * steps);
        Covered { cores }
    }

    fn uncover(&mut self, covered: Covered) {
        for (core, end_ns, before) in &covered.cores {
            let covered = before.iter().take_while(|step| step.from < *end_ns);
            let covered = covered.map(|step| (step.from, step.value));
            let steps = covered.chain(steps_from(&self.cores[*core], *end_ns));
            // The times ascend in both parts.
            if let Ok(all) = Profile::from_steps(steps) {
                self.cores[*core] = all;
            }
        }
        self.find_gaps(&covered.cores);
    }

    /// Finds the gaps of the groups of those cores anew. Returns the number of steps of profiles
    /// that were looked at.
    fn find_gaps(&mut self, cores: &[(usize, u64, Profile)]) -> u64 {
        let mut is_changed = vec![false; self.groups.len()];
        for (core, ..) in cores {
            is_changed[self.group_of(*core)] = true;
        }
        let mut gaps: Vec<Vec<Gap>> = vec![Vec::new(); self.groups.len()];
        let mut steps = 0;
        for (core, profile) in self.cores.iter().enumerate() {
            let group = self.group_of(core);
            if !is_changed[group] {
                continue;
            }
            steps += profile.step_count() as u64;
            let free = profile.iter().filter(|step| step.value > 0);
            gaps[group].extend(free.map(|step| Gap {
                start_ns: step.from,
                end_ns: step.until,
                core: core as u32,
            }));
        }
        for (group, gaps) in self.groups.iter_mut().zip(gaps) {
            if is_changed[group.index] {
                group.gaps = Gaps::new(gaps);
            }
        }
        steps
    }
}

/// The steps of a profile from that time on.
fn steps_from(profile: &Profile, time_ns: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    profile.steps_from(time_ns).map(move |step| (step.from.max(time_ns), step.value))
}
