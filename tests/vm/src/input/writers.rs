// SPDX-License-Identifier: GPL-2.0
//! Two writers at once: one of them wins, whole.

use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::{Device, EventKind};

use crate::harness::{fork, sleep_ms, Child, Context, Node, Plan, Verdict};
use crate::linux::scene::{ends_well, set_affinity, Words};
use crate::{check, check_eq};

const ROUNDS: u32 = 300;

/// A plan for both CPUs, different in everything for each writer and round.
fn plan_of(writer: u32, round: u32) -> Plan {
    let mut plan = Plan::new(u64::from(round) << 8 | u64::from(writer));
    for cpu in 0..=1 {
        plan = plan.cpu(cpu);
        for task in 0..=(writer * 40) {
            plan = plan
                .slot(1 + writer * 10 + cpu, task, 1000 + u64::from(writer))
                .idle(1000 + u64::from(round));
        }
    }
    plan
}

/// Writes a plan each time that a round begins.
fn writer(number: u32, words: &'static Words) -> Result<Child, String> {
    fork(|| {
        let _ = set_affinity(0, &[number as usize]);
        let Ok(device) = Device::open() else { return };
        for round in 1..=ROUNDS {
            let plan = plan_of(number, round).bytes();
            words.other.fetch_add(1, SeqCst);
            while words.go.load(SeqCst) < round {
                std::hint::spin_loop();
                // SAFETY: no memory is involved.
                unsafe { libc::sched_yield() };
            }
            if device.write_plan(&plan).is_ok() {
                words.note.fetch_add(1, SeqCst);
            }
            words.progress.fetch_add(1, SeqCst);
        }
    })
}

pub fn one_of_two_writers_wins() -> Verdict {
    let mut node = Node::open()?;
    let words = Words::shared()?;
    let mut writers = [writer(0, words)?, writer(1, words)?];
    let mut wins = [0; 2];
    for round in 1..=ROUNDS {
        while words.other.load(SeqCst) < 2 * round {
            sleep_ms(1);
        }
        words.go.store(round, SeqCst);
        while words.progress.load(SeqCst) < 2 * round {
            sleep_ms(1);
        }
        check_eq!(
            words.note.load(SeqCst),
            2 * round,
            "plans taken by round {round}"
        );
        let mut winners = Vec::new();
        for cpu in 0..=1 {
            let found = node.device.get_plan(cpu).context("get the plan")?;
            let winner = (0..2).find(|&number| found == plan_of(number, round).read_back(cpu));
            winners.push(winner);
        }
        let Some(winner) = winners[0] else {
            return Err(format!("round {round}: CPU 0 has a plan that nobody wrote"));
        };
        check_eq!(winners[1], Some(winner), "winner of round {round} on CPU 1");
        wins[winner as usize] += 1;
        node.read()?;
    }
    for child in &mut writers {
        ends_well(child, "a writer")?;
    }
    println!("won: {wins:?} of {ROUNDS}");
    let installed = node.of(EventKind::PlanInstalled);
    check_eq!(
        installed.len(),
        4 * ROUNDS as usize,
        "plans installed on a CPU"
    );
    // Nobody's plan comes between the two CPUs of another.
    for pair in installed.chunks(2) {
        check_eq!(pair[0].plan_id, pair[1].plan_id, "plan of the next CPU");
        check!(pair[0].cpu != pair[1].cpu, "a CPU twice");
    }
    Ok(())
}
