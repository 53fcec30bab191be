// SPDX-License-Identifier: GPL-2.0

//! The life of a thread in the class: it enters, waits, ends its tasks, and leaves.

pub(crate) mod attach;
pub(crate) mod end;
pub(crate) mod leave;
pub(crate) mod park;
