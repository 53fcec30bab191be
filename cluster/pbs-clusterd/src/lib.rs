// SPDX-License-Identifier: GPL-2.0
//! The service of a cluster: requests of all users over a socket, one ledger.
//!
//! Two threads. One has the socket, and knows who calls; the other has the manager with its
//! planner, its ledger and its engine, and does one thing after the other. Calls go between them
//! ([`call`]), and events to those who watch.

pub mod call;
pub mod limits;
pub mod service;
pub mod session;
