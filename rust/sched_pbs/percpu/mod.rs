// SPDX-License-Identifier: GPL-2.0

//! Each CPU: its state behind the lock of its run queue, and what is reached without that lock.

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
