// SPDX-License-Identifier: GPL-2.0
//! Plans that are wrong in each way there is.

use std::io::Write;

use libc::{E2BIG, EEXIST, EINVAL, ENODEV};
use pbs_core::wire::{encode, CPU_BYTES, HEADER_BYTES, PROCESS_BYTES, SLOT_BYTES};
use pbs_core::Config;
use pbs_uapi::{Device, IDLE, MAX_PROCESSES, MAX_SLOTS, MAX_SLOT_INSNS, NO_TASK};

use super::kit::{last_refusal, refused, Running};
use crate::harness::{Context, Plan, Verdict};
use crate::linux::scene::PLAN_CPU;
use crate::{check, check_eq};

/// Offsets of the records of [`good`].
const CPU_AT: usize = HEADER_BYTES;
const PROCESS_AT: usize = CPU_AT + CPU_BYTES;
const SLOT_AT: usize = PROCESS_AT + 2 * PROCESS_BYTES;
/// Bytes of the deadline, the last field of a process.
const DEADLINE_BYTES: usize = 8;

/// A plan with nothing wrong: two processes and three slots.
fn good() -> Plan {
    Plan::new(1)
        .without_config()
        .cpu(PLAN_CPU)
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        .slot(1, 1, 1_000_000)
}

/// Bytes of [`good`] with some of them replaced.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut plan = good().bytes();
    plan[at..at + bytes.len()].copy_from_slice(bytes);
    plan
}

/// The fault, the plan, the errno, and a part of the reason.
type Case = (&'static str, Vec<u8>, i32, &'static str);

fn header_cases() -> Vec<Case> {
    let long = good().bytes().len() as u64;
    vec![
        ("magic", with(0, b"PLAN"), EINVAL, "not a plan"),
        ("version 0", with(4, &0u16.to_ne_bytes()), EINVAL, "version"),
        ("version 4", with(4, &4u16.to_ne_bytes()), EINVAL, "version"),
        ("size of header", with(6, &72u16.to_ne_bytes()), EINVAL, "header_bytes"),
        ("size too small", with(8, &(long - 1).to_ne_bytes()), EINVAL, "total_bytes"),
        ("size too large", with(8, &u64::MAX.to_ne_bytes()), EINVAL, "total_bytes"),
        ("no CPU", with(24, &0u32.to_ne_bytes()), EINVAL, "no CPU"),
        ("more CPUs than there are", with(24, &2u32.to_ne_bytes()), EINVAL, "truncated"),
        ("all the CPUs of the world", with(24, &u32::MAX.to_ne_bytes()), EINVAL, "truncated"),
        ("size of configuration", with(28, &8u32.to_ne_bytes()), EINVAL, "config_bytes"),
        ("configuration that isn't there", with(28, &256u32.to_ne_bytes()), EINVAL, ""),
        ("flags", with(32, &2u64.to_ne_bytes()), EINVAL, "flags"),
        ("failures of the future", with(40, &u64::MAX.to_ne_bytes()), EINVAL, "dealt_seq"),
        ("lease too short", with(48, &99_999_999u64.to_ne_bytes()), EINVAL, "lease_ns"),
        ("lease too long", with(48, &3_600_000_000_001u64.to_ne_bytes()), EINVAL, "lease_ns"),
        ("reserved in version 1", of_version_1(with(HEADER_BYTES - 1, &[1])), EINVAL, "reserved"),
    ]
}

/// The plan as one of version 1, whose processes end before the deadline.
fn of_version_1(mut plan: Vec<u8>) -> Vec<u8> {
    plan[4..6].copy_from_slice(&1u16.to_ne_bytes());
    for process in (0..2).rev() {
        let end = PROCESS_AT + (process + 1) * PROCESS_BYTES;
        plan.drain(end - DEADLINE_BYTES..end);
    }
    let total_bytes = plan.len() as u64;
    plan[8..16].copy_from_slice(&total_bytes.to_ne_bytes());
    plan
}

