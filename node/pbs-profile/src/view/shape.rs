// SPDX-License-Identifier: GPL-2.0
//! Requests that hang together: where all of them fit.
//!
//! With FREE, COALLOC and NEXT all offsets of a tree of requests follow from its root, so that
//! a tree is a rigid shape. The worklist that is printed for `fit` (Klein and Pérez 2011,
//! A.4.2) moves a parent when a child does not fit, again and again, and comes to the same
//! place where no two requests overlap; where they do, it books the same nodes twice.

use crate::{Profile, FOREVER};

use crate::view::Steps;

/// A request in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the profile from which it takes nodes.
    pub profile: usize,
    /// Beginning relative to the root.
    pub offset_ns: u64,
    /// [`FOREVER`]: it does not end.
    pub duration_ns: u64,
    /// Number of nodes that it takes.
    pub nodes: u64,
}

/// Requirement of a shape for a profile in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the profile.
    pub profile: usize,
    /// Beginning relative to the root.
    pub offset_ns: u64,
    /// [`FOREVER`]: it does not end.
    pub duration_ns: u64,
    /// The sum of all that overlaps here.
    pub nodes: u64,
}

/// The stretches in which parts need nodes, each with what they need together.
pub fn segments(parts: &[Part]) -> Vec<Segment> {
    if let [part] = parts {
        // Most shapes are one request.
        return vec![Segment {
            profile: part.profile,
            offset_ns: part.offset_ns,
            duration_ns: part.duration_ns,
            nodes: part.nodes,
        }];
    }
    let last = parts.iter().map(|part| part.profile).max();
    let of_profile = |profile| {
        let mut needs = Steps::default();
        for part in parts.iter().filter(|part| part.profile == profile) {
            let end_ns = part.offset_ns.saturating_add(part.duration_ns);
            needs.add(part.offset_ns..end_ns, part.nodes);
        }
        let stretches: Vec<_> = needs.stretches().collect();
        stretches.into_iter().map(move |(over, nodes)| Segment {
            profile,
            offset_ns: over.start,
            duration_ns: match over.end {
                FOREVER => FOREVER,
                end_ns => end_ns - over.start,
            },
            nodes,
        })
    };
    last.map_or_else(Vec::new, |last| (0..=last).flat_map(of_profile).collect())
}

/// The first time, not before one, at which all segments fit if the shape begins then.
///
/// Takes O(log n) of n steps for each segment and each time that one of them does not fit.
pub fn find_shape(profiles: &[Profile], shape: &[Segment], from_ns: u64) -> Option<u64> {
    let mut queries = u64::MAX;
    // Nobody makes more queries than these.
    find_shape_within(profiles, shape, from_ns, &mut queries).unwrap_or(None)
}

/// [`find_shape`] with at most that many queries of a profile, of which those made are taken.
///
/// # Errors
///
/// The time that was reached when no query was left: the shape fits at none before.
pub fn find_shape_within(
    profiles: &[Profile],
    shape: &[Segment],
    from_ns: u64,
    queries: &mut u64,
) -> Result<Option<u64>, u64> {
    let mut time_ns = from_ns;
    let mut agreed = 0;
    for segment in shape.iter().cycle() {
        if agreed == shape.len() {
            break;
        }
        let begin_ns = time_ns.checked_add(segment.offset_ns);
        let (Some(begin_ns), Some(profile)) = (begin_ns, profiles.get(segment.profile)) else {
            return Ok(None);
        };
        *queries = queries.checked_sub(1).ok_or(time_ns)?;
        let over_ns = begin_ns..FOREVER;
        let hole_ns = profile.find_first_hole(segment.nodes, segment.duration_ns, over_ns);
        let Some(hole_ns) = hole_ns else {
            return Ok(None);
        };
        // A profile may begin later, but no earlier.
        if hole_ns > begin_ns {
            time_ns = hole_ns - segment.offset_ns;
            agreed = 1;
        } else {
            agreed += 1;
        }
    }
    Ok(Some(time_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset_ns: u64, duration_ns: u64, nodes: u64) -> Part {
        Part { profile: 0, offset_ns, duration_ns, nodes }
    }

    fn view(last: u64) -> Profile {
        Profile::from_steps([(0, 4), (20, 2), (30, last)]).expect("in order")
    }

    #[test]
    fn a_child_pushes_its_parent_back() {
        // 4 nodes for 10, then 6 for 10.
        let shape = segments(&[part(0, 10, 4), part(10, 10, 6)]);
        assert_eq!(find_shape(&[view(8)], &shape, 0), Some(30));
        assert_eq!(find_shape(&[view(5)], &shape, 0), None);
    }

    #[test]
    fn overlapping_requests_add_up() {
        let shape = segments(&[part(0, 10, 4), part(0, 10, 8)]);
        assert_eq!(shape.len(), 1);
        assert_eq!(shape[0].nodes, 12);
        let wide = Profile::from_steps([(0, 4), (10, 12)]).expect("in order");
        let narrow = Profile::from_steps([(0, 4), (10, 10)]).expect("in order");
        assert_eq!(find_shape(&[wide], &shape, 0), Some(10));
        assert_eq!(find_shape(&[narrow], &shape, 0), None);
    }

    #[test]
    fn clusters_of_a_shape_must_agree() {
        let mut other = part(5, 10, 3);
        other.profile = 1;
        let shape = segments(&[part(0, 10, 4), other]);
        let second = Profile::from_steps([(0, 0), (50, 3)]).expect("in order");
        assert_eq!(find_shape(&[view(8), second], &shape, 0), Some(45));
    }

    #[test]
    fn what_has_no_end_needs_all_the_future() {
        let shape = segments(&[part(0, 10, 1), part(10, FOREVER, 5)]);
        assert_eq!(find_shape(&[view(8)], &shape, 0), Some(20));
        assert_eq!(find_shape(&[view(8)], &[], 7), Some(7));
    }

    #[test]
    fn a_search_without_queries_goes_on_where_it_stopped() {
        // Holes for either part, but never for both, and one for both.
        let steps = (0..100).map(|at| (10 * at, [4, 1][at as usize % 2]));
        let profile = Profile::from_steps(steps.chain([(1000, 9)])).expect("in order");
        let shape = segments(&[part(0, 10, 4), part(15, 10, 4)]);
        let profiles = [profile];
        assert_eq!(find_shape(&profiles, &shape, 0), Some(1000));
        let (mut from_ns, mut searches) = (0, 0);
        let found = loop {
            searches += 1;
            // One more than there are segments moves the shape.
            let mut queries = 3;
            match find_shape_within(&profiles, &shape, from_ns, &mut queries) {
                Ok(found) => break found,
                Err(reached_ns) => {
                    assert!(reached_ns > from_ns && queries == 0);
                    from_ns = reached_ns;
                }
            }
        };
        assert_eq!(found, Some(1000));
        assert!(searches > 10, "{searches}");
    }
}
