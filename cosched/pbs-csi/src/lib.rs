// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling information of several processes in shared memory (§4.2, 5.2.2, 5.3).
//!
//! There is no daemon. Each process has its tasks in the *co-scheduling information
//! management file*, the CSIMF, as entries, and beside it a file per waiting task, its
//! *co-scheduling information*, the CSI. One process at a time is master: it reads all
//! CSIs, computes, and writes to each the best index and to each entry the round. [`Node`]
//! is the open CSIMF; [`Node::lock`] gives what can be done with it:
//!
//! | step (§4.3, 5.6) | here |
//! |---|---|
//! | store CSIs, register | [`Locked::register`] |
//! | NOT_STARTED, DONE → RUNNING; queues lose what is not in execution | [`Locked::begin`] |
//! | result; RUNNING → DONE | [`Locked::publish`] |
//! | check before a task: one load | [`Node::generation`] |
//! | owners fetch and acknowledge; DONE → NOT_STARTED after the last | [`Locked::fetch`] |
//! | start: the CSI goes with the claim | [`Locked::claim`] |
//! | end | [`Locked::finish`] |
//!
//! A process may be killed anywhere. The kernel releases its lock, whoever comes next
//! finds in the header that it was held, and takes back a result that is half there.
//! Entries of processes that are gone are removed before anything is decided with them; a
//! master that is gone, or does not come to an end, loses its part. Devices of a process that
//! is stopped are lent to the others after a while: see `overdue`.
//!
//! All content is taken for hostile: it is copied first, and the copy is looked at. See
//! `files`, `lock` and `map` for what the members of the group can't do to each other.
//! What they can: take devices for as long as they live, give wrong runtimes, remove what
//! others have entered. An entry need not even name who has made it: one of a process that
//! always lives, as pid 1, stays when its maker has gone, and only `pbsctl cosched csi clean
//! --force` takes it away. Then a process runs without co-scheduling, or waits for a device
//! that only seems taken. Have only those in the group who may use the node anyway.
//!
//! Where users do not trust each other the files should be in a directory of the group's own
//! (mode 0770). In `/dev/shm` those outside can't use the files either, but they can take
//! their names, and have so many that finding what the dead have left stops before its end.
//!
//! `exec` keeps pid and start time. What a program has entered before goes when the next
//! opens the same file for the first time; if it never does, when the process ends. So no
//! process can use two copies of this crate: one would end what the other has entered.
//!
//! The lock is of the open file. A process that forks without `exec` leaves a copy of it
//! to its child; if it is killed with the lock, the child keeps it until it ends.

#[macro_use]
mod record;

mod claim;
mod clean;
mod csi;
mod devices;
mod error;
mod files;
pub mod layout;
mod lock;
mod lookup;
mod map;
mod node;
mod overdue;
mod owner;
mod protocol;
mod table;

pub use claim::{Claim, Claimed};
pub use clean::{clean, list, Cleaned, Listed, Removal};
pub use csi::{Csi, Variant};
pub use devices::Device;
pub use error::Error;
pub use node::{Locked, Node, Options, Status, DEFAULT_DIRECTORY, OVERDUE_FACTOR};
pub use owner::Owner;
pub use protocol::{Begun, Fetched, Placement, Snapshot, Waiting};
pub use table::{Entry, NewTask, State};
