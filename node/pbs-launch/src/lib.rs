// SPDX-License-Identifier: GPL-2.0
//! Starts the programs of plans, each as its owner and in its control group.
//!
//! All unsafe code of a node is here: fork and exec, affinity, limits, signals. A caller
//! decides what is started and when; this package knows no jobs, no history and no planner.
//!
//! - [`Owner`] and [`Prepared`] hold all that a program needs, before anything is forked.
//! - [`Gate`] forks the programs, holds them, and lets them go together.
//! - [`Child`] is a program that was forked, until it has ended.
//! - [`cgroup`], [`Stay`], [`stay_off`] and [`signals`] serve the caller itself.

pub mod cgroup;
mod check;
mod child;
mod child_report;
mod ended;
mod files;
mod gate;
mod inside;
mod memory;
mod notice;
mod own_limits;
mod owner;
mod place;
mod program;
mod session;
pub mod signals;

pub use check::{check_programs, JobCommand, Surroundings};
pub use child::{Child, Exited};
pub use ended::{ended_children, EndedChildren};
pub use gate::{was_released, Gate};
pub use notice::NoticeSignal;
pub use own_limits::{lower_timers, raise_open_files};
pub use owner::{Limit, Owner};
pub use place::{stay_off, Stay};
pub use program::{empty_outputs, path_of, prepare_plan, Prepared, Program, Variable};
pub use session::leave_session_in;
