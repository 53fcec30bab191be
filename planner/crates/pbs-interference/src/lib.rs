// SPDX-License-Identifier: GPL-2.0
//! Who slows whom.
//!
//! Tasks on different CPUs of a node share caches and memory, so each may take
//! longer beside others than alone. How much is learnt from runs, predicted for
//! sets that have not been seen, and used to time and to place tasks. All of it
//! is ours: Rados 2019 defines a penalty of co-running (2.5) and measures none.
//!
//! It has neither clock nor files.

mod key;
mod sample;
mod slowdowns;

pub use key::{Key, Level, Neighbour, Sharing};
pub use sample::{Beside, Sample};
pub use slowdowns::{Entry, Prediction, Slowdowns, Source};
