// SPDX-License-Identifier: GPL-2.0

//! Policies, each in a file of its own, and their numbers and names.
//!
//! A plan selects a policy by its name (`idle_policy` in `[config]`).  A policy of one's own is a
//! file with a type that has [`Decisions`], a `mod` line and a line in the list below.

mod by_state;
mod closest_deadline;
mod decisions;
mod equal_shares;
mod latest;
mod least_slack;
mod nobody;
mod pieces;
mod preempted;
mod round_robin;
mod strict;
#[cfg(test)]
mod trial;

use super::division::Division;

pub(super) use decisions::{Candidate, Decisions, IdleSlot, Piece};

/// Declares [`IdlePolicy`], with the decisions of each policy.  The name of a policy is that of its
/// file.
macro_rules! policies {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($cfg:meta)])?
        $module:ident::$policy:ident = $number:literal,
    )*) => {
        /// Policy of idle slots: which candidate gets an idle slot, and how much of it.  The
        /// policy also selects the candidate that gets the slot of a process that cannot run, or
        /// continues after the plan, and may change t1 and t2_task: `enum pbs_idle_policy`.
        ///
        /// Leppert 2021, 3.2.3, discusses five ideas and adopts none of them: it uses
        /// [`IdlePolicy::Latest`].  Rules about pieces or whole slots apply to idle slots alone:
        /// elsewhere a turn lasts to the end of the window.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum IdlePolicy {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $policy = $number,)*
        }

        impl IdlePolicy {
            /// All policies, by number.
            pub const ALL: [IdlePolicy; [$($(#[cfg($cfg)])? $number,)*].len()] =
                [$($(#[cfg($cfg)])? IdlePolicy::$policy,)*];

            /// Returns the name of the policy, as the planner writes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => stringify!($module),)*
                }
            }

            /// Returns the policy of that number; [`IdlePolicy::Latest`] if none has it.
            pub(super) const fn of_number(number: u64) -> IdlePolicy {
                match number {
                    $($(#[cfg($cfg)])? $number => IdlePolicy::$policy,)*
                    _ => IdlePolicy::Latest,
                }
            }

            /// [`Decisions::urgency`]
            #[inline]
            pub(super) fn urgency(self, candidate: &impl Candidate) -> i64 {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => {
                        $module::$policy::urgency(candidate)
                    })*
                }
            }

            /// [`Decisions::divide`]
            pub(super) fn divide(self, slot: &IdleSlot) -> Division {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => $module::$policy::divide(slot),)*
                }
            }

            /// [`Decisions::may_fill`]
            pub(super) fn may_fill(self, candidate: &impl Candidate) -> bool {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => {
                        $module::$policy::may_fill(candidate)
                    })*
                }
            }

            /// [`Decisions::piece_ns`]
            pub(super) fn piece_ns(self, piece: &Piece, candidate: &impl Candidate) -> u64 {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => {
                        $module::$policy::piece_ns(piece, candidate)
                    })*
                }
            }

            /// [`Decisions::t1_insns`]
            #[inline]
            pub(super) fn t1_insns(self, slot_insns: u64, t1_insns: u64) -> u64 {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => {
                        $module::$policy::t1_insns(slot_insns, t1_insns)
                    })*
                }
            }

            /// [`Decisions::t2_task_insns`]
            #[inline]
            pub(super) fn t2_task_insns(self, task_insns: u64, t2_task_insns: u64) -> u64 {
                match self {
                    $($(#[cfg($cfg)])? IdlePolicy::$policy => {
                        $module::$policy::t2_task_insns(task_insns, t2_task_insns)
                    })*
                }
            }
        }
    };
}

policies! {
    /// The process with the greatest lateness (Leppert 2021, listing 2).
    latest::Latest = 0,
    /// The process with the least slack: the part of the time to its deadline that its plan buffer
    /// (3.3.3) leaves after its lateness is subtracted.
    least_slack::LeastSlack = 1,
    /// Idea 1: pieces of one size (`Config::idle_piece_ns`); the candidate that has waited
    /// longest gets the next one.  No piece begins for which there is no room: the rest is added to
    /// the last piece.
    pieces::Pieces = 2,
    /// Idea 2: equal parts for all candidates at the time when the first of them gets the slot, in
    /// the order in which they have waited.
    equal_shares::EqualShares = 3,
    /// Idea 3: pieces as with `Pieces`, the smaller the later the node is: from whole pieces on a
    /// node that is not late to quarters at t2_node.
    by_state::ByState = 4,
    /// Idea 4: the whole slot for one process: the first idle slot for the first process of the
    /// plan, the next one for the next.  A following plan continues this round.  If that process is
    /// no candidate, no other process gets the slot.  In other slots, the candidate that has waited
    /// longest goes first.
    round_robin::RoundRobin = 5,
    /// Idea 5: the process with the closest deadline: the end of its last slot in the plan, plus
    /// its plan buffer.
    closest_deadline::ClosestDeadline = 6,
    /// No process: idle slots stay idle.  A yardstick for all others.  In other slots as `Latest`.
    nobody::Nobody = 7,
    /// The latest process whose task was preempted.  Processes that others have pushed along get
    /// no idle slot.  In other slots, too, preempted tasks go first.
    preempted::Preempted = 8,
    /// No tolerance: a slot ends with the first instruction beyond its length, and the third beyond
    /// the length of a task is its prediction failure.  A yardstick for t1.  Idle slots as
    /// `Latest`.
    strict::Strict = 9,
    /// Pieces that double with each preemption of the candidate's task: a policy of tests alone,
    /// which decides by the candidate of a piece.
    #[cfg(test)]
    trial::Trial = 10,
}
