// SPDX-License-Identifier: GPL-2.0
//! A varlink service for users that nobody trusts: who asks is what the kernel says of the
//! socket, and nobody who asks too much, or reads too slowly, keeps another waiting. The
//! clients of all interfaces share [`client`].

mod accounts;
mod caller;
pub mod client;
mod connections;
mod inbox;
pub mod journal;
pub mod notify;
mod places;
mod reader;
mod shares;
mod socket;
mod turns;
mod watch;

pub use accounts::{AccountFiles, Accounts};
pub use caller::{known_user, user_name, Caller, OPERATORS};
pub use connections::ConnectionLimits;
pub use inbox::{inbox, Call, Inbox, NotAnswered, Sender};
pub use places::CallLimits;
pub use reader::LONG_BYTES;
pub use shares::{check_shares, AllBytes, HeldWords, Share};
pub use socket::{handed_over, handed_over_count, listen, serve, Nowhere};
pub use watch::{watch, Watch};
