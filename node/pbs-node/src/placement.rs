// SPDX-License-Identifier: GPL-2.0
//! CPUs of a job that is admitted, chosen with the slow-downs between tasks.
//!
//! Admission ignores slow-downs. Where they delay planned jobs, each process of the new job tries the
//! other CPUs, one after the other. Each try is an admission of its own, which keeps all promises
//! without slow-downs. Of these plans the best one with slow-downs is taken, and none that is worse
//! with them than that of the first admission ([`SlowedEnds::is_better_than`]). Tries have the rest
//! of the work that the request may take for the job.

use std::fmt;
use std::sync::Arc;

use pbs_control::{size_of, Admitted, Companions, Controller, SlowedEnds};
use pbs_interference::Slowdowns;
use pbs_job::{cpu_list, Job, Machine};
use pbs_text::span;

/// Tries of a request, for all its jobs, and its jobs that are tried: each copies the reservations
/// of all jobs.
pub(crate) const MOST_TRIES: usize = 32;

/// Number of stretches of planned tasks above which slow-downs are not regarded.
const MOST_STRETCHES: usize = 256;

/// Number of tasks, processes and dependencies of all jobs above which slow-downs are not regarded:
/// each try copies what is held of them, and times it.
const MOST_COPIED: usize = 4 * MOST_STRETCHES;

/// Steps of work that a copy takes for each task, each process and each dependency.
const COPY_STEPS: u64 = 40;

/// Steps of work that a timing takes for each slow-down that it looks up.
const LOOK_UP_STEPS: u64 = 40;

/// Change of a plan because of slow-downs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// CPUs of the processes of the job.
    pub cpus: Vec<u32>,
    /// CPUs that it would have without slow-downs.
    pub instead: Vec<u32>,
    /// Number of jobs that keep their deadlines only thereby.
    pub kept: usize,
    /// Time by which all jobs together end earlier.
    pub earlier_ns: u64,
}

impl Moved {
    /// Returns what users may know. The CPUs and the gain depend on jobs and programs of others.
    pub fn in_brief(&self) -> &'static str {
        "planned on other CPUs because of the slow-downs of earlier runs"
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, instead, kept, earlier_ns } = self;
        let (cpus, instead) = (cpu_list(cpus), cpu_list(instead));
        write!(
            f,
            "planned on CPU {cpus} instead of {instead}: with the slow-downs of earlier runs"
        )?;
        match kept {
            0 => write!(f, ", all jobs together end {} earlier", span(*earlier_ns)),
            _ => write!(f, ", {kept} more would keep their deadlines"),
        }
    }
}

/// Work that the tries of a job may take, and the tries of its request.
pub(crate) struct Tries<'a> {
    /// Steps of work that are left.
    pub(crate) steps: u64,
    /// Number of tries that are left.
    pub(crate) left: &'a mut usize,
}

impl Tries<'_> {
    /// Takes a try, and the work of the copy that it needs. Returns whether there was one.
    fn take(&mut self, before: &Controller) -> bool {
        let steps = self.steps.checked_sub(before.size() as u64 * COPY_STEPS);
        let (Some(steps @ 1..), Some(left)) = (steps, self.left.checked_sub(1)) else {
            return false;
        };
        (self.steps, *self.left) = (steps, left);
        true
    }

    /// Times all planned jobs with these slow-downs. `None`: they are too many, or the work does not
    /// suffice.
    fn time(
        &mut self,
        controller: &Controller,
        companions: &Companions<'_>,
        now_ns: u64,
    ) -> Option<SlowedEnds> {
        if controller.size() > MOST_COPIED {
            return None;
        }
        let stretches = controller.stretches(companions, now_ns);
        if stretches.count() > MOST_STRETCHES {
            return None;
        }
        self.steps = self.steps.checked_sub(stretches.look_ups() * LOOK_UP_STEPS)?;
        stretches.ends(companions)
    }
}

/// Whether a plan and another job are not too large for tries. A plan may have many thousands of
/// tasks, of which a copy alone takes long, and a task may wait for as many others. Those of best
/// effort and of runs that end are copied, too.
pub(crate) fn is_small(controller: &Controller, job: &Job) -> bool {
    controller.size() + size_of(job) <= MOST_COPIED
}

/// A job that was admitted, and the plan with it.
pub(crate) struct Placed {
    pub(crate) controller: Controller,
    pub(crate) admitted: Admitted,
    pub(crate) moved: Option<Moved>,
}

/// Places a job that was admitted on other CPUs where that is better with slow-downs. `before`:
/// the plan without the job.
pub(crate) fn place(
    before: &Controller,
    first: Placed,
    job: &Arc<Job>,
    machine: &Machine,
    companions: &Companions<'_>,
    (now_ns, tries): (u64, &mut Tries<'_>),
) -> Placed {
    let Some(instead) = first.controller.cpus_of(first.admitted.run) else {
        return first;
    };
    let nobody = Slowdowns::default();
    let alone = Companions { slowdowns: &nobody, ..*companions };
    let mut time = |of: &Companions<'_>| tries.time(&first.controller, of, now_ns);
    let (Some(unaware), Some(alone)) = (time(companions), time(&alone)) else {
        return first;
    };
    if !alone.is_better_than(&unaware) {
        return first;
    }
    let (mut best, mut best_ends, mut cpus) = (first, unaware.clone(), instead.clone());
    let mut confined = Job::clone(job);
    // A process without instructions is on no CPU.
    let runs = |process: &usize| job.process_insns(*process) > 0;
    'tries: for process in (0..job.processes.len()).filter(runs) {
        let own = cpus[process];
        for cpu in cpus_for(job, process, machine).into_iter().filter(|&cpu| cpu != own) {
            if !tries.take(before) {
                break 'tries;
            }
            let mut others = cpus.clone();
            others[process] = cpu;
            for (process, &cpu) in confined.processes.iter_mut().zip(&others) {
                process.cpus = vec![cpu];
            }
            let mut controller = before.clone();
            controller.allow_work(tries.steps, tries.steps);
            let admitted = controller.admit_as(job, &confined, now_ns);
            tries.steps = controller.work_left().unwrap_or(0);
            let Ok(admitted) = admitted else {
                continue;
            };
            let Some(ends) = tries.time(&controller, companions, now_ns) else {
                continue;
            };
            if ends.is_better_than(&best_ends) {
                best = Placed { controller, admitted, moved: None };
                (best_ends, cpus) = (ends, others);
            }
        }
    }
    if cpus != instead {
        let earlier_ns = unaware.sum_ns.saturating_sub(best_ends.sum_ns);
        let of_running = |cpus: &[u32]| {
            let processes = (0..job.processes.len()).filter(runs);
            processes.map(|process| cpus[process]).collect()
        };
        best.moved = Some(Moved {
            cpus: of_running(&cpus),
            instead: of_running(&instead),
            kept: unaware.late.len() - best_ends.late.len(),
            earlier_ns: u64::try_from(earlier_ns).unwrap_or(u64::MAX),
        });
    }
    best
}

/// Returns the CPUs that a process of a job may run on.
fn cpus_for(job: &Job, process: usize, machine: &Machine) -> Vec<u32> {
    let own = &job.processes[process].cpus;
    let is_allowed =
        |cpu: &u32| [&job.cpus, own].into_iter().all(|cpus| cpus.is_empty() || cpus.contains(cpu));
    machine.cpus().filter(is_allowed).collect()
}

#[cfg(test)]
mod tests;
