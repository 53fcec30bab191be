// SPDX-License-Identifier: GPL-2.0
//! Runs for which others wait, since they hold memory or resources that the others need.
//!
//! A late run goes behind all others. Behind a run that waits for what it holds it would never
//! end: it has its place before the most urgent of those that wait. A run that waits itself passes
//! this place on to the late runs for which it waits.

use std::collections::{BTreeMap, BTreeSet};

use pbs_planner::{Budget, Progress, RunId};

use super::answering::{Claim, Claims};
use super::Controller;

/// Memory and resources that the runs of a new plan hold and need.
pub(super) struct Holders {
    needs: Vec<RunNeeds>,
    /// Memory of the node that best effort does not hold.
    all_bytes: u64,
    /// Steps of work that it takes to find who waits.
    steps: u64,
}

/// Memory and resources of a run.
struct RunNeeds {
    run: RunId,
    deadline_ns: u64,
    /// Memory that it holds now.
    held_bytes: u64,
    /// The most memory that a process needs which has not begun.
    awaited_bytes: u64,
    /// Resources that it holds now.
    held: BTreeSet<String>,
    /// Resources that processes need which have not begun.
    awaited: BTreeSet<String>,
}

/// Deadlines of the runs that wait for late ones.
pub(super) struct Waiting<'a> {
    for_memory: Earliest,
    for_resources: BTreeMap<&'a str, Earliest>,
}

/// Memory that processes of a new plan hold.
struct HeldMemory {
    /// Memory that late runs hold.
    late_bytes: u64,
    /// Deadline of each innocent run that holds memory, in order, with what it and those before it
    /// hold.
    innocent_bytes: Vec<(u64, u64)>,
}

/// The two earliest deadlines, each with its run.
#[derive(Clone, Copy, Default)]
struct Earliest([Option<(u64, RunId)>; 2]);

impl Earliest {
    fn add(&mut self, deadline_ns: u64, run: RunId) {
        let new = (deadline_ns, run);
        let [first, second] = &mut self.0;
        if first.is_none_or(|first| new < first) {
            *second = first.replace(new);
        } else if second.is_none_or(|second| new < second) {
            *second = Some(new);
        }
    }

    fn other_than(&self, run: RunId) -> Option<u64> {
        let mut others = self.0.iter().flatten().filter(|(_, of)| *of != run);
        others.next().map(|(deadline_ns, _)| *deadline_ns)
    }
}

impl HeldMemory {
    fn of(needs: &[RunNeeds], claims: &Claims) -> Self {
        let (late, innocent): (Vec<_>, Vec<_>) =
            needs.iter().partition(|needs| is_late(claims, needs.run));
        let late_bytes = late.iter().fold(0_u64, |sum, it| sum.saturating_add(it.held_bytes));
        let holders = innocent.iter().filter(|needs| needs.held_bytes > 0);
        let mut innocent_bytes: Vec<_> =
            holders.map(|needs| (needs.deadline_ns, needs.held_bytes)).collect();
        innocent_bytes.sort_unstable();
        let mut sum_bytes = 0_u64;
        for (_, bytes) in &mut innocent_bytes {
            sum_bytes = sum_bytes.saturating_add(*bytes);
            *bytes = sum_bytes;
        }
        Self { late_bytes, innocent_bytes }
    }

    /// Returns the memory that late runs hold, and those innocent ones whose deadline is after
    /// `deadline_ns`: nothing else is sure to come back by then.
    fn bytes_at(&self, deadline_ns: u64) -> u64 {
        let earlier = self.innocent_bytes.partition_point(|(by_ns, _)| *by_ns <= deadline_ns);
        let sum_to = |end: usize| {
            let last = end.checked_sub(1).and_then(|last| self.innocent_bytes.get(last));
            last.map_or(0, |(_, bytes)| *bytes)
        };
        let later_bytes = sum_to(self.innocent_bytes.len()) - sum_to(earlier);
        self.late_bytes.saturating_add(later_bytes)
    }
}

