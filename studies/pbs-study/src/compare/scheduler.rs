// SPDX-License-Identifier: GPL-2.0
//! Schedulers of the comparison, and the configurations of their plans.

use pbs_plan::{Config, Dispatch};
use serde::{Serialize, Serializer};

/// A scheduler, a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheduler {
    /// A plan, and new plans when the node signals a prediction failure.
    Plan,
    /// The first plan alone.
    PlanUnanswered,
    /// A plan with the policy of the thesis, and the last slots of processes spared.
    PlanThesis,
    /// A plan with the policy of the thesis, where t1 ends last slots, too.
    PlanT1Always,
    /// Earliest deadline first, the jobs that the planner admitted.
    EdfAdmitted,
    /// Earliest deadline first in execution time alone, as plans run.
    EdfWindows,
    /// Earliest deadline first, all jobs.
    EdfAll,
    /// EEVDF, the jobs that the planner admitted.
    EevdfAdmitted,
    /// EEVDF, all jobs.
    EevdfAll,
    /// `SCHED_DEADLINE` with the declared length as run time.
    Deadline,
    /// `SCHED_DEADLINE` with the greatest length of a job that is no rogue.
    DeadlinePadded,
    /// Most deadlines that can be kept of the jobs that the planner admitted.
    OptimumAdmitted,
    /// Most deadlines that can be kept of all jobs.
    OptimumAll,
}

impl Scheduler {
    /// All schedulers, in the order of the tables.
    pub const ALL: [Self; 13] = [
        Self::Plan,
        Self::PlanUnanswered,
        Self::PlanThesis,
        Self::PlanT1Always,
        Self::EdfAdmitted,
        Self::EdfWindows,
        Self::EdfAll,
        Self::EevdfAdmitted,
        Self::EevdfAll,
        Self::Deadline,
        Self::DeadlinePadded,
        Self::OptimumAdmitted,
        Self::OptimumAll,
    ];

    /// Name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::PlanUnanswered => "plan-unanswered",
            Self::PlanThesis => "plan-thesis",
            Self::PlanT1Always => "plan-t1-always",
            Self::EdfAdmitted => "edf-admitted",
            Self::EdfWindows => "edf-windows",
            Self::EdfAll => "edf-all",
            Self::EevdfAdmitted => "eevdf-admitted",
            Self::EevdfAll => "eevdf-all",
            Self::Deadline => "deadline",
            Self::DeadlinePadded => "deadline-padded",
            Self::OptimumAdmitted => "optimum-admitted",
            Self::OptimumAll => "optimum-all",
        }
    }

    /// Scheduler with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }

    /// Configuration of its plans; `None`: it has no plans.
    pub(crate) fn config(self, base: &Config) -> Option<Config> {
        let thesis = Config { dispatch: Dispatch::Thesis as u64, ..*base };
        match self {
            Self::Plan | Self::PlanUnanswered => Some(*base),
            Self::PlanThesis => Some(thesis),
            Self::PlanT1Always => Some(Config { t1_spares_last_slot: 0, ..thesis }),
            _ => None,
        }
    }

    /// Whether it gets jobs that the planner declines: its share of all jobs is what counts.
    pub(crate) fn takes_what_the_planner_declines(self) -> bool {
        matches!(
            self,
            Self::EdfAll
                | Self::EevdfAll
                | Self::Deadline
                | Self::DeadlinePadded
                | Self::OptimumAll
        )
    }

    /// Whether prediction failures are answered.
    pub(crate) fn answers(self) -> bool {
        self != Self::PlanUnanswered
    }
}

impl Serialize for Scheduler {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_found_by_its_name() {
        for scheduler in Scheduler::ALL {
            assert_eq!(Scheduler::by_name(scheduler.name()), Some(scheduler));
        }
        assert_eq!(Scheduler::by_name("lottery"), None);
    }

    #[test]
    fn configurations_differ_from_the_base_in_what_is_pinned() {
        let base = Config {
            sigma_t2_permille: 1700,
            dispatch: Dispatch::Deadline as u64,
            ..Config::DEFAULT
        };
        assert_eq!(Scheduler::Plan.config(&base), Some(base));
        let t1_always = Scheduler::PlanT1Always.config(&base).unwrap();
        assert_eq!((t1_always.t1_spares_last_slot, t1_always.sigma_t2_permille), (0, 1700));
        assert_eq!(t1_always.dispatch(), Dispatch::Thesis);
        let thesis = Scheduler::PlanThesis.config(&base).unwrap();
        assert_eq!(thesis, Config { dispatch: Dispatch::Thesis as u64, ..base });
        assert_eq!(Scheduler::EdfAll.config(&base), None);
    }
}
