// SPDX-License-Identifier: GPL-2.0
//! Applications that evolve, under a resource manager that serves: models of them, in real time
//! or so many times faster, and such whose tasks run.
//!
//! What they want is what those of the simulation want ([`pbs_rms_apps`]); here the manager is a
//! service, the clock is that of the machine, and who has tasks that run has them run by
//! [`Tasks`]. What runs them is not known here.
//!
//! | file | |
//! |---|---|
//! | `driver` | one application and its session |
//! | `tasks` | what runs its tasks |
//! | `clock` | the time of a model, and that of the manager |

mod clock;
mod driver;
mod tasks;

pub use driver::{Driver, News, RunEnd};
pub use tasks::{TaskNews, Tasks};
