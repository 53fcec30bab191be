// SPDX-License-Identifier: GPL-2.0
//! One draw of jobs under one scheduler.

use std::collections::HashMap;

use pbs_gen::deadline_jobs::{time_ns, DeadlineJob, Workload};
use pbs_plan::Config;

use super::planned::{Admission, PLAN_RUNS_BEFORE_NS};
use super::scheduler::Scheduler;
use super::Parameters;
use crate::node::Error;
use crate::yardsticks::bandwidth::Servers;
use crate::yardsticks::windows::Windows;
use crate::yardsticks::{edf, eevdf, ends, longest_run_ns, optimum, Demand, Stretch};

/// Slice of EEVDF: the one of a kernel with one CPU is shorter than the tick of 250 Hz, and
/// lasts until that.
const SLICE_NS: u64 = 4_000_000;
/// Bandwidth of `SCHED_DEADLINE` by default, less the 1 % of the process that launches jobs.
const BANDWIDTH_PERMILLE: u64 = 940;
/// Time that a job needs beside its loop, as `scripts/compare-schedulers` declares it.
const OVERHEAD_NS: u64 = 200_000;
const OVERHEAD_PERMILLE: u64 = 20;

/// Outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) job: DeadlineJob,
    pub(crate) accepted: bool,
    /// From the begin of the run; `None`: it was not run, or did not end.
    pub(crate) ended_ns: Option<u64>,
}

/// Outcomes of all jobs of a draw.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) outcomes: Vec<Outcome>,
    /// Plans that came into force.
    pub(crate) plans: u64,
    /// Longest time in which jobs kept the CPU without a gap; `None`: normal tasks compete
    /// with the jobs.
    pub(crate) longest_run_ns: Option<u64>,
}

/// Planners that have admitted jobs, by what they depend on: the load and the configuration.
#[derive(Default)]
pub(crate) struct Admissions(HashMap<(u64, [u64; Config::COUNT]), Admission>);

impl Admissions {
    fn get(
        &mut self,
        load_percent: u64,
        jobs: &[DeadlineJob],
        config: Config,
    ) -> Result<Admission, Error> {
        let key = (load_percent, config.values());
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let admission = Admission::new(jobs, config)?;
        self.0.insert(key, admission.clone());
        Ok(admission)
    }
}

/// Runs the jobs of a draw under a scheduler. The load says which admissions may be shared,
/// as no planner knows the real lengths.
pub(crate) fn run(
    scheduler: Scheduler,
    workload: &Workload,
    jobs: &[DeadlineJob],
    parameters: &Parameters,
    admissions: &mut Admissions,
) -> Result<Run, Error> {
    let base = parameters.config;
    let config = scheduler.config(&base);
    let admission = admissions.get(workload.load_percent, jobs, config.unwrap_or(base))?;
    let admitted = admission.accepted();
    if config.is_some() {
        let run = admission.run(jobs, scheduler.answers(), parameters.uses_unallocated)?;
        return Ok(Run {
            outcomes: outcomes(jobs, &admitted, &run.ends_ns),
            plans: run.plans,
            longest_run_ns: Some(run.longest_run_ns),
        });
    }
    let all = vec![true; jobs.len()];
    let windows = Windows {
        period_ns: base.window_period_ns.max(2),
        unallocated_ns: base.window_unallocated_ns.min(base.window_period_ns.max(2) - 1),
    };
    let whole = |chosen: &[bool], scheduler: &dyn Fn(&[Demand]) -> Vec<Stretch>| {
        with_chosen(jobs, chosen, scheduler)
    };
    let eevdf = |demands: &[Demand]| eevdf::run(demands, SLICE_NS);
    let (accepted, stretches) = match scheduler {
        Scheduler::EdfAdmitted => (admitted.clone(), whole(&admitted, &edf::run)),
        Scheduler::EdfAll => (all.clone(), whole(&all, &edf::run)),
        Scheduler::EdfWindows => {
            (admitted.clone(), whole(&admitted, &|demands| windows.run(demands, edf::run)))
        }
        Scheduler::EevdfAdmitted => (admitted.clone(), whole(&admitted, &eevdf)),
        Scheduler::EevdfAll => (all.clone(), whole(&all, &eevdf)),
        Scheduler::OptimumAdmitted => (admitted.clone(), of_optimum(jobs, &admitted)),
        Scheduler::OptimumAll => (all.clone(), of_optimum(jobs, &all)),
        Scheduler::Deadline => served(jobs, 100),
        _ => served(jobs, workload.shape.greatest_percent(workload.error_percent)),
    };
    let ends_ns = ends(&stretches, jobs.len());
    let ends_ns: Vec<_> =
        ends_ns.iter().map(|end_ns| end_ns.map(|at_ns| at_ns - PLAN_RUNS_BEFORE_NS)).collect();
    let is_normal = matches!(scheduler, Scheduler::EevdfAdmitted | Scheduler::EevdfAll);
    Ok(Run {
        outcomes: outcomes(jobs, &accepted, &ends_ns),
        plans: 0,
        longest_run_ns: (!is_normal).then(|| longest_run_ns(&stretches)),
    })
}

