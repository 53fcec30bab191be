// SPDX-License-Identifier: GPL-2.0
//! What all files for people have in common: how values are read, with the
//! line in every problem, and how they are written.

mod reader;
mod value;
mod write;

pub use reader::{read, Reader, Table, Value};
pub use value::closest;
pub use write::{between, quoted, underscored, write_list};
