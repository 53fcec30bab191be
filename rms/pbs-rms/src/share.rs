// SPDX-License-Identifier: GPL-2.0
//! Division of the preemptible nodes of a cluster: eqSchedule (A.4.3), corrected.
//!
//! Between two changes, the sum of all sessions' wants is constant. If it exceeds the available
//! nodes, the active sessions fill up evenly, and none gets less than an equal part. Otherwise each
//! session also sees the nodes that the others leave. The view of one session follows from its own
//! wants and from numbers that are equal for all. Therefore a view is computed only on demand.

use std::cell::OnceCell;

use pbs_profile::view::{Cap, Steps};
use pbs_profile::{Profile, FOREVER};

use crate::AppId;

/// A stretch of time, up to that of the next one.
#[derive(Clone, Debug)]
struct Stretch {
    from_ns: u64,
    /// Number of available nodes.
    nodes: u64,
    /// The sum of all wants.
    wanted: u64,
    /// Number of sessions that want nodes.
    active: u64,
    /// Level up to which all sessions are filled, if the wants exceed the nodes.
    level: u64,
    /// Remaining nodes above the level, for the earliest connected of the sessions that want more.
    rest: u64,
    /// The last of those that get one of the rest, when somebody has asked.
    last_with_rest: OnceCell<Option<AppId>>,
}

impl Stretch {
    fn is_overloaded(&self) -> bool {
        self.wanted > self.nodes
    }

    fn is_as(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.nodes, it.wanted, it.active, it.level, it.rest);
        of(self) == of(other)
    }
}

/// The preemptible nodes of a cluster from a time on, and who wants them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    is_strict: bool,
    /// In order of time; the last one has no end.
    stretches: Vec<Stretch>,
    /// Wants of the sessions that want nodes at some time, in the order of connection.
    wants: Vec<(AppId, Steps)>,
}

impl Shares {
    /// Divides what is there among those that want something, who come in the order of
    /// connection.
    pub(crate) fn new(
        nodes: &Profile,
        wants: Vec<(AppId, Steps)>,
        now_ns: u64,
        is_strict: bool,
    ) -> Self {
        let changes = changes_of(&wants, now_ns);
        let mut fill = Fill::default();
        let mut current = vec![0; wants.len()];
        let mut stretches = Vec::with_capacity(nodes.step_count() + changes.len());
        let mut next = 0;
        for step in nodes.steps_from(now_ns) {
            let mut from_ns = step.from.max(now_ns);
            while from_ns < step.until {
                let first = next;
                next += changes[first..].iter().take_while(|change| change.0 <= from_ns).count();
                fill.change(&mut current, &changes[first..next]);
                stretches.push(fill.stretch(from_ns, step.value));
                let change_ns = changes.get(next).map_or(FOREVER, |change| change.0);
                from_ns = change_ns.min(step.until);
            }
        }
        Self { is_strict, stretches, wants }
    }

    /// Returns the number of nodes that a session may have at a time.
    pub(crate) fn at(&self, app: AppId, time_ns: u64) -> u64 {
        self.at_with(self.wants_of(app), app, time_ns)
    }

    /// [`Shares::at`], given what it wants.
    pub(crate) fn at_with(&self, wants: Option<&Steps>, app: AppId, time_ns: u64) -> u64 {
        let place = self.stretches.partition_point(|s| s.from_ns <= time_ns);
        let stretch = place.checked_sub(1).map(|place| &self.stretches[place]);
        stretch.map_or(0, |stretch| {
            let wanted = wants.map_or(0, |steps| steps.at(time_ns));
            self.part(stretch, app, wanted)
        })
    }

