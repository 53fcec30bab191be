// SPDX-License-Identifier: GPL-2.0
//! Requests to plan a run, and reasons for their refusal.

use std::collections::BTreeSet;

use pbs_job::{Job, MAX_HOLDERS};

use crate::store::Needs;
use crate::RunId;

/// A run of a job that is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The run, which is planned once at a time.
    pub run: RunId,
    /// Job of the run. The caller has checked that its net is valid.
    pub job: &'a Job,
    /// Earliest time at which anything is planned.
    pub start_ns: u64,
    /// Latest time at which anything is planned; `u64::MAX`: there is no deadline.
    pub deadline_ns: u64,
    /// Progress of each process; empty: none has begun.
    pub progress: &'a [Progress],
    /// All others of a new plan have their places first ([`Replan`](crate::Replan)).
    pub is_last: bool,
    /// The earliest deadline of runs that wait for what processes of this run hold now: in a new
    /// plan it has its place before them. `None`: nobody waits for it.
    pub awaited_by_ns: Option<u64>,
}

/// Progress of a process of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// The process has not begun: it may run on any core.
    #[default]
    Waiting,
    /// The process has a thread on that core, and has not executed any instruction yet.
    Attached {
        /// The core's number on the machine.
        core: usize,
    },
    /// The process has begun, and remains on its core.
    Running {
        /// The core's number on the machine.
        core: usize,
        /// Place of the task that it is at in
        /// [`Process::tasks`](pbs_job::Process::tasks).
        position: usize,
        /// Instructions that this task has retired.
        retired_insns: u64,
    },
    /// The process has ended.
    Ended,
}

/// Reason for which a job could not be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the process that could not be planned.
    pub process: usize,
    /// Index of the task at which it failed.
    pub task: usize,
    /// Resource that was lacking.
    pub lack: Lack,
    /// Number of tasks of the job without a reservation.
    pub open_tasks: usize,
}

/// Resource that was lacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// No core is free early enough.
    Time {
        /// Earliest time at which the task would end.
        end_ns: u64,
        /// Time by which the task, and the tasks after it in its process, must have ended.
        deadline_ns: u64,
    },
    /// No memory is free for long enough.
    Memory {
        /// Memory that the process needs.
        needed_bytes: u64,
        /// For how long it needs that at least.
        needed_ns: u64,
        /// The most that is free at any time between the start and the
        /// deadline, in any one memory; where that would do, it is not free for
        /// long enough, or no core is.
        most_free_bytes: u64,
    },
    /// Too little of a resource is free for long enough.
    Resource {
        /// Place of the resource among those of the process
        /// ([`Job::amounts`](pbs_job::Job::amounts)).
        place: usize,
        /// Amount that the process holds.
        needed: u64,
        /// For how long it holds that at least.
        needed_ns: u64,
        /// The most that is free at any time between the start and the deadline; where that would
        /// do, it is not free for long enough.
        most_free: u64,
    },
    /// The machine has no such resource.
    NoResource {
        /// Place of the resource among those of the process
        /// ([`Job::amounts`](pbs_job::Job::amounts)).
        place: usize,
    },
    /// The machine has no such CPU, and the job is confined to it
    /// ([`Job::cpus`]).
    Cpu {
        /// Number of the CPU in Linux.
        cpu: u32,
    },
    /// The net has tasks that wait for each other; the check of the job
    /// ([`pbs_job`]) says which.
    Order,
    /// The work that a question may take ended before there was a plan: there may be one. See
    /// [`Options::max_work`](crate::Options::max_work).
    Work,
    /// No strategy was tried; see
    /// [`Options::strategies`](crate::Options::strategies).
    Untried,
}

impl Progress {
    /// Whether a process of the job has executed an instruction, or has ended.
    pub fn has_executed(self, job: &Job, process: usize) -> bool {
        match self {
            Self::Ended => true,
            Self::Waiting | Self::Attached { .. } => false,
            Self::Running { position, retired_insns, .. } => {
                let before = job.processes[process].tasks.iter().take(position);
                retired_insns > 0 || before.into_iter().any(|&task| job.tasks[task].insns > 0)
            }
        }
    }
}

impl<'a> Request<'a> {
    /// A run of that job, from the job's start to its deadline.
    pub fn new(run: RunId, job: &'a Job) -> Self {
        let (start_ns, deadline_ns) = (job.start_ns, job.deadline_ns);
        Self { run, job, start_ns, deadline_ns, progress: &[], is_last: false, awaited_by_ns: None }
    }

    /// Returns the request with a start that is no earlier than `time_ns`.
    pub fn not_before(self, time_ns: u64) -> Self {
        Self { start_ns: self.start_ns.max(time_ns), ..self }
    }

