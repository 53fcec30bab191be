// SPDX-License-Identifier: GPL-2.0
//! Requests of users, and the answers to them.

use std::fmt;
use std::str::FromStr;

use pbs_profile::FOREVER;
use pbs_resources::{format_duration, Rset};
use pbs_site::{format_time, Promise, Site, User, Whom};

use crate::need::Impossible;
use crate::rules::Limited;
use crate::types::{Cause, RequestId, Throttle};

/// Longest duration of a request, margins included: the plan can count its end, and sums of many
/// such durations.
pub const MOST_DURATION_S: u64 = 1 << 40;

/// Desired time of a request: Keller's request types (5), by their search interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Best effort: as early as can be.
    BestEffort,
    /// Fixed start: exactly then.
    Fixed {
        /// Start time.
        start_s: u64,
    },
    /// Slot-aware start: as early as can be, but not before.
    After {
        /// Earliest start.
        start_s: u64,
    },
    /// Deadline: ended by then, or declined.
    Deadline {
        /// Latest end.
        end_s: u64,
        /// Whether to plan as late as possible instead of as early.
        late: bool,
    },
    /// Within an interval, or declined: the rest of a desired time inside a reservation.
    Between {
        /// Earliest start.
        start_s: u64,
        /// Latest end.
        end_s: u64,
        /// Whether to plan as late as possible instead of as early.
        late: bool,
    },
    /// Provisional: has a place, and loses it unless it is confirmed in time.
    Provisional {
        /// Time at which the request is dropped.
        until_s: u64,
    },
    /// Service level agreement: a deadline that is told where it can't be kept, and accepted
    /// all the same.
    Agreement {
        /// Agreed end.
        end_s: u64,
    },
}

impl When {
    /// Whether it has no place unless it has one in its time.
    pub(crate) fn is_bound(self) -> bool {
        match self {
            Self::Fixed { .. } | Self::Deadline { .. } | Self::Between { .. } => true,
            Self::BestEffort
            | Self::After { .. }
            | Self::Provisional { .. }
            | Self::Agreement { .. } => false,
        }
    }

    /// Whether to plan as late as possible instead of as early.
    pub(crate) fn is_late(self) -> bool {
        matches!(self, Self::Deadline { late: true, .. } | Self::Between { late: true, .. })
    }

    /// The search interval (5.1).
    pub(crate) fn window(self, now_s: u64, duration_s: u64) -> std::ops::Range<u64> {
        match self {
            Self::BestEffort | Self::Provisional { .. } | Self::Agreement { .. } => now_s..FOREVER,
            Self::Fixed { start_s } => start_s.max(now_s)..start_s.saturating_add(duration_s),
            Self::After { start_s } => start_s.max(now_s)..FOREVER,
            Self::Deadline { end_s, .. } => now_s..end_s,
            Self::Between { start_s, end_s, .. } => start_s.max(now_s)..end_s,
        }
    }
}

/// A word and seconds since 1970, as [`When::from_str`] reads them.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = if self.is_late() { "late " } else { "" };
        match self {
            Self::BestEffort => f.write_str("best-effort"),
            Self::Fixed { start_s } => write!(f, "fixed {start_s}"),
            Self::After { start_s } => write!(f, "after {start_s}"),
            Self::Deadline { end_s, .. } => write!(f, "{late}deadline {end_s}"),
            Self::Between { start_s, end_s, .. } => write!(f, "{late}between {start_s} {end_s}"),
            Self::Provisional { until_s } => write!(f, "provisional {until_s}"),
            Self::Agreement { end_s } => write!(f, "agreement {end_s}"),
        }
    }
}

/// The text is not one that [`When`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWhen;

impl FromStr for When {
    type Err = NoWhen;

    fn from_str(text: &str) -> Result<Self, NoWhen> {
        let (late, rest) = match text.strip_prefix("late ") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let words: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().map_err(|_| NoWhen);
        Ok(match (words[0], words.len()) {
            ("best-effort", 1) => Self::BestEffort,
            ("fixed", 2) => Self::Fixed { start_s: number(1)? },
            ("after", 2) => Self::After { start_s: number(1)? },
            ("deadline", 2) => Self::Deadline { end_s: number(1)?, late },
            ("between", 3) => Self::Between { start_s: number(1)?, end_s: number(2)?, late },
            ("provisional", 2) => Self::Provisional { until_s: number(1)? },
            ("agreement", 2) => Self::Agreement { end_s: number(1)? },
            _ => return Err(NoWhen),
        })
    }
}

/// Request of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Resources and place.
    pub rset: Rset,
    /// Maximum duration, in seconds.
    pub duration_s: u64,
    /// Additional time for which the nodes are booked, to prepare and to clean them.
    pub margin_s: u64,
    /// Desired time.
    pub when: When,
    /// User who submits the request.
    pub user: User,
    /// Group whose account is charged.
    pub group: String,
    /// Greater goes first where several are planned anew; see [`priority`].
    pub priority: i64,
    /// Whether it belongs to an array.
    pub is_of_array: bool,
    /// Limit on how many requests of its set run at the same time; `None`: no limit.
    pub throttle: Option<Throttle>,
    /// Promise to the user, which improved plans keep. A request with a deadline is planned to be
    /// over in time whatever else it is promised.
    pub promise: Promise,
    /// Requests that must end before this one starts.
    pub after: Vec<RequestId>,
    /// Whether the request has no place until it is released.
    pub is_held: bool,
}

