// SPDX-License-Identifier: GPL-2.0
//! Runs of best effort. They are planned behind every run with a promise, and are in no promise's
//! way.
//!
//! Reservations of best effort are set aside whenever a promise is made or kept, and are placed
//! anew afterwards. A process of best effort that has begun gives up its time, but keeps its memory
//! and its resources, since it can't give them back: until the first time for which others were
//! promised them before it began.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pbs_job::Job;
use pbs_planner::{
    place_behind, reserve_behind_within, Budget, Declined, Planned, ProcessReservation, Progress,
    Request, Run, RunId, Store,
};

use super::{ActiveRun, Controller};

/// Steps of work that a run of best effort may take in any case to be placed in a request.
const LEAST_WORK: u64 = 100_000;

/// Runs of best effort with what was reserved for them.
pub(super) type Aside = Vec<(RunId, Run)>;

/// Gives back what is reserved for best effort, but for the memory of what has begun.
pub(super) fn set_aside(
    store: &mut Store,
    runs: &BTreeMap<RunId, ActiveRun>,
    progress: &BTreeMap<RunId, Vec<Progress>>,
    start_ns: u64,
) -> Aside {
    let best_effort = runs.iter().filter(|(_, active)| active.is_best_effort());
    let aside: Aside =
        best_effort.filter_map(|(&run, _)| Some((run, store.run(run)?.clone()))).collect();
    for (run, reserved) in &aside {
        let Some(job) = runs.get(run).map(|active| &active.job) else { continue };
        let of_run = progress.get(run).map_or(&[][..], Vec::as_slice);
        let has_executed =
            |process: usize| of_run.get(process).is_some_and(|it| it.has_executed(job, process));
        let is_under_way = (0..job.processes.len()).any(has_executed);
        let has_begun = |process: &&ProcessReservation| match of_run.get(process.process) {
            Some(Progress::Running { .. }) => {
                process.resources.is_empty() || has_executed(process.process)
            }
            // Without instructions it has no thread, and holds the resources of the job.
            Some(Progress::Waiting) => {
                let insns = job.process_insns(process.process);
                is_under_way && insns == 0 && !process.resources.is_empty()
            }
            _ => false,
        };
        let begun: Vec<_> = reserved.processes.iter().filter(has_begun).collect();
        let held = |end_ns| Run {
            processes: begun
                .iter()
                .map(|&process| ProcessReservation { start_ns, end_ns, ..process.clone() })
                .collect(),
            ..Run::default()
        };
        let mut booking = store.book();
        booking.remove(*run);
        let mark = booking.mark();
        if booking.reserve(*run, held(u64::MAX)).is_err() {
            // Others were promised it before it began: it is held until then.
            booking.rollback(mark);
            let others = booking.store().runs().flat_map(|(_, run)| &run.processes);
            let mut ends_ns: Vec<u64> =
                others.map(|it| it.start_ns).filter(|&at_ns| at_ns > start_ns).collect();
            ends_ns.sort_unstable();
            let fitting = ends_ns.partition_point(|&end_ns| {
                let fits = booking.reserve(*run, held(end_ns)).is_ok();
                booking.rollback(mark);
                fits
            });
            if let Some(&end_ns) = ends_ns[..fitting].last() {
                // It did fit.
                let _ = booking.reserve(*run, held(end_ns));
            }
        }
        booking.commit();
    }
    aside
}

impl Controller {
    pub(super) fn set_aside(&mut self, now_ns: u64) -> Aside {
        let start_ns = self.start_ns(now_ns);
        let progress = self.progress(start_ns);
        set_aside(&mut self.store, &self.runs, &progress, start_ns)
    }

    /// Reserves for best effort what is left; where nothing `has_changed`, what was
    /// reserved before.
    pub(super) fn bring_back(&mut self, aside: Aside, has_changed: bool, now_ns: u64) {
        if aside.is_empty() {
            return;
        }
        if has_changed {
            self.place_behind(self.start_ns(now_ns));
            return;
        }
        let mut booking = self.store.book();
        for (run, reserved) in aside {
            // It was reserved before.
            let _ = booking.reserve(run, reserved);
        }
        booking.commit();
    }

