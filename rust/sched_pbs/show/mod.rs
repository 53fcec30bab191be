// SPDX-License-Identifier: GPL-2.0

//! What can be seen of plans.

pub(crate) mod dump;
pub(crate) mod proc;
pub(crate) mod process;
