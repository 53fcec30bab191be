// SPDX-License-Identifier: GPL-2.0
//! Two writers at once: one of them wins, whole.

use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::{Device, EventKind};

use super::kit::{refused, Running};
use crate::harness::{fork, now_ns, sleep_ms, Child, Context, Node, Plan, Verdict};
use crate::linux::scene::{dies, ends_well, set_affinity, SharedWords, PLAN_CPU};
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
fn writer(number: u32, words: &'static SharedWords) -> Result<Child, String> {
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
    let words = SharedWords::shared()?;
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
        check_eq!(words.note.load(SeqCst), 2 * round, "plans taken by round {round}");
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
    check_eq!(installed.len(), 4 * ROUNDS as usize, "plans installed on a CPU");
    // Nobody's plan comes between the two CPUs of another.
    for pair in installed.chunks(2) {
        check_eq!(pair[0].plan_id, pair[1].plan_id, "plan of the next CPU");
        check!(pair[0].cpu != pair[1].cpu, "a CPU twice");
    }
    Ok(())
}

/// A plan that takes long to be written.
fn long_plan(id: u64, slots: u32) -> Vec<u8> {
    let mut plan = Plan::new(id).cpu(PLAN_CPU);
    for task in 0..slots {
        plan = plan.slot(1, task, 1000);
    }
    plan.bytes()
}

/// A process that is killed while it writes a long plan has written none, and dies at once.
pub fn killed_writer_changes_nothing() -> Verdict {
    const SLOTS: u32 = 500_000;
    let running = Running::new()?;
    let plan = long_plan(1, SLOTS);
    // How long it takes to write it, less what the last step takes: it is refused there.
    let whole_ns = {
        let mut wrong = plan.clone();
        let end = wrong.len();
        wrong.copy_within(end - 32..end - 16, end - 16);
        let device = Device::open().context("open")?;
        let since_ns = now_ns();
        refused("a task twice", device.write_plan(&wrong), libc::EINVAL)?;
        now_ns() - since_ns
    };
    let mut slowest_ns = 0;
    for part in 1..=6 {
        let words = SharedWords::shared()?;
        let mut child = fork(|| {
            let Ok(device) = Device::open() else { return };
            words.go.store(1, SeqCst);
            let _ = device.write_plan(&plan);
            words.note.store(1, SeqCst);
        })?;
        while words.go.load(SeqCst) == 0 {
            sleep_ms(1);
        }
        sleep_ms(part * whole_ns / 8_000_000);
        let since_ns = now_ns();
        child.kill(libc::SIGKILL)?;
        check_eq!(dies(&mut child, "the writer")?, libc::SIGKILL, "its end");
        slowest_ns = slowest_ns.max(now_ns() - since_ns);
        check_eq!(words.note.load(SeqCst), 0, "the writer came back, part {part}");
        running
            .is_untouched()
            .map_err(|why| format!("killed at {part}/8 of {whole_ns} ns: {why}"))?;
    }
    println!("to write takes {whole_ns} ns, to die at most {slowest_ns} ns");
    running.completes()
}

/// If many write at once, some are asked to try again; the others have written a plan.
pub fn few_write_at_once() -> Verdict {
    const WRITERS: u32 = 12;
    let words = SharedWords::shared()?;
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        writers.push(fork(|| {
            let plan = long_plan(u64::from(number), 100_000);
            let Ok(device) = Device::open() else { return };
            words.other.fetch_add(1, SeqCst);
            while words.go.load(SeqCst) == 0 {
                sleep_ms(1);
            }
            match device.write_plan(&plan) {
                Ok(()) => words.progress.fetch_add(1, SeqCst),
                wrong => match refused("one plan too many", wrong, libc::EBUSY) {
                    Ok(_) => words.note.fetch_add(1, SeqCst),
                    Err(why) => {
                        println!("{why}");
                        0
                    }
                },
            };
        })?);
    }
    while words.other.load(SeqCst) < WRITERS {
        sleep_ms(5);
    }
    words.release();
    for child in &mut writers {
        check_eq!(child.wait()?, 0, "end of a writer");
    }
    let (taken, told) = (words.progress(), words.note.load(SeqCst));
    println!("{taken} plans were taken, {told} writers told to try again");
    check_eq!(taken + told, WRITERS, "writers that know");
    check!(taken > 0 && told > 0, "all or none were taken");
    let device = Device::open().context("open")?;
    device.write_plan(&long_plan(99, 1)).context("try again")?;
    device.drop_plan(PLAN_CPU).context("drop")
}
