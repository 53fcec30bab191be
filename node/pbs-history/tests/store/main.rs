// SPDX-License-Identifier: GPL-2.0
//! The file of all runs, as planners use it and as it must not be used.

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod learning;
mod measured;
mod refusals;
mod runs;
mod together;
