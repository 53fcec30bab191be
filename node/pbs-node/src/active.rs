// SPDX-License-Identifier: GPL-2.0
//! A run that is planned or under way.

use std::collections::BTreeMap;

use pbs_control::Admitted;
use pbs_history::{Kind, RunId};
use pbs_job::{cpu_list, Job};
use pbs_launch::{Owner, Variable};
use pbs_planner::Planned;

use crate::candidate::Candidate;
use crate::clock::{since_1970, unix_ns};
use crate::orders::Terms;
use crate::predict::{memory_bytes_of, Forecast};
use crate::{Held, Moved, NewPeak};

/// All of the memory that is reserved for a process, in thousandths.
pub(crate) const WHOLE_PERMILLE: u64 = 1000;

/// A run of a job.
#[derive(Debug)]
pub(crate) struct ActiveJob {
    /// Number of the run in the history, once it is recorded there.
    pub(crate) id: Option<RunId>,
    /// Number of the run in the controller.
    pub(crate) run: pbs_planner::RunId,
    /// With what was predicted, and times of the monotonic clock.
    pub(crate) job: Job,
    pub(crate) submitted_ns: u64,
    pub(crate) submitted_unix_ns: u64,
    /// Time since 1970 of the monotonic clock's zero, the same one for all times of the run.
    pub(crate) zero_unix_ns: u64,
    pub(crate) kind: Kind,
    /// Under which terms it was ordered, if it was.
    pub(crate) terms: Option<Terms>,
    /// Result of the first planning; `None`: another planner made the plan.
    pub(crate) planned: Option<Planned>,
    /// Change of its CPUs because of slow-downs, until the listener is told.
    pub(crate) moved: Option<Moved>,
    /// Sources of the figures of its tasks.
    pub(crate) forecasts: Vec<Forecast>,
    pub(crate) replans: u64,
    /// Prediction failures that the node has signalled: tasks, processes and the
    /// node itself.
    pub(crate) signals: u64,
    /// Time at which its programs were released.
    pub(crate) started_ns: Option<u64>,
    /// Time of its first instruction in a slot, as far as that was heard.
    pub(crate) begun_ns: Option<u64>,
    /// Whether a program of it was granted the CPU before the start of the job, and slept.
    pub(crate) has_slept: bool,
    /// Planned start of its first task when it began.
    pub(crate) expected_start_ns: Option<u64>,
    /// End of each process, by its number in plans.
    pub(crate) ends_ns: BTreeMap<u32, ProcessEnd>,
    /// End of the last process, as the planner before this one knew it.
    pub(crate) ended_before_ns: Option<u64>,
    /// Number of an event: earlier events report what the kernel has already answered about the
    /// run, and figures that the answers lack.
    pub(crate) asked_seq: u64,
    /// Somebody has it end before its time, and who.
    pub(crate) cancelled: Option<String>,
    /// Whether another service has started its programs, and nobody knows how they exit.
    pub(crate) is_adopted: bool,
    /// Whether it was reported that the run will miss its deadline.
    pub(crate) told_late: bool,
    /// Share of the memory reserved for a process, in thousandths, above which its owner is told.
    pub(crate) told_memory_permille: u64,
    pub(crate) request: String,
    /// Memory that the request has for all processes.
    pub(crate) requested_bytes: u64,
    /// Size of what the node holds of it.
    pub(crate) held: Held,
}

/// Time at which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// Time at which the kernel was asked, and answered that the process had ended before.
    Asked(u64),
    /// Time of the event.
    Heard(u64),
}

impl ProcessEnd {
    fn time_ns(self) -> u64 {
        let (Self::Asked(time_ns) | Self::Heard(time_ns)) = self;
        time_ns
    }
}

impl ActiveJob {
    /// Notes the end of a process. An event is exact, and what it says stays.
    pub(crate) fn process_ended(&mut self, number: u32, end: ProcessEnd) {
        let known = self.ends_ns.get(&number);
        if !matches!((known, end), (Some(_), ProcessEnd::Asked(_))) {
            self.ends_ns.insert(number, end);
        }
    }

    /// Notes that a program of it had the CPU at that time, and whether the event is its grant.
    /// `planned_ns` is its planned start. Returns whether that was not known before.
    ///
    /// Programs sleep until the start of their job: one that was granted the CPU before has
    /// executed nothing of its own. It continues at the start, or in its next slot.
    pub(crate) fn begun(&mut self, time_ns: u64, is_grant: bool, planned_ns: Option<u64>) -> bool {
        let start_ns = self.job.start_ns;
        if time_ns < start_ns {
            self.has_slept = true;
            return false;
        }
        let is_new = self.begun_ns.is_none();
        if is_new {
            self.expected_start_ns = planned_ns;
        }
        let woke = is_new && self.has_slept && !is_grant;
        let time_ns = if woke { start_ns } else { time_ns };
        self.begun_ns = Some(self.begun_ns.map_or(time_ns, |before_ns| before_ns.min(time_ns)));
        is_new
    }

