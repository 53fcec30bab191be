// SPDX-License-Identifier: GPL-2.0
//! Traces of clusters, replayed in virtual time.
