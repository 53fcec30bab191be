// SPDX-License-Identifier: GPL-2.0
//! Refusals, the state after them, and the limits of time and of numbers.

use pbs_profile::{find_first_hole, Error, Profile, Transaction, FOREVER};

fn profile(steps: &[(u64, u64)]) -> Profile {
    Profile::from_steps(steps.iter().copied()).unwrap()
}

#[test]
fn steps_must_be_in_order() {
    let of = |steps: &[(u64, u64)]| Profile::from_steps(steps.iter().copied()).map(|_| ());
    assert_eq!(of(&[]), Err(Error::NoStep));
    assert_eq!(of(&[(5, 1), (5, 2)]), Err(Error::StepOutOfOrder { time: 5 }));
    assert_eq!(of(&[(5, 1), (4, 2)]), Err(Error::StepOutOfOrder { time: 4 }));
    let end = Err(Error::StepOutOfOrder { time: FOREVER });
    assert_eq!(of(&[(FOREVER, 1)]), end);
    assert_eq!(of(&[(0, 1), (FOREVER, 2)]), end);
    assert_eq!(of(&[(FOREVER - 1, 1)]), Ok(()));
}

#[test]
fn an_interval_does_not_end_before_it_begins() {
    let mut free = Profile::new(3);
    let (from, until) = (9, 4);
    let backwards = Err(Error::Backwards { from, until });
    assert_eq!(free.add(from..until, 1), backwards);
    assert_eq!(free.subtract(from..until, 1), backwards);
    // Even if it were nothing that is added.
    assert_eq!(free.add(from..until, 0), backwards);
    assert_eq!(free, Profile::new(3));
    assert_eq!(free.min_over(from..until), None);
    assert_eq!(free.integral(from..until), 0);
    assert_eq!(free.find_first_hole(1, 1, from..until), None);
    assert_eq!(free.free_slots(1, 1, from..until).next(), None);
}

#[test]
fn nothing_is_done_in_an_empty_interval() {
    let mut free = Profile::new(3);
    assert_eq!(free.subtract(4..4, 100), Ok(()));
    assert_eq!(free.subtract(FOREVER..FOREVER, 100), Ok(()));
    assert_eq!(free, Profile::new(3));
    assert_eq!(free.max_over(4..4), None);
}

#[test]
fn values_have_64_bits() {
    let mut all = Profile::new(u64::MAX);
    let full = |time| {
        let (value, amount) = (u64::MAX, 1);
        Err(Error::TooMuch { time, value, amount })
    };
    assert_eq!(all.add(7..FOREVER, 1), full(7));
    assert_eq!(all.subtract(3..8, u64::MAX), Ok(()));
    assert_eq!(all.add(0..8, 1), full(0));
    assert_eq!(all.add(5..8, u64::MAX), Ok(()));
    assert_eq!(all, profile(&[(0, u64::MAX), (3, 0), (5, u64::MAX)]));
    assert_eq!(all.integral(0..FOREVER), (u128::from(u64::MAX) - 2) * u128::from(u64::MAX));
    assert_eq!(all.find_first_hole(u64::MAX, 4, 0..FOREVER), Some(5));
    let overflow = Error::TooMuch { time: 0, value: u64::MAX, amount: u64::MAX };
    assert_eq!(Profile::sum(&all, &all), Err(overflow));
    assert_eq!(Profile::difference(&all, &all), Ok(Profile::new(0)));
}

#[test]
fn time_has_an_end() {
    let last = FOREVER - 1;
    let mut free = Profile::new(5);
    free.subtract(last..FOREVER, 2).unwrap();
    assert_eq!(free, profile(&[(0, 5), (last, 3)]));
    assert_eq!(free.value_at(FOREVER), 3);
    // What never ends must not end a moment before.
    assert_eq!(free.find_first_hole(5, FOREVER, 0..FOREVER), None);
    assert_eq!(free.find_first_hole(3, FOREVER, 9..FOREVER), Some(9));
    assert_eq!(free.find_first_hole(3, FOREVER, 0..last), None);
    assert_eq!(free.find_first_hole(5, last, 0..FOREVER), Some(0));
    assert_eq!(free.find_first_hole(5, last, 1..FOREVER), None);
    assert_eq!(free.find_first_hole(6, 1, 0..FOREVER), None);
    let mut slots = free.free_slots(3, 1, 10..FOREVER);
    assert_eq!((slots.next(), slots.next()), (Some(10..FOREVER), None));
    free.forget_before(FOREVER);
    assert_eq!(free, Profile::starting_at(last, 3));
    assert_eq!(Profile::starting_at(FOREVER, 3), free);
    assert_eq!(free.find_first_hole(3, 1, 0..FOREVER), Some(last));
}

