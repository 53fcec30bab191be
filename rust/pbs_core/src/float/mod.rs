// SPDX-License-Identifier: GPL-2.0

//! Slots that float: the dispatch by deadline.
//!
//! Each process has one slot at a time: that of its current task, or a later one if it has
//! used that up.  A slot has a deadline, which is the deadline of its process less the
//! time that is planned for the process after the slot.  Of the processes that can run the
//! one with the earliest deadline has the CPU, and no CPU idles while one can run.  Idle
//! slots of the plan mean nothing here.
//!
//! A slot has a budget, which is t1; when it is used up, the process takes the place of its
//! next slot.  The budget of the last slot is what sigma_t2 leaves of the plan of the
//! process.  A process that has used up its last slot runs in the background, when no other
//! can run.
//!
//! * `place`: the place of a process in the order.
//! * `lists`: the processes that can run, and those whose absence or wait is to be
//!   reported, each list in that order.
//! * `slots`: the begin and the end of slots.
//! * `choose`: the choice of the process that has the CPU.
//! * `decide`: decisions, and the end of the plan.
//! * `check`: contradictions in the state.

mod check;
mod choose;
mod decide;
mod lists;
mod place;
mod slots;

pub(super) use lists::Floating;
#[cfg(test)]
pub(super) use place::List;
