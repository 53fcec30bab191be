// SPDX-License-Identifier: GPL-2.0
//! Varlink interface between evolving applications and their resource manager.
//!
//! An application has two connections, because a continuing call keeps its connection busy: one for
//! calls, and one on which it [monitors](Client::monitor) its session. Times that end in `_unix_ns`
//! count from 1970. Durations are in nanoseconds; an absent duration has no end.

mod client;
mod types;

pub use client::{Client, Failure};
pub use types::{
    Account, Accounts, AllNodes, Asked, Cap, Change, Cluster, ClusterNodes, Connected, Held, Made,
    Notice, Refusal, Seen, Session, Sessions, Step, View,
};

/// Socket on which the manager listens.
pub const SOCKET: &str = "/run/pbs/rms.sock";
