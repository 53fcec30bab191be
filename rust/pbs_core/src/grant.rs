// SPDX-License-Identifier: GPL-2.0

//! Grants as they are reported.

use super::event::Grant;

/// Who was granted the CPU, in which slot on the wire, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) process: Option<u32>,
    pub(super) slot: u64,
    pub(super) reason: Grant,
}

/// A grant that is not told yet, and what of its event changes meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untold {
    pub(super) granted: Granted,
    pub(super) since_ns: u64,
    pub(super) retired_insns: u64,
    pub(super) node_lateness_insns: i64,
}
