// SPDX-License-Identifier: GPL-2.0
//! Reasons for which a job is declined, in parts.

use pbs_job::Job;
use pbs_planner::{
    CoreOverload, Declined, EarliestDeadline, Lack, Level, Refusal, Rejection, Shortage,
};
use pbs_text::{bytes, grouped, underscored};
use serde::Serialize;

use super::row;
use crate::planning::{nanoseconds, AttemptView, CutShortView};

/// Check at which a job was declined, and the process, task and resource that it is about.
#[derive(Serialize)]
pub(super) struct DeclinedView {
    /// 1 to 3 of the validation; `None`: it passed, and no strategy found a plan.
    level: Option<u8>,
    /// The check in words.
    step: String,
    /// `None`: it is about the job as a whole.
    process: Option<Named>,
    /// The task at which the strategy failed that came furthest.
    task: Option<Named>,
    shortage: Option<ShortageView>,
    /// The interval in which a core has too little time for all that is independent, if
    /// the demand test was asked.
    demand: Option<DemandView>,
    /// All of that in a sentence.
    why: String,
    /// Counted from the submission; `None`: none was found that would do.
    earliest_deadline_ns: Option<u64>,
    /// Whether the search for that ended before it was through: an earlier one may do.
    earliest_deadline_cut_short: bool,
    attempts: Vec<AttemptView>,
    /// The search for a plan ended before it was through.
    cut_short: Option<CutShortView>,
    /// Whether the process only forks and joins the others, and the file need not name it.
    #[serde(skip)]
    only_forks: bool,
}

/// An interval of which more is asked than it has.
#[derive(Serialize)]
struct DemandView {
    /// Number of the core on the machine.
    core: usize,
    /// The share of the core that was tested, in thousandths.
    share_permille: u64,
    from_ns: u64,
    until_ns: u64,
    /// Time of the core in the interval, at that share.
    supply_ns: u64,
    /// Time that all need that must run in the interval.
    demand_ns: u64,
}

/// A process or task.
#[derive(Serialize)]
struct Named {
    id: u32,
    name: Option<String>,
}

/// A resource of which there was too little.
#[derive(Serialize)]
struct ShortageView {
    /// "time", "memory", "memory times time" or "resource".
    of: &'static str,
    /// "ns", "bytes", "byte_ns" or "units".
    unit: &'static str,
    /// Name of the resource, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    /// Required amount.  Of time: the end; `None`: never.
    needed: Option<u128>,
    /// Available amount.  Of time: the deadline.
    available: u128,
    missing: Option<u128>,
    /// Least time for which the memory or the resource is needed, if it is needed for a while.
    needed_for_ns: Option<u64>,
}

impl DeclinedView {
    pub(super) fn new(declined: &Declined, job: &Job, earliest: EarliestDeadline) -> Self {
        let (level, process, task, shortage) = match declined {
            Declined::Validation(rejection) => {
                let shortage = ShortageView::of_validation(rejection);
                (Some(rejection.level), rejection.process, None, shortage)
            }
            Declined::Reservation(refused) => {
                let Refusal { process, task, lack, .. } = refused.best;
                let shortage = ShortageView::of_reservation(lack, job, process);
                (None, Some(process), Some(task), shortage)
            }
        };
        let refused = match declined {
            Declined::Validation(_) => None,
            Declined::Reservation(refused) => Some(refused),
        };
        let attempts = refused.map_or(&[][..], |refused| refused.attempts.as_slice());
        let demand = refused.and_then(|refused| refused.demand.as_ref()).map(DemandView::new);
        let cut_short = refused.and_then(|refused| refused.cut_short.as_ref());
        let cut_short = cut_short.map(|it| CutShortView::new(it, "a plan"));
        let step = match level {
            Some(level) => level.to_string(),
            None if cut_short.is_some() => "reservation: no plan was found".into(),
            None => "reservation: no strategy found a plan".into(),
        };
        let only_forks = process.is_some_and(|process| job.only_forks(process));
        let process = process.and_then(|process| job.processes.get(process));
        let task = task.and_then(|task| job.tasks.get(task));
        Self {
            level: level.map(Level::number),
            step,
            process: process.map(|process| Named { id: process.id, name: process.name.clone() }),
            task: task.map(|task| Named { id: task.id, name: task.name.clone() }),
            only_forks,
            shortage,
            demand,
            why: declined.describe(job, 0),
            earliest_deadline_ns: earliest.deadline_ns,
            earliest_deadline_cut_short: earliest.is_cut,
            cut_short,
            attempts: attempts.iter().map(|attempt| AttemptView::new(attempt, job)).collect(),
        }
    }

    /// Rows of the table. No plan of the search ends before `bound_ns`.
    pub(super) fn rows(&self, bound_ns: u64) -> Vec<Vec<String>> {
        let mut rows = vec![row("declined at", self.step.clone())];
        let is_named = !self.only_forks;
        let process = self.process.as_ref().filter(|_| is_named).map(Named::text);
        rows.push(row("process", process.unwrap_or("the job as a whole".into())));
        let task = self.task.as_ref().filter(|_| is_named);
        rows.extend(task.map(|task| row("task", task.text())));
        match &self.shortage {
            Some(shortage) => rows.extend(shortage.rows()),
            None => rows.push(row("why", self.why.clone())),
        }
        rows.extend(AttemptView::text(&self.attempts).map(|text| row("tried", text)));
        rows.extend(self.cut_short.iter().map(|it| row("cut short", it.text())));
        rows.extend(self.demand.iter().map(|demand| row("demand test", demand.text())));
        let earliest = match self.earliest_deadline_ns {
            Some(ns) => {
                let by = if ns < bound_ns { ", by the demand test" } else { "" };
                let text = format!("deadline_ns = {} ({}){by}", underscored(ns), nanoseconds(ns));
                if self.earliest_deadline_cut_short {
                    text + "; an earlier one may do, as the search was cut short"
                } else {
                    text
                }
            }
            None if self.earliest_deadline_cut_short => {
                "none was found; one may do, as the search was cut short".into()
            }
            None => "no deadline would do".into(),
        };
        rows.push(row("earliest deadline", earliest));
        rows
    }
}

