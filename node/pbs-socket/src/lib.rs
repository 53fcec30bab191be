// SPDX-License-Identifier: GPL-2.0
//! A varlink service for users that nobody trusts: who asks is what the kernel says of the
//! socket, and nobody who asks too much, or reads too slowly, keeps another waiting. The
//! clients of all interfaces share [`client`].

mod caller;
pub mod client;
mod connections;
mod socket;

pub use caller::{operators, Caller, OPERATORS};
pub use connections::ConnectionLimits;
pub use socket::{handed_over, listen, serve, Nowhere};
