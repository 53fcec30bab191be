// SPDX-License-Identifier: GPL-2.0
//! A resource manager for evolving and malleable applications: CooRMv2 (Klein and Pérez 2011,
//! INRIA RR-7644), with its algorithms corrected where they are printed wrong.
//!
//! An application connects, is told views of what it may have, and sends requests:
//! pre-allocations for what it may need once, non-preemptible ones inside of them, preemptible
//! ones for what nobody else needs. [`Rms`] has neither a clock nor a transport: whoever drives
//! it says what time it is, hands it messages and passes on its notices.
//!
//! | file | |
//! |---|---|
//! | `ask` | what applications send |
//! | `notice` | what they are told |
//! | `policy`, `account` | what the operator decides and charges |
//! | `request`, `session` | what an application has, and the trees of what it wants |
//! | `sessions` | all of them |
//! | `share` | who may have which preemptible nodes: eqSchedule |
//! | `pool` | node numbers |
//! | `rms` | the messages |
//! | `pass` | the pass that answers them |
//! | `holes` | where there is none any more |
//! | `place`, `preemptible` | its parts: what fits where: fit, and who gets what |
//! | `state` | what is kept for after a crash |
//! | `views` | whose view has changed, and what it is |

mod account;
mod ask;
mod holes;
mod notice;
mod pass;
mod place;
mod policy;
mod pool;
mod preemptible;
mod request;
mod rms;
mod runs;
mod session;
mod sessions;
mod share;
mod state;
mod views;

pub use account::Account;
pub use ask::{AppId, Ask, Kind, Refusal, Relation, RequestId, Update};
pub use notice::{Event, Notice};
pub use pbs_profile::view::FOREVER;
pub use policy::{Limits, NodeChoice, PlacementOrder, Policy, Prices};
pub use request::Request;
pub use rms::{Closed, Rms};
pub use session::Session;
pub use state::{Counters, Unusable};
pub use views::Views;