impl Holders {
    /// Returns the deadlines of the runs that wait, as far as the work suffices. A run that goes
    /// behind all others and holds nothing counts without its deadline. A run for which others wait
    /// counts with a deadline just before the earliest of theirs, if its own is later.
    pub(super) fn waiting(&self, claims: &Claims, work: &Budget) -> Waiting<'_> {
        let held = HeldMemory::of(&self.needs, claims);
        let own_ns = |needs: &RunNeeds| {
            let holds = needs.held_bytes > 0 || !needs.held.is_empty();
            let is_behind = is_late(claims, needs.run) && !holds;
            if is_behind {
                u64::MAX
            } else {
                needs.deadline_ns
            }
        };
        let mut deadlines_ns: Vec<u64> = self.needs.iter().map(own_ns).collect();
        let mut waiting = self.waiting_by(claims, &held, &deadlines_ns);
        // Each pass takes an inherited deadline one step further. Runs that wait for each other in
        // a circle would pass it on for ever.
        for _ in &self.needs {
            if work.is_spent() {
                break;
            }
            work.add(self.steps);
            let mut has_changed = false;
            for (needs, deadline_ns) in self.needs.iter().zip(&mut deadlines_ns) {
                let inherited = self.awaited_by_ns(&waiting, needs.run);
                // Whoever waits comes after all for which it waits.
                let before_ns = inherited.filter(|by_ns| *by_ns < u64::MAX);
                let before_ns = before_ns.map(|by_ns| by_ns.saturating_sub(1));
                let before_ns = before_ns.filter(|before_ns| before_ns < deadline_ns);
                if let Some(before_ns) = before_ns {
                    *deadline_ns = before_ns;
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
            waiting = self.waiting_by(claims, &held, &deadlines_ns);
        }
        waiting
    }

    /// Returns the deadlines of the runs that wait, if each has this deadline.
    fn waiting_by(&self, claims: &Claims, held: &HeldMemory, deadlines_ns: &[u64]) -> Waiting<'_> {
        let mut waiting =
            Waiting { for_memory: Earliest::default(), for_resources: BTreeMap::new() };
        let planned = self.needs.iter().zip(deadlines_ns);
        for (needs, &deadline_ns) in
            planned.filter(|(needs, _)| claims.get(&needs.run) != Some(&Claim::Nowhere))
        {
            if self.lacks_memory(needs, held) {
                waiting.for_memory.add(deadline_ns, needs.run);
            }
            for name in &needs.awaited {
                waiting.for_resources.entry(name).or_default().add(deadline_ns, needs.run);
            }
        }
        waiting
    }

    /// Whether the memory that a run needs may not be there without that of the late runs.
    fn lacks_memory(&self, needs: &RunNeeds, held: &HeldMemory) -> bool {
        let left_bytes = self.all_bytes.saturating_sub(held.bytes_at(needs.deadline_ns));
        needs.awaited_bytes > left_bytes
    }

    /// Returns the earliest deadline of the others that wait for a late run; `None`: nobody does.
    pub(super) fn awaited_by_ns(&self, waiting: &Waiting<'_>, run: RunId) -> Option<u64> {
        let place = self.needs.binary_search_by_key(&run, |needs| needs.run).ok()?;
        let needs = &self.needs[place];
        let for_resources = needs.held.iter().filter_map(|name| {
            waiting.for_resources.get(name.as_str()).and_then(|earliest| earliest.other_than(run))
        });
        let for_memory = waiting.for_memory.other_than(run).filter(|_| needs.held_bytes > 0);
        for_resources.chain(for_memory).min()
    }

    /// Returns the late runs for which a run waits, directly or because others do for which it
    /// waits, as far as the work suffices.
    pub(super) fn late_before(
        &self,
        claims: &Claims,
        run: RunId,
        work: &Budget,
    ) -> BTreeSet<RunId> {
        let held = HeldMemory::of(&self.needs, claims);
        let mut found = BTreeSet::new();
        let mut open = vec![run];
        while let Some(run) = open.pop().filter(|_| !work.is_spent()) {
            work.add(self.steps);
            let Ok(place) = self.needs.binary_search_by_key(&run, |needs| needs.run) else {
                continue;
            };
            let needs = &self.needs[place];
            let lacks_memory = self.lacks_memory(needs, &held);
            for other in self.needs.iter().filter(|other| other.run != needs.run) {
                // What the innocent hold of memory comes back in time.
                let has_memory = other.held_bytes > 0 && is_late(claims, other.run);
                let has_resources = !needs.awaited.is_disjoint(&other.held);
                let blocks = lacks_memory && has_memory || has_resources;
                if blocks && found.insert(other.run) {
                    open.push(other.run);
                }
            }
        }
        found.retain(|run| is_late(claims, *run));
        found
    }
}

/// Whether a run goes behind all others.
fn is_late(claims: &Claims, run: RunId) -> bool {
    matches!(claims.get(&run), Some(Claim::Behind | Claim::Late))
}

