// SPDX-License-Identifier: GPL-2.0
//! Number of used cores over time.

use crate::{Outcome, TraceJob};

/// Returns the times at which the number of used cores changes, in order and without duplicates,
/// each with the new number. The last number is zero; the list is empty if nothing ran.
pub fn usage(jobs: &[TraceJob], outcomes: &[Outcome]) -> Vec<(u64, u64)> {
    let mut changes = Vec::with_capacity(2 * jobs.len());
    for (job, outcome) in jobs.iter().zip(outcomes) {
        if let Some(start_s) = outcome.start_s {
            changes.push((start_s, i128::from(job.cores)));
            changes.push((outcome.end_s, -i128::from(job.cores)));
        }
    }
    changes.sort_unstable();
    let mut used = 0;
    let mut steps: Vec<(u64, u64)> = Vec::new();
    for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
        used += at_once.iter().map(|change| change.1).sum::<i128>();
        let cores = u64::try_from(used).unwrap_or(u64::MAX);
        if steps.last().map_or(0, |step| step.1) != cores {
            steps.push((at_once[0].0, cores));
        }
    }
    steps
}

/// Steps of [`usage`] as means over `count` stretches of the same length from `from_s` to
/// `to_s`: what can be drawn of a year.
pub fn mean_usage(steps: &[(u64, u64)], from_s: u64, to_s: u64, count: usize) -> Vec<f64> {
    let span_s = to_s.saturating_sub(from_s) as f64;
    let mut core_seconds = vec![0.0; count];
    if count == 0 || span_s == 0.0 {
        return core_seconds;
    }
    let width_s = span_s / count as f64;
    let ends = steps.iter().skip(1).map(|step| step.0).chain([to_s]);
    for (&(begin_s, cores), end_s) in steps.iter().zip(ends) {
        let begin = begin_s.clamp(from_s, to_s) - from_s;
        let end = end_s.clamp(from_s, to_s) - from_s;
        if cores == 0 || begin >= end {
            continue;
        }
        let (begin, end) = (begin as f64, end as f64);
        let place_of = |at: f64| ((at / width_s) as usize).min(count - 1);
        // By number and not by time: rounding can't repeat a stretch, however long the span is.
        let places = core_seconds.iter_mut().enumerate().take(place_of(end) + 1);
        for (place, sum) in places.skip(place_of(begin)) {
            let from = begin.max(place as f64 * width_s);
            let to = if place + 1 == count { end } else { end.min((place + 1) as f64 * width_s) };
            *sum += (to - from).max(0.0) * cores as f64;
        }
    }
    core_seconds.iter().map(|sum| sum / width_s).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{replay, Fcfs};

    #[test]
    fn steps_and_their_means() {
        let jobs =
            [TraceJob::new(5, 10, 10, 2), TraceJob::new(5, 20, 20, 1), TraceJob::new(6, 10, 10, 2)];
        let outcomes = replay(&jobs, &mut Fcfs::new(3), |_| ()).unwrap();
        // The third takes over from the first without a step.
        let steps = usage(&jobs, &outcomes);
        assert_eq!(steps, [(5, 3), (25, 0)]);
        assert_eq!(mean_usage(&steps, 0, 30, 3), [1.5, 3.0, 1.5]);
        assert_eq!(mean_usage(&steps, 0, 100, 1), [0.6]);
        assert_eq!(mean_usage(&steps, 10, 20, 2), [3.0, 3.0]);
        assert!(mean_usage(&[], 0, 0, 0).is_empty());
        for span_s in [999_983, 100_000_000_003, 1 << 62] {
            let parts = mean_usage(&[(0, 7), (span_s, 0)], 0, span_s, 600);
            assert!(parts.iter().all(|part| (part - 7.0).abs() < 1e-6), "{span_s}: {parts:?}");
        }
    }
}