    /// Returns a lookup of the sessions' wants, which must be called in the order of connection.
    pub(crate) fn wants_in_order<'a>(&'a self) -> impl FnMut(AppId) -> Option<&'a Steps> + use<'a> {
        let mut rest = &self.wants[..];
        move |app| {
            while let Some(((first, steps), after)) = rest.split_first() {
                if *first >= app {
                    return (*first == app).then_some(steps);
                }
                rest = after;
            }
            None
        }
    }

    /// Returns the nodes that a session may have from the first time on.
    pub(crate) fn cap(&self, app: AppId) -> Cap {
        let wants = self.wants_of(app);
        let from_ns = self.stretches.first().map_or(0, |stretch| stretch.from_ns);
        let ends = self.stretches.iter().skip(1).map(|stretch| stretch.from_ns);
        let ends = ends.chain(std::iter::once(FOREVER));
        let steps = self.stretches.iter().zip(ends).map(|(stretch, end_ns)| {
            let wanted = wants.map_or(0, |steps| steps.at(stretch.from_ns));
            (end_ns, self.part(stretch, app, wanted))
        });
        Cap::of_ends(from_ns, steps)
    }

    /// The sessions that want something, with the wants.
    fn wants_of(&self, app: AppId) -> Option<&Steps> {
        let place = self.wants.binary_search_by_key(&app, |want| want.0).ok()?;
        Some(&self.wants[place].1)
    }

    fn part(&self, stretch: &Stretch, app: AppId, wanted: u64) -> u64 {
        let Stretch { nodes, active, .. } = *stretch;
        if wanted == 0 {
            let equal = nodes / (active + 1);
            return if stretch.is_overloaded() || self.is_strict {
                equal
            } else {
                equal.max(nodes - stretch.wanted)
            };
        }
        // The session is one of the active ones.
        let equal = nodes / active.max(1);
        if self.is_strict {
            equal
        } else if stretch.is_overloaded() {
            let more = wanted > stretch.level && self.has_rest(stretch, app);
            equal.max(wanted.min(stretch.level) + u64::from(more))
        } else {
            equal.max(nodes - (stretch.wanted - wanted))
        }
    }

    fn has_rest(&self, stretch: &Stretch, app: AppId) -> bool {
        let Some(place) = stretch.rest.checked_sub(1) else {
            return false;
        };
        let last = stretch.last_with_rest.get_or_init(|| {
            let wants = self.wants.iter();
            let more = wants.filter(|want| want.1.at(stretch.from_ns) > stretch.level);
            more.map(|want| want.0).nth(place as usize)
        });
        last.is_some_and(|last| app <= last)
    }

    /// The times from now on at which what a session sees may be another than in an earlier
    /// division, for all whose own wants are the same.
    pub(crate) fn changed_since(&self, before: &Self, now_ns: u64) -> Vec<u64> {
        let from = |shares: &Self| {
            let place = shares.stretches.partition_point(|s| s.from_ns <= now_ns);
            place.saturating_sub(1)
        };
        let (mut old, mut new) = (from(before), from(self));
        // Who gets of a rest depends on the wants of each.
        let is_same = self.wants == before.wants;
        let mut time_ns = now_ns;
        let mut times = Vec::new();
        loop {
            match (before.stretches.get(old), self.stretches.get(new)) {
                (Some(a), Some(b)) if a.is_as(b) && (is_same || a.rest == 0) => {}
                _ => times.push(time_ns),
            }
            let end = |shares: &Self, place: usize| {
                let next = shares.stretches.get(place + 1);
                next.map_or(FOREVER, |stretch| stretch.from_ns)
            };
            let (old_ns, new_ns) = (end(before, old), end(self, new));
            time_ns = old_ns.min(new_ns);
            if time_ns == FOREVER {
                return times;
            }
            old += usize::from(old_ns == time_ns);
            new += usize::from(new_ns == time_ns);
        }
    }

    /// [`Shares::is_changed`] for those that want nothing, now or before.
    pub(crate) fn is_changed_for_others(&self, before: &Self, times: &[u64]) -> bool {
        // Nobody has this number.
        self.is_changed(before, AppId(0), times)
    }

    /// Whether what a session sees may be another than in an earlier division, of which the
    /// times of [`Shares::changed_since`] are given. Never says no where it is another; looks
    /// at no more than so many times, and says yes after those.
    pub(crate) fn is_changed(&self, before: &Self, app: AppId, times: &[u64]) -> bool {
        let both = [self.wants_of(app), before.wants_of(app)];
        self.is_changed_with(both, before, app, times)
    }

    /// [`Shares::is_changed`], given what it wants now and wanted before.
    pub(crate) fn is_changed_with(
        &self,
        [wants, wanted]: [Option<&Steps>; 2],
        before: &Self,
        app: AppId,
        times: &[u64],
    ) -> bool {
        const MOST: usize = 64;
        let differs = |ns| self.at_with(wants, app, ns) != before.at_with(wanted, app, ns);
        let now_ns = self.stretches.first().map_or(0, |stretch| stretch.from_ns);
        // Its own wants move what it sees where the numbers of all are the same.
        let own = (wants != wanted).then(|| {
            let steps = [wants, wanted].into_iter().flatten();
            let steps = steps.flat_map(|steps| steps.iter().map(|step| step.0));
            let all = [self, before].into_iter().flat_map(|shares| &shares.stretches);
            steps.chain(all.map(|stretch| stretch.from_ns))
        });
        let own = own.into_iter().flatten().map(|ns| ns.max(now_ns));
        let mut all = times.iter().copied().chain(own);
        all.by_ref().take(MOST).any(differs) || all.next().is_some()
    }
}

