// SPDX-License-Identifier: GPL-2.0
//! Orders: jobs that users ask a running node for, with the terms of each.

mod asked;
mod backlog;
mod intake;
mod order;
mod retries;
mod waiting;

pub(crate) use backlog::Backlog;
pub use intake::{Alteration, Rewrite};
pub(crate) use order::{deadline_fault, Ended, Noted, Waits, UNREADABLE};
pub use order::{Ending, Order, ProgramEnd, Terms};
pub(crate) use retries::Retries;
pub(crate) use waiting::Waiting;