fn cpu_cases() -> Vec<Case> {
    let processes = |count: u32| with(CPU_AT + 4, &count.to_ne_bytes());
    let slots = |count: u64| with(CPU_AT + 8, &count.to_ne_bytes());
    vec![
        ("CPU that is not there", with(CPU_AT, &2u32.to_ne_bytes()), ENODEV, "not online"),
        ("CPU that can't be", with(CPU_AT, &u32::MAX.to_ne_bytes()), ENODEV, "not online"),
        ("process of another CPU", with(CPU_AT, &0u32.to_ne_bytes()), EEXIST, "process 1"),
        ("no processes", processes(0), EINVAL, "no process"),
        ("fewer processes", processes(1), EINVAL, ""),
        ("too many processes", processes(MAX_PROCESSES + 1), E2BIG, "processes"),
        ("no slots", slots(0), EINVAL, "no slots"),
        ("fewer slots", slots(2), EINVAL, "follow"),
        ("more slots", slots(4), EINVAL, "truncated"),
        ("too many slots", slots(u64::from(MAX_SLOTS) + 1), E2BIG, "slots"),
        ("count of slots that overflows", slots(u64::MAX / 16 + 2), E2BIG, "slots"),
        ("reserved in version 1", of_version_1(with(PROCESS_AT - 1, &[1])), EINVAL, "reserved"),
        ("rate of the CPU", with(CPU_AT + 24, &(1u64 << 32).to_ne_bytes()), EINVAL, "its rate"),
        ("edges that are not there", with(CPU_AT + 16, &1u64.to_ne_bytes()), EINVAL, "truncated"),
        ("too many edges", with(CPU_AT + 16, &u64::MAX.to_ne_bytes()), E2BIG, "edges"),
    ]
}

fn process_cases() -> Vec<Case> {
    let second = PROCESS_AT + PROCESS_BYTES;
    vec![
        ("duplicate process", with(second, &1u32.to_ne_bytes()), EINVAL, "twice"),
        ("processes in wrong order", with(PROCESS_AT, &3u32.to_ne_bytes()), EINVAL, "ascending"),
        ("process that is no number", with(second, &IDLE.to_ne_bytes()), EINVAL, "PBS_IDLE"),
        ("process without a slot", with(second, &3u32.to_ne_bytes()), EINVAL, "process 2"),
        ("flags", with(PROCESS_AT + 4, &1u32.to_ne_bytes()), EINVAL, "flags"),
        ("buffer", with(PROCESS_AT + 8, &u64::MAX.to_ne_bytes()), EINVAL, "buffer"),
        (
            "reserved in version 1",
            of_version_1(with(second - DEADLINE_BYTES - 1, &[1])),
            EINVAL,
            "reserved",
        ),
        (
            "rate of the process",
            with(second - DEADLINE_BYTES - 8, &(1u64 << 32).to_ne_bytes()),
            EINVAL,
            "its rate",
        ),
    ]
}

fn slot_cases() -> Vec<Case> {
    let third = SLOT_AT + 2 * SLOT_BYTES;
    let slot = |length, process, task| with(third, &encode::slot(length, process, task));
    let mut long = Plan::new(1).cpu(PLAN_CPU);
    for task in 0..20_000 {
        long = long.slot(1, task, MAX_SLOT_INSNS);
    }
    vec![
        ("slot of no length", slot(0, 1, 1), EINVAL, "length"),
        ("slot too long", slot(MAX_SLOT_INSNS + 1, 1, 1), EINVAL, "length"),
        ("length that overflows", slot(u64::MAX, 1, 1), EINVAL, "length"),
        ("all slots together too long", long.bytes(), EINVAL, "together"),
        ("unknown process", slot(1, 9, 1), EINVAL, "process 9"),
        ("duplicate task", slot(1, 1, 0), EINVAL, "already has a slot"),
        ("slot of a process without a task", slot(1, 1, NO_TASK), EINVAL, "no task"),
        ("idle slot with a task", slot(1, IDLE, 1), EINVAL, "idle"),
        ("tasks in wrong order", with(SLOT_AT, &encode::slot(1, 1, 5)), EINVAL, "ascending"),
    ]
}

fn order_cases() -> Vec<Case> {
    let two =
        |first, second| Plan::new(1).cpu(first).slot(11, 0, 1).cpu(second).slot(12, 0, 1).bytes();
    let shared = Plan::new(1).cpu(0).slot(1, 0, 1).cpu(1).slot(1, 0, 1);
    let mut trailing = good().bytes();
    trailing.extend([0; 16]);
    let long = trailing.len() as u64;
    trailing[8..16].copy_from_slice(&long.to_ne_bytes());
    let one_bad = Plan::new(1).cpu(0).slot(11, 0, 1).cpu(7).slot(12, 0, 1);
    vec![
        ("CPUs in wrong order", two(1, 0), EINVAL, "ascending"),
        ("CPU twice", two(1, 1), EINVAL, "ascending"),
        ("process on two CPUs", shared.bytes(), EINVAL, "on one"),
        ("bytes after the end", trailing, EINVAL, "follow"),
        ("one CPU there, one not", one_bad.bytes(), ENODEV, "not online"),
        ("nothing at all", Vec::new(), EINVAL, "truncated"),
    ]
}

