// SPDX-License-Identifier: GPL-2.0
//! Claims of the documents, compared with the measurements of commands.
//!
//! [`Claims`] is the declaration.  For each claim it has the published value, the command that
//! measures it and the places of the figures in its output.  [`run`] runs the commands; a
//! [`Verdict`] follows from the figures and is written nowhere.  [`table`], [`page`] and
//! [`document`] show a [`Reproduction`], which is the content of `claims.json`.

mod claims;
mod document;
mod interval;
mod measure;
mod mutate;
mod page;
mod result;
mod run;
mod table;
mod verdict;

pub use claims::{
    Better, Bound, Claim, Claims, DeclaredMutation, Document, Figure, Reduction, Set, Source,
};
pub use document::document;
pub use measure::measure;
pub use mutate::{mutate_all, mutated_text, sample, Change, Mutated, Mutation};
pub use page::page;
pub use result::{Measured, Reproduction, TriedClaim};
pub use run::{run, Options, RunProgress};
pub use table::{summary, table};
pub use verdict::{judge, verdict, Verdict};
