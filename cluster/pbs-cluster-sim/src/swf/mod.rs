// SPDX-License-Identifier: GPL-2.0
//! The Standard Workload Format, version 2.2: a line for each job with 18 numbers, of which
//! −1 is unknown, below comments of which some say what the cluster is (Chapin et al. 1999,
//! *Benchmarks and standards for the evaluation of parallel job schedulers*; the Parallel
//! Workloads Archive has the definition and some forty traces).
//!
//! [`Reader`] goes through a file of any length line by line; [`read`] makes a trace of one.
//! [`write`] writes a trace, with what became of it where that is known.

mod error;
mod header;
mod line;
mod notes;
mod reader;
mod record;
mod trace;
mod writer;

pub use error::{Error, Problem, Stop};
pub use header::Header;
pub use notes::{Note, Notes, Why};
pub use reader::Reader;
pub use record::{NoJob, Record};
pub use trace::{read, Trace};
pub use writer::{write, write_records, write_replayed, Writer};
