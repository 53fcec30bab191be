// SPDX-License-Identifier: GPL-2.0
//! The source tree as data, for tests of its order.
//!
//! [`packages`] reads Cargo's metadata: which package lies in which folder and uses which
//! others. [`arrows`] reads the Rust files of one crate: which file takes names from which
//! other. [`circles`] finds files that take names from each other in a loop. [`tree`] lists
//! the files. [`words`] finds doc comments and their openings, [`sentences`] the sentences of
//! documents. The tests in `tests/` hold the rules of `Documentation/source-tree.rst`.

pub mod arrows;
pub mod circles;
pub mod dropped;
pub mod fields;
pub mod packages;
pub mod sentences;
pub mod tree;
pub mod words;
