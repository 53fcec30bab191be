// SPDX-License-Identifier: GPL-2.0
//! Limits of what the service holds: for one user, and for all of them.
//!
//! Everything that somebody can make the service keep has a limit here. Operators, who are to set
//! things right, have [`OPERATOR_SHARE`] times as much.

use clap::Args;
use pbs_cluster_api::Refusal;
use pbs_manager::ledger::Page;
use pbs_manager::{Caller, Held};
use pbs_socket::{check_shares, AllBytes, CallLimits, ConnectionLimits, HeldWords, Share};
use pbs_text::at_least_one;

/// Calls that wait for the cluster.
pub const CALLS: CallLimits =
    CallLimits { calls: 1024, of_operators: 32, user_bytes: 16 << 20, all_bytes: 64 << 20 };
/// Requests of one array: the call is answered in one piece, and others wait meanwhile.
pub const ARRAY_REQUESTS: usize = 1000;
/// Numbers in one call that confirms or ends requests.
pub const CALL_REQUESTS: usize = 1000;
/// Size of one part of a list.
pub const LISTED: Page = Page { rows: 1000, bytes: 1 << 20 };
/// Requests that one request may follow.
pub const REQUEST_AFTER: usize = 64;
/// The longest name of a request, a user or a group, in bytes.
pub const NAME_BYTES: usize = 200;
/// Limits of an operator, in limits of another user.
pub const OPERATOR_SHARE: usize = 8;

/// Limits that can be configured.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Requests of a user that have not ended
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = at_least_one)]
    pub user_requests: usize,

    /// Reservations of a user that have not ended
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    pub user_reservations: usize,

    /// Memory of a user's requests that have not ended
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = at_least_one)]
    pub user_bytes: usize,

    /// Memory of the requests of all users that have not ended; operators are not refused by it
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = at_least_one)]
    pub all_bytes: usize,

    /// Connections of all users; operators are not refused by it
    #[arg(long, value_name = "N", default_value_t = 960, value_parser = at_least_one)]
    pub connections: usize,

    /// Connections of a user; operators have no such limit
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub user_connections: usize,
}

impl Limits {
    /// The limits without any option.
    pub const DEFAULT: Self = Self {
        user_requests: 20_000,
        user_reservations: 16,
        user_bytes: 64 << 20,
        all_bytes: 1 << 30,
        connections: 960,
        user_connections: 64,
    };

    /// Limits of connections.
    pub fn of_connections(&self) -> ConnectionLimits {
        ConnectionLimits { all: self.connections, of_user: self.user_connections }
    }

    /// Checks whether a user may have more; `own`: what the user has, `all`: what all users have.
    ///
    /// # Errors
    ///
    /// [`Refusal::Failed`] names the limit, what there is of it already, and what to do.
    pub fn allow(&self, caller: &Caller, own: Held, all: Held, more: Held) -> Result<(), Refusal> {
        let share =
            |what, limit_name, limit, own, more| Share { what, limit_name, limit, own, more };
        let (requests, reservations) = (self.user_requests, self.user_reservations);
        let shares = [
            share("requests", "user-requests", requests, own.requests, more.requests),
            share(
                "reservations",
                "user-reservations",
                reservations,
                own.reservations,
                more.reservations,
            ),
            share("bytes", "user-bytes", self.user_bytes, own.bytes, more.bytes),
        ];
        let all_bytes = AllBytes { limit: self.all_bytes, all: all.bytes, more: more.bytes };
        let factor = caller.is_operator.then_some(OPERATOR_SHARE);
        let words = HeldWords {
            user_has: "the user has",
            open: "requests that have not ended",
            things: "requests",
            or_end: "end some",
        };
        check_shares(&shares, all_bytes, factor, &words).map_err(|why| Refusal::Failed { why })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        limits: Limits,
    }

    #[test]
    fn options_have_the_default_limits() {
        assert_eq!(Options::parse_from(["pbs-clusterd"]).limits, Limits::DEFAULT);
        assert!(Options::try_parse_from(["pbs-clusterd", "--user-requests", "0"]).is_err());
    }

    /// A refusal names the limit; exactly as much as the limit is allowed, and operators have more.
    #[test]
    fn each_limit_is_told_by_its_name() {
        let limits = Limits {
            user_requests: 3,
            user_reservations: 1,
            user_bytes: 99,
            all_bytes: 500,
            ..Limits::DEFAULT
        };
        let caller = |is_operator| Caller { user: "anna".into(), is_operator };
        let (full, none) = (Held { requests: 3, reservations: 1, bytes: 99 }, Held::default());
        assert_eq!(limits.allow(&caller(false), none, none, full), Ok(()));
        for (more, name) in [
            (Held { requests: 1, ..none }, "(user-requests)"),
            (Held { reservations: 1, ..none }, "(user-reservations)"),
            (Held { bytes: 1, ..none }, "(user-bytes)"),
        ] {
            let refused = limits.allow(&caller(false), full, full, more);
            assert!(matches!(&refused, Err(Refusal::Failed { why }) if why.contains(name)));
            assert_eq!(limits.allow(&caller(true), full, full, more), Ok(()));
        }
        let others = Held { bytes: 450, ..none };
        let more = Held { bytes: 51, ..none };
        let refused = limits.allow(&caller(false), none, others, more);
        assert!(matches!(&refused, Err(Refusal::Failed { why }) if why.contains("(all-bytes)")));
        assert_eq!(limits.allow(&caller(true), none, others, more), Ok(()));
    }
}
