// SPDX-License-Identifier: GPL-2.0

//! Tests of the policy core.

mod accounts;
mod audit;
mod contradictions;
mod dealing;
mod driver;
mod exact;
mod fuzz;
mod grants;
mod header;
mod lease;
mod levels;
mod numbers;
mod order;
mod pieces;
mod predict;
mod properties;
mod random;
mod scenarios;
mod scene;
mod signals;
mod swap;
mod text;
mod thresholds;
mod turns;
mod wire;
