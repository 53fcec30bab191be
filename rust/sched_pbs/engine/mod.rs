// SPDX-License-Identifier: GPL-2.0

//! What the core scheduler calls.

pub(crate) mod class;
