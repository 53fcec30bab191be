// SPDX-License-Identifier: GPL-2.0
//! Ends of planned runs under slow-downs, and admission to chosen CPUs.
//!
//! Reservations assume that each task takes as long as alone. The timing here lets all reserved
//! stretches, in their order on each core, advance at the speed that tasks beside them leave
//! ([`pbs_interference::Fluid`]). It changes no reservation: a caller compares the plans of several
//! placements, each of which keeps all promises by its reservations.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pbs_interference::{Fluid, Lane, Task};
use pbs_job::Job;
use pbs_planner::plan_building::awaited;
use pbs_planner::{Declined, RunId};

use super::{Admitted, Companions, Controller};

/// Gain in the sum of all ends below which no plan counts as better: what is less is rounding.
const LEAST_GAIN_NS: u128 = 1_000_000;

/// Ends of all planned runs under slow-downs. Times count from the start of the plan. Runs of best
/// effort are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowedEnds {
    /// End of the last run.
    pub makespan_ns: u64,
    /// Sum of the ends of all runs.
    pub sum_ns: u128,
    /// Runs that end after their deadlines, with their ends.
    pub late: BTreeMap<RunId, u64>,
}

impl SlowedEnds {
    /// Whether these ends are better than those of another plan. Each run that is late here is late
    /// there, too, and ends no later. Fewer late runs are better. With the same ones, neither the
    /// last end nor the sum of the ends may be later, and the sum has to be earlier.
    pub fn is_better_than(&self, other: &Self) -> bool {
        let ends_no_later =
            |(run, end_ns): (&RunId, &u64)| other.late.get(run).is_some_and(|ns| end_ns <= ns);
        if !self.late.iter().all(ends_no_later) {
            return false;
        }
        if self.late.len() < other.late.len() {
            return true;
        }
        self.makespan_ns <= other.makespan_ns
            && self.sum_ns.saturating_add(LEAST_GAIN_NS) <= other.sum_ns
    }
}

/// Reserved stretches of all runs with promises, and the cores that have them.
pub struct Stretches {
    tasks: Vec<Task>,
    lanes: Vec<Lane>,
    /// Run of each task.
    runs: Vec<RunId>,
    /// Deadline of each run, from the start of the plan on.
    deadlines_ns: BTreeMap<RunId, u64>,
}

impl Stretches {
    /// Returns the number of slow-downs that a timing looks up at most.
    pub fn look_ups(&self) -> u64 {
        // Each beginning and each end of a stretch changes the tasks beside all others.
        2 * self.tasks.len() as u64 * self.lanes.len() as u64
    }

    /// Returns the number of stretches.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the ends under slow-downs; `None`: the order of the stretches never ends.
    pub fn ends(&self, companions: &Companions<'_>) -> Option<SlowedEnds> {
        let Companions { slowdowns, sharing, .. } = companions;
        let timing = Fluid::new(&self.tasks, slowdowns, sharing).time(&self.lanes)?;
        let mut ends_ns: BTreeMap<RunId, u64> = BTreeMap::new();
        for (run, times) in self.runs.iter().zip(&timing.times) {
            let end_ns = ends_ns.entry(*run).or_default();
            *end_ns = times.map_or(*end_ns, |(_, until_ns)| until_ns.max(*end_ns));
        }
        let is_late = |&(run, end_ns): &(RunId, u64)| end_ns > self.deadlines_ns[&run];
        let late = ends_ns.iter().map(|(&run, &end_ns)| (run, end_ns)).filter(is_late);
        Some(SlowedEnds {
            makespan_ns: timing.makespan_ns,
            sum_ns: ends_ns.values().map(|&end_ns| u128::from(end_ns)).sum(),
            late: late.collect(),
        })
    }
}

