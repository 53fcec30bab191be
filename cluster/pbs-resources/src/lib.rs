// SPDX-License-Identifier: GPL-2.0
//! Text formats in which users submit requests to a cluster (Keller, *A Data Structure for Planning
//! Based Workload Management of Heterogeneous HPC Systems*, section 3).
//!
//! | text | type | example |
//! |---|---|---|
//! | a request | [`Rset`] | `rset=4:ncpus=16:mem=12g+ncpus=1,sw=g03,place=scatter:excl` |
//! | resources of a node, or that are given without being asked for | [`parse_items`] | `ncpus=32:mem=1t:arch=linux` |
//! | a time span | [`parse_duration_s`] | `4d3h`, `00:10:00` |
//! | an amount | [`parse_size_bytes`] | `16`, `10g` |
//! | permitted users | [`Condition`] | `group:G1 \| ncpus<4 & duration<1h` |
//! | lines of a job script | [`script`] | `#CCS -t 7d` |
//!
//! This crate handles text alone: it does not know whether a cluster has a resource of that name,
//! or enough of it. An unreadable text yields an [`Error`] with the column and the correction.
//! Values are displayed in one canonical form, which reads back to the same value.

mod condition;
mod condition_text;
mod cursor;
mod duration;
mod error;
mod rset;
mod rset_text;
pub mod script;
mod size;

pub use condition::{Condition, Facts, Op};
pub use cursor::is_word;
pub use duration::{format_duration, parse_duration_s};
pub use error::Error;
pub use rset::{Arrangement, Chunk, Item, Placement, Rset, Sharing, Value};
pub use rset_text::{
    format_items, parse_items, AVOIDED_NODES, CHUNK_ITEMS, RSET_BYTES, RSET_CHUNKS,
};
pub use size::{format_size, parse_size_bytes};

/// Resources that every cluster has, with nothing declared: cores, bytes of memory, bytes
/// of address space, and the threads that a program is told to start. The first three are
/// consumed; the last is told to the program only. Their values are amounts.
pub const BUILT_IN: [&str; 4] = ["ncpus", "mem", "vmem", "ompthreads"];
