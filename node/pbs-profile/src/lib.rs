// SPDX-License-Identifier: GPL-2.0
//! Profiles: step functions over time that carry reservations.
//!
//! A [`Profile`] says how much of something there is from when to when: cores that
//! are free, bytes that are reserved, nodes that a user may have. It knows nothing
//! of jobs. Keller's resource usage vectors (*A Data Structure for Planning Based
//! Workload Management of Heterogeneous HPC Systems*, section 4) and the cluster
//! availability profiles in the views of CooRMv2 (Klein and Pérez 2011, A.3) are
//! such functions, and the reservations of a core or of a node's memory (Glaß 2024,
//! 5.1.1) can be kept as one.
//!
//! | here | Keller, 4.1 | Klein and Pérez, A.3 |
//! |---|---|---|
//! | [`Profile::add`], [`Profile::subtract`] | ⊕, ⊖ | |
//! | [`Profile::sum`], [`Profile::difference`] | +, − | +, − |
//! | [`Profile::minimum`] | minFree; ∩ on items | |
//! | [`Profile::maximum`] | | ∪ |
//! | [`intersection`] | ∩ on free slots (5.1) | |
//! | [`Profile::free_slots`], [`FreeSlots`] | getFreeSlots | |
//! | [`Profile::find_first_hole`], [`find_first_hole`] | | findHole |
//! | [`Profile::value_at`], [`Profile::min_over`] | | cap, alloc |
//! | [`Profile::forget_before`] | | |
//!
//! An amount that does not fit is an error that changes nothing; a
//! [`Transaction`] takes back what was done to several profiles. Intervals are
//! ranges: `10..20` has 10 and hasn't 20.
//!
//! The steps are in a B+ tree that knows the least and the greatest value of every
//! stretch, so changes and questions take O(log n) of n steps; see the modules in
//! `tree` for how.

mod change;
mod combine;
mod error;
mod free_slots;
mod profile;
mod several;
mod steps;
mod transaction;
mod tree;
pub mod view;

pub use error::Error;
pub use free_slots::{intersection, FreeSlots, Intersection};
pub use profile::Profile;
pub use several::{find_first_hole, Need};
pub use steps::{Step, Steps};
pub use transaction::Transaction;

/// After all times: an interval that ends here has no end.
pub const FOREVER: u64 = u64::MAX;
