// SPDX-License-Identifier: GPL-2.0
//! Studies: many cases in virtual time, and what they show.
//!
//! [`node`] has those of one node's plans, [`cosched`] those of tasks with several
//! implementations, [`evolving`] those of applications that evolve.

pub mod cosched;
pub mod evolving;
pub mod node;
