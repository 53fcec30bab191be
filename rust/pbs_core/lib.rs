// SPDX-License-Identifier: GPL-2.0

//! The policy of plan-based scheduling as a crate for user space.
//!
//! The kernel includes `src/mod.rs` as a module of the scheduling class; this file makes the same
//! lines a crate.  This way the planner, the tests and the kernel decide alike.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub, rust_2018_idioms)]

#[cfg(any(test, feature = "std"))]
extern crate std;

#[path = "src/mod.rs"]
mod core_impl;
#[cfg(any(test, feature = "std"))]
mod replay;
#[cfg(any(test, feature = "std"))]
#[path = "std_memory.rs"]
mod std_memory;

pub use core_impl::*;
#[cfg(any(test, feature = "std"))]
pub use replay::{configured, tell, Begun, Difference, Replay, Replayed};
#[cfg(any(test, feature = "std"))]
pub use std_memory::{Notes, StdMemory};

#[cfg(test)]
mod unit;