/// The changes of all wants from a time on: when, whose by place, and to what.
fn changes_of(wants: &[(AppId, Steps)], now_ns: u64) -> Vec<(u64, usize, u64)> {
    let mut changes = Vec::new();
    for (place, (_, steps)) in wants.iter().enumerate() {
        changes.push((now_ns, place, steps.at(now_ns)));
        let later = steps.iter().filter(|step| step.0 > now_ns);
        changes.extend(later.map(|(ns, nodes)| (ns, place, nodes)));
    }
    changes.sort_unstable();
    changes
}

/// Wants at a time, the least first.
#[derive(Default)]
struct Fill {
    wants: Vec<u64>,
    /// The sum of those before each, and of all.
    sums: Vec<u64>,
}

impl Fill {
    /// Changes wants, of which `current` has those of each session by place. Few changes move only
    /// what lies between the old want and the new one.
    fn change(&mut self, current: &mut [u64], changes: &[(u64, usize, u64)]) {
        if changes.is_empty() {
            return;
        }
        let is_few = changes.len() < current.len() / 8;
        let mut lowest = if is_few { usize::MAX } else { 0 };
        for &(_, session, nodes) in changes {
            let before = std::mem::replace(&mut current[session], nodes);
            if is_few && before != nodes {
                lowest = lowest.min(self.replace(before, nodes));
            }
        }
        if !is_few {
            self.wants = current.iter().copied().filter(|&nodes| nodes > 0).collect();
            self.wants.sort_unstable();
        }
        self.sums.truncate(lowest.saturating_add(1));
        let mut sum = self.sums.last().copied().unwrap_or(0);
        if self.sums.is_empty() {
            self.sums.push(0);
        }
        for nodes in &self.wants[self.sums.len() - 1..] {
            sum = sum.saturating_add(*nodes);
            self.sums.push(sum);
        }
    }

    /// Replaces a want by another one; 0 is none. Returns the place before which nothing has
    /// changed.
    fn replace(&mut self, before: u64, nodes: u64) -> usize {
        let mut lowest = usize::MAX;
        if before > 0 {
            lowest = self.wants.partition_point(|&want| want < before);
            self.wants.remove(lowest);
        }
        if nodes > 0 {
            let place = self.wants.partition_point(|&want| want < nodes);
            self.wants.insert(place, nodes);
            lowest = lowest.min(place);
        }
        lowest
    }

    fn stretch(&self, from_ns: u64, nodes: u64) -> Stretch {
        let wanted = self.sums.last().copied().unwrap_or(0);
        let (level, rest) = if wanted > nodes { self.level(nodes) } else { (0, 0) };
        Stretch {
            from_ns,
            nodes,
            wanted,
            active: self.wants.len() as u64,
            level,
            rest,
            last_with_rest: OnceCell::new(),
        }
    }

