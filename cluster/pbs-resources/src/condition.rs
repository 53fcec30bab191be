// SPDX-License-Identifier: GPL-2.0
//! Conditions on a request: who may use what is kept free, and which chunks a node takes
//! (Keller, 3 and 5.4).

/// Condition on a request or on one of its chunks.
///
/// ```
/// use pbs_resources::{Condition, Facts};
///
/// struct Small;
/// impl Facts for Small {
///     fn amount(&self, name: &str) -> Option<u64> {
///         match name {
///             "ncpus" => Some(3),
///             "duration" => Some(1800),
///             _ => Some(0),
///         }
///     }
///     fn is_user(&self, name: &str) -> bool {
///         name == "alice"
///     }
///     fn is_group(&self, _: &str) -> bool {
///         false
///     }
/// }
/// let may: Condition = "group:G1 | ncpus<4 & duration<1h".parse()?;
/// assert!(may.holds(&Small));
/// let may: Condition = "vmem>=80g | mem>=66g | ncpus>=17".parse()?;
/// assert!(!may.holds(&Small));
/// # Ok::<(), pbs_resources::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Disjunction: one of the conditions holds; an empty one never holds.
    Any(Vec<Condition>),
    /// Conjunction: all conditions hold; an empty one always holds.
    All(Vec<Condition>),
    /// An amount that is asked for is so.
    Compare {
        /// The resource, or `duration` or `area`.
        name: String,
        /// Comparison operator.
        op: Op,
        /// With what; seconds of a duration, items times seconds of an area.
        amount: u64,
    },
    /// The request is this user's.
    User(String),
    /// The request is on this group's account.
    Group(String),
}

/// Comparison of two amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

/// Facts about a request and its submitter.
pub trait Facts {
    /// The amount of that name: of a resource, 0 where it isn't asked for; seconds of
    /// `duration`; items times seconds of `area`. `None`: nothing is known of it, and no
    /// comparison with it holds.
    fn amount(&self, name: &str) -> Option<u64>;
    /// Whether it is that user's.
    fn is_user(&self, name: &str) -> bool;
    /// Whether it is on that group's account.
    fn is_group(&self, name: &str) -> bool;
}

impl Condition {
    /// Whether it is so.
    pub fn holds(&self, facts: &impl Facts) -> bool {
        match self {
            Self::Any(of) => of.iter().any(|condition| condition.holds(facts)),
            Self::All(of) => of.iter().all(|condition| condition.holds(facts)),
            Self::Compare { name, op, amount } => {
                let fact = facts.amount(name);
                fact.is_some_and(|fact| op.holds(fact, *amount))
            }
            Self::User(name) => facts.is_user(name),
            Self::Group(name) => facts.is_group(name),
        }
    }

    /// Calls `visit` with each condition that has no parts.
    pub fn for_each_part<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        match self {
            Self::Any(of) | Self::All(of) => {
                for condition in of {
                    condition.for_each_part(visit);
                }
            }
            _ => visit(self),
        }
    }
}

impl Op {
    /// All operators; a sign that is a prefix of another comes after it.
    pub(crate) const ALL: [Self; 6] =
        [Self::AtMost, Self::AtLeast, Self::Unequal, Self::Less, Self::More, Self::Equal];

    /// Returns the operator's sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::AtLeast => ">=",
            Self::More => ">",
        }
    }

    /// Whether the first compares so with the second.
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::AtLeast => left >= right,
            Self::More => left > right,
        }
    }
}
