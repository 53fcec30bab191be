// SPDX-License-Identifier: GPL-2.0
//! Every operation against an array of one number for each unit of time.

mod common;

use std::ops::Range;

use common::Naive;
use pbs_profile::{find_first_hole, intersection, Error, FreeSlots, Need, Profile, FOREVER};
use proptest::prelude::*;

/// Times of their own that the arrays have.
const TIMES: u64 = 300;
const MOST: u64 = 12;

/// Any interval: often short, sometimes without end, sometimes empty.
fn interval(times: u64) -> impl Strategy<Value = Range<u64>> {
    let end = prop_oneof![
        12 => (0..times / 8).prop_map(Some),
        4 => (0..times).prop_map(Some),
        1 => Just(None),
    ];
    (0..times, end).prop_map(move |(start, length)| {
        start..length.map_or(FOREVER, |length| (start + length).min(times))
    })
}

#[derive(Clone, Debug)]
enum Op {
    Add(Range<u64>, u64),
    Subtract(Range<u64>, u64),
    Forget(u64),
}

fn op(times: u64, most: u64) -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (interval(times), 0..most).prop_map(|(over, amount)| Op::Add(over, amount)),
        20 => (interval(times), 0..most).prop_map(|(over, amount)| Op::Subtract(over, amount)),
        1 => (0..times / 8).prop_map(Op::Forget),
    ]
}

/// Applies an operation to both profiles. They must agree on whether it can be done.
fn apply(op: &Op, profile: &mut Profile, naive: &mut Naive) {
    let before = naive.clone();
    match op {
        Op::Add(over, amount) => {
            let done = profile.add(over.clone(), *amount);
            let same = naive.change(over, |value| value.checked_add(*amount));
            assert_eq!(done.is_ok(), same);
            if let Err(Error::TooMuch { time, value, .. }) = done {
                let first = before.first(over, |value| value.checked_add(*amount).is_none());
                assert_eq!(first, Some(time));
                assert_eq!(before.value_at(time), value);
            }
        }
        Op::Subtract(over, amount) => {
            let done = profile.subtract(over.clone(), *amount);
            let same = naive.change(over, |value| value.checked_sub(*amount));
            assert_eq!(done.is_ok(), same);
            if let Err(Error::TooLittle { time, value, .. }) = done {
                assert_eq!(before.first(over, |value| value < *amount), Some(time));
                assert_eq!(before.value_at(time), value);
            }
        }
        Op::Forget(time) => {
            profile.forget_before(*time);
            naive.forget_before(*time);
        }
    }
}

/// Asks both all there is to ask.
fn compare(profile: &Profile, naive: &Naive, over: &Range<u64>, need: u64, duration: u64) {
    let all = || over.clone();
    assert_eq!(profile.value_at(over.start), naive.value_at(over.start));
    assert_eq!(profile.min_over(all()), naive.min_over(over));
    assert_eq!(profile.max_over(all()), naive.max_over(over));
    assert_eq!(profile.first_below(need, all()), naive.first(over, |value| value < need));
    assert_eq!(profile.first_at_least(need, all()), naive.first(over, |value| value >= need));
    for duration in [duration, FOREVER] {
        let hole = Naive::first_hole(&[(naive, need)], duration, over);
        assert_eq!(profile.find_first_hole(need, duration, all()), hole);
    }
    let slots: Vec<_> = profile.free_slots(need, duration, all()).collect();
    assert_eq!(slots, naive.free_slots(need, duration, over));
    if over.end != FOREVER {
        assert_eq!(profile.integral(all()), naive.integral(over));
    }
}

