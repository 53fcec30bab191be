// SPDX-License-Identifier: GPL-2.0
//! A run of a job, and what its tasks used.

use std::fmt;

use serde::Serialize;

use crate::digest::Digest;
use crate::Fingerprint;

macro_rules! names {
    ($($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in tables, in JSON and in the file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// `None` for a name that this version does not know.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}

names! {
    /// End of a task, a process or a run.
    Outcome {
        /// The item completed.
        Complete = "complete",
        /// The thread left the class, or the plan was dropped, before the end.
        Ejected = "ejected",
        /// The process never had a thread.
        Absent = "absent",
        /// The thread ended before the item was complete.
        Killed = "killed",
        /// The events that would tell were lost, or did not come yet.
        Unknown = "unknown",
        /// For a run: it was submitted, and could not be planned any more.
        Declined = "declined",
        /// For a run: somebody has withdrawn it, or ended it before its end.
        Cancelled = "cancelled",
        /// For a run: its programs could not be started.
        Failed = "failed",
    }

    /// State of a run.
    State {
        /// Admitted; its plan is not in force yet.
        Planned = "planned",
        /// The plan of the run is in force.
        Running = "running",
        /// Ended, and its figures are there.
        Over = "over",
    }

    /// Purpose of a run.
    Kind {
        /// The job was to be done.
        Plan = "plan",
        /// The job was to be measured.
        Profile = "profile",
    }
}

/// The number of a run; no number is given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Runs that are over, of which the last ones are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last<'a> {
    /// Number of runs at most, of those that the other fields describe.
    pub count: usize,
    /// Name of the job; `None`: any.
    pub job: Option<&'a str>,
    /// User who ordered the runs; `None`: any, or none.
    pub uid: Option<u32>,
}

/// A run that begins.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// The name of the job.
    pub job: &'a str,
    /// Purpose of the run.
    pub kind: Kind,
    /// Time of submission, since 1970.
    pub submitted_unix_ns: u64,
    /// The job as it was requested, for who takes over.
    pub request: &'a str,
    /// Reservation of the run, in the planner's own format; empty: it waits.
    pub reservation: &'a str,
    /// Order of the run; `None`: it belongs to the user who records it.
    pub order: Option<&'a Order>,
}

/// User of a run, and all data of the order beside the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// The user.
    pub uid: u32,
    /// The rest, in the words of who takes orders.
    pub text: String,
}

impl Order {
    /// Returns a number that reveals damage to the stored order; see [`Run::digest`].
    pub(crate) fn digest(&self, run: RunId) -> u64 {
        let mut digest = Digest::new();
        digest.number(run.0);
        digest.number(self.uid.into());
        digest.text(self.text.as_bytes());
        digest.value()
    }
}

/// Data that a planner needs to take over a run from a planner that died. They are stored until the
/// run is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Takeover {
    /// The job as it was requested.
    pub request: String,
    /// Reservation of the run, in the planner's own format.
    pub reservation: String,
    /// The boot in which that is so: [`boot_id`](crate::boot_id). Plans and numbers
    /// of events do not survive a boot.
    pub boot_id: String,
    /// The first event of the kernel that may be of it.
    pub first_seq: u64,
}

impl Takeover {
    /// Returns a number that reveals damage to the stored data; see [`Run::digest`]. `plan`,
    /// `plan_id` and `dealt_seq` are values of its row, in which earlier versions stored what
    /// [`InForce`] now has.
    pub(crate) fn digest(&self, run: RunId, plan: &str, plan_id: u64, dealt_seq: u64) -> u64 {
        let mut digest = Digest::new();
        digest.number(run.0);
        for text in [&self.request, &self.reservation, plan, &self.boot_id] {
            digest.text(text.as_bytes());
        }
        for number in [plan_id, self.first_seq, dealt_seq] {
            digest.number(number);
        }
        digest.value()
    }
}

/// Last plan that the planner has given to the node, and the last events that it has read. They
/// cover all runs that are under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InForce {
    /// The plan that was written last, as text.
    pub plan: String,
    /// Number of the plan.
    pub plan_id: u64,
    /// The boot in which that is so.
    pub boot_id: String,
    /// The first event of the kernel that was not read yet.
    pub next_seq: u64,
}