    /// Places the runs of best effort that were set aside for the admissions of a request. This is
    /// a part of the work of the request.
    pub(super) fn place_aside(&mut self, now_ns: u64) {
        if self.is_aside {
            let work = self.place_behind_within(self.start_ns(now_ns), self.work_left);
            self.worked(&work);
        }
    }

    /// Places all runs of best effort behind what is promised, the most important first.
    /// One for which there is no room, such as memory, is without a place until the next
    /// plan.
    pub(super) fn place_behind(&mut self, start_ns: u64) {
        self.place_behind_within(start_ns, None);
    }

    /// Places all runs of best effort behind what is promised. `steps`: the work that all of them
    /// together may take, as long as each has a little; `None`: each has that of an answer. Returns
    /// the work that was done.
    pub(super) fn place_behind_within(&mut self, start_ns: u64, steps: Option<u64>) -> Budget {
        self.is_aside = false;
        let progress = self.progress(start_ns);
        let best_effort = self.runs.iter().filter(|(_, active)| active.is_best_effort());
        let mut runs: Vec<RunId> = best_effort.map(|(&run, _)| run).collect();
        runs.sort_by_key(|run| (Reverse(self.runs[run].job.priority), *run));
        let work = Budget::new(steps.unwrap_or(u64::MAX));
        if runs.is_empty() {
            return work;
        }
        let promised = self.promised();
        let mut options = self.options.replanning.clone();
        if let Some(steps) = steps {
            let each = steps / runs.len() as u64;
            options.max_work = options.max_work.min(each.max(LEAST_WORK));
        }
        let requests = runs.iter().map(|run| self.runs[run].request(*run, &progress));
        let requests: Vec<Request<'_>> = requests.map(|it| it.not_before(start_ns)).collect();
        place_behind(&mut self.store, &requests, promised, &options, &work);
        work
    }

    /// Admits a job without a promise: it is refused only if there will never be room for
    /// it.
    pub(super) fn admit_behind(
        &mut self,
        run: RunId,
        job: &Job,
        now_ns: u64,
    ) -> Result<Planned, Declined> {
        let promised = self.promised();
        let request = self.request(run, job, now_ns);
        let work = self.admission_work();
        let mut booking = self.store.book();
        let options = &self.options.planning;
        let planned = reserve_behind_within(&mut booking, &request, promised, options, &work);
        if planned.is_ok() {
            booking.commit();
        } else {
            drop(booking);
        }
        self.worked(&work);
        planned.map_err(Declined::Reservation)
    }

    /// The runs whose deadline is promised.
    fn promised(&self) -> Vec<RunId> {
        let promised = self.runs.iter().filter(|(_, active)| active.is_promised());
        promised.map(|(&run, _)| run).collect()
    }
}

/// Returns the remaining work of the runs that have a promise and a place. Other jobs are admitted
/// beside it.
pub(super) fn others<'a>(
    store: &Store,
    runs: &'a BTreeMap<RunId, ActiveRun>,
    progress: &'a BTreeMap<RunId, Vec<Progress>>,
    start_ns: u64,
) -> Vec<Request<'a>> {
    let promised = runs.iter().filter(|(_, active)| active.is_promised());
    let others = promised.filter_map(|(run, active)| {
        let end_ns = store.run(*run)?.end_ns();
        let other = active.request(*run, progress).not_before(start_ns);
        // One that is late already goes behind those that are not.
        Some(if end_ns > other.deadline_ns { other.without_deadline() } else { other })
    });
    others.collect()
}

impl ActiveRun {
    pub(super) fn is_best_effort(&self) -> bool {
        self.job.best_effort && !self.is_over()
    }
}
