// SPDX-License-Identifier: GPL-2.0
//! What is to be planned, and why it could not be.

use pbs_job::Job;

use crate::RunId;

/// A run of a job that is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The run, which is planned once at a time.
    pub run: RunId,
    /// Its job. That its net is in order has been checked.
    pub job: &'a Job,
    /// Nothing is planned earlier.
    pub start_ns: u64,
    /// Nothing is planned later; `u64::MAX`: there is no deadline.
    pub deadline_ns: u64,
    /// How far each process is; empty: none has begun.
    pub progress: &'a [Progress],
    /// All others of a new plan have their places first ([`Replan`](crate::Replan)).
    pub is_last: bool,
}

/// How far a process of a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// It has not begun: it may run on any core.
    #[default]
    Waiting,
    /// It has a thread that is on that core, and nothing of it was executed yet.
    Attached {
        /// The core's number on the machine.
        core: usize,
    },
    /// It has begun, and remains on its core.
    Running {
        /// The core's number on the machine.
        core: usize,
        /// Place of the task that it is at in
        /// [`Process::tasks`](pbs_job::Process::tasks).
        position: usize,
        /// What that task has retired so far.
        retired_insns: u64,
    },
    /// It has ended.
    Ended,
}

/// Why a job could not be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the process that could not be planned.
    pub process: usize,
    /// Index of the task at which it failed.
    pub task: usize,
    /// What there was too little of.
    pub lack: Lack,
    /// How many tasks of the job had no reservation yet.
    pub open_tasks: usize,
}

/// What there was too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// No core is free early enough.
    Time {
        /// When the task would end at the earliest.
        end_ns: u64,
        /// When it, and what comes after it in its process, must have ended.
        deadline_ns: u64,
    },
    /// No memory is free for long enough.
    Memory {
        /// What the process needs.
        needed_bytes: u64,
        /// For how long it needs that at least.
        needed_ns: u64,
        /// The most that is free at any time between the start and the
        /// deadline, in any one memory; where that would do, it is not free for
        /// long enough, or no core is.
        most_free_bytes: u64,
    },
    /// The machine has no such CPU, and the job is confined to it
    /// ([`Job::cpus`]).
    Cpu {
        /// Its number in Linux.
        cpu: u32,
    },
    /// The net has tasks that wait for each other; the check of the job
    /// ([`pbs_job`]) says which.
    Order,
    /// No strategy was tried; see
    /// [`Options::strategies`](crate::Options::strategies).
    Untried,
}

impl<'a> Request<'a> {
    /// A run of that job, from the job's start to its deadline.
    pub fn new(run: RunId, job: &'a Job) -> Self {
        let (start_ns, deadline_ns) = (job.start_ns, job.deadline_ns);
        Self { run, job, start_ns, deadline_ns, progress: &[], is_last: false }
    }

    /// The same, but no earlier than then.
    pub fn not_before(self, time_ns: u64) -> Self {
        Self { start_ns: self.start_ns.max(time_ns), ..self }
    }

    /// The same, but with no deadline.
    pub fn without_deadline(self) -> Self {
        Self { deadline_ns: u64::MAX, ..self }
    }

    /// The request, planned after all others of a new plan.
    pub fn last(self) -> Self {
        Self { is_last: true, ..self }
    }

    pub(crate) fn progress_of(&self, process: usize) -> Progress {
        let progress = self.progress.get(process).copied().unwrap_or_default();
        match progress {
            Progress::Running { position, .. }
                if position >= self.job.processes[process].tasks.len() =>
            {
                Progress::Ended
            }
            progress => progress,
        }
    }

    /// The core that a process is to be on which has not begun, if it has a thread.
    pub(crate) fn attached_to(&self, process: usize) -> Option<usize> {
        match self.progress_of(process) {
            Progress::Attached { core } => Some(core),
            _ => None,
        }
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