impl InForce {
    /// Returns a number that reveals damage to the stored data; see [`Run::digest`].
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for text in [&self.plan, &self.boot_id] {
            digest.text(text.as_bytes());
        }
        for number in [self.plan_id, self.next_seq] {
            digest.number(number);
        }
        digest.value()
    }
}

/// A run as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Number of the run.
    pub id: RunId,
    /// The name of its job.
    pub job: String,
    /// Purpose of the run.
    pub kind: Kind,
    /// State of the run.
    pub state: State,
    /// Time of submission, since 1970.
    pub submitted_unix_ns: u64,
    /// End of the run, since 1970; `None`: it has not ended.
    pub ended_unix_ns: Option<u64>,
    /// Kind of its end; `None`: it has not ended.
    pub outcome: Option<Outcome>,
    /// Processes of which there are figures.
    pub processes: u32,
}

impl Run {
    /// A number by which damage to what is stored is found.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.number(self.id.0);
        digest.text(self.job.as_bytes());
        digest.text(self.kind.name().as_bytes());
        digest.text(self.state.name().as_bytes());
        digest.number(self.submitted_unix_ns);
        digest.number(self.ended_unix_ns.unwrap_or(u64::MAX));
        digest.text(self.outcome.map_or("", Outcome::name).as_bytes());
        digest.number(self.processes.into());
        digest.value()
    }
}

/// A process in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessRun {
    /// Number of the process in the job.
    pub process: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Fingerprint of the program that it executed.
    pub fingerprint: Fingerprint,
    /// Kind of its end.
    pub outcome: Outcome,
    /// For how long it had a CPU, its system calls included; 0: nobody has
    /// measured it.
    pub ran_ns: u64,
    /// Tasks of the process, ascending.
    pub tasks: Vec<TaskRun>,
}

/// A task in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRun {
    /// Number of the task in the process.
    pub task: u32,
    /// Readable name.
    pub name: Option<String>,
    /// Planned length.
    pub planned_insns: u64,
    /// Instructions that the task retired, up to its end or as far as it ran.
    pub retired_insns: u64,
    /// The largest resident size of its process that was seen while it ran; 0:
    /// none was.
    pub peak_memory_bytes: u64,
    /// Number of preemptions.
    pub preemptions: u32,
    /// Kind of its end.
    pub outcome: Outcome,
}

impl ProcessRun {
    /// Returns the number of instructions that the process retired in a millisecond in which it
    /// ran; `None`: it did not complete, or its time was not measured.
    pub fn rate_insns_per_ms(&self) -> Option<u64> {
        let tasks = self.tasks.iter().map(|task| task.retired_insns);
        let retired_insns = tasks.fold(0, u64::saturating_add);
        if self.outcome != Outcome::Complete || retired_insns == 0 {
            return None;
        }
        let product = u128::from(retired_insns) * 1_000_000;
        let rate = product.checked_div(self.ran_ns.into())?;
        // As one can be in a plan.
        Some(rate.clamp(1, u32::MAX.into()) as u64)
    }

    /// The largest resident size that was seen (Glaß 2024, 4.4); 0: none was.
    pub fn peak_memory_bytes(&self) -> u64 {
        let peaks = self.tasks.iter().map(|task| task.peak_memory_bytes);
        peaks.max().unwrap_or(0)
    }

    /// Returns a number that reveals damage to the stored process of the run; see [`Run::digest`].
    pub(crate) fn digest(&self, run: RunId) -> u64 {
        let mut digest = Digest::new();
        digest.number(run.0);
        digest.number(self.process.into());
        digest.text(self.name.as_deref().unwrap_or("").as_bytes());
        digest.number(self.fingerprint.0);
        digest.text(self.outcome.name().as_bytes());
        for task in &self.tasks {
            digest.number(task.task.into());
            digest.text(task.name.as_deref().unwrap_or("").as_bytes());
            digest.number(task.planned_insns);
            digest.number(task.retired_insns);
            digest.number(task.peak_memory_bytes);
            digest.number(task.preemptions.into());
            digest.text(task.outcome.name().as_bytes());
        }
        digest.value()
    }
}
