// SPDX-License-Identifier: GPL-2.0
//! Slurm as the one that starts what is planned (22.05, Debian 12's).
//!
//! | what | by |
//! |---|---|
//! | orders | one `scontrol` that lives as long as we do, fed by a pipe: some thousand a second, where a process for each would be a hundred |
//! | jobs and nodes as they are | `squeue` and `sinfo`, in columns: a tenth of what their JSON takes |
//! | hints that something happened | a file that hooks append lines to, by inotify |
//!
//! libslurm would be faster, and is another library with each release. The service runs as
//! SlurmUser, who may do all that is done here; it is not root.

mod accounting;
mod columns;
pub mod conf;
mod demands;
mod details;
mod events;
mod pipe;
mod ran;
mod relay;
mod reservations;
mod run;
mod serve;
mod slurm;
mod states;
pub mod steer;
mod steering_options;

pub use accounting::{accounting, Accounting, LeftOut, SACCT};
pub use demands::{Demands, Gres, Per};
pub use events::Hints;
pub use pipe::{Answer, Pipe};
pub use ran::{gantt, metrics_of, ran_of, Names, Ran, BOUND_S};
pub use relay::{Relay, Served};
pub use serve::{serve, Serving};
pub use slurm::{Options, Slurm};
pub use steering_options::SteeringOptions;