/// A naive one with any values.
fn naive() -> impl Strategy<Value = Naive> {
    let value = prop_oneof![Just(0), 0..MOST];
    let runs = prop::collection::vec((value, 1usize..12), 1..60);
    (runs, prop_oneof![Just(0), 0..TIMES]).prop_map(|(runs, start)| {
        let values = runs.iter().flat_map(|&(value, length)| vec![value; length]);
        let mut values: Vec<_> = values.take(TIMES as usize + 1).collect();
        let last = values[values.len() - 1];
        values.resize(TIMES as usize + 1, last);
        Naive { start, values }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn long_sequences_of_changes(
        ops in prop::collection::vec(
            (op(TIMES, MOST), interval(TIMES), 0..2 * MOST, 0..TIMES / 4),
            1..200,
        ),
        value in prop_oneof![0..3 * MOST, Just(u64::MAX - MOST)],
    ) {
        let (mut profile, mut naive) = (Profile::new(value), Naive::new(TIMES, value));
        for (op, over, need, duration) in ops {
            apply(&op, &mut profile, &mut naive);
            // About what there is.
            let need = value.saturating_sub(MOST).saturating_add(need);
            compare(&profile, &naive, &over, need, duration);
            naive.assert_is(&profile);
        }
    }

    #[test]
    fn two_profiles(a in naive(), b in naive()) {
        let (left, right) = (a.profile(), b.profile());
        a.assert_is(&left);
        let minimum = a.combine(&b, |a, b| Some(a.min(b))).unwrap();
        minimum.assert_is(&Profile::minimum(&left, &right));
        let maximum = a.combine(&b, |a, b| Some(a.max(b))).unwrap();
        maximum.assert_is(&Profile::maximum(&left, &right));
        let sum = a.combine(&b, u64::checked_add).unwrap();
        let added = Profile::sum(&left, &right).unwrap();
        sum.assert_is(&added);
        // Often an error, except of this sum.
        match a.combine(&b, u64::checked_sub) {
            Some(difference) => {
                difference.assert_is(&Profile::difference(&left, &right).unwrap());
            }
            None => {
                let refused = Profile::difference(&left, &right);
                let is_first = |time: u64| a.value_at(time) < b.value_at(time);
                let first = (a.start.max(b.start)..).find(|&time| is_first(time)).unwrap();
                prop_assert_eq!(refused, Err(Error::TooLittle {
                    time: first,
                    value: a.value_at(first),
                    amount: b.value_at(first),
                }));
            }
        }
        let mut rest = left.clone();
        rest.forget_before(right.start());
        prop_assert_eq!(Profile::difference(&added, &right).unwrap(), rest);
    }

    #[test]
    fn several_resources_at_once(
        naives in prop::collection::vec((naive(), 0..MOST), 1..5),
        over in interval(TIMES),
        duration in 0..TIMES / 6,
    ) {
        let profiles: Vec<_> = naives.iter().map(|(naive, _)| naive.profile()).collect();
        let needs = profiles.iter().zip(&naives).map(|(profile, &(_, amount))| Need {
            profile,
            amount,
        });
        let needs: Vec<_> = needs.collect();
        let same: Vec<_> = naives.iter().map(|(naive, need)| (naive, *need)).collect();
        let hole = Naive::first_hole(&same, duration, &over);
        prop_assert_eq!(find_first_hole(&needs, duration, over.clone()), hole);
        // Free slots of all are what the free slots of each have in common.
        let duration = duration.max(1);
        let all = FreeSlots::new(needs, duration, over.clone());
        let each = profiles.iter().zip(&naives);
        let each = each.map(|(profile, (_, need))| profile.free_slots(*need, 1, over.clone()));
        let common = each.map(Iterator::collect::<Vec<_>>).reduce(|a, b| intersection(a, b).collect());
        let mut common = common.unwrap();
        common.retain(|slot| slot.end - slot.start >= duration);
        prop_assert_eq!(all.collect::<Vec<_>>(), common);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// Thousands of steps, so that there are nodes above nodes above leaves.
    #[test]
    fn a_large_profile(
        bookings in prop::collection::vec((0u64..29_600, 1u64..400, 1u64..50), 10_000),
        ops in prop::collection::vec(
            (op(30_000, 200), interval(30_000), 0u64..20_000, 0u64..600),
            40,
        ),
    ) {
        const VALUE: u64 = 10_000;
        let (mut profile, mut naive) = (Profile::new(VALUE), Naive::new(30_000, VALUE));
        for (from, length, amount) in bookings {
            let over = from..from + length;
            if profile.subtract(over.clone(), amount).is_ok() {
                for time in naive.times(&over) {
                    naive.values[time as usize] -= amount;
                }
            }
        }
        prop_assert!(profile.step_count() > 8000);
        naive.assert_is(&profile);
        for (op, over, need, duration) in ops {
            apply(&op, &mut profile, &mut naive);
            compare(&profile, &naive, &over, need, duration);
        }
        naive.assert_is(&profile);
    }
}
