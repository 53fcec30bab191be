// SPDX-License-Identifier: GPL-2.0
//! No process of a plan takes the time of another by what it does in the kernel.
//!
//! A process of many short tasks runs beside one that does something hostile in
//! its own slots. It ends as late as beside one that does what was planned, and
//! by no more than the budget of its slots later.

use std::fs::OpenOptions;
use std::io::{Seek, Write};

use pbs_core::Config;
use pbs_uapi::{Device, Event, EventKind};

use crate::harness::{
    burn, kernel_is_watched, now_ns, sleep_ms, sysfs_number, Counting, Mapping, Node, Plan, Scene,
    Verdict, CONFIG,
};
use crate::hostile::neighbours::{call, forever, fork_one, map_gigabyte, read_zeroes, signal_self};
use crate::{check, check_eq};

/// Tasks of the victim.
pub const TASKS: u32 = 20;

/// The length of each slot: 4 ms of the machine of the tests.
const SLOT_INSNS: u64 = 1_000_000;

/// A slot ends by the clock soon after it should have ended by the count, so that
/// the hostile process can't make its own slots long. It is not as soon as that:
/// interrupts are there too, and a normal task that is in the kernel when its
/// window ends.
fn config() -> Config {
    Config { ceiling_factor_permille: 1050, ceiling_extra_ns: 1_000_000, ..CONFIG }
}

/// A plan in which the neighbour, process 1, and the victim, process 2, have slots in turn.
pub fn taking_turns() -> Plan {
    let mut plan = Plan::new(1).lead_in();
    for task in 0..TASKS {
        plan = plan.slot(1, task, SLOT_INSNS).slot(2, task, SLOT_INSNS);
    }
    plan
}

fn plan() -> Plan {
    taking_turns().config(config())
}

/// Time at which the victim ended, since its plan arrived, and the slots in which its tasks did.
pub struct End {
    pub after_ns: u64,
    late_slots: usize,
    log: String,
}

/// Waits for the end of process 2, for so long at most.
fn end_of_victim(node: &mut Node, most_ns: u64) -> Result<Event, String> {
    let start_ns = now_ns();
    loop {
        node.read()?;
        if let Ok(ended) = node.first(EventKind::ProcessEnded, 2) {
            return Ok(ended);
        }
        check!(now_ns() - start_ns < most_ns, "the victim does not end:\n{}", node.log());
        sleep_ms(50);
    }
}

/// Bytes of a call that lasts for longer than slots.
const ZEROES_BYTES: usize = 96 << 20;

/// Runs the victim beside a process that does `neighbour` until it is killed.
fn beside(neighbour: impl FnOnce(&Device)) -> Result<End, String> {
    beside_in(&plan(), neighbour)
}

/// Runs the victim by `plan` beside a process that does `neighbour`.
pub fn beside_in(plan: &Plan, neighbour: impl FnOnce(&Device)) -> Result<End, String> {
    let mut scene = Scene::new()?;
    scene.process(1, neighbour)?;
    scene.tasks(2, &[Counting::here().below(SLOT_INSNS); TASKS as usize])?;
    let mut scene = scene.start(plan)?;
    let ended = end_of_victim(&mut scene.node, 60_000_000_000)?;
    let installed = scene.node.first(EventKind::PlanInstalled, pbs_uapi::IDLE)?;
    let tasks = scene.node.of(EventKind::TaskEnded);
    let late = |event: &&Event| event.process == 2 && event.slot != u64::from(2 * event.task + 2);
    Ok(End {
        after_ns: ended.time_ns - installed.time_ns,
        late_slots: tasks.iter().filter(late).count(),
        log: scene.node.log(),
    })
}

/// The bar: a twentieth more than beside a good neighbour, and the budget for
/// each slot; and the tasks end in their own slots.
fn ends_in_time(neighbour: impl FnOnce(&Device)) -> Verdict {
    let good = beside(|_| burn(1 << 40))?;
    let taken_before_ns = sysfs_number("cpu0/out_of_turn_ns")?;
    let hostile = beside(neighbour)?;
    let taken_ns = sysfs_number("cpu0/out_of_turn_ns")? - taken_before_ns;
    let budget_ns = config().kernel_budget_ns(config().window_period_ns);
    let ms = |ns: u64| ns as f64 / 1e6;
    println!(
        "beside a good neighbour it ends after {:.1} ms, beside this one after {:.1} ms; \
         {:.1} ms were taken out of turn, {} tasks ended late",
        ms(good.after_ns),
        ms(hostile.after_ns),
        ms(taken_ns as u64),
        hostile.late_slots,
    );
    if kernel_is_watched() {
        // There the kernel takes a good part of a slot without any neighbour.
        return Ok(());
    }
    let most_ns = good.after_ns + good.after_ns / 20 + u64::from(TASKS) * budget_ns;
    check!(
        hostile.after_ns <= most_ns,
        "it ends {:.1} ms too late\n{}",
        ms(hostile.after_ns - most_ns),
        hostile.log
    );
    check_eq!(good.late_slots, 0, "late tasks beside a good neighbour");
    // What a neighbour leaves behind for interrupts to clean up, as RCU does with
    // forked processes, and a normal task that is in the kernel when its window ends
    // can cost a slot its time, too. Few slots: there is a window in every tenth.
    check!(
        hostile.late_slots <= TASKS as usize / 4,
        "{} tasks are late beside a hostile one\n{}",
        hostile.late_slots,
        hostile.log
    );
    Ok(())
}

