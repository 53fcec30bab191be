// SPDX-License-Identifier: GPL-2.0
//! Description of a cluster.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use pbs_resources::Item;

use crate::{
    Consumer, Kind, Limit, Mapping, Node, Optimise, Pool, Privilege, Promise, Resource, Scope,
};

/// A cluster. One that was read has been checked: what is said of names and amounts holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Name of the site.
    pub name: String,
    /// Two points of the plan are the same or so many seconds apart: Keller's minDist
    /// (4). At least 1.
    pub min_dist_s: u64,
    /// Planned duration of a request that declares none (Keller, 3). At least 1.
    pub default_duration_s: u64,
    /// Largest extension of a running job, in thousandths of the requested duration (Keller, 5.4).
    pub max_extension_permille: u64,
    /// Maximum time until a job's nodes are ready for it (Keller, 5.4).
    pub allocate_timeout_s: u64,
    /// Maximum time until a job's nodes are free of it (Keller, 5.4).
    pub release_timeout_s: u64,
    /// Largest distance of a planned start from now. A request that would start later waits until
    /// the start is nearer. `None`: any distance (Keller, 8).
    pub planning_horizon_s: Option<u64>,
    /// Number of threads that look for free nodes where many chunks are requested (Keller, 5.4). The
    /// plan does not depend on it. At least 1.
    pub planning_threads: usize,
    /// A node that was heard of and is not for so long has failed; `None`: nobody waits for
    /// it (the watchdog of Keller, 3).
    pub watchdog_s: Option<u64>,
    /// Time for which the ledger keeps a request that has ended.
    pub keep_ended_s: u64,
    /// Number of requests that have ended and that the ledger keeps. At least
    /// [`LEAST_KEPT_REQUESTS`].
    pub keep_ended_requests: u64,
    /// Number of cores (`ncpus`) that are allocated only together, as the threads of a processor
    /// core are: the cores of a chunk are rounded up to a multiple. At least 1.
    pub threads_per_core: u64,
    /// Choice among suitable nodes.
    pub mapping: Mapping,
    /// Time zone of the site's dates and cron strings.
    pub time_zone: TimeZone,
    /// All resources, each name once: first the built-in ones, `ncpus` before all others, then
    /// those that are declared or that nodes have.
    pub resources: Vec<Resource>,
    /// In the order of the file, each name once.
    pub nodes: Vec<Node>,
    /// Each name once; none: users aren't listed, and everybody is one.
    pub users: Vec<Consumer>,
    /// Each name once; none: groups aren't listed, and any name is one.
    pub groups: Vec<Consumer>,
    /// In the order of the file.
    pub limits: Vec<Limit>,
    /// In the order of the file, each name once.
    pub pools: Vec<Pool>,
    /// Values for resources that a chunk or a job does not request (Keller, 5.1).
    pub defaults: Vec<Item>,
    /// Values that override the requested ones (Keller, 5.1).
    pub force: Vec<Item>,
    /// Components of a request's priority.
    pub weights: Weights,
    /// Search for better plans; `None`: a plan is never reconsidered.
    pub optimise: Option<Optimise>,
}

/// Least number of ended requests that a ledger keeps: users look up what has just ended.
pub const LEAST_KEPT_REQUESTS: u64 = 100;

/// Components of a request's priority at its submission (Keller, 5.4 names the criteria; the
/// numbers are ours). The sum of all that apply is the priority; requests with a greater priority
/// go first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// For a request that starts as soon as it can.
    pub best_effort: i64,
    /// For one with a fixed start.
    pub fixed_start: i64,
    /// For one with a deadline.
    pub deadline: i64,
    /// For one that starts at a time or after.
    pub slot_aware: i64,
    /// For one that is dropped unless it is confirmed.
    pub provisional: i64,
    /// For one under a service level agreement.
    pub sla: i64,
    /// For a reservation.
    pub reservation: i64,
    /// For a request of that special resource, once, however much it asks for.
    pub resources: BTreeMap<String, i64>,
    /// For each node that its chunks take at least, from the second on.
    pub per_node: i64,
}

