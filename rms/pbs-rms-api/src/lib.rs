// SPDX-License-Identifier: GPL-2.0
//! What applications that evolve and their resource manager say to each other, over varlink.
//!
//! An application has two connections, as a call that goes on keeps its connection busy: one
//! for calls, and one on which it [monitors](Client::monitor) its session. Times that end in
//! `_unix_ns` count from 1970; durations are in nanoseconds, and one that is absent has no end.

mod client;
mod types;

pub use client::{Client, Failure};
pub use types::{
    Account, Accounts, AllNodes, Asked, Cap, Change, Cluster, ClusterNodes, Connected, Held, Made,
    Notice, Refusal, Seen, Session, Sessions, Step, View,
};

/// Where the manager listens.
pub const SOCKET: &str = "/run/pbs/rms.sock";
