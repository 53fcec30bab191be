// SPDX-License-Identifier: GPL-2.0
//! Plans requests on many nodes, after OpenCCS (Keller, *A Data Structure for Planning
//! Based Workload Management of Heterogeneous HPC Systems*).
//!
//! Pure: times come in as arguments, nothing is read or written. A service and a replay of
//! a trace run the same lines.
//!
//! | here | Keller |
//! |---|---|
//! | [`Machine`] | nodes, resources, weights (3, 5.2) |
//! | `need` | reqRS, jRS (4.1) |
//! | `node_plan`, `nodes` | nRS; FCN, FCJ, FS (4.1, 5.2) |
//! | `gaps` | ours: which nodes are worth a search |
//! | [`SearchBudget`] | ours: how much the searches of a call look at |
//! | `system` | sRS, usdRS, uRS (4.1, 5.1) |
//! | `search`, `map` | planning and mapping (5.1, 5.2) |
//! | [`Rules`] | limits and FreePools (3) |
//! | `backfill`, `sweep` | which requests move up, and when (5.4) |
//! | `waiting` | which waiting requests get a place, and when |
//! | [`Planner`] | booking, replanning (5.3, 5.4) |
//! | [`optimise`] | ours: a better order of all waiting requests |
//! | [`run_times`] | ours: run times that requests are expected to have |

mod account;
mod adopt;
mod backfill;
mod budget;
mod choice;
mod closed;
mod counts;
mod defect;
mod followers;
mod gaps;
pub mod literal;
mod machine;
mod map;
mod memory;
mod need;
mod node_plan;
mod nodes;
mod of_site;
pub mod optimise;
mod order;
mod placed;
mod planner;
mod policy;
mod queues;
mod replan;
mod request;
mod reservation;
mod resize;
mod rules;
pub mod run_times;
mod search;
mod soft;
mod standing;
mod sweep;
mod system;
mod throttle;
mod types;
mod waiting;

pub use budget::SearchBudget;
pub use machine::{Machine, NodeSpec, Resource, ResourceId, NCPUS};
pub use memory::{Memory, Vectors};
pub use need::{Impossible, SMALL_CHUNKS};
pub use placed::Placed;
pub use planner::Planner;
pub use policy::Policy;
pub use replan::Replanned;
pub use request::{NoWhen, Refusal, Request, State, When, MOST_DURATION_S};
pub use rules::{Limit, Limited, Pool, Rules};
pub use standing::Standing;
pub use types::{Cause, RequestId, Throttle};
