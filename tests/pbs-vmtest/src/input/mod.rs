// SPDX-License-Identifier: GPL-2.0
//! Invalid input is refused with an errno and a reason in words, and changes nothing.

pub mod attach;
pub mod calls;
pub mod device;
pub mod kit;
pub mod memory;
pub mod permission;
pub mod pieces;
pub mod plans;
pub mod random;
pub mod scarcity;
pub mod writers;
