// SPDX-License-Identifier: GPL-2.0
//! What Slurm is told in its files, seen by a planner: which nodes a partition has, and
//! what an operator has to add or change before its jobs can be planned.
//!
//! [`read`] reads `slurm.conf` with all that it includes, `plugstack.conf`, and what of the
//! hooks (`slurm/hooks`) is where Slurm looks for it. [`check`] says what is missing,
//! [`site_of`] writes the site's file for `pbsctl cluster new --site`; neither looks at
//! anything but what was read. Nothing here talks to Slurm.
//!
//! Lists of hosts as Slurm writes them are read by [`expand`] and written by [`compress`].

mod check;
mod entry;
mod hooks;
mod host_list;
mod nodes;
mod read;
mod site;
mod times;

pub use check::{check, Finding, Level};
pub use entry::{Error, Place, Setting};
pub use hooks::{Hook, Lua};
pub use host_list::{compress, expand, ListError, MOST_HOSTS};
pub use nodes::{Node, Partition};
pub use read::{read, Conf};
pub use site::site_of;
pub use times::seconds;
