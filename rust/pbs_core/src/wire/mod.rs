// SPDX-License-Identifier: GPL-2.0

//! The wire format of plans: version 3, and versions 1 and 2, which are still read.
//!
//! C header: `include/uapi/linux/pbs.h`, which is the definition and the source of the numbers
//! here.  [`Message`] reads a plan, [`encode`] writes the records, and
//! [`Plan::encode`](super::Plan::encode) a whole plan of one CPU.

mod build;
pub mod encode;
pub(super) mod format;
mod message;
mod read;
mod version_1;

pub use format::*;
pub use message::{config, Message, Section};
