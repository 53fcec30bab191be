// SPDX-License-Identifier: GPL-2.0
//! Names that later parts of a site refer to.

use jiff::tz::TimeZone;

use crate::Resource;

/// What has been read that others are named by.
pub(super) struct DeclaredNames {
    pub(super) zone: TimeZone,
    pub(super) resources: Vec<Resource>,
    /// Empty: they aren't listed.
    pub(super) groups: Vec<String>,
    /// Empty: they aren't listed.
    pub(super) users: Vec<String>,
}
