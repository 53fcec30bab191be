// SPDX-License-Identifier: GPL-2.0
//! Plans by dice, with fixed seeds.

use std::collections::BTreeSet;
use std::ffi::CStr;

use pbs_core::wire::Message;
use pbs_core::{Config, Refusal, StdMemory};
use pbs_uapi::{Device, IDLE, NO_TASK};

use super::kit::{last_refusal, Running};
use crate::harness::{setting, Context, Plan, Random, Verdict};
use crate::linux::scene::PLAN_CPU;
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
                let value =
                    dice.one_of(&[0, 1, 2, u64::from(IDLE), u64::from(NO_TASK), 1 << 48, u64::MAX]);
                let field = at & !3;
                for (place, byte) in plan.iter_mut().skip(field).zip(value.to_ne_bytes()) {
                    *place = byte;
                }
            }
        }
    }
}

/// The policy core's verdict on a plan, with checks in the order of the kernel, and the CPUs of the
/// plan.
fn verdict(plan: &[u8]) -> Result<Vec<u32>, Refusal> {
    let message = Message::parse::<StdMemory>(plan)?;
    let (mut cpus, mut plans) = (Vec::new(), Vec::new());
    for section in message.sections() {
        cpus.push(section.cpu());
        if section.cpu() > PLAN_CPU {
            // The kernel looks no further than that.
            return Ok(cpus);
        }
        let plan = pbs_core::Plan::<StdMemory>::build(&section)?;
        plans.push((section, plan));
    }
    pbs_core::join(&mut plans)?;
    Ok(cpus)
}

/// Number of invalid plans, unless the environment sets it.
const PLANS: u32 = 10_000;

/// Plans that are wrong somewhere: the kernel refuses each with the words that
/// the policy core finds outside of it, and goes on.
pub fn mutated_plans_are_refused() -> Verdict {
    let plans = setting("PBS_PLANS", PLANS)?;
    let running = Running::new()?;
    let device = Device::open().context("open")?;
    let mut dice = Random::new(u64::from(setting("PBS_SEED", 1)?));
    let (mut wrong, mut right, mut not_there) = (0, 0, 0);
    let mut reasons = BTreeSet::new();
    while wrong < plans {
        let mut plan = seeds_plan();
        mutate(&mut plan, &mut dice);
        let expected = verdict(&plan);
        if expected.as_ref().is_ok_and(|cpus| cpus.iter().all(|&cpu| cpu <= PLAN_CPU)) {
            // Nothing that matters was hit: it would replace the one that runs.
            right += 1;
            continue;
        }
        let Err(refused) = device.write_plan(&plan) else {
            return Err(format!("plan {wrong} was not refused: {plan:02x?}"));
        };
        let error = last_refusal(&device)?;
        check!(!error.message().is_empty(), "plan {wrong}: {refused} without a reason");
        match expected {
            Err(expected) => {
                let reason = CStr::from_bytes_until_nul(&error.text).context("reason")?;
                check_eq!(
                    reason.to_string_lossy(),
                    expected.to_string(),
                    "reason for plan {wrong}"
                );
                check_eq!(error.offset_bytes, expected.offset_bytes, "place in plan {wrong}");
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
    check!(not_there > 0 && right < wrong, "the mutations do not mutate");
    running.completes()
}
