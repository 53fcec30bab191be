// SPDX-License-Identifier: GPL-2.0

//! Snapshots of the policy of a CPU, for recorders that begin in the middle of a plan.
//!
//! A snapshot is taken in one section under the lock of the run queue, so that it is the state
//! between two inputs. The section is no decision, and visits each process of the plan once, as a
//! change of the configuration does.

use super::{control, read_back::read_plan};
use crate::{linux::storage::CHARGED, percpu::cpus, rings::inputs};
use core::mem::size_of;
use kernel::{alloc::KVVec, bindings, clock, prelude::*};

const WORD_BYTES: usize = size_of::<u64>();

/// The policy of a CPU between two inputs.
pub(crate) struct Snapshot {
    /// The plan, as a plan of one CPU with its configuration.
    pub(crate) plan: KVVec<u8>,
    /// Room for the words, and the part that is used.
    room: KVVec<u8>,
    used_bytes: usize,
    /// Number of the first input after it.
    pub(crate) next_input: u64,
    /// Time of the snapshot.
    pub(crate) time_ns: u64,
    /// Time at which the plan came into force.
    pub(crate) installed_ns: u64,
}

impl Snapshot {
    /// The words of the node, in the byte order of the machine.
    pub(crate) fn words(&self) -> &[u8] {
        self.room.get(..self.used_bytes).unwrap_or_default()
    }
}

/// Result of the request for a snapshot.
pub(crate) enum Taken {
    /// The snapshot.
    Snapshot(Snapshot),
    /// The caller has no room for it.
    TooSmall {
        /// Size of the plan.
        plan_bytes: u64,
        /// Size that is enough for the plan and the words, at any moment of this plan.
        enough_bytes: u64,
    },
}

/// Takes a snapshot of a CPU that is recorded, for a caller with room for `room_bytes`. Sleeps.
///
/// A bound of the size is compared first, in constant time: a request that is refused copies
/// neither the plan nor the words with the run queue locked.
///
/// Fails with `ENOENT` if the CPU has no plan, and with `E2BIG` if that has too many processes and
/// awaited tasks.
pub(crate) fn take(number: u32, room_bytes: u64) -> Result<Taken> {
    // With this lock nobody replaces the plan or its configuration until the end.
    let control = control::get()?.lock_killable()?;
    let cpu = cpus::get(number).ok_or(ENODEV)?;
    let ring = inputs::of_cpu(number).ok_or(ENOENT)?;
    let (plan_bytes, most) = cpu
        .lock(|_, _, state| {
            let node = state.node.as_ref()?;
            Some((node.plan().encoded_bytes(), node.most_words()))
        })
        .flatten()
        .ok_or(ENOENT)?;
    if most > bindings::PBS_MAX_SNAPSHOT_WORDS as usize {
        return Err(E2BIG);
    }
    let enough_bytes = plan_bytes + (most * WORD_BYTES) as u64;
    if room_bytes < enough_bytes {
        return Ok(Taken::TooSmall {
            plan_bytes,
            enough_bytes,
        });
    }
    let (plan, _) = read_plan(&control, cpu)?;
    let mut room = KVVec::new();
    room.extend_with(most * WORD_BYTES, 0, CHARGED)?;
    let (used_bytes, next_input, time_ns, installed_ns) = cpu
        .lock(|_, _, state| {
            let node = state.node.as_ref()?;
            let mut places = room.chunks_exact_mut(WORD_BYTES);
            let mut used_bytes = 0;
            node.save(|word| {
                // Not by copy_from_slice, which panics if lengths differ.
                let place = places.next().unwrap_or_default();
                for (to, from) in place.iter_mut().zip(word.to_ne_bytes()) {
                    *to = from;
                }
                used_bytes += WORD_BYTES;
            });
            // Whoever writes to the ring has this run queue locked.
            let next_input = ring.bounds().1;
            let now_ns = clock::monotonic_ns();
            Some((used_bytes, next_input, now_ns, node.installed_ns()))
        })
        .flatten()
        .ok_or(ENOENT)?;
    if used_bytes > room.len() || plan.len() as u64 > plan_bytes {
        // A bound is wrong: words are missing, or the caller's room is too small.
        return Err(EIO);
    }
    Ok(Taken::Snapshot(Snapshot {
        plan,
        room,
        used_bytes,
        next_input,
        time_ns,
        installed_ns,
    }))
}
