// SPDX-License-Identifier: GPL-2.0
//! Input by dice, with fixed seeds.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::sync::atomic::Ordering::SeqCst;

use pbs_core::wire::Message;
use pbs_core::{Config, Refusal, StdMemory};
use pbs_uapi::{ioc, Device, IDLE, NO_TASK};

use super::kit::{ioctl, last_refusal, Running};
use crate::harness::{fork, Context, Plan, Random, Verdict};
use crate::linux::scene::{dies, ends_well, Words, PLAN_CPU};
use crate::{check, check_eq};

fn seeds_plan() -> Vec<u8> {
    Plan::new(5)
        .config(Config::DEFAULT)
        .cpu(0)
        .slot(11, 0, 1_000_000)
        .idle(500_000)
        .slot(12, 3, 2_000_000)
        .cpu(PLAN_CPU)
        .slot(1, 0, 1_000_000)
        .slot(2, 0, 1_000_000)
        .slot(1, 1, 1_000_000)
        .idle(500_000)
        .bytes()
}

/// Changes some bytes, some whole fields, or the length.
fn mutate(plan: &mut Vec<u8>, dice: &mut Random) {
    for _ in 0..=dice.below(3) {
        let at = dice.below(plan.len().max(1));
        match dice.below(6) {
            0 => plan.truncate(at),
            1 => {
                let more = dice.below(64);
                plan.resize(plan.len() + more, dice.roll() as u8);
            }
            2 | 3 => {
                if let Some(byte) = plan.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
            _ => {
                let value = dice.one_of(&[
                    0,
                    1,
                    2,
                    u64::from(IDLE),
                    u64::from(NO_TASK),
                    1 << 48,
                    u64::MAX,
                ]);
                let field = at & !3;
                for (place, byte) in plan.iter_mut().skip(field).zip(value.to_ne_bytes()) {
                    *place = byte;
                }
            }
        }
    }
}

/// What the policy core says to a plan, in the order in which the kernel looks;
/// and its CPUs.
fn verdict(plan: &[u8]) -> Result<Vec<u32>, Refusal> {
    let message = Message::parse::<StdMemory>(plan)?;
    let mut cpus = Vec::new();
    for section in message.sections() {
        cpus.push(section.cpu());
        if section.cpu() > PLAN_CPU {
            // The kernel looks no further than that.
            break;
        }
        pbs_core::Plan::<StdMemory>::build(&section)?;
    }
    Ok(cpus)
}

/// 10,000 plans that are wrong somewhere: the kernel refuses each with the
/// words that the policy core finds outside of it, and goes on.
pub fn mutated_plans_are_refused() -> Verdict {
    const PLANS: usize = 10_000;
    let running = Running::new()?;
    let device = Device::open().context("open")?;
    let mut dice = Random::new(1);
    let (mut wrong, mut right, mut not_there) = (0, 0, 0);
    let mut reasons = BTreeSet::new();
    while wrong < PLANS {
        let mut plan = seeds_plan();
        mutate(&mut plan, &mut dice);
        let expected = verdict(&plan);
        if expected
            .as_ref()
            .is_ok_and(|cpus| cpus.iter().all(|&cpu| cpu <= PLAN_CPU))
        {
            // Nothing that matters was hit: it would replace the one that runs.
            right += 1;
            continue;
        }
        let Err(refused) = device.write_plan(&plan) else {
            return Err(format!("plan {wrong} was not refused: {plan:02x?}"));
        };
        let error = last_refusal(&device)?;
        check!(
            !error.message().is_empty(),
            "plan {wrong}: {refused} without a reason"
        );
        match expected {
            Err(expected) => {
                let reason = CStr::from_bytes_until_nul(&error.text).context("reason")?;
                check_eq!(
                    reason.to_string_lossy(),
                    expected.to_string(),
                    "reason for plan {wrong}"
                );
                check_eq!(
                    error.offset_bytes,
                    expected.offset_bytes,
                    "place in plan {wrong}"
                );
            }
            Ok(_) => {
                check_eq!(error.error, libc::ENODEV, "errno for plan {wrong}");
                not_there += 1;
            }
        }
        reasons.insert(error.message().replace(|c: char| c.is_ascii_hexdigit(), ""));
        wrong += 1;
        if wrong % 1000 == 0 {
            running.is_untouched()?;
        }
    }
    println!("{} kinds of reasons", reasons.len());
    check!(reasons.len() > 20, "only these reasons: {reasons:?}");
    println!("{wrong} refused, {not_there} of them for their CPU; {right} had nothing wrong");
    check!(
        not_there > 0 && right < wrong,
        "the mutations do not mutate"
    );
    running.completes()
}

/// ioctl(2) with any number and any argument, among them numbers and records
/// that are nearly right.
pub fn random_calls_do_no_harm() -> Verdict {
    const CALLS: u32 = 20_000;
    let running = Running::new()?;
    let words = Words::shared()?;
    let mut victim = fork(|| words.block())?;
    let victim_pid = victim.pid;
    let mut caller = fork(|| {
        let Ok(device) = Device::open() else { return };
        let mut dice = Random::new(2);
        // The longest record, and room for what GET_PLAN writes.
        let mut record = [0u32; 256];
        for _ in 0..CALLS {
            // DROP of the CPU whose plan runs is the one right call among them.
            let number = match dice.below(4) {
                0 => dice.roll() as u32,
                1 => (dice.roll() as u32 & 0xffff_00ff) | 0xb500,
                _ => dice.one_of(&[
                    ioc::INFO,
                    ioc::ATTACH,
                    ioc::TASK_END,
                    ioc::DETACH,
                    ioc::SEEK,
                    ioc::ERROR,
                    ioc::GET_PLAN,
                    ioc::DROP,
                ]),
            };
            for word in &mut record {
                *word = if dice.below(3) == 0 {
                    dice.roll() as u32
                } else {
                    0
                };
            }
            record[0] = dice.one_of(&[0, u32::MAX, 2, i32::MAX as u32, victim_pid as u32, 1 << 31]);
            // Process 3 is free: who attaches to it waits for ever.
            let unknown = dice.roll() as u32 | 1 << 20;
            record[1] = dice.one_of(&[0, 1, 2, 9, IDLE, unknown]);
            if number == ioc::DROP {
                record[0] = dice.one_of(&[0, 2, 8, u32::MAX, 1 << 31]);
            }
            let own = record.as_mut_ptr() as usize;
            // An address of GET_PLAN's buffer must not be one of this program.
            record[2] = dice.roll() as u32;
            record[3] = dice.one_of(&[0, u32::MAX, 1 << 31]);
            let argument = match dice.below(4) {
                0 => dice.one_of(&[0, 1, usize::MAX, usize::MAX - 8, 1 << 63, 4096]),
                _ => own,
            };
            let errno = ioctl(&device, number, argument).err();
            words.other.fetch_add(u32::from(errno.is_some()), SeqCst);
            words.note.fetch_add(1, SeqCst);
        }
    })?;
    ends_well(&mut caller, "the caller")
        .map_err(|why| format!("{why} after {} calls", words.note.load(SeqCst)))?;
    check_eq!(words.note.load(SeqCst), CALLS, "calls");
    let failed = words.other.load(SeqCst);
    println!("{CALLS} calls, {failed} of them refused");
    check!(
        failed > CALLS / 2 && failed < CALLS,
        "{failed} of {CALLS} calls failed"
    );
    words.release();
    check_eq!(
        dies(&mut victim, "the victim")?,
        0,
        "wait status of the victim"
    );
    running.completes()
}
