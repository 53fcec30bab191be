// SPDX-License-Identifier: GPL-2.0
//! Types of the messages on the socket.

use pbs_manager::ledger::{After, DefectRow, Event, NodeRow, Row};
use serde::{Deserialize, Serialize};
use zlink::idl;
use zlink::introspect::{CustomType, ReplyError, Type};

/// Value that has the keys of the ledger's JSON, which the interface does not repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object<T>(pub T);

impl<T> Type for Object<T> {
    const TYPE: &'static idl::Type<'static> = &idl::Type::ForeignObject;
}

/// A request for nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Submission {
    /// Resources and place, such as rset=2:ncpus=16
    pub rset: String,
    /// Maximum duration; none: the default of the site
    pub duration_s: Option<u64>,
    /// Desired time: best-effort, fixed S, after S, deadline S, late deadline S, between S S, late
    /// between S S, provisional S or agreement S; none: best-effort
    pub when: Option<String>,
    /// User who will own the request, if an operator asks for another; none: the caller
    pub user: Option<String>,
    /// Group whose account is charged; none: the first group that the site lists for the user
    pub group: Option<String>,
    /// Name of the request
    pub name: Option<String>,
    /// Command with its arguments
    pub command: Option<Vec<String>>,
    /// Actual run time, where requests are simulated
    pub run_s: Option<u64>,
    /// Minimum time between the notification of the user and the request's end
    pub notify_s: Option<u64>,
    /// Signal by which programs are notified then: HUP, INT, TERM, USR1 or USR2
    pub notify_signal: Option<String>,
    /// Whether it may be started again where its node fails
    pub restartable: Option<bool>,
    /// Indices of an array, with one request for each
    pub array: Option<Vec<u64>>,
    /// Reservation in which the request runs
    pub within: Option<u64>,
    /// Requests that must end before this one starts, with the required outcomes: the key after of
    /// a request
    pub after: Option<Vec<Object<After>>>,
    /// Promise to the user: none, start or deadline. The site must allow it. If it is absent, the
    /// first promise of the site's list applies.
    pub promise: Option<String>,
}

/// Alterations of a request; none leaves a value unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Alteration {
    /// Resources and place
    pub rset: Option<String>,
    /// Maximum duration
    pub duration_s: Option<u64>,
    /// Desired time, as in a submission
    pub when: Option<String>,
}

/// Requests that are wanted in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Filter {
    /// Only requests of this user
    pub user: Option<String>,
    /// Whether ended requests are listed too
    pub ended: Option<bool>,
    /// Only requests with greater numbers: the next of the answer before
    pub above: Option<u64>,
}

/// Cause that keeps a request from an earlier start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Cause {
    /// In words
    pub what: String,
    /// Earliest start if there were no other cause; none: never
    pub until_s: Option<u64>,
}

/// Requests that were planned or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Changed {
    /// Requests as they stand
    pub requests: Vec<Object<Row>>,
}

/// A request with its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Shown {
    /// The request as it stands
    pub request: Object<Row>,
    /// Events of the request, in their order
    pub events: Vec<Object<Event>>,
}

/// Part of a list of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Listed {
    /// Current time
    pub clock_s: u64,
    /// Requests in the order of their numbers
    pub requests: Vec<Object<Row>>,
    /// There may be more requests above this number; none: these were the last
    pub next: Option<u64>,
}

/// Causes that keep a request from an earlier start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Reasons {
    /// The request as it stands
    pub request: Object<Row>,
    /// All causes
    pub causes: Vec<Cause>,
}

/// State of the service and its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Status {
    /// Version of the service
    pub version: String,
    /// Time zone of the site, as its file has it
    pub time_zone: String,
    /// Current time
    pub clock_s: u64,
    /// Number of requests that have not ended
    pub requests: u64,
    /// Number of nodes
    pub nodes: u64,
    /// Nodes that are out of use
    pub nodes_out: Vec<Object<NodeRow>>,
    /// Nodes with defective parts
    pub defects: Vec<Object<DefectRow>>,
    /// Whether requests are being looked at for a better place
    pub is_settling: bool,
}

