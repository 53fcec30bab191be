// SPDX-License-Identifier: GPL-2.0

//! The table of the class for the core scheduler: its place among the classes.

use super::sched_class::{declare_sched_class, Table};

/// The class. The callbacks of the core scheduler are in [`engine`](crate::engine::class).
pub(crate) struct Pbs;

declare_sched_class!(pbs_sched_class, "__pbs_sched_class", Pbs);

/// The table of the class.
#[inline]
pub(crate) fn table() -> &'static Table {
    &pbs_sched_class
}
