// SPDX-License-Identifier: GPL-2.0
//! The planner: job requests in, plans out (Glaß 2024, 5.1).
//!
//! A [`Store`] knows what is reserved of the cores' time and of the nodes'
//! memory, and for whom. [`reserve`] plans a run of a job: it tries several
//! strategies and keeps the best plan, all of it or nothing. [`validate`] tells
//! beforehand whether that is worth while, and [`admit`] does both.

mod admission;
mod arrange;
mod bounds;
mod budget;
mod critical;
mod keep;
pub mod plan_building;
mod replan;
mod reserve;
mod search;
mod store;
mod strategies;
mod validate;

pub use admission::{
    admit_beside, admit_beside_within, earliest_deadline_beside, earliest_deadline_beside_within,
    place_behind, reserve_behind, reserve_behind_within, CoreOverload, DemandTest, Overload,
};
pub use arrange::{arrange, NotArranged, Turn};
pub use bounds::{lower_bound, Bound, Limit};
pub use budget::Budget;
pub use critical::{critical_path, Because, Critical};
pub use keep::keep;
pub use replan::{NotReplanned, Replan, Replanned};
pub use reserve::{Lack, Progress, Refusal, Request};
pub use store::{
    Balancing, Booking, Capacity, HeldAmount, Interruption, Mark, MessageReservation,
    ProcessReservation, Run, RunId, Site, Store, TaskReservation,
};
pub use strategies::{
    reserve, reserve_in, Aim, Attempt, CutShort, Options, Planned, Refused, Strategy,
};
pub use validate::{
    admit, earliest_deadline, validate, validate_in, validate_level, validate_machine, Declined,
    EarliestDeadline, Level, Rejection, Shortage, Validation, WantType, MOST_TRIES,
};
