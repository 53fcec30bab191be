// SPDX-License-Identifier: GPL-2.0
//! The service of a node: what is asked of it over a socket, and what it answers.

pub mod allocations;
pub mod amounts;
mod beside;
pub mod calls;
pub(crate) mod counted;
pub mod drained;
pub mod inbox;
pub mod limits;
pub mod process;
mod refusal;
pub mod service;
pub mod session;
pub mod teller;
pub mod topology;
pub(crate) mod wanted;