impl Controller {
    /// Returns the reserved stretches of all runs with promises, from the start of a plan that is
    /// made now.
    pub fn stretches(&self, companions: &Companions<'_>, now_ns: u64) -> Stretches {
        let zero_ns = self.start_ns(now_ns);
        let mut found = Stretches {
            tasks: Vec::new(),
            lanes: Vec::new(),
            runs: Vec::new(),
            deadlines_ns: BTreeMap::new(),
        };
        // By core: the stretches there, by their starts.
        let mut cores: BTreeMap<usize, Vec<(u64, usize)>> = BTreeMap::new();
        for (&id, active) in self.runs.iter().filter(|(_, active)| active.is_promised()) {
            let Some(run) = self.store.run(id) else {
                continue;
            };
            // First and last stretch of each task.
            let mut places: HashMap<usize, (usize, usize)> = HashMap::new();
            let mut last_of: HashMap<usize, usize> = HashMap::new();
            let mut in_order: Vec<_> = run.tasks.iter().collect();
            in_order.sort_by_key(|task| (task.process, active.job.tasks[task.task].position));
            for task in in_order {
                for over in run.stretches(task) {
                    let start_ns = over.start.max(zero_ns);
                    if over.end <= start_ns {
                        continue;
                    }
                    let place = found.tasks.len();
                    let before = last_of.insert(task.process, place);
                    places.entry(task.task).or_insert((place, place)).1 = place;
                    found.runs.push(id);
                    found.tasks.push(Task {
                        key: (companions.key)(&active.job, task.task),
                        alone_ns: over.end - start_ns,
                        release_ns: active.job.start_ns.saturating_sub(zero_ns),
                        after: before.into_iter().collect(),
                        stays: true,
                    });
                    cores.entry(task.core).or_default().push((start_ns, place));
                }
            }
            // There is no plan of a run with too many of them.
            for (task, before) in awaited(&active.job, run).unwrap_or_default() {
                if let (Some(&(first, _)), Some(&(_, last))) =
                    (places.get(&task), places.get(&before))
                {
                    found.tasks[first].after.push(last);
                }
            }
            found.deadlines_ns.insert(id, active.job.deadline_ns.saturating_sub(zero_ns));
        }
        found.lanes = self.lanes(cores);
        found
    }

    /// Returns the CPU that each process of a run is planned on; `None`: the run has no place, or a
    /// process has none.
    pub fn cpus_of(&self, run: RunId) -> Option<Vec<u32>> {
        let active = self.runs.get(&run)?;
        let reserved = &self.store.run(run)?.processes;
        let cpu_of = |process: usize| {
            let core = reserved.iter().find(|it| it.process == process)?.core;
            self.cores.iter().find(|(_, &of)| of == core).map(|(&cpu, _)| cpu)
        };
        (0..active.job.processes.len()).map(cpu_of).collect()
    }

    /// Admits a run like [`Controller::admit`], with a reservation for `confined`: the same job with
    /// fewer CPUs. Later plans may move the run like any other.
    ///
    /// # Errors
    ///
    /// The lack that declines it; nothing has changed then.
    pub fn admit_as(
        &mut self,
        job: &Arc<Job>,
        confined: &Job,
        now_ns: u64,
    ) -> Result<Admitted, Declined> {
        let planned = self.reserve(confined, now_ns)?;
        Ok(self.add(job.clone(), planned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No run that is late in both plans ends later, whatever the others gain.
    #[test]
    fn late_runs_are_not_put_back() {
        let ends = |late: &[(u64, u64)], sum_ns: u128| SlowedEnds {
            makespan_ns: 90_000_000,
            sum_ns,
            late: late.iter().map(|&(run, end_ns)| (RunId(run), end_ns)).collect(),
        };
        let (much, little) = (100_000_000, 10_000_000);
        let two = ends(&[(1, 50), (2, 60)], much);
        assert!(ends(&[(1, 50)], much).is_better_than(&two));
        assert!(!ends(&[(1, 51)], little).is_better_than(&two));
        assert!(ends(&[(1, 50), (2, 60)], little).is_better_than(&two));
        assert!(!ends(&[(1, 40), (2, 61)], little).is_better_than(&two));
        assert!(!ends(&[(3, 1)], little).is_better_than(&two));
        assert!(ends(&[], much).is_better_than(&two) && !two.is_better_than(&ends(&[], much)));
    }
}