impl DemandView {
    fn new(found: &CoreOverload) -> Self {
        Self {
            core: found.core,
            share_permille: found.share_permille,
            from_ns: found.overload.from_ns,
            until_ns: found.overload.until_ns,
            supply_ns: found.supply_ns(),
            demand_ns: found.demand_ns(),
        }
    }

    fn text(&self) -> String {
        format!(
            "between {} and {} core {} has {}, and {} are asked",
            nanoseconds(self.from_ns),
            nanoseconds(self.until_ns),
            self.core,
            nanoseconds(self.supply_ns),
            nanoseconds(self.demand_ns)
        )
    }
}

impl Named {
    fn text(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.id),
            None => self.id.to_string(),
        }
    }
}

impl ShortageView {
    fn time(end_ns: u64, deadline_ns: u64) -> Self {
        let end_ns = Some(end_ns).filter(|&ns| ns < u64::MAX);
        Self {
            of: "time",
            unit: "ns",
            resource: None,
            needed: end_ns.map(u128::from),
            available: deadline_ns.into(),
            missing: end_ns.map(|ns| ns.saturating_sub(deadline_ns).into()),
            needed_for_ns: None,
        }
    }

    fn memory(needed_bytes: u64, available_bytes: u64, needed_for_ns: Option<u64>) -> Self {
        Self {
            of: "memory",
            unit: "bytes",
            resource: None,
            needed: Some(needed_bytes.into()),
            available: available_bytes.into(),
            missing: Some(needed_bytes.saturating_sub(available_bytes).into()),
            needed_for_ns,
        }
    }

    fn resource(name: String, needed: u64, available: u64, needed_for_ns: Option<u64>) -> Self {
        Self {
            of: "resource",
            unit: "units",
            resource: Some(name),
            needed: Some(needed.into()),
            available: available.into(),
            missing: Some(needed.saturating_sub(available).into()),
            needed_for_ns,
        }
    }

    /// `None`: no quantity says it.
    fn of_validation(rejection: &Rejection) -> Option<Self> {
        Some(match rejection.shortage {
            Shortage::Cpus { .. } | Shortage::NoResource { .. } => return None,
            Shortage::Resource { ref name, needed, available } => {
                Self::resource(name.clone(), needed, available, None)
            }
            Shortage::Time { end_ns, deadline_ns } => Self::time(end_ns, deadline_ns),
            Shortage::Memory { needed_bytes, available_bytes } => {
                Self::memory(needed_bytes, available_bytes, None)
            }
            Shortage::MemoryTime { left, .. } => {
                // Of what is wanted only that part must be free.
                let missing = rejection.shortage.missing();
                Self {
                    of: "memory times time",
                    unit: "byte_ns",
                    resource: None,
                    needed: Some(left.saturating_add(missing)),
                    available: left,
                    missing: Some(missing),
                    needed_for_ns: None,
                }
            }
        })
    }

    fn of_reservation(lack: Lack, job: &Job, process: usize) -> Option<Self> {
        match lack {
            Lack::Time { end_ns, deadline_ns } => Some(Self::time(end_ns, deadline_ns)),
            Lack::Memory { needed_bytes, needed_ns, most_free_bytes } => {
                let needed_for_ns = Some(needed_ns);
                Some(Self::memory(needed_bytes, most_free_bytes, needed_for_ns))
            }
            Lack::Resource { place, needed, needed_ns, most_free } => {
                let name = job.amounts(process).into_iter().nth(place)?.resource;
                Some(Self::resource(name, needed, most_free, Some(needed_ns)))
            }
            Lack::NoResource { .. }
            | Lack::Cpu { .. }
            | Lack::Order
            | Lack::Work
            | Lack::Untried => None,
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let needed = match (self.needed, self.needed_for_ns) {
            (Some(needed), Some(ns)) => {
                format!("{} for {} at least", self.amount(needed), nanoseconds(ns))
            }
            (Some(needed), None) if self.unit == "ns" => {
                format!("until {}", self.amount(needed))
            }
            (Some(needed), None) => self.amount(needed),
            (None, _) => "more than there ever is".into(),
        };
        let available = self.amount(self.available);
        let available = match self.unit {
            "ns" => format!("until {available}"),
            _ => available,
        };
        let of = match &self.resource {
            Some(name) => format!("resource {name}:"),
            None => self.of.to_string(),
        };
        let mut rows = vec![row("needed", format!("{of} {needed}")), row("available", available)];
        let missing = self.missing.filter(|&missing| missing > 0);
        rows.extend(missing.map(|missing| row("missing", self.amount(missing))));
        rows
    }

    /// An amount of the resource, with the unit.
    fn amount(&self, value: u128) -> String {
        let whole = u64::try_from(value).unwrap_or(u64::MAX);
        match self.unit {
            "ns" => nanoseconds(whole),
            "units" => grouped(whole),
            "bytes" => format!("{} ({} bytes)", bytes(whole), grouped(whole)),
            _ => {
                // Of a small want the seconds would be 0.
                let byte_ms = i128::try_from(value / 1_000_000).unwrap_or(i128::MAX);
                format!("{} bytes times ms", grouped(byte_ms))
            }
        }
    }
}
