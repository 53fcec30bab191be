// SPDX-License-Identifier: GPL-2.0
//! What the tests in the virtual machine share with the benchmarks there.

pub mod harness;
