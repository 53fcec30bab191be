// SPDX-License-Identifier: GPL-2.0
//! Plans requests on many nodes, after OpenCCS.
