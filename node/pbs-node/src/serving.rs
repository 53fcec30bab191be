// SPDX-License-Identifier: GPL-2.0
//! A node that takes orders while it runs.
//!
//! What was ordered is in the history before anybody is told so, and is started with
//! [`Node::start`]; several orders in a row can be started at once.

use std::collections::BTreeMap;

use pbs_history::{Last, RunFigures, RunId};
use pbs_launch::NoticeSignal;

use crate::allocation::{Allocation, Allocations};
use crate::jobs::Jobs;
use crate::orders::{Ending, Order, Terms};
use crate::queue::RunSummary;
use crate::{
    Alteration, Error, Held, Listener, Moved, News, Node, Rewrite, SchedulerCommand, Settings,
};

/// All that is known of a run.
#[derive(Clone, Debug)]
pub struct RunDetails {
    /// Summary of the run.
    pub summary: RunSummary,
    /// Figures of its processes and tasks, as far as they have run.
    pub figures: RunFigures,
    /// Under which terms it was ordered; `None`: it was not, or nobody can read that.
    pub terms: Option<Terms>,
    /// End of the run, if it has ended.
    pub ending: Ending,
    /// The job as it was requested, while it is not over.
    pub request: Option<String>,
}

/// Plan that a job would have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Planned start, since 1970.
    pub start_unix_ns: Option<u64>,
    /// Planned end, since 1970.
    pub end_unix_ns: u64,
    /// Change of its CPUs because of slow-downs, if there is one.
    pub moved: Option<Moved>,
}

impl<L: Listener> Node<L> {
    fn jobs(&self) -> Result<&Jobs, Error> {
        self.jobs.as_ref().ok_or(Error::NoJobs)
    }

    fn jobs_and_listener(&mut self) -> Result<(&mut Jobs, &mut L), Error> {
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        Ok((jobs, &mut self.listener))
    }

    /// Asks how far those have come beside which something is to be planned.
    fn look(&mut self) -> Result<(), Error> {
        let jobs = self.jobs.as_mut().ok_or(Error::NoJobs)?;
        jobs.look_at_progress(&self.kernel.device);
        jobs.learned.refresh(jobs.ledger.recent.as_mut(), &mut self.listener);
        self.look_for_room();
        Ok(())
    }

    /// Counts the programs that can be started beside those that were admitted.
    fn look_for_room(&mut self) {
        let mut room = self.room();
        let active = self.jobs.iter().flat_map(|jobs| &jobs.runs);
        // The programs of others have their descriptors.
        let unforked = active.filter(|run| run.started_ns.is_none() && !self.has_forked(run.run));
        for active in unforked {
            room.take(active.uid().unwrap_or(0), active.held.programs);
        }
        if let Some(jobs) = &mut self.jobs {
            jobs.room = room;
        }
    }

    /// Goes on with what a service before has left, or begins anew: from now on the node
    /// runs jobs of the machine, of which it is the only node.
    ///
    /// # Errors
    ///
    /// The history is not to be had.
    pub fn serve(&mut self, machine: pbs_job::Machine, settings: &Settings) -> Result<(), Error> {
        match self.take_over(settings) {
            Err(Error::NothingLeft) => self.plan_jobs(machine, settings)?,
            other => other?,
        }
        self.kill_left_cgroups();
        let reserves_requested = self.options.limits_memory;
        let (jobs, listener) = self.jobs_and_listener()?;
        jobs.reserves_requested = reserves_requested;
        jobs.settle_amounts();
        jobs.find_orders(listener)
    }

    /// Kills what is left in control groups of jobs that nobody follows. Numbers of jobs begin anew
    /// with each history: a job could otherwise get the group of another.
    fn kill_left_cgroups(&mut self) {
        let Some(parent) = &self.options.cgroups else {
            return;
        };
        match self.programs.kill_left_cgroups(parent) {
            Ok(groups) if groups.is_empty() => {}
            Ok(groups) => self.listener.news(News::GroupsKilled(groups)),
            // A job whose group is there waits.
            Err(error) => self.listener.news(News::GroupsUnseen(error.to_string())),
        }
    }

