// SPDX-License-Identifier: GPL-2.0
//! Users to whom what other users have counts.

use std::fmt;
use std::sync::Arc;

/// Function that returns for a user the one whose limits its jobs count to: another one for a
/// subordinate user.
#[derive(Clone)]
pub struct AccountOf(Arc<dyn Fn(u32) -> u32 + Send + Sync>);

impl AccountOf {
    /// The users that the function says.
    pub fn new(of: impl Fn(u32) -> u32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// Returns the user whose limits the jobs of a user count to.
    pub fn of(&self, uid: u32) -> u32 {
        (self.0)(uid)
    }
}

impl Default for AccountOf {
    /// Each user has its own limits.
    fn default() -> Self {
        Self::new(|uid| uid)
    }
}

impl fmt::Debug for AccountOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountOf")
    }
}
