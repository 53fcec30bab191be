// SPDX-License-Identifier: GPL-2.0
//! Placement of a session's trees: fit (A.4.2), corrected.

use std::ops::Range;

use pbs_profile::view::{find_shape_within, segments, Segment, Steps, FOREVER};
use pbs_profile::Profile;

use crate::holes::Holes;
use crate::session::{parts, Booked, Tree};
use crate::{Kind, Session};

/// Placements of a pass for a session on a cluster, to start now or later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placed {
    pre_allocated: Steps,
    non_preemptible: Steps,
}

impl Placed {
    pub(crate) fn add(&mut self, is_firm: bool, over: Range<u64>, nodes: u64) {
        if is_firm {
            self.non_preemptible.add(over, nodes)
        } else {
            self.pre_allocated.add(over, nodes)
        }
    }

    /// Returns the nodes inside the pre-allocations that remain for non-preemptible requests.
    pub(crate) fn inside(&self, booked: &Booked, now_ns: u64) -> Profile {
        let all = booked.pre_allocated.sum(&self.pre_allocated);
        let used = booked.non_preemptible.sum(&self.non_preemptible);
        profile_of(&all.saturating_difference(&used), now_ns, |nodes| nodes)
    }

    /// Returns the nodes that other sessions can't have.
    pub(crate) fn outer(&self, booked: &Booked) -> Steps {
        let all = booked.pre_allocated.sum(&self.pre_allocated);
        all.maximum(&booked.non_preemptible.sum(&self.non_preemptible))
    }

    /// Returns the rest of the nodes that a session may take from others.
    pub(crate) fn below(&self, limit: u64, booked: &Booked, now_ns: u64) -> Profile {
        profile_of(&self.outer(booked), now_ns, |nodes| limit.saturating_sub(nodes))
    }

    /// Returns the rest of the nodes that a session may use, inside pre-allocations or not.
    pub(crate) fn below_in_all(&self, limit: u64, booked: &Booked, now_ns: u64) -> Profile {
        let used = booked.non_preemptible.sum(&self.non_preemptible);
        profile_of(&used, now_ns, |nodes| limit.saturating_sub(nodes))
    }
}

fn profile_of(steps: &Steps, now_ns: u64, of: impl Fn(u64) -> u64) -> Profile {
    let now = std::iter::once((now_ns, of(steps.at(now_ns))));
    let later = steps.iter().filter(|step| step.0 > now_ns);
    let all = now.chain(later.map(|(ns, nodes)| (ns, of(nodes))));
    // The times of steps grow, so that there is nothing to refuse.
    Profile::from_steps(all).unwrap_or_else(|_| Profile::starting_at(now_ns, 0))
}

/// Begin of a tree, as far as it depends on other requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    /// At any time.
    None,
    /// The tree begins with a request of another type: at this time or, for now, never.
    At(Option<u64>),
}

impl Anchor {
    pub(crate) fn of(session: &Session, tree: &Tree, now_ns: u64) -> Self {
        let root = &session.requests[tree.root];
        let Some(id) = root.ask.relation.parent() else {
            return Self::None;
        };
        let parent = session.place(id).map(|place| &session.requests[place]);
        Self::At(parent.and_then(|parent| {
            // It can't be moved any more; what comes late starts late.
            parent.started_ns.map(|_| now_ns).or(parent.scheduled_ns)
        }))
    }
}

/// Nodes from which a tree has its own (3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Nodes that nobody has. A non-preemptible tree counts as inside pre-allocations of its size.
    Outside,
    /// Nodes of the session's pre-allocations.
    Inside,
    /// Nodes of the pre-allocations, which are too small, and the rest as if there were none.
    Beyond,
}

impl Tree {
    /// Returns where the tree has its nodes. Pre-allocations that could not serve it even if all of
    /// them were empty do not keep it waiting.
    pub(crate) fn home(&self, session: &Session) -> Home {
        let mut asks = self.members.iter().map(|member| &session.requests[member.0].ask);
        let is_firm = session.requests[self.root].ask.kind == Kind::NonPreemptible;
        if !is_firm || !asks.all(|ask| session.has_pre_allocation(ask.cluster)) {
            return Home::Outside;
        }
        let mut needs = segments(&parts(session, self)).into_iter();
        let most = |need: &Segment| session.pre_allocated_at_most(need.profile, need.duration_ns);
        if needs.all(|need| need.nodes <= most(&need)) {
            Home::Inside
        } else {
            Home::Beyond
        }
    }

