// SPDX-License-Identifier: GPL-2.0

//! The state of plans, in words and in records.

pub(crate) mod dump;
pub(crate) mod proc;
pub(crate) mod process;