/// Cost of a plan by part. Less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, CustomType)]
pub struct PlanCost {
    /// Cost of all parts together
    pub total: f64,
    /// Cost of the waits
    pub wait: f64,
    /// Cost of the bounded slowdowns
    pub slowdown: f64,
    /// Cost of the normalised waits of users
    pub fairness: f64,
    /// Cost of missed deadlines that were not promised
    pub missed_deadlines: f64,
    /// Cost of the length of the plan
    pub length: f64,
}

/// A search for a better plan that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, CustomType)]
pub struct PlanSearch {
    /// Time of its end
    pub clock_s: u64,
    /// Number of requests that it could move
    pub requests: u64,
    /// Number of orders that it tried
    pub orders: u64,
    /// Number of requests that moved; 0: no better plan was found
    pub moved: u64,
    /// Cost of the plan before
    pub before: PlanCost,
    /// Cost of the plan afterwards
    pub after: PlanCost,
}

/// Errors of expected run times. Each accuracy is the mean ratio of the expected and the real run
/// time, the lesser over the greater.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomType)]
pub struct RunTimeErrors {
    /// Name of the user; none: all users together
    pub user: Option<String>,
    /// Number of requests that completed or reached their limit, also before the service started
    pub requests: u64,
    /// Accuracy of the limits
    pub limit_accuracy: f64,
    /// Accuracy of the learned run times
    pub accuracy: f64,
    /// Mean distance between the learned and the real run time
    pub error_s: f64,
    /// Part of the requests that ran longer than expected
    pub too_short: f64,
}

/// Work and results of the search for better plans, since the service started, and the errors of
/// expected run times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Type)]
pub struct Optimiser {
    /// Current time
    pub clock_s: u64,
    /// Whether the site wants better plans; otherwise there is nothing else
    pub is_on: bool,
    /// Whether a better plan is sought
    pub is_searching: bool,
    /// Number of searches that have ended. After an interruption, a search of two orders counts, too
    pub searches: u64,
    /// Number of searches that a change of the plan has interrupted
    pub interrupted: u64,
    /// Number of orders that were tried
    pub orders: u64,
    /// Number of requests that were placed, over all orders
    pub placements: u64,
    /// Number of better plans that were taken
    pub plans: u64,
    /// Number of requests that moved to another place by these plans
    pub moved: u64,
    /// Last search that has ended; none: none has
    pub last: Option<PlanSearch>,
    /// Rule by which run times are learned; none: the limits are expected
    pub run_times: Option<String>,
    /// Errors of all users together, and of the 20 users with the most ended requests. A user who is
    /// no operator sees only the own errors among those of users.
    pub errors: Vec<RunTimeErrors>,
}

/// Effects of a change of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct NodesChanged {
    /// Number of nodes
    pub nodes: u64,
    /// Nodes that are out of use
    pub nodes_out: Vec<Object<NodeRow>>,
    /// Nodes with defective parts
    pub defects: Vec<Object<DefectRow>>,
    /// Requests that start at another time or place
    pub moved: Vec<u64>,
    /// Requests that ran there and have ended
    pub aborted: Vec<u64>,
    /// Requests that have no place now
    pub waiting: Vec<u64>,
}

/// Notice of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Notice {
    /// The event, as a request has it among its events
    pub event: Object<Event>,
}

/// Reason for which a call was refused.
#[derive(Clone, Debug, PartialEq, Eq, zlink::ReplyError, ReplyError)]
#[zlink(interface = "org.sched-pbs.Cluster")]
pub enum Refusal {
    /// Only the owner of the request, or an operator, may do that
    NotPermitted {
        /// Operation that is not permitted
        what: String,
    },
    /// The request has no place in the plan
    Declined {
        /// Reason
        why: String,
    },
    /// A part of the call can't be read
    Invalid {
        /// Description of the part, and what to write instead
        what: String,
    },
    /// No such request exists, or it has ended
    NoSuchRequest {
        /// Number of the request
        request: u64,
    },
    /// The call makes no sense for that request in its present state
    NotInState {
        /// Advice
        what: String,
    },
    /// Too many calls or connections; ask again later
    Busy,
    /// Notices came faster than they were read, and some are lost
    Lagged,
    /// The service could not do it
    Failed {
        /// Reason of the failure
        why: String,
    },
}
