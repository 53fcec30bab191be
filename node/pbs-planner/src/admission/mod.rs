// SPDX-License-Identifier: GPL-2.0
//! The demand test: admission of jobs whose processes do not depend on each other.
//!
//! The search plans one job after the other, and leaves those before where they are. A
//! job that it finds no place for may fit all the same, if what is planned already moves.
//! For independent processes of a core that is decided exactly: all of them are placed
//! again by preemptive EDF, beside what is reserved for others, such as nets. If that
//! keeps all deadlines, these are the new places; if not, no order does.

mod anew;
mod behind;
mod beside;
pub(crate) mod demand;
pub(crate) mod edf;
mod independent;
mod place;

pub(crate) use anew::place_anew;
pub use behind::{place_behind, reserve_behind, reserve_behind_within};
pub use beside::{
    admit_beside, admit_beside_within, earliest_deadline_beside, earliest_deadline_beside_within,
};
pub use demand::{CoreOverload, DemandTest};
pub use edf::Overload;
pub(crate) use independent::is_independent;
