// SPDX-License-Identifier: GPL-2.0
//! Users and groups.

use std::collections::BTreeSet;

use pbs_resources::Item;

use crate::Validity;

/// A user or a group: privileges, default values and limits are attached to both
/// (Keller, 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Name of the user or group; a user and a group may have the same.
    pub name: String,
    /// For a user, the groups whose accounts it may use; none: any. Empty for a group.
    pub groups: Vec<String>,
    /// Privileges of the consumer. A user also has those of its group.
    pub privileges: BTreeSet<Privilege>,
    /// Values for resources that its chunks or jobs do not request (Keller, 5.1).
    pub defaults: Vec<Item>,
    /// Values that override the requested ones (Keller, 5.1).
    pub force: Vec<Item>,
    /// Value that is added to the priority of its requests.
    pub priority: i64,
    /// Time in which the consumer may have anything; it is locked otherwise.
    pub validity: Validity,
}

/// Permission that not every user has. Keller mentions privileges (3) without a list; this list is
/// our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Privilege {
    /// Everything that operators do: nodes, others' requests.
    Operator,
    /// Reserve in advance.
    Reserve,
    /// Ask for a fixed start.
    FixedStart,
    /// Ask for a deadline.
    Deadline,
    /// Ask for a start at or after a time.
    SlotAware,
    /// Ask for what is dropped unless confirmed.
    Provisional,
    /// Ask for a service level agreement.
    Sla,
    /// Make a running job longer.
    Extend,
    /// Submit arrays.
    Array,
}

impl Privilege {
    /// All privileges.
    pub const ALL: [Self; 9] = [
        Self::Operator,
        Self::Reserve,
        Self::FixedStart,
        Self::Deadline,
        Self::SlotAware,
        Self::Provisional,
        Self::Sla,
        Self::Extend,
        Self::Array,
    ];

    /// Returns the name in site files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Reserve => "reserve",
            Self::FixedStart => "fixed_start",
            Self::Deadline => "deadline",
            Self::SlotAware => "slot_aware",
            Self::Provisional => "provisional",
            Self::Sla => "sla",
            Self::Extend => "extend",
            Self::Array => "array",
        }
    }

    /// Returns the privileges of consumers that the site does not list: all but
    /// [`Privilege::Operator`].
    pub fn ordinary() -> BTreeSet<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|&privilege| privilege != Self::Operator).collect()
    }
}

impl Consumer {
    /// Creates a consumer of which the site declares only the name.
    pub fn ordinary(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: Vec::new(),
            privileges: Privilege::ordinary(),
            defaults: Vec::new(),
            force: Vec::new(),
            priority: 0,
            validity: Validity::Always,
        }
    }
}
