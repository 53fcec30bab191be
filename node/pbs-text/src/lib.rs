// SPDX-License-Identifier: GPL-2.0
//! Text for people: tables and numbers as they are printed, and files of TOML as they are
//! read, with the line in every problem, and written.

mod append;
mod foreign;
pub mod json;
mod number;
mod problem;
mod program;
mod quantity;
pub mod reader;
mod skipped;
mod table;
mod user;
mod write;

pub use append::Append;
pub use foreign::{is_hidden, shown, shown_lines};
pub use number::{at_least_one, bytes, grouped, ms, span};
pub use problem::{Line, Problem, Problems};
pub use program::{program_end, signal};
pub use quantity::Quantity;
pub use skipped::skipped;
pub use table::{columns, Format, Table};
pub use user::{user_name, user_number_of};
pub use write::{between, escaped, quoted, underscored, write_list};
