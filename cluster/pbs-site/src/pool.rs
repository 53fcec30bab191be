// SPDX-License-Identifier: GPL-2.0
//! Amounts that are kept free for some users.

use pbs_resources::Condition;

use crate::{Share, Validity};

/// Maximum number of pools of a site. Each resource with a validity counts as one, or as one for
/// each of its items.
pub const MOST_POOLS: usize = 64;

/// Keeps part of a resource free, but for those who have access: Keller's FreePool (3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Unique name of the pool, for messages.
    pub name: String,
    /// Resource of the pool.
    pub resource: String,
    /// Amount that is kept free.
    pub free: Share,
    /// Condition on requests that may use the amount; its amounts are those of the whole request.
    pub access: Condition,
    /// Whether what those with access use counts as kept free. Keller's uRS (5.1) is the
    /// sum of the booked and of the pool, so there it does not.
    pub share: bool,
    /// Validity of the pool.
    pub validity: Validity,
}
