// SPDX-License-Identifier: GPL-2.0
//! Named values, as measures return them.

/// One of several values that are measured together.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) unit: &'static str,
}

impl Named {
    pub(super) fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value, unit }
    }

    pub(super) fn insns(name: &'static str, value: f64) -> Self {
        Self::new(name, value, INSNS)
    }
}

/// Unit of a count of instructions in the kernel.
const INSNS: &str = "insns";
