// SPDX-License-Identifier: GPL-2.0
//! Order of runs that run beside each other: runs that have not begun are planned in an order in
//! which they slow each other least.
//!
//! Admission ignores slow-downs: it assumes that each task takes as long as alone. This module
//! times the tasks of all waiting runs with the slow-downs between them
//! ([`pbs_interference::Fluid`]). It changes the order of their turns if the tasks then end
//! earlier. Slots keep their length, since it is in instructions; the reservations get longer.

use std::collections::{BTreeMap, HashMap};

use pbs_interference::{
    arrange, ceiling_factor_permille, Effort, Key, Lane, Sharing, Slowdowns, Task,
};
use pbs_job::Job;
use pbs_planner::plan_building::awaited;
use pbs_planner::{NotArranged, RunId, Turn};

use super::{ActiveRun, Controller};

/// Margin between the greatest slow-down and the ceiling of slots.
const CEILING_MARGIN_PERMILLE: u64 = 200;

/// Knowledge about programs that run beside others.
#[derive(Clone, Copy)]
pub struct Companions<'a> {
    /// Slow-downs between programs.
    pub slowdowns: &'a Slowdowns,
    /// Resources that the CPUs share, by their numbers in Linux.
    pub sharing: &'a Sharing,
    /// Returns the key of a job's task in the slow-downs.
    pub key: &'a dyn Fn(&Job, usize) -> Key,
}

/// Result of the search for an order in which runs slow each other least. Times count from the
/// earliest start of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// End of all tasks in the order of their admission, with their slow-downs.
    pub unaware_ns: u64,
    /// End of all tasks in the order that was found.
    pub aware_ns: u64,
    /// The greatest slow-down of a task there, in thousandths.
    pub worst_permille: u64,
}

/// A task that waits.
struct Waiting {
    run: RunId,
    task: usize,
    alone_ns: u64,
}

impl Controller {
    /// Plans all runs that have not begun in the order in which they slow each other least,
    /// on the cores that they have, and reserves as much time as they take beside each other.
    /// What runs already is not looked at. `None`: there are none.
    ///
    /// # Errors
    ///
    /// Why they stay as they were admitted.
    pub fn beside(
        &mut self,
        companions: &Companions<'_>,
        now_ns: u64,
    ) -> Result<Option<Beside>, NotArranged> {
        let mut waiting = Vec::new();
        let mut tasks = Vec::new();
        // By core: the tasks there, by the start of their slots.
        let mut cores: BTreeMap<usize, Vec<(u64, usize)>> = BTreeMap::new();
        let waits = |active: &ActiveRun| !active.has_begun() && !active.job.best_effort;
        let runs = self.runs.iter().filter(|(_, active)| waits(active));
        for (&id, active) in runs {
            let Some(run) = self.store.run(id) else {
                continue;
            };
            let with_time = run.tasks.iter().filter(|task| task.start_ns < task.end_ns);
            let mut places: HashMap<usize, usize> = HashMap::new();
            let mut last_of: HashMap<usize, usize> = HashMap::new();
            let mut in_order: Vec<_> = with_time.collect();
            in_order.sort_by_key(|task| (task.process, active.job.tasks[task.task].position));
            for task in in_order {
                let place = tasks.len();
                let before = last_of.insert(task.process, place);
                places.insert(task.task, place);
                let alone_ns = run.stretches(task).map(|over| over.end - over.start).sum();
                tasks.push(Task {
                    key: (companions.key)(&active.job, task.task),
                    alone_ns,
                    release_ns: active.job.start_ns.saturating_sub(now_ns),
                    after: before.into_iter().collect(),
                    // A process is on one core, and its memory with it.
                    stays: true,
                });
                waiting.push(Waiting { run: id, task: task.task, alone_ns });
                let on = cores.entry(task.core).or_default();
                on.push((task.start_ns, place));
            }
            // There is no plan of a run with too many of them.
            let Some(pairs) = awaited(&active.job, run) else {
                return Ok(None);
            };
            for (task, before) in pairs {
                if let (Some(&task), Some(&before)) = (places.get(&task), places.get(&before)) {
                    tasks[task].after.push(before);
                }
            }
        }
        let lanes = self.lanes(cores);
        let Companions { slowdowns, sharing, .. } = companions;
        let found = arrange(&tasks, &lanes, slowdowns, sharing, Effort::default());
        let Some(found) = found.filter(|_| !tasks.is_empty()) else {
            return Ok(None);
        };
        let mut turns = Vec::with_capacity(tasks.len());
        let mut worst_permille = 1000;
        for (waiting, times) in waiting.iter().zip(&found.timing.times) {
            let Some((start_ns, end_ns)) = times else {
                continue;
            };
            let took_ns = u128::from(end_ns - start_ns);
            let stretch = (took_ns * 1000).div_ceil(u128::from(waiting.alone_ns.max(1)));
            let stretch_permille = u64::try_from(stretch).unwrap_or(u64::MAX).max(1000);
            worst_permille = worst_permille.max(stretch_permille);
            turns
                .push((*start_ns, Turn { run: waiting.run, task: waiting.task, stretch_permille }));
        }
        turns.sort_by_key(|(start_ns, turn)| (*start_ns, turn.run, turn.task));
        let turns: Vec<Turn> = turns.into_iter().map(|(_, turn)| turn).collect();
        self.arrange(&turns, now_ns)?;
        self.worst_permille = self.worst_permille.max(worst_permille);
        Ok(Some(Beside {
            unaware_ns: found.given.makespan_ns,
            aware_ns: found.timing.makespan_ns,
            worst_permille,
        }))
    }

    /// Returns the tasks of each core, which are places in a list, in the order of their starts.
    pub(super) fn lanes(&self, of_cores: BTreeMap<usize, Vec<(u64, usize)>>) -> Vec<Lane> {
        let cpus: BTreeMap<usize, u32> =
            self.cores.iter().map(|(&cpu, &core)| (core, cpu)).collect();
        let lanes = of_cores.into_iter().map(|(core, mut order)| {
            order.sort_unstable();
            Lane {
                cpu: cpus.get(&core).copied().unwrap_or(0),
                order: order.into_iter().map(|(_, place)| place).collect(),
                fixed: 0,
            }
        });
        lanes.collect()
    }

    /// The ceiling factor of slots under the slow-downs that were planned with: a slot of
    /// a task that is slowed lasts that much longer on the clock.
    pub(super) fn ceiling_permille(&self, now_permille: u64) -> u64 {
        match self.worst_permille {
            1000 => now_permille,
            worst => ceiling_factor_permille(
                worst as f64 / 1000.0,
                CEILING_MARGIN_PERMILLE,
                now_permille,
            ),
        }
    }
}
