// SPDX-License-Identifier: GPL-2.0
//! The schedule against a search of all schedules, and against what intervals ask for.

// A task may have a single stretch of time.
#![allow(clippy::single_range_in_vec_init)]

use pbs_gen::nets::Random;

use super::*;

/// The last moment of what is drawn.
const LAST: u64 = 12;

fn draw(random: &mut Random) -> (Vec<Work>, Vec<Range<u64>>) {
    let work = (0..1 + random.below(5)).map(|_| {
        let release_ns = random.below(8);
        let length_ns = random.below(5);
        let deadline_ns = (release_ns + 1 + random.below(8)).min(LAST);
        Work { release_ns, deadline_ns, length_ns }
    });
    let work = work.collect();
    let mut free: Vec<Range<u64>> = Vec::new();
    for time in 0..LAST {
        if random.below(4) == 0 {
            continue;
        }
        match free.last_mut().filter(|last| last.end == time) {
            Some(last) => last.end += 1,
            None => free.push(time..time + 1),
        }
    }
    (work, free)
}

fn is_free(free: &[Range<u64>], time: u64) -> bool {
    free.iter().any(|over| over.contains(&time))
}

/// Whether any schedule keeps all deadlines: each unit of time is tried with each work.
fn some_schedule(work: &[Work], left: &mut [u64], free: &[Range<u64>], time: u64) -> bool {
    let lost = |place: usize| left[place] > 0 && work[place].deadline_ns < time + left[place];
    if (0..work.len()).any(lost) {
        return false;
    }
    if left.iter().all(|&left| left == 0) {
        return true;
    }
    let here = (0..work.len()).filter(|_| is_free(free, time));
    let here: Vec<_> =
        here.filter(|&place| left[place] > 0 && work[place].release_ns <= time).collect();
    for &place in &here {
        left[place] -= 1;
        let found = some_schedule(work, left, free, time + 1);
        left[place] += 1;
        if found {
            return true;
        }
    }
    here.is_empty() && some_schedule(work, left, free, time + 1)
}

/// Checks that all work is executed, and none of it before its release, after its deadline, in the
/// time of others, or beside other work.
fn check(work: &[Work], free: &[Range<u64>], of_work: &[Vec<Range<u64>>]) {
    let mut taken = [0; LAST as usize];
    for (work, stretches) in work.iter().zip(of_work) {
        let sum: u64 = stretches.iter().map(|over| over.end - over.start).sum();
        assert_eq!(sum, work.length_ns);
        for over in stretches {
            assert!(over.start >= work.release_ns && over.end <= work.deadline_ns);
            for time in over.clone() {
                assert!(is_free(free, time));
                taken[time as usize] += 1;
            }
        }
    }
    assert!(taken.iter().all(|&taken| taken <= 1));
}

#[test]
fn the_demand_test_accepts_exactly_what_some_schedule_keeps() {
    let mut verdicts = [0; 2];
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let (work, free) = draw(&mut random);
        let mut left: Vec<u64> = work.iter().map(|work| work.length_ns).collect();
        let possible = some_schedule(&work, &mut left, &free, 0);
        let found = earliest_deadline_first(&work, free.iter().cloned());
        assert_eq!(found.is_ok(), possible, "seed {seed}: {work:?} in {free:?}");
        verdicts[usize::from(possible)] += 1;
        if let Ok(of_work) = found {
            check(&work, &free, &of_work);
        }
    }
    assert!(verdicts.iter().all(|&count| count > 800), "{verdicts:?}");
}

#[test]
fn an_overload_is_an_interval_that_asks_for_more_than_it_has() {
    let mut overloads = 0;
    for seed in 0..4_000 {
        let (work, free) = draw(&mut Random::new(seed));
        let Err(found) = earliest_deadline_first(&work, free.iter().cloned()) else {
            continue;
        };
        overloads += 1;
        let inside = work
            .iter()
            .filter(|work| work.release_ns >= found.from_ns && work.deadline_ns <= found.until_ns);
        let demand: u64 = inside.map(|work| work.length_ns).sum();
        let supply = (found.from_ns..found.until_ns).filter(|&time| is_free(&free, time)).count();
        assert_eq!((found.demand_ns, found.supply_ns), (demand, supply as u64), "seed {seed}");
        assert!(found.demand_ns > found.supply_ns, "seed {seed}: {found:?} of {work:?}");
    }
    assert!(overloads > 800, "{overloads}");
}

#[test]
fn work_of_one_deadline_does_not_interrupt_each_other() {
    let work = [(0, 10), (2, 4), (4, 1)];
    let work = work.map(|(release_ns, length_ns)| Work { release_ns, deadline_ns: 20, length_ns });
    let of_work = earliest_deadline_first(&work, [0..100]).unwrap();
    assert_eq!(of_work, [vec![0..10], vec![10..14], vec![14..15]]);
}

#[test]
fn work_without_a_deadline_has_what_others_leave() {
    let work = [(0, u64::MAX, 10), (3, 6, 2), (4, 9, 2)];
    let work = work.map(|(release_ns, deadline_ns, length_ns)| Work {
        release_ns,
        deadline_ns,
        length_ns,
    });
    let of_work = earliest_deadline_first(&work, [0..8, 20..u64::MAX]).unwrap();
    assert_eq!(of_work, [vec![0..3, 7..8, 20..26], vec![3..5], vec![5..7]]);
}
