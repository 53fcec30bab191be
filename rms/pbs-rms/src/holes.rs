// SPDX-License-Identifier: GPL-2.0
//! Before which times there is no room, as a pass has found out so far.
//!
//! While a pass places requests it only takes nodes. So where it has found that so many are
//! free for so long at some time at the earliest, as many or more are not free for as long or
//! longer before that time, for the rest of the pass. Those who queue all search the same full
//! stretch, each from its begin, which is as long as there are many of them; so each begins
//! where that of the others has ended.

/// The earliest times of holes in one profile, of which values only become less.
#[derive(Debug)]
pub(crate) struct Holes {
    /// A Fenwick tree over classes of nodes. In each place how long, and when at the earliest;
    /// both grow, as what is shorter and not earlier says more.
    places: Vec<Vec<(u64, u64)>>,
}

/// The class of so many nodes: there are eight from one power of two to the next, and below 16
/// each number is one.
fn class_of(nodes: u64) -> usize {
    let shift = nodes.max(1).ilog2().saturating_sub(3);
    (shift << 3) as usize + (nodes >> shift) as usize
}

impl Holes {
    /// Creates an empty set for a profile with at most that many nodes.
    pub(crate) fn new(most: u64) -> Self {
        Self { places: vec![Vec::new(); class_of(most) + 2] }
    }

    /// Before which time there are not so many nodes, at least one, for so long; 0 if that is
    /// not known.
    pub(crate) fn earliest_ns(&self, nodes: u64, duration_ns: u64) -> u64 {
        let mut earliest_ns = 0;
        // What the class begins with is no more than the nodes.
        let mut class = class_of(nodes).min(self.places.len() - 1);
        while class > 0 {
            let known = &self.places[class];
            let end = known.partition_point(|it| it.0 <= duration_ns);
            let last = end.checked_sub(1).map_or(0, |place| known[place].1);
            earliest_ns = earliest_ns.max(last);
            class &= class - 1;
        }
        earliest_ns
    }

    /// Records that `begin_ns` is the earliest time at which that many nodes, at least one, are
    /// free for the duration.
    pub(crate) fn found(&mut self, nodes: u64, duration_ns: u64, begin_ns: u64) {
        if begin_ns <= self.earliest_ns(nodes, duration_ns) {
            return;
        }
        // All numbers of this class and of those after it are no less than the nodes.
        let mut class = class_of(nodes - 1) + 1;
        while let Some(known) = self.places.get_mut(class) {
            let from = known.partition_point(|it| it.0 < duration_ns);
            let until = from + known[from..].partition_point(|it| it.1 <= begin_ns);
            let is_known = known[..from].last().is_some_and(|it| it.1 >= begin_ns)
                || known.get(from).is_some_and(|it| it.0 == duration_ns && it.1 >= begin_ns);
            if !is_known {
                known.splice(from..until, [(duration_ns, begin_ns)]);
            }
            class += class & class.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_gen::{Random, Stream};
    use pbs_profile::view::FOREVER;
    use pbs_profile::Profile;

    #[test]
    fn classes_are_in_order_and_begin_where_they_say() {
        for nodes in 1..5000 {
            let (before, class) = (class_of(nodes - 1), class_of(nodes));
            assert!(class == before || class == before + 1);
            assert!(nodes > 16 || class == before + 1);
        }
        assert!(class_of(u64::MAX) < 512);
    }

    #[test]
    fn what_has_to_be_searched_from_there_is_found_where_it_is_from_the_begin() {
        let mut skipped = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed, Stream::Messages);
            let most = 1 + random.below(100);
            let mut profile = Profile::new(most);
            let mut holes = Holes::new(most);
            for _ in 0..300 {
                let nodes = 1 + random.below(most);
                let duration = match random.below(20) {
                    0 => FOREVER,
                    _ => 1 + random.below(50),
                };
                let begin = profile.find_first_hole(nodes, duration, 0..FOREVER);
                let earliest = holes.earliest_ns(nodes, duration);
                let hole = profile.find_first_hole(nodes, duration, earliest..FOREVER);
                assert_eq!(hole, begin, "{nodes} for {duration}");
                skipped += u64::from(earliest > 0);
                holes.found(nodes, duration, begin.unwrap_or(FOREVER));
                // Some are placed later than they could be, or not at all.
                let from = begin.map(|ns| ns + random.below(2) * random.below(9));
                let over = from.map(|ns| ns..ns.saturating_add(duration));
                if let Some(over) = over.filter(|_| random.below(10) > 0) {
                    let _ = profile.subtract(over, nodes);
                }
            }
        }
        assert!(skipped > 6000, "only {skipped} of 12,000");
    }
}
