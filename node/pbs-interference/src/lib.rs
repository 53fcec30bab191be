// SPDX-License-Identifier: GPL-2.0
//! Slow-downs between tasks that run beside each other.
//!
//! Tasks on different CPUs of a node share caches and memory. Therefore each may take longer beside
//! others than alone. The slow-downs are learnt from runs, predicted for sets that have not been
//! seen, and used to time and to place tasks. The whole method is ours: Rados 2019 defines a
//! penalty of co-running (2.5) and measures none.
//!
//! This crate uses neither clock nor files.

mod blossom;
mod file;
mod fluid;
mod guess;
mod key;
mod learn;
mod matching;
mod overlap;
mod sample;
mod search;
mod slowdowns;
mod solve;
mod tier;

pub use file::{measured_to_toml, names, slowdowns_from_toml, slowdowns_to_toml, Names};
pub use fluid::{Fluid, Lane, Task, Timing};
pub use key::{Key, Level, Neighbour, Sharing};
pub use learn::{learn, Config, Learnt, Work};
pub use matching::pairs;
pub use overlap::{samples, Span};
pub use sample::{Beside, Sample};
pub use search::{arrange, Arrangement, Effort};
pub use slowdowns::{Entry, Prediction, Slowdowns, Source, LEAST_SLOWDOWN, MOST_SLOWDOWN};
pub use tier::{alone_on_clock_insns, ceiling_factor_permille, planned_on_clock_insns};
