// SPDX-License-Identifier: GPL-2.0
//! Kernel threads that everybody needs get the CPU beside a plan that uses all of it.
//!
//! Linux frees memory in threads of its own: the one of RCU that ends grace periods, and the
//! workers of work queues. A process that forks without end makes more garbage than these free in
//! the unallocated time alone.

use std::fs;

use crate::check;
use crate::harness::{burn, fork, now_ns, sleep_ms, Child, Context, Plan, Scene, Verdict};

/// Processes that only compute.
const SPINNERS: u32 = 40;

/// Instructions that nobody retires in a test.
const ENDLESS_INSNS: u64 = 1 << 40;

/// Instructions of each slot: 4 ms of the machine of the tests.
const SLOT_INSNS: u64 = 1_000_000;

/// Time for which memory is watched.
const WATCHED_MS: u64 = 2_000;

/// Time between two looks at it.
const LOOK_MS: u64 = 20;

/// The user of the forking process.
const USER: u32 = 12_345;

/// Processes that this user may have.
const USER_PROCESSES: u64 = 100;

/// The way in which a process forks without end.
#[derive(Clone, Copy)]
enum Storm {
    /// A storm that waits for each child.
    Reaped,
    /// Refusal of each by Linux, for the user has too many: what was made of it is freed again.
    Refused,
}

impl Storm {
    fn rage(self) {
        let most = if let Storm::Refused = self { 0 } else { USER_PROCESSES };
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the limit is valid for the call, and this process gives up its privileges alone.
        unsafe {
            libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit);
            libc::setresuid(USER, USER, USER);
        }
        loop {
            // SAFETY: the child ends at once.
            let pid = match unsafe { libc::fork() } {
                // SAFETY: nothing of the parent's is undone.
                0 => unsafe { libc::_exit(0) },
                pid => pid,
            };
            if let (Storm::Reaped, 1..) = (self, pid) {
                // SAFETY: nobody wants the status.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            }
        }
    }
}

/// The place of the process that forks.
#[derive(Clone, Copy)]
enum Forker {
    /// The only process of the plan; those that compute are normal processes.
    Planned,
    /// A normal process beside a plan of those that compute.
    Outside,
}

fn free_bytes() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemFree:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no MemFree")?;
    Ok(kib.parse::<u64>().context("MemFree")? << 10)
}

/// The least memory that is free for a while.
fn least_free_bytes() -> Result<u64, String> {
    let mut least_bytes = u64::MAX;
    let start_ns = now_ns();
    while now_ns() - start_ns < WATCHED_MS * 1_000_000 {
        sleep_ms(LOOK_MS);
        least_bytes = least_bytes.min(free_bytes()?);
    }
    Ok(least_bytes)
}

/// The least memory that is free beside a storm of normal processes.
fn free_without_plan(storm: Storm) -> Result<u64, String> {
    let mut children = (0..SPINNERS)
        .map(|_| fork(|| burn(ENDLESS_INSNS)))
        .collect::<Result<Vec<Child>, String>>()?;
    children.push(fork(|| storm.rage())?);
    least_free_bytes()
}

/// The least memory that is free beside a storm and a plan. Those that are not in the plan share
/// with Linux what it leaves.
fn free_with_plan(storm: Storm, forker: Forker) -> Result<u64, String> {
    let mut scene = Scene::new()?;
    let mut plan = Plan::new(1).without_config().lead_in();
    let mut outside = Vec::new();
    let slots = 10 * WATCHED_MS as u32;
    match forker {
        Forker::Planned => {
            for task in 0..slots {
                plan = plan.slot(1, task, SLOT_INSNS);
            }
            scene.process(1, |_| storm.rage())?;
            for _ in 0..SPINNERS {
                outside.push(fork(|| burn(ENDLESS_INSNS))?);
            }
        }
        Forker::Outside => {
            for slot in 0..slots {
                plan = plan.slot(1 + slot % SPINNERS, slot / SPINNERS, SLOT_INSNS);
            }
            for process in 1..=SPINNERS {
                scene.process(process, |_| burn(ENDLESS_INSNS))?;
            }
            outside.push(fork(|| storm.rage())?);
        }
    }
    let scene = scene.start(&plan)?;
    let least_bytes = least_free_bytes();
    drop(outside);
    drop(scene);
    least_bytes
}

fn storm_leaves_memory(storm: Storm, forker: Forker) -> Verdict {
    let before_bytes = free_bytes()?;
    let without_bytes = free_without_plan(storm)?;
    sleep_ms(1_000);
    let with_bytes = free_with_plan(storm, forker)?;
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "{} MiB are free before; beside a storm at least {} MiB without a plan, {} with one",
        mib(before_bytes),
        mib(without_bytes),
        mib(with_bytes)
    );
    check!(with_bytes >= without_bytes / 10 * 7, "the plan keeps Linux from freeing memory");
    Ok(())
}

/// A process of the plan to which Linux refuses each child leaves others their memory.
pub fn planned_forker_leaves_memory() -> Verdict {
    storm_leaves_memory(Storm::Refused, Forker::Planned)
}

/// A normal process beside the plan, which waits for each of its children, leaves others their
/// memory.
pub fn forker_beside_leaves_memory() -> Verdict {
    storm_leaves_memory(Storm::Reaped, Forker::Outside)
}