#[test]
fn what_is_before_the_start_is_nobodys_concern() {
    let mut free = Profile::starting_at(100, 4);
    assert_eq!(free.subtract(0..100, 9), Ok(()));
    assert_eq!(free, Profile::starting_at(100, 4));
    assert_eq!(free.subtract(0..110, 3), Ok(()));
    assert_eq!(free, profile(&[(100, 1), (110, 4)]));
    assert_eq!(free.value_at(0), 1);
    assert_eq!((free.min_over(0..100), free.min_over(0..101)), (None, Some(1)));
    assert_eq!(free.integral(0..120), 10 + 4 * 10);
    assert_eq!(free.find_first_hole(2, 5, 0..1000), Some(110));
    assert_eq!(free.find_first_hole(1, 0, 0..50), None);
    let before = free.clone();
    free.forget_before(99);
    assert_eq!(free, before);
}

#[test]
fn nothing_is_found_in_no_time() {
    let free = profile(&[(0, 4), (10, 0), (20, 4)]);
    assert_eq!(free.find_first_hole(4, 10, 0..9), None);
    assert_eq!(free.find_first_hole(4, 10, 0..10), Some(0));
    assert_eq!(free.find_first_hole(4, 10, 1..29), None);
    assert_eq!(free.find_first_hole(4, 10, 1..30), Some(20));
    // No duration fits where nothing is free as well.
    assert_eq!(free.find_first_hole(4, 0, 12..20), Some(12));
    assert_eq!(find_first_hole(&[], 10, 5..15), Some(5));
    assert_eq!(find_first_hole(&[], 11, 5..15), None);
}

#[test]
fn what_is_not_committed_leaves_no_trace() {
    let mut profiles: Vec<_> = (0..3).map(|n| Profile::new(10 + n)).collect();
    profiles[1].subtract(0..50, 4).unwrap();
    let before = profiles.clone();
    let mut booking = Transaction::new(&mut profiles);
    assert_eq!(booking.subtract(0, 0..20, 10), Ok(()));
    assert_eq!(booking.add(1, 10..60, 7), Ok(()));
    assert_eq!(booking.subtract(1, 5..15, 1), Ok(()));
    assert_eq!(booking.add(0, 10..30, 2), Ok(()));
    let refused = booking.subtract(2, 0..5, 13);
    assert_eq!(refused, Err(Error::TooLittle { time: 0, value: 12, amount: 13 }));
    assert_eq!(booking.add(3, 0..5, 1), Err(Error::NoProfile { index: 3, profiles: 3 }));
    assert_eq!(booking.profiles()[0].value_at(15), 2);
    drop(booking);
    assert_eq!(profiles, before);

    let mut booking = Transaction::new(&mut profiles);
    booking.subtract(0, 0..20, 10).unwrap();
    booking.subtract(2, 5..9, 12).unwrap();
    booking.commit();
    assert_eq!(profiles[0], profile(&[(0, 0), (20, 10)]));
    assert_eq!(profiles[2], profile(&[(0, 12), (5, 0), (9, 12)]));
}

#[test]
fn errors_say_what_to_do() {
    let told = [
        (Error::TooLittle { time: 5, value: 1, amount: 2 }, "look for a hole first"),
        (Error::TooMuch { time: 5, value: 1, amount: 2 }, "count in a larger unit"),
        (Error::Backwards { from: 3, until: 2 }, "exchange the two"),
        (Error::NoStep, "give its first value"),
        (Error::StepOutOfOrder { time: 5 }, "in the order of time"),
        (Error::NoProfile { index: 4, profiles: 4 }, "there are 4"),
    ];
    for (error, words) in told {
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_profile_shows_its_steps() {
    let free = profile(&[(2, 8), (10, 3)]);
    assert_eq!(format!("{free:?}"), "{2: 8, 10: 3}");
}