    /// Notes when the requests begin, and starts those that begin now. Returns whether the first of
    /// them begins now: nodes are kept for what depends on it then.
    pub(crate) fn schedule(&self, session: &mut Session, begin_ns: u64, now_ns: u64) -> bool {
        for &(place, offset_ns) in &self.members {
            let request = &mut session.requests[place];
            let at_ns = begin_ns.saturating_add(offset_ns);
            if at_ns <= now_ns {
                request.start(now_ns);
            } else {
                request.scheduled_ns = Some(at_ns);
            }
            request.is_reserved = true;
        }
        begin_ns <= now_ns
    }
}

/// Result of a search with a limited number of queries: the first time at which a shape fits, or as
/// an error the time that was reached.
pub(crate) type Found = Result<Option<u64>, u64>;

/// The first time, not before one, at which a shape fits; notes what that says of the others.
pub(crate) fn find_first(
    profiles: &[Profile],
    holes: &mut [Holes],
    shape: &[Segment],
    from_ns: u64,
    now_ns: u64,
    queries: &mut u64,
) -> Found {
    let earliest_ns = shape.iter().map(|segment| {
        let of = &holes[segment.profile];
        let hole_ns = of.earliest_ns(segment.nodes, segment.duration_ns);
        hole_ns.saturating_sub(segment.offset_ns)
    });
    let earliest_ns = earliest_ns.fold(from_ns, u64::max);
    let begin_ns = find_shape_within(profiles, shape, earliest_ns, queries)?;
    if let ([only], true) = (shape, from_ns == now_ns) {
        let hole_ns = begin_ns.unwrap_or(FOREVER);
        holes[only.profile].found(only.nodes, only.duration_ns, hole_ns);
    }
    Ok(begin_ns)
}

/// The first time, not before one, at which a shape fits into both.
pub(crate) fn find_in_both(
    a: &[Profile],
    b: &[Profile],
    shape: &[Segment],
    from_ns: u64,
    queries: &mut u64,
) -> Found {
    let mut time_ns = from_ns;
    loop {
        let Some(first_ns) = find_shape_within(a, shape, time_ns, queries)? else {
            return Ok(None);
        };
        match find_shape_within(b, shape, first_ns, queries)? {
            Some(both_ns) if both_ns > first_ns => time_ns = both_ns,
            found => return Ok(found),
        }
    }
}

/// Returns the rest of a profile after nodes are taken from it, each for some time after its begin.
/// The profile must have enough nodes. Takes O(n log n) of n steps and times in all, not for each
/// of them.
pub(crate) fn without(profile: &Profile, taken: &[(Range<u64>, u64)]) -> Profile {
    if taken.is_empty() {
        return profile.clone();
    }
    // Differences wrap around; what they add up to does not.
    let mut changes = Vec::with_capacity(profile.step_count() + 2 * taken.len());
    let mut before = 0;
    for step in profile.iter() {
        changes.push((step.from, step.value.wrapping_sub(before)));
        before = step.value;
    }
    for (over, nodes) in taken {
        changes.push((over.start, nodes.wrapping_neg()));
        if over.end < FOREVER {
            changes.push((over.end, *nodes));
        }
    }
    changes.sort_unstable_by_key(|change| change.0);
    let mut left = 0_u64;
    let steps = changes.chunk_by(|a, b| a.0 == b.0).map(|at_once| {
        for change in at_once {
            left = left.wrapping_add(change.1);
        }
        debug_assert!(left <= u64::MAX / 2, "there is enough");
        (at_once[0].0, left)
    });
    // The times of the steps grow, so that there is nothing to refuse.
    Profile::from_steps(steps).unwrap_or_else(|_| profile.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_gen::{Random, Stream};

    #[test]
    fn what_is_taken_at_once_is_what_is_taken_one_after_the_other() {
        for seed in 0..200 {
            let mut random = Random::new(seed, Stream::Messages);
            let steps = (0..1 + random.below(30)).map(|at| (10 + 7 * at, 500 + at % 3));
            let profile = Profile::from_steps(steps).expect("in order");
            let taken = (0..random.below(40)).map(|_| {
                let start = 10 + random.below(250);
                let end = start + 1 + random.below(60);
                let end = [end, FOREVER][usize::from(random.below(8) == 0)];
                (start..end, 1 + random.below(9))
            });
            let taken: Vec<_> = taken.collect();
            let mut expected = profile.clone();
            for (over, nodes) in &taken {
                let done = expected.subtract(over.clone(), *nodes);
                done.expect("there is enough");
            }
            assert_eq!(without(&profile, &taken), expected);
        }
    }
}
