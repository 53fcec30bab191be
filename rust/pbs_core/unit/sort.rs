// SPDX-License-Identifier: GPL-2.0

//! Tests of sorting.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::random::cases;
use crate::{sort, StdMemory};

/// Sorts as the standard library does.
#[track_caller]
fn check(mut numbers: Vec<u64>) {
    let mut expected = numbers.clone();
    expected.sort_unstable();
    sort::<StdMemory, _>(&mut numbers, Ord::cmp);
    assert_eq!(numbers, expected);
}

#[test]
fn short_slices() {
    // All orders of up to four numbers of 0 to 3.
    for length in 0..=4 {
        for code in 0..4_u32.pow(length) {
            check(
                (0..length)
                    .map(|place| u64::from(code / 4_u32.pow(place) % 4))
                    .collect(),
            );
        }
    }
}

#[test]
fn orders_that_are_hard_to_sort() {
    for length in [100, 4_096, 10_001] {
        check((0..length).collect());
        check((0..length).rev().collect());
        check(vec![7; length as usize]);
        // Up and down again, and like the pipes of an organ.
        check((0..length).map(|place| place.min(length - place)).collect());
        check((0..length).map(|place| place % 16).collect());
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn random_numbers(numbers in proptest::collection::vec(0..1_000_u64, 0..500)) {
        check(numbers);
    }
}
