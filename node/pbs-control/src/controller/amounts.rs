// SPDX-License-Identifier: GPL-2.0
//! Amounts of resources that change while runs hold them (Leppert 2021, 3.3.2).
//!
//! A smaller amount is in force once the runs that were promised more fit into it. Until then the
//! larger one remains for them, and the caller admits nothing that holds the resource: no answer to
//! a prediction failure takes anything from a promise, or gives a new one more than there is.

use super::Controller;

impl Controller {
    /// Sets the amount of a resource, given by its index on the machine. Returns whether it is in
    /// force: runs keep what they hold and were promised.
    pub fn set_amount(&mut self, resource: usize, count: u64, now_ns: u64) -> bool {
        let is_known = resource < self.store.machine().resources.len();
        is_known
            && self.most_held(resource, now_ns) <= count
            // More than 64 bits can say is no amount.
            && self.store.set_resource(resource, count, now_ns).is_ok()
    }

    /// Returns the most of a resource that runs hold at once from now on: by their reservations, by
    /// what processes hold that were to begin by now and have not ended, and by all that those runs
    /// name that have no place.
    pub fn most_held(&self, resource: usize, now_ns: u64) -> u64 {
        let Some(of) = self.store.machine().resources.get(resource) else {
            return 0;
        };
        let free = self.store.resource(resource).min_over(now_ns..u64::MAX);
        let reserved = of.count.saturating_sub(free.unwrap_or(of.count));
        let (mut begun, mut unplaced) = (0u64, 0u64);
        for (&run, active) in self.runs.iter().filter(|(_, active)| !active.is_over()) {
            match self.store.run(run) {
                // A reservation that has passed says nothing: a process that is late holds it.
                Some(planned) => {
                    let is_open = |process: usize| {
                        active.tracks.get(process).is_none_or(|track| track.end().is_none())
                    };
                    let held = planned.holders(resource);
                    let held = held
                        .filter(|&(process, start_ns, _)| start_ns <= now_ns && is_open(process));
                    begun = held.fold(begun, |sum, (.., count)| sum.saturating_add(count));
                }
                None => {
                    let open = active.tracks.iter().enumerate();
                    let open = open.filter(|(_, track)| track.end().is_none());
                    let amounts = open.flat_map(|(process, _)| active.job.amounts(process));
                    let named = amounts.filter(|amount| amount.resource == of.name);
                    unplaced = named.fold(unplaced, |sum, it| sum.saturating_add(it.count));
                }
            }
        }
        reserved.max(begun).saturating_add(unplaced)
    }
}