/// A process that does nothing but read 96 MiB of zeroes.
pub fn zero_reader_takes_no_slot() -> Verdict {
    ends_in_time(|_| read_zeroes(ZEROES_BYTES))
}

/// One that does nothing but map memory, touch it, and unmap it.
pub fn mapper_takes_no_slot() -> Verdict {
    ends_in_time(|_| forever(|| drop(Mapping::touched())))
}

/// One that does nothing but map a GiB and unmap it.
pub fn giant_mapper_takes_no_slot() -> Verdict {
    ends_in_time(|_| forever(map_gigabyte))
}

/// One that writes to a file, and waits for it to be written.
pub fn syncer_takes_no_slot() -> Verdict {
    ends_in_time(|_| {
        let path = "/tmp/syncer";
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).open(path).expect(path);
        let bytes = vec![7; 4 << 20];
        loop {
            file.rewind().expect("rewind");
            file.write_all(&bytes).expect("write");
            file.sync_all().expect("fsync");
        }
    })
}

/// One that forks children as fast as it can.
pub fn forker_takes_no_slot() -> Verdict {
    ends_in_time(|_| forever(fork_one))
}

/// With the configuration that is shipped, a process in system calls delays another one by little
/// more than a process that computes: its time in the kernel ends its slots.
pub fn calls_delay_little_as_shipped() -> Verdict {
    let plan = taking_turns().without_config();
    let good = beside_in(&plan, |_| burn(1 << 40))?;
    let calls = beside_in(&plan, |_| forever(|| call(libc::SYS_getppid)))?;
    let zeroes = beside_in(&plan, |_| read_zeroes(ZEROES_BYTES))?;
    for (name, end) in [("getppid", &calls), ("zeroes", &zeroes)] {
        let factor = end.after_ns as f64 / good.after_ns as f64;
        println!("beside {name} it ends {factor:.3} times as late as beside a loop");
        if !kernel_is_watched() {
            check!(factor <= 1.30, "it is late by more than three tenths\n{}", end.log);
        }
    }
    Ok(())
}

/// One that has a signal to handle all the time.
pub fn signalled_takes_no_slot() -> Verdict {
    ends_in_time(|_| signal_self())
}

/// After the plan, who retires nothing does not keep the CPU for good: the other
/// one ends, though it is not as late.
pub fn kernel_hog_starves_nobody_after_plan() -> Verdict {
    // The hog is later from the start: it burns before it stays in the kernel.
    let plan =
        Plan::new(1).config(config()).lead_in().slot(1, 0, SLOT_INSNS).slot(2, 0, SLOT_INSNS);
    let mut scene = Scene::new()?;
    scene.process(1, |_| {
        burn(20 * SLOT_INSNS);
        read_zeroes(ZEROES_BYTES);
    })?;
    scene.tasks(2, &[4 * SLOT_INSNS])?;
    let mut scene = scene.start(&plan)?;
    end_of_victim(&mut scene.node, 20_000_000_000)?;
    Ok(())
}

/// A thread that has used up the budget in a system call is killed at once all
/// the same.
pub fn hog_out_of_turn_can_be_killed() -> Verdict {
    let mut plan = Plan::new(1).config(config()).lead_in().slot(1, 0, SLOT_INSNS);
    plan = plan.slot(2, 0, 1000 * SLOT_INSNS);
    let mut scene = Scene::new()?;
    scene.process(1, |_| read_zeroes(ZEROES_BYTES))?;
    scene.process(2, |_| burn(900 * SLOT_INSNS))?;
    let mut scene = scene.start(&plan)?;
    sleep_ms(300);
    let start_ns = now_ns();
    scene.children[0].kill(libc::SIGKILL)?;
    scene.children[0].wait()?;
    println!("it was gone after {} us", (now_ns() - start_ns) / 1000);
    scene.node.read()?;
    check!(
        scene.node.first(EventKind::ProcessEnded, 2).is_err(),
        "it was killed when the other one had ended\n{}",
        scene.node.log()
    );
    Ok(())
}
