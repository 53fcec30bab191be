// SPDX-License-Identifier: GPL-2.0
//! Names that later parts of a site refer to.

use jiff::tz::TimeZone;

use crate::Resource;

/// Declared names to which later parts refer.
pub(super) struct DeclaredNames {
    pub(super) zone: TimeZone,
    pub(super) resources: Vec<Resource>,
    /// Empty: they aren't listed.
    pub(super) groups: Vec<String>,
    /// Empty: they aren't listed.
    pub(super) users: Vec<String>,
}
