// SPDX-License-Identifier: GPL-2.0
//! Requests of resources for a cluster: chunks, places, durations, conditions.
