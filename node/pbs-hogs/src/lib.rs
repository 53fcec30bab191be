// SPDX-License-Identifier: GPL-2.0
//! Programs that hog memory, cache or core, and how they slow each other.
//!
//! They run as threads of this process, each pinned to a CPU, and need neither
//! root nor the scheduling class. It is the one way to see interference itself:
//! instructions retired are the same alone and beside others, and a virtual
//! machine that counts them has no caches.

mod hog;
mod makespan;
mod measure;
mod pin;
mod quiet;
mod together;
mod topology;

pub use hog::{Hog, Kind, Sizes};
pub use makespan::{makespans, Makespan};
pub use measure::{measure, quantile, Hogs, Setup, Slowed, QUIET};
pub use pin::{allowed_cpus, pin};
pub use quiet::{load, QUIET_LOAD};
pub use together::{together, Did, Run};
pub use topology::{last_cache_bytes, sharing, SYSFS};