    /// Returns the request without its deadline.
    pub fn without_deadline(self) -> Self {
        Self { deadline_ns: u64::MAX, ..self }
    }

    /// The request, planned after all others of a new plan.
    pub fn last(self) -> Self {
        Self { is_last: true, ..self }
    }

    /// The request of a run for which others wait.
    pub fn awaited_by(self, deadline_ns: Option<u64>) -> Self {
        Self { awaited_by_ns: deadline_ns, ..self }
    }

    pub(crate) fn progress_of(&self, process: usize) -> Progress {
        let progress = self.progress.get(process).copied().unwrap_or_default();
        match progress {
            Progress::Running { position, .. }
                if position >= self.job.processes[process].tasks.len() =>
            {
                Progress::Ended
            }
            // A program that waits for its first slot holds nothing yet, and nothing is held for it.
            Progress::Running { core, .. }
                if self.waits_for_resources(process)
                    && !progress.has_executed(self.job, process) =>
            {
                Progress::Attached { core }
            }
            progress => progress,
        }
    }

    /// Whether resources are held from the first slot of the process on: by itself, or by a process
    /// without instructions, which begins with the first of the others.
    fn waits_for_resources(&self, process: usize) -> bool {
        let holds = |of| self.job.is_holder(of) && self.job.process_insns(of) == 0;
        let mut processes = 0..self.job.processes.len();
        self.job.is_holder(process) || processes.len() <= MAX_HOLDERS && processes.any(holds)
    }

    /// The core that a process is to be on which has not begun, if it has a thread.
    pub(crate) fn attached_to(&self, process: usize) -> Option<usize> {
        match self.progress_of(process) {
            Progress::Attached { core } => Some(core),
            _ => None,
        }
    }

    /// Whether the process holds resources now although it has no thread: it has no instructions,
    /// and others of its job have begun.
    pub(crate) fn holds_without_thread(&self, process: usize, needs: &Needs) -> bool {
        !needs.resources.is_empty()
            && self.progress_of(process) == Progress::Waiting
            && self.is_under_way_without(process)
    }

    /// Whether the process has no instructions, and others of its job have begun.
    fn is_under_way_without(&self, process: usize) -> bool {
        let has_begun = |process| self.progress_of(process).has_executed(self.job, process);
        self.job.process_insns(process) == 0 && (0..self.job.processes.len()).any(has_begun)
    }

    /// Names of the resources that processes of the run hold now.
    pub fn held_resources(&self) -> BTreeSet<String> {
        let holds = |&process: &usize| match self.progress_of(process) {
            Progress::Running { .. } => true,
            Progress::Waiting => self.is_under_way_without(process),
            Progress::Attached { .. } | Progress::Ended => false,
        };
        let holders = (0..self.job.processes.len()).filter(|&of| self.job.is_holder(of));
        let amounts = holders.filter(holds).flat_map(|process| self.job.amounts(process));
        amounts.map(|amount| amount.resource).collect()
    }

    /// Names of the resources that processes of the run need which have not begun.
    pub fn awaited_resources(&self) -> BTreeSet<String> {
        let waits = |&process: &usize| match self.progress_of(process) {
            Progress::Attached { .. } => true,
            Progress::Waiting => !self.is_under_way_without(process),
            Progress::Running { .. } | Progress::Ended => false,
        };
        let holders = (0..self.job.processes.len()).filter(|&of| self.job.is_holder(of));
        let amounts = holders.filter(waits).flat_map(|process| self.job.amounts(process));
        amounts.map(|amount| amount.resource).collect()
    }

    /// Memory that processes of the run hold now.
    pub fn held_bytes(&self) -> u64 {
        let processes = self.job.processes.iter().enumerate();
        let running = processes
            .filter(|(index, _)| matches!(self.progress_of(*index), Progress::Running { .. }));
        running.fold(0, |sum, (_, process)| sum.saturating_add(process.memory_bytes))
    }

    /// The most memory that one process of the run needs which has not begun.
    pub fn awaited_bytes(&self) -> u64 {
        let processes = self.job.processes.iter().enumerate();
        let waiting = processes.filter(|(index, _)| {
            matches!(self.progress_of(*index), Progress::Waiting | Progress::Attached { .. })
        });
        waiting.map(|(_, process)| process.memory_bytes).max().unwrap_or(0)
    }

    /// A core executes the task now.
    pub(crate) fn is_executed(&self, task: usize) -> bool {
        let of = &self.job.tasks[task];
        match self.progress_of(of.process) {
            Progress::Running { position, retired_insns: 1.., .. } => position == of.position,
            _ => false,
        }
    }
}
