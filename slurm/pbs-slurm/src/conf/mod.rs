// SPDX-License-Identifier: GPL-2.0
//! Slurm's configuration files, seen by a planner: the nodes of a partition, and the changes that
//! an operator must make before its jobs can be planned.
//!
//! [`read`] reads `slurm.conf` with all that it includes, `plugstack.conf`, and the hooks
//! (`slurm/hooks`) where Slurm looks for them. [`check`] reports what is missing, [`site_of`]
//! writes the site's file for `pbsctl cluster new --site`; both use only what was read. Nothing
//! here talks to Slurm.
//!
//! Lists of hosts as Slurm writes them are read by [`expand`] and written by [`compress`].

mod check;
mod entry;
mod hooks;
mod host_list;
mod nodes;
mod read;
mod releases;
mod site;
mod times;
mod topology;

pub use check::{check, Finding, Level};
pub use entry::{Error, Place, Setting};
pub use hooks::{Hook, Lua};
pub use host_list::{compress, expand, ListError, MOST_HOSTS};
pub use nodes::{Node, Partition};
pub use read::{read, Conf};
pub use releases::{release_finding, Release, RELEASES};
pub use site::site_of;
pub use times::seconds;
pub use topology::Switches;
