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
    /// How a task, a process or a run ended.
    Outcome {
        /// It came to its end.
        Complete = "complete",
        /// Its thread left the class, or its plan went away before its end.
        Ejected = "ejected",
        /// It never had a thread.
        Absent = "absent",
        /// Its thread ended before it.
        Killed = "killed",
        /// The events that would tell were lost, or did not come yet.
        Unknown = "unknown",
        /// Of a run: it was submitted, and could not be planned any more.
        Declined = "declined",
        /// Of a run: somebody has withdrawn it, or ended it before its end.
        Cancelled = "cancelled",
        /// Of a run: its programs could not be started.
        Failed = "failed",
    }

    /// How far a run has come.
    State {
        /// Admitted; its plan is not in force yet.
        Planned = "planned",
        /// Its plan is in force.
        Running = "running",
        /// Ended, and its figures are there.
        Over = "over",
    }

    /// What a run was for.
    Kind {
        /// It was to be done.
        Plan = "plan",
        /// It was to be measured.
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

/// A run that begins.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// The name of the job.
    pub job: &'a str,
    /// What it is for.
    pub kind: Kind,
    /// When it was submitted, since 1970.
    pub submitted_unix_ns: u64,
    /// The job as it was requested, for who takes over.
    pub request: &'a str,
    /// What is reserved for it, in the planner's own words; empty: it waits.
    pub reservation: &'a str,
    /// Who wants it, and how; `None`: who records it.
    pub order: Option<&'a Order>,
}

/// Who wants a run, and all that was said about it beside the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// The user.
    pub uid: u32,
    /// The rest, in the words of who takes orders.
    pub text: String,
}

impl Order {
    /// As [`Run::digest`], of that run.
    pub(crate) fn digest(&self, run: RunId) -> u64 {
        let mut digest = Digest::new();
        digest.number(run.0);
        digest.number(self.uid.into());
        digest.text(self.text.as_bytes());
        digest.value()
    }
}

/// What somebody needs to take over a run from a planner that died. It is kept
/// until the run is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Takeover {
    /// The job as it was requested.
    pub request: String,
    /// What is reserved for it, in the planner's own words.
    pub reservation: String,
    /// The boot in which that is so: [`boot_id`](crate::boot_id). Plans and numbers
    /// of events do not survive a boot.
    pub boot_id: String,
    /// The first event of the kernel that may be of it.
    pub first_seq: u64,
}

impl Takeover {
    /// As [`Run::digest`], of that run; `plan`, `plan_id` and `dealt_seq` as they stand
    /// in its row. Earlier versions had there what [`InForce`] has.
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

/// What the planner has told the node, and heard of it: of all runs that are under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InForce {
    /// The plan that was written last, as text.
    pub plan: String,
    /// Its number.
    pub plan_id: u64,
    /// The boot in which that is so.
    pub boot_id: String,
    /// The first event of the kernel that was not read yet.
    pub next_seq: u64,
}

impl InForce {
    /// As [`Run::digest`].
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
    /// Its number.
    pub id: RunId,
    /// The name of its job.
    pub job: String,
    /// What it is for.
    pub kind: Kind,
    /// How far it has come.
    pub state: State,
    /// When it was submitted, since 1970.
    pub submitted_unix_ns: u64,
    /// When it ended, since 1970; `None`: it has not.
    pub ended_unix_ns: Option<u64>,
    /// How it ended; `None`: it has not.
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
    /// Its number in the job.
    pub process: u32,
    /// What people call it.
    pub name: Option<String>,
    /// What it executed.
    pub fingerprint: Fingerprint,
    /// How it ended.
    pub outcome: Outcome,
    /// For how long it had a CPU, its system calls included; 0: nobody has
    /// measured it.
    pub ran_ns: u64,
    /// Its tasks, ascending.
    pub tasks: Vec<TaskRun>,
}

/// A task in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRun {
    /// Its number in the process.
    pub task: u32,
    /// What people call it.
    pub name: Option<String>,
    /// What the plan granted it.
    pub planned_insns: u64,
    /// What it retired, to its end or as far as it came.
    pub retired_insns: u64,
    /// The largest resident size of its process that was seen while it ran; 0:
    /// none was.
    pub peak_memory_bytes: u64,
    /// How often it was preempted.
    pub preemptions: u32,
    /// How it ended.
    pub outcome: Outcome,
}

impl ProcessRun {
    /// How many instructions it retired in a millisecond in which it ran; `None`:
    /// it did not come to its end, or nobody has measured it.
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

    /// As [`Run::digest`], in that run.
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
