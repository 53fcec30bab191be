// SPDX-License-Identifier: GPL-2.0
//! Applications and their resource manager in virtual time.
//!
//! The applications are those of [`pbs_rms_apps`], the manager is [`pbs_rms`], as on a real
//! cluster; [`Sim`] is the clock and the wire between them. [`study`] has the figures of
//! Klein and Pérez (2011) that need both.

mod sim;
pub mod study;

pub use sim::Sim;
