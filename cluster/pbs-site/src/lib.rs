// SPDX-License-Identifier: GPL-2.0
//! A cluster as its operator describes it: nodes, resources, consumers, limits, pools.
