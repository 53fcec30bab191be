// SPDX-License-Identifier: GPL-2.0
//! Resource manager for evolving and malleable applications: CooRMv2 (Klein and Pérez 2011, INRIA
//! RR-7644). Algorithms that are printed wrong are corrected.
//!
//! An application connects, receives views of what it may have, and sends requests: pre-allocations
//! for what it may need at some time, non-preemptible requests inside of them, and preemptible
//! requests for what nobody else needs. [`Rms`] has neither a clock nor a transport. Its driver
//! provides the time, passes messages in and delivers the notices.
//!
//! | file | |
//! |---|---|
//! | `ask` | messages of applications |
//! | `notice` | notices to applications |
//! | `policy`, `account` | decisions and charges of the operator |
//! | `request`, `session` | requests of an application, and trees of those to be placed |
//! | `sessions` | all sessions |
//! | `overstay` | preemptible nodes that are kept although others should have them |
//! | `share` | division of preemptible nodes: eqSchedule |
//! | `pool` | node numbers |
//! | `rms` | handling of messages |
//! | `pass` | the pass that answers messages |
//! | `holes` | times before which no room exists |
//! | `place`, `preemptible` | parts of the pass: fit, and the shares of preemptible requests |
//! | `state` | state for recovery after a crash |
//! | `views` | views, and the sessions whose view has changed |

mod account;
mod ask;
mod chains;
mod holes;
mod notice;
mod overstay;
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
pub use chains::{chains, Chain};
pub use notice::{Event, Notice};
pub use pbs_profile::view::FOREVER;
pub use policy::{Limits, NodeChoice, PlacementOrder, Policy, Prices};
pub use request::Request;
pub use rms::{Closed, Rms};
pub use session::Session;
pub use state::{Counters, Unusable};
pub use views::Views;