impl Request {
    /// Best effort of nobody in particular.
    pub fn new(rset: Rset, duration_s: u64) -> Self {
        Self {
            rset,
            duration_s,
            margin_s: 0,
            when: When::BestEffort,
            user: User::default(),
            group: String::new(),
            priority: 0,
            is_of_array: false,
            throttle: None,
            promise: Promise::Start,
            after: Vec::new(),
            is_held: false,
        }
    }
}

/// Reason for which a request is declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The cluster could not do it if it were empty.
    Impossible(Impossible),
    /// The request has no place at any time, for the listed causes. Each of them alone excludes all
    /// times; the list can be empty.
    Never(Vec<Cause>),
    /// The request has no place in its time.
    NotInTime {
        /// Earliest possible end, without regard to the deadline.
        earliest_end_s: Option<u64>,
    },
    /// The request has no place at its fixed start.
    NotThen {
        /// Earliest possible start after that.
        earliest_start_s: Option<u64>,
    },
    /// The fixed start of the request is over.
    Past {
        /// The fixed start.
        time_s: u64,
    },
    /// No place was found, and there may be one: the budget of the search did not suffice to look
    /// everywhere.
    GaveUp,
    /// A limit on the number of requests.
    TooMany {
        /// Consumer to whom the limit applies.
        whom: Whom,
        /// Limited kind of request: all requests, or those of arrays.
        of: Limited,
        /// Largest permitted number.
        most: u64,
    },
    /// The request does not exist, or the operation does not apply to its kind.
    NoSuchRequest(RequestId),
    /// The site has no such thing, or not as much.
    NotAccepted(pbs_site::Refused),
    /// The site lists users or groups, and not these; or not this group for this user.
    NotKnown(String, String),
    /// The user or the group may have nothing at this time.
    Locked(String),
    /// User or group have no privilege for that.
    NotAllowed(&'static str),
    /// A running request may have more or fewer of its chunks, and no others.
    OtherChunks,
    /// A running request can't get longer, for the listed causes.
    NotLonger(Vec<Cause>),
    /// A running request may get no longer than that.
    TooLong {
        /// In seconds.
        most_s: u64,
    },
}

impl Refusal {
    /// Describes the refusal, with times in the time zone of the site.
    pub fn describe(&self, site: &Site) -> String {
        match self {
            Self::NotInTime { earliest_end_s: Some(end_s) } => {
                let end = format_time(*end_s, &site.time_zone);
                format!("it would end at {end} at the earliest, which is too late")
            }
            Self::NotThen { earliest_start_s: Some(start_s) } => {
                let start = format_time(*start_s, &site.time_zone);
                format!("it can't start then; the earliest start after that is {start}")
            }
            Self::Past { time_s } => {
                let time = format_time(*time_s, &site.time_zone);
                format!("its start, {time}, is past; write a later time")
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(why) => why.fmt(f),
            Self::Never(causes) if causes.is_empty() => {
                f.write_str("there is no time at which all its resources are free")
            }
            Self::Never(_) => f.write_str("there is no time at which it could run"),
            Self::NotInTime { .. } => f.write_str("there is no place for it in its time"),
            Self::NotLonger(_) => f.write_str("it can't run longer"),
            Self::NotThen { .. } => f.write_str("there is no place for it at its fixed start"),
            Self::Past { .. } => f.write_str("its fixed start is past; write a later time"),
            Self::GaveUp => f.write_str(
                "no place was found in as many tries as a call has; ask for fewer different \
                 chunks, or for fewer requests at once",
            ),
            Self::TooMany { whom, of, most } => {
                let (requests, name) = match of {
                    Limited::ArrayRequests => ("requests of arrays", "arrayjobs"),
                    _ => ("requests", "jobs"),
                };
                write!(
                    f,
                    "at most {most} {requests} may be unfinished at once (limit of {whom} on \
                     {name}); submit it again when some have ended"
                )
            }
            Self::NoSuchRequest(id) => write!(f, "there is no such request: {id}"),
            Self::NotAccepted(why) => why.fmt(f),
            Self::NotKnown(user, group) => {
                if group.is_empty() {
                    write!(f, "the site has no user {user} without a group; name one with --group")
                } else {
                    write!(f, "the site has no user {user} with group {group}")
                }
            }
            Self::Locked(name) => write!(f, "{name} is locked at this time; ask an operator"),
            Self::NotAllowed(privilege) => write!(f, "the user needs the privilege \"{privilege}\"; ask an operator"),
            Self::OtherChunks => {
                f.write_str("a running request may only get more or fewer of its chunks; keep the kinds of chunks")
            }
            Self::TooLong { most_s } => {
                write!(f, "it may run for at most {}", format_duration(*most_s))
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Impossible> for Refusal {
    fn from(why: Impossible) -> Self {
        Self::Impossible(why)
    }
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The request has a place in the plan.
    Planned {
        /// Planned start.
        start_s: u64,
    },
    /// The request has its nodes.
    Running {
        /// Start time.
        start_s: u64,
        /// Latest end.
        end_s: u64,
    },
    /// The request is accepted, but has no place now: Keller's waiting room.
    Waiting,
}