fn config_cases() -> Vec<Case> {
    let config = |change: fn(&mut Config)| {
        let mut config = Config::DEFAULT;
        change(&mut config);
        good().config(config).bytes()
    };
    vec![
        ("sigma of 1", config(|c| c.sigma_t1_permille = 1000), EINVAL, "sigma"),
        ("limit", config(|c| c.preemption_limit_ns = 1 << 49), EINVAL, "limit"),
        (
            "NO_PREEMPTION over its limit",
            config(|c| c.no_preemption_ns = c.preemption_limit_ns + 1),
            EINVAL,
            "no_preemption",
        ),
        ("factor", config(|c| c.ceiling_factor_permille = 999), EINVAL, "ceiling_factor"),
        ("extra", config(|c| c.ceiling_extra_ns = u64::MAX), EINVAL, "ceiling_extra"),
        ("period", config(|c| c.window_period_ns = 0), EINVAL, "window_period"),
        (
            "no unallocated time",
            config(|c| c.window_unallocated_ns = 0),
            EINVAL,
            "window_unallocated",
        ),
        ("dispatch", config(|c| c.dispatch = 2), EINVAL, "dispatch"),
    ]
}

/// Each is refused for its own reason, and the plan that runs is untouched.
pub fn bad_plans_are_refused() -> Verdict {
    let running = Running::new()?;
    let device = Device::open().context("open")?;
    let groups =
        [header_cases(), cpu_cases(), process_cases(), slot_cases(), order_cases(), config_cases()];
    let mut count = 0;
    for (what, plan, errno, part) in groups.into_iter().flatten() {
        let reason = refused(what, device.write_plan(&plan), errno)?;
        println!("{what}: {reason}");
        check!(reason.contains(part), "{what}: {part} is not in: {reason}");
        count += 1;
    }
    check_eq!(count, 62, "cases");
    running.is_untouched()?;
    oversized(&device)?;
    running.completes()
}

/// More bytes than any plan has, of which the kernel need not look at one.
fn oversized(device: &Device) -> Verdict {
    const BYTES: usize = 1 << 30;
    // SAFETY: a new mapping; untouched, it takes no memory.
    let bytes = unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        check!(page != libc::MAP_FAILED, "no mapping");
        std::slice::from_raw_parts(page.cast::<u8>(), BYTES)
    };
    refused("oversized plan", device.write_plan(bytes), E2BIG)?;
    Ok(())
}

/// A plan cut off at every record, and in the middle of each: once as it is,
/// once with a header that says so.
pub fn truncated_plans_are_refused() -> Verdict {
    let running = Running::new()?;
    let device = Device::open().context("open")?;
    let whole = Plan::new(1)
        .config(Config::DEFAULT)
        .cpu(0)
        .slot(11, 0, 1000)
        .idle(1000)
        .slot(12, 0, 1000)
        .cpu(1)
        .slot(1, 0, 1000)
        .slot(1, 1, 1000)
        .bytes();
    for end in (0..whole.len()).step_by(8) {
        let mut cut = whole[..end].to_vec();
        let what = format!("plan cut off at {end}");
        let reason = refused(&what, device.write_plan(&cut), EINVAL)?;
        if end >= HEADER_BYTES {
            check!(reason.contains("total_bytes"), "{what}: {reason}");
            cut[8..16].copy_from_slice(&(end as u64).to_ne_bytes());
            let reason = refused(&what, device.write_plan(&cut), EINVAL)?;
            check!(reason.contains("truncated"), "{what}: {reason}");
            let error = last_refusal(&device)?;
            check!(error.offset_bytes <= end as u64, "{what}: refused at {}", error.offset_bytes);
        } else {
            check!(reason.contains("truncated"), "{what}: {reason}");
        }
    }
    // The whole plan is split over two calls.
    let mut file =
        std::fs::OpenOptions::new().write(true).open(pbs_uapi::DEVICE_PATH).context("open")?;
    for half in whole.chunks(whole.len() / 2) {
        let errno = file.write(half).err().and_then(|error| error.raw_os_error());
        check_eq!(errno, Some(EINVAL), "errno of a half of a plan");
    }
    running.completes()
}
