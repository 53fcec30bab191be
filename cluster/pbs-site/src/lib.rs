// SPDX-License-Identifier: GPL-2.0
//! A cluster as its operator describes it: what OpenCCS has in RSD (Keller, *A Data
//! Structure for Planning Based Workload Management of Heterogeneous HPC Systems*,
//! section 3).
//!
//! A [`Site`] has nodes with resources, resources of no node, users and groups, what these
//! may have at most ([`Limit`]), what is kept free for some of them ([`Pool`]), and when
//! any of that is so ([`Validity`]).
//!
//! Times are Unix seconds, intervals are half open. Nothing here asks for the time, and
//! nothing is read or written but texts; of the system only the rules of time zones are
//! needed.

mod accept;
mod consumer;
mod cron;
mod dates;
mod examples;
mod export;
mod limit;
mod mapping;
mod node;
mod optimise;
mod pattern;
mod pool;
mod read;
mod resource;
mod share;
mod site;
mod user;
mod validity;
mod zone;

pub use accept::Refused;
pub use consumer::{Consumer, Privilege};
pub use cron::Cron;
pub use dates::{format_short_time, format_time, next_time_s, parse_time_s};
pub use limit::{Limit, Whom};
pub use mapping::Mapping;
pub use node::{Node, ReservedCores};
pub use optimise::{Learner, Optimise, Promise};
pub use pbs_text::{Line, Problem};
pub use pool::{Pool, MOST_POOLS};
pub use resource::{Kind, Resource, Scope};
pub use share::Share;
pub use site::{Site, Weights, LEAST_KEPT_REQUESTS};
pub use user::User;
pub use validity::{Validity, Windows};
pub use zone::{parse_zone, zone_note, zone_text};
