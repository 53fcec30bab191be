// SPDX-License-Identifier: GPL-2.0
//! Models of applications that evolve, under a resource manager that serves: in real time, or
//! so many times faster.
//!
//! The models are those of the simulation ([`pbs_apps`]); here the manager is a service, and
//! the clock is that of the machine.

mod clock;
mod driver;

pub use driver::{Driver, News};
