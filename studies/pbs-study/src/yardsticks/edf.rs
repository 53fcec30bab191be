// SPDX-License-Identifier: GPL-2.0
//! Earliest deadline first, preemptive: `SCHED_FIFO` where the earlier deadline has the
//! greater priority.

use super::{push, Demand, Stretch};

/// Runs all jobs to their ends. Of equal deadlines the job with the lower index goes first.
pub fn run(demands: &[Demand]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut left_ns: Vec<u64> = demands.iter().map(|demand| demand.length_ns).collect();
    let mut now_ns = 0;
    loop {
        let waiting = (0..demands.len()).filter(|&job| left_ns[job] > 0);
        let is_released = |job: &usize| demands[*job].release_ns <= now_ns;
        let next_ns = waiting.clone().map(|job| demands[job].release_ns);
        let next_ns = next_ns.filter(|&release_ns| release_ns > now_ns).min();
        let first = waiting.filter(is_released).min_by_key(|&job| demands[job].deadline_ns);
        match (first, next_ns) {
            (Some(job), _) => {
                let to_ns = (now_ns + left_ns[job]).min(next_ns.unwrap_or(u64::MAX));
                left_ns[job] -= to_ns - now_ns;
                push(&mut stretches, job, now_ns, to_ns);
                now_ns = to_ns;
            }
            (None, Some(next_ns)) => now_ns = next_ns,
            (None, None) => return stretches,
        }
    }
}

/// Whether all jobs keep their deadlines if they run in this order, which on one CPU is the
/// case if they do so in any.
pub fn keeps_all(demands: &[Demand]) -> bool {
    super::ends(&run(demands), demands.len())
        .iter()
        .zip(demands)
        .all(|(end_ns, demand)| end_ns.is_none_or(|end_ns| end_ns <= demand.deadline_ns))
}

#[cfg(test)]
mod tests {
    use super::super::{demand, ends, stretch};
    use super::*;

    /// A long job gives way to an urgent one that is released later, and goes on after it.
    #[test]
    fn the_earlier_deadline_preempts() {
        let demands = [demand(0, 100, 10), demand(4, 9, 3), demand(5, 50, 2)];
        let expected = [stretch(0, 0, 4), stretch(1, 4, 7), stretch(2, 7, 9), stretch(0, 9, 15)];
        assert_eq!(run(&demands), expected);
        assert!(keeps_all(&demands));
    }

    #[test]
    fn a_later_deadline_waits_and_time_without_jobs_passes() {
        let demands = [demand(2, 5, 2), demand(3, 6, 1), demand(10, 12, 2)];
        let expected = [stretch(0, 2, 4), stretch(1, 4, 5), stretch(2, 10, 12)];
        assert_eq!(run(&demands), expected);
    }

    /// One job too long makes all those behind it late, which is why a rogue costs so much.
    #[test]
    fn an_overload_makes_all_late_that_come_after() {
        let demands = [demand(0, 5, 6), demand(0, 8, 3), demand(0, 10, 3)];
        assert_eq!(ends(&run(&demands), 3), [Some(6), Some(9), Some(12)]);
        assert!(!keeps_all(&demands));
    }
}