impl Controller {
    /// Returns what the promised runs hold and need.
    pub(super) fn holders(
        &self,
        progress: &BTreeMap<RunId, Vec<Progress>>,
        work: &Budget,
    ) -> Holders {
        let store = &self.store;
        let nodes = store.machine().nodes.iter();
        let all_bytes = nodes.map(|node| store.balancing().memory_bytes(node)).min();
        let best_effort = self.runs.iter().filter(|(_, active)| active.is_best_effort());
        // It goes on behind all others, and keeps what it has until then.
        let best_effort_bytes = best_effort.fold(0_u64, |sum, (&run, active)| {
            sum.saturating_add(active.request(run, progress).held_bytes())
        });
        let all_bytes = all_bytes.map(|bytes| bytes.saturating_sub(best_effort_bytes));
        let mut steps = 0_u64;
        let promised = self.runs.iter().filter(|(_, active)| active.is_promised());
        let needs = promised.map(|(&run, active)| {
            let request = active.request(run, progress);
            let awaited = request.awaited_resources();
            steps = steps.saturating_add(1 + awaited.len() as u64);
            work.add(active.job.processes.len() as u64);
            RunNeeds {
                run,
                deadline_ns: active.job.deadline_ns,
                held_bytes: request.held_bytes(),
                awaited_bytes: request.awaited_bytes(),
                held: request.held_resources(),
                awaited,
            }
        });
        let needs = needs.collect();
        Holders { needs, all_bytes: all_bytes.unwrap_or(u64::MAX), steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(run: u64, deadline_ns: u64) -> RunNeeds {
        RunNeeds {
            run: RunId(run),
            deadline_ns,
            held_bytes: 0,
            awaited_bytes: 0,
            held: BTreeSet::new(),
            awaited: BTreeSet::new(),
        }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn late(runs: &[u64]) -> Claims {
        runs.iter().map(|&run| (RunId(run), Claim::Behind)).collect()
    }

    fn awaited_by_ns(needs: Vec<RunNeeds>, claims: &Claims) -> Vec<Option<u64>> {
        let holders = Holders { needs, all_bytes: 1000, steps: 1 };
        let waiting = holders.waiting(claims, &Budget::new(1000));
        let runs = holders.needs.iter().map(|needs| needs.run);
        runs.map(|run| holders.awaited_by_ns(&waiting, run)).collect()
    }

    /// The urgent run waits for `a`, whose late holder waits for `b`, whose late holder waits for
    /// `c`, which is held by a late run as well.
    #[test]
    fn a_place_is_inherited_along_a_chain() {
        let chain = || {
            vec![
                RunNeeds { held: names(&["c"]), ..needs(1, 9000) },
                RunNeeds { held: names(&["b"]), awaited: names(&["c"]), ..needs(2, 8000) },
                RunNeeds { held: names(&["a"]), awaited: names(&["b"]), ..needs(3, 7000) },
                RunNeeds { awaited: names(&["a"]), ..needs(4, 100) },
            ]
        };
        let by_ns = awaited_by_ns(chain(), &late(&[1, 2, 3]));
        assert_eq!(by_ns, [Some(98), Some(99), Some(100), None]);
        // An innocent one in the chain passes it on.
        let by_ns = awaited_by_ns(chain(), &late(&[1, 3]));
        assert_eq!(by_ns, [Some(98), Some(99), Some(100), None]);
        let holders = Holders { needs: chain(), all_bytes: 1000, steps: 1 };
        let work = Budget::new(1000);
        let before = holders.late_before(&late(&[1, 2, 3]), RunId(4), &work);
        assert_eq!(before.into_iter().collect::<Vec<_>>(), [1, 2, 3].map(RunId));
        let before = holders.late_before(&late(&[1, 2, 3]), RunId(2), &work);
        assert_eq!(before.into_iter().collect::<Vec<_>>(), [RunId(1)]);
        assert!(holders.late_before(&late(&[1, 2, 3]), RunId(1), &work).is_empty());
        // A step for each run that was reached: 4, 3, 2 and 1, then 2 and 1, then 1.
        assert_eq!(work.done(), 7);
    }

    /// Each run waits for the next one, and all of them hold what the one before needs.
    #[test]
    fn work_ends_when_it_is_spent() {
        let name = |number: u64| names(&[&format!("r{number}")]);
        let chain = |number| RunNeeds {
            held: name(number),
            awaited: name(number + 1),
            ..needs(number, 10_000 + number)
        };
        let runs: Vec<u64> = (1..=200).collect();
        let needs = runs.iter().map(|&number| chain(number)).collect();
        let holders = Holders { needs, all_bytes: 1000, steps: 200 };
        let work = Budget::new(1000);
        holders.waiting(&late(&runs), &work);
        assert_eq!(work.done(), 1000);
        let work = Budget::new(1000);
        assert!(holders.late_before(&late(&runs), RunId(1), &work).len() <= 5);
        assert_eq!(work.done(), 1000);
    }

    #[test]
    fn a_circle_ends() {
        let circle = vec![
            RunNeeds { held: names(&["a"]), awaited: names(&["b"]), ..needs(1, 900) },
            RunNeeds { held: names(&["b"]), awaited: names(&["a"]), ..needs(2, 800) },
        ];
        let by_ns = awaited_by_ns(circle, &late(&[1, 2]));
        assert!(by_ns.iter().all(|by_ns| by_ns.is_some_and(|by_ns| by_ns < 900)), "{by_ns:?}");
    }

    /// The late run holds 300 of 1000 bytes, and an innocent run as many.
    #[test]
    fn memory_of_the_innocent_counts_until_their_deadline() {
        let of = |innocent_ns| {
            let needs = vec![
                RunNeeds { held_bytes: 300, ..needs(1, 5000) },
                RunNeeds { held_bytes: 300, ..needs(2, innocent_ns) },
                RunNeeds { awaited_bytes: 600, ..needs(3, 1000) },
            ];
            awaited_by_ns(needs, &late(&[1]))[0]
        };
        assert_eq!(of(2000), Some(1000));
        // It has given its memory back by then.
        assert_eq!(of(900), None);
    }
}
