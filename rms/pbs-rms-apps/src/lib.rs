// SPDX-License-Identifier: GPL-2.0
//! Applications that ask for other nodes while they run, and those that take what is left
//! (Klein and Pérez 2011, *An RMS for Non-predictably Evolving Applications*, INRIA RR-7644).
//!
//! [`models`] decides what applications want, without clock and socket. [`live`] drives the
//! models with the machine's clock under a manager that serves. [`node`] makes their tasks jobs
//! on this machine's CPUs.

pub mod live;
mod models;
pub mod node;

pub use models::*;
