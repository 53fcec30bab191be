// SPDX-License-Identifier: GPL-2.0

//! The CPUs: the state of each behind the lock of its run queue, and the parts reached without it.

pub(crate) mod access;
pub(crate) mod alarm;
pub(crate) mod counter;
pub(crate) mod counts;
pub(crate) mod cpu;
pub(crate) mod cpus;
pub(crate) mod drop_request;
pub(crate) mod inspection;
pub(crate) mod requests;
pub(crate) mod usage;
pub(crate) mod works;
