// SPDX-License-Identifier: GPL-2.0
//! Search for a better plan of all waiting requests, on one pool of cores or on the nodes of a
//! planner, with its rules.
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
//! | `score` | objective: the cost of a plan |
//! | `orders` | first orders, permutations and moves |
//! | `search` | the search itself, job by job |
//! | `pool` | free cores of one pool over time, and the plan on it |
//! | `improvement` | the plan on the nodes of a [`Planner`](crate::Planner), taken as a whole |

mod improvement;
mod orders;
mod pool;
mod score;
mod search;

pub use improvement::{Improvement, Improving, EARLIER_ORDERS, MOST_IMPROVED};
pub use pool::{optimise, BestPlan, Pool};
pub use score::{growth_per_s, Cost, Objective, WaitingJob};
pub use search::Budget;
