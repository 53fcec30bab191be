// SPDX-License-Identifier: GPL-2.0
//! Whether predictions are as good as they say, on random jobs.

#[path = "common/worth.rs"]
#[allow(dead_code)]
mod worth;

use pbs_random::estimate::{estimate, Config, Estimate};
use worth::worth;

fn after(retired: &[u64]) -> Estimate {
    estimate(&Config::DEFAULT, Some(500_000), retired).unwrap()
}

#[test]
fn nine_of_ten_runs_are_in_the_interval() {
    for (sigma, runs) in [
        (0.02, 0),
        (0.02, 1),
        (0.02, 3),
        (0.02, 32),
        (0.1, 0),
        (0.1, 1),
        (0.1, 2),
        (0.1, 3),
        (0.1, 5),
        (0.1, 8),
        (0.1, 32),
        // Of what scatters more than was thought only after some runs.
        (0.3, 16),
        (0.3, 32),
    ] {
        let found = worth(sigma, 0.0, runs);
        assert!(found.covered_permille >= 870, "{sigma} {runs}: {found:?}");
        // Nor is it wider than it must be, once the spread is known.
        if runs == 32 {
            assert!(found.covered_permille <= 930, "{sigma}: {found:?}");
        }
    }
}

#[test]
fn the_error_falls_with_the_runs() {
    let error = |runs| worth(0.1, 0.0, runs).error;
    let errors = [error(0), error(1), error(3), error(8), error(32)];
    // The user is out by half; two runs of the same job by 0.1 each.
    assert!(errors[0] > 0.3, "{errors:?}");
    assert!(errors[1] < 0.11, "{errors:?}");
    assert!(errors[2] < errors[1] && errors[3] < errors[2], "{errors:?}");
    // Half of all runs are off by more than 0.0674 from their true centre.
    assert!(errors[3] < 0.078 && errors[4] < 0.075, "{errors:?}");
}

#[test]
fn a_drift_is_followed() {
    for runs in [8, 16, 32] {
        let found = worth(0.05, 0.02, runs);
        assert!(found.covered_permille >= 870, "{runs}: {found:?}");
        // Four runs behind, which is 0.08 and what runs scatter.
        assert!(found.error < 0.11, "{runs}: {found:?}");
    }
}

#[test]
fn a_stray_run_moves_little_and_a_change_much() {
    let mut retired = vec![1_000_000; 10];
    let steady = after(&retired);
    assert!(steady.centre.abs_diff(1_000_000) < 2_000, "{steady:?}");
    retired.push(3_000_000);
    let stray = after(&retired);
    assert!(stray.centre.abs_diff(1_000_000) < 20_000, "{stray:?}");
    assert!(stray.high > steady.high);
    retired.push(3_000_000);
    let changed = after(&retired);
    assert!(changed.centre.abs_diff(3_000_000) < 20_000, "{changed:?}");

    // One up and one down are two stray ones.
    retired.truncate(10);
    retired.extend([3_000_000, 300_000]);
    let two = after(&retired);
    assert!(two.centre.abs_diff(1_000_000) < 20_000, "{two:?}");
}

#[test]
fn the_user_counts_until_there_are_runs() {
    let user = after(&[]);
    assert_eq!(user.centre, 500_000);
    assert!(user.low < 200_000 && user.high > 1_250_000);
    // Ten times as much as the user said.
    let once = after(&[5_000_000]);
    assert!((4_500_000..5_000_000).contains(&once.centre), "{once:?}");
    let often = after(&[5_000_000; 12]);
    assert!(often.centre.abs_diff(5_000_000) < 10_000, "{often:?}");
    assert_eq!(estimate(&Config::DEFAULT, None, &[]), None);
    let alone = estimate(&Config::DEFAULT, None, &[5_000_000]).unwrap();
    assert_eq!(alone.centre, 5_000_000);
}

#[test]
fn runs_that_are_alike_leave_little_room() {
    let found = after(&[20_000_012; 32]);
    assert!(found.centre.abs_diff(20_000_012) < 1_000, "{found:?}");
    assert!(found.high - found.low < 300_000, "{found:?}");
    assert!(found.high > found.centre, "{found:?}");
}

#[test]
fn the_largest_and_the_least_figures_are_figures() {
    let most = i64::MAX as u64;
    for retired in [&[0; 5][..], &[most; 5], &[0, most, 0, most, most, 1]] {
        for user in [None, Some(0), Some(most), Some(u64::MAX)] {
            let found = estimate(&Config::DEFAULT, user, retired).unwrap();
            assert!(found.low <= found.centre, "{retired:?} {user:?}");
            assert!(found.centre <= found.high, "{retired:?} {user:?}");
            assert!(found.high <= most, "{retired:?} {user:?}");
        }
    }
    for forget_permille in [0, 900] {
        let config = Config { forget_permille, ..Config::DEFAULT };
        let found = estimate(&config, Some(1), &[1_000_000; 10_000]).unwrap();
        assert!(found.centre.abs_diff(1_000_000) < 2_000, "{found:?}");
    }
}
