// SPDX-License-Identifier: GPL-2.0
//! The order of gaps against a plain list of them.

use super::*;

/// A small generator of its own, so that a failure can be repeated.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *state >> 33
}

#[test]
fn finds_what_a_look_at_every_gap_finds() {
    let mut state = 7;
    for round in 0..40 {
        let cores = 1 + round % 9;
        let free = |core| Gap { start_ns: 0, end_ns: u64::MAX, core };
        let mut gaps = Gaps::new((0..cores).map(free).collect());
        let mut plain: Vec<Gap> = gaps.iter().copied().collect();
        let mut taken = Vec::new();
        for _ in 0..400 {
            if next(&mut state).is_multiple_of(4) && !taken.is_empty() {
                let which = next(&mut state) as usize % taken.len();
                let (core, given): (u32, Range<u64>) = taken.swap_remove(which);
                let touches = |gap: &Gap| {
                    gap.core == core && (gap.end_ns == given.start || gap.start_ns == given.end)
                };
                let around = plain.iter().filter(|gap| touches(gap));
                let free = around.fold(given.clone(), |free, gap| {
                    free.start.min(gap.start_ns)..free.end.max(gap.end_ns)
                });
                plain.retain(|gap| !touches(gap));
                plain.push(Gap { start_ns: free.start, end_ns: free.end, core });
                gaps.give(core, &free, &given);
            } else {
                let from_ns = next(&mut state) % 2000;
                let duration_ns = 1 + next(&mut state) % 60;
                let odd = next(&mut state).is_multiple_of(2);
                let wanted = |core: u32| !odd || core % 2 == 1;
                let starts = plain.iter().filter(|gap| wanted(gap.core)).filter_map(|gap| {
                    let start_ns = gap.start_ns.max(from_ns);
                    (gap.end_ns >= start_ns + duration_ns).then_some(start_ns)
                });
                let latest_ns = [u64::MAX, from_ns + next(&mut state) % 300][odd as usize];
                let found = gaps.earliest(
                    &Budget::unbounded(),
                    &(from_ns..=latest_ns),
                    duration_ns,
                    wanted,
                );
                let starts = starts.filter(|&start_ns| start_ns <= latest_ns);
                assert_eq!(found.map(|(start_ns, _)| start_ns), starts.min());
                let Some((start_ns, core)) = found else {
                    continue;
                };
                let range = start_ns..start_ns + duration_ns;
                let place = plain.iter().position(|gap| {
                    gap.core == core && gap.start_ns <= range.start && gap.end_ns >= range.end
                });
                let gap = plain.swap_remove(place.expect("the gap that was found"));
                for rest in [gap.start_ns..range.start, range.end..gap.end_ns] {
                    if !rest.is_empty() {
                        plain.push(Gap { start_ns: rest.start, end_ns: rest.end, core });
                    }
                }
                gaps.take(core, &(gap.start_ns..gap.end_ns), &range);
                taken.push((core, range));
            }
            plain.sort_unstable_by_key(Gap::key);
            assert!(gaps.iter().eq(&plain));
        }
        gaps.forget_before(500);
        plain.retain(|gap| gap.end_ns > 500);
        plain.iter_mut().for_each(|gap| gap.start_ns = gap.start_ns.max(500));
        plain.sort_unstable_by_key(Gap::key);
        assert!(gaps.iter().eq(&plain));
    }
}