    /// Takes orders in: all of them, or none. What nothing keeps from it is admitted, and
    /// is to be started; the rest waits.
    ///
    /// # Errors
    ///
    /// Why one is declined; nothing has changed.
    pub fn order(&mut self, orders: Vec<Order>) -> Result<Vec<RunId>, Error> {
        for Order { submission, .. } in &orders {
            self.options.allow_programs(&submission.job, &submission.file)?;
        }
        self.look()?;
        let (jobs, listener) = self.jobs_and_listener()?;
        jobs.order(orders, listener)
    }

    /// Returns the plan that the job of an order would have; nothing changes.
    ///
    /// # Errors
    ///
    /// The reason for which it would be declined.
    pub fn would_order(&mut self, order: &Order) -> Result<Expected, Error> {
        self.options.allow_programs(&order.submission.job, &order.submission.file)?;
        self.look()?;
        self.jobs()?.would_order(order)
    }

    /// Admits what waits and need not any more. It is to be started. A command that admits jobs is
    /// asked, and its answer is taken if there is one; nothing waits for it
    /// ([`Node::admission_ms`]).
    pub fn promote(&mut self) -> Result<(), Error> {
        let (jobs, listener) = self.jobs_and_listener()?;
        jobs.hear_decision(listener);
        if self.jobs()?.backlog.is_due() {
            self.look()?;
        }
        let (jobs, listener) = self.jobs_and_listener()?;
        jobs.promote(listener);
        if jobs.has_question() {
            self.look()?;
            let (jobs, listener) = self.jobs_and_listener()?;
            jobs.ask_decision(listener);
        }
        Ok(())
    }

    /// From now on the CPUs of orders are chosen with the slow-downs of earlier runs, where enough
    /// of these were recorded. A thread of its own learns them. Runs of the history are read now,
    /// and later ones are those that this node records.
    ///
    /// # Errors
    ///
    /// The node plans no jobs.
    pub fn learn_from_history(&mut self) -> Result<(), Error> {
        let (jobs, listener) = self.jobs_and_listener()?;
        if let Err(why) = jobs.ledger.hold_recent() {
            listener.news(News::NotLearned(why.to_string()));
        }
        jobs.learned.refresh(jobs.ledger.recent.as_mut(), listener);
        Ok(())
    }

    /// From now on a command is asked about orders before they are planned.
    ///
    /// # Errors
    ///
    /// The node plans no jobs.
    pub fn admit_with(&mut self, command: SchedulerCommand) -> Result<(), Error> {
        self.jobs_and_listener()?.0.admit_with(command);
        Ok(())
    }

    /// Time after which [`Node::promote`] is to be called, in milliseconds; negative: when something
    /// happens. What a start has postponed is in it.
    pub fn admission_ms(&self) -> i32 {
        self.jobs.as_ref().map_or(-1, Jobs::admission_ms)
    }

    /// Cancels a run: asks its programs to end, and kills them if they do not. Programs that can save
    /// their work are asked to do so first; a second call ends them. `why`: the reason to report.
    ///
    /// # Errors
    ///
    /// Fails if the run is over or unknown.
    pub fn cancel_run(&mut self, id: RunId, mut why: String) -> Result<(), Error> {
        let saves = self.ask_to_save(id);
        if let Some(request) = &saves {
            why = format!("{why}, after it {request}");
            let jobs = self.jobs()?;
            let run = jobs.runs.iter().find(|run| run.id == Some(id));
            let job = run.map_or_else(String::new, |run| run.job.name.clone());
            self.listener.asked_to_save(id, &job, request);
        }
        let (jobs, listener) = self.jobs_and_listener()?;
        let run = match &saves {
            Some(_) => jobs.begin_to_end(id, why, listener)?,
            None => jobs.cancel(id, why, listener)?,
        };
        let Some(run) = run else {
            return Ok(());
        };
        if self.jobs()?.unstarted().contains(&run) {
            self.cancel_start(run);
        } else {
            match saves {
                Some(request) => self.programs.end_after(run, request.within),
                None => self.programs.end(run),
            }
        }
        Ok(())
    }
    /// Notifies the programs of a run that handle the signal. Returns the number of processes.
    ///
    /// # Errors
    ///
    /// Fails if the run does not run.
    pub fn notify_run(&self, id: RunId, notice: NoticeSignal) -> Result<usize, Error> {
        let run = self.jobs()?.runs.iter().find(|run| run.id == Some(id));
        let run = run.ok_or(Error::DoesNotRun(id))?.run;
        self.programs.notify(run, notice).map_err(Error::Programs)
    }