    /// Max-min fair: how far all can be filled up, and what is left then.
    fn level(&self, nodes: u64) -> (u64, u64) {
        let others = |place: usize| (self.wants.len() - place) as u64;
        // To fill all up to what the one at a place wants grows with the place.
        let (mut low, mut high) = (0, self.wants.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let need = self.wants[middle].saturating_mul(others(middle));
            if self.sums[middle].saturating_add(need) <= nodes {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let left = nodes.saturating_sub(self.sums[low]);
        let others = others(low).max(1);
        (left / others, left % others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_gen::{Random, Stream};

    fn shares(nodes: u64, wants: &[u64], is_strict: bool) -> Vec<u64> {
        let of = |(place, &nodes): (usize, &u64)| {
            let mut steps = Steps::default();
            steps.add(0..FOREVER, nodes);
            (AppId(place as u64), steps)
        };
        let all = wants.iter().enumerate().map(of).collect();
        let shares = Shares::new(&Profile::new(nodes), all, 0, is_strict);
        let apps = 0..wants.len() as u64;
        apps.map(|app| shares.at(AppId(app), 5)).collect()
    }

    #[test]
    fn unused_shares_go_to_others() {
        assert_eq!(shares(12, &[3, 5, 0], false), [7, 9, 4]);
        assert_eq!(shares(12, &[3, 5, 0], true), [6, 6, 4]);
        assert_eq!(shares(10, &[3, 9], false), [5, 7]);
    }

    #[test]
    fn the_remainder_goes_to_the_earliest() {
        // Each may have 3; the first two take less than that all the same.
        assert_eq!(shares(9, &[2, 3, 10], false), [3, 3, 4]);
        assert_eq!(shares(11, &[9, 1, 9, 9], false), [4, 2, 3, 3]);
        assert_eq!(shares(0, &[4, 0], false), [0, 0]);
        assert_eq!(shares(7, &[], false), [0; 0]);
    }

    #[test]
    fn no_more_is_divided_than_there_is() {
        // All wants of up to four sessions, against the definition: nobody's part can grow
        // without that of somebody shrinking who has no more.
        for code in 0..6_u64.pow(4) {
            let wants = [0, 1, 2, 3].map(|place| code / 6_u64.pow(place) % 6);
            for nodes in 0..12 {
                let parts = shares(nodes, &wants, false);
                let used: Vec<u64> = (0..4).map(|i| parts[i].min(wants[i])).collect();
                let sum: u64 = used.iter().sum();
                let wanted: u64 = wants.iter().sum();
                assert_eq!(sum, nodes.min(wanted), "{nodes} for {wants:?}: {parts:?}");
                for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
                    let is_short = used[i] < wants[i];
                    assert!(!is_short || used[j] <= used[i] + 1, "{nodes}, {wants:?}");
                }
            }
        }
    }

    #[test]
    fn few_changes_are_as_all_at_once() {
        let mut random = Random::new(1, Stream::Messages);
        let mut current = vec![0; 40];
        let (mut fill, mut expected) = (Fill::default(), current.clone());
        for round in 0..300 {
            let changes: Vec<_> = (0..1 + random.below([4, 60][round % 2]))
                .map(|_| (0, random.index(40), random.below(9).saturating_sub(2)))
                .collect();
            for &(_, session, nodes) in &changes {
                expected[session] = nodes;
            }
            fill.change(&mut current, &changes);
            let mut anew = Fill::default();
            let all: Vec<_> =
                expected.iter().enumerate().map(|(at, &want)| (0, at, want)).collect();
            anew.change(&mut vec![0; 40], &all);
            assert_eq!((&current, &fill.wants), (&expected, &anew.wants));
            assert_eq!(fill.sums, anew.sums);
        }
    }

    #[test]
    fn changes_lie_where_a_share_changes() {
        let mut wants = Steps::default();
        wants.add(0..FOREVER, 6);
        let all = vec![(AppId(1), wants)];
        let nodes = Profile::from_steps([(0, 6), (100, 4)]).expect("in order");
        let before = Shares::new(&Profile::new(6), all.clone(), 0, false);
        let after = Shares::new(&nodes, all, 0, false);
        assert_eq!(after.changed_since(&before, 0), [100]);
        assert!(after.is_changed(&before, AppId(1), &[100]));
        assert_eq!(after.cap(AppId(1)).times(0, FOREVER).collect::<Vec<_>>(), [0, 100]);
        assert_eq!((after.at(AppId(1), 99), after.at(AppId(1), 100)), (6, 4));
        assert_eq!((after.at(AppId(2), 99), after.at(AppId(2), 100)), (3, 2));
        assert!(after.changed_since(&after.clone(), 50).is_empty());
    }
}