fn outcomes(jobs: &[DeadlineJob], accepted: &[bool], ends_ns: &[Option<u64>]) -> Vec<Outcome> {
    let all = jobs.iter().zip(accepted).zip(ends_ns);
    all.map(|((&job, &accepted), &ended_ns)| Outcome { job, accepted, ended_ns }).collect()
}

/// A job on the clock of the plans, such that windows lie where theirs do.
fn demand(job: &DeadlineJob) -> Demand {
    Demand {
        release_ns: job.release_ns + PLAN_RUNS_BEFORE_NS,
        deadline_ns: job.deadline_ns + PLAN_RUNS_BEFORE_NS,
        length_ns: time_ns(job.real_insns),
    }
}

/// Returns the stretches in which a scheduler runs the chosen jobs.
fn with_chosen(
    jobs: &[DeadlineJob],
    chosen: &[bool],
    scheduler: &dyn Fn(&[Demand]) -> Vec<Stretch>,
) -> Vec<Stretch> {
    let indices: Vec<usize> = (0..jobs.len()).filter(|&job| chosen[job]).collect();
    let demands: Vec<Demand> = indices.iter().map(|&job| demand(&jobs[job])).collect();
    let stretches = scheduler(&demands).into_iter();
    stretches.map(|stretch| Stretch { job: indices[stretch.job], ..stretch }).collect()
}

/// The jobs that a clairvoyant keeps, by earliest deadline. A rogue is given up beforehand,
/// since it counts for nothing.
fn of_optimum(jobs: &[DeadlineJob], chosen: &[bool]) -> Vec<Stretch> {
    let honest: Vec<usize> =
        (0..jobs.len()).filter(|&job| chosen[job] && !jobs[job].rogue).collect();
    let demands: Vec<Demand> = honest.iter().map(|&job| demand(&jobs[job])).collect();
    let mut kept = vec![false; jobs.len()];
    for place in optimum::kept(&demands) {
        kept[honest[place]] = true;
    }
    with_chosen(jobs, &kept, &edf::run)
}

/// `SCHED_DEADLINE` with that much of the declared length as run time.
fn served(jobs: &[DeadlineJob], percent: u64) -> (Vec<bool>, Vec<Stretch>) {
    let budget_ns = |job: &DeadlineJob| {
        let needs_ns = time_ns(job.planned_insns) * percent / 100;
        needs_ns + needs_ns * OVERHEAD_PERMILLE / 1000 + OVERHEAD_NS
    };
    let servers = Servers {
        budgets_ns: jobs.iter().map(budget_ns).collect(),
        most_permille: BANDWIDTH_PERMILLE,
    };
    let served = servers.run(&jobs.iter().map(demand).collect::<Vec<_>>());
    (served.admitted, served.stretches)
}
