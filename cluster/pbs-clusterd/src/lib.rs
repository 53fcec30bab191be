// SPDX-License-Identifier: GPL-2.0
//! The service of a cluster: requests of all users over a socket, one ledger.
//!
//! Two threads. One has the socket, and knows who calls; the other has the manager with its
//! planner, its ledger and its engine, and does one thing after the other. Calls go between them
//! ([`call`]), and events to those who watch. Where the service plans for Slurm, a third thread
//! talks to Slurm ([`slurm`]).

pub mod call;
pub mod limits;
mod optimiser;
pub mod pace;
pub mod service;
pub mod session;
pub mod slurm;
