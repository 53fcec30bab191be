// SPDX-License-Identifier: GPL-2.0
//! Progress of a process, as events report it.

use pbs_job::Job;
use pbs_planner::Progress;

/// Reason for which a process has no tasks left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process has ended all its tasks.
    Complete,
    /// The process left early: it exited, was killed, or left the class.
    Cut,
    /// A process that it waits for was cut, so it is not to go on.
    Cancelled,
}

/// Measured length of a task that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Index of the task in its process.
    pub position: usize,
    /// Expected length when the run was admitted.
    pub expected_insns: u64,
    /// Instructions that the task retired.
    pub retired_insns: u64,
}

/// A process of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    /// Number of the process's core on the machine, once it has a thread there.
    core: Option<usize>,
    /// The task that it is at.
    position: usize,
    /// Instructions that the current task has retired.
    retired_insns: u64,
    /// Whether it was seen using more memory than was reserved for it.
    has_grown: bool,
    /// The task that the node has signalled to be late.
    signalled: Option<usize>,
    end: Option<End>,
    measured: Vec<Measured>,
}

impl Track {
    /// Notes that the process has a thread on this core, and stays there.
    pub(crate) fn attached(&mut self, core: usize) {
        self.core = Some(core);
        // Another thread may take the place of one that was detached.
        if self.end == Some(End::Cut) {
            self.end = None;
        }
    }

    /// Notes that the process is at a task that has retired `retired_insns`; older reports are
    /// ignored.
    pub(crate) fn at(&mut self, position: usize, retired_insns: u64) {
        if position > self.position {
            self.position = position;
            self.retired_insns = 0;
        }
        if position == self.position {
            self.retired_insns = self.retired_insns.max(retired_insns);
        }
    }

    /// The process uses more memory than was reserved for it.
    pub(crate) fn grown(&mut self) {
        self.has_grown = true;
    }

    pub(crate) fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// The node has signalled that the process is late at the task that it is at.
    pub(crate) fn signalled(&mut self) {
        self.signalled = Some(self.position);
    }

    /// Whether the node has signalled the task at which the process is.
    pub(crate) fn is_signalled(&self) -> bool {
        self.signalled == Some(self.position)
    }

    /// A task of it has ended, having retired so much. That may be told after the
    /// state of the process that has it behind it, or once more.
    pub(crate) fn task_ended(&mut self, position: usize, expected_insns: u64, retired_insns: u64) {
        let place = self.measured.partition_point(|t| t.position < position);
        let known = self.measured.get(place);
        if known.is_none_or(|task| task.position != position) {
            let task = Measured { position, expected_insns, retired_insns };
            self.measured.insert(place, task);
        }
        if position >= self.position {
            self.position = position + 1;
            self.retired_insns = 0;
        }
    }

    /// Notes that the process has no tasks left.
    pub(crate) fn ended(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// Whether it has a thread or had one, and so a core.
    pub(crate) fn has_begun(&self) -> bool {
        self.core.is_some() || self.end.is_some()
    }

    /// Whether something of it has been executed, or it has ended.
    pub(crate) fn has_executed(&self) -> bool {
        self.retired_insns > 0 || !self.measured.is_empty() || self.end.is_some()
    }

    /// The core that it is on, as long as it has not ended.
    pub(crate) fn core(&self) -> Option<usize> {
        self.core.filter(|_| self.end.is_none())
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn retired_insns(&self) -> u64 {
        self.retired_insns
    }

    pub(crate) fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// Returns the sums of the expected lengths of the ended tasks and of the instructions that
    /// they retired.
    pub(crate) fn sums_insns(&self) -> (u64, u64) {
        self.measured.iter().fold((0, 0), |(expected, retired), task| {
            (
                task.expected_insns.saturating_add(expected),
                task.retired_insns.saturating_add(retired),
            )
        })
    }

    /// Returns the progress in the form of the planner, for a process with `tasks` tasks.
    /// `holds_nothing`: it has executed nothing, and waits for its slots.
    pub(crate) fn progress(&self, tasks: usize, holds_nothing: bool) -> Progress {
        match (self.end, self.core) {
            (Some(_), _) => Progress::Ended,
            _ if self.position >= tasks => Progress::Ended,
            (None, Some(core)) if holds_nothing => Progress::Attached { core },
            (None, Some(core)) => Progress::Running {
                core,
                position: self.position,
                retired_insns: self.retired_insns,
            },
            (None, None) => Progress::Waiting,
        }
    }
}

/// The first tasks of a process that have instructions, from `position` on: the
/// node knows nothing of the others, which are over with the task before them.
pub(crate) fn next_with_insns(job: &Job, process: usize, position: usize) -> usize {
    let tasks = &job.processes[process].tasks;
    let rest = tasks.iter().skip(position);
    position + rest.take_while(|&&task| job.tasks[task].insns == 0).count()
}