    /// Holds a waiting run, or releases it. A held run is not planned until it is released.
    ///
    /// # Errors
    ///
    /// Fails if the run does not wait.
    pub fn hold(&mut self, id: RunId, hold: bool) -> Result<(), Error> {
        self.jobs_and_listener()?.0.hold(id, hold)
    }

    /// From now on those are all the allocations, by their numbers. What is planned stays
    /// where it is; what is admitted from now on keeps to the CPUs of its allocation, or to
    /// those that are in none.
    ///
    /// # Errors
    ///
    /// The node plans no jobs.
    pub fn allocate(&mut self, allocations: BTreeMap<u32, Allocation>) -> Result<(), Error> {
        let (jobs, _) = self.jobs_and_listener()?;
        jobs.allocate(Allocations(allocations));
        Ok(())
    }

    /// Changes what is known of a run.
    ///
    /// # Errors
    ///
    /// Its plan does not keep the deadline, or it has one and the job itself was to be
    /// changed; nothing has changed.
    pub fn alter(&mut self, id: RunId, alteration: Alteration) -> Result<(), Error> {
        if let Some(Rewrite { submission, .. }) = &alteration.rewrite {
            self.options.allow_programs(&submission.job, &submission.file)?;
        }
        let (jobs, listener) = self.jobs_and_listener()?;
        jobs.alter(id, alteration, listener)
    }

    /// Stops the admission of new jobs, or resumes it.
    pub fn drain(&mut self, drained: bool) -> Result<(), Error> {
        self.jobs_and_listener()?.0.drain(drained);
        Ok(())
    }

    /// Whether nothing new is admitted.
    pub fn is_drained(&self) -> bool {
        let jobs = self.jobs.as_ref();
        jobs.is_some_and(|jobs| jobs.backlog.is_drained())
    }

    /// The runs that are not over, and the last ones that are, the oldest first.
    pub fn standing(&self, last: &Last<'_>) -> Result<Vec<RunSummary>, Error> {
        self.jobs()?.standing(last)
    }

    /// Returns the summary of a run.
    pub fn standing_of(&self, id: RunId) -> Result<RunSummary, Error> {
        self.jobs()?.standing_of(id)
    }

    /// All that is known of a run.
    pub fn details(&self, id: RunId) -> Result<RunDetails, Error> {
        let jobs = self.jobs()?;
        let (noted, request) = jobs.noted(id)?;
        let (terms, ending) = noted.map(|noted| (noted.terms, noted.ending)).unzip();
        let mut figures = jobs.figures_of(id)?;
        if let Some(active) = jobs.runs.iter().find(|active| active.id == Some(id)) {
            figures.usage = self.programs.usage(active.run, &active.job);
        }
        Ok(RunDetails {
            summary: jobs.standing_of(id)?,
            figures,
            terms,
            ending: ending.unwrap_or_default(),
            request,
        })
    }

    /// Returns the size of what is held of the open jobs of each user; `None`: jobs of nobody.
    pub fn held_by_users(&self) -> Result<BTreeMap<Option<u32>, Held>, Error> {
        let mut users = BTreeMap::new();
        for (owner, held) in self.jobs()?.held() {
            *users.entry(owner).or_default() += held;
        }
        Ok(users)
    }

    /// Returns the size of what is held of the request of a job that waits, without its terms;
    /// `None`: it does not wait.
    pub fn held_of_waiting(&self, id: RunId) -> Result<Option<Held>, Error> {
        Ok(self.jobs()?.held_of_waiting(id))
    }

    /// The plan that was written last, as text, while something is under way.
    pub fn plan_text(&self) -> Option<&str> {
        let jobs = self.jobs.as_ref()?;
        let plan = &jobs.ledger.in_force().plan;
        (!jobs.runs.is_empty() && !plan.is_empty()).then_some(plan)
    }
}
