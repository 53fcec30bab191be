// SPDX-License-Identifier: GPL-2.0
//! What is kept free for some.

use pbs_resources::Condition;

use crate::{Share, Validity};

/// Keeps part of a resource free, but for those who have access: Keller's FreePool (3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its name, unlike that of any other, for messages.
    pub name: String,
    /// Of what something is kept free.
    pub resource: String,
    /// How much of it.
    pub free: Share,
    /// Which requests may have it; its amounts are those of the whole request.
    pub access: Condition,
    /// Whether what those with access use counts as kept free. Keller's uRS (5.1) is the
    /// sum of the booked and of the pool, so there it does not.
    pub share: bool,
    /// When it is kept free.
    pub validity: Validity,
}
