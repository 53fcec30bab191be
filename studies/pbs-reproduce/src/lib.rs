// SPDX-License-Identifier: GPL-2.0
//! What the documents claim, held against what commands measure.
//!
//! [`Claims`] is the declaration, which says of each claim what was published, which command
//! measures it and where in its output the figures are; [`run`] runs the commands; a
//! [`Verdict`] follows from the figures and is written nowhere.  [`table`], [`page`] and
//! [`document`] show a [`Reproduction`], which is what `claims.json` holds.

mod claims;
mod document;
mod measure;
mod page;
mod result;
mod run;
mod table;
mod verdict;

pub use claims::{Bound, Claim, Claims, Document, Figure, Reduction, Set};
pub use document::document;
pub use measure::measure;
pub use page::page;
pub use result::{Measured, Reproduction, TriedClaim};
pub use run::{run, Options, RunProgress};
pub use table::{summary, table};
pub use verdict::{verdict, Verdict};