    /// Notes the memory of one of its processes. Returns it if the owner is to be told: it is more
    /// than was reserved, and twice as much as the last time, in proportion. A job has therefore at
    /// most 64 such messages, whatever its processes do.
    pub(crate) fn memory_seen(&mut self, process: usize, peak_bytes: u64) -> Option<NewPeak> {
        let process = self.job.processes.get(process)?;
        let share = u128::from(peak_bytes) * u128::from(WHOLE_PERMILLE);
        let permille = share.checked_div(process.memory_bytes.into())?;
        let permille = u64::try_from(permille).unwrap_or(u64::MAX);
        let is_told = permille > self.told_memory_permille;
        is_told.then(|| {
            self.told_memory_permille = permille.saturating_mul(2);
            NewPeak { process: process.label(), peak_bytes, reserved_bytes: process.memory_bytes }
        })
    }

    /// Returns the end of the last process that has ended.
    pub(crate) fn ended_ns(&self) -> Option<u64> {
        let ends_ns = self.ends_ns.values().map(|end| end.time_ns());
        ends_ns.chain(self.ended_before_ns).max()
    }

    pub(crate) fn admitted(
        candidate: Candidate,
        job: Job,
        forecasts: Vec<Forecast>,
        (admitted, moved): (Admitted, Option<Moved>),
    ) -> Self {
        let terms_bytes = candidate.terms.as_ref().map_or(0, Terms::held_bytes);
        let held = Held::of(&job, &candidate.submission.request, terms_bytes);
        Self {
            held,
            id: candidate.id,
            run: admitted.run,
            submitted_ns: candidate.submitted_ns,
            submitted_unix_ns: unix_ns(),
            zero_unix_ns: since_1970(0),
            kind: candidate.kind,
            terms: candidate.terms,
            planned: Some(admitted.planned),
            moved,
            forecasts,
            replans: 0,
            signals: 0,
            started_ns: None,
            begun_ns: None,
            has_slept: false,
            expected_start_ns: None,
            ends_ns: BTreeMap::new(),
            ended_before_ns: None,
            asked_seq: 0,
            cancelled: None,
            is_adopted: false,
            told_late: false,
            told_memory_permille: WHOLE_PERMILLE,
            requested_bytes: memory_bytes_of(&candidate.submission.job),
            request: candidate.submission.request,
            job,
        }
    }

    /// Returns the user and the environment of its programs; `None`: they run like the node's own
    /// process.
    pub(crate) fn owner(&self) -> Option<Owner> {
        let mut owner = self.terms.as_ref()?.owner.clone();
        let (id, name) = (self.id.map_or(0, |id| id.0), &self.job.name);
        let own_file = || format!("{}-{id}.out", name.replace('/', "_")).into();
        owner.output = Some(owner.output.unwrap_or_else(own_file));
        Some(owner)
    }

    /// Variables of the environment that describe the job to its programs.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        let memory_bytes = memory_bytes_of(&self.job);
        let planned = self.planned.as_ref();
        let figures = [
            ("SCHED_PBS_JOB_ID", self.id.map(|id| id.0)),
            ("SCHED_PBS_DEADLINE_UNIX_NS", self.deadline_ns().map(|ns| self.unix_ns(ns))),
            ("SCHED_PBS_PLANNED_END_UNIX_NS", planned.map(|planned| self.unix_ns(planned.end_ns))),
            ("SCHED_PBS_MEMORY_BYTES", Some(memory_bytes)),
        ];
        let known = figures.iter().filter_map(|(name, figure)| Some((name, (*figure)?)));
        let mut variables: Vec<_> =
            known.map(|(name, figure)| ((*name).into(), figure.to_string())).collect();
        variables.push(("SCHED_PBS_JOB_NAME".into(), self.job.name.clone()));
        if !self.job.cpus.is_empty() {
            variables.push(("SCHED_PBS_CPUS".into(), cpu_list(&self.job.cpus)));
        }
        variables
    }

    /// Notes the time of the submission since 1970. All other times count from it, unless it was
    /// before the boot.
    pub(crate) fn submitted_at(&mut self, submitted_unix_ns: u64) {
        self.submitted_unix_ns = submitted_unix_ns;
        if self.submitted_ns > 0 {
            self.zero_unix_ns = submitted_unix_ns.saturating_sub(self.submitted_ns);
        }
    }

    /// Returns a time of the monotonic clock since 1970, always the same one for this run.
    pub(crate) fn unix_ns(&self, time_ns: u64) -> u64 {
        self.zero_unix_ns.saturating_add(time_ns)
    }

    /// Returns the time of the monotonic clock that is so long after the submission.
    pub(crate) fn after_submission_ns(&self, ns: u64) -> u64 {
        self.submitted_unix_ns.saturating_add(ns).saturating_sub(self.zero_unix_ns)
    }

    /// Returns the time from the submission to a time of the monotonic clock.
    pub(crate) fn since_submission_ns(&self, time_ns: u64) -> u64 {
        self.unix_ns(time_ns).saturating_sub(self.submitted_unix_ns)
    }

    /// Returns the user who ordered the run.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.terms.as_ref().map(|terms| terms.owner.uid)
    }

    /// The allocation that it is in.
    pub(crate) fn allocation(&self) -> Option<u32> {
        self.terms.as_ref().and_then(|terms| terms.allocation)
    }

    /// Returns the deadline on the monotonic clock; `None`: the run is a measurement and has none.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        Some(self.job.deadline_ns).filter(|_| self.kind == Kind::Plan)
    }
}
