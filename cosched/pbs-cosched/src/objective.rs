// SPDX-License-Identifier: GPL-2.0
//! Comparison of schedules.

use std::fmt;

use crate::mapping::Timeline;
use crate::model::Workload;

/// Figure to minimise.  The thesis says only "throughput".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Deadline misses, then the makespan, then the sum of turnarounds.
    #[default]
    Lexicographic,
    /// The makespan.
    Makespan,
    /// The sum of the mapped tasks' runtimes, probably the thesis's "shortest runtime" (§4.4.3).
    Sum,
}

/// Score of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Processes that end after their deadline.
    pub misses: u64,
    /// From the first arrival to the last end.
    pub makespan_ns: u64,
    /// Sum over all processes of the time from arrival to end.
    pub turnarounds_ns: u64,
    /// Sum over all tasks of the runtime.
    pub runtimes_ns: u64,
}

impl Score {
    /// Returns the figures to compare, the most important first; smaller is better.
    pub fn key(&self, objective: Objective) -> [u64; 3] {
        match objective {
            Objective::Lexicographic => [self.misses, self.makespan_ns, self.turnarounds_ns],
            Objective::Makespan => [self.makespan_ns, 0, 0],
            Objective::Sum => [self.runtimes_ns, 0, 0],
        }
    }
}

/// Returns the score of a timeline.  Tasks without a slot count nothing.
pub fn score(workload: &Workload, timeline: &Timeline) -> Score {
    let mut ends_ns: Vec<Option<u64>> = vec![None; workload.processes.len()];
    let mut score = Score::default();
    for (task, slot) in workload.tasks.iter().zip(&timeline.slots) {
        let (Some(slot), Some(end_ns)) = (slot, ends_ns.get_mut(task.process)) else {
            continue;
        };
        *end_ns = (*end_ns).max(Some(slot.end_ns));
        score.runtimes_ns = score.runtimes_ns.saturating_add(slot.end_ns - slot.start_ns);
    }
    let ended = || workload.processes.iter().zip(&ends_ns);
    let first_arrival_ns = ended().filter(|(_, end)| end.is_some()).map(|(of, _)| of.arrival_ns);
    let first_arrival_ns = first_arrival_ns.min().unwrap_or(0);
    for (of, &end_ns) in ended() {
        let Some(end_ns) = end_ns else { continue };
        score.misses += u64::from(of.deadline_ns.is_some_and(|deadline_ns| end_ns > deadline_ns));
        score.makespan_ns = score.makespan_ns.max(end_ns.saturating_sub(first_arrival_ns));
        let turnaround_ns = end_ns.saturating_sub(of.arrival_ns);
        score.turnarounds_ns = score.turnarounds_ns.saturating_add(turnaround_ns);
    }
    score
}

/// Whether a schedule is taken, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the schedule is not worse than without co-scheduling.
    pub accepted: bool,
    /// Score without co-scheduling.
    pub without: Score,
    /// Score with co-scheduling.
    pub with: Score,
    /// Deciding figure.
    pub reason: Reason,
}

/// Figure that decided between co-scheduling and not; values are without and with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All compared figures are equal.
    Equal,
    /// The number of processes that miss their deadline.
    Misses(u64, u64),
    /// The makespan.
    MakespanNs(u64, u64),
    /// The sum of turnarounds.
    TurnaroundsNs(u64, u64),
    /// The sum of runtimes.
    RuntimesNs(u64, u64),
    /// The scheduler did not map all tasks.
    Incomplete,
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, without_ns, with_ns) = match *self {
            Self::Equal => return to.write_str("neither is better"),
            Self::Incomplete => return to.write_str("the scheduler did not map all tasks"),
            Self::Misses(without, with) => {
                return write!(to, "{with} instead of {without} processes miss their deadline");
            }
            Self::MakespanNs(without_ns, with_ns) => ("everything has ended", without_ns, with_ns),
            Self::TurnaroundsNs(without_ns, with_ns) => ("turnarounds sum", without_ns, with_ns),
            Self::RuntimesNs(without_ns, with_ns) => ("runtimes sum", without_ns, with_ns),
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        let how = if what == "everything has ended" { "after" } else { "to" };
        write!(to, "{what} {how} {:.3} ms instead of {:.3} ms", ms(with_ns), ms(without_ns))
    }
}

/// Whether to take a schedule: nothing is that is worse than not co-scheduling (ours).  Of
/// two that are as good in all that counts what is there stays: a change that gains nothing
/// may cost who comes next.  Who lets one figure alone count takes what is equal in it.
pub fn accept(without: Score, with: Score, objective: Objective) -> Verdict {
    let (old, new) = (without.key(objective), with.key(objective));
    let first = old.iter().zip(&new).position(|(old, new)| old != new);
    let reason = match (objective, first) {
        (_, None) => Reason::Equal,
        (Objective::Lexicographic, Some(0)) => Reason::Misses(old[0], new[0]),
        (Objective::Lexicographic, Some(1)) => Reason::MakespanNs(old[1], new[1]),
        (Objective::Lexicographic, Some(_)) => Reason::TurnaroundsNs(old[2], new[2]),
        (Objective::Makespan, Some(_)) => Reason::MakespanNs(old[0], new[0]),
        (Objective::Sum, Some(_)) => Reason::RuntimesNs(old[0], new[0]),
    };
    Verdict {
        accepted: new < old || (new == old && objective != Objective::Lexicographic),
        without,
        with,
        reason,
    }
}