impl Site {
    /// A site of which nothing is told but its name, with the default values of site files.
    /// Nodes have to be added, and their resources with them.
    pub fn new(name: impl Into<String>, time_zone: TimeZone) -> Self {
        Self {
            name: name.into(),
            min_dist_s: 1,
            default_duration_s: 3600,
            max_extension_permille: 100,
            allocate_timeout_s: 60,
            release_timeout_s: 60,
            planning_horizon_s: None,
            planning_threads: 1,
            watchdog_s: None,
            keep_ended_s: 365 * 86_400,
            keep_ended_requests: 100_000,
            threads_per_core: 1,
            mapping: Mapping::default(),
            time_zone,
            resources: Resource::built_in(),
            nodes: Vec::new(),
            users: Vec::new(),
            groups: Vec::new(),
            limits: Vec::new(),
            pools: Vec::new(),
            defaults: Vec::new(),
            force: Vec::new(),
            weights: Weights::default(),
            optimise: None,
        }
    }

    /// The resource of that name.
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|of| of.name == name)
    }

    /// The user of that name, if it is listed.
    pub fn user(&self, name: &str) -> Option<&Consumer> {
        self.users.iter().find(|of| of.name == name)
    }

    /// The group of that name, if it is listed.
    pub fn group(&self, name: &str) -> Option<&Consumer> {
        self.groups.iter().find(|of| of.name == name)
    }

    /// Returns the listed group and the listed user.
    pub fn consumers(&self, user: &str, group: &str) -> impl Iterator<Item = &Consumer> {
        [self.group(group), self.user(user)].into_iter().flatten()
    }

    /// Whether the user may ask on the group's account: where users or groups are listed
    /// there are no others.
    pub fn is_known(&self, user: &str, group: &str) -> bool {
        let has_group =
            |of: &Consumer| of.groups.is_empty() || of.groups.iter().any(|it| it == group);
        let is_user = match self.user(user) {
            Some(of) => has_group(of),
            None => self.users.is_empty(),
        };
        is_user && (self.groups.is_empty() || self.group(group).is_some())
    }

    /// Whether a user has a privilege for a request on the group's account: by the user's own
    /// privileges, or by those of a group that the site lists for the user. To name a group is not
    /// enough. A user who is not listed has the ordinary privileges, as far as the group has them.
    pub fn may(&self, user: &str, group: &str, privilege: Privilege) -> bool {
        match self.user(user) {
            Some(_) if privilege == Privilege::Operator => self.is_operator(user),
            Some(listed) => {
                let groups = listed.groups.iter().filter_map(|name| self.group(name));
                groups.chain([listed]).any(|of| of.privileges.contains(&privilege))
            }
            None => {
                let group = self.group(group);
                privilege != Privilege::Operator
                    && group.is_none_or(|of| of.privileges.contains(&privilege))
            }
        }
    }

    /// Whether a user is an operator: by the user's own privileges, or by those of a group that the
    /// site lists for the user.
    pub fn is_operator(&self, user: &str) -> bool {
        let Some(user) = self.user(user) else {
            return false;
        };
        let groups = user.groups.iter().filter_map(|name| self.group(name));
        let mut all = groups.chain([user]);
        all.any(|of| of.privileges.contains(&Privilege::Operator))
    }

    /// Returns the promises that requests may have. The first one is the promise of requests that
    /// ask for none of them.
    pub fn promises(&self) -> &[Promise] {
        self.optimise.as_ref().map_or(&[Promise::Start], |of| &of.promises)
    }

    /// Returns a user's own account: the first group that the site lists for the user.
    pub fn own_group(&self, user: &str) -> Option<&str> {
        self.user(user)?.groups.first().map(String::as_str)
    }

    /// Returns the total of a resource, whatever is booked or broken: Keller's maxAvl (4). For a
    /// resource that is requested by word, `word` selects the one to count. The total of an
    /// attribute is 0.
    pub fn most(&self, name: &str, word: Option<&str>) -> u64 {
        let Some(resource) = self.resource(name) else {
            return 0;
        };
        match (resource.scope, resource.kind, word) {
            (Scope::Job, _, None) => resource.amount,
            (Scope::Job, _, Some(word)) => resource.items.get(word).copied().unwrap_or(0),
            (Scope::Node, Kind::Attribute, _) => 0,
            (Scope::Node, Kind::Consumable, _) => {
                let amounts = self.nodes.iter().map(|node| node.amount(name));
                amounts.fold(0, u64::saturating_add)
            }
        }
    }
}
