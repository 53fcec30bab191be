// SPDX-License-Identifier: GPL-2.0
//! Search for a better plan of all waiting requests on one pool of cores.
//!
//! A plan is made from an order of the requests: each is placed at its earliest fit, and later
//! ones cannot delay earlier ones. The search varies the order. It begins with the current plan
//! and sorted orders, tries all permutations of a few requests, and anneals longer orders. The
//! scheme of sorted orders, annealing and a plan for every event is that of Kopanski and Rzadca
//! (2021, *Plan-based job scheduling for supercomputers with shared burst buffers*).
//!
//! The search is pure: a seed and a budget of work decide how far it goes, never a clock. A
//! caller stops it after any order by a smaller budget, and has the best plan found by then.
//!
//! | module | subject |
//! |---|---|
//! | `pool` | free cores over time, and the earliest fit |
//! | `score` | objective, and the plan of an order |
//! | `orders` | first orders, permutations and moves |
//! | `anneal` | the search itself |

mod anneal;
mod orders;
mod pool;
mod score;

pub use anneal::{optimise, BestPlan, Budget};
pub use pool::Pool;
pub use score::{Objective, WaitingJob};
