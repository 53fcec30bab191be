// SPDX-License-Identifier: GPL-2.0
//! Schedulers that plans are held against, on one CPU.
//!
//! [`edf`] and [`eevdf`] run all jobs that they get, [`bandwidth`] declines jobs as
//! `SCHED_DEADLINE` does, and [`optimum`] picks the jobs to keep with the knowledge of all
//! real lengths. Each is pure, and exact to the nanosecond.

pub mod bandwidth;
pub mod edf;
pub mod eevdf;
pub mod optimum;
pub mod windows;

/// A job as a scheduler without plans sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Earliest begin.
    pub release_ns: u64,
    /// Latest end.
    pub deadline_ns: u64,
    /// Real length.
    pub length_ns: u64,
}

/// Time in which a job has the CPU without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the job.
    pub job: usize,
    /// Begin.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

/// Ends of `count` jobs; `None`: the job never ran.
pub fn ends(stretches: &[Stretch], count: usize) -> Vec<Option<u64>> {
    let mut ends_ns = vec![None; count];
    for stretch in stretches {
        ends_ns[stretch.job] = Some(stretch.to_ns);
    }
    ends_ns
}

/// Longest time in which jobs keep the CPU without a gap.
pub fn longest_run_ns(stretches: &[Stretch]) -> u64 {
    let mut longest_ns = 0;
    let mut since_ns = 0;
    let mut until_ns = None;
    for stretch in stretches {
        if until_ns != Some(stretch.from_ns) {
            since_ns = stretch.from_ns;
        }
        until_ns = Some(stretch.to_ns);
        longest_ns = longest_ns.max(stretch.to_ns - since_ns);
    }
    longest_ns
}

/// Appends a stretch, or extends the last one if that is of the same job and ends there.
fn push(stretches: &mut Vec<Stretch>, job: usize, from_ns: u64, to_ns: u64) {
    if from_ns == to_ns {
        return;
    }
    if let Some(last) = stretches.last_mut() {
        if last.job == job && last.to_ns == from_ns {
            last.to_ns = to_ns;
            return;
        }
    }
    stretches.push(Stretch { job, from_ns, to_ns });
}

#[cfg(test)]
pub(crate) fn demand(release_ns: u64, deadline_ns: u64, length_ns: u64) -> Demand {
    Demand { release_ns, deadline_ns, length_ns }
}

#[cfg(test)]
pub(crate) fn stretch(job: usize, from_ns: u64, to_ns: u64) -> Stretch {
    Stretch { job, from_ns, to_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_that_of_the_last_stretch() {
        let stretches = [stretch(1, 0, 2), stretch(0, 2, 3), stretch(1, 5, 7)];
        assert_eq!(ends(&stretches, 3), [Some(3), Some(7), None]);
    }

    #[test]
    fn a_run_ends_at_a_gap_and_not_at_a_switch() {
        assert_eq!(longest_run_ns(&[]), 0);
        let stretches = [stretch(1, 0, 2), stretch(0, 2, 3), stretch(1, 5, 7)];
        assert_eq!(longest_run_ns(&stretches), 3);
    }
}
